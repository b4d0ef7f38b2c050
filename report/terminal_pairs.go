package report

import (
	"fmt"
	"slices"
	"strings"

	"relaybench/results"
)

// maxExamples bounds the lines of evidence that a pair's section shows of one check.
const maxExamples = 6

// Where a column of a pair has at least this many cells, what follows its main figure hangs beside
// it.
const hangFrom = 40

const (
	summaryNote = "Each relay as the server, the median over its pairs that nothing bars (where each is barred, over all, and it is not " +
		"ranked). Times are ranked between relays that had about the same to tell apart (within a tenth); what is transferred into a " +
		"relay rests on its source too, and bytes on which side holds more: neither is ranked."
	summaryMeaning = "initial is the first reconciliation after writes, identical that of sets that are the same, heartbeat the same " +
		"again with no writes between."
)

// pairing writes the pairs: a summary with a line for each relay, then each pair by itself.
func (t *terminal) pairing(g *pairing) {
	if len(g.columns) > 0 {
		t.pairSummary(g)
	}
	if len(g.apart) > 0 {
		t.line()
		t.line(span{"  Not reconciled", bold})
		n := 0
		var keys []string
		for _, f := range g.apart {
			n = max(n, min(width(f.key), t.part(4)))
			keys = append(keys, f.key)
		}
		cut := CutNames(keys, n)
		for _, f := range g.apart {
			t.paragraph(span{"    " + padRight(cut[f.key], n) + "  ", none}, span{fit(f.text, 3*max(t.width-n-6, narrow)), dim})
		}
	}
	for _, p := range g.pairs {
		t.pair(p)
	}
}

func (t *terminal) pairSummary(g *pairing) {
	head := []string{"as server", "converged"}
	for _, c := range g.columns {
		title := c.title
		if c.marked() {
			title += "  "
		}
		head = append(head, title)
	}
	var rows [][]cell
	for i, first := range g.columns[0].rows {
		n := g.converged[i]
		st := green
		if n[0] < n[1] {
			st = red
		}
		row := []cell{{first.name, none}, {fmt.Sprintf("%d of %d", n[0], n[1]), st}}
		for _, c := range g.columns {
			switch {
			case c.block == nil:
				row = append(row, cell{c.texts[i], none})
			case c.rows[i].has:
				x := t.value(c.block, c.rows[i])
				if !c.marked() {
					x.text = strings.TrimRight(x.text, " ")
				}
				row = append(row, x)
			default:
				row = append(row, cell{"n/a", dim})
			}
		}
		rows = append(rows, row)
	}
	t.grid(2, 1, head, rows, func(c int) bool { return c > 0 })
	t.footnotes()
	for _, l := range g.notes() {
		t.paragraph(span{"  ", none}, span{l, dim})
	}
}

// marked tells whether any figure of the column has a mark behind it.
func (c *column) marked() bool {
	return c.block != nil && slices.ContainsFunc(c.rows, func(r *row) bool { return r.has && (mark(c.block, r) != "" || len(r.notes()) > 0) })
}

// notes says how to read the summary, and which of its columns are without a star.
func (g *pairing) notes() []string {
	out := []string{summaryMeaning}
	if len(g.converged) > 1 {
		out = append(out, summaryNote)
	}
	for _, c := range g.columns {
		if c.block != nil && c.block.unranked != "" {
			out = append(out, c.title+": "+c.block.unranked+".")
		}
	}
	return out
}

func (t *terminal) pair(p *pair) {
	t.line()
	text, good, known := p.status()
	st := yellow
	if good {
		st = green
	} else if known {
		st = redder
	}
	if title := p.title(); width(title)+3+width(text) <= t.width {
		t.line(span{title, bold}, span{"   " + text, st})
	} else {
		t.paragraph(span{}, span{title, bold})
		t.paragraph(span{"  ", none}, span{text, st})
	}
	said := evidenceOnce{}
	explanation := p.explanation()
	for _, f := range explanation {
		t.explain(said, f, explained(f), maxExamples)
	}
	if len(p.phases) == 0 {
		return
	}
	if len(explanation) > 0 {
		t.line()
	}
	p.number(&t.foot)
	label := 0
	for _, ph := range p.phases {
		label = max(label, min(width(ph.title), 20))
	}
	const indent, gap = 2, 2
	servers := p.servers()
	n := (t.width-indent-label)/len(servers) - gap
	if t.width < narrow && n < leastWidth {
		t.pairList(p, servers)
		return
	}
	cut := CutNames(servers, n-10)
	titles := []span{{strings.Repeat(" ", indent+label), none}}
	for _, s := range servers {
		titles = append(titles, span{strings.Repeat(" ", gap) + padRight(cut[s]+" as server", n), blue})
	}
	t.line(titles...)
	mains := 0
	for _, ph := range p.phases {
		for _, c := range ph.cells {
			mains = max(mains, min(width(c.main), n/2))
		}
	}
	if n < hangFrom {
		mains = 0
	}
	for _, ph := range p.phases {
		var columns [][][]span
		lines := 0
		for _, c := range ph.cells {
			columns = append(columns, c.lines(n, mains))
			lines = max(lines, len(columns[len(columns)-1]))
		}
		name := ph.title
		for l := range lines {
			spans := []span{{strings.Repeat(" ", indent) + padRight(fitMiddle(name, label), label), none}}
			name = ""
			for _, col := range columns {
				spans = append(spans, span{strings.Repeat(" ", gap), none})
				used := 0
				if l < len(col) {
					for _, sp := range col[l] {
						used += width(sp.text)
						spans = append(spans, sp)
					}
				}
				spans = append(spans, span{strings.Repeat(" ", max(n-used, 0)), none})
			}
			t.line(spans...)
		}
	}
	t.pairFoot(p)
}

// pairList writes the phases of a pair below one another, for a terminal that has no room for
// columns.
func (t *terminal) pairList(p *pair, servers []string) {
	for i, server := range servers {
		t.line(span{"  " + server + " as server", blue})
		for _, ph := range p.phases {
			t.line(span{"    " + ph.title, none})
			for _, line := range ph.cells[i].lines(t.width-6, 0) {
				t.line(append([]span{{"      ", none}}, line...)...)
			}
		}
	}
	t.pairFoot(p)
}

// pairFoot writes what stands under a pair's figures.
func (t *terminal) pairFoot(p *pair) {
	for _, ph := range p.phases {
		for _, c := range ph.cells {
			if c.few {
				t.used += "*"
			}
		}
	}
	t.footnotes()
}

// lines lays a cell out in n cells: the main figure, and the rest beside it from hang on, or after
// it where hang is 0.
func (c phaseCell) lines(n, hang int) [][]span {
	if c.main == "" && len(c.parts) == 0 {
		return [][]span{{{"not measured", dim}}}
	}
	var texts []string
	for _, x := range c.parts {
		if !x.fine {
			texts = append(texts, x.text)
		}
	}
	main := c.main
	if main != "" && len(texts) > 0 {
		main += ","
	}
	main = fit(main, n)
	first := []span{{main, none}}
	used := width(main)
	indent := 0
	if hang > 0 {
		main = padRight(fit(c.main, hang), hang)
		first, used, indent = []span{{main + "  ", none}}, hang+2, hang+2
	}
	var out [][]span
	line, empty := first, hang > 0
	for i, text := range texts {
		if i < len(texts)-1 {
			text += ","
		}
		for _, piece := range wrap(text, n-indent) {
			switch {
			case empty:
				line = append(line, span{piece, dim})
				used += width(piece)
			case used+1+width(piece) <= n:
				line = append(line, span{" " + piece, dim})
				used += 1 + width(piece)
			default:
				out = append(out, line)
				line = []span{{strings.Repeat(" ", indent), none}, {piece, dim}}
				used = indent + width(piece)
			}
			empty = false
		}
	}
	return append(out, line)
}

// explanation lists what there is to say of a pair that did not come through: what each side holds,
// then every other failed check.
func (p *pair) explanation() []*results.Finding {
	var out []*results.Finding
	if p.diverged() {
		out = append(out, p.sides...)
	}
	for _, f := range p.failed {
		if f.Code != results.CodeHoldsUnion {
			out = append(out, f)
		}
	}
	return out
}

// explained is a line of an explanation: whom the check asked, what it found, and who is at fault
// where that is the other.
func explained(f *results.Finding) string {
	text := f.Relay + ", " + checkTitle(f.Code) + ": " + findingText(f)
	switch f.Code {
	case results.CodeHoldsUnion:
		text = f.Relay + " " + findingText(f)
	case results.CodeCompletes:
		text = findingText(f)
	}
	if f.Verdict == results.Failed && f.Blames != f.Relay && f.Blames != "" {
		text += " (at fault: " + f.Blames + ")"
	}
	return text
}

// evidenceOnce remembers which evidence on which relay was shown of a pair, or of one way to sync:
// what was lost at first is still lost at the end.
type evidenceOnce map[string]bool

// fresh lists what was not shown before.
func (o evidenceOnce) fresh(f *results.Finding) []results.Evidence {
	var out []results.Evidence
	for _, e := range f.Evidence {
		k := fmt.Sprint(f.Relay, "\x00", evidenceLines([]results.Evidence{e}, false))
		if !o[k] {
			o[k] = true
			out = append(out, e)
		}
	}
	return out
}

const shownAbove = "the examples are the same as above"

// explain writes what is to say of a pair, with so many lines at most of evidence that is new.
func (t *terminal) explain(said evidenceOnce, f *results.Finding, text string, most int) {
	sign := signs[f.Verdict]
	t.paragraph(span{"  " + sign.text + " ", sign.style}, span{text, none})
	if f.Verdict == results.Passed || most == 0 {
		return
	}
	evidence := said.fresh(f)
	if len(evidence) == 0 && len(f.Evidence) > 0 {
		t.line(span{"      " + shownAbove, dim})
	}
	t.evidence(evidence, "      ", most, true)
}
