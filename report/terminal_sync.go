package report

import (
	"fmt"

	"relaybench/results"
)

// syncs writes a matrix for each mode, sources down and sinks across, and what each pair cost.
func (t *terminal) syncs(tables []*syncTable) {
	t.paragraph(span{"  ", none}, span{t.v.syncMeaning(), dim})
	for _, table := range tables {
		t.syncTable(table)
	}
}

func (t *terminal) syncTable(table *syncTable) {
	t.line()
	t.line(span{table.Title, bold}, span{"  " + table.Key, dim})
	head := []string{"from ↓  to →"}
	head = append(head, table.sinks...)
	var rows [][]cell
	for _, source := range table.sources {
		row := []cell{{source, none}}
		for _, sink := range table.sinks {
			c := table.cell(source, sink)
			text, good := table.text(c)
			if c != nil {
				text += t.foot.sign(c.notes)
			}
			st := none
			if good && (c == nil || c.none != "") {
				st = dim
			} else if !good {
				st = red
			}
			row = append(row, cell{text, st})
		}
		rows = append(rows, row)
	}
	t.grid(2, 1, head, rows, func(c int) bool { return c > 0 })
	t.footnotes()
	for _, r := range table.reasons() {
		t.paragraph(span{"  n/a ", dim}, span{r.key + ": " + r.text, dim})
	}
	if details := table.details(); details.rows != nil {
		t.line()
		var rows [][]cell
		for _, texts := range details.rows {
			var row []cell
			for i, text := range texts {
				row = append(row, cell{text, [...]style{none, dim}[min(i, 1)]})
			}
			rows = append(rows, row)
		}
		t.grid(2, 1, details.head, rows, func(c int) bool { return c > 0 })
	}
	said := evidenceOnce{}
	for _, c := range table.cells {
		for _, f := range c.told {
			most := 0 // what never came has no examples worth the room
			if f.Verdict == results.Failed {
				most = 3
			}
			t.explain(said, f, c.says(f), most)
		}
	}
	t.syncTimelines(table)
}

// syncTimelines draws how sinks filled, where it took long enough to have a shape.
func (t *terminal) syncTimelines(table *syncTable) {
	all := table.timelines()
	if len(all) > 0 {
		t.line()
		t.line(span{"  events at the sink, second by second", dim})
	}
	n := all.width(t.part(3))
	var names []string
	for _, x := range all {
		names = append(names, x.name)
	}
	cut := CutNames(names, n)
	for _, x := range all {
		bins := min(len(x.values), max(10, t.width-n-20))
		t.line(span{"  " + padRight(cut[x.name], n) + "  ", none}, span{spark(x.values, bins), blue},
			span{fmt.Sprintf("  (%d s)", len(x.values)), dim})
	}
}
