package wire

import "time"

// WatchUseful sets the watchdog: where nothing comes for d that the caller calls Useful, counted
// from this call on, the connection ends with ErrStalled. Nothing else is progress, be it pings,
// parts of a frame or whole messages: the relay is not trusted to be of use. It fires within d and
// a quarter of d. Zero or less switches it off. Frames cost it nothing: it looks at counters a few
// times in each d.
func (c *Conn) WatchUseful(d time.Duration) {
	c.since.Store(int64(Now()))
	c.watched.Store(int64(max(d, 0)))
	c.before.Store(c.reads.Load())
	if d > 0 {
		c.watch.Do(func() { go c.watchdog() })
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Useful says that what the caller waits for has come, or a part of it. It costs an atomic
// addition.
func (c *Conn) Useful() { c.useful.Add(1) }

func (c *Conn) watchdog() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var useful uint64
	for {
		limit := time.Duration(c.watched.Load())
		if limit > 0 {
			timer.Reset(min(max(limit/8, time.Millisecond), time.Second))
		} else {
			timer.Stop()
		}
		select {
		case <-c.done:
			return
		case <-c.wake:
			continue
		case <-timer.C:
		}
		switch u := c.useful.Load(); {
		case limit == 0:
		case u != useful:
			useful = u
			c.since.Store(int64(Now()))
			c.before.Store(c.reads.Load())
		case int64(Now())-c.since.Load() >= int64(limit):
			e := c.Stalled()
			e.Frames = c.reads.Load() - c.before.Load()
			c.finish(e)
			c.conn.abort()
			return
		}
	}
}
