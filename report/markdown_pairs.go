package report

import (
	"fmt"
	"strings"

	"relaybench/results"
)

// pairing writes the summary of the pairs, the relays in none of them, and a part for each pair.
func (m *markdown) pairing(g *pairing) {
	if len(g.columns) > 0 {
		head := []string{"as server", "converged"}
		for _, c := range g.columns {
			head = append(head, mdText(c.title))
		}
		var rows [][]string
		for i, first := range g.columns[0].rows {
			row := []string{mdText(first.name), fmt.Sprintf("%d of %d", g.converged[i][0], g.converged[i][1])}
			for _, c := range g.columns {
				switch {
				case c.block == nil:
					row = append(row, c.texts[i])
				default:
					row = append(row, m.value(c.block, c.rows[i]))
				}
			}
			rows = append(rows, row)
		}
		m.table(head, rows, firstLeft)
		m.footnotes()
		for _, l := range g.notes() {
			m.p("\n%s\n", mdText(l))
		}
	}
	if len(g.apart) > 0 {
		if len(g.columns) > 0 {
			m.p("\n")
		}
		m.p("Not reconciled:\n\n")
		for _, f := range g.apart {
			m.p("- %s: %s\n", mdText(f.key), mdText(f.text))
		}
	}
	for i, p := range g.pairs {
		if i > 0 || len(g.columns)+len(g.apart) > 0 {
			m.p("\n")
		}
		m.pair(p)
	}
}

func (m *markdown) pair(p *pair) {
	text, _, _ := p.status()
	m.p("### %s: %s\n", mdText(p.title()), text)
	said := evidenceOnce{}
	for _, f := range p.explanation() {
		m.explain(said, f, explained(f))
	}
	if len(p.phases) == 0 {
		return
	}
	p.number(&m.foot)
	head := []string{""}
	for _, s := range p.servers() {
		head = append(head, mdText(s+" as server"))
	}
	var rows [][]string
	for _, ph := range p.phases {
		row := []string{mdText(ph.title)}
		for _, c := range ph.cells {
			row = append(row, c.markdown())
		}
		rows = append(rows, row)
	}
	m.p("\n")
	m.table(head, rows, allLeft)
	m.footnotes()
}

// explain writes what is to say of a pair, with the evidence that was not shown.
func (m *markdown) explain(said evidenceOnce, f *results.Finding, text string) {
	m.p("\n%s %s\n", signs[f.Verdict].text, mdText(sentence(text)))
	switch evidence := said.fresh(f); {
	case f.Verdict == results.Passed:
	case len(evidence) > 0:
		m.p("\n%s", mdFence("text", evidenceLines(evidence, false)))
	case len(f.Evidence) > 0:
		m.p("\n(%s)\n", shownAbove)
	}
}

// markdown is the whole of a cell, the main figure in bold.
func (c phaseCell) markdown() string {
	if c.main == "" && len(c.parts) == 0 {
		return "not measured"
	}
	var texts []string
	if c.main != "" {
		texts = append(texts, "**"+mdText(c.main)+"**")
	}
	for _, x := range c.parts {
		texts = append(texts, mdText(x.text))
	}
	return strings.Join(texts, " · ")
}
