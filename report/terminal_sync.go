package report

import "fmt"

// syncs writes a matrix for each mode, sources down and sinks across, and what each pair cost.
func (t *terminal) syncs(tables []*syncTable) {
	t.paragraph(span{"  ", none}, span{syncMeaning, dim})
	for _, table := range tables {
		t.syncTable(table)
	}
}

func (t *terminal) syncTable(table *syncTable) {
	t.line()
	t.line(span{table.title, bold}, span{"  " + table.key, dim})
	head := []string{"from ↓  to →"}
	head = append(head, table.sinks...)
	var rows [][]cell
	for _, source := range table.sources {
		row := []cell{{source, none}}
		for _, sink := range table.sinks {
			text, good := table.text(table.cell(source, sink))
			st := none
			if text == "n/a" {
				st = dim
			} else if !good {
				st = red
			}
			row = append(row, cell{text, st})
		}
		rows = append(rows, row)
	}
	t.grid(2, 1, head, rows, func(c int) bool { return c > 0 })
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
	for _, c := range table.cells {
		t.syncCell(c)
	}
	t.syncTimelines(table)
}

// syncCell says what went wrong between two relays.
func (t *terminal) syncCell(c *syncCell) {
	for _, f := range c.failed {
		t.paragraph(span{"  ✗ ", red}, span{c.title() + ": " + readable(f.Detail), none})
		if !f.Required { // what never came has no examples worth the room
			continue
		}
		lines := digest(f.Evidence)
		for _, e := range lines[:min(len(lines), 3)] {
			t.paragraph(span{"      · ", dim}, span{fit(e, 2*(t.width-10)), dim})
		}
		if more := len(lines) - 3; more > 0 {
			t.line(span{"      … and " + several(more, "line", "lines") + " of evidence in report.md", dim})
		}
	}
}

// syncTimelines draws how sinks filled, where it took long enough to have a shape.
func (t *terminal) syncTimelines(table *syncTable) {
	first, n := true, 0
	for _, c := range table.cells {
		n = max(n, min(width(c.title()), t.width/3))
	}
	for _, c := range table.cells {
		if len(c.timeline) < fewBins {
			continue
		}
		if first {
			t.line()
			t.line(span{"  events at the sink, second by second", dim})
			first = false
		}
		bins := min(len(c.timeline), max(10, t.width-n-20))
		t.line(span{"  " + padRight(fitMiddle(c.title(), n), n) + "  ", none}, span{spark(c.timeline, bins), blue}, span{fmt.Sprintf("  (%d s)", len(c.timeline)), dim})
	}
}
