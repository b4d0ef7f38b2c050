package reference

import (
	"slices"
	"time"

	"relaybench/relays/wire"
)

// late sends the OKs of committed groups a fixed time after their commit, in order. Groups wait
// side by side, so that the delay costs latency and no throughput of its own: it is what a slower
// disk or a longer way would add, to the microsecond as far as the system's clock goes.
type late struct {
	delay time.Duration
	queue chan lateGroup
	hurry chan struct{} // closed when nothing waits any longer
	done  chan struct{}
}

type lateGroup struct {
	due  time.Time
	jobs []*job
}

// lateGroups is how many groups may wait; their bytes are bounded with all that is under way.
const lateGroups = 1 << 16

func startLate(delay time.Duration, answer func([]*job)) *late {
	l := &late{delay: delay, queue: make(chan lateGroup, lateGroups), hurry: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for g := range l.queue {
			l.wait(g.due)
			answer(g.jobs)
		}
	}()
	return l
}

// add takes a group over; the caller may reuse the slice.
func (l *late) add(group []*job) {
	l.queue <- lateGroup{time.Now().Add(l.delay), slices.Clone(group)}
}

func (l *late) wait(due time.Time) {
	const fine = 3 * time.Millisecond // Go's timers may be over a millisecond late
	if left := time.Until(due); left > fine {
		select {
		case <-time.After(left - fine):
		case <-l.hurry:
			return
		}
	}
	for left := time.Until(due); left > 0; left = time.Until(due) {
		wire.Sleep(left)
	}
}

// stop answers at once whatever waits. Nothing may be added any more.
func (l *late) stop() {
	close(l.hurry)
	close(l.queue)
	<-l.done
}
