package negentropy

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// Sum is a sum of ids, read as little-endian integers, mod 2^256: four words, least significant
// first.
type Sum [4]uint64

// Add adds an id.
func (s *Sum) Add(id *ID) {
	*s = s.Plus(Sum{binary.LittleEndian.Uint64(id[0:]), binary.LittleEndian.Uint64(id[8:]),
		binary.LittleEndian.Uint64(id[16:]), binary.LittleEndian.Uint64(id[24:])})
}

// Plus returns s + o.
func (s Sum) Plus(o Sum) Sum {
	var c uint64
	s[0], c = bits.Add64(s[0], o[0], 0)
	s[1], c = bits.Add64(s[1], o[1], c)
	s[2], c = bits.Add64(s[2], o[2], c)
	s[3], _ = bits.Add64(s[3], o[3], c)
	return s
}

// Minus returns s - o.
func (s Sum) Minus(o Sum) Sum {
	var b uint64
	s[0], b = bits.Sub64(s[0], o[0], 0)
	s[1], b = bits.Sub64(s[1], o[1], b)
	s[2], b = bits.Sub64(s[2], o[2], b)
	s[3], _ = bits.Sub64(s[3], o[3], b)
	return s
}

// sumOf keeps the four words in registers, which an array would not be.
func sumOf(ids []ID) Sum {
	var s0, s1, s2, s3, c uint64
	for i := range ids {
		id := &ids[i]
		s0, c = bits.Add64(s0, binary.LittleEndian.Uint64(id[0:]), 0)
		s1, c = bits.Add64(s1, binary.LittleEndian.Uint64(id[8:]), c)
		s2, c = bits.Add64(s2, binary.LittleEndian.Uint64(id[16:]), c)
		s3, _ = bits.Add64(s3, binary.LittleEndian.Uint64(id[24:]), c)
	}
	return Sum{s0, s1, s2, s3}
}

// FingerprintSize is the length of a fingerprint in bytes.
const FingerprintSize = 16

// Fingerprint is what stands for a range: the first 16 bytes of sha256(sum of the ids ‖
// varint(count)).
type Fingerprint = [FingerprintSize]byte

// FingerprintOf returns the fingerprint of the items in [lo, hi).
func FingerprintOf(s Storage, lo, hi int) Fingerprint {
	var text [IDSize + maxVarint]byte
	for i, word := range s.Sum(lo, hi) {
		binary.LittleEndian.PutUint64(text[8*i:], word)
	}
	hash := sha256.Sum256(appendVarint(text[:IDSize], uint64(hi-lo)))
	return Fingerprint(hash[:FingerprintSize])
}
