package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/harness/receive"
	"relaybench/relays"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
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

// fetching is a cell on its way.
type fetching struct {
	*fetchResult
	to     *fetchTarget
	o      *FetchOptions
	client client.Options
	asked  []corpus.ID // what was asked for by id, where that is what was to come
	spans  []timeSpan  // the shares of the time

	end      context.CancelCauseFunc // ends all connections
	most     int                     // events before it ends, 0 for no end
	why      error                   // with this
	pipeline *receive.Pipeline       // nil where events are not parsed
	free     chan *receive.Feeder    // one for each connection that may call at once

	mu      sync.Mutex  // over the rest
	ids     []corpus.ID // of all connections, as they came, duplicates included
	taken   int         // events, dealt with or not
	began   bool        // anything has come
	late    error       // the time of the cell is over: it ends with this as soon as anything has come
	stepped []int64     // seconds that were left before they had been read whole, newest first
}

// run measures one cell. Whatever the relay does ends up in the result; it ends with ctx.
func (c fetchCell) run(ctx context.Context, to *fetchTarget, o *FetchOptions) *fetchResult {
	r := &fetchResult{fetchCell: c, stats: client.NewStats(), Account: load.Account{Expected: -1}}
	if r.notMeasured = r.impossible(ctx, to, o); !r.notMeasured.None() {
		return r
	}
	debug.FreeOSMemory() // what the cell before left is neither this one's memory nor its work
	cellCtx, end := context.WithCancelCause(ctx)
	defer end(nil)
	f := &fetching{fetchResult: r, to: to, o: o, end: end}
	f.client = client.Options{URL: to.url, Compression: c.form.deflate, Stall: o.stall, Attempts: fetchAttempts, Trouble: f.trouble}
	f.expect(ctx)
	var cancel context.CancelFunc
	if o.Time > 0 {
		defer time.AfterFunc(o.Time, func() { f.over(&load.CutError{Limit: "--cell-time " + o.Time.String()}) }).Stop()
		most := o.Time + 2*o.stall // after o.Time only the first event is waited for: as long as connecting and asking may take
		cellCtx, cancel = context.WithTimeoutCause(cellCtx, most, &load.TimeError{After: most})
	} else {
		cellCtx, cancel = o.budget.Within(cellCtx, 0, to.expected.size())
	}
	defer cancel()
	var relay []*relays.Process
	if to.relay != nil && !to.relay.External() {
		relay = append(relay, to.relay)
	}
	stop := load.Measure(relay...)
	start := wire.Now()
	err := f.fetch(cellCtx)
	r.Wall = wire.Now() - start
	late := (*load.TimeError)(nil)
	if d := r.stats.Duration; d > 0 && !errors.As(err, &late) {
		r.Wall = d // without connecting and closing
	}
	r.Wall += r.reconcile
	if f.pipeline != nil { // what was taken is dealt with, which takes longer than the connections did
		began := wire.Now()
		_ = f.pipeline.Close() // why it ended before is known: by end
		r.Wall += wire.Now() - began
		counts := f.pipeline.Stats().Counts
		r.duplicates, r.refused = int(counts.Duplicates), int(counts.Refused())
	}
	r.Usage = stop()
	f.settle(ctx, err)
	return r
}

// expect prepares for what is to come. What has been taken is dealt with even when the cell is cut:
// only ctx ends that.
func (f *fetching) expect(ctx context.Context) {
	set, room := f.to.expected, f.to.expected.room()
	if room > 0 {
		f.most, f.why = 2*room+slack, &client.FloodError{Sent: 2*room + slack, Asked: room}
		f.ids = make([]corpus.ID, 0, room)
	}
	if most := f.o.Events; most > 0 && !f.strategy.byIDs() && (f.most == 0 || most < f.most) { // which ask for no more ids than that
		f.most, f.why = most, &load.CutError{Limit: fmt.Sprintf("--cell-events %d", most)}
	}
	if !f.form.parsed {
		return
	}
	f.pipeline = receive.New(ctx, receive.Options{}, func(b *receive.Batch) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i := range b.Events {
			f.ids = append(f.ids, b.Events[i].ID)
			if set.records != nil {
				set.records.Add(&b.Events[i].Parsed)
			}
		}
		return nil
	})
	f.free = make(chan *receive.Feeder, f.conns)
	for range f.conns {
		f.free <- f.pipeline.Feeder()
	}
}

// take is the client.Take of all strategies. Parsed, it waits where signature checks fall behind:
// that is what such a client does.
func (f *fetching) take(_ context.Context, e *client.Event, _ bool) (bool, error) {
	f.mu.Lock()
	f.taken++
	enough := f.most > 0 && f.taken >= f.most
	f.begins(true)
	if f.pipeline == nil {
		f.ids = append(f.ids, e.ID)
	}
	f.mu.Unlock()
	if f.pipeline != nil {
		feeder := <-f.free
		_, err := feeder.Event(e.ID, e.Raw, e.At)
		f.free <- feeder
		if err != nil {
			f.end(err)
		}
	}
	if enough { // connections end by their context, so that none takes it for a failure to be tried again
		f.end(f.why)
	}
	return true, nil
}

// begins notes whether anything has come of what is asked for from now on. The caller holds mu.
func (f *fetching) begins(came bool) {
	if f.began = came; came && f.late != nil {
		f.end(f.late)
	}
}

// naming is told of what came that is no event: the ids that a reconciliation names, until they are
// asked for.
func (f *fetching) naming(came bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begins(came)
}

// over is told that the time of the cell is over. Where nothing has come, whoever waits for the
// first event says how it ends: that the time was too short is one thing, a relay that never
// answers is another.
func (f *fetching) over(late error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = late
	f.begins(f.began)
}

// trouble ends a cell whose time is over, with what went wrong before anything came.
func (f *fetching) trouble(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.late != nil && !f.began {
		f.end(err)
	}
}

// impossible brings a cell within the relay's limits, and says why it cannot be measured.
func (r *fetchResult) impossible(ctx context.Context, to *fetchTarget, o *FetchOptions) results.Reason {
	if why := r.fit(to.limits); !why.None() {
		return why
	}
	switch {
	case r.form.deflate && !to.compresses(ctx, o):
		return results.Reason{Code: results.CauseNoCompression}
	case r.strategy == fetchByName:
		return to.withoutNIP77(ctx, o)
	case r.strategy == fetchByID && len(to.expected.ids()) == 0 && to.expected.known():
		return results.Reason{Code: results.CauseNoMatch}
	case r.strategy == fetchByID && len(to.expected.ids()) == 0:
		return results.Reason{Code: results.CauseNoIDs}
	}
	return results.Reason{}
}

// compresses finds out once whether the relay agrees to permessage-deflate. Where it cannot be
// asked, the cell shall say why.
func (t *fetchTarget) compresses(ctx context.Context, o *FetchOptions) bool {
	if t.compression == nil {
		conn, err := client.Dial(ctx, client.Options{URL: t.url, Stall: o.stall, Compression: true})
		if err != nil {
			return true
		}
		agreed := conn.Stats.Extensions != ""
		t.compression = &agreed
		conn.Close()
	}
	return *t.compression
}

// prompt is how soon a relay sends one event whose silence on NEG-OPEN means what it seems to: one
// that is slow at everything, on a busy machine say, is asked again and given more time.
const prompt = 300 * time.Millisecond

// withoutNIP77 finds out once why a relay has no support of NIP-77, no reason where it has. That
// is no part of any cell, whose time may be shorter than a relay that ignores NEG-OPEN has to be
// waited for. The runner's probing does not serve: it asks a relay in its usual form, and here it
// may run in another. Where the relay cannot be asked, or has a reason of its own not to answer,
// the cell shall say why.
func (t *fetchTarget) withoutNIP77(ctx context.Context, o *FetchOptions) (why results.Reason) {
	if t.without77 != nil {
		return *t.without77
	}
	unsupported, err := probeNIP77(ctx, t.url, o.stall, 0)
	if err == nil && unsupported != nil && unsupported.How == negentropy.BySilence {
		began := wire.Now()
		if silent := t.answers(ctx, o); silent != nil || wire.Now()-began > prompt {
			unsupported, err = probeNIP77(ctx, t.url, o.stall, o.stall)
		}
	}
	if err != nil {
		return why
	}
	if unsupported != nil {
		why = results.Said(results.CauseNoNIP77, unsupported.Error())
	}
	t.without77 = &why
	return why
}

// errSilent is a relay that answers nothing at all.
var errSilent = errors.New("the relay does not answer a REQ for one event either")

// answers finds out whether the relay answers anything, where nothing came in a cell.
func (t *fetchTarget) answers(ctx context.Context, o *FetchOptions) error {
	came := errors.New("an event came")
	take := func(context.Context, *client.Event, bool) (bool, error) { return true, came }
	_, err := client.Once(ctx, client.Options{URL: t.url, Stall: o.stall}, corpus.Filter{Limit: corpus.Int(1)}, take)
	var closed *client.ClosedError
	if err == nil || errors.Is(err, came) || errors.As(err, &closed) {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", errSilent, err)
}

// settle judges what came. err is why it ended, nil where the relay ended all answers in order.
func (f *fetching) settle(ctx context.Context, err error) {
	r, set, asked := f.fetchResult, f.to.expected, f.asked
	unnamed := 0
	if r.strategy == fetchByName { // what is expected does not shrink to what the relay names
		unnamed, r.invented = set.unnamed(asked, f.ids)
		if asked = slices.Concat(asked, set.listed); set.known() {
			asked = nil
		}
		slices.SortFunc(asked, func(a, b corpus.ID) int { return bytes.Compare(a[:], b[:]) })
		asked = slices.Compact(asked)
	}
	if r.form.parsed {
		set.learn() // also of a cut one, or one that failed: what came can be asked for by id
	}
	y := set.judge(f.ids, asked, f.spans, f.stepped)
	r.Account.Add(r.stats)
	r.duplicates += y.duplicates
	if r.again = int(r.stats.Repeated); r.strategy.giants() {
		r.again = r.duplicates
	}
	r.duplicates += int(r.stats.Duplicates)
	r.Delivered, r.unexpected = y.unique, y.unexpected+int(r.stats.Unexpected)
	r.Expected, r.Missing, r.matchBytes = y.expected, y.missing, y.bytes
	if !set.known() || set.open {
		r.matchBytes = 0
		if n := int64(y.unique + r.duplicates - int(r.stats.Duplicates)); n > 0 {
			r.matchBytes = r.stats.EventBytes * int64(y.unique) / n
		}
	}
	if s, foldErr := set.fold(f.ids, &y); foldErr == nil {
		r.State = s
	}
	switch {
	case err != nil:
		r.End(firstOf(ctx, err))
		late := (*load.TimeError)(nil)
		r.Excused = errors.As(err, &late) && r.form.parsed && r.toolShare() >= busy
		if f.o.Time > 0 && r.Err != nil && r.stats.Events == 0 {
			if silent := f.to.answers(ctx, f.o); silent != nil {
				r.Err = fmt.Errorf("%w: %w", r.Err, silent)
			}
		}
	case asked != nil:
		r.Assured = true
	}
	if r.refused > 0 && (r.Err == nil || r.Cut != "") { // which no cut excuses
		r.Cut, r.Err = "", fmt.Errorf("%d events failed the check of their id or signature", r.refused)
	}
	if r.Err != nil || r.Cut != "" {
		return
	}
	switch {
	case y.newest && y.missing > 0 && r.strategy == fetchGiant:
		r.Excused, r.Why = true, results.Reason{Code: results.CauseCapped, Counts: counts("events", y.unique)}
	case y.newest && y.missing > 0 && r.strategy == fetchShardedGiant:
		r.Excused, r.Why = true, results.Reason{Code: results.CauseCapped}
	case y.missing > 0 && y.missing == y.stepped: // the answers are capped, and until knows no part of a second
		r.Excused = true
	case y.missing > 0 && unnamed > 0:
		r.Why = results.Reason{Code: results.WhyUnnamed, Counts: counts("unnamed", unnamed)}
	case r.Why.None() && r.Expected < 0 && len(set.listed) > y.unique:
		r.Why = results.Reason{Code: results.WhyMore, Counts: counts("events", len(set.listed))}
	case r.Why.None() && r.Expected < 0 && r.strategy == fetchPaged:
		r.Why = results.Reason{Code: results.CauseEndAsSaid}
	}
}

// firstOf is an error as it stands in results: the first of several, and how many more connections
// gave one.
func firstOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if all, several := err.(interface{ Unwrap() []error }); several && len(all.Unwrap()) > 1 {
		return fmt.Errorf("%w (and on %d more connections)", all.Unwrap()[0], len(all.Unwrap())-1)
	}
	return err
}

// fetch asks. No error is that the relay ended all answers in order.
func (f *fetching) fetch(ctx context.Context) error {
	switch f.strategy {
	case fetchGiant, fetchShardedGiant:
		return f.byTime(ctx, f.giant)
	case fetchPaged, fetchShardedPaged:
		return f.byTime(ctx, f.paged)
	case fetchByID:
		return f.byID(ctx, f.to.expected.ids())
	}
	ids, err := f.reconcileNothing(ctx)
	if f.named = len(ids); err != nil || len(ids) == 0 {
		return err
	}
	return f.byID(ctx, ids)
}

// byTime asks for each share of the time on a connection of its own.
func (f *fetching) byTime(ctx context.Context, part func(context.Context, corpus.Filter) (*client.Stats, error)) error {
	f.settled, f.spans = 1, f.to.expected.shares(&f.to.filter, f.conns)
	stats, errs := make([]*client.Stats, len(f.spans)), make([]error, len(f.spans))
	var all sync.WaitGroup
	for k, s := range f.spans {
		filter := f.to.filter
		filter.Since, filter.Until = s.since, s.until
		all.Go(func() { stats[k], errs[k] = part(ctx, filter) })
	}
	all.Wait()
	f.stats = client.Sum(stats...)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// mostOfGiant is the limit of a giant REQ where nobody knows how much there is: relays have smaller
// ones of their own where there is none.
const mostOfGiant = 1_000_000

func (f *fetching) giant(ctx context.Context, filter corpus.Filter) (*client.Stats, error) {
	filter.Limit = corpus.Int(mostOfGiant)
	if n := f.to.expected.room(); n > 0 && !f.to.expected.open {
		filter.Limit = corpus.Int(n)
	}
	return client.Once(ctx, f.client, filter, f.take)
}

func (f *fetching) paged(ctx context.Context, filter corpus.Filter) (*client.Stats, error) {
	limits, size := f.to.limits, f.o.Page
	if most := limits.Events; most > 0 {
		size = min(size, most)
	}
	options := f.client
	options.Attempts = pageAttempts
	p := client.Pages{Options: options, Filter: filter, Size: size, Widest: max(size, limits.Widest()),
		Single: limits.Subscriptions == 1, Take: f.take}
	done, err := p.Run(ctx)
	if len(done.Stepped) > 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stepped = append(f.stepped, done.Stepped...)
		slices.SortFunc(f.stepped, func(a, b int64) int { return cmp.Compare(b, a) })
		f.Why = fullSeconds(f.stepped)
		f.Why.Counts["asked"] = float64(p.Widest)
	}
	return done.Stats, err
}

// fullSeconds is the reason of what is missing where pages left these seconds, newest first, before
// they had been read whole.
func fullSeconds(stepped []int64) results.Reason {
	return results.Reason{Code: results.CauseFullSeconds, Counts: counts("seconds", len(stepped), "newest", stepped[0])}
}

func (f *fetching) byID(ctx context.Context, ids []corpus.ID) error {
	cut := f.o.Events > 0 && len(ids) > f.o.Events
	if cut {
		ids = ids[:f.o.Events]
	}
	f.asked = ids
	f.naming(false)
	b := client.ByID{Options: f.client, Conns: f.conns, Batch: f.batch, InFlight: f.inFlight, Adaptive: f.adaptive,
		Retries: fetchRetries, Take: f.take}
	done, err := b.Run(ctx, ids)
	f.stats = client.Sum(f.stats, done.Stats)
	f.retried, f.failed, f.settled, f.steps = done.Retried, len(done.Failed), done.InFlight, done.Steps
	f.unreturned, f.leftOut = len(done.Missing), done.LeftOut
	if cut && err == nil {
		err = &load.CutError{Limit: fmt.Sprintf("--cell-events %d", f.o.Events)}
	}
	return err
}

// reconcileNothing finds the relay's ids by a reconciliation with nothing.
func (f *fetching) reconcileNothing(ctx context.Context) ([]corpus.ID, error) {
	conn, err := client.Dial(ctx, client.Options{URL: f.to.url, Stall: f.o.stall, Compression: f.form.deflate})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close()
	nothing := new(negentropy.Set)
	if err := nothing.Seal(); err != nil {
		return nil, err
	}
	most := negentropy.DefaultMaxNeed
	if n := f.to.expected.room(); n > 0 && !f.to.expected.open {
		most = 2*n + slack
	}
	var ids []corpus.ID
	began := wire.Now()
	result, err := negentropy.ReconcileSplit(ctx, conn.Wire(), f.to.filter.AppendJSON(nil), nothing, negentropy.Options{Stall: f.o.stall,
		MaxNeed: most, Need: func(need []negentropy.ID) {
			f.naming(true)
			for _, id := range need {
				ids = append(ids, corpus.ID(id))
			}
		}})
	f.reconcile, f.rounds = wire.Now()-began, result.Rounds
	f.stats.Dials = 1
	f.stats.Bytes, f.stats.BytesUp = conn.Wire().BytesRead(), conn.Wire().BytesWritten()
	f.stats.Requests = result.Rounds
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if unsupported := (*negentropy.UnsupportedError)(nil); errors.As(err, &unsupported) {
		f.notMeasured = results.Said(results.CauseNoNIP77, unsupported.Error())
	}
	return ids, err
}

// expectedSet is what a relay should send: by the model of a corpus that it was given, or by what
// it sent before.
type expectedSet struct {
	now    int64
	corpus *corpus.Corpus // nil where nobody knows
	whole  *load.State    // of all that must come, once it is known
	must   []int          // corpus indices of what has to come, newest first
	may    []bool         // by corpus index: what may come, and that
	open   bool           // the relay may hold more than the corpus

	records *load.Records // of a relay that nobody knows
	listed  []corpus.ID   // all that it ever sent and that was verified, newest first
	times   []int64       // of them
}

// expectCorpus is what a relay sends that holds what the model says. What is in doubt may come or
// not. open says that it may hold more, which is no fault then.
func expectCorpus(m *model.Model, f corpus.Filter, open bool, now int64) *expectedSet {
	f.Limit = nil
	must := slices.DeleteFunc(m.Query(&f), m.Optional)
	may := among(m.Corpus(), must, where(m.Corpus(), m.Optional))
	return &expectedSet{now: now, corpus: m.Corpus(), must: must, may: may, open: open}
}

// expectAnything is of a relay of which nothing is known yet.
func expectAnything(now int64) *expectedSet {
	return &expectedSet{now: now, open: true, records: load.NewRecords()}
}

// known reports whether it is known what must come.
func (g *expectedSet) known() bool { return g.corpus != nil }

// ids lists what can be asked for by id: what must come, or what is known to be there. Newest
// first.
func (g *expectedSet) ids() []corpus.ID {
	if g.corpus == nil {
		return g.listed
	}
	return idsOf(g.corpus, g.must)
}

// learn lists what a relay that nobody knew has sent so far.
func (g *expectedSet) learn() {
	if g.corpus == nil {
		g.listed, g.times = g.records.Newest()
	}
}

// size is how many events a download may be of.
func (g *expectedSet) size() int {
	if g.corpus == nil {
		return max(len(g.listed), mostOfGiant)
	}
	return len(g.must)
}

// room is how many events an honest answer may hold at most, 0 where nobody knows.
func (g *expectedSet) room() (n int) {
	for _, may := range g.may {
		if may {
			n++
		}
	}
	return n
}

// unnamed counts what a reconciliation that named these ids has kept back, and invented what it
// named though nobody published it and it did not come.
func (g *expectedSet) unnamed(named, came []corpus.ID) (unnamed, invented int) {
	known := idSet(named...)
	for _, id := range g.ids() {
		if !known[id] {
			unnamed++
		}
	}
	if g.open {
		return unnamed, 0
	}
	for _, id := range came {
		delete(known, id)
	}
	for id := range known {
		if index(g.corpus, id) < 0 {
			invented++
		}
	}
	return unnamed, invented
}

// fetchTally is what came, held against what was expected.
type fetchTally struct {
	here               []bool             // by corpus index
	strangers          map[corpus.ID]bool // that are not of the corpus
	unique, duplicates int
	bytes              int64 // of the unique ones as JSON; 0 where nobody knows
	stepped            int   // of those missing, how many lie in seconds that were left before they had been read whole
	expected, missing  int   // expected is less than 0 where nobody knows
	unexpected         int   // that should not be there; each counted once
	newest             bool  // in each share of the time, what is missing is older than everything that came: answers that were cut at their end
}

// judge counts what came. Where asked is not nil it is what was expected, and else all that is
// known to be there. spans are the shares of the time that were asked for one by one, oldest first,
// and stepped the seconds that were left before they had been read whole.
func (g *expectedSet) judge(came, asked []corpus.ID, spans []timeSpan, stepped []int64) (t fetchTally) {
	if g.corpus == nil {
		distinct := idSet(came...)
		t.unique, t.duplicates, t.expected = len(distinct), len(came)-len(distinct), -1
		if asked != nil {
			t.expected, t.missing = len(asked), len(minus(idSet(asked...), distinct))
		}
		return t
	}
	t.here, t.strangers = make([]bool, g.corpus.Len()), idSet()
	for _, id := range came {
		if i, ok := g.corpus.Find(id); ok {
			t.here[i] = true
		} else {
			t.strangers[id] = true
		}
	}
	share := func(at int64) int { // the span that a second lies in
		i, _ := slices.BinarySearchFunc(spans, at, func(s timeSpan, at int64) int {
			if s.until == nil || *s.until >= at {
				return 1
			}
			return -1
		})
		return i
	}
	oldest := slices.Repeat([]int64{math.MaxInt64}, len(spans)+1)
	t.unexpected = len(t.strangers)
	for i, here := range t.here {
		switch {
		case here && !g.may[i]:
			t.unexpected++
		case here:
			e := g.corpus.Entry(i)
			t.unique++
			t.bytes += int64(e.Length)
			k := share(e.CreatedAt)
			oldest[k] = min(oldest[k], e.CreatedAt)
		}
	}
	t.duplicates = len(came) - t.unique - t.unexpected
	expected := g.must
	if asked != nil {
		expected = nil
		for _, id := range asked {
			if i, ok := g.corpus.Find(id); ok {
				expected = append(expected, i)
			}
		}
	}
	left := make(map[int64]bool, len(stepped))
	for _, at := range stepped {
		left[at] = true
	}
	t.expected, t.newest = len(expected), t.unique > 0
	for _, i := range expected {
		if t.here[i] {
			continue
		}
		t.missing++
		at := g.corpus.Entry(i).CreatedAt
		if left[at] {
			t.stepped++
		}
		k := share(at)
		t.newest = t.newest && oldest[k] < math.MaxInt64 && at <= oldest[k]
	}
	if g.open {
		t.unique, t.unexpected = t.unique+t.unexpected, 0
	}
	return t
}

// fold folds what came, which adds up to y. What all that must come folds to is worked out once.
func (g *expectedSet) fold(came []corpus.ID, y *fetchTally) (*load.State, error) {
	if g.corpus == nil {
		return g.records.Fold(came, g.now), nil
	}
	whole := y.missing == 0 && y.unique == len(g.must) && y.expected == len(g.must) && y.unexpected == 0
	if whole && g.whole != nil {
		return g.whole, nil
	}
	s, err := load.FoldCorpus(g.corpus, func(i int) bool { return y.here[i] }, g.now)
	if err != nil {
		return nil, err
	}
	if s.Unread = len(y.strangers); whole {
		g.whole = s
	}
	return s, nil
}

// timeSpan is one share of the time, both ends inclusive; nil is open.
type timeSpan struct{ since, until *int64 }

// genesis is before the first event of Nostr.
const genesis = 1_600_000_000

// shares divides the time that a filter leaves into shares of equally many events, as far as they
// are known and seconds allow, and else of equal length.
func (g *expectedSet) shares(f *corpus.Filter, n int) (all []timeSpan) {
	times := slices.Clone(g.times)
	for _, i := range g.must {
		times = append(times, g.corpus.Entry(i).CreatedAt)
	}
	slices.Sort(times)
	oldest, newest, since := int64(genesis), g.now, f.Since
	if since != nil {
		oldest = *since
	}
	if f.Until != nil {
		newest = *f.Until
	}
	if len(times) > 0 {
		oldest = times[0]
	}
	for k := 1; k < n; k++ {
		at := oldest + int64(k)*(newest-oldest)/int64(n)
		if len(times) > 0 {
			at = times[k*len(times)/n]
		}
		if at > oldest && (since == nil || at > *since) {
			all = append(all, timeSpan{since, corpus.Int64(at - 1)})
			since = corpus.Int64(at)
		}
	}
	return append(all, timeSpan{since, f.Until})
}
