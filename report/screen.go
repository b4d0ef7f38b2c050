package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// A Span is a piece of one line in one style; its text is visible already.
type Span struct {
	text  string
	style Style
}

// A Style is the parameter of an SGR sequence; Plain is the terminal's own.
type Style string

const (
	Plain     Style = ""
	Bold      Style = "1"
	Dim       Style = "2"
	Red       Style = "31"
	RedBold   Style = "1;31"
	Green     Style = "32"
	GreenBold Style = "1;32"
	Yellow    Style = "33"
	blue      Style = "36"
	code      Style = "22" // as it is typed
)

func width(s string) int { return displaywidth.String(s) }

// fit shortens s to n cells, with an ellipsis where something is left out.
func fit(s string, n int) string {
	if width(s) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	return displaywidth.TruncateString(s, n, "…")
}

// fitMiddle shortens a name in its middle, since names that belong together differ at their ends.
func fitMiddle(s string, n int) string {
	if width(s) <= n || n < 5 {
		return fit(s, n)
	}
	head := displaywidth.TruncateString(s, (n-1+1)/2, "")
	left := n - 1 - width(head)
	tail := s
	for width(tail) > left {
		g := displaywidth.StringGraphemes(tail)
		g.Next()
		tail = tail[len(g.Value()):]
	}
	return head + "…" + tail
}

// CutNames cuts names to n cells such that those that differ still look different: in their middle,
// else so that the place shows in which they differ, else with a number each.
func CutNames(names []string, n int) map[string]string {
	var all []string
	cut := map[string]string{}
	for _, name := range names {
		if _, known := cut[name]; !known {
			all, cut[name] = append(all, name), fitMiddle(name, n)
		}
	}
	alike := func() (groups [][]string) { // those that look the same
		var by Groups[string, string]
		for _, name := range all {
			by.Add(cut[name], name)
		}
		for _, g := range by.List {
			if len(g.Members) > 1 {
				groups = append(groups, g.Members)
			}
		}
		return groups
	}
	for _, group := range alike() {
		same := len(commonStart(group))
		for _, name := range group {
			head := displaywidth.TruncateString(name[:same], n/3, "") + "…"
			cut[name] = head + fitMiddle(name[same:], n-width(head))
		}
	}
	for i, name := range slices.Concat(alike()...) {
		number := fmt.Sprintf("#%d", i+1)
		cut[name] = displaywidth.TruncateString(cut[name], n-width(number), "") + number
	}
	return cut
}

// commonStart is what all texts begin with, in whole characters.
func commonStart(texts []string) string {
	start := texts[0]
	for _, text := range texts[1:] {
		for !strings.HasPrefix(text, start) {
			_, size := utf8.DecodeLastRuneInString(start)
			start = start[:len(start)-size]
		}
	}
	return start
}

// clause shortens a sentence that stands in full elsewhere to its first clauses, at most n cells.
func clause(s string, n int) string {
	for width(s) > n {
		i := max(strings.LastIndex(s, ": "), strings.LastIndex(s, "; "), strings.LastIndex(s, ", "))
		if i < 0 || width(s[:i]) < 6 {
			return fit(s, n)
		}
		s = s[:i]
	}
	return s
}

func padRight(s string, n int) string { return s + strings.Repeat(" ", max(n-width(s), 0)) }

// Wrap breaks a text into lines of n cells at most, at spaces where it can.
func Wrap(text string, n int) (lines []string) {
	for _, line := range flow([]Span{{text, Plain}}, n) {
		lines = append(lines, line[0].text)
	}
	return lines
}

// flow breaks text at blanks into lines of at most n cells; a word longer than a line is broken
// where it must be.
func flow(text []Span, n int) (lines [][]Span) {
	var line, word []Span
	used := 0
	end := func() { lines, line, used = append(lines, line), nil, 0 }
	put := func(text string, st Style) {
		if last := len(line) - 1; last >= 0 && line[last].style == st {
			line[last].text += text
		} else {
			line = append(line, Span{text, st})
		}
		used += width(text)
	}
	finish := func() {
		w := spansWidth(word)
		if used > 0 && used+1+w > n {
			end()
		} else if used > 0 && w > 0 {
			put(" ", line[len(line)-1].style)
		}
		for _, sp := range word {
			for g := displaywidth.StringGraphemes(sp.text); g.Next(); {
				if used > 0 && used+g.Width() > n {
					end()
				}
				put(g.Value(), sp.style)
			}
		}
		word = nil
	}
	for _, sp := range text {
		for i, part := range strings.Split(sp.text, " ") {
			if i > 0 {
				finish()
			}
			word = append(word, Span{part, sp.style})
		}
	}
	if finish(); used > 0 {
		end()
	}
	return lines
}

func spansWidth(spans []Span) (n int) {
	for _, sp := range spans {
		n += width(sp.text)
	}
	return n
}

// What a terminal may be wide, in cells. One under narrow gets lists in place of tables that have
// no room, and lines that go on in the next one.
const (
	leastWidth = 20
	narrow     = 60
	mostWidth  = 200
)

// A screen writes lines of at most width cells, in colours where asked, and remembers the first
// error.
type screen struct {
	w     *bufio.Writer
	width int
	color bool
	err   error
}

func newScreen(w io.Writer, width int, color bool) *screen {
	return &screen{w: bufio.NewWriter(w), width: min(max(cmp.Or(width, 80), leastWidth), mostWidth), color: color}
}

// line writes spans without blanks at their end. Whatever would reach beyond the width goes on
// below.
func (s *screen) line(spans ...Span) {
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].text = strings.TrimRight(spans[i].text, " "); spans[i].text != "" {
			break
		}
	}
	if spansWidth(spans) > s.width {
		indent := 0
		for _, sp := range spans {
			rest := strings.TrimLeft(sp.text, " ")
			if indent += width(sp.text) - width(rest); rest != "" {
				break
			}
		}
		s.hang(Span{strings.Repeat(" ", min(indent, s.width/3)), Plain}, 2, spans)
		return
	}
	for _, sp := range spans {
		s.write(s.paint(sp))
	}
	s.write("\n")
}

// paint is a span with its colours.
func (s *screen) paint(sp Span) string {
	if s.color && sp.style != Plain && strings.Trim(sp.text, " ") != "" {
		return "\x1b[" + string(sp.style) + "m" + sp.text + "\x1b[0m"
	}
	return sp.text
}

// hang writes text behind a lead, what goes on below that many cells further in than it.
func (s *screen) hang(lead Span, more int, text []Span) {
	n := width(lead.text)
	if s.width-n < leastWidth/2 { // no room beside it
		s.line(lead)
		lead, n, more = Span{"    ", Plain}, 4, 0
	}
	lines := flow(text, s.width-n)
	if len(lines) > 1 && more > 0 {
		lines = flow(text, s.width-n-more)
	}
	for i, l := range lines {
		if i > 0 {
			lead = Span{strings.Repeat(" ", n+more), Plain}
		}
		s.line(append([]Span{lead}, l...)...)
	}
}

func (s *screen) write(text string) {
	if s.err == nil {
		_, s.err = s.w.WriteString(text)
	}
}

func (s *screen) flush() error {
	if s.err == nil {
		s.err = s.w.Flush()
	}
	return s.err
}
