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
	name := strconv.Itoa(n)
	when := c.recent(at)
	switch kind {
	case 0:
		return c.event(0, when, `{"name":"version `+name+`","about":"A profile.","picture":"https://example.com/`+name+`.png"}`)
	case 3:
		return c.event(3, when, "", corpus.Tag{"p", c.person(n)}, corpus.Tag{"p", c.person(n + 1), "wss://relay.example.com"})
	case 10002:
		return c.event(10002, when, "", corpus.Tag{"r", "wss://relay" + name + ".example.com"}, corpus.Tag{"r", "wss://inbox.example.com", "read"})
	}
	panic("preflight: no such kind")
}

// person is the key of somebody whom the check's author follows.
func (c *checker) person(n int) string {
	for len(c.people) <= n {
		c.people = append(c.people, newKey().PubKey.String())
	}
	return c.people[n]
}

// article is a long text (NIP-23).
func (c *checker) article(at int, d, title string) *corpus.Event {
	return c.event(30023, c.recent(at), "# "+title+"\n\nSome lines of an article.", corpus.Tag{"d", d}, corpus.Tag{"title", title},
		corpus.Tag{"summary", "An article."}, corpus.Tag{"published_at", strconv.FormatInt(c.recent(0), 10)}, corpus.Tag{"t", "articles"})
}

// replacesReplaceable: of kinds 0, 3 and 10002 only the newer event is left (NIP-01).
func replacesReplaceable(c *checker) {
	s := c.dial()
	for _, kind := range []int{0, 3, 10002} {
		older, newer := c.version(kind, 0, 1), c.version(kind, 5, 2)
		s.replaced(kind, all(older, newer), newer)
	}
}

// replacesAddressable: of one d tag only the newer event is left, and others stay (NIP-01).
func replacesAddressable(c *checker) {
	older, other, newer := c.article(0, "one", "Before"), c.article(2, "two", "Another"), c.article(5, "one", "After")
	c.dial().replaced(30023, all(older, other, newer), newer, other)
}

// replaced publishes versions and looks for those that are to be left.
func (s *session) replaced(kind int, publish []*corpus.Event, left ...*corpus.Event) {
	s.store(publish...)
	want, f := ids(left...), s.mine(kind)
	good := exactlyOf(ids(publish...), want)
	r := s.poll(good, f)
	if good(&r) {
		return
	}
	err := wrongAnswer(want, &r, f)
	if short := failure(err); short != nil {
		short.counts["kind"] = float64(kind)
	}
	must(err)
}

// keepsOutSuperseded: an older version that arrives after the newer one is not served. Whether its
// OK is true or false is the relay's choice.
func keepsOutSuperseded(c *checker) {
	s, older, newer := c.dial(), c.version(10002, 0, 1), c.version(10002, 5, 2)
	s.store(newer)
	got, err := s.publish(older)
	must(err)
	marker := c.event(1, c.recent(6), "after the older version")
	s.store(marker)
	c.seen = found{counts: counts{"accepted": number(got.accepted)}, texts: texts{"reason": got.reason}}
	f := c.mine()
	good := func(r *reply) bool { return holds(newer, marker)(r) && !holds(older)(r) }
	r := s.poll(good, f)
	if good(&r) {
		return
	}
	err = wrongAnswer(ids(newer, marker), &r, f)
	if short := failure(err); short != nil {
		short.counts["accepted"], short.texts = c.seen.counts["accepted"], c.seen.texts
	}
	must(err)
}

// ephemeral: kind 20001 gets an OK, reaches whoever listens, and is returned to nobody who asks
// later (NIP-01).
func ephemeral(c *checker) {
	listener, s, sub := c.listening(c.mine(1, 20001))
	passing, marker := c.event(20001, c.now, "in passing"), c.event(1, c.now, "to stay")
	got, err := s.publishRaw(passing.AppendJSON(nil), passing.ID, c.quiet())
	answered := err == nil
	switch {
	case err != nil && !errors.Is(err, client.ErrSilent):
		must(err)
	case answered && !got.accepted:
		must(refusal(passing, got))
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
	if !holds(marker)(&r) {
		must(leaveOpen(results.CauseNeeds, nil, nil))
	}
	if !delivered || !answered {
		listener.meant()
		delivered = delivered || slices.Contains(listener.passed[sub.ID], passing.ID)
	}
	stored := holds(passing)(&r)
	c.seen.counts = counts{"stored": number(stored), "delivered": number(delivered), "answered": number(answered), "ms": milliseconds(c.settle())}
	switch {
	case stored:
		must(fail(results.CauseStored, c.seen.counts, nil, about(results.EvidenceExtra, passing)))
	case !delivered:
		must(fail(results.CauseNotDelivered, c.seen.counts, nil, about(results.EvidenceMissing, passing)))
	case !answered:
		must(fail(results.CauseNoOK, c.seen.counts, nil))
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
	for i, e := range all(own, foreign) {
		got, err := s.publish(c.event(corpus.KindDeletion, c.recent(1+i), "", corpus.Tag{"e", e.ID.String()}, corpus.Tag{"k", "1"}))
		switch {
		case err != nil && !errors.Is(err, client.ErrSilent): // what it did is what counts
			must(err)
		case i == 0 && err == nil && !got.accepted:
			said["reason"] = got.reason
		}
	}
	gone := func(e *corpus.Event) bool {
		r := s.read(func(r *reply) bool { return !holds(e)(r) }, corpus.Filter{IDs: ids(e)})
		return !holds(e)(&r)
	}
	ownGone, foreignGone := gone(own), gone(foreign)
	c.speaks(9, ownGone && !foreignGone)
	c.seen = found{counts: counts{"own": number(ownGone), "foreign": number(foreignGone)}, texts: said}
	switch {
	case foreignGone:
		c.capable("NIP-09", "wrong: deletes other authors' events too")
		must(fail(results.CauseForeign, c.seen.counts, said, about(results.EvidenceMissing, foreign)))
	case ownGone:
		c.capable("NIP-09", "yes")
	case said["reason"] != "":
		c.capable("NIP-09", fmt.Sprintf("no: the request of kind 5 gets OK false %s", quoted(said["reason"])))
	default:
		c.capable("NIP-09", "no: the event is still returned")
	}
}
