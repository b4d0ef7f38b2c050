package preflight

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/results"
)

// listening opens a connection with a subscription to the filter, and another to publish on.
func (a *asking) listening(f corpus.Filter) (listener, publisher *session, sub string, err error) {
	if listener, err = a.dial(); err != nil {
		return
	}
	if publisher, err = a.dial(); err != nil {
		return
	}
	sub, r, err := listener.subscribe(f)
	if err == nil && r.closed {
		err = leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
	}
	return listener, publisher, sub, err
}

// sendsLive: an event that another connection publishes after EOSE reaches the subscription.
func sendsLive(a *asking) (found, error) {
	listener, publisher, sub, err := a.listening(a.mine(1))
	if err != nil {
		return found{}, err
	}
	for i := range 2 {
		e := a.event(1, a.now, fmt.Sprintf("live %d", i))
		if err := publisher.store(e); err != nil {
			return found{}, err
		}
		if err := listener.arrives(sub, e); err != nil {
			return found{}, err
		}
	}
	return found{}, nil
}

// arrives waits for one event on one subscription.
func (s *session) arrives(sub string, e *corpus.Event) error {
	deadline := time.Now().Add(s.o.Wait)
	for {
		_, got, err := s.live(deadline, sub)
		switch {
		case errors.Is(err, errSilent):
			return s.neverCame(sub, e)
		case err != nil:
			return err
		case got == e.ID:
			return nil
		}
	}
}

// neverCame is the shortfall of a live event that was waited for in vain.
func (s *session) neverCame(sub string, e *corpus.Event) error {
	if err := s.meant(); err != nil {
		return err
	}
	if slices.Contains(s.passed[sub], e.ID) {
		return leaveOpen(results.CauseSlow, counts{"ms": milliseconds(s.o.Wait)}, nil)
	}
	return fail(results.CauseNotDelivered, counts{"ms": milliseconds(s.o.Wait)}, nil, about(results.EvidenceMissing, e))
}

// filtersLive: an open subscription gets what matches its filter, tags included, and nothing else.
func filtersLive(a *asking) (found, error) {
	value := func(value string) corpus.Tag { return corpus.Tag{"t", value + a.key.PubKey.String()[:8]} }
	listener, publisher, sub, err := a.listening(tagged(a.mine(1), 't', value("a").Value()))
	if err != nil {
		return found{}, err
	}
	other, match := a.event(1, a.now, "not asked for", value("b")), a.event(1, a.now, "asked for", value("a"))
	if err := publisher.store(other, match); err != nil {
		return found{}, err
	}
	deadline := time.Now().Add(a.o.Wait)
	for {
		_, id, err := listener.live(deadline, sub)
		switch {
		case errors.Is(err, errSilent):
			return found{}, listener.neverCame(sub, match)
		case err != nil:
			return found{}, err
		case id == match.ID:
			return found{}, nil
		case id == other.ID:
			return found{}, fail(results.CauseAnswer, counts{"extra": 1}, nil, about(results.EvidenceExtra, other))
		}
	}
}

// endsOnClose: after CLOSE nothing more comes for that subscription, while another one on the same connection goes on.
func endsOnClose(a *asking) (found, error) {
	listener, publisher, ended, err := a.listening(a.mine(1))
	if err != nil {
		return found{}, err
	}
	kept, r, err := listener.subscribe(a.mine(1, 2))
	if err != nil {
		return found{}, err
	}
	if r.closed {
		return found{}, leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
	}
	if err := listener.conn.Send([]byte(`["CLOSE","` + ended + `"]`)); err != nil {
		return found{}, err
	}
	if _, err := listener.ask(limited(a.mine(7), 1)); err != nil { // what came before it has been read by now
		return found{}, err
	}
	// By the time the second event has come, both copies of the first would have.
	first, second := a.event(1, a.now-1, "after CLOSE"), a.event(1, a.now, "and another")
	if err := publisher.store(first, second); err != nil {
		return found{}, err
	}
	deadline := time.Now().Add(a.o.Wait)
	for {
		sub, id, err := listener.live(deadline, ended, kept)
		switch {
		case err != nil:
			return found{}, fmt.Errorf("the subscription that was left open: %w", err)
		case sub == ended:
			return found{}, fail(results.CauseAnswer, counts{"extra": 1}, nil, results.Evidence{Code: results.EvidenceExtra, ID: id.String()})
		case id == second.ID:
			return found{}, nil
		}
	}
}
