package report

import (
	"fmt"
	"slices"
)

// block writes one ranked metric: a bar and figures for each relay.
func (t *terminal) block(b *block) {
	bt := barTable{title: b.heading(""), columns: []barColumn{{b.valueTitle(), 0}, {"p50", 2}, {"p99", 1}, {"trials", 3}, {"per second", 4}}}
	trials, median, bins := t.v.trials > 1, b.trials() > 1 || medianIsP50(b), 0
	for _, r := range b.rows {
		if r.has && len(r.m.Timeline) >= fewBins {
			bins = max(bins, min(len(r.m.Timeline), mostBins))
		}
		if r.has && len(r.m.Timeline) > mostBins {
			bt.columns[4].head = "over time"
		}
	}
	for _, r := range b.rows {
		row := barRow{name: r.name, share: share(b, r), style: rowStyle(r), message: r.why, failed: r.failed}
		if r.has {
			row.cells = []cell{t.value(b, r), {}, {}, {}, {}}
			if r.dist != nil {
				if !median {
					row.cells[1].text = b.duration(r.dist.p50)
				}
				row.cells[2] = t.p99(b, r)
			}
			if trials && len(r.m.Trials) > 1 {
				row.cells[3] = cell{number(r.lo*b.scale.factor) + "–" + number(r.hi*b.scale.factor), dim}
			}
			if len(r.m.Timeline) >= fewBins {
				row.cells[4] = cell{padRight(spark(r.m.Timeline, mostBins), max(bins, width(bt.columns[4].head))), blue}
			}
		}
		bt.rows = append(bt.rows, row)
	}
	t.bars(bt)
}

// From fewBins seconds on a timeline has a shape; mostBins are drawn.
const (
	fewBins  = 3
	mostBins = 16
)

// trials is the most that any row has.
func (b *block) trials() (n int) {
	for _, r := range b.rows {
		if r.has {
			n = max(n, len(r.m.Trials))
		}
	}
	return n
}

// valueTitle heads the ranked figures, as wide as their marks.
func (b *block) valueTitle() string {
	switch n := b.trials(); {
	case n > 1:
		return fmt.Sprintf("median of %d  ", n)
	case medianIsP50(b):
		return "p50  "
	}
	return ""
}

// bars writes one table of bars and remembers what it had no room for.
func (t *terminal) bars(bt barTable) {
	tables := []barTable{bt}
	drop(tables)
	l := t.layout(tables)
	t.barTable(tables[0], l)
	t.crowded(l)
}

func (t *terminal) crowded(l barLayout) {
	for _, h := range l.hidden {
		if !slices.Contains(t.hidden, h) {
			t.hidden = append(t.hidden, h)
		}
	}
}

// drop removes the columns that are empty in every row of tables with the same columns.
func drop(tables []barTable) {
	for c := len(tables[0].columns) - 1; c >= 0; c-- {
		if slices.ContainsFunc(tables, func(bt barTable) bool {
			return slices.ContainsFunc(bt.rows, func(r barRow) bool { return r.message == "" && r.cells[c].text != "" })
		}) {
			continue
		}
		for t := range tables {
			bt := &tables[t]
			bt.columns = slices.Delete(slices.Clone(bt.columns), c, c+1)
			for i := range bt.rows {
				if bt.rows[i].message == "" {
					bt.rows[i].cells = slices.Delete(bt.rows[i].cells, c, c+1)
				}
			}
		}
	}
}

// medianIsP50 tells whether the values are the histograms' medians anyway, so that one column is
// enough.
func medianIsP50(b *block) bool {
	some := false
	for _, r := range b.rows {
		if !r.has {
			continue
		}
		if r.dist == nil || timeBases[b.unit] == 0 {
			return false
		}
		p50 := r.dist.p50 / timeBases[b.unit]
		if diff := r.value - p50; diff > 0.02*p50+1e-9 || -diff > 0.02*p50+1e-9 {
			return false
		}
		some = true
	}
	return some
}
