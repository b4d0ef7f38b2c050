package receive

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// cpuTime is what this process has used so far: on a machine that others use too, it tells more
// than the clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchEvents is how many different events the benchmarks use.
const benchEvents = 4096

var benchSigned = sync.OnceValue(func() []corpus.Event { return signed(&testing.B{}, benchEvents) })

// BenchmarkParse is the pass over a frame that finds the id, and the reading of the event that
// follows it.
func BenchmarkParse(b *testing.B) {
	all := frames(benchSigned())
	b.Run("frame", func(b *testing.B) {
		b.ReportAllocs()
		var m wire.Message
		b.ResetTimer()
		for i := range b.N {
			if wire.Parse(all[i%len(all)], &m); !m.HasID {
				b.Fatal("no id")
			}
		}
	})
	b.Run("event", func(b *testing.B) {
		b.ReportAllocs()
		lines := texts(benchSigned())
		b.ResetTimer()
		for i := range b.N {
			if _, err := corpus.ParseEvent(lines[i%len(lines)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDispatch is the whole path but for parsing and signatures, each event new, from frames
// to a consumer that only counts. With 4 feeders ns/op has to be lower than with 1.
func BenchmarkDispatch(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprintf("feeders=%d", n), func(b *testing.B) { benchPipeline(b, Options{Checks: Unchecked}, n, 0) })
	}
}

// BenchmarkDuplicates is the path of frames of which a share was received before, from 4 feeders,
// without signatures (so that the rest is seen) and with them.
func BenchmarkDuplicates(b *testing.B) {
	for _, share := range []int{0, 14, 50} {
		b.Run(fmt.Sprintf("unchecked/share=%d%%", share), func(b *testing.B) { benchPipeline(b, Options{Checks: Unchecked}, 4, share) })
	}
	for _, share := range []int{0, 14, 50} {
		b.Run(fmt.Sprintf("parallel/share=%d%%", share), func(b *testing.B) { benchPipeline(b, Options{}, 4, share) })
	}
}

// BenchmarkVerify is the path with signatures, one after another in the consumer's goroutine and on
// all cores.
func BenchmarkVerify(b *testing.B) {
	for _, o := range []Options{{Checks: Inline}, {Checks: Parallel}} {
		b.Run(o.Checks.String(), func(b *testing.B) { benchPipeline(b, o, 1, 0) })
	}
}

// benchPipeline sends b.N frames in all, of which a share in per cent repeats the one before.
func benchPipeline(b *testing.B, o Options, feeders, share int) {
	handed, batches := 0, 0
	count := func(batch *Batch) error {
		handed += len(batch.Events)
		batches++
		return nil
	}
	all := frames(benchSigned())
	b.SetBytes(int64(len(all[0])))
	b.ReportAllocs()
	runtime.GC()
	b.ResetTimer()
	before := cpuTime()
	var total Counts
	for done := 0; done < b.N; {
		n := b.N - done
		if o.Checks <= Inline {
			n = min(n, len(all)) // each event can be verified once before it is known
		}
		p := New(b.Context(), o, count)
		var readers sync.WaitGroup
		for w := range feeders {
			f := p.Feeder()
			own := all[w*len(all)/feeders : (w+1)*len(all)/feeders]
			readers.Go(func() { benchFeed(b, f, own, (n+feeders-1-w)/feeders, share) })
		}
		readers.Wait()
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
		s := p.Stats()
		total.add(&s.Counts)
		done += n
	}
	b.StopTimer()
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(handed)/float64(max(batches, 1)), "events/batch")
	b.ReportMetric(float64(total.Duplicates)/float64(total.Events)*100, "%dup")
	if int64(handed) != total.Delivered || total.Delivered+total.Duplicates != int64(b.N) {
		b.Errorf("%d handed on of %+v", handed, total)
	}
}

// benchFeed feeds n frames. Where nothing is verified, each gets an id of its own, written over the
// one it had.
func benchFeed(b *testing.B, f *Feeder, own [][]byte, n, share int) {
	const digits = len(`["EVENT","s1",{"id":"`)
	var frame []byte
	repeat, next := 0, -1
	for range n {
		if repeat += share; repeat >= 100 {
			repeat -= 100
		} else {
			next++
			frame = own[next%len(own)]
			if f.p.options.Checks == Unchecked {
				var id [16]byte
				binary.BigEndian.PutUint64(id[:], uint64(next+1)*0x9e3779b97f4a7c15)
				binary.BigEndian.PutUint64(id[8:], uint64(f.Number))
				hex.Encode(frame[digits:], id[:])
			}
		}
		if _, err := feedFrame(f, frame); err != nil {
			b.Error(err)
			return
		}
	}
}
