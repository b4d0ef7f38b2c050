package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
	"relaybench/results"
)

// carried is what relaybench carried from one relay to the other, over all transfers of a mode.
type carried struct {
	*load.Published               // at the sink, or whoever got them
	missing         int           // asked for, and not sent
	from            [2]sent       // by the source, and by the sink
	took            time.Duration // of the transfers alone
}

// sent is how one relay sent what it was asked for.
type sent struct {
	*client.Stats             // of what it was asked; Lost is of connections to it that broke, whichever way events went
	altered       []corpus.ID // by it
	notOfCorpus   int         // events
	retried       int         // ids that were asked for again
	leftOut       int         // ids that came only then, as in client.Fetched
	unfinished    int         // REQs that it left so, as in hungUp
}

func newCarried() *carried {
	return &carried{Published: load.NewPublished(), from: [2]sent{{Stats: client.NewStats()}, {Stats: client.NewStats()}}}
}

// waited is how long relays had to wait for whoever got their events.
func (c *carried) waited() time.Duration { return c.from[0].Waited + c.from[1].Waited }

func (c *carried) measure(t *harness.Trial) {
	if seconds := c.took.Seconds(); seconds > 0 {
		t.Value("transfer events/s", "events/s", results.None, float64(c.Accepted+c.Duplicates)/seconds)
		t.Value("waiting for the sink", "%", results.None, 100*c.waited().Seconds()/seconds)
	}
	a, b := &c.from[0], &c.from[1]
	both := client.Sum(a.Stats, b.Stats)
	t.Value("not sent by the source", "events", results.None, float64(c.missing))
	t.Value("never answered by the sink", "events", results.None, float64(c.Unanswered))
	t.Value("of no corpus event", "events", results.None, float64(a.notOfCorpus+b.notOfCorpus))
	t.Value("unasked", "events", results.None, float64(both.Unexpected))
	t.Value("duplicates", "events", results.None, float64(both.Repeated))
	t.Value("retried", "ids", results.None, float64(a.retried+b.retried))
	t.Value(lostConnections, "connections", results.None, float64(both.Lost))
	byReason(t, "refused", c.Reasons)
	_ = t.Latency("REQ to EOSE", results.None, both.Latency)
	_ = t.Latency("EVENT to OK", results.None, c.Latency)
}

// add takes in one transfer, to the one relay from the other.
func (c *carried) add(x *load.Transferred, s *client.Stats, from, to *sent) {
	if to.Lost += x.Lost; x.Loss != nil {
		to.Loss = x.Loss
	}
	c.Add(&x.Published)
	from.altered = append(from.altered, x.Altered...)
	from.notOfCorpus += x.Unexpected
	c.took += x.Duration
	from.Stats = client.Sum(from.Stats, s)
	from.unfinished += hungUp(s)
}

// transfer carries what ask gets of the one relay to the other, and continues the timeline.
func (r *syncing) transfer(ctx context.Context, to *harness.Trial, total int, ask func(ctx context.Context, take client.Take) error) (*load.Transferred, error) {
	start := wire.Now()
	p := to.Publisher(r.Sink.Progress)
	done, err := p.Transfer(ctx, total, ask)
	r.done.waiting, r.done.asked = done.Waiting, done.Asked
	if to == r.Sink && done.Latency != nil {
		from := int((start - r.began) / time.Second)
		for i, n := range done.Timeline {
			for len(r.done.timeline) <= from+i {
				r.done.timeline = append(r.done.timeline, 0)
			}
			r.done.timeline[from+i] += n
		}
	}
	last := done.Last
	if err != nil { // what stands still takes its time as well
		last = wire.Now()
	}
	r.done.account.Wall = max(r.done.account.Wall, last-r.began)
	return done, err
}

// add takes in one transfer from a relay to the other one, and returns what the first has sent so
// far.
func (r *syncing) add(done *load.Transferred, s *client.Stats, source *harness.Trial) (from *sent) {
	c := r.done.carried
	from, to := &c.from[0], &c.from[1]
	if source == r.Sink {
		from, to = to, from
	}
	c.add(done, s, from, to)
	r.done.account.Add(s)
	return from
}

// req asks for everything in pages, newest first, and publishes it at the pace of the sink. It is
// what a client without anything better does, and is not tried again: a source that does not wait
// for slow readers ends it.
func (r *syncing) req(ctx context.Context) error {
	total := len(r.had[0].mustSend)
	r.done.carried = newCarried()
	var paged *client.Paged
	turned := int64(0) // events up to the last page that came whole
	pages := client.Pages{Options: client.Options{URL: r.Source.Relay.URL(), Stall: r.Sink.Options.Stall}, Size: r.Page, Widest: max(r.Page, DefaultPage)}
	done, err := r.transfer(ctx, r.Sink, total, func(ctx context.Context, take client.Take) (err error) {
		events := int64(0)
		pages.Take = func(ctx context.Context, e *client.Event, wait bool) (bool, error) {
			ok, err := take(ctx, e, wait)
			if ok {
				events++
			}
			return ok, err
		}
		pages.Turned = func(int64) error {
			turned = events
			return nil
		}
		paged, err = pages.Run(ctx)
		return err
	})
	r.add(done, paged.Stats, r.Source)
	r.Sink.Value("pages", "pages", results.None, float64(paged.Pages))
	r.done.stepped = paged.Stepped
	if err := r.ended(ctx, err, r.Source, r.Sink, paged.Stats, total); err != nil || r.done.ended.None() {
		return err
	}
	size := r.Source.Corpus.Manifest().Bytes / int64(r.Source.Corpus.Len()) // it may end before the first event
	if paged.Events > 0 {
		size = paged.EventBytes / paged.Events
	}
	left := min(int64(r.Page)-(paged.Events-turned), int64(total)-paged.Events)
	r.done.ended.Counts["left MB"] = float64(max(0, left)*size) / 1e6
	return nil
}

// ended keeps who ended a transfer where it stopped, and how far it was; what concerns nobody but
// relaybench is an error.
func (r *syncing) ended(ctx context.Context, err error, from, to *harness.Trial, s *client.Stats, total int) error {
	var source *load.SourceError
	var sink *load.SinkError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &source):
		r.done.account.Err = source.Err
		r.endedBy(from)
		r.stops = append(r.stops, from.Relay.Name())
	case errors.As(err, &sink):
		r.done.account.Err = sink.Err
		r.endedBy(to)
	default:
		return err
	}
	r.done.ended.Counts = counts("came", s.Events, "of", total, "lost", s.Lost)
	if r.done.stoppedBy == from && s.Events > 0 && s.Waited > s.Duration/10 {
		r.done.ended.Counts["waited"] = 1
	}
	return nil
}

// reconciled is what reconciling cost, over all rounds of a mode.
type reconciled struct {
	first      negentropy.Result
	checks     negentropy.Result // after each transfer: whether everything was delivered
	transfers  int
	stragglers int // events that a check found to be missing still
	unexpected int // ids that are not of the corpus
}

func (c *reconciled) measure(t *harness.Trial) {
	t.Value("reconcile time", "ms", results.None, harness.Milliseconds(c.first.Duration))
	t.Value("reconcile rounds", "rounds", results.None, float64(c.first.Rounds))
	t.Value("reconcile bytes", "MiB", results.None, float64(c.first.BytesUp+c.first.BytesDown)/(1<<20))
	t.Value("check time", "ms", results.None, harness.Milliseconds(c.checks.Duration))
	t.Value("transfers", "transfers", results.None, float64(c.transfers))
	t.Value("stragglers", "events", results.None, float64(c.stragglers))
	t.Value("ids of no corpus event", "ids", results.None, float64(c.unexpected))
}

// way is one direction in which events go.
type way struct {
	from, to *harness.Trial
	lacks    []int   // what to lacks
	tries    []uint8 // how often each event of the corpus was carried
	left     int     // how many events to lacked at the last check
}

const (
	syncBatch   = 100 // ids in one REQ
	syncAtOnce  = 8   // REQs in flight
	syncTries   = 2   // transfers of one event at most
	syncRetries = 3   // REQs for one id at most, beyond the first, in one transfer

	throttlePause = time.Second // before a relay that limits its clients gets more
)

// negentropy reconciles, carries over what differs, and reconciles again, until nothing differs or
// nothing moves any more. The agent stands at the sink and pulls (down), or at the source and
// pushes (up); where both have events that the other lacks, it does both.
func (r *syncing) negentropy(ctx context.Context) error {
	r.done.carried, r.done.reconciled = newCarried(), &reconciled{}
	ways, err := r.begins(ctx)
	if err != nil {
		return err
	}
	for moving := true; moving; {
		moving = false
		for _, w := range ways {
			if len(w.lacks) == 0 {
				continue
			}
			moving = true
			if err := r.carry(ctx, w); err != nil || r.done.account.Err != nil {
				return err
			}
		}
		for _, w := range ways {
			if !moving {
				break
			}
			if err := r.check(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// begins reconciles for the first time, and finds out in which ways events have to go.
func (r *syncing) begins(ctx context.Context) ([]*way, error) {
	server, own := r.Source, r.had[1].mustSend
	if r.Direction == relays.Up {
		server, own = r.Sink, r.had[0].mustSend
	}
	have, need := located{corpus: server.Corpus}, located{corpus: server.Corpus}
	var err error
	if r.done.reconciled.first, err = r.reconcile(ctx, server, own, have.add, need.add); err != nil {
		return nil, server.Fault(fmt.Errorf("reconciling with %s: %w", server.Relay.Name(), err))
	}
	if r.done.reconciled.unexpected = need.unexpected; need.unexpected > 0 {
		server.Alone().AddFinding(check(results.CodeOnlyKnown, false, counts("ids", need.unexpected, "twice", 0)))
	}
	n := server.Corpus.Len()
	ways := []*way{{from: r.Source, to: r.Sink, tries: make([]uint8, n), lacks: need.newestFirst()}}
	switch r.Direction {
	case relays.Up:
		ways[0].lacks = have.newestFirst()
	case relays.Both:
		// Newer versions that come down may replace what the sink has before it is asked for that.
		lacks := slices.DeleteFunc(have.newestFirst(), func(i int) bool { return !r.expected.Holds(i) })
		ways = append(ways, &way{from: r.Sink, to: r.Source, tries: make([]uint8, n), lacks: lacks})
	}
	return ways, nil
}

// reconcile compares what a relay has with events of the corpus.
func (r *syncing) reconcile(ctx context.Context, with *harness.Trial, indexes []int,
	have, need func([]negentropy.ID)) (negentropy.Result, error) {
	r.done.reconciling = with
	result, err := differ(ctx, with.Relay.URL(), with.Corpus, indexes, negentropy.Options{Stall: with.Options.Stall, Have: have, Need: need})
	if r.done.account.ResponseBytes += result.BytesDown; err == nil {
		r.done.reconciling = nil
	}
	return result, err
}

// located turns ids into places in the corpus as they come: a million of them take 8 MB.
type located struct {
	corpus     *corpus.Corpus
	indexes    []int
	unexpected int // ids that are not of it
}

func (l *located) add(ids []negentropy.ID) {
	eachID(func(id corpus.ID) {
		if i, ok := l.corpus.Find(id); ok {
			l.indexes = append(l.indexes, i)
		} else {
			l.unexpected++
		}
	})(ids)
}

func (l *located) newestFirst() []int {
	slices.SortFunc(l.indexes, func(a, b int) int { return b - a })
	return slices.Compact(l.indexes) // a relay may name an id twice
}

// carry transfers what one relay lacks of the other.
func (r *syncing) carry(ctx context.Context, w *way) error {
	for _, i := range w.lacks {
		w.tries[i] = min(w.tries[i]+1, syncTries)
	}
	ids := idsOf(w.to.Corpus, w.lacks)
	b := client.ByID{Options: client.Options{URL: w.from.Relay.URL(), Stall: w.to.Options.Stall, Attempts: 5}, Batch: syncBatch,
		InFlight: syncAtOnce, Retries: syncRetries}
	if most := w.from.Relay.Definition().Limits.FilterLimit; most > 0 {
		b.Batch = min(syncBatch, most)
	}
	var fetched *client.Fetched
	done, err := r.transfer(ctx, w.to, len(ids), func(ctx context.Context, take client.Take) (err error) {
		b.Take = take
		fetched, err = b.Run(ctx, ids)
		return err
	})
	from := r.add(done, fetched.Stats, w.from)
	r.done.reconciled.transfers++
	r.done.carried.missing += len(fetched.Missing) + len(fetched.Failed)
	from.retried, from.leftOut = from.retried+fetched.Retried, from.leftOut+fetched.LeftOut
	return r.ended(ctx, err, w.from, w.to, fetched.Stats, len(ids))
}

// check reconciles a relay with all that it should hold by now. What it lacks still is carried once
// more, unless it said that it does not want it; what it took for too much at once is carried again
// as long as that gets any further.
func (r *syncing) check(ctx context.Context, w *way) error {
	lacks := located{corpus: w.to.Corpus}
	result, err := r.reconcile(ctx, w.to, r.expected.Effective(), lacks.add, nil)
	if err != nil {
		return w.to.Fault(fmt.Errorf("checking what %s holds: %w", w.to.Relay.Name(), err))
	}
	c, left := r.done.reconciled, lacks.newestFirst()
	again := r.throttled() && (w.left == 0 || len(left) < w.left)
	w.left = len(left)
	c.checks.Rounds += result.Rounds
	c.checks.Duration += result.Duration
	w.lacks = slices.DeleteFunc(left, func(i int) bool {
		refused := w.to.Ledger.Get(i) == load.Refused
		return !(again && refused) && (refused || w.tries[i] >= syncTries)
	})
	c.stragglers += len(w.lacks)
	if !again || len(w.lacks) == 0 {
		return nil
	}
	select {
	case <-time.After(throttlePause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// throttled says whether the last transfer was held up by "rate-limited:" (NIP-01), which is no
// answer for good.
func (r *syncing) throttled() bool {
	was := r.throttle
	if refused := r.done.carried.Reasons["rate-limited"]; refused != nil {
		r.throttle = refused.Count
	}
	return r.throttle > was
}
