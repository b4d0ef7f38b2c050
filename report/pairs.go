package report

import (
	"cmp"
	"slices"

	"relaybench/results"
)

// A pairing is all that a run says of relays that were reconciled with each other.
type pairing struct {
	pairs     []*pair
	columns   []*column   // the summary: a row for each relay as the server
	converged [][2]int    // by row of the summary: in how many of its pairs the relay converged, of how many
	apart     []fact      // relays that are in no pair, with the reason
	scenarios []*scenario // the measurements as blocks, for their distributions
}

// A pair is two relays that were reconciled, or two instances of one.
type pair struct {
	a, b      string
	phases    []*phase
	failed    []*results.Finding
	sides     []*results.Finding // whether each converged
	complete  bool
	converged bool
}

// A phase is one measured step of a pair, with a cell for each relay as the server (for a transfer:
// as the one that receives).
type phase struct {
	title string
	cells []phaseCell // one for two instances
}

// A phaseCell is what a phase cost on one relay: its main figure, and all others as short phrases.
type phaseCell struct {
	main  string
	parts []part
	few   bool     // its p99 rests on few samples
	notes []string // why it competes with nothing, and what its figures say of themselves
}

// number puts the numbers of notes behind the main figures of a pair.
func (p *pair) number(foot *footnotes) {
	for _, ph := range p.phases {
		for i := range ph.cells {
			if c := &ph.cells[i]; c.main != "" {
				c.main += foot.sign(c.notes)
			}
		}
	}
}

type part struct {
	text string
	fine bool // only where there is room for everything
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

// servers names the relays in the order of the cells.
func (p *pair) servers() []string {
	if p.a == p.b {
		return []string{p.a}
	}
	return []string{p.a, p.b}
}

func (p *pair) peer(server string) string {
	if server == p.a {
		return p.b
	}
	return p.a
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
	var order []*results.Scenario
	members := map[string][]*results.Measurement{}
	for i := range v.rec.Measurements {
		m := &v.rec.Measurements[i]
		if !v.in(m, results.LayoutPairs) {
			continue
		}
		at(m.Relay, m.Peer)
		if members[m.Scenario] == nil {
			order = append(order, v.scenario(m.Scenario))
		}
		members[m.Scenario] = append(members[m.Scenario], m)
	}
	for _, f := range v.checks {
		if v.inPair(f) {
			at(f.Relay, f.Peer).take(f)
		}
	}
	slices.SortStableFunc(order, func(a, b *results.Scenario) int { return cmp.Compare(a.Order, b.Order) })
	for _, d := range order {
		g.scenarios = append(g.scenarios, v.fill(d, members[d.Key]))
	}
	slices.SortStableFunc(g.pairs, func(x, y *pair) int {
		return cmp.Or(cmp.Compare(v.order(x.a), v.order(y.a)), cmp.Compare(v.order(x.b), v.order(y.b)))
	})
	for _, p := range g.pairs {
		for _, s := range g.scenarios {
			if ph := v.phaseOf(p, s, members[s.Key], members[g.first()]); ph != nil {
				p.phases = append(p.phases, ph)
			}
		}
		slices.SortStableFunc(p.sides, func(x, y *results.Finding) int { return cmp.Compare(v.order(x.Relay), v.order(y.Relay)) })
		p.converged = p.complete && len(p.sides) == len(p.servers()) && !p.diverged()
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

// metricTime is how long a reconciliation took.
const metricTime = "time"

// The phases of a pair whose times are set against each other.
const (
	phaseInitial   = "initial"
	phaseHeartbeat = "heartbeat"
)

// first is the scenario of the first reconciliation of a pair; "" where it was not measured.
func (g *pairing) first() string {
	for _, s := range g.scenarios {
		if s.labels[results.LabelPhase] == phaseInitial {
			return s.Key
		}
	}
	return ""
}

// phaseOf builds a phase of a pair; nil where neither relay has it.
func (v *view) phaseOf(p *pair, sc *scenario, ms, initial []*results.Measurement) *phase {
	ph := &phase{title: sc.Title}
	var times []float64
	var sides [][]*results.Measurement
	some := false
	for _, s := range p.servers() {
		own := of(ms, s, p.peer(s))
		some = some || len(own) > 0
		sides = append(sides, own)
		for _, m := range own {
			if base := timeBases[m.Unit]; base != 0 && (m.Metric == metricTime || m.Metric == "first answer") {
				value, _ := m.Value()
				times = append(times, value*base)
			}
		}
	}
	if !some {
		return nil
	}
	clock := scaleFor("s", times) // one unit for both directions
	for i, s := range p.servers() {
		c := v.cellFor(sides[i], clock)
		if m := find(sides[i], sc.Primary); m != nil {
			c.notes = append(v.bars(m), c.notes...)
		}
		if sc.labels[results.LabelPhase] == phaseHeartbeat && c.main != "" {
			if r, ok := quotient(find(sides[i], metricTime), find(of(initial, s, p.peer(s)), metricTime)); ok {
				at := min(1, len(c.parts))
				c.parts = slices.Insert(c.parts, at, part{text: shareOfText(r) + " of initial"})
			}
		}
		ph.cells = append(ph.cells, c)
	}
	return ph
}

// of picks the measurements of one direction.
func of(ms []*results.Measurement, relay, peer string) []*results.Measurement {
	var out []*results.Measurement
	for _, m := range ms {
		if m.Relay == relay && m.Peer == peer {
			out = append(out, m)
		}
	}
	return out
}

// find picks a metric; nil where it is missing.
func find(ms []*results.Measurement, metric string) *results.Measurement {
	for _, m := range ms {
		if _, ok := m.Value(); ok && m.Metric == metric {
			return m
		}
	}
	return nil
}
