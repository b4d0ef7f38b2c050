package prepare

import (
	"bytes"
	"context"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/synthetic"
)

// benchEvents is the synthetic corpus of a default run, made once for all benchmarks.
var benchEvents = sync.OnceValue(func() (events []corpus.Event) {
	err := synthetic.Spec{Events: 10_000, Seed: 1, BaseTime: 1_780_272_000}.Generate(context.Background(), nil, func(e *corpus.Event) error {
		events = append(events, *e)
		return nil
	})
	if err != nil {
		panic(err)
	}
	return events
})

// BenchmarkPrepare prepares a dump that is not cached and reports events a second, and what part
// that is of the rate at which all cores do nothing but check the same events' ids and signatures.
func BenchmarkPrepare(b *testing.B) {
	events := benchEvents()
	for name, content := range map[string][]byte{"lines": ndjson(texts(events...)...), "gzip array": gzipped(b, jsonArray(texts(events...)...))} {
		b.Run(name, func(b *testing.B) {
			path, cache := fileOf(b, content), b.TempDir()
			var bare, prepare, bareCPU, prepareCPU time.Duration
			for b.Loop() {
				start, startCPU := time.Now(), cpuTime(b)
				c, err := File(context.Background(), path, Options{}, cache, nil)
				if err != nil {
					b.Fatal(err)
				}
				prepare += time.Since(start)
				prepareCPU += cpuTime(b) - startCPU
				b.StopTimer()
				os.RemoveAll(c.Dir())
				c.Close()
				start, startCPU = time.Now(), cpuTime(b)
				verifyAll(b, events)
				bare += time.Since(start)
				bareCPU += cpuTime(b) - startCPU
				b.StartTimer()
			}
			b.ReportMetric(float64(b.N*len(events))/prepare.Seconds(), "events/s")
			b.ReportMetric(bare.Seconds()/prepare.Seconds(), "of-verify-rate")
			b.ReportMetric(bareCPU.Seconds()/prepareCPU.Seconds(), "of-verify-cpu") // the same where others use the machine
		})
	}
}

func verifyAll(b *testing.B, events []corpus.Event) {
	corpus.InParallel(len(events), func(i int) {
		if err := events[i].Verify(); err != nil {
			b.Error(err)
		}
	})
}

// cpuTime returns what this process has used of all cores.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSplit measures the one stage that no second core helps with.
func BenchmarkSplit(b *testing.B) {
	parts := texts(benchEvents()...)
	for name, text := range map[string][]byte{"lines": ndjson(parts...), "objects": bytes.Join(parts, nil), "array": jsonArray(parts...)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var buf []byte
			for b.Loop() {
				s := newSplitter(bytes.NewReader(text))
				for err := error(nil); err == nil; {
					buf, _, err = s.next(buf[:0])
				}
			}
		})
	}
}
