package negentropy

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// HexError is text that is not hexadecimal. Offset counts characters from the text's start.
type HexError struct {
	Offset int
	Reason string
}

func (e *HexError) Error() string { return fmt.Sprintf("hexadecimal digit %d: %s", e.Offset, e.Reason) }

// AppendHex appends src to dst as lower-case hexadecimal digits.
func AppendHex(dst, src []byte) []byte {
	at := len(dst)
	dst = slices.Grow(dst, 2*len(src))[:at+2*len(src)]
	out := dst[at:]
	for len(src) >= 4 && len(out) >= 8 {
		binary.LittleEndian.PutUint64(out, uint64(digitPair[src[0]])|uint64(digitPair[src[1]])<<16|
			uint64(digitPair[src[2]])<<32|uint64(digitPair[src[3]])<<48)
		src, out = src[4:], out[8:]
	}
	for i, b := range src {
		binary.LittleEndian.PutUint16(out[2*i:], digitPair[b])
	}
	return dst
}

// digitPair is a byte's two digits, the first in the low half.
var digitPair = func() (pairs [256]uint16) {
	const digits = "0123456789abcdef"
	for i := range pairs {
		pairs[i] = uint16(digits[i>>4]) | uint16(digits[i&15])<<8
	}
	return pairs
}()

// DecodeHex appends what the digits in src, of either case, stand for to dst. The error is a
// *HexError; dst is returned as it was then.
func DecodeHex(dst, src []byte) ([]byte, error) {
	if len(src)%2 != 0 {
		return dst, &HexError{len(src), "missing: the number of digits is odd"}
	}
	at := len(dst)
	grown := slices.Grow(dst, len(src)/2)[:at+len(src)/2]
	out, rest, seen := grown[at:], src, uint16(0)
	for len(rest) >= 8 && len(out) >= 4 {
		a := highDigit[rest[0]] | lowDigit[rest[1]]
		b := highDigit[rest[2]] | lowDigit[rest[3]]
		c := highDigit[rest[4]] | lowDigit[rest[5]]
		d := highDigit[rest[6]] | lowDigit[rest[7]]
		seen |= a | b | c | d
		out[0], out[1], out[2], out[3] = byte(a), byte(b), byte(c), byte(d)
		rest, out = rest[8:], out[4:]
	}
	for i := range out {
		a := highDigit[rest[2*i]] | lowDigit[rest[2*i+1]]
		seen |= a
		out[i] = byte(a)
	}
	if seen >= notDigit {
		return dst, hexError(src)
	}
	return grown, nil
}

// What a digit stands for as the first and the second of its pair; notDigit for what is none.
var highDigit, lowDigit = func() (high, low [256]uint16) {
	for c := range 256 {
		value := uint16(hexDigit(byte(c)))
		if value > 15 {
			high[c], low[c] = notDigit, notDigit
			continue
		}
		high[c], low[c] = value<<4, value
	}
	return high, low
}()

const notDigit = 0x100

// hexDigit returns a digit's value, 255 for what is none.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 255
}

func hexError(src []byte) error {
	for i, c := range src {
		if hexDigit(c) == 255 {
			return &HexError{i, fmt.Sprintf("%q is none", rune(c))}
		}
	}
	return nil
}
