package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// link is one connection and the REQs open on it.
type link struct {
	o     *Options
	conn  *wire.Conn
	stats *Stats
	open  map[string]*request
	past  []*request  // that were closed, the latest last
	undo  func() bool // ends what aborts the connection with its context
	m     wire.Message
	frame []byte        // what is sent
	read  []byte        // what was read last
	last  time.Duration // when the last REQ was sent
}

// request is one open REQ.
type request struct {
	sub      string
	sent     time.Duration
	of       any  // whatever the strategy remembers of it
	asked    int  // events, by its limit
	came     int  // events, of whatever kind
	answered bool // its EOSE has come, and it stays open
}

// mostPast bounds how many REQs that have ended are remembered, for what comes late.
const mostPast = 64

// dial connects. The handshake takes as long as a stall at most.
func dial(ctx context.Context, o *Options, stats *Stats) (*link, error) {
	handshake, cancel := context.WithTimeout(ctx, o.stall())
	defer cancel()
	conn, err := wire.Dial(handshake, o.URL, wire.Options{Compression: o.Compression, ReadLimit: o.ReadLimit})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	stats.Dials++
	stats.Extensions = conn.Negotiated()
	conn.WatchUseful(o.stall())
	return &link{o: o, conn: conn, stats: stats, open: make(map[string]*request), undo: context.AfterFunc(ctx, conn.Abort)}, nil
}

// close ends the connection and counts what it carried; err is why it is given up, if it is. What
// was open on it is unfinished.
func (l *link) close(ctx context.Context, err error) {
	l.undo()
	if err != nil {
		if ctx.Err() == nil && broken(err) {
			l.stats.Lost++
			l.stats.Loss = err
		}
		l.conn.Abort()
	} else {
		l.conn.Close() // a relay that does not answer has said all that was asked all the same
	}
	l.stats.Malformed.Add(l.conn.Garbage())
	l.stats.Unfinished += len(l.open)
	l.stats.Bytes += l.conn.BytesRead()
	l.stats.BytesUp += l.conn.BytesWritten()
}

// broken says whether an error is the end of a connection, and none of this side's choosing.
func broken(err error) bool {
	closed := (*wire.CloseError)(nil)
	return errors.As(err, &closed) || errors.Is(err, wire.ErrLost) || errors.Is(err, wire.ErrStalled) || errors.Is(err, wire.ErrTooLarge) || errors.Is(err, wire.ErrProtocol)
}

// ask sends a REQ with one filter. Where REQs must keep a distance, it waits for it; the deadline stands still meanwhile.
func (l *link) ask(ctx context.Context, filter *corpus.Filter, of any) error {
	if wait := l.last + l.o.Interval - wire.Now(); l.o.Interval > 0 && l.last > 0 && wait > 0 {
		l.conn.WatchUseful(0)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		l.conn.WatchUseful(l.o.stall())
	}
	l.stats.Requests++
	r := &request{sub: "p" + strconv.Itoa(l.stats.Requests), of: of}
	if filter.Limit != nil {
		r.asked = *filter.Limit
	}
	l.frame = append(append(append(l.frame[:0], `["REQ","`...), r.sub...), `",`...)
	l.frame = append(filter.AppendJSON(l.frame), ']')
	r.sent = wire.Now()
	l.last = r.sent
	if l.stats.began == 0 {
		l.stats.began = r.sent
	}
	l.open[r.sub] = r
	l.conn.Useful() // nothing was open before, perhaps for long
	return l.conn.Send(l.frame)
}

// own reports whether a subscription id is one of ours: what an earlier REQ left may still come.
func (l *link) own(sub []byte) bool {
	if len(sub) < 2 || sub[0] != 'p' {
		return false
	}
	n, err := strconv.Atoi(string(sub[1:]))
	return err == nil && n > 0 && n <= l.stats.Requests
}

// end forgets a REQ, and closes it where the relay has not.
func (l *link) end(r *request, tell bool) error {
	delete(l.open, r.sub)
	if _, byID := r.of.(*asked); byID {
		l.past = append(l.past[max(0, len(l.past)+1-mostPast):], r)
	}
	if !tell {
		return nil
	}
	l.frame = append(append(append(l.frame[:0], `["CLOSE","`...), r.sub...), `"]`...)
	return l.conn.Send(l.frame)
}

// next reads up to the next message for an open REQ. What else comes is counted.
func (l *link) next() (r *request, at time.Duration, err error) {
	for {
		frame, at, err := l.conn.ReadMessage(&l.m)
		if err != nil {
			return nil, 0, err
		}
		l.stats.FrameBytes += int64(len(frame))
		switch l.m.Type {
		case wire.Unknown:
			l.stats.Garbage++
			continue
		case wire.Notice:
			l.stats.Notices++
			l.stats.Reason = l.m.ReasonText()
			continue
		case wire.Event, wire.EOSE, wire.Closed:
		default:
			continue
		}
		r := l.open[string(l.m.Sub)]
		if r == nil {
			if l.m.Type == wire.Event && !l.comesLate() {
				l.stats.Strays++
				if !l.own(l.m.Sub) {
					l.stats.Elsewhere++
				}
			}
			continue
		}
		if l.m.Type == wire.Event {
			r.came++
			if most := cmp.Or(l.o.Answer, 2*r.asked); most > 0 && r.came > most {
				return nil, 0, &FloodError{r.came, r.asked}
			}
		}
		if r.answered && l.m.Type != wire.Event {
			if l.m.Type == wire.Closed { // the relay ends what it has answered, which is no failure
				_ = l.end(r, false)
			}
			continue
		}
		if l.m.Type != wire.Event {
			r.answered = l.m.Type == wire.EOSE
			l.conn.Useful()
			l.stats.ended = at
			l.stats.Duration = at - l.stats.began
			l.stats.Latency.Record(at - r.sent)
			if l.m.Type == wire.EOSE {
				l.stats.EOSE++
			} else {
				l.stats.Closed++
				l.stats.Reason = l.m.ReasonText()
				l.stats.closedFor(wire.ReasonPrefix(l.m.Reason), 1)
			}
		}
		l.read = frame
		return r, at, nil
	}
}

// comesLate says whether the event that was just read comes under a REQ by id that has ended, and had
// been asked for by it: it was stored meanwhile, and sent before the relay read the CLOSE (NIP-01).
func (l *link) comesLate() bool {
	i := slices.IndexFunc(l.past, func(r *request) bool { return r.sub == string(l.m.Sub) })
	return i >= 0 && l.m.HasID && l.past[i].of.(*asked).isNew(l.m.ID)
}

// pass hands the event of the message that was just read on.
func (l *link) pass(ctx context.Context, take Take, at time.Duration) error {
	e := Event{ID: l.m.ID, CreatedAt: l.m.CreatedAt, Dated: l.m.Dated, Raw: l.m.Event, Frame: l.read, At: at}
	l.conn.Useful()
	l.stats.Events++
	l.stats.EventBytes += int64(len(e.Raw))
	if l.stats.FirstEvent == 0 {
		l.stats.FirstEvent = max(1, at-l.stats.began)
	}
	l.stats.ended = at
	l.stats.Duration = at - l.stats.began
	ok, err := take(ctx, &e, false)
	if !ok && err == nil {
		began := wire.Now()
		l.conn.WatchUseful(0) // whoever takes the events is slow, which is no fault of the relay
		_, err = take(ctx, &e, true)
		l.conn.WatchUseful(l.o.stall())
		l.stats.Waited += wire.Now() - began
	}
	return err
}
