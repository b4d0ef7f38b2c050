package load

import (
	"encoding/binary"
	"time"

	"relaybench/corpus"
)

// inflight maps the ids of unacknowledged events to their index and send time. It is an
// open-addressing table of four times the window: a Go map costs three times as much per event and
// allocates now and then in the middle of the measurement.
type inflight struct {
	slots []sent
	mask  uint64
	len   int
}

type sent struct {
	id    corpus.ID
	at    time.Duration
	index int32
	used  bool
}

func newInflight(window int) *inflight {
	size := 4
	for size < 4*window {
		size *= 2
	}
	return &inflight{slots: make([]sent, size), mask: uint64(size - 1)}
}

// home is where an id wants to be. Ids are hashes, so that any eight bytes spread evenly.
func (f *inflight) home(id *corpus.ID) uint64 { return binary.LittleEndian.Uint64(id[:]) & f.mask }

// add notes an event as sent. The table grows where it is half full.
func (f *inflight) add(id *corpus.ID, index int, at time.Duration) {
	if 2*f.len >= len(f.slots) {
		more := newInflight(len(f.slots) / 2)
		f.drain(func(s sent) { more.add(&s.id, int(s.index), s.at) })
		*f = *more
	}
	i := f.home(id)
	for f.slots[i].used {
		i = (i + 1) & f.mask
	}
	f.slots[i] = sent{id: *id, at: at, index: int32(index), used: true}
	f.len++
}

// take removes an event and returns it; ok is false for an id that is not in flight.
func (f *inflight) take(id *corpus.ID) (s sent, ok bool) {
	i := f.home(id)
	for ; f.slots[i].used; i = (i + 1) & f.mask {
		if f.slots[i].id == *id {
			s = f.slots[i]
			f.remove(i)
			return s, true
		}
	}
	return s, false
}

// remove empties slot i and moves back what had to step past it, so that no tombstones pile up.
func (f *inflight) remove(i uint64) {
	f.len--
	for j := (i + 1) & f.mask; f.slots[j].used; j = (j + 1) & f.mask {
		if (j-f.home(&f.slots[j].id))&f.mask >= (j-i)&f.mask {
			f.slots[i] = f.slots[j]
			i = j
		}
	}
	f.slots[i].used = false
}

// drain empties the table into each.
func (f *inflight) drain(each func(sent)) {
	for i := range f.slots {
		if f.slots[i].used {
			each(f.slots[i])
			f.slots[i].used = false
		}
	}
	f.len = 0
}
