package reference

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/synthetic"
	"relaybench/relays/wire"
)

// benchEvents are the events of the ordinary synthetic corpus, in corpus order.
var benchEvents = sync.OnceValue(func() []corpus.Event {
	n := 10_000
	if v, err := strconv.Atoi(os.Getenv("RELAYBENCH_BENCH_EVENTS")); err == nil {
		n = v
	}
	var events []corpus.Event
	err := synthetic.Spec{Events: n, Seed: 1, BaseTime: 1780272000}.Generate(context.Background(), nil, func(e *corpus.Event) error {
		events = append(events, *e)
		return nil
	})
	if err != nil {
		panic(err)
	}
	return events
})

// publish sends raw events over some connections with a window of unanswered ones each, until every
// one is answered.
func publish(tb testing.TB, url string, raws [][]byte, conns, window int) (accepted int64) {
	var total atomic.Int64
	var all sync.WaitGroup
	for c := range conns {
		all.Go(func() {
			conn, err := wire.Dial(context.Background(), url, wire.Options{})
			if err != nil {
				tb.Error(err)
				return
			}
			defer conn.Close()
			var m wire.Message
			sent, answered, mine := 0, 0, 0
			for i := c; i < len(raws) || answered < sent; {
				for ; i < len(raws) && sent-answered < window; i += conns {
					if err := conn.SendEvent(raws[i]); err != nil {
						tb.Error(err)
						return
					}
					sent++
				}
				frame, _, err := conn.Read()
				if err != nil {
					tb.Error(err)
					return
				}
				if wire.Parse(frame, &m); m.Type == wire.OK {
					answered++
					if m.Accepted {
						mine++
					}
				}
			}
			total.Add(int64(mine))
		})
	}
	all.Wait()
	return total.Load()
}

func rawEvents(events []corpus.Event) (raws [][]byte) {
	for i := range events {
		raws = append(raws, events[i].AppendJSON(nil))
	}
	return raws
}

// verifyRate is how many events a second all cores can check.
func verifyRate(events []corpus.Event) float64 {
	start := time.Now()
	var all sync.WaitGroup
	part := (len(events) + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0)
	for chunk := range slices.Chunk(events, part) {
		all.Go(func() {
			for i := range chunk {
				if err := chunk[i].Verify(); err != nil {
					panic(err)
				}
			}
		})
	}
	all.Wait()
	return float64(len(events)) / time.Since(start).Seconds()
}

// BenchmarkIngest publishes the corpus over 4 connections with 200 events in flight on each, relay
// and client in one process, and compares with the signature checks that the machine reaches when
// it does nothing else.
func BenchmarkIngest(b *testing.B) {
	events := benchEvents()
	raws := rawEvents(events)
	for _, kind := range []string{"memory", "bolt", "sqlite"} {
		b.Run(kind, func(b *testing.B) {
			var checked float64
			var verifying, ingesting time.Duration
			for b.Loop() {
				b.StopTimer()
				before := cpuTime()
				checked += verifyRate(events)
				verifying += cpuTime() - before
				dir := b.TempDir()
				url := serveFor(b, kind, dir)
				before = cpuTime()
				b.StartTimer()
				publish(b, url, raws, 4, 200)
				b.StopTimer()
				ingesting += cpuTime() - before
				b.StartTimer()
			}
			perEvent := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(len(raws)*b.N) }
			b.ReportMetric(perEvent(ingesting), "cpu-µs/event")
			b.ReportMetric(perEvent(verifying), "verify-cpu-µs/event")
			ingested := float64(len(raws)*b.N) / b.Elapsed().Seconds()
			b.ReportMetric(ingested, "events/s")
			b.ReportMetric(100*ingested*float64(b.N)/checked, "%ofVerify")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// cpuTime is what this process has used so far: on a busy machine a better measure than rates.
func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func serveFor(b *testing.B, kind, dir string) (url string) {
	store, err := OpenStore(kind, dir, DurabilityCommit)
	if err != nil {
		b.Fatal(err)
	}
	url, stop := startServing(b, Options{Store: store})
	b.Cleanup(func() { stop(); store.Close() })
	return url
}

// BenchmarkNull is the harness's ceiling: events answered, and events received, over 4 connections.
func BenchmarkNull(b *testing.B) {
	url, stop := startServing(b, Options{Store: Null{}})
	defer stop()
	raws := rawEvents(benchEvents())
	b.Run("publish", func(b *testing.B) {
		var many [][]byte
		for range b.N/len(raws) + 1 {
			many = append(many, raws...)
		}
		b.ResetTimer()
		publish(b, url, many[:b.N], 4, 200)
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("receive", func(b *testing.B) {
		var got atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				conn, err := wire.Dial(context.Background(), url, wire.Options{})
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				var m wire.Message
				for got.Load() < int64(b.N) {
					conn.Send([]byte(`["REQ","q",{"limit":500}]`))
					for m.Type = wire.Unknown; m.Type != wire.EOSE; {
						frame, _, err := conn.Read()
						if err != nil {
							b.Error(err)
							return
						}
						wire.Parse(frame, &m)
					}
					got.Add(500)
				}
			})
		}
		all.Wait()
		b.ReportMetric(float64(got.Load())/b.Elapsed().Seconds(), "events/s")
	})
}

// stockFilters are shaped like the queries that relaybench asks.
func stockFilters(events []corpus.Event) map[string]corpus.Filter {
	authors, mentioned, referenced := map[corpus.PubKey]int{}, map[string]int{}, map[string]int{}
	hashtags := map[string]int{}
	for _, e := range events {
		authors[e.PubKey]++
		for _, t := range e.Tags {
			switch {
			case t.Name() == "p" && e.Kind != 3:
				mentioned[t.Value()]++
			case t.Name() == "e":
				referenced[t.Value()]++
			case t.Name() == "t":
				hashtags[t.Value()]++
			}
		}
	}
	byCount := ranked(authors)
	top := func(n int) []corpus.PubKey { return byCount[:min(n, len(byCount))] }
	kinds := []int{1, 6, 7, 9735}
	var ids []corpus.ID
	for i := range 100 {
		ids = append(ids, events[i*len(events)/100].ID)
	}
	middle, late := events[len(events)/2].CreatedAt, events[len(events)-1].CreatedAt-6*86400
	limit := corpus.Int(500)
	return map[string]corpus.Filter{
		"firehose":        {Limit: limit},
		"global-feed":     {Kinds: []int{1}, Limit: limit},
		"two-kinds":       {Kinds: []int{1, 6}, Limit: limit},
		"profiles":        {Kinds: []int{0}, Authors: top(50), Limit: limit},
		"author-archive":  {Authors: byCount[max(0, len(byCount)-3):], Limit: limit},
		"busy-authors":    {Authors: top(3), Limit: limit},
		"follow-feed":     {Kinds: []int{1, 6}, Authors: top(150), Limit: limit},
		"thread":          {Kinds: kinds, Tags: []corpus.TagFilter{{Name: 'e', Values: ranked(referenced)[:1]}}, Limit: limit},
		"notifications":   {Kinds: kinds, Tags: []corpus.TagFilter{{Name: 'p', Values: ranked(mentioned)[:1]}}, Limit: limit},
		"conversation":    {Kinds: []int{1}, Authors: top(1), Tags: []corpus.TagFilter{{Name: 'p', Values: ranked(mentioned)[:1]}}, Limit: limit},
		"reactions-watch": {Kinds: []int{7}, Tags: []corpus.TagFilter{{Name: 'e', Values: ranked(referenced)[:150]}}, Limit: limit},
		"hashtag":         {Kinds: []int{1}, Tags: []corpus.TagFilter{{Name: 't', Values: ranked(hashtags)[:1]}}, Limit: limit},
		"by-ids":          {IDs: ids},
		"recent-window":   {Kinds: []int{1}, Since: &late, Limit: limit},
		"empty":           {Kinds: []int{1}, Authors: []corpus.PubKey{{1, 2, 3}}, Limit: limit},
		"deep-page":       {Until: &middle, Limit: limit},
	}
}

// ranked returns the keys of counts, most counted first.
func ranked[K interface {
	comparable
	corpus.PubKey | string
}](counts map[K]int) (keys []K) {
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return slices.Compare([]byte(fmt.Sprint(a)), []byte(fmt.Sprint(b)))
	})
	return keys
}

// BenchmarkQuery measures REQ to EOSE on one connection over the synthetic corpus.
func BenchmarkQuery(b *testing.B) {
	events := benchEvents()
	filters := stockFilters(events)
	for _, kind := range []string{"memory", "bolt", "sqlite"} {
		store := openTestStore(b, kind, b.TempDir(), DurabilityNone)
		var seq uint64
		for chunk := range slices.Chunk(events, 1000) {
			admitAll(b, store, &seq, chunk)
		}
		url, stop := startServing(b, Options{Store: store})
		conn, err := wire.Dial(context.Background(), url, wire.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, key := range slices.Sorted(maps.Keys(filters)) {
			f := filters[key]
			request := append(f.AppendJSON([]byte(`["REQ","q",`)), ']')
			b.Run(kind+"/"+key, func(b *testing.B) {
				got, before := 0, cpuTime()
				for b.Loop() {
					conn.Send(request)
					var m wire.Message
					for m.Type != wire.EOSE {
						frame, _, err := conn.Read()
						if err != nil {
							b.Fatal(err)
						}
						if wire.Parse(frame, &m); m.Type == wire.Event {
							got++
						}
					}
				}
				b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
				b.ReportMetric(float64(got)/float64(b.N), "events/op")
			})
		}
		conn.Close()
		stop()
	}
}
