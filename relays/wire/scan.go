package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// scanner reads strict JSON (RFC 8259) in place. The first mistake sets bad; what is read after that means nothing. Like
// encoding/json it takes strings that are not UTF-8, but says so.
type scanner struct {
	src     []byte
	pos     int
	bad     bool
	notUTF8 bool // a string is not
}

func (s *scanner) space() {
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) && s.src[s.pos] > ' ' { // nearly always, and short enough to be inlined
		return s.src[s.pos]
	}
	return s.peekPast()
}

func (s *scanner) peekPast() byte {
	s.space()
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func (s *scanner) accept(c byte) bool {
	if s.peek() != c { // c is never 0, which peek returns at the end
		return false
	}
	s.pos++
	return true
}

func (s *scanner) expect(c byte) {
	if !s.accept(c) {
		s.bad = true
	}
}

func (s *scanner) end() {
	if s.space(); s.pos < len(s.src) {
		s.bad = true
	}
}

// string consumes a string and returns what stands between its quotes.
func (s *scanner) string() (raw []byte, escaped bool) {
	s.expect('"')
	if s.bad {
		return nil, false
	}
	start := s.pos
	for {
		at, high := plain(s.src, s.pos)
		if high&tops != 0 && !validUTF8(s.src[s.pos:at]) {
			s.notUTF8 = true
		}
		s.pos = at
		if at >= len(s.src) {
			break
		}
		switch s.src[at] {
		case '"':
			raw = s.src[start:at]
			s.pos++
			return raw, escaped
		case '\\':
			escaped = true
			s.escape()
		default:
			s.bad = true // a control character
		}
		if s.bad {
			return nil, false
		}
	}
	s.bad = true
	return nil, false
}

// tops has the top bit of each byte set.
const tops = 0x8080808080808080

// plain returns the position, from pos on, of the first quote, backslash or control character,
// eight bytes at a time. high has a top bit set where there is a byte over 0x7f before it, or close
// behind it.
func plain(src []byte, pos int) (at int, high uint64) {
	const ones = 0x0101010101010101
	for ; pos+8 <= len(src); pos += 8 {
		// (x - n·ones) &^ x & tops marks the lowest byte below n, for n up to 128, and perhaps bytes above it. Only the lowest is used.
		x := binary.LittleEndian.Uint64(src[pos:])
		high |= x
		quote, slash := x^('"'*ones), x^('\\'*ones)
		if hit := ((x-' '*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops; hit != 0 {
			return pos + bits.TrailingZeros64(hit)/8, high
		}
	}
	for ; pos < len(src); pos++ {
		c := src[pos]
		if c == '"' || c == '\\' || c < ' ' {
			break
		}
		high |= uint64(c)
	}
	return pos, high
}

func (s *scanner) escape() {
	if s.pos+1 >= len(s.src) {
		s.bad = true
		return
	}
	switch s.src[s.pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
	case 'u':
		if len(s.src) < s.pos+6 {
			s.bad = true
			return
		}
		for _, c := range s.src[s.pos+2 : s.pos+6] {
			if 'A' <= c && c <= 'F' {
				c |= 0x20
			}
			if digits[c] == 0xff {
				s.bad = true
			}
		}
		s.pos += 6
	default:
		s.bad = true
	}
}

// text consumes a string and returns its value.
func (s *scanner) text() []byte {
	raw, escaped := s.string()
	if escaped {
		return unescape(raw)
	}
	return raw
}

// unescape decodes what stands between the quotes of a well-formed string.
func unescape(raw []byte) []byte {
	var text string
	if json.Unmarshal(append(append([]byte{'"'}, raw...), '"'), &text) != nil {
		return nil
	}
	return []byte(text)
}

func (s *scanner) boolean() bool {
	switch s.peek() {
	case 't':
		s.literal("true")
		return true
	default:
		s.literal("false")
		return false
	}
}

func (s *scanner) literal(word string) {
	if !bytes.HasPrefix(s.src[s.pos:], []byte(word)) {
		s.bad = true
		return
	}
	s.pos += len(word)
}

// value consumes any value and returns its bytes.
func (s *scanner) value() []byte {
	s.space()
	start := s.pos
	s.nested()
	if s.bad {
		return nil
	}
	return s.src[start:s.pos]
}

// nested consumes a value without recursion: objects has a bit for each open bracket, the innermost lowest, set for an object.
func (s *scanner) nested() {
	objects, depth := uint64(0), 0
	for !s.bad {
		// One value, or the opening of one.
		switch c := s.peek(); c {
		case '"':
			s.string()
		case '[', '{':
			s.pos++
			if s.accept(c + 2) { // ] and } follow their partners at a distance of two
				break
			}
			if depth == 64 {
				s.bad = true
				return
			}
			depth++
			objects <<= 1
			if c == '{' {
				objects |= 1
				s.key()
			}
			continue
		case 't':
			s.literal("true")
		case 'f':
			s.literal("false")
		case 'n':
			s.literal("null")
		default:
			s.number()
		}
		// What follows a value: closings, then a comma or the end.
		for !s.bad {
			if depth == 0 {
				return
			}
			closing := byte(']')
			if objects&1 == 1 {
				closing = '}'
			}
			if s.accept(closing) {
				objects >>= 1
				depth--
				continue
			}
			s.expect(',')
			if objects&1 == 1 {
				s.key()
			}
			break
		}
	}
}

func (s *scanner) key() {
	s.string()
	s.expect(':')
}

func (s *scanner) number() {
	if s.pos < len(s.src) && s.src[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.src) && s.src[s.pos] == '0' {
		s.pos++
	} else {
		s.digits()
	}
	if s.pos < len(s.src) && s.src[s.pos] == '.' {
		s.pos++
		s.digits()
	}
	if s.pos < len(s.src) && s.src[s.pos]|0x20 == 'e' {
		s.pos++
		if s.pos < len(s.src) && (s.src[s.pos] == '+' || s.src[s.pos] == '-') {
			s.pos++
		}
		s.digits()
	}
}

// digits consumes one or more decimal digits.
func (s *scanner) digits() {
	start := s.pos
	for s.pos < len(s.src) && '0' <= s.src[s.pos] && s.src[s.pos] <= '9' {
		s.pos++
	}
	if s.pos == start {
		s.bad = true
	}
}
