package scenarios

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/fetch"
	"relaybench/harness/measure"
	"relaybench/relays"
)

// FetchOptions say what is fetched and how.
type FetchOptions struct {
	fetch.Options
	Filter corpus.Filter
}

// Fetch downloads what the relay holds by one strategy, in every setting and form, and never publishes.
type Fetch struct {
	strategy fetch.Strategy
	options  *FetchOptions
	shared   *fetchShared
}

// Fetches returns the strategies. They learn from one another what a relay holds that nobody knows: paging comes first.
func Fetches(o FetchOptions) []harness.Scenario {
	shared := new(fetchShared)
	var all []harness.Scenario
	for _, s := range fetch.Strategies() {
		all = append(all, &Fetch{s, &o, shared})
	}
	return all
}

// FetchFamily begins the keys of all its scenarios.
const FetchFamily = "fetch"

// Describe implements harness.Scenario.
func (f *Fetch) Describe() harness.Description {
	return harness.Description{Key: FetchFamily + "." + string(f.strategy), Title: "download: " + f.strategy.Title(), Needs: harness.Loaded}
}

// Bulk says that relays are measured in their bulk form.
func (*Fetch) Bulk() {}

// fetchShared is what the strategies know in common of the relay that is being measured.
type fetchShared struct {
	mu     sync.Mutex
	relay  *relays.Process
	target *fetch.Target
	dead   string // why nothing more can be measured on it
}

// of returns the target that a trial's relay is.
func (s *fetchShared) of(ctx context.Context, t *harness.Trial, o *FetchOptions) (*fetch.Target, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.relay == t.Relay {
		return s.target, nil
	}
	ground, err := groundOf(t, o.Filter)
	if err != nil {
		return nil, err
	}
	target := &fetch.Target{URL: t.Relay.URL(), Filter: o.Filter, Ground: ground, Limits: limitsOf(ctx, t.Relay)}
	if !t.Relay.External() {
		target.Process = t.Relay
	}
	s.relay, s.target, s.dead = t.Relay, target, ""
	return target, nil
}

// groundOf is what a relay must send: all that it acknowledged, or, where it was not given the corpus here, at least the corpus.
func groundOf(t *harness.Trial, filter corpus.Filter) (*fetch.Ground, error) {
	switch {
	case t.Corpus == nil:
		return fetch.Unknown(t.Now), nil
	case t.Relay.External():
		return fetch.FromCorpus(t.Model, filter, true, t.Now), nil
	case t.Ledger.Count(harness.Accepted)+t.Ledger.Count(harness.Duplicate) == t.Corpus.Len():
		return fetch.FromCorpus(t.Model, filter, false, t.Now), nil
	}
	m, err := corpus.NewModel(t.Corpus, t.Ledger.Acknowledged, t.Now)
	if err != nil {
		return nil, fmt.Errorf("computing what the relay must hold: %w", err)
	}
	return fetch.FromCorpus(m, filter, false, t.Now), nil
}

// limitsOf joins what the relay's definition declares with what its information document says (NIP-11): a polite client keeps to both.
func limitsOf(ctx context.Context, p *relays.Process) fetch.Limits {
	declared, told := p.Definition().Limits, harness.Inform(ctx, p.URL())
	l := fetch.Limits{Subscriptions: declared.Subscriptions, Events: declared.FilterLimit, From: "its definition says"}
	lower := func(limit *int, other int) {
		if other > 0 && (*limit == 0 || other < *limit) {
			*limit = other
			l.From = "its information document (NIP-11) says"
		}
	}
	lower(&l.Subscriptions, told.MaxSubscriptions)
	lower(&l.Events, told.MaxLimit)
	return l
}

// Run implements harness.Scenario. A cell that fails is a result like any other; the error says that the relay is gone.
func (f *Fetch) Run(ctx context.Context, t *harness.Trial) error {
	target, err := f.shared.of(ctx, t, f.options)
	if err != nil {
		return err
	}
	o := f.options.Options
	o.Now = t.Now
	cells := o.Cells(f.strategy)
	var raw *fetch.Result
	for i, c := range cells {
		var r *fetch.Result
		if f.shared.dead != "" {
			r = &fetch.Result{Cell: c, NA: f.shared.dead}
		} else {
			r = c.Run(ctx, target, &o)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.Unreachable() {
			f.shared.dead = "given up before: " + r.Err.Error()
		}
		recordFetch(t, r, raw)
		raw = nil
		if !c.Form.Parsed {
			raw = r
		}
		t.Progress(i+1, len(cells))
	}
	if f.shared.dead != "" {
		return fmt.Errorf("%s", f.shared.dead)
	}
	return nil
}

// recordFetch records a cell. raw is the same one without verification, where this one verifies.
func recordFetch(t *harness.Trial, r, raw *fetch.Result) {
	cell := t.Under(FetchFamily + "." + r.Key())
	if r.NA != "" {
		cell.Measure(measure.Measurement{Metric: fetchRate, Unit: "events/s", Better: measure.Higher, Note: r.NA})
		return
	}
	share, pace, tested := fetch.Discriminate(raw, r)
	for _, m := range r.Account.Measurements() {
		if m.Metric == fetchRate && tested && (pace == fetch.ByClient || pace == fetch.ByHarness) {
			m.Note = strings.TrimPrefix(m.Note+"; "+harness.LimitedByHarness, "; ")
		}
		cell.Measure(m)
	}
	value := func(metric, unit string, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			cell.Measure(r.Mark(measure.Measurement{Metric: metric, Unit: unit, Better: measure.None, Trials: []float64{v}}))
		}
	}
	const megabyte = 1e6
	if r.Wall > 0 {
		value("MB/s", "MB/s", float64(r.Stats.FrameBytes)/megabyte/r.Wall.Seconds())
	}
	if tested {
		cell.Measure(measure.Measurement{Metric: "parsed of raw", Unit: "%", Better: measure.None, Trials: []float64{100 * share}, Note: string(pace)})
	}
	if h := r.Stats.Latency; h.Count() > 0 {
		m := measure.Measurement{Metric: "request latency", Unit: "ms", Better: measure.None, Trials: []float64{harness.Milliseconds(h.Quantile(0.5))}, Samples: h.Count()}
		if m.SetHistogram(h) == nil {
			cell.Measure(r.Mark(m))
		}
		value("in flight by Little's law", "requests", r.InFlightMeant())
		value("in flight configured", "requests", float64(r.Configured()))
	}
	if r.Stats.FirstEvent > 0 {
		value("first event", "ms", harness.Milliseconds(r.Reconcile+r.Stats.FirstEvent))
	}
	value("duplicates", "events", float64(r.Duplicates))
	value("unasked", "events", float64(r.Strangers))
	if r.Strategy == fetch.ByID || r.Strategy == fetch.Negentropy {
		value("retried", "ids", float64(r.Retried))
		value("failed", "ids", float64(r.Failed))
	}
	if r.Strategy == fetch.Negentropy {
		value("reconcile", "ms", harness.Milliseconds(r.Reconcile))
		value("rounds", "rounds", float64(r.Rounds))
	}
	if r.Form.Parsed {
		value("refused", "events", float64(r.Refused))
	}
	if x := r.Overfetch(); x > 0 {
		value("overfetch", "bytes/byte", x)
	}
	value("tool share", "%", 100*r.ToolShare())
	if u := r.Usage; u != nil && r.Delivered > 0 {
		value("tool cpu per event", "us", float64(u.Tool.CPU.Microseconds())/float64(r.Delivered))
	}
	for _, s := range r.Steps {
		value(fmt.Sprintf("with %d in flight", s.InFlight), "events/s", s.Rate)
	}
	findFetch(t, r)
}

// fetchRate is the metric that a cell stands for.
const fetchRate = "records/s"

// findFetch keeps the verdict on a cell under its strategy.
func findFetch(t *harness.Trial, r *fetch.Result) {
	if f, ok := r.Account.Finding(); ok {
		if !f.OK {
			f.Evidence = append(f.Evidence, r.Key()+": "+f.Detail)
		}
		t.Find(f)
	}
	if !t.Relay.External() {
		t.Find(measure.Finding{Check: "sends nothing else", OK: r.Strangers == 0, Required: true,
			Detail: fmt.Sprintf("%s: %d events came that were not asked for", r.Key(), r.Strangers)})
	}
}
