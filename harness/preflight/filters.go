package preflight

import (
	"relaybench/corpus"
	"relaybench/results"
)

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

func byID(c *collection) []question {
	return []question{{nil, corpus.Filter{IDs: ids(c.one, c.four)}}, {nil, corpus.Filter{IDs: ids(c.event(1, c.recent(0), "never published"))}}}
}

func byAuthor(c *collection) []question {
	return []question{{nil, c.mine()}, {nil, corpus.Filter{Authors: []corpus.PubKey{c.key.PubKey, c.other}}}}
}

// byMore asks for ids together with an author: relays have been seen to look at the ids alone. No
// question of a scenario does, so that it bears on none.
func byMore(c *collection) []question {
	byIDs, mine := corpus.Filter{IDs: ids(c.one, c.four)}, c.mine()
	for _, f := range []corpus.Filter{byIDs, mine} {
		if good := exactly(ids(c.matching(f)...)); !good(c.poll(good, limited(f, 50))) {
			must(errNoQuestion) // what each does alone is another check's matter
		}
	}
	return []question{{&byIDs, mine}, {&mine, byIDs}}
}

// byKind asks beside an author: kinds alone match whatever else the relay holds.
func byKind(c *collection) []question {
	mine := c.mine()
	return []question{{&mine, corpus.Filter{Kinds: []int{7}}}, {&mine, corpus.Filter{Kinds: []int{1, 7}}}, {&mine, corpus.Filter{Kinds: []int{6}}}}
}

func byE(c *collection) []question {
	mine := c.mine()
	return []question{{nil, tagged('e', c.root)}, {nil, tagged('e', c.absent, c.root)}, {&mine, tagged('e', c.root)}, {&mine, tagged('e', c.absent)}}
}

func byP(c *collection) []question {
	person, mine, byRoot := c.other.String(), c.mine(7), tagged('e', c.root)
	return []question{{nil, tagged('p', person)}, {nil, tagged('p', newKey().PubKey.String(), person)},
		{&mine, tagged('p', person)}, {&byRoot, tagged('p', person)}}
}

// byT asks for a value of which another is the beginning: stores have been seen to match prefixes.
func byT(c *collection) []question {
	mine := c.mine()
	return []question{{nil, tagged('t', c.topic)}, {nil, tagged('t', c.topic, c.topic+"b")}, {&mine, tagged('t', c.topic)}, {&mine, tagged('t', "none")}}
}
