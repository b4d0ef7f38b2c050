package report

import (
	"cmp"
	"fmt"
	"slices"

	"relaybench/results"
)

// A pairing is all that a run says of relays that were reconciled with each other.
type pairing struct {
	pairs     []*pair
	columns   []*summary  // the summary: a row for each relay as the server
	converged [][2]int    // by row of the summary: in how many of its pairs the relay converged, of how many
	apart     []fact      // relays that are in no pair, with the reason
	scenarios []*scenario // the measurements as blocks, for their distributions
}

// A pair is two relays that were reconciled, or two instances of one.
type pair struct {
	a, b      string
	failed    []*results.Finding
	sides     []*results.Finding // whether each converged
	complete  bool
	converged bool
}

func (p *pair) title() string {
	if p.a == p.b {
		return p.a + " (two instances)"
	}
	return p.a + " ⇄ " + p.b
}

// diverged tells whether a side does not hold what it must.
func (p *pair) diverged() bool {
	return slices.ContainsFunc(p.sides, func(f *results.Finding) bool { return f.Verdict != results.Passed })
}

// status is how the pair ended, and whether that is good; nothing is known of a pair that was
// interrupted.
func (p *pair) status() (text string, good, known bool) {
	diverged := p.diverged()
	switch {
	case !p.complete && diverged:
		return "did not converge, and did not complete ✗", false, true
	case !p.complete:
		return "did not complete ✗", false, true
	case diverged:
		return "did not converge ✗", false, true
	case p.converged:
		return "converged ✓", true, true
	}
	return "not finished", false, false
}

// keys name its measurements: each relay as the server.
func (p *pair) keys() []rowKey {
	if p.a == p.b {
		return []rowKey{{p.a, p.a}}
	}
	return []rowKey{{p.a, p.b}, {p.b, p.a}}
}

// inPair tells whether a check is explained in a pair's section.
func (v *view) inPair(f *results.Finding) bool {
	return f.Peer != "" && v.layout(f.Scenario) == results.LayoutPairs
}

// inSync tells whether a check is explained in a matrix.
func (v *view) inSync(f *results.Finding) bool {
	return f.Peer != "" && v.layout(f.Scenario) == results.LayoutMatrix
}

// elsewhere tells whether a check's evidence stands in a section of its own.
func (v *view) elsewhere(f *results.Finding) bool { return v.inPair(f) || v.inSync(f) }

// pairing gathers the pairs; nil where a run has none and none was looked for.
func (v *view) pairing() *pairing {
	g := &pairing{}
	byKey := map[rowKey]*pair{}
	at := func(relay, peer string) *pair {
		if v.order(peer) < v.order(relay) {
			relay, peer = peer, relay
		}
		k := rowKey{relay, peer}
		if byKey[k] == nil {
			if other := byKey[rowKey{peer, relay}]; other != nil { // relays that the record does not list
				return other
			}
			byKey[k] = &pair{a: relay, b: peer, complete: true}
			g.pairs = append(g.pairs, byKey[k])
		}
		return byKey[k]
	}
	g.scenarios = v.laid(results.LayoutPairs)
	for _, s := range g.scenarios {
		for _, b := range slices.Concat(s.blocks, s.facts) {
			for _, r := range b.rows {
				at(r.key.relay, r.key.peer)
			}
		}
	}
	for _, f := range v.checks {
		if v.inPair(f) {
			at(f.Relay, f.Peer).take(f)
		}
	}
	slices.SortStableFunc(g.pairs, func(x, y *pair) int {
		return cmp.Or(cmp.Compare(v.order(x.a), v.order(y.a)), cmp.Compare(v.order(x.b), v.order(y.b)))
	})
	for _, p := range g.pairs {
		slices.SortStableFunc(p.sides, func(x, y *results.Finding) int { return cmp.Compare(v.order(x.Relay), v.order(y.Relay)) })
		p.converged = p.complete && len(p.sides) == len(p.keys()) && !p.diverged()
	}
	if len(g.pairs) > 0 || !v.syncsOnly() {
		v.unpaired(g)
	}
	if len(g.pairs)+len(g.apart) == 0 {
		return nil
	}
	v.summarize(g)
	return g
}

// order is a relay's place in the run; the largest for unknown ones.
func (v *view) order(name string) uint {
	return uint(slices.IndexFunc(v.relays, func(r *results.Relay) bool { return r.Name == name }))
}

// take keeps a check of the pair.
func (p *pair) take(f *results.Finding) {
	if f.Code == results.CodeHoldsUnion && f.Verdict != results.Undecided {
		p.sides = append(p.sides, f)
	}
	if f.Verdict == results.Failed {
		p.failed = append(p.failed, f)
		p.complete = p.complete && f.Code != results.CodeCompletes
	}
}

// unpaired lists the relays that do not speak NIP-77, or of which that is not known, and are in no
// pair.
func (v *view) unpaired(g *pairing) {
	for _, f := range v.checks {
		if f.Code != results.CodeNIP77 || f.Verdict == results.Passed || f.Peer != "" ||
			slices.ContainsFunc(g.pairs, func(p *pair) bool { return p.a == f.Relay || p.b == f.Relay }) {
			continue
		}
		g.apart = append(g.apart, fact{f.Relay, findingText(f)})
	}
}

// The phases of a pair whose times are set against each other.
const (
	phaseInitial   = "initial"
	phaseHeartbeat = "heartbeat"
)

// first is the scenario of the first reconciliation of a pair; nil where it was not measured.
func (g *pairing) first() *scenario {
	if i := slices.IndexFunc(g.scenarios, func(s *scenario) bool { return s.labels[results.LabelPhase] == phaseInitial }); i >= 0 {
		return g.scenarios[i]
	}
	return nil
}

const (
	summaryNote = "Each relay as the server, the median over its pairs that nothing bars (where each is barred, over all, and it is not " +
		"ranked). Times are ranked between relays that had about the same to tell apart (within a tenth); what is transferred into a " +
		"relay rests on its source too, and bytes on which side holds more: neither is ranked."
	summaryMeaning = "initial is the first reconciliation after writes, identical that of sets that are the same, heartbeat the same " +
		"again with no writes between."
)

// maxExamples bounds the lines of evidence that a terminal shows of one check of a pair.
const maxExamples = 6

// pairing adds a summary with a line for each relay, then each pair by itself.
func (d *composer) pairing(g *pairing) {
	if len(g.columns) > 0 {
		d.summary(g)
	}
	if len(g.apart) > 0 {
		d.add(gap{}, para{indent: 1, text: []Span{{"Not reconciled", Bold}}})
		x := list{texts: Dim}
		for _, f := range g.apart {
			x.rows = append(x.rows, fact{f.key, fit(f.text, 400)})
		}
		d.add(x)
	}
	for _, p := range g.pairs {
		text, good, known := p.status()
		st := Yellow
		if good {
			st = Green
		} else if known {
			st = RedBold
		}
		d.add(heading{level: 3, title: p.title(), state: Span{text, st}})
		said := evidenceOnce{}
		for _, f := range p.explanation() {
			d.explain(said, f, explained(f), maxExamples)
		}
		t := &Table{labels: 2, columns: heads("", "as server")}
		var entries []entry
		for _, sc := range g.scenarios {
			for _, k := range p.keys() {
				if x := (entry{scenario: sc, key: k, labels: plain(sc.Title, k.relay)}); x.measured() {
					entries = append(entries, x)
				}
			}
		}
		d.pivot(t, entries, measure{Column{Head: "÷ initial"}, func(s *entry) Cell {
			if first := g.first(); first != nil && s.scenario.labels[results.LabelPhase] == phaseHeartbeat {
				_, beat := s.primary()
				if _, initial := (&entry{scenario: first, key: s.key}).primary(); beat != nil && initial != nil {
					if r, ok := quotient(beat.m, initial.m); ok {
						return Cell{text: shareOfText(r)}
					}
				}
			}
			return Cell{text: nothing}
		}})
	}
}

// measured tells whether there is anything of an entry.
func (s *entry) measured() bool {
	_, r := s.figure(func(b *block) bool {
		return slices.ContainsFunc(b.rows, func(r *row) bool { return r.key == s.key && r.m != nil })
	})
	return r != nil
}

func (d *composer) summary(g *pairing) {
	t := &Table{labels: 1, columns: heads("as server", "converged")}
	for _, c := range g.columns {
		t.columns = append(t.columns, Column{Head: c.title})
	}
	for i, first := range g.columns[0].rows {
		n := g.converged[i]
		st := Green
		if n[0] < n[1] {
			st = Red
		}
		row := []Cell{{text: first.name}, {text: fmt.Sprintf("%d of %d", n[0], n[1]), style: st}}
		for _, c := range g.columns {
			if c.block == nil {
				row = append(row, Cell{text: c.texts[i]})
			} else {
				row = append(row, d.fact(c.block, c.rows[i]))
			}
		}
		t.rows = append(t.rows, Row{cells: row})
	}
	d.Table(t)
	for _, l := range g.notes() {
		d.Say(l, Dim)
	}
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
	text := f.Relay + ", " + CheckTitle(f.Code) + ": " + findingText(f)
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

// explain adds what is to say of a pair, with so many lines at most of evidence that is new.
func (d *composer) explain(said evidenceOnce, f *results.Finding, text string, most int) {
	d.item(signs[f.Verdict], text, Plain)
	if f.Verdict == results.Passed {
		return
	}
	evidence := said.fresh(f)
	add := func() {
		if len(evidence) == 0 && len(f.Evidence) > 0 {
			d.add(para{indent: 3, text: []Span{{"(" + shownAbove + ")", Dim}}})
		}
		d.evidence(evidence, 3, most, " of evidence in report.md")
	}
	if most == 0 {
		d.to(full, add)
	} else {
		add()
	}
}
