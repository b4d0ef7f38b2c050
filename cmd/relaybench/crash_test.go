package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"relaybench/results"
)

// TestAKilledRelayAnswersForWhatItAcknowledged kills a relay that keeps its word, one that never
// gave it, and one whose definition promises what it does not keep.
func TestAKilledRelayAnswersForWhatItAcknowledged(t *testing.T) {
	t.Parallel()
	definitions := t.TempDir()
	liar := "name = \"forgetful\"\ncommand = \"{program} --listen 127.0.0.1:{port} --store memory\"\ndurability = \"commit\"\n[find]\nenv = [\"REFRELAY_BIN\"]\n"
	if err := os.WriteFile(filepath.Join(definitions, "forgetful.toml"), []byte(liar), 0o600); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	code, stdout, stderr := relaybenchWith(t, withoutSQLite, "--quick", "--events=900", "--only=ingest.paced,crash", "--skip=preflight,calibration", "--out", out,
		"--relays-dir", definitions, "--relay=ref-memory", "--relay=forgetful")
	if code != exitFailed {
		t.Errorf("exit code %d, want %d\n%s", code, exitFailed, stderr)
	}
	r := recorded(t, out)
	complete(t, r, "ref-bolt", "ingest.paced", "crash")
	const check = results.CodeAcknowledgedKept
	for name, required := range map[string]bool{"ref-memory": false, "forgetful": true} {
		if f := finding(r, name, "crash", check); f == nil || f.Verdict == results.Passed || (f.Verdict == results.Failed) != required || len(f.Evidence) == 0 {
			t.Errorf("%s: %+v, want a loss that is required not to happen: %t", name, f, required)
		}
	}
	if !strings.Contains(stdout, "nothing acknowledged is missing") {
		t.Errorf("the report does not say why forgetful is in no ranking:\n%s", stdout)
	}
}
