package wire

import "time"

// Watch sets the watchdog: when a Read or a blocked Send has waited for d without a text frame arriving, the connection ends with ErrStalled. Time
// in which nobody waits does not count; neither pings nor parts of a frame are progress. It fires within d and a quarter of
// d. Zero or less switches it off. Frames cost it nothing: it looks at counters a few times in each d.
func (c *Conn) Watch(d time.Duration) {
	c.watched.Store(int64(max(d, 0)))
	if d > 0 {
		c.watch.Do(func() { go c.watchdog() })
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Conn) watchdog() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var reads uint64
	var blocked uint32
	since := Now()
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
		r, b := c.reads.Load(), c.conn.blocked.Load()
		switch {
		case r != reads || b != blocked || r%2 == 0 && b%2 == 0:
			reads, blocked, since = r, b, Now()
		case Now()-since >= limit:
			c.finish(ErrStalled)
			c.conn.abort()
			return
		}
	}
}
