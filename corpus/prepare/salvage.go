package prepare

import (
	"bytes"
	"errors"
	"fmt"

	"relaybench/corpus"
	"relaybench/corpus/scan"
)

// place is where an event's text begins.
type place struct {
	part string // name within an archive, "" where there is none
	line int    // from 1
}

// parseText turns a text into items. Mostly it is one event.
func (pl *pipeline) parseText(b *batch, text []byte, at place, reader *corpus.EventReader) {
	if len(text) == 0 {
		b.items = append(b.items, unparseable(at, fmt.Sprintf("longer than %d MiB", maxEventText>>20)))
		return
	}
	if len(text) > largeText {
		pl.large.Lock()
		defer pl.large.Unlock()
		reader = new(corpus.EventReader)
	}
	it, err := pl.parseOne(b, text, reader)
	if err == nil {
		b.items = append(b.items, it)
		return
	}
	s := salvage{pl, b, reader}
	if s.value(text, at) == nil || s.lines(text, at) == nil {
		return
	}
	b.items = append(b.items, unparseable(at, reason(text, err)))
}

func unparseable(at place, why string) item { return item{drop: DropUnparseable, at: at, why: why} }

// reason says why a text is no event and holds none.
func reason(text []byte, err error) string {
	switch first := bytes.TrimLeft(text, " \t\r\n")[0]; {
	case string(text) == "[":
		return "a JSON array without its end"
	case first == '{':
		return err.Error()
	case first != '[':
		return "no JSON object"
	}
	elements, err := scan.Elements(text)
	if err != nil {
		return err.Error()
	}
	if len(elements) > 0 && elements[0][0] == '"' {
		label, _ := scan.String(elements[0]) // which Elements has read
		return fmt.Sprintf("a message %.40q without an event", label)
	}
	return "an array within an array, without events"
}

// salvage finds the events in texts that are none themselves. What holds no event at all counts as
// one mistake, and so does what stands between two events.
type salvage struct {
	pl     *pipeline
	b      *batch
	reader *corpus.EventReader
}

var errNoEvent = errors.New("no event")

// value takes the events out of one JSON value: an event, a relay's message, a list of any of
// these, or an object around a list. It returns an error, and takes nothing, where there is none.
func (s *salvage) value(text []byte, at place) error { return s.nested(text, at, 0) }

// mostNested is how deep wrappers may lie in each other.
const mostNested = 4

func (s *salvage) nested(text []byte, at place, depth int) error {
	if depth > mostNested {
		return errNoEvent
	}
	if depth > 0 {
		it, err := s.pl.parseOne(s.b, text, s.reader)
		if err == nil {
			s.b.items = append(s.b.items, it)
			return nil
		}
	}
	switch text[0] {
	case '[':
		elements, err := scan.Elements(text)
		if err != nil {
			break
		}
		if n := len(elements); (n == 2 || n == 3) && string(elements[0]) == `"EVENT"` {
			return s.nested(elements[n-1], at, depth+1)
		}
		return s.list(elements, at, 0, depth)
	case '{':
		if elements, ok := eventsOf(text); ok {
			if len(elements) == 0 {
				return nil // what is around a list whose events have come before
			}
			return s.list(elements, at, 0, depth)
		}
	}
	return s.copied(text)
}

// list takes events out of the elements of an array, or of the lines of a text. What stands between
// two events counts once, however many elements it is: they may be millions.
func (s *salvage) list(elements [][]byte, at place, lines, depth int) error {
	start, found, bad := len(s.b.items), false, false
	for _, element := range elements {
		if len(element) > 0 {
			err := s.nested(element, at, depth+1)
			if err != nil && !bad {
				s.b.items = append(s.b.items, unparseable(at, "something that is no event, beside one"))
			}
			found, bad = found || err == nil, err != nil
		}
		at.line += lines
	}
	if !found {
		s.b.items = s.b.items[:start]
		return errNoEvent
	}
	return nil
}

// lines takes the events out of a text that is not one value, where each of them is a line: behind
// a line that was cut short, the next ones may look like the rest of it.
func (s *salvage) lines(text []byte, at place) error {
	lines := bytes.Split(text, []byte{'\n'})
	for i := range lines {
		lines[i] = bytes.Trim(lines[i], " \t\r,\x1e")
	}
	return s.list(lines, at, 1, 0)
}

// eventsOf returns the elements of the list named "events" of an object.
func eventsOf(text []byte) (elements [][]byte, ok bool) {
	s := scan.Scanner{Src: text}
	s.Object(func(key []byte) {
		if string(key) != "events" || s.Peek() != '[' {
			s.Skip()
			return
		}
		ok = true
		s.List(func() { elements = append(elements, s.Skip()) })
	})
	s.End()
	return elements, ok && s.Err == nil
}

// copied takes an event from a row as psql's COPY writes it, in which every backslash is doubled.
// Whether that is what it was, its id shows.
func (s *salvage) copied(text []byte) error {
	undone := undoCopy(text)
	if undone == nil {
		return errNoEvent
	}
	it, err := s.pl.parseOne(s.b, undone, s.reader)
	if err != nil {
		return errNoEvent
	}
	it.copied = true
	s.b.items = append(s.b.items, it)
	return nil
}

// undoCopy returns the text with every doubled backslash undone, nil where it has none.
func undoCopy(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\\`)) {
		return nil
	}
	return bytes.ReplaceAll(text, []byte(`\\`), []byte(`\`))
}
