package scan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// validUTF8 is utf8.Valid for texts that go back and forth between ASCII and other letters, as
// events do: eight bytes of ASCII at a time, and the three bytes of most letters beyond Latin,
// Greek, Cyrillic, Hebrew and Arabic two letters at a time.
func validUTF8(p []byte) bool {
	const (
		three = 0xc0c0f0c0c0f0 // the bits that tell two sequences of three bytes
		marks = 0x8080e08080e0
	)
	i := 0
	for i+8 <= len(p) {
		x := binary.LittleEndian.Uint64(p[i:])
		switch {
		case x&highBits == 0:
			i += 8
		case x&three == marks && plainThree(uint32(x)) && plainThree(uint32(x>>24)):
			i += 6
		case x&0x80 == 0:
			i += bits.TrailingZeros64(x&highBits) / 8
		default:
			r, size := utf8.DecodeRune(p[i:])
			if r == utf8.RuneError && size == 1 {
				return false
			}
			i += size
		}
	}
	return utf8.Valid(p[i:])
}

// plainThree says whether a sequence of three bytes is neither too long for what it says nor half
// of a surrogate pair. Others are looked at by utf8.
func plainThree(x uint32) bool {
	lead := x & 0xff
	return lead != 0xe0 && lead != 0xed
}
