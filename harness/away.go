package harness

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"relaybench/relays/wire"
	"relaybench/results"
)

const (
	// lookEvery is how often the clock looks whether time has gone by without it.
	lookEvery = 100 * time.Millisecond
	// leastAway is how late a look must be where there is evidence that the process was stopped, or
	// its machine suspended. A stop of a second makes one late by 900 ms at least.
	leastAway = 500 * time.Millisecond
	// leastHeldUp is the same where there is none: the process was frozen, swapped out, or not let
	// run by a quota. On two processors at load 38, with all of Go's own busy as well, looks were
	// up to 0.7 s late, of which the kernel's queue explained the smaller part.
	leastHeldUp = 2 * time.Second
)

// away is time in which this process did not run. What it measured then says nothing of a relay.
type away struct {
	times int
	long  time.Duration // in all
}

// since is what has come on top of what was before.
func (a away) since(b away) away { return away{a.times - b.times, a.long - b.long} }

// status is the mark of figures.
func (a away) status(code string) results.Status {
	return results.Status{Code: code, Counts: map[string]float64{"times": float64(a.times), "s": a.long.Round(lookEvery).Seconds()}}
}

// clock finds out when this process did not run: by how late it wakes up.
type clock struct {
	now       func() time.Duration // goes on while the machine is suspended
	awake     func() time.Duration // does not
	continued <-chan os.Signal     // SIGCONT: the process had been stopped
	sleep     func(time.Duration)

	mu           sync.Mutex
	looked, woke time.Duration // now and awake, the last time
	gone         away
	ended        bool
}

// startClock runs a clock until ctx ends.
func startClock(ctx context.Context) *clock {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	c := &clock{now: sinceBoot, awake: wire.Now, continued: continued, sleep: time.Sleep}
	c.looked, c.woke = c.now(), c.awake()
	go func() {
		defer signal.Stop(continued)
		for ctx.Err() == nil {
			c.sleep(lookEvery)
			c.look()
		}
		c.mu.Lock()
		c.ended = true
		c.mu.Unlock()
	}()
	return c
}

// look sees how late it is, and whether that is known to be no fault of a busy machine.
func (c *clock) look() {
	now, awake := c.now(), c.awake()
	late := now - c.looked - lookEvery
	stopped := late-(awake-c.woke-lookEvery) >= leastAway // it was the machine that slept
	waited := time.Duration(0)
	for known := false; !known; {
		select {
		case <-c.continued:
			stopped, known = true, true
		default:
			if known = stopped || late < leastAway || waited >= leastAway; !known {
				c.sleep(lookEvery / 10) // the signal may be handled after this
				waited += lookEvery / 10
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if late >= leastHeldUp || late >= leastAway && stopped {
		c.gone.times++
		c.gone.long += late
	}
	c.looked, c.woke = now+waited, awake+waited
}

// away is all up to now: a clock that is overdue is waited for. Without a clock it is nothing.
func (c *clock) away() away {
	if c == nil {
		return away{}
	}
	for {
		c.mu.Lock()
		gone, overdue := c.gone, !c.ended && c.now()-c.looked >= lookEvery+leastAway
		c.mu.Unlock()
		if !overdue {
			return gone
		}
		c.sleep(lookEvery / 10)
	}
}

// watchClock starts the runner's clock, unless it has one, and returns what ends it.
func (r *Runner) watchClock(ctx context.Context) (end func()) {
	if r.clock != nil || r.Unwatched {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	r.clock = startClock(ctx)
	return func() {
		cancel()
		r.clock = nil
	}
}

// held does work whose figures and findings are held back until release, and returns how long the
// harness was away meanwhile.
func (r *Runner) held(work func() error) (away, error) {
	from := r.clock.away()
	r.Recorder.Hold()
	err := work()
	return r.clock.away().since(from), err
}

// release takes in what was held, with what is to be known of it.
func (r *Runner) release(now, before away) {
	var marks []results.Status
	switch {
	case now.times > 0:
		marks = append(marks, now.status(results.StatusAway))
	case before.times > 0:
		marks = append(marks, before.status(results.StatusRepeated))
	}
	r.Recorder.Release(true, marks...)
}

// attempt does work whose figures and findings belong together. Where the harness was away
// meanwhile they are forgotten, and the work is done once more; if it was away then as well, they
// are kept and marked.
func (r *Runner) attempt(ctx context.Context, label string, work func() error) error {
	first, err := r.held(work)
	if first.times == 0 || ctx.Err() != nil {
		r.release(first, away{})
		return err
	}
	r.Recorder.Release(false)
	r.tellAway(label, first)
	again, err := r.held(work)
	r.release(again, first)
	return err
}

// Again is the key under which an Observer is told that work is done once more, and why.
const Again = "again"

func (r *Runner) tellAway(label string, gone away) {
	r.Observer.Scenario(label, described(Again, fmt.Sprintf("once more, since relaybench itself did not run for %v", gone.long.Round(lookEvery))))
}

// pass is one boot of a relay for one trial. A scenario builds on what those before it left in the
// relay. So where one has to be done again, the whole trial is run again, and only the figures of
// that scenario are taken from the second pass.
type pass struct {
	last   bool   // what goes wrong in it is kept, and marked
	before []away // by scenario: in the pass before, nil where there was none
	missed []away // by scenario: in this one
}

// was is how long the harness was away during a scenario in the pass before.
func (p *pass) was(i int) (gone away) {
	if p.before != nil {
		gone = p.before[i]
	}
	return gone
}

// wants reports whether the figures of any scenario from one up to another are taken from the pass.
func (p *pass) wants(from, to int) bool {
	return from < to && (p.before == nil || anyAway(p.before[from:to]))
}

// repeatFrom marks the scenarios from one on as to be done again: the relay failed while the
// harness was away.
func (p *pass) repeatFrom(from int, gone away) {
	for i := from; i < len(p.missed) && !p.last; i++ {
		p.missed[i] = gone
	}
}

// needsAnother reports whether a scenario has to be done again.
func (p *pass) needsAnother() bool { return anyAway(p.missed) }

func anyAway(all []away) bool {
	return slices.ContainsFunc(all, func(a away) bool { return a.times > 0 })
}

// passes runs one trial, and runs it again where the harness was away during a part of it. A relay
// that runs already cannot be given the corpus anew, and has one pass.
func (r *Runner) passes(ctx context.Context, t *scheduled) error {
	n := len(t.scenarios)
	p := &pass{last: t.relays[0].Definition.External() && !r.ReadOnly, missed: make([]away, n)}
	err := r.pass(ctx, t, p)
	if !p.needsAnother() || ctx.Err() != nil || r.unsaved != nil {
		return err
	}
	var all away
	for _, gone := range p.missed {
		all.long += gone.long
	}
	r.tellAway(t.label(), all)
	return r.pass(ctx, t, &pass{last: true, before: p.missed, missed: make([]away, n)})
}
