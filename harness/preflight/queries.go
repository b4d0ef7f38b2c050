package preflight

import (
	"bytes"
	"fmt"
	"slices"

	"relaybench/corpus"
)

// series stores n notes of ascending time, sent out of order, and returns them newest first.
func (a *asking) series(n int) (*session, []*corpus.Event, error) {
	s, err := a.dial()
	if err != nil {
		return nil, nil, err
	}
	var newest []*corpus.Event
	for i := range n {
		newest = append(newest, a.event(1, a.recent(-i), fmt.Sprintf("note %d from the newest", i)))
	}
	for i := range n { // every third, starting anywhere
		if err := s.store(newest[(3*i+2)%n]); err != nil {
			return nil, nil, err
		}
	}
	return s, newest, nil
}

// filters: each condition of a filter narrows the answer, and values of one condition widen it.
func filters(a *asking) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	other, root := newKey(), a.event(1, a.recent(-9), "nowhere").ID.String()
	rare := "t" + root[:12]
	one := a.event(1, a.recent(1), "one", corpus.Tag{"t", rare}, corpus.Tag{"e", root, "", "root"})
	two := a.event(1, a.recent(2), "two", corpus.Tag{"t", "else"}, corpus.Tag{"t", rare + "b"}, corpus.Tag{"p", other.PubKey.String()})
	three := a.event(7, a.recent(3), "+", corpus.Tag{"e", root}, corpus.Tag{"p", other.PubKey.String()})
	four := signed(other, 1, a.recent(4), "four", corpus.Tag{"t", rare})
	if err := s.store(one, two, three, four); err != nil {
		return "", err
	}
	tag := func(f corpus.Filter, name byte, values ...string) corpus.Filter {
		f.Tags = append(slices.Clone(f.Tags), corpus.TagFilter{Name: name, Values: values})
		return f
	}
	for _, q := range []struct {
		asked  string
		filter corpus.Filter
		want   []corpus.ID
	}{
		{"by two ids", corpus.Filter{IDs: ids(one, four)}, ids(one, four)},
		{"by author", a.mine(), ids(one, two, three)},
		{"by two authors", corpus.Filter{Authors: []corpus.PubKey{a.key.PubKey, other.PubKey}}, ids(one, two, three, four)},
		{"by author and kind", a.mine(7), ids(three)},
		{"by author and two kinds", a.mine(1, 7), ids(one, two, three)},
		{"by #t", tag(corpus.Filter{}, 't', rare), ids(one, four)},
		{"by two values of #t", tag(corpus.Filter{Kinds: []int{1}}, 't', rare, rare+"b"), ids(one, two, four)},
		{"by author and #e", tag(a.mine(), 'e', root), ids(one, three)},
		{"by #e and #p and kind", tag(tag(corpus.Filter{Kinds: []int{7}}, 'e', root), 'p', other.PubKey.String()), ids(three)},
		{"by author and a #t that none has", tag(a.mine(), 't', "none"), nil},
	} {
		q.filter = limited(q.filter, 50)
		r, err := s.poll(exactly(q.want), q.filter)
		if err != nil {
			return "", fmt.Errorf("%s: %w", q.asked, err)
		}
		if !exactly(q.want)(&r) {
			return "", wrongAnswer(q.asked, q.want, &r)
		}
	}
	return "filters by id, author, kind and tag, and several of these together, return what matches", nil
}

// keepsLimit: a limit returns as many, and the newest.
func keepsLimit(a *asking) (string, error) {
	s, newest, err := a.series(5)
	if err != nil {
		return "", err
	}
	if r, err := s.poll(exactly(ids(newest...)), limited(a.mine(1), 50)); err != nil || !exactly(ids(newest...))(&r) {
		return "", cmpError(err, wrongAnswer("limit 50 of 5 events", ids(newest...), &r))
	}
	for _, n := range []int{1, 3} {
		want := ids(newest[:n]...)
		r, err := s.poll(exactly(want), limited(a.mine(1), n))
		if err != nil {
			return "", err
		}
		if !exactly(want)(&r) {
			return "", wrongAnswer(fmt.Sprintf("limit %d of 5 events", n), want, &r)
		}
	}
	return "a limit returns as many events, the newest", nil
}

func cmpError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// newestFirst: with a limit, which is where NIP-01 asks for the order.
func newestFirst(a *asking) (string, error) {
	s, newest, err := a.series(7)
	if err != nil {
		return "", err
	}
	want := ids(newest...)
	r, err := s.poll(inOrder(want), limited(a.mine(1), 50))
	if err != nil {
		return "", err
	}
	if !inOrder(want)(&r) {
		return "", wrongAnswer("7 events with a limit", want, &r)
	}
	return "7 events published out of order come back newest first", nil
}

// probeTies: of events of one second the lowest id should come first (NIP-01). Many relays leave it open, and which of them is in an answer is
// no fault in the model's eyes either.
func probeTies(a *asking) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	var tied []*corpus.Event
	for i := range 6 {
		tied = append(tied, a.event(1, a.recent(0), fmt.Sprintf("at once %d", i)))
	}
	if err := s.store(tied...); err != nil {
		return "", err
	}
	want := ids(tied...)
	slices.SortFunc(want, func(x, y corpus.ID) int { return bytes.Compare(x[:], y[:]) })
	r, err := s.poll(exactly(want), limited(a.mine(1), 50))
	switch {
	case err != nil:
		return "", err
	case !exactly(want)(&r):
		return "", wrongAnswer("6 events of one second", want, &r)
	case !inOrder(want)(&r):
		return "not by id", nil
	}
	return "lowest id first", nil
}

// inclusive: since and until take in events of that very second.
func inclusive(a *asking) (string, error) {
	s, newest, err := a.series(5)
	if err != nil {
		return "", err
	}
	since, until := corpus.Int64(newest[3].CreatedAt), corpus.Int64(newest[1].CreatedAt)
	for _, q := range []struct {
		asked        string
		since, until *int64
		want         []corpus.ID
	}{
		{"since the second of an event", since, nil, ids(newest[:4]...)},
		{"until the second of an event", nil, until, ids(newest[1:]...)},
		{"since and until the seconds of events", since, until, ids(newest[1:4]...)},
	} {
		f := a.mine(1)
		f.Since, f.Until = q.since, q.until
		r, err := s.poll(exactly(q.want), f)
		if err != nil {
			return "", err
		}
		if !exactly(q.want)(&r) {
			return "", wrongAnswer(q.asked, q.want, &r)
		}
	}
	return "since and until take in events of that very second", nil
}

// severalFilters: the answer is the union, and each limit is its filter's own.
func severalFilters(a *asking) (string, error) {
	s, newest, err := a.series(5)
	if err != nil {
		return "", err
	}
	want := ids(newest[0], newest[1], newest[4])
	r, err := s.poll(exactly(want), limited(a.mine(1), 2), corpus.Filter{IDs: ids(newest[4], newest[0])})
	if err != nil {
		return "", err
	}
	if !exactly(want)(&r) {
		return "", wrongAnswer("two filters, one of them with limit 2", want, &r)
	}
	if len(r.ids) > len(want) {
		return "two filters return the union; an event that matches both comes twice", nil
	}
	return "two filters return the union, each event once", nil
}
