package preflight

import (
	"bytes"
	"cmp"
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

// newestFirst: with a limit, which is where NIP-01 asks for the order.
func newestFirst(c *checker) {
	s, newest := c.series(7)
	want, f := ids(newest...), limited(c.mine(1), 50)
	r, wrong := s.wants(inOrder(want), want, f)
	if wrong == nil || r.closed || exactly(want)(r) && len(r.ids) == len(want) {
		must(wrong)
		return
	}
	// Other events than those are other checks' matter: what is left in the answer has an order all
	// the same.
	kept := only(want, r.ids)
	if len(kept) < 2 {
		must(leaveOpen(results.CauseNeeds, nil))
	}
	if !slices.IsSortedFunc(kept, func(x, y corpus.ID) int { return slices.Index(want, x) - slices.Index(want, y) }) {
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
	case !exactly(want)(r):
		return false, fmt.Sprintf("unknown: %d events came instead of the 6 of one second", len(r.ids))
	case !inOrder(want)(r):
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
		if _, err := s.wants(exactlyOf(ids(newest...), q.want), q.want, q.filter); err != nil {
			wrong, first = append(wrong, q.uses), cmp.Or(first, err)
		}
	}
	if short := failure(first); short != nil {
		scopes := results.BearsOn(results.CodeInclusive, Scenario, nil)
		short.BearsOn = slices.DeleteFunc(scopes, func(s results.Scope) bool { return !slices.Contains(wrong, s.Uses) })
		for _, uses := range wrong {
			short.Counts[uses] = 1
		}
	}
	must(first)
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
			must(closedBy(r))
		case holds(after)(r) && asks == 1:
			c.seen.Counts = seen
			return
		case holds(after)(r):
			must(fail(results.CauseCached, seen, nil, queried(same)))
		case took > staleness:
			must(fail(results.CauseNever, seen, nil, queried(same)))
		}
		s.pause(20 * time.Millisecond)
	}
}
