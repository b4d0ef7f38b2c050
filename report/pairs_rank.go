package report

import (
	"cmp"
	"slices"
	"strconv"

	"relaybench/results"
)

// A summary is one figure of every relay as the server, over its pairs.
type summary struct {
	*block
	title string
	texts []string // by row, where the figure is no measurement
}

// comparable work is within this factor: which events a pair has to tell apart depends a little on
// which relay got which share of the corpus.
const sameWork = 1.1

// summarize builds the summary.
func (v *view) summarize(g *pairing) {
	var names []string
	for _, p := range g.pairs {
		for _, k := range p.keys() {
			if !slices.Contains(names, k.relay) {
				names = append(names, k.relay)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(v.order(a), v.order(b)) })
	for _, n := range names {
		var good, of int
		for _, p := range g.pairs {
			if p.a == n || p.b == n {
				of++
				if p.converged {
					good++
				}
			}
		}
		g.converged = append(g.converged, [2]int{good, of})
	}
	defer func() {
		var blocks []*block
		for _, c := range g.columns {
			if c.block != nil && timeBases[c.unit] != 0 {
				blocks = append(blocks, c.block)
			}
		}
		shareUnits(blocks)
	}()
	first := ""
	if s := g.first(); s != nil {
		first = s.Key
	}
	var others []*summary
	for _, sc := range g.scenarios {
		// Times alone are ranked: whatever else there is rests on the other relay too, or on which
		// side holds more.
		switch b := v.summaryOf(sc, sc.Primary, names); {
		case b == nil:
		case timeBases[b.unit] == 0:
			others = append(others, &summary{block: b, title: b.unit + " into it"})
		default:
			g.columns = append(g.columns, &summary{block: b, title: sc.Title})
		}
		if sc.labels[results.LabelPhase] != phaseHeartbeat {
			continue
		}
		ratios := &summary{title: "÷ initial"}
		some := false
		for _, n := range names {
			text := "n/a"
			if r, ok := v.heartbeatRatio(n, sc.Key, first, sc.Primary); ok {
				text, some = shareOfText(r), true
			}
			ratios.texts = append(ratios.texts, text)
		}
		if some {
			g.columns = append(g.columns, ratios)
		}
	}
	for _, sc := range g.scenarios {
		if b := v.summaryOf(sc, metricWire, names); b != nil && sc.Key == first {
			others = append(others, &summary{block: b, title: "B/differing"})
		}
	}
	g.columns = append(g.columns, others...)
}

// metricWire is what a reconciliation sends and receives for each event that differs.
const metricWire = "bytes per difference"

// heartbeatRatio is the median over a relay's pairs of the heartbeat against the first
// reconciliation.
func (v *view) heartbeatRatio(relay, heartbeat, initial, metric string) (float64, bool) {
	var ratios results.Measurement
	for _, beat := range v.asServer(relay, heartbeat, metric) {
		for _, first := range v.asServer(relay, initial, metric) {
			if r, ok := quotient(beat, first); ok && first.Peer == beat.Peer {
				ratios.Trials = append(ratios.Trials, r)
			}
		}
	}
	return ratios.Value()
}

// asServer lists a relay's measurements of one metric, one for each peer.
func (v *view) asServer(relay, scenario, metric string) []*results.Measurement {
	var out []*results.Measurement
	for i := range v.rec.Measurements {
		m := &v.rec.Measurements[i]
		if _, ok := m.Value(); ok && v.in(m, results.LayoutPairs) && m.Relay == relay && m.Scenario == scenario && m.Metric == metric {
			out = append(out, m)
		}
	}
	return out
}

// summaryOf builds one figure of all relays; nil where nobody has it. A relay's figure is the median
// over its pairs that nothing bars, or over all of them, and then it does not compete, where
// something bars each.
func (v *view) summaryOf(sc *scenario, metric string, names []string) *block {
	b := &block{scenario: sc.Scenario, metric: v.rec.Metric(metric), labels: sc.labels, better: results.None}
	var values []float64
	var field []*row
	for _, n := range names {
		r := &row{name: n, relay: v.relay(n), why: "n/a"}
		b.rows = append(b.rows, r)
		all, sound := v.asServer(n, sc.Key, metric), []*results.Measurement(nil)
		for _, m := range all {
			if len(v.bars(m)) == 0 {
				sound = append(sound, m)
			}
		}
		if len(all) == 0 {
			continue
		}
		if len(sound) == 0 {
			sound, r.bars = all, v.bars(all...)
		}
		if b.unit == "" {
			b.unit, b.better = sound[0].Unit, sound[0].Better
		}
		r.m = &results.Measurement{Relay: n, Scenario: sc.Key, Metric: metric, Unit: b.unit, Better: b.better, Exact: true}
		for i, m := range sound {
			if m.Unit != b.unit {
				continue
			}
			x, _ := m.Value()
			lo, hi := m.Range()
			r.m.Trials = append(r.m.Trials, x)
			r.m.Exact = r.m.Exact && m.Exact
			r.pooled = append(r.pooled, m.Trials...)
			if i == 0 {
				r.lo, r.hi = lo, hi
			}
			r.lo, r.hi = min(r.lo, lo), max(r.hi, hi)
		}
		if r.value, r.has = r.m.Value(); !r.has {
			continue
		}
		values = append(values, r.value)
		if len(r.bars) == 0 {
			field = append(field, r)
		}
	}
	if len(values) == 0 {
		return nil
	}
	b.scale = scaleFor(b.unit, values)
	switch {
	case timeBases[b.unit] == 0 || len(field) < 2 || b.better != results.Lower && b.better != results.Higher:
	case !v.sameWork(sc.Key, field):
		b.unranked = "what was to be told apart differs: not ranked"
	default:
		v.crown(b, field)
	}
	return b
}

// sameWork tells whether the relays of a field had about the same number of events to name and to
// learn of.
func (v *view) sameWork(scenario string, field []*row) bool {
	for _, metric := range []string{"have", "need"} {
		var low, high float64
		for i, r := range field {
			var counts results.Measurement
			for _, m := range v.asServer(r.name, scenario, metric) {
				if x, _ := m.Value(); len(v.bars(m)) == 0 {
					counts.Trials = append(counts.Trials, x)
				}
			}
			x, _ := counts.Value()
			if i == 0 {
				low, high = x, x
			}
			low, high = min(low, x), max(high, x)
		}
		if high > low*sameWork {
			return false
		}
	}
	return true
}

// quotient divides two times.
func quotient(a, b *results.Measurement) (float64, bool) {
	if a == nil || b == nil || timeBases[a.Unit] == 0 || timeBases[b.Unit] == 0 {
		return 0, false
	}
	x, _ := a.Value()
	y, _ := b.Value()
	if x <= 0 || y <= 0 {
		return 0, false
	}
	return x * timeBases[a.Unit] / (y * timeBases[b.Unit]), true
}

// shareOfText is a ratio that is mostly below one: "0.034×".
func shareOfText(r float64) string {
	if r < 0.0995 {
		return strconv.FormatFloat(r, 'g', 2, 64) + "×"
	}
	return ratioText(r)
}

// counted is a number, which need not be whole, with its noun.
func counted(x float64, noun string) string {
	if x != 1 {
		noun += "s"
	}
	return amount(x) + " " + noun
}

// amount is a number of things: without decimals where it is whole.
func amount(x float64) string { return scaleFor("", []float64{x}).format(x) }
