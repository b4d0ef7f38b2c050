package report

import (
	"slices"
	"strings"

	"relaybench/harness/measure"
)

// queryColumns are a query's metrics beside the time to EOSE, in the order they are shown; a narrow terminal keeps those of low priority.
var queryColumns = []struct {
	metric, head string
	priority     int
}{
	{"first event", "first event  ", 4},
	{"events/s", "events/s  ", 2},
	{"queries/s", "queries/s  ", 5},
	{"events", "events", 3},
}

// A queryTable is one query in all its forms.
type queryTable struct {
	forms []*scenario
	bars  barTable
}

// queries writes all queries with the same columns in the same places.
func (t *terminal) queries(list []queryTable) {
	if len(list) == 0 {
		return
	}
	tables := make([]barTable, len(list))
	for i := range list {
		tables[i] = list[i].bars
	}
	drop(tables)
	l := t.layout(tables)
	for i, q := range list {
		t.line()
		t.barTable(tables[i], l)
		t.queryNotes(q.forms)
	}
	t.crowded(l)
}

// query arranges the forms of one query as one table: bars for the time to EOSE, the other metrics as columns.
func (t *terminal) query(forms []*scenario) queryTable {
	base, _ := form(forms[0].key)
	_, title := scenarioTitle(base)
	head := "EOSE p50  "
	if slices.ContainsFunc(forms, func(sc *scenario) bool { return primary(sc).trials() > 1 }) {
		head = "EOSE median  "
	}
	bt := barTable{title: title, columns: []barColumn{{head, 0}, {"p99 ", 1}}}
	for _, c := range queryColumns {
		bt.columns = append(bt.columns, barColumn{c.head, c.priority})
	}
	top := 0.0
	for _, sc := range forms {
		for _, r := range primary(sc).rows {
			top = max(top, r.value)
		}
	}
	for _, sc := range forms {
		_, label := form(sc.key)
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
	return queryTable{forms, bt}
}

// queryNotes writes what stands under the table of one query.
func (t *terminal) queryNotes(forms []*scenario) {
	for _, sc := range forms {
		_, label := form(sc.key)
		if p := primary(sc); p.unranked != "" && p.unranked != answersDiffer { // which has a mark
			t.paragraph(span{"      " + padRight(label, 6) + "  ", blue}, span{p.unranked, dim})
		}
		var noted []*row
		for _, b := range sc.blocks {
			noted = append(noted, b.rows...)
		}
		t.notes(noted)
	}
	var rest []*block
	for _, sc := range forms {
		_, label := form(sc.key)
		for _, b := range others(sc) {
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
	for _, c := range queryColumns {
		b := metric(sc, c.metric)
		i := -1
		if b != nil {
			i = slices.IndexFunc(b.rows, func(o *row) bool { return o.name == r.name && o.has })
		}
		switch {
		case i < 0:
			cells = append(cells, cell{})
		case b.better == measure.None:
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
		if b.metric == name {
			return b
		}
	}
	return nil
}

// hasColumn tells whether a metric stands beside the time to EOSE.
func hasColumn(name string) bool {
	for _, c := range queryColumns {
		if c.metric == name {
			return true
		}
	}
	return false
}

// others are the metrics of a query that have no column.
func others(s *scenario) []*block {
	var out []*block
	for _, b := range slices.Concat(s.blocks, s.facts) {
		if b.metric != "eose" && !hasColumn(b.metric) {
			out = append(out, b)
		}
	}
	return out
}
