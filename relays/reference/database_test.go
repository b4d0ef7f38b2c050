package reference

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relaybench/corpus"
)

// settle lets the keeper finish what there is to do.
func settle(t *testing.T, d *database) {
	t.Helper()
	for {
		err := d.tidy()
		d.writing.Lock()
		idle := d.index.state.inMemory() < d.sizes.memory && d.frozen == 0
		d.writing.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if idle {
			return
		}
	}
}

// stopKeeper leaves the keeper's work to settle, so that a test can look at it between its steps.
func stopKeeper(d *database) {
	close(d.stopped)
	d.keeping.Wait()
	d.stopped = make(chan struct{})
}

// rows counts what is in a table.
func rows(t *testing.T, d *database, of table) (n int) {
	t.Helper()
	err := d.engine.view(func(v engineView) error {
		return v.each(of, 0, func(uint64, []byte) error { n++; return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// crash ends a store as a kill does: nothing of what is in memory is written.
func crash(t *testing.T, d *database) {
	t.Helper()
	d.once.Do(func() {
		close(d.stopped)
		d.keeping.Wait()
		d.closed = d.engine.close()
	})
	if d.closed != nil {
		t.Fatal(d.closed)
	}
}

func TestSegmentsAreMergedAndWhatTheyReplaceIsDeleted(t *testing.T) {
	for _, kind := range []string{"bolt", "sqlite"} {
		t.Run(kind, func(t *testing.T) {
			d := openSmall(t, kind, t.TempDir())
			stopKeeper(d)
			var seq uint64
			for group := range slices.Chunk(randomEvents(rand.New(rand.NewPCG(5, 5)), 1000), 20) {
				admitAll(t, d, &seq, group)
				settle(t, d)
			}
			segments := d.index.state.segments
			if len(segments) > 12 || d.nextID < 6 {
				t.Errorf("%d segments, %d in all", len(segments), d.nextID-1)
			}
			blocks, last := 0, uint64(0)
			for _, s := range segments {
				blocks += len(s.first)
				if s.last <= last || s.pins != 0 {
					t.Errorf("segment up to %d with %d pins after one up to %d", s.last, s.pins, last)
				}
				last = s.last
			}
			if got := rows(t, d, blocksTable); got != blocks {
				t.Errorf("%d blocks in the table, %d in segments", got, blocks)
			}
			if got := rows(t, d, segmentsTable); got != len(segments) {
				t.Errorf("%d rows for %d segments", got, len(segments))
			}
			if got := rows(t, d, deadTable); got != len(d.dead) || got > int(seq)/4 {
				t.Errorf("%d events are noted as gone on disk and %d in memory, of %d", got, len(d.dead), seq)
			}
		})
	}
}

func TestWhatWasOnlyInMemoryIsThereAfterACrash(t *testing.T) {
	for _, kind := range []string{"bolt", "sqlite"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			var seq uint64
			events := randomEvents(rand.New(rand.NewPCG(6, 6)), 500)
			reference := NewMemory()
			var referenceSeq uint64
			for group := range slices.Chunk(events, 70) {
				d := openSmall(t, kind, dir)
				if d.LastSeq() > seq {
					t.Fatalf("LastSeq is %d after %d", d.LastSeq(), seq)
				}
				got, want := admitAll(t, d, &seq, group), admitAll(t, reference, &referenceSeq, group)
				if !slices.Equal(got, want) {
					t.Fatalf("after a crash events are answered otherwise than without")
				}
				crash(t, d)
			}
			d := openSmall(t, kind, dir)
			random := rand.New(rand.NewPCG(7, 7))
			for range 100 {
				f := randomFilter(random, events)
				if got, want := ask(t, d, f), ask(t, reference, f); !slices.Equal(got, want) {
					t.Fatalf("%s: %d events, without crashes %d", f.AppendJSON(nil), len(got), len(want))
				}
			}
		})
	}
}

func TestWhatACrashLeftOfASegmentIsDeleted(t *testing.T) {
	for _, kind := range []string{"bolt", "sqlite"} {
		dir := t.TempDir()
		d := openSmall(t, kind, dir)
		err := d.engine.update(func(tx engineTx) error {
			return errors.Join(
				tx.put(segmentsTable, 70, []byte{segmentUnfinished}), tx.put(blocksTable, blockKey(70, 0), []byte("x")), tx.put(blocksTable, blockKey(70, 9), []byte("x")),
				tx.put(segmentsTable, 71, []byte{segmentGone}), tx.put(blocksTable, blockKey(71, 0), []byte("x")))
		})
		if err != nil {
			t.Fatal(err)
		}
		crash(t, d)
		d = openSmall(t, kind, dir)
		stopKeeper(d)
		settle(t, d)
		if n := rows(t, d, segmentsTable) + rows(t, d, blocksTable); n != 0 {
			t.Errorf("%s: %d rows are left over", kind, n)
		}
		if d.nextID != 72 {
			t.Errorf("%s: the next segment's id is %d", kind, d.nextID)
		}
	}
}

// While segments come and go, readers see everything that was stored before they began, in order.
func TestReadersAreNotDisturbedByMerging(t *testing.T) {
	for _, kind := range []string{"bolt", "sqlite"} {
		t.Run(kind, func(t *testing.T) {
			d := openSmall(t, kind, t.TempDir())
			var stored atomic.Int64
			var ended atomic.Bool
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					for !ended.Load() {
						least := int(stored.Load())
						got := ask(t, d, corpus.Filter{Kinds: []int{1}, Authors: []corpus.PubKey{{0: 1, 9: 1}, {0: 2, 9: 2}}})
						if len(got) < least {
							t.Errorf("%d events of at least %d", len(got), least)
							return
						}
					}
				})
			}
			var seq uint64
			for i := range 60 {
				var group []corpus.Event
				for k := range 10 {
					group = append(group, fake(1+k%2, 1, int64(10*i+k), "x", corpus.Tag{"t", fmt.Sprint(k)}))
				}
				group = append(group, fake(3, 0, int64(i), "replaced by the next"))
				admitAll(t, d, &seq, group)
				stored.Add(10)
			}
			ended.Store(true)
			all.Wait()
		})
	}
}

func TestRemovingWhatIsNotThereRemovesNothingElse(t *testing.T) {
	for kind, s := range stores(t) {
		var seq uint64
		events := []corpus.Event{fake(1, 1, 1, "a"), fake(1, 1, 2, "b")}
		admitAll(t, s, &seq, events[:1])
		err := s.Update(func(tx Tx) error {
			return errors.Join(tx.Remove(&Record{Seq: 1, CreatedAt: 2, ID: events[1].ID}), tx.Remove(&Record{Seq: 9, CreatedAt: 1, ID: corpus.ID{9}}))
		})
		if got := ask(t, s, corpus.Filter{}); err != nil || len(got) != 1 {
			t.Errorf("%s: %d events are left, %v", kind, len(got), err)
		}
	}
}

// brokenEngine fails to write blocks as long as it is told to.
type brokenEngine struct {
	engine
	broken atomic.Bool
}

func (b *brokenEngine) update(change func(engineTx) error) error {
	return b.engine.update(func(tx engineTx) error { return change(brokenTx{tx, b}) })
}

type brokenTx struct {
	engineTx
	engine *brokenEngine
}

func (tx brokenTx) put(t table, key uint64, value []byte) error {
	if t == blocksTable && tx.engine.broken.Load() {
		return errors.New("the disk is full")
	}
	return tx.engineTx.put(t, key, value)
}

func TestAnIndexThatCannotBeWrittenStopsUpdatesUntilItCan(t *testing.T) {
	inner, err := openBolt(t.TempDir(), DurabilityNone)
	if err != nil {
		t.Fatal(err)
	}
	e := &brokenEngine{engine: inner}
	e.broken.Store(true)
	d, err := openDatabase(e, smallSizes)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var seq uint64
	store := func() error {
		return d.Update(func(tx Tx) error {
			seq++
			event := fake(1, 1, int64(seq), "x")
			r := NewRecord(&event)
			r.Seq = seq
			_, err := tx.Insert(&r)
			return err
		})
	}
	accepted := 0
	for accepted < 1000 {
		if err = store(); err != nil {
			break
		}
		accepted++
	}
	if err == nil || err.Error() != "writing the index: the disk is full" {
		t.Fatalf("after %d events: %v", accepted, err)
	}
	if got := ask(t, d, corpus.Filter{}); len(got) != accepted {
		t.Errorf("%d events are found, %d were accepted", len(got), accepted)
	}
	e.broken.Store(false)
	for range 1000 { // the index is written beside the updates, which hear of its success a little later
		if err = store(); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range 300 {
		if err = store(); err != nil {
			t.Fatalf("after the disk has room again: %v", err)
		}
	}
}

func FuzzBlock(f *testing.F) {
	e := fake(1, 1, 1000, "x", corpus.Tag{"t", "a"}, corpus.Tag{"t", "a"}, corpus.Tag{"p", "b"})
	r := NewRecord(&e)
	r.Seq = 77
	list := sortEntries(appendEntries(nil, &r))
	if len(list) != 7 {
		f.Fatalf("%d entries", len(list))
	}
	f.Add(appendBlock(nil, list))
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := decodeBlock(text)
		if err != nil {
			return
		}
		again, err := decodeBlock(appendBlock(nil, list))
		if err != nil || !slices.Equal(list, again) {
			t.Fatalf("%v, then %v, %v", list, again, err)
		}
	})
}
