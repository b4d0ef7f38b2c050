package prepare

import (
	"hash/maphash"
	"sync"
)

// Key stands for a text or an id in Seen. The zero key is none.
type Key [2]uint64

// Seen is a set of keys, of which each takes 21 to 43 bytes: ten million take 256 MiB. Its many
// small tables grow one by one, so that growing does not take the memory of both sizes at once. All
// methods may be called by several goroutines.
type Seen struct {
	seed   maphash.Seed // nobody can prepare keys that meet in one place
	tables [seenTables]seenTable
}

const seenTables = 256

type seenTable struct {
	mu    sync.Mutex
	slots []Key // open addressing; the zero key is free
	n     int
}

// NewSeen returns an empty set.
func NewSeen() *Seen { return &Seen{seed: maphash.MakeSeed()} }

// Has reports whether the key was added.
func (s *Seen) Has(key Key) bool {
	t, at := s.locate(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.slots) > 0 && *t.find(key, at) == key
}

// Add adds a key, and reports whether it is new.
func (s *Seen) Add(key Key) bool {
	t, at := s.locate(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	if 4*(t.n+1) > 3*len(t.slots) {
		old := t.slots
		t.slots = make([]Key, max(16, 2*len(old)))
		for _, key := range old {
			if key != (Key{}) {
				_, at := s.locate(key)
				*t.find(key, at) = key
			}
		}
	}
	slot := t.find(key, at)
	if *slot == key {
		return false
	}
	*slot = key
	t.n++
	return true
}

// locate returns a key's table, and where to look for it first.
func (s *Seen) locate(key Key) (t *seenTable, at uint64) {
	h := maphash.Comparable(s.seed, key)
	return &s.tables[h%seenTables], h / seenTables
}

// find returns a key's place: where it is, or where it would be.
func (t *seenTable) find(key Key, at uint64) *Key {
	mask := uint64(len(t.slots) - 1)
	for at &= mask; t.slots[at] != key && t.slots[at] != (Key{}); {
		at = (at + 1) & mask
	}
	return &t.slots[at]
}

// mostRemembered bounds the memory of a textSet to 512 MiB. Repeats beyond it are still found, at
// the merge, once their signatures are checked.
const mostRemembered = 24 << 20

// textSet remembers canonical event texts, so that one that comes again costs no second signature
// check. They are known by hashes with secret seeds: nobody can prepare a file in which one event
// passes for another.
type textSet struct {
	seeds [2]maphash.Seed
	seen  *Seen
	n     int
}

func newTextSet() *textSet {
	return &textSet{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, seen: NewSeen()}
}

// key may be called from any goroutine.
func (t *textSet) key(text []byte) Key {
	return Key{maphash.Bytes(t.seeds[0], text) | 1, maphash.Bytes(t.seeds[1], text)}
}

// repeats remembers a text by its key, and reports whether it came before.
func (t *textSet) repeats(key Key) bool {
	if t.n == mostRemembered {
		return t.seen.Has(key)
	}
	if !t.seen.Add(key) {
		return true
	}
	t.n++
	return false
}
