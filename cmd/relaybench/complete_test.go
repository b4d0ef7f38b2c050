package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"relaybench/relays"
)

// completions asks for what may follow, as a shell does.
func completions(t *testing.T, words ...string) []string {
	t.Helper()
	code, stdout, stderr := relaybench(t, append([]string{"__complete"}, words...)...)
	if code != exitDone {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	var found []string
	for line := range strings.Lines(stdout) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if !strings.HasPrefix(word, ":") {
			found = append(found, word)
		}
	}
	return found
}

func TestShellsCompleteRelaysAndScenarios(t *testing.T) {
	t.Parallel()
	catalog, err := relays.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range catalog {
		names = append(names, d.Name)
	}
	own := t.TempDir()
	const mine = `name = "mine-alone"
title = "mine"
durability = "commit"
command = "{program} --port {port} --db {dir}"

[find]
binaries = ["mine"]
`
	if err := os.WriteFile(filepath.Join(own, "mine.toml"), []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		words  []string
		want   []string // all of them come
		absent []string
	}{
		{[]string{"run", "--relay", ""}, names, []string{"mine-alone"}},
		{[]string{"--relay", ""}, names, nil},
		{[]string{"check", ""}, names, nil},
		{[]string{"gate", "--head", ""}, names, nil},
		{[]string{"run", "--only", ""}, []string{"preflight", "ingest", "ingest.paced", "query.thread.hot", "storage", "import", "crash", "fetch", "sync"}, []string{"quick"}},
		{[]string{"run", "--skip", "storage,"}, []string{"storage,ingest.paced", "storage,calibration"}, []string{"storage,storage"}},
		{[]string{"run", "--sync-modes", "native,"}, []string{"native,req", "native,negentropy"}, []string{"native,native"}},
		{[]string{"report", "--format", ""}, []string{"text", "md"}, []string{"benchfmt"}},
		{[]string{"compare", "--format", ""}, []string{"text", "md", "json", "benchfmt"}, nil},
		{[]string{"re"}, []string{"report", "relays", "reconcile"}, []string{"run"}},
		{[]string{"run", "--stop"}, []string{"--stop-grace"}, nil},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish", "powershell"}, nil},
	} {
		t.Run(strings.Join(test.words, " "), func(t *testing.T) {
			found := completions(t, test.words...)
			for _, want := range test.want {
				if !slices.Contains(found, want) {
					t.Errorf("%q is not among %q", want, found)
				}
			}
			for _, absent := range test.absent {
				if slices.Contains(found, absent) {
					t.Errorf("%q is among them", absent)
				}
			}
		})
	}
	if found := completions(t, "run", "--relays-dir", own, "--relay", ""); !slices.Contains(found, "mine-alone") {
		t.Errorf("a definition of one's own is not among %q", found)
	}
}

// TestEveryNameThatCompletesIsTaken holds what is completed to what --only takes.
func TestEveryNameThatCompletesIsTaken(t *testing.T) {
	for _, name := range scenarioNames() {
		f := runFlags{only: []string{name}}
		f.fetch, f.sync = strings.HasPrefix(name, "fetch"), strings.HasPrefix(name, "sync")
		if chosen, err := f.choose(); err != nil || len(chosen) == 0 {
			t.Errorf("--only %s chooses %d scenarios: %v", name, len(chosen), err)
		}
	}
}

func TestManualPagesOfEveryVerb(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "share", "man1")
	if code, stdout, stderr := relaybench(t, "man", dir); code != exitDone || !strings.Contains(stdout, dir) {
		t.Fatalf("exit code %d: %q, %q", code, stdout, stderr)
	}
	for _, cmd := range newRoot(&pipe{Writer: os.Stdout}, os.Stderr).Commands() {
		if cmd.Name() == "help" {
			continue
		}
		page, err := os.ReadFile(filepath.Join(dir, "relaybench-"+cmd.Name()+".1"))
		if err != nil || !strings.Contains(string(page), ".SH SYNOPSIS") || !strings.Contains(string(page), cmd.Short) {
			t.Errorf("%s: %v, %.200q", cmd.Name(), err, page)
		}
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := relaybench(t, "man", filepath.Join(blocked, "man1")); code != exitUsage || !strings.Contains(stderr, blocked) {
		t.Errorf("a folder that cannot be made: exit code %d, %q", code, stderr)
	}
}

func TestMisspeltWordsAreRecognized(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"rnu"}, "did you mean run?"},
		{[]string{"reprot", "x"}, "did you mean report?"},
		{[]string{"run", "--evnets", "5"}, "did you mean --events?"},
		{[]string{"--trails", "5"}, "did you mean --trials?"},
		{[]string{"help", "rnu"}, "did you mean run?"},
		{[]string{"help", "corpus", "bld"}, "build"},
		{[]string{"completion", "bsh"}, "bash"},
		{[]string{"run", "--page", "x", "--zzzz"}, "--page"},
		{[]string{"run", "--stop-grace", "-1s"}, "--stop-grace -1s"},
		{[]string{"run", "--stop-grace", "soon"}, "soon"},
	} {
		code, _, stderr := relaybench(t, test.args...)
		if code != exitUsage || !strings.Contains(stderr, test.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, %q", test.args, code, stderr)
		}
	}
	if code, _, stderr := relaybench(t, "--zzzz"); code != exitUsage || strings.Contains(stderr, "mean") {
		t.Errorf("a flag that is close to nothing: exit code %d, %q", code, stderr)
	}
}
