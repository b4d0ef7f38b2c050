package scenarios

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/fetch"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/client"
	"relaybench/results"
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
	d := harness.Description{Bulk: true, Needs: harness.Loaded, External: results.Finding{Cause: results.ExternalBulk}, Scenario: results.Scenario{
		Key: FetchFamily + "." + string(f.strategy), Title: string(f.strategy) + ": " + f.strategy.Title(), Section: sectionFetch,
		Order: orderFetch + slices.Index(fetch.Strategies(), f.strategy), Primary: fetchRate, Unit: "events/s", Layout: results.LayoutDownloads, Ceiling: results.CeilingDownload, Uses: f.strategy.Uses(),
	}, Labels: results.Labels{results.LabelStrategy: string(f.strategy)}, Metrics: fetchMetrics}
	switch f.strategy {
	case fetch.Giant:
		d.Headlines = []results.Headline{{Metric: fetchRate, Title: "giant REQ", Labels: results.Labels{results.LabelForm: "raw"}}}
	case fetch.Paged:
		d.Headlines = []results.Headline{{Metric: fetchRate, Title: "paged REQs", Labels: results.Labels{results.LabelForm: "raw"}}}
	}
	return d
}

// fetchShared is what the strategies know in common of the relay that is being measured.
type fetchShared struct {
	relay  *relays.Process
	target *fetch.Target
	dead   results.Reason // why nothing more can be measured on it
}

// of returns the target that a trial's relay is.
func (s *fetchShared) of(ctx context.Context, t *harness.Trial, o *FetchOptions) (*fetch.Target, error) {
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
	s.relay, s.target, s.dead = t.Relay, target, results.Reason{}
	if t.Corpus == nil || t.Relay.External() {
		return target, nil
	}
	// What comes late is given its time before anything is timed, and what does not is lost.
	if _, _, err := checkStored(ctx, t, true); ctx.Err() == nil && err != nil {
		t.Find(results.Finding{Code: results.CodeAcknowledgedKept, Verdict: results.Undecided, Texts: map[string]string{"error": err.Error()}})
	}
	return target, nil
}

// groundOf is what a relay must send: all that it acknowledged, or, where it was not given the corpus here, at least the corpus.
func groundOf(t *harness.Trial, filter corpus.Filter) (*fetch.Ground, error) {
	switch {
	case t.Corpus == nil:
		return fetch.Unknown(t.Now), nil
	case t.Relay.External():
		return fetch.FromCorpus(t.Model, filter, true, t.Now), nil
	case t.Ledger.Count(load.Accepted)+t.Ledger.Count(load.Duplicate) == t.Corpus.Len():
		return fetch.FromCorpus(t.Model, filter, false, t.Now), nil
	}
	m, err := model.New(t.Corpus, t.Ledger.Acknowledged, t.Now)
	if err != nil {
		return nil, fmt.Errorf("computing what the relay must hold: %w", err)
	}
	return fetch.FromCorpus(m, filter, false, t.Now), nil
}

// limitsOf joins what the relay's definition declares with what its information document says (NIP-11): a polite client keeps to both.
func limitsOf(ctx context.Context, p *relays.Process) fetch.Limits {
	said, _ := client.Inform(ctx, p.URL(), harness.InformWithin)
	declared, told := p.Definition().Limits, said.Limits
	l := fetch.Limits{Limits: client.Limits{Subscriptions: declared.Subscriptions, Events: declared.FilterLimit}, From: results.LimitsDeclared}
	lower := func(limit *int, other int) {
		if other > 0 && (*limit == 0 || other < *limit) {
			*limit = other
			l.From = results.LimitsTold
		}
	}
	lower(&l.Subscriptions, told.Subscriptions)
	lower(&l.Events, told.Events)
	return l
}

// Run implements harness.Scenario. A cell that fails is a result like any other; the error says that the relay is gone.
func (f *Fetch) Run(ctx context.Context, t *harness.Trial) error {
	target, err := f.shared.of(ctx, t, f.options)
	if err != nil {
		return err
	}
	o := f.options.Options
	o.Now, o.Budget = t.Now, t.Budget
	cells := o.Cells(f.strategy)
	var raw *fetch.Result
	for i, c := range cells {
		var r *fetch.Result
		if !f.shared.dead.None() {
			r = &fetch.Result{Cell: c, NA: f.shared.dead}
		} else {
			d := f.Describe()
			d.Labels = d.Labels.With(c.Labels())
			timed := t.Under(d)
			if r = c.Run(ctx, target, &o); r.NA.None() {
				timed.OwnPart()
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.Unreachable() {
			f.shared.dead = results.Said(results.CauseGivenUp, r.Err.Error())
		}
		recordFetch(t, r, raw)
		if r.NA.None() && r.Completeness() == load.Complete {
			t.Budget.Took(r.Delivered, r.Wall)
		}
		raw = nil
		if !c.Form.Parsed {
			raw = r
		}
		t.Progress(i+1, len(cells))
	}
	if !f.shared.dead.None() {
		return fmt.Errorf("given up: %s", f.shared.dead.Texts["text"])
	}
	return nil
}

// recordFetch records a cell. raw is the same one without verification, where this one verifies.
func recordFetch(t *harness.Trial, r, raw *fetch.Result) {
	labels := r.Labels()
	record := func(m results.Measurement) {
		m.Labels = labels.With(m.Labels)
		t.Measure(m)
	}
	if !r.NA.None() {
		record(results.Measurement{Metric: fetchRate, Unit: "events/s", Better: results.Higher,
			Status: []results.Status{{Code: results.StatusNotMeasured, Cause: r.NA.Code, Counts: r.NA.Counts, Texts: r.NA.Texts}}})
		return
	}
	share, pace, tested := fetch.Discriminate(raw, r)
	for _, m := range r.Account.Measurements() {
		if m.Metric == fetchRate && tested && (pace == fetch.ByClient || pace == fetch.ByHarness) {
			m.AddStatus(results.Status{Code: results.StatusLimited, Cause: results.CauseCPU})
		}
		record(m)
	}
	value := func(metric, unit string, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			record(r.Mark(results.Measurement{Metric: metric, Unit: unit, Better: results.None, Trials: []float64{v}}))
		}
	}
	const megabyte = 1e6
	value("MB/s", "MB/s", float64(r.Stats.FrameBytes)/megabyte/r.Wall.Seconds())
	if tested {
		record(results.Measurement{Metric: "parsed of raw", Unit: "%", Better: results.None, Trials: []float64{100 * share}, Status: []results.Status{{Code: results.StatusPace, Cause: string(pace)}}})
	}
	if h := r.Stats.Latency; h.Count() > 0 {
		m := results.Measurement{Metric: "request latency", Unit: "ms", Better: results.None, Trials: []float64{harness.Milliseconds(h.Quantile(0.5))}, Samples: h.Count()}
		if m.SetHistogram(h) == nil {
			record(r.Mark(m))
		}
		value("in flight by Little's law", "requests", r.InFlightMeant())
		value("in flight configured", "requests", float64(r.Configured()))
	}
	if r.Stats.FirstEvent > 0 {
		value("first event", "ms", harness.Milliseconds(r.Reconcile+r.Stats.FirstEvent))
	}
	value("duplicates", "events", float64(r.Duplicates))
	value("unasked", "events", float64(r.Strangers))
	value(lostConnections, "connections", float64(r.Stats.Lost))
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
	if u := r.Usage; u != nil {
		value("tool cpu per event", "us", float64(u.Tool.CPU.Microseconds())/float64(r.Delivered))
	}
	for _, s := range r.Steps {
		record(r.Mark(results.Measurement{Metric: "step", Unit: "events/s", Better: results.None, Trials: []float64{s.Rate},
			Labels: results.Labels{results.LabelStep: strconv.Itoa(s.InFlight)}}))
	}
	findFetch(t, r)
}

// lostConnections is the metric of those that broke in mid-transfer, though all may have come.
const lostConnections = "connections lost"

// fetchRate is the metric that a cell stands for.
const fetchRate = "records/s"

// findFetch keeps the verdict on a cell.
func findFetch(t *harness.Trial, r *fetch.Result) {
	labels := r.Labels()
	if f, ok := r.Account.Finding(); ok {
		f.Labels = labels
		t.Find(f)
	}
	if r.Strategy == fetch.Negentropy && r.Named > 0 {
		named := results.Finding{Code: results.CodeReturnsNamed, Labels: labels, Verdict: results.Holds(r.Unreturned == 0), Counts: counts("missing", r.Unreturned, "of", r.Named)}
		if t.Relay.External() && r.Unreturned < r.Named { // others may have had it delete the rest meanwhile
			named.Verdict = results.States(r.Unreturned == 0)
		}
		t.Find(named)
		if r.Invented > 0 || !t.Relay.External() {
			t.Find(results.Finding{Code: results.CodeOnlyKnown, Labels: labels, Verdict: results.Holds(r.Invented == 0), Counts: counts("ids", r.Invented)})
		}
	}
	if r.LeftOut > 0 {
		t.Find(results.Finding{Code: results.CodeSendsHeld, Labels: labels, Verdict: results.Failed, Counts: counts("left out", r.LeftOut)})
	}
	if r.Stats.Lost > 0 {
		unfinished := hungUp(r.Stats)
		if t.Relay.External() { // there is a network in between
			unfinished = 0
		}
		f := connections(r.Stats.Lost, unfinished, r.Stats.Loss)
		f.Labels = labels
		t.Find(f)
	}
	if r.Stats.Malformed.Count > 0 {
		findGarbage(t, r.Stats.Malformed)
	}
	// One that others use may send what is new until it has read the CLOSE.
	strangers, elsewhere := r.Strangers, int(r.Stats.Elsewhere)
	if t.Relay.External() {
		strangers = elsewhere
	}
	t.Find(results.Finding{Code: results.CodeOnlyRequested, Labels: labels, Verdict: results.Holds(strangers+r.Again == 0),
		Counts: counts("events", strangers, "elsewhere", elsewhere, "duplicates", r.Again)})
}
