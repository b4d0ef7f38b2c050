package report

import (
	"bufio"
	"io"
	"slices"
	"strings"

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

// A screen writes lines of at most width cells, in colours where asked, and remembers the first error.
type screen struct {
	w     *bufio.Writer
	width int
	color bool
	err   error
}

func newScreen(w io.Writer, width int, color bool) *screen {
	return &screen{w: bufio.NewWriter(w), width: width, color: color}
}

// line writes one line without blanks at its end. Whatever would reach beyond the width is cut, so that no terminal wraps.
func (s *screen) line(spans ...span) {
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
	widths, rest := make([]int, len(head)), 0
	for c := range head {
		widths[c] = width(head[c])
		for _, r := range rows {
			widths[c] = max(widths[c], width(r[c].text))
		}
		if c >= fixed {
			widths[c] = min(widths[c], max(s.width/4, 24))
			rest += gap + widths[c]
		}
	}
	// The first columns are cut, the widest first, only where they and the rest are too wide together.
	first, budget := sum(widths[:fixed])+gap*(fixed-1), max(s.width*fixed/(fixed+2), s.width-indent-rest)
	for ; first > budget; first-- {
		widths[slices.Index(widths, slices.Max(widths[:fixed]))]--
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
			if !slices.ContainsFunc(cells[from:to], func(x cell) bool { return x.text != nothing }) {
				continue
			}
			spans := []span{{strings.Repeat(" ", indent), none}}
			for c, x := range cells {
				if c >= fixed && (c < from || c >= to) {
					continue
				}
				text := fitMiddle(x.text, widths[c])
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

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}
