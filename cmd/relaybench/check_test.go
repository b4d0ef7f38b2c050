package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"relaybench/harness/preflight"
	"relaybench/report"
	"relaybench/results"
)

// checkedRelay is one relay of check --json.
type checkedRelay struct {
	Name, Durability string
	Outcome          results.Outcome
	Reason           string
	Passed           bool
	Capabilities     map[string]string
	Checks           []checkLine
}

// checkLine is one check of check --json.
type checkLine struct {
	Title, Text string
	results.Finding
}

// departs lists the codes of the checks that failed, and of those whose departures are stated.
func (r *checkedRelay) departs() (failed, stated []string) {
	for _, c := range r.Checks {
		switch c.Verdict {
		case results.Failed:
			failed = append(failed, c.Code)
		case results.Stated:
			stated = append(stated, c.Code)
		}
	}
	return failed, stated
}

// checkJSON runs relaybench check --json and returns the relays by name.
func checkJSON(t *testing.T, want int, args ...string) map[string]checkedRelay {
	t.Helper()
	code, stdout, stderr := relaybench(t, append([]string{"check", "--json"}, args...)...)
	if code != want {
		t.Errorf("exit code %d, want %d\n%s", code, want, stderr)
	}
	var document struct{ Relays []checkedRelay }
	if err := json.Unmarshal([]byte(stdout), &document); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	for i := range len(stdout) {
		if c := stdout[i]; c >= 0x7f || c < ' ' && c != '\n' {
			t.Fatalf("byte %#x stands in the JSON as it is", c)
		}
	}
	found := make(map[string]checkedRelay)
	for _, r := range document.Relays {
		found[r.Name] = r
	}
	return found
}

func TestTheReferenceRelayPassesEveryCheck(t *testing.T) {
	t.Parallel()
	found := checkJSON(t, exitDone, "ref-bolt", "ref-sqlite", "ref-memory")
	if len(found) != 3 {
		t.Errorf("%d relays, want the three named", len(found))
	}
	for name, r := range found {
		if !r.Passed || len(r.Checks) == 0 {
			t.Errorf("%s did not pass", name)
		}
		for _, v := range r.Checks {
			if v.Verdict == results.Failed || v.Verdict == results.Undecided || v.Title == "" || v.Text == "" {
				t.Errorf("%s: %s: %s: %s: %s %+v", name, v.Code, v.Title, v.Verdict, v.Text, v.Evidence)
			}
		}
		for capability, want := range map[string]string{
			"NIP-09": "yes", "NIP-40": "yes", "NIP-45": "yes", "NIP-62": "yes", "NIP-70": "yes", "NIP-77": "yes", "NIP-42": "no challenge", "compression": "none", "NIP-11": "yes", "NIP-50": "no: CLOSED",
			"subscription cap": "64, then CLOSED", "message size": "at least 65536", "order of ties": "lowest id first", "throttling": "none",
		} {
			if got := r.Capabilities[capability]; !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s: %q, want %q", name, capability, got, want)
			}
		}
		// The flood ends by the clock. What was taken by then, all 1,100 events unless the machine
		// is busy, comes back without a limit.
		var taken, clamp, free int
		fmt.Sscanf(r.Capabilities["throttling"], "none seen: %d events", &taken)
		fmt.Sscanf(r.Capabilities["limit clamp"], "none up to %d events", &clamp)
		fmt.Sscanf(r.Capabilities["default limit"], "none up to %d events", &free)
		if taken == 0 || taken > 1100 || clamp != taken || free != taken {
			t.Errorf("%s: %d events were taken, %d come back with a limit and %d without (%q, %q, %q)", name, taken, clamp, free,
				r.Capabilities["throttling"], r.Capabilities["limit clamp"], r.Capabilities["default limit"])
		}
	}
}

func TestLimitsOfTheReferenceRelayAreFound(t *testing.T) {
	t.Parallel()
	self := refrelayProgram + " --listen 127.0.0.1:{port} --max-limit 250 --max-subscriptions 20 --max-event-bytes 20000"
	r := checkJSON(t, exitDone, "mine", "--relay=mine="+self)["mine"]
	for capability, want := range map[string]string{"limit clamp": "250", "default limit": "250", "subscription cap": "20, then CLOSED", "message size": "16384 bytes; an event of 32768 bytes: "} {
		if got := r.Capabilities[capability]; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", capability, got, want)
		}
	}
}

// TestWhatCouldNotBeJudgedIsNotPassed: a relay that ends every longer answer by CLOSED keeps most
// checks open.
func TestWhatCouldNotBeJudgedIsNotPassed(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := relaybench(t, "check", "--json", "mine", "--relay=mine="+refrelayProgram+" --listen 127.0.0.1:{port} --fault closed-midway")
	if code != exitFailed || !strings.Contains(stderr, "checks that could not be judged: mine (") || !strings.Contains(stdout, `"passed": false`) {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestChecksCatchFaultsByName(t *testing.T) {
	t.Parallel()
	const first = results.CodeStores
	for _, test := range []struct {
		fault  string
		checks []string // among those that fail
	}{
		{"ack-without-store:1", []string{first}},
		{"id-mismatch", []string{first, results.CodeText}},
		{"half-open", nil},
		{"wrong-order", []string{results.CodeOrder}},
		{"ignore-limit", []string{results.CodeLimit}},
		{"no-verify", []string{results.CodeBadSignature, results.CodeBadID}},
		{"notice-throttle:50/s", []string{results.CodeThrottles}},
		{"die-after:600", []string{results.CodeSurvives}},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			args := []string{"mine", "--ready-timeout=2s", "--relay=mine=" + refrelayProgram + " --listen 127.0.0.1:{port} --fault " + test.fault}
			r := checkJSON(t, exitFailed, args...)["mine"]
			required, _ := r.departs()
			if r.Passed || (r.Outcome == results.OutcomeNoStart) != (test.checks == nil) {
				t.Errorf("passed %t, outcome %s", r.Passed, r.Outcome)
			}
			for _, check := range test.checks {
				if !slices.Contains(required, check) {
					t.Errorf("failed %q, want %q among them", required, check)
				}
			}
		})
	}
}

func TestCheckOutlivesRelaysThatMisbehave(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode    string
		outcome results.Outcome
		reason  string
		check   string // that failed
		open    string // that could not be asked, alone
	}{
		{mode: "exits", outcome: results.OutcomeNoStart, reason: "exited with status 3"},
		{mode: "deaf", outcome: results.OutcomeNoStart, reason: "nothing listened"},
		{mode: "mute", outcome: results.OutcomeNoStart, reason: "did not answer"},
		{mode: "dies", outcome: results.OutcomeOK, check: results.CodeStores},
		{mode: "stops", outcome: results.OutcomeOK, check: results.CodeStores},
		{mode: "endless", outcome: results.OutcomeOK, check: results.CodeStores},
		{mode: "chatters", outcome: results.OutcomeOK, open: results.CodeStores}, // it answers no REQ, and says something all the time
		{mode: "garbage", outcome: results.OutcomeOK, check: results.CodeStores},
		{mode: "refuses", outcome: results.OutcomeOK, check: results.CodeStores},
		{mode: "hangsup", outcome: results.OutcomeOK, check: results.CodeStores},
	} {
		t.Run(test.mode, func(t *testing.T) {
			t.Parallel()
			r := checkJSON(t, exitFailed, "mine", "--ready-timeout=3s", hostile(t, "mine", test.mode))["mine"]
			required, _ := r.departs()
			if test.open != "" && (r.Passed || len(r.Checks) != 1 || r.Checks[0].Code != test.open || r.Checks[0].Verdict != results.Undecided) {
				t.Errorf("passed %t, checks %+v", r.Passed, r.Checks)
			}
			if r.Outcome != test.outcome || !strings.Contains(r.Reason, test.reason) || test.check != "" && !slices.Equal(required, []string{test.check}) {
				t.Errorf("outcome %s %q, failed %q", r.Outcome, r.Reason, required)
			}
			if test.mode != "refuses" && test.mode != "exits" {
				return
			}
			code, stdout, stderr := relaybench(t, "check", "mine", hostile(t, "mine", test.mode))
			if code != exitFailed || strings.ContainsAny(stdout+stderr, "\x1b\u202e") {
				t.Errorf("exit code %d; escape sequences must not reach the terminal:\n%q\n%q", code, stdout, stderr)
			}
			for line := range strings.Lines(stdout) {
				if len([]rune(line)) > 101 {
					t.Errorf("a line of %d characters: %s", len([]rune(line)), line)
				}
			}
			if !strings.Contains(stdout, "✗") {
				t.Errorf("nothing is marked as failed:\n%s", stdout)
			}
		})
	}
}

func TestCheckRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "strfri"}, "strfri"},
		{[]string{"check", "mine=ws://127.0.0.1:1"}, "--relay"},
		{[]string{"check", "--max-event-bytes=5"}, "--max-event-bytes 5"},
		{[]string{"check", "--quick"}, "--quick"},
	} {
		code, _, stderr := relaybench(t, test.args...)
		if code != exitUsage || !strings.Contains(stderr, test.want) {
			t.Errorf("%q: exit code %d, %q", test.args, code, stderr)
		}
	}
}

// TestRunInspectsRelaysFirst: what the preflight found stands in the record, beside capabilities
// that outlast later boots, and bars the relay.
func TestRunInspectsRelaysFirst(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	lax := "--relay=lax=" + refrelayProgram + " --listen 127.0.0.1:{port} --store bolt --dir {dir} --no-verify"
	code, stdout, stderr := relaybenchWith(t, withoutSQLite, "--quick", "--events=300", "--trials=2", "--only=ingest.throughput,storage", "--skip=calibration", "--out", out, lax)
	if code != exitFailed {
		t.Errorf("exit code %d, want %d\n%s", code, exitFailed, stderr)
	}
	r := recorded(t, out)
	for _, check := range []string{results.CodeBadSignature, results.CodeBadID} {
		if f := finding(r, "lax", preflight.Scenario, check); f == nil || f.Verdict != results.Failed {
			t.Errorf("lax: %s: %+v, want a required failure", check, f)
		}
		if f := finding(r, "ref-bolt", preflight.Scenario, check); f == nil || f.Verdict != results.Passed {
			t.Errorf("ref-bolt: %s: %+v, want it passed", check, f)
		}
	}
	for _, name := range []string{"lax", "ref-bolt"} {
		got := relay(t, r, name)
		if got.Outcome != results.OutcomeOK || got.Capabilities["NIP-77"] != "yes" {
			t.Errorf("%s: outcome %s, capabilities %v", name, got.Outcome, got.Capabilities)
		}
	}
	if title, _ := report.Words(&results.Finding{Code: results.CodeBadSignature}); !strings.Contains(stdout, "¹ lax failed: "+title) {
		t.Errorf("the report does not say why lax is barred:\n%s", stdout)
	}
	for _, m := range r.Measurements {
		if m.Scenario == preflight.Scenario {
			t.Errorf("the preflight measured %s", m.Metric)
		}
		if m.Scenario == "ingest.throughput" && m.Metric == "accepted" && len(m.Trials) != 2 {
			t.Errorf("%s: %d values for 2 trials", m.Relay, len(m.Trials))
		}
	}
}

func TestThePreflightCanBeLeftOut(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	if code, _, stderr := relaybenchWith(t, withoutSQLite, "--quick", "--events=300", "--trials=1", "--only=storage", "--skip=preflight,calibration", "--out", out); code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	for _, f := range recorded(t, out).Findings {
		if f.Scenario == preflight.Scenario {
			t.Errorf("%s was asked", f.Code)
		}
	}
}
