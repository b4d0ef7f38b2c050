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
func (c *checker) series(n int) (*session, []*corpus.Event) {
	s := c.dial()
	var newest []*corpus.Event
	for i := range n {
		newest = append(newest, c.event(1, c.recent(-i), fmt.Sprintf("note %d from the newest", i)))
	}
	for i := range n { // every third, starting anywhere
		s.store(newest[(3*i+2)%n])
	}
	return s, newest
}

// keepsLimit: a limit returns as many, and the newest.
func keepsLimit(c *checker) {
	s, newest := c.series(5)
	for _, n := range []int{50, 1, 3} {
		s.expect(ids(newest[:min(n, len(newest))]...), limited(c.mine(1), n))
	}
}

// newestFirst: with a limit, which is where NIP-01 asks for the order.
func newestFirst(c *checker) {
	s, newest := c.series(7)
	want, f := ids(newest...), limited(c.mine(1), 50)
	r := s.poll(inOrder(want), f)
	switch {
	case inOrder(want)(&r):
		return
	case r.closed, exactly(want)(&r) && len(r.ids) == len(want):
		must(wrongAnswer(want, &r, f))
	}
	// Other events than those are other checks' matter: what is left in the answer has an order all
	// the same.
	kept := only(want, r.ids)
	if len(kept) < 2 {
		must(leaveOpen(results.CauseNeeds, nil, nil))
	}
	sorted := slices.IsSortedFunc(kept, func(x, y corpus.ID) int { return slices.Index(want, x) - slices.Index(want, y) })
	if !sorted {
		must(wrongAnswer(only(kept, want), &reply{ids: kept}, f))
	}
}

// probeTies: of events of one second the lowest id should come first (NIP-01). Many relays leave it
// open, and which of them is in an answer is no fault in the model's eyes either.
func probeTies(c *checker) (spoken bool, text string) {
	s := c.dial()
	var tied []*corpus.Event
	for i := range 6 {
		tied = append(tied, c.event(1, c.recent(0), fmt.Sprintf("at once %d", i)))
	}
	s.store(tied...)
	want := ids(tied...)
	slices.SortFunc(want, func(x, y corpus.ID) int { return bytes.Compare(x[:], y[:]) })
	r := s.poll(exactly(want), limited(c.mine(1), 50))
	switch {
	case !exactly(want)(&r):
		return false, fmt.Sprintf("unknown: %d events came instead of the 6 of one second", len(r.ids))
	case !inOrder(want)(&r):
		return false, "not by id"
	}
	return true, "lowest id first"
}

// inclusive: since and until take in events of that very second. It bears on the questions with the
// bound that is at fault.
func inclusive(c *checker) {
	s, newest := c.series(5)
	since, until := c.mine(1), c.mine(1)
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
		good := exactlyOf(ids(newest...), q.want)
		r := s.poll(func(r *reply) bool { return !r.closed && good(r) }, q.filter)
		if !r.closed && good(&r) {
			continue
		}
		if wrong = append(wrong, q.uses); first == nil {
			first = wrongAnswer(q.want, &r, q.filter)
		}
	}
	if short := failure(first); short != nil {
		scopes := results.BearsOn(results.CodeInclusive, Scenario, nil)
		short.bearsOn = slices.DeleteFunc(scopes, func(s results.Scope) bool { return !slices.Contains(wrong, s.Uses) })
		for _, uses := range wrong {
			short.counts[uses] = 1
		}
	}
	must(first)
}

// severalFilters: the answer is the union, and each limit is its filter's own.
func severalFilters(c *checker) {
	s, newest := c.series(5)
	want := ids(newest[0], newest[1], newest[4])
	first, second := limited(c.mine(1), 2), corpus.Filter{IDs: ids(newest[4], newest[0])}
	r := s.poll(exactly(want), first, second)
	if !exactly(want)(&r) {
		must(wrongAnswer(want, &r, first, second))
	}
	c.seen.counts = counts{"twice": number(len(r.ids) > len(want))} // an event that matches both may come twice
}

// staleness is how long a relay may go on to answer from before a write, before it is no longer
// waited for.
const staleness = 3 * time.Second

// answersAnew: the same filter, put again, shows what was written since. Another filter shows it
// first, so that what the relay takes to store an event is not held for a cache.
func answersAnew(c *checker) {
	s, before, after := c.dial(), c.event(1, c.recent(0), "before"), c.event(1, c.recent(1), "after")
	same := limited(c.mine(1), 20)
	s.store(before)
	s.need(holds(before), limited(c.mine(1), 30))
	s.query(same)
	s.store(after)
	written := time.Now()
	s.need(holds(after), limited(c.mine(1), 40))
	for asks := 1; ; asks++ {
		r := s.query(same)
		took := time.Since(written)
		seen := counts{"ms": milliseconds(took)}
		switch {
		case r.closed:
			must(closedBy(&r))
		case holds(after)(&r) && asks == 1:
			c.seen.counts = seen
			return
		case holds(after)(&r):
			must(fail(results.CauseCached, seen, nil, queried(same)))
		case took > staleness:
			must(fail(results.CauseNever, seen, nil, queried(same)))
		}
		s.pause(20 * time.Millisecond)
	}
}
