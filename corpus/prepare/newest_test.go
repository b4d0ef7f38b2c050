package prepare

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"relaybench/corpus"
)

// prepared runs the pipeline over texts with a limit, and returns the ids of what is left, in
// corpus order.
func prepared(t *testing.T, limit, lag int, lines ...[]byte) (ids []corpus.ID, drops dropCounts, old, over int) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "events")
	if err := os.WriteFile(path, ndjson(lines...), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := openSource(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := src.hash(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	sorted := newSorter(dir)
	defer sorted.close()
	o, err := Options{Limit: limit}.filled()
	if err != nil {
		t.Fatal(err)
	}
	done, err := runPipeline(context.Background(), src, &o, sorted, lag, nil)
	if err != nil {
		t.Fatal(err)
	}
	over, err = sorted.each(context.Background(), limit, func(r *sortEntry, _ []byte) error {
		ids = append(ids, r.id)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids, done.drops, done.tooOld, over
}

func TestWhatIsTooOldForTheLimitIsNotChecked(t *testing.T) {
	t.Parallel()
	const n, limit = 200, 30
	events := someEvents(n)
	slices.SortFunc(events, func(a, b corpus.Event) int { return int(b.CreatedAt - a.CreatedAt) })
	lines := texts(events...)
	forged := events[n-1]
	forged.Sig[5] ^= 1
	lines = append(lines, texts(forged)...)
	var first []corpus.ID
	for round := range 3 {
		ids, drops, old, over := prepared(t, limit, 1, lines...)
		if len(ids) != limit || ids[limit-1] != events[0].ID {
			t.Fatalf("%d events are left", len(ids))
		}
		if old < n/4 || old+over != n+1-limit || drops[DropBadSignature] != 0 {
			t.Errorf("%d were too old, %d over the limit, %d had a bad signature", old, over, drops[DropBadSignature])
		}
		if round == 0 {
			first = ids
		} else if !slices.Equal(first, ids) {
			t.Error("not the same events again")
		}
	}
	all, _, old, _ := prepared(t, limit, 1000, lines...)
	if old != 0 || !slices.Equal(all, first) {
		t.Errorf("without looking at the age first, %d events differ or %d were passed over", len(all), old)
	}
}

func TestForgedAndRepeatedEventsMakeNoOtherTooOld(t *testing.T) {
	n := newNewest(3)
	id := func(i byte) *corpus.ID { return &corpus.ID{i} }
	for range 20 { // one event with many signatures
		n.add(1000, id(1))
	}
	if n.before() > 0 {
		t.Fatalf("one event fills a limit of 3: nothing before %d counts", n.before())
	}
	for i := range byte(12) {
		n.add(int64(i), id(10+i))
	}
	if got := n.before(); got > 10 || got < 5 {
		t.Errorf("with events at 1000, 11 and 10 nothing before %d counts", got)
	}
	if newNewest(0).before() > 0 {
		t.Error("without a limit something is too old")
	}
}

func TestSortingSpillsWhereItIsTold(t *testing.T) {
	t.Parallel()
	events := someEvents(60)
	spill, cache := t.TempDir(), t.TempDir()
	path := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(path, ndjson(texts(events...)...), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := File(context.Background(), path, Options{Spill: spill}, cache, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	checkHolds(t, c, events)
	if left, err := os.ReadDir(spill); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	again, err := File(context.Background(), path, Options{}, cache, func(stage string, _, _ int64) {
		if stage == "prepare" {
			t.Error("where it sorts makes another corpus of it")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if _, err := File(context.Background(), path, Options{Spill: filepath.Join(spill, "absent"), MaxTags: 3}, cache, nil); err == nil {
		t.Error("an absent folder was sorted in")
	}
}
