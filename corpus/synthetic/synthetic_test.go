package synthetic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"relaybench/corpus"
)

const testBaseTime = 1_780_272_000 // 2026-06-01

func generate(t testing.TB, s Spec) []corpus.Event {
	t.Helper()
	var events []corpus.Event
	err := s.Generate(context.Background(), nil, func(e *corpus.Event) error {
		events = append(events, *e)
		return nil
	})
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return events
}

// shaped is the corpus whose shape is checked, made once for all tests.
var shaped = sync.OnceValue(func() []corpus.Event {
	var events []corpus.Event
	err := Spec{shapeEvents, 1, testBaseTime}.Generate(context.Background(), nil, func(e *corpus.Event) error {
		events = append(events, *e)
		return nil
	})
	if err != nil {
		panic(err)
	}
	return events
})

// TestGenerateIsFrozen holds generator version 1 to the byte. If it fails, published figures no
// longer belong to the corpus of that name: take back what changed, or raise GeneratorVersion.
func TestGenerateIsFrozen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec                Spec
		fingerprint, ndjson string
		bytes               int
	}{
		{Spec{1, 1, testBaseTime}, "f9302281b1db37bab3fb34590f0947fdc51fc90c0bb48fa3708b3f3e37b23601", "670fdc8e8d8d046fd8c7d4ad0a706c4c40b7b036db2d0a1bc3b075d743841229", 2_466},
		{Spec{200, 1, testBaseTime}, "51869d3299c153795b693aa41473ee22d02a4a87f923b8d480ac28adc34fc4b0", "260d9934c561597d7a4202e33de422ca70f78c15003ab38729929d0d11ca0ee2", 261_869},
		{Spec{2_000, 1, testBaseTime}, "09a0e70c2b9a7a0d02abc7e33697495e384ea30740881620fbe354f5657e7ebb", "8b9bb126f76c21488e91a811a6034f3d11d0f694bf24a91d9fa2d717c6556d7c", 2_050_753},
		{Spec{3_000, 1, testBaseTime}, "36f185db262db127b36cf41ffe83afd457fa9c45f2762a89533488344c8ac261", "cf7f62a19d65d13d794c8197ec1173493e08ee409a0e5c9b1a8d08bea6bcf998", 3_144_038},
		{Spec{300, 2, testBaseTime}, "4686c5cee6cd24b9f3a3739ba3901bf27cd35525822391189259fc3fd3f699e6", "558a0e0f264b2b549255203038a87c058883575135cd8b880a0b787da2f92640", 322_013},
		{Spec{300, 1, MinBaseTime}, "0cf968378e40b41e4bd1e48d52c58ca5e17f1451977b9339dae9e5c676a2b689", "dbf06d00c8b85f41ca88fe937d796ffa66ecdc5d5428de0443eca617c3f40aad", 308_007},
		{Spec{10_000, 1, testBaseTime}, "f28cc279c16967a35f8fa8b22cf3ec3fe208280af2ad8017549f0f4df41a97ba", "05a452b406857f7607ab736a73befea5d1e43ccfa4731f06c95c72d3c72a0f24", 10_255_897},
	} {
		t.Run(fmt.Sprintf("events=%d seed=%d base=%d", c.spec.Events, c.spec.Seed, c.spec.BaseTime), func(t *testing.T) {
			var events []corpus.Event
			switch {
			case c.spec == Spec{shapeEvents, 1, testBaseTime}:
				events = shaped()
			case c.spec.Events <= 300 || shapeEvents > 3_000:
				events = generate(t, c.spec)
			default:
				t.Skipf("%d events take too long to sign under the race detector", c.spec.Events)
			}
			fingerprint, ndjson := sha256.New(), sha256.New()
			size := 0
			for i := range events {
				fingerprint.Write([]byte(events[i].ID.String()))
				line := append(events[i].AppendJSON(nil), '\n')
				ndjson.Write(line)
				size += len(line)
			}
			if got := hex.EncodeToString(fingerprint.Sum(nil)); got != c.fingerprint {
				t.Errorf("fingerprint is %s, want %s", got, c.fingerprint)
			}
			if got := hex.EncodeToString(ndjson.Sum(nil)); got != c.ndjson {
				t.Errorf("sha256 of the NDJSON is %s, want %s", got, c.ndjson)
			}
			if size != c.bytes {
				t.Errorf("NDJSON has %d bytes, want %d", size, c.bytes)
			}
		})
	}
}

func TestGenerateGivesExactlyAsManyEventsAsAskedFor(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 100; n++ {
		if planned := len(planCorpus(n, newZipfTable(authorCount(n)), Spec{n, 1, testBaseTime}.seed())); planned != n {
			t.Errorf("asked for %d events, %d are planned", n, planned)
		}
		if n > 4 && n%23 != 0 { // keys are slow to make; the plan decides
			continue
		}
		events := generate(t, Spec{n, 1, testBaseTime})
		if len(events) != n {
			t.Errorf("asked for %d events, got %d", n, len(events))
		}
		checkOrder(t, events)
	}
}

func TestGenerateDoesNotDependOnTheNumberOfCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	spec := Spec{300, 3, testBaseTime}
	g, err := newGeneration(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GOMAXPROCS(1)
	alone, err := g.chunk(t.Context(), 0, len(g.plan))
	if err != nil {
		t.Fatal(err)
	}
	g.ids, g.signatures = make([]corpus.ID, spec.Events), make([]corpus.Signature, spec.Events)
	runtime.GOMAXPROCS(7)
	together, err := g.chunk(t.Context(), 0, len(g.plan))
	if err != nil {
		t.Fatal(err)
	}
	for i := range alone {
		if string(alone[i].AppendJSON(nil)) != string(together[i].AppendJSON(nil)) {
			t.Fatalf("event %d differs between one core and seven", i)
		}
	}
}

func TestChunksEndWhereTheSecondChanges(t *testing.T) {
	g := &generation{plan: make([]plannedEvent, 2*chunkEvents)}
	for i := range g.plan {
		g.plan[i].at = uint32(i)
	}
	if end := g.chunkEnd(0); end != chunkEvents {
		t.Errorf("a chunk of different seconds ends at %d, want %d", end, chunkEvents)
	}
	g.plan[chunkEvents].at = chunkEvents - 1
	g.plan[chunkEvents+1].at = chunkEvents - 1
	if end := g.chunkEnd(0); end != chunkEvents+2 {
		t.Errorf("a chunk amid a second ends at %d, want %d", end, chunkEvents+2)
	}
	for i := range g.plan {
		g.plan[i].at = 5
	}
	if end := g.chunkEnd(0); end != len(g.plan) {
		t.Errorf("a chunk of one long second ends at %d, want %d", end, len(g.plan))
	}
}

func TestGenerateReportsProgressToTheEnd(t *testing.T) {
	var last [2]int64
	spec := Spec{50, 1, testBaseTime}
	err := spec.Generate(t.Context(), func(stage string, done, total int64) {
		if stage != "generate" || done < last[0] {
			t.Errorf("progress %s %d after %d", stage, done, last[0])
		}
		last = [2]int64{done, total}
	}, func(*corpus.Event) error { return nil })
	if err != nil || last != [2]int64{50, 50} {
		t.Errorf("error %v, last progress %v", err, last)
	}
}

func TestGenerateStopsWithTheConsumersError(t *testing.T) {
	full := errors.New("disk full")
	calls := 0
	err := Spec{200, 1, testBaseTime}.Generate(t.Context(), nil, func(*corpus.Event) error {
		if calls++; calls == 3 {
			return full
		}
		return nil
	})
	if err != full || calls != 3 {
		t.Errorf("error %v after %d calls, want %v after 3", err, calls, full)
	}
}

func TestGenerateStopsWhenCancelled(t *testing.T) {
	asked := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(asked)
	err := Spec{200, 1, testBaseTime}.Generate(ctx, nil, func(*corpus.Event) error { return nil })
	if err != asked {
		t.Errorf("cancelled before the start: error %v", err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	defer cancel(nil)
	emitted := 0
	err = Spec{200, 1, testBaseTime}.Generate(ctx, nil, func(*corpus.Event) error {
		emitted++
		cancel(asked)
		return nil
	})
	if err != asked || emitted != 1 {
		t.Errorf("cancelled in the middle: error %v after %d events", err, emitted)
	}
}

func TestSpecRefusesWhatCannotBeGenerated(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{0, 1, testBaseTime}, "0 events"},
		{Spec{-5, 1, testBaseTime}, "-5 events"},
		{Spec{MaxEvents + 1, 1, testBaseTime}, "100000001 events"},
		{Spec{10, 1, 0}, "base time 0"},
		{Spec{10, 1, MaxBaseTime + 1}, "base time 253402300801"},
	} {
		err := c.spec.Generate(t.Context(), nil, func(*corpus.Event) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want it to name %q", c.spec, err, c.want)
		}
	}
	for _, at := range []int64{MinBaseTime, MaxBaseTime} {
		for _, e := range generate(t, Spec{60, 1, at}) {
			if e.CreatedAt < at-windowSeconds || e.CreatedAt >= at {
				t.Errorf("base time %d: event at %d", at, e.CreatedAt)
			}
		}
	}
}

func TestSeedsGiveDifferentCorpora(t *testing.T) {
	t.Parallel()
	seen := map[corpus.ID]bool{}
	for _, spec := range []Spec{{100, 1, testBaseTime}, {100, 2, testBaseTime}, {101, 1, testBaseTime}, {100, 1, testBaseTime + 1}} {
		for _, e := range generate(t, spec) {
			if seen[e.ID] {
				t.Fatalf("%+v repeats event %s", spec, e.ID)
			}
			seen[e.ID] = true
		}
	}
}

func checkOrder(t *testing.T, events []corpus.Event) {
	t.Helper()
	for i := 1; i < len(events); i++ {
		a, b := &events[i-1], &events[i]
		if a.CreatedAt > b.CreatedAt || a.CreatedAt == b.CreatedAt && slices.Compare(a.ID[:], b.ID[:]) >= 0 {
			t.Fatalf("event %d is not after event %d in corpus order", i, i-1)
		}
	}
}

func BenchmarkGenerate(b *testing.B) {
	for _, n := range []int{2_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if err := (Spec{n, 1, testBaseTime}).Generate(b.Context(), nil, func(*corpus.Event) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkPlan is the part that runs on one core.
func BenchmarkPlan(b *testing.B) {
	popularity := newZipfTable(2000)
	for b.Loop() {
		planCorpus(100_000, popularity, [32]byte{1})
	}
}

// BenchmarkBuild is an event's cost beside its signature.
func BenchmarkBuild(b *testing.B) {
	g, err := newGeneration(b.Context(), Spec{10_000, 1, testBaseTime})
	if err != nil {
		b.Fatal(err)
	}
	builder := newEventBuilder(g)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		e, err := builder.build(i % len(g.plan))
		if err != nil {
			b.Fatal(err)
		}
		e.Hash()
		i++
	}
}
