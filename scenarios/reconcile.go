package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/corpus/scan"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays/client"
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

var reconcileMetrics = explained("warm", "the median of the reconciliations after the first, to which the shares belong",
	"cold", "the first after the relay was filled, in a harness without memory to reuse", "engine", "the protocol",
	"coding", "hexadecimal digits and JSON", "rest", "sockets, the kernel and, for a process, all that the relay does",
	"rounds", "", "up", "frames sent (in memory, the bare messages)", "down", "frames received",
	"have", "ids that only the harness holds", "need", "ids that only the peer holds")

// reconcile is of one size: in the layers that need no relay, or with a relay's process as one.
type reconcile struct {
	*ReconcileOptions
	last    **reconcileSets // that were made, by any of them
	size    int
	process bool
}

// Reconciles tell where the time of a reconciliation (NIP-77) goes, by doing the same one in layers
// that each add something: the engine alone in memory; hexadecimal digits, JSON and a loopback
// socket; and a relay's process. They are one for each size and for what takes part.
func Reconciles(o ReconcileOptions) (all []harness.Scenario) {
	var last *reconcileSets
	for _, process := range []bool{false, true} {
		for _, n := range o.Sizes {
			all = append(all, &reconcile{&o, &last, n, process})
		}
	}
	return all
}

// Describe implements harness.Scenario.
func (r *reconcile) Describe() harness.Description {
	d := harness.Description{Needs: harness.Empty, External: results.Finding{Cause: results.ExternalSync}, Scenario: results.Scenario{
		Key: ReconcileFamily + ".relay", Title: "The same with a relay's process", Section: "Reconcile", Order: orderReconcile,
		Primary: "warm", Unit: "ms", Layout: results.LayoutTable, Tables: []string{results.LabelSize, results.LabelPhase},
		Rows: []string{results.LabelLayer}, Ceiling: results.CeilingNone,
	}, Labels: r.sized(), Metrics: reconcileMetrics}
	if !r.process {
		d.Cast, d.Key = harness.AtOnce, ReconcileFamily+".harness"
		d.Title = "Both sides in this process, where the oldest fifth of the events is the harness's alone " +
			"and the newest the peer's (differing), and where both hold the same (identical)"
	}
	return d
}

func (r *reconcile) sized() results.Labels {
	return results.Labels{results.LabelSize: strconv.Itoa(r.size)}
}

// Run implements harness.Scenario. Without a relay its errors are of this process.
func (r *reconcile) Run(ctx context.Context, t *harness.Trial) error {
	if r.process {
		return r.labelled(ctx, t.Relay.Name(), func(ctx context.Context) error { return r.withRelay(ctx, t) })
	}
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

// withRelay measures a relay that holds the peer's share, and nothing else, where it can be.
func (r *reconcile) withRelay(ctx context.Context, t *harness.Trial) error {
	if !slices.Contains(r.Trusting, t.Relay.Name()) && r.size > r.SignedMax {
		t.AddFinding(results.Finding{Code: results.CodeMeasurable, Verdict: results.Stated, Cause: results.UnsignedSize, Counts: counts("most", r.SignedMax)})
		return nil
	}
	// Before the relay is given anything, which may take minutes.
	unsupported, err := probeNIP77(ctx, t.Relay.URL(), t.Options.Stall, 0)
	if err != nil {
		return err
	}
	if unsupported != nil {
		t.NotMeasured(results.WithoutNIP77, map[string]string{"relay": t.Relay.Name(), "cause": results.CauseUnsupported,
			"how": string(unsupported.How), "reason": unsupported.Text})
		return nil
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
	conn, err := wire.Dial(ctx, t.Relay.URL(), wire.Options{})
	if err != nil {
		return err
	}
	defer conn.Abort()
	return r.layer(ctx, t, nil, s, reconcileOver(ctx, conn, t.Options.Stall, nil))
}

// probeNIP77 reconciles nothing, over a connection of its own, since relays hang up on those who
// are silent for long. The error says that this left it open whether the relay supports NIP-77.
func probeNIP77(ctx context.Context, url string, stall, within time.Duration) (unsupported *negentropy.UnsupportedError, err error) {
	conn, err := client.Dial(ctx, client.Options{URL: url, Stall: stall})
	if err != nil {
		return nil, err
	}
	defer conn.Abort()
	if err = negentropy.Probe(ctx, conn.Wire(), within); errors.As(err, &unsupported) {
		return unsupported, nil
	}
	return nil, err
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
	t = t.With(labels)
	ignore := func([]negentropy.ID) {}
	// This process is left without memory to reuse, as a new one is: buffers in pools, which survive
	// one collection, and free pages.
	debug.FreeOSMemory()
	debug.FreeOSMemory()
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
	if err := median.record(t, cold.Duration, times); err != nil {
		return err
	}
	var got namedIDs
	if _, err = do(local, got.have.add, got.need.add); err != nil {
		return err
	}
	f := check(results.CodeDifference, got == want,
		counts("have", got.have.n, "must have", want.have.n, "need", got.need.n, "must need", want.need.n))
	f.BearsOn = []results.Scope{{Scenario: ReconcileFamily + ".*", Labels: labels.With(r.sized())}}
	t.AddFinding(f)
	return nil
}

// reconcileCost is what one reconciliation took. The parts add up to Duration.
type reconcileCost struct {
	negentropy.Result
	peerEngine, peerCoding time.Duration // 0 where the peer is another process: then they are a part of the rest
	peerSeen               bool
}

// record keeps what a reconciliation cost. Without a wire there is no coding, and no rest.
func (c *reconcileCost) record(t *harness.Trial, cold time.Duration, times *results.Histogram) error {
	m := results.Measurement{Metric: "warm", Unit: "ms", Better: results.Lower, Samples: times.Count(),
		Trials: []float64{harness.Milliseconds(c.Duration)}}
	if err := m.SetHistogram(times); err != nil {
		return err
	}
	t.Measure(m)
	t.Value("cold", "ms", results.Lower, harness.Milliseconds(cold))
	shares := func(role string, engine, coding time.Duration) {
		t := t.With(results.Labels{results.LabelRole: role})
		t.Value("engine", "ms", results.None, harness.Milliseconds(engine))
		if coding > 0 {
			t.Value("coding", "ms", results.None, harness.Milliseconds(coding))
		}
	}
	shares("harness", c.Engine, c.Coding)
	if c.peerSeen {
		shares("peer", c.peerEngine, c.peerCoding)
	}
	// The rest is sockets, the kernel, waiting, and the relay where it is another process.
	if rest := c.Duration - c.Engine - c.Coding - c.peerEngine - c.peerCoding; rest > 0 {
		t.Value("rest", "ms", results.None, harness.Milliseconds(rest))
	}
	t.Value("rounds", "rounds", results.None, float64(c.Rounds))
	t.Value("up", "bytes", results.None, float64(c.BytesUp))
	t.Value("down", "bytes", results.None, float64(c.BytesDown))
	t.Value("have", "events", results.None, float64(c.Have))
	t.Value("need", "events", results.None, float64(c.Need))
	return nil
}

// reconcileFunc does one reconciliation of local with what the peer holds, and hands over the ids.
type reconcileFunc func(local negentropy.Storage, have, need func(ids []negentropy.ID)) (reconcileCost, error)

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

// peerFrameLimit bounds the messages of a responder in this process, in bytes before hexadecimal
// digits double them: what relays ship with.
const peerFrameLimit = 500_000

// reconcilePeer is a responder behind a socket that does nothing else: it answers NEG-OPEN and
// NEG-MSG, one reconciliation at a time, and keeps what the one going on has cost it, in ns.
type reconcilePeer struct {
	storage        negentropy.Storage
	engine, coding atomic.Int64
}

// listen serves on a free port of this machine until stop is called.
func (p *reconcilePeer) listen(ctx context.Context) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(negentropy.MinReadLimit)
		if err := p.serve(ws); err != nil {
			ws.Close(websocket.StatusPolicyViolation, err.Error()) // the client reports it
		}
	})}
	go server.Serve(wire.BufferedListener(l))
	return "ws://" + l.Addr().String(), func() { server.Close() }, nil
}

// serve answers until the connection ends. The error is a message that cannot be answered.
func (p *reconcilePeer) serve(ws *websocket.Conn) error {
	responder := negentropy.NewResponder(p.storage, peerFrameLimit)
	var frame bytes.Buffer
	var message, answer, out []byte
	for {
		_, r, err := ws.Reader(context.Background())
		if err != nil {
			return nil
		}
		frame.Reset()
		if _, err := frame.ReadFrom(r); err != nil {
			return nil
		}
		mark := wire.Now()
		parts, err := scan.Elements(frame.Bytes())
		if err != nil || len(parts) < 2 {
			return errors.New("not a message of NIP-77")
		}
		switch string(parts[0]) {
		case `"NEG-OPEN"`:
			p.engine.Store(0)
			p.coding.Store(0)
		case `"NEG-MSG"`:
		case `"NEG-CLOSE"`:
			continue
		default:
			return fmt.Errorf("unexpected %.20s", parts[0])
		}
		payload := bytes.Trim(parts[len(parts)-1], `"`) // what is no digit is found below
		if message, err = negentropy.DecodeHex(message[:0], payload); err != nil {
			return err
		}
		p.coding.Add(int64(lap(&mark)))
		if answer, err = responder.Next(answer[:0], message); err != nil {
			return err
		}
		p.engine.Add(int64(lap(&mark)))
		out = append(append(append(out[:0], `["NEG-MSG",`...), parts[1]...), `,"`...)
		out = append(negentropy.AppendHex(out, answer), `"]`...)
		p.coding.Add(int64(lap(&mark)))
		if err := ws.Write(context.Background(), websocket.MessageText, out); err != nil {
			return nil
		}
	}
}

const (
	reconcileNewest  = 1780272000 // Unix seconds, the end of the synthetic corpus: the same bytes on every machine
	perSecond        = 4          // events; they share their created_at, as those of a busy relay do
	reconcileAuthors = 16
	seedBatch        = 50_000 // events in memory at once while a relay is being seeded
	seedConns        = 4
	seedAhead        = 200 // unacknowledged events on each connection
)

// reconcileItem is one event.
type reconcileItem struct {
	at     uint64 // Unix seconds
	id     negentropy.ID
	number uint32 // what it was made of
}

// reconcileSets are the events of one size, short notes (kind 1). The harness holds all but the
// newest, the peer all but the oldest: either lacks step.
type reconcileSets struct {
	step         int
	items        []reconcileItem // in the order of reconciliation
	keys         []corpus.SecretKey
	signatures   []corpus.Signature // by number; none where events are not signed
	ours, theirs *negentropy.Set
}

// newReconcileSets makes n items a side, the same for the same seed. Where they are not signed, ids
// and signatures are well-formed and no more.
func newReconcileSets(ctx context.Context, n int, seed uint64, signed bool) (*reconcileSets, error) {
	s := &reconcileSets{step: n / 5, keys: make([]corpus.SecretKey, reconcileAuthors)}
	for k := range s.keys {
		var err error
		if s.keys[k], err = corpus.NewSecretKey(sha256.Sum256(binary.LittleEndian.AppendUint64([]byte{byte(k)}, seed))); err != nil {
			return nil, fmt.Errorf("making keys: %w", err)
		}
	}
	s.items = make([]reconcileItem, n+s.step)
	r := rand.New(rand.NewPCG(seed, 77))
	for i := range s.items {
		s.items[i] = reconcileItem{at: uint64(reconcileNewest - (len(s.items)-1-i)/perSecond), number: uint32(i)}
		for at := 0; at < negentropy.IDSize; at += 8 {
			binary.LittleEndian.PutUint64(s.items[i].id[at:], r.Uint64())
		}
	}
	if signed { // every item gets the id of a real event
		s.signatures = make([]corpus.Signature, len(s.items))
		err := corpus.TryInParallel(ctx, len(s.items), func(i int) error {
			e := s.event(&s.items[i])
			err := s.keys[i%reconcileAuthors].Sign(&e, [32]byte{})
			s.items[i].id, s.signatures[i] = negentropy.ID(e.ID), e.Sig
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(s.items, func(a, b reconcileItem) int { return cmp.Or(cmp.Compare(a.at, b.at), bytes.Compare(a.id[:], b.id[:])) })
	var err error
	if s.ours, err = setOf(s.items[:n]); err == nil {
		s.theirs, err = setOf(s.items[s.step:])
	}
	return s, err
}

func setOf(items []reconcileItem) (*negentropy.Set, error) {
	set := negentropy.NewSet(len(items))
	for i := range items {
		set.Add(items[i].at, &items[i].id)
	}
	return set, set.Seal()
}

// namedIDs is what a reconciliation found, or must find.
type namedIDs struct{ have, need idCount }

// idCount counts and sums ids: two sets of as many ids with the same sum are the same set.
type idCount struct {
	n   int
	sum negentropy.Sum
}

func (c *idCount) add(ids []negentropy.ID) {
	c.n += len(ids)
	for i := range ids {
		c.sum.Add(&ids[i])
	}
}

// alone is what a reconciliation of the two sides must find.
func (s *reconcileSets) alone() namedIDs {
	n := s.ours.Len()
	return namedIDs{idCount{s.step, s.ours.Sum(0, s.step)}, idCount{s.step, s.theirs.Sum(n-s.step, n)}}
}

func (s *reconcileSets) event(of *reconcileItem) corpus.Event {
	e := corpus.Event{
		ID:        corpus.ID(of.id),
		PubKey:    s.keys[of.number%reconcileAuthors].PubKey,
		CreatedAt: int64(of.at),
		Kind:      1,
		Content:   "note " + strconv.Itoa(int(of.number)) + ", of which two sides may or may not know",
	}
	if s.signatures != nil {
		e.Sig = s.signatures[of.number]
	}
	return e
}

// publish gives a relay the peer's share, from old to new. The error says as well where it did not
// take all of it.
func (s *reconcileSets) publish(ctx context.Context, url string, stall time.Duration) error {
	share := s.items[s.step:]
	taken := 0
	for batch := range slices.Chunk(share, seedBatch) {
		events, indexes := make([]corpus.Event, len(batch)), make([]int, len(batch))
		for i := range batch {
			events[i], indexes[i] = s.event(&batch[i]), i
		}
		c, err := corpus.FromEvents(events)
		if err != nil {
			return err
		}
		p := load.Publisher{URL: url, Corpus: c, Conns: seedConns, Window: seedAhead, Stall: stall, Ledger: load.NewLedger(len(batch))}
		result, err := p.Publish(ctx, indexes)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if taken += int(result.Accepted + result.Duplicates); taken == 0 { // the rest would fare no better
			for _, r := range result.Reasons {
				return fmt.Errorf("it refuses events: %q", r.Example)
			}
			return fmt.Errorf("it acknowledges no event")
		}
	}
	if taken < len(share) {
		return fmt.Errorf("it took %d of %d events", taken, len(share))
	}
	return nil
}
