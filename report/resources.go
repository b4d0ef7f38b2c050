package report

import (
	"slices"
	"strings"
)

// A textTable is a table ready for either rendering.
type textTable struct {
	head []string
	rows [][]string
}

// resourceTable lists what each relay consumed. Merged, all queries are one line: totals add up, peaks are the highest.
func (v *view) resourceTable(merged bool) textTable {
	type lineKey struct{ group, name string }
	type metricKey struct{ metric, unit string }
	var lines []lineKey
	var metrics []metricKey
	sums := map[lineKey]map[metricKey]float64{}
	for _, s := range v.sections {
		for _, sc := range s.scenarios {
			group := sc.key
			if merged && strings.HasPrefix(group, "query.") {
				group = "query.*"
			}
			for _, b := range sc.resources {
				mk := metricKey{b.metric, b.unit}
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
					old, ok := sums[lk][mk]
					switch {
					case !ok:
						sums[lk][mk] = r.value
					case adds(mk.metric):
						sums[lk][mk] = old + r.value
					default:
						sums[lk][mk] = max(old, r.value)
					}
				}
			}
		}
	}
	rank := func(m metricKey) int {
		return slices.IndexFunc(resourceMetrics, func(p string) bool { return strings.HasPrefix(m.metric, p) })
	}
	slices.SortStableFunc(metrics, func(a, b metricKey) int { return rank(a) - rank(b) })
	t := textTable{head: []string{"scenario", "relay"}}
	scales := map[metricKey]scale{}
	for _, m := range metrics {
		var values []float64
		for _, lk := range lines {
			if x, ok := sums[lk][m]; ok {
				values = append(values, x)
			}
		}
		scales[m] = scaleFor(m.unit, values)
		if base := byteBases[m.unit]; base != 0 { // one unit for memory and disk, so that columns compare
			scales[m] = scale{factor: base / (1 << 20), suffix: " MiB"}
		}
		title := m.metric
		if u := unitTitle(m.unit); u != "" && !strings.Contains(title, u) {
			title += ", " + u
		}
		t.head = append(t.head, title)
	}
	last := ""
	for _, lk := range lines {
		row := []string{lk.group, lk.name}
		if lk.group == last {
			row[0] = ""
		}
		last = lk.group
		for _, m := range metrics {
			text := "n/a"
			if x, ok := sums[lk][m]; ok {
				text = scales[m].format(x)
				if m.metric == "cpu" && timeBases[m.unit] != 0 {
					text = cpuText(x * timeBases[m.unit])
				}
			}
			row = append(row, text)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// adds tells whether a resource accumulates over scenarios, where peaks and counts of what is open do not.
func adds(metric string) bool {
	return !strings.HasPrefix(metric, "peak") && !strings.HasPrefix(metric, "open") && !strings.HasPrefix(metric, "cpu per") && metric != "harness cpu"
}
