package negentropy

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"relaybench/relays/wire"
)

// watchdog ends the connection when ctx does, or when the relay makes no progress in time. Only progress moves its deadline: a relay that
// sends other frames without end does not.
type watchdog struct {
	ctx      context.Context
	conn     *wire.Conn
	timer    *time.Timer
	deadline time.Time
	fired    atomic.Bool
	detach   func() bool
	notice   *string // what the relay said in a NOTICE while NEG-OPEN was not answered
}

func watch(ctx context.Context, conn *wire.Conn, limit time.Duration) *watchdog {
	w := &watchdog{ctx: ctx, conn: conn, deadline: time.Now().Add(limit)}
	w.detach = context.AfterFunc(ctx, conn.Abort)
	w.timer = time.AfterFunc(limit, func() {
		w.fired.Store(true)
		conn.Abort()
	})
	return w
}

func (w *watchdog) progress(limit time.Duration) {
	w.deadline = time.Now().Add(limit)
	w.timer.Reset(limit)
}

// limit brings the deadline nearer.
func (w *watchdog) limit(d time.Duration) {
	if time.Until(w.deadline) > d {
		w.progress(d)
	}
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.detach()
}

// cause says why the connection ended, where it was ended here.
func (w *watchdog) cause(err error) error {
	switch {
	case !errors.Is(err, wire.ErrClosed):
		return err
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case w.fired.Load():
		return w.conn.Stalled()
	}
	return err
}
