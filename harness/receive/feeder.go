package receive

import (
	"sync"
	"sync/atomic"
	"time"

	"relaybench/relays/wire"
)

// Status is what became of a frame.
type Status uint8

const (
	// Other: not an EVENT. The Message says what it is; wire.Unknown is no message at all.
	Other Status = iota
	// Queued: an event that was not known before is on its way to the consumer.
	Queued
	// Duplicate: an event with this id was seen before, or the very same bytes are being verified.
	Duplicate
	// WithoutID: an EVENT message without an event, or whose event has no id or two.
	WithoutID
)

// Counts are what came through one feeder, or all. Those of checks lag behind.
type Counts struct {
	Frames, Bytes int64 // text frames and what is in them
	Events        int64 // EVENT messages
	Duplicates    int64 // of them: known before, whenever that was noticed
	Late          int64 // of the duplicates: noticed only after parsing and verifying
	WithoutID     int64 // without an id
	FullParses    int64 // EVENT messages that took a full pass to find the id
	Delivered     int64 // handed to the consumer in Batch.Events
	Malformed     int64 // handed over in Batch.Refused, by reason
	BadID         int64
	BadSignature  int64
	Waited        time.Duration // how long the reader was held up, so that memory stays bounded
}

// Refused is how many events failed a check.
func (c *Counts) Refused() int64 { return c.Malformed + c.BadID + c.BadSignature }

func (c *Counts) add(o Counts) {
	c.Frames += o.Frames
	c.Bytes += o.Bytes
	c.Events += o.Events
	c.Duplicates += o.Duplicates
	c.Late += o.Late
	c.WithoutID += o.WithoutID
	c.FullParses += o.FullParses
	c.Delivered += o.Delivered
	c.Malformed += o.Malformed
	c.BadID += o.BadID
	c.BadSignature += o.BadSignature
	c.Waited += o.Waited
}

// Feeder is one connection's way into a Pipeline, for one goroutine at a time but for Counts.
type Feeder struct {
	// Number is the feeder's index, from 0, in the order of Pipeline.Feeder's calls.
	Number int
	// Mark is copied to the events fed from now on: the subscription that they answer, say.
	Mark int

	p       *Pipeline
	message wire.Message
	scratch []byte

	mu       sync.Mutex
	pending  *buffer
	room     chan struct{} // the pipeline took what was pending
	waiting  atomic.Int64  // events queued, neither consumed nor dropped yet
	consumed chan struct{} // waiting fell to zero

	// Counted by the feeder's goroutine, and after a cache line by the one that consumes.
	frames, bytes, events, duplicates, withoutID, fullParses, waited atomic.Int64
	_                                                                [64]byte
	late, delivered, malformed, badID, badSignature                  atomic.Int64
}

// buffer is what came together while the pipeline was busy: events and their bytes.
type buffer struct {
	feeder *Feeder
	text   []byte
	events []Event
}

// Frame takes a text frame that arrived at this time on wire.Now's scale, and keeps nothing of it.
// The message is valid until the next call and as long as the frame; of an EVENT, Sub, ID and HasID
// are set as wire.Parse does, while Event is only where the event should be, and its time may be
// left out (see Scan).
//
// Frame waits while Options.Queue bytes of this feeder are pending. An error is why the pipeline
// ended: the context's cause, the consumer's error or ErrClosed.
func (f *Feeder) Frame(frame []byte, at time.Duration) (*wire.Message, Status, error) {
	if err := f.p.ended(); err != nil {
		return nil, Other, err
	}
	f.frames.Add(1)
	f.bytes.Add(int64(len(frame)))
	m := &f.message
	if !Scan(frame, m) {
		if wire.Parse(frame, m); m.Type == wire.Event {
			f.fullParses.Add(1)
		}
	}
	if m.Type != wire.Event {
		return m, Other, nil
	}
	status, err := f.event(m, frame, at)
	return m, status, err
}

// Event takes an event object without a message around it, as Frame does.
func (f *Feeder) Event(raw []byte, at time.Duration) (Status, error) {
	if err := f.p.ended(); err != nil {
		return Other, err
	}
	f.bytes.Add(int64(len(raw)))
	m := &f.message
	*m = wire.Message{Type: wire.Event, Event: raw}
	if m.ID, m.HasID = scanEvent(raw); !m.HasID {
		f.fullParses.Add(1)
		f.scratch = frameOf(f.scratch[:0], raw)
		wire.Parse(f.scratch, m)
	}
	return f.event(m, nil, at)
}

// event decides about an event whose id m tells.
func (f *Feeder) event(m *wire.Message, frame []byte, at time.Duration) (Status, error) {
	f.events.Add(1)
	if !m.HasID {
		f.withoutID.Add(1)
		return WithoutID, nil
	}
	p := f.p
	if p.options.Checks != Unchecked && p.seen.Has(m.ID) { // Unchecked has nothing to do between asking and adding
		f.duplicates.Add(1)
		return Duplicate, nil
	}
	if p.options.Checks == Raw {
		// Nobody parses it later, so that the full pass comes now: only what is well formed to its
		// end is handed on.
		if frame == nil {
			f.scratch = frameOf(f.scratch[:0], m.Event)
			frame = f.scratch
		}
		if wire.Parse(frame, m); !m.HasID {
			f.withoutID.Add(1)
			return WithoutID, nil
		}
	}
	if !p.verifies() && !p.seen.Add(m.ID) {
		f.duplicates.Add(1)
		return Duplicate, nil
	}
	return f.queue(m, at)
}

func (f *Feeder) queue(m *wire.Message, at time.Duration) (Status, error) {
	f.mu.Lock()
	for {
		b := f.pending
		if len(b.events) == 0 || len(b.events) < f.p.options.QueueEvents && len(b.text)+len(m.Event) <= f.p.options.Queue {
			break
		}
		f.mu.Unlock()
		start := wire.Now()
		select {
		case <-f.room:
		case <-f.p.ctx.Done():
			return Other, f.p.ended()
		}
		f.waited.Add(int64(wire.Now() - start))
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	b := f.pending
	start := len(b.text)
	b.text = append(b.text, m.Event...)
	raw := b.text[start:len(b.text):len(b.text)]
	owner := false
	if f.p.verifies() {
		switch f.p.seen.claim(m.ID, raw) {
		case repeated:
			b.text = b.text[:start]
			f.duplicates.Add(1)
			return Duplicate, nil
		case claimed:
			owner = true
		}
	}
	b.events = append(b.events, Event{ID: m.ID, Raw: raw, Arrived: at, Feeder: f.Number, Mark: f.Mark, owner: owner})
	f.waiting.Add(1)
	if len(b.events) == 1 {
		signal(f.p.fed)
	}
	return Queued, nil
}

// take exchanges what is pending for an empty buffer, nil where nothing is.
func (f *Feeder) take() *buffer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending.events) == 0 {
		return nil
	}
	full := f.pending
	f.pending = f.p.buffer(f)
	signal(f.room)
	return full
}

// settled says that n more events have been consumed.
func (f *Feeder) settled(n int) {
	if f.waiting.Add(-int64(n)) == 0 {
		signal(f.consumed)
	}
}

// Wait returns once the consumer is done with everything that was fed before: after a page, say, to
// note how far it went. Its errors are Frame's.
func (f *Feeder) Wait() error {
	for f.waiting.Load() > 0 {
		select {
		case <-f.consumed:
		case <-f.p.ctx.Done():
			return f.p.ended()
		}
	}
	return f.p.ended()
}

// Counts returns what came through so far.
func (f *Feeder) Counts() Counts {
	return Counts{
		Frames: f.frames.Load(), Bytes: f.bytes.Load(), Events: f.events.Load(), Duplicates: f.duplicates.Load() + f.late.Load(), Late: f.late.Load(),
		WithoutID: f.withoutID.Load(), FullParses: f.fullParses.Load(), Delivered: f.delivered.Load(), Malformed: f.malformed.Load(),
		BadID: f.badID.Load(), BadSignature: f.badSignature.Load(), Waited: time.Duration(f.waited.Load()),
	}
}

// signal wakes whoever waits on c, now or next.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
