package receive

import (
	"sync"
	"time"

	"relaybench/corpus"
)

// Counts are what came through one feeder, or all. Those of checks lag behind.
type Counts struct {
	Events       int64
	Duplicates   int64 // of them: known before, whenever that was noticed
	Delivered    int64 // handed to the consumer in Batch.Events
	Malformed    int64 // handed over in Batch.Refused, by reason
	BadID        int64
	BadSignature int64
}

// Refused is how many events failed a check.
func (c *Counts) Refused() int64 { return c.Malformed + c.BadID + c.BadSignature }

func (c *Counts) add(o *Counts) {
	c.Events += o.Events
	c.Duplicates += o.Duplicates
	c.Delivered += o.Delivered
	c.Malformed += o.Malformed
	c.BadID += o.BadID
	c.BadSignature += o.BadSignature
}

// Feeder is one connection's way into a Pipeline. One goroutine at a time may call Event.
type Feeder struct {
	// Number is the feeder's index, from 0, in the order of Pipeline.Feeder's calls.
	Number int

	p        *Pipeline
	room     chan struct{} // the pipeline took what was pending
	consumed chan struct{} // waiting fell to zero

	mu      sync.Mutex
	pending *buffer
	waiting int // events queued, neither consumed nor dropped yet
	counts  Counts
}

// buffer is what came together while the pipeline was busy: events and their bytes.
type buffer struct {
	feeder *Feeder
	text   []byte
	events []Event
}

// Event takes an event object under the id that wire.Parse found in it, and when it arrived on
// wire.Now's scale. It keeps neither's memory, and reports whether the event is new: one of which an
// event with this id is known, or the very same bytes are being verified, is not.
//
// It waits while Options.Queue bytes of this feeder are pending. An error is why the pipeline
// ended: the context's cause, the consumer's error or ErrClosed.
func (f *Feeder) Event(id corpus.ID, raw []byte, at time.Duration) (isNew bool, err error) {
	p := f.p
	if err := p.ended(); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.Events++
	key := Key(&id)
	if p.options.Checks == Unchecked && !p.known.Add(key) || p.options.Checks != Unchecked && p.known.Has(key) {
		f.counts.Duplicates++
		return false, nil
	}
	for b := f.pending; len(b.events) > 0 && (len(b.events) >= p.options.QueueEvents || len(b.text)+len(raw) > p.options.Queue); b = f.pending {
		f.mu.Unlock()
		select {
		case <-f.room:
		case <-p.ctx.Done():
			err = p.ended()
		}
		if f.mu.Lock(); err != nil {
			return false, err
		}
	}
	b := f.pending
	start := len(b.text)
	b.text = append(b.text, raw...)
	e := Event{ID: id, Raw: b.text[start:len(b.text):len(b.text)], Arrived: at, Feeder: f.Number}
	if p.options.Checks != Unchecked && p.claim(&e) {
		b.text = b.text[:start]
		f.counts.Duplicates++
		return false, nil
	}
	b.events = append(b.events, e)
	f.waiting++
	if len(b.events) == 1 {
		signal(p.fed)
	}
	return true, nil
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

// settled says that the consumer, or nobody, has had n more events, and what they came to.
func (f *Feeder) settled(n int, came *Counts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.add(came)
	if f.waiting -= n; f.waiting == 0 {
		signal(f.consumed)
	}
}

// Pending is how many events were taken and are not consumed yet.
func (f *Feeder) Pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting
}

// Wait returns once the consumer is done with everything that was fed before: after a page, say, to
// note how far it went. Its errors are Event's.
func (f *Feeder) Wait() error {
	for f.Pending() > 0 {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

// signal wakes whoever waits on c, now or next.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
