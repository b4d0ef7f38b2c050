package report

import (
	"cmp"
	"slices"

	"relaybench/results"
)

// resourceTable lists what each relay consumed. Merged, all queries are one line: the sum, or, of
// what does not add up, the most; and columns that say nothing are left out.
func (v *view) resourceTable(merged bool) *Table {
	type lineKey struct{ group, name string }
	type metricKey struct{ metric, unit string }
	var lines []lineKey
	var metrics []metricKey
	sums := map[lineKey]map[metricKey]float64{}
	for _, s := range v.sections {
		for _, sc := range s.scenarios {
			group := sc.Key
			if merged && sc.Layout == results.LayoutQueries {
				group = sc.Section
			}
			for _, b := range sc.resources {
				mk := metricKey{b.metric.Key, b.unit}
				if !slices.Contains(metrics, mk) {
					metrics = append(metrics, mk)
				}
				for _, r := range b.rows {
					if !r.has {
						continue
					}
					lk := lineKey{group, r.name}
					if sums[lk] == nil {
						sums[lk] = map[metricKey]float64{}
						lines = append(lines, lk)
					}
					if b.metric.Sums {
						sums[lk][mk] += r.value
					} else {
						sums[lk][mk] = max(sums[lk][mk], r.value)
					}
				}
			}
		}
	}
	slices.SortStableFunc(metrics, func(a, b metricKey) int { return cmp.Compare(v.metricRank(a.metric), v.metricRank(b.metric)) })
	t := &Table{labels: 2, columns: heads("scenario", "relay")}
	scales := map[metricKey]Scale{}
	for _, m := range metrics {
		var values []float64
		for _, lk := range lines {
			if x, ok := sums[lk][m]; ok {
				values = append(values, x)
			}
		}
		scales[m] = ScaleFor(m.unit, values)
		t.columns = append(t.columns, Column{Head: WithUnit(v.rec.Metric(m.metric).Title, m.unit)})
	}
	for _, lk := range lines {
		row := []Cell{{text: lk.group, style: Dim}, {text: lk.name}}
		for _, m := range metrics {
			text := nothing
			if x, ok := sums[lk][m]; ok {
				text = scales[m].Format(x)
				if base := byteBases[m.unit]; base != 0 { // one unit for memory and disk, so that columns compare
					text = columnSize(x * base)
				}
				if base := timeBases[m.unit]; base == 1 || base != 0 && merged { // processor time
					text = cpuText(x * base)
				}
			}
			row = append(row, Cell{text: text})
		}
		t.rows = append(t.rows, Row{cells: row})
	}
	return t
}
