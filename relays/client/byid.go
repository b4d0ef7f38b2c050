package client

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// ByID asks for events by their ids, in batches, with several REQs in flight on each of several
// connections.
//
// Ids that an answer left out are asked for again, since a relay may cap its answers, until Retries
// answers brought none of them; so are those of a REQ that ended in CLOSED or with its connection,
// half as many at a time. A relay that closes REQs while others are open is asked for fewer at
// once.
type ByID struct {
	Options
	Conns    int // connections: 1
	Batch    int // ids in one REQ
	InFlight int // REQs at a time on each connection, at most where Adaptive
	Adaptive bool
	Retries  int
	// Refusals is how many REQs in a row may end in CLOSED, alone on the connection and without an
	// event, until it is given up; 0: any number, after growing pauses.
	Refusals int
	Take     Take
	// Left is told of the ids that an answer was without, and when it ended. It may be nil; over
	// several connections it is called from several goroutines.
	Left func(ids []corpus.ID, at time.Duration)
}

// Fetched is what fetching by id came to.
type Fetched struct {
	*Stats
	Asked   int // ids
	Retried int // ids asked for again, each as often as that happened
	// LeftOut counts the ids that came only when they were asked for again, though the answer
	// without them held fewer events than another: no cap of the relay's explains that.
	LeftOut int
	Longest int         // events that one answer held at most
	Missing []corpus.ID // answered, and never sent
	Failed  []corpus.ID // never answered, or with CLOSED only
	// InFlight is how many REQs at a time each connection had in the end, and Steps how they were
	// found.
	InFlight int
	Steps    []Step
}

// Run asks for the ids, each once. The error says why it stopped before all had an answer; what had
// not is Failed.
func (b *ByID) Run(ctx context.Context, ids []corpus.ID) (*Fetched, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &fetching{ByID: b, done: &Fetched{Stats: NewStats(), Asked: len(ids)}, end: cancel, most: math.MaxInt, late: map[int]int{},
		window: newWindow(max(1, b.InFlight), b.Adaptive)}
	f.more.L = &f.mu
	for part := range slices.Chunk(ids, max(1, b.Batch)) {
		f.queue = append(f.queue, &batch{ids: part})
	}
	slices.Reverse(f.queue) // what is next stands at the end
	f.left = len(f.queue)
	defer context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = true
		f.more.Broadcast()
	})()
	var workers sync.WaitGroup
	errs := make([]error, max(1, b.Conns))
	for k := range errs {
		workers.Go(func() {
			stats := NewStats()
			errs[k] = f.persist(ctx, stats, func(c *Conn) error { return f.connected(ctx, c) })
			f.mu.Lock()
			defer f.mu.Unlock()
			f.done.merge(stats)
		})
	}
	workers.Wait()
	for _, rest := range f.queue {
		f.done.Failed = append(f.done.Failed, rest.ids...)
	}
	for n, ids := range f.late {
		if n < f.done.Longest {
			f.done.LeftOut += ids
		}
	}
	f.done.InFlight, f.done.Steps = min(f.window.now(), f.most), f.window.steps
	switch {
	case ctx.Err() != nil:
		return f.done, context.Cause(ctx)
	case len(f.done.Failed) > 0:
		return f.done, errors.Join(errs...)
	}
	return f.done, nil // a connection that gave up does not matter where the others did its work
}

// batch is the ids of one REQ.
type batch struct {
	ids   []corpus.ID
	tries int
	short *int // how many events the answer held that was without these; nil where there was none

	came map[corpus.ID]bool // which of the ids have come, once they are asked for
	n    int                // events of the answer so far
}

// isNew says whether an id was asked for and had not come, and takes it for come.
func (b *batch) isNew(id corpus.ID) bool {
	came, wanted := b.came[id]
	if wanted {
		b.came[id] = true
	}
	return wanted && !came
}

// rest returns the ids that did not come.
func (b *batch) rest() (rest []corpus.ID) {
	for _, id := range b.ids {
		if !b.came[id] {
			rest = append(rest, id)
		}
	}
	return rest
}

// fetching is a ByID on its way.
type fetching struct {
	*ByID
	window *window
	end    context.CancelCauseFunc // with what Take returned

	mu    sync.Mutex
	more  sync.Cond // the queue has grown, nothing is left, or it has ended
	queue []*batch
	left  int // batches that have no final answer
	ended bool
	most  int         // REQs at a time, as far as the relay has shown on any connection
	late  map[int]int // ids that came when they were asked for again, by how many events the answer without them held
	done  *Fetched
}

// next returns a batch, or nil: where wait is set, only when there will never be one.
func (f *fetching) next(wait bool) *batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	for wait && len(f.queue) == 0 && f.left > 0 && !f.ended {
		f.more.Wait()
	}
	if len(f.queue) == 0 || f.ended {
		return nil
	}
	last := len(f.queue) - 1
	b := f.queue[last]
	f.queue = f.queue[:last]
	b.came, b.n = make(map[corpus.ID]bool, len(b.ids)), 0
	for _, id := range b.ids {
		b.came[id] = false
	}
	return b
}

// settle takes a batch back, of which these ids did not come, for another try or as a verdict.
func (f *fetching) settle(b *batch, rest []corpus.ID, answered bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.more.Broadcast()
	short := b.short
	if f.left--; short != nil {
		f.late[*short] += b.n
	}
	if answered {
		short = &b.n
		f.done.Longest = max(f.done.Longest, b.n)
	}
	switch {
	case len(rest) == 0:
	case b.tries < f.Retries:
		f.done.Retried += len(rest)
		size, tries := len(rest), b.tries+1
		switch {
		case !answered:
			size = (size + 1) / 2
		case b.n > 0:
			tries = b.tries // it may cap its answers, and each brings some
		}
		for part := range slices.Chunk(rest, size) {
			f.queue = append(f.queue, &batch{ids: part, tries: tries, short: short})
			f.left++
		}
	case answered:
		f.done.Missing = append(f.done.Missing, rest...)
	default:
		f.done.Failed = append(f.done.Failed, rest...)
	}
}

// putBack takes a batch back as it was: asking for it has had no answer.
func (f *fetching) putBack(b *batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rest := b.rest(); len(rest) == 0 {
		f.left--
	} else {
		f.done.Retried += len(rest)
		f.queue = append(f.queue, &batch{ids: rest, tries: b.tries, short: b.short})
	}
	f.more.Broadcast()
}

// connected asks over one connection until nothing is left.
func (f *fetching) connected(ctx context.Context, c *Conn) error {
	most := math.MaxInt // REQs at a time, as far as the relay has shown
	refused := 0        // REQs in a row that ended in CLOSED while they were alone
	defer func() {
		for _, s := range c.open {
			f.putBack(s.batch)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.most = min(f.most, most)
	}()
	for {
		for len(c.open) < min(f.window.now(), most) {
			b := f.next(len(c.open) == 0)
			if b == nil {
				break
			}
			s, err := c.ask(ctx, &corpus.Filter{IDs: b.ids, Limit: corpus.Int(len(b.ids))})
			if s != nil {
				s.batch = b
			}
			if err != nil {
				return err
			}
		}
		if len(c.open) == 0 {
			return nil
		}
		s, err := c.next()
		if err != nil {
			return err
		}
		b := s.batch
		switch c.Message.Type {
		case wire.Event:
			if err := f.event(ctx, c, b); err != nil {
				return err
			}
		case wire.EOSE:
			refused = 0
			f.window.answered(b.n, c.At)
			rest := b.rest()
			if len(rest) > 0 && f.Left != nil {
				f.Left(rest, c.At)
			}
			f.settle(b, rest, true) // before CLOSE, which may find the connection broken: the answer stands
			if err := c.End(s); err != nil {
				return err
			}
		default:
			closed := &ClosedError{c.Message.ReasonText()}
			if len(c.open) > 0 && b.n == 0 { // perhaps because of the others
				f.putBack(b)
			} else {
				f.settle(b, b.rest(), false)
			}
			if closed.Refused() {
				return closed
			}
			if most = max(1, len(c.open)); len(c.open) > 0 || b.n > 0 {
				continue
			}
			if refused++; refused == f.Refusals {
				return closed
			}
			if err := sleep(ctx, f.pause(refused)); err != nil {
				return err
			}
		}
	}
}

func (f *fetching) event(ctx context.Context, c *Conn, b *batch) error {
	id := corpus.ID(c.Message.ID)
	if _, wanted := b.came[id]; !c.Message.HasID || !wanted {
		c.Stats.unexpected(id, c.Message.HasID)
		return nil
	}
	if !b.isNew(id) {
		c.Stats.Duplicates++
		c.Stats.Repeated++
		return nil
	}
	b.n++
	err := c.pass(ctx, f.Take)
	if err != nil {
		f.end(err)
	}
	return err
}

// Step is one measurement of an adaptive window: with so many REQs in flight on each connection, so
// many events a second came over all of them.
type Step struct {
	InFlight int
	Rate     float64 // events/s
}

// window is how many REQs may be in flight on each connection. An adaptive one begins with 1 and is
// doubled as long as the events per second grow by more than a twentieth; then it goes back to
// where they had stopped growing and stays.
type window struct {
	mu      sync.Mutex
	size    int
	most    int
	growing bool
	steps   []Step

	began   time.Duration // of the step, 0 before its first answer
	answers int
	events  int
}

// A step is as long as tells something: so much time, and every REQ in flight answered so often.
const (
	stepTime    = 300 * time.Millisecond
	stepAnswers = 4
	worthwhile  = 1.05
)

func newWindow(most int, adaptive bool) *window {
	if adaptive {
		return &window{size: 1, most: most, growing: most > 1}
	}
	return &window{size: most}
}

func (w *window) now() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size
}

// answered notes an answer of so many events.
func (w *window) answered(events int, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.growing {
		return
	}
	if w.began == 0 { // the answers that were under way when the step began belong to the one before
		w.began = at
		return
	}
	w.answers++
	w.events += events
	if at-w.began < stepTime || w.answers < stepAnswers*w.size {
		return
	}
	step := Step{w.size, float64(w.events) / (at - w.began).Seconds()}
	w.steps = append(w.steps, step)
	w.began, w.answers, w.events = 0, 0, 0
	if n := len(w.steps); n > 1 && step.Rate < worthwhile*w.steps[n-2].Rate {
		w.size, w.growing = w.steps[n-2].InFlight, false
		return
	}
	w.growing = w.size < w.most
	w.size = min(2*w.size, w.most)
}
