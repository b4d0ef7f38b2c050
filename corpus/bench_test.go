package corpus

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// benchCorpus is the synthetic corpus of 10,000 events, generated once.
var benchCorpus = sync.OnceValues(func() (*Corpus, error) {
	var events []Event
	err := Spec{Events: 10_000, Seed: 1, BaseTime: 1780272000}.Generate(context.Background(), nil, func(e *Event) error {
		events = append(events, *e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return FromEvents(events)
})

func corpusForBench(b *testing.B) *Corpus {
	c, err := benchCorpus()
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	return c
}

func BenchmarkParseEvent(b *testing.B) {
	c := corpusForBench(b)
	b.SetBytes(int64(len(c.text) / c.Len()))
	b.ReportAllocs()
	for i := range b.N {
		if _, err := ParseEvent(c.Raw(i % c.Len())); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScanTags(b *testing.B) {
	c := corpusForBench(b)
	b.SetBytes(int64(len(c.text) / c.Len()))
	b.ReportAllocs()
	for i := range b.N {
		if err := scanTags(c.Raw(i%c.Len()), func(name, value []byte, elements int) {}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	c := corpusForBench(b)
	events := make([]Event, 1000)
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
	events := make([]Event, 1000)
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
	key, err := NewSecretKey([32]byte{31: 7})
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		e := Event{CreatedAt: int64(i), Kind: 1, Content: "hello"}
		if err := key.Sign(&e, [32]byte{1}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewModel also reports the memory that a model holds, per event of the corpus.
func BenchmarkNewModel(b *testing.B) {
	c := corpusForBench(b)
	c.Find(ID{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var m *Model
	b.ResetTimer()
	for range b.N {
		var err error
		if m, err = NewModel(c, nil, testNow); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	runtime.GC()
	runtime.GC() // pools survive one
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(c.Len()), "B/event")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.Len()), "ns/event")
	runtime.KeepAlive(m)
}

func BenchmarkPopular(b *testing.B) {
	c := corpusForBench(b)
	for range b.N {
		m, err := NewModel(c, func(int) bool { return true }, testNow)
		if err == nil {
			_, err = m.rankAll()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkQuery(b *testing.B) {
	c := corpusForBench(b)
	m, err := NewModel(c, nil, testNow)
	if err != nil {
		b.Fatal(err)
	}
	p, err := m.Popular()
	if err != nil {
		b.Fatal(err)
	}
	var top []PubKey
	for _, r := range p.NoteAuthors[:min(150, len(p.NoteAuthors))] {
		top = append(top, r.Key)
	}
	var notes []string
	for _, r := range p.Notes[:min(150, len(p.Notes))] {
		notes = append(notes, r.Key.String())
	}
	tag := func(name byte, values ...string) []TagFilter { return []TagFilter{{name, values}} }
	oldest, newest := c.Entry(0).CreatedAt, c.Entry(c.Len()-1).CreatedAt
	social := []int{1, 6, 7, 9735}
	for _, q := range []struct {
		name string
		f    Filter
	}{
		{"firehose", Filter{Limit: Int(500)}},
		{"global-feed", Filter{Kinds: []int{1}, Limit: Int(500)}},
		{"follow-feed", Filter{Kinds: []int{1, 6}, Authors: top, Limit: Int(500)}},
		{"thread", Filter{Kinds: social, Tags: tag('e', notes[0]), Limit: Int(500)}},
		{"notifications", Filter{Kinds: social, Tags: tag('p', p.Mentions[0].Key.String()), Limit: Int(500)}},
		{"reactions-watch", Filter{Kinds: []int{7}, Tags: tag('e', notes...), Limit: Int(500)}},
		{"hashtag", Filter{Kinds: []int{1}, Tags: tag('t', p.Hashtags[0].Key), Limit: Int(500)}},
		{"recent-window", Filter{Kinds: []int{1}, Since: Int64(newest - (newest-oldest)/5), Limit: Int(500)}},
		{"deep-page", Filter{Until: Int64((oldest + newest) / 2), Limit: Int(500)}},
		{"empty", Filter{Kinds: []int{1}, Authors: []PubKey{{1}}, Limit: Int(500)}},
	} {
		b.Run(q.name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for range b.N {
				n = len(m.Query(&q.f))
			}
			b.ReportMetric(float64(n), "events")
		})
		b.Run(fmt.Sprintf("%s/check", q.name), func(b *testing.B) {
			var ids []ID
			for _, i := range m.Query(&q.f) {
				ids = append(ids, c.Entry(i).ID)
			}
			b.ResetTimer()
			for range b.N {
				if v := m.Check(&q.f, ids); !v.OK() {
					b.Fatal(v.Summary())
				}
			}
		})
	}
}
