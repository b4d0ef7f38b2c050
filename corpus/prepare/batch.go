package prepare

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"relaybench/corpus"
	"relaybench/corpus/scan"
)

// batch holds event texts that follow each other in the source, and what was found out about them.
// What holds no event at all counts as one mistake, and so does what stands between two events.
type batch struct {
	pl     *pipeline
	texts  []byte
	ends   []int   // of each text in texts; one that was over maxEventText is empty
	places []place // where each begins
	read   int64   // bytes of the file read so far

	items  []item
	lines  []byte // the canonical lines of items
	reader corpus.EventReader
	hashed []byte // scratch
}

type item struct {
	event  corpus.Event // without tags and content, which line has
	line   []byte
	key    Key
	drop   DropReason
	badID  bool
	tooOld bool // older than as many good events as the limit keeps: not checked, and not kept

	copied bool   // its doubled backslashes have been undone
	at     place  // of what is unparseable
	why    string // it is
}

type place struct {
	part string // name within an archive, "" where there is none
	line int    // from 1
}

// weight is how many batchBytes the texts take.
func (b *batch) weight() int { return 1 + len(b.texts)/batchBytes }

func (b *batch) parse() {
	b.items = slices.Grow(b.items[:0], len(b.ends))
	b.lines = slices.Grow(b.lines[:0], len(b.texts))
	start := 0
	for i, end := range b.ends {
		b.parseText(b.texts[start:end], b.places[i])
		start = end
	}
}

// largeText is an event text that is parsed while no other large one is: what is parsed can take
// several times the text's memory.
const largeText = 1 << 20

// parseText turns a text into items. Mostly it is one event.
func (b *batch) parseText(text []byte, at place) {
	if len(text) == 0 {
		b.unparseable(at, fmt.Sprintf("longer than %d MiB", maxEventText>>20))
		return
	}
	if len(text) > largeText {
		b.pl.large.Lock()
		defer b.pl.large.Unlock()
		defer func() { b.reader, b.hashed = corpus.EventReader{}, nil }()
	}
	if err := b.event(text); err != nil && !b.wrapped(text, at, 0) && !b.eachLine(text, at) {
		b.unparseable(at, reason(text, err))
	}
}

func (b *batch) unparseable(at place, why string) {
	b.items = append(b.items, item{drop: DropUnparseable, at: at, why: why})
}

// event takes one event. Where the text is none, or the id is wrong, it may be a row as psql's COPY
// writes it, in which every backslash is doubled. The error says why the text is no event.
func (b *batch) event(text []byte) error {
	it, err := b.readEvent(text)
	if err != nil || it.badID {
		if undone := undoCopy(text); undone != nil {
			if row, e := b.readEvent(undone); e == nil && (err != nil || !row.badID) {
				row.copied = true
				it, err = row, nil
			}
		}
	}
	if err == nil {
		b.items = append(b.items, it)
	}
	return err
}

// undoCopy returns the text with every doubled backslash undone, nil where it has none.
func undoCopy(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\\`)) {
		return nil
	}
	return bytes.ReplaceAll(text, []byte(`\\`), []byte(`\`))
}

// readEvent reads one event and applies the rules on its form. A large event that is dropped is not
// kept in memory.
func (b *batch) readEvent(text []byte) (item, error) {
	e, err := b.reader.Read(text)
	unsigned := errors.Is(err, corpus.ErrNoSignature)
	if err != nil && !unsigned {
		return item{}, err
	}
	start := len(b.lines)
	b.lines = e.AppendJSON(b.lines)
	line := b.lines[start:len(b.lines):len(b.lines)]
	it := item{event: e, line: line, key: b.pl.seen.key(line), drop: DropNoSignature}
	if !unsigned {
		it.drop = b.pl.options.Drop(&e, line)
		b.hashed = e.AppendSerialization(b.hashed[:0])
		it.badID = sha256.Sum256(b.hashed) != e.ID
	}
	if it.drop != Kept {
		b.lines = b.lines[:start]
		it.event, it.line = corpus.Event{}, nil
	}
	it.event.Tags, it.event.Content = nil, "" // what they point into has other uses next
	return it, nil
}

// mostNested is how deep wrappers may lie in each other.
const mostNested = 4

// wrapped takes the events out of a relay's message, a list of events or messages, or an object
// around a list. It takes nothing, and reports false, where there is none.
func (b *batch) wrapped(text []byte, at place, depth int) bool {
	switch text[0] {
	case '[':
		elements, err := scan.Elements(text)
		n := len(elements)
		switch {
		case err != nil:
			return false
		case (n == 2 || n == 3) && string(elements[0]) == `"EVENT"`:
			return b.nested(elements[n-1], at, depth+1)
		}
		return b.list(elements, at, 0, depth)
	case '{':
		elements, ok := eventsOf(text)
		return ok && b.list(elements, at, 0, depth)
	}
	return false
}

// nested takes the events of a value within a wrapper.
func (b *batch) nested(text []byte, at place, depth int) bool {
	return depth <= mostNested && (b.event(text) == nil || b.wrapped(text, at, depth))
}

// list takes events out of the elements of an array, or of the lines of a text. What stands between
// two events counts once, however many elements it is: they may be millions.
func (b *batch) list(elements [][]byte, at place, lines, depth int) bool {
	start, found, bad := len(b.items), false, false
	for _, element := range elements {
		if len(element) > 0 {
			good := b.nested(element, at, depth+1)
			if !good && !bad {
				b.unparseable(at, "something that is no event, beside one")
			}
			found, bad = found || good, !good
		}
		at.line += lines
	}
	if !found {
		b.items = b.items[:start]
	}
	return found
}

// eachLine takes the events out of a text that is not one value, where each of them is a line:
// behind a line that was cut short, the next ones may look like the rest of it.
func (b *batch) eachLine(text []byte, at place) bool {
	lines := bytes.Split(text, []byte{'\n'})
	for i := range lines {
		lines[i] = bytes.Trim(lines[i], " \t\r,\x1e")
	}
	return b.list(lines, at, 1, 0)
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

// reason says why a text is no event and holds none.
func reason(text []byte, err error) string {
	switch first := bytes.TrimLeft(text, " \t\r\n")[0]; first {
	case '{':
		return err.Error()
	case '[':
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
	return "no JSON object"
}

func (b *batch) judge(ctx context.Context) {
	for i := range b.items {
		it := &b.items[i]
		switch {
		case ctx.Err() != nil:
			return
		case it.drop != Kept || it.tooOld:
		case it.badID:
			it.drop = DropBadID
		case !it.event.CheckSignature():
			it.drop = DropBadSignature
		}
	}
}
