package preflight

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/results"
)

// listening opens a connection with a subscription to the filter, and another to publish on.
func (c *checker) listening(f corpus.Filter) (listener, publisher *session, sub *client.Subscription) {
	listener, publisher = c.dial(), c.dial()
	return listener, publisher, listener.subscribe(f)
}

// sendsLive: an event that another connection publishes after EOSE reaches the subscription.
func sendsLive(c *checker) {
	listener, publisher, sub := c.listening(c.mine(1))
	for i := range 2 {
		e := c.event(1, c.now, fmt.Sprintf("live %d", i))
		publisher.store(e)
		listener.arrives(sub, e, nil)
	}
}

// arrives waits for one event on one subscription. Another one, if it is named, must not come.
func (s *session) arrives(sub *client.Subscription, e, not *corpus.Event) {
	deadline := time.Now().Add(s.o.Wait)
	for {
		_, got, err := s.live(deadline, sub)
		switch {
		case errors.Is(err, client.ErrSilent):
			s.neverCame(sub, e)
		case err != nil:
			must(err)
		case got == e.ID:
			return
		case not != nil && got == not.ID:
			must(fail(results.CauseAnswer, counts{"extra": 1}, nil, about(results.EvidenceExtra, not)))
		}
	}
}

// neverCame ends the check with a live event that was waited for in vain.
func (s *session) neverCame(sub *client.Subscription, e *corpus.Event) {
	s.meant()
	waited := counts{"ms": milliseconds(s.o.Wait)}
	if slices.Contains(s.passed[sub.ID], e.ID) {
		must(leaveOpen(results.CauseSlow, waited, nil))
	}
	must(fail(results.CauseNotDelivered, waited, nil, about(results.EvidenceMissing, e)))
}

// filtersLive: an open subscription gets what matches its filter, tags included, and nothing else.
func filtersLive(c *checker) {
	value := func(value string) corpus.Tag { return corpus.Tag{"t", value + c.key.PubKey.String()[:8]} }
	listener, publisher, sub := c.listening(tagged(c.mine(1), 't', value("a").Value()))
	other, match := c.event(1, c.now, "not asked for", value("b")), c.event(1, c.now, "asked for", value("a"))
	publisher.store(other, match)
	listener.arrives(sub, match, other)
}

// endsOnClose: after CLOSE nothing more comes for that subscription, while another one on the same
// connection goes on.
func endsOnClose(c *checker) {
	listener, publisher, ended := c.listening(c.mine(1))
	kept := listener.subscribe(c.mine(1, 2))
	must(listener.conn.End(ended))
	listener.query(limited(c.mine(7), 1)) // what came before it has been read by now
	// By the time the second event has come, both copies of the first would have.
	first, second := c.event(1, c.now-1, "after CLOSE"), c.event(1, c.now, "and another")
	publisher.store(first, second)
	deadline := time.Now().Add(c.o.Wait)
	for {
		sub, id, err := listener.live(deadline, ended, kept)
		switch {
		case err != nil:
			must(fmt.Errorf("the subscription that was left open: %w", err))
		case sub == ended:
			must(fail(results.CauseAnswer, counts{"extra": 1}, nil, results.Evidence{Code: results.EvidenceExtra, ID: id.String()}))
		case id == second.ID:
			return
		}
	}
}
