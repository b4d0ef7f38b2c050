package results

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// What a record may hold at most. A run takes up to 1,000 trials of a figure; what is beyond these
// bounds no run has written, and would keep a report busy for minutes.
const (
	MaxMeasurements = 50_000
	MaxTrials       = 10_000    // of one measurement
	MaxAllTrials    = 2_000_000 // of a record
	MaxStatus       = 100       // of one measurement
	MaxRelays       = 200
	MaxScenarios    = 5_000 // that are described, measured or checked
	MaxMetrics      = 1_000
	MaxFindings     = 10_000
	MaxEvidence     = 1_000 // of one finding
)

// bound is how many there are of something, and how many there may be.
type bound struct {
	n, most int
	what    string
}

// exceeded refuses more of anything than there may be.
func exceeded(bounds ...bound) error {
	for _, b := range bounds {
		if b.n > b.most {
			return fmt.Errorf("it has %d %s, and a results.json may have %d", b.n, b.what, b.most)
		}
	}
	return nil
}

// withinLimits refuses a record of which no report can be made in reasonable time, in one sentence.
func (r *Record) withinLimits() error {
	scenarios, evidence, notes := make(map[string]bool), 0, 0
	for i := range r.Scenarios {
		scenarios[r.Scenarios[i].Key] = true
	}
	for i := range r.Findings {
		scenarios[r.Findings[i].Scenario] = true
		evidence = max(evidence, len(r.Findings[i].Evidence))
	}
	for i := range r.Measurements {
		scenarios[r.Measurements[i].Scenario] = true
		notes = max(notes, len(r.Measurements[i].Status))
	}
	err := exceeded(
		bound{len(r.Measurements), MaxMeasurements, "measurements"}, bound{len(r.Findings), MaxFindings, "findings"},
		bound{len(r.Relays), MaxRelays, "relays"}, bound{len(r.Metrics), MaxMetrics, "metrics"},
		bound{evidence, MaxEvidence, "pieces of evidence for one finding"}, bound{notes, MaxStatus, "notes on one measurement"},
		bound{len(scenarios), MaxScenarios, "scenarios"})
	if err != nil {
		return err
	}
	all := 0
	for i := range r.Measurements {
		m := &r.Measurements[i]
		if n := len(m.Trials); n > MaxTrials {
			return fmt.Errorf("%.60q of %.60q in %.60q has %d trials, and a measurement may have %d", m.Metric, m.who(), m.Scenario, n, MaxTrials)
		}
		if all += len(m.Trials); all > MaxAllTrials {
			return fmt.Errorf("up to %.60q of %.60q in %.60q its measurements have over %d trials, which is the most for one results.json",
				m.Metric, m.who(), m.Scenario, MaxAllTrials)
		}
	}
	return nil
}

// trialCount is how many trials the run's settings had; MaxTrials where they do not say it.
func (r *Record) trialCount() (int, error) {
	switch n := r.Options["trials"].(type) {
	case nil:
		return MaxTrials, nil
	case int64: // as a run sets it
		return int(n), nil
	case int:
		return n, nil
	case float64: // as it is read
		if n >= 1 {
			return int(min(n, MaxTrials)), nil
		}
	}
	return 0, fmt.Errorf("its option trials is %.60q, and a run has a number of at least 1", fmt.Sprint(r.Options["trials"]))
}

// validate refuses a record that says what no run can have measured, and names the place: the same
// measurement or relay twice, what is of no relay of the run, more trials than the run's settings
// had, values that are not finite or below 0; and in the present form measurements without a figure
// or a reason, and words that there are not, which would rank or bar nothing. It fills in what a
// failed check bears on where the file leaves that out.
func (r *Record) validate(form string) error {
	trials, err := r.trialCount()
	if err != nil {
		return err
	}
	relays := map[string]int{"": -1} // the harness itself
	for i := range r.Relays {
		name := r.Relays[i].Name
		if first, twice := relays[name]; twice && name != "" {
			return fmt.Errorf("relay %d, %.60q, is there already as relay %d", i+1, name, first+1)
		}
		relays[name] = i
	}
	unknownRelay := func(names ...string) error {
		for _, name := range names {
			if _, known := relays[name]; !known {
				return fmt.Errorf("is of %.60q, which is none of its relays", name)
			}
		}
		return nil
	}
	seen := make(map[string]int, len(r.Measurements))
	for i := range r.Measurements {
		m := &r.Measurements[i]
		key := fmt.Sprintf("%q %q", []string{m.Relay, m.Peer, m.Scenario, m.Metric}, m.Labels)
		first, twice := seen[key]
		seen[key] = i
		err := unknownRelay(m.Relay, m.Peer)
		switch {
		case twice:
			err = fmt.Errorf("is there already as measurement %d", first+1)
		case err != nil:
		case len(m.Trials) > trials:
			err = fmt.Errorf("has %d trials, and the run had %d (option trials)", len(m.Trials), trials)
		case m.Samples < 0 || m.Clamped < 0:
			err = fmt.Errorf("has %d samples, %d of them out of range, and no count is below 0", m.Samples, m.Clamped)
		case form == Schema && len(m.Trials)+len(m.Status) == 0:
			err = errors.New("has no trial, and no status that says why")
		case form == Schema && m.Better != Higher && m.Better != Lower && m.Better != None:
			err = fmt.Errorf("is the better %.60q; there are %q, %q and %q", m.Better, Higher, Lower, None)
		default:
			err = cmp.Or(m.Trials.validate("trial"), m.Timeline.validate("second"))
		}
		if err != nil {
			return fmt.Errorf("measurement %d, %.60q of %.60q in %.60q%s, %w", i+1, m.Metric, m.who(), m.Scenario, m.under(), err)
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if err := unknownRelay(f.Relay, f.Peer, f.Blames); err != nil {
			return fmt.Errorf("check %d, %.60q in %.60q, %w", i+1, f.Code, f.Scenario, err)
		}
		if _, known := weight[f.Verdict]; !known {
			return fmt.Errorf("the check %.60q of %.60q has the verdict %.60q; there are %q, %q, %q and %q",
				f.Code, f.Relay, f.Verdict, Passed, Failed, Undecided, Stated)
		}
		if f.Verdict == Failed && len(f.BearsOn) == 0 {
			f.BearsOn = BearsOn(f.Code, f.Scenario, f.Labels)
		}
	}
	return nil
}

// validate names the first value that no run can have measured. of says what the values are of.
func (v Values) validate(of string) error {
	for k, x := range v {
		switch {
		case math.IsNaN(x):
			return fmt.Errorf("has no number in %s %d", of, k+1)
		case math.IsInf(x, 0):
			return fmt.Errorf("has a number in %s %d that is too large for one", of, k+1)
		case x < 0:
			return fmt.Errorf("has %v in %s %d, and no figure is below 0", x, of, k+1)
		}
	}
	return nil
}

func (m *Measurement) under() string {
	if len(m.Labels) == 0 {
		return ""
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		pairs = append(pairs, name+":"+m.Labels[name])
	}
	return fmt.Sprintf(" (%.120q)", strings.Join(pairs, ", "))
}

func (m *Measurement) who() string {
	if m.Peer != "" {
		return m.Relay + " with " + m.Peer
	}
	return m.Relay
}
