package corpus

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// benchEvents is the synthetic corpus of a default run, made once for all benchmarks.
var benchEvents = sync.OnceValue(func() (events []Event) {
	err := Spec{Events: 10_000, Seed: 1, BaseTime: 1_780_272_000}.Generate(context.Background(), nil, func(e *Event) error {
		events = append(events, *e)
		return nil
	})
	if err != nil {
		panic(err)
	}
	return events
})

// BenchmarkPrepare prepares a dump that is not cached and reports events a second, and what part that is of the rate at which all cores
// do nothing but check the same events' ids and signatures.
func BenchmarkPrepare(b *testing.B) {
	events := benchEvents()
	for name, content := range map[string][]byte{"lines": ndjson(texts(events...)...), "gzip array": gzipped(b, jsonArray(texts(events...)...))} {
		b.Run(name, func(b *testing.B) {
			path, cache := fileOf(b, content), b.TempDir()
			var bare, prepare, bareCPU, prepareCPU time.Duration
			for b.Loop() {
				start, startCPU := time.Now(), cpuTime(b)
				c, err := BuildFile(context.Background(), path, PrepareOptions{}, cache, nil)
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

func verifyAll(b *testing.B, events []Event) {
	inParallel(len(events), func(i int) {
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

// BenchmarkOpen opens a corpus of a million events. They are ten thousand events over and over with other ids and times, since Open looks
// at neither hashes nor signatures.
func BenchmarkOpen(b *testing.B) {
	const n = 1_000_000
	events := benchEvents()
	dir := b.TempDir()
	w, err := newWriter(dir)
	if err != nil {
		b.Fatal(err)
	}
	var line []byte
	for i := range n {
		e := events[i%len(events)]
		e.CreatedAt = 1_700_000_000 + int64(i)
		e.ID[0], e.ID[1] = byte(i), byte(i>>8)
		line = e.AppendJSON(line[:0])
		if err := w.add(&record{createdAt: e.CreatedAt, id: e.ID, kind: uint16(e.Kind)}, line); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.finish(Manifest{Format: ManifestFormat}); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, EventsFile))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		c, err := Open(dir)
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
	c, err := FromEvents(benchEvents())
	if err != nil {
		b.Fatal(err)
	}
	c.Find(ID{})
	i := 0
	for b.Loop() {
		if _, ok := c.Find(c.Entry(i).ID); !ok {
			b.Fatal("not found")
		}
		i = (i + 1) % c.Len()
	}
}
