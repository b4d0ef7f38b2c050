package scenarios

import (
	"context"
	"fmt"
	"math"
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
	title string
	uses  []string
}{
	{fetchPaged, "page by page", []string{results.UsesUntil, results.UsesLimit, results.UsesOrder}},
	{fetchGiant, "one REQ for everything", []string{results.UsesLimit}},
	{fetchShardedGiant, "one REQ on each of several connections, by time", []string{results.UsesSince, results.UsesUntil, results.UsesLimit}},
	{fetchShardedPaged, "pages on several connections, by time", []string{results.UsesSince, results.UsesUntil, results.UsesLimit, results.UsesOrder}},
	{fetchByID, "by id, in batches", []string{results.UsesIDs}},
	{fetchByName, "the ids by reconciliation, then by id", []string{results.UsesIDs}},
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

// fetchMatrix are the settings of fetching by id that are tried out in every combination.
type fetchMatrix struct{ conns, inFlight, batch []int }

var (
	fullMatrix  = fetchMatrix{[]int{1, 2, 4, 8, 16}, []int{1, 4, 8, 16, 20}, []int{50, 125, 250}}
	smallMatrix = fetchMatrix{[]int{1, 4}, []int{1, 8}, []int{50, 250}}
)

// mostInFlight is where growing ends.
const mostInFlight = 20

// cells lists what a strategy is measured in: each setting in every form, side by side, so that
// they compare.
func (o *FetchOptions) cells(s fetchStrategy) (all []fetchCell) {
	var settings []fetchCell
	switch s {
	case fetchGiant, fetchPaged:
		settings = append(settings, fetchCell{conns: 1, inFlight: 1})
	case fetchShardedGiant, fetchShardedPaged:
		settings = append(settings, fetchCell{conns: max(1, o.Shards), inFlight: 1})
	case fetchByName:
		settings = append(settings, fetchCell{conns: 4, inFlight: 8, batch: 250})
	case fetchByID:
		m := smallMatrix
		if o.Full {
			m = fullMatrix
		}
		for _, batch := range m.batch {
			for _, conns := range m.conns {
				for _, inFlight := range m.inFlight {
					settings = append(settings, fetchCell{conns: conns, inFlight: inFlight, batch: batch, matrix: true})
				}
			}
		}
		if o.Adaptive {
			for _, conns := range smallMatrix.conns {
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
	limited := func(code string, most int) results.Reason {
		return results.Reason{Code: code, Counts: map[string]float64{"most": float64(most)}, Texts: map[string]string{"source": l.from}}
	}
	if l.Subscriptions > 0 && c.inFlight > l.Subscriptions {
		if c.matrix {
			return limited(results.CauseSubscriptionLimit, l.Subscriptions)
		}
		c.inFlight = l.Subscriptions
	}
	if l.Events > 0 && c.batch > l.Events {
		if c.matrix {
			return limited(results.CauseEventLimit, l.Events)
		}
		c.batch = l.Events
	}
	return results.Reason{}
}

// Fetch downloads what the relay holds by one strategy, in every setting and form, and never
// publishes.
type Fetch struct {
	place   int // of the strategy in fetchStrategies
	options *FetchOptions
	shared  *fetchShared
}

// fetchShared is what the strategies know in common of the relay that is being measured.
type fetchShared struct{ target *fetchTarget }

// Fetches returns the strategies. They learn from one another what a relay holds that nobody knows:
// paging comes first.
func Fetches(o FetchOptions) (all []harness.Scenario) {
	shared := new(fetchShared)
	for i := range fetchStrategies {
		all = append(all, &Fetch{i, &o, shared})
	}
	return all
}

const fetchMeaning = "One client downloads everything that matches the filter. raw finds ids and counts; parsed parses and verifies every " +
	"event; deflate has it compressed. By id, it is connections × REQs in flight on each × ids in a REQ, the best of all that were tried; auto " +
	"finds the second by itself. The current state is what the records that came fold to: replaceable and addressable events to their newest, " +
	"deletions applied. Requests of a reconciliation are its rounds"

// FetchFamily begins the keys of all its scenarios.
const FetchFamily = "fetch"

// Describe implements harness.Scenario.
func (f *Fetch) Describe() harness.Description {
	s := &fetchStrategies[f.place]
	key := string(s.fetchStrategy)
	d := harness.Description{Bulk: true, Needs: harness.Loaded, External: results.Finding{Cause: results.ExternalBulk}, Scenario: results.Scenario{
		Key: FetchFamily + "." + key, Title: key + ": " + s.title, Section: sectionFetch, Meaning: fetchMeaning,
		Order: orderFetch + f.place, Primary: fetchRate, Unit: "events/s", Layout: results.LayoutDownloads, Ceiling: results.CeilingDownload, Uses: s.uses,
	}, Labels: results.Labels{results.LabelStrategy: key}, Metrics: fetchMetrics}
	if title := map[fetchStrategy]string{fetchGiant: "giant REQ", fetchPaged: "paged REQs"}[s.fetchStrategy]; title != "" {
		d.Headlines = []results.Headline{{Metric: fetchRate, Title: title, Labels: results.Labels{results.LabelForm: "raw"}}}
	}
	return d
}

// of returns the target that a trial's relay is.
func (s *fetchShared) of(ctx context.Context, t *harness.Trial, o *FetchOptions) (*fetchTarget, error) {
	if s.target != nil && s.target.relay == t.Relay {
		return s.target, nil
	}
	expected, err := expectedOf(t, o.Filter)
	if err != nil {
		return nil, err
	}
	s.target = &fetchTarget{url: t.Relay.URL(), relay: t.Relay, filter: o.Filter, expected: expected, limits: limitsOf(ctx, t.Relay)}
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
	target, err := f.shared.of(ctx, t, f.options)
	if err != nil {
		return err
	}
	o := *f.options
	o.stall, o.budget = t.Options.Stall, t.Budget
	cells := o.cells(fetchStrategies[f.place].fetchStrategy)
	var raw *fetchResult
	for i, c := range cells {
		var r *fetchResult
		if !target.dead.None() {
			r = &fetchResult{fetchCell: c, notMeasured: target.dead}
		} else {
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
		raw = nil
		if !c.form.parsed {
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
	case parsed.demand()*raw.rate() >= busy:
		return share, results.BottleneckClient
	}
	return share, results.BottleneckMixed
}

// recordFetch records a cell. raw is the same one without verification, where this one verifies.
func recordFetch(t *harness.Trial, r, raw *fetchResult) {
	labels := r.labels()
	record := func(m results.Measurement) {
		m.Labels = labels.With(m.Labels)
		t.Measure(m)
	}
	if !r.notMeasured.None() {
		record(results.Measurement{Metric: fetchRate, Unit: "events/s", Better: results.Higher,
			Status: []results.Status{{Code: results.StatusNotMeasured, Cause: r.notMeasured.Code, Counts: r.notMeasured.Counts, Texts: r.notMeasured.Texts}}})
		return
	}
	share, pace := bottleneck(raw, r)
	for _, m := range r.Account.Measurements() {
		if m.Metric == fetchRate && (pace == results.BottleneckClient || pace == results.BottleneckHarness) {
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
	value("MB/s", "MB/s", float64(r.stats.FrameBytes)/megabyte/r.Wall.Seconds())
	if pace != "" {
		record(results.Measurement{Metric: "parsed of raw", Unit: "%", Better: results.None, Trials: []float64{100 * share}, Status: []results.Status{{Code: results.StatusBottleneck, Cause: pace}}})
	}
	if h := r.stats.Latency; h.Count() > 0 {
		m := results.Measurement{Metric: "request latency", Unit: "ms", Better: results.None, Trials: []float64{harness.Milliseconds(h.Quantile(0.5))}, Samples: h.Count()}
		if m.SetHistogram(h) == nil {
			record(r.Mark(m))
		}
		value("in flight by Little's law", "requests", r.inFlightMean())
		value("in flight configured", "requests", float64(r.inFlightAtMost()))
	}
	if r.stats.FirstEvent > 0 {
		value("first event", "ms", harness.Milliseconds(r.reconcile+r.stats.FirstEvent))
	}
	value("duplicates", "events", float64(r.duplicates))
	value("unasked", "events", float64(r.unexpected))
	value(lostConnections, "connections", float64(r.stats.Lost))
	if r.strategy.byIDs() {
		value("retried", "ids", float64(r.retried))
		value("failed", "ids", float64(r.failed))
	}
	if r.strategy == fetchByName {
		value("reconcile", "ms", harness.Milliseconds(r.reconcile))
		value("rounds", "rounds", float64(r.rounds))
	}
	if r.form.parsed {
		value("refused", "events", float64(r.refused))
	}
	if x := r.overfetch(); x > 0 {
		value("overfetch", "bytes/byte", x)
	}
	value("tool share", "%", 100*r.toolShare())
	if u := r.Usage; u != nil {
		value("tool cpu per event", "us", float64(u.Tool.CPU.Microseconds())/float64(r.Delivered))
	}
	for _, s := range r.steps {
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
func findFetch(t *harness.Trial, r *fetchResult) {
	labels := r.labels()
	if f, ok := r.Account.Finding(); ok {
		f.Labels = labels
		t.AddFinding(f)
	}
	if r.strategy == fetchByName && r.named > 0 {
		named := results.Finding{Code: results.CodeReturnsNamed, Labels: labels, Verdict: results.Holds(r.unreturned == 0), Counts: counts("missing", r.unreturned, "of", r.named)}
		if t.Relay.External() && r.unreturned < r.named { // others may have had it delete the rest meanwhile
			named.Verdict = results.States(r.unreturned == 0)
		}
		t.AddFinding(named)
		if r.invented > 0 || !t.Relay.External() {
			t.AddFinding(results.Finding{Code: results.CodeOnlyKnown, Labels: labels, Verdict: results.Holds(r.invented == 0), Counts: counts("ids", r.invented)})
		}
	}
	if r.leftOut > 0 {
		t.AddFinding(results.Finding{Code: results.CodeSendsHeld, Labels: labels, Verdict: results.Failed, Counts: counts("left out", r.leftOut)})
	}
	if r.stats.Lost > 0 {
		unfinished := hungUp(r.stats)
		if t.Relay.External() { // there is a network in between
			unfinished = 0
		}
		f := connections(r.stats.Lost, unfinished, r.stats.Loss)
		f.Labels = labels
		t.AddFinding(f)
	}
	if r.stats.Malformed.Count > 0 {
		findGarbage(t, r.stats.Malformed)
	}
	// One that others use may send what is new until it has read the CLOSE.
	unexpected, elsewhere := r.unexpected, int(r.stats.Elsewhere)
	if t.Relay.External() {
		unexpected = elsewhere
	}
	t.AddFinding(results.Finding{Code: results.CodeOnlyRequested, Labels: labels, Verdict: results.Holds(unexpected+r.again == 0),
		Counts: counts("events", unexpected, "elsewhere", elsewhere, "duplicates", r.again)})
}
