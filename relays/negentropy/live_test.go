package negentropy

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

func TestLiveAgainstTheLongWay(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, test := range []struct {
		name           string
		steps, seconds int
		ascending      bool
		inserts        int // of 100
	}{
		{"random order", 6000, 3000, false, 75},
		{"one second", 4000, 1, false, 75},
		{"ascending", 5000, 0, true, 95},
		{"growing and shrinking", 8000, 500, false, 52},
	} {
		t.Run(test.name, func(t *testing.T) {
			live := new(Live)
			var items naive
			type kept struct {
				snapshot *Snapshot
				items    []item
			}
			var snapshots []kept
			for step := range test.steps {
				if r.IntN(100) < test.inserts || len(items) == 0 {
					it := item{1_700_000_000 + uint64(step), randomID(r)}
					if !test.ascending {
						it.time = 1_700_000_000 + r.Uint64N(uint64(test.seconds))
					}
					at, _ := slices.BinarySearchFunc(items, it, compareTestItems)
					items = slices.Insert(items, at, it)
					if !live.Insert(it.time, &it.id) || live.Insert(it.time, &it.id) {
						t.Fatal("an insert says otherwise")
					}
				} else {
					at := r.IntN(len(items))
					it := items[at]
					items = slices.Delete(items, at, at+1)
					if !live.Delete(it.time, &it.id) || live.Delete(it.time, &it.id) {
						t.Fatal("a delete says otherwise")
					}
				}
				if live.Len() != len(items) {
					t.Fatalf("%d items, want %d", live.Len(), len(items))
				}
				if step%(test.steps/8) == 7 {
					snapshots = append(snapshots, kept{live.Snapshot(), slices.Clone(items)})
				}
			}
			checkStorage(t, r, live.Snapshot(), items)
			for _, k := range snapshots { // and none has changed meanwhile
				checkStorage(t, r, k.snapshot, k.items)
			}
			for len(items) > 0 {
				at := r.IntN(len(items))
				it := items[at]
				items = slices.Delete(items, at, at+1)
				if !live.Delete(it.time, &it.id) {
					t.Fatal("an item is gone")
				}
				if len(items) == 300 {
					if checkStorage(t, r, live.Snapshot(), items); len(live.blocks) > 2 {
						t.Errorf("300 items in %d blocks", len(live.blocks))
					}
				}
			}
			checkStorage(t, r, live.Snapshot(), nil)
		})
	}
}

func TestLiveDoesNotTakeInfinity(t *testing.T) {
	live := new(Live)
	if live.Insert(Infinity, &ID{}) || live.Delete(5, &ID{}) || live.Len() != 0 {
		t.Error("an item at infinity, or none, is there")
	}
}

func TestSnapshotsAreSharedWhileNothingChanges(t *testing.T) {
	live := new(Live)
	live.Insert(1, &ID{1})
	first := live.Snapshot()
	live.Insert(1, &ID{1})
	if live.Snapshot() != first {
		t.Error("another snapshot of the same")
	}
	live.Insert(1, &ID{2})
	if live.Snapshot() == first || first.Len() != 1 {
		t.Error("the snapshot is not of its time")
	}
}

func TestSessionsSeeOneSetWhileWritersGoOn(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	base := makeItems(r, 6000, 600)
	coming := makeItems(r, 3000, 600)
	live := new(Live)
	for i := range base {
		live.Insert(base[i].time, &base[i].id)
	}
	var writers, readers sync.WaitGroup
	for part := range 2 {
		writers.Go(func() {
			for i := part; i < len(coming); i += 2 {
				live.Insert(coming[i].time, &coming[i].id)
				if i%3 == 0 {
					live.Delete(base[i].time, &base[i].id)
				}
			}
		})
	}
	for range 3 {
		readers.Go(func() {
			ours := sealed(t, base[1000:])
			for range 5 {
				snapshot := live.Snapshot()
				var theirs []item
				for i := range snapshot.Len() {
					time, id := itemAt(snapshot, i)
					theirs = append(theirs, item{time, *id})
				}
				checkExchange(t, run(t, ours, 0, responding(t, snapshot, 5000)), scenario{"", base[1000:], theirs})
			}
		})
	}
	writers.Wait()
	readers.Wait()
	if want := len(base) + len(coming) - 1000; live.Len() != want {
		t.Errorf("%d items at the end, want %d", live.Len(), want)
	}
}
