package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/measure"
	"relaybench/harness/negentropy"
	"relaybench/harness/pull"
	"relaybench/harness/wire"
)

// Negentropy reconciles two relays (NIP-77), each of which begins with four fifths of the corpus: the oldest fifth is the one's alone, the newest the
// other's. Differences come in stretches of time, as they do between relays; scattered ones are the algorithm's worst case.
type Negentropy struct {
	Scattered bool // measure that worst case as well
}

// The phases, as keys of measurements and findings.
const (
	phaseInitial    = "negentropy.initial"
	phaseTransfer   = "negentropy.transfer"
	phaseIdentical  = "negentropy.identical"
	phaseHeartbeat  = "negentropy.heartbeat"
	phaseAfterWrite = "negentropy.after-write"
	phaseScattered  = "negentropy.scattered"
)

const (
	heartbeats     = 10
	transferBatch  = 100     // ids in one REQ: within the filter limits of every relay in the catalog
	transferAtOnce = 4       // REQs in flight: within their subscription limits
	mostForeign    = 100_000 // ids that a relay may claim beside those of the corpus, before it is not listened to any longer: they take memory
)

// Describe implements harness.PairScenario.
func (Negentropy) Describe() harness.Description {
	return harness.Description{Key: "negentropy", Title: "two relays, reconciled", Needs: harness.Empty}
}

// side is one relay of the pair.
type side struct {
	*harness.Trial
	offered []bool        // by corpus index
	held    []int         // what it held when it was seeded, or last reconciled, in corpus order
	seeded  *corpus.Model // of its share
}

// RunPair implements harness.PairScenario.
func (n Negentropy) RunPair(ctx context.Context, ta, tb *harness.Trial) error {
	total := ta.Corpus.Len()
	a := &side{Trial: ta, offered: make([]bool, total)}
	b := &side{Trial: tb, offered: make([]bool, total)}
	oldest, newest := fifths(ta.Model)
	for i := range total {
		a.offered[i], b.offered[i] = i < newest, i >= oldest
	}
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
	}
	return nil
}

// fifths returns the corpus indexes at which the second fifth and the last fifth of what a compliant relay holds begin.
func fifths(m *corpus.Model) (oldest, newest int) {
	effective := m.Effective()
	if len(effective) == 0 {
		return 0, 0
	}
	return effective[len(effective)/5], effective[len(effective)-(len(effective)+4)/5]
}

// seed publishes the side's share and finds out by asking for every id what it holds.
func (s *side) seed(ctx context.Context) error {
	var share []int
	for i, ok := range s.offered {
		if ok {
			share = append(share, i)
		}
	}
	p := harness.Publisher{URL: s.Relay.URL(), Corpus: s.Corpus, Conns: s.Options.Publishers, Window: s.Options.Window,
		Stall: s.Options.Stall, Ledger: s.Ledger, Progress: s.Progress}
	if _, err := p.Publish(ctx, share); err != nil {
		return err
	}
	asker, err := harness.NewAsker(ctx, s.Relay.URL(), s.Options.Stall)
	if err != nil {
		return err
	}
	defer asker.Close()
	if _, err := askByID(s.Trial, asker, share, func(i int, found bool) {
		if found {
			s.held = append(s.held, i)
		}
	}); err != nil {
		return err
	}
	if s.seeded, err = s.model(); err != nil {
		return err
	}
	d := compare(s, s.seeded, s.held)
	s.Find(measure.Finding{Check: "holds its share after seeding", OK: d.none(), Required: true, Detail: d.summary(), Evidence: d.evidence()})
	return nil
}

// model is of what the relay has been offered so far.
func (s *side) model() (*corpus.Model, error) {
	return corpus.NewFates(s.Corpus, func(i int) bool { return s.offered[i] }, s.Now)
}

// reconcile compares what the relay has with the events of a set.
func (s *side) reconcile(ctx context.Context, conn *wire.Conn, set negentropy.Storage, o negentropy.Options) (negentropy.Result, error) {
	o.Stall, o.FirstAnswer = s.Options.Stall, s.Options.Stall
	o.MaxNeed = s.Corpus.Len() + mostForeign
	return negentropy.ReconcileSplit(ctx, conn, []byte("{}"), set, o)
}

// setOf seals a set of events of the corpus and others.
func setOf(c *corpus.Corpus, indexes []int, others ...corpus.Event) (negentropy.Storage, error) {
	set := negentropy.NewSet(len(indexes) + len(others))
	for _, i := range indexes {
		e := c.Entry(i)
		set.Add(uint64(e.CreatedAt), (*negentropy.ID)(&e.ID))
	}
	for i := range others {
		set.Add(uint64(others[i].CreatedAt), (*negentropy.ID)(&others[i].ID))
	}
	return set, set.Seal()
}

// collect gathers ids.
func collect(to map[corpus.ID]bool) func([]negentropy.ID) {
	return func(ids []negentropy.ID) {
		for _, id := range ids {
			to[corpus.ID(id)] = true
		}
	}
}

// against reconciles the relay, over a connection of its own, with these events of the corpus, and returns the ids that only they and that only the
// relay has.
func (s *side) against(ctx context.Context, indexes []int) (result negentropy.Result, have, need map[corpus.ID]bool, err error) {
	have, need = make(map[corpus.ID]bool), make(map[corpus.ID]bool)
	result, err = s.differ(ctx, indexes, collect(have), collect(need))
	return result, have, need, err
}

// differ is against with the ids handed over as they come.
func (s *side) differ(ctx context.Context, indexes []int, have, need func([]negentropy.ID)) (result negentropy.Result, err error) {
	set, err := setOf(s.Corpus, indexes)
	if err != nil {
		return result, err
	}
	conn, err := harness.Dial(ctx, s.Relay.URL())
	if err != nil {
		return result, err
	}
	defer conn.Abort()
	return s.reconcile(ctx, conn, set, negentropy.Options{Have: have, Need: need})
}

// record keeps what a reconciliation cost. Where the relay had time ranges split, what it cost rests on the time of day as well and is not exact.
func record(t *harness.Trial, r negentropy.Result, exact bool) {
	t.Value("time", "ms", measure.Lower, harness.Milliseconds(r.Duration))
	t.Value("first answer", "ms", measure.None, harness.Milliseconds(r.FirstAnswer))
	exact = exact && r.Refused == 0
	t.Value("harness share", "%", measure.None, 100*float64(r.Engine+r.Coding)/float64(max(1, r.Duration)))
	for _, m := range []measure.Measurement{
		{Metric: "rounds", Unit: "rounds", Better: measure.None, Trials: []float64{float64(r.Rounds)}},
		{Metric: "bytes up", Unit: "bytes", Better: measure.None, Trials: []float64{float64(r.BytesUp)}},
		{Metric: "bytes down", Unit: "bytes", Better: measure.None, Trials: []float64{float64(r.BytesDown)}},
		{Metric: "have", Unit: "events", Better: measure.None, Trials: []float64{float64(r.Have)}},
		{Metric: "need", Unit: "events", Better: measure.None, Trials: []float64{float64(r.Need)}},
	} {
		m.Exact = exact
		t.Measure(m)
	}
	if differing := r.Have + r.Need; differing > 0 {
		t.Measure(measure.Measurement{Metric: "bytes per difference", Unit: "bytes/event", Better: measure.Lower, Exact: exact,
			Trials: []float64{float64(r.BytesUp+r.BytesDown) / float64(differing)}})
	}
}

// initial reconciles the server, for the first time since its writes, with what the other holds.
func initial(ctx context.Context, server, other *side) error {
	t := server.Under(phaseInitial)
	result, have, need, err := server.against(ctx, other.held)
	if err != nil {
		return server.Fault(fmt.Errorf("the first reconciliation with %s: %w", server.Relay.Name(), err))
	}
	record(t, result, true)
	wantHave, wantNeed := without(server.Corpus, other.held, server.held), without(server.Corpus, server.held, other.held)
	wrong := slices.Concat(
		describeIDs(server.Corpus, "not named as held by the other alone", minus(wantHave, have)),
		describeIDs(server.Corpus, "wrongly named as held by the other alone", minus(have, wantHave)),
		describeIDs(server.Corpus, "not named as held by the relay alone", minus(wantNeed, need)),
		describeIDs(server.Corpus, "wrongly named as held by the relay alone", minus(need, wantNeed)))
	t.Find(measure.Finding{Check: "finds exactly the difference", OK: len(wrong) == 0, Required: true,
		Detail:   fmt.Sprintf("%d of %d ids to have and %d of %d to need named", len(have), len(wantHave), len(need), len(wantNeed)),
		Evidence: wrong})
	return nil
}

// transfer carries to the sink what it lacks of the source.
func transfer(ctx context.Context, sink, source *side) error {
	t := sink.Under(phaseTransfer)
	now, err := source.model()
	if err != nil {
		return err
	}
	lacks := slices.Collect(maps.Keys(without(sink.Corpus, source.held, sink.held)))
	// What the source was given in the other direction has taken the place of some of what it held: newer versions, deletions.
	lacks = slices.DeleteFunc(lacks, func(id corpus.ID) bool {
		i := index(sink.Corpus, id)
		return source.seeded.Holds(i) && !now.Holds(i)
	})
	slices.SortFunc(lacks, func(x, y corpus.ID) int { return index(sink.Corpus, x) - index(sink.Corpus, y) })
	x := harness.Transfer{To: sink.Relay.URL(), Corpus: sink.Corpus, Conns: 1, Window: sink.Options.Window, Stall: sink.Options.Stall, Ledger: sink.Ledger}
	b := pull.ByID{Options: pull.Options{URL: source.Relay.URL(), Stall: sink.Options.Stall}, Batch: transferBatch, InFlight: transferAtOnce}
	var fetched *pull.Fetched
	done, err := x.Run(ctx, len(lacks), func(ctx context.Context, take pull.Take) (err error) {
		b.Take = take
		fetched, err = b.Run(ctx, lacks)
		return err
	})
	if err != nil {
		err = fmt.Errorf("transferring from %s to %s: %w", source.Relay.Name(), sink.Relay.Name(), err)
		if theirs := (*harness.SourceError)(nil); errors.As(err, &theirs) {
			return source.Fault(err)
		}
		return sink.Fault(err)
	}
	for _, id := range lacks {
		sink.offered[index(sink.Corpus, id)] = true
	}
	t.Value("events", "events", measure.None, float64(fetched.Asked))
	if seconds := done.Duration.Seconds(); seconds > 0 {
		t.Value("duration", "s", measure.Lower, seconds)
		t.Value("events/s", "events/s", measure.Higher, float64(done.Accepted+done.Duplicates)/seconds)
	}
	var refusals []string
	for _, reason := range slices.Sorted(maps.Keys(done.Reasons)) {
		r := done.Reasons[reason]
		t.Value("refused: "+reason, "events", measure.None, float64(r.Count))
		refusals = append(refusals, fmt.Sprintf("refused, %s, %d times: %s", reason, r.Count, r.Example))
	}
	altered := make(map[corpus.ID]bool)
	for _, id := range done.Altered {
		altered[id] = true
	}
	source.Under(phaseTransfer).Find(measure.Finding{Check: "events come back as they were sent", OK: len(altered) == 0, Required: true,
		Detail: fmt.Sprintf("%d of %d events were sent with other fields", len(altered), fetched.Events), Evidence: describeIDs(sink.Corpus, "altered", altered)})
	missing := make(map[corpus.ID]bool)
	for _, id := range slices.Concat(fetched.Missing, fetched.Failed) {
		missing[id] = true
	}
	t.Find(measure.Finding{Check: "carries every event over", OK: len(missing) == 0 && done.Unanswered == 0, Required: true,
		Detail: fmt.Sprintf("%d asked for, %d fetched, %d accepted, %d refused, %d never answered",
			fetched.Asked, fetched.Events, done.Accepted+done.Duplicates, done.Refused, done.Unanswered),
		Evidence: append(describeIDs(sink.Corpus, "not sent by the source", missing), refusals...)})
	return nil
}

// identical reconciles the relay with all that a compliant relay holds now, and explains what is left of the difference.
func (s *side) identical(ctx context.Context) error {
	t := s.Under(phaseIdentical)
	effective := s.Model.Effective()
	result, have, need, err := s.against(ctx, effective)
	if err != nil {
		return fmt.Errorf("reconciling %s after the transfer: %w", s.Relay.Name(), err)
	}
	record(t, result, true)
	found := reconciledHolding(s.Corpus, effective, have, need)
	s.held = found.events
	d := compare(s, s.Model, s.held)
	// A relay answers for what it acknowledged. What its peer lost it never got, and may rightly hold what that would have replaced.
	given, err := corpus.NewFates(s.Corpus, s.Ledger.Acknowledged, s.Now)
	if err != nil {
		return err
	}
	own := compare(s, given, s.held)
	refused := s.Ledger.Count(harness.Unanswered) > 0 || slices.ContainsFunc(effective, func(i int) bool { return s.Ledger.Get(i) == harness.Refused })
	detail := d.summary()
	innocent := !d.none() && own.none() && !refused && found.sound()
	if innocent {
		detail += "; it holds all that it was given"
	}
	if n := len(found.twice); n > 0 {
		detail += fmt.Sprintf("; names %d of the events on both sides as its alone", n)
	}
	t.Find(measure.Finding{Check: "converges", OK: d.none() && found.sound(), Required: !innocent, Detail: detail,
		Evidence: append(d.evidence(), found.evidence(s.Corpus, "of no event that was published")...)})
	return nil
}

// heartbeat repeats the reconciliation of what is the same on both sides at once, with no writes between: what a periodic mirror pays.
func (s *side) heartbeat(ctx context.Context) error {
	t := s.Under(phaseHeartbeat)
	set, err := setOf(s.Corpus, s.held)
	if err != nil {
		return err
	}
	conn, err := harness.Dial(ctx, s.Relay.URL())
	if err != nil {
		return err
	}
	defer conn.Abort()
	times := measure.NewHistogram()
	var last negentropy.Result
	differing, differed := 0, 0 // ids at most, and how often
	for range heartbeats {
		if last, err = s.reconcile(ctx, conn, set, negentropy.Options{}); err != nil {
			return fmt.Errorf("reconciling %s again: %w", s.Relay.Name(), err)
		}
		times.Record(last.Duration)
		if n := last.Have + last.Need; n > 0 {
			differing, differed = max(differing, n), differed+1
		}
	}
	for _, m := range []measure.Measurement{
		{Metric: "rounds", Unit: "rounds", Better: measure.None, Trials: []float64{float64(last.Rounds)}},
		{Metric: "bytes up", Unit: "bytes", Better: measure.None, Trials: []float64{float64(last.BytesUp)}},
		{Metric: "bytes down", Unit: "bytes", Better: measure.None, Trials: []float64{float64(last.BytesDown)}},
	} {
		m.Exact = last.Refused == 0
		t.Measure(m)
	}
	detail := "0 ids differ where nothing was written"
	if differed > 0 {
		detail = fmt.Sprintf("up to %d ids differ where nothing was written, in %d of %d reconciliations", differing, differed, heartbeats)
	}
	t.Find(measure.Finding{Check: "stays the same without writes", OK: differed == 0, Required: true, Detail: detail})
	return t.Latency("time", measure.Lower, times)
}

// afterWrite publishes one event and reconciles once more: a relay that builds its structure anew after each write pays here.
func (s *side) afterWrite(ctx context.Context) error {
	t := s.Under(phaseAfterWrite)
	event, err := freshEvent(s)
	if err != nil {
		return err
	}
	conn, err := harness.Dial(ctx, s.Relay.URL())
	if err != nil {
		return err
	}
	defer conn.Abort()
	_, accepted, reason, err := publishOne(conn, s.Options.Stall, event.ID, event.AppendJSON(nil))
	if err != nil {
		return fmt.Errorf("publishing one more event to %s: %w", s.Relay.Name(), err)
	}
	if !accepted {
		t.Find(measure.Finding{Check: "accepts one more event", Detail: "refused: " + reason})
		return nil
	}
	set, err := setOf(s.Corpus, s.held, event)
	if err != nil {
		return err
	}
	result, err := s.reconcile(ctx, conn, set, negentropy.Options{})
	if err != nil {
		return fmt.Errorf("reconciling %s after one more event: %w", s.Relay.Name(), err)
	}
	record(t, result, false)
	t.Find(measure.Finding{Check: "knows an event as soon as it is acknowledged", OK: result.Have+result.Need == 0, Required: true,
		Detail: fmt.Sprintf("%d ids differ after one more event", result.Have+result.Need)})
	return nil
}

// freshEvent makes a note that is in no corpus. It is dated a minute back, so that no relay takes it for one from the future.
func freshEvent(s *side) (corpus.Event, error) {
	var secret, aux [32]byte
	for i := range secret {
		secret[i], aux[i] = byte(s.Rand.Uint64()), byte(s.Rand.Uint64())
	}
	secret[0] &= 0x7f // below the order of the group
	key, err := corpus.NewSecretKey(secret)
	if err != nil {
		return corpus.Event{}, err
	}
	e := corpus.Event{Kind: 1, CreatedAt: time.Now().Unix() - 60, Tags: []corpus.Tag{}, Content: "one more"}
	return e, key.Sign(&e, aux)
}

// scattered reconciles with a set from which one event in a hundred was taken at random: the algorithm's worst case.
func (s *side) scattered(ctx context.Context) error {
	t := s.Under(phaseScattered)
	var left []int
	removed := make(map[corpus.ID]bool)
	for _, i := range s.held {
		if s.Rand.IntN(100) == 0 {
			removed[s.Corpus.Entry(i).ID] = true
		} else {
			left = append(left, i)
		}
	}
	result, _, need, err := s.against(ctx, left)
	if err != nil {
		return fmt.Errorf("reconciling %s with a scattered difference: %w", s.Relay.Name(), err)
	}
	record(t, result, false)
	lost := minus(removed, need)
	t.Find(measure.Finding{Check: "finds scattered differences", OK: len(lost) == 0, Required: true,
		Detail: fmt.Sprintf("%d of %d ids taken at random were named", len(removed)-len(lost), len(removed)), Evidence: describeIDs(s.Corpus, "not named", lost)})
	return nil
}
