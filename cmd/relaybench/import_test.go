package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"relaybench/results"
)

// importers writes definitions of the reference relay whose import commands are the shell scripts
// given: $0 is the program, $1 the data folder, and the events come by standard input, or in $2
// where the script mentions it. It returns the flags that add them.
func importers(t *testing.T, scripts map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	flags := []string{"--relays-dir", dir}
	for name, script := range scripts {
		words, input := "{program} {dir}", "stdin = true"
		if strings.Contains(script, "$2") {
			words, input = "{program} {dir} {file}", ""
		}
		text := fmt.Sprintf(`name = %q
command = "{program} --listen 127.0.0.1:{port} --store bolt --dir {dir}"
durability = "commit"
[find]
env = ["REFRELAY_BIN"]
[import]
command = '''sh -c '%s' %s'''
running = false
%s
`, name, script, words, input)
		if err := os.WriteFile(filepath.Join(dir, name+".toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--relay", name)
	}
	return flags
}

func TestImportIsCountedByAskingTheRelay(t *testing.T) {
	t.Parallel()
	out, work := t.TempDir(), t.TempDir()
	args := append([]string{"run"}, importers(t, map[string]string{
		"honest": `exec "$0" import --store bolt --dir "$1"`,
		"liar":   `cat > /dev/null; echo imported 600 events, 0 failed`,
		"loser":  `head -n 400 | "$0" import --store bolt --dir "$1"; echo all is well`,
		"dies":   `head -c 1000 > /dev/null; printf "\033[31mno space in $1\n" >&2; exit 3`,
		"spoils": `cat > /dev/null; echo nonsense > "$1/events.bolt"`,
		"daemon": `"$0" import --store bolt --dir "$1"; (sleep 600 &)`,
	})...)
	args = append(args, "--events", "600", "--trials", "1", "--only", "import,storage", "--skip", "preflight,calibration", "--out", out, "--work", work)
	code, stdout, stderr := relaybenchWith(t, []string{"SKIP_REF=1"}, args...)
	if code != exitFailed {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	const holds = results.CodeImported
	for name, want := range map[string]string{"honest": "holds the", "daemon": "holds the", "liar": "in the file and not in the relay", "loser": "in the file and not in the relay"} {
		f := finding(r, name, "import", holds)
		if f == nil {
			t.Errorf("%s: nothing was found", name)
			continue
		}
		if honest := name == "honest" || name == "daemon"; f.Verdict != results.Holds(honest) || !strings.Contains(textOf(f), want) || !strings.Contains(textOf(f), "counted by negentropy") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for name, want := range map[string]string{
		"dies": "its import command exited with status 3", "spoils": "did not start on what its import command left",
	} {
		got, f := relay(t, r, name), finding(r, name, "import", results.CodeCompletes)
		if got.Outcome != results.OutcomeOK || f == nil || f.Verdict != results.Failed || f.Blames != name || !strings.Contains(textOf(f), want) || evidenceOf(f) == "" {
			t.Errorf("%s: %s %q, %+v", name, got.Outcome, got.Reason, f)
			continue
		}
		if told := textOf(f) + evidenceOf(f); strings.Contains(told, work) || strings.Contains(told, "\x1b") {
			t.Errorf("%s: told %q", name, told)
		}
	}
	if f := finding(r, "dies", "import", results.CodeCompletes); f == nil || len(f.Evidence) != 1 || f.Evidence[0].Code != results.EvidenceLog || f.Evidence[0].Text != "no space in {dir}" {
		t.Errorf("the last that it said: %+v", f)
	}
	rate, events := figure(r, "honest", "stored"), figure(r, "honest", "held afterwards")
	if rate <= 0 || events < 500 || figure(r, "liar", "held afterwards") != 0 || figure(r, "loser", "held afterwards") >= events || figure(r, "loser", "held afterwards") == 0 {
		t.Errorf("honest stored %v events, %v/s; liar %v, loser %v", events, rate, figure(r, "liar", "held afterwards"), figure(r, "loser", "held afterwards"))
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("left in the work folder: %v", left)
	}
	if !strings.Contains(stdout, "import") || strings.Contains(stdout, "\x1b[31mno space") {
		t.Errorf("the report:\n%s", stdout)
	}
}

func TestAnImportThatGetsNowhereIsEnded(t *testing.T) {
	t.Parallel()
	out, work := t.TempDir(), t.TempDir()
	args := append([]string{"run"}, importers(t, map[string]string{"hangs": `sleep 600`, "floods": `yes`})...)
	args = append(args, "--events", "100", "--trials", "1", "--only", "import", "--skip", "preflight,calibration", "--timeout", "3s", "--out", out, "--work", work)
	code, _, stderr := relaybenchWith(t, []string{"SKIP_REF=1"}, args...)
	if code != exitFailed {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	for _, name := range []string{"hangs", "floods"} {
		if f := finding(r, name, "import", results.CodeCompletes); f == nil || f.Verdict != results.Failed || !strings.Contains(textOf(f), "its import command made no progress for 3s and was ended") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("left in the work folder: %v", left)
	}
}

// figure is the only trial's value, -1 where there is none.
func figure(r *results.Record, relay, metric string) float64 {
	for _, m := range r.Measurements {
		if m.Relay == relay && m.Scenario == "import" && m.Metric == metric && len(m.Trials) == 1 {
			return m.Trials[0]
		}
	}
	return -1
}

// While the corpus is in use somebody cuts the cache's file short, and a relay's own command spoils
// the file that it is to read: nobody else's events change, and the next run prepares the corpus
// anew.
func TestACorpusThatChangesUnderARunChangesNothingOfIt(t *testing.T) {
	t.Parallel()
	out, work, cache := t.TempDir(), t.TempDir(), t.TempDir()
	vandal := fmt.Sprintf(`cat "$2" | "$0" import --store bolt --dir "$1"; : > "$2"; for f in %s/*/events.ndjson; do : > "$f"; done`, cache)
	args := append([]string{"run"}, importers(t, map[string]string{"vandal": vandal})...)
	args = append(args, "--events", "600", "--trials", "2", "--only", "import,ingest.throughput", "--skip", "preflight,calibration", "--out", out,
		"--work", work, "--cache", cache, honest())
	code, _, stderr := relaybenchWith(t, withHonest, args...)
	files, _ := filepath.Glob(filepath.Join(cache, "*", "events.ndjson"))
	if info, err := os.Stat(strings.Join(files, "")); err != nil || info.Size() != 0 {
		t.Errorf("the cache's file was not cut short: %v %v", info, err)
	}
	r := recorded(t, out)
	if f := finding(r, "vandal", "import", results.CodeImported); code != exitDone || f == nil || f.Verdict != results.Passed {
		t.Errorf("exit code %d, %+v\n%s", code, f, stderr)
	}
	complete(t, r, "honest", "ingest.throughput")
	complete(t, r, "vandal", "ingest.throughput")
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("left in the work folder: %v", left)
	}
	code, _, stderr = relaybenchWith(t, withHonest, "corpus", "build", "--events", "600", "--cache", cache)
	if info, err := os.Stat(strings.Join(files, "")); code != exitDone || err != nil || info.Size() == 0 {
		t.Errorf("exit code %d, %v\n%s", code, err, stderr)
	}
}

func TestSeedingByImport(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, _, stderr := relaybench(t, "run", "--events", "400", "--trials", "1", "--seed-by", "import", "--only", "query.thread.hot,storage", "--skip", "preflight,calibration",
		"--query-rounds", "2", "--query-conns", "2", "--relay", "ref-memory", "--out", out)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	for _, name := range []string{"ref-bolt", "ref-sqlite"} {
		if f := finding(r, name, "import", results.CodeImported); f == nil || f.Verdict != results.Passed || figure(r, name, "stored") <= 0 {
			t.Errorf("%s: %+v", name, f)
		}
		if f := finding(r, name, "query.thread.hot", results.CodeModel); f == nil || f.Verdict != results.Passed {
			t.Errorf("%s: its answers: %+v", name, f)
		}
		complete(t, r, name, "query.thread.hot", "storage")
	}
	if f := finding(r, "ref-memory", "import", results.CodeMeasurable); f == nil || !strings.Contains(textOf(f), "names no import command") || figure(r, "ref-memory", "stored") != -1 {
		t.Errorf("a relay without an import command: %+v", f)
	}
	complete(t, r, "ref-memory", "query.thread.hot")
	if f := finding(r, "ref-memory", "storage", results.CodeMeasurable); f == nil || f.Cause != results.KeepsNothing {
		t.Errorf("ref-memory, which has nothing on disk: %+v", f)
	}
	if strings.Count(stderr, "ref-memory: seeding") != 1 || strings.Contains(stderr, "ref-bolt: seeding") {
		t.Errorf("who was published to:\n%s", stderr)
	}
	if r.Options["seed-by"] != "import" {
		t.Errorf("options %v", r.Options)
	}
}

// Where ingest has loaded the relay already, the import comes last and on a folder of its own.
func TestAnImportBesideIngestChangesNothingOfIt(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, _, stderr := relaybenchWith(t, withoutSQLite, "run", "--events", "400", "--trials", "2", "--only", "ingest.throughput,import,query.thread.hot", "--skip", "preflight,calibration",
		"--query-rounds", "2", "--query-conns", "2", "--out", out)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	complete(t, r, "ref-bolt", "ingest.throughput", "query.thread.hot")
	if f := finding(r, "ref-bolt", "import", results.CodeImported); f == nil || f.Verdict != results.Passed {
		t.Errorf("%+v", f)
	}
}
