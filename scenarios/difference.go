package scenarios

import (
	"cmp"
	"maps"
	"slices"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/results"
)

// examples is how many events of each kind and reason stand as evidence.
const examples = 5

// difference is how what a relay holds departs from what it must hold, by kind and reason. What the
// protocol leaves open does not count.
type difference struct {
	corpus   *corpus.Corpus
	expected int
	held     int
	groups   map[departure][]int // corpus indexes
}

// departure is one way to depart.
type departure struct {
	missing bool // else extra
	cause   string
	kind    int
}

// compare sets what a relay holds against a model, and explains each event by what the relay said
// of it and by what the protocol demands. Named are the events that it named in a reconciliation
// and did not return.
func compare(t *harness.Trial, m *model.Model, held, named []int) difference {
	kept := make(map[int]bool, len(named))
	for _, i := range named {
		kept[i] = true
	}
	return compareWith(t.Corpus, m, held, func(i int) string { return missingBecause(t.Ledger.Get(i), kept[i]) })
}

// compareWith is compare where missing says why an event that must be held is not there.
func compareWith(c *corpus.Corpus, m *model.Model, held []int, missing func(i int) string) difference {
	d := difference{corpus: c, held: len(held), groups: make(map[departure][]int)}
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
		cause := m.Why(i).String()
		if must {
			cause = missing(i)
		}
		key := departure{must, cause, int(c.Entry(i).Kind)}
		d.groups[key] = append(d.groups[key], i)
	}
	return d
}

// missingBecause says why an event that a relay must hold is not there.
func missingBecause(a load.Answer, named bool) string {
	switch {
	case a == load.NotOffered:
		return results.MissingNeverDelivered
	case a == load.Unanswered:
		return results.MissingUnanswered
	case a == load.Refused:
		return results.MissingRefused
	case a == load.NotImported:
		return results.MissingNotImported
	case named:
		return results.MissingNamed
	}
	return results.MissingLost
}

func (d difference) none() bool { return len(d.groups) == 0 }

// isLost tells whether an event was acknowledged, and is missing.
func isLost(cause string) bool { return cause == results.MissingLost || cause == results.MissingNamed }

// lost is how many events the relay had acknowledged and does not return.
func (d difference) lost() (n int) {
	for key, group := range d.groups {
		if key.missing && isLost(key.cause) {
			n += len(group)
		}
	}
	return n
}

// own is how many of the departures are the relay's own doing: all but what was never delivered to
// it.
func (d difference) own() (n int) {
	for key, group := range d.groups {
		if !key.missing || key.cause != results.MissingNeverDelivered {
			n += len(group)
		}
	}
	return n
}

// sorted lists the departures, missing ones first.
func (d difference) sorted() []departure {
	return slices.SortedFunc(maps.Keys(d.groups), func(a, b departure) int {
		if a.missing != b.missing {
			if a.missing {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.cause, b.cause), cmp.Compare(a.kind, b.kind))
	})
}

// counts are the numbers of a finding: held, must, and missing and extra by cause.
func (d difference) counts() map[string]float64 {
	all := counts("held", d.held, "must", d.expected)
	for key, group := range d.groups {
		name := "extra."
		if key.missing {
			name = "missing."
		}
		all[name+key.cause] += float64(len(group))
	}
	return all
}

// evidence names examples of each departure, and how many there are in all.
func (d difference) evidence() (all []results.Evidence) {
	for _, key := range d.sorted() {
		code := results.EvidenceExtra
		if key.missing {
			code = results.EvidenceMissing
		}
		group := d.groups[key]
		for _, i := range group[:min(len(group), examples)] {
			e := eventEvidence(code, d.corpus, i)
			e.Cause, e.Count = key.cause, int64(len(group))
			all = append(all, e)
		}
	}
	return all
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

// idEvidence names examples of a set of ids, in corpus order, with the kinds of those that are
// known, and how many others there are.
func idEvidence(c *corpus.Corpus, code, cause string, ids map[corpus.ID]bool) (all []results.Evidence) {
	list := slices.SortedFunc(maps.Keys(ids), func(a, b corpus.ID) int {
		return cmp.Or(cmp.Compare(index(c, a), index(c, b)), slices.Compare(a[:], b[:]))
	})
	for _, id := range list[:min(len(list), examples)] {
		e := results.Evidence{Code: code, ID: id.String()}
		if i, ok := c.Find(id); ok {
			e = eventEvidence(code, c, i)
		}
		e.Cause = cause
		all = append(all, e)
	}
	return andOthers(all, code, cause, len(list)-examples)
}

// andOthers tells of n more events that are like those named as evidence.
func andOthers(all []results.Evidence, code, cause string, n int) []results.Evidence {
	if n <= 0 {
		return all
	}
	return append(all, results.Evidence{Code: code, Cause: cause, Count: int64(n)})
}

// index is an event's place in the corpus, -1 for one that is not in it.
func index(c *corpus.Corpus, id corpus.ID) int {
	if i, ok := c.Find(id); ok {
		return i
	}
	return -1
}
