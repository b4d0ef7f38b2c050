package report

// syncs writes a matrix for each mode, what is to say of its pairs, and every figure of each.
func (m *markdown) syncs(tables []*syncTable) {
	m.p("%s\n", mdText(m.v.syncMeaning()))
	for _, t := range tables {
		m.p("\n### %s (%s)\n\n", mdText(t.Title), mdCode(t.Key))
		head := []string{"from ↓ to →"}
		for _, s := range t.sinks {
			head = append(head, mdText(s))
		}
		var rows [][]string
		for _, source := range t.sources {
			row := []string{mdText(source)}
			for _, sink := range t.sinks {
				c := t.cell(source, sink)
				text, good := t.text(c)
				if !good {
					text += " ❌"
				}
				if text = mdText(text); c != nil {
					text += m.foot.sign(c.notes)
				}
				row = append(row, text)
			}
			rows = append(rows, row)
		}
		m.table(head, rows, firstLeft)
		m.footnotes()
		for i, r := range t.reasons() {
			if i == 0 {
				m.p("\n")
			}
			m.p("- n/a, %s: %s\n", mdText(r.key), mdText(r.text))
		}
		said := evidenceOnce{}
		for _, c := range t.cells {
			for _, f := range c.told {
				m.explain(said, f, c.says(f))
			}
		}
		m.syncFigures(t)
		m.syncTimelines(t)
	}
}

// syncFigures lists all figures, a column for each pair.
func (m *markdown) syncFigures(t *syncTable) {
	if len(t.figures) == 0 {
		return
	}
	head := []string{""}
	for _, r := range t.figures[0].rows {
		head = append(head, mdText((&syncCell{source: r.key.peer, sink: r.key.relay}).title()))
	}
	var rows [][]string
	for _, b := range t.figures {
		row := []string{mdText(b.title)}
		for _, r := range b.rows {
			row = append(row, m.value(b, r))
		}
		rows = append(rows, row)
	}
	m.p("\n")
	m.narrower(head, rows)
	m.footnotes()
}

// syncTimelines draws the sinks second by second.
func (m *markdown) syncTimelines(t *syncTable) {
	m.timeline("Events at the sink", t.timelines())
	for _, c := range t.cells {
		if c.unwatched != "" && c.none == "" {
			m.p("\n%s: no timeline, since %s.\n", mdText(c.title()), mdText(c.unwatched))
		}
	}
}
