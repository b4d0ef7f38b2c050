// Package harness runs trials: it plans them, boots each relay, hands it to the scenarios one after another, watches it, and
// keeps what they measured.
package harness

import (
	"context"
	"math/rand/v2"
	"path"
	"time"

	"relaybench/corpus"
	"relaybench/harness/measure"
	"relaybench/relays"
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
}

// Description says what a scenario is, for people and for --only and --skip.
type Description struct {
	Key   string // stable, dotted: "ingest.throughput"
	Title string // a few words
	Needs State
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

	scenario string
	peer     string // the other relay of a pair
	mute     bool   // the second of two instances of one relay: its figures would be taken for another trial's
	recorder *measure.Recorder
	progress func(done, total int)
	used     relays.Usage // at the last look
	past     relays.Usage // of processes before the relay's present one
	stopped  bool
	began    spent   // before the scenario
	memory   *memory // that the relay is seen to hold in the scenario
	attend   func()  // to be called when the relay has another process

	ownShareSet bool
	seeded      bool // by the runner's Seeder
	unmeasured  bool // the scenario
}

// Measure records a measurement of this relay in this scenario.
func (t *Trial) Measure(m measure.Measurement) {
	if t.mute {
		return
	}
	m.Relay, m.Peer, m.Scenario = t.Relay.Name(), t.peer, t.scenario
	t.recorder.Add(m)
}

// Value records a single figure as this trial's value of a metric.
func (t *Trial) Value(metric, unit string, better measure.Better, value float64) {
	t.Measure(measure.Measurement{Metric: metric, Unit: unit, Better: better, Trials: []float64{value}})
}

// Latency records the median of a histogram, in milliseconds, as this trial's value, and the histogram with it. An empty histogram
// records nothing: there is no latency of what never happened.
func (t *Trial) Latency(metric string, better measure.Better, h *measure.Histogram) error {
	return t.NotedLatency(metric, better, h, "")
}

// NotedLatency is Latency with a note on the figure.
func (t *Trial) NotedLatency(metric string, better measure.Better, h *measure.Histogram, note string) error {
	if h.Count() == 0 {
		return nil
	}
	payload, err := h.Encode()
	if err != nil {
		return err
	}
	t.Measure(measure.Measurement{
		Metric: metric, Unit: "ms", Better: better,
		Trials:    []float64{Milliseconds(h.Quantile(0.5))},
		Samples:   h.Count(),
		Histogram: payload,
		Note:      note,
	})
	return nil
}

// Find records a check's verdict on this relay in this scenario. What the relay wrote may name folders of this machine, which go unnamed.
func (t *Trial) Find(f measure.Finding) {
	f.Detail = t.Relay.Public(f.Detail)
	for i, line := range f.Evidence {
		f.Evidence[i] = t.Relay.Public(line)
	}
	f.Relay, f.Peer, f.Scenario = t.Relay.Name(), t.peer, t.scenario
	t.recorder.Find(f)
}

// NotMeasured records that a scenario is none for this relay, and why; no figures of it are kept.
func (t *Trial) NotMeasured(why string) {
	t.unmeasured = true
	t.Find(measure.Finding{Check: "can be measured", OK: true, Detail: "not measured: " + why})
}

// Progress tells whoever watches how far the scenario is.
func (t *Trial) Progress(done, total int) {
	if t.progress != nil {
		t.progress(done, total)
	}
}

// Stop ends the relay cleanly, for scenarios that look at what it left behind. No scenario can talk to it afterwards. The usage returned is
// the last that could be seen.
func (t *Trial) Stop(ctx context.Context) (relays.Usage, error) {
	if usage, err := t.Relay.Usage(); err == nil && !t.stopped {
		t.used = together(t.past, usage)
	}
	t.stopped = true
	return t.used, t.Relay.Stop(ctx)
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
