// Package receive is the path from sockets to a consumer of a client that reads the same kind of
// events from one or several relays:
//
//	frames → id scan → known? → queue → full parse → id and signature, on all cores, order kept → known? → consumer, in batches
//
// Readers never wait for signatures, as long as memory allows; what several relays send alike is
// parsed and verified once; and the consumer gets each event once, from one goroutine, in the order
// in which it arrived on its connection.
//
// A forged event that carries the id of a real one cannot keep the real one out: where events are
// verified, only ids of verified ones are remembered, and one that is still being verified hides
// another only if both are the same to the byte. Where they are not (Unchecked, Raw), the first
// event with an id wins, whatever it is: ask so only those whom you believe.
package receive

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
	"relaybench/results"
)

// ErrClosed: the pipeline was closed before.
var ErrClosed = errors.New("the receive pipeline is closed")

// Checks says what is done with an event before it is handed on, and where.
type Checks uint8

const (
	// Parallel parses and verifies on all cores, ahead of the consumer.
	Parallel Checks = iota
	// Inline parses and verifies one event after another in the consumer's goroutine, as simple
	// clients do, and hands each on by itself.
	Inline
	// Unchecked parses on all cores and believes ids and signatures.
	Unchecked
	// Raw parses nothing but the form of the frame.
	Raw
)

// String returns the name in lower case.
func (c Checks) String() string {
	return [...]string{"parallel", "inline", "unchecked", "raw"}[min(c, Raw)]
}

// Options shape a pipeline. The zero value verifies everything on all cores.
type Options struct {
	Checks  Checks
	Workers int // goroutines that parse and verify, in Parallel and Unchecked; 0: as many as cores
	// Remember is how many ids at least are known as duplicates, 0 for 131,072. At most twice as
	// many are kept, at about 100 bytes each. An event that comes again after more than that many
	// others is handed on again.
	Remember int
	// Queue and QueueEvents are how many bytes and events may pend for each feeder before Frame
	// waits; 0 for 1 MiB and 1,024. One event of any size always has room.
	Queue, QueueEvents int
}

// Consumer takes a batch. It is called by one goroutine; an error ends the pipeline and comes back
// from Close and from every Frame.
type Consumer func(*Batch) error

// Pipeline carries events from feeders to a consumer. Its memory is bounded: what may pend for each
// feeder, the ids, and for each worker the buffers of eight chunks, of which none is larger than
// what may pend.
type Pipeline struct {
	options Options
	consume Consumer
	seen    *Seen
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	feeders []*Feeder

	fed     chan struct{} // a feeder has something
	closing chan struct{}
	once    sync.Once
	done    sync.WaitGroup
	spare   sync.Pool // of *buffer

	checking atomic.Int64 // ns spent parsing and verifying, over all goroutines

	// Of the goroutine that consumes.
	out   Batch
	stats sync.Mutex
	busy  time.Duration
	delay *results.Histogram
}

// New starts a pipeline, which lives until Close or until ctx ends.
func New(ctx context.Context, o Options, consume Consumer) *Pipeline {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Remember <= 0 {
		o.Remember = 1 << 17
	}
	if o.Queue <= 0 {
		o.Queue = 1 << 20
	}
	if o.QueueEvents <= 0 {
		o.QueueEvents = 1024
	}
	p := &Pipeline{options: o, consume: consume, seen: NewSeen(o.Remember), delay: results.NewHistogram(),
		fed: make(chan struct{}, 1), closing: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	switch o.Checks {
	case Parallel, Unchecked:
		v := newVerifier(p)
		p.done.Go(func() { p.sweep(v.submit); v.end() })
		p.done.Go(v.collect)
	case Inline:
		p.done.Go(func() { p.sweep(p.inline) })
	default:
		p.done.Go(func() { p.sweep(p.direct) })
	}
	return p
}

func (p *Pipeline) verifies() bool { return p.options.Checks <= Inline }

// ended returns why the pipeline takes no more, nil while it does.
func (p *Pipeline) ended() error {
	if p.ctx.Err() == nil {
		return nil
	}
	return context.Cause(p.ctx)
}

// Feeder adds a connection.
func (p *Pipeline) Feeder() *Feeder {
	f := &Feeder{p: p, room: make(chan struct{}, 1), consumed: make(chan struct{}, 1)}
	f.pending = p.buffer(f)
	p.mu.Lock()
	defer p.mu.Unlock()
	f.Number = len(p.feeders)
	p.feeders = append(p.feeders, f)
	return f
}

// Close waits until the consumer is done with everything that was fed, and returns why the pipeline
// ended before, if it did. Nobody may feed meanwhile.
func (p *Pipeline) Close() error {
	p.once.Do(func() { close(p.closing) })
	p.done.Wait()
	err := p.ended()
	p.cancel(ErrClosed)
	if err == ErrClosed {
		return nil
	}
	return err
}

// Stats are the figures of a pipeline so far.
type Stats struct {
	Counts // of all feeders
	// Busy is how long the consumer worked.
	Busy time.Duration
	// Checking is how long events were parsed and verified, summed over goroutines. In Inline that
	// is time of the consumer's goroutine, too.
	Checking time.Duration
	// Delay is how long after its arrival each event in Batch.Events was handed over.
	Delay *results.Histogram
}

// Stats may be called at any time.
func (p *Pipeline) Stats() Stats {
	p.mu.Lock()
	feeders := p.feeders
	p.mu.Unlock()
	s := Stats{Delay: results.NewHistogram(), Checking: time.Duration(p.checking.Load())}
	for _, f := range feeders {
		s.Counts.add(f.Counts())
	}
	p.stats.Lock()
	defer p.stats.Unlock()
	s.Busy = p.busy
	s.Delay.Merge(p.delay)
	return s
}

// sweep hands what feeders have to each, until the pipeline is closed and nothing is left.
func (p *Pipeline) sweep(each func(*buffer) error) {
	for closing := false; ; {
		p.mu.Lock()
		feeders := p.feeders
		p.mu.Unlock()
		found := false
		for _, f := range feeders {
			b := f.take()
			if b == nil {
				continue
			}
			found = true
			if err := each(b); err != nil {
				p.cancel(err)
			}
			if p.ctx.Err() != nil {
				return
			}
		}
		if found {
			continue
		}
		if closing {
			return
		}
		select {
		case <-p.fed:
		case <-p.closing:
			closing = true
		case <-p.ctx.Done():
			return
		}
	}
}

// direct hands a buffer on as it is.
func (p *Pipeline) direct(b *buffer) error {
	if err := p.deliver(b.feeder, b.events); err != nil {
		return err
	}
	p.release(b)
	return nil
}

// inline checks and hands on one event after another.
func (p *Pipeline) inline(b *buffer) error {
	for i := range b.events {
		start := wire.Now()
		b.events[i].check(true)
		p.checking.Add(int64(wire.Now() - start))
		if err := p.deliver(b.feeder, b.events[i:i+1]); err != nil {
			return err
		}
		if p.ctx.Err() != nil {
			return nil
		}
	}
	p.release(b)
	return nil
}

// deliver gives events of one feeder, which have been checked, to the consumer.
func (p *Pipeline) deliver(f *Feeder, events []Event) error {
	count := len(events)
	p.out.Refused = p.out.Refused[:0]
	kept := 0
	for i := range events {
		e := &events[i]
		if p.verifies() && !p.seen.settle(e.ID, e.owner, e.Err == nil) && e.Err == nil {
			f.late.Add(1)
			continue
		}
		if e.Err != nil {
			f.refused(e.Err)
			p.out.Refused = append(p.out.Refused, *e)
			continue
		}
		if kept < i {
			events[kept] = *e
		}
		kept++
	}
	p.out.Events = events[:kept]
	f.delivered.Add(int64(kept))
	var err error
	if kept+len(p.out.Refused) > 0 {
		p.out.At = wire.Now()
		p.stats.Lock()
		for i := range p.out.Events {
			p.delay.Record(p.out.At - p.out.Events[i].Arrived)
		}
		p.stats.Unlock()
		err = p.consume(&p.out)
		took := wire.Now() - p.out.At
		p.stats.Lock()
		p.busy += took
		p.stats.Unlock()
	}
	clear(p.out.Refused)
	f.settled(count)
	return err
}

func (f *Feeder) refused(err error) {
	switch {
	case errors.Is(err, ErrMalformed):
		f.malformed.Add(1)
	case errors.Is(err, corpus.ErrBadID):
		f.badID.Add(1)
	default:
		f.badSignature.Add(1)
	}
}

// keepText is the largest buffer that is used again.
const keepText = 4 << 20

func (p *Pipeline) buffer(f *Feeder) *buffer {
	b, _ := p.spare.Get().(*buffer)
	if b == nil {
		b = new(buffer)
	}
	b.feeder = f
	return b
}

// release gives back a buffer with which the consumer is done.
func (p *Pipeline) release(b *buffer) {
	if cap(b.text) > keepText {
		return
	}
	clear(b.events) // what lies beyond has been cleared before
	b.feeder, b.text, b.events = nil, b.text[:0], b.events[:0]
	p.spare.Put(b)
}
