package measure

import (
	"cmp"
	"fmt"
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

// most refuses more of something than there may be.
func most(n, bound int, what string) error {
	if n > bound {
		return fmt.Errorf("it has %d %s, and a results.json may have %d", n, what, bound)
	}
	return nil
}

// bounded refuses a record of which no report can be made in reasonable time, in one sentence.
func (r *Record) bounded() error {
	err := cmp.Or(most(len(r.Measurements), MaxMeasurements, "measurements"), most(len(r.Findings), MaxFindings, "findings"),
		most(len(r.Relays), MaxRelays, "relays"), most(len(r.Metrics), MaxMetrics, "metrics"))
	if err != nil {
		return err
	}
	scenarios := make(map[string]bool)
	for i := range r.Scenarios {
		scenarios[r.Scenarios[i].Key] = true
	}
	for i := range r.Findings {
		scenarios[r.Findings[i].Scenario] = true
		if err := most(len(r.Findings[i].Evidence), MaxEvidence, "pieces of evidence for one finding"); err != nil {
			return err
		}
	}
	for i := range r.Measurements {
		scenarios[r.Measurements[i].Scenario] = true
		if err := most(len(r.Measurements[i].Status), MaxStatus, "notes on one measurement"); err != nil {
			return err
		}
	}
	if err := most(len(scenarios), MaxScenarios, "scenarios"); err != nil {
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

// who names the relay, or the pair.
func (m *Measurement) who() string {
	if m.Peer != "" {
		return m.Relay + " with " + m.Peer
	}
	return m.Relay
}
