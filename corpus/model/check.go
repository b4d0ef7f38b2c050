package model

import (
	"cmp"
	"slices"

	"relaybench/corpus"
)

// Check compares an answer, the ids of the events in the order in which they came, with what the
// model gives for the filter. Optional events may be there or not, but for two versions of one
// event at once. Where the limit cuts through events of one created_at, any of them may be there.
func (m *Model) Check(f *corpus.Filter, got []corpus.ID) CheckResult {
	a := comparison{
		m: m, limit: limitOf(f), valid: make(map[int]bool, len(got)),
		result: CheckResult{Got: len(got)},
	}
	a.read(m.newMatcher(f), f, got)
	a.keepBestCandidates()
	a.compare(f)
	a.findCap()
	return a.result
}

// comparison is one relay's answer under examination.
type comparison struct {
	m      *Model
	limit  int
	valid  map[int]bool // what may rightly be in it; true until compare has met it
	result CheckResult
	oldest int64 // created_at of the last valid event that compare met
}

// read sorts out what should not be there whatever else is, and looks at the order.
func (a *comparison) read(t *matcher, f *corpus.Filter, got []corpus.ID) {
	v := &a.result
	seen := make(map[corpus.ID]struct{}, len(got))
	var last *corpus.Entry
	for _, id := range got {
		if _, twice := seen[id]; twice {
			v.Duplicate = append(v.Duplicate, id)
			continue
		}
		seen[id] = struct{}{}
		i, known := a.m.corpus.Find(id)
		if !known {
			v.Extra = append(v.Extra, Discrepancy{id, Unknown})
			continue
		}
		entry := a.m.corpus.Entry(i)
		if last != nil && entry.CreatedAt > last.CreatedAt {
			v.Misordered = append(v.Misordered, id)
		} else if last != nil && entry.CreatedAt == last.CreatedAt && string(id[:]) < string(last.ID[:]) {
			v.TieOrder = append(v.TieOrder, id)
		}
		last = entry
		rank := a.m.ranks[i]
		switch {
		case !a.m.statuses[i].possible():
			v.Extra = append(v.Extra, Discrepancy{id, a.m.Why(i)})
		case rank < t.low || rank >= t.high || !t.passes(rank, nil):
			v.Extra = append(v.Extra, Discrepancy{id, NoMatch})
		default:
			a.valid[i] = true
		}
	}
}

// keepBestCandidates leaves one of several optional versions: a relay can hold only one.
func (a *comparison) keepBestCandidates() {
	if len(a.m.candidates) == 0 {
		return
	}
	best := map[uint64]int{}
	for i := range a.valid {
		address, ok := a.m.candidates[uint32(i)]
		if !ok {
			continue
		}
		if other, ok := best[address]; !ok || a.m.ranks[i] > a.m.ranks[other] {
			best[address] = i
		}
	}
	var refused []int
	for i := range a.valid {
		if address, ok := a.m.candidates[uint32(i)]; ok && best[address] != i {
			refused = append(refused, i)
		}
	}
	a.sortNewestFirst(refused)
	for _, i := range refused {
		delete(a.valid, i)
		a.result.Extra = append(a.result.Extra, Discrepancy{a.m.corpus.Entry(i).ID, Superseded})
	}
}

// compare walks what may be held and matches, newest first. What the answer has and what every
// relay holds takes up the limit.
func (a *comparison) compare(f *corpus.Filter) {
	v := &a.result
	room, edge := a.limit, int64(0) // edge: the created_at at which room ran out
	var missing, late []int         // late: valid, at the edge, after room ran out
	for i := range a.m.matching(f) {
		at := a.m.corpus.Entry(i).CreatedAt
		if room == 0 && v.Want == a.limit && (a.limit == 0 || at < edge) {
			break
		}
		if v.Want < a.limit && a.m.Holds(i) {
			v.Want++
		}
		if room == 0 {
			if at == edge && a.valid[i] {
				late = append(late, i)
			}
			continue
		}
		if a.m.Optional(i) {
			v.Optional++
		}
		switch {
		case a.valid[i]:
			a.valid[i] = false
			a.oldest = at
			room--
		case a.m.statuses[i].certain():
			missing = append(missing, i)
			room--
		}
		if room == 0 {
			edge = at
		}
	}
	// A tie at the edge may fall either way: an event there stands for one that is missing there.
	for len(late) > 0 && len(missing) > 0 && a.m.corpus.Entry(missing[len(missing)-1]).CreatedAt == edge {
		a.valid[late[0]] = false
		late = late[1:]
		missing = missing[:len(missing)-1]
		a.oldest = edge
	}
	for _, i := range missing {
		v.Missing = append(v.Missing, Discrepancy{a.m.corpus.Entry(i).ID, Stored})
	}
	var beyond []int
	for i, unmet := range a.valid {
		if unmet {
			beyond = append(beyond, i)
		}
	}
	a.sortNewestFirst(beyond)
	for _, i := range beyond {
		v.Extra = append(v.Extra, Discrepancy{a.m.corpus.Entry(i).ID, BeyondLimit})
	}
}

func (a *comparison) sortNewestFirst(list []int) {
	slices.SortFunc(list, func(i, j int) int { return cmp.Compare(a.m.ranks[j], a.m.ranks[i]) })
}

// findCap tells a cap: the answer is exactly the newest part of what it should be.
func (a *comparison) findCap() {
	v := &a.result
	if v.Got == 0 || len(v.Missing) == 0 || len(v.Extra)+len(v.Misordered)+len(v.Duplicate) > 0 {
		return
	}
	if i, ok := a.m.corpus.Find(v.Missing[0].ID); ok && a.m.corpus.Entry(i).CreatedAt <= a.oldest {
		v.Capped = true
	}
}
