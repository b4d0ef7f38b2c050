package receive

import (
	"sync"

	"relaybench/relays/wire"
)

// How many events one worker takes at a time: enough to make the hand-over cheap beside the work on
// them, few enough that the first event of many does not wait long for the last.
const (
	verifiedChunk = 16 // a signature takes 50 µs and more
	parsedChunk   = 128
)

// verifier checks events on several cores and hands them on in the order in which they were
// submitted. A chunk stands in two queues: work, from which whichever worker is free takes it, and
// order, from which they are handed on, each when it is done. Both are bounded, so that whoever
// submits waits once the workers or the consumer are too far behind.
type verifier struct {
	p       *Pipeline
	work    chan *chunk
	order   chan *chunk
	workers sync.WaitGroup
	spare   sync.Pool // of *chunk
}

// chunk is a part of a buffer. last is set on the one with which the buffer is used up.
type chunk struct {
	buffer *buffer
	events []Event
	last   bool
	done   chan struct{} // holds one token once all are checked
}

func newVerifier(p *Pipeline) *verifier {
	room := 8 * p.options.Workers
	v := &verifier{p: p, work: make(chan *chunk, room), order: make(chan *chunk, room)}
	for range p.options.Workers {
		v.workers.Go(v.check)
	}
	return v
}

// submit cuts a buffer into a chunk for each worker, or more where those would be too large.
func (v *verifier) submit(b *buffer) error {
	events := b.events // the buffer is somebody else's as soon as its last chunk is handed on
	size := (len(events) + v.p.options.Workers - 1) / v.p.options.Workers
	if v.p.verifies() {
		size = min(size, verifiedChunk)
	} else {
		size = min(size, parsedChunk)
	}
	for start := 0; start < len(events); start += size {
		end := min(start+size, len(events))
		c, _ := v.spare.Get().(*chunk)
		if c == nil {
			c = &chunk{done: make(chan struct{}, 1)}
		}
		c.buffer, c.events, c.last = b, events[start:end], end == len(events)
		for _, queue := range []chan *chunk{v.order, v.work} {
			select {
			case queue <- c:
			case <-v.p.ctx.Done():
				return nil
			}
		}
	}
	return nil
}

// end lets the workers and the collector finish what they have.
func (v *verifier) end() {
	close(v.work)
	close(v.order)
	v.workers.Wait()
}

// check is a worker.
func (v *verifier) check() {
	verify := v.p.verifies()
	for c := range v.work {
		start := wire.Now()
		for i := range c.events {
			if v.p.ctx.Err() != nil {
				break // nobody will look at the rest
			}
			c.events[i].check(verify)
		}
		v.p.checking.Add(int64(wire.Now() - start))
		c.done <- struct{}{}
	}
}

// collect hands chunks on in order.
func (v *verifier) collect() {
	for c := range v.order {
		select {
		case <-c.done:
		case <-v.p.ctx.Done():
		}
		if v.p.ctx.Err() != nil {
			return
		}
		if err := v.p.deliver(c.buffer.feeder, c.events); err != nil {
			v.p.cancel(err)
			return
		}
		if c.last {
			v.p.release(c.buffer)
		}
		c.buffer, c.events = nil, nil
		v.spare.Put(c)
	}
}
