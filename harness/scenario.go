// Package harness runs trials: it plans them, boots each relay, hands it to the scenarios one after another, watches it, and
// keeps what they measured.
package harness

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"time"

	"relaybench/corpus"
	"relaybench/harness/backfill"
	"relaybench/relays"
	"relaybench/results"
)

// Options are a run's settings: everything beside the corpus and the relays that two runs must share to be comparable.
type Options struct {
	Seed        uint64        // of every draw that scenarios make
	Samples     int           // events published one by one in ingest.visibility
	Publishers  int           // connections in ingest.throughput
	Window      int           // unacknowledged events on each of them
	Rate        int           // events per second in ingest.paced, over all of them together
	QueryRounds int           // timed repetitions of each query on one connection, and on each of QueryConns
	QueryConns  int           // connections that ask at once
	Trials      int           // boots of each relay
	Stall       time.Duration // how long a relay may make no progress
	CellTime    time.Duration // an import or a sync is cut after so long; 0: ended by Trial.Budget
}

// Description says what a scenario is: for people, for --only and --skip, and for the record, from
// which reports are laid out.
type Description struct {
	results.Scenario                  // Key is stable and dotted: "ingest.throughput"
	Labels           results.Labels   // of all that it measures and finds
	Metrics          []results.Metric // in reading order; those that are not described are figures under their own name
	Needs            State
}

// described is a stage that records no figures of its own.
func described(key, title string) Description {
	return Description{Scenario: results.Scenario{Key: key, Title: title}}
}

// State is what a scenario needs the relay to hold.
type State int

// The states. A relay that is not Loaded when a scenario needs it is fed the corpus first, outside the clock.
const (
	Empty  State = iota // nothing of the corpus yet
	Loaded              // all of the corpus
)

// Described is anything that --only and --skip choose among: a Scenario or a PairScenario.
type Described interface{ Describe() Description }

// Scenario measures one thing on one running relay. It knows the corpus, the wire and measure, and no other scenario.
type Scenario interface {
	Describe() Description
	// Run measures. A wrong answer is a finding, not an error; an error says that the relay could not be measured further.
	Run(ctx context.Context, t *Trial) error
}

// Trial is one relay's one boot, as scenarios see it.
type Trial struct {
	Relay   *relays.Process
	Corpus  *corpus.Corpus
	Model   *corpus.Model // of the whole corpus, at Now
	Now     int64         // Unix seconds, fixed for the run: what has expired (NIP-40) is decided once
	Options Options
	Number  int        // counts from 0
	Rand    *rand.Rand // the same draws for every relay; new for each scenario and trial
	Ledger  *Ledger
	Budget  *backfill.Budget // of whatever moves the relay's events

	scenario string
	labels   results.Labels
	peer     string // the other relay of a pair
	mute     bool   // the second of two instances of one relay: its figures would be taken for another trial's
	recorder *results.Recorder
	progress func(done, total int)
	used     relays.Usage // at the last look
	past     relays.Usage // of processes before the relay's present one
	stopped  bool
	began    spent   // before the scenario
	memory   *memory // that the relay is seen to hold in the scenario
	attend   func()  // to be called when the relay has another process

	readingSet bool // recorded in this scenario
	ownCPUSet  bool
	seeded     bool // by the runner's Seeder
	unmeasured bool // the scenario
}

// Measure records a measurement of this relay in this scenario. Its labels are added to those of
// the scenario.
func (t *Trial) Measure(m results.Measurement) {
	if t.mute {
		return
	}
	m.Relay, m.Peer, m.Scenario, m.Labels = t.Relay.Name(), t.peer, t.scenario, t.labels.With(m.Labels)
	t.recorder.Add(m)
}

// Value records a single figure as this trial's value of a metric.
func (t *Trial) Value(metric, unit string, better results.Better, value float64) {
	t.Measure(results.Measurement{Metric: metric, Unit: unit, Better: better, Trials: []float64{value}})
}

// Latency records the median of a histogram, in milliseconds, as this trial's value, and the
// histogram with it. An empty histogram records nothing: there is no latency of what never
// happened.
func (t *Trial) Latency(metric string, better results.Better, h *results.Histogram, status ...results.Status) error {
	if h.Count() == 0 {
		return nil
	}
	m := results.Measurement{Metric: metric, Unit: "ms", Better: better, Trials: []float64{Milliseconds(h.Quantile(0.5))}, Status: status}
	if err := m.SetHistogram(h); err != nil {
		return err
	}
	t.Measure(m)
	return nil
}

// Find records what a check found out about this relay in this scenario. A failure is this relay's
// fault unless Blames says otherwise, and bears on what results.BearsOn says unless BearsOn does.
// What the relay wrote may name folders of this machine, which go unnamed.
func (t *Trial) Find(f results.Finding) {
	if f.Verdict == results.Failed && f.Blames == "" {
		f.Blames = t.Relay.Name()
	}
	t.FindUnblamed(f)
}

// FindUnblamed is Find for a failure of which nobody knows whose fault it is: it bears on both of a
// pair.
func (t *Trial) FindUnblamed(f results.Finding) {
	for name, text := range f.Texts {
		f.Texts[name] = t.Relay.Public(text)
	}
	for i := range f.Evidence {
		f.Evidence[i].Text = t.Relay.Public(f.Evidence[i].Text)
	}
	f.Relay, f.Peer, f.Scenario, f.Labels = t.Relay.Name(), t.peer, t.scenario, t.labels.With(f.Labels)
	switch {
	case f.Verdict != results.Failed:
		f.BearsOn = nil
	case f.BearsOn == nil:
		f.BearsOn = results.BearsOn(f.Code, f.Scenario, f.Labels)
	}
	t.recorder.Find(f)
}

// NotMeasured records that a scenario is none for this relay, and why; no figures of it are kept.
func (t *Trial) NotMeasured(cause string, texts map[string]string) {
	t.unmeasured = true
	t.Find(results.Finding{Code: results.CodeMeasurable, Verdict: results.Stated, Cause: cause, Texts: texts})
}

// Progress tells whoever watches how far the scenario is.
func (t *Trial) Progress(done, total int) {
	if t.progress != nil {
		t.progress(done, total)
	}
}

// Within is the context of a run that moves so many events, by the Budget or Options.CellTime.
func (t *Trial) Within(ctx context.Context, events int) (context.Context, context.CancelFunc) {
	return t.Budget.Within(ctx, t.Options.CellTime, events)
}

// Stop ends the relay by its stop signal. No scenario can talk to it before a Restart. The usage
// returned is the last that could be seen; clean is false where the relay had to be killed after
// its grace.
func (t *Trial) Stop(ctx context.Context) (used relays.Usage, clean bool, err error) {
	if usage, err := t.Relay.Usage(); err == nil && !t.stopped {
		t.used = together(t.past, usage)
	}
	t.stopped = true
	err = t.Relay.Stop(ctx)
	return t.used, !errors.Is(err, relays.ErrForced), t.ended(err)
}

// Milliseconds converts a duration to the unit of all latency metrics.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Select keeps the scenarios whose key matches a pattern in only (all, where only is empty) and none in skip. Patterns are those of
// path.Match; "query" alone also stands for every key below it. The error is a malformed pattern or one that matches no scenario.
func Select(all []Described, only, skip []string) ([]Described, error) {
	matched := make(map[string]bool)
	matches := func(patterns []string, key string) (bool, error) {
		found := false
		for _, p := range patterns {
			ok, err := path.Match(p, key)
			if err != nil {
				return false, &PatternError{p, "is not a valid pattern"}
			}
			if !ok {
				ok, _ = path.Match(p+".*", key)
			}
			if !ok { // "negentropy.*" is what stands below "negentropy" as well as that itself
				ok = p == key+".*"
			}
			if ok {
				matched[p] = true
				found = true
			}
		}
		return found, nil
	}
	var chosen []Described
	for _, s := range all {
		key := s.Describe().Key
		wanted, err := matches(only, key)
		if err != nil {
			return nil, err
		}
		unwanted, err := matches(skip, key)
		if err != nil {
			return nil, err
		}
		if (wanted || len(only) == 0) && !unwanted {
			chosen = append(chosen, s)
		}
	}
	for _, patterns := range [][]string{only, skip} {
		for _, p := range patterns {
			if !matched[p] {
				return nil, &PatternError{p, "matches no scenario"}
			}
		}
	}
	return chosen, nil
}

// PatternError is a scenario pattern that cannot be used.
type PatternError struct{ Pattern, Problem string }

func (e *PatternError) Error() string { return "scenario pattern \"" + e.Pattern + "\" " + e.Problem }
