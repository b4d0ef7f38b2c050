package synthetic

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// randStream is a deterministic stream of choices. Only the 64-bit words of ChaCha8, whose
// algorithm is specified, are taken from the library; how they become choices is fixed here, since
// the methods of rand.Rand may change between Go versions. Every choice takes exactly one word.
type randStream struct {
	chacha *rand.ChaCha8
}

func newRandStream(seed [32]byte) *randStream {
	return &randStream{rand.NewChaCha8(seed)}
}

// restart continues as the stream that seed starts.
func (r *randStream) restart(seed [32]byte) { r.chacha.Seed(seed) }

// below64 maps a word w to ⌊w·n / 2^64⌋, a number in [0, n). Some numbers come up more often than
// others by a share of n/2^64 at most, which for the n in use here nobody can see.
func (r *randStream) below64(n uint64) uint64 {
	high, _ := bits.Mul64(r.chacha.Uint64(), n)
	return high
}

// below returns a number in [0, n).
func (r *randStream) below(n int) int { return int(r.below64(uint64(n))) }

// between returns a number in [low, high].
func (r *randStream) between(low, high int) int { return low + r.below(high-low+1) }

// chance is true in percent cases of a hundred.
func (r *randStream) chance(percent int) bool { return r.below(100) < percent }

// fill overwrites dst with random bytes, eight a word, little end first.
func (r *randStream) fill(dst []byte) {
	var word [8]byte
	for len(dst) > 0 {
		binary.LittleEndian.PutUint64(word[:], r.chacha.Uint64())
		dst = dst[copy(dst, word[:]):]
	}
}

// pickOne returns an element of list, each as likely as the next.
func pickOne[T any](r *randStream, list []T) T { return list[r.below(len(list))] }

// weighted is a value with its share of a table's total.
type weighted[T any] struct {
	weight int
	value  T
}

// pickWeighted returns a value from a table whose weights add up to 100.
func pickWeighted[T any](r *randStream, table []weighted[T]) T {
	x := r.below(100)
	for _, row := range table {
		if x -= row.weight; x < 0 {
			return row.value
		}
	}
	return table[len(table)-1].value
}

// derive hashes a seed, a purpose and an index into a seed of its own, so that any event's text,
// key or nonce can be had without those before it.
func derive(seed [32]byte, purpose string, index int) [32]byte {
	buf := make([]byte, 0, 64)
	buf = append(buf, seed[:]...)
	buf = append(buf, purpose...)
	buf = append(buf, 0)
	buf = binary.BigEndian.AppendUint64(buf, uint64(index))
	return sha256.Sum256(buf)
}
