package corpus_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"relaybench/corpus"
	"relaybench/corpus/synthetic"
)

// benchCorpus is the synthetic corpus of 10,000 events, generated once.
var benchCorpus = sync.OnceValues(func() (*corpus.Corpus, error) {
	var events []corpus.Event
	err := synthetic.Spec{Events: 10_000, Seed: 1, BaseTime: 1780272000}.Generate(context.Background(), nil, func(e *corpus.Event) error {
		events = append(events, *e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return corpus.FromEvents(events)
})

func corpusForBench(b *testing.B) *corpus.Corpus {
	c, err := benchCorpus()
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	return c
}

func BenchmarkParseEvent(b *testing.B) {
	c := corpusForBench(b)
	b.SetBytes(int64(len(c.Text()) / c.Len()))
	b.ReportAllocs()
	for i := range b.N {
		if _, err := corpus.ParseEvent(c.Raw(i % c.Len())); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScanTags(b *testing.B) {
	c := corpusForBench(b)
	b.SetBytes(int64(len(c.Text()) / c.Len()))
	b.ReportAllocs()
	for i := range b.N {
		if err := corpus.ScanTags(c.Raw(i%c.Len()), func(name, value []byte, elements int) {}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	c := corpusForBench(b)
	events := make([]corpus.Event, 1000)
	for i := range events {
		events[i], _ = c.Event(i)
	}
	var buf []byte
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		buf = events[i%len(events)].AppendJSON(buf[:0])
	}
}

func BenchmarkVerify(b *testing.B) {
	c := corpusForBench(b)
	events := make([]corpus.Event, 1000)
	for i := range events {
		events[i], _ = c.Event(i)
	}
	b.ResetTimer()
	for i := range b.N {
		if err := events[i%len(events)].Verify(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSign(b *testing.B) {
	key, err := corpus.NewSecretKey([32]byte{31: 7})
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		e := corpus.Event{CreatedAt: int64(i), Kind: 1, Content: "hello"}
		if err := key.Sign(&e, [32]byte{1}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a corpus of a million events. They are ten thousand events over and over with
// other ids and times, since Open looks at neither hashes nor signatures.
func BenchmarkOpen(b *testing.B) {
	const n = 1_000_000
	from := corpusForBench(b)
	dir := b.TempDir()
	w, err := corpus.NewWriter(dir)
	if err != nil {
		b.Fatal(err)
	}
	var line []byte
	for i := range n {
		e, err := from.Event(i % from.Len())
		if err != nil {
			b.Fatal(err)
		}
		e.CreatedAt = 1_700_000_000 + int64(i)
		e.ID[0], e.ID[1] = byte(i), byte(i>>8)
		line = e.AppendJSON(line[:0])
		if err := w.Add(corpus.Entry{ID: e.ID, CreatedAt: e.CreatedAt, Kind: uint16(e.Kind)}, line); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Finish(corpus.Manifest{Format: corpus.ManifestFormat}); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, corpus.EventsFile))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		c, err := corpus.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		if c.Len() != n {
			b.Fatal(c.Len())
		}
		c.Close()
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/open")
}

// BenchmarkFind looks up ids in a corpus of ten thousand events.
func BenchmarkFind(b *testing.B) {
	c := corpusForBench(b)
	c.Find(corpus.ID{})
	i := 0
	for b.Loop() {
		if _, ok := c.Find(c.Entry(i).ID); !ok {
			b.Fatal("not found")
		}
		i = (i + 1) % c.Len()
	}
}
