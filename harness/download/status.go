package download

import (
	"container/heap"
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
	RelayState
	Rate float64       // events/s since this run began, whether new or not
	Left time.Duration // how long the rest may take; 0 where that is not known
}

const watchEvery = 250 * time.Millisecond

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
		for more := true; more; d.o.Watch(d.status()) {
			select {
			case <-ticker.C:
			case <-end:
				more = false
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
	s := Status{Events: d.state.Events, Bytes: d.events.bytes, Limit: d.o.Limit}
	target := int64(math.MinInt64)
	if d.o.Since != nil {
		target = *d.o.Since
	}
	if oldest, full := d.newest.oldest(); full {
		target = max(target, oldest)
	}
	for _, r := range d.relays {
		s.Relays = append(s.Relays, r.status(target))
	}
	return s
}

// status is that of a relay whose cursor is to come to target, or whose end nobody knows. The
// download's mu is held, or nobody else works.
func (r *relay) status(target int64) RelayStatus {
	s := RelayStatus{RelayState: *r.state}
	page := r.page()
	s.Counts.add(&page)
	if s.Outcome != Pending {
		return s
	}
	passed, left := time.Since(r.began).Seconds(), 0.0
	s.Rate = float64(s.Received-r.from.Received) / passed
	came, covered := r.download.state.Events-r.before, r.from.Next-s.Next
	switch {
	case target > math.MinInt64 && covered > 0:
		left = passed * float64(s.Next-target) / float64(covered)
	case target == math.MinInt64 && r.o.Limit > 0 && came > 0:
		left = passed * float64(int64(r.o.Limit)-r.download.state.Events) / float64(came)
	}
	if left < (1000 * time.Hour).Seconds() {
		s.Left = time.Duration(max(0, left) * float64(time.Second))
	}
	return s
}

// newest keeps the times of the newest events, as many as are wanted, to tell when a relay has
// nothing more to add to them: once all its events down to a time before the oldest of these have
// come. It takes 8 bytes for each event wanted.
type newest struct {
	want  int // 0: all, and nothing is kept
	times times
}

// add notes an event.
func (n *newest) add(at int64) {
	switch {
	case n.want == 0:
	case len(n.times) < n.want:
		heap.Push(&n.times, at)
	case at > n.times[0]:
		n.times[0] = at
		heap.Fix(&n.times, 0)
	}
}

// oldest is the time of the last event wanted; ok is false while there are fewer.
func (n *newest) oldest() (at int64, ok bool) {
	if n.want == 0 || len(n.times) < n.want {
		return 0, false
	}
	return n.times[0], true
}

// times is a heap with the oldest on top, which only grows.
type times []int64

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(int64)) }

// Pop is not called.
func (t *times) Pop() any { return nil }
