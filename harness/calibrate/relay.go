package calibrate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/harness/load"
	"relaybench/relays/machine"
	"relaybench/relays/wire"
	"relaybench/results"
)

// echo measures the shortest time in which anything can be asked and answered here: a REQ that the
// null relay answers with EOSE at once, one frame there and one back between two processes.
func (c *Stage) echo(ctx context.Context, url string) error {
	querier, err := load.NewQuerier(ctx, url, c.stall())
	if err != nil {
		return err
	}
	defer querier.Close()
	request := (&corpus.Filter{Limit: corpus.Int(0)}).AppendJSON(nil)
	h := results.NewHistogram()
	var r load.Reply
	for i := range c.effort.echoes + c.effort.echoes/10 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := querier.Query(request, &r); err != nil {
			return err
		}
		if i >= c.effort.echoes/10 { // the first ones warm up
			h.Record(r.EOSE)
		}
	}
	c.latency(results.EchoMedian, results.EchoTail, h)
	return nil
}

// publish publishes to the null relay for a while.
func (c *Stage) publish(ctx context.Context, url string, connections int, d time.Duration) (*load.Published, error) {
	p := load.Publisher{URL: url, Corpus: c.Corpus, Conns: connections, Window: c.Options.Window, Pacer: load.ClosedLoop{For: max(d, 1)}, Stall: c.stall()}
	return p.Endless(ctx)
}

// publishing measures how fast events can be published over so many connections, and what one costs
// the harness.
func (c *Stage) publishing(ctx context.Context, url string, connections int) error {
	var cost float64 // µs, of the best round
	var most float64
	rate, err := c.best(ctx, results.CeilingPublish+over(connections), c.effort.load, func(d time.Duration) (float64, error) {
		cpu := machine.OwnCPU()
		done, err := c.publish(ctx, url, connections, d)
		if err != nil {
			return 0, err
		}
		answered := float64(done.Answered())
		if answered == 0 { // the time was over before a handshake was
			return 0, nil
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
	c.addOver(results.CeilingPublish, connections, rate, "events/s")
	if !c.After { // no mark rests on it
		c.addOver(results.CostPublish, connections, cost, "µs")
	}
	return nil
}

// receive returns EVENT frames per second over so many connections, asked for during d.
func (c *Stage) receive(ctx context.Context, url string, connections int, d time.Duration) (float64, error) {
	var events atomic.Int64
	request := (&corpus.Filter{Limit: corpus.Int(500)}).AppendJSON(nil)
	took, err := load.Together(ctx, url, connections, c.stall(), func(_ int, querier *load.Querier, start time.Duration) error {
		var r load.Reply
		for asked := false; !asked || wire.Now()-start < d && ctx.Err() == nil; asked = true { // once, however late it is
			if err := querier.Query(request, &r); err != nil {
				return err
			}
			events.Add(int64(len(r.IDs)))
		}
		return nil
	})
	return float64(events.Load()) / took.Seconds(), err
}

// late measures how late a timer of 1 ms fires while harness and null relay keep all processors
// busy: how far a schedule can be kept, and what every latency under load may owe to the scheduler.
func (c *Stage) late(ctx context.Context, url string, connections int) error {
	h := results.NewHistogram()
	running, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for { // once at least
			due := wire.Now() + time.Millisecond
			time.Sleep(time.Millisecond)
			if h.Record(wire.Now() - due); running.Err() != nil {
				return
			}
		}
	})
	_, err := c.publish(ctx, url, connections, c.effort.late)
	stop()
	watching.Wait()
	if err != nil {
		return err
	}
	c.latency(results.LateMedian, results.LateTail, h)
	return nil
}
