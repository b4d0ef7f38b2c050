package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"relaybench/corpus"
	"relaybench/harness"
)

// examples is how many ids of each kind and reason stand as evidence.
const examples = 5

// difference is how what a relay holds departs from what it must hold, by kind and reason. What the protocol leaves open does not count.
type difference struct {
	corpus   *corpus.Corpus
	expected int
	held     int
	groups   map[departure][]corpus.ID
}

// departure is one way to depart.
type departure struct {
	missing bool // else extra
	reason  string
	kind    int
}

// compare sets what a relay holds against a model, and explains each event by what the relay said of it and by what the protocol demands.
func compare(s *side, m *corpus.Model, held []int) difference {
	return compareWith(s.Corpus, m, held, func(i int) string { return missingBecause(s.Ledger.Get(i)) })
}

// compareWith is compare where missing says why an event that must be held is not there.
func compareWith(c *corpus.Corpus, m *corpus.Model, held []int, missing func(i int) string) difference {
	d := difference{corpus: c, held: len(held), groups: make(map[departure][]corpus.ID)}
	holds := make([]bool, c.Len())
	for _, i := range held {
		holds[i] = true
	}
	for i := range holds {
		must := m.Holds(i)
		if must {
			d.expected++
		}
		if must == holds[i] || m.Optional(i) {
			continue
		}
		reason := m.Why(i).String()
		if must {
			reason = missing(i)
		}
		e := c.Entry(i)
		key := departure{must, reason, int(e.Kind)}
		d.groups[key] = append(d.groups[key], e.ID)
	}
	return d
}

// missingBecause says why an event that a relay must hold is not there.
func missingBecause(a harness.Answer) string {
	switch a {
	case harness.NotOffered:
		return "never delivered"
	case harness.Unanswered:
		return "delivered and never answered"
	case harness.Refused:
		return "refused"
	}
	return "acknowledged but lost"
}

func (d difference) none() bool { return len(d.groups) == 0 }

// sorted lists the departures, missing ones first.
func (d difference) sorted() []departure {
	return slices.SortedFunc(maps.Keys(d.groups), func(a, b departure) int {
		if a.missing != b.missing {
			if a.missing {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.kind, b.kind))
	})
}

// summary is one sentence.
func (d difference) summary() string {
	if d.none() {
		return fmt.Sprintf("holds the %d events that it must", d.expected)
	}
	counts := make(map[string]int)
	var order []string
	for _, key := range d.sorted() {
		what := "missing: " + key.reason
		if !key.missing {
			what = "kept though " + key.reason
		}
		if counts[what] == 0 {
			order = append(order, what)
		}
		counts[what] += len(d.groups[key])
	}
	parts := make([]string, len(order))
	for i, what := range order {
		parts[i] = fmt.Sprintf("%d %s", counts[what], what)
	}
	return fmt.Sprintf("holds %d where it must hold %d: %s", d.held, d.expected, strings.Join(parts, ", "))
}

// evidence names examples of each departure.
func (d difference) evidence() []string {
	var lines []string
	for _, key := range d.sorted() {
		what := "missing"
		if !key.missing {
			what = "extra"
		}
		ids := d.groups[key]
		for _, id := range ids[:min(len(ids), examples)] {
			lines = append(lines, fmt.Sprintf("%s, kind %d, %s: %s", what, key.kind, key.reason, id))
		}
		if more := len(ids) - examples; more > 0 {
			lines = append(lines, fmt.Sprintf("%s, kind %d, %s: and %d more", what, key.kind, key.reason, more))
		}
	}
	return lines
}

// without returns the ids of the events in one list and not in the other.
func without(c *corpus.Corpus, list, other []int) map[corpus.ID]bool {
	in := make(map[int]bool, len(other))
	for _, i := range other {
		in[i] = true
	}
	ids := make(map[corpus.ID]bool)
	for _, i := range list {
		if !in[i] {
			ids[c.Entry(i).ID] = true
		}
	}
	return ids
}

// minus returns a without what is in b.
func minus(a, b map[corpus.ID]bool) map[corpus.ID]bool {
	left := make(map[corpus.ID]bool)
	for id := range a {
		if !b[id] {
			left[id] = true
		}
	}
	return left
}

// describeIDs names examples of a set of ids, in corpus order, with the kinds of those that are known.
func describeIDs(c *corpus.Corpus, what string, ids map[corpus.ID]bool) []string {
	list := slices.SortedFunc(maps.Keys(ids), func(a, b corpus.ID) int {
		return cmp.Or(cmp.Compare(index(c, a), index(c, b)), slices.Compare(a[:], b[:]))
	})
	var lines []string
	for _, id := range list[:min(len(list), examples)] {
		kind := ""
		if i, ok := c.Find(id); ok {
			kind = fmt.Sprintf("kind %d, ", c.Entry(i).Kind)
		}
		lines = append(lines, fmt.Sprintf("%s%s: %s", kind, what, id))
	}
	if more := len(list) - examples; more > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more", what, more))
	}
	return lines
}

// index is an event's place in the corpus, -1 for one that is not in it.
func index(c *corpus.Corpus, id corpus.ID) int {
	if i, ok := c.Find(id); ok {
		return i
	}
	return -1
}
