package corpus

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"relaybench/corpus/scan"
)

type scanner struct {
	scan.Scanner
	*EventReader
	lends bool // strings lie in the text where they can
}

func (s *scanner) text() string {
	raw, escaped := s.Raw()
	switch {
	case escaped:
		raw = scan.AppendUnescaped(make([]byte, 0, len(raw)), raw)
	case !s.lends:
		return string(raw)
	}
	return unsafe.String(unsafe.SliceData(raw), len(raw)) // nobody else has it, or it lasts as long as the reader's event
}

// ErrNoSignature marks an event that is well formed but for its sig.
var ErrNoSignature = errors.New("no 128-digit signature")

// ParseEvent reads one JSON object as an event and checks its form, not its id and signature: every
// field of NIP-01 once, with the right type, lower-case hexadecimal digits, kind up to 65,535.
// Fields that NIP-01 does not name are passed over. The result shares no memory with text.
func ParseEvent(text []byte) (Event, error) {
	s := scanner{Scanner: scan.Scanner{Src: text}, EventReader: &EventReader{[]Tag{}, []string{}}}
	e := s.event()
	s.End()
	if s.Err != nil {
		return Event{}, s.Err
	}
	return e, nil
}

const (
	hasID = 1 << iota
	hasPubKey
	hasCreatedAt
	hasKind
	hasTags
	hasContent
	hasSig
	hasAll = 1<<iota - 1
)

// eventFields are the fields of an event (NIP-01), in the order of the bits above.
var eventFields = [...]string{"id", "pubkey", "created_at", "kind", "tags", "content", "sig"}

func (s *scanner) event() (e Event) {
	seen := 0
	goodSig := false
	s.Object(func(key []byte) {
		bit := 0
		switch string(key) {
		case "id":
			bit = hasID
			s.hex(e.ID[:], "id")
		case "pubkey":
			bit = hasPubKey
			s.hex(e.PubKey[:], "pubkey")
		case "created_at":
			bit = hasCreatedAt
			e.CreatedAt = s.Int(math.MaxInt64/16, "created_at")
		case "kind":
			bit = hasKind
			e.Kind = int(s.Int(math.MaxUint16, "kind"))
		case "tags":
			bit = hasTags
			e.Tags = s.tagList()
		case "content":
			bit = hasContent
			e.Content = s.text()
		case "sig":
			bit = hasSig
			if s.Peek() == '"' {
				raw, _ := s.Raw()
				goodSig = decodeHex(e.Sig[:], raw)
			} else {
				s.Skip()
			}
		default:
			s.Skip()
		}
		if seen&bit != 0 {
			s.Fail("field %q twice", key)
		}
		seen |= bit
	})
	if s.Err != nil {
		return e
	}
	if missing := hasAll &^ (seen | hasSig); missing != 0 {
		for i, name := range eventFields {
			if missing&(1<<i) != 0 {
				s.Fail("field %q is missing", name)
			}
		}
	}
	if s.Err == nil && !goodSig {
		s.Err = fmt.Errorf("at byte %d: %w", s.Pos, ErrNoSignature)
	}
	return e
}

func (s *scanner) hex(dst []byte, key string) {
	start := s.Pos
	raw, _ := s.Raw()
	if s.Err == nil && !decodeHex(dst, raw) {
		s.Pos = start
		s.Fail("field %q is not %d lower-case hexadecimal digits", key, 2*len(dst))
	}
}

func (s *scanner) tagList() []Tag {
	s.tags, s.elements = s.tags[:0], s.elements[:0]
	s.List(func() {
		start := len(s.elements)
		s.List(func() { s.elements = append(s.elements, s.text()) })
		s.tags = append(s.tags, Tag(s.elements[start:len(s.elements):len(s.elements)]))
	})
	return s.tags
}

// EventReader reads one event after another into the same memory: each lasts until the next.
type EventReader struct {
	tags     []Tag
	elements []string
}

// Read is ParseEvent, but that the event shares memory with text, and its tags last until the next
// call. Beside ErrNoSignature stands the event with all its other fields.
func (r *EventReader) Read(text []byte) (Event, error) {
	s := scanner{Scanner: scan.Scanner{Src: text}, EventReader: r, lends: true}
	e := s.event()
	s.End()
	return e, s.Err
}

// ScanTags reads only the tags of an event's JSON object: it calls each with every tag's first two
// elements ("" where absent) and the number of its elements. name and value are valid until each
// returns. Apart from the tags, whose form is checked as ParseEvent does, the text needs only to be
// JSON.
func ScanTags(text []byte, each func(name, value []byte, elements int)) error {
	s := scan.Scanner{Src: text}
	var pair [2][]byte
	var unescaped [2][]byte
	s.Object(func(key []byte) {
		if string(key) != "tags" {
			s.Skip()
			return
		}
		s.List(func() {
			n := 0
			pair = [2][]byte{}
			s.List(func() {
				raw, escaped := s.Raw()
				if n < len(pair) {
					if escaped {
						unescaped[n] = scan.AppendUnescaped(unescaped[n][:0], raw)
						raw = unescaped[n]
					}
					pair[n] = raw
				}
				n++
			})
			if s.Err == nil {
				each(pair[0], pair[1], n)
			}
		})
	})
	s.End()
	return s.Err
}
