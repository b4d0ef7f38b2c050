// Package negentropy is range-based set reconciliation, negentropy protocol version 1 (byte 0x61),
// which NIP-77 carries, and the client of NIP-77 over relays/wire. The harness plays both roles
// with it and must cost less than any relay it measures: ids stay binary, any range's fingerprint
// costs the same, and a repeated exchange allocates nothing.
//
//	Set, Live        what is reconciled: sealed once, or kept up to date and read through snapshots
//	Initiator        the side that asks and learns the difference
//	Responder        the side that answers
//	Reconcile        an Initiator against a relay
package negentropy

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// IDSize is the length of an id in bytes.
const IDSize = 32

// ID is an event's id.
type ID = [IDSize]byte

// Infinity is the timestamp above all others; no item may have it.
const Infinity = ^uint64(0)

// Storage is a sorted set of items as a reconciliation reads it: by timestamp, then by id.
// Positions count from 0. It must not change while a reconciliation reads it.
type Storage interface {
	Len() int
	// Timestamp returns the Unix seconds of the item at i.
	Timestamp(i int) uint64
	// ID returns the id of the item at i. It must not be written to.
	ID(i int) *ID
	// Sum returns the sum of the ids in [lo, hi).
	Sum(lo, hi int) Sum
	// Search returns the first position in [lo, hi) whose item is not below the bound, hi where
	// there is none.
	Search(lo, hi int, b Bound) int
	// Run returns ids from lo on, as many as lie together in memory: at least one and at most
	// hi-lo, for lo < hi. They must not be written to.
	Run(lo, hi int) []ID
}

// stride is how many items share one prefix sum. A range's sum then costs at most 2·(stride-1)
// additions beside two look-ups, and the sums of a million items take 2 MB instead of 32: building
// them touches little memory, which is what costs in a fresh process.
const stride = 16

// Set is a sealed, sorted set of items. It takes 42 bytes an item. Once sealed it is safe for
// concurrent use.
type Set struct {
	times  []uint64
	ids    []ID
	sums   []Sum // sums[k] covers the items below k·stride
	sealed bool
}

// NewSet makes an empty set with room for n items.
func NewSet(n int) *Set {
	return &Set{times: make([]uint64, 0, n), ids: make([]ID, 0, n)}
}

// Add puts an item in. createdAt is in Unix seconds and below Infinity. It must not be called after
// Seal.
func (s *Set) Add(createdAt uint64, id *ID) {
	s.times = append(s.times, createdAt)
	s.ids = append(s.ids, *id)
}

// Seal sorts the items where they are not sorted yet and makes the set ready to reconcile. An item
// that is there twice is an error, as is a timestamp of Infinity; the set is of no use then.
func (s *Set) Seal() error {
	if s.sealed {
		return errors.New("negentropy: the set is sealed already")
	}
	if !s.sorted() {
		s.sort()
	}
	s.sums = make([]Sum, 0, len(s.ids)/stride+1)
	var sum Sum
	for i := range s.ids {
		if i%stride == 0 {
			s.sums = append(s.sums, sum)
		}
		if i > 0 && s.times[i] == s.times[i-1] && s.ids[i] == s.ids[i-1] {
			return fmt.Errorf("negentropy: item %x is there twice", s.ids[i])
		}
		sum.Add(&s.ids[i])
	}
	if len(s.ids)%stride == 0 {
		s.sums = append(s.sums, sum)
	}
	if n := len(s.times); n > 0 && s.times[n-1] == Infinity {
		return fmt.Errorf("negentropy: item %x has the timestamp that stands for infinity", s.ids[n-1])
	}
	s.sealed = true
	return nil
}

// compareItems orders items as the protocol does.
func compareItems(timeA uint64, a *ID, timeB uint64, b *ID) int {
	if timeA != timeB {
		return cmp.Compare(timeA, timeB)
	}
	return bytes.Compare(a[:], b[:])
}

func (s *Set) sorted() bool {
	for i := 1; i < len(s.times); i++ {
		if s.times[i] <= s.times[i-1] && compareItems(s.times[i-1], &s.ids[i-1], s.times[i], &s.ids[i]) > 0 {
			return false
		}
	}
	return true
}

// sort moves keys that nearly always decide, and each item once.
func (s *Set) sort() {
	type key struct{ time, head, item uint64 }
	keys := make([]key, len(s.times))
	for i := range keys {
		keys[i] = key{s.times[i], binary.BigEndian.Uint64(s.ids[i][:]), uint64(i)}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.time != b.time {
			return cmp.Compare(a.time, b.time)
		}
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return bytes.Compare(s.ids[a.item][:], s.ids[b.item][:])
	})
	ids := make([]ID, len(keys))
	for i := range keys {
		s.times[i], ids[i] = keys[i].time, s.ids[keys[i].item]
	}
	s.ids = ids
}

// Len implements Storage.
func (s *Set) Len() int { return len(s.ids) }

// Timestamp implements Storage.
func (s *Set) Timestamp(i int) uint64 { return s.times[i] }

// ID implements Storage.
func (s *Set) ID(i int) *ID { return &s.ids[i] }

// Run implements Storage: all of the range.
func (s *Set) Run(lo, hi int) []ID { return s.ids[lo:hi] }

// Sum implements Storage.
func (s *Set) Sum(lo, hi int) Sum {
	if hi-lo <= stride {
		return sumOf(s.ids[lo:hi])
	}
	return s.prefix(hi).Minus(s.prefix(lo))
}

// prefix returns the sum of the ids below i.
func (s *Set) prefix(i int) Sum {
	start := i - i%stride
	return s.sums[i/stride].Plus(sumOf(s.ids[start:i]))
}

// Search implements Storage.
func (s *Set) Search(lo, hi int, b Bound) int { return lo + search(s.times[lo:hi], s.ids[lo:hi], &b) }

// search returns the first position whose item is not below the bound.
func search(times []uint64, ids []ID, b *Bound) int {
	lo, hi := 0, len(times)
	for lo < hi {
		middle := int(uint(lo+hi) / 2)
		if b.above(times[middle], &ids[middle]) {
			lo = middle + 1
		} else {
			hi = middle
		}
	}
	return lo
}
