package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"relaybench/results"
)

// A entry is what a row of a table of figures is of: one relay, or pair, in one scenario.
type entry struct {
	group    string
	labels   []Cell
	scenario *scenario
	key      rowKey
}

// figure is an entry's block and row of a metric, nil where it has none.
func (s *entry) figure(is func(*block) bool) (*block, *row) {
	for _, b := range s.scenario.all() {
		if !is(b) {
			continue
		}
		for _, r := range b.rows {
			if r.key == s.key {
				return b, r
			}
		}
	}
	return nil, nil
}

// value is an entry's figure of a metric.
func (s *entry) value(metric string) (float64, bool) {
	if _, r := s.figure(func(b *block) bool { return b.metric.Key == metric }); r != nil && r.has {
		return r.value, true
	}
	return 0, false
}

// primary is the figure that stands for an entry.
func (s *entry) primary() (*block, *row) {
	return s.figure(func(b *block) bool { return b.metric.Key == s.scenario.Primary })
}

// A measure is a column of figures, and what it shows of an entry.
type measure struct {
	Column
	cell func(*entry) Cell
}

// pivot sets entries as rows and their metrics as columns, the primary one first: with bars where
// they say something, else as many columns as there are. A terminal shows the metrics that the
// record describes, and of them no column that has only zeros.
func (d *composer) pivot(t *Table, entries []entry, more ...measure) {
	columns := slices.Concat(d.figures(entries, t.bars, true), more, d.figures(entries, t.bars, false))
	top := map[string]float64{} // of a group
	for i := range entries {
		if _, r := entries[i].primary(); r != nil {
			top[entries[i].group] = max(top[entries[i].group], r.value)
		}
	}
	figures := make([][]Cell, len(entries))
	for i := range entries {
		s := &entries[i]
		row := Row{group: s.group, cells: slices.Clone(s.labels)}
		if _, r := s.primary(); t.bars && r != nil {
			row.style = rowStyle(r)
			row.cells[len(row.cells)-1].style = row.style
			if row.message = r.message(); r.has && top[s.group] > 0 {
				row.share = r.value / top[s.group]
			}
		}
		for _, c := range columns {
			if row.message.text != "" {
				figures[i] = append(figures[i], Cell{})
			} else {
				figures[i] = append(figures[i], c.cell(s))
			}
		}
		t.rows = append(t.rows, row)
	}
	beyond := false
	for i, c := range columns {
		if !slices.ContainsFunc(figures, func(row []Cell) bool { return row[i].text != "" && row[i].text != nothing }) {
			continue
		}
		beyond = beyond || c.Full
		t.columns = append(t.columns, c.Column)
		for r := range t.rows {
			t.rows[r].cells = append(t.rows[r].cells, figures[r][i])
		}
	}
	d.Table(t)
	if beyond && !t.bars {
		d.to(brief, func() { d.Say("Further figures of each are in report.md.", Dim) })
	}
}

// message is what stands instead of figures where there are none.
func (r *row) message() Span {
	switch {
	case r.has:
		return Span{}
	case r.failed:
		return Span{r.why, Red}
	case r.why == nothing:
		return Span{r.why, Dim}
	}
	return Span{"n/a: " + r.why, Dim}
}

// figures are the columns of the primary metrics, with their tail, trials and course, or those of
// all others.
func (d *composer) figures(entries []entry, bars, primary bool) (columns []measure) {
	type key struct{ metric, own, unit string }
	keyOf := func(b *block) key { return key{b.metric.Key, b.own, b.unit} }
	found := map[key][]*block{}
	var keys []key
	for i := range entries {
		sc := entries[i].scenario
		for _, b := range sc.all() {
			if (b.metric.Key == sc.Primary) != primary {
				continue
			}
			if found[keyOf(b)] == nil {
				keys = append(keys, keyOf(b))
			}
			found[keyOf(b)] = append(found[keyOf(b)], b)
		}
	}
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Compare(d.v.metricRank(a.metric), d.v.metricRank(b.metric)) })
	for i, k := range keys {
		b := found[k][0]
		add := func(c Column, show func(b *block, r *row) Cell) {
			columns = append(columns, measure{c, func(s *entry) Cell {
				b, r := s.figure(func(b *block) bool { return keyOf(b) == k && (b.metric.Key == b.scenario.Primary) == primary })
				switch {
				case r != nil && r.has:
					return show(b, r)
				case bars:
					return Cell{}
				}
				return Cell{text: nothing}
			}})
		}
		if primary {
			head, last := k.metric, "per second"
			if bars && timeBases[b.unit] != 0 {
				head += map[bool]string{true: " median", false: " p50"}[d.v.trials > 1]
			}
			if d.v.trials > 1 {
				last = "last trial"
			}
			add(Column{Head: head}, func(b *block, r *row) Cell {
				if bars && b.unranked != "" && b.unranked != answersDiffer && len(r.bars) == 0 {
					return d.value(b, r, b.unranked)
				}
				return d.value(b, r)
			})
			add(Column{Head: "p99", Priority: 1}, d.p99)
			add(Column{Head: "trials", Priority: 5}, func(b *block, r *row) Cell { return Cell{text: rangeText(r.m, b.scale), style: Dim} })
			add(Column{Head: last, Priority: 5, Left: true}, func(b *block, r *row) Cell { return timeline(r) })
			continue
		}
		c := Column{Head: shorter(k.metric, b.metric.Title) + Prefixed(": ", k.own), Priority: 4 + min(i, 4)}
		switch {
		case b.headline():
			c.Priority = 2
		case b.better == results.None:
			c.Priority = 3
		}
		zeros := b.better == results.None && !slices.ContainsFunc(found[k], func(b *block) bool {
			return slices.ContainsFunc(b.rows, func(r *row) bool { return r.has && r.value != 0 })
		})
		c.Full = !bars && (zeros || !d.v.described(k.metric))
		add(c, d.withRange)
		if b.better == results.None && !bars { // of what is ranked, the distributions say more
			add(Column{Head: c.Head + " p99", Full: c.Full}, d.p99)
			add(Column{Head: c.Head + " max", Full: c.Full}, func(b *block, r *row) Cell {
				if r.dist == nil {
					return Cell{}
				}
				return Cell{text: b.duration(r.dist.top)}
			})
		}
	}
	return columns
}

// shorter is the shorter of two names of one thing.
func shorter(a, b string) string {
	if width(b) < width(a) {
		return b
	}
	return a
}

// described tells whether the record says what a metric is.
func (v *view) described(metric string) bool {
	return slices.ContainsFunc(v.rec.Metrics, func(m results.Metric) bool { return m.Key == metric })
}

// value is a row's figure with its mark and what else there is to know of it.
func (d *composer) value(b *block, r *row, notes ...string) Cell {
	m, x := mark(b, r), Cell{text: b.scale.Format(r.value)}
	if r.best {
		x.style = GreenBold
	}
	// Once in a line is enough.
	once := b.scenario.Layout == results.LayoutBars || b.scenario.Layout == results.LayoutQueries && b.metric.Key == b.scenario.Primary
	if b.unranked == answersDiffer && m == "" && len(r.bars) == 0 && once {
		m = "≠"
	}
	d.used += m
	x.mark = m + d.foot.sign(append(r.notes(), notes...))
	return x
}

// withRange is a figure for a file, with the range of its trials.
func (d *composer) withRange(b *block, r *row) Cell {
	x := d.value(b, r)
	x.more = rangeText(r.m, b.scale)
	return x
}

func (d *composer) p99(b *block, r *row) Cell {
	if r.dist == nil {
		return Cell{}
	}
	x := Cell{text: b.duration(r.dist.p99)}
	if r.dist.n < fewSamples {
		x.mark = "*"
		d.used += x.mark
	}
	return x
}

// From fewBins seconds on a timeline has a shape; mostBins are drawn.
const (
	fewBins  = 3
	mostBins = 16
)

// timeline draws how a figure went second by second, in the last trial.
func timeline(r *row) Cell {
	if len(r.m.Timeline) < fewBins {
		return Cell{}
	}
	x := Cell{text: fmt.Sprintf("%s %d s", spark(r.m.Timeline, mostBins), len(r.m.Timeline)), style: blue}
	if len(r.m.Timeline) > mostBins { // a file has more room
		x.more = spark(r.m.Timeline, 4*mostBins)
	}
	return x
}

// A crossing is a figure where a row and a column meet.
type crossing struct {
	row    []string
	column string
	cell   Cell
}

// cross sets one figure as a table of two names, the first down and the second across: those that
// are given first, the others as they come.
func cross(labels, across []string, all []crossing) *Table {
	t := &Table{labels: len(labels), columns: heads(slices.Concat(labels, across)...)}
	var rows [][]string
	for _, x := range all {
		if !slices.ContainsFunc(t.columns, func(c Column) bool { return c.Head == x.column }) {
			t.columns = append(t.columns, Column{Head: x.column})
		}
		if !slices.ContainsFunc(rows, func(r []string) bool { return slices.Equal(r, x.row) }) {
			rows = append(rows, x.row)
		}
	}
	for _, names := range rows {
		row := plain(names...)
		for _, c := range t.columns[len(labels):] {
			i := slices.IndexFunc(all, func(x crossing) bool { return x.column == c.Head && slices.Equal(x.row, names) })
			if i < 0 {
				row = append(row, Cell{text: nothing})
			} else {
				row = append(row, all[i].cell)
			}
		}
		t.rows = append(t.rows, Row{cells: row})
	}
	return t
}

// plain are texts as cells.
func plain(texts ...string) (cells []Cell) {
	for _, text := range texts {
		cells = append(cells, Cell{text: text})
	}
	return cells
}

// heads are texts as the heads of columns.
func heads(texts ...string) (columns []Column) {
	for _, text := range texts {
		columns = append(columns, Column{Head: text})
	}
	return columns
}

// blocks sets metrics one below the other, each with a bar for each relay; those whose bars would
// say nothing are lines of one table, with what is only stated.
func (d *composer) blocks(sc *scenario) {
	t := &Table{groups: "metric", labels: 1, bars: true, columns: heads("", "", "p50", "p99", "trials", "per second")}
	if n := sc.trials(); n > 1 {
		t.columns[1].Head, t.columns[5].Head = fmt.Sprintf("median of %d", n), "last trial"
	}
	t.columns[2].Priority, t.columns[3].Priority, t.columns[4].Priority, t.columns[5].Priority, t.columns[5].Left = 2, 1, 3, 4, true
	var lines []*block
	for _, b := range sc.blocks {
		if flat(b) || b.metric.Role == results.RoleStated {
			lines = append(lines, b)
			continue
		}
		median := b.trials() > 1 || medianIsP50(b)
		for _, r := range b.rows {
			row := Row{group: b.heading(), style: rowStyle(r), message: r.message(), share: share(b, r), cells: make([]Cell, 6)}
			if row.cells[0] = (Cell{text: r.name, style: row.style}); r.has {
				switch x := d.value(b, r); {
				case b.trials() == 1 && median:
					row.cells[2], t.columns[2].Priority = x, 0
				case r.dist != nil && !median:
					row.cells[2].text = b.duration(r.dist.p50)
					fallthrough
				default:
					row.cells[1] = x
				}
				row.cells[3], row.cells[5] = d.p99(b, r), timeline(r)
				if d.v.trials > 1 && len(r.m.Trials) > 1 {
					row.cells[4] = Cell{text: Number(r.lo*b.scale.factor) + "–" + Number(r.hi*b.scale.factor), style: Dim}
				}
			}
			t.rows = append(t.rows, row)
		}
	}
	d.Table(t)
	d.lines(append(lines, sc.facts...))
}

// Bounds on what a terminal repeats; all of it is in report.md and in results.json.
const (
	maxFacts    = 12
	maxFailed   = 12
	maxProof    = 5
	maxLogLines = 8
)

// lines sets metrics as rows and relays as columns.
func (d *composer) lines(blocks []*block) {
	if len(blocks) == 0 {
		return
	}
	columns := []string{""}
	for _, r := range blocks[0].rows {
		columns = append(columns, r.name)
	}
	table := func(blocks []*block) {
		t := &Table{labels: 1, columns: heads(columns...)}
		for _, b := range blocks {
			title := b.title
			if b.labels[results.LabelReason] == "" {
				title = WithUnit(title, b.unit)
			}
			row := plain(title)
			for _, r := range b.rows {
				row = append(row, d.fact(b, r))
			}
			t.rows = append(t.rows, Row{cells: row})
		}
		d.Table(t)
	}
	most := min(len(blocks), maxFacts)
	table(blocks[:most])
	if more := blocks[most:]; len(more) > 0 {
		d.to(full, func() { table(more) })
		d.to(brief, func() { d.Say("… and "+Count(len(more), "more figure")+" in report.md", Dim) })
	}
}

// fact is a figure that is stated and not ranked.
func (d *composer) fact(b *block, r *row) Cell {
	switch {
	case r.has:
		used := d.used
		x := d.withRange(b, r)
		if r.tied { // as anybody sees
			x.mark, d.used = strings.TrimPrefix(x.mark, "="), used
		}
		return x
	case r.why == nothing:
		return Cell{text: r.why, style: Dim}
	case r.failed:
		return Cell{text: "failed", style: Red, more: clause(r.why, 60)}
	}
	return Cell{text: "n/a", style: Dim, more: clause(r.why, 60)}
}

// queries sets all queries in one table, each with its forms.
func (d *composer) queries(list []*scenario) {
	d.to(brief, func() {
		d.Say("Bars: median time to EOSE, less is better. hot repeats one filter, varied draws others like it.", Dim)
	})
	d.Full(func() {
		d.Say("Median time to EOSE, less is better. hot repeats one filter, varied draws others like it.", Dim)
	})
	t := &Table{groups: "query", labels: 2, bars: true, spaced: true, columns: heads("form", "relay")}
	var entries []entry
	for _, sc := range list {
		for _, r := range primary(sc).rows {
			entries = append(entries, entry{group: sc.Title, scenario: sc, key: r.key, labels: []Cell{{text: sc.labels[results.LabelForm], style: blue}, {text: r.name}}})
		}
	}
	if !slices.ContainsFunc(entries, func(s entry) bool { return s.labels[0].text != "" }) {
		t.columns, t.labels = t.columns[1:], 1
		for i := range entries {
			entries[i].labels = entries[i].labels[1:]
		}
	}
	d.pivot(t, entries)
	for i := range t.columns {
		c := &t.columns[i]
		if m := d.v.rec.Metric(c.Head); m.Title != m.Key {
			c.meaning = m.Key + ": " + m.Title
		}
	}
}
