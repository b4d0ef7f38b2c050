package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"relaybench/corpus/scan"
)

// Fault is what is wrong with a frame, from the outside inwards: the first that applies. Names do
// not change between versions.
type Fault string

// The faults.
const (
	Sound        Fault = ""              // none. A message with a label that is not known is sound: relays may have their own
	Binary       Fault = "binary-frame"  // messages are text (NIP-01)
	NotUTF8      Fault = "not-utf8"      // text that is not UTF-8 (RFC 6455 section 8.1)
	NotJSON      Fault = "not-json"      // text that is no JSON value (RFC 8259)
	NotMessage   Fault = "not-a-message" // JSON that is no array which begins with a label (NIP-01)
	WrongElement Fault = "wrong-element" // a known label, and an element that is missing or of the wrong type
	WrongField   Fault = "wrong-field"   // EVENT, and a field of the event that is of the wrong type (NIP-01)
)

// Field is the key of a field of an event (NIP-01), "" for none.
type Field string

// Malformation is what came of one kind of fault.
type Malformation struct {
	Fault   Fault
	Message Type  // by its label; Unknown where there is none that is known
	Field   Field // of WrongField
	Count   int
	Example string // the first, cut to 80 bytes; a relay wrote it, and what is not UTF-8 in it is replaced
}

// String is for people.
func (m Malformation) String() string {
	what := map[Fault]string{
		Binary: "binary, not text", NotUTF8: "not UTF-8", NotJSON: "not JSON", NotMessage: "JSON, but no message",
		WrongElement: "with an element missing or of the wrong type", WrongField: fmt.Sprintf("with a %v of the wrong type", m.Field),
	}[m.Fault]
	label := ""
	if m.Message != Unknown {
		label = " of " + m.Message.String()
	}
	noun := "frames"
	if m.Count == 1 {
		noun = "frame"
	}
	return fmt.Sprintf("%d %s%s %s: %q", m.Count, noun, label, what, m.Example)
}

// Garbage counts a relay's frames that are no valid message of the protocol. The zero value is
// none. It takes a few KB at most.
type Garbage struct {
	Count   int
	Example string         // the first of all, as in Malformation
	Kinds   []Malformation // one for each fault, label and field, in the order in which they first came
}

// longestExample is how much of a frame is kept, in bytes.
const longestExample = 80

func (g *Garbage) see(fault Fault, field Field, frame []byte) {
	text := example(frame)
	g.Add(Garbage{1, text, []Malformation{{fault, labelOf(frame), field, 1, text}}})
}

func example(frame []byte) string {
	return strings.ToValidUTF8(string(frame[:min(len(frame), longestExample)]), "\ufffd")
}

// Add joins two counts.
func (g *Garbage) Add(other Garbage) {
	if g.Count == 0 {
		g.Example = other.Example
	}
	g.Count += other.Count
	for _, m := range other.Kinds {
		same := func(k Malformation) bool { return k.Fault == m.Fault && k.Message == m.Message && k.Field == m.Field }
		if i := slices.IndexFunc(g.Kinds, same); i >= 0 {
			g.Kinds[i].Count += m.Count
		} else {
			g.Kinds = append(g.Kinds, m)
		}
	}
}

// Of returns how many of the frames had a message's label, in whatever way they were malformed.
func (g Garbage) Of(label Type) int {
	return g.sum(func(k Malformation) bool { return k.Message == label })
}

// Binary returns how many of the frames were binary ones.
func (g Garbage) Binary() int { return g.sum(func(k Malformation) bool { return k.Fault == Binary }) }

func (g Garbage) sum(of func(Malformation) bool) (n int) {
	for _, k := range g.Kinds {
		if of(k) {
			n += k.Count
		}
	}
	return n
}

// String is for people: "" for none.
func (g Garbage) String() string {
	parts := make([]string, len(g.Kinds))
	for i, k := range g.Kinds {
		parts[i] = k.String()
	}
	return strings.Join(parts, "; ")
}

// faultOf says what is wrong with a frame in which Parse finds no message. It is slow: good frames
// do not come here.
func faultOf(frame []byte) Fault {
	var elements []json.RawMessage
	var label string
	switch {
	case !utf8.Valid(frame):
		return NotUTF8
	case !json.Valid(frame):
		return NotJSON
	case json.Unmarshal(frame, &elements) != nil || len(elements) == 0 || elements[0][0] != '"' || json.Unmarshal(elements[0], &label) != nil:
		return NotMessage
	case labelType(label) != Unknown:
		return WrongElement
	}
	return Sound
}

// labelOf reads the label at the beginning of a frame, whatever follows it.
func labelOf(frame []byte) Type {
	s := scanner{scan.Scanner{Src: frame, Lenient: true}}
	s.Expect('[')
	if label := s.Text(); s.Err == nil {
		return labelType(string(label))
	}
	return Unknown
}

func labelType(label string) Type {
	if i := slices.Index(typeNames[1:], label); i >= 0 {
		return Type(1 + i)
	}
	return Unknown
}
