package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/backfill"
	"relaybench/harness/measure"
	"relaybench/harness/wire"
	"relaybench/relays"
)

// Sync measures how an empty relay gets what a full one has: by the sink's own command, by reconciliation (NIP-77) with relaybench as the agent between the
// two, or by REQs in pages.
type Sync struct {
	Which     []string         // modes; all where empty
	Direction relays.Direction // whose side the agent of the negentropy mode takes; Down unless set
	Page      int              // events asked for in one REQ of the req mode

	held heldBySource
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

// Describe implements harness.SyncScenario.
func (*Sync) Describe() harness.Description {
	return harness.Description{Key: "sync", Title: "a relay fills another", Needs: harness.Empty}
}

// Modes implements harness.SyncScenario.
func (y *Sync) Modes() []string {
	if len(y.Which) > 0 {
		return y.Which
	}
	return SyncModes()
}

// Shares implements harness.SyncScenario: the source has everything and the sink nothing, but where events go both ways each has four fifths, the source without
// the newest fifth and the sink without the oldest.
func (y *Sync) Shares(m *corpus.Model) (source, sink func(i int) bool) {
	if y.Direction != relays.Both {
		return nil, nil
	}
	oldest, newest := fifths(m)
	return func(i int) bool { return i < newest }, func(i int) bool { return i >= oldest }
}

// heldBySource remembers what a source was found to hold, which takes a while to find out and serves all sinks.
type heldBySource struct {
	process *relays.Process
	held    []int
}

// noWay is a mode that a pair of relays cannot be measured in.
type noWay struct{ why string }

func (e *noWay) Error() string { return e.why }

// syncing is one mode of one pair on its way.
type syncing struct {
	*harness.Syncing
	*Sync
	mode     string
	had      [2][]int      // what source and sink held before, in corpus order
	expected *corpus.Model // of what both held

	throttle int64 // refusals as rate-limited so far
	meter    *backfill.Meter
	began    time.Duration
	done     synced
}

// synced is what came of it.
type synced struct {
	account    backfill.Account
	timeline   []float64       // events at the sink in each second
	noTimeline string          // why there is none
	agent      bool            // relaybench carried the events
	command    *relays.Carried // the sink's own command did
	reconciled *reconciled     // nil where nothing was
	carried    *carried        // nil where relaybench carried nothing
	stepped    []int64         // seconds of which pages by time may not have brought everything, newest first
}

// RunSync implements harness.SyncScenario.
func (y *Sync) RunSync(ctx context.Context, mode string, s *harness.Syncing) error {
	run := &syncing{Syncing: s, Sync: y, mode: mode}
	var none *noWay
	err := run.run(ctx)
	if errors.As(err, &none) {
		s.Say(measure.Finding{Check: harness.CanSync, Detail: none.why})
		return nil
	}
	return err
}

func (r *syncing) run(ctx context.Context) error {
	if err := r.possible(); err != nil {
		return err
	}
	stopped := r.mode == ModeNative && r.SinkDefinition().NeedsStop(relays.Sync)
	var err error
	if stopped {
		err = r.Prepare()
	} else {
		err = r.Boot(ctx)
	}
	if err != nil {
		return fmt.Errorf("starting the sink: %w", err)
	}
	if r.held.process != r.Source.Relay {
		held, err := r.find(ctx, r.Source)
		if err != nil {
			return fmt.Errorf("finding out what the source holds: %w", err)
		}
		r.held = heldBySource{r.Source.Relay, held}
	}
	r.had[0] = r.held.held
	if r.Direction == relays.Both && !stopped {
		if r.had[1], err = r.find(ctx, r.Sink); err != nil {
			return fmt.Errorf("finding out what the sink holds: %w", err)
		}
	}
	if len(r.had[0]) == 0 {
		return errors.New("the source holds nothing")
	}
	had := make([]bool, r.Source.Corpus.Len())
	for _, i := range slices.Concat(r.had[0], r.had[1]) {
		had[i] = true
	}
	if r.expected, err = corpus.NewFates(r.Source.Corpus, func(i int) bool { return had[i] }, r.Source.Now); err != nil {
		return err
	}
	if stopped {
		r.meter = backfill.Measure(r.Source.Relay)
	} else {
		r.meter = backfill.Measure(r.Source.Relay, r.Sink.Relay)
	}
	r.began = wire.Now()
	switch r.mode {
	case ModeNative:
		err = r.native(ctx, stopped)
	case ModeNegentropy:
		err = r.negentropy(ctx)
	default:
		err = r.req(ctx)
	}
	r.done.account.Usage = r.meter.Stop()
	if err != nil {
		return err
	}
	if c := r.done.command; c != nil {
		r.countCommand(c)
	}
	if stopped {
		if err := r.Restart(ctx); err != nil {
			return fmt.Errorf("booting the sink over what its sync command left: %w", err)
		}
	}
	return r.account(ctx)
}

// possible says why there is no such mode between these relays, as far as that is known before either has to work.
func (r *syncing) possible() error {
	sink := r.SinkDefinition()
	switch r.mode {
	case ModeNative:
		if ok, why := sink.Can(relays.Sync); !ok {
			return &noWay{sink.Name + ": " + why}
		}
		want := relays.Down
		if r.Direction == relays.Both {
			want = relays.Both
		}
		if !slices.Contains(sink.Directions(), want) {
			return &noWay{fmt.Sprintf("%s: its sync command does not go %s", sink.Name, want)}
		}
		if r.Direction == relays.Both && sink.NeedsStop(relays.Sync) {
			return &noWay{sink.Name + ": its sync command works on a relay that does not run, and so has no share to begin with"}
		}
	case ModeNegentropy:
		for _, name := range []string{r.Source.Relay.Name(), sink.Name} {
			if ok, why := r.NegentropyOf(name); !ok {
				return &noWay{name + ": " + why}
			}
		}
	case ModeReq:
		if r.Direction == relays.Both {
			return &noWay{"pages go one way"}
		}
	}
	return nil
}

// find finds out which events of the corpus a relay holds, in corpus order: by reconciliation with all of them, or by asking for each.
func (r *syncing) find(ctx context.Context, t *harness.Trial) ([]int, error) {
	all := make([]int, t.Corpus.Len())
	for i := range all {
		all[i] = i
	}
	s := &side{Trial: t}
	if ok, _ := r.NegentropyOf(t.Relay.Name()); ok {
		lacks := located{corpus: t.Corpus}
		if _, err := s.differ(ctx, all, lacks.add, nil); err != nil {
			return nil, err
		}
		for _, i := range lacks.indexes {
			all[i] = -1
		}
		return slices.DeleteFunc(all, func(i int) bool { return i < 0 }), nil
	}
	asker, err := harness.NewAsker(ctx, t.Relay.URL(), t.Options.Stall)
	if err != nil {
		return nil, err
	}
	defer asker.Close()
	var held []int
	_, err = askByID(t, asker, all, func(i int, found bool) {
		if found {
			held = append(held, i)
		}
	})
	return held, err
}

// countCommand adds what the sink's own command used to what its relay did.
func (r *syncing) countCommand(c *relays.Carried) {
	u := r.done.account.Usage
	if len(u.Relays) < 2 {
		u.Relays = append(u.Relays, backfill.Spent{Known: true})
	}
	sink := &u.Relays[1]
	sink.CPU += time.Duration(c.Usage.CPUSeconds * float64(time.Second))
	sink.PeakRSS = max(sink.PeakRSS, c.Usage.PeakRSS)
}

// account finds out what the sink holds now, whatever anybody said of it, and explains what is not there.
func (r *syncing) account(ctx context.Context) error {
	t := r.Sink
	expected := r.expected
	before := make([]bool, t.Corpus.Len())
	for _, i := range r.had[1] {
		before[i] = true
	}
	sides := []*harness.Trial{t}
	if r.Direction == relays.Both {
		sides = append(sides, r.Source)
	}
	for _, of := range sides {
		held, err := r.find(ctx, of)
		if err != nil {
			return fmt.Errorf("finding out what %s holds: %w", of.Relay.Name(), err)
		}
		d := compare(&side{Trial: of}, expected, held)
		excused := r.blame(of, expected, held)
		if of == t {
			r.done.account.Excused = r.done.account.Excused || excused
			if err := r.measure(expected, held, before); err != nil {
				return err
			}
		}
		of.Find(measure.Finding{Check: "holds what the source held", OK: d.none(), Required: !r.done.account.Excused && !excused,
			Detail: d.summary() + r.beyond(expected), Evidence: d.evidence()})
	}
	return nil
}

// blame tells apart what a receiver lacks since the giver did not send it, though it has it and was asked, which is the giver's failure. The receiver is excused
// where nothing else is missing. A transfer that was ended, or that relaybench had no part in, is judged as a whole.
func (r *syncing) blame(receiver *harness.Trial, expected *corpus.Model, held []int) (excused bool) {
	a := &r.done.account
	if !r.done.agent || a.Err != nil {
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
		case receiver.Ledger.Get(i) == harness.NotOffered:
			withheld++
		default:
			other++
		}
	}
	giver := r.Source
	if receiver == giver {
		giver = r.Sink
	}
	if n := len(r.done.stepped); n > 0 && withheld > 0 { // nobody's failure: there is no way to ask for the rest
		receiver.Find(measure.Finding{Check: "no second holds more than a page",
			Detail: fmt.Sprintf("seconds that hold as many events as are asked for, or sent, at once: %d (the newest is %d); what else they hold cannot be asked for by time", n, r.done.stepped[0])})
		a.Why = "seconds hold more than a page"
		return other == 0
	}
	f := measure.Finding{Check: "sends what it holds", OK: withheld == 0, Required: true, Detail: "every event that was asked for came"}
	if withheld > 0 {
		a.Why = "the source did not send them"
		f.Detail = fmt.Sprintf("%d events that it holds did not come when %s was to get them", withheld, receiver.Relay.Name())
		altered := map[corpus.ID]bool{}
		for _, id := range r.done.carried.altered {
			altered[id] = true
		}
		if n := len(altered); n > 0 {
			f.Detail += fmt.Sprintf("; %d came with other fields than they were signed with", n)
			f.Evidence = describeIDs(receiver.Corpus, "altered", altered)
		}
	}
	r.SayOf(giver, f)
	return withheld > 0 && other == 0
}

// beyond says what became of those events of the corpus that need not be at the sink.
func (r *syncing) beyond(expected *corpus.Model) string {
	counts := map[string]int{}
	var order []string
	for i := range expected.Corpus().Len() {
		if expected.Holds(i) {
			continue
		}
		why := r.Source.Model.Why(i).String()
		if r.Source.Model.Holds(i) {
			why = "not held by the source"
		}
		if counts[why]++; counts[why] == 1 {
			order = append(order, why)
		}
	}
	text := ""
	for _, why := range order {
		text += fmt.Sprintf("; %d more of the corpus: %s", counts[why], why)
	}
	return text
}

// measure records the figures, and whether all that the source had and the sink lacked is there.
func (r *syncing) measure(expected *corpus.Model, held []int, before []bool) error {
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
	if a.State, err = backfill.FoldCorpus(t.Corpus, func(i int) bool { return delivered[i] }, t.Now); err != nil {
		return err
	}
	if f, ok := a.Finding(); ok {
		t.Find(f)
	}
	for _, m := range a.Measurements() {
		if m.Metric == "records/s" {
			m.Timeline = r.done.timeline
		}
		t.Measure(m)
	}
	if r.done.noTimeline != "" {
		t.Find(measure.Finding{Check: "is watched second by second", Detail: r.done.noTimeline})
	}
	u := a.Usage
	if r.done.agent && len(u.Relays) == 2 && u.Relays[1].Known && u.Relays[1].CPU > 0 {
		t.Value("tool's share of the sink's cpu", "%", measure.None, 100*u.Tool.CPU.Seconds()/u.Relays[1].CPU.Seconds())
	}
	if c := r.done.carried; c != nil {
		c.measure(t)
	}
	if c := r.done.reconciled; c != nil {
		c.measure(t)
	}
	return nil
}
