package reference

import (
	"slices"
	"sync"
	"sync/atomic"
)

// index finds events by what filters ask for. Putting a dozen entries for every event into a tree where they belong would rewrite most of
// the tree with every group: the disk would be busy with that, and the relay with the disk. So the index is kept in sorted lists that never
// change: each group of events adds a short one in memory, short ones are merged to longer ones, and when enough has come together it
// becomes a segment on disk (merge.go). Reading merges all of them. What is in memory alone is made again from the events when a store is opened.
type index struct {
	cache blockCache

	mu      sync.Mutex // guards what follows, and pins; who changes state also holds the store's writing
	state   *indexState
	garbage []*segment // to be deleted
}

// indexState is what a reader sees. It never changes.
type indexState struct {
	runs     [][]entry // in memory, oldest first
	segments []*segment
}

// pin returns the state and keeps its segments from being deleted until unpin.
func (x *index) pin() *indexState {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.state.segments {
		s.pins++
	}
	return x.state
}

// unpin reports whether there is something to delete now.
func (x *index) unpin(state *indexState) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range state.segments {
		s.pins--
		x.discard(s)
	}
	return len(x.garbage) > 0
}

// discard needs x.mu.
func (x *index) discard(s *segment) {
	if s.gone && s.pins == 0 {
		x.garbage = append(x.garbage, s)
	}
}

// set makes a new state known, and lets go of segments that have no place in it.
func (x *index) set(state *indexState, gone []*segment) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.state = state
	for _, s := range gone {
		s.gone = true
		x.discard(s)
	}
}

// takeGarbage returns the segments whose rows are to be deleted.
func (x *index) takeGarbage() []*segment {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.garbage
	x.garbage = nil
	return g
}

// withRun returns the state with one more list. Lists from number frozen on are merged as long as the last is not much shorter
// than the one before, which makes few of them at little cost.
func (s *indexState) withRun(run []entry, frozen int) *indexState {
	runs := slices.Clone(s.runs)
	for len(runs) > frozen && len(runs[len(runs)-1]) < 2*len(run) {
		run = mergeEntries(runs[len(runs)-1], run)
		runs = runs[:len(runs)-1]
	}
	return &indexState{append(runs, run), s.segments}
}

// inMemory counts the entries that are not yet in a segment.
func (s *indexState) inMemory() (n int) {
	for _, r := range s.runs {
		n += len(r)
	}
	return n
}

// last returns the highest Seq that segments cover.
func (s *indexState) last() uint64 {
	if len(s.segments) == 0 {
		return 0
	}
	return s.segments[len(s.segments)-1].last
}

// walks starts a walk over a group in every list that has it, from e on.
func (s *indexState) walks(dst []walk, v engineView, e *entry, cache *blockCache) ([]walk, error) {
	for _, run := range s.runs {
		if rest := run[search(run, e):]; len(rest) > 0 && rest[0].group == e.group {
			dst = append(dst, walk{list: rest})
		}
	}
	for _, seg := range s.segments {
		list, next, err := seg.from(v, e, cache)
		if err != nil {
			return dst, err
		}
		if len(list) > 0 && list[0].group == e.group {
			dst = append(dst, walk{list: list, segment: seg, next: next})
		}
	}
	return dst, nil
}

// find returns the numbers under which the event of an id entry may be stored, latest first: all but one of them are of events that went.
func (s *indexState) find(v engineView, e *entry, cache *blockCache) (seqs []uint64, err error) {
	var room [4]walk
	walks, err := s.walks(room[:0], v, e, cache)
	if err != nil {
		return nil, err
	}
	for i := range walks {
		for w := &walks[i]; len(w.list) > 0 && w.list[0].late == e.late && w.list[0].id == e.id; {
			seqs = append(seqs, w.list[0].seq())
			if err := w.step(v, cache); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(seqs)
	slices.Reverse(seqs)
	return seqs, nil
}

// walk goes along a group in one list. list begins with the entry it shows, and is empty at the end.
type walk struct {
	list    []entry
	segment *segment // nil in memory
	next    int      // the block after list
}

func (w *walk) step(v engineView, cache *blockCache) (err error) {
	group := w.list[0].group
	w.list = w.list[1:]
	switch {
	case len(w.list) > 0 && w.list[0].group != group:
		w.list = nil
	case len(w.list) == 0 && w.segment != nil:
		w.list, w.next, err = w.segment.following(v, group, w.next, cache)
	}
	return err
}

// newSegment makes a segment ready for reading.
func newSegment(id, last uint64, entries int, first []entry) *segment {
	return &segment{id: id, last: last, entries: entries, first: first, cached: make([]atomic.Pointer[block], len(first))}
}
