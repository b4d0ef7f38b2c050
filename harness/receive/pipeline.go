// Package receive is the path from connections to a consumer of a client that reads the same kind
// of events from one or several relays:
//
//	events → known? → queue → full parse → id and signature → known? → consumer
//
// The checks run on all cores and keep the order; the consumer gets batches.
//
// Readers never wait for signatures, as long as memory allows; what several relays send alike is
// parsed and verified once; and the consumer gets each event once, from one goroutine, in the order
// in which it arrived on its connection.
//
// A forged event that carries the id of a real one cannot keep the real one out: where events are
// verified, only ids of verified ones are known, and one that is still being verified hides another
// only if both are the same to the byte. Unchecked, the first event with an id wins, whatever it
// is: ask so only those whom you believe.
package receive

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/relays/wire"
	"relaybench/results"
)

var (
	// ErrClosed: the pipeline was closed before.
	ErrClosed = errors.New("the receive pipeline is closed")
	// ErrMalformed: what stands in an event's place is none.
	ErrMalformed = errors.New("malformed event")
)

// Event is one event as it was received.
type Event struct {
	// ID is the event's id: verified, but in Unchecked.
	ID corpus.ID
	// Raw is the event object as the relay sent it. It is valid until the consumer returns.
	Raw []byte
	// Parsed is the event, empty in Unchecked. It may be kept.
	Parsed corpus.Event
	// Arrived is when the frame's last bytes were taken from the socket, on wire.Now's scale.
	Arrived time.Duration
	// Feeder is the number of the feeder it came through.
	Feeder int
	// Err is nil, or for events in Batch.Refused ErrMalformed, corpus.ErrBadID or ErrBadSignature.
	Err error

	owner bool // the first in flight with its id
}

// Batch is what a consumer is handed: events of one feeder, in the order in which they arrived. Its
// slices and the events' Raw are valid until the consumer returns.
type Batch struct {
	// Events passed all checks asked for, each for the first time.
	Events []Event
	// Refused failed a check; each says why in Err.
	Refused []Event
}

// Checks says what is done with an event before it is handed on, and where.
type Checks uint8

const (
	// Parallel parses and verifies on all cores, ahead of the consumer.
	Parallel Checks = iota
	// Inline parses and verifies one event after another in the consumer's goroutine, as simple
	// clients do, and hands each on by itself.
	Inline
	// Unchecked parses nothing, and believes ids.
	Unchecked
)

// String returns the name in lower case.
func (c Checks) String() string {
	return [...]string{"parallel", "inline", "unchecked"}[c]
}

// Options shape a pipeline. The zero value verifies everything on all cores.
type Options struct {
	Checks Checks
	// Known are the Keys of events that are not wanted again, to which those are added that passed
	// the checks; nil: none to begin with. Several pipelines may share it.
	Known *prepare.Seen
	// Queue and QueueEvents are how many bytes and events may pend for each feeder before Event
	// waits; 0 for 1 MiB and 1,024. One event of any size always has room.
	Queue, QueueEvents int
}

// Consumer takes a batch. It is called by one goroutine; an error ends the pipeline and comes back
// from Close and from every Event.
type Consumer func(*Batch) error

// Pipeline carries events from feeders to a consumer. Its memory is bounded but for what is known:
// by what may pend for each feeder, and the buffers of eight chunks, of which none is larger than
// that.
type Pipeline struct {
	options Options
	consume Consumer
	known   *prepare.Seen
	ctx     context.Context
	cancel  context.CancelCauseFunc

	claiming sync.Mutex
	claims   map[corpus.ID][]byte // events that are being verified, by the id that they claim

	mu      sync.Mutex
	feeders []*Feeder

	fed   chan struct{} // a feeder has something
	open  context.Context
	close context.CancelFunc
	done  sync.WaitGroup
	spare sync.Pool // of *buffer

	checking atomic.Int64 // ns spent parsing and verifying, over all goroutines

	out   Batch // of the goroutine that consumes
	stats sync.Mutex
	busy  time.Duration
	delay *results.Histogram
}

// New starts a pipeline, which lives until Close or until ctx ends.
func New(ctx context.Context, o Options, consume Consumer) *Pipeline {
	o.Queue, o.QueueEvents = cmp.Or(o.Queue, 1<<20), cmp.Or(o.QueueEvents, 1024)
	p := &Pipeline{options: o, consume: consume, known: o.Known, claims: make(map[corpus.ID][]byte), delay: results.NewHistogram(),
		fed: make(chan struct{}, 1)}
	if p.known == nil {
		p.known = prepare.NewSeen()
	}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.open, p.close = context.WithCancel(context.Background())
	if o.Checks != Parallel {
		p.done.Go(func() { p.sweep(p.consumed) })
		return p
	}
	// Whoever checks waits where the consumer is eight chunks behind.
	checked := make(chan chunk, 8)
	p.done.Go(func() {
		defer close(checked)
		p.sweep(func(c chunk) error {
			select {
			case checked <- c:
			case <-p.ctx.Done():
			}
			return nil
		})
	})
	p.done.Go(func() {
		for c := range checked {
			if p.ctx.Err() != nil {
				return
			}
			if err := p.consumed(c); err != nil {
				p.cancel(err)
			}
		}
	})
	return p
}

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
	p.close()
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
		c := f.Counts()
		s.Counts.add(&c)
	}
	p.stats.Lock()
	defer p.stats.Unlock()
	s.Busy = p.busy
	s.Delay.Merge(p.delay)
	return s
}

// sweep processes what feeders have, until the pipeline is closed and nothing is left.
func (p *Pipeline) sweep(hand func(chunk) error) {
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
			if err := p.process(b, hand); err != nil {
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
		case <-p.open.Done():
			closing = true
		case <-p.ctx.Done():
			return
		}
	}
}

// consumed has the consumer deal with a chunk.
func (p *Pipeline) consumed(c chunk) error {
	if err := p.deliver(c.buffer.feeder, c.events); err != nil {
		return err
	}
	if c.last {
		p.release(c.buffer)
	}
	return nil
}

// deliver gives events of one feeder, which have been checked, to the consumer.
func (p *Pipeline) deliver(f *Feeder, events []Event) error {
	var came Counts
	p.out.Events, p.out.Refused = events[:0], p.out.Refused[:0]
	for i := range events {
		e := &events[i]
		switch isNew := p.options.Checks == Unchecked || p.settle(e); {
		case isNew:
			p.out.Events = append(p.out.Events, *e)
			came.Delivered++
			continue
		case e.Err == nil:
			came.Duplicates++
			continue
		case errors.Is(e.Err, ErrMalformed):
			came.Malformed++
		case errors.Is(e.Err, corpus.ErrBadID):
			came.BadID++
		default:
			came.BadSignature++
		}
		p.out.Refused = append(p.out.Refused, *e)
	}
	defer f.settled(len(events), &came)
	if len(p.out.Events)+len(p.out.Refused) == 0 {
		return nil
	}
	at := wire.Now()
	err := p.consume(&p.out)
	p.stats.Lock()
	p.busy += wire.Now() - at
	for i := range p.out.Events {
		p.delay.Record(at - p.out.Events[i].Arrived)
	}
	p.stats.Unlock()
	clear(p.out.Refused)
	return err
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
