package measure

import "strings"

// Incomplete begins the note on figures of a transfer that did not bring all that it set out to bring: they say how fast it went as far as it
// went. Such a figure is shown with its reason, and neither ranked nor compared with one of a transfer that is complete.
const Incomplete = "incomplete"

// MarkIncomplete notes why a figure is of an incomplete transfer.
func (m *Measurement) MarkIncomplete(reason string) {
	note := Incomplete
	if reason != "" {
		note += ": " + strings.ReplaceAll(reason, "; ", ", ") // notes of several trials are joined by semicolons
	}
	m.Note = joinNotes(m.Note, note)
}

// IsIncomplete reports whether any of the trials was incomplete.
func (m *Measurement) IsIncomplete() bool {
	for note := range strings.SplitSeq(m.Note, "; ") {
		if note == Incomplete || strings.HasPrefix(note, Incomplete+": ") {
			return true
		}
	}
	return false
}
