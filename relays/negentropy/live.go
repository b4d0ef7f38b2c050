package negentropy

import (
	"slices"
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
	if createdAt == Infinity {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k, i, found := l.find(createdAt, id)
	if found {
		return false
	}
	if len(l.blocks) == 0 {
		l.blocks = append(l.blocks, l.newBlock())
	}
	if len(l.blocks[k].ids) == blockMax {
		k, i = l.divide(k, i)
	}
	b := l.writable(k)
	b.times = slices.Insert(b.times, i, createdAt)
	b.ids = slices.Insert(b.ids, i, *id)
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
	b.times = slices.Delete(b.times, i, i+1)
	b.ids = slices.Delete(b.ids, i, i+1)
	b.sum.Sub(id)
	l.count--
	l.latest = nil
	switch {
	case len(b.ids) == 0:
		l.blocks = slices.Delete(l.blocks, k, k+1)
	case k > 0:
		l.unite(k - 1)
	case len(l.blocks) > 1:
		l.unite(0)
	}
	return true
}

// Len returns the number of items.
func (l *Live) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// find returns the block and the place in it where an item is or would go. Without blocks all is 0.
func (l *Live) find(createdAt uint64, id *ID) (k, i int, found bool) {
	lo, hi := 0, len(l.blocks)
	for lo < hi { // the first block that begins above the item
		middle := int(uint(lo+hi) / 2)
		if b := l.blocks[middle]; compareItems(b.times[0], &b.ids[0], createdAt, id) <= 0 {
			lo = middle + 1
		} else {
			hi = middle
		}
	}
	k = max(lo-1, 0)
	if len(l.blocks) == 0 {
		return 0, 0, false
	}
	b := l.blocks[k]
	i = search(b.times, b.ids, &Bound{createdAt, *id, IDSize})
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

// unite puts blocks k and k+1 together where one holds both with room to spare.
func (l *Live) unite(k int) {
	if len(l.blocks[k].ids)+len(l.blocks[k+1].ids) > blockMax/2 {
		return
	}
	b, c := l.writable(k), l.blocks[k+1]
	b.times, b.ids, b.sum = append(b.times, c.times...), append(b.ids, c.ids...), b.sum.Plus(c.sum)
	l.blocks = slices.Delete(l.blocks, k+1, k+2)
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
