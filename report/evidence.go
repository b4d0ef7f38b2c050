package report

import (
	"regexp"
	"slices"
	"strings"
)

var (
	longID    = regexp.MustCompile(`\b[0-9a-f]{64}\b|\b[0-9a-f]{13,}…`)
	refusedAs = regexp.MustCompile(`^[^:]{1,60}, \d+ times: `)
	amounts   = regexp.MustCompile(`\b(?:of|acknowledged|refused|answered|newest|and) (?:all )?\d{4,}\b|(?:^|[ (])\d{4,} (?:of|events?|answers?|queries|refused|never|acknowledged|superseded|deleted|missing|extra|were|more|times|beyond|out|connections)\b`)
	digits    = regexp.MustCompile(`\d{4,}`)
)

// shortIDs shortens the ids and keys in a text to 12 digits, as they are shown on a terminal.
func shortIDs(s string) string {
	return longID.ReplaceAllStringFunc(s, func(id string) string { return id[:12] + "…" })
}

// readable separates the thousands of the amounts in a text of ours, and leaves alone what else is made of digits.
func readable(s string) string {
	return amounts.ReplaceAllStringFunc(s, func(a string) string { return digits.ReplaceAllStringFunc(a, thousands) })
}

// reasonsFirst puts the lines that say why events were refused before those that say which.
func reasonsFirst(evidence []string) []string {
	out := slices.Clone(evidence)
	slices.SortStableFunc(out, func(a, b string) int {
		ra, rb := refusedAs.MatchString(a), refusedAs.MatchString(b)
		switch {
		case ra && !rb:
			return -1
		case rb && !ra:
			return 1
		}
		return 0
	})
	return out
}

// digest is evidence for a terminal: reasons first, ids short, and those of one kind on one line.
func digest(evidence []string) []string {
	var out []string
	kind, open := "", false // what the last line lists, and whether more may join it
	said := ""              // what the last line says of all the ids behind it
	for _, e := range reasonsFirst(evidence) {
		before, id, after, ok := cutID(e)
		if i := longID.FindStringIndex(e); i != nil && i[0] == 0 && strings.HasPrefix(e[i[1]:], ": ") {
			reason := readable(e[i[1]+2:])
			if said == reason {
				out[len(out)-1] += ", " + shortIDs(e[:i[1]])
			} else {
				out = append(out, reason+": "+shortIDs(e[:i[1]]))
			}
			said, open = reason, false
			continue
		}
		said = ""
		switch {
		case open && strings.HasPrefix(e, "and ") && strings.HasSuffix(e, " more"):
			out[len(out)-1] += ", " + readable(e)
			open = false
		case ok && open && before == kind:
			out[len(out)-1] += ", " + shortIDs(id) + after
		case ok:
			out = append(out, before+shortIDs(id)+after)
			kind, open = before, after == "" || strings.HasPrefix(after, " (")
		default:
			out = append(out, readable(shortIDs(e)))
			open = false
		}
	}
	return out
}

// cutID splits a line of evidence around an event's id that ends it, or that only a remark in brackets follows, or around how many more there are.
func cutID(e string) (before, id, after string, ok bool) {
	if i := strings.LastIndex(e, ": and "); i >= 0 && strings.HasSuffix(e, " more") {
		return e[:i+2], e[i+2:], "", true
	}
	at := longID.FindStringIndex(e)
	if at == nil || at[1]-at[0] != 64 {
		return "", "", "", false
	}
	before, id, after = e[:at[0]], e[at[0]:at[1]], e[at[1]:]
	if after != "" && !(strings.HasPrefix(after, " (") && strings.HasSuffix(after, ")")) || strings.Contains(before, `"`) {
		return "", "", "", false
	}
	return before, id, after, true
}
