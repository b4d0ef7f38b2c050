package harness

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/harness/measure"
	"relaybench/relays"
)

// Names of the figures, as they stand in the record. Those over several connections end as OverConnections says.
const (
	ClockResolution = "clock resolution"
	ClockRead       = "reading the clock"
	RecordCost      = "recording in a histogram"
	ChecksOneCore   = "signature checks, one core"
	ChecksAllCores  = "signature checks, all cores"
	EventsParsed    = "events parsed (JSON)"
	FramesScanned   = "EVENT frames scanned for their id"
	HexEncoded      = "NEG messages written as digits"
	HexDecoded      = "NEG messages read from digits"
	SyncMedian      = "fsync p50"
	SyncTail        = "fsync p99"
	EchoMedian      = "loopback echo p50"
	EchoTail        = "loopback echo p99"
	LateMedian      = "1 ms timer late under load p50"
	LateTail        = "1 ms timer late under load p99"
	CeilingPublish  = "null relay, EVENT to OK"
	CeilingReceive  = "null relay, EVENT frames received"
	CostPublish     = "harness CPU per published event"
)

// OverConnections is the name of a ceiling that was reached over so many connections.
func OverConnections(ceiling string, connections int) string {
	if connections == 1 {
		return ceiling + ", 1 connection"
	}
	return fmt.Sprintf("%s, %d connections", ceiling, connections)
}

// CalibrationStep stands for the calibration among what --only and --skip choose from. It is no scenario: it comes before everything else, once.
type CalibrationStep struct{}

// Describe implements Described.
func (CalibrationStep) Describe() Description {
	return Description{Key: "calibration", Title: "what no figure can go beyond here"}
}

// A Calibrator measures the harness itself on this machine, against a relay that does no work: what a real relay's figures must stay well below
// to be the relay's own.
type Calibrator struct {
	Null     *Contender // the null relay; nil where it is not at hand, which leaves out what needs it
	Settings relays.Settings
	Corpus   *corpus.Corpus
	Options  Options
	Full     bool              // half a minute instead of two seconds, over 1, 4 and 16 connections instead of those that a run uses
	Progress func(what string) // may be nil

	effort  effort
	figures []measure.Calibration
}

// effort is how much is spent on the figures.
type effort struct {
	rounds   int           // of a rate, of which the best counts: a ceiling is what can be reached
	checks   time.Duration // for each round of signature checks
	coding   time.Duration // for each round of parsing and the like
	load     time.Duration // for each round against the null relay
	late     time.Duration // for watching a timer under load
	echoes   int
	syncs    int
	syncTime time.Duration // the most to spend on them
}

var (
	briefly    = effort{rounds: 2, checks: 80 * time.Millisecond, coding: 20 * time.Millisecond, load: 120 * time.Millisecond, late: 300 * time.Millisecond, echoes: 1000, syncs: 100, syncTime: 200 * time.Millisecond}
	thoroughly = effort{rounds: 5, checks: 400 * time.Millisecond, coding: 200 * time.Millisecond, load: 500 * time.Millisecond, late: 3 * time.Second, echoes: 20_000, syncs: 1000, syncTime: 5 * time.Second}
)

// Run measures. With an error come the figures that there were before it.
func (c *Calibrator) Run(ctx context.Context) ([]measure.Calibration, error) {
	c.effort, c.figures = briefly, nil
	if c.Full {
		c.effort = thoroughly
	}
	if c.Corpus.Len() == 0 {
		return nil, fmt.Errorf("calibrating: the corpus is empty")
	}
	type step struct {
		what string
		run  func(context.Context) error
	}
	steps := []step{
		{"the clock", c.clock},
		{"signature checks", c.checks},
		{"parsing and coding", c.coding},
		{"the disk", c.disk},
		{"the null relay", c.null},
	}
	if c.Full { // no figure of a run depends on it
		steps = slices.Insert(steps, 3, step{"the receive path", c.receivePath})
	}
	for _, s := range steps {
		if ctx.Err() != nil {
			return c.figures, context.Cause(ctx)
		}
		c.say(s.what)
		if err := s.run(ctx); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return c.figures, fmt.Errorf("calibrating %s: %w", s.what, err)
		}
	}
	return c.figures, nil
}

func (c *Calibrator) say(what string) {
	if c.Progress != nil {
		c.Progress(what)
	}
}

func (c *Calibrator) add(name string, value float64, unit string) {
	c.figures = append(c.figures, measure.Calibration{Name: name, Value: value, Unit: unit})
}

// latency adds the median and the tail of a histogram.
func (c *Calibrator) latency(median, tail string, h *measure.Histogram) {
	if h.Count() == 0 {
		return
	}
	c.add(median, Milliseconds(h.Quantile(0.5)), "ms")
	c.add(tail, Milliseconds(h.Quantile(0.99)), "ms")
}

// best measures a rate several times and returns the highest.
func (c *Calibrator) best(rate func() (float64, error)) (best float64, err error) {
	for range c.effort.rounds {
		r, err := rate()
		if err != nil {
			return 0, err
		}
		best = max(best, r)
	}
	return best, nil
}

// connections returns over how many connections each ceiling is sought, ascending.
func (c *Calibrator) connections() (publishing, asking []int) {
	if c.Full {
		publishing = []int{1, 4, 16}
		return publishing, publishing
	}
	publishing = []int{1, max(1, c.Options.Publishers)} // what is carried from relay to relay goes over one
	slices.Sort(publishing)
	return slices.Compact(publishing), []int{max(1, c.Options.QueryConns)}
}

// null measures what needs the null relay.
func (c *Calibrator) null(ctx context.Context) error {
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
	publishing, asking := c.connections()
	for _, n := range publishing {
		if err := c.publishing(ctx, url, n); err != nil {
			return err
		}
	}
	for _, n := range asking {
		rate, err := c.best(func() (float64, error) { return c.receive(ctx, url, n) })
		if err != nil {
			return err
		}
		c.add(OverConnections(CeilingReceive, n), rate, "events/s")
	}
	return c.late(ctx, url, 2*runtime.GOMAXPROCS(0))
}
