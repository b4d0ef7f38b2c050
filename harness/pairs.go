package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"relaybench/harness/preflight"
	"relaybench/relays"
	"relaybench/relays/negentropy"
	"relaybench/results"
)

// PairScenario measures two relays that run side by side, each booted fresh, with nothing else on the machine.
type PairScenario interface {
	Describe() Description
	// RunPair measures both directions. As with Scenario, a wrong answer is a finding; an error says that the pair could not be measured further.
	RunPair(ctx context.Context, a, b *Trial) error
}

// Fault says that an error of a pair is this relay's, and not its peer's.
func (t *Trial) Fault(err error) error {
	if err == nil {
		return nil
	}
	return &faultError{relay: t.Relay.Name(), error: err}
}

// faultError is an error of one relay of a pair.
type faultError struct {
	relay string
	log   []results.Evidence // what it said last, where it died
	error
}

func (e *faultError) Unwrap() error { return e.error }

// Breach is the finding on a relay that began NIP-77 and broke it, where that is what an error
// says; else nil.
func Breach(err error) *results.Finding {
	var broken *negentropy.ProtocolError
	if !errors.As(err, &broken) {
		return nil
	}
	return &results.Finding{Code: results.CodeNIP77, Verdict: results.Failed, Cause: results.CauseBreaks, Texts: map[string]string{"error": broken.Error(), "code": string(broken.Code)}}
}

// breaches is Breach in a scenario.
func breaches(d Description, err error) []results.Finding {
	f := Breach(err)
	if f == nil {
		return nil
	}
	f.Scenario, f.Labels, f.BearsOn = d.Key, d.Labels, results.BearsOn(results.CodeNIP77, d.Key, d.Labels)
	return []results.Finding{*f}
}

// ofLog makes lines of a relay's log evidence.
func ofLog(lines []string) (evidence []results.Evidence) {
	for _, line := range lines {
		evidence = append(evidence, results.Evidence{Code: results.EvidenceLog, Text: line})
	}
	return evidence
}

// reconcileProbe is the scenario key under which it is kept whether a relay speaks NIP-77.
const reconcileProbe = "negentropy.probe"

// Negentropy is the capability of that name.
const Negentropy = "NIP-77"

// Under returns the trial with its figures going under another scenario, which it describes in the
// record and which begins now.
func (t *Trial) Under(d Description) *Trial {
	under := *t
	under.scenario, under.labels = d.Key, d.Labels
	under.readingSet, under.ownCPUSet, under.began.own = false, false, ownNow()
	t.recorder.Describe(d.Scenario, append(slices.Clone(d.Metrics), resourceMetrics...)...)
	return &under
}

// RunPairs runs the scenario for every pair of relays that speak NIP-77; a relay that is alone in that is paired with itself. It probes them first
// and records what the others answered.
func (r *Runner) RunPairs(ctx context.Context, s PairScenario) error {
	defer r.watchClock(ctx)()
	defer func() { r.short.end() }()
	d := s.Describe()
	r.Recorder.Describe(d.Scenario, d.Metrics...)
	var able []Contender
	for _, c := range r.Contenders {
		if r.failed[c.Definition.Name] {
			continue
		}
		ok, err := false, error(nil)
		r.attempt(ctx, c.Definition.Name, func() error { ok, err = r.probe(ctx, c); return err })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.fail(c, err)
			r.Recorder.Find(results.Finding{Relay: c.Definition.Name, Scenario: reconcileProbe, Code: results.CodeNIP77, Verdict: results.Undecided,
				Cause: results.NIP77Unreached, Texts: map[string]string{"error": err.Error()}})
		} else if ok {
			able = append(able, c)
		}
	}
	var pairs [][2]Contender
	for i, a := range able {
		for _, b := range able[i+1:] {
			pairs = append(pairs, [2]Contender{a, b})
		}
	}
	if len(able) == 1 {
		pairs = append(pairs, [2]Contender{able[0], able[0]})
	}
	for _, turn := range Plan(len(pairs), r.Options.Trials) {
		pair := pairs[turn.Relay]
		a, b := pair[0].Definition.Name, pair[1].Definition.Name
		if r.failed[a] || r.failed[b] {
			continue
		}
		pair = seated(pair, turn.Trial)
		r.Observer.Turn(a+" and "+b, turn.Trial, r.Options.Trials)
		r.begin(pair[:]...)
		err := r.attempt(ctx, a+" and "+b, func() error {
			r.Observer.Scenario(a+" and "+b, d)
			err := r.pair(ctx, s, pair[0], pair[1], turn.Trial)
			if err != nil && ctx.Err() == nil {
				r.findPair(d, a, b, err)
			}
			return err
		})
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), r.Recorder.Save())
		}
		if err != nil {
			r.Observer.Failed(a+" and "+b, err)
		}
		if err := r.Recorder.Save(); err != nil {
			return err
		}
	}
	return nil
}

// findPair records that a pair could not be measured to the end, and who is to blame.
func (r *Runner) findPair(d Description, a, b string, err error) {
	blamed, log := "", []results.Evidence(nil)
	if fault := (*faultError)(nil); errors.As(err, &fault) {
		if blamed, log = fault.relay, fault.log; blamed == b {
			a, b = b, a // the other one failed nothing
		}
	}
	for _, f := range append(breaches(d, err), r.incomplete(d, err, log)) {
		f.Relay, f.Peer, f.Blames = a, b, blamed
		r.Recorder.Find(f)
	}
}

// seated swaps a pair's places in every other trial: which share of the events a relay begins with, and who goes first, must not decide who is faster.
func seated(pair [2]Contender, trial int) [2]Contender {
	if trial%2 == 1 {
		pair[0], pair[1] = pair[1], pair[0]
	}
	return pair
}

// probe finds out whether a relay speaks NIP-77: from the preflight, or else by booting it.
func (r *Runner) probe(ctx context.Context, c Contender) (able bool, err error) {
	name := c.Definition.Name
	say := func(how preflight.Negentropy) bool {
		if r.speaks == nil {
			r.speaks = make(map[string]preflight.Negentropy)
		}
		r.speaks[name] = how
		if r.inspected[name] != nil && r.inspected[name].Result.Negentropy.Cause != "" {
			return how.Answered() // the preflight has told it
		}
		f := results.Finding{Relay: name, Scenario: reconcileProbe, Code: results.CodeNIP77, Verdict: results.Stated, Cause: how.Cause, Texts: how.Texts}
		switch {
		case how.Broken():
			f.Verdict, f.Blames, f.BearsOn = results.Failed, name, results.BearsOn(results.CodeNIP77, reconcileProbe, nil)
			if how.Unkept {
				f.Counts = map[string]float64{"advertised": 1}
			}
		case how.Cause == "":
			f.Verdict, f.Cause = results.Undecided, results.NIP77Unreached
		}
		r.Recorder.Find(f)
		return how.Answered()
	}
	if c.Definition.External() {
		say(preflight.Negentropy{Cause: results.NIP77External})
		return false, nil
	}
	known := r.inspected[name]
	if known == nil || known.Result.Negentropy.Cause == "" {
		o := r.preflightOptions()
		o.Only = []string{results.CodeNIP77}
		asked, err := Inspect(ctx, c, r.Settings, o)
		if err != nil {
			return false, err
		}
		if asked.fell() {
			return false, errors.New(asked.Relay.Reason)
		}
		known = &asked
	}
	return say(known.Result.Negentropy), nil
}

// pair boots two relays and runs the scenario on them.
func (r *Runner) pair(ctx context.Context, s PairScenario, ca, cb Contender, number int) (failed error) {
	var trials []*Trial
	for _, c := range []Contender{ca, cb} {
		process, err := relays.Start(ctx, c.Definition, c.Program, r.Settings)
		if err != nil {
			fault := &faultError{relay: c.Definition.Name, error: fmt.Errorf("%s: %w", c.Definition.Name, err)}
			if start := (*relays.StartError)(nil); errors.As(err, &start) {
				fault.log = ofLog(start.LogTail)
			}
			return fault
		}
		t := r.newTrial(process, number).Under(s.Describe())
		defer func() {
			process := t.Relay // a scenario may have given it another process
			if err := t.ended(errors.Join(process.Stop(context.WithoutCancel(ctx)), process.Cleanup())); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", c.Definition.Name, err))
			}
		}()
		t.Rand = r.random(s.Describe().Key, number)
		trials = append(trials, t)
	}
	a, b := trials[0], trials[1]
	a.peer, b.peer = b.Relay.Name(), a.Relay.Name()
	b.mute = a.peer == b.peer
	// The death of either ends the scenario at once.
	pairCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, t := range trials {
		t.begin()
		t.memory = new(memory)
		t.attend = func() {
			attend(pairCtx, t.Relay, cancel)
			t.memory.watch(pairCtx, t.Relay, r.short.glance)
		}
		t.attend()
	}
	r.Corpus.Forget()
	err := s.RunPair(pairCtx, a, b)
	cancel(nil)
	for _, t := range trials {
		t.resources(t.memory.most())
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if dead := awaitEnd(ctx, a.Relay, b.Relay); dead != nil {
		return &faultError{dead.Name(), ofLog(dead.LogTail(20)), fmt.Errorf("%s died in %s: %w", dead.Name(), s.Describe().Key, dead.Err())}
	}
	return err
}
