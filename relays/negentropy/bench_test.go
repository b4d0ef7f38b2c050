package negentropy

import (
	"encoding/hex"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	oracle "github.com/nbd-wtf/go-nostr/nip77/negentropy"
	"github.com/nbd-wtf/go-nostr/nip77/negentropy/storage/vector"
)

// The benchmarks reconcile a million items a side, of which 800,000 are shared: the oldest and the
// newest fifth differ. The responder's frames have at most 500,000 bytes. Figures are medians. Run
// them all with
//
//	go test -run '^$' -bench . ./relays/negentropy
const (
	benchItems = 1_000_000
	benchStep  = benchItems / 5
	benchFrame = 500_000
)

var benchAll = sync.OnceValue(func() []item {
	r := rand.New(rand.NewPCG(77, 77))
	items := make([]item, benchItems+benchStep)
	for i := range items {
		items[i] = item{1_700_000_000 + uint64(i)/4, randomID(r)}
	}
	slices.SortFunc(items, compareTestItems)
	return items
})

var benchSets = sync.OnceValue(func() [2]*Set {
	fill := func(items []item) *Set {
		s := NewSet(len(items))
		for i := range items {
			s.Add(items[i].time, &items[i].id)
		}
		if err := s.Seal(); err != nil {
			panic(err)
		}
		return s
	}
	return [2]*Set{fill(benchAll()[:benchItems]), fill(benchAll()[benchStep:])}
})

// timing gathers one duration a round for each part of a benchmark.
type timing map[string][]float64

func (g timing) add(part string, d time.Duration) {
	g[part] = append(g[part], float64(d)/float64(time.Millisecond))
}

func (g timing) report(b *testing.B) {
	for part, values := range g {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], part+"-ms")
	}
	b.ReportMetric(0, "ns/op") // the parts say more
}

// exchangeOnce runs one exchange and returns the time of open, of the client with open, and of the
// server.
func exchangeOnce(n *Initiator, r *Responder, ours, theirs Storage, message, reply []byte) (open, client, server time.Duration, rounds, up, down int, _, _ []byte) {
	n.Reset(ours)
	r.Reset(theirs)
	start := time.Now()
	message = n.Open(message[:0])
	open = time.Since(start)
	client = open
	for !n.Done() {
		rounds++
		up += len(message)
		start = time.Now()
		var err error
		if reply, err = r.Next(reply[:0], message); err != nil {
			panic(err)
		}
		middle := time.Now()
		server += middle.Sub(start)
		down += len(reply)
		if message, err = n.Next(message[:0], reply); err != nil {
			panic(err)
		}
		client += time.Since(middle)
	}
	return open, client, server, rounds, up, down, message, reply
}

// benchmarkExchange counts the ids; it also copies them where they are collected.
func benchmarkExchange(b *testing.B, ours, theirs Storage, collect bool) {
	have, need := 0, 0
	haves, needs := []ID{}, []ID{}
	n := NewInitiator(ours, 0, func(ids []ID) {
		if have += len(ids); collect {
			haves = append(haves, ids...)
		}
	}, func(ids []ID) {
		if need += len(ids); collect {
			needs = append(needs, ids...)
		}
	})
	r := NewResponder(theirs, benchFrame)
	var message, reply []byte
	var rounds, up, down int
	times := timing{}
	b.ReportAllocs()
	for range 2 { // warm
		haves, needs = haves[:0], needs[:0]
		_, _, _, _, _, _, message, reply = exchangeOnce(n, r, ours, theirs, message, reply)
	}
	for b.Loop() {
		have, need, haves, needs = 0, 0, haves[:0], needs[:0]
		var open, client, server time.Duration
		open, client, server, rounds, up, down, message, reply = exchangeOnce(n, r, ours, theirs, message, reply)
		times.add("open", open)
		times.add("client", client)
		times.add("server", server)
	}
	times.report(b)
	b.ReportMetric(float64(rounds), "rounds")
	b.ReportMetric(float64(up), "up-B")
	b.ReportMetric(float64(down), "down-B")
	if rounds > 1 && (have != benchStep || need != benchStep) {
		b.Fatalf("%d have, %d need", have, need)
	}
}

func BenchmarkExchange(b *testing.B) {
	b.Run("warm", func(b *testing.B) { benchmarkExchange(b, benchSets()[0], benchSets()[1], false) })
	b.Run("warm/collected", func(b *testing.B) { benchmarkExchange(b, benchSets()[0], benchSets()[1], true) })
	b.Run("warm/identical", func(b *testing.B) { benchmarkExchange(b, benchSets()[0], benchSets()[0], false) })
	b.Run("warm/live", func(b *testing.B) {
		benchmarkExchange(b, benchSets()[0], benchLive().Snapshot(), false)
	})
	b.Run("go-nostr", func(b *testing.B) {
		ours, theirs := oracleSet(benchAll()[:benchItems]), oracleSet(benchAll()[benchStep:])
		times := timing{}
		var rounds, up, down int
		for b.Loop() {
			rounds, up, down = 0, 0, 0
			client, server := oracle.New(ours, 0), oracle.New(theirs, benchFrame)
			var drained sync.WaitGroup
			for _, ids := range []chan string{client.Haves, client.HaveNots} {
				drained.Go(func() {
					for range ids {
					}
				})
			}
			start := time.Now()
			message := client.Start()
			inClient, inServer := time.Since(start), time.Duration(0)
			times.add("open", inClient)
			for message != "" {
				rounds++
				up += len(message) / 2
				start = time.Now()
				reply, err := server.Reconcile(message)
				if err != nil {
					b.Fatal(err)
				}
				inServer += time.Since(start)
				down += len(reply) / 2
				start = time.Now()
				if message, err = client.Reconcile(reply); err != nil {
					b.Fatal(err)
				}
				inClient += time.Since(start)
			}
			drained.Wait()
			times.add("client", inClient)
			times.add("server", inServer)
		}
		times.report(b)
		b.ReportMetric(float64(rounds), "rounds")
		b.ReportMetric(float64(up), "up-B")
		b.ReportMetric(float64(down), "down-B")
	})
}

// BenchmarkWire is the same over a loopback socket, the relay in this process.
func BenchmarkWire(b *testing.B) {
	for _, part := range []struct {
		name         string
		ours, theirs Storage
	}{{"differing", benchSets()[0], benchSets()[1]}, {"identical", benchSets()[0], benchSets()[0]}} {
		b.Run(part.name, func(b *testing.B) {
			relay := &testRelay{set: part.theirs, frameLimit: benchFrame}
			conn := dial(b, startRelay(b, relay.serve))
			times := timing{}
			for b.Loop() {
				r, err := Reconcile(b.Context(), conn, []byte(`{}`), part.ours, Options{})
				if err != nil {
					b.Fatal(err)
				}
				times.add("total", r.Duration)
				times.add("engine", r.Engine)
				times.add("coding", r.Coding)
			}
			times.report(b)
		})
	}
}

func BenchmarkSeal(b *testing.B) {
	fill := func() *Set {
		s := NewSet(benchItems)
		for i := range benchAll()[:benchItems] {
			s.Add(benchAll()[i].time, &benchAll()[i].id)
		}
		return s
	}
	b.Run("sorted", func(b *testing.B) {
		times := timing{}
		for b.Loop() {
			b.StopTimer()
			s := fill()
			b.StartTimer()
			start := time.Now()
			s.Seal()
			times.add("seal", time.Since(start))
		}
		times.report(b)
	})
	b.Run("shuffled", func(b *testing.B) {
		times := timing{}
		r := rand.New(rand.NewPCG(1, 1))
		for b.Loop() {
			b.StopTimer()
			s := fill()
			r.Shuffle(benchItems, func(i, j int) {
				s.times[i], s.times[j] = s.times[j], s.times[i]
				s.ids[i], s.ids[j] = s.ids[j], s.ids[i]
			})
			b.StartTimer()
			start := time.Now()
			s.Seal()
			times.add("seal", time.Since(start))
		}
		times.report(b)
	})
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s := fill()
			s.Seal()
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(s.Len()), "B/item")
		}
		b.ReportMetric(0, "ns/op")
	})
	b.Run("sorted/go-nostr", func(b *testing.B) {
		times := timing{}
		for b.Loop() {
			b.StopTimer()
			texts := make([]string, benchItems)
			for i := range texts {
				texts[i] = hex.EncodeToString(benchAll()[i].id[:])
			}
			v := vector.New()
			for i := range texts {
				v.Insert(nostr.Timestamp(benchAll()[i].time), texts[i])
			}
			b.StartTimer()
			start := time.Now()
			v.Seal()
			times.add("seal", time.Since(start))
		}
		times.report(b)
	})
}

func BenchmarkFingerprint(b *testing.B) {
	for _, storage := range []struct {
		name string
		s    Storage
	}{{"set", benchSets()[1]}, {"live", benchLive().Snapshot()}} {
		b.Run(storage.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			b.ReportAllocs()
			for b.Loop() {
				lo := r.IntN(benchItems)
				FingerprintOf(storage.s, lo, lo+r.IntN(benchItems-lo))
			}
		})
	}
	b.Run("go-nostr/all", func(b *testing.B) {
		v := oracleSet(benchAll()[:benchItems])
		for b.Loop() {
			v.Fingerprint(0, benchItems)
		}
	})
}

var benchLive = sync.OnceValue(func() *Live {
	live := new(Live)
	for i := range benchAll()[benchStep:] {
		live.Insert(benchAll()[benchStep+i].time, &benchAll()[benchStep+i].id)
	}
	return live
})

func BenchmarkLive(b *testing.B) {
	b.Run("insert/ascending", func(b *testing.B) {
		all := benchAll()
		live, i := new(Live), 0
		b.ReportAllocs()
		for b.Loop() {
			if i == len(all) {
				live, i = new(Live), 0
			}
			live.Insert(all[i].time, &all[i].id)
			i++
		}
	})
	b.Run("insert/random", func(b *testing.B) {
		live, r := benchLive(), rand.New(rand.NewPCG(2, 2))
		b.ReportAllocs()
		for b.Loop() {
			id := randomID(r)
			at := benchAll()[benchStep+r.IntN(benchItems)].time
			live.Insert(at, &id)
			live.Delete(at, &id)
		}
	})
	b.Run("open-after-insert", func(b *testing.B) { // what a NEG-OPEN costs after a write
		live, r := benchLive(), rand.New(rand.NewPCG(2, 2))
		responder := NewResponder(live.Snapshot(), benchFrame)
		message := NewInitiator(live.Snapshot(), 0, nil, nil).Open(nil)
		var reply []byte
		b.ReportAllocs()
		for b.Loop() {
			id := randomID(r)
			at := benchAll()[benchStep+r.IntN(benchItems)].time
			live.Insert(at, &id)
			responder.Reset(live.Snapshot())
			reply, _ = responder.Next(reply[:0], message)
			live.Delete(at, &id)
		}
	})
}
