package model

import (
	"context"
	"fmt"
	"runtime"
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

// BenchmarkNew also reports the memory that a model holds, per event of the corpus.
func BenchmarkNew(b *testing.B) {
	c := corpusForBench(b)
	c.Find(corpus.ID{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var m *Model
	b.ResetTimer()
	for range b.N {
		var err error
		if m, err = New(c, nil, testNow); err != nil {
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
		m, err := New(c, func(int) bool { return true }, testNow)
		if err == nil {
			_, err = m.Popular()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkQuery(b *testing.B) {
	c := corpusForBench(b)
	m, err := New(c, nil, testNow)
	if err != nil {
		b.Fatal(err)
	}
	p, err := m.Popular()
	if err != nil {
		b.Fatal(err)
	}
	var top []corpus.PubKey
	for _, r := range p.NoteAuthors[:min(150, len(p.NoteAuthors))] {
		top = append(top, r.Key)
	}
	var notes []string
	for _, r := range p.Notes[:min(150, len(p.Notes))] {
		notes = append(notes, r.Key.String())
	}
	tag := func(name byte, values ...string) []corpus.TagFilter {
		return []corpus.TagFilter{{Name: name, Values: values}}
	}
	oldest, newest := c.Entry(0).CreatedAt, c.Entry(c.Len()-1).CreatedAt
	social := []int{1, 6, 7, 9735}
	for _, q := range []struct {
		name string
		f    corpus.Filter
	}{
		{"firehose", corpus.Filter{Limit: corpus.Int(500)}},
		{"global-feed", corpus.Filter{Kinds: []int{1}, Limit: corpus.Int(500)}},
		{"follow-feed", corpus.Filter{Kinds: []int{1, 6}, Authors: top, Limit: corpus.Int(500)}},
		{"thread", corpus.Filter{Kinds: social, Tags: tag('e', notes[0]), Limit: corpus.Int(500)}},
		{"notifications", corpus.Filter{Kinds: social, Tags: tag('p', p.Mentions[0].Key.String()), Limit: corpus.Int(500)}},
		{"reactions-watch", corpus.Filter{Kinds: []int{7}, Tags: tag('e', notes...), Limit: corpus.Int(500)}},
		{"hashtag", corpus.Filter{Kinds: []int{1}, Tags: tag('t', p.Hashtags[0].Key), Limit: corpus.Int(500)}},
		{"recent-window", corpus.Filter{Kinds: []int{1}, Since: corpus.Int64(newest - (newest-oldest)/5), Limit: corpus.Int(500)}},
		{"deep-page", corpus.Filter{Until: corpus.Int64((oldest + newest) / 2), Limit: corpus.Int(500)}},
		{"empty", corpus.Filter{Kinds: []int{1}, Authors: []corpus.PubKey{{1}}, Limit: corpus.Int(500)}},
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
			var ids []corpus.ID
			for _, i := range m.Query(&q.f) {
				ids = append(ids, c.Entry(i).ID)
			}
			b.ResetTimer()
			for range b.N {
				if v := m.Check(&q.f, ids); !v.OK() {
					b.Fatalf("%+v", v)
				}
			}
		})
	}
}
