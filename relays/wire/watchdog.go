package wire

import "time"

// WatchUseful sets the watchdog: where nothing comes for d that the caller calls Useful, counted
// from this call on, the connection ends with ErrStalled. Nothing else is progress, be it pings,
// parts of a frame or whole messages: the relay is not trusted to be of use. It fires within d and
// a quarter of d. Zero or less switches it off. Frames cost it nothing: it looks at counters a few
// times in each d.
func (c *Conn) WatchUseful(d time.Duration) {
	c.watchMu.Lock()
	defer c.watchMu.Unlock()
	c.patience, c.since, c.before = max(d, 0), Now(), c.reads.Load()
	switch {
	case c.watch != nil && d > 0:
		c.watch.Reset(lookEvery(d))
	case c.watch != nil:
		c.watch.Stop()
	case d > 0:
		c.watch = time.AfterFunc(lookEvery(d), c.look)
	}
}

func lookEvery(d time.Duration) time.Duration { return min(max(d/8, time.Millisecond), time.Second) }

// Useful says that what the caller waits for has come, or a part of it. It costs an atomic
// addition.
func (c *Conn) Useful() { c.useful.Add(1) }

func (c *Conn) look() {
	c.watchMu.Lock()
	defer c.watchMu.Unlock()
	switch useful := c.useful.Load(); {
	case c.patience == 0 || c.ended() != nil:
		return
	case useful != c.progress:
		c.progress, c.since, c.before = useful, Now(), c.reads.Load()
	case Now()-c.since >= c.patience:
		e := c.Stalled()
		e.Frames = c.reads.Load() - c.before
		c.finish(e)
		c.conn.abort()
		return
	}
	c.watch.Reset(lookEvery(c.patience))
}
