package corpus

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

func TestIndexEntryTakes88Bytes(t *testing.T) {
	if size := unsafe.Sizeof(Entry{}); size != 88 {
		t.Errorf("%d bytes", size)
	}
}

func TestOpenedCorpusGivesBackItsEvents(t *testing.T) {
	events := testEvents(130)
	c := onDisk(t, events)
	again, err := Open(c.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	checkText(t, again, events)
	byID := map[ID]Event{}
	for _, e := range events {
		byID[e.ID] = e
	}
	for i := range again.Len() {
		entry := again.Entry(i)
		want := byID[entry.ID]
		if !bytes.Equal(again.Raw(i), want.AppendJSON(nil)) {
			t.Fatalf("raw event %d: %s", i, again.Raw(i))
		}
		if entry.PubKey != want.PubKey || entry.CreatedAt != want.CreatedAt || int(entry.Kind) != want.Kind || int(entry.Length) != len(again.Raw(i)) {
			t.Fatalf("entry %d: %+v", i, entry)
		}
		got, err := again.Event(i)
		if err != nil || got.Hash() != want.ID || got.Sig != want.Sig {
			t.Fatalf("event %d: %+v, %v", i, got, err)
		}
	}
	if m := again.Manifest(); m.Kinds["1"] != 130 || m.OldestUnix != again.Entry(0).CreatedAt || m.NewestUnix != again.Entry(129).CreatedAt || m.Bytes != int64(len(again.text)) {
		t.Errorf("manifest %+v", m)
	}
}

func TestFindKnowsEveryEventAndNoOther(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 100, 200} {
		c, err := FromEvents(testEvents(n))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for i := range n {
					id := c.Entry(i).ID
					if got, ok := c.Find(id); !ok || got != i {
						t.Errorf("of %d: event %d found at %d, %v", n, i, got, ok)
					}
					id[31] ^= 1
					if _, ok := c.Find(id); ok {
						t.Errorf("of %d: an id found that is not there", n)
					}
				}
				if _, ok := c.Find(ID{}); ok {
					t.Error("the zero id found")
				}
			})
		}
		wg.Wait()
	}
}

func TestFromEventsRefusesAnIDTwice(t *testing.T) {
	e := testEvents(1)[0]
	if _, err := FromEvents([]Event{e, e}); err == nil || !strings.Contains(err.Error(), e.ID.String()) {
		t.Errorf("error %v does not name the id", err)
	}
}

func TestCloseTwiceDoesNothing(t *testing.T) {
	c := onDisk(t, testEvents(1))
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// damage is a change to a prepared corpus of 20 events and what Open and Verify say about it. An
// empty saying means that all is well.
type damage struct {
	events, manifest func(text []byte) []byte
	open, verify     string
}

// swap replaces the first occurrence of old, which must be there.
func swap(t *testing.T, old, new string) func([]byte) []byte {
	return func(text []byte) []byte {
		if !bytes.Contains(text, []byte(old)) {
			t.Fatalf("%q is not in\n%s", old, text)
		}
		return bytes.Replace(text, []byte(old), []byte(new), 1)
	}
}

func TestDamageIsFoundAndNamed(t *testing.T) {
	t.Parallel()
	c := onDisk(t, testEvents(20))
	events, manifest := bytes.Clone(c.text), read(t, c.Dir(), ManifestFile)
	lines := bytes.SplitAfter(events, []byte{'\n'})[:20]
	line := func(n int) string { return string(lines[n-1]) }
	id := func(n int) string { return c.Entry(n - 1).ID.String() }
	last := func(n int) string { return line(n)[len(line(n))-20:] } // the end of the sig

	for name, d := range map[string]damage{
		"none":      {},
		"content":   {events: swap(t, line(7), strings.Replace(line(7), "日", "月", 1)), open: "checksum", verify: "line 7: id is not the hash"},
		"signature": {events: swap(t, last(9), flipDigit(last(9))), open: "checksum", verify: "line 9: signature"},
		"two lines": {events: func(b []byte) []byte {
			return swap(t, last(15), flipDigit(last(15)))(swap(t, last(4), flipDigit(last(4)))(b))
		}, open: "checksum", verify: "line 4: signature"},
		"escapes":                {events: swap(t, line(3), strings.Replace(line(3), "日", `\u65e5`, 1)), open: "bytes long where"},
		"other escape as long":   {events: swap(t, line(3), strings.Replace(line(3), ` \b `, ` \f `, 1)), open: "checksum", verify: "line 3: id is not the hash"},
		"not canonical":          {events: swap(t, line(3), strings.Replace(line(3), `["t","a\nb"]`, `["t", "a\nb"]`, 1)), manifest: swap(t, `"bytes": `, `"bytes": 1`), open: "bytes long where"},
		"kind with blank":        {events: swap(t, line(3), strings.Replace(line(3), `"kind":1,`, `"kind": ,`, 1)), open: "line 3: kind", verify: "line 3: kind"},
		"no object":              {events: swap(t, line(5), strings.Repeat("x", len(line(5))-1)+"\n"), open: "line 5: no id", verify: "line 5: no id"},
		"short line":             {events: swap(t, line(5), "{}\n"+strings.Repeat("x", len(line(5))-4)+"\n"), open: "line 5: too short", verify: "line 5: too short"},
		"newlines":               {events: func(b []byte) []byte { return bytes.Repeat([]byte{'\n'}, len(b)) }, open: "line 1: too short", verify: "line 1"},
		"line break lost":        {events: swap(t, line(5)+line(6), strings.TrimSuffix(line(5), "\n")+" "+line(6)), open: "20", verify: "line 5"},
		"order":                  {events: swap(t, line(11)+line(12), line(12)+line(11)), open: "line 12: not in corpus order", verify: "line 12: not in corpus order"},
		"last line break lost":   {events: func(b []byte) []byte { b[len(b)-1] = ' '; return b }, open: "line 20", verify: "line 20"},
		"file cut":               {events: func(b []byte) []byte { return b[:len(b)-10] }, open: "bytes long where", verify: "bytes long where"},
		"file empty":             {events: func(b []byte) []byte { return nil }, open: "bytes long where", verify: "bytes long where"},
		"id":                     {events: swap(t, id(20), id(20)[:63]+flipDigit(id(20)[63:])), open: "fingerprint", verify: "line 20: id is not"},
		"fingerprint":            {manifest: swap(t, c.Manifest().Fingerprint, flipDigit(c.Manifest().Fingerprint)), open: "fingerprint", verify: "fingerprint"},
		"count":                  {manifest: swap(t, `"events": 20`, `"events": 21`), open: "events", verify: "events"},
		"checksum":               {manifest: swap(t, c.Manifest().Checksum, flipDigit(c.Manifest().Checksum)), open: "checksum", verify: "checksum"},
		"no checksum":            {manifest: swap(t, `"checksum": "`+c.Manifest().Checksum+`",`, ""), open: "checksum", verify: "checksum"},
		"number read":            {manifest: swap(t, `"read": 20`, `"read": 21`), open: "left out", verify: "left out"},
		"number dropped":         {manifest: swap(t, `"bad_id": 0`, `"bad_id": 1`), open: "left out", verify: "left out"},
		"kinds":                  {manifest: swap(t, `"1": 20`, `"1": 19, "2": 1`), open: "kinds", verify: "kinds"},
		"span":                   {manifest: swap(t, `"oldestUnix": 1`, `"oldestUnix": 2`), open: "oldest", verify: "oldest"},
		"manifest no JSON":       {manifest: func(b []byte) []byte { return b[:30] }, open: "not a manifest", verify: "not a manifest"},
		"manifest huge":          {manifest: func(b []byte) []byte { return bytes.Repeat(b, 1+maxManifestBytes/len(b)) }, open: "is over", verify: "is over"},
		"manifest of the future": {manifest: swap(t, ManifestFormat, "relaybench/corpus/9"), open: "corpus/9", verify: "corpus/9"},
		"negative size":          {manifest: swap(t, `"bytes": `, `"bytes": -`), open: "bytes long where", verify: "bytes long where"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, EventsFile, events, d.events)
			write(t, dir, ManifestFile, manifest, d.manifest)
			opened, err := Open(dir)
			if err == nil {
				opened.Close()
			}
			checkDamage(t, "Open", err, d.open)
			if d.verify != "" || d.open == "" {
				checkDamage(t, "Verify", Verify(context.Background(), dir, nil), d.verify)
			}
		})
	}
}

func flipDigit(s string) string {
	if s[0] == '0' {
		return "1" + s[1:]
	}
	return "0" + s[1:]
}

func checkDamage(t *testing.T, what string, err error, says string) {
	t.Helper()
	switch {
	case says == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case says != "" && (!errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), says)):
		t.Errorf("%s: error %v does not say %q", what, err, says)
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, dir, name string, text []byte, change func([]byte) []byte) {
	t.Helper()
	if change != nil {
		text = change(bytes.Clone(text))
	}
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestOpenAndVerifyOfNothingSayThatThereIsNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open: %v", err)
	}
	if err := Verify(context.Background(), dir, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Verify: %v", err)
	}
}

func TestVerifyCanBeCancelled(t *testing.T) {
	c := onDisk(t, testEvents(150))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := Verify(ctx, c.Dir(), func(string, int64, int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// FuzzIndexLines holds the index against the real parser: it accepts no line whose fixed fields the
// parser reads otherwise.
func FuzzIndexLines(f *testing.F) {
	events := testEvents(3)
	c, err := FromEvents(events)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Clone(c.text))
	f.Add(events[0].AppendJSON(nil))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, _, err := indexLines(text, func([]byte) {})
		if err != nil {
			return
		}
		for i, entry := range entries {
			line := text[entry.Offset:][:entry.Length]
			e, err := ParseEvent(line)
			if err != nil || !bytes.Equal(e.AppendJSON(nil), line) {
				continue // tags and content are not the index's to check
			}
			if e.ID != entry.ID || e.PubKey != entry.PubKey || e.CreatedAt != entry.CreatedAt || e.Kind != int(entry.Kind) {
				t.Fatalf("entry %d is %+v, of %s", i, entry, line)
			}
		}
	})
}

func TestACorpusThatWasForgottenIsReadAgain(t *testing.T) {
	events := testEvents(50)
	c := onDisk(t, events)
	c.Forget()
	checkText(t, c, events)
	inMemory, err := FromEvents(events)
	if err != nil {
		t.Fatal(err)
	}
	inMemory.Forget()
	checkText(t, inMemory, events)
}

// Whoever cuts a mapped file short kills those who read the mapping.
func TestACorpusOutlivesItsFile(t *testing.T) {
	c := onDisk(t, testEvents(200))
	want := bytes.Clone(c.Text())
	if err := os.WriteFile(filepath.Join(c.Dir(), EventsFile), []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Forget() // so that it is read from the file again
	if !bytes.Equal(c.Text(), want) {
		t.Error("the events have changed")
	}
	if _, err := Open(c.Dir()); !errors.Is(err, ErrDamaged) {
		t.Errorf("what is left of it is opened: %v", err)
	}
	left, err := os.ReadDir(c.Dir())
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v: want the events and their manifest", left, err)
	}
}
