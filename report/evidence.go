package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"relaybench/results"
)

// evidence adds what proves a finding.
func (d *Document) evidence(all []results.Evidence, indent, most int, more string) {
	if len(all) > 0 {
		d.add(verbatim{language: "text", lines: evidenceLines(all, false), brief: evidenceLines(all, true), indent: indent, mark: "·", most: most, more: more})
	}
}

// evidenceLines are evidence as lines: reasons before events, and events of one kind together where
// ids are short.
func evidenceLines(all []results.Evidence, short bool) []string {
	var reasons, lines []string
	listed := map[string]int{} // the line that lists events alike
	for i := range all {
		e := &all[i]
		head, more, id, text := evidenceHead(e), "", e.ID, e.Text
		switch n := Thousands(fmt.Sprint(e.Count)); {
		case e.Count > 0 && id == "" && text == "":
			more = "and " + n + " more"
		case e.Count > 1 && id != "":
			head += ", " + n + " in all"
		case e.Count > 1:
			head += ", " + n + " times"
		}
		if e.Code == results.EvidenceEvent && text != "" {
			id = "" // it stands in the event
		}
		if short && id != "" {
			id = Shorten(id, 12) + "…"
		}
		if short {
			text = shortIDs(text)
		}
		body := clauses(id, text, more)
		at, known := listed[head]
		switch {
		case e.Code == results.EvidenceRefused && e.ID == "":
			reasons = append(reasons, joinHead(head, body))
		case known && text == "":
			if !strings.Contains(lines[at], body) {
				lines[at] += ", " + body
			}
		default:
			if short && head != "" && text == "" {
				listed[head] = len(lines)
			}
			line := joinHead(head, strings.TrimPrefix(body, "and ")) // nothing is before it
			if !short || !slices.Contains(lines, line) {             // the same question, in every trial
				lines = append(lines, line)
			}
		}
	}
	return append(reasons, lines...)
}

// evidenceHead is what several lines may have in common.
func evidenceHead(e *results.Evidence) string {
	kind, cause := "", codeText(e.Cause)
	if e.Kind != nil {
		kind = fmt.Sprintf("kind %d", *e.Kind)
	}
	switch e.Code {
	case results.EvidenceMissing:
		cause = cmp.Or(word("missing", e.Cause), cause)
	case results.EvidenceRefused: // a prefix of NIP-01
		cause = e.Cause
	}
	return joinSaid(", ", []string{word("evidence", e.Code), kind, cause})
}

// shortIDs shortens the ids and keys in a text to 12 digits, as they are shown on a terminal.
func shortIDs(s string) string {
	noDigit := func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }
	for id := range strings.FieldsFuncSeq(s, noDigit) {
		if len(id) >= 64 {
			s = strings.ReplaceAll(s, id, id[:12]+"…")
		}
	}
	return s
}

func joinHead(head, body string) string {
	if head == "" || body == "" {
		return head + body
	}
	return head + ": " + body
}
