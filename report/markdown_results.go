package report

import (
	"fmt"
	"slices"

	"relaybench/results"
)

// section writes a scenario a table; queries, which are many and alike, a table for each metric.
func (m *markdown) section(s *section) {
	m.heading(2, mdText(s.title))
	first := true
	if s.pairing != nil {
		m.pairing(s.pairing)
		first = false
	}
	if s.syncs != nil {
		if !first {
			m.p("\n")
		}
		m.syncs(s.syncs)
		first = false
	}
	if s.download != nil {
		m.download(s.download)
		first = false
	}
	var queries []*scenario
	for _, sc := range s.scenarios {
		if primary(sc) != nil {
			queries = append(queries, sc)
			continue
		}
		if len(sc.blocks)+len(sc.facts) == 0 {
			continue
		}
		if !first {
			m.p("\n")
		}
		first = false
		m.scenario(sc)
	}
	if len(queries) > 0 {
		m.queries(queries)
	}
}

func (m *markdown) scenario(s *scenario) {
	if s.Title == s.Key {
		m.p("### %s\n\n", mdCode(s.Key))
	} else {
		m.p("### %s (%s)\n\n", mdText(s.Title), mdCode(s.Key))
	}
	blocks := slices.Concat(s.blocks, s.facts)
	head := []string{""}
	for _, r := range blocks[0].rows {
		head = append(head, mdText(r.name))
	}
	var rows [][]string
	for _, b := range blocks {
		row := []string{mdText(b.heading(medianTitle(b)))}
		for _, r := range b.rows {
			row = append(row, m.value(b, r))
		}
		rows = append(rows, row)
	}
	m.narrower(head, rows)
	m.footnotes()
	m.timelines(blocks)
}

// value is a row's figure with its mark and, over several trials, their range.
func (m *markdown) value(b *block, r *row) string {
	if !r.has {
		return mdText(clause(r.why, 60))
	}
	text := mdText(b.scale.format(r.value))
	if sign := mark(b, r) + m.foot.sign(r.notes()); sign != "" {
		text += " " + sign
	}
	if len(r.m.Trials) > 1 && r.lo != r.hi {
		text += " (" + number(r.lo*b.scale.factor) + "–" + number(r.hi*b.scale.factor) + ")"
	}
	if r.best {
		text = "**" + text + "**"
	}
	return text
}

// medianTitle says of a latency what is shown of it.
func medianTitle(b *block) string {
	if timeBases[b.unit] != 0 && slices.ContainsFunc(b.rows, func(r *row) bool { return r.dist != nil }) {
		return ", median"
	}
	return ""
}

// queries writes a table for each metric: a line for each query in each form, a column for each
// relay.
func (m *markdown) queries(list []*scenario) {
	type metricKey struct{ title, unit string }
	var metrics []metricKey
	blocks := map[metricKey][]*block{}
	for _, s := range list {
		for _, b := range slices.Concat(s.blocks, s.facts) {
			k := metricKey{b.title, b.unit}
			if blocks[k] == nil {
				metrics = append(metrics, k)
			}
			blocks[k] = append(blocks[k], b)
		}
	}
	for i, k := range metrics {
		members := blocks[k]
		if i > 0 {
			m.p("\n")
		}
		title := withUnit(members[0].title, k.unit) + medianTitle(members[0])
		if d := direction(members[0].better); d != "" {
			title += " (" + d + ")"
		}
		m.p("### %s\n\n", mdText(title))
		var names []string
		for _, b := range members {
			for _, r := range b.rows {
				if !slices.Contains(names, r.name) {
					names = append(names, r.name)
				}
			}
		}
		head := []string{""}
		for _, n := range names {
			head = append(head, mdText(n))
		}
		var rows [][]string
		for _, b := range members {
			label := mdCode(b.scenario.Key)
			if l := labelText(b.labels, []string{results.LabelQuery, results.LabelForm}); l != "" {
				label = mdText(l)
			}
			if b.unranked != "" {
				label += " (" + mdText(b.unranked) + ")"
			}
			line := []string{label}
			for _, n := range names {
				text := ""
				if i := slices.IndexFunc(b.rows, func(r *row) bool { return r.name == n }); i >= 0 {
					text = m.value(b, b.rows[i])
				}
				line = append(line, text)
			}
			rows = append(rows, line)
		}
		m.table(head, rows, firstLeft)
		m.footnotes()
	}
}

// timelines draws metrics second by second.
func (m *markdown) timelines(blocks []*block) {
	for _, b := range blocks {
		var t timelines
		for _, r := range b.rows {
			if r.has {
				t.add(r.name, r.m.Timeline)
			}
		}
		m.timeline(b.title, t)
	}
}

// timelines are how something went second by second, by name.
type timelines []timeline

type timeline struct {
	name   string
	values []float64
}

// add takes in one that is long enough to have a shape.
func (t *timelines) add(name string, values []float64) {
	if len(values) >= fewBins {
		*t = append(*t, timeline{name, values})
	}
}

// width is that of the longest name, and no more than most.
func (t timelines) width(most int) (n int) {
	for _, x := range t {
		n = max(n, min(width(x.name), most))
	}
	return n
}

func (m *markdown) timeline(title string, t timelines) {
	var lines []string
	for _, x := range t {
		lines = append(lines, padRight(x.name, t.width(30))+"  "+spark(x.values, 60)+fmt.Sprintf("  (%d s)", len(x.values)))
	}
	if len(lines) > 0 {
		m.p("\n%s, second by second in the last trial:\n\n%s", mdText(title), mdFence("text", lines))
	}
}

// distributions writes every histogram's percentiles.
func (m *markdown) distributions() {
	var rows [][]string
	few, clamped := false, false
	for _, s := range m.v.sections {
		scenarios := s.scenarios
		if s.pairing != nil {
			scenarios = slices.Concat(s.pairing.scenarios, scenarios)
		}
		if s.download != nil {
			for _, c := range s.download.cells {
				scenarios = append(scenarios, c.scenario)
			}
		}
		for _, sc := range scenarios {
			for _, b := range slices.Concat(sc.blocks, sc.facts) {
				var values []float64
				for _, r := range b.rows {
					if r.dist != nil {
						values = append(values, r.dist.p50, r.dist.p99)
					}
				}
				sc := scaleFor("s", values)
				for _, r := range b.rows {
					d := r.dist
					if d == nil {
						continue
					}
					p99 := sc.format(d.p99)
					if d.n < fewSamples {
						p99, few = p99+"\\*", true
					}
					n := thousands(fmt.Sprint(d.n))
					if d.clamped > 0 {
						n, clamped = n+"‡", true
					}
					rows = append(rows, []string{mdText(m.v.place(b.scenario.Key, b.labels)), mdText(b.title), mdText(r.name), n, sc.format(d.p50), sc.format(d.p90), p99, sc.format(d.p999), sc.format(d.top)})
				}
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	m.heading(2, "Latency distributions")
	m.table([]string{"scenario", "metric", "relay", "samples", "p50", "p90", "p99", "p99.9", "max"}, rows, func(c int) bool { return c > 2 })
	if few {
		m.p("\n\\* from fewer than 1,000 samples: a p99 of so few is a guess.\n")
	}
	if clamped {
		m.p("\n‡ some samples lay outside 0–60 s and are counted at that bound.\n")
	}
}

func (m *markdown) resources() {
	t := m.v.resourceTable(false)
	if len(t.rows) == 0 {
		return
	}
	m.heading(2, "Resources")
	head := slices.Clone(t.head)
	for i := range head {
		head[i] = mdText(head[i])
	}
	var rows [][]string
	for _, r := range t.rows {
		row := slices.Clone(r)
		row[0] = mdCode(row[0])
		for i := 1; i < len(row); i++ {
			row[i] = mdText(row[i])
		}
		rows = append(rows, row)
	}
	m.table(head, rows, func(c int) bool { return c > 1 })
}
