package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/wire"
	"relaybench/results"
)

const (
	floodEvents = 1100 // more than the limits relays ship with: 100, 250, 375, 500, 1,000
	floodWindow = 100  // unacknowledged at most
	// floodTime ends the sending on a slow relay. What it took by then is what limits are looked
	// for in.
	floodTime = 3 * time.Second
)

// prepareFlood makes the events of the flood, on all cores.
func (p *prober) prepareFlood() {
	c := &checker{prober: p, key: newKey()}
	p.floodKey, p.flood = c.key, make([]*corpus.Event, p.o.flood)
	corpus.InParallel(len(p.flood), func(i int) { p.flood[i] = c.event(1, c.recent(-i), "small") })
}

const askings = 60 // REQs one after another

// floodOfQuestions puts REQs as fast as they are answered, for a quarter of the check's time at
// most, and returns how many were.
func (c *checker) floodOfQuestions() (answered int, err error) {
	err = try(func() {
		s := c.dial()
		for start := time.Now(); answered < askings && time.Since(start) < c.o.Check/4; answered++ {
			if s.query(limited(c.mine(1), 1+answered)).closed {
				return
			}
		}
	})
	return answered, err
}

// doesNotThrottle publishes events as fast as they are taken, and asks as fast as it is answered: a
// limiter would be what is measured. With the events stored it asks for limits of answers.
func doesNotThrottle(c *checker) {
	s := c.dial()
	c.key = c.floodKey
	stored, took, err := s.flood(c.prober.flood, floodWindow)
	if len(stored) > 1 {
		c.capable("limit clamp", c.clamp(stored, true))
		c.capable("default limit", c.clamp(stored, false))
	}
	answered, askErr := c.floodOfQuestions()
	seen := counts{"taken": float64(len(stored)), "ms": milliseconds(took), "answered": float64(answered)}
	c.seen.Counts = seen
	if c.rateOf(publishing)+c.rateOf(questions) != "" {
		must(leaveOpen(results.CauseRates, seen)) // findRates tells of it
	}
	var refused *outcome
	var closed *wire.CloseError
	switch {
	case err == nil && askErr == nil:
		c.capable("throttling", fmt.Sprintf("none seen: %d events in %v on one connection", len(stored), took.Round(time.Millisecond)))
		return
	case err == nil:
		err = askErr
	case errors.As(err, &refused) && refused.Cause == results.CauseSetup:
		err = state(results.CauseRefused, seen, refused.Texts)
	case errors.As(err, &closed) && len(stored) > 0:
		// It is the relay that ended the connection, and not what lies between, where another one
		// is taken and answered.
		if _, again := c.floodOfQuestions(); again == nil {
			err = state(results.CauseHungUp, seen, texts{"error": closed.Error()})
		}
	case errors.Is(err, client.ErrSilent) && len(stored) > 0:
		s.meant()
		err = state(results.CauseUnanswered, seen, texts{"notice": undecided(err).Texts["notice"]})
	}
	c.capable("throttling", fmt.Sprintf("perhaps: %d events were taken in one go", len(stored)))
	must(err)
}

// errRates says that a text spoke of a limit of rates.
var errRates = errors.New("rates are limited")

// findRates fails the check on throttling wherever a text spoke of a limit: it may strike before
// the flood. It bears on what was seen to be limited.
func (p *prober) findRates() {
	i := place(results.CodeThrottles)
	takes, asks := p.rates[publishing], p.rates[questions]
	if takes+asks == "" {
		return
	}
	o := found(results.Failed, "", results.CauseRates, nil, texts{publishing: takes, questions: asks})
	o.BearsOn = results.Throttled(takes != "", asks != "")
	if before := p.findings[i]; before != nil {
		o.Counts = before.Counts
	}
	f := table[i].finding(results.Finding{}, o, p.o.Relay)
	p.findings[i], p.open[i] = &f, false
	p.capable("throttling", "yes: "+quoted(cmp.Or(takes, asks)))
}

// flood publishes events over one connection, at most window of them without an OK, and returns
// those that were acknowledged and the time it took. It ends at the first refusal.
func (s *session) flood(events []*corpus.Event, window int) (stored []corpus.ID, took time.Duration, err error) {
	start, next := time.Now(), 0
	pending, taken := make(map[corpus.ID]bool), make(map[corpus.ID]bool)
	send := func() (err error) {
		for err == nil && next < len(events) && len(pending) < window && time.Since(start) < floodTime {
			pending[events[next].ID] = true
			err = s.conn.Wire().SendEvent(events[next].AppendJSON(nil))
			next++
		}
		return err
	}
	var wrong error
	err = s.put(publishing, s.o.Wait, send, func(_ *client.Subscription, m *wire.Message) (part, last bool) {
		switch {
		case m.Type == wire.Notice && s.rateOf(publishing) != "":
			wrong = errRates
		case m.Type != wire.OK:
			return false, false
		case !s.okay().accepted: // also where it names none of them
			wrong = needed(events[0], s.okay())
		case pending[m.ID]:
			delete(pending, m.ID)
			taken[m.ID] = true
			if err := send(); err != nil {
				wrong = s.explain(publishing, err)
			}
		}
		return true, wrong != nil || len(pending) == 0
	})
	took = time.Since(start)
	for _, e := range events { // in the order of their times, whatever the order of the OKs
		if taken[e.ID] {
			stored = append(stored, e.ID)
		}
	}
	return stored, took, cmp.Or(wrong, err)
}

// clamp finds how many of the stored events one REQ returns, with a limit that takes in all or with
// none.
func (c *checker) clamp(stored []corpus.ID, limit bool) (text string) {
	if err := try(func() { text = c.dial().clamp(stored, limit) }); err != nil {
		return "unknown: " + err.Error()
	}
	return text
}

func (s *session) clamp(stored []corpus.ID, limit bool) string {
	// What was published last must be readable: a relay that stores behind its OKs would seem to
	// have a limit.
	last := stored[len(stored)-1]
	if r := s.poll(exactly([]corpus.ID{last}), corpus.Filter{IDs: []corpus.ID{last}}); len(r.ids) == 0 {
		return fmt.Sprintf("unknown: %v after its OK the last event cannot be read yet", s.settle())
	}
	f := s.mine(1)
	if limit {
		f = limited(f, s.o.flood)
	}
	// The answer may grow while what was acknowledged settles; a limit is what it stays at.
	seen, same := -1, 0
	r := s.poll(func(r *reply) bool {
		if len(r.ids) == seen {
			same++
		} else {
			seen, same = len(r.ids), 0
		}
		return seen >= len(stored) || same >= 3
	}, f)
	odd := !limit && !newest(r.ids, stored)
	switch {
	case r.closed:
		return "refused: CLOSED " + quoted(r.reason)
	case len(r.ids) == 0:
		return "unknown: none of the events was returned"
	case len(r.ids) >= len(stored) && odd:
		return fmt.Sprintf("none up to %d events, which come in another order than newest first", len(stored))
	case len(r.ids) >= len(stored):
		return fmt.Sprintf("none up to %d events", len(stored))
	case !contiguous(r.ids, stored):
		return fmt.Sprintf("unknown: %d of %d acknowledged events came, with others missing between them", len(r.ids), len(stored))
	case odd:
		return fmt.Sprintf("%d, not the newest first", len(r.ids))
	}
	return fmt.Sprint(len(r.ids))
}

// newest tells whether an answer is the newest of the events, newest first. The flood is published
// in that order.
func newest(got, published []corpus.ID) bool {
	return len(got) <= len(published) && slices.Equal(got, published[:len(got)])
}

// contiguous tells whether an answer is a run of the events without a gap, in any order: what a
// limit leaves.
func contiguous(got, published []corpus.ID) bool {
	var places []int
	for _, id := range got {
		places = append(places, slices.Index(published, id))
	}
	slices.Sort(places)
	places = slices.Compact(places)
	last := len(places) - 1
	return last < 0 || places[0] >= 0 && places[last]-places[0] == last
}
