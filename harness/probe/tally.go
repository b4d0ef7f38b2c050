package probe

import (
	"time"

	"relaybench/corpus"
	"relaybench/harness/receive"
	"relaybench/relays/wire"
)

// tally is the consumer of one shape's events, as small as a client's: it looks at each event and counts it.
type tally struct {
	shape   Shape
	filter  corpus.Filter
	relays  []verdicts
	authors []corpus.PubKey
	known   map[corpus.PubKey]bool
	good    map[corpus.ID]struct{} // of the events that are unique to somebody
	arrived time.Duration          // the first event handed over
	ended   time.Duration          // the last one was done with
}

// verdicts are what was found out about one relay's events.
type verdicts struct {
	unique  int // asked for, verified, and not brought by another before
	unasked int // verified, and not what was asked for
}

func newTally(shape Shape, filter corpus.Filter, relays int) *tally {
	return &tally{shape: shape, filter: filter, relays: make([]verdicts, relays), known: make(map[corpus.PubKey]bool), good: make(map[corpus.ID]struct{})}
}

// take is the consumer.
func (t *tally) take(b *receive.Batch) error {
	for _, events := range [][]receive.Event{b.Events, b.Refused} {
		for i := range events {
			if e := &events[i]; t.arrived == 0 || e.Arrived < t.arrived {
				t.arrived = e.Arrived
			}
		}
	}
	for i := range b.Events {
		e := &b.Events[i]
		v := &t.relays[e.Feeder]
		if !t.filter.Matches(&e.Parsed) {
			v.unasked++
			continue
		}
		v.unique++
		t.good[e.ID] = struct{}{}
		if author := e.Parsed.PubKey; len(t.authors) < MaxAuthors && !t.known[author] {
			t.known[author] = true
			t.authors = append(t.authors, author)
		}
	}
	t.ended = wire.Now()
	return nil
}

// consumption arranges what the consumer's side looked like.
func (t *tally) consumption(checks receive.Checks, s *receive.Stats) Consumption {
	c := Consumption{Shape: t.shape, Frames: s.Events, Delivered: s.Delivered, Refused: s.Refused(), Duplicates: s.Duplicates,
		CheckingMs: milliseconds(s.Checking)}
	busy := s.Busy
	if checks == receive.Inline {
		busy += s.Checking // the consumer's own work
	}
	if s.Delay.Count() > 0 {
		c.DelayMs = &Delay{P50: milliseconds(s.Delay.Quantile(0.5)), P90: milliseconds(s.Delay.Quantile(0.9)), Max: milliseconds(s.Delay.Max())}
	}
	if span := t.ended - t.arrived; span > 0 {
		c.SpanMs = milliseconds(span)
		c.Busy = min(1, float64(busy)/float64(span))
	}
	return c
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
