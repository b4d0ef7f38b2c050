package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"relaybench/results"
)

// listed are the files that a report says were written: the lines after the heading.
func listed(report string) (files []string) {
	heading := false
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "FILES "):
			heading = true
		case heading && filepath.IsAbs(line):
			files = append(files, line)
		}
	}
	return files
}

func TestOnlyFilesThatWereWrittenAreListed(t *testing.T) {
	record := &results.Record{Relays: []results.Relay{{Name: "a", Outcome: results.OutcomeOK}}}
	dir := t.TempDir()
	saved := filepath.Join(dir, "saved")
	if err := os.Mkdir(saved, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := record.Write(filepath.Join(saved, "results.json")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, out string
		want      []string
		fails     bool
	}{
		{"all is well", saved, []string{"results.json", "report.md"}, false},
		{"the folder is gone", filepath.Join(dir, "gone"), nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout bytes.Buffer
			if err := (&runFlags{stdout: &stdout}).render(record, test.out); (err != nil) != test.fails {
				t.Errorf("error %v", err)
			}
			var want []string
			for _, name := range test.want {
				want = append(want, filepath.Join(test.out, name))
			}
			if got := listed(stdout.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("lists %q, want %q\n%s", got, want, stdout.String())
			}
		})
	}
}

// TestARunOnAFullDiskListsWhatItLeft runs with results that grow beyond the disk that they go to.
func TestARunOnAFullDiskListsWhatItLeft(t *testing.T) {
	t.Parallel()
	out := smallDisk(t, 24<<10)
	code, stdout, stderr := relaybenchWith(t, withHonest, "--quick", "--events=200", "--skip=preflight,calibration,crash,negentropy", "--out", out, honest())
	if code != exitUsage || !strings.Contains(stderr, "is full") {
		t.Errorf("exit code %d, want %d\n%s", code, exitUsage, stderr)
	}
	left, err := filepath.Glob(filepath.Join(out, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	files := listed(stdout)
	earlier := len(files) > 0 && filepath.Ext(files[0]) == ".json"
	if _, list, _ := strings.Cut(stdout, "FILES "); strings.Contains(list, "earlier state") != earlier {
		t.Errorf("not told that what was measured so far is not all of it:\n%s", list)
	}
	if len(files) != len(left) {
		t.Errorf("lists %q where %q was left", files, left)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || len(text) == 0 {
			t.Errorf("%s is listed: %d bytes, %v", file, len(text), err)
		} else if filepath.Ext(file) == ".json" {
			if r, err := results.ReadRecord(file); err != nil || !r.Partial {
				t.Errorf("%s: %v, want what was measured so far", file, err)
			}
		} else if text[len(text)-1] != '\n' {
			t.Errorf("%s is cut short", file)
		}
	}
}

func TestWriteWholeLeavesAllOrNothing(t *testing.T) {
	t.Parallel()
	out := smallDisk(t, 8<<10)
	path := filepath.Join(out, "report.md")
	if err := writeWhole(path, make([]byte, 64<<10)); err == nil || exists(path) {
		t.Errorf("64 KiB on a disk of 8: %v, left behind: %t", err, exists(path))
	}
	if err := writeWhole(path, []byte("whole")); err != nil || !regular(path) {
		t.Errorf("5 bytes: %v", err)
	}
	if err := writeWhole("/dev/full", []byte("x")); err == nil || !exists("/dev/full") {
		t.Errorf("a device: %v, is there still: %t", err, exists("/dev/full"))
	}
}

func TestTheWorkFolderIsMadeWithThoseAboveIt(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	for i, args := range [][]string{
		{"--quick", "--events=100", "--only=storage", "--skip=preflight,calibration", honest()},
		{"corpus", "build", "--events=100"},
		{"check", "--relay=" + strings.TrimPrefix(honest(), "--relay="), "honest"},
	} {
		work := filepath.Join(parent, string(rune('a'+i)), "b", "c")
		args = append(args, "--work", work)
		if strings.HasPrefix(args[0], "--") {
			args = append(args, "--out", t.TempDir())
		}
		if code, _, stderr := relaybenchWith(t, withHonest, args...); code != exitDone {
			t.Errorf("%q: exit code %d\n%s", args, code, stderr)
		}
		if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
			t.Errorf("%q: %v, %d things left in the work folder", args, err, len(left))
		}
	}
}

// smallDisk mounts a file system of so many bytes, which is gone when the test ends.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("a disk that is full takes root on Linux, to mount one")
	}
	dir := t.TempDir()
	if err := mountSmall(dir, size); err != nil {
		t.Skip("nothing can be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := unmountSmall(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
