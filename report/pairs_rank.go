package report

import (
	"slices"

	"relaybench/harness/measure"
)

// A column of the summary of pairs is one figure of every relay as the server, over its pairs.
type column struct {
	*block
	title string
	texts []string // by row, where the figure is no measurement
}

// summaryColumns are the figures, in reading order. Those that are not ranked rest on more than the relay itself: what is
// transferred to it comes from another one, and the bytes on the wire depend on which side holds more.
var summaryColumns = []struct {
	scenario, metric, title string
	ranked                  bool
}{
	{"negentropy.initial", "time", "initial", true},
	{"negentropy.identical", "time", "identical", true},
	{"negentropy.heartbeat", "time", "heartbeat", true},
	{"negentropy.after-write", "time", "after-write", true},
	{"negentropy.scattered", "time", "scattered", true},
	{"negentropy.transfer", "events/s", "events/s into it", false},
	{"negentropy.initial", "bytes per difference", "B/differing", false},
}

// comparable work is within this factor: which events a pair has to tell apart depends a little on which relay got which
// share of the corpus.
const sameWork = 1.1

// columns builds the summary.
func (v *view) columns(g *pairing) {
	var names []string
	for _, p := range g.pairs {
		for _, s := range p.servers() {
			if !slices.Contains(names, s) {
				names = append(names, s)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return v.order(a) - v.order(b) })
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
	for _, c := range summaryColumns {
		if b := v.column(c.scenario, c.metric, names, c.ranked); b != nil {
			g.columns = append(g.columns, &column{block: b, title: c.title})
		}
		if c.scenario != "negentropy.heartbeat" {
			continue
		}
		ratios := &column{title: "÷ initial"}
		some := false
		for _, n := range names {
			text := "n/a"
			if r, ok := v.heartbeatRatio(n); ok {
				text, some = shareOfText(r), true
			}
			ratios.texts = append(ratios.texts, text)
		}
		if some {
			g.columns = append(g.columns, ratios)
		}
	}
}

// heartbeatRatio is the median over a relay's pairs of the heartbeat against the first reconciliation.
func (v *view) heartbeatRatio(relay string) (float64, bool) {
	var ratios measure.Measurement
	for _, beat := range v.asServer(relay, "negentropy.heartbeat", "time") {
		for _, first := range v.asServer(relay, "negentropy.initial", "time") {
			if r, ok := quotient(beat, first); ok && first.Peer == beat.Peer {
				ratios.Trials = append(ratios.Trials, r)
			}
		}
	}
	return ratios.Value()
}

// asServer lists a relay's measurements of one metric, one for each peer.
func (v *view) asServer(relay, scenario, metric string) []*measure.Measurement {
	var out []*measure.Measurement
	for i := range v.rec.Measurements {
		m := &v.rec.Measurements[i]
		if _, ok := m.Value(); ok && paired(m) && m.Relay == relay && m.Scenario == scenario && m.Metric == metric {
			out = append(out, m)
		}
	}
	return out
}

// column builds one figure of all relays; nil where nobody has it. A relay's figure is the median over its pairs that
// passed their checks, or over all of them, and then it does not compete, where none did.
func (v *view) column(scenario, metric string, names []string, ranked bool) *block {
	b := &block{scenario: scenario, metric: metric, better: measure.None}
	var values []float64
	var field []*row
	for _, n := range names {
		r := &row{name: n, relay: v.relay(n), why: "n/a"}
		b.rows = append(b.rows, r)
		all := v.asServer(n, scenario, metric)
		sound := slices.DeleteFunc(slices.Clone(all), func(m *measure.Measurement) bool { return !v.sound(m) })
		competes := len(sound) > 0 && v.barred[n] == ""
		if len(sound) == 0 {
			sound = all
		}
		if len(sound) == 0 {
			continue
		}
		if b.unit == "" {
			b.unit, b.better = sound[0].Unit, sound[0].Better
		}
		r.m = &measure.Measurement{Relay: n, Scenario: scenario, Metric: metric, Unit: b.unit, Better: b.better}
		for i, m := range sound {
			if m.Unit != b.unit {
				continue
			}
			x, _ := m.Value()
			lo, hi := m.Range()
			r.m.Trials = append(r.m.Trials, x)
			r.pooled = append(r.pooled, m.Trials...)
			if i == 0 {
				r.lo, r.hi = lo, hi
			}
			r.lo, r.hi = min(r.lo, lo), max(r.hi, hi)
			if isLimited(m) {
				r.m.Note = m.Note
			}
		}
		if r.value, r.has = r.m.Value(); !r.has {
			continue
		}
		values = append(values, r.value)
		if competes && !isLimited(r.m) {
			field = append(field, r)
		}
	}
	if len(values) == 0 {
		return nil
	}
	b.scale = scaleFor(b.unit, values)
	switch {
	case !ranked || len(field) < 2 || b.better != measure.Lower && b.better != measure.Higher:
	case !v.sameWork(scenario, field):
		b.unranked = "what was to be told apart differs: not ranked"
	default:
		v.crown(b, field)
	}
	return b
}

// sound tells whether a figure of a pair means what it says: the relay passed the checks on the pair and on the phase, and,
// for all that comes after the transfer, holds what it must, since otherwise it reconciled another set than the others.
func (v *view) sound(m *measure.Measurement) bool {
	return !slices.ContainsFunc(v.checks, func(f *measure.Finding) bool {
		if f.OK || f.Peer == "" || !f.Required && f.Check != checkConverges { // whoever is to blame for not converging
			return false
		}
		whole := f.Check == checkCompletes && f.Relay == m.Peer && f.Peer == m.Relay
		if !whole && (f.Relay != m.Relay || f.Peer != m.Peer) {
			return false
		}
		return within(m.Scenario, f.Scenario) || f.Check == checkConverges && phaseRank(m.Scenario) > phaseRank("negentropy.transfer")
	})
}

// sameWork tells whether the relays of a field had about the same number of events to name and to learn of.
func (v *view) sameWork(scenario string, field []*row) bool {
	for _, metric := range []string{"have", "need"} {
		var low, high float64
		for i, r := range field {
			var counts measure.Measurement
			for _, m := range v.asServer(r.name, scenario, metric) {
				if x, _ := m.Value(); v.sound(m) {
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
