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
		names = AddNew(names, p.a, p.b)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(v.order(a), v.order(b)) })
	for _, n := range names {
		var good, of int
		for _, p := range g.pairs {
			if p.a == n || p.b == n {
				of++
				good += boolean(p.converged())
			}
		}
		g.converged = append(g.converged, [2]int{good, of})
	}
	// Times alone are ranked: whatever else there is rests on the other relay too, or on which side
	// holds more.
	var times []*block
	var others []*summary
	for _, sc := range g.scenarios {
		switch b := v.summaryOf(sc, sc.Primary, names); {
		case b == nil:
		case timeBases[b.unit] == 0:
			others = append(others, &summary{block: b, title: b.unit + " into it"})
		default:
			times = append(times, b)
			g.columns = append(g.columns, &summary{block: b, title: sc.Title})
		}
		if sc.labels[results.LabelPhase] != phaseHeartbeat || g.first() == nil {
			continue
		}
		ratios, some := &summary{title: "÷ initial"}, false
		for _, n := range names {
			text := "n/a"
			if r, ok := heartbeatRatio(sc.served(sc.Primary, n), g.first().served(sc.Primary, n)); ok {
				text, some = shareOfText(r), true
			}
			ratios.texts = append(ratios.texts, text)
		}
		if some {
			g.columns = append(g.columns, ratios)
		}
	}
	if first := g.first(); first != nil {
		// What a reconciliation sends and receives for each event that differs.
		if b := v.summaryOf(first, "bytes per difference", names); b != nil {
			others = append(others, &summary{block: b, title: "B/differing"})
		}
	}
	g.columns = append(g.columns, others...)
	shareUnits(times)
}

// served lists a relay's figures of one metric as the server, one for each peer.
func (s *scenario) served(metric, relay string) (all []*row) {
	for _, b := range s.all() {
		for _, r := range b.rows {
			if b.metric.Key == metric && r.has && r.key.relay == relay {
				all = append(all, r)
			}
		}
	}
	return all
}

// heartbeatRatio is the median over a relay's pairs of the heartbeat against the first
// reconciliation.
func heartbeatRatio(beats, initials []*row) (float64, bool) {
	var ratios results.Measurement
	for _, beat := range beats {
		for _, first := range initials {
			if r, ok := quotient(beat.m, first.m); ok && first.key == beat.key {
				ratios.Trials = append(ratios.Trials, r)
			}
		}
	}
	return ratios.Value()
}

// summaryOf builds one figure of all relays; nil where nobody has it. A relay's figure is the
// median over its pairs that nothing bars, or over all of them, and then it does not compete, where
// something bars each.
func (v *view) summaryOf(sc *scenario, metric string, names []string) *block {
	b := &block{scenario: sc.Scenario, metric: v.rec.Metric(metric), labels: sc.labels, better: results.None}
	var values []float64
	var field []*row
	for _, n := range names {
		r := &row{name: n, relay: v.relay(n), why: "not measured"}
		b.rows = append(b.rows, r)
		all := sc.served(metric, n)
		sound := slices.DeleteFunc(slices.Clone(all), func(r *row) bool { return len(v.bars(r.m)) > 0 })
		if len(all) == 0 {
			continue
		}
		if len(sound) == 0 {
			var ms []*results.Measurement
			for _, x := range all {
				ms = append(ms, x.m)
			}
			sound, r.bars = all, v.bars(ms...)
		}
		if b.unit == "" {
			b.unit, b.better = sound[0].m.Unit, sound[0].m.Better
		}
		r.m = &results.Measurement{Relay: n, Scenario: sc.Key, Metric: metric, Unit: b.unit, Better: b.better, Exact: true}
		r.lo, r.hi = sound[0].lo, sound[0].hi
		for _, x := range sound {
			if x.m.Unit == b.unit {
				r.m.Trials = append(r.m.Trials, x.value)
				r.m.Exact = r.m.Exact && x.m.Exact
				r.pooled = append(r.pooled, x.m.Trials...)
				r.lo, r.hi = min(r.lo, x.lo), max(r.hi, x.hi)
			}
		}
		r.value, r.has = r.m.Value()
		values = append(values, r.value)
		if len(r.bars) == 0 {
			field = append(field, r)
		}
	}
	if len(values) == 0 {
		return nil
	}
	b.scale = ScaleFor(b.unit, values)
	switch {
	case timeBases[b.unit] == 0 || len(field) < 2 || b.better != results.Lower && b.better != results.Higher:
	case !v.sameWork(sc, field):
		b.unranked = "what was to be told apart differs: not ranked"
	default:
		v.crown(b, field)
	}
	return b
}

// sameWork tells whether the relays of a field had about the same number of events to name and to
// learn of.
func (v *view) sameWork(sc *scenario, field []*row) bool {
	for _, metric := range []string{"have", "need"} {
		var each []float64
		for _, r := range field {
			var counts results.Measurement
			for _, x := range sc.served(metric, r.name) {
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
func amount(x float64) string { return ScaleFor("", []float64{x}).Format(x) }
