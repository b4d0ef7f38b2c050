package reference

import (
	"encoding/binary"
	"hash/maphash"
	"sync/atomic"
)

// bloom remembers in a fixed 1 MiB which notes may exist. Nearly every event asks for notes that do not (is it deleted, has its
// author vanished), and each such question would be a statement to SQLite. It is right to say no; a yes has to be checked.
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

// places cuts four bit numbers out of two hashes.
func (b *bloom) places(key []byte) (bits [4]uint32) {
	h := maphash.Bytes(b.seed, key)
	var again [8]byte
	binary.LittleEndian.PutUint64(again[:], h)
	g := maphash.Bytes(b.seed, again[:])
	const mask = 1<<23 - 1
	return [4]uint32{uint32(h) & mask, uint32(h>>32) & mask, uint32(g) & mask, uint32(g>>32) & mask}
}
