package download

import (
	"encoding/binary"
	"hash/maphash"
	"sync"

	"relaybench/corpus"
)

// seen holds the ids of all events that are kept, each by its first 16 bytes: to make two events that agree in them takes some 2^64 hashes, and
// whoever did so would keep one of the two out. In tables between three eighths and three quarters full, an id takes 21 to 43 bytes: ten
// million take 256 MiB. Many small tables grow one by one, so that growing does not take the memory of both sizes at once.
type seen struct {
	seed   maphash.Seed // nobody can prepare ids that meet in one place
	tables [seenTables]seenTable
}

const seenTables = 256

type seenTable struct {
	mu    sync.Mutex
	slots [][2]uint64 // open addressing; zero is free
	n     int
}

func newSeen() *seen { return &seen{seed: maphash.MakeSeed()} }

// locate returns the id's table, the key it has there and where to look for it first.
func (s *seen) locate(id *corpus.ID) (t *seenTable, key [2]uint64, at uint64) {
	key = [2]uint64{binary.BigEndian.Uint64(id[:]) | 1, binary.BigEndian.Uint64(id[8:])} // never zero
	h := maphash.Comparable(s.seed, key)
	return &s.tables[h%seenTables], key, h / seenTables
}

// has may be called from any goroutine, as add.
func (s *seen) has(id *corpus.ID) bool {
	t, key, at := s.locate(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.slots) > 0 && t.slots[t.find(key, at)] == key
}

// add reports whether the id is new.
func (s *seen) add(id *corpus.ID) bool {
	t, key, at := s.locate(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.slots) == 0 {
		t.slots = make([][2]uint64, 16)
	}
	slot := t.find(key, at)
	if t.slots[slot] == key {
		return false
	}
	if 4*(t.n+1) > 3*len(t.slots) {
		t.grow(s)
		slot = t.find(key, at)
	}
	t.slots[slot] = key
	t.n++
	return true
}

// find returns the key's place: where it is, or where it would be.
func (t *seenTable) find(key [2]uint64, at uint64) uint64 {
	mask := uint64(len(t.slots) - 1)
	at &= mask
	for t.slots[at] != key && t.slots[at] != [2]uint64{} {
		at = (at + 1) & mask
	}
	return at
}

func (t *seenTable) grow(s *seen) {
	old := t.slots
	t.slots = make([][2]uint64, 2*len(old))
	for _, key := range old {
		if key != [2]uint64{} {
			t.slots[t.find(key, maphash.Comparable(s.seed, key)/seenTables)] = key
		}
	}
}
