package preflight

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/harness/wire"
)

const (
	floodEvents = 1100 // more than the limits relays ship with: 100, 250, 375, 500, 1,000
	floodWindow = 100  // unacknowledged at most
	// floodTime ends the sending on a slow relay. What it took by then is what limits are looked for in.
	floodTime = 3 * time.Second
)

// prepareFlood makes the events of the flood, on all cores.
func (p *prober) prepareFlood() {
	a := &asking{prober: p, key: newKey()}
	p.floodKey, p.flood = a.key, make([]*corpus.Event, p.o.flood)
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() {
			for i := w; i < len(p.flood); i += workers {
				p.flood[i] = a.event(1, a.recent(-i), "small")
			}
		})
	}
	group.Wait()
}

// doesNotThrottle publishes events as fast as they are taken: a limiter would be what is measured. With the events stored it asks for limits
// of answers.
func doesNotThrottle(a *asking) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	a.key = a.floodKey
	stored, took, err := s.flood(a.prober.flood)
	if len(stored) > 1 {
		a.capable("limit clamp", a.clamp(stored, true))
		a.capable("default limit", a.clamp(stored, false))
	}
	rate := fmt.Sprintf("%d events in %v", len(stored), took.Round(time.Millisecond))
	if text := a.throttle(); text != "" {
		a.capable("throttling", "yes: "+text)
		return "", fail(nil, "the relay limits the rate of events: %s; %d were taken before in one go", text, len(stored))
	}
	if err != nil {
		a.capable("throttling", "perhaps: "+err.Error())
		return "", fail(nil, "in a flood of small events, after %d had been taken: %v", len(stored), err)
	}
	a.capable("throttling", "none seen: "+rate+" on one connection")
	return rate + " on one connection, and none was held back", nil
}

// flood publishes events over one connection and returns those that were acknowledged, and the time it took. It ends at the first refusal.
func (s *session) flood(events []*corpus.Event) (stored []corpus.ID, took time.Duration, err error) {
	s.notice = ""
	start := time.Now()
	pending, taken := make(map[corpus.ID]bool), make(map[corpus.ID]bool)
	defer func() {
		took = time.Since(start)
		for _, e := range events { // in the order of their times, whatever the order of the OKs
			if taken[e.ID] {
				stored = append(stored, e.ID)
			}
		}
	}()
	deadline := time.Now().Add(s.o.Wait)
	for next := 0; ; {
		for next < len(events) && len(pending) < floodWindow && time.Since(start) < floodTime {
			pending[events[next].ID] = true
			if err := s.conn.SendEvent(events[next].AppendJSON(nil)); err != nil {
				return nil, 0, s.explain("publishing", err)
			}
			next++
		}
		if len(pending) == 0 {
			return nil, 0, nil
		}
		m, err := s.next(deadline)
		switch {
		case errors.Is(err, errSilent):
			return nil, 0, s.explain(fmt.Sprintf("%d of the events sent got no OK", len(pending)), err)
		case err != nil:
			return nil, 0, s.explain("publishing", err)
		case m.Type == wire.Notice && s.throttle() != "":
			return nil, 0, errors.New("throttled")
		case m.Type != wire.OK:
			continue
		}
		id := corpus.ID(m.ID)
		if !m.Accepted {
			got := answer{reason: clip(m.ReasonText(), maxText)}
			if speaksOfRate(got.reason) {
				s.sawThrottle(got.String())
			}
			return nil, 0, fmt.Errorf("a valid event was refused: %v", got)
		}
		if m.HasID && pending[id] {
			delete(pending, id)
			taken[id] = true
			deadline = time.Now().Add(s.o.Wait)
		}
	}
}

// clamp finds how many of the stored events one REQ returns, with a limit that takes in all or with none.
func (a *asking) clamp(stored []corpus.ID, limit bool) string {
	s, err := a.dial()
	if err != nil {
		return "unknown: " + err.Error()
	}
	// What was published last must be readable: a relay that stores behind its OKs would seem to have a limit.
	last := stored[len(stored)-1]
	if r, err := s.poll(exactly([]corpus.ID{last}), corpus.Filter{IDs: []corpus.ID{last}}); err != nil {
		return "unknown: " + err.Error()
	} else if len(r.ids) == 0 {
		return fmt.Sprintf("unknown: %v after its OK the last event cannot be read yet", a.o.Settle)
	}
	f := a.mine(1)
	if limit {
		f = limited(f, a.o.flood)
	}
	// The answer may grow while what was acknowledged settles; a limit is what it stays at.
	seen, same := -1, 0
	r, err := s.poll(func(r *reply) bool {
		if len(r.ids) == seen {
			same++
		} else {
			seen, same = len(r.ids), 0
		}
		return seen >= len(stored) || same >= 3
	}, f)
	switch {
	case err != nil:
		return "unknown: " + err.Error()
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

// newest tells whether an answer is the newest of the events, newest first. The flood is published in that order.
func newest(got, published []corpus.ID) bool {
	return len(got) <= len(published) && slices.Equal(got, published[:len(got)])
}

// contiguous tells whether an answer is a run of the events without a gap, in any order: what a limit leaves.
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
