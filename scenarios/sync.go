package scenarios

import (
	"cmp"
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
	"relaybench/relays"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Sync measures how an empty relay gets what a full one has: by the sink's own command, by
// reconciliation (NIP-77) with relaybench as the agent between the two, or by REQs in pages.
type Sync struct {
	Which     []string         // modes; all where empty
	Direction relays.Direction // whose side the agent of the negentropy mode takes; Down unless set
	Page      int              // events asked for in one REQ of the req mode

	held  heldBySource
	stops []string // relays that ended, as a source, a transfer that relaybench carried
}

// The modes.
const (
	ModeNative     = "native"
	ModeNegentropy = "negentropy"
	ModeReq        = "req"
)

// SyncModes lists them in the order in which they are measured.
func SyncModes() []string { return []string{ModeNative, ModeNegentropy, ModeReq} }

// DefaultPage is the page of the req mode, in events.
const DefaultPage = 20_000

// syncMode is one mode as a scenario. All modes of a Sync learn from one another.
type syncMode struct {
	*Sync
	mode string
}

// Scenarios returns the modes.
func (y *Sync) Scenarios() (all []harness.Scenario) {
	modes := y.Which
	if len(modes) == 0 {
		modes = SyncModes()
	}
	for _, mode := range modes {
		all = append(all, syncMode{y, mode})
	}
	return all
}

const syncMeaning = "A full source on the left, an empty sink above: events per second from the first byte to the last event at the " +
	"sink, found there by asking it. A figure rests on both relays, so that none is ranked. What relaybench itself used is set " +
	"against what the sink used"

// SyncFamily begins the keys of all its scenarios.
const SyncFamily = "sync"

// Describe implements harness.Scenario. The source has everything and the sink nothing, but where
// events go both ways each has four fifths, the source without the newest and the sink without the
// oldest.
func (y syncMode) Describe() harness.Description {
	title, uses, ceiling := "by the sink's own sync command", []string(nil), results.CeilingPair
	switch y.mode {
	case ModeNative:
		ceiling = results.CeilingNone
	case ModeNegentropy:
		title, uses = "by reconciliation (NIP-77), relaybench between the two", []string{results.UsesIDs}
	case ModeReq:
		title, uses = "by REQs in pages, newest first", []string{results.UsesUntil, results.UsesLimit, results.UsesOrder}
	}
	direction, needs := cmp.Or(y.Direction, relays.Down), harness.Loaded
	if direction == relays.Both {
		needs = harness.Older
	}
	return harness.Description{Cast: harness.Ordered, Bulk: true, Needs: needs, Scenario: results.Scenario{
		Key: SyncFamily + "." + y.mode, Title: title, Section: sectionSync, Order: orderSync + 1 + slices.Index(SyncModes(), y.mode), Primary: "records/s", Unit: "events/s",
		Layout: results.LayoutMatrix, Uses: uses, Ceiling: ceiling, Meaning: syncMeaning,
	}, Labels: results.Labels{results.LabelMode: y.mode, results.LabelDirection: string(direction)}, Metrics: syncMetrics,
		External: results.Finding{Scenario: SyncFamily, Code: results.CodeHasWay, Cause: results.ExternalSync}}
}

// heldBySource remembers what a source was found to hold, which takes a while to find out and
// serves all sinks.
type heldBySource struct {
	process *relays.Process
	beginning
}

// beginning is what a relay has before a sync.
type beginning struct {
	// mustSend is what it acknowledged or returned, as far as a compliant relay still holds it. It
	// is not taken from what the relay says that it holds.
	mustSend []int
	returned []bool // what it returned, by corpus index
}

// unsupported is why a pair of relays cannot be measured in a mode: a code and texts, names and
// words by turns.
func unsupported(code string, pairs ...string) results.Reason {
	texts := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		texts[pairs[i]] = pairs[i+1]
	}
	return results.Reason{Code: code, Texts: texts}
}

// syncing is one mode of one pair on its way.
type syncing struct {
	syncMode
	Source, Sink *harness.Trial
	had          [2]beginning // source and sink, before
	expected     *model.Model // of what both held

	throttle  int64 // refusals as rate-limited so far
	stopMeter func() *load.Usage
	began     time.Duration
	done      synced
}

// synced is what came of it.
type synced struct {
	account    load.Account
	timeline   []float64             // events at the sink in each second
	noTimeline results.Reason        // why there is none
	agent      bool                  // relaybench carried the events
	command    *relays.CommandResult // the sink's own command did
	failed     *relays.CommandError  // and failed so; nil where it did not
	reconciled *reconciled           // nil where nothing was
	carried    *carried              // nil where relaybench carried nothing
	ended      results.Reason        // who ended the transfer before its end, an Ended code, and how far it was
	stoppedBy  *harness.Trial        // the relay that did; nil where none did, or nobody knows which
	late       int                   // events that the sink returned only when it was asked for them again
	lateBy     time.Duration         // by how much, the last of them
	stepped    []int64               // seconds of which pages by time may not have brought everything, newest first

	overdue     bool           // the time was over
	reconciling *harness.Trial // with whom, where it is at that
	waiting     int            // events that waited for whoever got them when the last transfer ended
	asked       bool           // all that was asked for in it had come
}

// Run implements harness.Scenario.
func (y syncMode) Run(ctx context.Context, sink *harness.Trial) error {
	r := &syncing{syncMode: y, Source: sink.Peer, Sink: sink}
	if why := r.impossible(); !why.None() {
		sink.AddFinding(results.Finding{Code: results.CodeHasWay, Verdict: results.Stated, Cause: why.Code, Counts: why.Counts, Texts: why.Texts})
		return nil
	}
	return r.run(ctx)
}

func (r *syncing) run(ctx context.Context) (err error) {
	stopped := r.mode == ModeNative && r.Sink.Relay.Definition().NeedsStop(relays.Sync)
	if !stopped {
		err = r.Sink.Restart(ctx)
		if err == nil && r.Direction == relays.Both {
			err = r.Sink.Publish(ctx, harness.Newer)
		}
	}
	if err != nil {
		return fmt.Errorf("starting the sink: %w", err)
	}
	if r.held.process != r.Source.Relay {
		r.held = heldBySource{process: r.Source.Relay}
		if r.held.beginning, err = r.begun(ctx, r.Source); err != nil {
			return fmt.Errorf("finding out what the source holds: %w", err)
		}
	}
	r.had[0] = r.held.beginning
	if r.Direction == relays.Both && !stopped {
		if r.had[1], err = r.begun(ctx, r.Sink); err != nil {
			return fmt.Errorf("finding out what the sink holds: %w", err)
		}
	}
	if len(r.had[0].mustSend) == 0 {
		return r.Source.Fault(errors.New("the source holds nothing"))
	}
	had := make([]bool, r.Source.Corpus.Len())
	for _, i := range slices.Concat(r.had[0].mustSend, r.had[1].mustSend) {
		had[i] = true
	}
	if r.expected, err = model.NewStatuses(r.Source.Corpus, func(i int) bool { return had[i] }, r.Source.Now); err != nil {
		return err
	}
	if stopped {
		r.stopMeter = load.Measure(r.Source.Relay)
	} else {
		r.stopMeter = load.Measure(r.Source.Relay, r.Sink.Relay)
	}
	timed := r.Sink.Under(r.Describe())
	r.began = wire.Now()
	cell, cancel := r.Sink.Within(ctx, len(r.had[0].mustSend)+len(r.had[1].mustSend))
	defer cancel()
	switch r.mode {
	case ModeNative:
		err = r.native(cell, stopped)
	case ModeNegentropy:
		err = r.negentropy(cell)
	default:
		err = r.req(cell)
	}
	r.done.account.Usage = r.stopMeter()
	timed.OwnPart()
	if err != nil && cell.Err() != nil && ctx.Err() == nil {
		r.overdue(context.Cause(cell))
		err = nil
	}
	if err != nil {
		return err
	}
	if c := r.done.command; c != nil {
		r.countCommand(c)
	}
	if stopped {
		if err := r.Sink.Restart(ctx); err != nil {
			return fmt.Errorf("booting the sink over what its sync command left: %w", err)
		}
	}
	return r.account(ctx)
}

// overdue notes that the time is over, and who is at fault where that is known: whoever is being
// reconciled with, the sink where all waited for it, and the source where nothing did.
func (r *syncing) overdue(why error) {
	took := wire.Now() - r.began
	r.done.account.Wall = max(r.done.account.Wall, took)
	r.done.account.End(why)
	r.done.overdue = true
	if r.done.account.Cut != "" {
		return
	}
	c := r.done.carried
	switch {
	case r.done.reconciling != nil:
		r.endedBy(r.done.reconciling)
	case c == nil || r.Direction == relays.Both:
		r.endedBy(nil)
	case r.done.asked || c.waited() > took/2:
		r.endedBy(r.Sink)
	case c.waited() < took/10 && r.done.waiting == 0:
		r.endedBy(r.Source)
	default:
		r.endedBy(nil)
	}
}

// endedBy notes which relay ended a transfer before its end, nil where nobody knows.
func (r *syncing) endedBy(by *harness.Trial) {
	r.done.stoppedBy = by
	switch by {
	case nil:
		r.done.ended.Code = results.EndedByUnknown
	case r.Source:
		r.done.ended.Code = results.EndedBySource
	default:
		r.done.ended.Code = results.EndedBySink
	}
}

// impossible says why there is no such mode between these relays, as far as that is known before
// either has to work.
func (r *syncing) impossible() (none results.Reason) {
	sink := r.Sink.Relay.Definition()
	switch r.mode {
	case ModeNative:
		if ok, why := sink.Can(relays.Sync); !ok {
			return unsupported(results.NoCommand, "relay", sink.Name, "why", why)
		}
		want := relays.Down
		if r.Direction == relays.Both {
			want = relays.Both
		}
		if !slices.Contains(sink.Directions(), want) {
			return unsupported(results.NoDirection, "relay", sink.Name, "direction", string(want))
		}
		if r.Direction == relays.Both && sink.NeedsStop(relays.Sync) {
			return unsupported(results.StoppedBoth, "relay", sink.Name)
		}
	case ModeNegentropy:
		for _, t := range []*harness.Trial{r.Source, r.Sink} {
			if why := t.Negentropy; !why.Answered() {
				return unsupported(results.WithoutNIP77, "relay", t.Relay.Name(), "cause", why.Cause, "reason", why.Texts["reason"], "how", why.Texts["how"], "error", why.Texts["error"])
			}
		}
	case ModeReq:
		if r.Direction == relays.Both {
			return unsupported(results.OneWay)
		}
	}
	return none
}

// begun finds out what a relay has to begin with, and says what it lost. Where it cannot be asked
// by id, what it acknowledged stands: a transfer will show what it sends.
func (r *syncing) begun(ctx context.Context, t *harness.Trial) (h beginning, err error) {
	given, err := model.NewStatuses(t.Corpus, t.Ledger.Acknowledged, t.Now)
	if err != nil {
		return h, err
	}
	h.returned = make([]bool, t.Corpus.Len())
	held, err := r.find(ctx, t, given)
	switch {
	case ctx.Err() != nil:
		return h, context.Cause(ctx)
	case err != nil:
		for i := range h.returned {
			h.returned[i] = t.Ledger.Acknowledged(i)
		}
		t.Alone().AddFinding(results.Finding{Code: results.CodeAcknowledgedKept, Verdict: results.Undecided, Texts: map[string]string{"error": err.Error()}})
	default:
		for _, i := range held.events {
			h.returned[i] = true
		}
	}
	m, err := model.NewStatuses(t.Corpus, func(i int) bool { return h.returned[i] || t.Ledger.Acknowledged(i) }, t.Now)
	if err != nil {
		return h, err
	}
	if h.mustSend = m.Effective(); held != nil {
		if f := lost(t, compare(t, m, held.events, held.unreturned)); f != nil {
			t.Alone().AddFinding(*f)
		}
	}
	return h, nil
}

// find finds out which events of the corpus a relay holds, of which the model says what has to be
// there. What is wrong with how it says so is its own.
func (r *syncing) find(ctx context.Context, t *harness.Trial, m *model.Model) (*found, error) {
	var against []int
	if t.Negentropy.Answered() {
		against = m.Effective()
	}
	held, err := findHeld(ctx, t, against, m, nil)
	if err != nil {
		return nil, t.Fault(err)
	}
	for _, f := range held.findings(t.Corpus, m) {
		if f.Code == results.CodeNIP77 && r.mode == ModeNegentropy { // which breaks by that anyway, and says so
			continue
		}
		if f.Code == results.CodeOnlyAsked {
			f.BearsOn = r.bearsOn(t)
		}
		if f.Verdict == results.Failed {
			t.Alone().AddFinding(f)
		}
	}
	return held, nil
}

// countCommand adds what the sink's own command used to what its relay did.
func (r *syncing) countCommand(c *relays.CommandResult) {
	u := r.done.account.Usage
	if len(u.Relays) < 2 {
		u.Relays = append(u.Relays, load.Spent{Known: true})
	}
	sink := &u.Relays[1]
	sink.CPU += time.Duration(c.Usage.CPUSeconds * float64(time.Second))
	sink.PeakRSS = max(sink.PeakRSS, c.Usage.PeakRSS)
}

// account finds out what the sink holds now, whatever anybody said of it, and explains what is not
// there.
func (r *syncing) account(ctx context.Context) error {
	t := r.Sink
	expected := r.expected
	before := make([]bool, t.Corpus.Len())
	for _, i := range r.had[1].mustSend {
		before[i] = true
	}
	if c := r.done.carried; c != nil {
		for k, of := range []*harness.Trial{r.Source, r.Sink} {
			if with := &c.from[k]; with.Lost > 0 {
				f := connections(with.Lost, with.unfinished, with.Loss)
				if f.Verdict == results.Failed {
					f.BearsOn = r.bearsOn(of)
				}
				of.Alone().AddFinding(f)
			}
		}
	}
	sides := []*harness.Trial{t}
	if r.Direction == relays.Both {
		sides = append(sides, r.Source)
	}
	for _, of := range sides {
		found, err := r.find(ctx, of, expected)
		if err != nil {
			return fmt.Errorf("finding out what %s holds: %w", of.Relay.Name(), err)
		}
		held := found.events
		d := compare(of, expected, held, found.unreturned)
		excused := r.blame(of, expected, held)
		if of == t {
			r.done.late, r.done.lateBy = found.Late, found.LateBy
			r.done.account.Excused = r.done.account.Excused || excused
			if err := r.measure(expected, held, before); err != nil {
				return err
			}
		}
		f := results.Finding{Code: results.CodeHoldsSource, Verdict: results.Holds(d.none()), Counts: d.counts(), Evidence: d.evidence()}
		r.beyond(expected, f.Counts)
		own := d.own()
		if r.done.overdue { // what lay there without an answer says nothing
			own -= int(f.Counts["missing."+results.MissingUnanswered])
		}
		stopped := (r.done.account.Cut != "" || r.done.stoppedBy != nil && r.done.stoppedBy != of) && own == 0 // by the other one, or by whoever measures
		switch {
		case !d.none() && (stopped || excused):
			f.Verdict, f.Cause = results.Stated, results.MissingNeverDelivered
		case !d.none() && own == 0 && r.done.ended.Code == results.EndedByUnknown:
			f.Verdict, f.Cause = results.Undecided, results.MissingNeverDelivered
		}
		f.BearsOn = r.bearsOn(of)
		of.AddFinding(f)
		if f := lost(of, d); f != nil {
			of.AddFinding(*f)
		}
	}
	return nil
}

// blame tells apart what a receiver lacks since the giver did not send it, though it has it and was
// asked, which is the giver's failure. The receiver is excused where nothing else is missing. Of
// what relaybench had no part in, only what the source does not return itself is known not to have
// been sent. A transfer that was ended is judged as a whole.
func (r *syncing) blame(receiver *harness.Trial, expected *model.Model, held []int) (excused bool) {
	a := &r.done.account
	giver, gave := r.Source, 0
	if receiver == giver {
		giver, gave = r.Sink, 1
	}
	if c := r.done.carried; c != nil {
		r.judgeSent(giver, &c.from[gave])
	}
	if a.Err != nil || a.Cut != "" {
		return false
	}
	has := make([]bool, receiver.Corpus.Len())
	for _, i := range held {
		has[i] = true
	}
	withheld, other := 0, 0
	for _, i := range expected.Effective() {
		switch {
		case has[i]:
		case receiver.Ledger.Get(i) == load.NotOffered && (r.done.agent || !r.had[gave].returned[i]):
			withheld++
		default:
			other++
		}
	}
	if n := len(r.done.stepped); n > 0 && withheld > 0 { // nobody's failure: there is no way to ask for the rest
		receiver.AddFinding(results.Finding{Code: results.CodeSecondsPaged, Verdict: results.Stated,
			Counts: map[string]float64{"seconds": float64(n), "newest": float64(r.done.stepped[0])}})
		a.Why = results.Reason{Code: results.CauseFullSeconds, Counts: map[string]float64{"seconds": float64(n), "newest": float64(r.done.stepped[0])}}
		return other == 0
	}
	if !r.done.agent && withheld == 0 {
		return false
	}
	f := results.Finding{Code: results.CodeSendsHeld, Counts: counts("withheld", withheld), Texts: map[string]string{"to": receiver.Relay.Name()}}
	if withheld > 0 {
		a.Why = results.Reason{Code: results.CauseWithheld}
	}
	if c := r.done.carried; c != nil {
		from := &c.from[gave]
		altered := map[corpus.ID]bool{}
		for _, id := range from.altered {
			altered[id] = true
		}
		f.Counts["altered"], f.Counts["elsewhere"], f.Counts["left out"] = float64(len(altered)), float64(from.Elsewhere), float64(from.leftOut)
		f.Evidence = idEvidence(receiver.Corpus, results.EvidenceAltered, "", altered)
	}
	// An event that comes only when it is asked for again counts as kept back: a client that asks
	// once does not get it.
	if f.Verdict = results.Holds(withheld+int(f.Counts["left out"]) == 0); f.Verdict == results.Failed {
		f.BearsOn = r.bearsOn(giver)
	}
	giver.Alone().AddFinding(f)
	return withheld > 0 && other == 0
}

// judgeSent records what a giver sent that nobody had asked for: other events, and events twice. A
// giver that sent nothing of that has no finding, as in pairs.
func (r *syncing) judgeSent(giver *harness.Trial, from *sent) {
	events, duplicates := int(from.Unexpected)+from.notOfCorpus, int(from.Repeated)
	f := results.Finding{Code: results.CodeOnlyRequested, Verdict: results.Holds(events+duplicates == 0),
		Counts: counts("events", events, "elsewhere", int(from.Elsewhere), "duplicates", duplicates)}
	if f.Verdict == results.Failed {
		f.BearsOn = r.bearsOn(giver)
		giver.Alone().AddFinding(f)
	}
}

// bearsOn are the figures on which a failure of one side bears: those of this way of syncing in
// which it stands there.
func (r *syncing) bearsOn(at *harness.Trial) []results.Scope {
	role := results.AsRelay
	if at == r.Source {
		role = results.AsPeer
	}
	return []results.Scope{{Scenario: "sync." + r.mode, Role: role}}
}

// beyond counts what became of those events of the corpus that need not be at the sink.
func (r *syncing) beyond(expected *model.Model, to map[string]float64) {
	for i := range expected.Corpus().Len() {
		switch {
		case expected.Holds(i):
		case r.Source.Model.Holds(i):
			to["not held by the source"]++
		default:
			to["rightly."+r.Source.Model.Why(i).String()]++
		}
	}
}

// measure records the figures, and whether all that the source had and the sink lacked is there.
func (r *syncing) measure(expected *model.Model, held []int, before []bool) error {
	t, a := r.Sink, &r.done.account
	a.Expected, a.Delivered = 0, 0
	delivered := make([]bool, len(before))
	for _, i := range expected.Effective() {
		if !before[i] {
			a.Expected++
		}
	}
	present := 0
	for _, i := range held {
		if before[i] {
			continue
		}
		delivered[i] = true
		a.Delivered++
		if expected.Holds(i) {
			present++
		}
	}
	a.Missing = a.Expected - present
	var err error
	if a.State, err = load.FoldCorpus(t.Corpus, func(i int) bool { return delivered[i] }, t.Now); err != nil {
		return err
	}
	if r.done.failed != nil && a.Missing == 0 && a.Err != nil { // what it says of its failure is believed no more than the contrary
		a.Err, r.done.ended = nil, results.Reason{}
	}
	if f, ok := a.Finding(); ok {
		f.BearsOn = r.bearsOn(t)
		if ended := r.done.ended; !ended.None() { // the account is the sink's, and the failure may not be
			f.Texts["by"] = ended.Code
			maps.Copy(f.Counts, ended.Counts)
			f.Verdict = results.Undecided
			if by := r.done.stoppedBy; by != nil {
				f.Verdict, f.Blames, f.BearsOn = results.Failed, by.Relay.Name(), r.bearsOn(by)
			}
		}
		t.AddFinding(f)
	}
	r.judgeCommand()
	recordLate(t, r.done.late, r.done.lateBy)
	for _, m := range a.Measurements() {
		if m.Metric == "records/s" {
			m.Timeline = r.done.timeline
		}
		t.Measure(m)
	}
	if why := r.done.noTimeline; !why.None() {
		t.AddFinding(results.Finding{Code: results.CodeWatched, Verdict: results.Stated, Cause: why.Code, Texts: why.Texts})
	}
	if a.Completeness() == load.Complete {
		t.Budget.Took(a.Delivered, a.Wall)
	}
	u := a.Usage
	if r.done.agent && len(u.Relays) == 2 && u.Relays[1].Known && u.Relays[1].CPU > 0 {
		t.Value("tool's share of the sink's cpu", "%", results.None, 100*u.Tool.CPU.Seconds()/u.Relays[1].CPU.Seconds())
	}
	if c := r.done.carried; c != nil {
		c.measure(t)
	}
	if c := r.done.reconciled; c != nil {
		c.measure(t)
	}
	return nil
}
