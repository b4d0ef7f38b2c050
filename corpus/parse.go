package corpus

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"relaybench/corpus/scan"
)

// scanner reads events and filters.
type scanner struct {
	scan.Scanner
	arena *arena // where events read lend their memory from, nil for memory of their own
}

func scannerOf(text []byte) *scanner { return &scanner{Scanner: scan.Scanner{Src: text}} }

// object calls member with each key of an object; member must consume the value.
func (s *scanner) object(member func(key string)) {
	s.Object(func(key []byte) { member(fieldName(key)) })
}

// fieldName is string(key) without allocation for the fields of an event (NIP-01).
func fieldName(key []byte) string {
	for _, name := range eventFields {
		if string(key) == name {
			return name
		}
	}
	return string(key)
}

// text consumes a string, and returns its value.
func (s *scanner) text() string {
	raw, escaped := s.Raw()
	switch {
	case escaped:
		raw = scan.AppendUnescaped(make([]byte, 0, len(raw)), raw)
	case s.arena == nil:
		return string(raw)
	}
	return unsafe.String(unsafe.SliceData(raw), len(raw)) // nobody else has it, or it lasts as long as the arena's events
}

// ErrNoSignature marks an event that is well formed but for a sig field that is absent or not 128 hexadecimal digits.
var ErrNoSignature = errors.New("no 128-digit signature")

// ParseEvent reads one JSON object as an event and checks its form, not its id and signature: every field of NIP-01 once, with the right
// type, lower-case hexadecimal digits, kind up to 65,535. Fields that NIP-01 does not name are passed over. The result shares no
// memory with text.
func ParseEvent(text []byte) (Event, error) {
	s := scannerOf(text)
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

// eventFields are the fields of an event, in the order of the bits above.
var eventFields = [...]string{"id", "pubkey", "created_at", "kind", "tags", "content", "sig"}

func (s *scanner) event() (e Event) {
	seen := 0
	goodSig := false
	s.object(func(key string) {
		bit := 0
		switch key {
		case "id":
			bit = hasID
			s.hex(e.ID[:], key)
		case "pubkey":
			bit = hasPubKey
			s.hex(e.PubKey[:], key)
		case "created_at":
			bit = hasCreatedAt
			e.CreatedAt = s.Int(math.MaxInt64/16, key)
		case "kind":
			bit = hasKind
			e.Kind = int(s.Int(math.MaxUint16, key))
		case "tags":
			bit = hasTags
			e.Tags = s.tags()
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

func (s *scanner) tags() []Tag {
	if s.arena != nil {
		return s.arena.read(s)
	}
	tags := []Tag{}
	s.List(func() {
		tag := Tag{}
		s.List(func() { tag = append(tag, s.text()) })
		tags = append(tags, tag)
	})
	return tags
}

// arena is memory for the tags of one event after another, for readers that are done with each before the next comes. Strings of an event
// that is read into an arena point into the text that it was read from.
type arena struct {
	tags     []Tag
	elements []string
}

func (a *arena) read(s *scanner) []Tag {
	a.tags, a.elements = a.tags[:0], a.elements[:0]
	s.List(func() {
		start := len(a.elements)
		s.List(func() { a.elements = append(a.elements, s.text()) })
		a.tags = append(a.tags, Tag(a.elements[start:len(a.elements):len(a.elements)]))
	})
	return a.tags
}

// scanTags reads only the tags of an event's JSON object: it calls each with every tag's first two elements ("" where absent) and the
// number of its elements. name and value are valid until each returns. Apart from the tags, whose form is checked as ParseEvent
// does, the text needs only to be JSON.
func scanTags(text []byte, each func(name, value []byte, elements int)) error {
	s := scannerOf(text)
	var pair [2][]byte
	var unescaped [2][]byte
	s.object(func(key string) {
		if key != "tags" {
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
