package report

import (
	"cmp"
	"fmt"
	"slices"

	"relaybench/results"
)

// A pair is two relays that were reconciled, or two instances of one.
type pair struct {
	a, b  string
	found []*results.Finding // what was asked of them together
}

func (p *pair) title() string {
	if p.a == p.b {
		return p.a + " (two instances)"
	}
	return p.a + " ⇄ " + p.b
}

// keys name its measurements: each relay as the server.
func (p *pair) keys() []rowKey {
	return slices.Compact([]rowKey{{p.a, p.b}, {p.b, p.a}})
}

// ofSide tells whether a check says if one side came to hold what it must.
func ofSide(f *results.Finding) bool {
	return f.Code == results.CodeHoldsUnion && f.Verdict != results.Undecided
}

// diverged tells whether a side does not hold what it must.
func (p *pair) diverged() bool {
	return slices.ContainsFunc(p.found, func(f *results.Finding) bool { return ofSide(f) && f.Verdict != results.Passed })
}

var converged = Span{"converged ✓", Green}

// status is how the pair ended; nothing is known of one that was interrupted.
func (p *pair) status() Span {
	sides, broken := 0, false
	for _, f := range p.found {
		sides += boolean(ofSide(f))
		broken = broken || f.Code == results.CodeCompletes && f.Verdict == results.Failed
	}
	switch {
	case broken && p.diverged():
		return Span{"did not converge, and did not complete ✗", RedBold}
	case broken:
		return Span{"did not complete ✗", RedBold}
	case p.diverged():
		return Span{"did not converge ✗", RedBold}
	case sides == len(p.keys()):
		return converged
	}
	return Span{"not finished", Yellow}
}

// order is a relay's place in the run; the largest for unknown ones.
func (v *view) order(name string) uint {
	return uint(slices.IndexFunc(v.relays, func(r *results.Relay) bool { return r.Name == name }))
}

// inTurn compares relays by their places in the run.
func (v *view) inTurn(a, b string) int {
	return cmp.Or(cmp.Compare(v.order(a), v.order(b)), cmp.Compare(a, b))
}

// pair gathers the pairs of the run, the relays that are in none, and the summary.
func (v *view) pair() {
	var met Groups[rowKey, *results.Finding]
	meet := func(a, b string, f ...*results.Finding) {
		if v.inTurn(b, a) < 0 {
			a, b = b, a
		}
		met.Add(rowKey{a, b}, f...)
	}
	var phases []*scenario
	for _, s := range v.sections {
		for _, sc := range s.scenarios {
			if sc.layout == results.LayoutPairs {
				phases = append(phases, sc)
			}
		}
	}
	for _, e := range entries(phases, nil) {
		meet(e.key.relay, e.key.peer)
	}
	for _, f := range v.checks {
		if v.inPair(f) {
			meet(f.Relay, f.Peer, f)
		}
	}
	var s section
	var names []string
	for _, g := range met.List {
		slices.SortStableFunc(g.Members, func(x, y *results.Finding) int { return v.inTurn(x.Relay, y.Relay) })
		s.pairs = append(s.pairs, &pair{g.Key.relay, g.Key.peer, g.Members})
		names = AddNew(names, g.Key.relay, g.Key.peer)
	}
	slices.SortStableFunc(s.pairs, func(x, y *pair) int { return cmp.Or(v.inTurn(x.a, y.a), v.inTurn(x.b, y.b)) })
	slices.SortStableFunc(names, v.inTurn)
	// Relays that do not speak NIP-77, or of which that is not known, are in no pair. For the sake of
	// syncs they are asked too.
	for _, f := range v.checks {
		if f.Code == results.CodeNIP77 && f.Verdict != results.Passed && f.Peer == "" && !slices.Contains(names, f.Relay) &&
			(len(names) > 0 || !slices.ContainsFunc(v.checks, v.inSync)) {
			s.alone = append(s.alone, fact{f.Relay, fit(findingText(f), 400)})
		}
	}
	for _, sc := range phases {
		for _, b := range sc.all() {
			if b.metric.Key == sc.Primary || b.metric.Key == ofInitial || b.metric.Key == perDifference && sc.labels[results.LabelPhase] == phaseInitial {
				s.summary = append(s.summary, v.pooled(sc, b, names))
			}
		}
	}
	// Times come first.
	slices.SortStableFunc(s.summary, func(a, b *block) int { return a.ofPair() - b.ofPair() })
	sameSize(s.summary, results.LayoutPairs)
	if len(s.pairs)+len(s.alone) > 0 {
		in := v.sectionOf(results.LayoutPairs, "Reconciliation")
		in.pairs, in.summary, in.alone = s.pairs, s.summary, s.alone
		if len(phases) == 0 {
			in.scenarios = append(in.scenarios, &scenario{Scenario: &results.Scenario{}, layout: results.LayoutPairs})
		}
	}
}

// ofPair is 0 for times, and 1 for what rests on the other relay too, or on which side holds more.
func (b *block) ofPair() int { return boolean(timeBases[b.unit] == 0 && b.metric.Key != ofInitial) }

const (
	phaseInitial   = "initial"
	phaseHeartbeat = "heartbeat"
	perDifference  = "bytes per difference" // what is sent and received for each event that differs
	ofInitial      = "÷ initial"            // a heartbeat as a share of the first reconciliation
)

// figures are the measurements of the record, and those that are made of them: what the heartbeat
// of a pair takes as a share of its first reconciliation.
func (v *view) figures() (all []*results.Measurement) {
	first := map[rowKey]float64{}
	times := func(phase string, each func(m *results.Measurement, k rowKey, seconds float64)) {
		for i := range v.rec.Measurements {
			m := &v.rec.Measurements[i]
			if value, _ := m.Value(); value > 0 && m.Peer != "" && m.Labels[results.LabelPhase] == phase && m.Metric == v.scenario(m.Scenario).Primary {
				each(m, rowKey{m.Relay, m.Peer}, value*timeBases[m.Unit])
			}
		}
	}
	for i := range v.rec.Measurements {
		all = append(all, &v.rec.Measurements[i])
	}
	times(phaseInitial, func(_ *results.Measurement, k rowKey, seconds float64) { first[k] = seconds })
	times(phaseHeartbeat, func(m *results.Measurement, k rowKey, seconds float64) {
		if seconds > 0 && first[k] > 0 {
			all = append(all, &results.Measurement{Relay: m.Relay, Peer: m.Peer, Scenario: m.Scenario, Labels: m.Labels,
				Metric: ofInitial, Unit: "×", Better: results.None, Trials: []float64{seconds / first[k]}})
		}
	})
	return all
}

// sameWork is within this factor: which events a pair has to tell apart depends a little on which
// relay got which share of the corpus.
const sameWork = 1.1

// served lists a relay's figures as the server, one for each peer.
func (b *block) served(relay string) []*row {
	return slices.DeleteFunc(slices.Clone(b.rows), func(r *row) bool { return !r.has || r.key.relay != relay })
}

// pooled builds one figure of all relays as the server: the median over a relay's pairs that
// nothing bars, or over all of them, and then it does not compete, where something bars each. Times
// alone are ranked.
func (v *view) pooled(sc *scenario, b *block, names []string) *block {
	s := &block{scenario: sc.Scenario, metric: b.metric, labels: sc.labels, title: shorter(b.metric.Key, b.metric.Title), unit: b.unit, better: b.better}
	switch {
	case b.metric.Key == sc.Primary && s.ofPair() == 0:
		s.title = sc.Title
	case b.metric.Key == sc.Primary:
		s.title = b.unit + " into it"
	}
	var field []*row
	for _, n := range names {
		all := b.served(n)
		sound := slices.DeleteFunc(slices.Clone(all), func(r *row) bool { return len(r.bars) > 0 })
		var bars []string
		if len(sound) == 0 && len(all) > 0 {
			var ms []*results.Measurement
			for _, x := range all {
				ms = append(ms, x.m)
			}
			sound, bars = all, v.bars(ms...)
		}
		m := &results.Measurement{Relay: n, Scenario: sc.Key, Metric: b.metric.Key, Unit: b.unit, Better: b.better, Exact: true}
		var trials []float64
		for _, x := range sound {
			m.Trials, trials = append(m.Trials, x.value), append(trials, x.m.Trials...)
			m.Exact = m.Exact && x.m.Exact
		}
		r := v.row(s, rowKey{relay: n}, m)
		r.bars, r.pooled = bars, trials
		if s.rows = append(s.rows, r); r.has && len(bars) == 0 {
			field = append(field, r)
		}
	}
	switch {
	case timeBases[b.unit] == 0 || len(field) < 2 || b.better != results.Lower && b.better != results.Higher:
	case !v.sameWork(sc, field):
		s.unranked = "what was to be told apart differs: not ranked"
	default:
		v.crown(s, field)
	}
	return s
}

// sameWork tells whether the relays of a field had about the same number of events to name and to
// learn of.
func (v *view) sameWork(sc *scenario, field []*row) bool {
	for _, b := range sc.all() {
		if b.metric.Key != "have" && b.metric.Key != "need" {
			continue
		}
		var each []float64
		for _, r := range field {
			var counts results.Measurement
			for _, x := range b.served(r.name) {
				if len(v.bars(x.m)) == 0 {
					counts.Trials = append(counts.Trials, x.value)
				}
			}
			x, _ := counts.Value()
			each = append(each, x)
		}
		if slices.Max(each) > slices.Min(each)*sameWork {
			return false
		}
	}
	return true
}

const summaryNote = "Each relay as the server, the median over its pairs that nothing bars (where each is barred, over all, and it is not " +
	"ranked). Times are ranked between relays that had about the same to tell apart (within a tenth); what is transferred into a " +
	"relay rests on its source too, and bytes on which side holds more: neither is ranked."

// pairs adds a summary with a line for each relay, then each pair by itself.
func (d *composer) pairs(s *section, phases []*scenario) {
	if len(s.summary) > 0 {
		d.summary(s)
	}
	if len(s.alone) > 0 {
		d.Gap()
		d.Say("Not reconciled", Bold)
		d.facts(Plain, Dim, s.alone)
	}
	for _, p := range s.pairs {
		d.add(heading{level: 3, title: p.title(), state: p.status()})
		diverged := p.diverged()
		d.explain(slices.DeleteFunc(slices.Clone(p.found), func(f *results.Finding) bool {
			return f.Verdict != results.Failed && !(diverged && ofSide(f))
		}))
		rows := entries(phases, func(sc *scenario, k rowKey) []string { return []string{sc.Title, k.relay} })
		rows = slices.DeleteFunc(rows, func(e entry) bool { return !slices.Contains(p.keys(), e.key) })
		d.pivot(&Table{columns: heads("", "as server")}, rows)
	}
}

// summary adds a line for each relay as the server, and says how to read it.
func (d *composer) summary(s *section) {
	t := &Table{labels: 1, columns: heads("as server", "converged")}
	var notes []string
	for _, b := range s.summary {
		if t.columns = append(t.columns, Column{Head: b.title}); b.unranked != "" {
			notes = append(notes, b.title+": "+b.unranked+".")
		}
	}
	for i, r := range s.summary[0].rows {
		good, of, st := 0, 0, Green
		for _, p := range s.pairs {
			if p.a == r.name || p.b == r.name {
				of++
				good += boolean(p.status() == converged)
			}
		}
		if good < of {
			st = Red
		}
		row := []Cell{{text: r.name}, {text: fmt.Sprintf("%d of %d", good, of), style: st}}
		for _, b := range s.summary {
			row = append(row, d.fact(b, b.rows[i]))
		}
		t.Add("", row...)
	}
	d.Table(t)
	if len(s.summary[0].rows) > 1 {
		notes = append([]string{summaryNote}, notes...)
	}
	for _, text := range notes {
		d.Say(text, Dim)
	}
}
