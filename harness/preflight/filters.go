package preflight

import (
	"slices"

	"relaybench/corpus"
	"relaybench/results"
)

// collection is what the checks on filters publish and ask for: four notes of two authors.
type collection struct {
	*session
	one, two, three, four *corpus.Event // four is the other author's
	other                 corpus.PubKey
	root                  string // an event that one and three refer to
	topic                 string // a tag value that one and four have; two has another that begins with it
}

// question is a filter, and the events that match it.
type question struct {
	filter corpus.Filter
	want   []*corpus.Event
	// beside is the filter without the condition in question, nil where there is no other. An event
	// that should not have come speaks against a condition only where it does not meet it; one that
	// is missing, only where it comes without the condition.
	beside *corpus.Filter
	meets  func(*corpus.Event) bool
}

// filters is the check of one condition, by what it asks of the collection. Combinations count for
// it only as far as the other conditions hold without it.
func filters(ask func(c *collection) []question) func(*checker) {
	return func(k *checker) {
		c := k.collect()
		questions := ask(c)
		skipped := 0
		for _, q := range questions {
			if !c.judge(&q) {
				skipped++
			}
		}
		if skipped == len(questions) {
			must(leaveOpen(results.CauseNeeds, nil, nil))
		}
	}
}

// collect publishes the collection.
func (k *checker) collect() *collection {
	other, root := newKey(), k.event(1, k.recent(-9), "nowhere").ID.String()
	c := &collection{session: k.dial(), other: other.PubKey, root: root, topic: "t" + root[:12]}
	c.one = k.event(1, k.recent(1), "one", corpus.Tag{"t", c.topic}, corpus.Tag{"e", root, "", "root"})
	c.two = k.event(1, k.recent(2), "two", corpus.Tag{"t", "else"}, corpus.Tag{"t", c.topic + "b"}, corpus.Tag{"p", other.PubKey.String()})
	c.three = k.event(7, k.recent(3), "+", corpus.Tag{"e", root}, corpus.Tag{"p", other.PubKey.String()})
	c.four = signed(other, 1, k.recent(4), "four", corpus.Tag{"t", c.topic})
	c.store(c.one, c.two, c.three, c.four)
	return c
}

// judge puts a question. It returns false where the answer says nothing of the condition.
func (c *collection) judge(q *question) bool {
	want, f := ids(q.want...), limited(q.filter, 50)
	r := c.poll(exactly(want), f)
	if exactly(want)(&r) {
		return true
	}
	wrong := wrongAnswer(want, &r, f)
	if q.beside == nil || r.closed {
		must(wrong)
	}
	for _, text := range r.texts {
		if e, err := corpus.ParseEvent(text); err == nil && !q.meets(&e) {
			must(wrong)
		}
	}
	without := c.poll(holds(q.want...), limited(*q.beside, 50))
	if !holds(q.want...)(&r) && holds(q.want...)(&without) {
		must(wrong)
	}
	return false
}

func all(events ...*corpus.Event) []*corpus.Event { return events }

// tagHas says of an event whether it has a tag.
func tagHas(name, value string) func(*corpus.Event) bool {
	return func(e *corpus.Event) bool {
		return slices.ContainsFunc(e.Tags, func(t corpus.Tag) bool { return t.Name() == name && t.Value() == value })
	}
}

func kindIn(kinds ...int) func(*corpus.Event) bool {
	return func(e *corpus.Event) bool { return slices.Contains(kinds, e.Kind) }
}

func byID(c *collection) []question {
	return []question{
		{filter: corpus.Filter{IDs: ids(c.one, c.four)}, want: all(c.one, c.four)},
		{filter: corpus.Filter{IDs: ids(c.event(1, c.recent(0), "never published"))}},
	}
}

func byAuthor(c *collection) []question {
	return []question{
		{filter: c.mine(), want: all(c.one, c.two, c.three)},
		{filter: corpus.Filter{Authors: []corpus.PubKey{c.key.PubKey, c.other}}, want: all(c.one, c.two, c.three, c.four)},
	}
}

// byMore asks for ids together with an author: relays have been seen to look at the ids alone. No
// question of a scenario does, so that it bears on none.
func byMore(c *collection) []question {
	byIDs := corpus.Filter{IDs: ids(c.one, c.four)}
	for filter, want := range map[*corpus.Filter][]*corpus.Event{&byIDs: all(c.one, c.four), new(c.mine()): all(c.one, c.two, c.three)} {
		if r := c.poll(exactly(ids(want...)), limited(*filter, 50)); !exactly(ids(want...))(&r) {
			must(errNoQuestion) // what each does alone is another check's matter
		}
	}
	byIDs.Authors = []corpus.PubKey{c.key.PubKey}
	return []question{{filter: byIDs, want: all(c.one)}}
}

// byKind asks beside an author: kinds alone match whatever else the relay holds.
func byKind(c *collection) []question {
	beside := c.mine()
	return []question{
		{c.mine(7), all(c.three), &beside, kindIn(7)},
		{c.mine(1, 7), all(c.one, c.two, c.three), &beside, kindIn(1, 7)},
		{c.mine(6), nil, &beside, kindIn(6)},
	}
}

func byE(c *collection) []question {
	beside, absent := c.mine(), c.event(1, c.recent(-8), "nowhere either").ID.String()
	return []question{
		{filter: tagged(corpus.Filter{}, 'e', c.root), want: all(c.one, c.three)},
		{filter: tagged(corpus.Filter{}, 'e', absent, c.root), want: all(c.one, c.three)},
		{tagged(c.mine(), 'e', c.root), all(c.one, c.three), &beside, tagHas("e", c.root)},
		{tagged(c.mine(), 'e', absent), nil, &beside, tagHas("e", absent)},
	}
}

func byP(c *collection) []question {
	person, absent := c.other.String(), newKey().PubKey.String()
	beside, besideE := c.mine(7), tagged(corpus.Filter{}, 'e', c.root)
	return []question{
		{filter: tagged(corpus.Filter{}, 'p', person), want: all(c.two, c.three)},
		{filter: tagged(corpus.Filter{}, 'p', absent, person), want: all(c.two, c.three)},
		{tagged(c.mine(7), 'p', person), all(c.three), &beside, tagHas("p", person)},
		{tagged(besideE, 'p', person), all(c.three), &besideE, tagHas("p", person)},
	}
}

// byT asks for a value of which another is the beginning: stores have been seen to match prefixes.
func byT(c *collection) []question {
	beside := c.mine()
	return []question{
		{filter: tagged(corpus.Filter{}, 't', c.topic), want: all(c.one, c.four)},
		{filter: tagged(corpus.Filter{}, 't', c.topic, c.topic+"b"), want: all(c.one, c.two, c.four)},
		{tagged(c.mine(), 't', c.topic), all(c.one), &beside, tagHas("t", c.topic)},
		{tagged(c.mine(), 't', "none"), nil, &beside, tagHas("t", "none")},
	}
}
