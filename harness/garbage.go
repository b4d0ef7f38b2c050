package harness

import (
	"encoding/json"
	"strings"
)

// Garbage counts a relay's frames that are no message of the protocol: not a JSON array that begins with a label (NIP-01). Labels that are not known
// are no garbage, since relays may have messages of their own.
type Garbage struct {
	Count   int
	Example string // the first of them, cut short; a relay wrote it
}

// longestExample is how much of a frame is kept, in bytes.
const longestExample = 80

// see looks at a frame that could not be made sense of.
func (g *Garbage) see(frame []byte) {
	var parts []json.RawMessage
	var label string
	if json.Unmarshal(frame, &parts) == nil && len(parts) > 0 && json.Unmarshal(parts[0], &label) == nil {
		return
	}
	if g.Count++; g.Count == 1 {
		g.Example = strings.ToValidUTF8(string(frame[:min(len(frame), longestExample)]), "\ufffd")
	}
}

// Add joins two counts.
func (g *Garbage) Add(other Garbage) {
	if g.Count == 0 {
		g.Example = other.Example
	}
	g.Count += other.Count
}
