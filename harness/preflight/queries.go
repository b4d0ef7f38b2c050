package preflight

import (
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

// collection is what the checks on filters publish and ask for: four notes of two authors.
type collection struct {
	*session
	one, two, three, four *corpus.Event // four is the other author's
	other                 corpus.PubKey
	root, absent          string // events that one and three refer to, and nobody
	topic                 string // a tag value that one and four have; two has another that begins with it
}

// question is a condition of a filter, which is asked for alone or beside others. An event that
// should not have come speaks against the condition only where it does not meet it; one that is
// missing, only where it comes without the condition.
type question struct {
	beside    *corpus.Filter // nil for none
	condition corpus.Filter
}

// filters is the check of one condition, by what it asks of the collection. Combinations count for
// it only as far as the other conditions hold without it.
func filters(ask func(c *collection) []question) func(*checker) {
	return func(k *checker) {
		c := k.collect()
		questions := ask(c)
		skipped := 0
		for _, q := range questions {
			if !c.judge(q) {
				skipped++
			}
		}
		if skipped == len(questions) {
			must(leaveOpen(results.CauseNeeds, nil))
		}
	}
}

// collect publishes the collection.
func (k *checker) collect() *collection {
	other, root := newKey(), k.event(1, k.recent(-9), "nowhere").ID.String()
	c := &collection{session: k.dial(), other: other.PubKey, root: root, topic: "t" + root[:12],
		absent: k.event(1, k.recent(-8), "nowhere either").ID.String()}
	c.one = k.event(1, k.recent(1), "one", corpus.Tag{"t", c.topic}, corpus.Tag{"e", root, "", "root"})
	c.two = k.event(1, k.recent(2), "two", corpus.Tag{"t", "else"}, corpus.Tag{"t", c.topic + "b"}, corpus.Tag{"p", other.PubKey.String()})
	c.three = k.event(7, k.recent(3), "+", corpus.Tag{"e", root}, corpus.Tag{"p", other.PubKey.String()})
	c.four = signed(other, 1, k.recent(4), "four", corpus.Tag{"t", c.topic})
	c.store(c.one, c.two, c.three, c.four)
	return c
}

// matching returns the events of the collection that match a filter.
func (c *collection) matching(f corpus.Filter) (events []*corpus.Event) {
	for _, e := range []*corpus.Event{c.one, c.two, c.three, c.four} {
		if f.Matches(e) {
			events = append(events, e)
		}
	}
	return events
}

// judge puts a question. It returns false where the answer says nothing of the condition.
func (c *collection) judge(q question) bool {
	f := q.condition
	if q.beside != nil {
		f = both(*q.beside, f)
	}
	want := c.matching(f)
	r, wrong := c.wants(exactly(ids(want...)), ids(want...), limited(f, 50))
	if wrong == nil {
		return true
	}
	if q.beside == nil || r.closed {
		must(wrong)
	}
	for _, text := range r.texts {
		if e, err := corpus.ParseEvent(text); err == nil && !q.condition.Matches(&e) {
			must(wrong)
		}
	}
	if all := holds(want...); !all(r) && all(c.poll(all, limited(*q.beside, 50))) {
		must(wrong)
	}
	return false
}
