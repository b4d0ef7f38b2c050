package negentropy

import (
	"encoding/binary"
	"fmt"
	"slices"
)

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

// DecodeHex appends what the digits in src, of either case, stand for to dst. The error is a
// *FormatError, which counts digits; dst is returned as it was then.
func DecodeHex(dst, src []byte) ([]byte, error) {
	if len(src)%2 != 0 {
		return dst, &FormatError{Offset: len(src), Reason: "missing: the number of digits is odd", Code: NotHex}
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
		i := slices.IndexFunc(src, func(c byte) bool { return lowDigit[c] == notDigit })
		return dst, &FormatError{Offset: i, Reason: fmt.Sprintf("%q is none", rune(src[i])), Code: NotHex}
	}
	return grown, nil
}

const notDigit = 0x100

// digitPair is a byte's two digits, the first in the low half. highDigit and lowDigit are what a
// digit stands for as the first and the second of its pair; notDigit for what is none.
var digitPair, highDigit, lowDigit = func() (pairs, high, low [256]uint16) {
	for i := range 256 {
		high[i], low[i] = notDigit, notDigit
	}
	const lower, upper = "0123456789abcdef", "0123456789ABCDEF"
	for i := range 256 {
		pairs[i] = uint16(lower[i>>4]) | uint16(lower[i&15])<<8
	}
	for value := range uint16(16) {
		for _, digit := range []byte{lower[value], upper[value]} {
			high[digit], low[digit] = value<<4, value
		}
	}
	return pairs, high, low
}()
