package wire

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"relaybench/corpus"
	"relaybench/corpus/scan"
)

// Type is what a relay's message is, by its first element.
type Type uint8

// The relay-to-client messages of NIP-01 (EVENT, OK, EOSE, CLOSED, NOTICE), NIP-42 (AUTH), NIP-45
// (COUNT) and NIP-77 (NEG-MSG, NEG-ERR).
const (
	Unknown Type = iota // not JSON, not an array, another label, or an element of the wrong type
	Event
	OK
	EOSE
	Closed
	Notice
	Auth
	Count
	NegMsg
	NegErr
)

var typeNames = [...]string{"unknown", "EVENT", "OK", "EOSE", "CLOSED", "NOTICE", "AUTH", "COUNT", "NEG-MSG", "NEG-ERR"}

// String returns the label on the wire, "unknown" for Unknown.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "Type(" + strconv.Itoa(int(t)) + ")"
}

// Message is a relay's message. Its slices point into the frame and live as long, except for a
// subscription id, label or payload that was written with escapes, which is a decoded copy.
type Message struct {
	Type     Type
	Sub      []byte   // subscription id, decoded: EVENT, EOSE, CLOSED, COUNT, NEG-MSG, NEG-ERR
	ID       [32]byte // event id: EVENT, OK
	HasID    bool     // false where there was no id of 64 lower-case hexadecimal digits, or an event named two
	Accepted bool     // OK
	Reason   []byte   // what stands between the quotes, still escaped: OK, CLOSED, NOTICE, NEG-ERR; nil where left out
	Event    []byte   // the event object as sent: EVENT
	// CreatedAt is what the event says, 0 where Dated is false: it names no time, two, or one that
	// is no whole number of int64. It is not checked beyond that: a relay says it.
	CreatedAt int64
	Dated     bool
	// Fault is what is wrong with the frame, whatever the Type: a NOTICE that is not UTF-8 is a
	// Notice, an event whose kind is text an Event.
	Fault   Fault
	Field   Field  // of WrongField: which field of the event; the first of several
	Payload []byte // AUTH: the challenge, decoded; COUNT: the object as sent; NEG-MSG: the message's hexadecimal digits
}

// Parse reads a relay's message into m, overwriting it. It reads the whole frame as strict JSON in
// one pass, so the Type is only set for a frame that is well formed to its last byte, and the ID is
// that of the event itself whatever the order of its keys and whatever its tags and content hold.
// Elements after those that the NIP names are passed over, and a reason left out is nil. A frame
// with a value nested deeper than 64 levels is Unknown. Nothing is allocated unless strings that
// matter are written with escapes, or the frame is Unknown: it is looked at once more then, and the
// Fault says why.
func Parse(frame []byte, m *Message) {
	*m = Message{}
	s := scanner{scan.Scanner{Src: frame, Lenient: true}}
	s.message(m)
	switch {
	case s.Err != nil:
		*m = Message{Fault: faultOf(frame)}
	case s.NotUTF8: // outside of strings it would be bad
		m.Fault, m.Field = NotUTF8, ""
	}
}

// scanner reads relays' messages.
type scanner struct{ scan.Scanner }

func (s *scanner) message(m *Message) {
	s.Expect('[')
	label := s.Text()
	if s.Err != nil {
		return
	}
	switch m.Type = labelType(string(label)); m.Type {
	case Unknown:
		s.Fail("no relay's message")
		return
	case OK:
		s.Expect(',')
		m.setID(s.Text())
		s.Expect(',')
		m.Accepted = s.Bool()
	case Notice, Auth:
	default:
		m.Sub = s.nextText()
	}
	switch m.Type {
	case Event:
		s.Expect(',')
		m.Event = s.event(m)
	case OK, Closed, Notice, NegErr:
		m.Reason = s.reason()
	case Count:
		s.Expect(',')
		if s.Peek() != '{' {
			s.Fail("an object expected")
		}
		m.Payload = s.Skip()
	case Auth, NegMsg:
		m.Payload = s.nextText()
	}
	for s.Accept(',') {
		s.Skip()
	}
	s.Expect(']')
	s.End()
}

func (s *scanner) nextText() []byte {
	s.Expect(',')
	return s.Text()
}

// reason reads one more string if there is one more element.
func (s *scanner) reason() []byte {
	if !s.Accept(',') {
		return nil
	}
	raw, _ := s.Raw()
	return raw
}

// event consumes an object and finds the id and the time among its own keys.
func (s *scanner) event(m *Message) []byte {
	s.Space()
	start := s.Pos
	s.Expect('{')
	ids, times := 0, 0
	for first := true; s.Err == nil && !s.Accept('}'); first = false {
		if !first {
			s.Expect(',')
		}
		key := s.Text()
		s.Expect(':')
		switch string(key) {
		case "id":
			ids++
			if s.Peek() == '"' {
				m.setID(s.Text())
			} else {
				m.wrong("id")
				s.Skip()
			}
		case "created_at":
			times++
			if m.CreatedAt, m.Dated = wholeNumber(s.Skip()); !m.Dated {
				m.wrong("created_at")
			}
		case "kind":
			if _, ok := wholeNumber(s.Skip()); !ok {
				m.wrong("kind")
			}
		case "pubkey":
			s.ofString(m, "pubkey")
		case "content":
			s.ofString(m, "content")
		case "sig":
			s.ofString(m, "sig")
		case "tags":
			if s.Peek() != '[' {
				m.wrong("tags")
			}
			s.Skip()
		default:
			s.Skip()
		}
	}
	if ids != 1 || !m.HasID {
		m.HasID, m.ID = false, [32]byte{}
	}
	if times != 1 || !m.Dated {
		m.Dated, m.CreatedAt = false, 0
	}
	if s.Err != nil {
		return nil
	}
	return s.Src[start:s.Pos]
}

// ofString consumes the value of a field that is to be a string.
func (s *scanner) ofString(m *Message, field Field) {
	if s.Peek() == '"' {
		s.Raw()
		return
	}
	m.wrong(field)
	s.Skip()
}

// setID reads 64 lower-case hexadecimal digits (NIP-01).
func (m *Message) setID(text []byte) {
	id, ok := corpus.ParseID(text)
	m.ID, m.HasID = id, ok
}

// wrong notes that a field of the event is of the wrong type.
func (m *Message) wrong(field Field) {
	if m.Fault == Sound {
		m.Fault, m.Field = WrongField, field
	}
}

// ReasonText decodes Reason for people: at most 1,024 bytes of it, "" where there is none. It may
// hold any characters.
func (m *Message) ReasonText() string {
	const most = 1024
	text := strings.ToValidUTF8(string(scan.AppendUnescaped(nil, m.Reason)), "\ufffd")
	if len(text) <= most {
		return text
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// ReasonPrefix returns the machine-readable word before the first colon of an OK or CLOSED message
// (NIP-01), or "other" where there is none. Relays write these texts, so only short words of small
// letters and hyphens count.
func ReasonPrefix(reason []byte) string {
	for i, c := range reason {
		if c == ':' && i > 0 {
			return string(reason[:i])
		}
		if i == 24 || (c < 'a' || c > 'z') && c != '-' {
			break
		}
	}
	return "other"
}

// Counted returns the count in a COUNT message (NIP-45), and whether the relay says that it is
// approximate; ok is false where there is none.
func (m *Message) Counted() (n int64, approximate, ok bool) {
	var payload struct {
		Count       *int64
		Approximate bool
	}
	if m.Type != Count || json.Unmarshal(m.Payload, &payload) != nil || payload.Count == nil {
		return 0, false, false
	}
	return *payload.Count, payload.Approximate, *payload.Count >= 0
}

// wholeNumber reads one of at most 18 digits: what has more is no time.
func wholeNumber(text []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil && n > -1e18 && n < 1e18
}
