package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestRecordSurvivesWritingAndReading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	want := fullRecord(t)
	for range 2 { // the second write replaces the first
		if err := want.Write(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it came back as %+v", got)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v)", entries, err)
	}
}

func TestWriteErrorsNameTheFolderAndTheRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"read-only file system": {&os.PathError{Op: "open", Path: "x", Err: syscall.EROFS}, "cannot be written to"},
		"no permission":         {&os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, "cannot be written to"},
		"full disk":             {&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "disk of /out is full"},
		"quota":                 {&os.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}, "disk of /out is full"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := writeError("/out/results.json", c.err).Error(); !strings.Contains(got, c.want) || !strings.Contains(got, "--out") {
				t.Error(got)
			}
		})
	}
}

func TestWriteIntoAMissingFolderSaysSo(t *testing.T) {
	err := fullRecord(t).Write(filepath.Join(t.TempDir(), "gone", "results.json"))
	if err == nil || !strings.Contains(err.Error(), "gone does not exist") {
		t.Error(err)
	}
}

// A real full disk, where the machine offers one.
func TestAFullDiskKeepsTheOldRecord(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this machine has no /dev/full")
	}
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("/dev/full cannot be opened: ", err)
	}
	defer f.Close()
	// The mode of a device is not changed by a test: only the writing is tried.
	err = encodeJSON(f, fullRecord(t))
	path := filepath.Join(t.TempDir(), "results.json")
	if got := writeError(path, err).Error(); !strings.Contains(got, "is full") || strings.Contains(got, "earlier") {
		t.Error(got)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := writeError(path, err).Error(); !strings.Contains(got, "holds an earlier state") {
		t.Error(got)
	}
}

func TestReadRecordSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.json")
	if err := fullRecord(t).Write(good); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ content, want string }{
		"empty file":          {"", "is empty"},
		"cut short":           {string(text[:len(text)/2]), "cut short"},
		"not JSON":            {"PK\x03\x04 whatever this is", "not JSON"},
		"two documents":       {string(text) + "{}", "not JSON"},
		"an array":            {"[1,2]", "not a results.json"},
		"another document":    {`{"name":"x"}`, "no schema id"},
		"another version":     {`{"schema":"relaybench/results/9"}`, `"relaybench/results/9"`},
		"a hostile schema":    {`{"schema":"` + strings.Repeat(`\u001b[2J`, 50) + `"}`, `\x1b[2J`},
		"a wrong type":        {`{"schema":"relaybench/results/2","relays":[{"name":3}]}`, "relays"},
		"a wrong type of old": {`{"schema":"relaybench/results/1","relays":[{"name":3}]}`, "relays"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "bad.json")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := ReadRecord(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Fatalf("got %v", err)
			}
			if strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > 400 {
				t.Errorf("not one clean sentence: %q", err)
			}
		})
	}
	if _, err := ReadRecord(dir); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Error(err)
	}
	if _, err := ReadRecord(filepath.Join(dir, "none.json")); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Error(err)
	}
	if _, err := ReadRecord(os.DevNull); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
	big := filepath.Join(dir, "big.json")
	if err := os.WriteFile(big, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, maxRecordBytes+1); err != nil { // sparse: no block is written
		t.Skip("no sparse files here: ", err)
	}
	if _, err := ReadRecord(big); err == nil || !strings.Contains(err.Error(), "larger than 256 MiB") {
		t.Error(err)
	}
}

func TestMoreTrialsThanARunTakesAreRefusedByName(t *testing.T) {
	named := func(scenario string, trials int) Measurement {
		return Measurement{Relay: "a\x1b", Peer: "b", Scenario: scenario, Metric: "accepted", Unit: "events/s", Better: Higher, Trials: make([]float64, trials)}
	}
	many := []Measurement{}
	for i := range MaxAllTrials / MaxTrials {
		many = append(many, named(fmt.Sprintf("s%d", i), MaxTrials))
	}
	for _, test := range []struct {
		name         string
		measurements []Measurement
		want         []string // nil where the record is read
	}{
		{"as many as may be", many, nil},
		{"one more in one measurement", []Measurement{named("first", 1), named("second", MaxTrials+1)}, []string{`"second"`, `"accepted"`, "10001 trials", "10000"}},
		{"one measurement more", make([]Measurement, MaxMeasurements+1), []string{"50001 measurements", "50000"}},
		{"one more in all", append(many, named("last", 1)), []string{`"last"`, "2000000"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "results.json")
			if err := (&Record{Measurements: test.measurements}).Write(path); err != nil {
				t.Fatal(err)
			}
			_, err := ReadRecord(path)
			if (err == nil) != (test.want == nil) {
				t.Fatalf("error %v", err)
			}
			for _, want := range append(test.want, path) {
				if err != nil && (!strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\x1b\n")) {
					t.Errorf("%q does not name %q in one clean sentence", err, want)
				}
			}
		})
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(`{"schema":"relaybench/results/1","measurements":[{"relay":"a","trials":null}]}`))
	f.Add([]byte(`{"schema":"relaybench/results/2","findings":[{"code":"kept","verdict":"failed"}]}`))
	f.Add([]byte(`{"schema":"relaybench/results/1","options":{"x":[{}]},"startedAt":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err != nil {
			return
		}
		if r.Measurements == nil || r.Findings == nil || r.Relays == nil || r.Options == nil {
			t.Error("a list is missing after reading")
		}
	})
}
