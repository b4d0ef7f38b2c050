package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relaybench/results"
)

// small keeps a gate of real processes short: with --only, two figures, which six trials can judge.
var small = []string{"--events=300", "--samples=20", "--trials=6"}

// refrelayCommand is a command for the reference relay with further flags.
func refrelayCommand(flags string) string {
	return "'" + refrelayProgram + "' --listen 127.0.0.1:{port} --store bolt --dir {dir} --durability none " + flags
}

func runGate(t *testing.T, env []string, args ...string) (code int, stdout, stderr, out string) {
	t.Helper()
	out = t.TempDir()
	args = append(append([]string{"gate", "--out", out}, small...), args...)
	code, stdout, stderr = relaybenchWith(t, append([]string{"GITHUB_STEP_SUMMARY="}, env...), args...)
	return code, stdout, stderr, out
}

func TestGateFindsASlowedRelayAndSaysSoEverywhere(t *testing.T) {
	t.Parallel()
	summary, junit := filepath.Join(t.TempDir(), "summary.md"), filepath.Join(t.TempDir(), "gate.xml")
	// 20 ms on an OK that takes one: found on any machine, however busy. How small a slowdown is
	// found is a matter of statistics, and tested there.
	code, stdout, stderr, out := runGate(t, []string{"GITHUB_STEP_SUMMARY=" + summary}, "--base", refrelayCommand(""), "--head", "slower="+refrelayCommand("--delay 20ms"), "--junit", junit, "--only=ingest.visibility", "--skip=preflight,calibration")
	if code != exitRegression {
		t.Fatalf("exit code %d, want %d\n%s\n%s", code, exitRegression, stdout, stderr)
	}
	runs, _ := filepath.Glob(filepath.Join(out, "*", "results.json"))
	if len(runs) < 2 {
		t.Errorf("%d runs, want the first and one that confirms it", len(runs))
	}
	beside, _ := filepath.Glob(filepath.Join(out, "*", "gate.md"))
	for name, file := range map[string]string{"the summary": summary, "JUnit": junit, "the file beside the results": strings.Join(beside, "")} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "ingest.visibility") {
			t.Errorf("%s: %v: %.200s", name, err, text)
		}
	}
	if text, err := os.ReadFile(junit); err == nil && xml.Unmarshal(text, new(struct{})) != nil {
		t.Error("the JUnit file is not XML")
	}
	if !strings.Contains(stdout, "RED") || !strings.Contains(stdout, "ingest.visibility ok: ") {
		t.Errorf("the verdict lacks what got worse:\n%s", stdout)
	}
	r, err := results.ReadRecord(runs[0])
	if err != nil {
		t.Fatal(err)
	}
	relay(t, r, "base")
	relay(t, r, "slower")
	for _, name := range []string{"base", "head", "junit", "threshold"} {
		if v, ok := r.Options[name]; ok {
			t.Errorf("the record holds --%s %v, which bears on no figure", name, v)
		}
	}
}

// TestGateSaysThatItCannotTell has a head that is faster than base by far in one boot and slower by
// far in the next: its median is beyond any threshold, and no test can hold it against head. The
// delays differ by so much that no busy machine makes up for it.
func TestGateSaysThatItCannotTell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script, junit := filepath.Join(dir, "torn.sh"), filepath.Join(dir, "gate.xml")
	text := "if mkdir \"$1\" 2>/dev/null; then delay=500ms; else rmdir \"$1\"; delay=0s; fi\nshift\nexec \"$@\" --delay $delay\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr, out := runGate(t, nil, "--base", refrelayCommand("--delay 50ms"), "--head", "torn=/bin/sh '"+script+"' '"+filepath.Join(dir, "turn")+"' "+refrelayCommand(""),
		"--only=ingest.visibility", "--skip=preflight,calibration", "--max-trials=12", "--junit", junit, "--samples=2")
	if code != exitFailed || !strings.Contains(stdout, "UNDECIDED: ingest.visibility") || !strings.Contains(stdout, "n=12)") || !strings.Contains(stdout, "(--max-trials above 12)") {
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	runs, _ := filepath.Glob(filepath.Join(out, "*", "results.json"))
	if len(runs) != 3 || strings.Count(stderr, "measuring 6 more trials of what may have got worse: ingest.visibility\n") != 2 {
		t.Errorf("%d runs, want the first, one to confirm it, and one that was added\n%s", len(runs), stderr)
	}
	var suite struct {
		Errors   int `xml:"errors,attr"`
		Failures int `xml:"failures,attr"`
	}
	if text, err := os.ReadFile(junit); err != nil || xml.Unmarshal(text, &suite) != nil || suite.Errors < 2 || suite.Failures != 0 {
		t.Errorf("JUnit: %v, %+v", err, suite)
	}
}

// TestGateRefusesWhatItCouldNotFinish has gates that would find out at their end what can be told
// at once: nothing may be measured, and nothing touched.
func TestGateRefusesWhatItCouldNotFinish(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept.xml")
	if err := os.WriteFile(kept, []byte("of another gate"), 0o644); err != nil {
		t.Fatal(err)
	}
	locked := filepath.Join(dir, "locked.xml")
	if err := os.WriteFile(locked, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		args []string
		want string
	}{
		{[]string{"--trials=3"}, "--trials 3 cannot judge 2 figures together: give at least 6"},
		{[]string{"--trials=5"}, "--trials 5 cannot judge 2 figures together: give at least 6"},
		{[]string{"--max-trials=5"}, "--max-trials 5: give a number from --trials (6) to 1000"},
		{[]string{"--max-trials=1001"}, "--max-trials 1001: give a number from --trials (6) to 1000"},
		{[]string{"--trials=40", "--max-trials=30"}, "--max-trials 30: give a number from --trials (40) to 1000"},
		{[]string{"--junit", dir}, "cannot be written: "},
		{[]string{"--junit", filepath.Join(dir, "none", "gate.xml")}, "cannot be written: "},
		{[]string{"--junit", filepath.Join(kept, "gate.xml")}, "cannot be written: "},
		{[]string{"--junit", kept, "--base=no-such-program --port {port}"}, "--base"},
		{[]string{"--junit", filepath.Join(dir, "new.xml"), "--trials=40", "--base=no-such-program --port {port}"}, "--base"},
	}
	if os.Geteuid() != 0 { // who may write everything
		cases = append(cases, struct {
			args []string
			want string
		}{[]string{"--junit", locked}, "permission denied"})
	} else {
		t.Log("a file without permission is not tried: this test runs as root")
	}
	for _, c := range cases {
		out := t.TempDir()
		args := append([]string{"gate", "--out", out, "--head", refrelayCommand(""), "--base", refrelayCommand(""), "--only=ingest.visibility", "--trials=6"}, c.args...)
		code, _, stderr := relaybench(t, args...)
		if code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d\n%s lacks %q", c.args, code, stderr, c.want)
		}
		if left, _ := os.ReadDir(out); len(left) > 0 {
			t.Errorf("%q: left behind %v", c.args, left)
		}
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "of another gate" {
		t.Errorf("a file that was there is now %q, %v", text, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("files that were tried are left: %v", left)
	}
}

// TestGateFindsTheNoiseFloorWithRealRelays runs base twice beside head. The threshold is beyond
// what noise can reach, on any machine.
func TestGateFindsTheNoiseFloorWithRealRelays(t *testing.T) {
	t.Parallel()
	code, stdout, stderr, out := runGate(t, nil, "--aa", "--base", refrelayCommand(""), "--head", refrelayCommand("--neg-rebuild"), "--threshold=10000",
		"--only=ingest.visibility", "--skip=preflight,calibration")
	if code != exitDone || !strings.Contains(stdout, "GREEN") || !strings.Contains(stdout, "Noise floor: base differs from itself by up to") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	r := recorded(t, out)
	for _, name := range []string{"base", "base-again", "head"} {
		relay(t, r, name)
	}
	for _, m := range r.Measurements {
		if m.Metric == "ok" && len(m.Trials) != 6 {
			t.Errorf("%s: %d trials, want 6", m.Relay, len(m.Trials))
		}
	}
}

func TestGateAgainstAStoredRecord(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	args := append([]string{"run", "--out", out, "--only=ingest.visibility", "--skip=preflight,calibration", "--relay", "mine=" + refrelayCommand("--delay 20ms")}, small...)
	if code, _, stderr := relaybenchWith(t, []string{"SKIP_REF=1"}, args...); code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	t.Run("a faster head is green", func(t *testing.T) {
		// How soon an event is visible depends on the machine's noise alone here, since the delay
		// is over by then.
		thresholds := filepath.Join(t.TempDir(), "thresholds.toml")
		if err := os.WriteFile(thresholds, []byte("\"ingest.visibility visible\" = 10000\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr, _ := runGate(t, nil, "--baseline", out+"/"+runFolder(t, out), "--head", "mine="+refrelayCommand(""), "--only=ingest.visibility", "--skip=preflight,calibration",
			"--thresholds", thresholds)
		if code != exitDone || !strings.Contains(stdout, "ingest.visibility ok: -") || !strings.Contains(stdout, "stored record") {
			t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
		}
	})
	t.Run("its settings are taken over, and others refused", func(t *testing.T) {
		code, _, stderr, left := runGate(t, nil, "--baseline", out+"/"+runFolder(t, out), "--head", "mine="+refrelayCommand(""), "--only=ingest.visibility", "--window=7")
		if code != exitIncomparable || !strings.Contains(stderr, "option window: 200 ≠ 7") {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
		if entries, _ := os.ReadDir(left); len(entries) > 0 {
			t.Errorf("left behind: %v", entries)
		}
	})
	t.Run("compare reads it too", func(t *testing.T) {
		again := recorded(t, out)
		again.StartedAt = again.StartedAt.Add(time.Hour)
		other := filepath.Join(t.TempDir(), "other.json")
		if err := again.Write(other); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := relaybench(t, "compare", out, other)
		if code != exitDone || !strings.Contains(stdout, "MINE") {
			t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
		}
	})
}

func runFolder(t *testing.T, out string) string {
	t.Helper()
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	return entries[0].Name()
}

func TestGateJudgesNoRelayThatFallsShort(t *testing.T) {
	t.Parallel()
	code, stdout, stderr, _ := runGate(t, nil, "--base", refrelayCommand(""), "--head", "lossy="+refrelayCommand("--fault ack-without-store:0.5"), "--only=ingest.throughput", "--skip=preflight,calibration")
	if code != exitFailed || !strings.Contains(stdout, "FELL SHORT: lossy") {
		t.Errorf("a head that loses events: exit code %d\n%s\n%s", code, stdout, stderr)
	}
	code, _, stderr, _ = runGate(t, nil, "--base", "lossy="+refrelayCommand("--fault ack-without-store:0.5"), "--head", refrelayCommand(""), "--only=ingest.throughput")
	if code != exitIncomparable || !strings.Contains(stderr, "lossy cannot be the base of a gate") {
		t.Errorf("a base that loses events: exit code %d\n%s", code, stderr)
	}
}

func TestGateAndCompareRefuseWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	thresholds := filepath.Join(t.TempDir(), "thresholds.toml")
	if err := os.WriteFile(thresholds, []byte("\"query.* eose\" = \"much\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"gate"}, exitUsage, "gate wants --head"},
		{[]string{"gate", "--head", "x --port {port}"}, exitUsage, "gate wants --base"},
		{[]string{"gate", "--head", "ref-bolt", "--base", "ref-bolt", "--trials", "3"}, exitUsage, "--trials 3 cannot judge"},
		{[]string{"gate", "--head", "ref-bolt", "--base", "ref-bolt", "--threshold", "-1"}, exitUsage, "--threshold -1"},
		{[]string{"gate", "--head", "ref-bolt", "--base", "ref-bolt", "--threshold", "nan"}, exitUsage, "--threshold NaN"},
		{[]string{"gate", "--head", "ref-bolt", "--base", "ref-bolt", "--thresholds", thresholds}, exitUsage, "give per cent"},
		{[]string{"gate", "--head", "ref-bolt", "--base", "mine=ws://127.0.0.1:1"}, exitUsage, "cannot use one that runs already"},
		{[]string{"gate", "--head", "ref-bolt", "--base", "no-such-program --port {port}"}, exitUsage, "--base"},
		{[]string{"gate", "--head", "DEBUG=1 no-such-program --port {port}", "--base", "ref-bolt"}, exitUsage, "relay head: no-such-program is not on the PATH"},
		{[]string{"gate", "--head", "mine=DEBUG=1 no-such-program --port {port}", "--base", "ref-bolt"}, exitUsage, "relay mine: no-such-program is not"},
		{[]string{"run", "--relay", "DEBUG=1 no-such-program --port {port}"}, exitUsage, "write --relay 'NAME=DEBUG=1 no-such-program --port {port}'"},
		{[]string{"run", "--relay", "mine=DEBUG=1 no-such-program --port {port}"}, exitUsage, "relay mine: no-such-program is not"},
		{[]string{"run", "--relay", "a/b=no-such-program --port {port}"}, exitUsage, "is no relay name"},
		{[]string{"check", "--relay", "DEBUG=1 no-such-program --port {port}"}, exitUsage, "write --relay 'NAME="},
		{[]string{"fetch", "DEBUG=1 no-such-program --port {port}"}, exitUsage, "write --relay 'NAME="},
		{[]string{"gate", "--head", "ref-bolt", "--baseline", empty}, exitUsage, "holds no results.json"},
		{[]string{"gate", "--head", "ref-bolt", "--baseline", empty, "--aa"}, exitUsage, "--aa runs base beside itself"},
		{[]string{"compare", "only-one"}, exitUsage, "compare wants two arguments"},
		{[]string{"compare", empty, empty}, exitUsage, "holds no results.json"},
		{[]string{"compare", empty + "/none", empty}, exitUsage, "no such file"},
		{[]string{"compare", empty, empty, "--format", "html"}, exitUsage, "--format"},
	} {
		code, _, stderr := relaybench(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, want %d\n%s lacks %q", c.args, code, c.code, stderr, c.want)
		}
	}
}

// TestTheSameResultsCountOnce gives one record twice, under whatever name and with whatever white
// space.
func TestTheSameResultsCountOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save := func(name string, value float64) string {
		r := &results.Record{Corpus: results.Corpus{Fingerprint: strings.Repeat("a", 64)}, Relays: []results.Relay{{Name: "mine", Outcome: results.OutcomeOK}},
			Measurements: []results.Measurement{{Relay: "mine", Scenario: "storage", Metric: "allocated", Unit: "bytes/event", Better: results.Lower, Trials: []float64{value}}}}
		file := filepath.Join(dir, name)
		if err := r.Write(file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	one, two, three := save("one.json", 1), save("two.json", 2), save("three.json", 3)
	text, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	squeezed := filepath.Join(dir, "squeezed.json")
	if err := os.WriteFile(squeezed, bytes.ReplaceAll(text, []byte("\n"), nil), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
	}{
		{[]string{"--old", one, "--old", two, "--new", three}, exitDone},
		{[]string{"--old", one, "--old", one, "--new", three}, exitUsage},
		{[]string{"--old", one, "--new", three + "," + three}, exitUsage},
		{[]string{one, one}, exitUsage},
		{[]string{one, squeezed}, exitUsage},
		{[]string{"--old", two, "--old", one, "--new", squeezed}, exitUsage},
	} {
		code, stdout, stderr := relaybench(t, append([]string{"compare"}, test.args...)...)
		if code != test.code || code == exitUsage && !strings.Contains(stderr, "holds the same results as "+dir) {
			t.Errorf("%q: exit code %d, want %d\n%s%s", test.args, code, test.code, stdout, stderr)
		}
	}
}

// TestCompareGoesByWhatResultsOfOtherVersionsTell takes a setting out of a record, as a version
// that did not have it leaves it out.
func TestCompareGoesByWhatResultsOfOtherVersionsTell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save := func(name string, change func(options map[string]any)) string {
		r := &results.Record{StartedAt: time.Now(), Environment: results.Environment{OS: "linux", Arch: "amd64", CPU: "one", Cores: 2}, Corpus: results.Corpus{Fingerprint: strings.Repeat("a", 64)},
			Options:      publicFlags(newRun(new(runFlags)).Flags()),
			Relays:       []results.Relay{{Name: "mine", Outcome: results.OutcomeOK}},
			Measurements: []results.Measurement{{Relay: "mine", Scenario: "storage", Metric: "allocated", Unit: "bytes/event", Better: results.Lower, Trials: []float64{1, 2, 3}}}}
		r.Options["trials"] = 3
		change(r.Options)
		file := filepath.Join(dir, name)
		if err := r.Write(file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	older := save("older.json", func(o map[string]any) { delete(o, "pin"); delete(o, "query-conns") })
	now := save("now.json", func(map[string]any) {})
	pinned := save("pinned.json", func(o map[string]any) { o["pin"] = true })
	newer := save("newer.json", func(o map[string]any) { o["flag-to-come"] = 7 })
	for _, c := range []struct {
		name, file string
		code       int
		want       string
	}{
		{"a flag that the older version lacked, at its default", now, exitDone, "MINE"},
		{"and set otherwise", pinned, exitIncomparable, "option pin: false ≠ true"},
		{"a flag that this version does not know", newer, exitIncomparable, "option flag-to-come: not recorded ≠ 7"},
	} {
		code, stdout, stderr := relaybench(t, "compare", older, c.file)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit code %d, want %d\n%s%s lacks %q", c.name, code, c.code, stdout, stderr, c.want)
		}
	}
}
