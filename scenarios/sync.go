package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

	held   beginning       // of the source that was met last: finding it out takes a while and serves all sinks
	heldBy *relays.Process // that source
	stops  []string        // relays that ended, as a source, a transfer that relaybench carried
}

// The modes.
const (
	ModeNative     = "native"
	ModeNegentropy = "negentropy"
	ModeReq        = "req"
)

// syncModes has them in the order in which they are measured.
var syncModes = []struct {
	mode, title string
	uses        []string
	ceiling     results.Ceiling
}{
	{ModeNative, "by the sink's own sync command", nil, results.CeilingNone},
	{ModeNegentropy, "by reconciliation (NIP-77), relaybench between the two", []string{results.UsesIDs}, results.CeilingPair},
	{ModeReq, "by REQs in pages, newest first", []string{results.UsesUntil, results.UsesLimit, results.UsesOrder}, results.CeilingPair},
}

// SyncModes lists the modes in the order in which they are measured.
func SyncModes() (modes []string) {
	for _, m := range syncModes {
		modes = append(modes, m.mode)
	}
	return modes
}

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

var syncMetrics = figures("records/s", "records/s", "wall time", "wall time", "missing", "missing", "reconcile time", "reconciled in",
	"reconcile rounds", "in rounds", "transfers", "transfers", "stragglers", "stragglers", "transfer events/s", "transfer/s", "pages", "pages",
	"response bytes", "received", "REQ to EOSE", "REQ to EOSE", "source cpu", "source cpu", "sink cpu", "sink cpu", "tool cpu", "tool cpu",
	"tool's share of the sink's cpu", "tool / sink cpu", "tool peak rss", "tool rss", "refused", "refused")

// Describe implements harness.Scenario. The source has everything and the sink nothing, but where
// events go both ways each has four fifths, the source without the newest and the sink without the
// oldest.
func (y syncMode) Describe() harness.Description {
	place := slices.Index(SyncModes(), y.mode)
	m := &syncModes[place]
	direction, needs := cmp.Or(y.Direction, relays.Down), harness.Loaded
	if direction == relays.Both {
		needs = harness.Older
	}
	return harness.Description{Cast: harness.Ordered, Bulk: true, Needs: needs, Scenario: results.Scenario{
		Key: SyncFamily + "." + y.mode, Title: m.title, Section: "Sync", Order: orderSync + 1 + place, Primary: "records/s", Unit: "events/s",
		Layout: results.LayoutMatrix, Uses: m.uses, Ceiling: m.ceiling, Meaning: syncMeaning,
	}, Labels: results.Labels{results.LabelMode: y.mode, results.LabelDirection: string(direction)}, Metrics: syncMetrics,
		External: results.Finding{Scenario: SyncFamily, Code: results.CodeHasWay, Cause: results.ExternalSync}}
}

// beginning is what a relay has before a sync.
type beginning struct {
	// mustSend is what it acknowledged or returned, as far as a compliant relay still holds it. It
	// is not taken from what the relay says that it holds.
	mustSend []int
	returned []bool // what it returned, by corpus index
}

// syncing is one mode of one pair on its way.
type syncing struct {
	syncMode
	Source, Sink *harness.Trial
	had          [2]beginning // source and sink, before
	expected     *model.Model // of what both held

	throttle int64 // refusals as rate-limited so far
	began    time.Duration
	done     synced
}

// synced is what came of it.
type synced struct {
	account    load.Account
	timeline   []float64             // events at the sink in each second
	noTimeline results.Reason        // why there is none
	command    *relays.CommandResult // the sink's own command did
	failed     *relays.CommandError  // and failed so; nil where it did not
	reconciled *reconciled           // nil where nothing was
	carried    *carried              // nil where relaybench carried nothing
	ended      results.Reason        // who ended the transfer before its end, an Ended code, and how far it was
	stoppedBy  *harness.Trial        // the relay that did; nil where none did, or nobody knows which
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
	if r.heldBy != r.Source.Relay {
		if r.held, err = r.begun(ctx, r.Source); err != nil {
			return fmt.Errorf("finding out what the source holds: %w", err)
		}
		r.heldBy = r.Source.Relay
	}
	r.had[0] = r.held
	if r.Direction == relays.Both {
		if r.had[1], err = r.begun(ctx, r.Sink); err != nil {
			return fmt.Errorf("finding out what the sink holds: %w", err)
		}
	}
	if len(r.had[0].mustSend) == 0 {
		return r.Source.Fault(errors.New("the source holds nothing"))
	}
	had := among(r.Source.Corpus, r.had[0].mustSend, r.had[1].mustSend)
	if r.expected, err = model.NewStatuses(r.Source.Corpus, func(i int) bool { return had[i] }, r.Source.Now); err != nil {
		return err
	}
	measured := []*relays.Process{r.Source.Relay, r.Sink.Relay}
	if stopped {
		measured = measured[:1]
	}
	stopMeter := load.Measure(measured...)
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
	r.done.account.Usage = stopMeter()
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
	if r.done.overdue = true; r.done.account.Cut != "" {
		return
	}
	c, by := r.done.carried, r.done.reconciling
	switch {
	case by != nil || c == nil || r.Direction == relays.Both:
	case r.done.asked || c.waited() > took/2:
		by = r.Sink
	case c.waited() < took/10 && r.done.waiting == 0:
		by = r.Source
	}
	r.endedBy(by)
}

// endedBy notes which relay ended a transfer before its end, nil where nobody knows.
func (r *syncing) endedBy(by *harness.Trial) {
	r.done.stoppedBy = by
	r.done.ended.Code = map[*harness.Trial]string{nil: results.EndedByUnknown, r.Source: results.EndedBySource,
		r.Sink: results.EndedBySink}[by]
}

// impossible says why there is no such mode between these relays, as far as that is known before
// either has to work.
func (r *syncing) impossible() (none results.Reason) {
	sink, both := r.Sink.Relay.Definition(), r.Direction == relays.Both
	why := func(code string, texts map[string]string) results.Reason {
		return results.Reason{Code: code, Texts: texts}
	}
	switch r.mode {
	case ModeNative:
		if ok, reason := sink.Can(relays.Sync); !ok {
			return why(results.NoCommand, map[string]string{"relay": sink.Name, "why": reason})
		}
		if want := r.wanted(); !slices.Contains(sink.Directions(), want) {
			return why(results.NoDirection, map[string]string{"relay": sink.Name, "direction": string(want)})
		}
		if both && sink.NeedsStop(relays.Sync) {
			return why(results.StoppedBoth, map[string]string{"relay": sink.Name})
		}
	case ModeNegentropy:
		for _, t := range []*harness.Trial{r.Source, r.Sink} {
			if how := t.Negentropy; !how.Answered() {
				texts := map[string]string{"relay": t.Relay.Name(), "cause": how.Cause, "reason": "", "how": "", "error": ""}
				maps.Copy(texts, how.Texts)
				return why(results.WithoutNIP77, texts)
			}
		}
	case ModeReq:
		if both {
			return why(results.OneWay, nil)
		}
	}
	return none
}

// wanted is the direction in which the sink's own command is to go.
func (r *syncing) wanted() relays.Direction {
	if r.Direction == relays.Both {
		return relays.Both
	}
	return relays.Down
}

// begun finds out what a relay has to begin with, and says what it lost. Where it cannot be asked
// by id, what it acknowledged stands: a transfer will show what it sends.
func (r *syncing) begun(ctx context.Context, t *harness.Trial) (h beginning, err error) {
	given, err := model.NewStatuses(t.Corpus, t.Ledger.Acknowledged, t.Now)
	if err != nil {
		return h, err
	}
	held, err := r.find(ctx, t, given)
	switch {
	case ctx.Err() != nil:
		return h, context.Cause(ctx)
	case err != nil:
		h.returned = among(t.Corpus, where(t.Corpus, t.Ledger.Acknowledged))
		t.Alone().AddFinding(results.Finding{Code: results.CodeAcknowledgedKept, Verdict: results.Undecided, Texts: map[string]string{"error": err.Error()}})
	default:
		h.returned = held.holds
	}
	m, err := model.NewStatuses(t.Corpus, func(i int) bool { return h.returned[i] || t.Ledger.Acknowledged(i) }, t.Now)
	if err != nil {
		return h, err
	}
	if h.mustSend = m.Effective(); held != nil {
		compare(t, m, held.events, held.unreturned).findLost(t.Alone())
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
	held, err := findHeld(ctx, t, against, nil, certainly(m), nil)
	if err != nil {
		return nil, t.Fault(err)
	}
	for _, f := range held.findings(t.Corpus, m) {
		switch {
		case f.Verdict != results.Failed:
		case f.Code == results.CodeNIP77 && r.mode == ModeNegentropy: // which breaks by that anyway, and says so
		case f.Code == results.CodeOnlyAsked:
			r.alone(t, f)
		default:
			t.Alone().AddFinding(f)
		}
	}
	return held, nil
}

// alone records what one side did by itself. A failure bears on the figures of this way of syncing
// in which it stands there.
func (r *syncing) alone(of *harness.Trial, f results.Finding) {
	f.BearsOn = r.bearsOn(of)
	of.Alone().AddFinding(f)
}

// bearsOn are the figures of this way of syncing in which a relay stands where it does.
func (r *syncing) bearsOn(at *harness.Trial) []results.Scope {
	role := results.AsRelay
	if at == r.Source {
		role = results.AsPeer
	}
	return []results.Scope{{Scenario: "sync." + r.mode, Role: role}}
}

// account finds out what the sink holds now, whatever anybody said of it, and explains what is not
// there.
func (r *syncing) account(ctx context.Context) error {
	if c := r.done.carried; c != nil {
		for k, of := range []*harness.Trial{r.Source, r.Sink} {
			if with := &c.from[k]; with.Lost > 0 {
				r.alone(of, connections(with.Lost, with.unfinished, with.Loss))
			}
		}
	}
	sides := []*harness.Trial{r.Sink}
	if r.Direction == relays.Both {
		sides = append(sides, r.Source)
	}
	for _, of := range sides {
		found, err := r.find(ctx, of, r.expected)
		if err != nil {
			return fmt.Errorf("finding out what %s holds: %w", of.Relay.Name(), err)
		}
		d := compare(of, r.expected, found.events, found.unreturned)
		excused := r.blame(of, found.holds)
		if of == r.Sink {
			r.done.account.Excused = r.done.account.Excused || excused
			if err := r.measure(found); err != nil {
				return err
			}
		}
		f := d.finding(results.CodeHoldsSource)
		for _, i := range where(of.Corpus, func(i int) bool { return !r.expected.Holds(i) }) { // what became of what need not be there
			if r.Source.Model.Holds(i) {
				f.Counts["not held by the source"]++
			} else {
				f.Counts["rightly."+r.Source.Model.Why(i).String()]++
			}
		}
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
		d.findLost(of)
	}
	return nil
}

// blame tells apart what a receiver, which has these events, lacks since the giver did not send it,
// though it has it and was asked, which is the giver's failure. The receiver is excused where
// nothing else is missing. Of what relaybench had no part in, only what the source does not return
// itself is known not to have been sent. A transfer that was ended is judged as a whole.
func (r *syncing) blame(receiver *harness.Trial, has []bool) (excused bool) {
	a := &r.done.account
	giver, gave := r.Source, 0
	if receiver == giver {
		giver, gave = r.Sink, 1
	}
	var from *sent
	if c := r.done.carried; c != nil {
		// What nobody had asked for: other events, and events twice. A giver that sent nothing of
		// that has no finding, as in pairs.
		from = &c.from[gave]
		events, duplicates := int(from.Unexpected)+from.notOfCorpus, int(from.Repeated)
		f := check(results.CodeOnlyRequested, events+duplicates == 0,
			counts("events", events, "elsewhere", from.Elsewhere, "duplicates", duplicates))
		if f.Verdict == results.Failed {
			r.alone(giver, f)
		}
	}
	if a.Err != nil || a.Cut != "" {
		return false
	}
	withheld, other := 0, 0
	for _, i := range r.expected.Effective() {
		switch {
		case has[i]:
		case receiver.Ledger.Get(i) == load.NotOffered && (from != nil || !r.had[gave].returned[i]):
			withheld++
		default:
			other++
		}
	}
	if stepped := r.done.stepped; len(stepped) > 0 && withheld > 0 { // nobody's failure: there is no way to ask for the rest
		a.Why = fullSeconds(stepped)
		receiver.AddFinding(results.Finding{Code: results.CodeSecondsPaged, Verdict: results.Stated, Counts: fullSeconds(stepped).Counts})
		return other == 0
	}
	if from == nil && withheld == 0 {
		return false
	}
	if withheld > 0 {
		a.Why = results.Reason{Code: results.CauseWithheld}
	}
	f := check(results.CodeSendsHeld, withheld == 0, counts("withheld", withheld))
	f.Texts = map[string]string{"to": receiver.Relay.Name()}
	if from != nil {
		altered := idSet(from.altered...)
		maps.Copy(f.Counts, counts("altered", len(altered), "elsewhere", from.Elsewhere, "left out", from.leftOut))
		f.Evidence = idEvidence(receiver.Corpus, results.EvidenceAltered, "", altered)
		// An event that comes only when it is asked for again counts as kept back: a client that
		// asks once does not get it.
		f.Verdict = results.Holds(withheld+from.leftOut == 0)
	}
	r.alone(giver, f)
	return withheld > 0 && other == 0
}

// measure records the figures, and whether all that the source had and the sink lacked is there.
func (r *syncing) measure(held *found) error {
	t, a := r.Sink, &r.done.account
	before := among(t.Corpus, r.had[1].mustSend)
	delivered := func(i int) bool { return held.holds[i] && !before[i] }
	lacked := slices.DeleteFunc(r.expected.Effective(), func(i int) bool { return before[i] })
	a.Delivered, a.Expected = len(where(t.Corpus, delivered)), len(lacked)
	a.Missing = len(slices.DeleteFunc(lacked, delivered))
	var err error
	if a.State, err = load.FoldCorpus(t.Corpus, delivered, t.Now); err != nil {
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
	recordLate(t, &held.LookedUp)
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
	if c := r.done.carried; c != nil {
		if u := a.Usage; len(u.Relays) == 2 && u.Relays[1].Known && u.Relays[1].CPU > 0 {
			t.Value("tool's share of the sink's cpu", "%", results.None, 100*u.Tool.CPU.Seconds()/u.Relays[1].CPU.Seconds())
		}
		c.measure(t)
	}
	if c := r.done.reconciled; c != nil {
		c.measure(t)
	}
	return nil
}

// native has the sink's own command get the events. What it says of its success is not believed:
// the sink is asked afterwards. Where the sink serves meanwhile it is asked once a second how much
// it holds (NIP-45).
func (r *syncing) native(ctx context.Context, stopped bool) error {
	c := relays.CommandOptions{Stall: r.Sink.Options.Stall}
	if r.done.noTimeline.Code = results.StoppedUnseen; !stopped {
		watch := &counting{}
		counted, cancel := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() { watch.run(counted, r.Sink.Relay.URL()) })
		defer func() {
			cancel()
			watching.Wait()
			r.done.timeline, r.done.noTimeline = watch.timeline, watch.trouble
		}()
		c.Moves = watch.now.Load
	}
	done, err := r.Sink.Relay.Sync(ctx, r.Source.Relay.URL(), r.wanted(), c)
	if done != nil {
		r.done.account.Wall, r.done.command = done.Took, done
	}
	var failed *relays.CommandError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed) && ctx.Err() == nil:
		r.done.account.Err, r.done.failed = failed, failed
		var by *harness.Trial
		if source := r.Source.Relay.Name(); source == r.Sink.Relay.Name() {
			by = r.Sink
		} else if slices.Contains(r.stops, source) {
			by = r.Source
		}
		r.endedBy(by)
		return nil
	}
	return fmt.Errorf("the sync command of %s: %w", r.Sink.Relay.Name(), err)
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

// judgeCommand judges that the sink's own command failed. A command may fail since the source hung
// up on it, which nobody here can see: it is the command's fault for certain only where the relay
// is its own source, and the source's where it was seen to end a transfer by relaybench as well. In
// all other cases it is not known whose it is, and nobody's. A command that brought everything, and
// ended as if it had not, bars nothing.
func (r *syncing) judgeCommand() {
	failed := r.done.failed
	if failed == nil {
		return
	}
	f := results.Finding{Code: results.CodeSyncCommand, Verdict: results.Undecided, Cause: r.done.ended.Code, Texts: map[string]string{"error": failed.Error()}}
	switch f.Cause {
	case results.EndedBySink:
		f.Verdict = results.Failed
	case results.EndedBySource, "":
		f.Verdict = results.Stated
	}
	for _, line := range failed.LogTail {
		f.Evidence = append(f.Evidence, results.Evidence{Code: results.EvidenceLog, Text: line})
	}
	r.Sink.AddFinding(f)
}

// counting asks a relay once a second how many events it holds.
type counting struct {
	now      atomic.Int64
	timeline []float64      // growth in each second
	trouble  results.Reason // why it ended early
}

// countWithin is how long a COUNT may take: a relay that counts slower is not asked again, since
// counting would be what is measured.
const countWithin = 5 * time.Second

func (c *counting) run(ctx context.Context, url string) {
	querier, err := load.NewQuerier(ctx, url, countWithin)
	if err != nil {
		c.trouble = results.Said(results.NotWatched, err.Error())
		return
	}
	defer querier.Close()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var reply load.Reply
		err := querier.Count([]byte("{}"), &reply)
		if ctx.Err() != nil {
			return
		}
		if err != nil || !reply.Answered() {
			c.trouble = results.Reason{Code: results.NotWatched}
			return
		}
		n := int64(reply.Count)
		c.timeline = append(c.timeline, float64(max(0, n-c.now.Load())))
		c.now.Store(max(n, c.now.Load()))
	}
}
