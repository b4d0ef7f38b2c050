package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"relaybench/harness/layers"
)

func TestReconcileTellsTheLayersApart(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	file, profile := filepath.Join(dir, "layers.json"), filepath.Join(dir, "cpu")
	code, stdout, stderr := relaybench(t, "reconcile", "--sizes=200,1000", "--repeat=3", "--signed-max=500", "--relay=ref-bolt", "--work", work,
		"--json", file, "--cpuprofile", profile)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []layers.Size
	if err := json.Unmarshal(text, &sizes); err != nil || len(sizes) != 2 {
		t.Fatalf("%d sizes, %v", len(sizes), err)
	}
	want := []string{layers.InMemory, layers.Loopback, "refrelay", "refrelay-rebuild", "ref-bolt"}
	for k, s := range sizes {
		if s.Signed != (k == 0) || len(s.Rows) != len(want) {
			t.Fatalf("%d items: signed %v, %d layers", s.Items, s.Signed, len(s.Rows))
		}
		for i, r := range s.Rows {
			if r.Layer != want[i] {
				t.Errorf("layer %d is %s, want %s", i, r.Layer, want[i])
			}
			if r.Layer == "ref-bolt" && s.Items > 500 {
				if !strings.Contains(r.Problem, "above 500") || r.Failed {
					t.Errorf("%d items, %s: %q", s.Items, r.Layer, r.Problem)
				}
				continue
			}
			d := r.Differing
			if r.Problem != "" || !d.Exact || !r.Identical.Exact || d.Cold.Total == 0 || d.Warm.Have != s.Items/5 || d.Warm.Need != s.Items/5 {
				t.Errorf("%d items, %s: %+v", s.Items, r.Layer, r)
			}
		}
	}
	for _, part := range []string{"200 items a side, 160 shared", "1,000 items a side, 800 shared", "refrelay-rebuild", "heartbeat", "engine: the protocol"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("%q is not in the output:\n%s", part, stdout)
		}
	}
	for line := range strings.Lines(stdout) {
		if n := utf8.RuneCountInString(line); n > 107 {
			t.Errorf("a line of %d columns: %s", n, line)
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
	code, stdout, stderr := relaybench(t, "reconcile", "--sizes=50", "--repeat=1", "--work", t.TempDir(), hostile(t, "crasher", "exits"), hostile(t, "deaf", "refuses"))
	if code != exitFailed || !strings.Contains(stderr, "crasher at 50 items") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	for _, part := range []string{"crasher: ", "deaf: the relay does not speak NIP-77", "refrelay-rebuild  "} {
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

func TestReconcileNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0.000": millis(0), "0.012": millis(12 * time.Microsecond), "1.23": millis(1234 * time.Microsecond), "12.3": millis(12340 * time.Microsecond),
		"123": millis(123 * time.Millisecond), "12,346": millis(12345600 * time.Microsecond),
		"0.03": kilobytes(26), "2.4": kilobytes(2400), "12,806": kilobytes(12_806_000),
		"0": thousands(0), "200k": thousands(200_000), "199,999": thousands(199_999), "1,000k": thousands(1_000_000), "7": count(7),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
