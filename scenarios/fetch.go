package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/client"
	"relaybench/results"
)

// FetchOptions say what is fetched and how.
type FetchOptions struct {
	Filter corpus.Filter // what is fetched; without a limit
	Time   time.Duration // a cell takes so long at most; 0: as long as the Budget allows
	Events int           // a cell takes so many events at most; 0: all
	Page   int           // events asked for in a page
	Shards int           // connections of the sharded strategies
	Full   bool          // the whole matrix, not a part of it
	// Adaptive adds cells that find the number of REQs in flight by themselves.
	Adaptive bool

	stall  time.Duration // of the trial: without progress for so long, a connection is given up
	budget *load.Budget
}

// fetchStrategy is a way to ask for many events.
type fetchStrategy string

// The strategies, as they stand in scenario keys.
const (
	fetchGiant        fetchStrategy = "giant"
	fetchPaged        fetchStrategy = "paged"
	fetchShardedGiant fetchStrategy = "sharded-giant"
	fetchShardedPaged fetchStrategy = "sharded-paged"
	fetchByID         fetchStrategy = "by-id"
	fetchByName       fetchStrategy = "negentropy"
)

// fetchStrategies lists all, in the order in which they are measured, with the conditions of a
// filter (NIP-01) that each needs a relay to keep.
var fetchStrategies = []struct {
	fetchStrategy
	title, headline string
	uses            []string
}{
	{fetchPaged, "page by page", "paged REQs", []string{results.UsesUntil, results.UsesLimit, results.UsesOrder}},
	{fetchGiant, "one REQ for everything", "giant REQ", []string{results.UsesLimit}},
	{fetchShardedGiant, "one REQ on each of several connections, by time", "",
		[]string{results.UsesSince, results.UsesUntil, results.UsesLimit}},
	{fetchShardedPaged, "pages on several connections, by time", "",
		[]string{results.UsesSince, results.UsesUntil, results.UsesLimit, results.UsesOrder}},
	{fetchByID, "by id, in batches", "", []string{results.UsesIDs}},
	{fetchByName, "the ids by reconciliation, then by id", "", []string{results.UsesIDs}},
}

// giants reports whether the strategy asks once, for all.
func (s fetchStrategy) giants() bool { return s == fetchGiant || s == fetchShardedGiant }

// byIDs reports whether the strategy asks by id.
func (s fetchStrategy) byIDs() bool { return s == fetchByID || s == fetchByName }

// fetchForm says what is done with what comes, and how it comes.
type fetchForm struct {
	parsed  bool // every event is parsed, its id recomputed and its signature verified; else its id is found and counted
	deflate bool // permessage-deflate is offered (RFC 7692)
}

var fetchForms = []fetchForm{{}, {parsed: true}, {deflate: true}, {parsed: true, deflate: true}}

// fetchCell is one way to fetch with all its settings: what one figure stands for.
type fetchCell struct {
	strategy fetchStrategy
	form     fetchForm
	conns    int // connections
	inFlight int // REQs at a time on each, by id
	batch    int // ids in one REQ
	adaptive bool
	matrix   bool // one of many that differ in conns, inFlight and batch
}

// labels are the cell's settings as its figures carry them. Settings that a strategy has no choice
// of are left out.
func (c *fetchCell) labels() results.Labels {
	l := results.Labels{results.LabelStrategy: string(c.strategy), results.LabelForm: "raw"}
	if c.form.parsed {
		l[results.LabelForm] = "parsed"
	}
	if c.form.deflate {
		l[results.LabelEncoding] = "deflate"
	}
	if c.matrix || c.adaptive {
		l[results.LabelConnections], l[results.LabelBatch] = strconv.Itoa(c.conns), strconv.Itoa(c.batch)
		l[results.LabelInFlight] = strconv.Itoa(c.inFlight)
		if c.adaptive {
			l[results.LabelInFlight] = "adaptive"
		}
	}
	return l
}

// mostInFlight is where growing ends.
const mostInFlight = 20

// cells lists what a strategy is measured in: each setting in every form, side by side, so that
// they compare. By id, settings are tried out in every combination.
func (o *FetchOptions) cells(s fetchStrategy) (all []fetchCell) {
	var settings []fetchCell
	few := []int{1, 4}
	switch s {
	case fetchGiant, fetchPaged:
		settings = append(settings, fetchCell{conns: 1, inFlight: 1})
	case fetchShardedGiant, fetchShardedPaged:
		settings = append(settings, fetchCell{conns: max(1, o.Shards), inFlight: 1})
	case fetchByName:
		settings = append(settings, fetchCell{conns: 4, inFlight: 8, batch: 250})
	case fetchByID:
		manyConns, manyInFlight, batches := few, []int{1, 8}, []int{50, 250}
		if o.Full {
			manyConns, manyInFlight, batches = []int{1, 2, 4, 8, 16}, []int{1, 4, 8, 16, 20}, []int{50, 125, 250}
		}
		for _, batch := range batches {
			for _, conns := range manyConns {
				for _, inFlight := range manyInFlight {
					settings = append(settings, fetchCell{conns: conns, inFlight: inFlight, batch: batch, matrix: true})
				}
			}
		}
		for _, conns := range few {
			if o.Adaptive {
				settings = append(settings, fetchCell{conns: conns, inFlight: mostInFlight, batch: 125, adaptive: true})
			}
		}
	}
	for _, c := range settings {
		for _, form := range fetchForms {
			c.strategy, c.form = s, form
			all = append(all, c)
		}
	}
	return all
}

// fetchLimits are what a relay says it keeps to.
type fetchLimits struct {
	client.Limits
	from string // who says so: results.LimitsDeclared or LimitsTold
}

// fit brings a cell within the relay's limits where it has no settings of its own, and says why it
// cannot be measured where it has.
func (c *fetchCell) fit(l fetchLimits) (whyNot results.Reason) {
	for _, x := range []struct {
		setting *int
		most    int
		code    string
	}{{&c.inFlight, l.Subscriptions, results.CauseSubscriptionLimit}, {&c.batch, l.Events, results.CauseEventLimit}} {
		switch {
		case x.most <= 0 || *x.setting <= x.most:
		case c.matrix:
			return results.Reason{Code: x.code, Counts: counts("most", x.most), Texts: map[string]string{"source": l.from}}
		default:
			*x.setting = x.most
		}
	}
	return results.Reason{}
}

// Fetch downloads what the relay holds by one strategy, in every setting and form, and never
// publishes.
type Fetch struct {
	place int // of the strategy in fetchStrategies
	*fetchShared
}

// fetchShared is what the strategies have in common.
type fetchShared struct {
	FetchOptions
	target *fetchTarget // the relay that is being measured
}

// Fetches returns the strategies. They learn from one another what a relay holds that nobody knows:
// paging comes first.
func Fetches(o FetchOptions) (all []harness.Scenario) {
	shared := &fetchShared{FetchOptions: o}
	for i := range fetchStrategies {
		all = append(all, &Fetch{i, shared})
	}
	return all
}

const fetchMeaning = "One client downloads everything that matches the filter. raw finds ids and counts; parsed parses and verifies every " +
	"event; deflate has it compressed. By id, it is connections × REQs in flight on each × ids in a REQ, the best of all that were tried; auto " +
	"finds the second by itself. The current state is what the records that came fold to: replaceable and addressable events to their newest, " +
	"deletions applied. Requests of a reconciliation are its rounds"

// FetchFamily begins the keys of all its scenarios.
const FetchFamily = "fetch"

// fetchRate is the metric that a cell stands for.
const fetchRate = "records/s"

// lostConnections is the metric of those that broke in mid-transfer, though all may have come.
const lostConnections = "connections lost"

var fetchMetrics = meant(figures(fetchRate, "records/s", "MB/s", "MB/s", "missing", "missing", "retried", "retried", "failed", "failed",
	"duplicates", "duplicates", "overfetch", "overfetch", "requests", "REQs", "request latency", "REQ time",
	"in flight by Little's law", "in flight", "in flight configured", "in flight at most", "tool cpu per event", "tool cpu/event",
	"parsed of raw", "of raw"), "retried", "ids asked for again", "failed", "ids that were never answered",
	"duplicates", "events that came more than once", "overfetch", "bytes on the socket for each byte of a distinct event",
	"in flight by Little's law", "REQs on average by Little's law (their rate × their latency)",
	"tool cpu per event", "of relaybench itself", "parsed of raw", "the rate of verified events as a share of that of raw ones")

// Describe implements harness.Scenario.
func (f *Fetch) Describe() harness.Description {
	s := &fetchStrategies[f.place]
	key := string(s.fetchStrategy)
	d := harness.Description{Bulk: true, Needs: harness.Loaded, External: results.Finding{Cause: results.ExternalBulk}, Scenario: results.Scenario{
		Key: FetchFamily + "." + key, Title: key + ": " + s.title, Section: "Fetch", Meaning: fetchMeaning, Order: orderFetch + f.place,
		Primary: fetchRate, Unit: "events/s", Layout: results.LayoutDownloads, Ceiling: results.CeilingDownload, Uses: s.uses,
	}, Labels: results.Labels{results.LabelStrategy: key}, Metrics: fetchMetrics}
	if s.headline != "" {
		d.Headlines = []results.Headline{{Metric: fetchRate, Title: s.headline, Labels: results.Labels{results.LabelForm: "raw"}}}
	}
	return d
}

// of returns the target that a trial's relay is.
func (s *fetchShared) of(ctx context.Context, t *harness.Trial) (*fetchTarget, error) {
	if s.target != nil && s.target.relay == t.Relay {
		return s.target, nil
	}
	expected, err := expectedOf(t, s.Filter)
	if err != nil {
		return nil, err
	}
	s.target = &fetchTarget{url: t.Relay.URL(), relay: t.Relay, filter: s.Filter, expected: expected, limits: limitsOf(ctx, t.Relay)}
	if t.Corpus == nil || t.Relay.External() {
		return s.target, nil
	}
	// What comes late is given its time before anything is timed, and what does not is lost.
	if _, _, err := checkStored(ctx, t, true); ctx.Err() == nil && err != nil {
		t.AddFinding(results.Finding{Code: results.CodeAcknowledgedKept, Verdict: results.Undecided, Texts: map[string]string{"error": err.Error()}})
	}
	return s.target, nil
}

// expectedOf is what a relay must send: all that it acknowledged, or, where it was not given the
// corpus here, at least the corpus.
func expectedOf(t *harness.Trial, filter corpus.Filter) (*expectedSet, error) {
	switch {
	case t.Corpus == nil:
		return expectAnything(t.Now), nil
	case t.Relay.External():
		return expectCorpus(t.Model, filter, true, t.Now), nil
	case t.Ledger.Count(load.Accepted)+t.Ledger.Count(load.Duplicate) == t.Corpus.Len():
		return expectCorpus(t.Model, filter, false, t.Now), nil
	}
	m, err := model.New(t.Corpus, t.Ledger.Acknowledged, t.Now)
	if err != nil {
		return nil, fmt.Errorf("computing what the relay must hold: %w", err)
	}
	return expectCorpus(m, filter, false, t.Now), nil
}

// limitsOf joins what the relay's definition declares with what its information document says
// (NIP-11): a polite client keeps to both.
func limitsOf(ctx context.Context, p *relays.Process) fetchLimits {
	said, _ := client.Inform(ctx, p.URL(), harness.InformWithin)
	declared, told := p.Definition().Limits, said.Limits
	l := fetchLimits{client.Limits{Subscriptions: declared.Subscriptions, Events: declared.FilterLimit}, results.LimitsDeclared}
	lower := func(limit *int, other int) {
		if other > 0 && (*limit == 0 || other < *limit) {
			*limit = other
			l.from = results.LimitsTold
		}
	}
	lower(&l.Subscriptions, told.Subscriptions)
	lower(&l.Events, told.Events)
	return l
}

// Run implements harness.Scenario. A cell that fails is a result like any other; the error says
// that the relay is gone.
func (f *Fetch) Run(ctx context.Context, t *harness.Trial) error {
	target, err := f.of(ctx, t)
	if err != nil {
		return err
	}
	o := f.FetchOptions
	o.stall, o.budget = t.Options.Stall, t.Budget
	cells := o.cells(fetchStrategies[f.place].fetchStrategy)
	var raw *fetchResult
	for i, c := range cells {
		r := &fetchResult{fetchCell: c, notMeasured: target.dead}
		if target.dead.None() {
			d := f.Describe()
			d.Labels = d.Labels.With(c.labels())
			timed := t.Under(d)
			if r = c.run(ctx, target, &o); r.notMeasured.None() {
				timed.OwnPart()
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.unreachable() {
			target.dead = results.Said(results.CauseGivenUp, r.Err.Error())
		}
		recordFetch(t, r, raw)
		if r.notMeasured.None() && r.Completeness() == load.Complete {
			t.Budget.Took(r.Delivered, r.Wall)
		}
		if raw = nil; !c.form.parsed {
			raw = r
		}
		t.Progress(i+1, len(cells))
	}
	if !target.dead.None() {
		return fmt.Errorf("given up: %s", target.dead.Texts["text"])
	}
	return nil
}

const (
	// asFast is from which share of the raw rate on verifying has cost nothing.
	asFast = 0.9
	// busy is from which share of the processors on it is relaybench that sets the pace.
	busy = 0.8
)

// bottleneck finds out what keeps a fetch from being faster, from the same cell with and without
// verification: share is the verified rate as a share of the raw one. The client's CPU it is where
// verifying as fast as the raw events came would take more than the processors that there are,
// whoever else uses them. The cause is one of results.StatusBottleneck, "" where one of the two
// cells says nothing.
func bottleneck(raw, parsed *fetchResult) (share float64, cause string) {
	if !raw.measured() || !parsed.measured() {
		return 0, ""
	}
	share = parsed.rate() / raw.rate()
	switch {
	case raw.toolShare() >= busy:
		return share, results.BottleneckHarness
	case share >= asFast:
		return share, results.BottleneckRelay
	case parsed.toolShare()/share >= busy: // as fast as the raw events came
		return share, results.BottleneckClient
	}
	return share, results.BottleneckMixed
}

// recordFetch records a cell. raw is the same one without verification, where this one verifies.
func recordFetch(of *harness.Trial, r, raw *fetchResult) {
	t := of.With(r.labels())
	if !r.notMeasured.None() {
		t.Measure(results.Measurement{Metric: fetchRate, Unit: "events/s", Better: results.Higher,
			Status: []results.Status{{Code: results.StatusNotMeasured, Cause: r.notMeasured.Code, Counts: r.notMeasured.Counts, Texts: r.notMeasured.Texts}}})
		return
	}
	share, pace := bottleneck(raw, r)
	for _, m := range r.Account.Measurements() {
		if m.Metric == fetchRate && (pace == results.BottleneckClient || pace == results.BottleneckHarness) {
			m.AddStatus(results.Status{Code: results.StatusLimited, Cause: results.CauseCPU})
		}
		t.Measure(m)
	}
	if pace != "" {
		t.Measure(results.Measurement{Metric: "parsed of raw", Unit: "%", Better: results.None, Trials: []float64{100 * share},
			Status: []results.Status{{Code: results.StatusBottleneck, Cause: pace}}})
	}
	h := r.stats.Latency
	answered := h.Count() > 0
	m := results.Measurement{Metric: "request latency", Unit: "ms", Better: results.None, Samples: h.Count()}
	if answered && m.SetHistogram(h) == nil {
		m.Trials = []float64{harness.Milliseconds(h.Quantile(0.5))}
		t.Measure(r.Mark(m))
	}
	var toolCPU time.Duration
	if r.Usage != nil {
		toolCPU = r.Usage.Tool.CPU
	}
	const megabyte = 1e6
	for _, m := range []struct {
		is           bool
		metric, unit string
		value        float64
	}{
		{true, "MB/s", "MB/s", float64(r.stats.FrameBytes) / megabyte / r.Wall.Seconds()},
		// By Little's law as many REQs were in flight on average as their rate times their mean
		// latency; at most it is what was configured, over all connections.
		{answered, "in flight by Little's law", "requests", float64(h.Count()) * h.Mean().Seconds() / r.stats.Duration.Seconds()},
		{answered, "in flight configured", "requests", float64(max(1, r.conns) * max(1, r.settled))},
		{r.stats.FirstEvent > 0, "first event", "ms", harness.Milliseconds(r.reconcile + r.stats.FirstEvent)},
		{true, "duplicates", "events", float64(r.duplicates)},
		{true, "unasked", "events", float64(r.unexpected)},
		{true, lostConnections, "connections", float64(r.stats.Lost)},
		{r.strategy.byIDs(), "retried", "ids", float64(r.retried)},
		{r.strategy.byIDs(), "failed", "ids", float64(r.failed)},
		{r.strategy == fetchByName, "reconcile", "ms", harness.Milliseconds(r.reconcile)},
		{r.strategy == fetchByName, "rounds", "rounds", float64(r.rounds)},
		{r.form.parsed, "refused", "events", float64(r.refused)},
		{true, "overfetch", "bytes/byte", r.overfetch()},
		{true, "tool share", "%", 100 * r.toolShare()},
		{r.Usage != nil, "tool cpu per event", "us", float64(toolCPU.Microseconds()) / float64(r.Delivered)},
	} {
		if m.is && !math.IsNaN(m.value) && !math.IsInf(m.value, 0) { // nothing is divided by what did not come
			t.Measure(r.Mark(results.Measurement{Metric: m.metric, Unit: m.unit, Better: results.None, Trials: []float64{m.value}}))
		}
	}
	for _, s := range r.steps {
		step := t.With(results.Labels{results.LabelStep: strconv.Itoa(s.InFlight)})
		step.Measure(r.Mark(results.Measurement{Metric: "step", Unit: "events/s", Better: results.None, Trials: []float64{s.Rate}}))
	}
	if r.stats.Malformed.Count > 0 {
		findGarbage(of, r.stats.Malformed)
	}
	findFetch(t, r)
}

// findFetch keeps the verdict on a cell. One that runs already has others that use it, and a
// network in between.
func findFetch(t *harness.Trial, r *fetchResult) {
	external := t.Relay.External()
	if f, ok := r.Account.Finding(); ok {
		t.AddFinding(f)
	}
	if r.strategy == fetchByName && r.named > 0 {
		named := check(results.CodeReturnsNamed, r.unreturned == 0, counts("missing", r.unreturned, "of", r.named))
		if external && r.unreturned < r.named { // others may have had it delete the rest meanwhile
			named.Verdict = results.States(r.unreturned == 0)
		}
		t.AddFinding(named)
		if r.invented > 0 || !external {
			t.AddFinding(check(results.CodeOnlyKnown, r.invented == 0, counts("ids", r.invented)))
		}
	}
	if r.leftOut > 0 {
		t.AddFinding(check(results.CodeSendsHeld, false, counts("left out", r.leftOut)))
	}
	// A relay that others use may send what is new until it has read the CLOSE.
	unfinished, unexpected, elsewhere := hungUp(r.stats), r.unexpected, int(r.stats.Elsewhere)
	if external {
		unfinished, unexpected = 0, elsewhere
	}
	if r.stats.Lost > 0 {
		t.AddFinding(connections(r.stats.Lost, unfinished, r.stats.Loss))
	}
	t.AddFinding(check(results.CodeOnlyRequested, unexpected+r.again == 0,
		counts("events", unexpected, "elsewhere", elsewhere, "duplicates", r.again)))
}

// fetchTarget is a relay to fetch from.
type fetchTarget struct {
	url      string
	relay    *relays.Process // what it used is asked of it where it was launched here; may be nil
	filter   corpus.Filter   // what to fetch
	expected *expectedSet    // what should come
	limits   fetchLimits
	dead     results.Reason // why nothing more can be measured on it

	compression *bool           // whether it agrees to permessage-deflate; nil until it was asked
	without77   *results.Reason // why it has no support of NIP-77, none where it has; nil until it was asked
}

// fetchResult is what one cell came to.
type fetchResult struct {
	fetchCell
	notMeasured results.Reason // why; nothing else is set then
	load.Account
	stats      *client.Stats
	duplicates int           // events that came more than once, as often as they did again
	again      int           // of those, as often as one answer held an event twice
	unexpected int           // events that the relay should not have sent
	refused    int           // events that failed a check, where events are checked
	retried    int           // ids asked for again
	leftOut    int           // events that came only then, though no cap of the relay's explains that
	failed     int           // ids without an answer
	named      int           // ids that a reconciliation named
	unreturned int           // of those, how many the relay did not send when it was asked for them
	invented   int           // of those, how many are of no event that anybody published
	matchBytes int64         // of the distinct events that came, as JSON
	settled    int           // REQs in flight on each connection in the end
	steps      []client.Step // how an adaptive window got there
	reconcile  time.Duration // the part of Wall before the ids were known
	rounds     int           // of that
}

// measured reports whether the cell has a rate.
func (r *fetchResult) measured() bool {
	return r != nil && r.notMeasured.None() && r.Err == nil && r.rate() > 0
}

// rate is in distinct events a second, up to the last one that was dealt with.
func (r *fetchResult) rate() float64 { return r.RecordsPerSecond() }

// overfetch is how many bytes came on the sockets for each byte of a distinct event.
func (r *fetchResult) overfetch() float64 { return float64(r.ResponseBytes) / float64(r.matchBytes) }

// toolShare is how much of the processors that it may use relaybench itself kept busy, from 0 to 1.
func (r *fetchResult) toolShare() float64 {
	if r.Wall <= 0 || r.Usage == nil {
		return 0
	}
	return r.Usage.Tool.CPU.Seconds() / r.Wall.Seconds() / float64(runtime.GOMAXPROCS(0))
}

// unreachable reports that not one connection came about, or that the relay answers nothing at all,
// so that there is no use in going on.
func (r *fetchResult) unreachable() bool {
	return r.notMeasured.None() && r.Err != nil && (r.stats.Dials == 0 || errors.Is(r.Err, errSilent))
}

const (
	fetchRetries  = 2 // for ids that did not come
	fetchAttempts = 2 // for connections in a row
	// pageAttempts is how many pages in a row may bring nothing: each connection that is lost makes
	// the next page smaller, so that a relay that drops whom it has to wait for is asked for little
	// enough in the end, as it is by a download.
	pageAttempts = 5
)

// slack is how many events beyond what is expected, and beyond twice that, are taken before a relay
// is said to send without end.
const slack = 100_000
