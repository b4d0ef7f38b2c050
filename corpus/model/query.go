package model

import (
	"iter"
	"math/bits"
	"slices"
	"sync"

	"relaybench/corpus"
)

// Query returns the events with which a relay answers the filter, by index: those that Holds
// reports, newest first, the lowest id first among equally new ones, as many as the limit allows
// (NIP-01).
func (m *Model) Query(f *corpus.Filter) []int {
	room := limitOf(f)
	if room == 0 {
		return nil
	}
	var answer []int
	for i := range m.matching(f) {
		if !m.Holds(i) {
			continue
		}
		answer = append(answer, i)
		if room--; room == 0 {
			break
		}
	}
	return answer
}

// Count returns what a relay answers to a COUNT (NIP-45): how many events that Holds reports match
// the filter, whatever its limit.
func (m *Model) Count(f *corpus.Filter) int {
	n := 0
	for i := range m.matching(f) {
		if m.Holds(i) {
			n++
		}
	}
	return n
}

// limitOf returns the filter's limit, a huge one if it has none.
func limitOf(f *corpus.Filter) int {
	if f.Limit == nil {
		return int(^uint(0) >> 1)
	}
	return max(*f.Limit, 0)
}

// matching goes through the events that may be held and match the filter, newest first, the lowest
// id first among equally new ones. It walks the condition with the fewest postings and tests the
// others.
func (m *Model) matching(f *corpus.Filter) iter.Seq[int] {
	return func(yield func(int) bool) {
		t := m.newMatcher(f)
		var driver *condition
		for i := range t.conditions {
			if c := &t.conditions[i]; driver == nil || c.total < driver.total {
				driver = c
			}
		}
		if driver == nil {
			for rank := t.high; rank > t.low; rank-- {
				if i := int(m.ranks[rank-1]); m.statuses[i].possible() && !yield(i) {
					return
				}
			}
			return
		}
		for rank := range driver.newestFirst(t.low, t.high) {
			if t.passes(rank, driver) && !yield(int(m.ranks[rank])) {
				return
			}
		}
	}
}

// condition is one of a filter's lists: an event meets it if its rank is in any of the postings.
type condition struct {
	lists  [][]uint32 // ascending, within the matcher's span
	total  int
	test   func(e *corpus.Entry) bool // the same from the entry alone; nil for tags
	window bitset                     // of all lists, once made
}

type matcher struct {
	m          *Model
	low, high  uint32
	conditions []condition
}

func (m *Model) newMatcher(f *corpus.Filter) *matcher {
	t := &matcher{m: m}
	t.low, t.high = m.span(f)
	if f.IDs != nil {
		// As a list, so that ids are found through the corpus's table and not by looking at events.
		ranks := make([]uint32, 0, len(f.IDs))
		for _, id := range f.IDs {
			if i, ok := m.corpus.Find(id); ok && m.statuses[i].possible() {
				ranks = append(ranks, m.ranks[i])
			}
		}
		slices.Sort(ranks)
		t.add(func(yield func([]uint32) bool) { yield(slices.Compact(ranks)) }, nil)
	}
	if f.Authors != nil {
		t.add(lookUp(f.Authors, func(pk corpus.PubKey) []uint32 { return m.authors[pk] }), membership(f.Authors, func(e *corpus.Entry) corpus.PubKey { return e.PubKey }))
	}
	if f.Kinds != nil {
		t.add(lookUp(f.Kinds, m.ofKind), membership(f.Kinds, func(e *corpus.Entry) int { return int(e.Kind) }))
	}
	for _, tag := range f.Tags {
		t.add(lookUp(tag.Values, func(v string) []uint32 { return m.index.list(tag.Name, v) }), nil)
	}
	return t
}

func lookUp[K any](keys []K, list func(K) []uint32) iter.Seq[[]uint32] {
	return func(yield func([]uint32) bool) {
		for _, key := range keys {
			if !yield(list(key)) {
				return
			}
		}
	}
}

func (m *Model) ofKind(kind int) []uint32 {
	if kind != int(uint16(kind)) {
		return nil
	}
	return m.kinds[uint16(kind)]
}

// membership tests whether an entry's key is in a list; of a long one it makes a set.
func membership[K comparable](keys []K, of func(e *corpus.Entry) K) func(e *corpus.Entry) bool {
	if len(keys) <= 8 {
		return func(e *corpus.Entry) bool { return slices.Contains(keys, of(e)) }
	}
	set := sync.OnceValue(func() map[K]bool {
		set := make(map[K]bool, len(keys))
		for _, key := range keys {
			set[key] = true
		}
		return set
	})
	return func(e *corpus.Entry) bool { return set()[of(e)] }
}

// add adds a condition of postings, cut to the span.
func (t *matcher) add(lists iter.Seq[[]uint32], test func(e *corpus.Entry) bool) {
	c := condition{test: test}
	for list := range lists {
		if list = within(list, t.low, t.high); len(list) > 0 {
			c.lists = append(c.lists, list)
			c.total += len(list)
		}
	}
	t.conditions = append(t.conditions, c)
}

// within cuts ascending ranks to [low, high).
func within(list []uint32, low, high uint32) []uint32 {
	if len(list) > 0 && list[0] < low {
		from, _ := slices.BinarySearch(list, low)
		list = list[from:]
	}
	if len(list) > 0 && list[len(list)-1] >= high {
		to, _ := slices.BinarySearch(list, high)
		list = list[:to]
	}
	return list
}

// passes reports whether the event of this rank, which lies in the span, meets every condition but
// the one already known to be met.
func (t *matcher) passes(rank uint32, known *condition) bool {
	for i := range t.conditions {
		c := &t.conditions[i]
		if c == known {
			continue
		}
		if c.test != nil {
			if !c.test(t.m.corpus.Entry(int(t.m.ranks[rank]))) {
				return false
			}
		} else if !c.has(rank, t.low, t.high) {
			return false
		}
	}
	return true
}

// has reports whether rank is in any of the lists: by search in few, by a set of bits for many.
func (c *condition) has(rank, low, high uint32) bool {
	if len(c.lists) <= 4 {
		for _, list := range c.lists {
			if _, ok := slices.BinarySearch(list, rank); ok {
				return true
			}
		}
		return false
	}
	if c.window.words == nil {
		c.window = newBitset(low, high)
		for _, list := range c.lists {
			c.window.add(list)
		}
	}
	return c.window.has(rank)
}

// newestFirst merges the lists from their ends, each rank once. Many lists meet in a set of bits
// for one window of ranks after another, each four times the last, so that a filter with a small
// limit does not pay for the whole of its lists.
func (c *condition) newestFirst(low, high uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if len(c.lists) == 1 {
			for _, rank := range slices.Backward(c.lists[0]) {
				if !yield(rank) {
					return
				}
			}
			return
		}
		for size, end := uint32(4096), high; end > low; size *= 4 {
			start := end - min(size, end-low)
			window := newBitset(start, end)
			left := 0
			for _, list := range c.lists {
				window.add(within(list, start, end))
				if list[0] < start {
					left++
				}
			}
			for rank := range window.descending() {
				if !yield(rank) {
					return
				}
			}
			if left == 0 {
				return
			}
			end = start
		}
	}
}

// bitset is a set of ranks from base upwards.
type bitset struct {
	base  uint32
	words []uint64
}

func newBitset(low, high uint32) bitset {
	return bitset{low, make([]uint64, (high-low+63)/64)}
}

func (b *bitset) add(ranks []uint32) {
	for _, rank := range ranks {
		at := rank - b.base
		b.words[at>>6] |= 1 << (at & 63)
	}
}

func (b *bitset) has(rank uint32) bool {
	at := rank - b.base
	return b.words[at>>6]>>(at&63)&1 == 1
}

func (b *bitset) descending() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for w, word := range slices.Backward(b.words) {
			for word != 0 {
				bit := 63 - bits.LeadingZeros64(word)
				word &^= 1 << bit
				if !yield(b.base + uint32(w)<<6 + uint32(bit)) {
					return
				}
			}
		}
	}
}
