// Package scan is the one scanner of Nostr's JSON (NIP-01, RFC 8259): of events, filters and
// relays' messages, in place and without allocating.
package scan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// mostDepth bounds nesting in values that are passed over.
const mostDepth = 64

// SyntaxError says where and why a JSON text could not be read. Offset counts bytes from the text's
// start.
type SyntaxError struct {
	Offset int
	Reason string
}

func (e *SyntaxError) Error() string {
	return "at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// Scanner reads strict JSON, one token after another. The first mistake sticks in Err, and what is
// read after that means nothing.
type Scanner struct {
	Src []byte
	Pos int   // of the next byte
	Err error // a *SyntaxError, unless who reads sets another

	Lenient bool // take strings that are not UTF-8, as encoding/json does
	NotUTF8 bool // and say that there was one
}

// Fail sets Err unless it is set.
func (s *Scanner) Fail(format string, args ...any) {
	if s.Err == nil {
		s.Err = &SyntaxError{s.Pos, fmt.Sprintf(format, args...)}
	}
}

// Space passes over white space.
func (s *Scanner) Space() {
	for s.Pos < len(s.Src) {
		switch s.Src[s.Pos] {
		case ' ', '\t', '\n', '\r':
			s.Pos++
		default:
			return
		}
	}
}

// Peek returns the next byte that is not white space, 0 at the end.
func (s *Scanner) Peek() byte {
	if s.Pos < len(s.Src) && s.Src[s.Pos] > ' ' { // nearly always, and short enough to be inlined
		return s.Src[s.Pos]
	}
	return s.peekPast()
}

func (s *Scanner) peekPast() byte {
	s.Space()
	if s.Pos < len(s.Src) {
		return s.Src[s.Pos]
	}
	return 0
}

// Accept consumes c, which is not 0, if it is next.
func (s *Scanner) Accept(c byte) bool {
	if s.Peek() != c {
		return false
	}
	s.Pos++
	return true
}

// Expect consumes c, and fails where something else is next.
func (s *Scanner) Expect(c byte) {
	if !s.Accept(c) {
		s.expected(c)
	}
}

func (s *Scanner) expected(c byte) { s.Fail("%q expected", string(c)) }

// End fails unless only white space is left.
func (s *Scanner) End() {
	if s.Space(); s.Err == nil && s.Pos < len(s.Src) {
		s.Fail("text after the value")
	}
}

// List calls element for each element of an array, up to its closing bracket.
func (s *Scanner) List(element func()) {
	s.Expect('[')
	if s.Accept(']') {
		return
	}
	for s.Err == nil {
		element()
		if s.Accept(']') {
			return
		}
		s.Expect(',')
	}
}

// Object calls member with each key of an object; member must consume the value.
func (s *Scanner) Object(member func(key []byte)) {
	s.Expect('{')
	if s.Accept('}') {
		return
	}
	for s.Err == nil {
		key := s.Text()
		s.Expect(':')
		if s.Err != nil {
			return
		}
		member(key)
		if s.Accept('}') {
			return
		}
		s.Expect(',')
	}
}

// Raw consumes a string and returns what stands between its quotes, and whether that holds escapes,
// which are valid.
func (s *Scanner) Raw() (raw []byte, escaped bool) {
	s.Expect('"')
	if s.Err != nil {
		return nil, false
	}
	for start := s.Pos; ; {
		at, high := Plain(s.Src, s.Pos)
		if high&highBits != 0 && !validUTF8(s.Src[s.Pos:at]) {
			s.NotUTF8 = true
		}
		switch s.Pos = at; {
		case at >= len(s.Src):
			s.Fail("string without end")
		case s.Src[at] == '"' && s.NotUTF8 && !s.Lenient:
			s.Fail("string that is not UTF-8")
		case s.Src[at] == '"':
			s.Pos++
			return s.Src[start:at], escaped
		case s.Src[at] == '\\':
			escaped = true
			s.escape()
		default:
			s.Fail("control character in a string")
		}
		if s.Err != nil {
			return nil, false
		}
	}
}

// Text consumes a string and returns its value, which lies in Src where it holds no escapes.
func (s *Scanner) Text() []byte {
	raw, escaped := s.Raw()
	if escaped {
		return AppendUnescaped(make([]byte, 0, len(raw)), raw)
	}
	return raw
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// Plain returns the position, from pos on, of the first quote, backslash or control character,
// which do not stand for themselves in a string: eight bytes at a time. high has a top bit set
// where there is a byte over 0x7f before it, or close behind it.
func Plain(src []byte, pos int) (at int, high uint64) {
	for ; pos+8 <= len(src); pos += 8 {
		// (x - n·lowBits) &^ x & highBits marks the lowest byte below n, for n up to 128, and
		// perhaps bytes above it. Only the lowest is used.
		x := binary.LittleEndian.Uint64(src[pos:])
		high |= x
		quote, slash := x^('"'*lowBits), x^('\\'*lowBits)
		if hit := ((x-' '*lowBits)&^x | (quote-lowBits)&^quote | (slash-lowBits)&^slash) & highBits; hit != 0 {
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

// escape passes over the escape that begins with the backslash at Pos.
func (s *Scanner) escape() {
	rest := s.Src[s.Pos+1:]
	if len(rest) == 0 {
		s.Fail("string without end")
		return
	}
	switch rest[0] {
	case '"', '\\', '/', 'n', 'r', 't', 'b', 'f':
		s.Pos += 2
	case 'u':
		if hex4(rest[1:]) < 0 {
			s.Fail("broken \\u escape in a string")
			return
		}
		s.Pos += 6
	default:
		s.Fail("unknown escape in a string")
	}
}

// AppendUnescaped appends the value of what Raw returned. A surrogate without its partner becomes
// U+FFFD, as in encoding/json.
func AppendUnescaped(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		c := raw[i+1]
		raw = raw[i+2:]
		switch c {
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'u':
			r := hex4(raw)
			raw = raw[4:]
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if len(raw) > 1 && raw[0] == '\\' && raw[1] == 'u' {
					low = hex4(raw[2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					raw = raw[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
	}
}

// hex4 reads four hexadecimal digits of either case, -1 if they are not there.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	r := rune(0)
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// Int consumes an integer between 0 and most. what names it in an error.
func (s *Scanner) Int(most int64, what string) int64 {
	s.Space()
	start := s.Pos
	n := int64(0)
	for s.Err == nil && s.Pos < len(s.Src) && '0' <= s.Src[s.Pos] && s.Src[s.Pos] <= '9' {
		n = n*10 + int64(s.Src[s.Pos]-'0')
		s.Pos++
		if n > most || s.Pos-start > 18 {
			s.Fail("%s is over %d", what, most)
		}
	}
	digits := s.Pos - start
	if s.Err == nil && (digits == 0 || digits > 1 && s.Src[start] == '0' || s.Pos < len(s.Src) && isNumberByte(s.Src[s.Pos])) {
		s.Pos = start
		s.Fail("%s is not an integer from 0", what)
	}
	return n
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+'
}

// Skip consumes any value and returns its bytes, nil where it is none.
func (s *Scanner) Skip() []byte {
	s.Space()
	start := s.Pos
	s.nested()
	if s.Err != nil {
		return nil
	}
	return s.Src[start:s.Pos]
}

// nested consumes a value without recursion: objects has a bit for each open bracket, the innermost
// lowest, set for an object.
func (s *Scanner) nested() {
	objects, depth := uint64(0), 0
	for s.Err == nil {
		// One value, or the opening of one.
		switch c := s.Peek(); c {
		case '"':
			s.Raw()
		case '[', '{':
			s.Pos++
			if s.Accept(c + 2) { // ] and } follow their partners at a distance of two
				break
			}
			if depth == mostDepth {
				s.Fail("nested deeper than %d", mostDepth)
				return
			}
			depth++
			objects <<= 1
			if c == '{' {
				objects |= 1
				s.key()
			}
			continue
		default:
			s.literal()
		}
		// What follows a value: closings, then a comma or the end.
		for s.Err == nil {
			if depth == 0 {
				return
			}
			closing := byte(']')
			if objects&1 == 1 {
				closing = '}'
			}
			if s.Accept(closing) {
				objects >>= 1
				depth--
				continue
			}
			s.Expect(',')
			if objects&1 == 1 {
				s.key()
			}
			break
		}
	}
}

func (s *Scanner) key() {
	s.Raw()
	s.Expect(':')
}

// Bool consumes true or false.
func (s *Scanner) Bool() bool {
	is := s.Peek() == 't'
	if !is && s.Peek() != 'f' {
		s.Fail("true or false expected")
	}
	s.literal()
	return is
}

// literal consumes a number, true, false or null.
func (s *Scanner) literal() {
	if s.Err != nil {
		return
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if rest := s.Src[s.Pos:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
			s.Pos += len(word)
			return
		}
	}
	start := s.Pos
	s.have('-')
	if !s.have('0') && !s.digits() {
		s.Pos = start
		s.Fail("value expected")
		return
	}
	if s.have('.') && !s.digits() {
		s.Fail("digit expected")
	}
	if s.have('e') || s.have('E') {
		_ = s.have('+') || s.have('-')
		if !s.digits() {
			s.Fail("digit expected")
		}
	}
}

// have consumes c if it is the very next byte.
func (s *Scanner) have(c byte) bool {
	if s.Pos < len(s.Src) && s.Src[s.Pos] == c {
		s.Pos++
		return true
	}
	return false
}

// digits consumes decimal digits and reports whether there were any.
func (s *Scanner) digits() bool {
	start := s.Pos
	for s.Pos < len(s.Src) && '0' <= s.Src[s.Pos] && s.Src[s.Pos] <= '9' {
		s.Pos++
	}
	return s.Pos > start
}

// Elements splits a JSON array into the spans of its elements, which point into text: the first
// step in reading any client or relay message (NIP-01).
func Elements(text []byte) ([][]byte, error) {
	s := Scanner{Src: text}
	var spans [][]byte
	s.List(func() { spans = append(spans, s.Skip()) })
	s.End()
	if s.Err != nil {
		return nil, s.Err
	}
	return spans, nil
}

// String decodes a JSON text that is one string.
func String(text []byte) (string, error) {
	s := Scanner{Src: text}
	v := s.Text()
	s.End()
	return string(v), s.Err
}
