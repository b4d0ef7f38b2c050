package corpus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// maxDepth bounds nesting in skipped values, so that hostile input cannot exhaust the stack.
const maxDepth = 64

// SyntaxError says where and why a JSON text could not be read. Offset counts bytes from the text's start.
type SyntaxError struct {
	Offset int
	Reason string
}

func (e *SyntaxError) Error() string {
	return "at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// scanner reads JSON in place, one token after another. The first mistake sticks in err and every later call does nothing.
type scanner struct {
	src   []byte
	pos   int
	err   error
	arena *arena // where events read lend their memory from, nil for memory of their own
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = &SyntaxError{s.pos, fmt.Sprintf(format, args...)}
	}
}

func (s *scanner) skipSpace() {
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
	s.skipSpace()
	if s.err != nil || s.pos >= len(s.src) {
		return 0
	}
	return s.src[s.pos]
}

// accept consumes c if it is next.
func (s *scanner) accept(c byte) bool {
	if s.peek() == c && s.err == nil {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) expect(c byte) {
	if s.err == nil && !s.accept(c) {
		s.fail("%q expected", string(c))
	}
}

// end fails unless only white space is left.
func (s *scanner) end() {
	s.skipSpace()
	if s.err == nil && s.pos < len(s.src) {
		s.fail("text after the value")
	}
}

// list calls element for each element of an array, up to its closing bracket.
func (s *scanner) list(element func()) {
	s.expect('[')
	if s.accept(']') {
		return
	}
	for s.err == nil {
		element()
		if s.accept(']') {
			return
		}
		s.expect(',')
	}
}

// object calls member with each key of an object; member must consume the value.
func (s *scanner) object(member func(key string)) {
	s.expect('{')
	if s.accept('}') {
		return
	}
	for s.err == nil {
		raw, escaped := s.rawString()
		s.expect(':')
		if s.err != nil {
			return
		}
		if escaped {
			raw = appendUnescaped(nil, raw)
		}
		member(fieldName(raw))
		if s.accept('}') {
			return
		}
		s.expect(',')
	}
}

// fieldName is string(raw) without allocation for the fields of an event (NIP-01).
func fieldName(raw []byte) string {
	for _, name := range eventFields {
		if string(raw) == name {
			return name
		}
	}
	return string(raw)
}

// rawString consumes a JSON string and returns what stands between its quotes, valid UTF-8 and valid escapes, with whether it holds
// escapes.
func (s *scanner) rawString() (raw []byte, escaped bool) {
	s.expect('"')
	if s.err != nil {
		return nil, false
	}
	start := s.pos
	all := byte(0) // at least utf8.RuneSelf if any byte is: tells ASCII, which needs no further check
	for {
		i, src := s.pos, s.src
		for i+8 <= len(src) {
			word := binary.LittleEndian.Uint64(src[i:])
			if !allPlain(word) {
				break
			}
			if word&highBits != 0 {
				all = utf8.RuneSelf
			}
			i += 8
		}
		for i < len(src) && plain[src[i]] {
			all |= src[i]
			i++
		}
		s.pos = i
		switch {
		case i == len(src):
			s.fail("string without end")
		case src[i] == '"':
			raw = src[start:i]
			if all >= utf8.RuneSelf && !utf8.Valid(raw) {
				s.fail("string that is not UTF-8")
				return nil, false
			}
			s.pos++
			return raw, escaped
		case src[i] == '\\':
			escaped = true
			s.escape()
			s.pos++
		default:
			s.fail("control character in a string")
		}
		if s.err != nil {
			return nil, false
		}
	}
}

// plain says which bytes stand for themselves within a JSON string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

// Eight bytes at a time, with the lowest and the highest bit of each.
const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// allPlain reports whether plain holds for all eight bytes of word.
func allPlain(word uint64) bool {
	quote, backslash := word^lowBits*'"', word^lowBits*'\\'
	return ((word-lowBits*0x20)&^word|(quote-lowBits)&^quote|(backslash-lowBits)&^backslash)&highBits == 0
}

// escape checks the escape that starts at the backslash under pos and moves to its last byte.
func (s *scanner) escape() {
	rest := s.src[s.pos+1:]
	if len(rest) == 0 {
		return // the caller finds the string without end
	}
	switch rest[0] {
	case '"', '\\', '/', 'n', 'r', 't', 'b', 'f':
		s.pos++
	case 'u':
		if hex4(rest[1:]) < 0 {
			s.fail("broken \\u escape in a string")
			return
		}
		s.pos += 5
	default:
		s.fail("unknown escape in a string")
	}
}

// string consumes a JSON string and returns its value. A surrogate without its partner becomes U+FFFD, as in encoding/json.
func (s *scanner) string() string {
	raw, escaped := s.rawString()
	if !escaped && s.arena != nil {
		return unsafe.String(unsafe.SliceData(raw), len(raw))
	}
	if !escaped {
		return string(raw)
	}
	return string(appendUnescaped(make([]byte, 0, len(raw)), raw))
}

// appendUnescaped appends the value of a raw string whose escapes rawString has checked.
func appendUnescaped(dst, raw []byte) []byte {
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

// int consumes an integer between 0 and max.
func (s *scanner) int(max int64, what string) int64 {
	s.skipSpace()
	start := s.pos
	n := int64(0)
	for s.err == nil && s.pos < len(s.src) && '0' <= s.src[s.pos] && s.src[s.pos] <= '9' {
		n = n*10 + int64(s.src[s.pos]-'0')
		s.pos++
		if n > max || s.pos-start > 18 {
			s.fail("%s is over %d", what, max)
		}
	}
	digits := s.pos - start
	if s.err == nil && (digits == 0 || digits > 1 && s.src[start] == '0' || s.pos < len(s.src) && isNumberByte(s.src[s.pos])) {
		s.pos = start
		s.fail("%s is not an integer from 0", what)
	}
	return n
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+'
}

// skip consumes any value and returns its span.
func (s *scanner) skip() []byte {
	s.skipSpace()
	start := s.pos
	s.skipValue(0)
	if s.err != nil {
		return nil
	}
	return s.src[start:s.pos]
}

func (s *scanner) skipValue(depth int) {
	if depth > maxDepth {
		s.fail("nested deeper than %d", maxDepth)
		return
	}
	switch s.peek() {
	case '"':
		s.rawString()
	case '[':
		s.list(func() { s.skipValue(depth + 1) })
	case '{':
		s.expect('{')
		if s.accept('}') {
			return
		}
		for s.err == nil {
			s.rawString()
			s.expect(':')
			s.skipValue(depth + 1)
			if s.accept('}') {
				return
			}
			s.expect(',')
		}
	default:
		s.literal()
	}
}

// literal consumes a number, true, false or null.
func (s *scanner) literal() {
	if s.err != nil {
		return
	}
	for _, word := range []string{"true", "false", "null"} {
		if len(s.src)-s.pos >= len(word) && string(s.src[s.pos:s.pos+len(word)]) == word {
			s.pos += len(word)
			return
		}
	}
	start := s.pos
	s.have('-')
	if !s.have('0') && !s.digits() {
		s.pos = start
		s.fail("value expected")
		return
	}
	if s.have('.') && !s.digits() {
		s.fail("digit expected")
	}
	if s.have('e') || s.have('E') {
		_ = s.have('+') || s.have('-')
		if !s.digits() {
			s.fail("digit expected")
		}
	}
}

// have consumes c if it is the very next byte.
func (s *scanner) have(c byte) bool {
	if s.pos < len(s.src) && s.src[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// digits consumes decimal digits and reports whether there were any.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.src) && '0' <= s.src[s.pos] && s.src[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// Elements splits a JSON array into the spans of its elements, which point into text: the first step in reading any client or
// relay message (NIP-01).
func Elements(text []byte) ([][]byte, error) {
	s := scanner{src: text}
	var spans [][]byte
	s.list(func() { spans = append(spans, s.skip()) })
	s.end()
	if s.err != nil {
		return nil, s.err
	}
	return spans, nil
}

// ParseString decodes a JSON text that is one string.
func ParseString(text []byte) (string, error) {
	s := scanner{src: text}
	v := s.string()
	s.end()
	return v, s.err
}
