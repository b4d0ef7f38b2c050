package report

import (
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
	indent  int
	shown   []int               // the columns beside the labels
	widths  []int               // of all columns, in cells
	marks   []int               // of the marks within them
	lead    int                 // of labels and bar, with the gap behind them
	bar     int                 // of the bar
	names   []map[string]string // of each column, as they are cut, by what they are
	hidden  []string            // heads that have no room
	stacked bool                // no room for a table
}

// text is a cell without its mark; one of a group of labels stands once.
func (l *layout) text(row, c int) string {
	t := l.rows[row].cells[c].text
	if c >= l.labels-1 || row == 0 || l.rows[row-1].group != l.rows[row].group {
		return t
	}
	for i := range c + 1 {
		if l.rows[row-1].cells[i].text != l.rows[row].cells[i].text {
			return t
		}
	}
	return ""
}

// saysSomething tells whether a terminal has to show a column beside the labels.
func (t *Table) saysSomething(c int) bool {
	if t.columns[c].Full {
		return false
	}
	return slices.ContainsFunc(t.rows, func(r Row) bool {
		return len(r.cells) > c && r.message.text == "" && r.cells[c].text != "" && r.cells[c].text != nothing && r.cells[c].text != negligible
	})
}

// lay chooses columns and widths. Labels are cut, the widest first, only where they and the rest
// are too wide together.
func (t *Table) lay(w int) *layout {
	l := &layout{Table: t, indent: 2, widths: make([]int, len(t.columns)), marks: make([]int, len(t.columns)), names: make([]map[string]string, len(t.columns))}
	if t.bars {
		l.indent = 4
	}
	rest, widest, required := 0, 0, 0
	for c, col := range t.columns {
		if c >= t.labels && !t.saysSomething(c) {
			continue
		}
		l.widths[c] = width(col.Head)
		text := 0
		for _, r := range t.rows {
			if c < len(r.cells) && (c < t.labels || r.message.text == "") {
				l.marks[c], text = max(l.marks[c], width(r.cells[c].mark)), max(text, width(r.cells[c].text))
			}
		}
		l.widths[c] = max(l.widths[c], text+l.markRoom(c))
		if c < t.labels {
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
		rest, widest = rest+barMore, required-tableGap+barLeast
	}
	labels := 0
	for _, n := range l.widths[:t.labels] {
		labels += n + tableGap
	}
	labels -= tableGap
	budget := max(w*t.labels/(t.labels+2+l.indent/4), w-l.indent-rest)
	if l.stacked = w < narrow && (labels > budget || w-l.indent-tableGap-widest < labels); l.stacked {
		return l
	}
	for ; labels > budget; labels-- {
		l.widths[slices.Index(l.widths[:t.labels], slices.Max(l.widths[:t.labels]))]--
	}
	l.lead = labels + tableGap
	for c := range t.columns {
		if c >= t.labels {
			l.widths[c] = min(l.widths[c], w-l.indent-l.lead)
		}
		var texts []string
		if c < t.labels {
			for _, r := range t.rows {
				texts = append(texts, r.cells[c].text)
			}
		} else { // relays may stand in the head
			for _, c := range l.shown {
				texts = append(texts, t.columns[c].Head)
			}
			texts = slices.DeleteFunc(texts, func(h string) bool { return width(h) <= l.widths[c] })
		}
		l.names[c] = CutNames(texts, l.widths[c])
	}
	if t.bars {
		l.choose(w)
	}
	l.stacked = w < narrow && len(l.hidden) > 0
	return l
}

// markRoom is what marks take behind the figures of a column.
func (l *layout) markRoom(c int) int {
	if l.marks[c] == 0 {
		return 0
	}
	return l.marks[c] + 1
}

// choose gives the bar its least, then lets columns in by priority, then gives the bar what is
// left.
func (l *layout) choose(w int) {
	room := w - l.indent - l.lead - barLeast
	var in []int
	for p := range 9 {
		for _, c := range l.shown {
			spare := tableGap + l.widths[c]
			if p > 2 {
				spare += barMore - barLeast
			}
			if l.columns[c].Priority == p && (p == 0 || room >= spare) {
				in = append(in, c)
				room -= tableGap + l.widths[c]
			}
		}
	}
	for _, c := range l.shown {
		if !slices.Contains(in, c) {
			l.hidden = append(l.hidden, l.columns[c].Head)
		}
	}
	slices.Sort(in)
	l.shown = in
	l.bar = min(barLeast+max(room, 0), barMost)
	titles, alone := 0, true // one row: a bar would say nothing, and its room goes to the title
	for i, r := range l.rows {
		titles = max(titles, width(r.group))
		alone = alone && (i == 0 || l.rows[i-1].group != r.group)
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
	l := t.lay(p.width)
	if l.stacked {
		p.stacked(l)
	} else {
		for i, part := range l.parts(p.width) {
			if i > 0 {
				p.line()
			}
			p.part(l, part)
		}
		for _, h := range l.hidden {
			if !slices.Contains(p.hidden, h) {
				p.hidden = append(p.hidden, h)
			}
		}
	}
	n := width("    " + superscript(len(t.foot)) + " ")
	for i, text := range t.foot {
		p.hang(Span{padRight("    "+superscript(i+1), n), Dim}, 0, []Span{{text, Dim}})
	}
	if text := t.meanings(l.shown); text != "" {
		p.para(para{indent: 1, text: []Span{{text + ".", Dim}}})
	}
}

// part writes labels, bars and some of the columns.
func (p *terminal) part(l *layout, columns []int) {
	left := slices.Repeat([]bool{true}, l.labels)
	if l.bars {
		left = append(left, true)
	}
	for _, c := range columns {
		left = append(left, l.columns[c].Left)
	}
	var rows [][]string
	heads := map[int]int{} // rows of heads, by the row that they stand before
	for i, r := range l.rows {
		if i == 0 || l.bars && l.rows[i-1].group != r.group {
			heads[i] = len(rows)
			rows = append(rows, p.heads(l, columns, i))
		}
		rows = append(rows, p.cells(l, columns, i))
	}
	lines := aligned(rows, left)
	indent := strings.Repeat(" ", l.indent)
	next := 0
	for i, r := range l.rows {
		opens := r.group != "" && (i == 0 || l.rows[i-1].group != r.group)
		if opens && l.spaced {
			p.line()
		}
		if at, ok := heads[i]; ok {
			next = at + 1
			p.head(l, r.group, lines[at])
		}
		if opens && !l.bars {
			p.line(Span{r.group, Bold})
		}
		text := trimmed(lines[next])
		next++
		switch {
		case r.message.text != "": // across the columns
			room := p.width - l.indent
			p.write(indent)
			for c, label := range p.cells(l, nil, i)[:l.labels] {
				p.write(label + strings.Repeat(" ", tableGap))
				room -= l.widths[c] + tableGap
			}
			p.write(p.paint(Span{clause(r.message.text, room), r.message.style}) + "\n")
		case len(columns) > 0 && !slices.ContainsFunc(columns, func(c int) bool { return r.cells[c].text != nothing && r.cells[c].text != negligible }):
		default:
			p.write(indent + text + "\n")
		}
	}
}

// head writes what stands above rows: the heads of the columns, behind the title of a group of bars
// where that leaves room.
func (p *terminal) head(l *layout, title, heads string) {
	heads = trimmed(heads)
	if !l.bars {
		if heads != "" {
			p.write(strings.Repeat(" ", l.indent) + heads + "\n")
		}
		return
	}
	const indent = 2
	line := strings.Repeat(" ", l.indent) + heads
	if n := l.indent + l.lead - tableGap - indent; heads != "" && width(title) <= n {
		start := 0
		for start < len(line) && line[start] == ' ' && start < indent+n {
			start++
		}
		p.write("  " + p.paint(Span{title, Bold}) + strings.Repeat(" ", max(start-indent-width(title), 0)) + line[start:] + "\n")
		return
	}
	if title != "" {
		p.line(Span{"  ", Plain}, Span{title, Bold})
	}
	if heads != "" {
		p.write(line + "\n")
	}
}

// heads are the heads of the columns that say something in the group of a row.
func (p *terminal) heads(l *layout, columns []int, row int) (cells []string) {
	for c := range l.labels {
		text := l.columns[c].Head
		if l.bars {
			text = ""
		}
		cells = append(cells, p.paint(Span{fitMiddle(text, l.widths[c]), Dim}))
	}
	if l.bars {
		cells = append(cells, strings.Repeat(" ", l.bar))
	}
	group := l.rows[row].group
	for _, c := range columns {
		text := l.columns[c].Head
		if l.bars && !slices.ContainsFunc(l.rows[row:], func(r Row) bool { return r.group == group && r.message.text == "" && r.cells[c].text != "" }) {
			text = ""
		}
		if cut, ok := l.names[c][text]; ok {
			text = cut
		}
		text = fitMiddle(text, l.widths[c])
		pad := 0
		if !l.columns[c].Left {
			pad = min(l.markRoom(c), l.widths[c]-width(text))
		}
		cells = append(cells, p.paint(Span{text, Dim})+strings.Repeat(" ", max(pad, 0)))
	}
	return cells
}

func (p *terminal) cells(l *layout, columns []int, row int) (cells []string) {
	r := &l.rows[row]
	for c := range l.labels {
		text := l.text(row, c)
		if text != "" {
			text = l.names[c][text]
		}
		cells = append(cells, p.paint(Span{text, r.cells[c].style})+strings.Repeat(" ", max(l.widths[c]-width(text), 0)))
	}
	if l.bars {
		cells = append(cells, p.paint(Span{bar(r.share, l.bar), r.style}))
	}
	for _, c := range columns {
		text := ""
		if r.message.text == "" {
			x := &r.cells[c]
			text = p.paint(Span{fitMiddle(x.text, l.widths[c]-l.markRoom(c)), x.style})
			if n := l.marks[c]; n > 0 && x.text != "" {
				text += " " + p.paint(Span{x.mark, x.style}) + strings.Repeat(" ", n-width(x.mark))
			}
		}
		cells = append(cells, text)
	}
	return cells
}

// trimmed is a line of a table without blanks at its end.
func trimmed(line string) string {
	const reset = "\x1b[0m"
	coloured := false
	for {
		short := strings.TrimRight(line, " ")
		if cut, ok := strings.CutSuffix(short, reset); ok {
			short, coloured = cut, true
		}
		if short == line {
			break
		}
		line = short
	}
	if coloured {
		line += reset
	}
	return line
}

// stacked writes a table as a list, for a terminal that has no room for it.
func (p *terminal) stacked(l *layout) {
	for i, r := range l.rows {
		if r.group != "" && (i == 0 || l.rows[i-1].group != r.group) {
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
