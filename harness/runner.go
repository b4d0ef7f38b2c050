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
	"strings"
	"time"

	"relaybench/corpus"
	"relaybench/harness/backfill"
	"relaybench/harness/preflight"
	"relaybench/relays"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Contender is a relay that takes part in a run.
type Contender struct {
	Definition *relays.Definition
	Program    string // path of the program file, "" for a relay that runs already
}

// Observer is told what happens, so that somebody can watch. Its methods may be called from several goroutines.
type Observer interface {
	Turn(relay string, trial, trials int)
	Scenario(relay string, d Description)
	Progress(done, total int)
	Failed(relay string, reason error)
}

// Runner runs scenarios on relays, one relay at a time.
type Runner struct {
	Contenders []Contender
	Scenarios  []Scenario
	Corpus     *corpus.Corpus
	Model      *corpus.Model // of the whole corpus, at Now
	Now        int64         // Unix seconds
	Options    Options
	Settings   relays.Settings
	Recorder   *results.Recorder
	Observer   Observer
	Preflight  bool             // inspect each relay before its first trial
	Seeder     Scenario         // loads a relay where a scenario needs it loaded; nil: the corpus is published
	ReadOnly   bool             // publish nothing: no relay is given the corpus, which may be nil then
	Unwatched  bool             // do not look whether this process was away: for tests that count what was done
	Budget     *backfill.Budget // of whatever moves events; Run makes one where it is nil

	short     *shortage                       // of the machine, in the present turn
	failed    map[string]bool                 // relays that are not booted again, by name: they do not start
	ended     map[string]results.Relay        // how the worst of a relay's trials ended, by name
	inspected map[string]*Inspection          // what the preflight found, by name
	speaks    map[string]preflight.Negentropy // whether it speaks NIP-77, by name
	clock     *clock                          // nil before a run
}

// notYet is the reason of a relay whose trials did not come.
const notYet = "the run ended before its turn"

// Run carries out the plan. A relay that fails is recorded as failed and the others go on; the error is for what ends the whole run: an
// interruption, or a record that cannot be saved.
func (r *Runner) Run(ctx context.Context) error {
	defer r.watchClock(ctx)()
	for _, c := range r.Contenders {
		described := c.Definition.Describe(ctx, c.Program, r.Settings)
		described.Outcome, described.Reason = results.OutcomeSkipped, notYet
		r.Recorder.SetRelay(described)
	}
	defer func() { r.short.end() }()
	r.failed, r.inspected, r.ended = make(map[string]bool), make(map[string]*Inspection), make(map[string]results.Relay)
	if r.Budget == nil {
		r.Budget = &backfill.Budget{Least: budgetStalls * r.Options.Stall}
	}
	for _, turn := range Plan(len(r.Contenders), r.Options.Trials) {
		c := r.Contenders[turn.Relay]
		if r.failed[c.Definition.Name] {
			continue
		}
		r.Observer.Turn(c.Definition.Name, turn.Trial, r.Options.Trials)
		r.begin(c)
		var err error
		if r.Preflight && r.inspected[c.Definition.Name] == nil {
			err = r.attempt(ctx, c.Definition.Name, func() error { return r.preflight(ctx, c) })
		}
		if err == nil {
			err = r.passes(ctx, c, len(r.Scenarios), func(p *pass) error { return r.turn(ctx, c, turn.Trial, p) })
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), r.Recorder.Save())
		}
		if unsaved := (*saveError)(nil); errors.As(err, &unsaved) {
			return unsaved.err
		}
		if noStart := (*relays.StartError)(nil); errors.As(err, &noStart) {
			r.fail(c, err)
		} else if err != nil {
			r.Observer.Failed(c.Definition.Name, err)
		}
		if err := r.Recorder.Save(); err != nil {
			return err
		}
	}
	if !r.Preflight {
		return nil
	}
	return r.preflightAgain(ctx)
}

// budgetStalls is how many times a relay that makes no progress could be waited for in the least
// budget.
const budgetStalls = 4

// saveError is results that cannot be kept: no fault of the relay that is just being measured.
type saveError struct{ err error }

func (e *saveError) Error() string { return e.err.Error() }

func (r *Runner) fail(c Contender, err error) {
	r.failed[c.Definition.Name] = true
	r.Observer.Failed(c.Definition.Name, err)
}

// turn boots one relay, runs every scenario on it and stops it.
func (r *Runner) turn(ctx context.Context, c Contender, number int, p *pass) (err error) {
	from := r.clock.away()
	described := c.Definition.Describe(ctx, c.Program, r.Settings)
	process, err := relays.Start(ctx, c.Definition, c.Program, r.Settings)
	if err != nil {
		if p.repeatFrom(0, r.clock.away().since(from)); p.needsAnother() {
			return err
		}
		r.short.fell(&described, results.OutcomeNoStart, err)
		r.Recorder.SetRelay(described)
		return err
	}
	version := informationVersion(ctx, process.URL())
	t := r.newTrial(process, number)
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute+r.Settings.StopGrace)
		defer cancel()
		process := t.Relay // a scenario may have given it another process
		stopErr := t.ended(process.Stop(stop))
		if err == nil {
			err = stopErr
		}
		described = process.Describe()
		described.Version = cmp.Or(strings.TrimPrefix(described.Version, "(devel)"), version)
		unsaved := (*saveError)(nil)
		switch {
		case errors.As(err, &unsaved):
			described.Outcome = results.OutcomeOK
		case ctx.Err() != nil:
			described.Outcome, described.Reason = results.OutcomeSkipped, "the run was interrupted during its turn"
		case err != nil:
			r.short.fell(&described, results.OutcomeFailed, err)
			described.Reason, described.LogTail = process.Public(described.Reason), lastLines(process, err)
		default:
			described.Outcome = results.OutcomeOK
		}
		if !p.needsAnother() || ctx.Err() != nil {
			r.Recorder.SetRelay(r.worst(described))
		}
		err = errors.Join(err, t.ended(process.Cleanup()))
	}()

	return r.scenarios(ctx, t, p)
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

// lastLines is what the program that failed said last: the relay, unless it was a command of its own, or it did not start again.
func lastLines(process *relays.Process, err error) []string {
	if command := (*relays.CommandError)(nil); errors.As(err, &command) {
		return command.LogTail
	}
	if start := (*relays.StartError)(nil); errors.As(err, &start) {
		return start.LogTail
	}
	return process.LogTail(20)
}

// lastWords is the log of the program that ended in a scenario, as evidence; none where the relay
// still runs.
func (r *Runner) lastWords(t *Trial, err error) []results.Evidence {
	command, start := (*relays.CommandError)(nil), (*relays.StartError)(nil)
	if errors.As(err, &command) || errors.As(err, &start) || !t.stopped && r.gone(t) {
		return ofLog(lastLines(t.Relay, err))
	}
	return nil
}

func (r *Runner) newTrial(process *relays.Process, number int) *Trial {
	events := 0
	if r.Corpus != nil {
		events = r.Corpus.Len()
	}
	return &Trial{
		Relay: process, Corpus: r.Corpus, Model: r.Model, Now: r.Now, Options: r.Options, Number: number,
		Ledger: NewLedger(events), Budget: r.Budget, recorder: r.Recorder, progress: r.Observer.Progress,
		Rand: r.random("seeding", number), // until a scenario begins
	}
}

// maxFailures is how many scenarios in a row a relay may fail before its trial ends: each may cost
// a whole deadline.
const maxFailures = 3

// scenarios runs them one after another. One that fails costs its own figures and no others: the
// relay is started again over its data, and goes on with the next one. Of one during which the
// harness was away nothing is kept before the last pass.
func (r *Runner) scenarios(ctx context.Context, t *Trial, p *pass) error {
	loaded, failures := false, 0
	for i, s := range r.Scenarios {
		if !slices.Contains(p.wanted[i:], true) {
			break
		}
		d := s.Describe()
		from := r.clock.away()
		r.Recorder.Hold()
		err := r.one(ctx, t, s, d, &loaded)
		if err != nil && ctx.Err() == nil {
			t.scenario, t.labels = d.Key, d.Labels
			t.Find(r.incomplete(d, err, r.lastWords(t, err)))
		}
		gone := r.clock.away().since(from)
		switch {
		case !p.wanted[i]:
			r.Recorder.Release(false)
		case gone.times > 0 && !p.last && ctx.Err() == nil:
			p.missed[i] = gone
			r.Recorder.Release(false)
		default:
			r.release(gone, p.before[i])
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			failures = 0
		default:
			loaded = false // an import that failed leaves another folder
			if gone.times == 0 {
				failures++
			}
			if failures == maxFailures {
				p.repeatFrom(i+1, gone)
				return fmt.Errorf("%w; %d scenarios in a row failed", err, failures)
			}
			if !slices.Contains(p.wanted[i+1:], true) {
				break // nothing asks for it any more
			}
			if again := r.again(ctx, t); again != nil {
				p.repeatFrom(i+1, r.clock.away().since(from))
				return fmt.Errorf("%w; and it did not start again over its data: %w", err, again)
			}
		}
		if err := r.Recorder.Save(); err != nil {
			return &saveError{err}
		}
	}
	return nil
}

// one loads the relay where a scenario needs that, and runs the scenario.
func (r *Runner) one(ctx context.Context, t *Trial, s Scenario, d Description, loaded *bool) error {
	if err := r.load(ctx, t, d, loaded); err != nil {
		return err
	}
	if t.seeded && d.Key == r.Seeder.Describe().Key {
		return nil // it was tried on this relay already, and that was measured
	}
	r.Observer.Scenario(t.Relay.Name(), d)
	if err := r.scenario(ctx, t, s, d); err != nil {
		return r.explain(ctx, t, d.Key, err)
	}
	return nil
}

// load feeds the relay where the scenario needs that.
func (r *Runner) load(ctx context.Context, t *Trial, d Description, loaded *bool) error {
	if d.Needs != Loaded || *loaded || r.ReadOnly {
		return nil
	}
	t.scenario, t.labels, t.Rand = "", nil, r.random("seeding", t.Number) // it is of no scenario
	if err := r.seed(ctx, t); err != nil {
		return r.explain(ctx, t, "seeding", err)
	}
	*loaded = true
	return nil
}

// again starts the relay over the data of the process that failed a scenario. One that runs already
// is left as it is.
func (r *Runner) again(ctx context.Context, t *Trial) error {
	if t.Relay.External() {
		return nil
	}
	if !t.stopped && !r.gone(t) {
		if _, _, err := t.Stop(ctx); err != nil {
			return err
		}
	}
	t.attend = func() {} // each scenario attends to the relay that it is given
	return t.Restart(ctx)
}

// incomplete is the finding on a scenario that did not come to its end.
func (r *Runner) incomplete(d Description, err error, log []results.Evidence) results.Finding {
	r.short.note(err)
	f := results.Finding{Scenario: d.Key, Labels: d.Labels, Code: results.CodeCompletes, Verdict: results.Failed,
		Texts: map[string]string{"error": err.Error()}, BearsOn: results.BearsOn(results.CodeCompletes, d.Key, d.Labels), Evidence: log}
	if unanswered := (*UnansweredError)(nil); errors.As(err, &unanswered) {
		f.Evidence = append(f.Evidence, results.Evidence{Code: results.EvidenceQuestion, Text: unanswered.Filter})
	}
	return f
}

func (r *Runner) scenario(ctx context.Context, t *Trial, s Scenario, d Description) error {
	r.Corpus.Forget()
	t.seeded = t.seeded || r.Seeder != nil && d.Key == r.Seeder.Describe().Key
	t.scenario, t.labels = d.Key, d.Labels
	r.Recorder.Describe(d.Scenario, append(slices.Clone(d.Metrics), resourceMetrics...)...)
	t.Rand = r.random(d.Key, t.Number)
	t.begin()
	// A relay that dies ends the scenario at once, whatever deadline it was waiting for.
	scenarioCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.memory = new(memory)
	t.attend = func() {
		attend(scenarioCtx, t.Relay, cancel)
		t.memory.watch(scenarioCtx, t.Relay, r.short.glance)
	}
	t.attend()
	err := s.Run(scenarioCtx, t)
	cancel(nil)
	t.resources(t.memory.most())
	return err
}

var errDied = errors.New("the relay died")

// attend ends a context when a relay ends that was not stopped.
func attend(ctx context.Context, relay *relays.Process, end context.CancelCauseFunc) {
	go func() {
		select {
		case <-relay.Done():
			if relay.Err() != nil {
				end(errDied)
			}
		case <-ctx.Done():
		}
	}()
}

// random makes a scenario's random source: it depends on the run's seed, the scenario and the trial, never on the relay.
func (r *Runner) random(key string, trial int) *rand.Rand {
	text := binary.LittleEndian.AppendUint64([]byte("relaybench draws "), r.Options.Seed)
	text = binary.LittleEndian.AppendUint64(text, uint64(trial))
	return rand.New(rand.NewChaCha8(sha256.Sum256(append(text, key...))))
}

// seed loads the relay for scenarios that need it loaded when nothing before them did: by the Seeder, which measures that, where the relay has been
// offered nothing yet. What it was not offered then is published outside the clock. A Seeder that
// fails fails itself alone: it is not tried again in this trial, and all is published.
func (r *Runner) seed(ctx context.Context, t *Trial) error {
	if r.Seeder != nil && !t.seeded && t.Ledger.Count(NotOffered) == t.Ledger.Len() {
		d := r.Seeder.Describe()
		r.Observer.Scenario(t.Relay.Name(), d)
		if err := r.scenario(ctx, t, r.Seeder, d); err != nil {
			if err = r.explain(ctx, t, d.Key, err); ctx.Err() != nil {
				return err
			}
			t.Find(r.incomplete(d, err, r.lastWords(t, err)))
			if again := r.again(ctx, t); again != nil {
				return fmt.Errorf("%w; and it did not start again over its data: %w", err, again)
			}
		}
		t.scenario, t.labels, t.Rand = "", nil, r.random("seeding", t.Number) // publishing is of no scenario
	}
	return r.publish(ctx, t, func(int) bool { return true })
}

// publish gives the relay those events of a share of the corpus that it was not offered yet, outside the clock.
func (r *Runner) publish(ctx context.Context, t *Trial, share func(i int) bool) error {
	var rest []int
	for i := range r.Corpus.Len() {
		if share(i) && t.Ledger.Get(i) == NotOffered {
			rest = append(rest, i)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	r.Observer.Scenario(t.Relay.Name(), described("seeding", "feeding the corpus, not measured"))
	return t.Forged(ctx, func(progress func(done, total int)) error {
		p := Publisher{URL: t.Relay.URL(), Corpus: r.Corpus, Conns: r.Options.Publishers, Window: r.Options.Window,
			Stall: r.Options.Stall, Ledger: t.Ledger, Progress: progress}
		began := wire.Now()
		_, err := p.Publish(ctx, rest)
		if err == nil {
			t.Budget.Took(len(rest), wire.Now()-began)
		}
		return err
	})
}

func (r *Runner) gone(t *Trial) bool {
	select {
	case <-t.Relay.Done():
		return true
	default:
		return false
	}
}

// explain puts what happened to the relay before what the harness saw of it.
func (r *Runner) explain(ctx context.Context, t *Trial, doing string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !t.stopped && awaitEnd(ctx, t.Relay) != nil {
		return fmt.Errorf("died in %s: %w", doing, t.Relay.Err())
	}
	if errors.Is(err, wire.ErrStalled) {
		return fmt.Errorf("made no progress for %v in %s: %w", r.Options.Stall, doing, err)
	}
	return fmt.Errorf("failed in %s: %w", doing, err)
}
