package load_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/corpus/synthetic"
	"relaybench/harness/load"
)

const now = 1_800_000_000

// at makes an event whose id and signature are made up.
func at(n byte, author byte, when int64, kind int, tags ...corpus.Tag) corpus.Event {
	return corpus.Event{ID: corpus.ID{0: n}, PubKey: corpus.PubKey{0: author}, CreatedAt: when, Kind: kind, Tags: tags}
}

func TestRecordsFoldToTheStateOfARelay(t *testing.T) {
	alice := corpus.PubKey{0: 1}.String()
	for _, c := range []struct {
		name   string
		events []corpus.Event
		want   load.State
	}{
		{"notes", []corpus.Event{at(1, 1, 10, 1), at(2, 2, 10, 1)}, load.State{Records: 2, Current: 2, Authors: 2}},
		{"versions of a profile", []corpus.Event{at(1, 1, 10, 0), at(2, 1, 12, 0), at(3, 1, 11, 0), at(4, 2, 1, 0)}, load.State{Records: 4, Current: 2, Superseded: 2, Authors: 2}},
		{"versions by address", []corpus.Event{at(1, 1, 10, 30023, corpus.Tag{"d", "x"}), at(2, 1, 12, 30023, corpus.Tag{"d", "y"}), at(3, 1, 11, 30023, corpus.Tag{"d", "x"})},
			load.State{Records: 3, Current: 2, Superseded: 1, Authors: 1}},
		{"deleted by id", []corpus.Event{at(1, 1, 10, 1), at(2, 1, 12, 5, corpus.Tag{"e", corpus.ID{0: 1}.String()})}, load.State{Records: 2, Current: 1, Deleted: 1, Authors: 1}},
		{"not deleted by another", []corpus.Event{at(1, 1, 10, 1), at(2, 2, 12, 5, corpus.Tag{"e", corpus.ID{0: 1}.String()})}, load.State{Records: 2, Current: 2, Authors: 2}},
		{"deleted by address, up to the request", []corpus.Event{at(1, 1, 10, 30023, corpus.Tag{"d", "x"}), at(2, 1, 12, 5, corpus.Tag{"a", "30023:" + alice + ":x"}), at(3, 1, 13, 30023, corpus.Tag{"d", "x"})},
			load.State{Records: 3, Current: 2, Deleted: 1, Authors: 1}},
		{"expired", []corpus.Event{at(1, 1, 10, 1, corpus.Tag{"expiration", "20"}), at(2, 1, 10, 1, corpus.Tag{"expiration", "4000000000"})}, load.State{Records: 2, Current: 1, Gone: 1, Authors: 1}},
		{"vanished", []corpus.Event{at(1, 1, 10, 1), at(2, 1, 12, 62, corpus.Tag{"relay", "ALL_RELAYS"}), at(3, 1, 13, 1)}, load.State{Records: 3, Current: 2, Gone: 1, Authors: 1}},
		{"ephemeral", []corpus.Event{at(1, 1, 10, 20001)}, load.State{Records: 1, Gone: 1, Authors: 1}},
	} {
		r := load.NewRecords()
		var ids []corpus.ID
		for i := range c.events {
			ids = append(ids, c.events[i].ID, c.events[i].ID) // each came twice
			if !r.Add(&c.events[i]) || r.Add(&c.events[i]) {
				t.Errorf("%s: an event is new twice, or never", c.name)
			}
		}
		if got := r.Fold(ids, now); *got != c.want {
			t.Errorf("%s: %+v", c.name, *got)
		}
		if got := r.Fold(append(ids, corpus.ID{0: 200}), now); got.Unread != 1 || got.Records != c.want.Records {
			t.Errorf("%s: with a stranger, %+v", c.name, *got)
		}
	}
}

// What relaybench's model says of a corpus and what folding by itself says must be the same,
// whatever part of it came.
func TestFoldingAgreesWithTheModel(t *testing.T) {
	c, err := prepare.Synthetic(context.Background(), synthetic.Spec{Events: 3000, Seed: 5, BaseTime: 1_780_272_000}, prepare.Options{MaxEventBytes: 65536, MaxTags: 2000, KeepDeletions: true}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := load.NewRecords()
	for i := range c.Len() {
		e, err := c.Event(i)
		if err != nil {
			t.Fatal(err)
		}
		r.Add(&e)
	}
	draw := rand.New(rand.NewPCG(1, 2))
	for _, share := range []float64{1, 0.5, 0.1, 0} {
		part := make([]bool, c.Len())
		var ids []corpus.ID
		for i := range part {
			if part[i] = draw.Float64() < share; part[i] {
				ids = append(ids, c.Entry(i).ID)
			}
		}
		want, err := load.FoldCorpus(c, func(i int) bool { return part[i] }, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Fold(ids, now); *got != *want {
			t.Errorf("of %d events: %+v, and by the model %+v", len(ids), *got, *want)
		}
		if share == 1 && (want.Superseded == 0 || want.Authors < 2) {
			t.Errorf("the corpus tests nothing: %+v", *want)
		}
	}
	sorted, times := r.Newest()
	if len(sorted) != c.Len() || !slices.IsSortedFunc(times, func(a, b int64) int { return cmp.Compare(b, a) }) {
		t.Errorf("%d of %d events, at %v", len(sorted), c.Len(), times)
	}
	for k, id := range sorted {
		if i, ok := c.Find(id); !ok || c.Entry(i).CreatedAt != times[k] {
			t.Fatalf("event %d, %v, is not of %d", k, id, times[k])
		}
	}
}

func BenchmarkRecordsAdd(b *testing.B) {
	r := load.NewRecords()
	e := at(1, 1, 10, 1)
	for i := range b.N {
		binary.LittleEndian.PutUint64(e.ID[:], uint64(i))
		r.Add(&e)
	}
}
