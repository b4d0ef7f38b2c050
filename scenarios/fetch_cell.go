package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
	"relaybench/results"
)

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

// overfetch is how many bytes came on the sockets for each byte of a distinct event; 0 where that
// is not known.
func (r *fetchResult) overfetch() float64 {
	if r.matchBytes == 0 {
		return 0
	}
	return float64(r.ResponseBytes) / float64(r.matchBytes)
}

// inFlightAtMost is how many REQs may be in flight at a time, over all connections.
func (r *fetchResult) inFlightAtMost() int { return max(1, r.conns) * max(1, r.settled) }

// inFlightMean is how many REQs were in flight on average, by Little's law: their rate times their
// mean latency.
func (r *fetchResult) inFlightMean() float64 {
	span := r.stats.Duration
	if span <= 0 {
		return 0
	}
	return float64(r.stats.Latency.Count()) * r.stats.Latency.Mean().Seconds() / span.Seconds()
}

// toolShare is how much of the processors that it may use relaybench itself kept busy, from 0 to 1.
func (r *fetchResult) toolShare() float64 {
	if r.Wall <= 0 || r.Usage == nil {
		return 0
	}
	return r.Usage.Tool.CPU.Seconds() / r.Wall.Seconds() / float64(runtime.GOMAXPROCS(0))
}

// demand is how much of the processors one event a second takes of relaybench.
func (r *fetchResult) demand() float64 {
	if r.Delivered == 0 || r.Usage == nil {
		return 0
	}
	return r.Usage.Tool.CPU.Seconds() / float64(r.Delivered) / float64(runtime.GOMAXPROCS(0))
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

// fetching is a cell on its way.
type fetching struct {
	*fetchResult
	to        *fetchTarget
	o         *FetchOptions
	collector *collector
	client    client.Options
	asked     []corpus.ID // what was asked for by id, where that is what was to come
	spans     []timeSpan  // the shares of the time

	stepping sync.Mutex // guards what shares of the time have in common
	stepped  []int64    // seconds that were left before they had been read whole, in no order
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
	most := o.Events
	if c.strategy.byIDs() { // which ask for no more ids than that
		most = 0
	}
	collector := newCollector(ctx, end, c.form, c.conns, to.expected.room(), most, to.expected.records)
	if o.Time > 0 {
		defer time.AfterFunc(o.Time, func() { collector.over(&load.CutError{Limit: "--cell-time " + o.Time.String()}) }).Stop()
	}
	cellCtx, cancel := o.within(cellCtx, to.expected.size())
	defer cancel()
	f := fetching{fetchResult: r, to: to, o: o, collector: collector,
		client: client.Options{URL: to.url, Compression: c.form.deflate, Stall: o.stall, Attempts: fetchAttempts, Trouble: collector.trouble}}
	var relay []*relays.Process
	if to.relay != nil && !to.relay.External() {
		relay = append(relay, to.relay)
	}
	stop := load.Measure(relay...)
	start := wire.Now()
	err := f.fetch(cellCtx)
	span := wire.Now() - start
	got := collector.finish()
	r.Usage = stop()
	late := (*load.TimeError)(nil)
	if d := r.stats.Duration; d > 0 && !errors.As(err, &late) {
		span = d // without connecting and closing
	}
	r.Wall = r.reconcile + span + got.late
	f.settle(ctx, got, err)
	return r
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

// within limits a cell. Once o.Time is over only the first event is waited for: as long as
// connecting and asking may take.
func (o *FetchOptions) within(ctx context.Context, events int) (context.Context, context.CancelFunc) {
	if o.Time <= 0 {
		return o.budget.Within(ctx, 0, events)
	}
	most := o.Time + 2*o.stall
	return context.WithTimeoutCause(ctx, most, &load.TimeError{After: most})
}

// dial connects for something beside a cell's requests.
func (t *fetchTarget) dial(ctx context.Context, o *FetchOptions, compression bool) (*wire.Conn, error) {
	handshake, cancel := context.WithTimeout(ctx, o.stall)
	defer cancel()
	return wire.Dial(handshake, t.url, wire.Options{Compression: compression})
}

// compresses finds out once whether the relay agrees to permessage-deflate. Where it cannot be
// asked, the cell shall say why.
func (t *fetchTarget) compresses(ctx context.Context, o *FetchOptions) bool {
	if t.compression == nil {
		conn, err := t.dial(ctx, o, true)
		if err != nil {
			return true
		}
		agreed := conn.Negotiated() != ""
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
	unsupported, err := t.probeNIP77(ctx, o, 0)
	if err == nil && unsupported != nil && unsupported.How == negentropy.BySilence {
		began := wire.Now()
		if silent := t.answers(ctx, o); silent != nil || wire.Now()-began > prompt {
			unsupported, err = t.probeNIP77(ctx, o, o.stall)
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

// probeNIP77 reconciles nothing. The error says that this left it open whether the relay supports
// NIP-77.
func (t *fetchTarget) probeNIP77(ctx context.Context, o *FetchOptions, within time.Duration) (unsupported *negentropy.UnsupportedError, err error) {
	conn, err := t.dial(ctx, o, false)
	if err != nil {
		return nil, err
	}
	defer conn.Abort()
	err = negentropy.Probe(ctx, conn, within)
	if errors.As(err, &unsupported) {
		return unsupported, nil
	}
	return nil, err
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
func (f *fetching) settle(ctx context.Context, got collected, err error) {
	r, set, asked := f.fetchResult, f.to.expected, f.asked
	unnamed := 0
	if r.strategy == fetchByName { // what is expected does not shrink to what the relay names
		unnamed, r.invented = set.unnamed(asked, got.ids)
		if asked = slices.Concat(asked, set.listed); set.known() {
			asked = nil
		}
		slices.SortFunc(asked, func(a, b corpus.ID) int { return bytes.Compare(a[:], b[:]) })
		asked = slices.Compact(asked)
	}
	if r.form.parsed {
		set.learn() // also of a cut one, or one that failed: what came can be asked for by id
	}
	y := set.judge(got.ids, asked, f.spans, f.stepped)
	r.Account.Add(r.stats)
	r.Delivered, r.duplicates = y.unique, y.duplicates+got.duplicates+int(r.stats.Duplicates)
	r.again = int(r.stats.Repeated)
	if r.strategy.giants() {
		r.again = y.duplicates + got.duplicates
	}
	r.unexpected, r.refused = y.unexpected+int(r.stats.Unexpected), got.refused
	r.Expected, r.Missing, r.matchBytes = y.expected, y.missing, y.bytes
	if !set.known() || set.open {
		r.matchBytes = 0
		if n := int64(y.unique + r.duplicates - int(r.stats.Duplicates)); n > 0 {
			r.matchBytes = r.stats.EventBytes * int64(y.unique) / n
		}
	}
	if s, foldErr := set.fold(got.ids, &y); foldErr == nil {
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
	counted := func(code, name string, n int) results.Reason {
		return results.Reason{Code: code, Counts: map[string]float64{name: float64(n)}}
	}
	switch {
	case y.newest && y.missing > 0 && r.strategy == fetchGiant:
		r.Excused, r.Why = true, counted(results.CauseCapped, "events", y.unique)
	case y.newest && y.missing > 0 && r.strategy == fetchShardedGiant:
		r.Excused, r.Why = true, results.Reason{Code: results.CauseCapped}
	case y.missing > 0 && y.missing == y.stepped: // the answers are capped, and until knows no part of a second
		r.Excused = true
	case y.missing > 0 && unnamed > 0:
		r.Why = counted(results.WhyUnnamed, "unnamed", unnamed)
	case r.Why.None() && r.Expected < 0 && len(set.listed) > y.unique:
		r.Why = counted(results.WhyMore, "events", len(set.listed))
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
func (f *fetching) byTime(ctx context.Context, part func(context.Context, corpus.Filter) (*client.Stats, results.Reason, error)) error {
	f.settled, f.spans = 1, f.to.expected.shares(&f.to.filter, f.conns)
	n := len(f.spans)
	stats, whys, errs := make([]*client.Stats, n), make([]results.Reason, n), make([]error, n)
	var all sync.WaitGroup
	for k, s := range f.spans {
		filter := f.to.filter
		filter.Since, filter.Until = s.since, s.until
		all.Go(func() { stats[k], whys[k], errs[k] = part(ctx, filter) })
	}
	all.Wait()
	f.stats = client.Sum(stats...)
	for _, why := range whys {
		if f.Why.None() {
			f.Why = why
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// mostOfGiant is the limit of a giant REQ where nobody knows how much there is: relays have smaller
// ones of their own where there is none.
const mostOfGiant = 1_000_000

func (f *fetching) giant(ctx context.Context, filter corpus.Filter) (*client.Stats, results.Reason, error) {
	filter.Limit = corpus.Int(mostOfGiant)
	if n := f.to.expected.room(); n > 0 && !f.to.expected.open {
		filter.Limit = corpus.Int(max(n, 1))
	}
	s, err := client.Once(ctx, f.client, filter, f.collector.take)
	return s, results.Reason{}, err
}

func (f *fetching) paged(ctx context.Context, filter corpus.Filter) (*client.Stats, results.Reason, error) {
	limits, size := f.to.limits, f.o.Page
	if most := limits.Events; most > 0 {
		size = min(size, most)
	}
	options := f.client
	options.Attempts = pageAttempts
	p := client.Pages{Options: options, Filter: filter, Size: size, Widest: max(size, limits.Widest()), Single: limits.Subscriptions == 1, Take: f.collector.take}
	done, err := p.Run(ctx)
	var why results.Reason
	if n := len(done.Stepped); n > 0 {
		f.stepping.Lock()
		f.stepped = append(f.stepped, done.Stepped...)
		f.stepping.Unlock()
		why = fullSeconds(done.Stepped)
		why.Counts["asked"] = float64(p.Widest)
	}
	return done.Stats, why, err
}

// fullSeconds is the reason of what is missing where pages left these seconds, newest first, before
// they had been read whole.
func fullSeconds(stepped []int64) results.Reason {
	return results.Reason{Code: results.CauseFullSeconds, Counts: map[string]float64{"seconds": float64(len(stepped)), "newest": float64(stepped[0])}}
}

func (f *fetching) byID(ctx context.Context, ids []corpus.ID) error {
	cut := f.o.Events > 0 && len(ids) > f.o.Events
	if cut {
		ids = ids[:f.o.Events]
	}
	f.asked = ids
	f.collector.named(false)
	b := client.ByID{Options: f.client, Conns: f.conns, Batch: f.batch, InFlight: f.inFlight, Adaptive: f.adaptive, Retries: fetchRetries, Take: f.collector.take}
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
	conn, err := f.to.dial(ctx, f.o, f.form.deflate)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("connecting: %w", err)
	}
	defer context.AfterFunc(ctx, conn.Abort)()
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
	result, err := negentropy.ReconcileSplit(ctx, conn, f.to.filter.AppendJSON(nil), nothing, negentropy.Options{Stall: f.o.stall, MaxNeed: most,
		Need: func(need []negentropy.ID) {
			f.collector.named(true)
			for _, id := range need {
				ids = append(ids, corpus.ID(id))
			}
		}})
	f.reconcile, f.rounds = wire.Now()-began, result.Rounds
	f.stats.Dials = 1
	f.stats.Bytes, f.stats.BytesUp = conn.BytesRead(), conn.BytesWritten()
	f.stats.Requests = result.Rounds
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if unsupported := (*negentropy.UnsupportedError)(nil); errors.As(err, &unsupported) {
		f.notMeasured = results.Said(results.CauseNoNIP77, unsupported.Error())
	}
	return ids, err
}
