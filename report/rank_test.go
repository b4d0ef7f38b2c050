package report

import (
	"slices"
	"strings"
	"testing"

	"relaybench/report/reporttest"
	"relaybench/results"
)

// contest is a record of two relays, a and b, with one metric, in which a is the faster one.
func contest(change func(*results.Record)) *results.Record {
	m := func(relay string, trials ...float64) results.Measurement {
		return results.Measurement{Relay: relay, Scenario: "ingest.throughput", Metric: "accepted", Unit: "events/s", Better: results.Higher, Trials: trials}
	}
	r := &results.Record{
		Relays:       []results.Relay{{Name: "a", Durability: "batch", Outcome: results.OutcomeOK}, {Name: "b", Durability: "batch", Outcome: results.OutcomeOK}},
		Measurements: []results.Measurement{m("a", reporttest.Spread(200)...), m("b", reporttest.Spread(100)...)},
		Calibration:  []results.Calibration{{Name: "clock resolution", Value: 20, Unit: "ns"}},
		Findings:     []results.Finding{reporttest.Finding("a", "", "preflight", results.CodeStores, true, ""), reporttest.Finding("b", "", "preflight", results.CodeStores, true, "")},
	}
	change(r)
	return reporttest.Described(r)
}

// seenWith makes the last finding one of a pair.
func seenWith(peer, blames string) func(*results.Record) {
	return func(r *results.Record) {
		f := &r.Findings[len(r.Findings)-1]
		f.Peer, f.Blames = peer, blames
	}
}

// paired makes the figures those of pairs.
func paired(peers ...string) func(*results.Record) {
	return func(r *results.Record) {
		for i, peer := range peers {
			r.Measurements[i].Peer = peer
		}
	}
}

// trials sets those of the relays in order.
func trials(all ...[]float64) func(*results.Record) {
	return func(r *results.Record) {
		for i, values := range all {
			r.Measurements[i].Trials = values
		}
	}
}

// told gives a relay's figure a status.
func told(i int, code string) func(*results.Record) {
	return func(r *results.Record) { r.Measurements[i].AddStatus(results.Status{Code: code}) }
}

func all(changes ...func(*results.Record)) func(*results.Record) {
	return func(r *results.Record) {
		for _, c := range changes {
			c(r)
		}
	}
}

func answers(counts ...float64) func(*results.Record) {
	return func(r *results.Record) {
		for i, n := range counts {
			r.Measurements = append(r.Measurements, results.Measurement{Relay: r.Relays[i].Name, Scenario: "ingest.throughput", Metric: "events", Better: results.None, Exact: true, Trials: []float64{n}})
		}
	}
}

func exactly(r *results.Record) { r.Measurements[0].Exact, r.Measurements[1].Exact = true, true }

func less(r *results.Record) {
	r.Measurements[0].Better, r.Measurements[1].Better = results.Lower, results.Lower
}

func third(name string, value float64) func(*results.Record) {
	return func(r *results.Record) {
		r.Relays = append(r.Relays, results.Relay{Name: name, Durability: "batch", Outcome: results.OutcomeOK})
		m := r.Measurements[0]
		m.Relay, m.Trials, m.Status = name, reporttest.Spread(value), nil
		r.Measurements = append(r.Measurements, m)
	}
}

func TestTheStarGoesToWhomItIsDue(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*results.Record)
		want   string // the marks of the rows in order; a number is that of a footnote
	}{
		{"more is better", all(), "★ -"},
		{"less is better", less, "- ★"},
		{"a stated figure is not ranked", func(r *results.Record) {
			r.Measurements[0].Better, r.Measurements[1].Better = results.None, results.None
		}, ""},
		{"an exact tie shares no star", trials(reporttest.Spread(200), reporttest.Spread(200)), "= ="},
		{"a tie at the top of three", third("c", 200), "= - ="},
		{"a relay that failed does not win", func(r *results.Record) { r.Relays[0].Outcome = results.OutcomeFailed }, "¹ -"},
		{"nor does the only one left beside it", all(third("c", 50), func(r *results.Record) { r.Relays[0].Outcome = results.OutcomeFailed }), "¹ ★ -"},
		{"a failed check on everything bars", all(reporttest.Failed("a", "*"), third("c", 50)), "¹ ★ -"},
		{"one on this row bars", all(reporttest.Failed("a", "ingest.throughput"), third("c", 50)), "¹ ★ -"},
		{"one on this family bars", all(reporttest.Failed("a", "ingest.*"), third("c", 50)), "¹ ★ -"},
		{"one on another row does not", reporttest.Failed("a", "storage", "query.*"), "★ -"},
		{"one that bears on nothing does not", reporttest.Failed("a"), "★ -"},
		{"a stated one bars nothing", all(reporttest.Failed("a", "*"), func(r *results.Record) { r.Findings[2].Verdict = results.Stated }), "★ -"},
		{"an undecided one bars nothing", all(reporttest.Failed("a", "*"), func(r *results.Record) { r.Findings[2].Verdict = results.Undecided }), "★ -"},
		{"one that uses a condition bars where that is asked for", all(reporttest.Failed("a", "*"), third("c", 50), func(r *results.Record) {
			r.Findings[2].BearsOn[0].Uses = "#t"
		}), "★ - -"},
		{"a relay that its definition keeps out does not win", all(third("c", 50), func(r *results.Record) { r.Relays[0].NeverRanked = "it stores nothing" }), "¹ ★ -"},
		{"nor has it a say in what the others should answer", all(third("c", 50), answers(0, 500, 500), func(r *results.Record) { r.Relays[0].NeverRanked = "it stores nothing" }), "¹ ★ -"},
		{"nor has one that answered wrongly", all(third("c", 50), answers(100, 500, 100), reporttest.Failed("a", "ingest.*"), func(r *results.Record) {
			f := r.Findings[2]
			f.Relay, f.Blames = "c", "c"
			r.Findings = append(r.Findings, f)
		}), "¹ - ²"},
		{"what the harness limited is not crowned", all(third("c", 50), told(0, results.StatusLimited)), "¹ - -"},
		{"nor does it hold others up where it means nothing", all(third("c", 50), told(0, results.StatusLimited), reporttest.Failed("a", "ingest.throughput")), "¹ ★ -"},
		{"but a limited one that is slower lets others win", all(third("c", 50), told(2, results.StatusLimited)), "★ - ¹"},
		{"an incomplete one does not compete", all(third("c", 50), told(0, results.StatusIncomplete)), "¹ ★ -"},
		{"one taken while the harness was away does not", all(third("c", 50), told(0, results.StatusAway)), "¹ ★ -"},
		{"one that was measured anew does, and says so", told(0, results.StatusRepeated), "★¹ -"},
		{"one for other work does not", all(third("c", 50), told(0, results.StatusNotComparable)), "¹ ★ -"},
		{"a coarse one does, and says so", told(0, results.StatusCoarse), "★¹ -"},
		{"two that have the same to say share a note", all(third("c", 50), told(1, results.StatusCoarse), told(2, results.StatusCoarse)), "★ ¹ ¹"},
		{"answers that differ are not ranked", answers(500, 100), "- -"},
		{"answers that agree are", answers(500, 500), "★ -"},
		{"the larger group that agrees competes", all(third("c", 50), answers(100, 500, 500)), "- ★ -"},
		{"a difference that may be chance gives no star", trials([]float64{200, 90, 190, 210}, []float64{100, 100, 120, 95}), "~ -"},
		{"a significant one does", trials([]float64{200, 190, 210, 195}, []float64{100, 110, 120, 95}), "★ -"},
		{"though a trial or two overlap", trials([]float64{200, 190, 210, 195, 205, 118}, []float64{100, 110, 120, 95, 105, 98}), "★ -"},
		{"three trials can never tell", trials([]float64{200, 190, 210}, []float64{100, 110, 120}), "~ -"},
		{"nor can two", trials([]float64{200, 190}, []float64{100, 110}), "~ -"},
		{"nor can one", trials([]float64{200}, []float64{100}), "~ -"},
		{"nor can many against one", trials([]float64{200, 190, 210, 200, 190, 210}, []float64{100}), "~ -"},
		{"exact figures need no test", all(trials([]float64{200, 200, 200, 200}, []float64{100, 100, 100, 100}), exactly), "★ -"},
		{"but must not touch", all(trials([]float64{200, 200, 220, 200}, []float64{100, 200, 100, 100}), exactly), "~ -"},
		{"nor touch where less is better", all(trials([]float64{200, 220, 200, 200}, []float64{100, 200, 100, 100}), exactly, less), "- ~"},
		{"apart where less is better", all(trials([]float64{200, 220, 200, 200}, []float64{100, 199, 100, 100}), exactly, less), "- ★"},
		{"and have no star in a run without stars", all(trials([]float64{200}, []float64{100}), exactly), "~ -"},
		{"the best must be ahead of all", all(third("c", 50), trials([]float64{200, 190, 210, 195}, []float64{100, 110, 120, 95}, []float64{50, 50, 500, 50})), "~ - -"},
		{"another durability class is marked", func(r *results.Record) { r.Relays[1].Durability = "commit" }, "★† -"},
		{"a relay without the metric leaves no contest", func(r *results.Record) { r.Measurements = r.Measurements[:1] }, "- -"},
		{"pairs with one peer are ranked", paired("c", "c"), "★ -"},
		{"pairs with different peers are not", paired("b", "a"), "- -"},
		{"a pair with a barred peer is not", all(third("c", 50), reporttest.Failed("c", "*"), paired("c", "c")), "¹ ¹ ¹"},
		{"a check of the pair bars its row", all(paired("c", "c"), reporttest.Failed("a", "ingest.*"), seenWith("c", "a")), "¹ -"},
		{"a check of another pair does not", all(paired("c", "c"), reporttest.Failed("a", "ingest.*"), seenWith("d", "a")), "★ -"},
		{"one of a pair does not bar what a relay does alone", all(reporttest.Failed("a", "ingest.*"), seenWith("b", "")), "★ -"},
		{"unless it bears on everything", all(third("c", 50), reporttest.Failed("a", "*"), seenWith("b", "a")), "¹ ★ -"},
		{"it bars whom it blames, and not whom it asked", all(third("c", 50), reporttest.Failed("a", "*"), seenWith("b", "b")), "★ ¹ -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			var notes footnotes
			for _, s := range newView(contest(c.change)).sections {
				for _, sc := range s.scenarios {
					for _, b := range sc.blocks {
						if b.metric.Key != "accepted" {
							continue
						}
						for _, r := range b.rows {
							m := "-"
							if r.has && mark(b, r)+notes.sign(r.notes()) != "" {
								m = mark(b, r) + notes.sign(r.notes())
							}
							got = append(got, m)
						}
					}
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("marked %q, want %q; notes %q", strings.Join(got, " "), c.want, notes)
			}
		})
	}
}

// Whoever reads a table is told why a cell of it does not compete, by the check and the relay.
func TestABarredCellSaysWhy(t *testing.T) {
	r := contest(all(third("c", 50), reporttest.Failed("a", "ingest.*")))
	for name, text := range map[string]string{"terminal": string(renderTerminal(t, r, TerminalOptions{Width: 100})), "report.md": string(renderMarkdown(t, r))} {
		if n := strings.Count(text, "¹ a failed: c"); n != 2 { // in its table and head to head
			t.Errorf("%s says it %d times:\n%s", name, n, text)
		}
	}
}

func TestARelayThatCompetesNowhereSaysWhy(t *testing.T) {
	_, standings, ok := newView(contest(all(third("c", 50), reporttest.Failed("a", "*")))).headToHead()
	if !ok || standings[0].reason != "a failed: c" || standings[1].reason != "" {
		t.Errorf("%+v", standings)
	}
	if _, _, ok := newView(contest(reporttest.Failed("a", "*"))).headToHead(); ok {
		t.Error("one relay alone is ranked")
	}
}

func TestHeadToHeadCountsContestsAlone(t *testing.T) {
	r := contest(func(r *results.Record) {
		for _, relay := range []string{"a", "b"} {
			r.Measurements = append(r.Measurements,
				results.Measurement{Relay: relay, Scenario: "ingest.throughput", Metric: "unacknowledged", Better: results.Lower, Trials: []float64{0, 0, 0, 0}},
				results.Measurement{Relay: relay, Scenario: "new.kind", Metric: "speed", Unit: "things/s", Better: results.Higher, Trials: reporttest.Spread(map[string]float64{"a": 10, "b": 40}[relay])})
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

func TestASectionWithoutHeadlinesHasFourColumns(t *testing.T) {
	r := contest(func(r *results.Record) {
		for _, scenario := range []string{"new.1", "new.2", "new.3", "new.4", "new.5"} {
			for _, relay := range []string{"a", "b"} {
				for _, metric := range []string{"speed", "haste"} {
					r.Measurements = append(r.Measurements, results.Measurement{Relay: relay, Scenario: scenario, Metric: metric, Unit: "things/s",
						Better: results.Higher, Trials: reporttest.Spread(map[string]float64{"a": 10, "b": 40}[relay])})
				}
			}
		}
	})
	if titles, _, _ := newView(r).headToHead(); strings.Join(titles, ",") != "accepted/s,new.1,new.2,new.3,new.4" {
		t.Errorf("columns %q", titles)
	}
}

func TestLabelsAreSaidInWords(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{results.LabelConnections, "1", "1 connection"}, {results.LabelConnections, "4", "4 connections"}, {results.LabelConnections, "some", "some"},
		{results.LabelInFlight, "8", "8 in flight"}, {results.LabelBatch, "100", "batches of 100"}, {results.LabelWhen, "after", "at the end"},
		{results.LabelWhen, "before", "before"}, {results.LabelForm, "after", "after"},
	} {
		l := results.Labels{c.name: c.value, "other": "x"}
		if got := LabelText(l, []string{c.name, "absent"}); got != c.want {
			t.Errorf("%s=%s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
}

func TestAYardstickIsNamedWithItsReasonAndNotBlamed(t *testing.T) {
	v := newView(contest(func(r *results.Record) {
		third("null", 1000)(r)
		r.Relays[2].NeverRanked, r.Relays[2].Durability = "it stores nothing", "none"
		reporttest.Failed("null", "*")(r)
	}))
	if _, standings, _ := v.headToHead(); standings[2].reason != "null: it stores nothing" {
		t.Errorf("barred because %q", standings[2].reason)
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
	quiet := func(r *results.Record) {
		for i := range r.Measurements {
			r.Measurements[i].Trials = []float64{1, 1, 1, 1, 1, 1}
		}
	}
	for _, c := range []struct {
		name, answer, says string
		change             func(*results.Record)
	}{
		{"six quiet trials", "Yes", "", quiet},
		{"one trial", "Not yet", "One trial", trials([]float64{1}, []float64{2})},
		{"three trials", "Not yet", "3 trials are too few", trials([]float64{1, 2, 3}, []float64{1, 2, 3})},
		{"partial", "No", "did not finish", func(r *results.Record) { r.Partial = true }},
		{"a failed relay", "No", "a failed: it burnt.", func(r *results.Record) {
			r.Relays[0].Outcome, r.Relays[0].Reason = results.OutcomeFailed, "it burnt"
		}},
		{"a relay of many words", "No", "burnt and burnt …", func(r *results.Record) {
			r.Relays[0].Outcome, r.Relays[0].Reason = results.OutcomeFailed, "it burnt"+strings.Repeat(" and burnt", 1000)
		}},
		{"a failed check", "No", "b failed 1 check: c.", reporttest.Failed("b", "*")},
		{"one in a scenario", "No", "b failed 1 check: c (ingest.throughput).", all(reporttest.Failed("b", "*"), func(r *results.Record) { r.Findings[2].Scenario = "ingest.throughput" })},
		{"one in two scenarios", "No", "b failed 1 check, 2 times in all: c (2 of 2 scenarios).", all(reporttest.Failed("b", "*"), func(r *results.Record) {
			r.Findings[2].Scenario = "ingest.throughput"
			again := r.Findings[2]
			again.Scenario = "ingest.latency"
			r.Findings = append(r.Findings, again)
		})},
		{"one that shows at another relay", "No", "b failed 1 check: c (with a).", all(reporttest.Failed("a", "*"), seenWith("b", "b"))},
		{"a check that could not be asked", "Not yet", "b could not be asked in 1 check: c.", all(quiet, reporttest.Failed("b", "*"), func(r *results.Record) { r.Findings[2].Verdict = results.Undecided })},
		{"a check that is stated", "Yes", "", all(quiet, reporttest.Failed("b", "*"), func(r *results.Record) { r.Findings[2].Verdict = results.Stated })},
		{"durability", "Not yet", "a batch; b commit", func(r *results.Record) { quiet(r); r.Relays[1].Durability = "commit" }},
		{"a busy machine", "Not yet", "load 3.00 on 2 cores", func(r *results.Record) {
			quiet(r)
			load := 3.0
			r.Environment.Cores, r.Environment.LoadBefore = 2, &load
		}},
		{"uncommitted changes", "Not yet", "uncommitted", func(r *results.Record) { quiet(r); r.Tool.Modified = true }},
		{"a limited figure", "Not yet", "figures of a are limited by the harness", func(r *results.Record) { quiet(r); told(0, results.StatusLimited)(r) }},
		{"a figure taken while the harness was away", "Not yet", "figures of a were taken while relaybench was away, twice", func(r *results.Record) { quiet(r); told(0, results.StatusAway)(r) }},
		{"one that was measured anew", "Yes", "", func(r *results.Record) { quiet(r); told(0, results.StatusRepeated)(r) }},
		{"a pair that did not complete", "No", "a ⇄ b failed 1 check: " + CheckTitle(results.CodeCompletes) + " (negentropy).", func(r *results.Record) {
			quiet(r)
			f := reporttest.Finding("a", "b", "negentropy", results.CodeCompletes, false, "it broke off")
			f.Blames = ""
			r.Findings = append(r.Findings, f)
		}},
		{"a pair that did not converge", "No", "b failed 1 check: " + CheckTitle(results.CodeHoldsUnion) + " (negentropy.identical with a).", func(r *results.Record) {
			quiet(r)
			f := reporttest.Finding("a", "b", "negentropy.identical", results.CodeHoldsUnion, false, "it lacks what b dropped")
			f.Blames = "b"
			r.Findings = append(r.Findings, f)
		}},
		{"no calibration", "Not yet", "not calibrated", func(r *results.Record) { quiet(r); r.Calibration = nil }},
		{"no preflight of one", "Not yet", "Nobody asked b whether", func(r *results.Record) { quiet(r); r.Findings = r.Findings[:1] }},
		{"a yardstick that keeps nothing", "Yes", "", func(r *results.Record) {
			third("null", 1000)(r)
			quiet(r)
			r.Relays[2].NeverRanked = "it stores nothing"
			reporttest.Failed("null", "*")(r)
			told(2, results.StatusLimited)(r)
		}},
		{"a yardstick is no second relay", "Not yet", "Only one relay took part", func(r *results.Record) { quiet(r); r.Relays[1].NeverRanked = "it stores nothing" }},
		{"nothing measured", "No", "Nothing was measured", func(r *results.Record) { r.Measurements = nil }},
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
