package prepare

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"relaybench/corpus"
)

// sorted returns what a sorter gives back of events: their lines, how many came twice and how many
// were over the limit.
func sorted(t *testing.T, events []corpus.Event, limit int) (lines []string, duplicates, over int) {
	t.Helper()
	dir := t.TempDir()
	s := newSorter(dir)
	defer s.close()
	for i := range events {
		e := &events[i]
		if err := s.add(e.CreatedAt, &e.ID, uint16(e.Kind), e.AppendJSON(nil)); err != nil {
			t.Fatal(err)
		}
	}
	over, err := s.each(t.Context(), limit, func(r *sortEntry, line []byte) error {
		e, err := corpus.ParseEvent(line)
		if err != nil || e.ID != r.id || e.CreatedAt != r.createdAt || e.Kind != int(r.kind) {
			t.Fatalf("record %+v of line %s, %v", r, line, err)
		}
		lines = append(lines, string(line))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files left", len(left))
	}
	return lines, s.duplicates, over
}

func TestTheFirstOfEachIDComesInOrder(t *testing.T) {
	t.Parallel()
	events := someEvents(150)
	var all []string // in corpus order
	for _, e := range slices.SortedFunc(slices.Values(events), func(a, b corpus.Event) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
	}) {
		all = append(all, string(e.AppendJSON(nil)))
	}
	for i := range 40 { // the same ids with other signatures, near and far
		again := events[(i*37)%60]
		if err := testSigner(0).Sign(&again, [32]byte{byte(i), 1}); err != nil {
			t.Fatal(err)
		}
		events = append(events, again)
	}
	for _, limit := range []int{0, 1, 77, 150, 1000} {
		wantOver := 0
		if limit > 0 {
			wantOver = max(0, len(all)-limit)
		}
		got, duplicates, over := sorted(t, events, limit)
		if duplicates != 40 || over != wantOver || !slices.Equal(got, all[wantOver:]) {
			t.Errorf("limit %d: %d events, %d duplicates, %d over", limit, len(got), duplicates, over)
		}
	}
}

func TestSorterReportsWhatTheDiskRefuses(t *testing.T) {
	e := someEvents(1)[0]
	s := newSorter(t.TempDir() + "/absent")
	defer s.close()
	if err := s.add(e.CreatedAt, &e.ID, 1, []byte("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want %v", err, os.ErrNotExist)
	}
}

func TestSeenFindsEveryRepeatAndNothingElse(t *testing.T) {
	s := newTextSet()
	for round := range 2 {
		for i := range 10_000 {
			if s.repeats(s.key(fmt.Append(nil, i))) != (round == 1) {
				t.Fatalf("text %d in round %d", i, round)
			}
		}
	}
	if s.n != 10_000 {
		t.Errorf("%d texts", s.n)
	}
}

func TestSeenKnowsWhatWasAdded(t *testing.T) {
	s := NewSeen()
	key := func(n int) Key { return Key{uint64(n)*0x9e3779b97f4a7c15 | 1, uint64(n)} }
	const n = 50_000
	for i := range n {
		if s.Has(key(i)) || !s.Add(key(i)) || s.Add(key(i)) || !s.Has(key(i)) {
			t.Fatal(i)
		}
	}
	slots, held := 0, 0
	for i := range s.tables {
		slots, held = slots+len(s.tables[i].slots), held+s.tables[i].n
	}
	if perKey := 16 * float64(slots) / n; held != n || perKey > 48 {
		t.Errorf("%d keys, each of which takes %.1f bytes", held, perKey)
	}
	for i := range n {
		if !s.Has(key(i)) || s.Has(key(n+i)) {
			t.Fatal(i)
		}
	}
}
