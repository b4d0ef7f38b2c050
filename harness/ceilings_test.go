package harness

import (
	"testing"

	"relaybench/harness/measure"
)

func TestMarkCeilingsTakesTheCeilingOfAsManyConnections(t *testing.T) {
	calibration := []measure.Calibration{
		{Name: OverConnections(CeilingPublish, 1), Value: 1000, Unit: "events/s"},
		{Name: OverConnections(CeilingPublish, 4), Value: 3000, Unit: "events/s"},
		{Name: OverConnections(CeilingReceive, 8), Value: 9000, Unit: "events/s"},
		{Name: EchoMedian, Value: 0.04, Unit: "ms"},
		{Name: EchoTail, Value: 9, Unit: "ms"},
	}
	rate := func(scenario, metric string, value float64) measure.Measurement {
		return measure.Measurement{Relay: "a", Scenario: scenario, Metric: metric, Unit: "events/s", Better: measure.Higher, Trials: []float64{value}}
	}
	latency := func(scenario, metric string, value float64) measure.Measurement {
		return measure.Measurement{Relay: "a", Scenario: scenario, Metric: metric, Unit: "ms", Better: measure.Lower, Trials: []float64{value}}
	}
	for _, test := range []struct {
		name       string
		publishers any
		m          measure.Measurement
		limited    bool
	}{
		{"publishing below", 4, rate("ingest.throughput", "accepted", 2390), false},
		{"publishing within 20 %", 4, rate("ingest.throughput", "accepted", 2400), true},
		{"of a record that was read", 4.0, rate("ingest.throughput", "accepted", 2400), true},
		{"of an option typed anew", int64(1), rate("ingest.throughput", "accepted", 810), true},
		{"one connection is not four", 4, rate("ingest.throughput", "accepted", 810), false},
		{"so many connections were not calibrated: the highest counts", 64, rate("ingest.throughput", "accepted", 2390), false},
		{"the same, within", 64, rate("ingest.throughput", "accepted", 2410), true},
		{"queries below", 4, rate("query.thread.hot", "events/s", 7100), false},
		{"queries within", 4, rate("query.thread.hot", "events/s", 7200), true},
		{"from relay to relay", 4, rate("negentropy.transfer", "events/s", 801), true},
		{"a download over eight connections, below", 4, rate("fetch.by-id.c8.f4.b50.raw", "records/s", 7100), false},
		{"a download over eight connections, within", 4, rate("fetch.by-id.c8.f4.b50.raw", "records/s", 7200), true},
		{"answers a second are no events", 4, measure.Measurement{Scenario: "query.empty.hot", Metric: "queries/s", Unit: "queries/s", Better: measure.Higher, Trials: []float64{1e9}}, false},
		{"a rate that is stated only", 4, measure.Measurement{Scenario: "ingest.throughput", Metric: "rejected", Unit: "events/s", Better: measure.None, Trials: []float64{1e9}}, false},
		{"an EOSE above the floor", 4, latency("query.empty.hot", "eose", 0.051), false},
		{"an EOSE within 20 % of the floor", 4, latency("query.empty.hot", "eose", 0.049), true},
		{"an OK, one at a time", 4, latency("ingest.visibility", "ok", 0.03), true},
		{"a latency that is no round trip", 4, latency("negentropy.heartbeat", "time", 0.03), false},
		{"nothing measured", 4, measure.Measurement{Scenario: "query.empty.hot", Metric: "eose", Unit: "ms", Better: measure.Lower}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := measure.Record{Calibration: calibration, Options: map[string]any{"publishers": test.publishers, "query-conns": int64(8)},
				Measurements: []measure.Measurement{test.m}}
			MarkCeilings(&r)
			if got := r.Measurements[0].Note == LimitedByHarness; got != test.limited {
				t.Errorf("note %q, want limited: %t", r.Measurements[0].Note, test.limited)
			}
			r.Calibration, r.Measurements[0].Note = nil, ""
			if MarkCeilings(&r); r.Measurements[0].Note != "" {
				t.Errorf("without a calibration the note is %q", r.Measurements[0].Note)
			}
		})
	}
}

func TestALimitedRateLimitsItsClosedLoopsLatency(t *testing.T) {
	r := measure.Record{
		Calibration: []measure.Calibration{{Name: OverConnections(CeilingPublish, 4), Value: 1000, Unit: "events/s"}},
		Options:     map[string]any{"publishers": 4},
		Measurements: []measure.Measurement{
			{Relay: "a", Scenario: "ingest.throughput", Metric: "ok latency", Unit: "ms", Better: measure.Lower, Trials: []float64{400}, Note: "a note"},
			{Relay: "a", Scenario: "ingest.throughput", Metric: "accepted", Unit: "events/s", Better: measure.Higher, Trials: []float64{950, 990}},
			{Relay: "b", Scenario: "ingest.throughput", Metric: "ok latency", Unit: "ms", Better: measure.Lower, Trials: []float64{800}},
			{Relay: "b", Scenario: "ingest.throughput", Metric: "accepted", Unit: "events/s", Better: measure.Higher, Trials: []float64{500}},
		},
	}
	for range 2 { // to mark what is marked changes nothing
		MarkCeilings(&r)
		for i, want := range []string{LimitedByHarness + "; a note", LimitedByHarness, "", ""} {
			if got := r.Measurements[i].Note; got != want {
				t.Errorf("%s %s: note %q, want %q", r.Measurements[i].Relay, r.Measurements[i].Metric, got, want)
			}
		}
	}
}

func TestWhatLimitsAFigureLimitsThoseThatFollowFromIt(t *testing.T) {
	m := func(scenario, metric, unit string, better measure.Better, value float64) measure.Measurement {
		return measure.Measurement{Relay: "a", Scenario: scenario, Metric: metric, Unit: unit, Better: better, Trials: []float64{value}}
	}
	r := measure.Record{Calibration: []measure.Calibration{{Name: OverConnections(CeilingReceive, 8), Value: 9000, Unit: "events/s"}, {Name: EchoMedian, Value: 0.04, Unit: "ms"},
		{Name: OverConnections(CeilingPublish, 4), Value: 3000, Unit: "events/s"}},
		Options: map[string]any{"publishers": 4, "query-conns": 8},
		Measurements: []measure.Measurement{
			m("query.firehose.hot", "queries/s", "queries/s", measure.Higher, 18), m("query.firehose.hot", "events/s", "events/s", measure.Higher, 8900),
			m("query.empty.hot", "queries/s", "queries/s", measure.Higher, 1e5), m("query.empty.hot", "eose", "ms", measure.Lower, 0.04),
			m("query.thread.hot", "queries/s", "queries/s", measure.Higher, 18), m("query.thread.hot", "events/s", "events/s", measure.Higher, 100), m("query.thread.hot", "eose", "ms", measure.Lower, 4),
			m("ingest.throughput", "ok latency", "ms", measure.Lower, 4), m("ingest.throughput", "accepted", "events/s", measure.Higher, 2900),
		}}
	MarkCeilings(&r)
	want := []bool{true, true, true, true, false, false, false, true, true}
	for i, m := range r.Measurements {
		if limited := m.Note == LimitedByHarness; limited != want[i] {
			t.Errorf("%s %s: limited %t", m.Scenario, m.Metric, limited)
		}
	}
}
