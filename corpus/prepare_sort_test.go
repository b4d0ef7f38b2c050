package corpus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
)

// sortThrough adds events to a sorter with small runs and returns the lines it gives back.
func sortThrough(t *testing.T, events []Event, runBytes, maxRuns, limit int) (out [][]byte, s *sorter, over int) {
	t.Helper()
	dir := t.TempDir()
	s = newSorter(dir)
	s.runBytes, s.maxRuns = runBytes, maxRuns
	ctx := context.Background()
	for i := range events {
		e := &events[i]
		if err := s.add(ctx, e.CreatedAt, &e.ID, uint16(e.Kind), e.AppendJSON(nil)); err != nil {
			t.Fatal(err)
		}
	}
	over, err := s.each(ctx, limit, func(r *record, line []byte) error {
		e, err := ParseEvent(line)
		if err != nil || e.ID != r.id || e.CreatedAt != r.createdAt || e.Kind != int(r.kind) {
			t.Fatalf("record %+v of line %s, %v", r, line, err)
		}
		out = append(out, bytes.Clone(line))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.close()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files left", len(left))
	}
	return out, s, over
}

func TestSorterGivesTheSameThroughMemoryAndDisk(t *testing.T) {
	t.Parallel()
	events := someEvents(150)
	for i := range 40 { // the same ids with other signatures, near and far
		again := events[(i*37)%60]
		if err := testSigner(0).Sign(&again, [32]byte{byte(i), 1}); err != nil {
			t.Fatal(err)
		}
		events = append(events, again)
	}
	for _, limit := range []int{0, 1, 77, 150, 1000} {
		want, memory, wantOver := sortThrough(t, events, runBytes, maxRuns, limit)
		if memory.named != 0 || memory.duplicates != 40 || len(want) != 150-wantOver {
			t.Fatalf("in memory: %d files, %d duplicates, %d events, %d over", memory.named, memory.duplicates, len(want), wantOver)
		}
		for _, c := range []struct{ runBytes, maxRuns int }{{40_000, 128}, {5_000, 3}, {1, 5}} {
			t.Run(fmt.Sprintf("limit %d, runs of %d bytes, at most %d", limit, c.runBytes, c.maxRuns), func(t *testing.T) {
				got, disk, over := sortThrough(t, events, c.runBytes, c.maxRuns, limit)
				if disk.named == 0 {
					t.Error("nothing went through the disk")
				}
				if disk.duplicates != 40 || over != wantOver {
					t.Errorf("%d duplicates, %d over the limit; want 40, %d", disk.duplicates, over, wantOver)
				}
				if !bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)) {
					t.Errorf("%d events, not the same as in memory (%d)", len(got), len(want))
				}
			})
		}
	}
}

func TestSorterReportsWhatTheDiskRefuses(t *testing.T) {
	events := someEvents(3)
	s := newSorter(t.TempDir() + "/absent")
	s.runBytes = 1
	ctx := context.Background()
	var err error
	for i := range events {
		if err == nil {
			err = s.add(ctx, events[i].CreatedAt, &events[i].ID, 1, []byte("x"))
		}
	}
	if err == nil {
		_, err = s.each(ctx, 0, func(*record, []byte) error { return nil })
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want %v", err, os.ErrNotExist)
	}
	s.close()
}

func TestSeenFindsEveryRepeatAndNothingElse(t *testing.T) {
	s := newSeen()
	for round := range 2 {
		for i := range 10_000 {
			if s.add(s.key(fmt.Append(nil, i))) != (round == 1) {
				t.Fatalf("text %d in round %d", i, round)
			}
		}
	}
	if s.n != 10_000 || len(s.slots) > 1<<14 {
		t.Errorf("%d keys in %d slots", s.n, len(s.slots))
	}
}
