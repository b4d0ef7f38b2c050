package reference

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
)

// segment is a sorted part of the index that is on disk, cut into blocks. It never changes; merging makes another out of several. A
// segment holds the entries of the events whose Seq is above the one before's last, up to its own.
type segment struct {
	id      uint64
	last    uint64
	entries int
	first   []entry // of each block
	cached  []atomic.Pointer[block]

	// Guarded by the index.
	pins int
	gone bool // another has taken its place; its rows go when nobody reads it any more
}

// States of a segment, the first byte of its row. What is not live when a store is opened is left over and deleted.
const (
	segmentUnfinished = iota
	segmentLive
	segmentGone
)

// blockKey is a block's key in its table.
func blockKey(segment uint64, n int) uint64 { return segment<<24 | uint64(n) }

// encode writes a live segment's row: last, entries, and the first entry of each block.
func (s *segment) encode() []byte {
	b := binary.AppendUvarint([]byte{segmentLive}, s.last)
	b = binary.AppendUvarint(b, uint64(s.entries))
	return appendBlock(b, s.first)
}

var errBrokenSegment = errors.New("index segment cannot be read: the store is damaged")

func decodeSegment(id uint64, row []byte) (*segment, error) {
	s := &segment{id: id}
	rest := row[1:]
	for _, field := range []func(uint64){
		func(n uint64) { s.last = n },
		func(n uint64) { s.entries = int(n) },
	} {
		value, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, errBrokenSegment
		}
		field(value)
		rest = rest[n:]
	}
	if len(rest) == 0 {
		return s, nil
	}
	var err error
	s.first, err = decodeBlock(rest)
	s.cached = make([]atomic.Pointer[block], len(s.first))
	return s, err
}

// read returns a block's entries.
func (s *segment) read(v engineView, i int, cache *blockCache) ([]entry, error) {
	if b := s.cached[i].Load(); b != nil {
		if !b.used.Load() {
			b.used.Store(true)
		}
		return b.list, nil
	}
	list, err := s.readAside(v, i)
	if err == nil {
		cache.keep(&s.cached[i], list)
	}
	return list, err
}

// readAside reads a block without a thought for the cache.
func (s *segment) readAside(v engineView, i int) ([]entry, error) {
	text, err := v.get(blocksTable, blockKey(s.id, i))
	if err != nil {
		return nil, err
	}
	return decodeBlock(text)
}

// from returns the entries from e on, as far as their block goes, and the number of the block after it.
func (s *segment) from(v engineView, e *entry, cache *blockCache) (list []entry, next int, err error) {
	next = search(s.first, e)
	if next > 0 {
		if list, err = s.read(v, next-1, cache); err != nil {
			return nil, 0, err
		}
		if list = list[search(list, e):]; len(list) > 0 {
			return list, next, nil
		}
	}
	return s.following(v, e.group, next, cache)
}

// following returns block n if it begins with that group.
func (s *segment) following(v engineView, group uint64, n int, cache *blockCache) (list []entry, next int, err error) {
	if n == len(s.first) || s.first[n].group != group {
		return nil, len(s.first), nil
	}
	list, err = s.read(v, n, cache)
	return list, n + 1, err
}

// block is a block in memory.
type block struct {
	list []entry
	used atomic.Bool // since the hand last passed
}

// cacheBlocks bounds the blocks in memory, of 16 KB each.
const cacheBlocks = 2048

// blockCache gives up blocks that were not used for longest, about. Blocks hang at their segments, so that finding one takes no lock.
type blockCache struct {
	mu   sync.Mutex
	ring []cachedBlock
	hand int
}

type cachedBlock struct {
	*block
	place *atomic.Pointer[block]
}

func (c *blockCache) keep(place *atomic.Pointer[block], list []entry) {
	b := &block{list: list}
	if !place.CompareAndSwap(nil, b) {
		return // another reader was faster
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ring) < cacheBlocks {
		c.ring = append(c.ring, cachedBlock{b, place})
		return
	}
	for c.ring[c.hand].used.Swap(false) {
		c.hand = (c.hand + 1) % len(c.ring)
	}
	c.ring[c.hand].place.Store(nil)
	c.ring[c.hand] = cachedBlock{b, place}
	c.hand = (c.hand + 1) % len(c.ring)
}
