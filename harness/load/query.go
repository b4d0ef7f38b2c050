package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// Asker puts queries to a relay over one connection, one after another.
type Asker struct {
	conn  *wire.Conn
	stall time.Duration
	count int64
	sub   []byte
	frame []byte

	// OnEvent, where it is set, is called with each event's text as it came, which is valid during the call: for checks outside timed paths.
	OnEvent func(id corpus.ID, text []byte)
}

// NewAsker dials the relay. A query that makes no progress for stall fails.
func NewAsker(ctx context.Context, url string, stall time.Duration) (*Asker, error) {
	conn, err := Dial(ctx, url)
	if err != nil {
		return nil, err
	}
	return &Asker{conn: conn, stall: stall}, nil
}

// Together dials so many connections, and then has ask work with all of them at once. It returns
// how long that took, handshakes left out, and why one of them failed.
func Together(ctx context.Context, url string, conns int, stall time.Duration, ask func(k int, a *Asker, start time.Duration) error) (took time.Duration, err error) {
	askers, errs := make([]*Asker, conns), make([]error, conns)
	for k := range askers {
		if askers[k], err = NewAsker(ctx, url, stall); err != nil {
			return 0, fmt.Errorf("connection %d of %d: %w", k+1, conns, err)
		}
		defer askers[k].Close()
	}
	start := wire.Now()
	var all sync.WaitGroup
	for k, a := range askers {
		all.Go(func() { errs[k] = ask(k, a, start) })
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

// Dial connects to a relay for as long as ctx lasts: its end aborts the connection, whoever waits on it.
func Dial(ctx context.Context, url string) (*wire.Conn, error) {
	conn, err := wire.Dial(ctx, url, wire.Options{})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, conn.Abort)
	return conn, nil
}

// Close closes the connection.
func (a *Asker) Close() { a.conn.Close() }

// UnansweredError is a question that got no end.
type UnansweredError struct {
	Filter string // as JSON, cut short
	Err    error
}

func (e *UnansweredError) Error() string { return e.Err.Error() }
func (e *UnansweredError) Unwrap() error { return e.Err }

// longestFilter is how much of a filter stands in an UnansweredError, in bytes.
const longestFilter = 400

// own reports whether a subscription id is one of this Asker's: what an earlier question left may
// still come.
func (a *Asker) own(sub []byte) bool {
	if len(sub) < 2 || sub[0] != 'q' {
		return false
	}
	n, err := strconv.ParseInt(string(sub[1:]), 10, 64)
	return err == nil && n > 0 && n <= a.count
}

// ErrTooMuch is a relay that goes on sending events far beyond the limit it was asked to keep.
var ErrTooMuch = errors.New("the relay sends far more events than it was asked for")

// mostEvents is how many events are taken of one answer, so that one without end does not fill memory.
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

// Ask sends one REQ with the filter, given as JSON, and reads up to EOSE or CLOSED into r, whose memory it reuses. The error is a lost
// connection or a relay that made no progress.
func (a *Asker) Ask(filter []byte, r *Reply) error { return unanswered(filter, a.ask(filter, r)) }

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
// that of Ask.
func (a *Asker) Count(filter []byte) (c Counted, err error) {
	defer func() { err = unanswered(filter, err) }()
	defer a.conn.WatchUseful(0)
	defer func() { c.Garbage = a.conn.TakeGarbage() }()
	sent, err := a.begin("COUNT", filter)
	if err != nil {
		return c, err
	}
	var m wire.Message
	for {
		_, at, err := a.conn.ReadMessage(&m)
		switch {
		case err != nil:
			return c, noticed(err, c.Reason)
		case m.Type == wire.Notice:
			c.Reason = m.ReasonText()
		case string(m.Sub) != string(a.sub):
		case m.Type == wire.Count:
			n, approximate, ok := m.Counted()
			c.Count, c.Approximate, c.NoCount, c.Took = n, approximate, !ok, at-sent
			return c, nil
		case m.Type == wire.Closed:
			c.Closed, c.Reason = true, m.ReasonText()
			return c, nil
		}
	}
}

// begin sends a filter under the next subscription id, and has the connection end where nothing
// useful comes for a stall. It returns the time of sending.
func (a *Asker) begin(verb string, filter []byte) (sent time.Duration, err error) {
	a.count++
	a.sub = strconv.AppendInt(append(a.sub[:0], 'q'), a.count, 10)
	a.frame = append(append(a.frame[:0], `["`...), verb...)
	a.frame = append(append(a.frame, `","`...), a.sub...)
	a.frame = append(append(a.frame, `",`...), filter...)
	a.conn.WatchUseful(a.stall)
	sent = wire.Now()
	return sent, a.conn.Send(append(a.frame, ']'))
}

// noticed adds to an error what the relay had said before it.
func noticed(err error, notice string) error {
	if notice == "" {
		return err
	}
	return fmt.Errorf("%w, after NOTICE %q", err, notice)
}

// unanswered wraps an error with the filter that it was met with.
func unanswered(filter []byte, err error) error {
	if err != nil {
		text := string(filter[:min(len(filter), longestFilter)])
		if len(filter) > longestFilter {
			text += "…"
		}
		return &UnansweredError{text, err}
	}
	return nil
}

func (a *Asker) ask(filter []byte, r *Reply) error {
	*r = Reply{IDs: r.IDs[:0]}
	defer a.conn.WatchUseful(0)
	defer func() { r.Garbage = a.conn.TakeGarbage() }()
	sent, err := a.begin("REQ", filter)
	if err != nil {
		return err
	}
	var m wire.Message
	for {
		frame, at, err := a.conn.ReadMessage(&m)
		if err != nil {
			return noticed(err, r.Reason)
		}
		if m.Type == wire.Notice {
			r.Reason = m.ReasonText()
		}
		if string(m.Sub) != string(a.sub) {
			if m.Type == wire.Event && !a.own(m.Sub) {
				r.Elsewhere++
			}
			continue
		}
		r.Bytes += int64(len(frame))
		a.conn.Useful()
		switch m.Type {
		case wire.Event:
			if r.First == 0 {
				r.First = at - sent
			}
			if len(r.IDs)+r.NoID >= mostEvents {
				return ErrTooMuch
			}
			if m.HasID {
				r.IDs = append(r.IDs, corpus.ID(m.ID))
				if a.OnEvent != nil {
					a.OnEvent(corpus.ID(m.ID), m.Event)
				}
			} else {
				r.NoID++
			}
		case wire.EOSE:
			r.EOSE = at - sent
			a.frame = append(a.frame[:0], `["CLOSE","`...)
			a.frame = append(a.frame, a.sub...)
			return a.conn.Send(append(a.frame, `"]`...))
		case wire.Closed:
			r.EOSE, r.Closed, r.Reason = at-sent, true, m.ReasonText()
			return nil
		}
	}
}
