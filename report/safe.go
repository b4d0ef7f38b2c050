package report

import (
	"fmt"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"relaybench/results"
)

// A record is not to be trusted: relay names, reasons and log lines come from programs under test.
// Before anything is rendered, every string in it goes through Visible, once, here; the renderings
// then add what their own syntax needs.

// maxText bounds one string of a rendering, in bytes. Configuration files are bounded line by line.
const (
	maxText  = 4096
	maxLines = 2000
	cutMark  = "… (cut)"
)

// Sanitized returns a copy of r in which no string can act on a terminal, hide, or reorder what
// stands around it.
func Sanitized(r *results.Record) *results.Record {
	out := r.Rewritten(Visible)
	for i := range r.Relays { // the one place where line ends are meant
		for name, content := range r.Relays[i].Config {
			out.Relays[i].Config[Visible(name)] = visibleLines(content)
		}
	}
	for i := range r.Measurements { // decoded with bounds of its own and never shown
		out.Measurements[i].Histogram = r.Measurements[i].Histogram
	}
	return out
}

func visibleLines(content string) string {
	var lines []string
	for line := range strings.Lines(content) {
		if len(lines) == maxLines {
			lines = append(lines, cutMark)
			break
		}
		lines = append(lines, Visible(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")))
	}
	return strings.Join(lines, "\n")
}

// Visible writes out as \u{hex} every character that does not simply show: controls (ESC among
// them), line ends, bidirectional overrides, zero-width and other invisible ones, private and
// unassigned code points, and combining marks beyond four in a row. A byte that is not UTF-8
// becomes \x{hex}. Different strings stay different.
func Visible(s string) string {
	end := ""
	if len(s) > maxText {
		s, end = s[:maxText], cutMark
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if len(s) > 0 && s[len(s)-1] >= utf8.RuneSelf {
			s = s[:len(s)-1]
		}
	}
	if plainASCII(s) {
		return s + end
	}
	var b strings.Builder
	marks := 0
	for i, r := range s {
		if marks++; !unicode.In(r, unicode.Mn, unicode.Me) {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x{%02x}`, s[i])
		case !shows(r) || marks > 4 || r == '\\' && looksEscaped(s[i+1:]):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + end
}

func plainASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '\\' })
}

// looksEscaped tells whether a backslash before rest would read like one of Visible's own escapes.
func looksEscaped(rest string) bool {
	return strings.HasPrefix(rest, "u{") || strings.HasPrefix(rest, "x{")
}

// shows tells whether r puts ink where it stands.
func shows(r rune) bool {
	const brailleBlank = 0x2800
	return unicode.IsPrint(r) && r != brailleBlank && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// mdEscapes spell what means something anywhere in Markdown.
var mdEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`,
	"[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "#", `\#`, "!", `\!`, "$", `\$`)

// mdText escapes visible text for Markdown, in a paragraph, list item or table cell. What GitHub
// would turn into a link or a mention by itself becomes code, where it does not.
func mdText(s string) string {
	if strings.Contains(s, "@") || strings.Contains(s, "://") || strings.Contains(strings.ToLower(s), "www.") {
		return mdCode(s)
	}
	rest := strings.TrimLeft(s, "0123456789")
	number := s[:len(s)-len(rest)]
	bullet := number == "" && (strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+"))
	numbered := number != "" && (strings.HasPrefix(rest+" ", ". ") || strings.HasPrefix(rest+" ", ") "))
	if bullet || numbered { // which would open a list
		return number + `\` + mdEscapes.Replace(rest)
	}
	return mdEscapes.Replace(s)
}

// mdCode makes visible text a code span that holds in table cells too: where a bar, backtick or
// backslash could end the cell or the span, it is spelled as HTML with every such character as an
// entity.
func mdCode(s string) string {
	if s == "" {
		return ""
	}
	if !strings.ContainsAny(s, "`|\\") {
		return "`" + s + "`"
	}
	var b strings.Builder
	for _, r := range s {
		if r < 0x80 && r != ' ' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return "<code>" + b.String() + "</code>"
}

// mdHTML escapes visible text inside our own HTML elements.
func mdHTML(s string) string { return html.EscapeString(s) }

// mdFence returns visible lines as a fenced block whose fence is longer than any run of backticks
// in it.
func mdFence(language string, lines []string) string {
	text, fence := strings.Join(lines, "\n"), "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + text + "\n" + fence + "\n"
}
