package negentropy

import (
	"slices"
	"sort"
	"sync"
)

// blockMax is how many items a block holds at most. An insert copies at most one block of 40 KB; a
// range's fingerprint adds up at most half a block at either end.
const blockMax = 1024

// Live is a sorted set that is kept up to date: what a relay keeps so that it need not build
// anything when a reconciliation opens. The zero value is empty and ready. It is safe for
// concurrent use; a reconciliation reads a Snapshot.
//
// An item takes 40 bytes where items come in ascending order, up to 80 at worst.
type Live struct {
	mu     sync.Mutex
	blocks []*block // none is empty
	count  int
	age    uint64    // of the next snapshot; blocks that are older may be part of one, and are copied before they change
	latest *Snapshot // nil when items came or went since
}

type block struct {
	times []uint64
	ids   []ID
	sum   Sum
	age   uint64
}

// Insert puts an item in; false means that it is there already. createdAt is in Unix seconds; an
// item at Infinity is not put in.
func (l *Live) Insert(createdAt uint64, id *ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, i, found := l.find(createdAt, id)
	if found || createdAt == Infinity {
		return false
	}
	if len(l.blocks) == 0 {
		l.blocks = append(l.blocks, l.newBlock())
	}
	if len(l.blocks[k].ids) == blockMax {
		k, i = l.divide(k, i)
	}
	b := l.writable(k)
	b.times, b.ids = slices.Insert(b.times, i, createdAt), slices.Insert(b.ids, i, *id)
	b.sum.Add(id)
	l.count++
	l.latest = nil
	return true
}

// Delete takes an item away; false means that it was not there.
func (l *Live) Delete(createdAt uint64, id *ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, i, found := l.find(createdAt, id)
	if !found {
		return false
	}
	b := l.writable(k)
	b.times, b.ids = slices.Delete(b.times, i, i+1), slices.Delete(b.ids, i, i+1)
	b.sum = b.sum.Minus(sumOf([]ID{*id}))
	l.count--
	l.latest = nil
	if len(b.ids) == 0 {
		l.blocks = slices.Delete(l.blocks, k, k+1)
		return true
	}
	// Two neighbours become one block where one holds both with room to spare.
	if k = max(k-1, 0); k+1 < len(l.blocks) && len(l.blocks[k].ids)+len(l.blocks[k+1].ids) <= blockMax/2 {
		b, c := l.writable(k), l.blocks[k+1]
		b.times, b.ids, b.sum = append(b.times, c.times...), append(b.ids, c.ids...), b.sum.Plus(c.sum)
		l.blocks = slices.Delete(l.blocks, k+1, k+2)
	}
	return true
}

// Len returns the number of items.
func (l *Live) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// locate returns the last block that begins below the bound, or else the first block, and the place
// in it of the first item that is not below the bound. There must be a block.
func locate(blocks []*block, b *Bound) (k, i int) {
	above := sort.Search(len(blocks), func(k int) bool { return !b.above(blocks[k].times[0], &blocks[k].ids[0]) })
	k = max(above-1, 0)
	return k, search(blocks[k].times, blocks[k].ids, b)
}

// find returns the block and the place in it where an item is or would go. Without blocks all is 0.
func (l *Live) find(createdAt uint64, id *ID) (k, i int, found bool) {
	if len(l.blocks) == 0 {
		return 0, 0, false
	}
	k, i = locate(l.blocks, &Bound{createdAt, *id, IDSize})
	if i == len(l.blocks[k].ids) && k+1 < len(l.blocks) {
		k, i = k+1, 0
	}
	b := l.blocks[k]
	return k, i, i < len(b.ids) && b.times[i] == createdAt && b.ids[i] == *id
}

func (l *Live) newBlock() *block {
	return &block{times: make([]uint64, 0, blockMax), ids: make([]ID, 0, blockMax), age: l.age}
}

// writable returns block k, or puts a copy in its place where a snapshot may hold it.
func (l *Live) writable(k int) *block {
	b := l.blocks[k]
	if b.age != l.age {
		c := l.newBlock()
		c.times, c.ids, c.sum = append(c.times, b.times...), append(c.ids, b.ids...), b.sum
		l.blocks[k], b = c, c
	}
	return b
}

// divide makes room in the full block k and returns where the place i has gone. Items mostly come
// in ascending order: the last block stays full then, and an empty one, which is filled at once,
// comes after it.
func (l *Live) divide(k, i int) (int, int) {
	if k == len(l.blocks)-1 && i == blockMax {
		l.blocks = append(l.blocks, l.newBlock())
		return k + 1, 0
	}
	const at = blockMax / 2
	b, c := l.writable(k), l.newBlock()
	c.times, c.ids = append(c.times, b.times[at:]...), append(c.ids, b.ids[at:]...)
	b.times, b.ids = b.times[:at], b.ids[:at]
	c.sum = sumOf(c.ids)
	b.sum = b.sum.Minus(c.sum)
	l.blocks = slices.Insert(l.blocks, k+1, c)
	if i > at {
		return k + 1, i - at
	}
	return k, i
}

// Snapshot returns the set as it is now. It costs a few microseconds for a hundred thousand items
// after a change, and next to nothing otherwise; what is not changed later is shared, not copied.
func (l *Live) Snapshot() *Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.latest == nil {
		l.latest = newSnapshot(l.blocks)
		l.age++
	}
	return l.latest
}

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
	k = sort.Search(len(s.blocks), func(k int) bool { return s.starts[k+1] > i })
	return s.blocks[k], k, i - s.starts[k]
}

// Len implements Storage.
func (s *Snapshot) Len() int { return s.starts[len(s.blocks)] }

// Run implements Storage.
func (s *Snapshot) Run(lo, hi int) ([]uint64, []ID) {
	b, _, at := s.block(lo)
	end := min(len(b.ids), at+hi-lo)
	return b.times[at:end], b.ids[at:end]
}

// Sum implements Storage. It adds up at most half a block for either end.
func (s *Snapshot) Sum(lo, hi int) (sum Sum) {
	if hi-lo >= blockMax/2 {
		return s.prefix(hi).Minus(s.prefix(lo))
	}
	for lo < hi {
		_, ids := s.Run(lo, hi)
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
	k, i := locate(s.blocks, &bound)
	return min(max(s.starts[k]+i, lo), hi)
}
