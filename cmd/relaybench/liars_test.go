package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"relaybench/harness"
	"relaybench/report"
	"relaybench/results"
)

// liar is a way in which a relay misbehaves, and how a run must show it.
type liar struct {
	fault string

	// The required checks that must have failed, each as "scenario: check", and what the first of
	// them must say.
	checks []string
	says   string
	stated bool // they are stated instead, and bar nothing

	// How the relay must have fared as a whole.
	outcome results.Outcome // "" for OK
	reason  string          // part of it

	// What the lie bars: scenarios in which no figure of the relay may compete, "" for all. It may
	// be the best in others.
	touches []string
}

func (l liar) name() string {
	name, _, _ := strings.Cut(l.fault, ":")
	return name
}

var (
	everything  = []string{""}
	answersOnly = []string{"query."}
)

var liars = []liar{
	{fault: "ack-without-store:0.02", touches: everything, says: "acknowledged events are missing",
		checks: []string{"ingest.throughput: " + results.CodeAcknowledgedKept, "query.firehose.hot: " + results.CodeModel}},
	{fault: "drop-results:0.02", touches: everything, says: "acknowledged events are missing",
		checks: []string{"ingest.throughput: " + results.CodeAcknowledgedKept, "query.firehose.hot: " + results.CodeModel}},
	{fault: "extra-results", touches: []string{"ingest.throughput", "query."}, says: "had not been asked for",
		checks: []string{"ingest.throughput: " + results.CodeOnlyAsked, "query.thread.hot: " + results.CodeModel, "query.firehose.hot: " + results.CodeModel}},
	{fault: "wrong-order", touches: answersOnly, says: "18 of 18 answers are wrong: 8,658 out of order",
		checks: []string{"query.firehose.hot: " + results.CodeModel, "query.firehose.varied: " + results.CodeModel, "query.thread.hot: " + results.CodeModel}},
	{fault: "ignore-limit", touches: []string{"query.firehose.hot"}, says: "18 of 18 answers are wrong: 4,842 that must not be there",
		checks: []string{"query.firehose.hot: " + results.CodeModel}},
	{fault: "eose-early", touches: everything, says: "0 of",
		checks: []string{"ingest.visibility: " + results.CodeQueryable, "ingest.throughput: " + results.CodeAcknowledgedKept, "query.thread.hot: " + results.CodeModel}},
	{fault: "closed-midway", touches: answersOnly, says: "CLOSED",
		checks: []string{"query.firehose.hot: " + results.CodeEOSE, "query.thread.hot: " + results.CodeEOSE}},
	{fault: "notice-throttle:5/s", touches: []string{"ingest.", "query.firehose."}, says: "refused",
		checks: []string{"ingest.throughput: " + results.CodeAccepts, "ingest.visibility: " + results.CodeAcceptsSingle}},
	{fault: "slow-ok:9000", touches: everything, outcome: results.OutcomeFailed, reason: "3 scenarios in a row failed", says: "made no progress",
		checks: []string{"ingest.visibility: " + results.CodeCompletes, "ingest.paced: " + results.CodeCompletes}},
	{fault: "half-open", touches: everything, outcome: results.OutcomeNoStart, reason: "did not answer"},
	{fault: "die-after:300", touches: []string{"ingest.throughput"}, says: "killed",
		checks: []string{"ingest.throughput: " + results.CodeCompletes}},
	{fault: "garbage-frames", stated: true, says: "no message",
		checks: []string{"ingest.throughput: " + results.CodeOnlyMessage, "query.thread.hot: " + results.CodeOnlyMessage}},
	{fault: "id-mismatch", touches: everything, says: "other fields",
		checks: []string{"ingest.throughput: " + results.CodeUnaltered, "query.thread.hot: " + results.CodeUnaltered, "query.firehose.varied: " + results.CodeUnaltered}},
	{fault: "kill-pending:0.05", touches: []string{"query.firehose."}, says: "too much waits", checks: []string{"query.firehose.hot: " + results.CodeCompletes}},
}

var liarScenarios = []string{"ingest", "query.thread", "query.firehose"}

// TestEveryLieIsFoundByName has an honest relay and several liars in one run: each lie is found,
// none of them hangs the run or harms the honest relay, and none makes a liar the best at what it
// touches. The preflight is left out: what it catches is tested by itself, and what is measured
// must catch the lie all the same.
func TestEveryLieIsFoundByName(t *testing.T) {
	const runs = 4
	for i := range runs {
		var some []liar
		for k := i; k < len(liars); k += runs {
			some = append(some, liars[k])
		}
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			t.Parallel()
			liesAreFound(t, some)
		})
	}
}

func liesAreFound(t *testing.T, liars []liar) {
	out := t.TempDir()
	args := []string{"--quick", "--trials=1", "--events=800", "--samples=25", "--only=" + strings.Join(liarScenarios, ","), "--skip=preflight,calibration",
		"--timeout=4s", "--ready-timeout=8s", "--out", out}
	for _, l := range liars {
		args = append(args, "--relay="+l.name()+"="+refrelayCommand("--fault "+l.fault)) // its data outlast a restart
	}
	code, stdout, stderr := relaybenchWith(t, withHonest, append(args, honest())...)
	if code != exitFailed {
		t.Errorf("exit code %d, want %d\n%s", code, exitFailed, stderr)
	}
	r := recorded(t, out)
	complete(t, r, "honest", liarScenarios...)
	for _, l := range liars {
		t.Run(l.fault, func(t *testing.T) {
			l.isFound(t, r)
			for where, text := range map[string]string{"the error": stderr, "the report": stdout} {
				if l.stated && where == "the error" {
					continue
				}
				if !strings.Contains(text, l.name()+": ") && !strings.Contains(text, l.name()+" failed") && !strings.Contains(text, l.name()+" did not start") {
					t.Errorf("%s does not name the liar:\n%s", where, text)
				}
			}
			l.isNotCrowned(t, r)
		})
	}
	for name, text := range map[string]string{"stdout": stdout, "stderr": stderr} {
		if strings.Contains(text, "\x1b") || !utf8.ValidString(text) {
			t.Errorf("a relay's bytes reached %s unescaped", name)
		}
	}
}

// TestTrustInSignaturesIsFoundByThePreflight has a liar that every other scenario must find in
// order, since they publish nothing forged.
func TestTrustInSignaturesIsFoundByThePreflight(t *testing.T) {
	t.Parallel()
	only := []string{"preflight", "ingest.throughput"}
	if _, err := harness.Select(new(runFlags).scenarioKeys(), only, nil); err != nil {
		t.Skip("only a preflight sends forged events, and there is none: ", err)
	}
	out := t.TempDir()
	l := liar{fault: "no-verify", touches: []string{"ingest."}, says: "OK true", checks: []string{"preflight: " + results.CodeBadSignature, "preflight: " + results.CodeBadID}}
	code, _, stderr := relaybenchWith(t, withHonest, honest(), "--quick", "--trials=1", "--events=400", "--only="+strings.Join(only, ","), "--skip=calibration", "--timeout=5s", "--out", out,
		fmt.Sprintf("--relay=%s='%s' --listen 127.0.0.1:{port} --store memory --fault %s", l.name(), refrelayProgram, l.fault))
	if code != exitFailed {
		t.Errorf("exit code %d, want %d\n%s", code, exitFailed, stderr)
	}
	r := recorded(t, out)
	complete(t, r, "honest", "ingest.throughput")
	l.isFound(t, r)
	l.isNotCrowned(t, r)
}

func (l liar) isFound(t *testing.T, r *results.Record) {
	t.Helper()
	got := relay(t, r, l.name())
	want := l.outcome
	if want == "" {
		want = results.OutcomeOK
	}
	if got.Outcome != want || !strings.Contains(got.Reason, l.reason) {
		t.Errorf("outcome %s: %q, want %s: …%s…", got.Outcome, got.Reason, want, l.reason)
	}
	for i, check := range l.checks {
		scenario, check, _ := strings.Cut(check, ": ")
		f := finding(r, l.name(), scenario, check)
		want := results.Failed
		if l.stated {
			want = results.Stated
		}
		if f == nil || f.Verdict != want {
			t.Errorf("%s: finding %q: %+v, want it %s", scenario, check, f, want)
		} else if text := textOf(f) + "\n" + evidenceOf(f); i == 0 && !strings.Contains(text, l.says) {
			t.Errorf("%s: %s: %s, want …%s…", scenario, check, text, l.says)
		}
	}
}

// isNotCrowned looks at the report of a record in which the liar and the honest relay are alone,
// with trials enough to rank, and the liar a million times as good wherever it has a figure. Where
// a failed check bears on its figures it may not be crowned; that must be so at least of what the
// lie touches. Without its findings it must be crowned, or the test would prove nothing.
func (l liar) isNotCrowned(t *testing.T, r *results.Record) {
	t.Helper()
	duel := duel(r, "honest", l.name())
	out := relay(t, r, l.name()).Outcome != results.OutcomeOK
	barred := map[string]bool{} // whether all its figures in a scenario are, of those that it has
	for i := range duel.Measurements {
		if m := &duel.Measurements[i]; m.Relay == l.name() && m.Better != results.None && len(m.Trials) > 0 {
			so, known := barred[m.Scenario]
			barred[m.Scenario] = (so || !known) && len(duel.Barring(m)) > 0
		}
	}
	touched := func(scenario string) bool {
		return slices.ContainsFunc(l.touches, func(prefix string) bool { return strings.HasPrefix(scenario, prefix) })
	}
	for scenario, so := range barred {
		if touched(scenario) && !so && !out {
			t.Errorf("%s: no failed check bears on a figure of the liar", scenario)
		}
	}
	for _, row := range stars(t, duel, l.name()) {
		if touched(row) || barred[row] || out {
			t.Errorf("%s: the liar is the best", row)
		}
	}
	for i := range duel.Relays {
		duel.Relays[i].Outcome = results.OutcomeOK
	}
	duel.Findings = nil
	for i := range duel.Measurements { // and had it answered what the others answer
		m := &duel.Measurements[i]
		honest := slices.IndexFunc(duel.Measurements, func(o results.Measurement) bool {
			return o.Relay == "honest" && o.Scenario == m.Scenario && o.Metric == m.Metric && o.Labels.Equal(m.Labels)
		})
		if m.Exact && m.Better == results.None && honest >= 0 {
			m.Trials = duel.Measurements[honest].Trials
		}
	}
	crowned := stars(t, duel, l.name())
	for scenario := range barred {
		if touched(scenario) && !slices.Contains(crowned, scenario) {
			t.Errorf("%s: had nothing been found, the liar would not be crowned either: this test is blind", scenario)
		}
	}
}

// duel keeps two relays of a record, gives each figure ten trials, and makes the second relay's a
// million times as good.
func duel(r *results.Record, honest, liar string) *results.Record {
	d := *r
	others := func(name string) bool { return name != honest && name != liar }
	d.Relays = slices.DeleteFunc(slices.Clone(r.Relays), func(x results.Relay) bool { return others(x.Name) })
	d.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f results.Finding) bool { return others(f.Relay) })
	d.Measurements = slices.DeleteFunc(slices.Clone(r.Measurements), func(m results.Measurement) bool { return others(m.Relay) })
	for i := range d.Measurements {
		m := &d.Measurements[i]
		m.Status = nil // the harness's limits are no matter here
		value, ok := m.Value()
		if !ok || m.Exact || m.Better == results.None {
			continue
		}
		factor := 1.0
		switch {
		case m.Relay == honest:
		case m.Better == results.Higher:
			factor = 1e6
		default:
			factor = 1e-6
		}
		m.Trials = nil
		for k := range 10 {
			m.Trials = append(m.Trials, value*factor*(1+float64(k)/1000))
		}
	}
	return &d
}

var (
	scenarioHeading = regexp.MustCompile("^###.*\\(`([^`]+)`\\)")
	rowScenario     = regexp.MustCompile(`^\| ([a-z-]+): [^|]*\| (hot|varied)\b`)
)

// stars returns the scenarios in which the Markdown report has a star on the relay, a scenario once
// for each.
func stars(t *testing.T, r *results.Record, name string) []string {
	t.Helper()
	var text strings.Builder
	if err := report.Markdown(&text, r); err != nil {
		t.Fatal(err)
	}
	var found []string
	heading, column, inTable := "", -1, false
	for line := range strings.Lines(text.String()) {
		head := !inTable
		inTable = strings.HasPrefix(line, "|")
		switch {
		case strings.HasPrefix(line, "#"):
			heading = ""
			if m := scenarioHeading.FindStringSubmatch(line); m != nil {
				heading = m[1]
			}
		case inTable:
			cells := strings.Split(line, "|")
			i := slices.IndexFunc(cells, func(c string) bool { return strings.TrimSpace(c) == name })
			if head {
				column = i
				continue
			}
			// A relay a line, or a column.
			if !(i > 0 && strings.Contains(line, "★")) && !(column > 0 && strings.Contains(cells[column], "★")) {
				continue
			}
			row := heading
			if m := rowScenario.FindStringSubmatch(line); m != nil {
				row = "query." + m[1] + "." + m[2]
			}
			if row != "" { // else a sum over scenarios
				found = append(found, row)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestLiesAreFoundByReconciling pairs a liar with an honest relay: what the honest one lacks in the
// end is laid at the liar's door, by id.
func TestLiesAreFoundByReconciling(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault    string
		findings []string // required failures, each as "scenario: check"
		says     string   // of the events, in each of them
		named    string   // before an id, in the evidence
	}{
		{"ack-without-store:0.01", []string{"negentropy: " + results.CodeHoldsSeeded, "negentropy.identical: " + results.CodeHoldsUnion}, "missing: acknowledged and not found", "lost "},
		{"id-mismatch", []string{"negentropy.transfer: " + results.CodeUnaltered}, "with other fields", "altered .*"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			code, _, stderr := relaybenchWith(t, withHonest, honest(), "--quick", "--trials=1", "--events=800", "--only=negentropy", "--skip=preflight,calibration", "--timeout=10s", "--out", out,
				fmt.Sprintf("--relay=liar='%s' --listen 127.0.0.1:{port} --store memory --fault %s", refrelayProgram, test.fault))
			if code != exitFailed {
				t.Errorf("exit code %d, want %d\n%s", code, exitFailed, stderr)
			}
			r := recorded(t, out)
			named := regexp.MustCompile("(?m)" + test.named + " [0-9a-f]{64}$")
			for _, key := range test.findings {
				scenario, check, _ := strings.Cut(key, ": ")
				f := pairFinding(t, r, "liar", scenario, check)
				if f.Verdict != results.Failed || !strings.Contains(textOf(f), test.says) || !named.MatchString(evidenceOf(&f)) {
					t.Errorf("%s: %+v, want a required failure that names the ids", key, f)
				}
			}
			for _, f := range r.Findings {
				if f.Blames == "honest" {
					t.Errorf("the honest relay: %s: %s: %s %+v", f.Scenario, f.Code, textOf(f), f.Evidence)
				}
			}
			if best := stars(t, duel(r, "honest", "liar"), "liar"); len(best) > 0 {
				t.Errorf("the liar is the best in %v", best)
			}
		})
	}
}
