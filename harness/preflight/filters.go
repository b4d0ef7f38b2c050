package preflight

import (
	"cmp"
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

// collect publishes them.
func (a *asking) collect() (*collection, error) {
	s, err := a.dial()
	if err != nil {
		return nil, err
	}
	other, root := newKey(), a.event(1, a.recent(-9), "nowhere").ID.String()
	c := &collection{session: s, other: other.PubKey, root: root, topic: "t" + root[:12]}
	c.one = a.event(1, a.recent(1), "one", corpus.Tag{"t", c.topic}, corpus.Tag{"e", root, "", "root"})
	c.two = a.event(1, a.recent(2), "two", corpus.Tag{"t", "else"}, corpus.Tag{"t", c.topic + "b"}, corpus.Tag{"p", other.PubKey.String()})
	c.three = a.event(7, a.recent(3), "+", corpus.Tag{"e", root}, corpus.Tag{"p", other.PubKey.String()})
	c.four = signed(other, 1, a.recent(4), "four", corpus.Tag{"t", c.topic})
	return c, s.store(c.one, c.two, c.three, c.four)
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

// judge puts the questions of one condition. Combinations count for it only as far as the other
// conditions hold without it.
func (c *collection) judge(questions ...question) (found, error) {
	skipped := 0
	for _, q := range questions {
		want, f := ids(q.want...), limited(q.filter, 50)
		r, err := c.poll(exactly(want), f)
		if err != nil {
			return found{}, err
		}
		if exactly(want)(&r) {
			continue
		}
		if q.beside == nil || r.closed {
			return found{}, wrongAnswer(want, &r, f)
		}
		missing, _ := difference(want, r.ids)
		for _, text := range r.texts {
			if e, err := corpus.ParseEvent(text); err == nil && !q.meets(&e) {
				return found{}, wrongAnswer(want, &r, f)
			}
		}
		beside := limited(*q.beside, 50)
		without, err := c.poll(func(r *reply) bool { m, _ := difference(want, r.ids); return len(m) == 0 }, beside)
		if err != nil {
			return found{}, err
		}
		if m, _ := difference(want, without.ids); len(missing) > 0 && len(m) == 0 {
			return found{}, wrongAnswer(want, &r, f)
		}
		skipped++
	}
	if skipped == len(questions) {
		return found{}, leaveOpen(results.CauseNeeds, nil, nil)
	}
	return found{}, nil
}

func tagged(f corpus.Filter, name byte, values ...string) corpus.Filter {
	f.Tags = append(slices.Clone(f.Tags), corpus.TagFilter{Name: name, Values: values})
	return f
}

func has(name string, value string) func(*corpus.Event) bool {
	return func(e *corpus.Event) bool {
		return slices.ContainsFunc(e.Tags, func(t corpus.Tag) bool { return t.Name() == name && t.Value() == value })
	}
}

func filtersByID(a *asking) (found, error) {
	c, err := a.collect()
	if err != nil {
		return found{}, err
	}
	return c.judge(
		question{filter: corpus.Filter{IDs: ids(c.one, c.four)}, want: []*corpus.Event{c.one, c.four}},
		question{filter: corpus.Filter{IDs: []corpus.ID{a.event(1, a.recent(0), "never published").ID}}},
	)
}

func filtersByAuthor(a *asking) (found, error) {
	c, err := a.collect()
	if err != nil {
		return found{}, err
	}
	return c.judge(
		question{filter: a.mine(), want: []*corpus.Event{c.one, c.two, c.three}},
		question{filter: corpus.Filter{Authors: []corpus.PubKey{a.key.PubKey, c.other}}, want: []*corpus.Event{c.one, c.two, c.three, c.four}},
	)
}

// filtersByMore asks for ids together with an author: relays have been seen to look at the ids
// alone. No question of a scenario does, so that it bears on none.
func filtersByMore(a *asking) (found, error) {
	c, err := a.collect()
	if err != nil {
		return found{}, err
	}
	byIDs := corpus.Filter{IDs: ids(c.one, c.four)}
	for filter, want := range map[*corpus.Filter][]*corpus.Event{&byIDs: {c.one, c.four}, new(a.mine()): {c.one, c.two, c.three}} {
		if r, err := c.poll(exactly(ids(want...)), limited(*filter, 50)); err != nil || !exactly(ids(want...))(&r) {
			return found{}, cmp.Or(err, errNoQuestion) // what each does alone is another check's matter
		}
	}
	byIDs.Authors = []corpus.PubKey{a.key.PubKey}
	return c.judge(question{filter: byIDs, want: []*corpus.Event{c.one}})
}

// filtersByKind asks beside an author: kinds alone match whatever else the relay holds.
func filtersByKind(a *asking) (found, error) {
	c, err := a.collect()
	if err != nil {
		return found{}, err
	}
	beside := a.mine()
	of := func(kinds ...int) func(*corpus.Event) bool {
		return func(e *corpus.Event) bool { return slices.Contains(kinds, e.Kind) }
	}
	return c.judge(
		question{a.mine(7), []*corpus.Event{c.three}, &beside, of(7)},
		question{a.mine(1, 7), []*corpus.Event{c.one, c.two, c.three}, &beside, of(1, 7)},
		question{a.mine(6), nil, &beside, of(6)},
	)
}

func filtersByE(a *asking) (found, error) {
	c, err := a.collect()
	if err != nil {
		return found{}, err
	}
	beside, absent := a.mine(), a.event(1, a.recent(-8), "nowhere either").ID.String()
	return c.judge(
		question{filter: tagged(corpus.Filter{}, 'e', c.root), want: []*corpus.Event{c.one, c.three}},
		question{filter: tagged(corpus.Filter{}, 'e', absent, c.root), want: []*corpus.Event{c.one, c.three}},
		question{tagged(a.mine(), 'e', c.root), []*corpus.Event{c.one, c.three}, &beside, has("e", c.root)},
		question{tagged(a.mine(), 'e', absent), nil, &beside, has("e", absent)},
	)
}

func filtersByP(a *asking) (found, error) {
	c, err := a.collect()
	if err != nil {
		return found{}, err
	}
	person, absent := c.other.String(), newKey().PubKey.String()
	beside := a.mine(7)
	besideE := tagged(corpus.Filter{}, 'e', c.root)
	return c.judge(
		question{filter: tagged(corpus.Filter{}, 'p', person), want: []*corpus.Event{c.two, c.three}},
		question{filter: tagged(corpus.Filter{}, 'p', absent, person), want: []*corpus.Event{c.two, c.three}},
		question{tagged(a.mine(7), 'p', person), []*corpus.Event{c.three}, &beside, has("p", person)},
		question{tagged(besideE, 'p', person), []*corpus.Event{c.three}, &besideE, has("p", person)},
	)
}

// filtersByT asks for a value of which another is the beginning: stores have been seen to match
// prefixes.
func filtersByT(a *asking) (found, error) {
	c, err := a.collect()
	if err != nil {
		return found{}, err
	}
	beside := a.mine()
	return c.judge(
		question{filter: tagged(corpus.Filter{}, 't', c.topic), want: []*corpus.Event{c.one, c.four}},
		question{filter: tagged(corpus.Filter{}, 't', c.topic, c.topic+"b"), want: []*corpus.Event{c.one, c.two, c.four}},
		question{tagged(a.mine(), 't', c.topic), []*corpus.Event{c.one}, &beside, has("t", c.topic)},
		question{tagged(a.mine(), 't', "none"), nil, &beside, has("t", "none")},
	)
}
