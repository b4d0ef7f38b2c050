package prepare

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"relaybench/corpus/scan"
)

// maxEventText is the longest text of one event that is parsed. What is longer is passed over.
const maxEventText = MaxEventBytesCeiling

// longLine is how far the end of a line is looked for, where it is not buffered.
const longLine = 64 << 10

// recordSeparator begins each text of a JSON text sequence (RFC 7464). It stands in no valid JSON.
const recordSeparator = 0x1e

// container is what the values that are being read lie in.
type container string

const (
	inNothing container = ""                       // one value after another, with white space, commas or nothing between them
	inArray   container = "JSON array"             // the elements of an array, which is flattened
	inEvents  container = `object around "events"` // those of the array in {"events":[…]}
)

// splitter cuts a stream of JSON values into the texts of its events without parsing them, whatever
// form the values have: one a line, spread out over lines, in arrays, or all of that mixed. Where a
// value is broken it goes on where the next begins. It holds no more than its buffer, whatever
// comes in.
type splitter struct {
	r      *bufio.Reader
	offset int64 // bytes consumed
	line   int   // that is being read, from 1
	at     int   // line in which the text that was read last begins
	events int   // event texts started, the one being read included
	limit  int   // longest text that is kept

	in    container
	since int  // line in which it begins
	fresh bool // only white space stands before on the line
}

func newSplitter(r io.Reader) *splitter {
	return &splitter{r: bufio.NewReaderSize(r, 1<<20), line: 1, limit: maxEventText, fresh: true}
}

// next appends the next event's text to dst. whole is false, and nothing is appended, where the
// text is over the limit. After the last event the error is io.EOF; ErrTruncated marks an end
// inside of something. A text may hold more than one event, or none: see batch.
func (s *splitter) next(dst []byte) (out []byte, whole bool, err error) {
	if s.offset == 0 {
		if err := s.checkEncoding(); err != nil {
			return dst, false, err
		}
	}
	for {
		c, err := s.skipSeparators()
		if err == io.EOF && s.in != inNothing {
			err = fmt.Errorf("%w: the %s that begins in line %d has no end", ErrTruncated, s.in, s.since)
		}
		if err != nil {
			return dst, false, err
		}
		s.at = s.line
		line := 0
		switch {
		case s.in != inNothing && c == ']':
			s.discard(1)
			s.fresh = false
			if s.in == inEvents {
				s.at = s.since
				// What follows in the object is nothing but the rest of the wrapper.
				if _, _, err := s.value(dst, value{depth: 1, objects: 1, last: ']'}); err != nil {
					return dst, false, err
				}
			}
			s.in = inNothing
			continue
		case s.in == inNothing && c == '[' && s.ahead("[", `"`) == 0: // a relay's message begins with its type
			s.enter(inArray, 1)
			continue
		case s.in == inNothing && c == '{':
			if n := s.ahead("{", `"events"`, ":", "["); n > 0 {
				s.enter(inEvents, n)
				continue
			}
			if s.fresh {
				line = s.oneLine()
			}
		}
		s.events++
		s.fresh = false
		switch {
		case line > 0:
			return s.take(dst, mayEnd, func([]byte) (int, bool) { return line, true })
		case c == '{', c == '[', c == '"' && s.in != inNothing:
			return s.value(dst, value{})
		}
		// Something that begins like no event, up to what may be one.
		stops := "{\n"
		if s.in != inNothing {
			stops = " \t\r\n,]{[\x1e"
		}
		return s.take(dst, mayEnd, func(window []byte) (int, bool) {
			if i := bytes.IndexAny(window, stops); i >= 0 {
				return i, true
			}
			return len(window), false
		})
	}
}

// enter passes n bytes, up to an array's bracket.
func (s *splitter) enter(in container, n int) {
	s.in, s.since, s.fresh = in, s.line, false
	window, _ := s.r.Peek(n)
	s.line += bytes.Count(window, []byte{'\n'})
	s.discard(n)
}

// checkEncoding makes sure that the text is UTF-8.
func (s *splitter) checkEncoding() error {
	head, _ := s.r.Peek(4)
	if encoding := whatBegins(head, otherUnicode); encoding != "" {
		return fmt.Errorf("it is %[1]s, and JSON is read as UTF-8: convert it first, for example with iconv -f %[1]s -t UTF-8", encoding)
	}
	return nil
}

// otherUnicode are the beginnings of JSON texts in UTF-16 and UTF-32, with a byte order mark or
// without: zero bytes stand beside the first character, which no text in UTF-8 has.
var otherUnicode = []beginning{
	{"\xff\xfe\x00\x00", "UTF-32"}, {"\x00\x00\xfe\xff", "UTF-32"}, {"\xff\xfe", "UTF-16"}, {"\xfe\xff", "UTF-16"},
	{"{\x00\x00\x00", "UTF-32LE"}, {"[\x00\x00\x00", "UTF-32LE"}, {"\x00\x00\x00{", "UTF-32BE"}, {"\x00\x00\x00[", "UTF-32BE"},
	{"{\x00", "UTF-16LE"}, {"[\x00", "UTF-16LE"}, {"\x00{", "UTF-16BE"}, {"\x00[", "UTF-16BE"},
}

// ahead returns how long these tokens are where they come next, 0 where they do not.
func (s *splitter) ahead(tokens ...string) int {
	head, _ := s.r.Peek(64)
	rest := head
	for _, token := range tokens {
		var found bool
		if rest, found = bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(token)); !found {
			return 0
		}
	}
	return len(head) - len(rest)
}

// value follows one JSON object, array or string to its end, or to where it turns out to be broken
// and something else begins. Brackets are only counted, and whether they match is left to the
// parser.
type value struct {
	depth    int
	objects  uint64 // of the innermost 64 levels, those that are objects, the innermost in the lowest bit
	inString bool
	escaped  bool
	last     byte // the one before that is no white space, outside of strings
	fresh    bool // only white space stands before on the line
	lines    int  // line breaks passed
}

// scan takes what comes next, and returns how much is of the value, and whether that ends there.
func (v *value) scan(window []byte) (n int, ends bool) {
	for i := 0; i < len(window); i++ {
		if v.inString {
			if v.escaped {
				v.escaped = false
				if window[i] != '\n' { // which no escape has
					continue
				}
			}
			if i, _ = scan.Plain(window, i); i == len(window) {
				break
			}
			switch window[i] {
			case '\\':
				v.escaped = true
			case '"':
				v.inString = false
				if v.depth == 0 {
					return i + 1, true
				}
			case '\n', recordSeparator: // which JSON forbids: the line was cut off
				return i, true
			}
			continue
		}
		c := window[i]
		switch c {
		case ' ', '\t', '\r':
			continue
		case '\n':
			v.lines++
			v.fresh = true
			continue
		}
		if c == recordSeparator || v.fresh && v.depth > 0 && !v.mayContinue(c) {
			return i, true
		}
		switch c {
		case '"':
			v.inString = true
		case '{', '[':
			v.depth++
			v.objects <<= 1
			if c == '{' {
				v.objects |= 1
			}
		case '}', ']':
			v.objects >>= 1
			if v.depth--; v.depth <= 0 {
				return i + 1, true
			}
		}
		v.last, v.fresh = c, false
	}
	return len(window), false
}

// mayContinue reports whether a line of the value may begin with c.
func (v *value) mayContinue(c byte) bool {
	inObject := v.objects&1 == 1
	switch c {
	case '{', '[':
		return v.last == ':' || !inObject && (v.last == ',' || v.last == '[')
	case '}', ']':
		return inObject == (c == '}')
	case ',':
		return true
	}
	return v.last != '}' && v.last != ']'
}

// value reads one value. After a broken one reading goes on where the next begins, so that one
// mistake costs one event.
func (s *splitter) value(dst []byte, v value) ([]byte, bool, error) {
	out, whole, err := s.take(dst, mustEnd, v.scan)
	s.line += v.lines
	s.fresh = v.fresh
	if err == io.EOF {
		// Behind a line that was cut the last one may stand whole.
		text := bytes.TrimRight(out[len(dst):], " \t\r\n,")
		if i := bytes.LastIndex(text, []byte("\n{")); whole && i >= 0 && bytes.HasSuffix(text[i+2:], []byte("}")) {
			return out, true, nil
		}
		return dst, false, fmt.Errorf("%w: it ends inside an event, which begins in line %d", ErrTruncated, s.at)
	}
	return out, whole, err
}

// oneLine returns how long the value is that comes next where it fills a line, 0 where it does not.
// It may be a row as psql's COPY writes it, which doubles backslashes: as that stands, its strings
// may end anywhere.
func (s *splitter) oneLine() int {
	window, _ := s.r.Peek(s.r.Buffered())
	n := bytes.IndexByte(window, '\n')
	if n < 0 && len(window) < longLine {
		window, _ = s.r.Peek(longLine)
		if n = bytes.IndexByte(window, '\n'); n < 0 && len(window) < longLine {
			n = len(window)
		}
	}
	if n < 0 {
		return 0
	}
	line := bytes.TrimRight(window[:n], " \t\r,")
	for _, text := range [][]byte{line, undoCopy(line)} {
		var v value
		if n, ends := v.scan(text); ends && n == len(text) {
			return len(line)
		}
	}
	return 0
}

// What the end of the stream means to take: io.EOF, or the end of a text without a bracket.
const (
	mustEnd = false
	mayEnd  = true
)

// take appends to dst what scan accepts of the stream. scan is given what is buffered and returns
// how much of it belongs to the text, and whether the text ends there.
func (s *splitter) take(dst []byte, atEOF bool, scan func(window []byte) (n int, ends bool)) ([]byte, bool, error) {
	start, whole := len(dst), true
	for {
		if _, err := s.r.Peek(1); err == io.EOF {
			if atEOF {
				err = nil
			}
			return dst, whole, err
		} else if err != nil {
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

// skipSeparators passes over what may stand between values, and peeks at the byte behind it.
func (s *splitter) skipSeparators() (byte, error) {
	for {
		if _, err := s.r.Peek(1); err != nil {
			return 0, cutShort(err)
		}
		window, _ := s.r.Peek(s.r.Buffered())
		for i, c := range window {
			switch c {
			case '\n':
				s.line++
				s.fresh = true
			case ' ', '\t', '\r', ',', recordSeparator:
			default:
				s.discard(i)
				if head, _ := s.r.Peek(3); c == 0xef && string(head) == "\ufeff" { // files put one behind the other may have several
					s.discard(3)
					return s.skipSeparators()
				}
				return c, nil
			}
		}
		s.discard(len(window))
	}
}

// discard consumes n bytes that are known to be buffered.
func (s *splitter) discard(n int) {
	discarded, _ := s.r.Discard(n)
	s.offset += int64(discarded)
}

// failure says where an error of next came about.
func (s *splitter) failure(file, part string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &SourceError{file, part, s.events, s.line, s.offset, err}
}
