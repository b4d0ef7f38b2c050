package report

import (
	"cmp"
	"slices"

	"relaybench/results"
)

// resourceTable lists what each relay consumed. Merged, all queries are one line: the sum, or, of
// what does not add up, the most.
func (v *view) resourceTable(merged bool) *Table {
	type place struct{ group, name string }
	type column struct{ metric, unit string }
	var lines Groups[place, float64]
	var columns Groups[column, float64] // with the figures of a column
	sums := map[place]map[column]float64{}
	for _, s := range v.sections {
		for _, sc := range s.scenarios {
			group := sc.Key
			if merged && sc.Layout == results.LayoutQueries {
				group = sc.Section
			}
			for _, b := range sc.resources {
				c := column{b.metric.Key, b.unit}
				columns.Add(c)
				for _, r := range b.rows {
					if !r.has {
						continue
					}
					at := place{group, r.name}
					if lines.Add(at); sums[at] == nil {
						sums[at] = map[column]float64{}
					}
					if b.metric.Sums {
						sums[at][c] += r.value
					} else {
						sums[at][c] = max(sums[at][c], r.value)
					}
				}
			}
		}
	}
	for _, l := range lines.List {
		for c, x := range sums[l.Key] {
			columns.Add(c, x)
		}
	}
	slices.SortStableFunc(columns.List, func(a, b Group[column, float64]) int {
		return cmp.Compare(v.metricRank(a.Key.metric), v.metricRank(b.Key.metric))
	})
	t := &Table{labels: 2, columns: heads("scenario", "relay")}
	for _, c := range columns.List {
		t.columns = append(t.columns, Column{Head: WithUnit(v.rec.Metric(c.Key.metric).Title, c.Key.unit)})
	}
	for _, l := range lines.List {
		row := []Cell{{text: l.Key.group, style: Dim}, {text: l.Key.name}}
		for _, c := range columns.List {
			x, ok := sums[l.Key][c.Key]
			text, base := ScaleFor(c.Key.unit, c.Members).Format(x), timeBases[c.Key.unit]
			switch {
			case !ok:
				text = nothing
			case byteBases[c.Key.unit] != 0: // one unit for memory and disk, so that columns compare
				text = columnSize(x * byteBases[c.Key.unit])
			case base == 1 || base != 0 && merged: // processor time
				text = cpuText(x * base)
			}
			row = append(row, Cell{text: text})
		}
		t.Add("", row...)
	}
	return t
}
