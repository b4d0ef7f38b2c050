package negentropy

import "hash/maphash"

// tableSeed keeps a hostile relay from choosing ids that all want the same slot.
var tableSeed = maphash.MakeSeed()

// idTable is the set of the ids in one list: open addressing over positions in the list, memory
// kept between lists. It takes at most half of what the list does.
type idTable struct {
	ids   []ID
	slots []int32 // position + 1, negative once taken, 0 for empty
	mask  uint64
}

func (t *idTable) fill(ids []ID) {
	size := 16
	for size < 2*len(ids) {
		size *= 2
	}
	if size > cap(t.slots) {
		t.slots = make([]int32, size)
	} else {
		t.slots = t.slots[:size]
		clear(t.slots)
	}
	t.ids, t.mask = ids, uint64(size-1)
	for i := range ids {
		if slot := t.find(&ids[i]); *slot == 0 {
			*slot = int32(i + 1)
		}
	}
}

// find returns the slot of an id, or the empty one where it would go.
func (t *idTable) find(id *ID) *int32 {
	for at := maphash.Bytes(tableSeed, id[:]); ; at++ {
		slot := &t.slots[at&t.mask]
		if i := max(*slot, -*slot); i == 0 || t.ids[i-1] == *id {
			return slot
		}
	}
}

// take marks an id as taken and reports whether it was there.
func (t *idTable) take(id *ID) bool {
	slot := t.find(id)
	if *slot > 0 {
		*slot = -*slot
	}
	return *slot != 0
}

// rest calls each with stretches of the ids that were not taken, in the order of the list, each id
// once.
func (t *idTable) rest(each func([]ID)) {
	from := 0
	for i := range t.ids {
		if *t.find(&t.ids[i]) != int32(i+1) {
			report(each, t.ids[from:i])
			from = i + 1
		}
	}
	report(each, t.ids[from:])
	t.ids = nil // the list is the caller's
}
