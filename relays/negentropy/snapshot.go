package negentropy

import "slices"

// Snapshot is what a Live held at one moment. It is a Storage, never changes, and is safe for
// concurrent use.
type Snapshot struct {
	blocks []*block
	starts []int // position of each block's first item, and the number of all
	sums   []Sum // of the items before each block, and of all
}

func newSnapshot(blocks []*block) *Snapshot {
	s := &Snapshot{slices.Clone(blocks), make([]int, len(blocks)+1), make([]Sum, len(blocks)+1)}
	for k, b := range blocks {
		s.starts[k+1] = s.starts[k] + len(b.ids)
		s.sums[k+1] = s.sums[k].Plus(b.sum)
	}
	return s
}

// block returns the block that holds position i, below Len, and where i lies in it.
func (s *Snapshot) block(i int) (b *block, k, at int) {
	lo, hi := 0, len(s.blocks) // the last block that starts at or before i lies in [lo, hi)
	for hi-lo > 1 {
		if middle := int(uint(lo+hi) / 2); s.starts[middle] <= i {
			lo = middle
		} else {
			hi = middle
		}
	}
	return s.blocks[lo], lo, i - s.starts[lo]
}

// Len implements Storage.
func (s *Snapshot) Len() int { return s.starts[len(s.blocks)] }

// Timestamp implements Storage.
func (s *Snapshot) Timestamp(i int) uint64 {
	b, _, at := s.block(i)
	return b.times[at]
}

// ID implements Storage.
func (s *Snapshot) ID(i int) *ID {
	b, _, at := s.block(i)
	return &b.ids[at]
}

// Run implements Storage.
func (s *Snapshot) Run(lo, hi int) []ID {
	b, _, at := s.block(lo)
	return b.ids[at:min(len(b.ids), at+hi-lo)]
}

// Sum implements Storage. It adds up at most half a block for either end.
func (s *Snapshot) Sum(lo, hi int) (sum Sum) {
	if hi-lo >= blockMax/2 {
		return s.prefix(hi).Minus(s.prefix(lo))
	}
	for lo < hi {
		ids := s.Run(lo, hi)
		sum = sum.Plus(sumOf(ids))
		lo += len(ids)
	}
	return sum
}

func (s *Snapshot) prefix(i int) Sum {
	if i == s.Len() {
		return s.sums[len(s.blocks)]
	}
	b, k, at := s.block(i)
	if at <= len(b.ids)/2 {
		return s.sums[k].Plus(sumOf(b.ids[:at]))
	}
	return s.sums[k+1].Minus(sumOf(b.ids[at:]))
}

// Search implements Storage.
func (s *Snapshot) Search(lo, hi int, bound Bound) int {
	if lo == hi {
		return lo
	}
	// The last block whose first item is below the bound holds the place, or ends at it.
	k, end := 0, len(s.blocks)
	for end-k > 1 {
		middle := int(uint(k+end) / 2)
		if b := s.blocks[middle]; bound.above(b.times[0], &b.ids[0]) {
			k = middle
		} else {
			end = middle
		}
	}
	b := s.blocks[k]
	return min(max(s.starts[k]+search(b.times, b.ids, &bound), lo), hi)
}
