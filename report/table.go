package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

const (
	tableGap = 2
	barLeast = 8
	barMore  = 16 // before columns of a priority above 2 come in
	barMost  = 48
)

// aligned sets rows in columns, a line each.
func aligned(rows [][]string, left []bool) []string {
	return written(renderer.NewBlueprint(tw.Rendition{Borders: tw.BorderNone, Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone}}),
		tw.Padding{Right: strings.Repeat(" ", tableGap), Overwrite: true}, nil, rows, left)
}

// markdownTable sets rows as a table of GitHub-flavoured Markdown, whose cells are escaped already.
// One long cell does not pad all others: while the columns are set, something shorter stands for
// it.
func markdownTable(head []string, rows [][]string, left []bool) []string {
	const most, private = 60, "\ue000" // which visible texts do not have
	var long []string
	for _, r := range rows {
		for c, text := range r {
			if width(text) > most {
				r[c] = fmt.Sprintf("%s%0*d%s", private, most-2, len(long), private)
				long = append(long, r[c], text)
			}
		}
	}
	lines := written(renderer.NewMarkdown(), tw.Padding{Left: " ", Right: " ", Overwrite: true}, head, rows, left)
	whole := strings.NewReplacer(long...)
	for i := range lines {
		lines[i] = whole.Replace(lines[i])
	}
	return lines
}

func written(r tw.Renderer, padding tw.Padding, head []string, rows [][]string, left []bool) []string {
	align := make(tw.Alignment, len(left))
	for i := range align {
		if align[i] = tw.AlignRight; left[i] {
			align[i] = tw.AlignLeft
		}
	}
	cells := tw.CellConfig{Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Padding: tw.CellPadding{Global: padding}, Alignment: tw.CellAlignment{PerColumn: align}}
	var b strings.Builder
	t := tablewriter.NewTable(&b, tablewriter.WithRenderer(r), tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithConfig(tablewriter.Config{Header: cells, Row: cells}))
	if head != nil {
		t.Header(head)
	}
	if err := t.Bulk(rows); err != nil {
		panic(err) // of strings that are written to memory
	}
	if err := t.Render(); err != nil {
		panic(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// A layout says how a table stands on a terminal of some width.
type layout struct {
	*Table
	indent int
	shown  []int               // the columns beside the labels
	widths []int               // of all columns, in cells
	marks  []int               // what marks take of them, with the blank before
	lead   int                 // of labels and bar, with the gap behind them
	bar    int                 // of the bar
	names  []map[string]string // of each column, as they are cut, by what they are
	hidden []string            // heads that have no room
}

// opens tells whether a row is the first of its group.
func (t *Table) opens(row int) bool { return row == 0 || t.rows[row-1].group != t.rows[row].group }

// text is a cell without its mark; one of a group of labels stands once.
func (t *Table) text(row, c int) string {
	cells := t.rows[row].cells
	if c >= t.labels-1 || t.opens(row) || !slices.EqualFunc(cells[:c+1], t.rows[row-1].cells[:c+1], func(a, b Cell) bool { return a.text == b.text }) {
		return strings.TrimRight(cells[c].text, " ")
	}
	return ""
}

// empty tells whether a column of figures says nothing, or nothing but such texts.
func (t *Table) empty(c int, blanks ...string) bool {
	return c >= t.labels && !slices.ContainsFunc(t.rows, func(r Row) bool {
		return r.message.text == "" && r.cells[c].text != "" && !slices.Contains(blanks, r.cells[c].text)
	})
}

// lay chooses columns and widths. Labels are cut, the widest first, only where they and the rest
// are too wide together. It tells whether there is room for a table.
func (t *Table) lay(w int) (*layout, bool) {
	n := len(t.columns)
	l := &layout{Table: t, indent: 2, widths: make([]int, n), marks: make([]int, n), names: make([]map[string]string, n)}
	if t.bars {
		l.indent = 4
	}
	rest, widest, required, labels := 0, 0, -tableGap, -tableGap
	for c, col := range t.columns {
		if col.Full || t.empty(c, nothing, negligible) {
			continue
		}
		text := 0
		for _, r := range t.rows {
			if c < t.labels || r.message.text == "" {
				text = max(text, width(r.cells[c].text))
				l.marks[c] = max(l.marks[c], width(Prefixed(" ", r.cells[c].mark)))
			}
		}
		if l.widths[c] = max(width(col.Head), text+l.marks[c]); c < t.labels {
			labels += tableGap + l.widths[c]
			continue
		}
		l.shown = append(l.shown, c)
		if !t.bars {
			l.widths[c] = min(l.widths[c], max(w/4, 24))
		}
		rest += tableGap + l.widths[c]
		if widest = max(widest, l.widths[c]); col.Priority == 0 {
			required += tableGap + l.widths[c]
		}
	}
	if t.bars {
		rest, widest = rest+barMore, required+barLeast
	}
	budget := max(w*t.labels/(t.labels+2+l.indent/4), w-l.indent-rest)
	if w < narrow && (labels > budget || w-l.indent-tableGap-widest < labels) {
		return l, false
	}
	for ; labels > budget; labels-- {
		l.widths[slices.Index(l.widths[:t.labels], slices.Max(l.widths[:t.labels]))]--
	}
	l.lead = labels + tableGap
	l.cut(w)
	if t.bars {
		l.choose(w)
	}
	return l, w >= narrow || len(l.hidden) == 0
}

// cut shortens labels, and the heads of columns, where relays may stand as well.
func (l *layout) cut(w int) {
	for c := range l.columns {
		var texts []string
		if c < l.labels {
			for i := range l.rows {
				texts = append(texts, l.text(i, c))
			}
		} else {
			l.widths[c] = min(l.widths[c], w-l.indent-l.lead)
			for _, c := range l.shown {
				texts = append(texts, l.columns[c].Head)
			}
			texts = slices.DeleteFunc(texts, func(h string) bool { return width(h) <= l.widths[c] })
		}
		l.names[c] = CutNames(texts, l.widths[c])
	}
}

// choose gives the bar its least, then lets columns in by priority, then gives the bar what is
// left.
func (l *layout) choose(w int) {
	room := w - l.indent - l.lead - barLeast
	in := map[int]bool{}
	for _, c := range slices.SortedStableFunc(slices.Values(l.shown), func(a, b int) int { return l.columns[a].Priority - l.columns[b].Priority }) {
		takes, spare := tableGap+l.widths[c], 0
		if l.columns[c].Priority > 2 {
			spare = barMore - barLeast
		}
		if in[c] = l.columns[c].Priority == 0 || room >= takes+spare; in[c] {
			room -= takes
		}
	}
	l.shown = slices.DeleteFunc(l.shown, func(c int) bool {
		if !in[c] {
			l.hidden = append(l.hidden, l.columns[c].Head)
		}
		return !in[c]
	})
	l.bar = min(barLeast+max(room, 0), barMost)
	titles, alone := 0, true // one row: a bar would say nothing, and its room goes to the title
	for i, r := range l.rows {
		titles = max(titles, width(r.group))
		alone = alone && l.opens(i)
	}
	if alone {
		l.bar = min(max(titles+2-l.indent-l.lead, 1), l.bar)
		for i := range l.rows {
			l.rows[i].share = 0
		}
	}
	l.lead += l.bar + tableGap
}

// parts are the columns of each of the tables that a wide one is split into: no more than there
// must be, and none much wider than the others.
func (l *layout) parts(w int) [][]int {
	if l.bars || len(l.shown) == 0 {
		return [][]int{l.shown}
	}
	split := func(room int) (all [][]int) {
		used := room + 1
		for _, c := range l.shown {
			if used += tableGap + l.widths[c]; used > room {
				all, used = append(all, nil), tableGap+l.widths[c]
			}
			all[len(all)-1] = append(all[len(all)-1], c)
		}
		return all
	}
	room := w - l.indent - l.lead + tableGap
	all := split(room)
	for least := len(all); room > 1 && len(split(room-1)) == least; room-- {
		all = split(room - 1)
	}
	return all
}

// table writes a table; one that is too wide goes on below, with the same labels.
func (p *terminal) table(t *Table) {
	l, fits := t.lay(p.width)
	if !fits {
		p.stacked(l)
	} else {
		for i, part := range l.parts(p.width) {
			if i > 0 {
				p.line()
			}
			p.part(l, part)
		}
	}
	if len(l.hidden) > 0 {
		p.hang(Span{"  ", Plain}, 0, []Span{{"No room here for " + strings.Join(l.hidden, ", ") + ": in report.md.", Dim}})
	}
}

// part writes labels, bars and some of the columns.
func (p *terminal) part(l *layout, columns []int) {
	left := slices.Repeat([]bool{true}, l.labels+boolean(l.bars))
	for _, c := range columns {
		left = append(left, l.columns[c].Left)
	}
	var rows [][]string
	for i, r := range l.rows {
		if l.opens(i) {
			rows = append(rows, p.heads(l, columns, r.group))
		}
		rows = append(rows, p.cells(l, columns, i))
	}
	lines := aligned(rows, left)
	next := func() (line string) {
		line, lines = trimmed(lines[0]), lines[1:]
		return strings.Repeat(" ", l.indent) + line
	}
	for i, r := range l.rows {
		if l.opens(i) {
			p.head(l, i, next())
		}
		line, room := next(), p.width-l.indent
		switch {
		case r.message.text != "": // across the columns
			cells := p.cells(l, nil, i)[:l.labels]
			for c := range cells {
				room -= l.widths[c] + tableGap
			}
			text := p.paint(Span{clause(r.message.text, room), r.message.style})
			p.write(strings.Repeat(" ", l.indent) + strings.Join(append(cells, text), strings.Repeat(" ", tableGap)) + "\n")
		case len(columns) > 0 && !slices.ContainsFunc(columns, func(c int) bool { return r.cells[c].text != nothing && r.cells[c].text != negligible }):
		default:
			p.write(line + "\n")
		}
	}
}

// trimmed is a line of a table without blanks at its end, coloured ones included.
func trimmed(line string) string {
	const reset = "\x1b[0m"
	short, coloured := strings.CutSuffix(strings.TrimRight(line, " "), reset)
	if !coloured {
		return short
	}
	return strings.TrimRight(short, " ") + reset
}

// head writes what stands above rows: a group, behind it the heads of the columns where that leaves
// room, and where there are no bars the heads once above all.
func (p *terminal) head(l *layout, row int, heads string) {
	group, some := l.rows[row].group, strings.TrimSpace(heads) != ""
	if group != "" && l.spaced {
		p.line()
	}
	at := 2 + width(group)
	switch {
	case !l.bars && row == 0 && some:
		p.write(heads + "\n")
	case l.bars && some && len(heads)-len(strings.TrimLeft(heads, " ")) >= at+tableGap:
		p.write("  " + p.paint(Span{group, Bold}) + heads[at:] + "\n")
		return
	}
	if group != "" {
		p.line(Span{strings.Repeat(" ", 2*boolean(l.bars)), Plain}, Span{group, Bold})
	}
	if l.bars && some {
		p.write(heads + "\n")
	}
}

// heads are the heads of the columns that say something in a group.
func (p *terminal) heads(l *layout, columns []int, group string) []string {
	cells := make([]string, l.labels)
	for c := range cells {
		if !l.bars {
			cells[c] = p.paint(Span{fitMiddle(l.columns[c].Head, l.widths[c]), Dim})
		}
	}
	if l.bars {
		cells = append(cells, strings.Repeat(" ", l.bar))
	}
	for _, c := range columns {
		text := l.columns[c].Head
		if l.bars && !slices.ContainsFunc(l.rows, func(r Row) bool { return r.group == group && r.message.text == "" && r.cells[c].text != "" }) {
			text = ""
		}
		text = fitMiddle(cmp.Or(l.names[c][text], text), l.widths[c])
		pad := 0
		if !l.columns[c].Left {
			pad = min(l.marks[c], l.widths[c]-width(text))
		}
		cells = append(cells, p.paint(Span{text, Dim})+strings.Repeat(" ", pad))
	}
	return cells
}

func (p *terminal) cells(l *layout, columns []int, row int) (cells []string) {
	r := &l.rows[row]
	for c := range l.labels {
		text := l.names[c][l.text(row, c)]
		cells = append(cells, p.paint(Span{text, r.cells[c].style})+strings.Repeat(" ", max(l.widths[c]-width(text), 0)))
	}
	if l.bars {
		cells = append(cells, p.paint(Span{bar(r.share, l.bar), r.style}))
	}
	for _, c := range columns {
		x, text := &r.cells[c], ""
		if r.message.text == "" && x.text != "" {
			text = p.paint(Span{fitMiddle(strings.TrimRight(x.text, " "), l.widths[c]-l.marks[c]), x.style})
			if n := l.marks[c] - 1; n > 0 {
				text += " " + p.paint(Span{x.mark, x.style}) + strings.Repeat(" ", n-width(x.mark))
			}
		}
		cells = append(cells, text)
	}
	return cells
}

// stacked writes a table as a list, for a terminal that has no room for it.
func (p *terminal) stacked(l *layout) {
	for i, r := range l.rows {
		if r.group != "" && l.opens(i) {
			p.line(Span{r.group, Bold})
		}
		spans := []Span{{"  ", Plain}}
		for c := range l.labels {
			if text := l.text(i, c); text != "" {
				spans = append(spans, Span{text + "  ", r.cells[c].style})
			}
		}
		if len(spans) > 1 {
			p.line(spans...)
		}
		if r.message.text != "" {
			p.hang(Span{"    ", Plain}, 0, []Span{r.message})
			continue
		}
		for _, c := range l.shown {
			if x := r.cells[c]; x.text != "" && x.text != nothing {
				p.line(Span{"    " + l.columns[c].Head + "  ", Dim}, Span{strings.TrimRight(x.text+" "+x.mark, " "), x.style})
			}
		}
	}
}
