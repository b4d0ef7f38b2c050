package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"relaybench/results"
)

// reconciledAt tells whether a record has the median of a layer or relay at a size, for both
// phases.
func reconciledAt(r *results.Record, relay, layer, size string) bool {
	n := 0
	for i := range r.Measurements {
		m := &r.Measurements[i]
		if m.Relay == relay && m.Metric == "warm" && m.Labels[results.LabelLayer] == layer && m.Labels[results.LabelSize] == size && len(m.Trials) == 1 && m.Trials[0] > 0 {
			n++
		}
	}
	return n == 2
}

func TestReconcileTellsTheLayersApart(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	file, profile := filepath.Join(dir, "record.json"), filepath.Join(dir, "cpu")
	code, stdout, stderr := relaybench(t, "reconcile", "--sizes=200,1000", "--repeat=3", "--signed-max=500", "--relay=ref-bolt", "--work", work, "--out", dir,
		"--json", file, "--cpuprofile", profile)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	written, err := results.ReadRecord(file)
	if err != nil {
		t.Fatal(err)
	}
	r := recorded(t, dir)
	for name, r := range map[string]*results.Record{"--json": written, "results.json": r} {
		for _, size := range []string{"200", "1000"} {
			for _, x := range [][2]string{{"", "in memory"}, {"", "loopback"}, {"refrelay", ""}, {"refrelay-rebuild", ""}, {"ref-bolt", ""}} {
				if want := x[0] != "ref-bolt" || size == "200"; reconciledAt(r, x[0], x[1], size) != want {
					t.Errorf("%s: %s items, %s%s: measured %v, want %v", name, size, x[0], x[1], !want, want)
				}
			}
		}
		for _, f := range r.Findings {
			switch {
			case f.Code == results.CodeMeasurable:
				if f.Relay != "ref-bolt" || f.Verdict != results.Stated || f.Counts["most"] != 500 || f.Labels[results.LabelSize] != "1000" {
					t.Errorf("%s: %+v", name, f)
				}
			case f.Verdict != results.Passed:
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
	if args, ok := r.Options["args"].([]any); !ok || len(args) < 2 || args[0] != "reconcile" {
		t.Errorf("repeated by %v", r.Options["args"])
	}
	for _, part := range []string{"200 items a side, differing", "1,000 items a side, identical", "refrelay-rebuild", "engine: the protocol", "takes part up to 500 items a side", "report.md"} {
		if !strings.Contains(strings.Join(strings.Fields(stdout), " "), part) {
			t.Errorf("%q is not in the output:\n%s", part, stdout)
		}
	}
	if info, err := os.Stat(profile); err != nil || info.Size() == 0 {
		t.Errorf("the profile: %v, %v", info, err)
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("left in the work folder: %v", left)
	}
}

func TestReconcileOutlivesRelaysThatCannot(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, stdout, stderr := relaybench(t, "reconcile", "--sizes=50", "--repeat=1", "--work", t.TempDir(), "--out", out, hostile(t, "crasher", "exits"), hostile(t, "deaf", "refuses"))
	if code != exitFailed || !strings.Contains(stderr, "crasher: ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if r := recorded(t, out); !reconciledAt(r, "refrelay-rebuild", "", "50") || reconciledAt(r, "deaf", "", "50") {
		t.Errorf("%+v", r.Measurements)
	}
	for _, part := range []string{"crasher", "not measured: deaf: it does not speak NIP-77"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("%q is not in the output:\n%s", part, stdout)
		}
	}
	if strings.ContainsRune(stdout+stderr, '\x1b') {
		t.Error("a relay's escape sequence reached the terminal")
	}
}

func TestReconcileRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	nowhere := filepath.Join(t.TempDir(), "absent", "file")
	for want, args := range map[string][]string{
		`"5" is no number from 10`: {"--sizes=5"},
		`"" is no number`:          {"--sizes=10,,20"},
		`"1e3" is no number`:       {"--sizes=1e3"},
		"--repeat 0":               {"--repeat=0"},
		"--timeout 1ms":            {"--timeout=1ms"},
		"--ready-timeout -1s":      {"--ready-timeout=-1s"},
		"--signed-max -1":          {"--signed-max=-1"},
		"cannot be emptied":        {"--relay=x=ws://127.0.0.1:1"},
		"not in the catalog":       {"--relay=nosuchrelay"},
		"give yours another":       {"--relay=refrelay=/bin/true {port}"},
		"--cpuprofile":             {"--cpuprofile", nowhere},
		"--json":                   {"--json", nowhere},
		"takes no argument":        {"extra"},
		"unknown flag: --size (did you mean --sizes?); relaybench recon": {"--size=1"},
	} {
		code, stdout, stderr := relaybench(t, append([]string{"reconcile"}, args...)...)
		if code != exitUsage || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%v: exit code %d, %q; want %q", args, code, stderr, want)
		}
	}
}
