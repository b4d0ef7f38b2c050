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
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
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
	// Run returns the timestamps, in Unix seconds, and the ids of the items from lo on, as many as
	// lie together in memory: at least one and at most hi-lo, for lo < hi. They must not be written
	// to.
	Run(lo, hi int) (times []uint64, ids []ID)
	// Sum returns the sum of the ids in [lo, hi).
	Sum(lo, hi int) Sum
	// Search returns the first position in [lo, hi) whose item is not below the bound, hi where
	// there is none.
	Search(lo, hi int, b Bound) int
}

func itemAt(s Storage, i int) (time uint64, id *ID) {
	times, ids := s.Run(i, i+1)
	return times[0], &ids[0]
}

// Bound is the upper end, exclusive, of a range: a timestamp and the first bytes of an id. The zero
// Bound is below everything.
type Bound struct {
	Timestamp uint64
	Prefix    ID  // bytes from Length on are zero
	Length    int // of the prefix, 0 to 32
}

// infinite is above every item.
var infinite = Bound{Timestamp: Infinity}

// above reports whether the item is below the bound. A prefix counts as if zero bytes followed.
func (b *Bound) above(timestamp uint64, id *ID) bool {
	if timestamp != b.Timestamp {
		return timestamp < b.Timestamp
	}
	return b.Length > 0 && bytes.Compare(id[:], b.Prefix[:]) < 0
}

// compare orders bounds by where they lie; prefixes that differ by zero bytes at their ends are
// equal.
func (b *Bound) compare(o *Bound) int {
	return compareItems(b.Timestamp, &b.Prefix, o.Timestamp, &o.Prefix)
}

// between makes the shortest bound above item i-1 and not above item i of the storage.
func between(s Storage, i int) Bound {
	below, a := itemAt(s, i-1)
	at, b := itemAt(s, i)
	bound := Bound{Timestamp: at}
	if below == at {
		for bound.Length < IDSize-1 && a[bound.Length] == b[bound.Length] {
			bound.Length++
		}
		bound.Length++
		copy(bound.Prefix[:], b[:bound.Length])
	}
	return bound
}

// stride is how many items share one prefix sum. A range's sum then costs at most 2·(stride-1)
// additions beside two look-ups, and the sums of a million items take 2 MB instead of 32: building
// them touches little memory, which is what costs in a fresh process.
const stride = 16

// Set is a sealed, sorted set of items. It takes 42 bytes an item. Once sealed it is safe for
// concurrent use.
type Set struct {
	times []uint64
	ids   []ID
	sums  []Sum // sums[k] covers the items below k·stride; nil before Seal
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
	if s.sums != nil {
		return errors.New("negentropy: the set is sealed already")
	}
	n := len(s.ids)
	sums := make([]Sum, n/stride+1)
	var sum Sum
	for i := range s.ids {
		if i > 0 && s.times[i] <= s.times[i-1] {
			switch order := compareItems(s.times[i-1], &s.ids[i-1], s.times[i], &s.ids[i]); {
			case order == 0:
				return fmt.Errorf("negentropy: item %x is there twice", s.ids[i])
			case order > 0:
				s.sort()
				return s.Seal()
			}
		}
		if sum.Add(&s.ids[i]); (i+1)%stride == 0 {
			sums[(i+1)/stride] = sum
		}
	}
	if n > 0 && s.times[n-1] == Infinity {
		return fmt.Errorf("negentropy: item %x has the timestamp that stands for infinity", s.ids[n-1])
	}
	s.sums = sums
	return nil
}

// compareItems orders items as the protocol does.
func compareItems(timeA uint64, a *ID, timeB uint64, b *ID) int {
	if timeA != timeB {
		return cmp.Compare(timeA, timeB)
	}
	return bytes.Compare(a[:], b[:])
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

// Run implements Storage: all of the range.
func (s *Set) Run(lo, hi int) ([]uint64, []ID) { return s.times[lo:hi], s.ids[lo:hi] }

// Sum implements Storage.
func (s *Set) Sum(lo, hi int) Sum {
	if hi-lo <= stride {
		return sumOf(s.ids[lo:hi])
	}
	return s.prefix(hi).Minus(s.prefix(lo))
}

// prefix returns the sum of the ids below i.
func (s *Set) prefix(i int) Sum { return s.sums[i/stride].Plus(sumOf(s.ids[i-i%stride : i])) }

// Search implements Storage.
func (s *Set) Search(lo, hi int, b Bound) int { return lo + search(s.times[lo:hi], s.ids[lo:hi], &b) }

// search returns the first position whose item is not below the bound. It calls no function for
// each step, as sort.Search would: it is called for each range of a message.
func search(times []uint64, ids []ID, b *Bound) int {
	lo, hi := 0, len(times)
	for lo < hi {
		if middle := int(uint(lo+hi) / 2); b.above(times[middle], &ids[middle]) {
			lo = middle + 1
		} else {
			hi = middle
		}
	}
	return lo
}

// Between returns the part of a storage whose timestamps lie in [since, until], both inclusive as
// in a filter (NIP-01), as a storage of its own that shares the items.
func Between(s Storage, since, until uint64) Storage {
	v := &timeRange{of: s, lo: s.Search(0, s.Len(), Bound{Timestamp: since}), hi: s.Len()}
	if until < Infinity {
		v.hi = s.Search(v.lo, s.Len(), Bound{Timestamp: until + 1})
	}
	return v
}

type timeRange struct {
	of     Storage
	lo, hi int
}

func (v *timeRange) Len() int                        { return v.hi - v.lo }
func (v *timeRange) Sum(lo, hi int) Sum              { return v.of.Sum(v.lo+lo, v.lo+hi) }
func (v *timeRange) Run(lo, hi int) ([]uint64, []ID) { return v.of.Run(v.lo+lo, v.lo+hi) }
func (v *timeRange) Search(lo, hi int, b Bound) int  { return v.of.Search(v.lo+lo, v.lo+hi, b) - v.lo }

// Sum is a sum of ids, read as little-endian integers, mod 2^256: four words, least significant
// first.
type Sum [4]uint64

// Add adds an id.
func (s *Sum) Add(id *ID) {
	*s = s.Plus(Sum{binary.LittleEndian.Uint64(id[0:]), binary.LittleEndian.Uint64(id[8:]),
		binary.LittleEndian.Uint64(id[16:]), binary.LittleEndian.Uint64(id[24:])})
}

// Plus returns s + o.
func (s Sum) Plus(o Sum) Sum {
	var c uint64
	s[0], c = bits.Add64(s[0], o[0], 0)
	s[1], c = bits.Add64(s[1], o[1], c)
	s[2], c = bits.Add64(s[2], o[2], c)
	s[3], _ = bits.Add64(s[3], o[3], c)
	return s
}

// Minus returns s - o.
func (s Sum) Minus(o Sum) Sum {
	var b uint64
	s[0], b = bits.Sub64(s[0], o[0], 0)
	s[1], b = bits.Sub64(s[1], o[1], b)
	s[2], b = bits.Sub64(s[2], o[2], b)
	s[3], _ = bits.Sub64(s[3], o[3], b)
	return s
}

// sumOf keeps the four words in registers, which an array would not be.
func sumOf(ids []ID) Sum {
	var s0, s1, s2, s3, c uint64
	for i := range ids {
		id := &ids[i]
		s0, c = bits.Add64(s0, binary.LittleEndian.Uint64(id[0:]), 0)
		s1, c = bits.Add64(s1, binary.LittleEndian.Uint64(id[8:]), c)
		s2, c = bits.Add64(s2, binary.LittleEndian.Uint64(id[16:]), c)
		s3, _ = bits.Add64(s3, binary.LittleEndian.Uint64(id[24:]), c)
	}
	return Sum{s0, s1, s2, s3}
}

// FingerprintSize is the length of a fingerprint in bytes.
const FingerprintSize = 16

// Fingerprint is what stands for a range: the first 16 bytes of sha256(sum of the ids ‖
// varint(count)).
type Fingerprint = [FingerprintSize]byte

// FingerprintOf returns the fingerprint of the items in [lo, hi).
func FingerprintOf(s Storage, lo, hi int) Fingerprint {
	var text [IDSize + maxVarint]byte
	for i, word := range s.Sum(lo, hi) {
		binary.LittleEndian.PutUint64(text[8*i:], word)
	}
	hash := sha256.Sum256(appendVarint(text[:IDSize], uint64(hi-lo)))
	return Fingerprint(hash[:FingerprintSize])
}
