package calibrate

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
	"relaybench/results"
)

// sampleSize is how many events of the corpus the processor's figures are taken over: more than its
// caches hold for nothing.
const sampleSize = 1000

// clock measures the one clock that all figures are taken with, and what keeping one of them costs.
func (c *Stage) clock(ctx context.Context) error {
	const reads = 50_000
	var finest, cost time.Duration
	for round := range c.effort.rounds {
		start := wire.Now()
		last := start
		for range reads {
			now := wire.Now()
			if d := now - last; d > 0 && (finest == 0 || d < finest) {
				finest = d
			}
			last = now
		}
		if took := last - start; round == 0 || took < cost {
			cost = took
		}
	}
	if finest > 0 {
		c.add(results.ClockResolution, float64(finest), "ns")
	}
	c.add(results.ClockRead, float64(cost)/reads, "ns")

	h := results.NewHistogram()
	records, err := c.best(ctx, results.RecordCost, c.effort.coding, func(d time.Duration) (float64, error) {
		return repeat(d, func(i int) error {
			h.Record(time.Duration(i%5000) * time.Microsecond)
			return nil
		})
	})
	if err != nil {
		return err
	}
	c.add(results.RecordCost, 1e9/records, "ns")
	return nil
}

// repeat returns how often a second f can be done. The clock is looked at now and then, not to be
// measured itself.
func repeat(d time.Duration, f func(i int) error) (perSecond float64, err error) {
	const batch = 64
	start := wire.Now()
	for done := 0; ; {
		for range batch {
			if err := f(done); err != nil {
				return 0, err
			}
			done++
		}
		if took := wire.Now() - start; took >= d {
			return float64(done) / took.Seconds(), nil
		}
	}
}

// sample returns events of the corpus, spread over all of it.
func (c *Stage) sample() (indexes []int) {
	n := min(c.Corpus.Len(), sampleSize)
	for k := range n {
		indexes = append(indexes, k*c.Corpus.Len()/n)
	}
	return indexes
}

// checks measures how fast signatures are checked: no relay that checks them can take in more.
func (c *Stage) checks(ctx context.Context) error {
	var sample []corpus.Event
	for _, i := range c.sample() {
		e, err := c.Corpus.Event(i)
		if err != nil {
			return err
		}
		sample = append(sample, e)
	}
	for _, f := range []struct {
		name    string
		workers int
	}{{results.ChecksOneCore, 1}, {results.ChecksAllCores, runtime.GOMAXPROCS(0)}} {
		rate, err := c.best(ctx, f.name, c.effort.checks, func(d time.Duration) (float64, error) { return signatureChecks(sample, f.workers, d) })
		if err != nil {
			return err
		}
		c.add(f.name, rate, "checks/s")
	}
	return nil
}

// signatureChecks returns checks per second over so many workers.
func signatureChecks(sample []corpus.Event, workers int, d time.Duration) (float64, error) {
	var checked atomic.Int64
	errs := make([]error, workers)
	start := wire.Now()
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i == w || wire.Now()-start < d; i += workers { // one at least, however late it is
				if errs[w] = sample[i%len(sample)].Verify(); errs[w] != nil {
					return
				}
				checked.Add(1)
			}
		})
	}
	all.Wait()
	return float64(checked.Load()) / (wire.Now() - start).Seconds(), errors.Join(errs...)
}

// coding measures what the harness does with every frame and every NEG message.
func (c *Stage) coding(ctx context.Context) error {
	indexes := c.sample()
	frames := make([][]byte, len(indexes))
	for k, i := range indexes {
		frames[k] = append(append([]byte(`["EVENT","q1",`), c.Corpus.Raw(i)...), ']')
	}
	message := make([]byte, 16<<10) // as long as a fifth of the largest that is usual
	for i := range message {
		message[i] = byte(i * 31)
	}
	digits := negentropy.AppendHex(nil, message)
	var m wire.Message
	var buf []byte
	megabytes := float64(len(message)) / 1e6
	for _, f := range []struct {
		name, unit string
		factor     float64
		do         func(i int) error
	}{
		{results.EventsParsed, "events/s", 1, func(i int) error {
			_, err := corpus.ParseEvent(c.Corpus.Raw(indexes[i%len(indexes)]))
			return err
		}},
		{results.FramesScanned, "frames/s", 1, func(i int) error {
			wire.Parse(frames[i%len(frames)], &m)
			if !m.HasID {
				return errors.New("a frame of the corpus has no id")
			}
			return nil
		}},
		{results.HexEncoded, "MB/s", megabytes, func(int) error {
			buf = negentropy.AppendHex(buf[:0], message)
			return nil
		}},
		{results.HexDecoded, "MB/s", megabytes, func(int) (err error) {
			buf, err = negentropy.DecodeHex(buf[:0], digits)
			return err
		}},
	} {
		rate, err := c.best(ctx, f.name, c.effort.coding, func(d time.Duration) (float64, error) { return repeat(d, f.do) })
		if err != nil {
			return err
		}
		c.add(f.name, rate*f.factor, f.unit)
	}
	return nil
}
