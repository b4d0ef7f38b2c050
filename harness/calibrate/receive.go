package calibrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"relaybench/harness/receive"
	"relaybench/relays/wire"
)

// Names of the figures of the receive path, which a thorough calibration measures stage by stage.
// ReceiveDispatched ends as overFeeders says.
const (
	ReceiveScanned    = "receive: EVENT frames scanned"
	ReceiveKnown      = "receive: known events skipped"
	ReceiveDispatched = "receive: new events handed on"
	ReceiveInline     = "receive: events verified inline"
	ReceiveParallel   = "receive: events verified on all cores, in order"
)

// overFeeders is the name of a figure that was reached with so many feeders.
func overFeeders(name string, feeders int) string {
	if feeders == 1 {
		return name + ", 1 feeder"
	}
	return fmt.Sprintf("%s, %d feeders", name, feeders)
}

// receiveSample is how many events of the corpus at most pass through a pipeline before the next
// one is made, which knows none of them.
const receiveSample = 4000

// receivePath measures the stages of harness/receive.
func (c *Stage) receivePath(ctx context.Context) error {
	n := min(c.Corpus.Len(), receiveSample)
	frames := make([][]byte, n)
	for k := range frames {
		frames[k] = append(append([]byte(`["EVENT","q1",`), c.Corpus.Raw(k*c.Corpus.Len()/n)...), ']')
	}
	var m wire.Message
	known := receive.New(ctx, receive.Options{Checks: receive.Raw, Remember: 2 * n}, func(*receive.Batch) error { return nil })
	feeder := known.Feeder()
	feed := func(i int) error {
		_, _, err := feeder.Frame(frames[i%n], wire.Now())
		return err
	}
	for i := range n {
		if err := feed(i); err != nil {
			return err
		}
	}
	through := func(checks receive.Checks, feeders int) func(time.Duration) (float64, error) {
		return func(d time.Duration) (float64, error) { return received(ctx, frames, checks, feeders, d) }
	}
	for _, f := range []struct {
		name, unit string
		d          time.Duration
		rate       func(d time.Duration) (float64, error)
	}{
		{ReceiveScanned, "frames/s", c.effort.coding, func(d time.Duration) (float64, error) {
			return repeat(d, func(i int) error {
				if !receive.Scan(frames[i%n], &m) {
					return errors.New("a frame of the corpus was not scanned")
				}
				return nil
			})
		}},
		{ReceiveKnown, "frames/s", c.effort.coding, func(d time.Duration) (float64, error) { return repeat(d, feed) }},
		{overFeeders(ReceiveDispatched, 1), "events/s", c.effort.coding, through(receive.Raw, 1)},
		{overFeeders(ReceiveDispatched, 4), "events/s", c.effort.coding, through(receive.Raw, 4)},
		{ReceiveInline, "events/s", c.effort.checks, through(receive.Inline, 1)},
		{ReceiveParallel, "events/s", c.effort.checks, through(receive.Parallel, 1)},
	} {
		rate, err := c.best(ctx, f.name, f.d, f.rate)
		if err != nil {
			return errors.Join(err, known.Close())
		}
		c.add(f.name, rate, f.unit)
	}
	return known.Close()
}

// received returns how many events a second get from feeders through a pipeline to a consumer that
// does nothing.
func received(ctx context.Context, frames [][]byte, checks receive.Checks, feeders int, d time.Duration) (float64, error) {
	start := wire.Now()
	for done := int64(0); ; {
		p := receive.New(ctx, receive.Options{Checks: checks, Remember: 2 * len(frames)}, func(*receive.Batch) error { return nil })
		errs := make([]error, feeders)
		var all sync.WaitGroup
		for w := range feeders {
			f := p.Feeder()
			all.Go(func() {
				// By the clock now and then, since a whole sample of signatures would take too
				// long; but something passes however late it is.
				for i := w; i < len(frames) && errs[w] == nil && (i == w || i/feeders%64 > 0 || wire.Now()-start < d); i += feeders {
					_, _, errs[w] = f.Frame(frames[i], wire.Now())
				}
			})
		}
		all.Wait()
		if err := errors.Join(append(errs, p.Close())...); err != nil {
			return 0, err
		}
		s := p.Stats()
		if s.Refused()+s.WithoutID > 0 {
			return 0, errors.New("an event of the corpus does not verify")
		}
		done += s.Delivered
		if took := wire.Now() - start; took >= d {
			return float64(done) / took.Seconds(), nil
		}
	}
}
