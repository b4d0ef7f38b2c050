package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Pacer sends events in an open loop: on a schedule, whatever the answers. A relay that falls behind is sent the next event all the same, and latencies
// count from when an event was to be sent, so that a stall is felt by every event that it delays.
type Pacer struct {
	URL      string
	Corpus   *corpus.Corpus
	Conns    int
	Rate     int           // events per second over all connections together
	Stall    time.Duration // without any answer for so long, when one is due, the rest is given up
	Ledger   *Ledger
	Progress func(done, total int) // may be nil; called from several goroutines
}

// Paced is what came of it.
type Paced struct {
	Accepted, Duplicates, Refused, Unanswered int64

	Latency *results.Histogram // from the intended time of sending to the OK, all answers
	Late    *results.Histogram // from the intended time of sending to the sending: the harness's own
	Example string             // the reason of one refusal
	Lost    int                // connections that broke, each dialled anew
	Loss    error              // why the last of them broke
	Garbage Garbage
}

// longestRest bounds how long nobody looks for an interruption.
const longestRest = 20 * time.Millisecond

// leadTime is how long the schedule begins after all connections are open.
const leadTime = 20 * time.Millisecond

// Publish sends the events with these corpus indexes, each at its time, and returns when each has its answer or cannot get one. The error says that a
// connection was lost or the relay made no progress; what was known by then is returned with it.
func (p *Pacer) Publish(ctx context.Context, indexes []int) (*Paced, error) {
	conns := min(p.Conns, max(1, len(indexes)))
	lines := make([]*pacing, conns)
	for k := range lines {
		conn, err := wire.Dial(ctx, p.URL, wire.Options{})
		if err != nil {
			for _, l := range lines[:k] {
				l.conn.Abort()
			}
			return nil, err
		}
		lines[k] = &pacing{Pacer: p, conn: conn, waiting: make(map[corpus.ID]due), latency: results.NewHistogram(), late: results.NewHistogram(), total: len(indexes)}
	}
	var done atomic.Int64
	start := wire.Now() + leadTime
	for n, i := range indexes {
		l := lines[n%conns]
		l.plan = append(l.plan, due{i, start + time.Duration(float64(n)/float64(p.Rate)*float64(time.Second))})
	}
	var all sync.WaitGroup
	errs := make([]error, conns)
	for k, l := range lines {
		l.done = &done
		all.Go(func() { errs[k] = l.run(ctx) })
	}
	all.Wait()
	total := &Paced{Latency: results.NewHistogram(), Late: results.NewHistogram()}
	for _, l := range lines {
		total.Accepted += l.got.Accepted
		total.Duplicates += l.got.Duplicates
		total.Refused += l.got.Refused
		total.Unanswered += l.got.Unanswered
		total.Garbage.Add(l.got.Garbage)
		total.Lost += l.got.Lost
		if l.got.Loss != nil {
			total.Loss = l.got.Loss
		}
		total.Latency.Merge(l.latency)
		total.Late.Merge(l.late)
		if l.got.Example != "" {
			total.Example = l.got.Example
		}
	}
	if ctx.Err() != nil {
		return total, context.Cause(ctx)
	}
	for _, err := range errs {
		if err != nil {
			return total, fmt.Errorf("%d of %d events got their answer: %w", done.Load(), len(indexes), err)
		}
	}
	return total, nil
}

// due is one event and its time.
type due struct {
	index int
	at    time.Duration
}

// pacing is one connection's share.
type pacing struct {
	*Pacer
	conn *wire.Conn
	plan []due

	mu      sync.Mutex
	waiting map[corpus.ID]due // sent, and not answered

	latency, late *results.Histogram
	got           Paced
	answered      int // over all its connections
	total         int
	done          *atomic.Int64 // on all connections
}

// run publishes the plan. A connection that breaks is dialled anew, for what is left of the plan: what was waiting for an answer gets none.
func (l *pacing) run(ctx context.Context) error {
	defer func() {
		for _, d := range l.plan {
			if a := l.Ledger.Get(d.index); a == NotOffered || a == Unanswered {
				l.got.Unanswered++
			}
		}
	}()
	rest, barren := l.plan, 0
	for {
		before := l.answered
		sent, err := l.drive(ctx, rest)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if errors.Is(err, wire.ErrStalled) {
			return err
		}
		rest = rest[sent:]
		l.got.Lost++
		l.got.Loss = err
		if barren++; l.answered > before {
			barren = 0
		}
		if barren == maxBarren || barren > 0 && len(rest) == 0 {
			return err
		}
		clear(l.waiting)
		conn, dialErr := wire.Dial(ctx, l.URL, wire.Options{})
		if dialErr != nil {
			return fmt.Errorf("%w, and dialling again failed: %w", err, dialErr)
		}
		if len(rest) == 0 { // all was sent before the connection broke: that it broke late makes it no worse a loss
			conn.Abort()
			return nil
		}
		l.conn = conn
	}
}

// drive publishes over one connection and says how many of the events it sent.
func (l *pacing) drive(ctx context.Context, plan []due) (sent int, err error) {
	conn := l.conn
	defer context.AfterFunc(ctx, conn.Abort)()
	sending := make(chan error, 1)
	go func() {
		var err error
		sent, err = l.send(ctx, conn, plan)
		sending <- err
	}()
	readErr := l.read(conn, plan) // an error ends the connection, and so the sending as well
	sendErr := <-sending
	conn.Close()
	return sent, cmp.Or(readErr, sendErr)
}

// send keeps the schedule.
func (l *pacing) send(ctx context.Context, conn *wire.Conn, plan []due) (sent int, err error) {
	for n, d := range plan {
		if wire.Now() < d.at {
			if err := conn.Flush(); err != nil {
				return n, err
			}
		}
		for wait := d.at - wire.Now(); wait > 0; wait = d.at - wire.Now() {
			if ctx.Err() != nil {
				return n, context.Cause(ctx)
			}
			rest(min(wait, longestRest))
		}
		e := l.Corpus.Entry(d.index)
		l.mu.Lock()
		l.waiting[e.ID] = d
		l.mu.Unlock()
		l.Ledger.Set(d.index, Unanswered)
		l.late.Record(wire.Now() - d.at)
		if err := conn.SendEvent(l.Corpus.Raw(d.index)); err != nil {
			return n + 1, err
		}
	}
	return len(plan), conn.Flush()
}

// read takes answers until each event has one. The watchdog counts from when answers are due, and moves with them.
func (l *pacing) read(conn *wire.Conn, plan []due) error {
	last := plan[len(plan)-1].at
	conn.WatchUseful(l.Stall + max(0, last-wire.Now()))
	defer conn.WatchUseful(0)
	defer func() { l.got.Garbage.Add(conn.TakeGarbage()) }()
	watched := false
	var m wire.Message
	for answered := 0; answered < len(plan); {
		_, at, err := conn.ReadMessage(&m)
		if err != nil {
			return err
		}
		if m.Type != wire.OK {
			continue
		}
		id := corpus.ID(m.ID)
		l.mu.Lock()
		d, ok := l.waiting[id]
		delete(l.waiting, id)
		l.mu.Unlock()
		if !ok {
			continue
		}
		answered++
		l.answered++
		conn.Useful()
		if !watched && at >= last { // the schedule is over: from here on each wait is the relay's
			watched = true
			conn.WatchUseful(l.Stall)
		}
		l.latency.Record(at - d.at)
		switch {
		case !m.Accepted:
			l.got.Refused++
			l.got.Example = m.ReasonText()
			l.Ledger.Set(d.index, Refused)
		case hasPrefix(m.Reason, "duplicate:"):
			l.got.Duplicates++
			l.Ledger.Set(d.index, Duplicate)
		default:
			l.got.Accepted++
			l.Ledger.Set(d.index, Accepted)
		}
		if n := l.done.Add(1); l.Progress != nil && n%64 == 0 {
			l.Progress(int(n), l.total)
		}
	}
	return nil
}
