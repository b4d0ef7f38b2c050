package load

import (
	"math/rand/v2"
	"testing"
	"time"

	"relaybench/corpus"
)

// TestInflightAgreesWithAMap puts random ids in and takes them out again, many with the same home
// slot.
func TestInflightAgreesWithAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const window = 50
	table := newInflight(window)
	model := map[corpus.ID]sent{}
	for step := range 200_000 {
		var id corpus.ID
		id[0] = byte(r.IntN(8)) // eight homes only, so that every operation collides
		id[8] = byte(r.IntN(64))
		_, known := model[id]
		switch {
		case !known && len(model) < window && r.IntN(2) == 0:
			s := sent{id: id, at: time.Duration(step), index: int32(step), used: true}
			table.add(&id, step, s.at)
			model[id] = s
		default:
			got, ok := table.take(&id)
			if ok != known {
				t.Fatalf("step %d: take(%v) found %t, want %t", step, id[:9], ok, known)
			}
			if known && (got.index != model[id].index || got.at != model[id].at) {
				t.Fatalf("step %d: took %+v, want %+v", step, got, model[id])
			}
			delete(model, id)
		}
		if table.len != len(model) {
			t.Fatalf("step %d: length %d, want %d", step, table.len, len(model))
		}
	}
	left := 0
	table.drain(func(s sent) {
		left++
		if _, ok := model[s.id]; !ok {
			t.Errorf("drained %v, which was taken before", s.id[:9])
		}
	})
	if left != len(model) || table.len != 0 {
		t.Errorf("drained %d and kept %d, want %d and 0", left, table.len, len(model))
	}
}

func TestInflightIsFourTimesTheWindow(t *testing.T) {
	for window, want := range map[int]int{1: 4, 2: 8, 8: 32, 9: 64, 200: 1024} {
		if got := len(newInflight(window).slots); got != want {
			t.Errorf("a window of %d: %d slots, want %d", window, got, want)
		}
	}
}

func TestInflightDoesNotAllocate(t *testing.T) {
	table := newInflight(200)
	var id corpus.ID
	n := 0
	if allocs := testing.AllocsPerRun(1000, func() {
		n++
		id[0], id[1] = byte(n), byte(n>>8)
		table.add(&id, n, 0)
		table.take(&id)
	}); allocs != 0 {
		t.Errorf("%v allocations an event, want none", allocs)
	}
}

func BenchmarkInflight(b *testing.B) {
	const window = 200
	ids := make([]corpus.ID, 10_000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range ids {
		for j := range ids[i] {
			ids[i][j] = byte(r.Uint32())
		}
	}
	b.Run("table", func(b *testing.B) {
		b.ReportAllocs()
		table := newInflight(window)
		for i := 0; b.Loop(); i++ {
			table.add(&ids[i%len(ids)], i, 0)
			if i >= window-1 {
				table.take(&ids[(i-window+1)%len(ids)])
			}
		}
	})
	b.Run("map", func(b *testing.B) {
		b.ReportAllocs()
		table := make(map[corpus.ID]sent, window)
		for i := 0; b.Loop(); i++ {
			table[ids[i%len(ids)]] = sent{index: int32(i)}
			if i >= window-1 {
				delete(table, ids[(i-window+1)%len(ids)])
			}
		}
	})
}

func TestLedgerNeverTakesBackAnAcceptance(t *testing.T) {
	l := NewLedger(2)
	l.Set(0, Accepted)
	l.Set(0, Refused)
	l.Set(1, Refused)
	l.Set(1, Duplicate)
	if !l.Acknowledged(0) || !l.Acknowledged(1) || l.Count(Refused) != 0 {
		t.Errorf("answers %d and %d, want both acknowledged", l.Get(0), l.Get(1))
	}
}
