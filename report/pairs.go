package report

import (
	"cmp"
	"slices"
	"strings"

	"relaybench/harness/measure"
)

// What the reconciliation of pairs (NIP-77) is recorded under.
const (
	reconciliation = "negentropy"       // the family of scenarios, and the scenario of findings on a pair as a whole
	reconcileProbe = "negentropy.probe" // whether a relay can be paired: a statement, whichever way it goes
)

// The checks of a pair that decide what its heading says.
const (
	checkSeeded    = "holds its share after seeding"
	checkConverges = "converges"
	checkCompletes = "completes"
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
	failed    []*measure.Finding
	sides     []*measure.Finding // whether each converged
	complete  bool
	converged bool
}

// A phase is one measured step of a pair, with a cell for each relay as the server (for a transfer: as the one that receives).
type phase struct {
	key, title string
	cells      []phaseCell // one for two instances
}

// A phaseCell is what a phase cost on one relay: its main figure, and all others as short phrases.
type phaseCell struct {
	main  string
	parts []part
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

// status is how the pair ended, and whether that is good; nothing is known of a pair that was interrupted.
func (p *pair) status() (text string, good, known bool) {
	diverged := slices.ContainsFunc(p.sides, func(f *measure.Finding) bool { return !f.OK })
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

// paired tells whether a measurement belongs to a pair's section. What a relay consumed stands with the other resources.
func paired(m *measure.Measurement) bool {
	return m.Peer != "" && within(m.Scenario, reconciliation) && !isResource(m.Metric)
}

// inPair tells whether a check is explained in a pair's section.
func inPair(f *measure.Finding) bool { return f.Peer != "" && within(f.Scenario, reconciliation) }

// elsewhere tells whether a check's evidence stands in a section of its own.
func elsewhere(f *measure.Finding) bool { return inPair(f) || isSync(f.Scenario, f.Peer) }

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
	var order []string
	members := map[string][]*measure.Measurement{}
	for i := range v.rec.Measurements {
		m := &v.rec.Measurements[i]
		if !paired(m) {
			continue
		}
		at(m.Relay, m.Peer)
		if members[m.Scenario] == nil {
			order = append(order, m.Scenario)
		}
		members[m.Scenario] = append(members[m.Scenario], m)
	}
	for _, f := range v.checks {
		if inPair(f) {
			at(f.Relay, f.Peer).take(f)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(phaseRank(a), phaseRank(b)) })
	for _, key := range order {
		s := &scenario{key: key}
		v.fill(s, members[key])
		g.scenarios = append(g.scenarios, s)
	}
	slices.SortStableFunc(g.pairs, func(x, y *pair) int {
		return cmp.Or(cmp.Compare(v.order(x.a), v.order(y.a)), cmp.Compare(v.order(x.b), v.order(y.b)))
	})
	for _, p := range g.pairs {
		for _, key := range order {
			if ph := phaseOf(p, key, members[key], members["negentropy.initial"]); ph != nil {
				p.phases = append(p.phases, ph)
			}
		}
		slices.SortStableFunc(p.sides, func(x, y *measure.Finding) int { return cmp.Compare(v.order(x.Relay), v.order(y.Relay)) })
		p.converged = p.complete && len(p.sides) == len(p.servers()) && !slices.ContainsFunc(p.sides, func(f *measure.Finding) bool { return !f.OK })
	}
	if len(g.pairs) > 0 || !v.syncsOnly() {
		v.apart(g)
	}
	if len(g.pairs)+len(g.apart) == 0 {
		return nil
	}
	v.columns(g)
	return g
}

// order is a relay's place in the run; unknown ones come last.
func (v *view) order(name string) int {
	if i := slices.IndexFunc(v.relays, func(r *measure.Relay) bool { return r.Name == name }); i >= 0 {
		return i
	}
	return len(v.relays)
}

// take keeps a check of the pair.
func (p *pair) take(f *measure.Finding) {
	if f.Check == checkConverges {
		p.sides = append(p.sides, f)
	}
	if !f.OK {
		p.failed = append(p.failed, f)
		p.complete = p.complete && f.Check != checkCompletes
	}
}

// apart lists the relays that were probed and are in no pair.
func (v *view) apart(g *pairing) {
	for i := range v.rec.Findings {
		f := &v.rec.Findings[i]
		if f.Scenario != reconcileProbe || slices.ContainsFunc(g.pairs, func(p *pair) bool { return p.a == f.Relay || p.b == f.Relay }) {
			continue
		}
		text := f.Detail
		if answer, ok := strings.CutPrefix(text, "the relay does not speak NIP-77"); ok {
			text = "does not speak NIP-77" + answer
		} else if f.OK && !strings.HasPrefix(text, "not measured") {
			text = "in no pair, though it may speak NIP-77: " + text
		}
		g.apart = append(g.apart, fact{f.Relay, text})
	}
}

// isStatement tells whether a finding states what a relay can do, so that neither answer is a fault.
func isStatement(f *measure.Finding) bool {
	return f.Scenario == reconcileProbe || within(f.Scenario, syncing) && (f.Check == checkCanSync || f.Check == checkWatched)
}

// showsLoss tells whether a finding proves that a relay lost what it had acknowledged.
func showsLoss(f *measure.Finding) bool {
	if !f.OK && f.Check == checkKept {
		return true
	}
	if f.OK || f.Check != checkSeeded && f.Check != checkConverges {
		return false
	}
	const lost = "acknowledged but lost"
	return strings.Contains(f.Detail, lost) || slices.ContainsFunc(f.Evidence, func(e string) bool { return strings.Contains(e, lost) })
}

// phaseOrder is the order in which a pair's phases run.
var phaseOrder = []string{"initial", "transfer", "identical", "heartbeat", "after-write", "scattered"}

func phaseTitle(key string) string { return strings.TrimPrefix(key, reconciliation+".") }

func phaseRank(key string) int {
	if i := slices.Index(phaseOrder, phaseTitle(key)); i >= 0 {
		return i
	}
	return len(phaseOrder)
}

// phaseOf builds a phase of a pair; nil where neither relay has it.
func phaseOf(p *pair, key string, ms, initial []*measure.Measurement) *phase {
	ph := &phase{key: key, title: phaseTitle(key)}
	var times []float64
	var sides [][]*measure.Measurement
	some := false
	for _, s := range p.servers() {
		own := of(ms, s, p.peer(s))
		some = some || len(own) > 0
		sides = append(sides, own)
		for _, m := range own {
			if base := timeBases[m.Unit]; base != 0 && (m.Metric == "time" || m.Metric == "first answer") {
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
		c := cellFor(sides[i], clock)
		if phaseTitle(key) == "heartbeat" && c.main != "" {
			if r, ok := quotient(find(sides[i], "time"), find(of(initial, s, p.peer(s)), "time")); ok {
				at := min(1, len(c.parts))
				c.parts = slices.Insert(c.parts, at, part{text: shareOfText(r) + " of initial"})
			}
		}
		ph.cells = append(ph.cells, c)
	}
	return ph
}

// of picks the measurements of one direction.
func of(ms []*measure.Measurement, relay, peer string) []*measure.Measurement {
	var out []*measure.Measurement
	for _, m := range ms {
		if m.Relay == relay && m.Peer == peer {
			out = append(out, m)
		}
	}
	return out
}

// find picks a metric; nil where it is missing.
func find(ms []*measure.Measurement, metric string) *measure.Measurement {
	for _, m := range ms {
		if _, ok := m.Value(); ok && m.Metric == metric {
			return m
		}
	}
	return nil
}
