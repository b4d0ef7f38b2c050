// Package load puts relays under load: it publishes at a pace, asks, and carries events from one
// relay to another. It accounts for moving many events: what was asked, what came, what it adds up
// to as the state of a relay, what it cost, and whether it is all. Whatever moves events in bulk
// records the same figures in the same way, so that a run that fell short never passes for one that
// did not.
package load

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Publisher sends events over Conns connections, at the pace of its Pacer. In a closed loop each
// has at most Window events unacknowledged. On a schedule a relay that falls behind is sent the
// next event all the same, and latencies count from when an event was to be sent, so that a stall
// is felt by every event that it delays.
type Publisher struct {
	URL      string
	Corpus   *corpus.Corpus
	Conns    int
	Window   int           // of a closed loop; 0 on a schedule
	Pacer    Pacer         // nil is ClosedLoop{}
	Stall    time.Duration // the publishing is given up after this time without any answer, while one is due
	Ledger   *Ledger
	Progress func(done, total int) // may be nil; called from several goroutines
}

// Published is what came of publishing. Times are those of wire.Now.
type Published struct {
	Accepted, Duplicates, Refused, Unanswered int64

	Unsent     int64                // of what Publish was given
	Reasons    map[string]*Refusals // by the machine-readable prefix (NIP-01), "other" where there is none
	First      time.Duration        // the first send
	Last       time.Duration        // the last OK
	Latency    *results.Histogram   // from when it was to be sent to the OK, all answers
	Late       *results.Histogram   // from when it was to be sent to the sending: the harness's own; empty for a closed loop
	Timeline   []float64            // accepted events in each second since First
	Lost       int                  // connections that broke, each dialled anew
	Loss       error                // why the last of them broke
	Unexpected int64                // OKs for events that were not in flight
	Garbage    wire.Garbage
}

// Refusals counts OK false answers of one kind, and keeps one text as an example.
type Refusals struct {
	Count   int64
	Example string
}

// NewPublished is an empty result.
func NewPublished() *Published {
	return &Published{Latency: results.NewHistogram(), Late: results.NewHistogram(), Reasons: map[string]*Refusals{}}
}

// Add takes in what came of more, over another connection or after this.
func (p *Published) Add(o *Published) {
	p.Accepted += o.Accepted
	p.Duplicates += o.Duplicates
	p.Refused += o.Refused
	p.Unanswered += o.Unanswered
	p.Unexpected += o.Unexpected
	p.Garbage.Add(o.Garbage)
	p.Lost += o.Lost
	p.Loss = cmp.Or(o.Loss, p.Loss)
	p.Last = max(p.Last, o.Last)
	p.Latency.Merge(o.Latency)
	p.Late.Merge(o.Late)
	for reason, r := range o.Reasons {
		if was := p.Reasons[reason]; was != nil {
			was.Count += r.Count
		} else {
			p.Reasons[reason] = r
		}
	}
	for second, n := range o.Timeline {
		if second == len(p.Timeline) {
			p.Timeline = append(p.Timeline, 0)
		}
		p.Timeline[second] += n
	}
}

// Answered is how many events had an answer.
func (p *Published) Answered() int64 { return p.Accepted + p.Duplicates + p.Refused }

// Seconds is the time from the first send to the last OK.
func (p *Published) Seconds() float64 { return max(0, (p.Last - p.First).Seconds()) }

// maxBarren is how many connections in a row may break without one answer before a publisher gives
// up.
const maxBarren = 3

// Publish sends the events with these corpus indexes, in this order over all connections together,
// and returns when each has its answer or cannot get one. Handshakes are outside the clock. The
// error says why some events could not be sent.
func (p *Publisher) Publish(ctx context.Context, indexes []int) (*Published, error) {
	total, failed, err := p.publish(ctx, p.feedOf(indexes), len(indexes))
	if err != nil {
		return nil, err
	}
	total.Unsent = int64(len(indexes)) - total.Answered() - total.Unanswered
	if len(failed) == 0 {
		return total, nil
	}
	return total, fmt.Errorf("%d of %d connections gave up, %d events were never answered and %d not sent: %w", len(failed), p.Conns, total.Unanswered, total.Unsent, failed[0])
}

// Endless sends the corpus again and again until the Pacer stops it. No Ledger takes note of it.
func (p *Publisher) Endless(ctx context.Context) (*Published, error) {
	var taken atomic.Int64
	total, failed, err := p.publish(ctx, func(bool) (outgoing, bool) {
		e := outgoingOf(p.Corpus, int((taken.Add(1)-1)%int64(p.Corpus.Len())))
		e.index = -1
		return e, true
	}, 0)
	return total, errors.Join(append(failed, err)...)
}

// outgoing is one event to publish. index is its place in the corpus, negative for one of which no
// note is taken.
type outgoing struct {
	id    *corpus.ID
	raw   []byte
	index int
}

func outgoingOf(c *corpus.Corpus, i int) outgoing { return outgoing{&c.Entry(i).ID, c.Raw(i), i} }

// feed hands out what is to be published, to all connections together: the next event, whose memory
// it leaves to the caller until the call after. ok is false where there is none: none any more if
// wait is set, for which it may block, else none at the moment.
type feed func(wait bool) (e outgoing, ok bool)

func (p *Publisher) feedOf(indexes []int) feed {
	var taken atomic.Int64
	return func(bool) (e outgoing, ok bool) {
		n := int(taken.Add(1)) - 1
		if n >= len(indexes) {
			return e, false
		}
		return outgoingOf(p.Corpus, indexes[n]), true
	}
}

// shared is what all connections of a Publish have in common.
type shared struct {
	from              feed
	pacer             Pacer
	count             int // how many events there will be, for Progress
	start             time.Duration
	taken, sent, done atomic.Int64 // done are answered, or lost with a connection
}

// publish sends what the feed hands out, about count events. failed holds why connections gave up;
// err says that a connection could not be made, and comes without a result.
func (p *Publisher) publish(ctx context.Context, from feed, count int) (total *Published, failed []error, err error) {
	s := &shared{from: from, pacer: cmp.Or[Pacer](p.Pacer, ClosedLoop{}), count: count}
	workers := make([]*publishing, p.Conns)
	for k := range workers {
		conn, err := p.dial(ctx)
		if err != nil {
			for _, w := range workers[:k] {
				w.conn.Abort()
			}
			return nil, nil, err
		}
		workers[k] = &publishing{Publisher: p, Published: NewPublished(), shared: s, conn: conn, flight: newInflight(p.Window)}
	}
	s.start = wire.Now()
	if p.Window == 0 {
		s.start += leadTime
	}
	errs := make([]error, p.Conns)
	running, finished := context.WithCancelCause(ctx)
	var watching, all sync.WaitGroup
	watching.Go(func() { p.watch(running, s, func() { finished(stalled(workers)) }) })
	for k, w := range workers {
		all.Go(func() { errs[k] = w.run(running) })
	}
	all.Wait()
	finished(nil)
	watching.Wait()

	total = NewPublished()
	total.First, total.Last = s.start, s.start
	for _, w := range workers {
		total.Add(w.Published)
	}
	return total, slices.DeleteFunc(errs, func(err error) bool { return err == nil }), nil
}

// watch ends the publishing when no connection has had an answer for Stall. A relay that serves its
// connections unevenly makes progress all the same, so that none of them is given up for itself;
// while nothing is sent, no answer is due.
func (p *Publisher) watch(running context.Context, s *shared, end func()) {
	tick := time.NewTicker(max(p.Stall/20, time.Millisecond))
	defer tick.Stop()
	seen, since := int64(0), wire.Now()
	for {
		select {
		case <-running.Done():
			return
		case <-tick.C:
		}
		if now := s.done.Load(); now != seen || now >= s.sent.Load() {
			seen, since = now, wire.Now()
		} else if wire.Now()-since > p.Stall {
			end()
			return
		}
	}
}

// stalled tells what came on the connections in place of the answers.
func stalled(workers []*publishing) error {
	all := &wire.StallError{}
	for _, w := range workers {
		w.mu.Lock()
		all.Add(w.conn.Stalled())
		w.mu.Unlock()
	}
	return all
}

func (p *Publisher) dial(ctx context.Context) (*wire.Conn, error) {
	return wire.Dial(ctx, p.URL, wire.Options{})
}

// publishing is the state of one connection of a Publisher.
type publishing struct {
	*Publisher
	*Published
	*shared
	mu   sync.Mutex // over conn, which watch looks at
	conn *wire.Conn

	flying sync.Mutex // over flight and more
	flight *inflight
	more   bool // of a schedule: ahead is an event that was taken and not sent
	ahead  due
}

func (w *publishing) run(ctx context.Context) error {
	for barren := 0; ; {
		undo := context.AfterFunc(ctx, w.conn.Abort)
		answered := w.Answered()
		drive := w.loop
		if w.Window == 0 {
			drive = w.schedule
		}
		err := drive(ctx)
		undo()
		w.Garbage.Add(w.conn.TakeGarbage())
		w.flight.drain(func(s sent) {
			w.Unanswered++
			w.done.Add(1)
			w.note(s, Unanswered)
		})
		if err == nil {
			w.conn.Close() // a relay that leaves without the closing handshake has answered everything nevertheless
			return nil
		}
		w.conn.Abort()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.Lost++
		w.Loss = err
		if barren++; w.Answered() > answered {
			barren = 0
		}
		if barren == maxBarren {
			return err
		}
		conn, err := w.dial(ctx)
		if err != nil {
			return fmt.Errorf("%w, and dialling again failed: %w", w.Loss, err)
		}
		w.mu.Lock()
		w.conn = conn
		w.mu.Unlock()
	}
}

// loop sends and reads in turn until every event has its answer. Sends are buffered and leave when
// a read would block, so that a burst of answers is followed by one burst of events.
func (w *publishing) loop(context.Context) error {
	var m wire.Message
	for {
		was := w.flight.len
		for w.flight.len < w.Window {
			e, ok := w.take(w.flight.len == 0)
			if !ok {
				break
			}
			w.flight.add(e.id, e.index, e.at)
			if err := w.conn.SendEvent(e.raw); err != nil {
				return err
			}
		}
		if w.flight.len == 0 {
			return nil
		}
		w.sent.Add(int64(w.flight.len - was))
		_, at, err := w.conn.ReadMessage(&m)
		if err != nil {
			return err
		}
		if m.Type == wire.OK {
			w.answer(&m, at)
		}
	}
}

func (w *publishing) answer(m *wire.Message, at time.Duration) {
	id := corpus.ID(m.ID)
	w.flying.Lock()
	s, ok := w.flight.take(&id)
	w.flying.Unlock()
	if !ok {
		w.Unexpected++
		return
	}
	w.Latency.Record(at - s.at)
	w.Last = at
	switch {
	case !m.Accepted:
		w.Refused++
		w.note(s, Refused)
		w.refusal(m)
	case bytes.HasPrefix(m.Reason, duplicate):
		w.Duplicates++
		w.note(s, Duplicate)
	default:
		w.Accepted++
		w.note(s, Accepted)
		second := int((at - w.start) / time.Second)
		for len(w.Timeline) <= second {
			w.Timeline = append(w.Timeline, 0)
		}
		w.Timeline[second]++
	}
	if done := w.done.Add(1); w.Progress != nil && done%256 == 0 {
		w.Progress(int(done), w.count)
	}
}

func (w *publishing) note(s sent, a Answer) {
	if s.index >= 0 {
		w.Ledger.Set(int(s.index), a)
	}
}

func (w *publishing) refusal(m *wire.Message) {
	prefix := wire.ReasonPrefix(m.Reason)
	if len(w.Reasons) >= maxReasons && w.Reasons[prefix] == nil {
		prefix = "other"
	}
	r := w.Reasons[prefix]
	if r == nil {
		r = &Refusals{Example: m.ReasonText()}
		w.Reasons[prefix] = r
	}
	r.Count++
}

var duplicate = []byte("duplicate:") // NIP-01

// maxReasons bounds how many kinds of refusal are told apart: relays write them.
const maxReasons = 12
