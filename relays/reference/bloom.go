package reference

import (
	"encoding/binary"
	"hash/maphash"
	"sync/atomic"
)

// bloom remembers in a fixed 1 MiB which ids or notes may exist. Nearly every event asks for some that do not (is it here already, is it
// deleted, has its author vanished), and each such question would go to the engine. It is right to say no; a yes has to be checked.
type bloom struct {
	seed maphash.Seed
	bits [1 << 17]atomic.Uint64
}

func newBloom() *bloom { return &bloom{seed: maphash.MakeSeed()} }

func (b *bloom) add(key []byte) {
	for _, bit := range b.places(key) {
		b.bits[bit/64].Or(1 << (bit % 64))
	}
}

func (b *bloom) mayHave(key []byte) bool {
	for _, bit := range b.places(key) {
		if b.bits[bit/64].Load()&(1<<(bit%64)) == 0 {
			return false
		}
	}
	return true
}

// Ids are hashes already: four bit numbers are cut out of half of one.
func (b *bloom) addID(half [2]uint64) {
	for _, bit := range idPlaces(half) {
		b.bits[bit/64].Or(1 << (bit % 64))
	}
}

func (b *bloom) mayHaveID(half [2]uint64) bool {
	for _, bit := range idPlaces(half) {
		if b.bits[bit/64].Load()&(1<<(bit%64)) == 0 {
			return false
		}
	}
	return true
}

func idPlaces(half [2]uint64) [4]uint32 {
	const mask = 1<<23 - 1
	return [4]uint32{uint32(half[0]) & mask, uint32(half[0]>>32) & mask, uint32(half[1]) & mask, uint32(half[1]>>32) & mask}
}

// places cuts four bit numbers out of two hashes.
func (b *bloom) places(key []byte) (bits [4]uint32) {
	h := maphash.Bytes(b.seed, key)
	var again [8]byte
	binary.LittleEndian.PutUint64(again[:], h)
	g := maphash.Bytes(b.seed, again[:])
	const mask = 1<<23 - 1
	return [4]uint32{uint32(h) & mask, uint32(h>>32) & mask, uint32(g) & mask, uint32(g>>32) & mask}
}
