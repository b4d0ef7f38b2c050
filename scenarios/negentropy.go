package scenarios

import (
	"context"
	"errors"
	"fmt"
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

var pairMetrics = figures("time", "time", "events/s", "events/s", "events", "events", "duration", "duration", "have", "have",
	"need", "need", "bytes per difference", "B/differing", "rounds", "rounds", "bytes up", "up", "bytes down", "down",
	"harness share", "harness share")

// Describe implements harness.Scenario.
func (Negentropy) Describe() harness.Description {
	return harness.Description{Cast: harness.Pair, Scenario: results.Scenario{
		Key: "negentropy", Title: "two relays, reconciled", Section: "Negentropy", Order: orderNegentropy, Layout: results.LayoutPairs,
	}}
}

// describePhase describes one phase as a scenario of its own.
func describePhase(phase string) harness.Description {
	d := harness.Description{Needs: harness.Empty, Scenario: results.Scenario{
		Key: "negentropy." + phase, Title: phase, Section: "Negentropy", Order: orderNegentropy + 1 + slices.Index(phases, phase),
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

// side is one relay of the pair.
type side struct {
	*harness.Trial
	other   *side
	offered []bool        // by corpus index
	held    []int         // what it held when it was seeded, or last reconciled, in corpus order
	seeded  *model.Model  // of its share
	first   time.Duration // of the first reconciliation
	more    corpus.ID     // of the event that it was given beside the corpus
}

// Run implements harness.Scenario: each phase is measured on one relay and then on the other.
func (n Negentropy) Run(ctx context.Context, t *harness.Trial) error {
	a, b := &side{Trial: t}, &side{Trial: t.Peer}
	a.other, b.other = b, a
	steps := []func(*side, context.Context, *harness.Trial) error{(*side).initial, (*side).transfer, (*side).identical, (*side).heartbeat,
		(*side).afterWrite}
	if n.Scattered {
		steps = append(steps, (*side).scattered)
	}
	for k, s := range []*side{a, b} {
		if err := s.seed(ctx, []harness.State{harness.Older, harness.Newer}[k]); err != nil {
			return s.Fault(fmt.Errorf("seeding %s: %w", s.Relay.Name(), err))
		}
	}
	for k, step := range steps {
		for _, s := range []*side{a, b} {
			if err := step(s, ctx, s.Under(describePhase(phases[k]))); err != nil {
				return s.Fault(err)
			}
		}
	}
	a.Forge(ctx) // last, so that it is in nobody's set
	b.Forge(ctx)
	return nil
}

// seed publishes the side's share and finds out by asking for every id what it holds.
func (s *side) seed(ctx context.Context, begins harness.State) error {
	from, to := begins.Share(s.Model)
	share := where(s.Corpus, func(i int) bool { return i >= from && i < to })
	s.offered = among(s.Corpus, share)
	p := s.Publisher(s.Progress)
	if _, err := p.Publish(ctx, share); err != nil {
		return err
	}
	var err error
	if s.seeded, err = s.model(); err != nil {
		return err
	}
	held, err := findHeld(ctx, s.Trial, nil, share, certainly(s.seeded), nil)
	if err != nil {
		return err
	}
	s.held = held.events
	s.AddFinding(unexpected(held.Stats))
	d := compare(s.Trial, s.seeded, s.held, nil)
	s.AddFinding(d.finding(results.CodeHoldsSeeded))
	d.findLost(s.Trial)
	return nil
}

// model is of what the relay has been offered so far.
func (s *side) model() (*model.Model, error) {
	return model.NewStatuses(s.Corpus, func(i int) bool { return s.offered[i] }, s.Now)
}

// open connects to the relay, and makes a set of what it holds.
func (s *side) open(ctx context.Context) (conn *client.Conn, set negentropy.Storage, err error) {
	if set, err = sealed(s.Corpus, s.held); err == nil {
		conn, err = client.Dial(ctx, client.Options{URL: s.Relay.URL(), Stall: s.Options.Stall})
	}
	return conn, set, err
}

// options are those of a reconciliation with the relay, which knows the corpus and what else it was
// given.
func (s *side) options(have, need func([]negentropy.ID)) negentropy.Options {
	return negentropy.Options{Stall: s.Options.Stall, Have: have, Need: need, Known: func(id *negentropy.ID) bool {
		return corpus.ID(*id) == s.more || index(s.Corpus, corpus.ID(*id)) >= 0
	}}
}

// collect gathers ids.
func collect(to map[corpus.ID]bool) func([]negentropy.ID) {
	return eachID(func(id corpus.ID) { to[id] = true })
}

// against reconciles the relay, over a connection of its own, with these events of the corpus, and
// returns the ids that only they and that only the relay has.
func (s *side) against(ctx context.Context, indexes []int) (result negentropy.Result, have, need map[corpus.ID]bool, err error) {
	have, need = idSet(), idSet()
	result, err = differ(ctx, s.Relay.URL(), s.Corpus, indexes, s.options(collect(have), collect(need)))
	return result, have, need, err
}

// record keeps what a reconciliation cost. Where the relay had time ranges split, what it cost
// rests on the time of day as well and is not exact.
func record(t *harness.Trial, r negentropy.Result, exact bool) {
	t.OwnPart()
	t.Value("time", "ms", results.Lower, harness.Milliseconds(r.Duration))
	t.Value("first answer", "ms", results.None, harness.Milliseconds(r.FirstAnswer))
	t.Value("harness share", "%", results.None, 100*float64(r.Engine+r.Coding)/float64(max(1, r.Duration)))
	exact = exact && r.Refused == 0
	recordTraffic(t, r, exact)
	recordExact(t, exact, "have", "events", results.None, float64(r.Have))
	recordExact(t, exact, "need", "events", results.None, float64(r.Need))
	if differing := float64(r.Have + r.Need); differing > 0 {
		recordExact(t, exact, "bytes per difference", "bytes/event", results.Lower, float64(r.BytesUp+r.BytesDown)/differing)
	}
}

// recordTraffic keeps what went to and fro.
func recordTraffic(t *harness.Trial, r negentropy.Result, exact bool) {
	recordExact(t, exact, "rounds", "rounds", results.None, float64(r.Rounds))
	recordExact(t, exact, "bytes up", "bytes", results.None, float64(r.BytesUp))
	recordExact(t, exact, "bytes down", "bytes", results.None, float64(r.BytesDown))
}

func recordExact(t *harness.Trial, exact bool, metric, unit string, better results.Better, value float64) {
	t.Measure(results.Measurement{Metric: metric, Unit: unit, Better: better, Exact: exact, Trials: []float64{value}})
}

// Causes of evidence on a difference: as what an id was, or was not, named. The client has it
// alone, or needs it.
const (
	causeHave = "to have"
	causeNeed = "to need"
)

// initial reconciles the relay, for the first time since its writes, with what the other holds.
func (s *side) initial(ctx context.Context, t *harness.Trial) error {
	result, have, need, err := s.against(ctx, s.other.held)
	if err != nil {
		return fmt.Errorf("the first reconciliation with %s: %w", s.Relay.Name(), err)
	}
	record(t, result, true)
	s.first = result.Duration
	f := check(results.CodeDifference, true, map[string]float64{})
	for _, x := range []struct {
		name, cause string
		got, want   map[corpus.ID]bool
	}{{"have", causeHave, have, without(s.Corpus, s.other.held, s.held)}, {"need", causeNeed, need, without(s.Corpus, s.held, s.other.held)}} {
		missing, extra := minus(x.want, x.got), minus(x.got, x.want)
		f.Counts[x.name], f.Counts["must "+x.name], f.Counts["extra "+x.name] = float64(len(x.got)), float64(len(x.want)), float64(len(extra))
		f.Evidence = slices.Concat(f.Evidence, idEvidence(s.Corpus, results.EvidenceMissing, x.cause, missing),
			idEvidence(s.Corpus, results.EvidenceExtra, x.cause, extra))
	}
	f.Verdict = results.Holds(len(f.Evidence) == 0)
	t.AddFinding(f)
	t.AddFinding(onlyKnown(s.Corpus, need, nil))
	return nil
}

// findForeign is onlyKnown for a reconciliation of which only the number of such ids is kept, and
// examples.
func findForeign(t *harness.Trial, r negentropy.Result) {
	var evidence []results.Evidence
	for _, id := range r.UnexpectedExamples {
		evidence = append(evidence, results.Evidence{Code: results.EvidenceUnexpected, ID: corpus.ID(id).String()})
	}
	evidence = andOthers(evidence, results.EvidenceUnexpected, "", r.Unexpected-len(evidence))
	t.AddFinding(check(results.CodeOnlyKnown, r.Unexpected == 0, counts("ids", r.Unexpected, "twice", 0), evidence...))
}

const (
	transferBatch  = 100 // ids in one REQ: within the filter limits of every relay in the catalog
	transferAtOnce = 4   // REQs in flight: within their subscription limits
)

// transfer carries to the relay what it lacks of the other.
func (s *side) transfer(ctx context.Context, t *harness.Trial) error {
	source := s.other
	now, err := source.model()
	if err != nil {
		return err
	}
	had := among(s.Corpus, s.held)
	// What the source was given in the other direction has taken the place of some of what it held:
	// newer versions, deletions.
	lacks := slices.DeleteFunc(slices.Clone(source.held), func(i int) bool { return had[i] || source.seeded.Holds(i) && !now.Holds(i) })
	p := s.Publisher(nil)
	p.Conns = 1
	b := client.ByID{Options: client.Options{URL: source.Relay.URL(), Stall: s.Options.Stall}, Batch: transferBatch, InFlight: transferAtOnce}
	var fetched *client.Fetched
	done, err := p.Transfer(ctx, len(lacks), func(ctx context.Context, take client.Take) (err error) {
		b.Take = take
		fetched, err = b.Run(ctx, idsOf(s.Corpus, lacks))
		return err
	})
	if err != nil {
		err = fmt.Errorf("transferring from %s to %s: %w", source.Relay.Name(), s.Relay.Name(), err)
		if theirs := (*load.SourceError)(nil); errors.As(err, &theirs) {
			return source.Fault(err)
		}
		return err
	}
	for _, i := range lacks {
		s.offered[i] = true
	}
	t.OwnPart()
	t.Value("events", "events", results.None, float64(fetched.Asked))
	accepted := done.Accepted + done.Duplicates
	if seconds := done.Duration.Seconds(); len(lacks) > 0 {
		t.Value("duration", "s", results.Lower, seconds)
		t.Value("events/s", "events/s", results.Higher, float64(accepted)/seconds)
	}
	byReason(t, "refused", done.Reasons)
	altered, missing := idSet(done.Altered...), idSet(slices.Concat(fetched.Missing, fetched.Failed)...)
	source.Under(describePhase(phaseTransfer)).AddFinding(check(results.CodeUnaltered, len(altered) == 0,
		counts("altered", len(altered), "of", fetched.Events), idEvidence(s.Corpus, results.EvidenceAltered, "", altered)...))
	f := check(results.CodeCarried, len(missing) == 0 && done.Unanswered == 0, counts("asked", fetched.Asked, "fetched", fetched.Events,
		"missing", len(missing), "accepted", accepted, "refused", done.Refused, "unanswered", done.Unanswered, "elsewhere", fetched.Elsewhere),
		append(idEvidence(s.Corpus, results.EvidenceMissing, "", missing), refusalEvidence(done.Reasons)...)...)
	if done.Unanswered == 0 { // what the source did not send is its failure, what got no answer the sink's
		f.Blames = source.Relay.Name()
	}
	t.AddFinding(f)
	return nil
}

// identical reconciles the relay with all that a compliant relay holds now, and explains what is
// left of the difference.
func (s *side) identical(ctx context.Context, t *harness.Trial) error {
	held, err := findHeld(ctx, s.Trial, s.Model.Effective(), nil, certainly(s.Model), func(r negentropy.Result) { record(t, r, true) })
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
	blamed := own.own()
	for _, i := range s.Model.Effective() { // what it was sent, and refused or left unanswered though it had to keep it
		if a := s.Ledger.Get(i); a == load.Unanswered || a == load.Refused {
			blamed++
		}
	}
	f := d.finding(results.CodeHoldsUnion)
	if f.Counts["own"] = float64(blamed); !d.none() && blamed == 0 {
		f.Verdict, f.Cause = results.Stated, results.MissingNeverDelivered
	}
	t.AddFinding(f)
	own.findLost(t)
	conn, _, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer conn.Abort()
	left, err := s.leaveOut()
	if err != nil {
		return err
	}
	if err := left.ask(ctx, s, conn); err != nil {
		return err
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

// leaveOut takes one of those that must be there, at random.
func (s *side) leaveOut() (l leftOut, err error) {
	must := slices.DeleteFunc(slices.Clone(s.held), func(i int) bool { return !certainly(s.Model)(i) })
	if len(must) == 0 {
		return l, nil
	}
	out := must[s.Rand.IntN(len(must))]
	l.id = s.Corpus.Entry(out).ID
	l.set, err = sealed(s.Corpus, slices.DeleteFunc(slices.Clone(s.held), func(i int) bool { return i == out }))
	return l, err
}

// ask reconciles the relay with the set once. Nothing of it is a figure.
func (l *leftOut) ask(ctx context.Context, s *side, conn *client.Conn) error {
	if l.set == nil {
		return nil
	}
	named := false
	_, err := reconcileOn(ctx, conn, s.Corpus, l.set, s.options(nil, eachID(func(id corpus.ID) { named = named || id == l.id })))
	if l.asked++; !named {
		l.fail++
	}
	if err != nil {
		return fmt.Errorf("reconciling %s with one event less: %w", s.Relay.Name(), err)
	}
	return nil
}

func (l *leftOut) find(t *harness.Trial) {
	if l.asked == 0 {
		return
	}
	f := check(results.CodeNamesLeft, l.fail == 0, counts("missing", l.fail, "of", l.asked))
	if l.fail > 0 {
		f.Evidence = idEvidence(t.Corpus, results.EvidenceMissing, "", idSet(l.id))
	}
	t.AddFinding(f)
}

const (
	heartbeats   = 10
	leftOutBeats = 3 // how many reconciliations among them are with one event less
)

// heartbeat repeats the reconciliation of what is the same on both sides at once, with no writes
// between: what a periodic mirror pays. Some with one event less stand among them, not counted: who
// calls any sets identical is found out.
func (s *side) heartbeat(ctx context.Context, t *harness.Trial) error {
	conn, set, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer conn.Abort()
	left, err := s.leaveOut()
	if err != nil {
		return err
	}
	times := results.NewHistogram()
	var last, worst negentropy.Result // worst named the most ids that nobody knows
	differing, differed := 0, 0       // ids at most, and how often
	leaving := s.Rand.Perm(heartbeats)[:leftOutBeats]
	for beat := range heartbeats {
		if slices.Contains(leaving, beat) {
			if err := left.ask(ctx, s, conn); err != nil {
				return err
			}
		}
		if last, err = reconcileOn(ctx, conn, s.Corpus, set, s.options(nil, nil)); err != nil {
			return fmt.Errorf("reconciling %s again: %w", s.Relay.Name(), err)
		}
		times.Record(last.Duration)
		if last.Unexpected > worst.Unexpected {
			worst = last
		}
		if n := last.Have + last.Need; n > 0 {
			differing, differed = max(differing, n), differed+1
		}
	}
	t.OwnPart()
	recordTraffic(t, last, last.Refused == 0)
	t.AddFinding(check(results.CodeSteady, differed == 0, counts("ids", differing, "times", differed, "of", heartbeats)))
	left.find(t)
	findForeign(t, worst)
	s.findRebuilt(t, times)
	return t.Latency("time", results.Lower, times)
}

// rebuiltShare is from which share of the first reconciliation on a repeated one costs what
// building the set anew does: where the set is kept, it takes a few hundredths.
const rebuiltShare = 1.0 / 3

// rebuiltFrom is the least that a reconciliation must take to tell.
const rebuiltFrom = 5 * time.Millisecond

// findRebuilt states whether a relay builds its set anew at each NEG-OPEN.
func (s *side) findRebuilt(t *harness.Trial, times *results.Histogram) {
	beat := times.Quantile(0.5)
	if s.first < rebuiltFrom {
		return
	}
	t.AddFinding(results.Finding{Code: results.CodeSetRebuilt, Verdict: results.States(float64(beat) < rebuiltShare*float64(s.first)),
		Counts: map[string]float64{"ms": harness.Milliseconds(beat), "first ms": harness.Milliseconds(s.first)}})
}

// afterWrite publishes one event and reconciles once more with a client that lacks it, so that it
// has to be named: a relay that builds its structure anew after each write pays here.
func (s *side) afterWrite(ctx context.Context, t *harness.Trial) error {
	event, err := freshEvent(s)
	if err != nil {
		return err
	}
	conn, set, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer conn.Abort()
	ok, err := conn.Publish(event.ID, event.AppendJSON(nil), s.Options.Stall)
	if err != nil {
		return fmt.Errorf("publishing one more event to %s: %w", s.Relay.Name(), err)
	}
	if !ok.Accepted {
		t.AddFinding(results.Finding{Code: results.CodeAcceptsOneMore, Verdict: results.Stated, Texts: map[string]string{"reason": ok.Reason}})
		return nil
	}
	s.more = event.ID
	named := idSet()
	result, err := reconcileOn(ctx, conn, s.Corpus, set, s.options(nil, collect(named)))
	if err != nil {
		return fmt.Errorf("reconciling %s after one more event: %w", s.Relay.Name(), err)
	}
	record(t, result, false)
	findForeign(t, result)
	differ := result.Have + result.Need + 1
	if named[event.ID] {
		differ -= 2
	}
	if result.Unexpected > 0 { // what it says in a reconciliation is worth nothing: it is asked for the event
		l := client.Lookup{URL: s.Relay.URL(), Stall: s.Options.Stall, Must: func(int) bool { return false }}
		got, err := l.Run(ctx, []corpus.ID{event.ID})
		if err != nil {
			return fmt.Errorf("asking %s for one more event: %w", s.Relay.Name(), err)
		}
		if differ = 1; got.Came[0] {
			differ = 0
		}
	}
	t.AddFinding(check(results.CodeAtOnce, differ == 0, counts("ids", differ)))
	return nil
}

// freshEvent makes a note that is in no corpus. It is dated a minute back, so that no relay takes
// it for one from the future.
func freshEvent(s *side) (corpus.Event, error) {
	key, aux, err := harness.NewKey(s.Rand)
	if err != nil {
		return corpus.Event{}, err
	}
	e := corpus.Event{Kind: 1, CreatedAt: time.Now().Unix() - 60, Tags: []corpus.Tag{}, Content: "one more"}
	return e, key.Sign(&e, aux)
}

// scattered reconciles with a set from which one event in a hundred was taken at random: the
// algorithm's worst case.
func (s *side) scattered(ctx context.Context, t *harness.Trial) error {
	left := slices.DeleteFunc(slices.Clone(s.held), func(int) bool { return s.Rand.IntN(100) == 0 })
	removed := without(s.Corpus, s.held, left)
	result, _, need, err := s.against(ctx, left)
	if err != nil {
		return fmt.Errorf("reconciling %s with a scattered difference: %w", s.Relay.Name(), err)
	}
	record(t, result, false)
	findForeign(t, result)
	lost := minus(removed, need)
	t.AddFinding(check(results.CodeScattered, len(lost) == 0, counts("missing", len(lost), "of", len(removed)),
		idEvidence(s.Corpus, results.EvidenceMissing, "", lost)...))
	return nil
}
