package harness

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness/load"
	"relaybench/harness/preflight"
	"relaybench/relays"
	"relaybench/results"
)

// Target is a relay that takes part in a run.
type Target struct {
	Definition *relays.Definition
	Program    string // path of the program file, "" for a relay that runs already
}

// Observer is told what happens, so that somebody can watch. Its methods may be called from several
// goroutines.
type Observer interface {
	Trial(relay string, trial, trials, scenarios int)
	Scenario(relay string, d Description)
	Progress(done, total int)
	Failed(relay string, reason error)
}

// Runner runs scenarios on relays, one relay at a time.
type Runner struct {
	Targets   []Target
	Scenarios []Scenario
	Corpus    *corpus.Corpus
	Model     *model.Model // of the whole corpus, at Now
	Now       int64        // Unix seconds
	Options   Options
	Settings  relays.Settings
	Recorder  *results.Recorder
	Observer  Observer
	Preflight bool         // inspect each relay before its first trial
	Seeder    Scenario     // loads a relay where a scenario needs it loaded; nil: the corpus is published
	ReadOnly  bool         // publish nothing: no relay is given the corpus, which may be nil then
	Unwatched bool         // do not look whether this process was away: for tests that count what was done
	Budget    *load.Budget // of whatever moves events; Run makes one where it is nil

	short     shortage                        // of the machine, in the present trial
	failed    map[string]bool                 // relays that are not booted again, by name: they do not start
	ended     map[string]results.Relay        // how the worst of a relay's trials ended, by name
	inspected map[string]*Inspection          // what was found out about a relay beforehand, by name
	speaks    map[string]preflight.Negentropy // whether it speaks NIP-77, by name
	clock     *clock                          // nil before a run
	source    *Boot                           // of an ordered pair: it serves all sinks in turn
	unsaved   error                           // the record cannot be kept, which ends the run
}

// notYet is the reason of a relay whose trials did not come.
const notYet = "the run ended before its turn"

// seeding is what a relay does while it is given the corpus, outside all scenarios.
const seeding = "seeding"

// Run carries out the plan, one stage after another: all at once, single relays, single relays in
// bulk, pairs, ordered pairs. A relay that fails is recorded as failed and the others go on; the
// error is for what ends the whole run: an interruption, or a record that cannot be saved.
func (r *Runner) Run(ctx context.Context) error {
	defer r.watchClock(ctx)()
	for _, c := range r.Targets {
		described := c.Definition.Describe(ctx, c.Program, r.Settings)
		described.Outcome, described.Reason = results.OutcomeSkipped, notYet
		r.Recorder.SetRelay(described)
	}
	r.Recorder.WhenShort(r.short.found)
	defer r.short.end()
	defer r.endSource(ctx)
	r.failed, r.inspected, r.ended = make(map[string]bool), make(map[string]*Inspection), make(map[string]results.Relay)
	r.speaks = make(map[string]preflight.Negentropy)
	if r.Budget == nil {
		r.Budget = &load.Budget{Least: budgetStalls * r.Options.Stall}
	}
	for _, s := range r.stages() {
		if s.cast == AtOnce {
			if err := r.atOnce(ctx, s.scenarios); err != nil {
				return err
			}
			continue
		}
		able, err := r.able(ctx, s)
		if err != nil {
			return err
		}
		for _, t := range s.schedule(able, r.Options.Trials) {
			if slices.ContainsFunc(t.relays, func(c Target) bool { return r.failed[c.Definition.Name] }) {
				continue
			}
			if err := r.trial(ctx, &t); err != nil {
				return err
			}
		}
		if s.plain() && r.Preflight {
			if err := r.preflightAgain(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// budgetStalls is how many times a relay that makes no progress could be waited for in the least
// budget.
const budgetStalls = 4

// save keeps the record as it is now.
func (r *Runner) save() error {
	r.unsaved = r.Recorder.Save()
	return r.unsaved
}

// trial runs one trial, after the preflight where none of the relay was made. The error ends the
// run.
func (r *Runner) trial(ctx context.Context, t *scheduled) error {
	name := t.name(0)
	title := t.label()
	if t.cast == Ordered { // which tells the trials of the same relays apart
		title += ", " + t.scenarios[0].Describe().Key
	}
	r.Observer.Trial(title, t.trial, r.Options.Trials, len(t.scenarios))
	r.short.begin(r.Settings.WorkDir, t.relays...)
	var err error
	if t.plain() && r.Preflight && r.inspected[name] == nil {
		err = r.attempt(ctx, name, func() error { return r.preflight(ctx, t.relays[0]) })
	}
	if err == nil && t.cast == Single {
		err = r.attempt(ctx, name, func() error { return r.findNIPs(ctx, t) })
	}
	if err == nil {
		err = r.passes(ctx, t)
	}
	switch {
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), r.save())
	case r.unsaved != nil:
		return r.unsaved
	case err != nil:
		noStart, known := (*relays.StartError)(nil), r.inspected[name]
		if t.plain() && (errors.As(err, &noStart) || known != nil && known.Relay.Outcome == results.OutcomeNoStart) {
			r.failed[name] = true
		}
		if fault := (*faultError)(nil); t.cast == Ordered && errors.As(err, &fault) && fault.unready && fault.place == 1 {
			r.failed[t.name(1)] = true
		}
		r.Observer.Failed(t.label(), err)
	}
	return r.save()
}

// pass boots the relays of a trial, runs every scenario on them and stops them.
func (r *Runner) pass(ctx context.Context, t *scheduled, p *pass) (err error) {
	t.boots = make([]*Boot, len(t.relays))
	defer func() { err = r.finish(ctx, t, p, err) }()
	from := r.clock.away()
	for k := len(t.relays) - 1; k >= 0; k-- { // a source before its sink
		if t.boots[k], err = r.boot(ctx, t, k); err != nil {
			gone := r.clock.away().since(from)
			if p.repeatFrom(0, gone); p.needsAnother() || ctx.Err() != nil {
				return err
			}
			if t.plain() {
				described := t.relays[k].Definition.Describe(ctx, t.relays[k].Program, r.Settings)
				r.short.recordFailure(&described, results.OutcomeNoStart, err)
				r.Recorder.SetRelay(described)
				return err
			}
			err = &faultError{place: k, unready: true, error: err}
			r.Recorder.Hold()
			r.incomplete(t, t.scenarios[0].Describe(), err)
			r.release(gone, p.was(0))
			return err
		}
	}
	return r.scenarios(ctx, t, p)
}

// boot starts a relay of a trial. A sink is given its folder alone, and a source that serves
// already goes on.
func (r *Runner) boot(ctx context.Context, t *scheduled, place int) (*Boot, error) {
	c := t.relays[place]
	d, start := c.Definition, relays.Start
	form := ""
	if t.bulk {
		d, form = d.Bulk(), " in its bulk form"
	}
	source, sink := t.cast == Ordered && place == 1, t.cast == Ordered && place == 0
	if source {
		if b := r.source; b != nil && b.Relay.Name() == d.Name && b.Number == t.trial && !b.gone() {
			return b, nil
		}
		r.endSource(ctx)
	}
	if sink {
		start = func(_ context.Context, d *relays.Definition, program string, s relays.Settings) (*relays.Process, error) {
			return relays.Prepare(d, program, s)
		}
	}
	process, err := start(ctx, d, c.Program, r.Settings)
	switch {
	case err != nil && t.plain():
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s did not start%s: %w", d.Name, form, err)
	}
	if t.bulk {
		r.noteBulk(process)
	}
	b := r.newBoot(process, t.trial)
	b.Negentropy, b.place, b.ran, b.stopped = r.speaks[d.Name], place, !sink, sink
	switch {
	case t.plain():
		b.version = toldVersion(ctx, process.URL())
	case source:
		r.source = b
	}
	return b, nil
}

func (r *Runner) newBoot(p *relays.Process, trial int) *Boot {
	return &Boot{Relay: p, Corpus: r.Corpus, Model: r.Model, Now: r.Now, Options: r.Options, Number: trial, Ledger: load.NewLedger(r.Corpus.Len()),
		Budget: r.Budget, recorder: r.Recorder, observer: r.Observer, attend: func() {}}
}

// finish stops the relays of a turn, and removes their data. A source is kept where nothing failed
// and nobody wrote to it.
func (r *Runner) finish(ctx context.Context, t *scheduled, p *pass, failed error) error {
	for _, b := range t.boots {
		if b == nil || b == r.source {
			continue
		}
		err := b.ended(r.stop(ctx, b))
		if err != nil && failed == nil && !t.plain() && ctx.Err() == nil {
			r.incomplete(t, t.scenarios[0].Describe(), err)
		}
		failed = cmp.Or(failed, err)
		if t.plain() {
			r.outcome(ctx, b, p, failed)
		}
		failed = errors.Join(failed, b.ended(b.Relay.Cleanup()))
	}
	if t.cast == Ordered && (failed != nil || t.scenarios[0].Describe().Needs != Loaded) {
		r.endSource(ctx)
	}
	return failed
}

// stop ends a relay whose turn is over, also where the run was interrupted.
func (r *Runner) stop(ctx context.Context, b *Boot) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute+r.Settings.StopGrace)
	defer cancel()
	return b.Relay.Stop(ctx)
}

// endSource stops the source that serves, and removes its data.
func (r *Runner) endSource(ctx context.Context) {
	if r.source == nil {
		return
	}
	if err := r.source.ended(errors.Join(r.stop(ctx, r.source), r.source.Relay.Cleanup())); err != nil {
		r.Observer.Failed(r.source.Relay.Name(), err)
	}
	r.source = nil
}

// outcome records how a relay's trial ended.
func (r *Runner) outcome(ctx context.Context, b *Boot, p *pass, err error) {
	described := versioned(b.Relay, b.version)
	switch described.Outcome = results.OutcomeOK; {
	case r.unsaved != nil:
	case ctx.Err() != nil:
		described.Outcome, described.Reason = results.OutcomeSkipped, "the run was interrupted during its turn"
	case err != nil:
		r.short.recordFailure(&described, results.OutcomeFailed, err)
		described.Reason = b.Relay.Public(described.Reason)
		if described.LogTail == nil {
			described.LogTail = b.Relay.LogTail(mostLines)
		}
	}
	if !p.needsAnother() || ctx.Err() != nil {
		r.Recorder.SetRelay(r.worst(described))
	}
}

// worst keeps how the worst of a relay's trials ended: a later one that went well takes nothing
// back.
func (r *Runner) worst(now results.Relay) results.Relay {
	was, ok := r.ended[now.Name]
	if ok && (now.Outcome == results.OutcomeOK || now.Outcome == results.OutcomeUnmeasured && was.Outcome == results.OutcomeFailed) {
		now.Outcome, now.Reason, now.LogTail, now.Shortage = was.Outcome, was.Reason, was.LogTail, was.Shortage
	}
	if now.Outcome == results.OutcomeFailed || now.Outcome == results.OutcomeUnmeasured {
		r.ended[now.Name] = now
	}
	return now
}

// noteBulk keeps in the record how a relay was launched where its limits were raised.
func (r *Runner) noteBulk(p *relays.Process) {
	bulk := p.Describe()
	r.Recorder.Update(func(record *results.Record) {
		for i := range record.Relays {
			known := &record.Relays[i]
			if known.Name != bulk.Name {
				continue
			}
			for _, note := range bulk.Notes {
				if !slices.Contains(known.Notes, note) {
					known.Notes = append(known.Notes, note)
				}
			}
			for path, text := range bulk.Config {
				if was, ok := known.Config[path]; ok && was != text {
					known.Config[path+" (bulk)"] = text
				}
			}
		}
	})
}

// maxFailures is how many scenarios in a row a relay may fail before its trial ends: each may cost
// a whole deadline.
const maxFailures = 3

// scenarios runs them one after another. One that fails costs its own figures and no others: the
// relay is started again over its data, and goes on with the next one. Of one during which the
// harness was away nothing is kept before the last pass.
func (r *Runner) scenarios(ctx context.Context, t *scheduled, p *pass) error {
	failures, n := 0, len(t.scenarios)
	for i := 0; i < n && p.wants(i, n); i++ {
		d := t.scenarios[i].Describe()
		from := r.clock.away()
		gone, err := r.held(func() error {
			err := r.scenario(ctx, t, t.scenarios[i], d)
			if err != nil && ctx.Err() == nil {
				r.incomplete(t, d, err)
			}
			return err
		})
		switch {
		case !p.wants(i, i+1):
			r.Recorder.Release(false)
		case gone.times > 0 && !p.last && ctx.Err() == nil:
			p.missed[i] = gone
			r.Recorder.Release(false)
		default:
			r.release(gone, p.was(i))
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			failures = 0
		case t.cast != Single:
			return err
		default:
			if gone.times == 0 {
				failures++
			}
			if failures == maxFailures {
				p.repeatFrom(i+1, gone)
				return fmt.Errorf("%w; %d scenarios in a row failed", err, failures)
			}
			if !p.wants(i+1, n) {
				break // nothing asks for it any more
			}
			if again := r.again(ctx, t.boots[0]); again != nil {
				p.repeatFrom(i+1, r.clock.away().since(from))
				return fmt.Errorf("%w; and it did not start again over its data: %w", err, again)
			}
		}
		if err := r.save(); err != nil {
			return err
		}
	}
	return nil
}

// scenario gives the relays what one scenario needs, and runs it.
func (r *Runner) scenario(ctx context.Context, t *scheduled, s Scenario, d Description) error {
	first := t.boots[0]
	if first.Relay.External() && d.External.Cause != "" && !r.ReadOnly {
		describe(r.Recorder, d)
		r.exclude(t.relays[0], d.Key, d.External)
		return nil
	}
	if known := r.inspected[t.name(0)]; d.NIP != 0 && (known == nil || !known.Result.Speaks[d.NIP]) {
		describe(r.Recorder, d)
		f := results.Finding{Cause: results.WithoutNIP, Counts: map[string]float64{"nip": float64(d.NIP)}}
		if known != nil && known.Result.Capabilities[preflight.NIP(d.NIP)] != "" {
			f.Texts = map[string]string{"text": known.Result.Capabilities[preflight.NIP(d.NIP)]}
		}
		r.exclude(t.relays[0], d.Key, f)
		return nil
	}
	for k, b := range t.boots {
		if d.Needs == Empty || b.loaded || r.ReadOnly || t.cast == Ordered && k == 0 {
			continue
		}
		if err := r.load(ctx, t.cast, b, d.Needs); err != nil {
			return &faultError{place: k, unready: true, log: logTail(err, mostLines), error: err}
		}
		b.loaded = true
	}
	if first.seeded && d.Key == r.Seeder.Describe().Key {
		return nil // it was tried on this relay already, and that was measured
	}
	r.Observer.Scenario(t.label(), d)
	boots := t.boots
	if t.cast == Pair {
		boots = alternated(boots, t.trial)
	}
	if err := r.perform(ctx, s, d, boots...); err != nil {
		return r.explain(ctx, t.cast, d.Key, err, t.boots...)
	}
	return nil
}

// load gives a relay its share of the corpus: by the Seeder, which measures that, where it is all
// and the relay has been offered nothing yet. What it was not offered then is published outside the
// clock. A Seeder that fails fails itself alone: it is not tried again in this trial, and all is
// published.
func (r *Runner) load(ctx context.Context, cast Cast, b *Boot, share State) error {
	if r.Seeder != nil && share == Loaded && !b.seeded && b.Ledger.Count(load.NotOffered) == b.Ledger.Len() {
		d := r.Seeder.Describe()
		r.Observer.Scenario(b.Relay.Name(), d)
		if err := r.perform(ctx, r.Seeder, d, b); err != nil {
			if err = r.explain(ctx, Single, d.Key, err, b); ctx.Err() != nil {
				return err
			}
			r.incomplete(&scheduled{relays: []Target{{Definition: b.Relay.Definition()}}, boots: []*Boot{b}}, d, err)
			if again := r.again(ctx, b); again != nil {
				return fmt.Errorf("%w; and it did not start again over its data: %w", err, again)
			}
		}
	}
	t := r.trialOf(b, described(seeding, ""))
	t.scenario = "" // it is of none
	if err := t.Publish(ctx, share); err != nil {
		return r.explain(ctx, cast, seeding, err, b)
	}
	return nil
}

// again starts the relay over the data of the process that failed a scenario. One that runs already
// is left as it is.
func (r *Runner) again(ctx context.Context, b *Boot) error {
	if b.Relay.External() {
		return nil
	}
	if !b.stopped && !b.gone() {
		if _, _, err := b.Stop(ctx); err != nil {
			return err
		}
	}
	b.attend = func() {} // each scenario attends to the relay that it is given
	return b.Restart(ctx)
}

// perform runs a scenario on one relay, or on two that are each other's peers. A relay that dies
// ends it at once, whatever deadline it was waiting for. What a sink and its source use is for the
// scenario to count, since the sink is not booted before that.
func (r *Runner) perform(ctx context.Context, s Scenario, d Description, boots ...*Boot) error {
	r.Corpus.Forget()
	describe(r.Recorder, d)
	boots[0].seeded = boots[0].seeded || r.Seeder != nil && d.Key == r.Seeder.Describe().Key
	trials := make([]*Trial, len(boots))
	for k, b := range boots {
		trials[k] = r.trialOf(b, d)
	}
	if len(trials) == 2 {
		a, b := trials[0], trials[1]
		a.Peer, b.Peer, b.mute = b, a, a.Relay.Name() == b.Relay.Name()
	}
	scenarioCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, t := range trials {
		t.begin()
		t.peaks, t.commandPeak = nil, 0
		t.attend = func() {
			attend(scenarioCtx, t.Relay, cancel, r.short.lookAtDisk)
			t.peaks = append(t.peaks, t.Relay.Peak())
		}
		if !t.stopped {
			t.attend()
		}
	}
	err := s.Run(scenarioCtx, trials[0])
	cancel(nil)
	for _, t := range trials {
		if d.Cast != Ordered {
			t.resources()
		}
	}
	return err
}

// trialOf is a boot as a scenario sees it.
func (r *Runner) trialOf(b *Boot, d Description) *Trial {
	return &Trial{Boot: b, Rand: r.random(d.Key, b.Number), scenario: d.Key, labels: d.Labels}
}

var errDied = errors.New("the relay died")

// attendEvery is how often what else is to be looked at is looked at.
const attendEvery = 250 * time.Millisecond

// attend ends a context when a relay ends that was not stopped, and calls look now and then until
// then.
func attend(ctx context.Context, relay *relays.Process, end context.CancelCauseFunc, look func()) {
	go func() {
		tick := time.NewTicker(attendEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				look()
			case <-relay.Done():
				if relay.Err() != nil {
					end(errDied)
				}
				return
			case <-ctx.Done():
				return
			}
		}
	}()
}

// random makes a scenario's random source: it depends on the run's seed, the scenario and the
// trial, never on the relay.
func (r *Runner) random(key string, trial int) *rand.Rand {
	text := binary.LittleEndian.AppendUint64([]byte("relaybench draws "), r.Options.Seed)
	text = binary.LittleEndian.AppendUint64(text, uint64(trial))
	return rand.New(rand.NewChaCha8(sha256.Sum256(append(text, key...))))
}
