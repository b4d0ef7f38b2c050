package preflight

import (
	"fmt"
	"time"

	"relaybench/corpus"
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
		err = fail(nil, "the subscription was refused: CLOSED %s", quoted(r.reason))
	}
	return listener, publisher, sub, err
}

// sendsLive: an event that another connection publishes after EOSE reaches the subscription.
func sendsLive(a *asking) (string, error) {
	listener, publisher, sub, err := a.listening(a.mine(1))
	if err != nil {
		return "", err
	}
	for i := range 2 {
		e := a.event(1, a.now, fmt.Sprintf("live %d", i))
		if err := publisher.store(e); err != nil {
			return "", err
		}
		if err := listener.arrives(sub, e.ID, a.o.Wait); err != nil {
			return "", fail(nil, "an event published after EOSE did not reach the subscription: %v", err)
		}
	}
	return "events published after EOSE reach an open subscription", nil
}

// arrives waits for one event on one subscription.
func (s *session) arrives(sub string, id corpus.ID, within time.Duration) error {
	deadline := time.Now().Add(within)
	for {
		_, got, err := s.live(deadline, sub)
		if err != nil {
			return s.explain("listening", err)
		}
		if got == id {
			return nil
		}
	}
}

// filtersLive: an open subscription gets what matches its filter, tags included, and nothing else.
func filtersLive(a *asking) (string, error) {
	tagged := func(value string) corpus.Tag { return corpus.Tag{"t", value + a.key.PubKey.String()[:8]} }
	f := a.mine(1)
	f.Tags = []corpus.TagFilter{{Name: 't', Values: []string{tagged("a")[1]}}}
	listener, publisher, sub, err := a.listening(f)
	if err != nil {
		return "", err
	}
	other, match := a.event(1, a.now, "not asked for", tagged("b")), a.event(1, a.now, "asked for", tagged("a"))
	if err := publisher.store(other, match); err != nil {
		return "", err
	}
	deadline := time.Now().Add(a.o.Wait)
	for {
		_, id, err := listener.live(deadline, sub)
		switch {
		case err != nil:
			return "", fail(nil, "a live event that matches a tag filter did not arrive: %v", listener.explain("listening", err))
		case id == match.ID:
			return "an open subscription gets only what matches its tag filter", nil
		case id == other.ID:
			return "", fail([]string{"extra " + id.String()}, "a subscription with a tag filter gets live events without that tag")
		}
	}
}

// endsOnClose: after CLOSE nothing more comes for that subscription, while another one on the same connection goes on.
func endsOnClose(a *asking) (string, error) {
	listener, publisher, ended, err := a.listening(a.mine(1))
	if err != nil {
		return "", err
	}
	kept, r, err := listener.subscribe(a.mine(1, 2))
	if err != nil {
		return "", err
	}
	if r.closed {
		return "", fmt.Errorf("a second subscription was refused: CLOSED %s", quoted(r.reason))
	}
	if err := listener.conn.Send([]byte(`["CLOSE","` + ended + `"]`)); err != nil {
		return "", err
	}
	if _, err := listener.ask(limited(a.mine(7), 1)); err != nil { // what came before it has been read by now
		return "", err
	}
	// By the time the second event has come, both copies of the first would have.
	first, second := a.event(1, a.now-1, "after CLOSE"), a.event(1, a.now, "and another")
	if err := publisher.store(first, second); err != nil {
		return "", err
	}
	deadline := time.Now().Add(a.o.Wait)
	for {
		sub, id, err := listener.live(deadline, ended, kept)
		switch {
		case err != nil:
			return "", fmt.Errorf("the subscription that was left open got nothing: %w", err)
		case sub == ended:
			return "", fail([]string{"extra " + id.String()}, "events still come for a subscription that was closed")
		case id == second.ID:
			return "nothing comes for a closed subscription, while another goes on", nil
		}
	}
}
