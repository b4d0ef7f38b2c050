package report

import (
	"fmt"
	"slices"
	"strings"
)

// syncs writes a matrix for each mode, what is to say of its pairs, and every figure of each.
func (m *markdown) syncs(tables []*syncTable) {
	m.p("%s\n", mdText(syncMeaning))
	for _, t := range tables {
		m.p("\n### %s (%s)\n\n", mdText(t.title), mdCode(t.key))
		head := []string{"from ↓ to →"}
		for _, s := range t.sinks {
			head = append(head, mdText(s))
		}
		var rows [][]string
		for _, source := range t.sources {
			row := []string{mdText(source)}
			for _, sink := range t.sinks {
				text, good := t.text(t.cell(source, sink))
				if !good {
					text += " ❌"
				}
				row = append(row, mdText(text))
			}
			rows = append(rows, row)
		}
		m.table(head, rows, firstLeft)
		for i, r := range t.reasons() {
			if i == 0 {
				m.p("\n")
			}
			m.p("- n/a, %s: %s\n", mdText(r.key), mdText(r.text))
		}
		for _, c := range t.cells {
			for _, f := range c.failed {
				m.p("\n❌ %s: %s\n", mdText(c.title()), mdText(sentence(readable(f.Detail))))
				if len(f.Evidence) > 0 {
					m.p("\n%s", mdFence("text", f.Evidence))
				}
			}
		}
		m.syncFigures(t)
		m.syncTimelines(t)
	}
}

// syncFigures lists all figures, a column for each pair.
func (m *markdown) syncFigures(t *syncTable) {
	var metrics []string
	head := []string{""}
	var cells []*syncCell
	for _, c := range t.cells {
		if len(c.all) == 0 {
			continue
		}
		cells = append(cells, c)
		head = append(head, mdText(c.title()))
		for _, x := range c.all {
			if !slices.Contains(metrics, x.Metric) {
				metrics = append(metrics, x.Metric)
			}
		}
	}
	if len(cells) == 0 {
		return
	}
	var rows [][]string
	for _, metric := range metrics {
		row := []string{mdText(metric)}
		for _, c := range cells {
			x, value := c.value(metric)
			if x == nil {
				row = append(row, "n/a")
				continue
			}
			text := scaleFor(x.Unit, []float64{value}).format(value)
			if lo, hi := x.Range(); len(x.Trials) > 1 && lo != hi {
				s := scaleFor(x.Unit, []float64{value, lo, hi})
				text = fmt.Sprintf("%s (%s–%s)", s.format(value), s.format(lo), s.format(hi))
			}
			if u := unitTitle(x.Unit); u != "" && !strings.Contains(text, u) && metric == metricRecords {
				text += " " + u
			}
			row = append(row, mdText(text))
		}
		rows = append(rows, row)
	}
	m.p("\n")
	m.narrower(head, rows)
}

// syncTimelines draws the sinks second by second.
func (m *markdown) syncTimelines(t *syncTable) {
	var lines []string
	n := 0
	for _, c := range t.cells {
		if len(c.timeline) >= fewBins {
			n = max(n, width(c.title()))
		}
	}
	for _, c := range t.cells {
		if len(c.timeline) >= fewBins {
			lines = append(lines, padRight(c.title(), n)+"  "+spark(c.timeline, 60)+fmt.Sprintf("  (%d s)", len(c.timeline)))
		}
	}
	if len(lines) > 0 {
		m.p("\nEvents at the sink, second by second in the last trial:\n\n%s", mdFence("text", lines))
	}
	for _, c := range t.cells {
		if c.unwatched != "" && c.none == "" {
			m.p("\n%s: no timeline, since %s.\n", mdText(c.title()), mdText(c.unwatched))
		}
	}
}
