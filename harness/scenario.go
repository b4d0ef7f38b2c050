// Package harness runs trials: it plans them, boots each relay, hands it to the scenarios one after
// another, watches it, and keeps what they measured.
package harness

import (
	"context"
	"fmt"
	"path"
	"slices"
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
	effective := m.Effective()
	held := len(effective)
	switch to = m.Corpus().Len(); {
	case s == Empty:
		return to, to
	case s == Older && held == 0:
		return 0, 0
	case s == Older:
		return 0, effective[held-(held+4)/5]
	case s == Newer && held > 0:
		return effective[held/5], to
	}
	return 0, to
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
// none in skip. Patterns are those of path.Match; "query" alone also stands for every key below it,
// and "query.*" for "query" itself. The error is a malformed pattern or one that matches no key.
func Select(keys, only, skip []string) ([]string, error) {
	var matched [2]map[string]bool
	for list, patterns := range [][]string{only, skip} {
		matched[list] = make(map[string]bool)
		for _, p := range patterns {
			found := false
			for _, key := range keys {
				exactly, err := path.Match(p, key)
				if err != nil {
					return nil, fmt.Errorf("scenario pattern %q is not a valid pattern", p)
				}
				if below, _ := path.Match(p+".*", key); exactly || below || p == key+".*" {
					found, matched[list][key] = true, true
				}
			}
			if !found {
				return nil, fmt.Errorf("scenario pattern %q matches no scenario", p)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		return matched[1][key] || len(only) > 0 && !matched[0][key]
	}), nil
}
