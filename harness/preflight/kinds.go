package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/results"
)

// version is an event of a kind of which newer versions replace older ones, as clients write it: n
// tells the versions apart.
func (c *checker) version(kind, at, n int) *corpus.Event {
	content, tags := "", []corpus.Tag{}
	switch kind {
	case 0:
		content = fmt.Sprintf(`{"name":"version %d","about":"A profile.","picture":"https://example.com/%[1]d.png"}`, n)
	case 3:
		person := func() string { return newKey().PubKey.String() }
		tags = []corpus.Tag{{"p", person()}, {"p", person(), "wss://relay.example.com"}}
	case 10002:
		tags = []corpus.Tag{{"r", fmt.Sprintf("wss://relay%d.example.com", n)}, {"r", "wss://inbox.example.com", "read"}}
	}
	return c.event(kind, c.recent(at), content, tags...)
}

// article is a long text (NIP-23).
func (c *checker) article(at int, d, title string) *corpus.Event {
	return c.event(30023, c.recent(at), "# "+title+"\n\nSome lines of an article.", corpus.Tag{"d", d}, corpus.Tag{"title", title},
		corpus.Tag{"summary", "An article."}, corpus.Tag{"published_at", strconv.FormatInt(c.recent(0), 10)}, corpus.Tag{"t", "articles"})
}

// replaced publishes versions and looks for those that are to be left.
func (s *session) replaced(kind int, publish []*corpus.Event, left ...*corpus.Event) {
	s.store(publish...)
	want := ids(left...)
	_, err := s.wants(exactlyOf(ids(publish...), want), want, s.mine(kind))
	if short := failure(err); short != nil {
		short.Counts["kind"] = float64(kind)
	}
	must(err)
}

// ephemeral: kind 20001 gets an OK, reaches whoever listens, and is returned to nobody who asks
// later (NIP-01).
func ephemeral(c *checker) {
	listener, s, sub := c.listening(c.mine(1, 20001))
	passing, marker := c.event(20001, c.now, "in passing"), c.event(1, c.now, "to stay")
	got, err := s.publishRaw(passing.AppendJSON(nil), passing.ID, c.quiet())
	answered := !errors.Is(err, client.ErrSilent)
	if answered {
		if must(err); !got.accepted {
			must(refusal(passing, got))
		}
	}
	s.store(marker)
	var seen []corpus.ID
	deadline := time.Now().Add(c.o.Wait)
	for len(seen) < 2 {
		_, id, err := listener.live(deadline, sub)
		if err != nil {
			break
		}
		seen = append(seen, id)
		if id == marker.ID { // the other may come a little later
			deadline = time.Now().Add(c.quiet())
		}
	}
	delivered := slices.Contains(seen, passing.ID)
	r := s.read(func(r *reply) bool { return holds(marker)(r) && !holds(passing)(r) }, c.mine())
	if !holds(marker)(r) {
		must(leaveOpen(results.CauseNeeds, nil))
	}
	if !delivered || !answered {
		listener.meant()
		delivered = delivered || slices.Contains(listener.passed[sub.ID], passing.ID)
	}
	stored := holds(passing)(r)
	c.seen.Counts = counts{"stored": number(stored), "delivered": number(delivered), "answered": number(answered), "ms": milliseconds(c.settle())}
	switch {
	case stored:
		must(fail(results.CauseStored, c.seen.Counts, nil, about(results.EvidenceExtra, passing)))
	case !delivered:
		must(fail(results.CauseNotDelivered, c.seen.Counts, nil, about(results.EvidenceMissing, passing)))
	case !answered:
		must(fail(results.CauseNoOK, c.seen.Counts, nil))
	}
}

// deletesOwnAlone: a deletion request (kind 5, NIP-09) is for its author's events. Those of others
// stay, or anybody deletes anybody's.
func deletesOwnAlone(c *checker) {
	s := c.dial()
	own, foreign := c.event(1, c.recent(0), "to be deleted by its author"), signed(newKey(), 1, c.recent(0), "to be left alone")
	s.store(own, foreign)
	s.need(holds(own, foreign), limited(corpus.Filter{IDs: ids(own, foreign)}, 10))
	said := texts{}
	for i, e := range []*corpus.Event{own, foreign} {
		got, silent := s.offer(c.event(corpus.KindDeletion, c.recent(1+i), "", corpus.Tag{"e", e.ID.String()}, corpus.Tag{"k", "1"}))
		if i == 0 && !silent && !got.accepted {
			said["reason"] = got.reason
		}
	}
	gone := func(e *corpus.Event) bool {
		return !holds(e)(s.read(func(r *reply) bool { return !holds(e)(r) }, corpus.Filter{IDs: ids(e)}))
	}
	ownGone, foreignGone := gone(own), gone(foreign)
	c.speaks(9, ownGone && !foreignGone)
	c.seen.Counts, c.seen.Texts = counts{"own": number(ownGone), "foreign": number(foreignGone)}, said
	how := "no: the event is still returned"
	switch {
	case foreignGone:
		how = "wrong: deletes other authors' events too"
	case ownGone:
		how = "yes"
	case said["reason"] != "":
		how = "no: the request of kind 5 gets OK false " + quoted(said["reason"])
	}
	if c.capable("NIP-09", how); foreignGone {
		must(fail(results.CauseForeign, c.seen.Counts, said, about(results.EvidenceMissing, foreign)))
	}
}

// listening opens a connection with a subscription to the filter, and another to publish on.
func (c *checker) listening(f corpus.Filter) (listener, publisher *session, sub *client.Subscription) {
	listener, publisher = c.dial(), c.dial()
	return listener, publisher, listener.subscribe(f)
}

// arrives waits for one event on one subscription. Another one, if it is named, must not come.
func (s *session) arrives(sub *client.Subscription, e, not *corpus.Event) {
	deadline, waited := time.Now().Add(s.o.Wait), counts{"ms": milliseconds(s.o.Wait)}
	for {
		_, got, err := s.live(deadline, sub)
		if errors.Is(err, client.ErrSilent) {
			if s.meant(); slices.Contains(s.passed[sub.ID], e.ID) {
				must(leaveOpen(results.CauseSlow, waited))
			}
			err = fail(results.CauseNotDelivered, waited, nil, about(results.EvidenceMissing, e))
		}
		switch must(err); {
		case got == e.ID:
			return
		case not != nil && got == not.ID:
			must(fail(results.CauseAnswer, counts{"extra": 1}, nil, about(results.EvidenceExtra, not)))
		}
	}
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
