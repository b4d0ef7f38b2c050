package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"relaybench/harness"
	"relaybench/harness/measure"
	"relaybench/report"
)

// liar is a way in which a relay misbehaves, and how a run must show it.
type liar struct {
	fault string

	// The required checks that must have failed, each as "scenario: check", and what the first of them must say.
	checks []string
	says   string

	// How the relay must have fared as a whole.
	outcome measure.Outcome // "" for OK
	reason  string          // part of it

	// What the lie touches: scenarios in which the relay may not be the best, "" for all.
	touches []string
}

func (l liar) name() string {
	name, _, _ := strings.Cut(l.fault, ":")
	return name
}

var (
	ingestAndQueries = []string{""}
	answersOnly      = []string{"query."}
)

var liars = []liar{
	{fault: "ack-without-store:0.02", touches: []string{"ingest.throughput", "query.firehose."}, says: "acknowledged events are missing",
		checks: []string{"ingest.throughput: nothing acknowledged is missing", "query.firehose.hot: returns what the model returns"}},
	{fault: "drop-results:0.02", touches: []string{"ingest.throughput", "query.firehose."}, says: "acknowledged events are missing",
		checks: []string{"ingest.throughput: nothing acknowledged is missing", "query.firehose.hot: returns what the model returns"}},
	{fault: "extra-results", touches: []string{"ingest.throughput", "query."}, says: "had not been asked for",
		checks: []string{"ingest.throughput: returns only what was asked for", "query.thread.hot: returns what the model returns", "query.firehose.hot: returns what the model returns"}},
	{fault: "wrong-order", touches: answersOnly, says: "0 of",
		checks: []string{"query.firehose.hot: returns what the model returns", "query.firehose.varied: returns what the model returns", "query.thread.hot: returns what the model returns"}},
	{fault: "ignore-limit", touches: []string{"query.firehose.hot"}, says: "0 of",
		checks: []string{"query.firehose.hot: returns what the model returns"}},
	{fault: "eose-early", touches: ingestAndQueries, says: "0 of",
		checks: []string{"ingest.visibility: accepted events become queryable", "ingest.throughput: nothing acknowledged is missing", "query.thread.hot: returns what the model returns"}},
	{fault: "closed-midway", touches: []string{"ingest.throughput", "query."}, outcome: measure.OutcomeFailed, reason: "CLOSED", says: "that is enough",
		checks: []string{"ingest.throughput: completes", "query.firehose.hot: is answered with EOSE", "query.thread.hot: is answered with EOSE"}},
	{fault: "notice-throttle:5/s", touches: []string{"ingest.", "query.firehose."}, says: "refused",
		checks: []string{"ingest.throughput: accepts what a compliant relay keeps", "ingest.visibility: accepts single events"}},
	{fault: "slow-ok:9000", touches: ingestAndQueries, outcome: measure.OutcomeFailed, reason: "made no progress", says: "made no progress",
		checks: []string{"ingest.visibility: completes", "ingest.paced: completes"}},
	{fault: "half-open", touches: ingestAndQueries, outcome: measure.OutcomeNoStart, reason: "did not answer"},
	{fault: "die-after:300", touches: ingestAndQueries, outcome: measure.OutcomeFailed, reason: "died in ingest.throughput", says: "killed",
		checks: []string{"ingest.throughput: completes"}},
	{fault: "garbage-frames", touches: []string{"ingest.throughput", "query."}, says: "no message",
		checks: []string{"ingest.throughput: sends only messages", "query.thread.hot: sends only messages"}},
	{fault: "id-mismatch", touches: []string{"ingest.throughput", "query."}, says: "other fields",
		checks: []string{"ingest.throughput: events come back as they were sent", "query.thread.hot: events come back as they were sent", "query.firehose.varied: events come back as they were sent"}},
	{fault: "kill-pending:0.05", touches: ingestAndQueries, outcome: measure.OutcomeFailed, reason: "too much waits", says: "too much waits",
		checks: []string{"ingest.throughput: completes", "query.firehose.hot: completes"}},
}

var liarScenarios = []string{"ingest", "query.thread", "query.firehose"}

// TestEveryLieIsFoundByName has an honest relay and several liars in one run: each lie is found, none of them hangs the run or harms the honest
// relay, and none makes a liar the best at what it touches. The preflight is left out: what it catches is tested by itself, and what is measured must
// catch the lie all the same.
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
		args = append(args, fmt.Sprintf("--relay=%s='%s' --listen 127.0.0.1:{port} --store memory --fault %s", l.name(), refrelayProgram, l.fault))
	}
	code, stdout, stderr := relaybenchWith(t, withHonest, append(args, honest())...)
	if code != exitFailed {
		t.Errorf("exit code %d, want %d\n%s", code, exitFailed, stderr)
	}
	r := results(t, out)
	complete(t, r, "honest", liarScenarios...)
	for _, l := range liars {
		t.Run(l.fault, func(t *testing.T) {
			l.isFound(t, r)
			for where, text := range map[string]string{"the error": stderr, "the report": stdout} {
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

// TestTrustInSignaturesIsFoundByThePreflight has a liar that every other scenario must find in order, since they publish nothing forged.
func TestTrustInSignaturesIsFoundByThePreflight(t *testing.T) {
	t.Parallel()
	only := []string{"preflight", "ingest.throughput"}
	if _, err := harness.Select(new(runFlags).allScenarios(), only, nil); err != nil {
		t.Skip("only a preflight sends forged events, and there is none: ", err)
	}
	out := t.TempDir()
	l := liar{fault: "no-verify", touches: ingestAndQueries, says: "accepted", checks: []string{"preflight: refuses a bad signature", "preflight: refuses a bad id"}}
	code, _, stderr := relaybenchWith(t, withHonest, honest(), "--quick", "--trials=1", "--events=400", "--only="+strings.Join(only, ","), "--skip=calibration", "--timeout=5s", "--out", out,
		fmt.Sprintf("--relay=%s='%s' --listen 127.0.0.1:{port} --store memory --fault %s", l.name(), refrelayProgram, l.fault))
	if code != exitFailed {
		t.Errorf("exit code %d, want %d\n%s", code, exitFailed, stderr)
	}
	r := results(t, out)
	complete(t, r, "honest", "ingest.throughput")
	l.isFound(t, r)
	l.isNotCrowned(t, r)
}

func (l liar) isFound(t *testing.T, r *measure.Record) {
	t.Helper()
	got := relay(t, r, l.name())
	want := l.outcome
	if want == "" {
		want = measure.OutcomeOK
	}
	if got.Outcome != want || !strings.Contains(got.Reason, l.reason) {
		t.Errorf("outcome %s: %q, want %s: …%s…", got.Outcome, got.Reason, want, l.reason)
	}
	for i, check := range l.checks {
		scenario, check, _ := strings.Cut(check, ": ")
		f := finding(r, l.name(), scenario, check)
		if f == nil || f.OK || !f.Required {
			t.Errorf("%s: finding %q: %+v, want a required failure", scenario, check, f)
		} else if text := f.Detail + "\n" + strings.Join(f.Evidence, "\n"); i == 0 && !strings.Contains(text, l.says) {
			t.Errorf("%s: %s: %s, want …%s…", scenario, check, text, l.says)
		}
	}
}

// isNotCrowned looks at the report of a record in which the liar and the honest relay are alone, with trials enough to rank, and the liar ten times as
// good wherever it has a figure. Without its findings it must be crowned, or the test would prove nothing.
func (l liar) isNotCrowned(t *testing.T, r *measure.Record) {
	t.Helper()
	duel := duel(r, "honest", l.name())
	for _, row := range stars(t, duel, l.name()) {
		if slices.ContainsFunc(l.touches, func(prefix string) bool { return strings.HasPrefix(row, prefix) }) {
			t.Errorf("%s: the liar is the best", row)
		}
	}
	for i := range duel.Relays {
		duel.Relays[i].Outcome = measure.OutcomeOK
	}
	duel.Findings = nil
	measured := slices.ContainsFunc(duel.Measurements, func(m measure.Measurement) bool { return m.Relay == l.name() && m.Better != measure.None })
	if measured && len(stars(t, duel, l.name())) == 0 {
		t.Error("had nothing been found, the liar would not be crowned either: this test is blind")
	}
}

// duel keeps two relays of a record, gives each figure ten trials, and makes the second relay's ten times as good.
func duel(r *measure.Record, honest, liar string) *measure.Record {
	d := *r
	others := func(name string) bool { return name != honest && name != liar }
	d.Relays = slices.DeleteFunc(slices.Clone(r.Relays), func(x measure.Relay) bool { return others(x.Name) })
	d.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f measure.Finding) bool { return others(f.Relay) })
	d.Measurements = slices.DeleteFunc(slices.Clone(r.Measurements), func(m measure.Measurement) bool { return others(m.Relay) })
	for i := range d.Measurements {
		m := &d.Measurements[i]
		m.Note = "" // the harness's limits are no matter here
		value, ok := m.Value()
		if !ok || m.Exact || m.Better == measure.None {
			continue
		}
		factor := 1.0
		switch {
		case m.Relay == honest:
		case m.Better == measure.Higher:
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
	rowScenario     = regexp.MustCompile("^\\| `([^`]+)`")
)

// stars returns the scenarios in which the Markdown report has a star on the relay, a scenario once for each.
func stars(t *testing.T, r *measure.Record, name string) []string {
	t.Helper()
	var text strings.Builder
	if err := report.Markdown(&text, r); err != nil {
		t.Fatal(err)
	}
	var found []string
	heading, column := "", -1
	for line := range strings.Lines(text.String()) {
		switch {
		case strings.HasPrefix(line, "#"):
			heading, column = "", -1
			if m := scenarioHeading.FindStringSubmatch(line); m != nil {
				heading = m[1]
			}
		case strings.HasPrefix(line, "|"):
			cells := strings.Split(line, "|")
			if i := slices.IndexFunc(cells, func(c string) bool { return strings.TrimSpace(c) == name }); i > 1 {
				column = i
			}
			if column < 0 || column >= len(cells) || !strings.Contains(cells[column], "★") {
				continue
			}
			row := heading
			if m := rowScenario.FindStringSubmatch(line); m != nil {
				row = "query." + m[1]
			}
			if row != "" { // else a sum over scenarios
				found = append(found, row)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestLiesAreFoundByReconciling pairs a liar with an honest relay: what the honest one lacks in the end is laid at the liar's door, by id.
func TestLiesAreFoundByReconciling(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault    string
		findings []string // required failures, each as "scenario: check"
		says     string   // of the events, in each of them
		named    string   // before an id, in the evidence
	}{
		{"ack-without-store:0.01", []string{"negentropy: holds its share after seeding", "negentropy.identical: converges"}, "missing: acknowledged but lost", "acknowledged but lost: "},
		{"id-mismatch", []string{"negentropy.transfer: events come back as they were sent"}, "with other fields", "altered: "},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			code, _, stderr := relaybenchWith(t, withHonest, honest(), "--quick", "--trials=1", "--events=800", "--only=negentropy", "--skip=preflight,calibration", "--timeout=10s", "--out", out,
				fmt.Sprintf("--relay=liar='%s' --listen 127.0.0.1:{port} --store memory --fault %s", refrelayProgram, test.fault))
			if code != exitFailed {
				t.Errorf("exit code %d, want %d\n%s", code, exitFailed, stderr)
			}
			r := results(t, out)
			named := regexp.MustCompile(test.named + "[0-9a-f]{64}$")
			for _, key := range test.findings {
				scenario, check, _ := strings.Cut(key, ": ")
				f := pairFinding(t, r, "liar", scenario, check)
				if f.OK || !f.Required || !strings.Contains(f.Detail, test.says) || !slices.ContainsFunc(f.Evidence, named.MatchString) {
					t.Errorf("%s: %+v, want a required failure that names the ids", key, f)
				}
			}
			for _, f := range r.Findings {
				// What was never delivered is missing, and so is what it would have superseded still there.
				blameless := f.Check == "converges" && strings.Contains(f.Detail, "missing: never delivered") && strings.Count(f.Detail, "missing:") == 1
				if f.Relay == "honest" && !f.OK && !blameless {
					t.Errorf("the honest relay: %s: %s: %s %q", f.Scenario, f.Check, f.Detail, f.Evidence)
				}
			}
			if best := stars(t, duel(r, "honest", "liar"), "liar"); len(best) > 0 {
				t.Errorf("the liar is the best in %v", best)
			}
		})
	}
}
