package report

import (
	"cmp"
	"slices"
	"strings"

	"relaybench/results"
)

// tables gathers what stands in tables that rank nothing.
func (v *view) tables() {
	var labels []string
	for _, s := range v.rec.Scenarios {
		labels = append(append(labels, s.Tables...), s.Rows...)
	}
	for _, s := range v.laid(results.LayoutTable, labels...) {
		in := v.sectionFor(s.Scenario)
		in.tables = append(in.tables, s)
	}
}

// tableTitle heads the table in which a scenario stands.
func (s *scenario) tableTitle() string { return cmp.Or(LabelText(s.labels, s.Tables), s.Title) }

// tables sets scenarios as tables: relays and what labels say down, metrics across.
func (d *composer) tables(all []*scenario) {
	d.describe(all)
	for len(all) > 0 {
		title := all[0].tableTitle()
		other := func(sc *scenario) bool { return sc.tableTitle() != title }
		d.add(heading{level: 3, title: title})
		d.stated(slices.DeleteFunc(slices.Clone(all), other))
		all = slices.DeleteFunc(slices.Clone(all), func(sc *scenario) bool { return !other(sc) })
	}
}

// describe says what the scenarios are whose tables have another title, and what their columns are.
func (d *composer) describe(all []*scenario) {
	var titles []string
	for _, sc := range all {
		if sc.tableTitle() != sc.Title {
			titles = AddNew(titles, sc.Title)
		}
	}
	if len(titles) > 0 {
		d.Say(strings.Join(titles, ". ")+".", Dim)
	}
	var meanings []string
	for _, m := range d.v.rec.Metrics {
		if m.Meaning != "" && slices.ContainsFunc(all, func(s *scenario) bool {
			return slices.ContainsFunc(s.facts, func(b *block) bool { return b.metric.Key == m.Key })
		}) {
			meanings = append(meanings, m.Title+": "+m.Meaning)
		}
	}
	if len(meanings) > 0 {
		d.Say(strings.Join(meanings, "; ")+".", Dim)
	}
}

// stated sets scenarios as one table.
func (d *composer) stated(all []*scenario) {
	shareColumns(all)
	t, entries := &Table{}, []entry(nil)
	for _, sc := range all {
		for _, r := range sc.facts[0].rows {
			e := entry{scenario: sc, key: r.key}
			if !e.measured() {
				continue
			}
			for _, text := range append([]string{r.key.relay}, sc.rowLabels()...) {
				if text != "" {
					e.labels = append(e.labels, Cell{text: text})
				}
			}
			t.labels = max(t.labels, len(e.labels))
			entries = append(entries, e)
		}
	}
	for i := range entries {
		e := &entries[i]
		e.labels = append(e.labels, make([]Cell, t.labels-len(e.labels))...)
	}
	t.columns = make([]Column, t.labels)
	// The harness itself comes first, and rows of one first label stand together.
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Compare(int(d.v.order(a.key.relay)), int(d.v.order(b.key.relay)))
	})
	places := map[string]int{}
	for i := range entries {
		if first := entries[i].labels[0].text; places[first] == 0 {
			places[first] = 1 + i
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Compare(places[a.labels[0].text], places[b.labels[0].text])
	})
	d.pivot(t, entries)
}

// rowLabels are what tells a scenario's rows apart beside the relay.
func (s *scenario) rowLabels() (texts []string) {
	for _, name := range s.Rows {
		texts = append(texts, LabelText(s.labels, []string{name}))
	}
	return texts
}

// shareColumns shows the figures of a column in one size: times as they were recorded, since in one
// table they differ by orders of magnitude.
func shareColumns(all []*scenario) {
	values := map[[2]string][]float64{}
	for _, change := range []bool{false, true} {
		for _, s := range all {
			for _, b := range s.facts {
				switch k := [2]string{b.metric.Key, b.own}; {
				case !change:
					for _, r := range b.rows {
						values[k] = append(values[k], r.shown(b.unit)...)
					}
				case timeBases[b.unit] != 0:
					b.scale = Scale{factor: 1, suffix: " " + b.unit}
				default:
					b.scale = ScaleFor(b.unit, values[k])
				}
			}
		}
	}
}
