package client

import (
	"sync"
	"time"
)

// Step is one measurement of an adaptive window: with so many REQs in flight on each connection, so
// many events a second came over all of them.
type Step struct {
	InFlight int
	Rate     float64 // events/s
}

// window is how many REQs may be in flight on each connection. An adaptive one begins with 1 and is
// doubled as long as the events per second grow by more than a twentieth; then it goes back to
// where they had stopped growing and stays.
type window struct {
	mu      sync.Mutex
	size    int
	most    int
	growing bool
	steps   []Step

	began   time.Duration // of the step, 0 before its first answer
	answers int
	events  int
}

// A step is as long as tells something: so much time, and every REQ in flight answered so often.
const (
	stepTime    = 300 * time.Millisecond
	stepAnswers = 4
	worthwhile  = 1.05
)

func newWindow(most int, adaptive bool) *window {
	if adaptive {
		return &window{size: 1, most: most, growing: most > 1}
	}
	return &window{size: most}
}

func (w *window) now() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size
}

// answered notes an answer of so many events.
func (w *window) answered(events int, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.growing {
		return
	}
	if w.began == 0 { // the answers that were under way when the step began belong to the one before
		w.began = at
		return
	}
	w.answers++
	w.events += events
	if at-w.began < stepTime || w.answers < stepAnswers*w.size {
		return
	}
	step := Step{w.size, float64(w.events) / (at - w.began).Seconds()}
	w.steps = append(w.steps, step)
	w.began, w.answers, w.events = 0, 0, 0
	if n := len(w.steps); n > 1 && step.Rate < worthwhile*w.steps[n-2].Rate {
		w.size, w.growing = w.steps[n-2].InFlight, false
		return
	}
	w.growing = w.size < w.most
	w.size = min(2*w.size, w.most)
}
