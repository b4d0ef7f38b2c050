package preflight

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/results"
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

// keepsLimit: a limit returns as many, and the newest.
func keepsLimit(a *asking) (found, error) {
	s, newest, err := a.series(5)
	if err != nil {
		return found{}, err
	}
	for _, n := range []int{50, 1, 3} {
		want := ids(newest[:min(n, len(newest))]...)
		f := limited(a.mine(1), n)
		r, err := s.poll(exactly(want), f)
		if err != nil {
			return found{}, err
		}
		if !exactly(want)(&r) {
			return found{}, wrongAnswer(want, &r, f)
		}
	}
	return found{}, nil
}

// newestFirst: with a limit, which is where NIP-01 asks for the order.
func newestFirst(a *asking) (found, error) {
	s, newest, err := a.series(7)
	if err != nil {
		return found{}, err
	}
	want, f := ids(newest...), limited(a.mine(1), 50)
	r, err := s.poll(inOrder(want), f)
	switch {
	case err != nil:
		return found{}, err
	case inOrder(want)(&r):
		return found{}, nil
	case exactly(want)(&r) && len(r.ids) == len(want):
		return found{}, wrongAnswer(want, &r, f)
	case r.closed:
		return found{}, leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
	}
	// Other events than those are other checks' matter: what is left in the answer has an order all
	// the same.
	kept := slices.DeleteFunc(slices.Clone(r.ids), func(id corpus.ID) bool { return !slices.Contains(want, id) })
	if len(kept) < 2 {
		return found{}, leaveOpen(results.CauseNeeds, nil, nil)
	}
	sorted := slices.IsSortedFunc(kept, func(x, y corpus.ID) int { return slices.Index(want, x) - slices.Index(want, y) })
	if !sorted {
		want = slices.DeleteFunc(want, func(id corpus.ID) bool { return !slices.Contains(kept, id) })
		return found{}, wrongAnswer(want, &reply{ids: kept}, f)
	}
	return found{}, nil
}

// probeTies: of events of one second the lowest id should come first (NIP-01). Many relays leave it open, and which of them is in an answer is
// no fault in the model's eyes either.
func probeTies(a *asking) (spoken bool, text string, err error) {
	s, err := a.dial()
	if err != nil {
		return false, "", err
	}
	var tied []*corpus.Event
	for i := range 6 {
		tied = append(tied, a.event(1, a.recent(0), fmt.Sprintf("at once %d", i)))
	}
	if err := s.store(tied...); err != nil {
		return false, "", err
	}
	want := ids(tied...)
	slices.SortFunc(want, func(x, y corpus.ID) int { return bytes.Compare(x[:], y[:]) })
	r, err := s.poll(exactly(want), limited(a.mine(1), 50))
	switch {
	case err != nil:
		return false, "", err
	case !exactly(want)(&r):
		return false, fmt.Sprintf("unknown: %d events came instead of the 6 of one second", len(r.ids)), nil
	case !inOrder(want)(&r):
		return false, "not by id", nil
	}
	return true, "lowest id first", nil
}

// inclusive: since and until take in events of that very second.
func inclusive(a *asking) (found, error) {
	s, newest, err := a.series(5)
	if err != nil {
		return found{}, err
	}
	since, until := a.mine(1), a.mine(1)
	since.Since, until.Until = corpus.Int64(newest[3].CreatedAt), corpus.Int64(newest[1].CreatedAt)
	var wrong []string
	var first error
	for _, q := range []struct {
		uses   string
		filter corpus.Filter
		want   []corpus.ID
	}{
		{results.UsesSince, since, ids(newest[:4]...)},
		{results.UsesUntil, until, ids(newest[1:]...)},
	} {
		own := ids(newest...) // what else is in an answer is no matter of bounds
		good := func(r *reply) bool {
			return !r.closed && exactly(q.want)(&reply{ids: slices.DeleteFunc(slices.Clone(r.ids), func(id corpus.ID) bool { return !slices.Contains(own, id) })})
		}
		r, err := s.poll(good, q.filter)
		if err != nil {
			return found{}, err
		}
		if good(&r) {
			continue
		}
		if err = wrongAnswer(q.want, &r, q.filter); first == nil {
			first = err
		}
		wrong = append(wrong, q.uses)
	}
	if short, ok := first.(*shortfall); ok { // it bears on the questions with the bound that is at fault
		scopes := results.BearsOn(results.CodeInclusive, Scenario, nil)
		short.bearsOn = slices.DeleteFunc(scopes, func(s results.Scope) bool { return !slices.Contains(wrong, s.Uses) })
		for _, uses := range wrong {
			short.counts[uses] = 1
		}
	}
	return found{}, first
}

// severalFilters: the answer is the union, and each limit is its filter's own.
func severalFilters(a *asking) (found, error) {
	s, newest, err := a.series(5)
	if err != nil {
		return found{}, err
	}
	want := ids(newest[0], newest[1], newest[4])
	first, second := limited(a.mine(1), 2), corpus.Filter{IDs: ids(newest[4], newest[0])}
	r, err := s.poll(exactly(want), first, second)
	if err != nil {
		return found{}, err
	}
	if !exactly(want)(&r) {
		return found{}, wrongAnswer(want, &r, first, second)
	}
	return found{counts: counts{"twice": number(len(r.ids) > len(want))}}, nil // an event that matches both may come twice
}

// staleness is how long a relay may go on to answer from before a write, before it is no longer
// waited for.
const staleness = 3 * time.Second

// answersAnew: the same filter, put again, shows what was written since. Another filter shows it
// first, so that what the relay takes to store an event is not held for a cache.
func answersAnew(a *asking) (found, error) {
	s, err := a.dial()
	if err != nil {
		return found{}, err
	}
	before, after := a.event(1, a.recent(0), "before"), a.event(1, a.recent(1), "after")
	if err := s.store(before); err != nil {
		return found{}, err
	}
	same := limited(a.mine(1), 20)
	holds := func(e *corpus.Event) func(*reply) bool {
		return func(r *reply) bool { return slices.Contains(r.ids, e.ID) }
	}
	if r, err := s.poll(holds(before), limited(a.mine(1), 30)); err != nil {
		return found{}, err
	} else if !holds(before)(&r) {
		return found{}, leaveOpen(results.CauseNeeds, nil, nil)
	}
	if _, err := s.ask(same); err != nil {
		return found{}, err
	}
	if err := s.store(after); err != nil {
		return found{}, err
	}
	written := time.Now()
	if r, err := s.poll(holds(after), limited(a.mine(1), 40)); err != nil {
		return found{}, err
	} else if !holds(after)(&r) {
		return found{}, leaveOpen(results.CauseNeeds, nil, nil)
	}
	for asks := 1; ; asks++ {
		r, err := s.ask(same)
		took := time.Since(written)
		switch {
		case err != nil:
			return found{}, err
		case r.closed:
			return found{}, leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
		case slices.Contains(r.ids, after.ID) && asks == 1:
			return found{counts: counts{"ms": milliseconds(took)}}, nil
		case slices.Contains(r.ids, after.ID):
			return found{}, fail(results.CauseCached, counts{"ms": milliseconds(took)}, nil, asked(same))
		case took > staleness:
			return found{}, fail(results.CauseNever, counts{"ms": milliseconds(took)}, nil, asked(same))
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.ctx.Done():
			return found{}, s.ctx.Err()
		}
	}
}
