package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/results"
)

// Negentropy reconciles two relays (NIP-77), each of which begins with four fifths of the corpus:
// the oldest fifth is the one's alone, the newest the other's. Differences come in stretches of
// time, as they do between relays; scattered ones are the algorithm's worst case.
type Negentropy struct {
	Scattered bool // measure that worst case as well
}

// The phases of a pair, in the order in which they run.
const (
	phaseInitial    = "initial"
	phaseTransfer   = "transfer"
	phaseIdentical  = "identical"
	phaseHeartbeat  = "heartbeat"
	phaseAfterWrite = "after-write"
	phaseScattered  = "scattered"
)

var phases = []string{phaseInitial, phaseTransfer, phaseIdentical, phaseHeartbeat, phaseAfterWrite, phaseScattered}

// describePhase describes one phase as a scenario of its own.
func describePhase(phase string) harness.Description {
	d := harness.Description{Needs: harness.Empty, Scenario: results.Scenario{
		Key: "negentropy." + phase, Title: phase, Section: sectionNegentropy, Order: orderNegentropy + 1 + slices.Index(phases, phase),
		Primary: "time", Unit: "ms", Layout: results.LayoutPairs, Ceiling: results.CeilingPair,
	}, Labels: results.Labels{results.LabelPhase: phase}, Metrics: pairMetrics}
	switch phase {
	case phaseIdentical:
		d.Meaning = "identical is the reconciliation of sets that are the same"
	case phaseInitial:
		d.Meaning = "initial is the first reconciliation after writes"
		d.Headlines = []results.Headline{{Metric: "time", Title: "first reconcile"}}
	case phaseHeartbeat:
		d.Meaning = "heartbeat is the same again with no writes between"
		d.Headlines = []results.Headline{{Metric: "time", Title: "heartbeat"}}
	case phaseTransfer:
		d.Primary, d.Unit = "events/s", "events/s"
	}
	return d
}

const (
	heartbeats     = 10
	leftOutBeats   = 3   // how many reconciliations among them are with one event less
	transferBatch  = 100 // ids in one REQ: within the filter limits of every relay in the catalog
	transferAtOnce = 4   // REQs in flight: within their subscription limits
)

// Describe implements harness.Scenario.
func (Negentropy) Describe() harness.Description {
	return harness.Description{Cast: harness.Pair, Scenario: results.Scenario{
		Key: "negentropy", Title: "two relays, reconciled", Section: sectionNegentropy, Order: orderNegentropy, Layout: results.LayoutPairs,
	}}
}

// side is one relay of the pair.
type side struct {
	*harness.Trial
	begins  harness.State // with this share of the corpus
	offered []bool        // by corpus index
	held    []int         // what it held when it was seeded, or last reconciled, in corpus order
	seeded  *model.Model  // of its share
	first   time.Duration // of the first reconciliation
	more    corpus.ID     // of the event that it was given beside the corpus
}

// Run implements harness.Scenario: it measures both directions.
func (n Negentropy) Run(ctx context.Context, t *harness.Trial) error {
	a, b := &side{Trial: t, begins: harness.Older}, &side{Trial: t.Peer, begins: harness.Newer}
	for _, s := range []*side{a, b} {
		if err := s.seed(ctx); err != nil {
			return s.Fault(fmt.Errorf("seeding %s: %w", s.Relay.Name(), err))
		}
	}
	for _, step := range []func(context.Context, *side, *side) error{initial, transfer} {
		if err := step(ctx, a, b); err != nil {
			return err
		}
		if err := step(ctx, b, a); err != nil {
			return err
		}
	}
	for _, s := range []*side{a, b} {
		steps := []func(*side, context.Context) error{(*side).identical, (*side).heartbeat, (*side).afterWrite}
		if n.Scattered {
			steps = append(steps, (*side).scattered)
		}
		for _, step := range steps {
			if err := step(s, ctx); err != nil {
				return s.Fault(err)
			}
		}
		s.Forge(ctx) // last, so that it is in nobody's set
	}
	return nil
}

// seed publishes the side's share and finds out by asking for every id what it holds.
func (s *side) seed(ctx context.Context) error {
	s.offered = make([]bool, s.Corpus.Len())
	var share []int
	for i, to := s.begins.Share(s.Model); i < to; i++ {
		s.offered[i] = true
		share = append(share, i)
	}
	p := s.Publisher(s.Progress)
	if _, err := p.Publish(ctx, share); err != nil {
		return err
	}
	var err error
	if s.seeded, err = s.model(); err != nil {
		return err
	}
	came, _, err := askByID(ctx, s.Trial, share, func(i int) bool { return s.seeded.Holds(i) && !s.seeded.Optional(i) })
	if err != nil {
		return err
	}
	for k, i := range share {
		if came.Came[k] {
			s.held = append(s.held, i)
		}
	}
	s.AddFinding(unexpected(came.Stats))
	d := compare(s.Trial, s.seeded, s.held, nil)
	s.AddFinding(results.Finding{Code: results.CodeHoldsSeeded, Verdict: results.Holds(d.none()), Counts: d.counts(), Evidence: d.evidence()})
	if f := lost(s.Trial, d); f != nil {
		s.AddFinding(*f)
	}
	return nil
}

// lost is the finding on a relay that lost what it had acknowledged, which bars everything of it;
// else nil.
func lost(t *harness.Trial, d difference) *results.Finding {
	n := d.lost()
	if n == 0 {
		return nil
	}
	return &results.Finding{Code: results.CodeAcknowledgedKept, Verdict: results.Failed, Counts: counts("lost", n, "of", t.Ledger.Count(load.Accepted)+t.Ledger.Count(load.Duplicate)),
		Evidence: slices.DeleteFunc(d.evidence(), func(e results.Evidence) bool { return !isLost(e.Cause) })}
}

// model is of what the relay has been offered so far.
func (s *side) model() (*model.Model, error) {
	return model.NewStatuses(s.Corpus, func(i int) bool { return s.offered[i] }, s.Now)
}

func (s *side) dial(ctx context.Context) (*client.Conn, error) {
	return client.Dial(ctx, client.Options{URL: s.Relay.URL(), Stall: s.Options.Stall})
}

// reconcile compares what the relay has with the events of a set.
func (s *side) reconcile(ctx context.Context, conn *client.Conn, set negentropy.Storage, o negentropy.Options) (negentropy.Result, error) {
	o.Stall, o.FirstAnswer = s.Options.Stall, s.Options.Stall
	o.MaxNeed = s.Corpus.Len() + mostUnexpected
	o.Known = func(id *negentropy.ID) bool {
		return corpus.ID(*id) == s.more || index(s.Corpus, corpus.ID(*id)) >= 0
	}
	return negentropy.ReconcileSplit(ctx, conn.Wire(), []byte("{}"), set, o)
}

// collect gathers ids.
func collect(to map[corpus.ID]bool) func([]negentropy.ID) {
	return func(ids []negentropy.ID) {
		for _, id := range ids {
			to[corpus.ID(id)] = true
		}
	}
}

// against reconciles the relay, over a connection of its own, with these events of the corpus, and
// returns the ids that only they and that only the relay has.
func (s *side) against(ctx context.Context, indexes []int) (result negentropy.Result, have, need map[corpus.ID]bool, err error) {
	have, need = make(map[corpus.ID]bool), make(map[corpus.ID]bool)
	result, err = s.differ(ctx, indexes, collect(have), collect(need))
	return result, have, need, err
}

// differ is against with the ids handed over as they come.
func (s *side) differ(ctx context.Context, indexes []int, have, need func([]negentropy.ID)) (result negentropy.Result, err error) {
	set, err := sealed(s.Corpus, indexes)
	if err != nil {
		return result, err
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return result, err
	}
	defer conn.Abort()
	return s.reconcile(ctx, conn, set, negentropy.Options{Have: have, Need: need})
}

// record keeps what a reconciliation cost. Where the relay had time ranges split, what it cost
// rests on the time of day as well and is not exact.
func record(t *harness.Trial, r negentropy.Result, exact bool) {
	t.OwnPart()
	t.Value("time", "ms", results.Lower, harness.Milliseconds(r.Duration))
	t.Value("first answer", "ms", results.None, harness.Milliseconds(r.FirstAnswer))
	exact = exact && r.Refused == 0
	t.Value("harness share", "%", results.None, 100*float64(r.Engine+r.Coding)/float64(max(1, r.Duration)))
	recordTraffic(t, r, exact)
	recordExact(t, "have", "events", r.Have, exact)
	recordExact(t, "need", "events", r.Need, exact)
	if differing := r.Have + r.Need; differing > 0 {
		t.Measure(results.Measurement{Metric: "bytes per difference", Unit: "bytes/event", Better: results.Lower, Exact: exact,
			Trials: []float64{float64(r.BytesUp+r.BytesDown) / float64(differing)}})
	}
}

// recordTraffic keeps what went to and fro.
func recordTraffic(t *harness.Trial, r negentropy.Result, exact bool) {
	recordExact(t, "rounds", "rounds", r.Rounds, exact)
	recordExact(t, "bytes up", "bytes", r.BytesUp, exact)
	recordExact(t, "bytes down", "bytes", r.BytesDown, exact)
}

func recordExact[N int | int64](t *harness.Trial, metric, unit string, n N, exact bool) {
	t.Measure(results.Measurement{Metric: metric, Unit: unit, Better: results.None, Exact: exact, Trials: []float64{float64(n)}})
}

// initial reconciles the server, for the first time since its writes, with what the other holds.
func initial(ctx context.Context, server, other *side) error {
	t := server.Under(describePhase(phaseInitial))
	result, have, need, err := server.against(ctx, other.held)
	if err != nil {
		return server.Fault(fmt.Errorf("the first reconciliation with %s: %w", server.Relay.Name(), err))
	}
	record(t, result, true)
	wantHave, wantNeed := without(server.Corpus, other.held, server.held), without(server.Corpus, server.held, other.held)
	server.first = result.Duration
	extraHave, extraNeed := minus(have, wantHave), minus(need, wantNeed)
	wrong := slices.Concat(
		idEvidence(server.Corpus, results.EvidenceMissing, causeHave, minus(wantHave, have)),
		idEvidence(server.Corpus, results.EvidenceExtra, causeHave, extraHave),
		idEvidence(server.Corpus, results.EvidenceMissing, causeNeed, minus(wantNeed, need)),
		idEvidence(server.Corpus, results.EvidenceExtra, causeNeed, extraNeed))
	t.AddFinding(results.Finding{Code: results.CodeDifference, Verdict: results.Holds(len(wrong) == 0),
		Counts: counts("have", len(have), "must have", len(wantHave), "extra have", len(extraHave),
			"need", len(need), "must need", len(wantNeed), "extra need", len(extraNeed)), Evidence: wrong})
	t.AddFinding(onlyKnown(server.Corpus, need, nil))
	return nil
}

// Causes of evidence on a difference: as what an id was, or was not, named. The client has it
// alone, or needs it.
const (
	causeHave = "to have"
	causeNeed = "to need"
)

// onlyKnown judges whether a relay named only events that somebody published to it: unknown are the
// ids that it named as its alone, twice those that it named though they are on both sides.
func onlyKnown(c *corpus.Corpus, unknown, twice map[corpus.ID]bool) results.Finding {
	invented := make(map[corpus.ID]bool)
	for id := range unknown {
		if index(c, id) < 0 {
			invented[id] = true
		}
	}
	return results.Finding{Code: results.CodeOnlyKnown, Verdict: results.Holds(len(invented)+len(twice) == 0), Counts: counts("ids", len(invented), "twice", len(twice)),
		Evidence: append(idEvidence(c, results.EvidenceUnexpected, "", invented), idEvidence(c, results.EvidenceUnexpected, "twice", twice)...)}
}

// findForeign is onlyKnown for a reconciliation of which only the number of such ids is kept, and
// examples.
func findForeign(t *harness.Trial, r negentropy.Result) {
	f := results.Finding{Code: results.CodeOnlyKnown, Verdict: results.Holds(r.Unexpected == 0), Counts: counts("ids", r.Unexpected, "twice", 0)}
	for _, id := range r.UnexpectedExamples {
		f.Evidence = append(f.Evidence, results.Evidence{Code: results.EvidenceUnexpected, ID: corpus.ID(id).String()})
	}
	f.Evidence = andOthers(f.Evidence, results.EvidenceUnexpected, "", r.Unexpected-len(r.UnexpectedExamples))
	t.AddFinding(f)
}

// transfer carries to the sink what it lacks of the source.
func transfer(ctx context.Context, sink, source *side) error {
	t := sink.Under(describePhase(phaseTransfer))
	now, err := source.model()
	if err != nil {
		return err
	}
	lacks := slices.Collect(maps.Keys(without(sink.Corpus, source.held, sink.held)))
	// What the source was given in the other direction has taken the place of some of what it held:
	// newer versions, deletions.
	lacks = slices.DeleteFunc(lacks, func(id corpus.ID) bool {
		i := index(sink.Corpus, id)
		return source.seeded.Holds(i) && !now.Holds(i)
	})
	slices.SortFunc(lacks, func(x, y corpus.ID) int { return index(sink.Corpus, x) - index(sink.Corpus, y) })
	p := sink.Publisher(nil)
	p.Conns = 1
	b := client.ByID{Options: client.Options{URL: source.Relay.URL(), Stall: sink.Options.Stall}, Batch: transferBatch, InFlight: transferAtOnce}
	var fetched *client.Fetched
	done, err := p.Transfer(ctx, len(lacks), func(ctx context.Context, take client.Take) (err error) {
		b.Take = take
		fetched, err = b.Run(ctx, lacks)
		return err
	})
	if err != nil {
		err = fmt.Errorf("transferring from %s to %s: %w", source.Relay.Name(), sink.Relay.Name(), err)
		if theirs := (*load.SourceError)(nil); errors.As(err, &theirs) {
			return source.Fault(err)
		}
		return sink.Fault(err)
	}
	for _, id := range lacks {
		sink.offered[index(sink.Corpus, id)] = true
	}
	t.OwnPart()
	t.Value("events", "events", results.None, float64(fetched.Asked))
	if len(lacks) > 0 {
		seconds := done.Duration.Seconds()
		t.Value("duration", "s", results.Lower, seconds)
		t.Value("events/s", "events/s", results.Higher, float64(done.Accepted+done.Duplicates)/seconds)
	}
	byReason(t, "refused", done.Reasons)
	altered := make(map[corpus.ID]bool)
	for _, id := range done.Altered {
		altered[id] = true
	}
	source.Under(describePhase(phaseTransfer)).AddFinding(results.Finding{Code: results.CodeUnaltered, Verdict: results.Holds(len(altered) == 0),
		Counts: counts("altered", len(altered), "of", int(fetched.Events)), Evidence: idEvidence(sink.Corpus, results.EvidenceAltered, "", altered)})
	missing := make(map[corpus.ID]bool)
	for _, id := range slices.Concat(fetched.Missing, fetched.Failed) {
		missing[id] = true
	}
	// What the source did not send is the source's failure, what got no answer the sink's.
	f := results.Finding{Code: results.CodeCarried, Verdict: results.Holds(len(missing) == 0 && done.Unanswered == 0),
		Counts: counts("asked", int(fetched.Asked), "fetched", int(fetched.Events), "missing", len(missing), "accepted", int(done.Accepted+done.Duplicates),
			"refused", int(done.Refused), "unanswered", int(done.Unanswered), "elsewhere", int(fetched.Elsewhere)),
		Evidence: append(idEvidence(sink.Corpus, results.EvidenceMissing, "", missing), refusalEvidence(done.Reasons)...)}
	if done.Unanswered == 0 {
		f.Blames = source.Relay.Name()
	}
	t.AddFinding(f)
	return nil
}

// identical reconciles the relay with all that a compliant relay holds now, and explains what is
// left of the difference.
func (s *side) identical(ctx context.Context) error {
	t := s.Under(describePhase(phaseIdentical))
	effective := s.Model.Effective()
	held, err := findHeld(ctx, s.Trial, effective, s.Model, func(r negentropy.Result) { record(t, r, true) })
	if err == nil {
		err = held.trouble
	}
	if err != nil {
		return fmt.Errorf("reconciling %s after the transfer: %w", s.Relay.Name(), err)
	}
	for _, f := range held.findings(s.Corpus, s.Model) {
		if f.Verdict != results.Passed || f.Code == results.CodeOnlyKnown {
			t.AddFinding(f)
		}
	}
	s.held = held.events
	d := compare(s.Trial, s.Model, s.held, held.unreturned)
	// A relay answers for what it acknowledged. What its peer lost or kept back it never got, and
	// may rightly hold what that would have replaced.
	given, err := model.NewStatuses(s.Corpus, s.Ledger.Acknowledged, s.Now)
	if err != nil {
		return err
	}
	own := compare(s.Trial, given, s.held, held.unreturned)
	blamed := own.own() + s.refusedWrongly()
	f := results.Finding{Code: results.CodeHoldsUnion, Verdict: results.Holds(d.none()), Counts: d.counts(), Evidence: d.evidence()}
	f.Counts["own"] = float64(blamed)
	if !d.none() && blamed == 0 {
		f.Verdict, f.Cause = results.Stated, results.MissingNeverDelivered
	}
	t.AddFinding(f)
	if f := lost(t, own); f != nil {
		t.AddFinding(*f)
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Abort()
	var left leftOut
	if err := left.draw(s); err != nil {
		return err
	}
	if err := left.ask(ctx, s, conn); err != nil {
		return fmt.Errorf("reconciling %s with one event less: %w", s.Relay.Name(), err)
	}
	left.find(t)
	return nil
}

// leftOut is an event that the relay holds and that is left out of the client's set, so that it has
// to be named. A relay of which everything that it holds is known would never be found out
// otherwise if it called any two sets identical.
type leftOut struct {
	id          corpus.ID
	set         negentropy.Storage // nil where there is no such event
	asked, fail int
}

// draw takes one of those that must be there, at random.
func (l *leftOut) draw(s *side) (err error) {
	must := slices.DeleteFunc(slices.Clone(s.held), func(i int) bool { return !s.Model.Holds(i) || s.Model.Optional(i) })
	if len(must) == 0 {
		return nil
	}
	out := must[s.Rand.IntN(len(must))]
	l.id = s.Corpus.Entry(out).ID
	l.set, err = sealed(s.Corpus, slices.DeleteFunc(slices.Clone(s.held), func(i int) bool { return i == out }))
	return err
}

// ask reconciles the relay with the set once. Nothing of it is a figure.
func (l *leftOut) ask(ctx context.Context, s *side, conn *client.Conn) error {
	if l.set == nil {
		return nil
	}
	named := false
	_, err := s.reconcile(ctx, conn, l.set, negentropy.Options{Need: func(ids []negentropy.ID) {
		named = named || slices.Contains(ids, negentropy.ID(l.id))
	}})
	if l.asked++; !named {
		l.fail++
	}
	return err
}

func (l *leftOut) find(t *harness.Trial) {
	if l.asked == 0 {
		return
	}
	f := results.Finding{Code: results.CodeNamesLeft, Verdict: results.Holds(l.fail == 0), Counts: counts("missing", l.fail, "of", l.asked)}
	if l.fail > 0 {
		f.Evidence = idEvidence(t.Corpus, results.EvidenceMissing, "", map[corpus.ID]bool{l.id: true})
	}
	t.AddFinding(f)
}

// refusedWrongly counts the events that the relay was sent, and refused or left unanswered, though
// it had to keep them.
func (s *side) refusedWrongly() (n int) {
	for _, i := range s.Model.Effective() {
		if a := s.Ledger.Get(i); a == load.Unanswered || a == load.Refused {
			n++
		}
	}
	return n
}
