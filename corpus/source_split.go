package corpus

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// maxEventText is the longest text of one event that is kept in memory to be parsed. What is longer is passed over unread.
const maxEventText = MaxEventBytesCeiling

// form is how a text separates its events.
type form int

const (
	formLines   form = iota // NDJSON: one event a line
	formObjects             // concatenated JSON, with any or no white space between
	formArray               // one JSON array
)

// splitter cuts a stream into the texts of its events without parsing them. It holds no more than its buffer, whatever comes in.
type splitter struct {
	r      *bufio.Reader
	form   form
	offset int64 // bytes consumed
	events int   // event texts started, the one being read included
	done   bool  // the array's end has been passed
	opened bool  // the form is known and an array's bracket consumed
	limit  int   // longest text that is kept
}

func newSplitter(r io.Reader) *splitter {
	return &splitter{r: bufio.NewReaderSize(r, 1<<20), limit: maxEventText}
}

// next appends the next event's text to dst. whole is false, and nothing is appended, where the text is over the limit. After
// the last event the error is io.EOF; ErrTruncated marks an end inside of something.
func (s *splitter) next(dst []byte) (out []byte, whole bool, err error) {
	if !s.opened {
		if err := s.open(); err != nil {
			return dst, false, err
		}
	}
	switch s.form {
	case formLines:
		return s.nextLine(dst)
	case formObjects:
		return s.nextObject(dst)
	default:
		return s.nextElement(dst)
	}
}

// open finds out the text's form from its beginning.
func (s *splitter) open() error {
	head, _ := s.r.Peek(4)
	if encoding := otherUnicode(head); encoding != "" {
		return fmt.Errorf("it is %[1]s, and JSON is read as UTF-8: convert it first, for example with iconv -f %[1]s -t UTF-8", encoding)
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		s.discard(3)
	}
	first, err := s.skipSpace()
	if err != nil {
		return err
	}
	s.opened = true
	switch first {
	case '[':
		if head, _ = s.r.Peek(64); bytes.HasPrefix(bytes.TrimLeft(head[1:], " \t\r\n"), []byte{'"'}) {
			s.form = formLines // lines of relay messages, none of which is an event
			return nil
		}
		s.form = formArray
		s.discard(1)
		return s.openArray()
	case '{':
		head, _ = s.r.Peek(s.r.Size())
		s.form = formOf(head)
	}
	return nil
}

// otherUnicode names the encoding of a text that begins in the way of UTF-16 or UTF-32, with a byte order mark or without: by the zero
// bytes beside its first character, which no text in UTF-8 has.
func otherUnicode(head []byte) string {
	for _, known := range []struct{ head, name string }{
		{"\xff\xfe\x00\x00", "UTF-32"},
		{"\x00\x00\xfe\xff", "UTF-32"},
		{"\xff\xfe", "UTF-16"},
		{"\xfe\xff", "UTF-16"},
		{"{\x00\x00\x00", "UTF-32LE"},
		{"[\x00\x00\x00", "UTF-32LE"},
		{"\x00\x00\x00{", "UTF-32BE"},
		{"\x00\x00\x00[", "UTF-32BE"},
		{"{\x00", "UTF-16LE"},
		{"[\x00", "UTF-16LE"},
		{"\x00{", "UTF-16BE"},
		{"\x00[", "UTF-16BE"},
	} {
		if bytes.HasPrefix(head, []byte(known.head)) {
			return known.name
		}
	}
	return ""
}

// openArray recognises an array that is empty.
func (s *splitter) openArray() error {
	c, err := s.skipSpace()
	if err == io.EOF {
		return fmt.Errorf("%w: its JSON array has no end", ErrTruncated)
	}
	if err == nil && c == ']' {
		s.discard(1)
		return s.endArray()
	}
	return err
}

// formOf tells one object a line from objects that follow each other otherwise, by where the first object and the first line end. A
// line break inside a string, which JSON forbids, means a line that was cut off. An object that fills head is read as an object, which
// does for one on a line of its own as well.
func formOf(head []byte) form {
	var v value
	for i, c := range head {
		if c == '\n' && v.inString {
			return formLines
		}
		if c == '\n' {
			return formObjects
		}
		if v.step(c) {
			rest := bytes.TrimLeft(head[i+1:], " \t\r")
			if len(rest) > 0 && rest[0] != '\n' {
				return formObjects
			}
			return formLines
		}
	}
	return formObjects
}

// value follows one JSON object, array or string to its end. It needs no stack: brackets are only counted, and whether they match is
// left to the parser.
type value struct {
	depth    int
	inString bool
	escaped  bool
}

// step takes the next byte and reports whether it is the value's last.
func (v *value) step(c byte) (ends bool) {
	if v.inString {
		switch {
		case v.escaped:
			v.escaped = false
		case c == '\\':
			v.escaped = true
		case c == '"':
			v.inString = false
			return v.depth == 0
		}
		return false
	}
	switch c {
	case '"':
		v.inString = true
	case '{', '[':
		v.depth++
	case '}', ']':
		v.depth--
		return v.depth <= 0
	}
	return false
}

// endsInside reports whether text stops before the value that it begins with does.
func endsInside(text []byte) bool {
	var v value
	for _, c := range text {
		if v.step(c) {
			return false
		}
	}
	return true
}

// nextLine reads up to a line break, passing over blank lines.
func (s *splitter) nextLine(dst []byte) ([]byte, bool, error) {
	start := len(dst)
	for {
		s.events++
		whole := true
		for {
			piece, err := s.r.ReadSlice('\n')
			s.offset += int64(len(piece))
			if whole = whole && len(dst)-start+len(piece) <= s.limit; whole {
				dst = append(dst, piece...)
			} else {
				dst = dst[:start]
			}
			if err == nil {
				break
			}
			if err == bufio.ErrBufferFull {
				continue
			}
			if err != io.EOF {
				return dst[:start], false, cutShort(err)
			}
			line := bytes.TrimSpace(dst[start:])
			if whole && len(line) == 0 {
				s.events--
				return dst[:start], false, io.EOF
			}
			if whole && line[0] == '{' && endsInside(line) {
				return dst[:start], false, fmt.Errorf("%w: its last line ends inside an event", ErrTruncated)
			}
			break
		}
		if line := bytes.TrimSpace(dst[start:]); whole && len(line) == 0 {
			s.events--
			dst = dst[:start]
			continue
		}
		return dst, whole, nil
	}
}

// nextObject reads one object, whatever lies around it. After a broken object reading goes on where a line begins with the next, so
// that one mistake costs one event.
func (s *splitter) nextObject(dst []byte) ([]byte, bool, error) {
	first, err := s.skipSpace()
	if err != nil {
		return dst, false, err
	}
	s.events++
	if first != '{' && first != '[' {
		return s.take(dst, mayEnd, func(window []byte) (int, bool) {
			if i := bytes.IndexAny(window, "{\n"); i >= 0 {
				return i, true
			}
			return len(window), false
		})
	}
	var v value
	last := byte(0)
	out, whole, err := s.take(dst, mustEnd, func(window []byte) (int, bool) {
		for i, c := range window {
			if c == '\n' && v.inString {
				return i + 1, true
			}
			if c == '{' && last == '\n' && v.depth > 0 && !v.inString {
				return i, true
			}
			if v.step(c) {
				return i + 1, true
			}
			last = c
		}
		return len(window), false
	})
	if err == io.EOF {
		err = fmt.Errorf("%w: it ends inside an event", ErrTruncated)
	}
	return out, whole, err
}

// nextElement reads one element of the array and the comma or bracket behind it.
func (s *splitter) nextElement(dst []byte) ([]byte, bool, error) {
	if s.done {
		return dst, false, io.EOF
	}
	first, err := s.skipSpace()
	if err == io.EOF {
		return dst, false, fmt.Errorf("%w: its JSON array has no end", ErrTruncated)
	}
	if err != nil {
		return dst, false, err
	}
	s.events++
	var out []byte
	var whole bool
	switch first {
	case '{', '[', '"':
		var v value
		out, whole, err = s.take(dst, mustEnd, func(window []byte) (int, bool) {
			for i, c := range window {
				if v.step(c) {
					return i + 1, true
				}
			}
			return len(window), false
		})
	case ',', ']', '}', ':':
		return dst, false, fmt.Errorf("the JSON array has %q where an event is expected", first)
	default:
		out, whole, err = s.take(dst, mustEnd, func(window []byte) (int, bool) {
			if i := bytes.IndexAny(window, " \t\r\n,]}"); i >= 0 {
				return i, true
			}
			return len(window), false
		})
	}
	if err == io.EOF {
		return dst, false, fmt.Errorf("%w: it ends inside an event", ErrTruncated)
	}
	if err != nil {
		return dst, false, err
	}
	return out, whole, s.afterElement()
}

func (s *splitter) afterElement() error {
	c, err := s.skipSpace()
	switch {
	case err == io.EOF:
		return fmt.Errorf("%w: its JSON array has no end", ErrTruncated)
	case err != nil:
		return err
	case c == ',':
		s.discard(1)
		return nil
	case c == ']':
		s.discard(1)
		if err := s.endArray(); err != io.EOF {
			return err
		}
		return nil
	}
	return fmt.Errorf("the JSON array has %q where a comma or its end is expected", c)
}

// endArray makes sure that nothing follows the array. It returns io.EOF when that is so.
func (s *splitter) endArray() error {
	s.done = true
	c, err := s.skipSpace()
	if err == nil {
		return fmt.Errorf("%q follows the end of the JSON array: one array a file, or no array at all", c)
	}
	return err
}

// What the end of the stream means to take: io.EOF, or the end of a text that needs no closing bracket.
const (
	mustEnd = false
	mayEnd  = true
)

// take appends to dst what scan accepts of the stream. scan is given what is buffered and returns how much of it belongs to the
// text, and whether the text ends there.
func (s *splitter) take(dst []byte, atEOF bool, scan func(window []byte) (n int, ends bool)) ([]byte, bool, error) {
	start, whole := len(dst), true
	for {
		if _, err := s.r.Peek(1); err != nil {
			if err == io.EOF && atEOF {
				return dst, whole, nil
			}
			return dst[:start], false, cutShort(err)
		}
		window, _ := s.r.Peek(s.r.Buffered())
		n, ends := scan(window)
		if whole = whole && len(dst)-start+n <= s.limit; whole {
			dst = append(dst, window[:n]...)
		} else {
			dst = dst[:start]
		}
		s.discard(n)
		if ends {
			return dst, whole, nil
		}
	}
}

// skipSpace passes over white space and peeks at the byte behind it.
func (s *splitter) skipSpace() (byte, error) {
	for {
		if _, err := s.r.Peek(1); err != nil {
			return 0, cutShort(err)
		}
		window, _ := s.r.Peek(s.r.Buffered())
		rest := bytes.TrimLeft(window, " \t\r\n")
		s.discard(len(window) - len(rest))
		if len(rest) > 0 {
			return rest[0], nil
		}
	}
}

// discard consumes n bytes that are known to be buffered.
func (s *splitter) discard(n int) {
	discarded, _ := s.r.Discard(n)
	s.offset += int64(discarded)
}
