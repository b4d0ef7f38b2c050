// Package calibrate measures the harness itself on this machine: the stage of a run whose figures
// all others are held against.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/relays"
	"relaybench/results"
)

// Key is that of the stage, which comes before everything else.
const Key = "calibration"

// A Stage measures the harness itself on this machine, against a relay that does no work: what a
// real relay's figures must stay well below to be the relay's own.
type Stage struct {
	Null     *harness.Target // the null relay; nil where it is not at hand, which leaves out what needs it
	Settings relays.Settings
	Corpus   *corpus.Corpus
	Options  harness.Options
	Full     bool              // half a minute instead of two seconds, over 1, 4 and 16 connections instead of those that a run uses
	After    bool              // the run is over: only what its marks rest on, once more
	Progress func(what string) // may be nil

	effort  effort
	figures []results.Calibration
}

// effort is how much is spent on the figures.
type effort struct {
	rounds   int           // of a rate, of which the best counts: a ceiling is what can be reached
	checks   time.Duration // for each round of signature checks
	coding   time.Duration // for each round of parsing and the like
	load     time.Duration // for each round against the null relay
	longest  time.Duration // for a round of any of them, where shorter ones brought nothing
	late     time.Duration // for watching a timer under load
	echoes   int
	syncs    int
	syncTime time.Duration // the most to spend on them
}

var (
	briefly    = effort{rounds: 2, checks: 80 * time.Millisecond, coding: 20 * time.Millisecond, load: 120 * time.Millisecond, longest: 4 * time.Second, late: 300 * time.Millisecond, echoes: 1000, syncs: 100, syncTime: 200 * time.Millisecond}
	thoroughly = effort{rounds: 5, checks: 400 * time.Millisecond, coding: 200 * time.Millisecond, load: 500 * time.Millisecond, longest: 8 * time.Second, late: 3 * time.Second, echoes: 20_000, syncs: 1000, syncTime: 5 * time.Second}
)

// Run measures. With an error come the figures that there were before it.
func (c *Stage) Run(ctx context.Context) ([]results.Calibration, error) {
	c.effort, c.figures = briefly, nil
	if c.Full {
		c.effort = thoroughly
	}
	if c.Corpus.Len() == 0 {
		return nil, errors.New("calibrating: the corpus is empty")
	}
	for _, s := range []struct {
		what    string
		skipped bool
		run     func(context.Context) error
	}{
		{"the clock", c.After, c.clock},
		{"signature checks", c.After, c.checks},
		{"parsing and coding", c.After, c.coding},
		{"the receive path", !c.Full || c.After, c.receivePath}, // no figure of a run depends on it
		{"the disk", c.After, c.disk},
		{"the null relay", false, c.null},
	} {
		switch {
		case s.skipped:
			continue
		case ctx.Err() != nil:
			return c.figures, context.Cause(ctx)
		case c.Progress != nil:
			c.Progress(s.what)
		}
		if err := s.run(ctx); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return c.figures, fmt.Errorf("calibrating %s: %w", s.what, err)
		}
	}
	return c.figures, nil
}

func (c *Stage) add(name string, value float64, unit string) { c.addOver(name, 0, value, unit) }

// addOver adds a figure that was reached over so many connections, 0 for none.
func (c *Stage) addOver(name string, connections int, value float64, unit string) {
	var labels results.Labels
	if connections > 0 {
		labels = results.Labels{results.LabelConnections: strconv.Itoa(connections)}
	}
	if c.After {
		labels = labels.With(results.AfterRun)
	}
	c.figures = append(c.figures, results.Calibration{Name: name, Labels: labels, Value: value, Unit: unit})
}

// latency adds the median and the tail of a histogram.
func (c *Stage) latency(median, tail string, h *results.Histogram) {
	if h.Count() > 0 {
		c.add(median, harness.Milliseconds(h.Quantile(0.5)), "ms")
		c.add(tail, harness.Milliseconds(h.Quantile(0.99)), "ms")
	}
}

// stall is how long the null relay may make no progress. It is no relay under test: a short
// --timeout is not meant for it.
func (c *Stage) stall() time.Duration { return max(c.Options.Stall, c.effort.longest) }

// rate is a figure that is measured in rounds of about d.
type rate struct {
	name, unit string
	d          time.Duration
	measure    func(d time.Duration) (float64, error)
}

// rates measures figures one after another.
func (c *Stage) rates(ctx context.Context, all ...rate) error {
	for _, r := range all {
		best, err := c.best(ctx, r.name, r.d, r.measure)
		if err != nil {
			return err
		}
		c.add(r.name, best, r.unit)
	}
	return nil
}

// best measures a rate several times, in rounds of about d, and returns the highest. While nothing
// at all gets done in a round, since the machine is busy with something else, the next one is twice
// as long.
func (c *Stage) best(ctx context.Context, what string, d time.Duration, rate func(d time.Duration) (float64, error)) (best float64, err error) {
	for round := 0; round < c.effort.rounds; {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		r, err := rate(d)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%s: %w", what, err)
		case r > 0 || best > 0: // nothing after something: it works, and was held up
			round++
		case 2*d > c.effort.longest:
			return 0, fmt.Errorf("%s: nothing was done in %v; stop what else keeps this machine busy, and measure again", what, d)
		default:
			d *= 2
		}
		best = max(best, r)
	}
	return best, nil
}

// null measures what needs the null relay.
func (c *Stage) null(ctx context.Context) error {
	if c.Null == nil {
		return nil
	}
	process, err := relays.Start(ctx, c.Null.Definition, c.Null.Program, c.Settings)
	if err != nil {
		return err
	}
	defer func() {
		process.Stop(context.WithoutCancel(ctx))
		process.Cleanup()
	}()
	url := process.URL()
	if err := c.echo(ctx, url); err != nil {
		return err
	}
	// What is carried from relay to relay goes over one connection.
	publishing, asking := []int{1, max(1, c.Options.Publishers)}, []int{max(1, c.Options.QueryConns)}
	if c.Full {
		publishing, asking = []int{1, 4, 16}, []int{1, 4, 16}
	}
	for _, n := range slices.Compact(publishing) {
		if err := c.publishing(ctx, url, n); err != nil {
			return err
		}
	}
	for _, n := range asking {
		what := results.CeilingReceive + over(n)
		rate, err := c.best(ctx, what, c.effort.load, func(d time.Duration) (float64, error) { return c.receive(ctx, url, n, d) })
		if err != nil {
			return err
		}
		c.addOver(results.CeilingReceive, n, rate, "events/s")
	}
	if c.After {
		return nil
	}
	return c.late(ctx, url, 2*runtime.GOMAXPROCS(0))
}

// over says in an error over how many connections something was tried.
func over(connections int) string {
	if connections == 1 {
		return " over 1 connection"
	}
	return fmt.Sprintf(" over %d connections", connections)
}
