package preflight

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
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
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() {
			for i := w; i < len(p.flood); i += workers {
				p.flood[i] = c.event(1, c.recent(-i), "small")
			}
		})
	}
	group.Wait()
}

const askings = 60 // REQs one after another

// floodOfQuestions puts REQs as fast as they are answered, for a quarter of the check's time at
// most, and returns how many were.
func (c *checker) floodOfQuestions() (answered int, err error) {
	s, err := c.tryDial()
	if err != nil {
		return 0, err
	}
	for start := time.Now(); answered < askings && time.Since(start) < c.o.Check/4; answered++ {
		r, err := s.tryQuery(limited(c.mine(1), 1+answered))
		if err != nil || r.closed {
			return answered, err
		}
	}
	return answered, nil
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
	c.seen.counts = seen
	if c.rateOf(publishing)+c.rateOf(questions) != "" {
		must(leaveOpen(results.CauseRates, seen, nil)) // findRates tells of it
	}
	var refused *outcome
	var closed *wire.CloseError
	switch {
	case err == nil && askErr != nil:
		err = askErr
	case err == nil:
		c.capable("throttling", "none seen: "+strconv.Itoa(len(stored))+" events in "+took.Round(time.Millisecond).String()+" on one connection")
		return
	case errors.As(err, &refused) && refused.cause == results.CauseSetup:
		err = state(results.CauseRefused, seen, refused.texts)
	case errors.As(err, &closed) && len(stored) > 0:
		// It is the relay that ended the connection, and not what lies between, where another one
		// is taken and answered.
		if _, again := c.floodOfQuestions(); again == nil {
			err = state(results.CauseHungUp, seen, texts{"error": closed.Error()})
		}
	case errors.Is(err, client.ErrSilent) && len(stored) > 0:
		silent := undecided(err)
		s.meant()
		err = state(results.CauseUnanswered, seen, texts{"notice": silent.texts["notice"]})
	}
	c.capable("throttling", "perhaps: "+strconv.Itoa(len(stored))+" events were taken in one go")
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
	seen := found{cause: results.CauseRates, texts: texts{publishing: takes, questions: asks}, bearsOn: results.Throttled(takes != "", asks != "")}
	if before := p.findings[i]; before != nil {
		seen.counts = before.Counts
	}
	f := table[i].finding(found{}, &outcome{found: seen, verdict: results.Failed}, p.o.Relay)
	p.findings[i], p.open[i] = &f, false
	if takes == "" {
		takes = asks
	}
	p.capable("throttling", "yes: "+quoted(takes))
}

// flood publishes events over one connection, at most window of them without an OK, and returns
// those that were acknowledged and the time it took. It ends at the first refusal.
func (s *session) flood(events []*corpus.Event, window int) (stored []corpus.ID, took time.Duration, err error) {
	s.begin(publishing)
	start := time.Now()
	pending, taken := make(map[corpus.ID]*corpus.Event), make(map[corpus.ID]bool)
	defer func() {
		took = time.Since(start)
		for _, e := range events { // in the order of their times, whatever the order of the OKs
			if taken[e.ID] {
				stored = append(stored, e.ID)
			}
		}
	}()
	deadline := start.Add(s.o.Wait)
	for next := 0; ; {
		for next < len(events) && len(pending) < window && time.Since(start) < floodTime {
			pending[events[next].ID] = events[next]
			if err := s.conn.Wire().SendEvent(events[next].AppendJSON(nil)); err != nil {
				return nil, 0, s.explain(publishing, err)
			}
			next++
		}
		if len(pending) == 0 {
			return nil, 0, nil
		}
		_, err := s.next(deadline)
		m := &s.conn.Message
		switch {
		case err != nil:
			return nil, 0, s.explain(publishing, err)
		case m.Type == wire.Notice && s.rateOf(publishing) != "":
			return nil, 0, errRates
		case m.Type != wire.OK:
			continue
		}
		e := pending[corpus.ID(m.ID)]
		switch {
		case e == nil && m.Accepted:
			continue
		case e == nil: // a refusal that names nothing is of one of them all the same
			e = events[next-1]
		}
		if !m.Accepted {
			got := answer{reason: clip(m.ReasonText(), maxText), named: true}
			if speaksOfRate(got.reason) {
				s.sawRate(publishing, got.reason)
			}
			return nil, 0, needed(e, got)
		}
		delete(pending, e.ID)
		taken[e.ID] = true
		deadline = time.Now().Add(s.o.Wait)
	}
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
	switch {
	case r.closed:
		return "refused: CLOSED " + quoted(r.reason)
	case len(r.ids) == 0:
		return "unknown: none of the events was returned"
	case len(r.ids) >= len(stored):
		text := fmt.Sprintf("none up to %d events", len(stored))
		if !limit && !newest(r.ids, stored) {
			text += ", which come in another order than newest first"
		}
		return text
	case !contiguous(r.ids, stored):
		return fmt.Sprintf("unknown: %d of %d acknowledged events came, with others missing between them", len(r.ids), len(stored))
	case !limit && !newest(r.ids, stored):
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
	came := make(map[corpus.ID]bool, len(got))
	for _, id := range got {
		came[id] = true
	}
	first := slices.IndexFunc(published, func(id corpus.ID) bool { return came[id] })
	for n := range len(came) {
		if first < 0 || first+n >= len(published) || !came[published[first+n]] {
			return false
		}
	}
	return true
}
