package negentropy

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// fuzzSeeds are messages of real exchanges and the ways to break them.
func fuzzSeeds() [][]byte {
	seeds := [][]byte{{}, {0x61}, {0x62}, {0x30}, {0x61, 0, 0, 0}, {0x61, 0, 0, 2, 0}, {0x61, 0, 0, 2, 0xc0, 0x80, 0x80, 0x80, 0},
		{0x61, 0x80, 0x80, 5, 1, 9, 0, 1, 1, 9, 1}, append([]byte{0x61, 0, 0, 1}, make([]byte, 16)...)}
	for _, s := range scenarios(21, 100) {
		ours, theirs := NewSet(0), NewSet(0)
		for _, it := range s.ours {
			ours.Add(it.time, &it.id)
		}
		for _, it := range s.theirs {
			theirs.Add(it.time, &it.id)
		}
		ours.Seal()
		theirs.Seal()
		n, r := NewInitiator(ours, 0, nil, nil), NewResponder(theirs, 0)
		for message := n.Open(nil); !n.Done(); {
			reply, _ := r.Next(nil, message)
			seeds = append(seeds, message, reply, reply[:len(reply)/2])
			message, _ = n.Next(nil, reply)
		}
	}
	return seeds
}

func fuzzStorages(f *testing.F) []Storage {
	s := scenarios(21, 100)
	live := new(Live)
	for _, it := range s[3].theirs {
		live.Insert(it.time, &it.id)
	}
	return []Storage{sealed(f, s[0].theirs), live.Snapshot(), sealed(f, nil)}
}

func FuzzResponder(f *testing.F) {
	for _, seed := range fuzzSeeds() {
		f.Add(seed, 0)
		f.Add(seed, 4096)
	}
	storages := fuzzStorages(f)
	f.Fuzz(func(t *testing.T, message []byte, limit int) {
		for _, s := range storages {
			reply, err := NewResponder(s, limit).Next([]byte("head"), message)
			if !bytes.HasPrefix(reply, []byte("head")) {
				t.Fatalf("the head is gone: %x", reply)
			}
			reply = reply[4:]
			var place *FormatError
			if err != nil && (!errors.As(err, &place) || place.Offset < 0 || place.Offset > len(message) || len(reply) > 0) {
				t.Fatalf("%v with %d bytes", err, len(reply))
			}
			if most := max(limit, MinFrameLimit); limit > 0 && len(reply) > most {
				t.Fatalf("%d bytes at a limit of %d", len(reply), limit)
			}
			if len(reply) > 54*len(message)+IDSize*s.Len() {
				t.Fatalf("%d bytes for %d", len(reply), len(message))
			}
			if err == nil { // whatever is answered can be read
				n := NewInitiator(s, limit, nil, nil)
				n.Open(nil)
				if _, err := n.Next(nil, reply); err != nil {
					t.Fatalf("%x is answered %x: %v", message, reply, err)
				}
			}
		}
	})
}

func FuzzInitiator(f *testing.F) {
	for _, seed := range fuzzSeeds() {
		f.Add(seed, seed, 0)
		f.Add(seed, []byte{0x61, 0, 0, 2, 0}, 4096)
	}
	storages := fuzzStorages(f)
	f.Fuzz(func(t *testing.T, first, second []byte, limit int) {
		for _, s := range storages {
			seen, named := map[ID]int{}, 0
			count := func(ids []ID) {
				if len(ids) == 0 {
					t.Fatal("called for nothing")
				}
				for _, id := range ids {
					seen[id]++
				}
				named += len(ids)
			}
			n := NewInitiator(s, limit, func(ids []ID) {
				for _, id := range ids {
					if seen[id]++; seen[id] > 1 {
						t.Fatalf("%x is there twice", id)
					}
				}
			}, count)
			n.Open(nil)
			for _, message := range [][]byte{first, second} {
				if n.Done() {
					break
				}
				reply, err := n.Next([]byte("head"), message)
				if !bytes.HasPrefix(reply, []byte("head")) {
					t.Fatalf("the head is gone: %x", reply)
				}
				reply = reply[4:]
				var place *FormatError
				if err != nil && (!errors.As(err, &place) || place.Offset < 0 || place.Offset > len(message) || len(reply) > 0) {
					t.Fatalf("%v with %d bytes", err, len(reply))
				}
				if most := max(limit, MinFrameLimit); limit > 0 && len(reply) > most {
					t.Fatalf("%d bytes at a limit of %d", len(reply), limit)
				}
				if err != nil {
					break
				}
				if !n.Done() {
					if _, err := NewResponder(s, limit).Next(nil, reply); err != nil {
						t.Fatalf("%x is answered %x: %v", message, reply, err)
					}
				}
			}
			if named > (len(first)+len(second))/IDSize {
				t.Fatalf("%d ids from %d bytes", named, len(first)+len(second))
			}
		}
	})
}

func FuzzExchange(f *testing.F) {
	f.Add(uint64(1), uint16(100), uint16(100), uint8(5), 0, 0)
	f.Add(uint64(2), uint16(3000), uint16(2000), uint8(0), 1, 4096)
	f.Add(uint64(3), uint16(700), uint16(0), uint8(200), 5000, 1)
	f.Fuzz(func(t *testing.T, seed uint64, ours, theirs uint16, seconds uint8, up, down int) {
		r := rand.New(rand.NewPCG(seed, 0))
		all := makeItems(r, 1+int(max(ours, theirs))%3000, uint64(seconds)+1)
		var s scenario
		for _, it := range all {
			if r.IntN(1+len(all)) < int(ours) {
				s.ours = append(s.ours, it)
			}
			if r.IntN(1+len(all)) < int(theirs) {
				s.theirs = append(s.theirs, it)
			}
		}
		checkExchange(t, run(t, sealed(t, s.ours), up, responding(t, sealed(t, s.theirs), down)), s)
	})
}
