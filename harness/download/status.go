package download

import (
	"math"
	"time"
)

// Status is how far a download is.
type Status struct {
	Events int64 // different ones, of all relays
	Bytes  int64
	Limit  int // of them; 0: none
	Relays []RelayStatus
}

// RelayStatus is how far one relay is.
type RelayStatus struct {
	URL string
	Counts
	Outcome Outcome
	Failure string        // why it failed; a relay may have written some of it, which is quoted then
	Cursor  int64         // Unix seconds: all that is newer has come
	Rate    float64       // events/s of late, whether new or not
	Left    time.Duration // how long the rest may take; 0 where that is not known
}

const (
	watchEvery = 250 * time.Millisecond
	paceTime   = 10 // seconds that a rate looks back, about
)

// pace is how fast a relay is.
type pace struct {
	began           time.Time
	from            int64 // where the cursor was then
	last            time.Time
	received        int64
	perSecond       float64
	seen            bool
	totalFrom       int64 // events of the download
	totalPerSeconds float64
}

// watch reports until stop is called, and then once more.
func (d *download) watch() (stop func()) {
	if d.o.Watch == nil {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				d.o.Watch(d.status())
			case <-end:
				d.o.Watch(d.status())
				return
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// status tells how far it is.
func (d *download) status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Status{Events: d.state.Events, Bytes: d.spill.bytes, Limit: d.o.Limit}
	target := int64(math.MinInt64)
	if d.o.Since != nil {
		target = *d.o.Since
	}
	if oldest, full := d.newest.oldest(); full {
		target = max(target, oldest)
	}
	now := time.Now()
	for _, r := range d.relays {
		r.pace.note(now, r.state.Received+r.received.Load(), r.state.Next, d.state.Events)
		s.Relays = append(s.Relays, r.status(target))
	}
	return s
}

// note looks at the counters.
func (p *pace) note(now time.Time, received, cursor, total int64) {
	if !p.seen {
		*p = pace{began: now, from: cursor, last: now, received: received, totalFrom: total, seen: true}
		return
	}
	passed := now.Sub(p.last).Seconds()
	if passed <= 0 {
		return
	}
	rate := float64(received-p.received) / passed
	share := max(1-math.Exp(-passed/paceTime), passed/now.Sub(p.began).Seconds()) // at first, all there is
	p.perSecond += (rate - p.perSecond) * share
	p.last, p.received = now, received
	p.totalPerSeconds = float64(total-p.totalFrom) / now.Sub(p.began).Seconds()
}

// status is that of a relay whose cursor is to come to target, or whose end nobody knows. The
// download's mu is held, or nobody else works.
func (r *relay) status(target int64) RelayStatus {
	s := RelayStatus{URL: r.state.URL, Counts: r.state.Counts, Outcome: r.state.Outcome, Failure: r.state.Failure, Cursor: r.state.Next, Rate: r.pace.perSecond}
	s.Counts.add(&r.page)
	s.Received += r.received.Load()
	if s.Outcome != Pending {
		s.Rate = 0
		return s
	}
	elapsed := r.pace.last.Sub(r.pace.began).Seconds()
	left := 0.0
	switch passed := float64(r.pace.from - s.Cursor); {
	case target > math.MinInt64 && passed > 0:
		left = elapsed * max(0, float64(s.Cursor-target)) / passed
	case target == math.MinInt64 && r.o.Limit > 0 && r.pace.totalPerSeconds > 0:
		left = float64(int64(r.o.Limit)-r.download.state.Events) / r.pace.totalPerSeconds
	}
	if left < (1000 * time.Hour).Seconds() {
		s.Left = time.Duration(max(0, left) * float64(time.Second))
	}
	return s
}
