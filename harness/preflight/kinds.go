package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"relaybench/corpus"
	"relaybench/results"
)

// version is an event of a kind of which newer versions replace older ones, as clients write it: n
// tells the versions apart.
func (a *asking) version(kind, at, n int) *corpus.Event {
	name := strconv.Itoa(n)
	when := a.recent(at)
	switch kind {
	case 0:
		return a.event(0, when, `{"name":"version `+name+`","about":"A profile.","picture":"https://example.com/`+name+`.png"}`)
	case 3:
		return a.event(3, when, "", corpus.Tag{"p", a.person(n)}, corpus.Tag{"p", a.person(n + 1), "wss://relay.example.com"})
	case 10002:
		return a.event(10002, when, "", corpus.Tag{"r", "wss://relay" + name + ".example.com"}, corpus.Tag{"r", "wss://inbox.example.com", "read"})
	}
	panic("preflight: no such kind")
}

// person is the key of somebody whom the check's author follows.
func (a *asking) person(n int) string {
	for len(a.people) <= n {
		a.people = append(a.people, newKey().PubKey.String())
	}
	return a.people[n]
}

// article is a long text (NIP-23).
func (a *asking) article(at int, d, title string) *corpus.Event {
	return a.event(30023, a.recent(at), "# "+title+"\n\nSome lines of an article.", corpus.Tag{"d", d}, corpus.Tag{"title", title},
		corpus.Tag{"summary", "An article."}, corpus.Tag{"published_at", strconv.FormatInt(a.recent(0), 10)}, corpus.Tag{"t", "articles"})
}

// replacesReplaceable: of kinds 0, 3 and 10002 only the newer event is left (NIP-01).
func replacesReplaceable(a *asking) (found, error) {
	s, err := a.dial()
	if err != nil {
		return found{}, err
	}
	for _, kind := range []int{0, 3, 10002} {
		older, newer := a.version(kind, 0, 1), a.version(kind, 5, 2)
		if err := a.replaced(s, kind, []*corpus.Event{older, newer}, newer); err != nil {
			return found{}, err
		}
	}
	return found{}, nil
}

// replacesAddressable: of one d tag only the newer event is left, and others stay (NIP-01).
func replacesAddressable(a *asking) (found, error) {
	s, err := a.dial()
	if err != nil {
		return found{}, err
	}
	older, other, newer := a.article(0, "one", "Before"), a.article(2, "two", "Another"), a.article(5, "one", "After")
	return found{}, a.replaced(s, 30023, []*corpus.Event{older, other, newer}, newer, other)
}

// replaced publishes versions and looks for those that are to be left. What is foreign to them in
// an answer is no matter of versions.
func (a *asking) replaced(s *session, kind int, publish []*corpus.Event, left ...*corpus.Event) error {
	if err := s.store(publish...); err != nil {
		return err
	}
	want, all := ids(left...), ids(publish...)
	f := a.mine(kind)
	good := func(r *reply) bool {
		return exactly(want)(&reply{ids: slices.DeleteFunc(slices.Clone(r.ids), func(id corpus.ID) bool { return !slices.Contains(all, id) })})
	}
	r, err := s.poll(good, f)
	if err != nil {
		return err
	}
	if good(&r) {
		return nil
	}
	err = wrongAnswer(want, &r, f)
	if short := (*shortfall)(nil); errors.As(err, &short) {
		short.counts["kind"] = float64(kind)
	}
	return err
}

// keepsOutSuperseded: an older version that arrives after the newer one is not served. Whether its OK is true or false is the relay's choice.
func keepsOutSuperseded(a *asking) (found, error) {
	s, err := a.dial()
	if err != nil {
		return found{}, err
	}
	older, newer := a.version(10002, 0, 1), a.version(10002, 5, 2)
	if err := s.store(newer); err != nil {
		return found{}, err
	}
	got, err := s.publish(older)
	if err != nil {
		return found{}, err
	}
	marker := a.event(1, a.recent(6), "after the older version")
	if err := s.store(marker); err != nil {
		return found{}, err
	}
	seen := found{counts: counts{"accepted": number(got.accepted)}, texts: texts{"reason": got.reason}}
	want, f := ids(newer, marker), a.mine()
	good := func(r *reply) bool {
		return slices.Contains(r.ids, newer.ID) && slices.Contains(r.ids, marker.ID) && !slices.Contains(r.ids, older.ID)
	}
	r, err := s.poll(good, f)
	if err != nil {
		return found{}, err
	}
	if !good(&r) {
		err := wrongAnswer(want, &r, f)
		if short := (*shortfall)(nil); errors.As(err, &short) {
			short.counts["accepted"], short.texts = seen.counts["accepted"], seen.texts
		}
		return found{}, err
	}
	return seen, nil
}

// ephemeral: kind 20001 gets an OK, reaches whoever listens, and is returned to nobody who asks
// later (NIP-01).
func ephemeral(a *asking) (found, error) {
	listener, err := a.dial()
	if err != nil {
		return found{}, err
	}
	sub, r, err := listener.subscribe(a.mine(1, 20001))
	if err != nil {
		return found{}, err
	}
	if r.closed {
		return found{}, leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
	}
	s, err := a.dial()
	if err != nil {
		return found{}, err
	}
	passing, marker := a.event(20001, a.now, "in passing"), a.event(1, a.now, "to stay")
	got, err := s.publishRaw(passing.AppendJSON(nil), passing.ID, a.quiet())
	answered := err == nil
	switch {
	case err != nil && !errors.Is(err, errSilent):
		return found{}, err
	case answered && !got.accepted:
		return found{}, (&refusedError{passing, got}).refusal()
	}
	if err := s.store(marker); err != nil {
		return found{}, err
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
			deadline = time.Now().Add(a.quiet())
		}
	}
	delivered := slices.Contains(seen, passing.ID)
	f := a.mine()
	r, err = s.poll(func(r *reply) bool { return slices.Contains(r.ids, marker.ID) && !slices.Contains(r.ids, passing.ID) }, f)
	switch {
	case err != nil:
		return found{}, err
	case r.closed:
		return found{}, leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
	case !slices.Contains(r.ids, marker.ID):
		return found{}, leaveOpen(results.CauseNeeds, nil, nil)
	}
	if !delivered || !answered {
		if err := listener.meant(); err != nil {
			return found{}, err
		}
		delivered = delivered || slices.Contains(listener.passed[sub], passing.ID)
	}
	stored := slices.Contains(r.ids, passing.ID)
	facts := counts{"stored": number(stored), "delivered": number(delivered), "answered": number(answered), "ms": milliseconds(a.settle())}
	switch {
	case stored:
		return found{}, fail(results.CauseStored, facts, nil, about(results.EvidenceExtra, passing))
	case !delivered:
		return found{}, fail(results.CauseNotDelivered, facts, nil, about(results.EvidenceMissing, passing))
	case !answered:
		return found{}, fail(results.CauseNoOK, facts, nil)
	}
	return found{counts: facts}, nil
}

// deletesOwnAlone: a deletion request (kind 5, NIP-09) is for its author's events. Those of others
// stay, or anybody deletes anybody's.
func deletesOwnAlone(a *asking) (found, error) {
	s, err := a.dial()
	if err != nil {
		return found{}, err
	}
	own := a.event(1, a.recent(0), "to be deleted by its author")
	foreign := signed(newKey(), 1, a.recent(0), "to be left alone")
	if err := s.store(own, foreign); err != nil {
		return found{}, err
	}
	both := limited(corpus.Filter{IDs: ids(own, foreign)}, 10)
	holds := func(r *reply) bool { return slices.Contains(r.ids, own.ID) && slices.Contains(r.ids, foreign.ID) }
	if r, err := s.poll(holds, both); err != nil {
		return found{}, err
	} else if !holds(&r) {
		return found{}, leaveOpen(results.CauseNeeds, nil, nil)
	}
	said := texts{}
	for i, e := range []*corpus.Event{own, foreign} {
		request := a.event(corpus.KindDeletion, a.recent(1+i), "", corpus.Tag{"e", e.ID.String()}, corpus.Tag{"k", "1"})
		got, err := s.publish(request)
		switch {
		case err != nil && !errors.Is(err, errSilent): // what it did is what counts
			return found{}, err
		case i == 0 && err == nil && !got.accepted:
			said["reason"] = got.reason
		}
	}
	gone := func(id corpus.ID) (bool, error) {
		r, err := s.poll(func(r *reply) bool { return !slices.Contains(r.ids, id) }, corpus.Filter{IDs: []corpus.ID{id}})
		if err == nil && r.closed {
			err = leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
		}
		return !slices.Contains(r.ids, id), err
	}
	ownGone, err := gone(own.ID)
	if err != nil {
		return found{}, err
	}
	foreignGone, err := gone(foreign.ID)
	if err != nil {
		return found{}, err
	}
	a.speaks(9, ownGone && !foreignGone)
	facts := counts{"own": number(ownGone), "foreign": number(foreignGone)}
	switch {
	case foreignGone:
		a.capable("NIP-09", "wrong: deletes other authors' events too")
		return found{}, fail(results.CauseForeign, facts, said, about(results.EvidenceMissing, foreign))
	case ownGone:
		a.capable("NIP-09", "yes")
	case said["reason"] != "":
		a.capable("NIP-09", fmt.Sprintf("no: the request of kind 5 gets OK false %s", quoted(said["reason"])))
	default:
		a.capable("NIP-09", "no: the event is still returned")
	}
	return found{counts: facts, texts: said}, nil
}
