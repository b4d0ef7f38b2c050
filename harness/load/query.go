package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/wire"
)

// Querier puts queries to a relay over one connection, one after another.
type Querier struct {
	conn *client.Conn

	// OnEvent, where it is set, is called with each event's text as it came, which is valid during
	// the call: for checks outside timed paths.
	OnEvent func(id corpus.ID, text []byte)
}

// NewQuerier dials the relay. A query that makes no progress for stall fails.
func NewQuerier(ctx context.Context, url string, stall time.Duration) (*Querier, error) {
	conn, err := client.Dial(ctx, client.Options{URL: url, Stall: stall, Answer: mostEvents})
	if err != nil {
		return nil, err
	}
	return &Querier{conn: conn}, nil
}

// Together dials so many connections, and then has query work with all of them at once. It returns
// how long that took, handshakes left out, and why one of them failed.
func Together(ctx context.Context, url string, conns int, stall time.Duration, query func(k int, q *Querier, start time.Duration) error) (took time.Duration, err error) {
	queriers, errs := make([]*Querier, conns), make([]error, conns)
	for k := range queriers {
		if queriers[k], err = NewQuerier(ctx, url, stall); err != nil {
			return 0, fmt.Errorf("connection %d of %d: %w", k+1, conns, err)
		}
		defer queriers[k].Close()
	}
	start := wire.Now()
	var all sync.WaitGroup
	for k, q := range queriers {
		all.Go(func() { errs[k] = query(k, q, start) })
	}
	all.Wait()
	took = wire.Now() - start
	for k, err := range errs {
		if err != nil {
			return took, fmt.Errorf("connection %d of %d: %w", k+1, conns, err)
		}
	}
	return took, nil
}

// Close closes the connection.
func (q *Querier) Close() { q.conn.Close() }

// UnansweredError is a query that got no end.
type UnansweredError struct {
	Filter string // as JSON, cut short
	Err    error
}

func (e *UnansweredError) Error() string { return e.Err.Error() }
func (e *UnansweredError) Unwrap() error { return e.Err }

// longestFilter is how much of a filter stands in an UnansweredError, in bytes.
const longestFilter = 400

// ErrTooMuch is a relay that goes on sending events far beyond the limit it was asked to keep.
var ErrTooMuch = errors.New("the relay sends far more events than it was asked for")

// mostEvents is how many events are taken of one answer, so that one without end does not fill
// memory.
const mostEvents = 20_000

// Reply is a relay's answer to one REQ or COUNT.
type Reply struct {
	IDs  []corpus.ID // of the events, as they came
	NoID int         // events whose id could not be read
	// Elsewhere counts events that came under a subscription id that was never asked under.
	Elsewhere int
	Bytes     int64         // of the frames
	First     time.Duration // from the REQ to the first event; 0 where none came
	EOSE      time.Duration // from the REQ to EOSE or CLOSED, or from the COUNT to its answer
	Closed    bool          // CLOSED came instead
	Reason    string        // of CLOSED, or of the last NOTICE on the way

	// Of a COUNT (NIP-45).
	Count       int
	Approximate bool // as the relay says
	Malformed   bool // the answer, which is Reason, holds no count

	Garbage wire.Garbage // on the way
}

// Answered says whether it was answered as the protocol has it, to the end.
func (r *Reply) Answered() bool { return !r.Closed && !r.Malformed }

// Held is how many events the answer holds, or counts.
func (r *Reply) Held() int { return len(r.IDs) + r.Count }

// Query sends one REQ with the filter, given as JSON, and reads up to EOSE or CLOSED into r, whose
// memory it reuses. The error is a lost connection or a relay that made no progress.
func (q *Querier) Query(filter []byte, r *Reply) error {
	asked, err := q.conn.Request(context.Background(), filter, 0)
	return q.answer(filter, r, asked, err, false)
}

// Count sends one COUNT with the filter, given as JSON, and waits for its answer. The error is as
// that of Query.
func (q *Querier) Count(filter []byte, r *Reply) error {
	asked, err := q.conn.Count(filter)
	return q.answer(filter, r, asked, err, true)
}

func (q *Querier) answer(filter []byte, r *Reply, asked *client.Subscription, err error, count bool) error {
	*r = Reply{IDs: r.IDs[:0]}
	elsewhere := q.conn.Stats.Elsewhere
	if err == nil {
		err = q.read(r, asked, count)
	}
	r.Elsewhere = int(q.conn.Stats.Elsewhere - elsewhere)
	r.Garbage = q.conn.Wire().TakeGarbage()
	return unanswered(filter, err, r.Reason)
}

// unanswered wraps an error with the filter that it was met with, and what the relay had said
// before it.
func unanswered(filter []byte, err error, notice string) error {
	if err == nil {
		return nil
	}
	flood, stall := (*client.FloodError)(nil), (*wire.StallError)(nil)
	if errors.As(err, &flood) {
		err = ErrTooMuch
	} else if errors.As(err, &stall); notice != "" && (stall == nil || stall.Notices == 0) { // else it tells that itself
		err = fmt.Errorf("%w, after NOTICE %q", err, notice)
	}
	text := string(filter[:min(len(filter), longestFilter)])
	if len(filter) > longestFilter {
		text += "…"
	}
	return &UnansweredError{text, err}
}

// read reads up to the end of an answer. To a COUNT neither EVENT nor EOSE is one.
func (q *Querier) read(r *Reply, asked *client.Subscription, count bool) error {
	for m := &q.conn.Message; ; {
		s, err := q.conn.Read()
		if err != nil {
			return err
		}
		if s == nil {
			if m.Type == wire.Notice {
				r.Reason = m.ReasonText()
			}
			continue
		}
		r.Bytes += int64(len(q.conn.Frame()))
		took := q.conn.At - asked.Sent
		switch {
		case count && m.Type == wire.Count:
			n, approximate, ok := m.Counted()
			r.EOSE, r.Approximate, r.Malformed = took, approximate, !ok
			if r.Count = int(n); !ok {
				r.Count, r.Reason = 0, string(m.Payload[:min(len(m.Payload), longestFilter)])
			}
			return nil
		case count && m.Type != wire.Closed:
		case m.Type == wire.Event:
			q.conn.Useful()
			if r.First == 0 {
				r.First = took
			}
			if !m.HasID {
				r.NoID++
				continue
			}
			r.IDs = append(r.IDs, corpus.ID(m.ID))
			if q.OnEvent != nil {
				q.OnEvent(corpus.ID(m.ID), m.Event)
			}
		case m.Type == wire.EOSE:
			r.EOSE = took
			return q.conn.End(s)
		default:
			r.EOSE, r.Closed, r.Reason = took, true, m.ReasonText()
			return nil
		}
	}
}
