package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"relaybench/corpus"
	"relaybench/corpus/synthetic"
)

// dumped are events of all forms in a tar archive, with one line that is none and one event that
// has a control character.
func dumped(t *testing.T) (path string) {
	t.Helper()
	var lines [][]byte
	err := synthetic.Spec{Events: 60, Seed: 3, BaseTime: 1_780_272_000}.Generate(context.Background(), nil, func(e *corpus.Event) error {
		lines = append(lines, e.AppendJSON(nil))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	key, err := corpus.NewSecretKey([32]byte{31: 9})
	if err != nil {
		t.Fatal(err)
	}
	odd := corpus.Event{CreatedAt: 1_780_000_000, Kind: 1, Tags: []corpus.Tag{}, Content: "a\x7fb"}
	if err := key.Sign(&odd, [32]byte{}); err != nil {
		t.Fatal(err)
	}
	quoted := corpus.Event{CreatedAt: 1_780_000_000, Kind: 1, Tags: []corpus.Tag{}, Content: `say "hi"`}
	if err := key.Sign(&quoted, [32]byte{}); err != nil {
		t.Fatal(err)
	}
	lines = append(lines, odd.AppendJSON(nil))
	first := append(bytes.Join(lines[:20], []byte("\n")), "\n\x1b[31mhello\n"...)
	second := fmt.Appendf(nil, "[%s]\n[\"EVENT\",\"s\",%s]\n%s\n%s\n", bytes.Join(lines[20:40], []byte(",")), lines[40], bytes.Join(lines[41:], []byte("\n")),
		bytes.ReplaceAll(quoted.AppendJSON(nil), []byte(`\`), []byte(`\\`)))
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for i, part := range [][]byte{first, second} {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("part-%d", i), Mode: 0o644, Size: int64(len(part))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "dump")
	if err := os.WriteFile(path, archive.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatACorpusLeavesOutIsTold(t *testing.T) {
	t.Parallel()
	path, cache := dumped(t), []string{"RELAYBENCH_CACHE=" + t.TempDir()}
	for round := range 2 { // the second time from the cache
		code, stdout, stderr := relaybenchWith(t, cache, "corpus", "build", "--corpus", path)
		if code != exitDone {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		for _, says := range []string{"events       61, ", " KiB\n", "left out     1: control_character\n", `left out     1: unparseable (the first is in "part-0", line 21: no JSON object)`, "that was undone; events: 1\n"} {
			if !strings.Contains(stdout, says) {
				t.Errorf("round %d: %q is not in\n%s", round, says, stdout)
			}
		}
		if !strings.Contains(stderr, `file dump: left out since it is no event: 1; the first is in "part-0", line 21: no JSON object`) || !strings.Contains(stderr, "psql's COPY") || strings.Contains(stderr, "\x1b") {
			t.Errorf("round %d: %s", round, stderr)
		}
	}
	code, stdout, stderr := relaybenchWith(t, cache, "corpus", "build", "--corpus", path, "--keep-control-characters")
	if code != exitDone || !strings.Contains(stdout, "events       62,") || strings.Contains(stdout, "control_character") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
