package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"time"

	"relaybench/harness"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
	"relaybench/results"
)

// ReconcileOptions say which sets are reconciled, and how often.
type ReconcileOptions struct {
	Sizes     []int    // items a side
	Repeat    int      // reconciliations of which the median is taken, after the first
	SignedMax int      // the largest size with really signed events
	Trusting  []string // relays that take ids and signatures on trust, so that any number of events is quickly made for them
	Signed    bool     // other relays take part
}

// What can be reconciled, in items a side.
const (
	MinReconciled = 10
	MaxReconciled = 5_000_000
)

// ReconcileFamily begins the keys of all its scenarios.
const ReconcileFamily = "reconcile"

// Reconciles tell where the time of a reconciliation (NIP-77) goes, by doing the same one in layers
// that each add something: the engine alone in memory; hexadecimal digits, JSON and a loopback
// socket; and a relay's process. They are one for each size and for what takes part.
func Reconciles(o ReconcileOptions) []harness.Scenario {
	var last *reconcileSets
	var itself, relays []harness.Scenario
	for _, n := range o.Sizes {
		r := reconcile{&o, &last, n}
		itself, relays = append(itself, &reconcileLayers{r}), append(relays, &reconcileRelay{r})
	}
	return append(itself, relays...)
}

// reconcile is of one size.
type reconcile struct {
	*ReconcileOptions
	last **reconcileSets // that were made, by any of them
	size int
}

// reconcileLayers are those that need no relay.
type reconcileLayers struct{ reconcile }

// reconcileRelay is a relay's process as a layer.
type reconcileRelay struct{ reconcile }

func (r *reconcile) describe(key, title string) harness.Description {
	return harness.Description{Needs: harness.Empty, External: results.Finding{Cause: results.ExternalSync}, Scenario: results.Scenario{
		Key: ReconcileFamily + "." + key, Title: title, Section: sectionReconcile, Order: orderReconcile, Primary: "warm", Unit: "ms",
		Layout: results.LayoutTable, Tables: []string{results.LabelSize, results.LabelPhase}, Rows: []string{results.LabelLayer}, Ceiling: results.CeilingNone,
	}, Labels: r.sized(), Metrics: reconcileMetrics}
}

func (r *reconcile) sized() results.Labels {
	return results.Labels{results.LabelSize: strconv.Itoa(r.size)}
}

// Describe implements harness.Scenario.
func (r *reconcileLayers) Describe() harness.Description {
	d := r.describe("harness", "Both sides in this process, where the oldest fifth of the events is the harness's alone and the newest the peer's (differing), and where both hold the same (identical)")
	d.Cast = harness.AtOnce
	return d
}

// Describe implements harness.Scenario.
func (r *reconcileRelay) Describe() harness.Description {
	return r.describe("relay", "The same with a relay's process")
}

// Run implements harness.Scenario. Its errors are of this process.
func (r *reconcileLayers) Run(ctx context.Context, t *harness.Trial) error {
	s, err := r.made(ctx, t)
	if err != nil {
		return err
	}
	peer := &reconcilePeer{storage: s.theirs}
	url, stop, err := peer.listen(ctx)
	if err != nil {
		return err
	}
	defer stop()
	conn, err := wire.Dial(ctx, url, wire.Options{})
	if err != nil {
		return err
	}
	defer conn.Abort()
	for _, x := range []struct {
		layer string
		do    reconcileFunc
	}{{"in memory", reconcileInMemory(s.theirs)}, {"loopback", reconcileOver(ctx, conn, t.Options.Stall, peer)}} {
		err := r.labelled(ctx, x.layer, func(ctx context.Context) error {
			return r.layer(ctx, t, results.Labels{results.LabelLayer: x.layer}, s, x.do)
		})
		if err != nil {
			return fmt.Errorf("reconciling, %s: %w", x.layer, err)
		}
	}
	return nil
}

// Run implements harness.Scenario. The relay holds the peer's share, and nothing else.
func (r *reconcileRelay) Run(ctx context.Context, t *harness.Trial) error {
	return r.labelled(ctx, t.Relay.Name(), func(ctx context.Context) error { return r.process(ctx, t) })
}

// process measures a relay, where it can be.
func (r *reconcileRelay) process(ctx context.Context, t *harness.Trial) error {
	if !slices.Contains(r.Trusting, t.Relay.Name()) && r.size > r.SignedMax {
		t.AddFinding(results.Finding{Code: results.CodeMeasurable, Verdict: results.Stated, Cause: results.UnsignedSize, Counts: counts("most", r.SignedMax)})
		return nil
	}
	// Before the relay is given anything, which may take minutes.
	conn, err := wire.Dial(ctx, t.Relay.URL(), wire.Options{})
	if err != nil {
		return err
	}
	err = negentropy.Probe(ctx, conn, 0)
	conn.Abort() // relays hang up on those who are silent for long
	if unsupported := (*negentropy.UnsupportedError)(nil); errors.As(err, &unsupported) {
		t.NotMeasured(results.WithoutNIP77, map[string]string{"relay": t.Relay.Name(), "cause": results.CauseUnsupported, "how": string(unsupported.How), "reason": unsupported.Text})
		return nil
	}
	if err != nil {
		return err
	}
	if err := t.Refill(ctx, nil); err != nil {
		return err
	}
	s, err := r.made(ctx, t)
	if err != nil {
		return err
	}
	if err := s.publish(ctx, t.Relay.URL(), t.Options.Stall); err != nil {
		return fmt.Errorf("seeding: %w", err)
	}
	if conn, err = wire.Dial(ctx, t.Relay.URL(), wire.Options{}); err != nil {
		return err
	}
	defer conn.Abort()
	return r.layer(ctx, t, nil, s, reconcileOver(ctx, conn, t.Options.Stall, nil))
}

// made returns the sets of this size, which are kept until another size is asked for.
func (r *reconcile) made(ctx context.Context, t *harness.Trial) (*reconcileSets, error) {
	if s := *r.last; s != nil && s.ours.Len() == r.size {
		return s, nil
	}
	*r.last = nil
	s, err := newReconcileSets(ctx, r.size, t.Options.Seed, r.Signed && r.size <= r.SignedMax)
	if err == nil {
		*r.last = s
	}
	return s, err
}

// reconcileCost is what one reconciliation took. The parts add up to total.
type reconcileCost struct {
	negentropy.Result
	peerEngine, peerCoding time.Duration // 0 where the peer is another process: then they are a part of the rest
	peerSeen               bool
}

// rest is sockets, the kernel, waiting, and the relay where it is another process.
func (c *reconcileCost) rest() time.Duration {
	return c.Duration - c.Engine - c.Coding - c.peerEngine - c.peerCoding
}

// reconcileFunc does one reconciliation of local with what the peer holds, and hands over the ids.
type reconcileFunc func(local negentropy.Storage, have, need func(ids []negentropy.ID)) (reconcileCost, error)

// labelled does work under labels by which a profile of this process tells the layers apart.
func (r *reconcile) labelled(ctx context.Context, layer string, work func(context.Context) error) (err error) {
	pprof.Do(ctx, pprof.Labels("layer", layer, "size", strconv.Itoa(r.size)), func(ctx context.Context) { err = work(ctx) })
	return err
}

// layer measures a reconciliation of sets that differ, and one of sets that are the same.
func (r *reconcile) layer(ctx context.Context, t *harness.Trial, labels results.Labels, s *reconcileSets, do reconcileFunc) (err error) {
	layer, _ := pprof.Label(ctx, "layer") // which also stands on what goes before, such as publishing
	pprof.Do(ctx, pprof.Labels("reconcile", layer), func(ctx context.Context) {
		err = r.phase(ctx, t, labels.With(results.Labels{results.LabelPhase: "differing"}), s.ours, s.alone(), do)
		if err == nil {
			err = r.phase(ctx, t, labels.With(results.Labels{results.LabelPhase: "identical"}), s.theirs, namedIDs{}, do)
		}
	})
	return err
}

// phase measures a reconciliation cold, then warm, and once more, untimed, to see whether it finds
// what it must.
func (r *reconcile) phase(ctx context.Context, t *harness.Trial, labels results.Labels, local negentropy.Storage, want namedIDs, do reconcileFunc) error {
	ignore := func([]negentropy.ID) {}
	giveBackMemory()
	cold, err := do(local, ignore, ignore)
	if err != nil {
		return err
	}
	warm, times := make([]reconcileCost, r.Repeat), results.NewHistogram()
	for k := range warm {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if warm[k], err = do(local, ignore, ignore); err != nil {
			return err
		}
		times.Record(warm[k].Duration)
	}
	slices.SortStableFunc(warm, func(a, b reconcileCost) int { return cmp.Compare(a.Duration, b.Duration) })
	median := warm[(len(warm)-1)/2] // not a mean of two: its parts add up to its total
	if err := median.record(t, labels, cold.Duration, times); err != nil {
		return err
	}
	var got namedIDs
	if _, err = do(local, got.have.add, got.need.add); err != nil {
		return err
	}
	t.AddFinding(results.Finding{Code: results.CodeDifference, Labels: labels, Verdict: results.Holds(got == want),
		BearsOn: []results.Scope{{Scenario: ReconcileFamily + ".*", Labels: labels.With(r.sized())}},
		Counts:  counts("have", got.have.n, "must have", want.have.n, "need", got.need.n, "must need", want.need.n)})
	return nil
}

// giveBackMemory leaves this process without memory to reuse, as a new one is: buffers in pools,
// which survive one collection, and free pages.
func giveBackMemory() {
	debug.FreeOSMemory()
	debug.FreeOSMemory()
}

// record keeps what a reconciliation cost. Without a wire there is no coding, and no rest.
func (c *reconcileCost) record(t *harness.Trial, labels results.Labels, cold time.Duration, times *results.Histogram) error {
	m := results.Measurement{Metric: "warm", Unit: "ms", Better: results.Lower, Labels: labels, Trials: []float64{harness.Milliseconds(c.Duration)}, Samples: times.Count()}
	if err := m.SetHistogram(times); err != nil {
		return err
	}
	t.Measure(m)
	value := func(metric, unit string, better results.Better, v float64, labels results.Labels) {
		t.Measure(results.Measurement{Metric: metric, Unit: unit, Better: better, Labels: labels, Trials: []float64{v}})
	}
	value("cold", "ms", results.Lower, harness.Milliseconds(cold), labels)
	shares := func(role string, engine, coding time.Duration) {
		labels := labels.With(results.Labels{results.LabelRole: role})
		value("engine", "ms", results.None, harness.Milliseconds(engine), labels)
		if coding > 0 {
			value("coding", "ms", results.None, harness.Milliseconds(coding), labels)
		}
	}
	shares("harness", c.Engine, c.Coding)
	if c.peerSeen {
		shares("peer", c.peerEngine, c.peerCoding)
	}
	if rest := c.rest(); rest > 0 {
		value("rest", "ms", results.None, harness.Milliseconds(rest), labels)
	}
	value("rounds", "rounds", results.None, float64(c.Rounds), labels)
	value("up", "bytes", results.None, float64(c.BytesUp), labels)
	value("down", "bytes", results.None, float64(c.BytesDown), labels)
	value("have", "events", results.None, float64(c.Have), labels)
	value("need", "events", results.None, float64(c.Need), labels)
	return nil
}

// reconcileInMemory is the engine alone: both sides in one goroutine, messages handed over as they
// are.
func reconcileInMemory(theirs negentropy.Storage) reconcileFunc {
	var c reconcileCost
	var have, need func([]negentropy.ID)
	initiator := negentropy.NewInitiator(theirs, negentropy.DefaultFrameLimit,
		func(ids []negentropy.ID) { c.Have += len(ids); have(ids) },
		func(ids []negentropy.ID) { c.Need += len(ids); need(ids) })
	responder := negentropy.NewResponder(theirs, peerFrameLimit)
	var message, answer []byte
	return func(local negentropy.Storage, h, n func([]negentropy.ID)) (reconcileCost, error) {
		c, have, need = reconcileCost{peerSeen: true}, h, n
		initiator.Reset(local)
		mark := wire.Now()
		message = initiator.Open(message[:0])
		c.Engine += lap(&mark)
		for !initiator.Done() {
			c.Rounds++
			c.BytesUp += int64(len(message))
			var err error
			if answer, err = responder.Next(answer[:0], message); err != nil {
				return c, err
			}
			c.peerEngine += lap(&mark)
			c.BytesDown += int64(len(answer))
			if message, err = initiator.Next(message[:0], answer); err != nil {
				return c, err
			}
			c.Engine += lap(&mark)
		}
		c.Duration = c.Engine + c.peerEngine
		return c, nil
	}
}

// reconcileOver reconciles over a connection with a peer, nil where that is another process.
func reconcileOver(ctx context.Context, conn *wire.Conn, stall time.Duration, peer *reconcilePeer) reconcileFunc {
	return func(local negentropy.Storage, have, need func([]negentropy.ID)) (c reconcileCost, err error) {
		c.Result, err = negentropy.ReconcileSplit(ctx, conn, []byte("{}"), local, negentropy.Options{FirstAnswer: stall, Stall: stall,
			MaxNeed: 2 * MaxReconciled, Have: have, Need: need})
		if c.peerSeen = peer != nil; c.peerSeen {
			// Its last act before the answer that ended the reconciliation was to note these.
			c.peerEngine, c.peerCoding = time.Duration(peer.engine.Load()), time.Duration(peer.coding.Load())
		}
		return c, err
	}
}

// lap returns the time since mark, and moves mark to now.
func lap(mark *time.Duration) time.Duration {
	now := wire.Now()
	d := now - *mark
	*mark = now
	return d
}
