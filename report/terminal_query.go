package report

import (
	"slices"
	"strings"

	"relaybench/results"
)

// A queryColumn is a metric beside the one of a query's bars. A narrow terminal keeps those of low
// priority.
type queryColumn struct {
	metric   string
	head     string
	priority int
}

// queryColumns are the figures of queries that the record describes, those of the summary first to
// stay.
func (v *view) queryColumns() (columns []queryColumn) {
	seen := map[string]*block{}
	for _, s := range v.sections {
		for _, sc := range s.scenarios {
			for _, b := range slices.Concat(sc.blocks, sc.facts) {
				if primary(sc) != nil && b.metric.Key != sc.Primary {
					seen[b.metric.Key] = b
				}
			}
		}
	}
	for _, m := range v.rec.Metrics {
		b := seen[m.Key]
		if b == nil || m.Role != results.RoleFigure {
			continue
		}
		c := queryColumn{m.Key, m.Key + "  ", 4 + min(len(columns), 4)}
		switch {
		case b.headline():
			c.priority = 2
		case b.better == results.None:
			c.head, c.priority = m.Key, 3
		}
		columns = append(columns, c)
	}
	return columns
}

// queries writes all queries, each with its forms, with the same columns in the same places.
func (t *terminal) queries(list [][]*scenario) {
	if len(list) == 0 {
		return
	}
	var tables []barTable
	for _, forms := range list {
		tables = append(tables, t.query(forms))
	}
	drop(tables)
	l := t.layout(tables)
	for i, forms := range list {
		t.line()
		t.barTable(tables[i], l)
		t.queryFacts(forms)
	}
	t.footnotes()
	t.crowded(l)
}

// query arranges the forms of one query as one table: bars for the time to EOSE, the other metrics
// as columns.
func (t *terminal) query(forms []*scenario) barTable {
	head := "EOSE p50  "
	if slices.ContainsFunc(forms, func(sc *scenario) bool { return primary(sc).trials() > 1 }) {
		head = "EOSE median  "
	}
	bt := barTable{title: forms[0].Title, columns: []barColumn{{head, 0}, {"p99 ", 1}}}
	for _, c := range t.v.columns {
		bt.columns = append(bt.columns, barColumn{c.head, c.priority})
	}
	top := 0.0
	for _, sc := range forms {
		for _, r := range primary(sc).rows {
			top = max(top, r.value)
		}
	}
	for _, sc := range forms {
		label := sc.labels[results.LabelForm]
		for _, r := range primary(sc).rows {
			row := barRow{label: label, name: r.name, style: rowStyle(r), message: r.why, failed: r.failed}
			label = ""
			if r.has {
				row.cells = t.queryCells(sc, r)
				if top > 0 {
					row.share = r.value / top
				}
			}
			bt.rows = append(bt.rows, row)
		}
	}
	return bt
}

// queryFacts writes what stands under the table of one query: why nothing in it is ranked, and
// figures without a column.
func (t *terminal) queryFacts(forms []*scenario) {
	var rest []*block
	for _, sc := range forms {
		label := sc.labels[results.LabelForm]
		if p := primary(sc); p.unranked != "" && p.unranked != answersDiffer { // which has a mark
			t.paragraph(span{"      " + padRight(label, 6) + "  ", blue}, span{p.unranked, dim})
		}
		for _, b := range slices.Concat(sc.blocks, sc.facts) {
			if b.metric.Key == sc.Primary || t.v.hasColumn(b.metric.Key) {
				continue
			}
			named := *b
			named.title = strings.TrimSpace(label + " " + b.title)
			rest = append(rest, &named)
		}
	}
	t.facts(rest)
}

// queryCells are a relay's figures in one form of a query.
func (t *terminal) queryCells(sc *scenario, r *row) []cell {
	p := primary(sc)
	cells := []cell{t.value(p, r), {}}
	if r.dist != nil {
		cells[1] = t.p99(p, r)
	}
	for _, c := range t.v.columns {
		b := metric(sc, c.metric)
		i := -1
		if b != nil {
			i = slices.IndexFunc(b.rows, func(o *row) bool { return o.name == r.name && o.has })
		}
		switch {
		case i < 0:
			cells = append(cells, cell{})
		case b.better == results.None:
			cells = append(cells, cell{b.scale.format(b.rows[i].value), none})
		default:
			cells = append(cells, t.value(b, b.rows[i]))
		}
	}
	return cells
}

// metric finds a scenario's block by name; nil when it has none.
func metric(s *scenario, name string) *block {
	for _, b := range slices.Concat(s.blocks, s.facts) {
		if b.metric.Key == name {
			return b
		}
	}
	return nil
}

// hasColumn tells whether a metric stands beside the one of the bars.
func (v *view) hasColumn(name string) bool {
	return slices.ContainsFunc(v.columns, func(c queryColumn) bool { return c.metric == name })
}
