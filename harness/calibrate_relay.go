package harness

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/harness/machine"
	"relaybench/harness/measure"
	"relaybench/harness/wire"
)

// echo measures the shortest time in which anything can be asked and answered here: a REQ that the null relay answers with EOSE at once, one frame
// there and one back between two processes.
func (c *Calibrator) echo(ctx context.Context, url string) error {
	asker, err := NewAsker(ctx, url, c.Options.Stall)
	if err != nil {
		return err
	}
	defer asker.Close()
	request := (&corpus.Filter{Limit: corpus.Int(0)}).AppendJSON(nil)
	h := measure.NewHistogram()
	var r Reply
	for i := range c.effort.echoes + c.effort.echoes/10 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := asker.Ask(request, &r); err != nil {
			return err
		}
		if i >= c.effort.echoes/10 { // the first ones warm up
			h.Record(r.EOSE)
		}
	}
	c.latency(EchoMedian, EchoTail, h)
	return nil
}

// timedFeed hands out the corpus again and again until a moment.
type timedFeed struct {
	corpus *corpus.Corpus
	until  time.Duration
	taken  atomic.Int64
}

func (f *timedFeed) next(bool) (outgoing, bool) {
	if wire.Now() >= f.until {
		return outgoing{}, false
	}
	i := int((f.taken.Add(1) - 1) % int64(f.corpus.Len()))
	return outgoing{&f.corpus.Entry(i).ID, f.corpus.Raw(i), -1}, true
}

// publish publishes to the null relay for a while.
func (c *Calibrator) publish(ctx context.Context, url string, connections int, d time.Duration) (*Published, error) {
	p := Publisher{URL: url, Corpus: c.Corpus, Conns: connections, Window: c.Options.Window, Stall: c.Options.Stall}
	// Handshakes come before the first event.
	done, failed, err := p.publish(ctx, &timedFeed{corpus: c.Corpus, until: wire.Now() + d}, 0)
	return done, errors.Join(append(failed, err)...)
}

// publishing measures how fast events can be published over so many connections, and what one costs the harness.
func (c *Calibrator) publishing(ctx context.Context, url string, connections int) error {
	var cost float64 // µs, of the best round
	var most float64
	rate, err := c.best(func() (float64, error) {
		cpu := machine.OwnCPU()
		done, err := c.publish(ctx, url, connections, c.effort.load)
		if err != nil {
			return 0, err
		}
		answered := float64(done.Accepted + done.Duplicates + done.Refused)
		if answered == 0 {
			return 0, errors.New("the null relay answered nothing")
		}
		rate := answered / done.Seconds()
		if rate > most {
			most, cost = rate, float64((machine.OwnCPU()-cpu).Nanoseconds())/1000/answered
		}
		return rate, nil
	})
	if err != nil {
		return err
	}
	c.add(OverConnections(CeilingPublish, connections), rate, "events/s")
	c.add(OverConnections(CostPublish, connections), cost, "µs")
	return nil
}

// receive returns EVENT frames per second over so many connections.
func (c *Calibrator) receive(ctx context.Context, url string, connections int) (float64, error) {
	var events atomic.Int64
	errs := make(chan error, connections)
	askers := make([]*Asker, connections)
	for k := range askers {
		asker, err := NewAsker(ctx, url, c.Options.Stall)
		if err != nil {
			return 0, err
		}
		defer asker.Close()
		askers[k] = asker
	}
	request := (&corpus.Filter{Limit: corpus.Int(500)}).AppendJSON(nil)
	start := wire.Now()
	for _, asker := range askers {
		go func() {
			var r Reply
			for wire.Now()-start < c.effort.load && ctx.Err() == nil {
				if err := asker.Ask(request, &r); err != nil {
					errs <- err
					return
				}
				events.Add(int64(len(r.IDs)))
			}
			errs <- nil
		}()
	}
	var all []error
	for range connections {
		all = append(all, <-errs)
	}
	return float64(events.Load()) / (wire.Now() - start).Seconds(), errors.Join(all...)
}

// late measures how late a timer of 1 ms fires while harness and null relay keep all processors busy: how far a schedule can be kept, and what
// every latency under load may owe to the scheduler.
func (c *Calibrator) late(ctx context.Context, url string, connections int) error {
	h := measure.NewHistogram()
	running, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for running.Err() == nil {
			due := wire.Now() + time.Millisecond
			time.Sleep(time.Millisecond)
			h.Record(wire.Now() - due)
		}
	}()
	_, err := c.publish(ctx, url, connections, c.effort.late)
	stop()
	<-watched
	if err != nil {
		return err
	}
	c.latency(LateMedian, LateTail, h)
	return nil
}
