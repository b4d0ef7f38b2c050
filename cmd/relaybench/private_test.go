package main

import (
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestResultsHoldNothingPrivate publishes what a run leaves behind, of a relay that came through,
// one that was given by its path, and one that says all it knows of the machine before it fails,
// and looks in it for what is nobody's business.
func TestResultsHoldNothingPrivate(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home", "somebody")
	secret := filepath.Join(t.TempDir(), "where-i-keep-things")
	work, out := filepath.Join(secret, "work"), filepath.Join(secret, "out")
	for _, dir := range []string{home, work, out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env := append([]string{"HOME=" + home, "USER=somebody", "RELAYBENCH_CACHE=" + filepath.Join(secret, "cache")}, withoutSQLite...)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	talker := filepath.Join(secret, "talker")
	script := "#!/bin/sh\necho \"port $1: cannot open $2/db, nor $2/../x, $HOME/.config or $HOME, on " + host + "\" >&2\nexit 3\n"
	if err := os.WriteFile(talker, []byte(script), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	code, stdout, stderr := relaybenchWith(t, env, "--quick", "--events=300", "--trials=1", "--only=ingest.throughput,query.thread,storage", "--skip=calibration", "--out", out, "--work", work,
		"--relay", "mine="+refrelayProgram+" --listen 127.0.0.1:{port} --store memory --dir {dir}", "--relay", "talker="+talker+" {port} {dir}")
	if code != exitFailed {
		t.Fatalf("exit code %d, want %d for the talker\n%s", code, exitFailed, stderr)
	}
	if r := recorded(t, out); len(relay(t, r, "talker").LogTail) == 0 {
		t.Error("the talker's log is not in the record, so that this test proves little")
	}
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	private := map[string]string{"the home folder": home, "the work folder": work, "the results folder": out, "a folder of mine": secret, "the temporary folder": os.TempDir(),
		"the current folder": cwd, "the reference relay's folder": filepath.Dir(refrelayProgram), "the host name": host, "the user name": "somebody"}
	if u, err := user.Current(); err == nil {
		private["the real home folder"] = u.HomeDir
		if u.Username != "root" { // which is no one's name, and a word of its own in Nostr
			private["the real user name"] = u.Username
		}
	}
	for _, pattern := range []string{"results.json", "report.md"} {
		files, err := filepath.Glob(filepath.Join(out, "*", pattern))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		search(t, pattern, string(text), private)
	}
	report, _, _ := strings.Cut(stdout, "\nFILES ") // the last lines say where the files are, to whoever ran it
	search(t, "the terminal's report", report, private)
}

// search looks for each text as a whole word: a host named "a" is not in every sentence.
func search(t *testing.T, where, text string, private map[string]string) {
	t.Helper()
	for what, value := range private {
		if len(value) < 2 {
			continue
		}
		pattern := regexp.MustCompile(`(?:^|[^A-Za-z0-9_.-])` + regexp.QuoteMeta(value) + `(?:$|[^A-Za-z0-9_-])`)
		if at := pattern.FindStringIndex(text); at != nil {
			t.Errorf("%s holds %s: …%s…", where, what, text[max(0, at[0]-80):min(len(text), at[1]+40)])
		}
	}
}
