package report

import (
	"fmt"
	"html"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"relaybench/results"
)

// A record is not to be trusted: relay names, reasons and log lines come from programs under test.
// Before anything is rendered, every string in it goes through visible, once, here; the renderings
// then add what their own syntax needs.

// maxText bounds one string of a rendering, in bytes. Configuration files are bounded line by line.
const (
	maxText  = 4096
	maxLines = 2000
)

// Sanitized returns a copy of r in which no string can act on a terminal, hide, or reorder what
// stands around it.
func Sanitized(r *results.Record) *results.Record {
	return cleanValue(reflect.ValueOf(r)).Interface().(*results.Record)
}

// cleanValue copies v with all its strings made visible. It goes by type and not by field, so that
// a field added to the record later is covered too.
func cleanValue(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		out := reflect.New(v.Type()).Elem()
		out.SetString(Visible(v.String()))
		return out
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(cleanValue(v.Elem()))
		return out
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		out.Set(cleanValue(v.Elem()))
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(cleanValue(v.Index(i)))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(cleanValue(it.Key()), cleanValue(it.Value()))
		}
		return out
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			switch v.Type().Field(i).Name {
			case "Histogram": // decoded with bounds of its own and never shown
				out.Field(i).Set(v.Field(i))
			case "Config": // the one place where line ends are meant
				out.Field(i).Set(cleanFiles(v.Field(i)))
			default:
				out.Field(i).Set(cleanValue(v.Field(i)))
			}
		}
		return out
	}
	return v
}

func cleanFiles(v reflect.Value) reflect.Value {
	files, ok := v.Interface().(map[string]string)
	if !ok || files == nil {
		return v
	}
	out := make(map[string]string, len(files))
	for name, content := range files {
		var lines []string
		for line := range strings.Lines(content) {
			if len(lines) == maxLines {
				lines = append(lines, "… (cut)")
				break
			}
			lines = append(lines, Visible(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")))
		}
		out[Visible(name)] = strings.Join(lines, "\n")
	}
	return reflect.ValueOf(out)
}

// Visible writes out as \u{hex} every character that does not simply show: controls (ESC among
// them), line ends, bidirectional overrides, zero-width and other invisible ones, private and
// unassigned code points, and combining marks beyond four in a row. A byte that is not UTF-8
// becomes \x{hex}. Different strings stay different.
func Visible(s string) string {
	cut := false
	if len(s) > maxText {
		s, cut = s[:maxText], true
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if len(s) > 0 && s[len(s)-1] >= utf8.RuneSelf {
			s = s[:len(s)-1]
		}
	}
	if !cut && plainASCII(s) {
		return s
	}
	var b strings.Builder
	marks := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if unicode.In(r, unicode.Mn, unicode.Me) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x{%02x}`, s[i])
		case !shows(r) || marks > 4 || r == '\\' && looksEscaped(s[i+1:]):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	if cut {
		b.WriteString("… (cut)")
	}
	return b.String()
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '\\' {
			return false
		}
	}
	return true
}

// looksEscaped tells whether a backslash before rest would read like one of visible's own escapes.
func looksEscaped(rest string) bool {
	return strings.HasPrefix(rest, "u{") || strings.HasPrefix(rest, "x{")
}

// shows tells whether r puts ink where it stands.
func shows(r rune) bool {
	const brailleBlank = 0x2800
	return unicode.IsPrint(r) && r != brailleBlank && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// mdText escapes visible text for Markdown, in a paragraph, list item or table cell. What GitHub
// would turn into a link or a mention by itself becomes code, where it does not.
func mdText(s string) string {
	if strings.ContainsAny(s, "@") || strings.Contains(s, "://") || strings.Contains(strings.ToLower(s), "www.") {
		return mdCode(s)
	}
	var b strings.Builder
	for i, r := range s {
		switch r {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '\\', '`', '*', '_', '[', ']', '|', '~', '#', '!', '$':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '-', '+':
			if i == 0 { // would open a list
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		case '.', ')':
			if i > 0 && strings.Trim(s[:i], "0123456789") == "" && strings.HasPrefix(s[i+1:]+" ", " ") { // would open a numbered list
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
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
	b.WriteString("<code>")
	for _, r := range s {
		if r < 0x80 && r != ' ' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			fmt.Fprintf(&b, "&#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	b.WriteString("</code>")
	return b.String()
}

// mdHTML escapes visible text inside our own HTML elements.
func mdHTML(s string) string { return html.EscapeString(s) }

// mdFence returns visible lines as a fenced block whose fence is longer than any run of backticks
// in it.
func mdFence(language string, lines []string) string {
	longest := 2
	for _, l := range lines {
		run := 0
		for _, r := range l {
			if r != '`' {
				run = 0
				continue
			}
			run++
			longest = max(longest, run)
		}
	}
	fence := strings.Repeat("`", longest+1)
	return fence + language + "\n" + strings.Join(lines, "\n") + "\n" + fence + "\n"
}
