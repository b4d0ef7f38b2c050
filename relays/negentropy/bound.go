package negentropy

import (
	"bytes"
	"cmp"
)

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
	return cmp.Or(cmp.Compare(b.Timestamp, o.Timestamp), bytes.Compare(b.Prefix[:], o.Prefix[:]))
}

// between makes the shortest bound above item i-1 and not above item i of the storage.
func between(s Storage, i int) Bound {
	below, at := s.Timestamp(i-1), s.Timestamp(i)
	if below != at {
		return Bound{Timestamp: at}
	}
	a, b := s.ID(i-1), s.ID(i)
	shared := 0
	for shared < IDSize-1 && a[shared] == b[shared] {
		shared++
	}
	bound := Bound{Timestamp: at, Length: shared + 1}
	copy(bound.Prefix[:], b[:bound.Length])
	return bound
}
