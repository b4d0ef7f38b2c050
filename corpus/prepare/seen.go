package prepare

import "hash/maphash"

// seenLimit bounds the memory of seen to 512 MiB. Repeats beyond it are still found, at the merge, once their signatures are checked.
const seenLimit = 24 << 20

// seen remembers canonical event texts by 128-bit keys, so that a text that comes again costs no second signature check. The keys
// are hashed with a secret seed: nobody can prepare a file in which one event passes for another.
type seen struct {
	seeds [2]maphash.Seed
	slots [][2]uint64 // open addressing; the zero key is free
	n     int
}

func newSeen() *seen {
	return &seen{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, slots: make([][2]uint64, 1<<12)}
}

// key may be called from any goroutine.
func (s *seen) key(text []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(s.seeds[0], text) | 1, maphash.Bytes(s.seeds[1], text)}
}

// add remembers key and reports whether it was there before.
func (s *seen) add(key [2]uint64) (repeated bool) {
	slot := s.slot(key)
	if *slot == key {
		return true
	}
	if s.n >= seenLimit {
		return false
	}
	if 4*(s.n+1) > 3*len(s.slots) {
		s.grow()
		slot = s.slot(key)
	}
	*slot = key
	s.n++
	return false
}

// slot returns key's place: where it is, or where it would be.
func (s *seen) slot(key [2]uint64) *[2]uint64 {
	mask := uint64(len(s.slots) - 1)
	at := key[1] & mask
	for s.slots[at] != key && s.slots[at] != [2]uint64{} {
		at = (at + 1) & mask
	}
	return &s.slots[at]
}

func (s *seen) grow() {
	old := s.slots
	s.slots = make([][2]uint64, 2*len(old))
	for _, key := range old {
		if key != [2]uint64{} {
			*s.slot(key) = key
		}
	}
}
