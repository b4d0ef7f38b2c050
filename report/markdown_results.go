package report

import (
	"fmt"
	"slices"
	"strings"
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
	if s.title == s.key {
		m.p("### %s\n\n", mdCode(s.key))
	} else {
		m.p("### %s (%s)\n\n", mdText(s.title), mdCode(s.key))
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
	m.notes(blocks)
	m.timelines(blocks)
}

// value is a row's figure with its mark and, over several trials, their range.
func (m *markdown) value(b *block, r *row) string {
	if !r.has {
		return mdText(clause(r.why, 60))
	}
	text := mdText(b.scale.format(r.value))
	if sign := strings.TrimSpace(mark(b, r)); sign != "" {
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

// queries writes a table for each metric: a line for each query in each form, a column for each relay.
func (m *markdown) queries(list []*scenario) {
	type metricKey struct{ metric, unit string }
	var metrics []metricKey
	for _, s := range list {
		for _, b := range slices.Concat(s.blocks, s.facts) {
			if k := (metricKey{b.metric, b.unit}); !slices.Contains(metrics, k) {
				metrics = append(metrics, k)
			}
		}
	}
	first := true
	for _, k := range metrics {
		var members []*block
		for _, s := range list {
			for _, b := range slices.Concat(s.blocks, s.facts) {
				if b.metric == k.metric && b.unit == k.unit {
					members = append(members, b)
				}
			}
		}
		if !first {
			m.p("\n")
		}
		first = false
		title := members[0].title
		if u := unitTitle(k.unit); u != "" && !strings.Contains(title, u) {
			title += ", " + u
		}
		title += medianTitle(members[0])
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
			label := mdCode(strings.TrimPrefix(b.scenario, "query."))
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
		m.notes(members)
	}
}

// notes writes what a reader of the table above must know, once for each note.
func (m *markdown) notes(blocks []*block) {
	where := map[string][]string{}
	var order []string
	for _, b := range blocks {
		for _, r := range b.rows {
			if !r.has || r.m.Note == "" {
				continue
			}
			k := r.name + "\x00" + r.m.Note
			if where[k] == nil {
				order = append(order, k)
			}
			where[k] = append(where[k], strings.TrimPrefix(b.scenario, "query.")+" "+b.metric)
		}
	}
	if len(order) > 0 {
		m.p("\n")
	}
	for _, k := range order {
		name, note, _ := strings.Cut(k, "\x00")
		m.p("- %s: %s (%s)\n", mdText(name), mdText(note), mdText(some(where[k], 4)))
	}
}

// timelines draws a metric second by second.
func (m *markdown) timelines(blocks []*block) {
	for _, b := range blocks {
		var lines []string
		n := 0
		for _, r := range b.rows {
			n = max(n, width(r.name))
		}
		for _, r := range b.rows {
			if r.has && len(r.m.Timeline) >= fewBins {
				lines = append(lines, padRight(r.name, min(n, 30))+"  "+spark(r.m.Timeline, 60)+fmt.Sprintf("  (%d s)", len(r.m.Timeline)))
			}
		}
		if len(lines) > 0 {
			m.p("\n%s, second by second in the last trial:\n\n%s", mdText(b.title), mdFence("text", lines))
		}
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
			scenarios = slices.Concat(s.download.scenarios, scenarios)
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
					rows = append(rows, []string{mdCode(b.scenario), mdText(b.metric), mdText(r.name), n, sc.format(d.p50), sc.format(d.p90), p99, sc.format(d.p999), sc.format(d.top)})
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
