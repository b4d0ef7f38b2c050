package harness

import (
	"cmp"
	"fmt"
	"slices"

	"relaybench/results"
)

// From where on a figure is the harness's rather than the relay's.
const (
	// nearCeiling is from which share of a ceiling on.
	nearCeiling = 0.8
	// agreeing is how much of the higher of two calibrations the lower one must reach for both to
	// be believed.
	agreeing = 0.8
	// readingShare is from which share of a latency on frames waited too long to be read.
	readingShare = 0.2
	// pinnedShare is per cent of the processors where they are the harness's own: it never gets all
	// of them, since its goroutines wait for one another.
	pinnedShare = 90.0
	// sharedShare is the same where relay and harness share them: from here on the relay cannot
	// have had more of them than the harness, so that its figure tells as much of the one as of the
	// other.
	sharedShare = 50.0
)

// MarkLimited notes which figures the harness set rather than the relay, by what the harness did
// meanwhile: rates while it used nearly all of the processors that it may use, and latencies of
// which the frames waited a fifth to be read. A figure within 20 % of what the harness reaches with
// a relay that does nothing is marked where a calibration after the run agrees with the one before
// it: else the machine was not the same, and the ceiling says nothing.
func MarkLimited(r *results.Record) {
	limits := newLimits(r)
	found := make([][]results.Status, len(r.Measurements))
	for i := range r.Measurements {
		found[i] = limits.of(&r.Measurements[i])
	}
	for i, statuses := range found {
		from := &r.Measurements[i]
		for k := 0; k < len(found) && len(statuses) > 0; k++ {
			m := &r.Measurements[k]
			if m.Better == results.None || k != i && !(slices.Contains(limitsToo[from.Metric], m.Metric) && sameLoop(from, m)) {
				continue
			}
			for _, s := range statuses {
				m.AddStatus(s)
			}
		}
	}
}

// limitsToo names what a limited figure limits beside itself. In a closed loop the latency is what
// is in flight divided by the rate, and answers come as fast as their events.
var limitsToo = map[string][]string{
	"accepted":        {"ok latency"},
	"ok latency":      {"accepted"},
	"events/s":        {"queries/s"},
	"eose":            {"queries/s", "events/s"},
	"request latency": {"records/s"},
}

func sameLoop(a, b *results.Measurement) bool {
	return a.Relay == b.Relay && a.Peer == b.Peer && a.Scenario == b.Scenario && a.Labels.Equal(b.Labels)
}

// limits are what is known of the harness's part in the figures.
type limits struct {
	record                 *results.Record
	calibration            []results.Calibration
	publishers, queryConns string
	mostShare              float64                              // per cent of the processors
	evidence               map[[2]string][]*results.Measurement // by relay and peer
}

func newLimits(r *results.Record) *limits {
	l := &limits{record: r, calibration: r.Calibration, mostShare: sharedShare, evidence: map[[2]string][]*results.Measurement{},
		publishers: fmt.Sprint(r.Options["publishers"]), queryConns: fmt.Sprint(r.Options["query-conns"])}
	if len(r.Environment.HarnessCores) > 0 {
		l.mostShare = pinnedShare
	}
	for i := range r.Measurements {
		if m := &r.Measurements[i]; m.Metric == metricOwnCPU || m.Metric == metricReading {
			l.evidence[[2]string{m.Relay, m.Peer}] = append(l.evidence[[2]string{m.Relay, m.Peer}], m)
		}
	}
	return l
}

// of says in which ways the harness set a figure.
func (l *limits) of(m *results.Measurement) (found []results.Status) {
	value, ok := m.Value()
	var of results.Scenario
	if s := l.record.Scenario(m.Scenario); s != nil {
		of = *s
	}
	if !ok || of.Ceiling == results.CeilingNone {
		return nil
	}
	limited := func(cause, count string, n float64) {
		found = append(found, results.Status{Code: results.StatusLimited, Cause: cause, Counts: map[string]float64{count: n}})
	}
	if share, ok := l.seen(metricOwnCPU, m); ok && rate(m) && share >= l.mostShare {
		limited(results.CauseCPU, "share", share)
	}
	if delay, ok := l.seen(metricReading, m); ok && latency(m) && delay > 0 && delay >= readingShare*value {
		limited(results.CauseReading, "delay ms", delay)
	}
	switch {
	case rate(m) && m.Unit == "events/s":
		if ceiling, ok := l.ceiling(of.Ceiling, m); ok && value >= nearCeiling*ceiling {
			limited(results.CauseCeiling, "ceiling", ceiling)
		}
	case latency(m) && m.Better == results.Lower && slices.Contains(of.RoundTrips, m.Metric):
		if floor, _, ok := l.both(results.EchoMedian, nil); ok && value*nearCeiling <= floor {
			limited(results.CauseCeiling, "ceiling", floor)
		}
	}
	return found
}

func rate(m *results.Measurement) bool {
	return m.Better == results.Higher && (m.Unit == "events/s" || m.Unit == "queries/s")
}

func latency(m *results.Measurement) bool { return m.Better != results.Higher && m.Unit == "ms" }

// seen returns the evidence that was taken closest to a figure: of its own settings, else of the
// scenario as a whole.
func (l *limits) seen(metric string, m *results.Measurement) (value float64, ok bool) {
	closest := 0
	for _, e := range l.evidence[[2]string{m.Relay, m.Peer}] {
		closeness := len(e.Scenario) + len(e.Labels)
		if e.Metric != metric || closeness <= closest || !results.MatchScenario(e.Scenario+".*", m.Scenario) || !m.Labels.Contains(e.Labels) {
			continue
		}
		if v, is := e.Value(); is {
			value, ok, closest = v, true, closeness
		}
	}
	return value, ok
}

// ceiling returns the ceiling of a rate of events: the one over as many connections as the figure
// rests on, or else the highest that is known.
func (l *limits) ceiling(which results.Ceiling, m *results.Measurement) (ceiling float64, ok bool) {
	name, connections := "", ""
	switch which {
	case results.CeilingIngest:
		name, connections = results.CeilingPublish, l.publishers
	case results.CeilingPair:
		name, connections = results.CeilingPublish, "1"
	case results.CeilingQuery:
		name, connections = results.CeilingReceive, l.queryConns
	case results.CeilingDownload:
		name, connections = results.CeilingReceive, cmp.Or(m.Labels[results.LabelConnections], "1")
	}
	var used results.Labels
	highest := 0.0
	for _, c := range l.calibration {
		if c.Name != name || c.Labels[results.LabelWhen] != "" {
			continue
		}
		if c.Labels[results.LabelConnections] == connections {
			used = c.Labels
			break
		}
		if c.Value > highest {
			used, highest = c.Labels, c.Value
		}
	}
	_, ceiling, ok = l.both(name, used)
	return ceiling, ok
}

// both returns the lower and the higher of a figure's two calibrations; ok is false unless they
// agree.
func (l *limits) both(name string, labels results.Labels) (low, high float64, ok bool) {
	find := func(labels results.Labels) float64 {
		for _, c := range l.calibration {
			if c.Name == name && c.Labels.Equal(labels) {
				return c.Value
			}
		}
		return 0
	}
	before, after := find(labels), find(labels.With(results.AfterRun))
	low, high = min(before, after), max(before, after)
	return low, high, low > 0 && low >= agreeing*high
}
