package report

import (
	"slices"
	"strings"
	"testing"

	"relaybench/harness/measure"
)

// contest is a record of two relays, a and b, with one metric, in which a is the faster one.
func contest(change func(*measure.Record)) *measure.Record {
	m := func(relay string, trials ...float64) measure.Measurement {
		return measure.Measurement{Relay: relay, Scenario: "ingest.throughput", Metric: "accepted", Unit: "events/s", Better: measure.Higher, Trials: trials}
	}
	r := &measure.Record{
		Relays:       []measure.Relay{{Name: "a", Durability: "batch", Outcome: measure.OutcomeOK}, {Name: "b", Durability: "batch", Outcome: measure.OutcomeOK}},
		Measurements: []measure.Measurement{m("a", 200), m("b", 100)},
		Calibration:  []measure.Calibration{{Name: "clock resolution", Value: 20, Unit: "ns"}},
		Findings:     []measure.Finding{{Relay: "a", Scenario: "preflight", Check: "p", OK: true}, {Relay: "b", Scenario: "preflight", Check: "p", OK: true}},
	}
	change(r)
	return r
}

func failed(relay, scenario string, required bool) func(*measure.Record) {
	return func(r *measure.Record) {
		r.Findings = append(r.Findings, measure.Finding{Relay: relay, Scenario: scenario, Check: "c", Required: required})
	}
}

func answers(counts ...float64) func(*measure.Record) {
	return func(r *measure.Record) {
		for i, n := range counts {
			r.Measurements = append(r.Measurements, measure.Measurement{Relay: r.Relays[i].Name, Scenario: "ingest.throughput", Metric: "events", Better: measure.None, Exact: true, Trials: []float64{n}})
		}
	}
}

func third(name string, value float64) func(*measure.Record) {
	return func(r *measure.Record) {
		r.Relays = append(r.Relays, measure.Relay{Name: name, Durability: "batch", Outcome: measure.OutcomeOK})
		m := r.Measurements[0]
		m.Relay, m.Trials = name, []float64{value}
		r.Measurements = append(r.Measurements, m)
	}
}

func TestTheStarGoesToWhomItIsDue(t *testing.T) {
	all := func(changes ...func(*measure.Record)) func(*measure.Record) {
		return func(r *measure.Record) {
			for _, c := range changes {
				c(r)
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*measure.Record)
		want   string // the marks of the rows in order
	}{
		{"more is better", all(), "★ -"},
		{"less is better", func(r *measure.Record) {
			r.Measurements[0].Better, r.Measurements[1].Better = measure.Lower, measure.Lower
		}, "- ★"},
		{"a stated figure is not ranked", func(r *measure.Record) {
			r.Measurements[0].Better, r.Measurements[1].Better = measure.None, measure.None
		}, ""},
		{"an exact tie shares no star", func(r *measure.Record) { r.Measurements[1].Trials = []float64{200} }, "= ="},
		{"a tie at the top of three", third("c", 200), "= - ="},
		{"a relay that failed does not win", func(r *measure.Record) { r.Relays[0].Outcome = measure.OutcomeFailed }, "- -"},
		{"nor does the only one left beside it", all(third("c", 50), func(r *measure.Record) { r.Relays[0].Outcome = measure.OutcomeFailed }), "- ★ -"},
		{"a failed required preflight check bars", all(failed("a", "preflight", true), third("c", 50)), "- ★ -"},
		{"so does one of the whole run", all(failed("a", "", true), third("c", 50)), "- ★ -"},
		{"and one of a scenario that measured nothing", all(failed("a", "restart", true), third("c", 50)), "- ★ -"},
		{"one on this row bars", all(failed("a", "ingest.throughput", true), third("c", 50)), "- ★ -"},
		{"one on this family bars", all(failed("a", "ingest", true), third("c", 50)), "- ★ -"},
		{"one on another row does not", all(failed("a", "storage", true), func(r *measure.Record) {
			r.Measurements = append(r.Measurements, measure.Measurement{Relay: "a", Scenario: "storage", Metric: "m", Better: measure.None})
		}), "★ -"},
		{"a loss bars everywhere, for what was lost need not be kept", all(third("c", 50), failed("a", "storage", true), func(r *measure.Record) {
			r.Measurements = append(r.Measurements, measure.Measurement{Relay: "a", Scenario: "storage", Metric: "m", Better: measure.None})
			r.Findings[len(r.Findings)-1].Check = checkKept
		}), "- ★ -"},
		{"a relay that its definition keeps out does not win", all(third("c", 50), func(r *measure.Record) { r.Relays[0].NeverRanked = "it stores nothing" }), "- ★ -"},
		{"nor has it a say in what the others should answer", all(third("c", 50), answers(0, 500, 500), func(r *measure.Record) { r.Relays[0].NeverRanked = "it stores nothing" }), "- ★ -"},
		{"a failed check that is not required does not", failed("a", "ingest.throughput", false), "★ -"},
		{"what the harness limited is not crowned", all(third("c", 50), func(r *measure.Record) { r.Measurements[0].Note = "limited by the harness" }), "! - -"},
		{"but a limited one that is slower lets others win", all(third("c", 50), func(r *measure.Record) { r.Measurements[2].Note = "limited by the harness" }), "★ - !"},
		{"answers that differ are not ranked", answers(500, 100), "- -"},
		{"answers that agree are", answers(500, 500), "★ -"},
		{"the larger group that agrees competes", all(third("c", 50), answers(100, 500, 500)), "- ★ -"},
		{"a difference that may be chance gives no star", func(r *measure.Record) {
			r.Measurements[0].Trials, r.Measurements[1].Trials = []float64{200, 90, 190, 210}, []float64{100, 100, 120, 95}
		}, "~ -"},
		{"a significant one does", func(r *measure.Record) {
			r.Measurements[0].Trials, r.Measurements[1].Trials = []float64{200, 190, 210, 195}, []float64{100, 110, 120, 95}
		}, "★ -"},
		{"though a trial or two overlap", func(r *measure.Record) {
			r.Measurements[0].Trials, r.Measurements[1].Trials = []float64{200, 190, 210, 195, 205, 118}, []float64{100, 110, 120, 95, 105, 98}
		}, "★ -"},
		{"three trials can never tell", func(r *measure.Record) {
			r.Measurements[0].Trials, r.Measurements[1].Trials = []float64{200, 190, 210}, []float64{100, 110, 120}
		}, "~ -"},
		{"nor can many against one", func(r *measure.Record) {
			r.Measurements[0].Trials, r.Measurements[1].Trials = []float64{200, 190, 210, 200, 190, 210}, []float64{100}
		}, "~ -"},
		{"exact figures need no test", func(r *measure.Record) {
			for i := range r.Measurements {
				r.Measurements[i].Exact = true
			}
			r.Measurements[0].Trials, r.Measurements[1].Trials = []float64{200, 200, 200}, []float64{100, 100, 100}
		}, "★ -"},
		{"the best must be ahead of all", all(third("c", 50), func(r *measure.Record) {
			r.Measurements[0].Trials, r.Measurements[1].Trials, r.Measurements[2].Trials = []float64{200, 190, 210, 195}, []float64{100, 110, 120, 95}, []float64{50, 50, 500, 50}
		}), "~ - -"},
		{"another durability class is marked", func(r *measure.Record) { r.Relays[1].Durability = "commit" }, "★† -"},
		{"a relay without the metric leaves no contest", func(r *measure.Record) { r.Measurements = r.Measurements[:1] }, "- -"},
		{"pairs with one peer are ranked", func(r *measure.Record) { r.Measurements[0].Peer, r.Measurements[1].Peer = "c", "c" }, "★ -"},
		{"pairs with different peers are not", func(r *measure.Record) { r.Measurements[0].Peer, r.Measurements[1].Peer = "b", "a" }, "- -"},
		{"a pair with a barred peer is not", all(third("c", 50), failed("c", "preflight", true), func(r *measure.Record) {
			r.Measurements[0].Peer, r.Measurements[1].Peer = "c", "c"
		}), "- - -"},
		{"a check of the pair bars its row", all(failed("a", "ingest.throughput", true), func(r *measure.Record) {
			r.Measurements[0].Peer, r.Measurements[1].Peer = "c", "c"
			r.Findings[len(r.Findings)-1].Peer = "c"
		}), "- -"},
		{"a check of another pair does not", all(failed("a", "ingest.throughput", true), func(r *measure.Record) {
			r.Measurements[0].Peer, r.Measurements[1].Peer = "c", "c"
			r.Findings[len(r.Findings)-1].Peer = "d"
		}), "★ -"},
		{"one of a pair does not bar what a relay does alone", all(failed("a", "ingest.throughput", true), func(r *measure.Record) { r.Findings[len(r.Findings)-1].Peer = "b" }), "★ -"},
		{"nor does one of a pair that measured nothing", all(failed("a", "negentropy", true), func(r *measure.Record) { r.Findings[len(r.Findings)-1].Peer = "b" }), "★ -"},
		{"unless it shows a loss", all(third("c", 50), failed("a", "negentropy", true), func(r *measure.Record) {
			f := &r.Findings[len(r.Findings)-1]
			f.Peer, f.Check, f.Detail = "b", checkSeeded, "holds 1 where it must hold 2: 1 missing: acknowledged but lost"
		}), "- ★ -"},
		{"that a relay lacks NIP-77 does not", all(failed("a", reconcileProbe, true), func(r *measure.Record) { r.Findings[len(r.Findings)-1].Check = "speaks NIP-77" }), "★ -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, s := range newView(contest(c.change)).sections {
				for _, sc := range s.scenarios {
					for _, b := range sc.blocks {
						if b.metric != "accepted" {
							continue
						}
						for _, r := range b.rows {
							m := "-"
							if r.has {
								m = strings.TrimSpace(mark(b, r))
							}
							if m == "" {
								m = "-"
							}
							got = append(got, m)
						}
					}
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("marked %q, want %q", strings.Join(got, " "), c.want)
			}
		})
	}
}

func TestHeadToHeadCountsContestsAlone(t *testing.T) {
	r := contest(func(r *measure.Record) {
		for _, relay := range []string{"a", "b"} {
			r.Measurements = append(r.Measurements,
				measure.Measurement{Relay: relay, Scenario: "ingest.throughput", Metric: "unacknowledged", Better: measure.Lower, Trials: []float64{0}},
				measure.Measurement{Relay: relay, Scenario: "new.kind", Metric: "speed", Unit: "things/s", Better: measure.Higher, Trials: []float64{map[string]float64{"a": 10, "b": 40}[relay]}})
		}
	})
	titles, standings, ok := newView(r).headToHead()
	if !ok || strings.Join(titles, ",") != "accepted/s,new.kind" {
		t.Fatalf("columns %v", titles)
	}
	for i, want := range []struct {
		wins, of int
		ratios   [2]float64
	}{{1, 2, [2]float64{1, 4}}, {1, 2, [2]float64{2, 1}}} {
		s := standings[i]
		if s.wins != want.wins || s.of != want.of || s.cells[0].ratio < want.ratios[0]-1e-9 || s.cells[0].ratio > want.ratios[0]+1e-9 || s.cells[1].ratio < want.ratios[1]-1e-9 || s.cells[1].ratio > want.ratios[1]+1e-9 {
			t.Errorf("%s: %+v", s.name, s)
		}
	}
}

func TestAYardstickIsNamedWithItsReasonAndNotBlamed(t *testing.T) {
	v := newView(contest(func(r *measure.Record) {
		third("null", 1000)(r)
		r.Relays[2].NeverRanked, r.Relays[2].Durability = "it stores nothing", "none"
		failed("null", "preflight", true)(r)
	}))
	if v.barred["null"] != "it stores nothing" {
		t.Errorf("barred because %q", v.barred["null"])
	}
	if !slices.ContainsFunc(v.head(), func(f fact) bool { return f.key == "unranked" && f.text == "null: it stores nothing" }) {
		t.Errorf("the head says %v", v.head())
	}
	if names := v.findingRelays(); slices.Contains(names, "null") {
		t.Errorf("checks are told of %v", names)
	}
	if d := v.verdict(); len(d.grave) > 0 || strings.Contains(strings.Join(d.caveats, ""), "null") {
		t.Errorf("%q %q", d.grave, d.caveats)
	}
}

func TestTheVerdictNamesEveryReason(t *testing.T) {
	quiet := func(r *measure.Record) {
		for i := range r.Measurements {
			r.Measurements[i].Trials = []float64{1, 1, 1, 1, 1, 1}
		}
	}
	for _, c := range []struct {
		name, answer, says string
		change             func(*measure.Record)
	}{
		{"six quiet trials", "Yes", "", quiet},
		{"one trial", "Not yet", "One trial", func(*measure.Record) {}},
		{"three trials", "Not yet", "3 trials are too few", func(r *measure.Record) { r.Measurements[0].Trials = []float64{1, 2, 3} }},
		{"partial", "No", "did not finish", func(r *measure.Record) { r.Partial = true }},
		{"a failed relay", "No", "a failed: it burnt.", func(r *measure.Record) {
			r.Relays[0].Outcome, r.Relays[0].Reason = measure.OutcomeFailed, "it burnt"
		}},
		{"a relay of many words", "No", "burnt and burnt …", func(r *measure.Record) {
			r.Relays[0].Outcome, r.Relays[0].Reason = measure.OutcomeFailed, "it burnt"+strings.Repeat(" and burnt", 1000)
		}},
		{"a required check", "No", "b failed 1 required check: c.", failed("b", "preflight", true)},
		{"another check", "Not yet", "b failed 1 check: c (ingest.throughput).", failed("b", "ingest.throughput", false)},
		{"durability", "Not yet", "a batch; b commit", func(r *measure.Record) { quiet(r); r.Relays[1].Durability = "commit" }},
		{"a busy machine", "Not yet", "load 3.00 on 2 cores", func(r *measure.Record) {
			quiet(r)
			load := 3.0
			r.Environment.Cores, r.Environment.LoadBefore = 2, &load
		}},
		{"uncommitted changes", "Not yet", "uncommitted", func(r *measure.Record) { quiet(r); r.Tool.Modified = true }},
		{"a limited figure", "Not yet", "figures of a are limited by the harness", func(r *measure.Record) { quiet(r); r.Measurements[0].Note = "limited by the harness" }},
		{"a relay without NIP-77", "Yes", "", func(r *measure.Record) { quiet(r); failed("a", reconcileProbe, false)(r) }},
		{"a pair that did not complete", "No", "a ⇄ b failed 1 required check: completes (negentropy).", func(r *measure.Record) {
			quiet(r)
			r.Findings = append(r.Findings, measure.Finding{Relay: "a", Peer: "b", Scenario: "negentropy", Check: checkCompletes, Required: true})
		}},
		{"a pair that did not converge", "No", "a failed 1 required check: converges (negentropy.identical) with b.", func(r *measure.Record) {
			quiet(r)
			r.Findings = append(r.Findings, measure.Finding{Relay: "a", Peer: "b", Scenario: "negentropy.identical", Check: checkConverges, Required: true})
		}},
		{"no calibration", "Not yet", "not calibrated", func(r *measure.Record) { quiet(r); r.Calibration = nil }},
		{"no preflight of one", "Not yet", "Nobody asked b whether", func(r *measure.Record) { quiet(r); r.Findings = r.Findings[:1] }},
		{"a yardstick that keeps nothing", "Yes", "", func(r *measure.Record) {
			third("null", 1000)(r)
			quiet(r)
			r.Relays[2].NeverRanked = "it stores nothing"
			failed("null", "preflight", true)(r)
			r.Measurements[2].Note = "limited by the harness"
		}},
		{"a yardstick is no second relay", "Not yet", "Only one relay took part", func(r *measure.Record) { quiet(r); r.Relays[1].NeverRanked = "it stores nothing" }},
		{"nothing measured", "No", "Nothing was measured", func(r *measure.Record) { r.Measurements = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newView(contest(c.change)).verdict()
			said := strings.Join(append(d.grave, d.caveats...), "\n")
			if !strings.HasPrefix(d.answer, c.answer) || !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("%s\n%s", d.answer, said)
			}
		})
	}
}
