package load

import (
	"cmp"
	"context"
	"time"

	"relaybench/relays/wire"
)

// Pacer says when the next event is to be sent. It is a pure function of time and count, so that it
// needs no clock to be tested.
type Pacer interface {
	// Pace returns how long from now the next event is due, at elapsed since the start and with so
	// many handed out: less than 0 where it is overdue. stop ends the sending.
	Pace(elapsed time.Duration, sent int) (wait time.Duration, stop bool)
}

// ClosedLoop has the next event due whenever the window has room for it. It stops after For, or
// where that is 0 with the last event. One event is sent however late it is.
type ClosedLoop struct{ For time.Duration }

// Pace implements Pacer.
func (c ClosedLoop) Pace(elapsed time.Duration, sent int) (wait time.Duration, stop bool) {
	return 0, c.For > 0 && sent > 0 && elapsed >= c.For
}

// ConstantRate is a schedule of so many events a second, whatever the answers: an open loop.
type ConstantRate float64

// Pace implements Pacer.
func (r ConstantRate) Pace(elapsed time.Duration, sent int) (wait time.Duration, stop bool) {
	return time.Duration(float64(sent)/float64(r)*float64(time.Second)) - elapsed, false
}

const (
	longestRest = 20 * time.Millisecond // the longest sleep before the context is looked at again
	leadTime    = 20 * time.Millisecond // from the moment when all connections are open to the begin of a schedule
)

// due is one event and its time.
type due struct {
	outgoing
	at time.Duration
}

// take hands out the next event and its time, where there is one. It waits for it where it may.
func (w *publishing) take(wait bool) (e due, ok bool) {
	if e.outgoing, ok = w.from(wait); !ok {
		return e, false
	}
	now := wire.Now()
	in, stop := w.pacer.Pace(now-w.start, int(w.taken.Add(1)-1))
	e.at = now + in
	return e, !stop
}

// schedule sends and reads at once until every event has its answer. It takes one event
// ahead, so that it knows the last one and waits for no answer after it.
func (w *publishing) schedule(ctx context.Context) error {
	if !w.more {
		if w.ahead, w.more = w.take(true); !w.more {
			return nil
		}
	}
	running, end := context.WithCancel(ctx)
	defer end()
	sending := make(chan error, 1)
	go func() { sending <- w.keep(running) }()
	var m wire.Message
	var err error
	for err == nil && w.expects() {
		var at time.Duration
		if _, at, err = w.conn.ReadMessage(&m); err == nil && m.Type == wire.OK {
			w.answer(&m, at)
		}
	}
	if err != nil {
		end()
		w.conn.Abort()
	}
	return cmp.Or(err, <-sending)
}

// expects reports whether an answer is due, or will be.
func (w *publishing) expects() bool {
	w.flying.Lock()
	defer w.flying.Unlock()
	return w.more || w.flight.len > 0
}

// keep sends each event at its time.
func (w *publishing) keep(ctx context.Context) error {
	for more := true; more; {
		e := w.ahead
		if wire.Now() < e.at {
			if err := w.conn.Flush(); err != nil {
				return err
			}
		}
		for wait := e.at - wire.Now(); wait > 0; wait = e.at - wire.Now() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			wire.Sleep(min(wait, longestRest))
		}
		w.ahead, more = w.take(true)
		w.flying.Lock()
		w.flight.add(e.id, e.index, e.at)
		w.more = more
		w.flying.Unlock()
		w.sent.Add(1)
		w.Late.Record(wire.Now() - e.at)
		if err := w.conn.SendEvent(e.raw); err != nil {
			return err
		}
	}
	return w.conn.Flush()
}
