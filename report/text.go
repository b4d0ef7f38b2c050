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

// A span is a piece of one line in one style; its text is visible already.
type span struct {
	text  string
	style style
}

// A style is the parameter of an SGR sequence; none is the terminal's own.
type style string

const (
	none   style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	redder style = "1;31"
	green  style = "32"
	bright style = "1;32"
	yellow style = "33"
	blue   style = "36"
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
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	cut := map[string]string{}
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
func padLeft(s string, n int) string  { return strings.Repeat(" ", max(n-width(s), 0)) + s }

// wrap breaks s at blanks into lines of at most n cells; a word longer than a line is broken where it must be.
func wrap(s string, n int) []string {
	n = max(n, 1)
	var lines []string
	var line string
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case width(line)+1+width(word) <= n:
			line += " " + word
			continue
		default:
			lines = append(lines, line)
			line = word
		}
		for width(line) > n {
			head := displaywidth.TruncateString(line, n, "")
			if head == "" { // one character wider than the line
				g := displaywidth.StringGraphemes(line)
				g.Next()
				head = g.Value()
			}
			lines = append(lines, head)
			line = line[len(head):]
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// What a terminal may be wide, in cells. One under narrow gets lists in place of tables that have
// no room, and lines that go on in the next one.
const (
	leastWidth = 20
	narrow     = 60
	mostWidth  = 200
)

// A screen writes lines of at most width cells, in colours where asked, and remembers the first error.
type screen struct {
	w     *bufio.Writer
	width int
	color bool
	err   error
}

// part is an n-th of the width, which something may take at most; on a narrow terminal, where lines
// go on below, all that there may be.
func (s *screen) part(n int) int {
	if s.width < narrow {
		return mostWidth
	}
	return s.width / n
}

// screen is where a terminal's text goes.
func (o TerminalOptions) screen(w io.Writer) *screen {
	return newScreen(w, min(max(cmp.Or(o.Width, 80), leastWidth), mostWidth), o.Color)
}

func newScreen(w io.Writer, width int, color bool) *screen {
	return &screen{w: bufio.NewWriter(w), width: width, color: color}
}

// line writes one line without blanks at its end. Whatever would reach beyond the width is cut, so
// that no terminal wraps; of a narrow one it goes on below.
func (s *screen) line(spans ...span) {
	if s.width < narrow && spansWidth(spans) > s.width {
		s.wrapped(spans)
		return
	}
	left, shown := s.width, spans[:0:0]
	for _, sp := range spans {
		sp.text = fit(sp.text, left)
		left -= width(sp.text)
		shown = append(shown, sp)
	}
	for i := len(shown) - 1; i >= 0; i-- {
		if shown[i].text = strings.TrimRight(shown[i].text, " "); shown[i].text != "" {
			break
		}
	}
	for _, sp := range shown {
		if s.color && sp.style != none && sp.text != "" {
			sp.text = "\x1b[" + string(sp.style) + "m" + sp.text + "\x1b[0m"
		}
		s.write(sp.text)
	}
	s.write("\n")
}

// spansWidth is how wide spans are, without blanks at the end.
func spansWidth(spans []span) (n int) {
	for i := len(spans) - 1; i >= 0; i-- {
		if n == 0 {
			spans[i].text = strings.TrimRight(spans[i].text, " ")
		}
		n += width(spans[i].text)
	}
	return n
}

// wrapped writes spans in as many lines as they take, those below the first hanging.
func (s *screen) wrapped(spans []span) {
	indent, blank, empty := 0, true, true
	var row []span
	used := 0
	begin := func(n int) {
		row, used, empty = []span{{strings.Repeat(" ", n), none}}, n, true
	}
	for _, sp := range spans {
		text := strings.TrimLeft(sp.text, " ")
		if indent += width(sp.text) - width(text); text != "" {
			break
		}
	}
	indent = min(indent, s.width/3)
	begin(indent)
	for _, sp := range spans {
		for rest := sp.text; rest != ""; {
			if rest[0] == ' ' {
				rest, blank = strings.TrimLeft(rest, " "), true
				continue
			}
			word, after, more := strings.Cut(rest, " ")
			if rest = after; more {
				rest = " " + after
			}
			if blank && !empty && used+1+width(word) <= s.width {
				row, used = append(row, span{" ", none}), used+1
			} else if !empty && used+width(word) > s.width || blank && !empty {
				s.line(row...)
				begin(indent + 2)
			}
			for blank = false; word != ""; {
				head := displaywidth.TruncateString(word, s.width-used, "")
				if head == "" {
					s.line(row...)
					begin(indent + 2)
					head = displaywidth.TruncateString(word, s.width-used, "")
				}
				row, used, empty = append(row, span{head, sp.style}), used+width(head), false
				word = word[len(head):]
			}
		}
	}
	if !empty {
		s.line(row...)
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

// paragraph writes text wrapped behind a first indent and hanging under it.
func (s *screen) paragraph(lead span, text span) {
	n := width(lead.text)
	if s.width < narrow && s.width-n < leastWidth/2 { // no room beside it
		s.line(lead)
		lead, n = span{"    ", none}, 4
	}
	for i, l := range wrap(text.text, s.width-n) {
		if i > 0 {
			lead = span{strings.Repeat(" ", n), none}
		}
		s.line(lead, span{l, text.style})
	}
}

// A cell of a grid; numbers stand right.
type cell struct {
	text  string
	style style
}

// grid writes a table with a header. Columns that do not fit beside the first ones, which are fixed, follow below in
// further tables with the same first columns, so that nothing is lost on a narrow terminal.
func (s *screen) grid(indent, fixed int, head []string, rows [][]cell, right func(column int) bool) {
	const gap = 2
	widths, rest, widest := make([]int, len(head)), 0, 0
	for c := range head {
		widths[c] = width(head[c])
		for _, r := range rows {
			widths[c] = max(widths[c], width(r[c].text))
		}
		if c >= fixed {
			widths[c] = min(widths[c], max(s.width/4, 24))
			rest += gap + widths[c]
			widest = max(widest, widths[c])
		}
	}
	// The first columns are cut, the widest first, only where they and the rest are too wide together.
	first, budget := sum(widths[:fixed])+gap*(fixed-1), max(s.width*fixed/(fixed+2), s.width-indent-rest)
	if s.width < narrow && (first > budget || s.width-indent-gap-widest < first) {
		s.stacked(indent, fixed, head, rows)
		return
	}
	for ; first > budget; first-- {
		widths[slices.Index(widths, slices.Max(widths[:fixed]))]--
	}
	names := make([]map[string]string, len(head)) // as they are shown, by what they are
	for c := range head {
		var texts []string
		if c < fixed {
			for _, r := range rows {
				texts = append(texts, r[c].text)
			}
		} else { // relays may stand in a row
			texts = slices.DeleteFunc(slices.Clone(head[fixed:]), func(h string) bool { return width(h) <= widths[c] })
		}
		names[c] = CutNames(texts, widths[c])
	}
	room := s.width - indent - first
	titles := make([]cell, len(head))
	for c, h := range head {
		titles[c] = cell{h, dim}
	}
	// No more tables than there must be, and none of them much wider than the others.
	tables := func(room int) (ends []int) {
		for from := fixed; from < len(head); {
			to, used := from, 0
			for to < len(head) && (to == from || used+gap+widths[to] <= room) {
				used += gap + widths[to]
				to++
			}
			ends = append(ends, to)
			from = to
		}
		return ends
	}
	ends := tables(room)
	for least := len(ends); room > 1 && len(tables(room-1)) == least; room-- {
		ends = tables(room - 1)
	}
	from := fixed
	for _, to := range ends {
		if from > fixed {
			s.line()
		}
		for _, cells := range slices.Concat([][]cell{titles}, rows) {
			if !slices.ContainsFunc(cells[from:to], func(x cell) bool { return x.text != nothing && x.text != negligible }) {
				continue
			}
			spans := []span{{strings.Repeat(" ", indent), none}}
			for c, x := range cells {
				if c >= fixed && (c < from || c >= to) {
					continue
				}
				text, isName := names[c][x.text]
				if !isName {
					text = fitMiddle(x.text, widths[c])
				}
				if right(c) {
					text = padLeft(text, widths[c])
				} else {
					text = padRight(text, widths[c])
				}
				if c > 0 {
					spans = append(spans, span{strings.Repeat(" ", gap), none})
				}
				spans = append(spans, span{text, x.style})
			}
			s.line(spans...)
		}
		from = to
	}
}

// stacked writes a table as a list, for a terminal that has no room for it.
func (s *screen) stacked(indent, fixed int, head []string, rows [][]cell) {
	lead := strings.Repeat(" ", indent)
	for _, r := range rows {
		spans := []span{{lead, none}}
		for _, x := range r[:fixed] {
			if x.text != "" {
				spans = append(spans, span{x.text + "  ", x.style})
			}
		}
		if len(spans) > 1 {
			s.line(spans...)
		}
		for c, x := range r[fixed:] {
			if text := strings.TrimSpace(x.text); text != "" && text != nothing {
				s.line(span{lead + "  " + strings.TrimSpace(head[fixed+c]) + "  ", dim}, span{text, x.style})
			}
		}
	}
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}
