package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// Conn is one connection and the REQs open on it: what comes is matched by subscription id, and
// counted. While a REQ waits for its answer, the connection ends when nothing of use has come for
// Options.Stall. One goroutine may use it.
type Conn struct {
	Message wire.Message  // read last; its memory is valid until the next is read
	At      time.Duration // when it arrived, on wire.Now's scale
	Stats   *Stats

	o       *Options
	conn    *wire.Conn
	undo    func() bool // ends what aborts the connection with its context
	open    map[string]*Subscription
	waiting int             // of those that are open, how many wait for their answer
	past    []*Subscription // that have ended and may still get what they asked for, the latest last
	last    time.Duration   // when the last REQ was sent
	out     []byte          // what is sent
	filter  []byte          // of it
	frame   []byte          // that was read last

	ahead    chan arrival // that a goroutine reads; nil while nobody waits with a deadline of its own
	aheadErr error        // why ahead was closed
}

// Subscription is one REQ, or one COUNT.
type Subscription struct {
	ID       string
	Sent     time.Duration
	Asked    int  // events, by its limit; 0 for no limit
	Events   int  // that came
	Answered bool // its EOSE has come
	batch    *batch
}

// mostPast bounds how many REQs that have ended are remembered, for what comes late.
const mostPast = 64

// Dial connects. The handshake takes as long as a stall at most. The end of ctx aborts the
// connection.
func Dial(ctx context.Context, o Options) (*Conn, error) { return dial(ctx, &o, NewStats()) }

func dial(ctx context.Context, o *Options, stats *Stats) (*Conn, error) {
	handshake, cancel := context.WithTimeout(ctx, o.stall())
	defer cancel()
	conn, err := wire.Dial(handshake, o.URL, wire.Options{Compression: o.Compression, ReadLimit: o.ReadLimit})
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	stats.Dials++
	stats.Extensions = conn.Negotiated()
	return &Conn{o: o, conn: conn, Stats: stats, open: make(map[string]*Subscription), undo: context.AfterFunc(ctx, conn.Abort)}, nil
}

// Close says good-bye. A relay that does not answer has said all that was asked all the same.
func (c *Conn) Close() { c.end(func() { c.conn.Close() }) }

// Abort drops the connection.
func (c *Conn) Abort() { c.end(c.conn.Abort) }

func (c *Conn) end(how func()) {
	c.undo()
	if how(); c.ahead != nil {
		for range c.ahead { // its reader ends with the connection
		}
	}
}

// Wire is the connection itself.
func (c *Conn) Wire() *wire.Conn { return c.conn }

// finish ends the connection and counts what it carried; err is why it is given up, if it is. What
// was open on it is unfinished.
func (c *Conn) finish(ctx context.Context, err error) {
	closed := (*wire.CloseError)(nil)
	if err == nil {
		c.Close()
	} else if c.Abort(); ctx.Err() == nil && (errors.As(err, &closed) || errors.Is(err, wire.ErrLost) || errors.Is(err, wire.ErrStalled) ||
		errors.Is(err, wire.ErrTooLarge) || errors.Is(err, wire.ErrProtocol)) { // and not of this side's choosing
		c.Stats.Lost++
		c.Stats.Loss = err
	}
	c.Stats.Malformed.Add(c.conn.Garbage())
	c.Stats.Unfinished += len(c.open)
	c.Stats.Bytes += c.conn.BytesRead()
	c.Stats.BytesUp += c.conn.BytesWritten()
}

// await says that so many more REQs wait for their answer, or fewer: the relay's deadline is there
// while one does.
func (c *Conn) await(more int) {
	was := c.waiting
	if c.waiting += more; (was > 0) != (c.waiting > 0) {
		c.watch(true)
	}
}

// watch begins the relay's deadline anew, or lets it stand still.
func (c *Conn) watch(on bool) {
	limit := time.Duration(0)
	if on && c.waiting > 0 {
		limit = c.o.stall()
	}
	if !c.o.Patient {
		c.conn.WatchUseful(limit)
	}
}

// Frame is the message that was read last, as it came; it is valid as long as Message.
func (c *Conn) Frame() []byte { return c.frame }

// Useful says that what just came is of use: the deadline moves on.
func (c *Conn) Useful() { c.conn.Useful() }

// ask is Request for one filter.
func (c *Conn) ask(ctx context.Context, filter *corpus.Filter) (*Subscription, error) {
	c.filter = filter.AppendJSON(c.filter[:0])
	limit := 0
	if filter.Limit != nil {
		limit = *filter.Limit
	}
	return c.Request(ctx, c.filter, limit)
}

// Request sends a REQ with a filter, or several with commas between them, as JSON. limit is how
// many events it asks for; 0 for no limit. Where REQs must keep a distance, it waits for it.
func (c *Conn) Request(ctx context.Context, filters []byte, limit int) (*Subscription, error) {
	if c.o.Interval > 0 && c.last > 0 {
		if err := sleep(ctx, c.last+c.o.Interval-wire.Now()); err != nil {
			return nil, err
		}
	}
	return c.send("REQ", filters, limit)
}

// Count sends a COUNT (NIP-45) with a filter as JSON. Its answer, which Read returns, ends it.
func (c *Conn) Count(filter []byte) (*Subscription, error) { return c.send("COUNT", filter, 0) }

func (c *Conn) send(verb string, filters []byte, limit int) (*Subscription, error) {
	c.Stats.Requests++
	s := &Subscription{ID: "p" + strconv.Itoa(c.Stats.Requests), Asked: limit}
	c.out = append(append(append(c.out[:0], `["`...), verb...), `","`...)
	c.out = append(append(c.out, s.ID...), `",`...)
	c.out = append(append(c.out, filters...), ']')
	c.open[s.ID] = s
	c.await(1)
	s.Sent = wire.Now()
	c.last = s.Sent
	if c.Stats.began == 0 {
		c.Stats.began = s.Sent
	}
	return s, c.conn.Send(c.out)
}

// End closes a REQ.
func (c *Conn) End(s *Subscription) error {
	c.forget(s)
	c.out = append(append(append(c.out[:0], `["CLOSE","`...), s.ID...), `"]`...)
	return c.conn.Send(c.out)
}

func (c *Conn) forget(s *Subscription) {
	if delete(c.open, s.ID); s.batch != nil {
		c.past = append(c.past[max(0, len(c.past)+1-mostPast):], s)
	}
}

// Own reports whether a subscription id is one of ours: what an earlier REQ left may still come.
func (c *Conn) Own(sub []byte) bool {
	digits, ours := bytes.CutPrefix(sub, []byte("p"))
	n, err := strconv.Atoi(string(digits))
	return ours && err == nil && n > 0 && n <= c.Stats.Requests
}

// Read reads a message. The Subscription is the open REQ that it belongs to: an EVENT, its EOSE, or
// CLOSED or a COUNT, which end it; nil for anything else.
func (c *Conn) Read() (*Subscription, error) {
	frame, at, err := c.conn.ReadMessage(&c.Message)
	if err != nil {
		return nil, err
	}
	return c.sort(frame, at)
}

// next reads up to the next message for an open REQ.
func (c *Conn) next() (*Subscription, error) {
	for {
		if s, err := c.Read(); s != nil || err != nil {
			return s, err
		}
	}
}

// sort finds out what a message belongs to, and counts it.
func (c *Conn) sort(frame []byte, at time.Duration) (*Subscription, error) {
	m, stats := &c.Message, c.Stats
	c.frame, c.At = frame, at
	stats.FrameBytes += int64(len(frame))
	switch m.Type {
	case wire.Unknown:
		stats.Garbage++
	case wire.Notice:
		stats.Reason = m.ReasonText()
	}
	s := c.open[string(m.Sub)]
	if s == nil || m.Type == wire.NegMsg || m.Type == wire.NegErr {
		if m.Type == wire.Event && !c.comesLate() {
			if stats.Unexpected++; !c.Own(m.Sub) {
				stats.Elsewhere++
			}
		}
		return nil, nil
	}
	switch {
	case m.Type == wire.Event:
		s.Events++
		if most := cmp.Or(c.o.Answer, 2*s.Asked); most > 0 && s.Events > most {
			return nil, &FloodError{s.Events, s.Asked}
		}
		return s, nil
	case s.Answered && m.Type == wire.EOSE:
		return nil, nil
	case s.Answered: // the relay ends what it has answered, which is no failure
		c.forget(s)
		return s, nil
	}
	c.await(-1)
	stats.until(at)
	stats.Latency.Record(at - s.Sent)
	switch m.Type {
	case wire.EOSE:
		s.Answered = true
		stats.EOSE++
		return s, nil
	case wire.Closed:
		stats.Closed++
		stats.Reason = m.ReasonText()
		stats.closedFor(wire.ReasonPrefix(m.Reason), 1)
	}
	c.forget(s)
	return s, nil
}

// OK is a relay's answer to an EVENT.
type OK struct {
	Accepted bool
	Reason   string // the relay's words
	At       time.Duration
}

// Publish sends an event and waits for its OK. The connection ends when it has not come within the
// time given: other frames are no progress.
func (c *Conn) Publish(id corpus.ID, raw []byte, within time.Duration) (OK, error) {
	c.conn.WatchUseful(within)
	defer c.watch(true)
	if err := c.conn.SendEvent(raw); err != nil {
		return OK{}, err
	}
	for {
		if _, err := c.Read(); err != nil {
			return OK{}, err
		}
		if m := &c.Message; m.Type == wire.OK && m.ID == id {
			return OK{m.Accepted, m.ReasonText(), c.At}, nil
		}
	}
}

// comesLate says whether the event that was just read comes under a REQ by id that has ended, and
// had been asked for by it: it was stored meanwhile, and sent before the relay read the CLOSE
// (NIP-01).
func (c *Conn) comesLate() bool {
	i := slices.IndexFunc(c.past, func(s *Subscription) bool { return s.ID == string(c.Message.Sub) })
	return i >= 0 && c.Message.HasID && c.past[i].batch.isNew(c.Message.ID)
}

// pass hands the event that was just read on.
func (c *Conn) pass(ctx context.Context, take Take) error {
	m, stats := &c.Message, c.Stats
	e := Event{ID: m.ID, CreatedAt: m.CreatedAt, Dated: m.Dated, Raw: m.Event, Frame: c.frame, At: c.At}
	c.Useful()
	stats.Events++
	stats.EventBytes += int64(len(e.Raw))
	if stats.FirstEvent == 0 {
		stats.FirstEvent = max(1, c.At-stats.began)
	}
	stats.until(c.At)
	ok, err := take(ctx, &e, false)
	if !ok && err == nil {
		began := wire.Now()
		c.watch(false) // whoever takes the events is slow, which is no fault of the relay
		_, err = take(ctx, &e, true)
		c.watch(true)
		stats.Waited += wire.Now() - began
	}
	return err
}

// ErrSilent says that nothing came by a deadline that is no end of the connection.
var ErrSilent = errors.New("no answer")

// arrival is a message that owns its memory.
type arrival struct {
	frame []byte
	at    time.Duration
}

func (c *Conn) readAhead() {
	defer close(c.ahead)
	for {
		frame, at, err := c.conn.Read()
		if err != nil {
			c.aheadErr = err
			return
		}
		c.ahead <- arrival{bytes.Clone(frame), at}
	}
}

// ReadBy is Read up to a deadline, after which the error is ErrSilent and the connection goes on.
// Once it was called, Read must not be. What was read stays valid. A deadline that is zero is now.
func (c *Conn) ReadBy(ctx context.Context, deadline time.Time) (*Subscription, error) {
	if c.ahead == nil {
		c.ahead = make(chan arrival, 16)
		go c.readAhead()
	}
	var a arrival
	more := true
	select {
	case a, more = <-c.ahead:
	default:
		select {
		case a, more = <-c.ahead:
		case <-time.After(time.Until(deadline)):
			return nil, ErrSilent
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	switch {
	case more:
		c.conn.ParseMessage(a.frame, &c.Message)
		return c.sort(a.frame, a.at)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, c.aheadErr
}
