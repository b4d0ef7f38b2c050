package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"relaybench/results"
)

// syncValue returns the one value of a sink and a source.
func syncValue(t *testing.T, r *results.Record, source, sink, mode, metric string) float64 {
	t.Helper()
	return value(t, r, sink, source, "sync."+mode, metric)
}

func syncFinding(r *results.Record, source, sink, mode, check string) *results.Finding {
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Relay == sink && f.Peer == source && f.Scenario == "sync."+mode && f.Code == check {
			return f
		}
	}
	return nil
}

// TestRelaysFillEachOtherInEveryMode syncs the two forms of the reference relay with each other and
// with themselves.
func TestRelaysFillEachOtherInEveryMode(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, stdout, stderr := relaybench(t, "sync", "--quick", "--events=800", "--page=300", "--seed-by=import", "--skip=preflight,calibration", "--out", out)
	if code != exitDone {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	for _, f := range r.Findings {
		if f.Verdict == results.Failed || f.Verdict == results.Undecided {
			t.Errorf("%s with %s: %s: %s: %s %+v", f.Relay, f.Peer, f.Scenario, f.Code, textOf(f), f.Evidence)
		}
	}
	for _, source := range []string{"ref-bolt", "ref-sqlite"} {
		for _, sink := range []string{"ref-bolt", "ref-sqlite"} {
			var expected float64
			for _, mode := range []string{"native", "negentropy", "req"} {
				want, got := syncValue(t, r, source, sink, mode, "expected"), syncValue(t, r, source, sink, mode, "delivered")
				if want != got || want < 700 || expected != 0 && want != expected {
					t.Errorf("%s → %s by %s: %v of %v events", source, sink, mode, got, want)
				}
				expected = want
			}
			if pages := syncValue(t, r, source, sink, "req", "pages"); pages < expected/300 {
				t.Errorf("%v events in %v pages of 300", expected, pages)
			}
			if left := syncValue(t, r, source, sink, "negentropy", "stragglers"); left != 0 {
				t.Errorf("%v stragglers", left)
			}
		}
	}
	for _, mode := range []string{"native", "negentropy", "req"} { // of which each has its own progress
		if !strings.Contains(stderr, "ref-bolt → ref-sqlite, sync."+mode+": boots") {
			t.Errorf("the progress does not tell of sync.%s:\n%s", mode, stderr)
		}
	}
	if !strings.Contains(stdout, "from ↓  to →") {
		t.Errorf("no matrix in\n%s", stdout)
	}
}

// TestASourceThatKillsSlowReadersIsNamed pulls from a relay that drops whoever leaves too much
// unread, into one that is slow.
func TestASourceThatKillsSlowReadersIsNamed(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, stdout, stderr := relaybenchWith(t, []string{"SKIP_REF=1"}, "sync", "--quick", "--events=3000", "--sync-modes=req,negentropy", "--skip=preflight,calibration", "--out", out,
		"--relay", "killer='"+refrelayProgram+"' --listen 127.0.0.1:{port} --store memory --fault kill-pending:0.2",
		"--relay", "slow='"+refrelayProgram+"' --listen 127.0.0.1:{port} --store memory --delay 60ms",
		"--publishers=1", "--window=100")
	if code != exitFailed || strings.Contains(stderr, "slow: 1 check failed") || !strings.Contains(stderr, "killer: ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	f := syncFinding(r, "killer", "slow", "req", results.CodeComplete)
	if f == nil || f.Verdict != results.Failed || f.Blames != "killer" || !strings.Contains(textOf(f), "stopped by the source") || !strings.Contains(textOf(f), "too slow") || !strings.Contains(textOf(f), "of the page still to come") {
		t.Errorf("%+v", f)
	}
	for _, f := range r.Findings {
		if f.Blames == "slow" {
			t.Errorf("the sink is blamed for what the source does: %+v", f)
		}
	}
	for i := range r.Measurements { // as a sink it does no harm
		if m := &r.Measurements[i]; m.Relay == "killer" && m.Peer == "slow" && len(r.Barring(m)) > 0 {
			t.Errorf("%s of %s → %s is barred: %+v", m.Metric, m.Peer, m.Relay, r.Barring(m)[0])
		}
	}
	if want, got := syncValue(t, r, "killer", "slow", "negentropy", "expected"), syncValue(t, r, "killer", "slow", "negentropy", "delivered"); want != got || want == 0 {
		t.Errorf("%v of %v events by negentropy", got, want)
	}
	for i := range r.Measurements {
		if m := &r.Measurements[i]; m.Scenario == "sync.req" && m.Peer == "killer" && m.Relay == "slow" && m.Metric == "records/s" && m.Is(results.StatusIncomplete) == nil {
			t.Error("the rate of a part passes for that of the whole")
		}
	}
	if !strings.Contains(stdout, "✗ killer → slow: stopped by the source") {
		t.Errorf("the report does not say what happened:\n%s", stdout)
	}
}

// TestEachSideGetsWhatItLacks syncs both ways, and pushes.
func TestEachSideGetsWhatItLacks(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"up", "both"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			if code, _, stderr := relaybenchWith(t, withoutSQLite, "sync", "--quick", "--events=400", "--sync-modes=negentropy", "--dir="+dir, "--skip=preflight,calibration", "--out", out); code != exitDone {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			r := recorded(t, out)
			f := syncFinding(r, "ref-bolt", "ref-bolt", "negentropy", results.CodeHoldsSource)
			if f == nil || f.Verdict != results.Passed {
				t.Errorf("%+v", f)
			}
			if got := syncValue(t, r, "ref-bolt", "ref-bolt", "negentropy", "delivered"); got == 0 {
				t.Error("nothing went over")
			}
		})
	}
}

// TestRelaysWithoutAWayAreSaidToHaveNone leaves out what a relay cannot do.
func TestRelaysWithoutAWayAreSaidToHaveNone(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, stdout, _ := relaybenchWith(t, []string{"SKIP_REF=1"}, "sync", "--quick", "--events=100", "--skip=preflight,calibration", "--out", out, hostile(t, "mine", "refuses"))
	if code != exitDone && code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	r := recorded(t, out)
	for mode, why := range map[string]string{"native": "names no sync command", "negentropy": "NIP-77"} {
		if f := syncFinding(r, "mine", "mine", mode, results.CodeHasWay); f == nil || f.Verdict != results.Stated || !strings.Contains(textOf(f), why) {
			t.Errorf("%s: %+v", mode, f)
		}
	}
	if !strings.Contains(stdout, "n/a") {
		t.Errorf("no n/a in\n%s", stdout)
	}
}

func TestSyncFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"--sync-modes=carrier-pigeon": "give native, negentropy or req", "--dir=sideways": "give down, up or both", "--page=-1": "--page -1", "--page=0": "--page 0", "--cell-time=-1s": "--cell-time -1s"} {
		code, _, stderr := relaybench(t, "sync", flag)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q", flag, code, stderr)
		}
	}
}

// TestModesAreLeftOutByTheKeysOfReports, which name a mode as a scenario.
func TestModesAreLeftOutByTheKeysOfReports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		modes, skip []string
		left        string // keys
	}{
		{nil, []string{"sync.native", "storage"}, "[sync.negentropy sync.req] <nil>"},
		{[]string{"native", "req"}, []string{"sync.req"}, "[sync.native] <nil>"},
		{[]string{"native"}, []string{"sync.native"}, "[] <nil>"},
		{nil, []string{"sync.carrier-pigeon"}, "[] scenario pattern \"sync.carrier-pigeon\" matches no scenario"},
	} {
		f := runFlags{only: []string{"sync"}, skip: c.skip, sync: true, syncModes: c.modes}
		chosen, err := f.choose()
		chosen = slices.DeleteFunc(chosen, isStage)
		if got := fmt.Sprint(chosen, err); got != c.left {
			t.Errorf("%v without %v: %s", c.modes, c.skip, got)
		}
	}
}

// TestHelpTellsTheDefaultsOfTheVerb since they differ from those of run.
func TestHelpTellsTheDefaultsOfTheVerb(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string][]string{"sync": {"(default 1)", "(default sync)"}, "fetch": {"(default 1)", "(default fetch)"}, "run": {"(default 3)"}} {
		_, stdout, _ := relaybench(t, verb, "--help")
		for line := range strings.Lines(stdout) {
			trials, only := strings.Contains(line, "--trials int "), strings.Contains(line, "--only strings ")
			if trials && !strings.Contains(line, want[0]) || only && len(want) > 1 && !strings.Contains(line, want[1]) {
				t.Errorf("%s: %q lacks one of %q", verb, line, want)
			}
		}
	}
}

// TestWhatASourceDoesIsNoFailureOfTheSink pulls from relays that do not send what they hold, send
// it altered, or die.
func TestWhatASourceDoesIsNoFailureOfTheSink(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault, check, detail string
		modes                []string
	}{
		{"drop-results:0.2", results.CodeSendsHeld, "events that it holds, or acknowledged, did not come", []string{"negentropy", "req"}},
		{"id-mismatch", results.CodeSendsHeld, "came with other fields than they were signed with", []string{"negentropy", "req"}},
		{"die-after:60", results.CodeServesSource, "bad died in seeding: killed by signal", []string{"req"}},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			code, _, stderr := relaybenchWith(t, []string{"SKIP_REF=1"}, "sync", "--quick", "--events=200", "--sync-modes="+strings.Join(test.modes, ","), "--skip=preflight,calibration", "--out", out,
				"--relay", "bad='"+refrelayProgram+"' --listen 127.0.0.1:{port} --store memory --fault "+test.fault,
				"--relay", "good='"+refrelayProgram+"' --listen 127.0.0.1:{port} --store memory")
			last := stderr[strings.LastIndex(stderr, "relaybench: ")+1:]
			if code != exitFailed || !strings.Contains(last, "bad: ") || strings.Contains(last, "good: ") {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			r := recorded(t, out)
			for _, mode := range test.modes {
				if f := syncFinding(r, "", "bad", mode, test.check); f == nil || f.Verdict != results.Failed || !strings.Contains(textOf(f), test.detail) {
					t.Errorf("%s: of the source: %+v", mode, f)
				}
				for i := range r.Findings {
					if f := &r.Findings[i]; f.Relay == "good" && f.Verdict == results.Failed {
						t.Errorf("%s: of the sink: %+v", mode, f)
					}
				}
			}
		})
	}
}

// TestASecondThatIsNoPageIsNobodysFailure asks for less at once than came in one second.
func TestASecondThatIsNoPageIsNobodysFailure(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, stdout, stderr := relaybenchWith(t, []string{"SKIP_REF=1"}, "sync", "--quick", "--events=100", "--sync-modes=req", "--page=1", "--skip=preflight,calibration", "--out", out,
		"--relay", "capped='"+refrelayProgram+"' --listen 127.0.0.1:{port} --store memory --max-limit 1")
	if code != exitDone || !strings.Contains(stdout, "cannot be asked for by time") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	r := recorded(t, out)
	if f := syncFinding(r, "capped", "capped", "req", results.CodeComplete); f == nil || f.Verdict != results.Stated || !strings.Contains(textOf(f), "seconds hold more events than came in one answer") {
		t.Errorf("%+v", f)
	}
}

// TestSyncBlamesNobodyForACut: a time in which nobody could have moved anything is the user's own.
func TestSyncBlamesNobodyForACut(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, stdout, stderr := relaybenchWith(t, []string{"SKIP_REF=1"}, "sync", "--quick", "--events=100", "--sync-modes=req,negentropy", "--cell-time=1ns", "--skip=preflight,calibration",
		"--out", out, "--relay", "one='"+refrelayProgram+"' --listen 127.0.0.1:{port} --store memory")
	if code != exitDone || !strings.Contains(stdout, "0 of ") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	r := recorded(t, out)
	for _, mode := range []string{"req", "negentropy"} {
		if f := syncFinding(r, "one", "one", mode, results.CodeHoldsSource); f == nil || f.Verdict != results.Stated {
			t.Errorf("%s: %+v", mode, f)
		}
	}
	for _, f := range r.Findings {
		if f.Verdict == results.Failed {
			t.Errorf("%+v", f)
		}
	}
}

// TestARelayThatRunsIsNotFilled and whoever names it is told.
func TestARelayThatRunsIsNotFilled(t *testing.T) {
	t.Parallel()
	_, _, stderr := relaybenchWith(t, []string{"SKIP_REF=1"}, "sync", "--quick", "--events=50", "--skip=preflight,calibration", "--out", t.TempDir(), "--relay", "up="+listening(t))
	if !strings.Contains(stderr, "up: a relay that runs already is not filled") {
		t.Errorf("%s", stderr)
	}
}

// TestASinkThatLimitsItsClientsGetsEverythingInTheEnd syncs into a relay that takes so many events
// a second.
func TestASinkThatLimitsItsClientsGetsEverythingInTheEnd(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, _, stderr := relaybenchWith(t, withoutSQLite, "sync", "--quick", "--events=400", "--sync-modes=negentropy", "--skip=preflight,calibration", "--out", out,
		"--relay", "limiter='"+refrelayProgram+"' --listen 127.0.0.1:{port} --store memory --fault notice-throttle:150/s")
	if code != exitDone && code != exitFailed { // as a source, the limiter could not be filled
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	if f := syncFinding(r, "ref-bolt", "limiter", "negentropy", results.CodeHoldsSource); f == nil || f.Verdict != results.Passed {
		t.Errorf("%+v", f)
	}
	if left := syncValue(t, r, "ref-bolt", "limiter", "negentropy", "stragglers"); left == 0 {
		t.Error("nothing was held up")
	}
}
