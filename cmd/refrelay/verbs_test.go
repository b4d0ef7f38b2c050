package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"relaybench/corpus"
)

// command is refrelay with a verb in a process of its own.
func command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asRelay+"=1")
	return cmd
}

func signedLines(t *testing.T, n int) []byte {
	t.Helper()
	key, err := corpus.NewSecretKey([32]byte{31: 7})
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for i := range n {
		e := corpus.Event{CreatedAt: int64(1000 + i), Kind: 1, Content: "event " + strconv.Itoa(i)}
		if err := key.Sign(&e, [32]byte{}); err != nil {
			t.Fatal(err)
		}
		text = append(e.AppendJSON(text), '\n')
	}
	return text
}

func TestWhatWasImportedIsServedAndExportedAgain(t *testing.T) {
	text := signedLines(t, 300)
	half := bytes.Index(text, []byte("event 150"))
	half = bytes.LastIndexByte(text[:half], '\n') + 1
	zipped := filepath.Join(t.TempDir(), "events.json") // by its bytes, never by its name
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(text[:half])
	_ = w.Close()
	if err := os.WriteFile(zipped, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, store := range onDisk {
		t.Run(store, func(t *testing.T) {
			dir := t.TempDir()
			cmd := command("import", "--store", store, "--dir", dir, zipped, "-")
			cmd.Stdin = io.MultiReader(strings.NewReader("not an event\n"), bytes.NewReader(text[half:]))
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "301 read\n") || !strings.Contains(string(out), "300 stored\n") || !strings.Contains(string(out), "1 no event\n") {
				t.Fatalf("%v: %s", err, out)
			}
			p := start(t, "--store", store, "--dir", dir)
			if n := len(p.ids(t)); n != 300 {
				t.Errorf("%d events served", n)
			}
			cmd = command("import", "--store", store, "--dir", dir)
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "another process has it open") {
				t.Errorf("an import beside the relay: %v: %s", err, out)
			}
			p.cmd.Process.Signal(syscall.SIGTERM)
			_ = p.cmd.Wait()
			cmd = command("export", "--store", store, "--dir", dir)
			if out, err := cmd.Output(); err != nil || !bytes.Equal(out, text) {
				t.Errorf("exported %d bytes of %d: %v", len(out), len(text), err)
			}
		})
	}
}

// An import may be ended in any way: what it leaves is a store that opens, and an import of the
// same file completes it.
func TestAnImportThatWasEndedIsCompletedByAnother(t *testing.T) {
	text := signedLines(t, 20)
	var many []byte // the same events among broken lines, so that commits come before the end
	for range 3000 {
		many = append(many, "no event\n"...)
	}
	for _, store := range onDisk {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
			t.Run(store+" "+signal.String(), func(t *testing.T) {
				dir := t.TempDir()
				cmd := command("import", "--store", store, "--dir", dir)
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				for range 12 {
					_, _ = in.Write(many)
					_, _ = in.Write(text[:len(text)/2])
				}
				_ = cmd.Process.Signal(signal)
				_ = cmd.Wait()
				in.Close()
				if signal == syscall.SIGINT && (!strings.Contains(out.String(), "interrupted") || !regexp.MustCompile(`\d+ stored`).MatchString(out.String())) {
					t.Errorf("it said %s", out.String())
				}
				cmd = command("import", "--store", store, "--dir", dir)
				cmd.Stdin = bytes.NewReader(text)
				if said, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, said)
				}
				cmd = command("export", "--store", store, "--dir", dir)
				if got, err := cmd.Output(); err != nil || !bytes.Equal(got, text) {
					t.Errorf("%d bytes of %d: %v", len(got), len(text), err)
				}
			})
		}
	}
}

func TestASyncFetchesAndSends(t *testing.T) {
	text := signedLines(t, 400)
	cut := func(event string) int {
		return bytes.LastIndexByte(text[:bytes.Index(text, []byte(event))], '\n') + 1
	}
	theirs, ours := text[:cut("event 300")], text[cut("event 100"):]
	for _, store := range onDisk {
		t.Run(store, func(t *testing.T) {
			source, dir := t.TempDir(), t.TempDir()
			for folder, events := range map[string][]byte{source: theirs, dir: ours} {
				cmd := command("import", "--store", store, "--dir", folder)
				cmd.Stdin = bytes.NewReader(events)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			p := start(t, "--store", store, "--dir", source)
			for _, test := range []struct{ direction, want string }{
				{"down", "round 1: 100 to fetch, 0 to send\n"}, {"up", "round 1: 0 to fetch, 100 to send\n"}, {"both", "        1 reconciliations"},
			} {
				out, err := command("sync", "--store", store, "--dir", dir, "--direction", test.direction, "--batch", "30", "--window", "7", p.url).CombinedOutput()
				if err != nil || !strings.Contains(string(out), test.want) || strings.Contains(string(out), "left that only") {
					t.Errorf("%s: %v: %s", test.direction, err, out)
				}
			}
			if n := len(p.ids(t)); n != 400 {
				t.Errorf("the relay holds %d events", n)
			}
			if out, err := command("export", "--store", store, "--dir", dir).Output(); err != nil || !bytes.Equal(out, text) {
				t.Errorf("the store holds %d bytes of %d: %v", len(out), len(text), err)
			}
			p.cmd.Process.Kill()
			_ = p.cmd.Wait()
			if out, err := command("sync", "--store", store, "--dir", dir, p.url).CombinedOutput(); err == nil || !strings.Contains(string(out), "refrelay sync: ") {
				t.Errorf("with a relay that is gone: %v: %s", err, out)
			}
		})
	}
}
