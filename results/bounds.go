package results

import (
	"cmp"
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

// atMost refuses more of something than there may be.
func atMost(n, bound int, what string) error {
	if n > bound {
		return fmt.Errorf("it has %d %s, and a results.json may have %d", n, what, bound)
	}
	return nil
}

// withinLimits refuses a record of which no report can be made in reasonable time, in one sentence.
func (r *Record) withinLimits() error {
	err := cmp.Or(atMost(len(r.Measurements), MaxMeasurements, "measurements"), atMost(len(r.Findings), MaxFindings, "findings"),
		atMost(len(r.Relays), MaxRelays, "relays"), atMost(len(r.Metrics), MaxMetrics, "metrics"))
	if err != nil {
		return err
	}
	scenarios := make(map[string]bool)
	for i := range r.Scenarios {
		scenarios[r.Scenarios[i].Key] = true
	}
	for i := range r.Findings {
		scenarios[r.Findings[i].Scenario] = true
		if err := atMost(len(r.Findings[i].Evidence), MaxEvidence, "pieces of evidence for one finding"); err != nil {
			return err
		}
	}
	for i := range r.Measurements {
		scenarios[r.Measurements[i].Scenario] = true
		if err := atMost(len(r.Measurements[i].Status), MaxStatus, "notes on one measurement"); err != nil {
			return err
		}
	}
	if err := atMost(len(scenarios), MaxScenarios, "scenarios"); err != nil {
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
// had, and values that are not finite or below 0.
func (r *Record) validate() error {
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
	unknownRelay := func(relay, peer, blamed string) error {
		for _, name := range []string{relay, cmp.Or(peer, relay), cmp.Or(blamed, relay)} {
			if _, known := relays[name]; !known {
				return fmt.Errorf("is of %.60q, which is none of its relays", name)
			}
		}
		return nil
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if err := unknownRelay(f.Relay, f.Peer, f.Blames); err != nil {
			return fmt.Errorf("check %d, %.60q in %.60q, %w", i+1, f.Code, f.Scenario, err)
		}
	}
	seen := make(map[string]int, len(r.Measurements))
	for i := range r.Measurements {
		m := &r.Measurements[i]
		wrong := func(format string, args ...any) error {
			return fmt.Errorf("measurement %d, %.60q of %.60q in %.60q%s, %s", i+1, m.Metric, m.who(), m.Scenario, m.under(), fmt.Errorf(format, args...))
		}
		key := fmt.Sprintf("%q %q", []string{m.Relay, m.Peer, m.Scenario, m.Metric}, m.Labels)
		if first, twice := seen[key]; twice {
			return wrong("is there already as measurement %d", first+1)
		}
		seen[key] = i
		if err := unknownRelay(m.Relay, m.Peer, ""); err != nil {
			return wrong("%w", err)
		}
		if n := len(m.Trials); n > trials {
			return wrong("has %d trials, and the run had %d (option trials)", n, trials)
		}
		for _, list := range []struct {
			name   string
			values Values
		}{{"trial", m.Trials}, {"second", m.Timeline}} {
			for k, v := range list.values {
				switch {
				case math.IsNaN(v):
					return wrong("has no number in %s %d", list.name, k+1)
				case math.IsInf(v, 0):
					return wrong("has a number in %s %d that is too large for one", list.name, k+1)
				case v < 0:
					return wrong("has %v in %s %d, and no figure is below 0", v, list.name, k+1)
				}
			}
		}
		if m.Samples < 0 || m.Clamped < 0 {
			return wrong("has %d samples, %d of them out of range, and no count is below 0", m.Samples, m.Clamped)
		}
	}
	return nil
}

// under tells the labels, for an error.
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

// who names the relay, or the pair.
func (m *Measurement) who() string {
	if m.Peer != "" {
		return m.Relay + " with " + m.Peer
	}
	return m.Relay
}
