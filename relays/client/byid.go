package client

import (
	"bytes"
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
	f := &fetching{ByID: b, done: &Fetched{Stats: NewStats(), Asked: len(ids)}, most: math.MaxInt, late: map[int]int{}}
	f.more.L = &f.mu
	f.window = newWindow(max(1, b.InFlight), b.Adaptive)
	for batch := range slices.Chunk(ids, max(1, b.Batch)) {
		f.queue = append(f.queue, &batchOf{ids: batch})
	}
	slices.Reverse(f.queue) // what is next stands at the end
	f.left = len(f.queue)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
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
			errs[k] = f.worker(ctx)
			var taking *takeError
			if errors.As(errs[k], &taking) {
				cancel(taking.err)
			}
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
	if ctx.Err() != nil {
		return f.done, context.Cause(ctx)
	}
	if len(f.done.Failed) > 0 {
		return f.done, errors.Join(errs...)
	}
	return f.done, nil // a connection that gave up does not matter where the others did its work
}

// takeError is what Take or Turned returned.
type takeError struct{ err error }

func (e *takeError) Error() string { return e.err.Error() }

// batchOf is the ids of one REQ.
type batchOf struct {
	ids   []corpus.ID
	tries int
	short *int // how many events the answer held that was without these; nil where there was none
}

// query is a batch that is asked for.
type query struct {
	batch *batchOf
	ids   []corpus.ID // sorted
	came  []bool
	n     int
}

// find returns the place of an id that was asked for.
func (q *query) find(id corpus.ID) (i int, wanted bool) {
	return slices.BinarySearchFunc(q.ids, id, func(x, y corpus.ID) int { return bytes.Compare(x[:], y[:]) })
}

// isNew says whether an id was asked for and had not come, and takes it for come.
func (q *query) isNew(id corpus.ID) bool {
	i, wanted := q.find(id)
	if !wanted || q.came[i] {
		return false
	}
	q.came[i] = true
	return true
}

// fetching is a ByID on its way.
type fetching struct {
	*ByID
	window *window

	mu    sync.Mutex
	more  sync.Cond // the queue has grown, nothing is left, or it has ended
	queue []*batchOf
	left  int // batches that have no final answer
	ended bool
	most  int         // REQs at a time, as far as the relay has shown on any connection
	late  map[int]int // ids that came when they were asked for again, by how many events the answer without them held
	done  *Fetched
}

func (f *fetching) narrow(most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.most = min(f.most, most)
}

// next returns a batch, or nil: where wait is set, only when there will never be one.
func (f *fetching) next(wait bool) *batchOf {
	f.mu.Lock()
	defer f.mu.Unlock()
	for wait && len(f.queue) == 0 && f.left > 0 && !f.ended {
		f.more.Wait()
	}
	if len(f.queue) == 0 || f.ended {
		return nil
	}
	b := f.queue[len(f.queue)-1]
	f.queue = f.queue[:len(f.queue)-1]
	return b
}

// settle takes a batch back, of which these ids did not come, for another try or as a verdict.
func (f *fetching) settle(q *query, rest []corpus.ID, answered bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.more.Broadcast()
	b, short := q.batch, q.batch.short
	if f.left--; b.short != nil {
		f.late[*b.short] += q.n
	}
	if answered {
		short = &q.n
		f.done.Longest = max(f.done.Longest, q.n)
	}
	switch {
	case len(rest) == 0:
	case b.tries < f.Retries:
		f.done.Retried += len(rest)
		size, tries := len(rest), b.tries+1
		switch {
		case !answered:
			size = (size + 1) / 2
		case q.n > 0:
			tries = b.tries // it may cap its answers, and each brings some
		}
		for part := range slices.Chunk(rest, size) {
			f.queue = append(f.queue, &batchOf{part, tries, short})
			f.left++
		}
	case answered:
		f.done.Missing = append(f.done.Missing, rest...)
	default:
		f.done.Failed = append(f.done.Failed, rest...)
	}
}

// putBack takes a batch back as it was: asking for it has had no answer.
func (f *fetching) putBack(q *query) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := q.rest()
	if len(rest) == 0 {
		f.left--
	} else {
		f.done.Retried += len(rest)
		f.queue = append(f.queue, &batchOf{rest, q.batch.tries, q.batch.short})
	}
	f.more.Broadcast()
}

func (q *query) rest() (rest []corpus.ID) {
	for i, came := range q.came {
		if !came {
			rest = append(rest, q.ids[i])
		}
	}
	return rest
}

// worker asks over one connection after another until nothing is left.
func (f *fetching) worker(ctx context.Context) error {
	again := retry{o: &f.Options}
	for {
		stats := NewStats()
		err := f.connected(ctx, stats)
		f.mu.Lock()
		f.done.merge(stats)
		f.mu.Unlock()
		if err == nil {
			return nil
		}
		var taking *takeError
		if errors.As(err, &taking) {
			return err
		}
		if err := again.after(ctx, err, stats.Events > 0); err != nil {
			return err
		}
	}
}

func (f *fetching) connected(ctx context.Context, stats *Stats) (err error) {
	c, err := dial(ctx, &f.Options, stats)
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range c.open {
			f.putBack(s.batch)
		}
		c.finish(ctx, err)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	most := math.MaxInt // REQs at a time, as far as the relay has shown
	refused := 0        // REQs in a row that ended in CLOSED while they were alone
	defer func() { f.narrow(most) }()
	for {
		for len(c.open) < min(f.window.now(), most) {
			b := f.next(false)
			if b == nil && len(c.open) == 0 {
				b = f.next(true)
			}
			if b == nil {
				break
			}
			q := &query{batch: b, ids: slices.Clone(b.ids), came: make([]bool, len(b.ids))}
			slices.SortFunc(q.ids, func(x, y corpus.ID) int { return bytes.Compare(x[:], y[:]) })
			s, err := c.ask(ctx, &corpus.Filter{IDs: b.ids, Limit: corpus.Int(len(b.ids))})
			if s != nil {
				s.batch = q
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
		q := s.batch
		switch c.Message.Type {
		case wire.Event:
			if err := f.event(ctx, c, q); err != nil {
				return err
			}
		case wire.EOSE:
			refused = 0
			f.window.answered(q.n, c.At)
			rest := q.rest()
			if len(rest) > 0 && f.Left != nil {
				f.Left(rest, c.At)
			}
			f.settle(q, rest, true) // before CLOSE, which may find the connection broken: the answer stands
			if err := c.End(s); err != nil {
				return err
			}
		default:
			closed := &ClosedError{c.Message.ReasonText()}
			if len(c.open) > 0 && q.n == 0 { // perhaps because of the others
				f.putBack(q)
			} else {
				f.settle(q, q.rest(), false)
			}
			if closed.Refused() {
				return closed
			}
			if most = max(1, len(c.open)); len(c.open) > 0 || q.n > 0 {
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

func (f *fetching) event(ctx context.Context, c *Conn, q *query) error {
	id := corpus.ID(c.Message.ID)
	i, wanted := q.find(id)
	switch {
	case !c.Message.HasID || !wanted:
		c.Stats.unexpected(id, c.Message.HasID)
		return nil
	case q.came[i]:
		c.Stats.Duplicates++
		c.Stats.Repeated++
		return nil
	}
	q.came[i] = true
	q.n++
	if err := c.pass(ctx, f.Take); err != nil {
		return &takeError{err}
	}
	return nil
}
