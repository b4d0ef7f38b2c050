package report

import (
	"cmp"
	"slices"

	"relaybench/results"
)

// resourceTable lists what each relay consumed. Merged, all queries are one line: the sum, or, of
// what does not add up, the most.
func (v *view) resourceTable(merged bool) *Table {
	type column struct{ metric, unit string }
	type place struct {
		group, relay string
		column
	}
	var found Groups[place, float64]
	for _, s := range v.sections {
		for _, sc := range s.scenarios {
			group := sc.Key
			if merged && sc.Layout == results.LayoutQueries {
				group = sc.Section
			}
			for _, b := range sc.resources {
				for _, r := range b.rows {
					if r.has {
						found.Add(place{group, r.name, column{b.metric.Key, b.unit}}, r.value)
					}
				}
			}
		}
	}
	var columns Groups[column, float64] // with the figures of a column
	for _, g := range found.List {
		total := 0.0
		for _, x := range g.Members {
			if v.rec.Metric(g.Key.metric).Sums {
				total += x
			} else {
				total = max(total, x)
			}
		}
		g.Members[0] = total
		columns.Add(g.Key.column, total)
	}
	slices.SortStableFunc(columns.List, func(a, b Group[column, float64]) int {
		return cmp.Compare(v.metricRank(a.Key.metric), v.metricRank(b.Key.metric))
	})
	var across []string
	for _, c := range columns.List {
		across = append(across, WithUnit(v.rec.Metric(c.Key.metric).Title, c.Key.unit))
	}
	var cells []crossing
	for _, g := range found.List {
		i := slices.IndexFunc(columns.List, func(c Group[column, float64]) bool { return c.Key == g.Key.column })
		x, unit := g.Members[0], g.Key.unit
		text, base := ScaleFor(unit, columns.List[i].Members).Format(x), timeBases[unit]
		switch {
		case byteBases[unit] != 0: // one unit for memory and disk, so that columns compare
			text = columnSize(x * byteBases[unit])
		case base == 1 || base != 0 && merged: // processor time
			text = cpuText(x * base)
		}
		cells = append(cells, crossing{[]string{g.Key.group, g.Key.relay}, across[i], Cell{text: text}})
	}
	return cross([]string{"scenario", "relay"}, across, cells)
}
