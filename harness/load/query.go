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

// Reply is a relay's answer to one REQ.
type Reply struct {
	IDs  []corpus.ID // of the events, as they came
	NoID int         // events whose id could not be read
	// Elsewhere counts events that came under a subscription id that was never asked under.
	Elsewhere int
	Bytes     int64         // of the frames
	First     time.Duration // from the REQ to the first event; 0 where none came
	EOSE      time.Duration // from the REQ to EOSE or CLOSED
	Closed    bool          // CLOSED came instead of EOSE
	Reason    string        // of CLOSED, or of the last NOTICE on the way

	Garbage wire.Garbage // on the way
}

// Query sends one REQ with the filter, given as JSON, and reads up to EOSE or CLOSED into r, whose
// memory it reuses. The error is a lost connection or a relay that made no progress.
func (q *Querier) Query(filter []byte, r *Reply) (err error) {
	*r = Reply{IDs: r.IDs[:0]}
	elsewhere := q.conn.Stats.Elsewhere
	defer func() {
		r.Elsewhere = int(q.conn.Stats.Elsewhere - elsewhere)
		r.Garbage = q.conn.Wire().TakeGarbage()
		err = unanswered(filter, err, r.Reason)
	}()
	asked, err := q.conn.Request(context.Background(), filter, 0)
	if err != nil {
		return err
	}
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
		switch m.Type {
		case wire.Event:
			q.conn.Useful()
			if r.First == 0 {
				r.First = q.conn.At - asked.Sent
			}
			if !m.HasID {
				r.NoID++
				continue
			}
			r.IDs = append(r.IDs, corpus.ID(m.ID))
			if q.OnEvent != nil {
				q.OnEvent(corpus.ID(m.ID), m.Event)
			}
		case wire.EOSE:
			r.EOSE = q.conn.At - asked.Sent
			return q.conn.End(s)
		default:
			r.EOSE, r.Closed, r.Reason = q.conn.At-asked.Sent, true, m.ReasonText()
			return nil
		}
	}
}

// unanswered wraps an error with the filter that it was met with, and what the relay had said
// before it.
func unanswered(filter []byte, err error, notice string) error {
	if err == nil {
		return nil
	}
	if flood := (*client.FloodError)(nil); errors.As(err, &flood) {
		err = ErrTooMuch
	} else if notice != "" {
		err = fmt.Errorf("%w, after NOTICE %q", err, notice)
	}
	text := string(filter[:min(len(filter), longestFilter)])
	if len(filter) > longestFilter {
		text += "…"
	}
	return &UnansweredError{text, err}
}

// Counted is a relay's answer to one COUNT (NIP-45).
type Counted struct {
	Count       int64
	Approximate bool          // as the relay says
	NoCount     bool          // the answer holds no count
	Took        time.Duration // from the COUNT to its answer
	Closed      bool          // CLOSED came instead
	Reason      string        // of CLOSED, or of the last NOTICE on the way
	Garbage     wire.Garbage  // on the way
}

// Count sends one COUNT with the filter, given as JSON, and waits for its answer. The error is as
// that of Query.
func (q *Querier) Count(filter []byte) (c Counted, err error) {
	defer func() {
		c.Garbage = q.conn.Wire().TakeGarbage()
		err = unanswered(filter, err, c.Reason)
	}()
	asked, err := q.conn.Count(filter)
	if err != nil {
		return c, err
	}
	for m := &q.conn.Message; ; {
		s, err := q.conn.Read()
		switch {
		case err != nil:
			return c, err
		case m.Type == wire.Notice:
			c.Reason = m.ReasonText()
		case s == nil:
		case m.Type == wire.Closed:
			c.Closed, c.Reason = true, m.ReasonText()
			return c, nil
		case m.Type == wire.Count:
			n, approximate, ok := m.Counted()
			c.Count, c.Approximate, c.NoCount, c.Took = n, approximate, !ok, q.conn.At-asked.Sent
			return c, nil
		}
	}
}
