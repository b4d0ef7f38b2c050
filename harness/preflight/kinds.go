package preflight

import (
	"fmt"
	"slices"
	"time"

	"relaybench/corpus"
)

// replacesReplaceable: of kinds 0 and 10002 only the newer event is left (NIP-01).
func replacesReplaceable(a *asking) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	for _, kind := range []int{0, 10002} {
		older, newer := a.event(kind, a.recent(0), `{"name":"before"}`), a.event(kind, a.recent(5), `{"name":"after"}`)
		if err := a.replaced(s, fmt.Sprintf("kind %d after a newer version", kind), kind, []*corpus.Event{older, newer}, newer); err != nil {
			return "", err
		}
	}
	return "of kinds 0 and 10002 only the newer version is left", nil
}

// replacesAddressable: of one d tag only the newer event is left, and others stay (NIP-01).
func replacesAddressable(a *asking) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	older, newer := a.event(30023, a.recent(0), "before", corpus.Tag{"d", "one"}), a.event(30023, a.recent(5), "after", corpus.Tag{"d", "one"})
	other := a.event(30023, a.recent(2), "another", corpus.Tag{"d", "two"})
	if err := a.replaced(s, "kind 30023 after a newer version of one of two d tags", 30023, []*corpus.Event{older, other, newer}, newer, other); err != nil {
		return "", err
	}
	return "of one d tag only the newer version is left, and other d tags stay", nil
}

func (a *asking) replaced(s *session, asked string, kind int, publish []*corpus.Event, left ...*corpus.Event) error {
	if err := s.store(publish...); err != nil {
		return err
	}
	want := ids(left...)
	r, err := s.poll(exactly(want), a.mine(kind))
	if err != nil {
		return err
	}
	if !exactly(want)(&r) {
		return wrongAnswer(asked, want, &r)
	}
	return nil
}

// keepsOutSuperseded: an older version that arrives after the newer one is not served. Whether its OK is true or false is the relay's choice.
func keepsOutSuperseded(a *asking) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	older, newer := a.event(10002, a.recent(0), "", corpus.Tag{"r", "wss://before.example"}), a.event(10002, a.recent(5), "", corpus.Tag{"r", "wss://after.example"})
	if err := s.store(newer); err != nil {
		return "", err
	}
	got, err := s.publish(older)
	if err != nil {
		return "", err
	}
	marker := a.event(1, a.recent(6), "after the older version")
	if err := s.store(marker); err != nil {
		return "", err
	}
	want := ids(newer, marker)
	r, err := s.poll(exactly(want), a.mine())
	if err != nil {
		return "", err
	}
	if !exactly(want)(&r) {
		return "", wrongAnswer(fmt.Sprintf("an older version that came after the newer one (%v)", got), want, &r)
	}
	return fmt.Sprintf("an older version that comes late gets %v and is not served", got), nil
}

// ephemeral: kind 20001 reaches whoever listens and nobody who asks later. An OK is welcome and not asked for.
func ephemeral(a *asking) (string, error) {
	listener, err := a.dial()
	if err != nil {
		return "", err
	}
	sub, r, err := listener.subscribe(a.mine(1, 20001))
	if err != nil {
		return "", err
	}
	if r.closed {
		return "", wrongAnswer("live events", nil, &r)
	}
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	passing, marker := a.event(20001, a.now, "in passing"), a.event(1, a.now, "to stay")
	if err := s.conn.SendEvent(passing.AppendJSON(nil)); err != nil {
		return "", err
	}
	if err := s.store(marker); err != nil {
		return "", err
	}
	var seen []corpus.ID
	deadline := time.Now().Add(a.o.Wait)
	for len(seen) < 2 {
		_, id, err := listener.live(deadline, sub)
		if err != nil {
			break
		}
		seen = append(seen, id)
		if id == marker.ID { // the other may come a little later
			deadline = time.Now().Add(a.o.Quiet)
		}
	}
	want := ids(marker)
	r, err = s.poll(exactly(want), a.mine())
	switch {
	case err != nil:
		return "", err
	case slices.Contains(r.ids, passing.ID):
		return "", fail([]string{"extra " + passing.ID.String()}, "an ephemeral event (kind 20001) is still returned %v later", a.o.Settle)
	case !exactly(want)(&r):
		return "", wrongAnswer("after an ephemeral event", want, &r)
	case !slices.Contains(seen, passing.ID):
		return "", fail(nil, "an ephemeral event (kind 20001) did not reach an open subscription")
	}
	return "an ephemeral event reaches an open subscription and is not stored", nil
}
