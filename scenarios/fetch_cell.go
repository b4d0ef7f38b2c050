package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/harness/load"
	"relaybench/harness/receive"
	"relaybench/relays"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
	"relaybench/results"
)

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
