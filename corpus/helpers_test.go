package corpus

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// signedEvents are made once: signing is what takes time in these tests.
var signedEvents = sync.OnceValue(func() []Event {
	key, err := NewSecretKey([32]byte{31: 1})
	if err != nil {
		panic(err)
	}
	events := make([]Event, 200)
	InParallel(len(events), func(i int) {
		events[i] = Event{
			CreatedAt: 1_700_000_000 + int64(i*7919%601)/3, Kind: 1,
			Tags:    []Tag{{"t", "a\nb"}, {"n", fmt.Sprint(i)}},
			Content: "{[\"\\ }] \u2028 \b 日本 🎉 " + strings.Repeat("x", i%50),
		}
		if err := key.Sign(&events[i], [32]byte{}); err != nil {
			panic(err)
		}
	})
	return events
})

// testEvents returns n different good events, at most 200, not in corpus order, with several in one
// second and text that needs escapes.
func testEvents(n int) []Event { return slices.Clone(signedEvents()[:n]) }

// onDisk opens a corpus of the events from a new folder.
func onDisk(t testing.TB, events []Event) *Corpus {
	t.Helper()
	from, err := FromEvents(events)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w, err := NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range from.Len() {
		if err := w.Add(*from.Entry(i), from.Raw(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(Manifest{Format: ManifestFormat, Read: len(events), Dropped: map[string]int{"bad_id": 0}}); err != nil {
		t.Fatal(err)
	}
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// checkText compares the corpus with the events that it should consist of.
func checkText(t *testing.T, c *Corpus, want []Event) {
	t.Helper()
	expected, err := FromEvents(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(c.Text()) != string(expected.Text()) {
		t.Fatalf("corpus of %d events:\n%.2000s\nwant %d:\n%.2000s", c.Len(), c.Text(), expected.Len(), expected.Text())
	}
}
