package wire

import "time"

// Watch sets the watchdog: when a Read or a blocked Send has waited for d without a text frame arriving, the connection ends with ErrStalled. Time
// in which nobody waits does not count; neither pings nor parts of a frame are progress. It fires within d and a quarter of
// d. Zero or less switches it off. Frames cost it nothing: it looks at counters a few times in each d.
func (c *Conn) Watch(d time.Duration) {
	c.strict.Store(false)
	c.arm(d)
}

func (c *Conn) arm(d time.Duration) {
	c.watched.Store(int64(max(d, 0)))
	c.before.Store(c.reads.Load() / 2)
	if d > 0 {
		c.watch.Do(func() { go c.watchdog() })
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// WatchUseful is Watch for a peer that is not trusted to be of use: not every text frame counts as progress, only what the caller calls Useful, and
// all time counts from this call on.
func (c *Conn) WatchUseful(d time.Duration) {
	c.strict.Store(true)
	c.arm(d)
}

// Useful says that what the caller waits for has come, or a part of it. It costs an atomic addition.
func (c *Conn) Useful() { c.useful.Add(1) }

func (c *Conn) watchdog() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var reads, useful uint64
	var blocked uint32
	since := Now()
	end := func() {
		e := c.Stalled()
		e.Frames = c.reads.Load()/2 - c.before.Load()
		c.finish(e)
		c.conn.abort()
	}
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
			since = Now()
			continue
		case <-timer.C:
		}
		r, b, u := c.reads.Load(), c.conn.blocked.Load(), c.useful.Load()
		switch {
		case c.strict.Load() && (limit == 0 || u != useful):
			useful, since = u, Now()
			c.before.Store(r / 2)
		case c.strict.Load() && Now()-since < limit:
		case c.strict.Load():
			end()
			return
		case r != reads || b != blocked || r%2 == 0 && b%2 == 0:
			reads, blocked, since = r, b, Now()
			c.before.Store(r / 2)
		case Now()-since >= limit:
			end()
			return
		}
	}
}
