package harness

import (
	"strconv"
	"strings"

	"relaybench/harness/measure"
)

// nearCeiling is from which share of a ceiling on a figure is the harness's rather than the relay's.
const nearCeiling = 0.8

// LimitedByHarness is the note on such a figure.
const LimitedByHarness = "limited by the harness"

// MarkCeilings notes which rates come within 20 % of what the harness reached against the null relay over as many connections, and which latencies
// within 20 % of its echo floor: they would be hardly better with a relay that does nothing.
func MarkCeilings(r *measure.Record) {
	limits := newLimits(r)
	saturated := make(map[[3]string]bool) // relay, peer, scenario
	for i := range r.Measurements {
		m := &r.Measurements[i]
		value, ok := m.Value()
		if !ok {
			continue
		}
		switch {
		case m.Better == measure.Higher && m.Unit == "events/s":
			if ceiling := limits.rate(m); ceiling > 0 && value >= nearCeiling*ceiling {
				mark(m)
				saturated[[3]string{m.Relay, m.Peer, m.Scenario}] = true
			}
		case roundTrip(m):
			if limits.echo > 0 && value*nearCeiling <= limits.echo {
				mark(m)
				saturated[[3]string{m.Relay, m.Peer, m.Scenario}] = saturated[[3]string{m.Relay, m.Peer, m.Scenario}] || m.Metric == "eose"
			}
		}
	}
	// In a closed loop the latency is the window divided by the rate, and answers come as fast as their events: what limits one limits the other.
	for i := range r.Measurements {
		if m := &r.Measurements[i]; (m.Metric == "ok latency" || m.Metric == "queries/s") && saturated[[3]string{m.Relay, m.Peer, m.Scenario}] {
			mark(m)
		}
	}
}

func mark(m *measure.Measurement) {
	switch {
	case m.Note == "":
		m.Note = LimitedByHarness
	case !strings.Contains(m.Note, LimitedByHarness):
		m.Note = LimitedByHarness + "; " + m.Note
	}
}

// roundTrip says whether a latency holds one frame there and at least one back, so that it cannot be shorter than the echo floor.
func roundTrip(m *measure.Measurement) bool {
	if m.Better != measure.Lower || m.Unit != "ms" {
		return false
	}
	switch m.Metric {
	case "eose", "first event", "ok", "visible", "ok from intended":
		return true
	}
	return false
}

// limits are what the harness reached on this machine.
type limits struct {
	figures                map[string]float64
	publishers, queryConns int
	echo                   float64 // ms
}

func newLimits(r *measure.Record) limits {
	l := limits{figures: make(map[string]float64), publishers: number(r.Options["publishers"]), queryConns: number(r.Options["query-conns"])}
	for _, c := range r.Calibration {
		l.figures[c.Name] = c.Value
	}
	l.echo = l.figures[EchoMedian]
	return l
}

// rate returns the ceiling of a rate of events: the one over as many connections as the scenario uses, or else the highest that is known.
func (l limits) rate(m *measure.Measurement) float64 {
	ceiling, connections := CeilingReceive, l.queryConns
	switch {
	case m.Scenario == "import": // the relay's own command: the harness has no part in it
		return 0
	case strings.HasPrefix(m.Scenario, "ingest."):
		ceiling, connections = CeilingPublish, l.publishers
	case strings.HasPrefix(m.Scenario, "fetch."):
		connections = connectionsOf(m.Scenario)
	case !strings.HasPrefix(m.Scenario, "query."): // from relay to relay over one connection each
		ceiling, connections = CeilingPublish, 1
	}
	if value, ok := l.figures[OverConnections(ceiling, connections)]; ok {
		return value
	}
	highest := 0.0
	for name, value := range l.figures {
		if strings.HasPrefix(name, ceiling) {
			highest = max(highest, value)
		}
	}
	return highest
}

// connectionsOf reads how many connections a way to download has from its key: fetch.by-id.c4.f8.b50.raw has 4, and one that does not say has 1.
func connectionsOf(key string) int {
	for part := range strings.SplitSeq(key, ".") {
		if digits, ok := strings.CutPrefix(part, "c"); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				return n
			}
		}
	}
	return 1
}

// number reads an option, which is an integer in the run that took it and a float in a record that was read.
func number(option any) int {
	switch n := option.(type) {
	case int:
		return n
	case int64:
		return int(n)
	case float64:
		return int(n)
	case string:
		k, _ := strconv.Atoi(n)
		return k
	}
	return 0
}
