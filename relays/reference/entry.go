package reference

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"relaybench/corpus"
)

// entry is one place of the index: this event stands in that group. A group holds what one value of a filter asks for, as all events of
// an author or under a tag; within it, entries stand in the order of an answer. Groups are cut down to 60 bits and may therefore
// hold strangers now and then: whatever is found is matched against the whole filter. Half an id decides ties and finds events by id, since
// finding two ids with the same half is as hard as breaking a 128-bit hash.
type entry struct {
	group uint64 // table and what it is about
	late  uint64 // the inverted created_at: newer comes first
	id    [2]uint64
	event uint64 // Seq, kind, a byte of the author
}

// What a group is about; it stands in the top four bits.
const (
	byID = iota + 1
	byTime
	byAuthor
	byAuthorKind
	byKind
	byTag
)

// maxSeq is the last number that an entry has room for.
const maxSeq = 1<<40 - 1

func (e *entry) seq() uint64  { return e.event >> 24 }
func (e *entry) kind() int    { return int(uint16(e.event >> 8)) }
func (e *entry) author() byte { return byte(e.event) }

func group(by int, subject uint64) uint64 { return uint64(by)<<60 | subject>>4 }

func timeGroup() uint64 { return group(byTime, 0) }

func kindGroup(kind int) uint64 { return group(byKind, uint64(kind)<<4) }

// Of keys the last bytes are taken: people search for keys that begin as they like.
func authorNumber(pk *corpus.PubKey) uint64 { return binary.LittleEndian.Uint64(pk[24:]) }

func authorGroup(pk *corpus.PubKey) uint64 { return group(byAuthor, authorNumber(pk)) }

func authorKindGroup(pk *corpus.PubKey, kind int) uint64 {
	return group(byAuthorKind, authorNumber(pk)<<20|uint64(kind)<<4)
}

// tagGroup takes name and value escaped as in canonical JSON. The hash is a quick one: who makes a tag that collides with another's gains no
// more than by using the other.
func tagGroup[T ~string | ~[]byte](name, value T) uint64 {
	h := mix(uint64(len(value)), 1)
	for i := range len(name) {
		h = mix(h, uint64(name[i]))
	}
	for ; len(value) >= 8; value = value[8:] {
		h = mix(h, uint64(value[0])|uint64(value[1])<<8|uint64(value[2])<<16|uint64(value[3])<<24|
			uint64(value[4])<<32|uint64(value[5])<<40|uint64(value[6])<<48|uint64(value[7])<<56)
	}
	for i := range len(value) {
		h = mix(h, uint64(value[i]))
	}
	return group(byTag, h)
}

// mix folds a 128-bit product, so that every bit in touches every bit out.
func mix(h, v uint64) uint64 {
	high, low := bits.Mul64(h^v^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return high ^ low
}

func idGroup(id *corpus.ID) uint64 { return group(byID, binary.BigEndian.Uint64(id[:])) }

func idHalf(id *corpus.ID) [2]uint64 {
	return [2]uint64{binary.BigEndian.Uint64(id[:]), binary.BigEndian.Uint64(id[8:])}
}

// compareEntries orders by group, then as an answer does.
func compareEntries(a, b *entry) int {
	switch {
	case a.group != b.group:
		return cmp.Compare(a.group, b.group)
	case a.late != b.late:
		return cmp.Compare(a.late, b.late)
	case a.id[0] != b.id[0]:
		return cmp.Compare(a.id[0], b.id[0])
	case a.id[1] != b.id[1]:
		return cmp.Compare(a.id[1], b.id[1])
	}
	return cmp.Compare(a.event, b.event)
}

// appendEntries appends the places where an event stands, in no order, and those of a tag that it has twice twice.
func appendEntries(list []entry, r *Record) []entry {
	e := entry{late: ^uint64(r.CreatedAt), id: idHalf(&r.ID), event: r.Seq<<24 | uint64(uint16(r.Kind))<<8 | uint64(r.PubKey[31])}
	for _, g := range [...]uint64{timeGroup(), authorGroup(&r.PubKey), authorKindGroup(&r.PubKey, r.Kind), kindGroup(r.Kind)} {
		e.group = g
		list = append(list, e)
	}
	for name, value := range r.indexedTags() {
		e.group = tagGroup(name, value)
		list = append(list, e)
	}
	e.group, e.late = idGroup(&r.ID), ^uint64(0) // whoever looks for an id does not know its time
	return append(list, e)
}

// sortEntries puts entries in order and drops repetitions.
func sortEntries(list []entry) []entry {
	slices.SortFunc(list, func(a, b entry) int { return compareEntries(&a, &b) })
	return slices.Compact(list)
}

// search returns where in a sorted list the first entry stands that is not before e.
func search(list []entry, e *entry) int {
	low, high := 0, len(list)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if compareEntries(&list[middle], e) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// mergeEntries merges two sorted lists into a new one.
func mergeEntries(a, b []entry) []entry {
	out := make([]entry, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compareEntries(&a[0], &b[0]) <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}
