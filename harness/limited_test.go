package harness

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"relaybench/results"
)

// twice is a calibration before the run and one after it.
func twice(name, connections string, before, after float64) []results.Calibration {
	labels := results.Labels(nil)
	if connections != "" {
		labels = results.Labels{results.LabelConnections: connections}
	}
	return []results.Calibration{{Name: name, Labels: labels, Value: before},
		{Name: name, Labels: labels.With(results.Labels{results.LabelWhen: "after"}), Value: after}}
}

func figureOf(scenario, metric, unit string, better results.Better, trials ...float64) results.Measurement {
	return results.Measurement{Relay: "a", Scenario: scenario, Metric: metric, Unit: unit, Better: better, Trials: trials}
}

func eventRate(scenario string, trials ...float64) results.Measurement {
	return figureOf(scenario, "events/s", "events/s", results.Higher, trials...)
}

func delay(scenario, metric string, trials ...float64) results.Measurement {
	return figureOf(scenario, metric, "ms", results.Lower, trials...)
}

func labelled(m results.Measurement, pairs ...string) results.Measurement {
	m.Labels = results.Labels{}
	for i := 0; i < len(pairs); i += 2 {
		m.Labels[pairs[i]] = pairs[i+1]
	}
	return m
}

// describing gives the scenarios of a record what theirs say in package scenarios, whose own test
// holds them to it.
func describing(r *results.Record) *results.Record {
	for i := range r.Measurements {
		s := results.Scenario{Key: r.Measurements[i].Scenario}
		switch family, _, _ := strings.Cut(s.Key, "."); {
		case s.Key == "import" || s.Key == "sync.native":
			s.Ceiling = results.CeilingNone
		case family == "ingest":
			s.Ceiling, s.RoundTrips = results.CeilingIngest, []string{"ok", "visible", "ok from intended"}
		case family == "query":
			s.Ceiling, s.RoundTrips = results.CeilingQuery, []string{"eose", "first event"}
		case family == "fetch":
			s.Ceiling = results.CeilingDownload
		case family == "negentropy" || family == "sync":
			s.Ceiling = results.CeilingPair
		}
		r.Scenarios = append(r.Scenarios, s)
	}
	return r
}

// A scenario is bounded by what it says of itself, whatever it and its metrics are called.
func TestAScenarioSaysWhatBoundsIt(t *testing.T) {
	calibration := slices.Concat(twice(results.CeilingPublish, "1", 100, 100), twice(results.CeilingPublish, "4", 400, 400), twice(results.CeilingReceive, "8", 800, 800),
		twice(results.CeilingReceive, "2", 200, 200), twice(results.EchoMedian, "", 1, 1))
	for which, want := range map[results.Ceiling]float64{results.CeilingIngest: 400, results.CeilingPair: 100, results.CeilingQuery: 800, results.CeilingDownload: 200,
		results.CeilingNone: 0, "": 0} {
		r := &results.Record{Calibration: calibration, Options: map[string]any{"publishers": 4, "query-conns": 8},
			Scenarios:    []results.Scenario{{Key: "live.new", Ceiling: which, RoundTrips: []string{"delivered"}}},
			Measurements: []results.Measurement{labelled(eventRate("live.new", 1e6), results.LabelConnections, "2"), delay("live.new", "delivered", 1), delay("live.new", "eose", 1)}}
		MarkLimited(r)
		var got float64
		for _, s := range r.Measurements[0].Status {
			got += s.Counts["ceiling"]
		}
		if got != want {
			t.Errorf("%q: a ceiling of %g, want %g", which, got, want)
		}
		if marked := causes(t, &r.Measurements[1]) != nil; marked != (which != results.CeilingNone) {
			t.Errorf("%q: a round trip is marked: %v", which, marked)
		}
		if causes(t, &r.Measurements[2]) != nil {
			t.Errorf("%q: a latency that is not said to be a round trip is marked", which)
		}
	}
}

// causes lists the marks of a measurement, which must all be of the harness.
func causes(t *testing.T, m *results.Measurement) (all []string) {
	t.Helper()
	for _, s := range m.Status {
		if s.Code != results.StatusLimited {
			t.Errorf("%s %s: status %+v", m.Scenario, m.Metric, s)
		}
		all = append(all, s.Cause)
	}
	return all
}

func TestACeilingMarksWhereTheCalibrationAfterTheRunAgrees(t *testing.T) {
	calibration := slices.Concat(
		twice(results.CeilingPublish, "1", 1000, 900),
		twice(results.CeilingPublish, "4", 3000, 2500),
		twice(results.CeilingPublish, "3", 3000, 100),    // no more than four, which come first
		twice(results.CeilingPublish, "2", 100, 9000),    // no ceiling: it is the highest after the run alone
		twice(results.CeilingReceive, "8", 8000, 10_000), // a fifth of the higher apart, exactly
		twice(results.CeilingReceive, "1", 2000, 1599),   // and more than that
		twice(results.EchoMedian, "", 4, 5),
		twice(results.EchoTail, "", 9, 9),
	)
	for _, test := range []struct {
		name       string
		publishers any
		m          results.Measurement
		ceiling    float64 // 0: not marked
	}{
		{"publishing below", 4, eventRate("ingest.throughput", 2399), 0},
		{"publishing within 20 %", 4, eventRate("ingest.throughput", 2400), 3000},
		{"of a record that was read", 4.0, eventRate("ingest.throughput", 2400), 3000},
		{"of an option typed anew", int64(1), eventRate("ingest.throughput", 800), 1000},
		{"the median of the trials counts", 4, eventRate("ingest.throughput", 2900, 100, 2400), 3000},
		{"the median is below", 4, eventRate("ingest.throughput", 2900, 100, 2399), 0},
		{"one connection is not four", 4, eventRate("ingest.throughput", 810), 0},
		{"so many connections were not calibrated: the highest counts", 64, eventRate("ingest.throughput", 2399), 0},
		{"the same, within", 64, eventRate("ingest.throughput", 2400), 3000},
		{"queries below the higher of two that just agree", 4, eventRate("query.thread.hot", 7999), 0},
		{"queries within", 4, eventRate("query.thread.hot", 8000), 10_000},
		{"from relay to relay", 4, eventRate("negentropy.transfer", 800), 1000},
		{"from relay to relay, below", 4, eventRate("sync.req", 799), 0},
		{"by the sink's own command", 4, eventRate("sync.native", 9999), 0},
		{"an import, in which the harness has no part", 4, figureOf("import", "stored", "events/s", results.Higher, 1e9), 0},
		{"a download over eight connections, below", 4, labelled(eventRate("fetch.by-id", 7999), results.LabelConnections, "8"), 0},
		{"a download over eight connections, within", 4, labelled(eventRate("fetch.by-id", 8000), results.LabelConnections, "8"), 10_000},
		{"a download over one: the calibrations disagree", 4, eventRate("fetch.giant", 1e9), 0},
		{"answers a second are no events", 4, figureOf("query.empty.hot", "queries/s", "queries/s", results.Higher, 1e9), 0},
		{"a rate that is stated only", 4, figureOf("ingest.throughput", "rejected", "events/s", results.None, 1e9), 0},
		{"an EOSE above the lower of two floors", 4, delay("query.empty.hot", "eose", 5.01), 0},
		{"an EOSE within 20 % of it", 4, delay("query.empty.hot", "eose", 5), 4},
		{"a first event", 4, delay("query.empty.hot", "first event", 4), 4},
		{"an OK, one at a time", 4, delay("ingest.visibility", "ok", 3), 4},
		{"visible", 4, delay("ingest.visibility", "visible", 3), 4},
		{"an OK on a schedule", 4, delay("ingest.paced", "ok from intended", 3), 4},
		{"a latency that is no round trip", 4, delay("negentropy.heartbeat", "time", 3), 0},
		{"a round trip that is stated only", 4, figureOf("query.empty.hot", "eose", "ms", results.None, 1), 0},
		{"nothing measured", 4, delay("query.empty.hot", "eose"), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			mark := func(calibration []results.Calibration) *results.Measurement {
				r := results.Record{Calibration: calibration, Options: map[string]any{"publishers": test.publishers, "query-conns": int64(8)},
					Measurements: []results.Measurement{test.m}}
				r.Measurements[0].Status = nil
				MarkLimited(describing(&r))
				return &r.Measurements[0]
			}
			m := mark(calibration)
			if got := causes(t, m); test.ceiling == 0 && got != nil || test.ceiling > 0 && !slices.Equal(got, []string{results.CauseCeiling}) {
				t.Errorf("marked %q, want a ceiling of %g", got, test.ceiling)
			} else if test.ceiling > 0 && m.Status[0].Counts["ceiling"] != test.ceiling {
				t.Errorf("ceiling %v, want %g", m.Status[0].Counts, test.ceiling)
			}
			if m := mark(nil); m.Status != nil {
				t.Errorf("without a calibration: %+v", m.Status)
			}
			before := slices.DeleteFunc(slices.Clone(calibration), func(c results.Calibration) bool { return c.Labels[results.LabelWhen] != "" })
			if m := mark(before); m.Status != nil {
				t.Errorf("without a calibration after the run: %+v", m.Status)
			}
		})
	}
}

func TestTheHarnessOwnPartMarksWhatItSet(t *testing.T) {
	cpu := func(scenario string, trials ...float64) results.Measurement {
		return figureOf(scenario, metricOwnCPU, "%", results.None, trials...)
	}
	reading := func(scenario string, trials ...float64) results.Measurement {
		return figureOf(scenario, metricReading, "ms", results.None, trials...)
	}
	of := func(m results.Measurement, relay, peer string) results.Measurement {
		m.Relay, m.Peer = relay, peer
		return m
	}
	share := func(v float64) map[string]map[string]float64 {
		return map[string]map[string]float64{results.CauseCPU: {"share": v}}
	}
	waited := func(v float64) map[string]map[string]float64 {
		return map[string]map[string]float64{results.CauseReading: {"delay ms": v}}
	}
	pinned := results.Environment{HarnessCores: []int{0}}
	for _, test := range []struct {
		name     string
		on       results.Environment
		m        results.Measurement
		evidence []results.Measurement
		want     map[string]map[string]float64 // counts by cause
	}{
		{"half of the processors that are shared", results.Environment{}, eventRate("query.thread.hot", 10), []results.Measurement{cpu("query.thread.hot", 50)}, share(50)},
		{"less than that", results.Environment{}, eventRate("query.thread.hot", 10), []results.Measurement{cpu("query.thread.hot", 49.9)}, nil},
		{"nine tenths of its own", pinned, eventRate("query.thread.hot", 10), []results.Measurement{cpu("query.thread.hot", 90)}, share(90)},
		{"less than that of its own", pinned, eventRate("query.thread.hot", 10), []results.Measurement{cpu("query.thread.hot", 89.9)}, nil},
		{"answers a second", pinned, figureOf("query.empty.hot", "queries/s", "queries/s", results.Higher, 10), []results.Measurement{cpu("query.empty.hot", 95)}, share(95)},
		{"the median of the trials", pinned, eventRate("query.thread.hot", 10), []results.Measurement{cpu("query.thread.hot", 99, 10, 91)}, share(91)},
		{"the median of the trials is less", pinned, eventRate("query.thread.hot", 10), []results.Measurement{cpu("query.thread.hot", 99, 99, 10, 20)}, nil},
		{"processors set no latency", pinned, delay("query.thread.hot", "eose", 10), []results.Measurement{cpu("query.thread.hot", 99)}, nil},
		{"nor a rate that is stated only", pinned, figureOf("ingest.throughput", "rejected", "events/s", results.None, 9), []results.Measurement{cpu("ingest.throughput", 99)}, nil},
		{"nor any other figure", pinned, figureOf("storage", "allocated", "bytes/event", results.Lower, 9), []results.Measurement{cpu("storage", 99)}, nil},
		{"of another scenario", pinned, eventRate("query.thread.hot", 10), []results.Measurement{cpu("query.thread.varied", 99)}, nil},
		{"of another relay", pinned, eventRate("query.thread.hot", 10), []results.Measurement{of(cpu("query.thread.hot", 99), "b", "")}, nil},
		{"of another pair", pinned, of(eventRate("negentropy.transfer", 10), "a", "b"), []results.Measurement{of(cpu("negentropy.transfer", 99), "a", "c")}, nil},
		{"of the pair as a whole", pinned, labelled(of(eventRate("negentropy.transfer", 10), "a", "b"), results.LabelPhase, "transfer"),
			[]results.Measurement{of(cpu("negentropy", 99), "a", "b")}, share(99)},
		{"of the phase rather than the whole", pinned, labelled(of(eventRate("negentropy.transfer", 10), "a", "b"), results.LabelPhase, "transfer"),
			[]results.Measurement{labelled(of(cpu("negentropy.transfer", 10), "a", "b"), results.LabelPhase, "transfer"), of(cpu("negentropy", 99), "a", "b")}, nil},
		{"of the same settings", pinned, labelled(eventRate("fetch.by-id", 10), results.LabelStrategy, "by-id", results.LabelConnections, "8"),
			[]results.Measurement{labelled(cpu("fetch.by-id", 20), results.LabelStrategy, "by-id"), labelled(cpu("fetch.by-id", 20), results.LabelStrategy, "by-id", results.LabelConnections, "1"),
				labelled(cpu("fetch.by-id", 95), results.LabelStrategy, "by-id", results.LabelConnections, "8")}, share(95)},
		{"the first that is as close", pinned, labelled(eventRate("fetch.by-id", 10), results.LabelStrategy, "by-id", results.LabelConnections, "8"),
			[]results.Measurement{labelled(cpu("fetch.by-id", 95), results.LabelConnections, "8"), labelled(cpu("fetch.by-id", 20), results.LabelStrategy, "by-id")}, share(95)},
		{"evidence that gave no number", pinned, eventRate("query.thread.hot", 10), []results.Measurement{cpu("query.thread.hot")}, nil},
		{"an import", pinned, figureOf("import", "stored", "events/s", results.Higher, 9), []results.Measurement{cpu("import", 99)}, nil},
		{"a relay's own sync", pinned, figureOf("sync.native", "records/s", "events/s", results.Higher, 9), []results.Measurement{cpu("sync.native", 99)}, nil},

		{"frames waited a fifth", results.Environment{}, delay("query.thread.hot", "eose", 10), []results.Measurement{reading("query.thread.hot", 2)}, waited(2)},
		{"less than a fifth", results.Environment{}, delay("query.thread.hot", "eose", 10), []results.Measurement{reading("query.thread.hot", 1.99)}, nil},
		{"the same with processors of its own", pinned, delay("query.thread.hot", "eose", 10), []results.Measurement{reading("query.thread.hot", 2)}, waited(2)},
		{"medians of the trials", results.Environment{}, delay("query.thread.hot", "eose", 1, 10, 100), []results.Measurement{reading("query.thread.hot", 90, 1, 3)}, waited(3)},
		{"any latency", results.Environment{}, delay("negentropy.heartbeat", "time", 10), []results.Measurement{reading("negentropy.heartbeat", 3)}, waited(3)},
		{"a rate has no such share", results.Environment{}, eventRate("query.thread.hot", 1), []results.Measurement{reading("query.thread.hot", 9)}, nil},
		{"a latency that is stated only", results.Environment{}, figureOf("ingest.visibility", "poll round trip", "ms", results.None, 1), []results.Measurement{reading("ingest.visibility", 9)}, nil},
		{"seconds are no latency", results.Environment{}, figureOf("negentropy.transfer", "duration", "s", results.Lower, 1), []results.Measurement{reading("negentropy.transfer", 900)}, nil},
		{"nothing waited", results.Environment{}, delay("query.thread.hot", "eose", 0), []results.Measurement{reading("query.thread.hot", 0)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := results.Record{Environment: test.on, Measurements: append([]results.Measurement{test.m}, test.evidence...)}
			for range 2 { // to mark what is marked changes nothing
				MarkLimited(describing(&r))
				got := map[string]map[string]float64{}
				for _, s := range r.Measurements[0].Status {
					if s.Code != results.StatusLimited || got[s.Cause] != nil {
						t.Errorf("status %+v", s)
					}
					got[s.Cause] = s.Counts
				}
				if !maps.EqualFunc(got, test.want, func(a, b map[string]float64) bool { return maps.Equal(a, b) }) {
					t.Errorf("marked %v, want %v", got, test.want)
				}
			}
			for _, e := range r.Measurements[1:] {
				if e.Status != nil {
					t.Errorf("the evidence is marked itself: %+v", e)
				}
			}
		})
	}
}

func TestWhatLimitsAFigureLimitsThoseOfItsLoop(t *testing.T) {
	r := results.Record{
		Calibration: slices.Concat(twice(results.CeilingReceive, "8", 9000, 9000), twice(results.EchoMedian, "", 0.04, 0.04), twice(results.CeilingPublish, "4", 3000, 3000)),
		Options:     map[string]any{"publishers": 4, "query-conns": 8},
	}
	var want [][]string
	add := func(m results.Measurement, causes ...string) {
		r.Measurements, want = append(r.Measurements, m), append(want, causes)
	}
	answers := func(scenario string, v float64) results.Measurement {
		return figureOf(scenario, "queries/s", "queries/s", results.Higher, v)
	}
	add(answers("query.firehose.hot", 18), results.CauseCeiling)
	add(eventRate("query.firehose.hot", 8900), results.CauseCeiling)
	add(delay("query.firehose.hot", "eose", 9)) // one connection alone
	add(answers("query.empty.hot", 1e5), results.CauseCeiling)
	add(delay("query.empty.hot", "eose", 0.04), results.CauseCeiling)
	add(answers("query.thread.hot", 18), results.CauseReading)
	add(eventRate("query.thread.hot", 100), results.CauseReading)
	add(delay("query.thread.hot", "eose", 4), results.CauseReading)
	add(figureOf("query.thread.hot", metricReading, "ms", results.None, 1))
	add(delay("ingest.throughput", "ok latency", 4), results.CauseCeiling, results.CauseCPU)
	add(figureOf("ingest.throughput", "accepted", "events/s", results.Higher, 2900), results.CauseCeiling, results.CauseCPU)
	add(figureOf("ingest.throughput", metricOwnCPU, "%", results.None, 60))
	add(labelled(figureOf("fetch.by-id", "request latency", "ms", results.None, 4), results.LabelConnections, "8")) // stated
	add(labelled(figureOf("fetch.by-id", "records/s", "events/s", results.Higher, 4), results.LabelConnections, "8"), results.CauseReading)
	add(labelled(figureOf("fetch.by-id", "records/s", "events/s", results.Higher, 4), results.LabelConnections, "1"))
	add(figureOf("fetch.by-id", metricReading, "ms", results.None, 1))
	MarkLimited(describing(&r))
	for i := range r.Measurements {
		got := causes(t, &r.Measurements[i])
		slices.Sort(got)
		slices.Sort(want[i])
		if !slices.Equal(got, want[i]) {
			t.Errorf("%s %s %v: marked %q, want %q", r.Measurements[i].Scenario, r.Measurements[i].Metric, r.Measurements[i].Labels, got, want[i])
		}
	}

	other := delay("ingest.throughput", "ok latency", 9)
	other.Relay, other.Status = "b", []results.Status{{Code: results.StatusCoarse}}
	two := results.Record{Calibration: r.Calibration, Options: r.Options,
		Measurements: []results.Measurement{other, figureOf("ingest.throughput", "accepted", "events/s", results.Higher, 2900)}}
	MarkLimited(describing(&two))
	if s := two.Measurements[0].Status; len(s) != 1 || s[0].Code != results.StatusCoarse {
		t.Errorf("another relay's latency: %+v", s)
	}
}
