package results

import (
	"fmt"
	"math"
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
			r := &Record{Relays: []Relay{{Name: "a\x1b"}, {Name: "b"}}, Measurements: test.measurements}
			path, err := "", r.withinLimits()
			if len(test.measurements) != len(many) && len(test.measurements) != len(many)+1 { // a file of millions takes its time
				path = filepath.Join(t.TempDir(), "results.json")
				if err := r.Write(path); err != nil {
					t.Fatal(err)
				}
				_, err = ReadRecord(path)
			}
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

// What no run can have measured is refused with its place, in either form.
func TestRecordsThatLieAreRefusedWithThePlace(t *testing.T) {
	const fine = `{"relay":"a","scenario":"s","metric":"m","unit":"ms","better":"lower","trials":[1,0]}`
	of := func(fields string) string {
		return `{"relay":"b\u001b","peer":"c","scenario":"query.thread.hot","metric":"eose","unit":"ms","better":"lower",` + fields + `}`
	}
	for _, form := range []string{Schema, schema1} {
		for name, test := range map[string]struct {
			more string
			want []string // nil where the record is read
		}{
			"as many trials as the run had": {of(`"trials":[1,2.5,0]`), nil},
			"null":                          {of(`"trials":[1,null]`), []string{"no number in trial 2"}},
			"text":                          {of(`"trials":["1",2]`), []string{"no number in trial 1"}},
			"of a stranger":                 {strings.Replace(of(`"trials":[1]`), `"b\u001b"`, `"ghost"`, 1), []string{"measurement 2", `"ghost"`, "none of its relays"}},
			"with a stranger":               {of(`"trials":[1]`) + "," + strings.Replace(of(`"trials":[1]`), `"c"`, `"with c"`, 1), []string{"measurement 3", "none of its relays"}},
			"below 0":                       {of(`"trials":[-1e-9]`), []string{"-1e-09 in trial 1"}},
			"minus infinity":                {of(`"trials":[1,2,-1e999]`), []string{"trial 3", "too large"}},
			"not finite":                    {of(`"trials":[1e999]`), []string{"trial 1", "too large"}},
			"more trials than the run had":  {of(`"trials":[1,2,3,4]`), []string{"4 trials", "the run had 3"}},
			"a second below 0":              {of(`"trials":[1],"timeline":[1,-2]`), []string{"-2 in second 2"}},
			"a second of null":              {of(`"trials":[1],"timeline":[null]`), []string{"no number in second 1"}},
			"samples below 0":               {of(`"trials":[1],"samples":-5`), []string{"-5 samples"}},
			"the same twice":                {of(`"trials":[1]`) + "," + of(`"trials":[2]`), []string{"measurement 3", "is there already as measurement 2"}},
			"in another unit":               {of(`"trials":[1]`) + "," + strings.Replace(of(`"trials":[2]`), `"ms"`, `"s"`, 1), []string{"measurement 3"}},
			"of another metric":             {of(`"trials":[1]`) + "," + strings.Replace(of(`"trials":[2]`), "eose", "first event", 1), nil},
			"of another peer":               {of(`"trials":[1]`) + "," + strings.Replace(of(`"trials":[2]`), `"c"`, `"d"`, 1), nil},
		} {
			t.Run(form+" "+name, func(t *testing.T) {
				text := fmt.Sprintf(`{"schema":%q,"options":{"trials":3},"relays":[{"name":"a"},{"name":"b\u001b"},{"name":"c"},{"name":"d"}],"measurements":[%s,%s]}`, form, fine, test.more)
				_, err := parseRecord([]byte(text))
				if (err == nil) != (test.want == nil) {
					t.Fatalf("error %v", err)
				}
				if err == nil {
					return
				}
				for _, want := range append(test.want, `"eose"`, `with c"`, `"query.thread.hot"`) {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q does not name %q", err, want)
					}
				}
				if strings.ContainsAny(err.Error(), "\x1b\n") {
					t.Errorf("not one clean sentence: %q", err)
				}
			})
		}
	}
	for fields, want := range map[string]string{`"trials":null`: "no trial", `"trials":[]`: "no trial", `"samples":1`: "no trial", `"trials":[],"status":[{"code":"not-measured"}]`: "",
		`"trials":[1],"better":"maybe"`: `"maybe"`} {
		text := `{"schema":"` + Schema + `","relays":[{"name":"b\u001b"},{"name":"c"}],"measurements":[` + of(fields) + `]}`
		if strings.Contains(fields, "better") {
			text = strings.Replace(text, `"better":"lower",`, "", 1)
		}
		if _, err := parseRecord([]byte(text)); (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "measurement 1")) {
			t.Errorf("%s: %v", fields, err)
		}
	}
	same := of(`"labels":{"form":"hot"},"trials":[1]`)
	for other, twice := range map[string]bool{same: true, strings.Replace(same, `"form":"hot"`, `"form":"raw"`, 1): false} {
		_, err := parseRecord([]byte(`{"schema":"` + Schema + `","relays":[{"name":"b\u001b"},{"name":"c"}],"measurements":[` + same + "," + other + `]}`))
		if (err != nil) != twice || err != nil && !strings.Contains(err.Error(), "form:hot") {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// What a reader of JSON passes over in silence is refused with its place as well, in either form.
func TestRecordsThatAreUntidyAreRefusedWithThePlace(t *testing.T) {
	const a, m = `{"name":"a"}`, `{"relay":"a","scenario":"s","metric":"m","unit":"ms","better":"lower","trials":[1]}`
	for _, form := range []string{Schema, schema1} {
		for name, test := range map[string]struct {
			fields string
			want   []string // nil where the record is read
		}{
			"tidy":                         {`"options":{"trials":1,"Trials":2,"x":[null,{"y":1}]},"relays":[` + a + `],"measurements":[` + m + `]`, nil},
			"null among measurements":      {`"relays":[` + a + `],"measurements":[` + m + `,null]`, []string{"measurements 2", "null"}},
			"null among relays":            {`"relays":[null]`, []string{"relays 1", "null"}},
			"a relay twice":                {`"relays":[` + a + `,{"name":"b"},` + a + `]`, []string{"relay 3", `"a"`, "as relay 1"}},
			"a check of a stranger":        {`"relays":[` + a + `],"findings":[{"relay":"ghost","code":"c","check":"c","verdict":"passed"}]`, []string{"check 1", `"ghost"`, "none of its relays"}},
			"one blamed that is no relay":  {`"relays":[` + a + `],"findings":[{"relay":"a","blames":"ghost","code":"c","verdict":"failed"}]`, []string{"check 1", `"ghost"`, "none of its relays"}},
			"measurements twice":           {`"relays":[` + a + `],"measurements":[` + m + `],"measurements":[]`, []string{`"measurements"`, "twice"}},
			"twice in either case":         {`"relays":[` + a + `],"measurements":[` + m + `],"Measurements":[]`, []string{`"Measurements"`, "twice"}},
			"a field of a measurement":     {`"relays":[` + a + `],"measurements":[` + m + `,` + strings.Replace(m, `"trials"`, `"samples":1,"SAMPLES":2,"trials"`, 1) + `]`, []string{"measurements 2.SAMPLES", "twice"}},
			"a label twice":                {`"relays":[` + a + `],"measurements":[` + strings.Replace(m, `"trials"`, `"labels":{"x":"1","x":"2"},"trials"`, 1) + `]`, []string{"measurements 1.labels.x", "twice"}},
			"an option twice":              {`"options":{"x":[],"x":{}}`, []string{"options.x", "twice"}},
			"trials below 0":               {`"options":{"trials":-3}`, []string{"option trials", `"-3"`}},
			"no trials":                    {`"options":{"trials":0}`, []string{"option trials", `"0"`}},
			"trials in words":              {`"options":{"trials":"three"}`, []string{"option trials", "three"}},
			"more trials than there are":   {`"options":{"trials":1e15}`, nil},
			"a measurement without trials": {`"relays":[` + a + `],"measurements":[` + strings.Replace(m, `[1]`, `"many"`, 1) + `]`, []string{"trials", "a list"}},
		} {
			if form == schema1 && strings.Contains(test.fields, "blames") {
				continue // which that form does not have
			}
			t.Run(form+" "+name, func(t *testing.T) {
				_, err := parseRecord([]byte(fmt.Sprintf(`{"schema":%q,%s}`, form, test.fields)))
				if (err == nil) != (test.want == nil) {
					t.Fatalf("error %v", err)
				}
				for _, want := range test.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q does not name %q", err, want)
					}
				}
				if err != nil && strings.Contains(err.Error(), "float64") {
					t.Errorf("not in plain words: %q", err)
				}
			})
		}
	}
}

// A figure that comes once more than there are trials keeps what it had.
func TestNoFigureGetsMoreValuesThanTrials(t *testing.T) {
	r := NewRecorder(&Record{Options: map[string]any{"trials": int64(2)}, Relays: []Relay{{Name: "a"}}}, nil)
	for _, v := range []float64{3, 4, 5} {
		r.Add(Measurement{Relay: "a", Scenario: "s", Metric: "cpu", Unit: "s", Better: None, Trials: []float64{v}, Samples: 1})
	}
	snapshot, path := r.Snapshot(), filepath.Join(t.TempDir(), "results.json")
	if err := snapshot.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Measurements[0]; !reflect.DeepEqual(m.Trials, Values{3, 4}) || m.Samples != 2 {
		t.Errorf("%+v", m)
	}
}

// What a run writes it can read: a counter that was set back costs its trial, not the record.
func TestWhatIsRecordedCanBeRead(t *testing.T) {
	r := NewRecorder(&Record{Options: map[string]any{"trials": 3}, Relays: []Relay{{Name: "a"}}}, nil)
	for _, v := range []float64{1, -3, math.NaN(), math.Inf(1), 2} {
		r.Add(Measurement{Relay: "a", Scenario: "s", Metric: "cpu", Unit: "s", Better: None, Trials: []float64{v}, Timeline: []float64{v}})
	}
	snapshot, path := r.Snapshot(), filepath.Join(t.TempDir(), "results.json")
	if err := snapshot.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Measurements[0]; !reflect.DeepEqual(m.Trials, Values{1, 2}) || m.Is(StatusNoNumber) == nil {
		t.Errorf("%+v", m)
	}
}

func TestRecordsAreToldApartByWhatTheySay(t *testing.T) {
	first, again, other := fullRecord(t), fullRecord(t), fullRecord(t)
	other.Measurements[0].Trials[1]++
	hash := func(r *Record) string {
		sum, err := r.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", sum)
	}
	if hash(first) != hash(again) || hash(first) == hash(other) {
		t.Errorf("%s, %s, %s", hash(first), hash(again), hash(other))
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(`{"schema":"relaybench/results/1","measurements":[{"relay":"a","trials":null}]}`))
	f.Add([]byte(`{"schema":"relaybench/results/2","findings":[{"code":"acknowledged-kept","verdict":"failed"}]}`))
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
		if _, err := r.Hash(); err != nil {
			t.Error("what was read cannot be written: ", err)
		}
	})
}

// A list without bound is refused before it is read into memory, by its name.
func TestAListWithoutBoundIsRefusedByName(t *testing.T) {
	text := `{"schema":"` + Schema + `","relays":[` + strings.Repeat(`{},`, mostListed) + `{}]}`
	if _, err := parseRecord([]byte(text)); err == nil || !strings.Contains(err.Error(), `"relays"`) || !strings.Contains(err.Error(), fmt.Sprint(mostListed)) {
		t.Errorf("%v", err)
	}
}
