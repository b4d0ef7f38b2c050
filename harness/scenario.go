// Package harness runs trials: it plans them, boots each relay, hands it to the scenarios one after
// another, watches it, and keeps what they measured.
package harness

import (
	"context"
	"path"
	"time"

	"relaybench/corpus/model"
	"relaybench/results"
)

// Options are a run's settings: everything beside the corpus and the relays that two runs must
// share to be comparable.
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

// Description says what a scenario is: for people, for --only and --skip, for the engine, and for
// the record, from which reports are laid out.
type Description struct {
	results.Scenario                  // Key is stable and dotted: "ingest.throughput"
	Labels           results.Labels   // of all that it measures and finds
	Metrics          []results.Metric // in reading order; those that are not described are figures under their own name
	Cast             Cast
	Bulk             bool  // relays are launched with the limits raised that stand in the way of a bulk transfer
	Needs            State // what each relay is to hold; of an ordered pair the source, since the sink is an empty folder
	// External is stated of a relay that runs already, which may not be stopped, killed or filled,
	// where the scenario is none for it: its Cause. Scenario and Code are the key and
	// CodeMeasurable unless set.
	External results.Finding
	// NIP, where it is not 0, is one that the relay must have been found to speak by the
	// preflight's probe of it. Of a relay that was not, the scenario is stated to be none.
	NIP int
}

// described is a stage that records no figures of its own.
func described(key, title string) Description {
	return Description{Scenario: results.Scenario{Key: key, Title: title}}
}

// Cast is which relays a scenario runs on at a time.
type Cast int

// The casts.
const (
	// AtOnce is the harness by itself, and with it all relays that run already: they are not asked
	// whether they are ready, nor asked anything again where the harness was away.
	AtOnce  Cast = iota - 1
	Single       // one relay, in one boot with all other scenarios of its form
	Pair         // two that speak NIP-77, side by side; one that is alone in that with itself
	Ordered      // each as a source for each as a sink, itself included
)

// State is what a scenario needs a relay to have been offered, outside the clock.
type State int

// The states.
const (
	Empty  State = iota // nothing of the corpus yet
	Loaded              // all of the corpus
	Older               // all but the newest fifth of what a compliant relay holds
	Newer               // all but the oldest fifth
)

// Share returns the corpus indexes from which and up to which (that one not included) a model's
// corpus belongs to the state.
func (s State) Share(m *model.Model) (from, to int) {
	to = m.Corpus().Len()
	if s == Empty {
		return to, to
	}
	if s == Loaded {
		return 0, to
	}
	oldest, newest := 0, 0
	if effective := m.Effective(); len(effective) > 0 {
		oldest, newest = effective[len(effective)/5], effective[len(effective)-(len(effective)+4)/5]
	}
	if s == Older {
		return 0, newest
	}
	return oldest, to
}

// Scenario measures one thing on one running relay, or on two. It knows the corpus, the wire and
// measure, and no other scenario.
type Scenario interface {
	Describe() Description
	// Run measures. A wrong answer is a finding, not an error; an error says that the relay could
	// not be measured further: for whose fault it is see Trial.Fault. Of an ordered pair t is the
	// sink, whose folder is empty and which the scenario boots by Restart, and t.Peer the source.
	// Of AtOnce t is the harness itself, and an error is none of a relay's and ends the run.
	Run(ctx context.Context, t *Trial) error
}

// Milliseconds converts a duration to the unit of all latency metrics.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Select keeps the keys of scenarios that match a pattern in only (all, where only is empty) and
// none in skip. Patterns are those of path.Match; "query" alone also stands for every key below it.
// The error is a malformed pattern or one that matches no key.
func Select(keys, only, skip []string) ([]string, error) {
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
	var chosen []string
	for _, key := range keys {
		wanted, err := matches(only, key)
		if err != nil {
			return nil, err
		}
		unwanted, err := matches(skip, key)
		if err != nil {
			return nil, err
		}
		if (wanted || len(only) == 0) && !unwanted {
			chosen = append(chosen, key)
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
