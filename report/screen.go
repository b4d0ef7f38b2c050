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

// leastPair is the room, in cells, from which on the names of a pair are worth cutting each by
// itself.
const leastPair = 18

// CutNames cuts names to n cells such that those that differ still look different: in their middle,
// else so that the place shows in which they differ, else with a number each. The two names of a
// pair are cut each by itself.
func CutNames(names []string, n int) map[string]string {
	cut := map[string]string{}
	var all, sides []string
	for _, name := range names {
		a, _, b := halves(name)
		switch {
		case slices.Contains(all, name):
		case b != "" && width(name) > n && n >= leastPair:
			sides = append(sides, a, b)
		default:
			all = append(all, name)
		}
	}
	if len(sides) > 0 {
		short := CutNames(sides, (n-len(" with "))/2)
		for _, name := range names {
			if a, between, b := halves(name); b != "" && width(name) > n && n >= leastPair {
				cut[name] = short[a] + between + short[b]
			}
		}
	}
	alike := func() (groups [][]string) { // those that look the same
		by := map[string][]string{}
		for _, name := range all {
			by[cut[name]] = append(by[cut[name]], name)
		}
		for _, name := range all {
			if g := by[cut[name]]; len(g) > 1 && g[0] == name {
				groups = append(groups, g)
			}
		}
		return groups
	}
	for _, name := range all {
		cut[name] = fitMiddle(name, n)
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

// halves takes the name of a pair apart; b is empty for that of a relay.
func halves(name string) (a, between, b string) {
	for _, between := range []string{" with ", " → "} {
		if a, b, pair := strings.Cut(name, between); pair {
			return a, between, b
		}
	}
	return name, "", ""
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
		joined := ""
		for _, part := range line {
			joined += part.text
		}
		lines = append(lines, joined)
	}
	return lines
}

// flow breaks text at blanks into lines of at most n cells; a word longer than a line is broken
// where it must be.
func flow(text []Span, n int) (lines [][]Span) {
	n = max(n, 1)
	var line, word []Span
	used := 0
	put := func(text string, st Style) {
		if last := len(line) - 1; last >= 0 && line[last].style == st {
			line[last].text += text
		} else {
			line = append(line, Span{text, st})
		}
		used += width(text)
	}
	end := func() { lines, line, used = append(lines, line), nil, 0 }
	finish := func() {
		if w := spansWidth(word); used > 0 && used+1+w > n {
			end()
		} else if used > 0 && w > 0 {
			put(" ", line[len(line)-1].style)
		}
		for _, sp := range word {
			for sp.text != "" {
				head := displaywidth.TruncateString(sp.text, n-used, "")
				if head == "" && used > 0 {
					end()
					continue
				}
				if head == "" { // one character wider than the line
					g := displaywidth.StringGraphemes(sp.text)
					g.Next()
					head = g.Value()
				}
				put(head, sp.style)
				sp.text = sp.text[len(head):]
			}
		}
		word = nil
	}
	for _, sp := range text {
		for i, part := range strings.Split(sp.text, " ") {
			if i > 0 {
				finish()
			}
			if part != "" {
				word = append(word, Span{part, sp.style})
			}
		}
	}
	finish()
	if used > 0 {
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
	if s.width < narrow && s.width-n < leastWidth/2 { // no room beside it
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
