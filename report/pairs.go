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
	a, b   string
	sides  []*results.Finding // whether each converged
	failed []*results.Finding // what else failed
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

// complete tells whether all that was begun came to its end.
func (p *pair) complete() bool {
	return !slices.ContainsFunc(p.failed, func(f *results.Finding) bool { return f.Code == results.CodeCompletes })
}

// converged tells whether both sides came to hold what they must.
func (p *pair) converged() bool {
	return p.complete() && len(p.sides) == len(p.keys()) && !p.diverged()
}

// status is how the pair ended; nothing is known of one that was interrupted.
func (p *pair) status() Span {
	switch diverged, complete := p.diverged(), p.complete(); {
	case !complete && diverged:
		return Span{"did not converge, and did not complete ✗", RedBold}
	case !complete:
		return Span{"did not complete ✗", RedBold}
	case diverged:
		return Span{"did not converge ✗", RedBold}
	case p.converged():
		return Span{"converged ✓", Green}
	}
	return Span{"not finished", Yellow}
}

// keys name its measurements: each relay as the server.
func (p *pair) keys() []rowKey {
	return slices.Compact([]rowKey{{p.a, p.b}, {p.b, p.a}})
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

// order is a relay's place in the run; the largest for unknown ones.
func (v *view) order(name string) uint {
	return uint(slices.IndexFunc(v.relays, func(r *results.Relay) bool { return r.Name == name }))
}

// pairing gathers the pairs; nil where a run has none and none was looked for.
func (v *view) pairing() *pairing {
	g := &pairing{scenarios: v.laid(results.LayoutPairs)}
	at := func(a, b string) *pair {
		i := slices.IndexFunc(g.pairs, func(p *pair) bool { return slices.Contains(p.keys(), rowKey{a, b}) })
		if i < 0 {
			if v.order(b) < v.order(a) {
				a, b = b, a
			}
			i = len(g.pairs)
			g.pairs = append(g.pairs, &pair{a: a, b: b})
		}
		return g.pairs[i]
	}
	for _, s := range g.scenarios {
		for _, b := range s.all() {
			for _, r := range b.rows {
				at(r.key.relay, r.key.peer)
			}
		}
	}
	for _, f := range v.checks {
		switch {
		case !v.inPair(f):
		case f.Code == results.CodeHoldsUnion && f.Verdict != results.Undecided:
			p := at(f.Relay, f.Peer)
			p.sides = append(p.sides, f)
		case f.Verdict == results.Failed:
			p := at(f.Relay, f.Peer)
			p.failed = append(p.failed, f)
		default:
			at(f.Relay, f.Peer)
		}
	}
	slices.SortStableFunc(g.pairs, func(x, y *pair) int {
		return cmp.Or(cmp.Compare(v.order(x.a), v.order(y.a)), cmp.Compare(v.order(x.b), v.order(y.b)))
	})
	for _, p := range g.pairs {
		slices.SortStableFunc(p.sides, func(x, y *results.Finding) int { return cmp.Compare(v.order(x.Relay), v.order(y.Relay)) })
	}
	// Relays that do not speak NIP-77, or of which that is not known, are in no pair.
	for _, f := range v.checks {
		if f.Code == results.CodeNIP77 && f.Verdict != results.Passed && f.Peer == "" && (len(g.pairs) > 0 || !v.syncsOnly()) &&
			!slices.ContainsFunc(g.pairs, func(p *pair) bool { return p.a == f.Relay || p.b == f.Relay }) {
			g.apart = append(g.apart, fact{f.Relay, findingText(f)})
		}
	}
	if len(g.pairs)+len(g.apart) == 0 {
		return nil
	}
	v.summarize(g)
	return g
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
		d.add(heading{level: 3, title: p.title(), state: p.status()})
		shown := evidenceOnce{}
		if p.diverged() {
			for _, f := range p.sides {
				d.explain(shown, f, f.Relay+" "+findingText(f)+faultOf(f, f.Relay), maxExamples)
			}
		}
		for _, f := range p.failed {
			text := findingText(f)
			if f.Code != results.CodeCompletes {
				text = f.Relay + ", " + CheckTitle(f.Code) + ": " + text
			}
			d.explain(shown, f, text+faultOf(f, f.Relay), maxExamples)
		}
		var entries []entry
		for _, sc := range g.scenarios {
			for _, k := range p.keys() {
				if x := (entry{scenario: sc, key: k, labels: plain(sc.Title, k.relay)}); x.measured() {
					entries = append(entries, x)
				}
			}
		}
		d.pivot(&Table{labels: 2, columns: heads("", "as server")}, entries, measure{Column{Head: "÷ initial"}, func(s *entry) Cell {
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

// summary adds a line for each relay as the server, and says how to read it.
func (d *composer) summary(g *pairing) {
	t := &Table{labels: 1, columns: heads("as server", "converged")}
	var unranked []string
	for _, c := range g.columns {
		t.columns = append(t.columns, Column{Head: c.title})
		if c.block != nil && c.block.unranked != "" {
			unranked = append(unranked, c.title+": "+c.block.unranked+".")
		}
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
		t.Add("", row...)
	}
	d.Table(t)
	d.Say(summaryMeaning, Dim)
	if len(g.converged) > 1 {
		d.Say(summaryNote, Dim)
	}
	for _, text := range unranked {
		d.Say(text, Dim)
	}
}

// faultOf names who is at fault for a failed check where that is another than the one who was
// asked.
func faultOf(f *results.Finding, asked string) string {
	if f.Verdict != results.Failed || f.Blames == asked || f.Blames == "" {
		return ""
	}
	return " (at fault: " + f.Blames + ")"
}

// evidenceOnce remembers which evidence on which relay was shown of a pair, or of one way to sync:
// what was lost at first is still lost at the end.
type evidenceOnce map[string]bool

const shownAbove = "the examples are the same as above"

// explain adds what is to say of a pair, with so many lines at most of evidence that is new.
func (d *composer) explain(shown evidenceOnce, f *results.Finding, text string, most int) {
	d.item(signs[f.Verdict], text, Plain)
	if f.Verdict == results.Passed {
		return
	}
	fresh := slices.DeleteFunc(slices.Clone(f.Evidence), func(e results.Evidence) bool {
		k := fmt.Sprint(f.Relay, "\x00", evidenceLines([]results.Evidence{e}, false))
		was := shown[k]
		shown[k] = true
		return was
	})
	who := everyone
	if most == 0 {
		who = full
	}
	d.to(who, func() {
		if len(fresh) == 0 && len(f.Evidence) > 0 {
			d.add(para{indent: 3, text: []Span{{"(" + shownAbove + ")", Dim}}})
		}
		d.evidence(fresh, 3, most, " of evidence in report.md")
	})
}
