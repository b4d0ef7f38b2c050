package calibrate

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/harness/receive"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
	"relaybench/results"
)

// How many events of the corpus figures are taken over: more than the processor's caches hold for
// nothing. A receive pipeline is given each of them once.
const (
	sampleSize    = 1000
	receiveSample = 4000
)

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
	records, err := c.best(ctx, results.RecordCost, c.effort.coding, repeated(func(i int) error {
		h.Record(time.Duration(i%5000) * time.Microsecond)
		return nil
	}))
	if err == nil {
		c.add(results.RecordCost, 1e9/records, "ns")
	}
	return err
}

// repeated measures how often a second f can be done. The clock is looked at now and then, not to be
// measured itself.
func repeated(f func(i int) error) func(d time.Duration) (float64, error) {
	const batch = 64
	return func(d time.Duration) (perSecond float64, err error) {
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
}

// sample returns at most so many events of the corpus, spread over all of it.
func (c *Stage) sample(most int) (indexes []int) {
	n := min(c.Corpus.Len(), most)
	for k := range n {
		indexes = append(indexes, k*c.Corpus.Len()/n)
	}
	return indexes
}

// frames are EVENT messages as a relay would send them.
func (c *Stage) frames(indexes []int) [][]byte {
	frames := make([][]byte, len(indexes))
	for k, i := range indexes {
		frames[k] = append(append([]byte(`["EVENT","q1",`), c.Corpus.Raw(i)...), ']')
	}
	return frames
}

// checks measures how fast signatures are checked: no relay that checks them can take in more.
func (c *Stage) checks(ctx context.Context) error {
	var sample []corpus.Event
	for _, i := range c.sample(sampleSize) {
		e, err := c.Corpus.Event(i)
		if err != nil {
			return err
		}
		sample = append(sample, e)
	}
	over := func(name string, workers int) rate {
		return rate{name, "checks/s", c.effort.checks, func(d time.Duration) (float64, error) { return signatureChecks(sample, workers, d) }}
	}
	return c.rates(ctx, over(results.ChecksOneCore, 1), over(results.ChecksAllCores, runtime.GOMAXPROCS(0)))
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
	indexes := c.sample(sampleSize)
	frames := c.frames(indexes)
	message := make([]byte, 16<<10) // as long as a fifth of the largest that is usual
	for i := range message {
		message[i] = byte(i * 31)
	}
	digits := negentropy.AppendHex(nil, message)
	megabytes := func(perSecond func(time.Duration) (float64, error)) func(time.Duration) (float64, error) {
		return func(d time.Duration) (float64, error) {
			messages, err := perSecond(d)
			return messages * float64(len(message)) / 1e6, err
		}
	}
	var m wire.Message
	var buf []byte
	return c.rates(ctx,
		rate{results.EventsParsed, "events/s", c.effort.coding, repeated(func(i int) error {
			_, err := corpus.ParseEvent(c.Corpus.Raw(indexes[i%len(indexes)]))
			return err
		})},
		rate{results.FramesScanned, "frames/s", c.effort.coding, repeated(func(i int) error { return scanned(frames[i%len(frames)], &m) })},
		rate{results.HexEncoded, "MB/s", c.effort.coding, megabytes(repeated(func(int) error {
			buf = negentropy.AppendHex(buf[:0], message)
			return nil
		}))},
		rate{results.HexDecoded, "MB/s", c.effort.coding, megabytes(repeated(func(int) (err error) {
			buf, err = negentropy.DecodeHex(buf[:0], digits)
			return err
		}))})
}

// scanned reads a frame of the corpus as it is read from a relay.
func scanned(frame []byte, m *wire.Message) error {
	if wire.Parse(frame, m); !m.HasID {
		return errors.New("a frame of the corpus has no id")
	}
	return nil
}

// Names of the figures of the receive path, which a thorough calibration measures stage by stage.
// ReceiveDispatched is followed by over how many feeders.
const (
	ReceiveScanned    = "receive: EVENT frames scanned"
	ReceiveKnown      = "receive: known events skipped"
	ReceiveDispatched = "receive: new events handed on"
	ReceiveInline     = "receive: events verified inline"
	ReceiveParallel   = "receive: events verified on all cores, in order"
)

// receivePath measures the stages of harness/receive, from the frame on.
func (c *Stage) receivePath(ctx context.Context) error {
	frames := c.frames(c.sample(receiveSample))
	known := receive.New(ctx, receive.Options{Checks: receive.Unchecked}, func(*receive.Batch) error { return nil })
	feeder := known.Feeder()
	var m wire.Message
	feed := func(i int) error { return fed(feeder, frames[i%len(frames)], &m) }
	for i := range frames {
		if err := feed(i); err != nil {
			return err
		}
	}
	through := func(checks receive.Checks, feeders int) func(time.Duration) (float64, error) {
		return func(d time.Duration) (float64, error) { return received(ctx, frames, checks, feeders, d) }
	}
	err := c.rates(ctx,
		rate{ReceiveScanned, "frames/s", c.effort.coding, repeated(func(i int) error { return scanned(frames[i%len(frames)], &m) })},
		rate{ReceiveKnown, "frames/s", c.effort.coding, repeated(feed)},
		rate{ReceiveDispatched + ", 1 feeder", "events/s", c.effort.coding, through(receive.Unchecked, 1)},
		rate{ReceiveDispatched + ", 4 feeders", "events/s", c.effort.coding, through(receive.Unchecked, 4)},
		rate{ReceiveInline, "events/s", c.effort.checks, through(receive.Inline, 1)},
		rate{ReceiveParallel, "events/s", c.effort.checks, through(receive.Parallel, 1)})
	return errors.Join(err, known.Close())
}

// fed gives a feeder the event of a frame.
func fed(f *receive.Feeder, frame []byte, m *wire.Message) error {
	if err := scanned(frame, m); err != nil {
		return err
	}
	_, err := f.Event(m.ID, m.Event, wire.Now())
	return err
}

// received returns how many events a second get from feeders through a pipeline to a consumer that
// does nothing.
func received(ctx context.Context, frames [][]byte, checks receive.Checks, feeders int, d time.Duration) (float64, error) {
	start := wire.Now()
	for done := int64(0); ; {
		p := receive.New(ctx, receive.Options{Checks: checks}, func(*receive.Batch) error { return nil })
		errs := make([]error, feeders)
		var all sync.WaitGroup
		for w := range feeders {
			f := p.Feeder()
			all.Go(func() {
				var m wire.Message
				// By the clock now and then, since a whole sample of signatures would take too
				// long; but something passes however late it is.
				for i := w; i < len(frames) && errs[w] == nil && (i == w || i/feeders%64 > 0 || wire.Now()-start < d); i += feeders {
					errs[w] = fed(f, frames[i], &m)
				}
			})
		}
		all.Wait()
		if err := errors.Join(append(errs, p.Close())...); err != nil {
			return 0, err
		}
		s := p.Stats()
		if s.Refused() > 0 {
			return 0, errors.New("an event of the corpus does not verify")
		}
		done += s.Delivered
		if took := wire.Now() - start; took >= d {
			return float64(done) / took.Seconds(), nil
		}
	}
}
