package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"relaybench/results"
)

// An entry is what a row of a table of figures is of: one relay, or pair, in one scenario.
type entry struct {
	*scenario
	key    rowKey
	group  string
	labels []string
	lead   *block // the figure that stands for it, alone; nil where that is the scenario's primary one
	best   bool   // of several settings
}

// entries lists what was measured of scenarios, or why it was not.
func entries(all []*scenario, labels func(sc *scenario, k rowKey) []string) (list []entry) {
	for _, sc := range all {
		blocks := sc.all()
		if len(blocks) == 0 {
			continue
		}
		for _, r := range blocks[0].rows {
			e := entry{scenario: sc, key: r.key}
			if _, r := e.figure(func(b *block) bool { return b.row(e.key).m != nil }); r == nil {
				continue
			}
			if labels != nil {
				e.labels = labels(sc, r.key)
			}
			list = append(list, e)
		}
	}
	return list
}

// row is a block's row of a relay or pair, nil where it has none.
func (b *block) row(k rowKey) *row {
	if i := slices.IndexFunc(b.rows, func(r *row) bool { return r.key == k }); i >= 0 {
		return b.rows[i]
	}
	return nil
}

// figure is an entry's block and row of a metric, nil where it has none.
func (e *entry) figure(is func(*block) bool) (*block, *row) {
	blocks := e.all()
	if e.lead != nil {
		blocks = []*block{e.lead}
	}
	for _, b := range blocks {
		if r := b.row(e.key); r != nil && is(b) {
			return b, r
		}
	}
	return nil, nil
}

// value is an entry's figure of a metric.
func (e *entry) value(metric string) (float64, bool) {
	if _, r := e.figure(func(b *block) bool { return b.metric.Key == metric }); r != nil && r.has {
		return r.value, true
	}
	return 0, false
}

// leads tells whether a metric stands for an entry.
func (e *entry) leads(b *block) bool { return b == e.lead || b.metric.Key == e.Primary }

// primary is the figure that stands for an entry.
func (e *entry) primary() (*block, *row) { return e.figure(e.leads) }

// pivot sets entries as rows and their metrics as columns, the primary one first: with bars where
// they say something, else as many columns as there are. A terminal shows the metrics that the
// record describes, and of them no column that has only zeros. The table has the columns of labels,
// of which the last are taken.
func (d *composer) pivot(t *Table, entries []entry) {
	t.labels = 1
	for _, e := range entries {
		t.labels = max(t.labels, len(e.labels))
	}
	t.columns = slices.Concat(make([]Column, max(t.labels-len(t.columns), 0)), t.columns)
	t.columns = t.columns[len(t.columns)-t.labels:]
	t.columns = append(t.columns, d.measures(entries, t.bars)...)
	top := map[string]float64{} // of a group
	for i := range entries {
		if _, r := entries[i].primary(); r != nil {
			top[entries[i].group] = max(top[entries[i].group], r.value)
		}
	}
	for i := range entries {
		e := &entries[i]
		row := Row{group: e.group, cells: make([]Cell, t.labels)}
		copy(row.cells, plain(e.labels...))
		if _, r := e.primary(); t.bars && r != nil {
			row.style, row.message = rowStyle(r), r.message()
			row.cells[t.labels-1].style = row.style
			if top[e.group] > 0 {
				row.share = r.value / top[e.group]
			}
		}
		for _, c := range t.columns[t.labels:] {
			x := Cell{}
			if row.message.text == "" {
				x = c.cell(e)
			}
			row.cells = append(row.cells, x)
		}
		t.rows = append(t.rows, row)
	}
	d.Table(t)
	var meanings []string
	beyond := false
	for c, col := range t.columns {
		if beyond = beyond || col.Full && !t.empty(c, nothing); !col.Full {
			meanings = append(meanings, col.meaning)
		}
	}
	if text := clauses(meanings...); text != "" {
		d.Say(text+".", Dim)
	}
	if beyond {
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

// A metricKey tells the columns of entries apart.
type metricKey struct {
	lead              bool
	metric, own, unit string
}

func (e *entry) column(b *block) metricKey {
	if e.lead != nil {
		return metricKey{lead: true}
	}
	return metricKey{e.leads(b), b.metric.Key, b.own, b.unit}
}

// measures are the columns of entries: what stands for them, with its tail, trials and course, and
// then all other metrics.
func (d *composer) measures(entries []entry, bars bool) (columns []Column) {
	var found Groups[metricKey, *block]
	for i := range entries {
		e := &entries[i]
		for _, b := range e.all() {
			if e.lead == nil || b == e.lead {
				found.Add(e.column(b), b)
			}
		}
	}
	slices.SortStableFunc(found.List, func(a, b Group[metricKey, *block]) int {
		return cmp.Or(boolean(b.Key.lead)-boolean(a.Key.lead), cmp.Compare(d.v.metricRank(a.Key.metric), d.v.metricRank(b.Key.metric)))
	})
	for _, g := range found.List {
		k := g.Key
		add := func(c Column, show func(b *block, r *row) Cell) {
			c.cell = func(e *entry) Cell {
				b, r := e.figure(func(b *block) bool { return e.column(b) == k })
				switch {
				case r != nil && r.has:
					return show(b, r)
				case bars:
					return Cell{}
				case r != nil && r.m != nil && k.lead && c.Priority == 0:
					return d.missing(r)
				}
				return Cell{text: nothing}
			}
			columns = append(columns, c)
		}
		if k.lead {
			d.lead(add, k.metric, g.Members[0], bars)
		} else {
			d.beside(add, k, g.Members, bars, min(len(columns), 8))
		}
	}
	return columns
}

// beside adds the columns of a metric that stands beside the one that stands for entries.
func (d *composer) beside(add func(Column, func(*block, *row) Cell), k metricKey, all []*block, bars bool, priority int) {
	b := all[0]
	name := shorter(k.metric, b.metric.Title)
	c := Column{Head: name + Prefixed(": ", k.own), Priority: priority, meaning: d.meaning(b.metric, name, bars)}
	switch {
	case b.headline():
		c.Priority = 2
	case b.better == results.None:
		c.Priority = 3
	}
	zeros := b.better == results.None && !slices.ContainsFunc(all, func(b *block) bool {
		return slices.ContainsFunc(b.rows, func(r *row) bool { return r.has && r.value != 0 })
	})
	c.Full = !bars && (zeros || d.v.metricRank(k.metric) == unknown)
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

// lead adds the columns of what stands for entries.
func (d *composer) lead(add func(Column, func(*block, *row) Cell), metric string, b *block, bars bool) {
	head, last := metric, "per second"
	switch {
	case d.v.trials > 1 && metric == "":
		head = fmt.Sprintf("median of %d", d.v.trials)
	case bars && timeBases[b.unit] != 0 && metric != "":
		head += map[bool]string{true: " median", false: " p50"}[d.v.trials > 1]
	}
	if d.v.trials > 1 {
		last = "last trial"
	}
	add(Column{Head: head, meaning: d.meaning(b.metric, metric, false)}, func(b *block, r *row) Cell {
		if bars && b.unranked != "" && b.unranked != answersDiffer && len(r.bars) == 0 {
			return d.value(b, r, b.unranked)
		}
		return d.value(b, r)
	})
	add(Column{Head: "p99", Priority: 1}, d.p99)
	add(Column{Head: "trials", Priority: 5}, func(b *block, r *row) Cell { return Cell{text: rangeText(r.m, b.scale), style: Dim} })
	add(Column{Head: last, Priority: 5, Left: true}, func(_ *block, r *row) Cell { return timeline(r) })
	if b.scenario.Layout == results.LayoutDownloads {
		add(Column{Head: "all?", Priority: 1}, complete)
	}
}

// complete tells whether a download brought all.
func complete(_ *block, r *row) Cell {
	if r.whole() {
		return Cell{text: "complete", style: Green}
	}
	word := map[string]string{results.CauseCut: "cut", results.CauseUnresolved: "unresolved"}[r.m.Is(results.StatusIncomplete).Cause]
	return Cell{text: cmp.Or(word, "incomplete"), style: Yellow}
}

// meaning says what a metric is, once in a section, where its name does not.
func (d *composer) meaning(m results.Metric, name string, bars bool) string {
	text := m.Meaning
	if text == "" && bars && name != m.Title {
		text = m.Title
	}
	if text == "" || d.told[name] {
		return ""
	}
	d.told[name] = true
	return name + ": " + text
}

// shorter is the shorter of two names of one thing.
func shorter(a, b string) string {
	if width(b) < width(a) {
		return b
	}
	return a
}

// value is a row's figure with its mark and what else there is to know of it.
func (d *composer) value(b *block, r *row, notes ...string) Cell {
	if !r.has {
		return d.missing(r)
	}
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
	if r.has {
		x.more = rangeText(r.m, b.scale)
	}
	return x
}

// fact is a figure that is stated and not ranked.
func (d *composer) fact(b *block, r *row) Cell {
	used := d.used
	x := d.withRange(b, r)
	if r.tied { // as anybody sees
		x.mark, d.used = strings.TrimPrefix(x.mark, "="), used
	}
	return x
}

// missing stands where there is no figure, and says why.
func (d *composer) missing(r *row) Cell {
	switch {
	case r.why == nothing:
		return Cell{text: nothing, style: Dim}
	case r.why == notMeasured:
		return Cell{text: "n/a", style: Dim}
	case r.failed:
		return Cell{text: "failed", style: Red, mark: d.foot.sign([]string{r.why})}
	}
	return Cell{text: "n/a", style: Dim, mark: d.foot.sign([]string{r.why})}
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

// cross sets one figure as a table of labels down and one across, as they come behind those that
// are given.
func cross(labels, across []string, all []crossing) *Table {
	t := &Table{labels: len(labels), columns: heads(slices.Concat(labels, across)...)}
	for _, x := range all {
		if !slices.ContainsFunc(t.columns[t.labels:], func(c Column) bool { return c.Head == x.column }) {
			t.columns = append(t.columns, Column{Head: x.column})
		}
	}
	for _, x := range all {
		i := slices.IndexFunc(t.rows, func(r Row) bool { return slices.Equal(r.cells[:t.labels], plain(x.row...)) })
		if i < 0 {
			i = len(t.rows)
			t.rows = append(t.rows, Row{cells: append(plain(x.row...), slices.Repeat([]Cell{{text: nothing}}, len(t.columns)-t.labels)...)})
		}
		c := slices.IndexFunc(t.columns[t.labels:], func(c Column) bool { return c.Head == x.column })
		t.rows[i].cells[t.labels+c] = x.cell
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
