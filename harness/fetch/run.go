package fetch

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

// Result is what one cell came to.
type Result struct {
	Cell
	NA results.Reason // why it was not measured; nothing else is set then
	load.Account
	Stats      *client.Stats
	Duplicates int           // events that came more than once, as often as they did again
	Again      int           // of those, as often as one answer held an event twice
	Strangers  int           // events that the relay should not have sent
	Refused    int           // events that failed a check, where events are checked
	Retried    int           // ids asked for again
	LeftOut    int           // events that came only then, though no cap of the relay's explains that
	Failed     int           // ids without an answer
	Named      int           // ids that a reconciliation named
	Unreturned int           // of those, how many the relay did not send when it was asked for them
	Invented   int           // of those, how many are of no event that anybody published
	MatchBytes int64         // of the distinct events that came, as JSON
	Settled    int           // REQs in flight on each connection in the end
	Steps      []client.Step // how an adaptive window got there
	Reconcile  time.Duration // the part of Wall before the ids were known
	Rounds     int           // of that
}

// Rate is in distinct events a second, up to the last one that was dealt with.
func (r *Result) Rate() float64 { return r.RecordsPerSecond() }

// Overfetch is how many bytes came on the sockets for each byte of a distinct event; 0 where that is not known.
func (r *Result) Overfetch() float64 {
	if r.MatchBytes == 0 {
		return 0
	}
	return float64(r.ResponseBytes) / float64(r.MatchBytes)
}

// Configured is how many REQs may be in flight at a time, over all connections.
func (r *Result) Configured() int { return max(1, r.Conns) * max(1, r.Settled) }

// InFlightMeant is how many REQs were in flight on average, by Little's law: their rate times their mean latency.
func (r *Result) InFlightMeant() float64 {
	span := r.Stats.Duration
	if span <= 0 {
		return 0
	}
	return float64(r.Stats.Latency.Count()) * r.Stats.Latency.Mean().Seconds() / span.Seconds()
}

// ToolShare is how much of the processors that it may use relaybench itself kept busy, from 0 to 1.
func (r *Result) ToolShare() float64 {
	if r.Wall <= 0 || r.Usage == nil {
		return 0
	}
	return r.Usage.Tool.CPU.Seconds() / r.Wall.Seconds() / float64(runtime.GOMAXPROCS(0))
}

// demand is how much of the processors one event a second takes of relaybench.
func (r *Result) demand() float64 {
	if r.Delivered == 0 || r.Usage == nil {
		return 0
	}
	return r.Usage.Tool.CPU.Seconds() / float64(r.Delivered) / float64(runtime.GOMAXPROCS(0))
}

// Unreachable reports that not one connection came about, or that the relay answers nothing at all, so that there is no use in going on.
func (r *Result) Unreachable() bool {
	return r.NA.None() && r.Err != nil && (r.Stats.Dials == 0 || errors.Is(r.Err, errSilent))
}

const (
	retries  = 2 // for ids that did not come
	attempts = 2 // for connections in a row
	// pageAttempts is how many pages in a row may bring nothing: each connection that is lost makes the next page smaller, so that a relay
	// that drops whom it has to wait for is asked for little enough in the end, as it is by a download.
	pageAttempts = 5
)

// Run measures one cell. Whatever the relay does ends up in the result; it ends with ctx.
func (c Cell) Run(ctx context.Context, t *Target, o *Options) *Result {
	r := &Result{Cell: c, Stats: client.Sum(), Account: load.Account{Expected: -1}}
	if r.NA = r.Cell.fit(t.Limits); !r.NA.None() {
		return r
	}
	var asked []corpus.ID
	if c.Form.Deflate && !t.compresses(ctx, o) {
		r.NA = results.Reason{Code: results.CauseNoCompression}
		return r
	}
	if c.Strategy == Negentropy {
		if r.NA = t.withoutNegentropy(ctx, o); !r.NA.None() {
			return r
		}
	}
	if c.Strategy == ByID {
		if asked = t.Ground.IDs(); len(asked) == 0 {
			r.NA = results.Reason{Code: results.CauseNoIDs}
			if t.Ground.Known() {
				r.NA = results.Reason{Code: results.CauseNoMatch}
			}
			return r
		}
	}
	debug.FreeOSMemory() // what the cell before left is neither this one's memory nor its work
	cellCtx, end := context.WithCancelCause(ctx)
	defer end(nil)
	records := t.Ground.records
	most := o.Events
	if c.Strategy == ByID || c.Strategy == Negentropy { // which ask for no more ids than that
		most = 0
	}
	taker := newTaker(ctx, end, c.Form, c.Conns, t.Ground.room(), most, records)
	if o.Time > 0 {
		defer time.AfterFunc(o.Time, func() { taker.over(&load.CutError{Limit: "--cell-time " + o.Time.String()}) }).Stop()
	}
	cellCtx, cancel := o.within(cellCtx, t.Ground.size())
	defer cancel()
	f := fetching{Cell: r.Cell, t: t, o: o, r: r, taker: taker,
		options: client.Options{URL: t.URL, Compression: c.Form.Deflate, Stall: o.Stall, Attempts: attempts, Trouble: taker.trouble}}
	var relay []*relays.Process
	if t.Process != nil {
		relay = append(relay, t.Process)
	}
	meter := load.Measure(relay...)
	start := wire.Now()
	ended, err := f.fetch(cellCtx, asked)
	span := wire.Now() - start
	got := taker.finish()
	r.Usage = meter.Stop()
	late := (*load.TimeError)(nil)
	if d := r.Stats.Duration; d > 0 && !errors.As(err, &late) {
		span = d // without connecting and closing
	}
	r.Wall = r.Reconcile + span + got.late
	r.settle(ctx, t, got, &f, ended, err)
	return r
}

// within limits a cell. Once o.Time is over only the first event is waited for: as long as
// connecting and asking may take.
func (o *Options) within(ctx context.Context, events int) (context.Context, context.CancelFunc) {
	if o.Time <= 0 {
		return o.Budget.Within(ctx, 0, events)
	}
	most := o.Time + 2*o.Stall
	return context.WithTimeoutCause(ctx, most, &load.TimeError{After: most})
}

// compresses finds out once whether the relay agrees to permessage-deflate. Where it cannot be asked, the cell shall say why.
func (t *Target) compresses(ctx context.Context, o *Options) bool {
	t.asking.Lock()
	defer t.asking.Unlock()
	if t.compression == nil {
		handshake, cancel := context.WithTimeout(ctx, o.Stall)
		defer cancel()
		conn, err := wire.Dial(handshake, t.URL, wire.Options{Compression: true})
		if err != nil {
			return true
		}
		agreed := conn.Negotiated() != ""
		t.compression = &agreed
		conn.Close()
	}
	return *t.compression
}

// errSilent is a relay that answers nothing at all.
var errSilent = errors.New("the relay does not answer a REQ for one event either")

// answers finds out whether the relay answers anything, where nothing came in a cell.
func (t *Target) answers(ctx context.Context, o *Options) error {
	came := errors.New("an event came")
	take := func(context.Context, *client.Event, bool) (bool, error) { return true, came }
	_, err := client.Once(ctx, client.Options{URL: t.URL, Stall: o.Stall}, corpus.Filter{Limit: corpus.Int(1)}, take)
	var closed *client.ClosedError
	if err == nil || errors.Is(err, came) || errors.As(err, &closed) {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", errSilent, err)
}

// settle judges what came.
func (r *Result) settle(ctx context.Context, t *Target, got finished, f *fetching, ended bool, err error) {
	g, asked := t.Ground, f.asked
	unnamed := 0
	if r.Strategy == Negentropy { // what is expected does not shrink to what the relay names
		unnamed, r.Invented = g.unnamed(asked, got.ids)
		if asked = slices.Concat(asked, g.listed); g.corpus != nil {
			asked = nil
		}
		slices.SortFunc(asked, func(a, b corpus.ID) int { return bytes.Compare(a[:], b[:]) })
		asked = slices.Compact(asked)
	}
	if r.Form.Parsed {
		g.learn() // also of a cut one, or one that failed: what came can be asked for by id
	}
	y := g.judge(got.ids, asked, f.spans, f.stepped)
	r.Account.Add(r.Stats)
	r.Delivered, r.Duplicates = y.unique, y.duplicates+got.duplicates+int(r.Stats.Duplicates)
	r.Again = int(r.Stats.Repeated)
	if r.Strategy == Giant || r.Strategy == ShardedGiant { // which ask once
		r.Again = y.duplicates + got.duplicates
	}
	r.Strangers, r.Refused = y.strangers+int(r.Stats.Unexpected), got.refused
	r.Expected, r.Missing, r.MatchBytes = y.expected, y.missing, y.bytes
	if g.corpus == nil || g.open {
		r.MatchBytes = 0
		if n := int64(y.unique + r.Duplicates - int(r.Stats.Duplicates)); n > 0 {
			r.MatchBytes = r.Stats.EventBytes * int64(y.unique) / n
		}
	}
	if s, foldErr := g.fold(got.ids, &y); foldErr == nil {
		r.State = s
	}
	switch {
	case err != nil:
		r.End(told(ctx, err))
		late := (*load.TimeError)(nil)
		r.Excused = errors.As(err, &late) && r.Form.Parsed && r.ToolShare() >= busy
		if f.o.Time > 0 && r.Err != nil && r.Stats.Events == 0 {
			if silent := t.answers(ctx, f.o); silent != nil {
				r.Err = fmt.Errorf("%w: %w", r.Err, silent)
			}
		}
	case asked != nil:
		r.Assured = true
	}
	if r.Refused > 0 && (r.Err == nil || r.Cut != "") { // which no cut excuses
		r.Cut, r.Err = "", fmt.Errorf("%d events failed the check of their id or signature", r.Refused)
	}
	if r.Err != nil || r.Cut != "" {
		return
	}
	switch {
	case y.newest && y.missing > 0 && r.Strategy == Giant && ended:
		r.Excused, r.Why = true, counted(results.CauseCapped, "events", y.unique)
	case y.newest && y.missing > 0 && r.Strategy == ShardedGiant && ended:
		r.Excused, r.Why = true, results.Reason{Code: results.CauseCapped}
	case y.missing > 0 && y.missing == y.stepped: // the answers are capped, and until knows no part of a second
		r.Excused = true
	case y.missing > 0 && unnamed > 0:
		r.Why = counted(results.WhyUnnamed, "unnamed", unnamed)
	case r.Why.None() && r.Expected < 0 && len(g.listed) > y.unique:
		r.Why = counted(results.WhyMore, "events", len(g.listed))
	case r.Why.None() && r.Expected < 0 && r.Strategy == Paged && ended:
		r.Why = results.Reason{Code: results.CauseEndAsSaid}
	}
}

// told is an error as it stands in results: the first of several, and how many more connections
// gave one.
func told(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if all, several := err.(interface{ Unwrap() []error }); several && len(all.Unwrap()) > 1 {
		return fmt.Errorf("%w (and on %d more connections)", all.Unwrap()[0], len(all.Unwrap())-1)
	}
	return err
}

// counted is a reason with one number.
func counted(code, name string, n int) results.Reason {
	return results.Reason{Code: code, Counts: map[string]float64{name: float64(n)}}
}

// fetching is a cell on its way.
type fetching struct {
	Cell
	t       *Target
	o       *Options
	r       *Result
	taker   *taker
	options client.Options
	asked   []corpus.ID // what was asked for by id, where that is what was to come
	spans   []span      // the shares of the time, where it was divided

	stepping sync.Mutex // guards what shares of the time have in common
	stepped  []int64    // seconds that were left before they had been read whole, in no order
}

// fetch asks. ended says that the relay ended all answers in order.
func (f *fetching) fetch(ctx context.Context, ids []corpus.ID) (ended bool, err error) {
	switch f.Strategy {
	case Giant:
		f.r.Settled = 1
		return f.giant(ctx, f.t.Filter)
	case Paged:
		f.r.Settled = 1
		return f.paged(ctx, f.t.Filter)
	case ShardedGiant:
		f.r.Settled = 1
		return f.sharded(ctx, f.giantPart)
	case ShardedPaged:
		f.r.Settled = 1
		return f.sharded(ctx, f.pagedPart)
	case ByID:
		return f.byID(ctx, ids)
	}
	ids, err = f.reconcile(ctx)
	f.r.Named = len(ids)
	if err != nil || len(ids) == 0 {
		return err == nil, err
	}
	return f.byID(ctx, ids)
}

// mostOfGiant is the limit of a giant REQ where nobody knows how much there is: relays have smaller ones of their own where there is none.
const mostOfGiant = 1_000_000

func (f *fetching) giant(ctx context.Context, filter corpus.Filter) (bool, error) {
	s, _, err := f.giantPart(ctx, filter)
	f.r.Stats = client.Sum(s)
	return err == nil, err
}

func (f *fetching) giantPart(ctx context.Context, filter corpus.Filter) (*client.Stats, results.Reason, error) {
	filter.Limit = corpus.Int(mostOfGiant)
	if n := f.t.Ground.room(); n > 0 && !f.t.Ground.open {
		filter.Limit = corpus.Int(max(n, 1))
	}
	s, err := client.Once(ctx, f.options, filter, f.taker.take)
	return s, results.Reason{}, err
}

func (f *fetching) paged(ctx context.Context, filter corpus.Filter) (bool, error) {
	s, why, err := f.pagedPart(ctx, filter)
	f.r.Stats, f.r.Why = client.Sum(s), why
	return err == nil, err
}

func (f *fetching) pagedPart(ctx context.Context, filter corpus.Filter) (*client.Stats, results.Reason, error) {
	size := f.o.Page
	if most := f.t.Limits.Events; most > 0 {
		size = min(size, most)
	}
	options := f.options
	options.Attempts = pageAttempts
	p := client.Pages{Options: options, Filter: filter, Size: size, Widest: max(size, f.t.Limits.Widest()), Single: f.t.Limits.Subscriptions == 1, Take: f.taker.take}
	done, err := p.Run(ctx)
	var why results.Reason
	if n := len(done.Stepped); n > 0 {
		f.stepping.Lock()
		f.stepped = append(f.stepped, done.Stepped...)
		f.stepping.Unlock()
		why = results.Reason{Code: results.CauseFullSeconds, Counts: map[string]float64{"seconds": float64(n), "newest": float64(done.Stepped[0]), "asked": float64(p.Widest)}}
	}
	return done.Stats, why, err
}

// sharded asks for each share of the time on a connection of its own.
func (f *fetching) sharded(ctx context.Context, part func(context.Context, corpus.Filter) (*client.Stats, results.Reason, error)) (bool, error) {
	spans := f.t.Ground.shards(&f.t.Filter, f.Conns)
	f.spans = spans
	stats, whys, errs := make([]*client.Stats, len(spans)), make([]results.Reason, len(spans)), make([]error, len(spans))
	var all sync.WaitGroup
	for k, s := range spans {
		filter := f.t.Filter
		filter.Since, filter.Until = s.since, s.until
		all.Go(func() { stats[k], whys[k], errs[k] = part(ctx, filter) })
	}
	all.Wait()
	f.r.Stats = client.Sum(stats...)
	for _, why := range whys {
		if f.r.Why.None() {
			f.r.Why = why
		}
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	err := errors.Join(errs...)
	return err == nil, err
}

func (f *fetching) byID(ctx context.Context, ids []corpus.ID) (bool, error) {
	cut := f.o.Events > 0 && len(ids) > f.o.Events
	if cut {
		ids = ids[:f.o.Events]
	}
	f.asked = ids
	f.taker.named(false)
	b := client.ByID{Options: f.options, Conns: f.Conns, Batch: f.Batch, InFlight: f.InFlight, Adaptive: f.Adaptive, Retries: retries, Take: f.taker.take}
	done, err := b.Run(ctx, ids)
	f.r.Stats = client.Sum(f.r.Stats, done.Stats)
	f.r.Retried, f.r.Failed, f.r.Settled, f.r.Steps = done.Retried, len(done.Failed), done.InFlight, done.Steps
	f.r.Unreturned, f.r.LeftOut = len(done.Missing), done.LeftOut
	if cut && err == nil {
		err = &load.CutError{Limit: fmt.Sprintf("--cell-events %d", f.o.Events)}
	}
	return err == nil, err
}

// reconcile finds the relay's ids by a reconciliation with nothing.
func (f *fetching) reconcile(ctx context.Context) ([]corpus.ID, error) {
	handshake, cancel := context.WithTimeout(ctx, f.o.Stall)
	defer cancel()
	conn, err := wire.Dial(handshake, f.t.URL, wire.Options{Compression: f.options.Compression})
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
	filter := f.t.Filter
	filter.Limit = nil
	most := negentropy.DefaultMaxNeed
	if n := f.t.Ground.room(); n > 0 && !f.t.Ground.open {
		most = 2*n + slack
	}
	var ids []corpus.ID
	began := wire.Now()
	result, err := negentropy.ReconcileSplit(ctx, conn, filter.AppendJSON(nil), nothing, negentropy.Options{Stall: f.o.Stall, MaxNeed: most,
		Need: func(need []negentropy.ID) {
			f.taker.named(true)
			for _, id := range need {
				ids = append(ids, corpus.ID(id))
			}
		}})
	f.r.Reconcile, f.r.Rounds = wire.Now()-began, result.Rounds
	f.r.Stats.Dials = 1
	f.r.Stats.Bytes, f.r.Stats.BytesUp = conn.BytesRead(), conn.BytesWritten()
	f.r.Stats.Requests = result.Rounds
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if unsupported := (*negentropy.UnsupportedError)(nil); errors.As(err, &unsupported) {
		f.r.NA = results.Said(results.CauseNoNIP77, unsupported.Error())
	}
	return ids, err
}
