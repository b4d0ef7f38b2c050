package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"relaybench/report"
	"relaybench/results"
)

// recorded reads the one record below a results folder.
func recorded(t *testing.T, out string) *results.Record {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(out, "*", "results.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("results below %s: %v, %v; want one", out, files, err)
	}
	r, err := results.ReadRecord(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(files[0]), "report.md")); err != nil {
		t.Error(err)
	}
	return r
}

func relay(t *testing.T, r *results.Record, name string) results.Relay {
	t.Helper()
	for _, relay := range r.Relays {
		if relay.Name == name {
			return relay
		}
	}
	t.Fatalf("relay %s is not in the record", name)
	return results.Relay{}
}

func finding(r *results.Record, relay, scenario, check string) *results.Finding {
	for i, f := range r.Findings {
		if f.Relay == relay && f.Scenario == scenario && f.Code == check {
			return &r.Findings[i]
		}
	}
	return nil
}

// textOf is the sentence on a finding, as reports have it.
func textOf(f any) string {
	switch f := f.(type) {
	case *results.Finding:
		_, text := report.Words(f)
		return text
	case results.Finding:
		return textOf(&f)
	}
	return ""
}

// evidenceOf is all evidence of a finding as text, a line each.
func evidenceOf(f *results.Finding) string {
	var lines []string
	for _, e := range f.Evidence {
		kind := ""
		if e.Kind != nil {
			kind = fmt.Sprint(*e.Kind)
		}
		lines = append(lines, strings.Join([]string{e.Code, kind, e.Cause, e.Text, e.ID}, " "))
	}
	return strings.Join(lines, "\n")
}

// complete asserts that a relay was measured in every scenario that only (all where it is empty)
// chooses, and that nothing was found against it.
func complete(t *testing.T, r *results.Record, name string, only ...string) {
	t.Helper()
	if got := relay(t, r, name); got.Outcome != results.OutcomeOK {
		t.Errorf("%s: outcome %s: %s", name, got.Outcome, got.Reason)
	}
	measured := make(map[string]bool)
	for _, m := range r.Measurements {
		if m.Relay == name && len(m.Trials) > 0 {
			measured[m.Scenario] = true
			family, _, _ := strings.Cut(m.Scenario, ".")
			measured[family] = true // the phases of a reconciliation have keys of their own
		}
	}
	chosen, err := (&runFlags{only: only}).choose()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range chosen {
		if !measured[key] && !isStage(key) {
			t.Errorf("%s: nothing measured in %s", name, key)
		}
	}
	for _, f := range r.Findings {
		if f.Blames == name || f.Relay == name && f.Verdict == results.Undecided {
			t.Errorf("%s: %s: %s: %s %+v", name, f.Scenario, f.Code, textOf(f), f.Evidence)
		}
	}
}

func TestRunMeasuresTheReferenceRelayInBothForms(t *testing.T) {
	t.Parallel()
	out, work := t.TempDir(), t.TempDir()
	code, stdout, stderr := relaybench(t, "--quick", "--events=400", "--samples=20", "--query-conns=2", "--out", out, "--work", work)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	complete(t, r, "ref-bolt")
	complete(t, r, "ref-sqlite")
	if r.Partial {
		t.Error("the record is marked partial")
	}
	if !strings.Contains(stdout, "ref-bolt") || !strings.Contains(stdout, r.Corpus.Fingerprint[:16]) {
		t.Errorf("the report lacks the relay or the fingerprint:\n%s", stdout)
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("left in the work folder: %v", left)
	}
	t.Run("report renders the record again", func(t *testing.T) {
		files, _ := filepath.Glob(filepath.Join(out, "*", "results.json"))
		code, again, _ := relaybench(t, "report", files[0])
		if code != exitDone || !strings.HasPrefix(stdout, again) {
			t.Errorf("report prints something else than the run did:\n%s\nagainst\n%s", again, stdout)
		}
		code, markdown, _ := relaybench(t, "report", "--format=md", files[0])
		if code != exitDone || !strings.HasPrefix(markdown, "# ") {
			t.Errorf("exit code %d, Markdown %.100q", code, markdown)
		}
	})
}

func TestRunOnRealEvents(t *testing.T) {
	t.Parallel()
	if os.Getenv("RELAYBENCH_REAL") == "" {
		t.Skip("RELAYBENCH_REAL is not set: no real events to run on")
	}
	out := t.TempDir()
	if code, _, stderr := relaybench(t, "--real", "--quick", "--out", out); code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	complete(t, r, "ref-bolt")
	complete(t, r, "ref-sqlite")
}

// TestRunOutlivesRelaysThatFail puts kinds of trouble beside a healthy relay: the trouble is named,
// the healthy relay is measured in full, and the exit code is 1. What the preflight makes of such
// relays is tested by itself.
func TestRunOutlivesRelaysThatFail(t *testing.T) {
	type trouble struct {
		mode    string
		outcome results.Outcome
		reason  string // part of the relay's reason
		check   string // a required check that must have failed in scenario, "" for none
		in      string
		says    string // part of what the check says
	}
	all := []trouble{
		{mode: "exits", outcome: results.OutcomeNoStart, reason: "exited with status 3"},
		{mode: "deaf", outcome: results.OutcomeNoStart, reason: "nothing listened"},
		{mode: "mute", outcome: results.OutcomeNoStart, reason: "did not answer"},
		{mode: "dies", outcome: results.OutcomeOK, check: results.CodeCompletes, in: "ingest.throughput"},
		{mode: "stops", outcome: results.OutcomeOK, check: results.CodeCompletes, in: "ingest.throughput", says: "made no progress"},
		{mode: "endless", outcome: results.OutcomeOK, check: results.CodeCompletes, in: "ingest.throughput", says: "were asked for, and went on"},
		{mode: "chatters", outcome: results.OutcomeOK, check: results.CodeCompletes, in: "ingest.throughput", says: "made no progress"},
		{mode: "refuses", outcome: results.OutcomeOK, check: results.CodeAccepts, in: "ingest.throughput"},
		{mode: "garbage", outcome: results.OutcomeOK, check: results.CodeAcknowledgedKept, in: "ingest.throughput"},
		{mode: "hangsup", outcome: results.OutcomeOK, check: results.CodeAcknowledgedKept, in: "ingest.throughput"},
	}
	const runs = 3
	for i := range runs {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			args := []string{"--quick", "--events=600", "--only=ingest,query.thread,storage", "--skip=preflight,calibration", "--timeout=4s", "--ready-timeout=8s", "--out", out}
			for k := i; k < len(all); k += runs {
				args = append(args, hostile(t, all[k].mode, all[k].mode))
			}
			code, stdout, stderr := relaybenchWith(t, withHonest, append(args, honest())...)
			if code != exitFailed {
				t.Errorf("exit code %d, want %d\n%s", code, exitFailed, stderr)
			}
			r := recorded(t, out)
			complete(t, r, "honest", "ingest", "query.thread", "storage")
			for k := i; k < len(all); k += runs {
				test := all[k]
				failed := relay(t, r, test.mode)
				if failed.Outcome != test.outcome || !strings.Contains(failed.Reason, test.reason) {
					t.Errorf("%s: outcome %s: %q, want %s: …%s…", test.mode, failed.Outcome, failed.Reason, test.outcome, test.reason)
				}
				if test.check != "" {
					if f := finding(r, test.mode, test.in, test.check); f == nil || f.Verdict != results.Failed || f.Blames != test.mode || !strings.Contains(textOf(f), test.says) {
						t.Errorf("%s: finding %q: %+v, want it failed: …%s…", test.mode, test.check, f, test.says)
					}
				}
				if !strings.Contains(stderr, test.mode+": ") {
					t.Errorf("the error does not name %s:\n%s", test.mode, stderr)
				}
				if test.mode == "dies" {
					f := finding(r, test.mode, test.in, test.check)
					if f == nil || !strings.Contains(evidenceOf(f), "about to be killed") || !strings.Contains(textOf(f), "died in ingest.throughput") {
						t.Errorf("%+v, want the relay's death and its last words", f)
					}
				}
			}
			for name, text := range map[string]string{"stdout": stdout, "stderr": stderr} {
				if strings.ContainsAny(text, "\x1b\u202e") {
					t.Errorf("a relay's escape sequence reached %s:\n%q", name, text)
				}
			}
		})
	}
}

// TestStopGraceIsHowLongARelayMayTakeToEnd stops a relay that does not listen to SIGTERM. In the
// ten seconds of the default it would say so.
func TestStopGraceIsHowLongARelayMayTakeToEnd(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	relaybenchWith(t, withHonest, "--quick", "--events=50", "--only=storage", "--skip=preflight,calibration", "--stop-grace=250ms", "--out", out,
		hostile(t, "stubborn", "stubborn"))
	r := recorded(t, out)
	f := finding(r, "stubborn", "", results.CodeStops)
	if f == nil || f.Verdict != results.Stated || f.Cause != results.CauseForced || f.Counts["s"] != 0.25 || len(f.BearsOn) > 0 {
		t.Errorf("the record does not state what it waited for: %+v", f)
	}
	if got := relay(t, r, "stubborn"); got.Outcome != results.OutcomeOK {
		t.Errorf("that it had to be killed is held against it: %+v", got)
	}
	if r.Options["stop-grace"] != "250ms" {
		t.Errorf("option stop-grace is %v", r.Options["stop-grace"])
	}
}

func TestInterruptionKeepsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	out, work := t.TempDir(), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // as soon as a relay has measurements, as Ctrl-C would
		for ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			files, _ := filepath.Glob(filepath.Join(out, "*", "results.json"))
			if len(files) == 0 {
				continue
			}
			if r, err := results.ReadRecord(files[0]); err == nil && len(r.Measurements) > 30 {
				cancel()
			}
		}
	}()
	code, stdout, _ := relaybenchContext(t, ctx, nil, "--quick", "--events=600", "--skip=preflight,calibration", "--out", out, "--work", work)
	if code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	r := recorded(t, out)
	if !r.Partial || len(r.Measurements) == 0 {
		t.Errorf("partial %t with %d measurements, want a partial record that has some", r.Partial, len(r.Measurements))
	}
	if !strings.Contains(strings.ToUpper(stdout), "PARTIAL") {
		t.Errorf("the report does not say that it is partial:\n%s", stdout)
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("left in the work folder: %v", left)
	}
}

// SIGQUIT lists the goroutines, as of every Go program, and leaves neither a folder nor a relay.
func TestSIGQUITLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	out, work := t.TempDir(), t.TempDir()
	cmd := program(t, t.Context(), withHonest, "--quick", "--events=600", "--skip=preflight,calibration", "--out", out, "--work", work, honest())
	var errOut strings.Builder
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	logs := func() []string {
		found, _ := filepath.Glob(filepath.Join(work, "*", "honest-*", "relay.log"))
		return found
	}
	for len(logs()) == 0 && t.Context().Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(errOut.String(), "goroutine ") || !strings.Contains(errOut.String(), "stopped at once") {
		t.Errorf("%v\n%s", err, errOut.String())
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("left in the work folder: %v", left)
	}
	if found, _ := exec.Command("pgrep", "-f", work).Output(); len(found) > 0 {
		t.Errorf("processes run on: %s", found)
	}
}

func TestWrongUsageIsOneSentenceAndExitCode2(t *testing.T) {
	t.Parallel()
	self := "--relay=mine=" + refrelayProgram
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown flag", []string{"run", "--evnets", "5"}, "--evnets"},
		{"unknown verb", []string{"rnu"}, `unknown command "rnu"`},
		{"stray argument", []string{"run", "fast"}, `"fast"`},
		{"two relays of one name", []string{self + " --listen 127.0.0.1:{port}", self + " --listen 127.0.0.1:{port}"}, "mine"},
		{"template without a port", []string{self + " --dir {dir}"}, "{port}"},
		{"program that is not there", []string{"--relay=mine=/no/such/relay {port}"}, "/no/such/relay"},
		{"unbalanced quotes", []string{"--relay=mine='" + refrelayProgram + " {port}"}, "quote"},
		{"name of no relay", []string{"--relay=strfri"}, "strfri"},
		{"events of nothing", []string{"--events=0"}, "--events 0"},
		{"two corpora", []string{"--real", "--corpus=x"}, "--corpus and --real"},
		{"base time that is no time", []string{"--base-time=yesterday"}, "yesterday"},
		{"scenario that does not exist", []string{"--only=querry"}, "querry"},
		{"relay left out like a scenario", []string{"--skip=ref-bolt"}, "SKIP_REF_BOLT=1"},
		{"nothing to run", []string{"--only=storage", "--skip=storage"}, "no scenario"},
		{"window of none", []string{"--window=0"}, "--window 0"},
		{"number that is none", []string{"--samples=many"}, "many"},
		{"report without a file", []string{"report"}, "results.json"},
		{"unknown report format", []string{"report", "--format=pdf", "x"}, "pdf"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, _, stderr := relaybench(t, test.args...)
			if code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if !strings.Contains(stderr, test.want) || strings.Contains(stderr, "goroutine") {
				t.Errorf("message %q does not name %q", stderr, test.want)
			}
		})
	}
}

func TestWhatCannotBeUsedIsNamedWithExitCode2(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"corpus that is not there", []string{"--corpus", filepath.Join(dir, "none.json")}, "none.json"},
		{"empty corpus", []string{"--corpus", write("empty.json", "")}, "empty.json"},
		{"truncated corpus", []string{"--corpus", write("cut.json.gz", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03ab")}, "cut.json.gz"},
		{"corpus of nothing usable", []string{"--corpus", write("dropped.json", `{"id":"x"}`)}, "dropped.json"},
		{"results folder that is a file", []string{"--out", write("file", "")}, "file"},
		{"results that are not there", []string{"report", filepath.Join(dir, "results.json")}, "results.json"},
		{"results that are none", []string{"report", write("other.json", `{"schema":"x"}`)}, "other.json"},
		{"corpus folder that is none", []string{"corpus", "verify", dir}, dir},
		{"work folder below a file", []string{"--corpus", write("e", ""), "--work", "/dev/null/x"}, "/dev/null"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := test.args
			if strings.HasPrefix(args[0], "--c") {
				args = append(args, "--out", t.TempDir())
			}
			code, _, stderr := relaybench(t, args...)
			if code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if !strings.Contains(stderr, test.want) || strings.Contains(stderr, "goroutine") {
				t.Errorf("message %q does not name %q", stderr, test.want)
			}
		})
	}
}

func TestCorpusVerbs(t *testing.T) {
	t.Parallel()
	cache := []string{"RELAYBENCH_CACHE=" + t.TempDir()}
	code, stdout, stderr := relaybenchWith(t, cache, "corpus", "build", "--events=300")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var dir string
	for _, line := range strings.Split(stdout, "\n") {
		if rest, ok := strings.CutPrefix(line, "folder "); ok {
			dir = strings.TrimSpace(rest)
		}
	}
	if code, again, _ := relaybench(t, "corpus", "info", dir); code != exitDone || again != stdout {
		t.Errorf("info says %q, build said %q", again, stdout)
	}
	if code, verified, stderr := relaybench(t, "corpus", "verify", dir); code != exitDone || !strings.Contains(verified, "300 events") {
		t.Errorf("verify: exit code %d, %q, %q", code, verified, stderr)
	}
	events := filepath.Join(dir, "events.ndjson")
	text, err := os.ReadFile(events)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(text), `"sig":"`) + len(`"sig":"`)
	text[at] ^= 1 // one hexadecimal digit becomes another
	if err := os.WriteFile(events, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := relaybench(t, "corpus", "verify", dir); code != exitFailed || !strings.Contains(stderr, "300") {
		t.Errorf("verify of a forged signature: exit code %d, %q", code, stderr)
	}
}

// TestWhatIsMeasuredWhileRelaybenchIsStoppedIsMeasuredAnew stops the program, and not its relay, in
// the middle of a scenario of 8 s at least.
func TestWhatIsMeasuredWhileRelaybenchIsStoppedIsMeasuredAnew(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	cmd := program(t, t.Context(), withHonest, "--quick", "--events=200", "--samples=40", "--only=ingest.visibility", "--skip=preflight,calibration", "--out", out,
		"--relay=slow="+refrelayCommand("--fault slow-ok:200"))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var told []string
	stops := []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if told = append(told, lines.Text()); lines.Text() != "slow: ingest.visibility" {
			continue
		}
		for _, s := range stops {
			if err := cmd.Process.Signal(s); err != nil {
				t.Error(err)
			}
			time.Sleep(1200 * time.Millisecond)
		}
		stops = nil // the second time it is left alone
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(told, "\n"))
	}
	if !slices.ContainsFunc(told, func(line string) bool { return strings.HasPrefix(line, "slow: once more, since ") }) {
		t.Errorf("it is not told that it is measured anew\n%s", strings.Join(told, "\n"))
	}
	r := recorded(t, out)
	complete(t, r, "slow", "ingest.visibility")
	for _, m := range r.Measurements {
		if len(m.Trials) != 1 || m.Is(results.StatusAway) != nil {
			t.Errorf("%s: %v, %v", m.Metric, m.Trials, m.Status)
		}
		if again := m.Is(results.StatusRepeated); m.Better != results.None && (again == nil || again.Counts["times"] != 1 || again.Counts["s"] < 1) {
			t.Errorf("%s: %+v", m.Metric, m.Status)
		}
	}
}
