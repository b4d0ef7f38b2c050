package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"relaybench/harness/measure"
	"relaybench/harness/negentropy"
	"relaybench/relays"
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
	log   []string // what it said last, where it died
	error
}

func (e *faultError) Unwrap() error { return e.error }

// ofLog makes lines of a relay's log evidence.
func ofLog(lines []string) (evidence []string) {
	for _, line := range lines {
		evidence = append(evidence, "its log: "+line)
	}
	return evidence
}

// reapTime is how long a process that was killed, and has closed its sockets, may take to be reaped.
const reapTime = 500 * time.Millisecond

// reconcileProbe is the scenario key under which it is kept whether a relay speaks NIP-77.
const reconcileProbe = "negentropy.probe"

// SpeaksNegentropy is the check of that name, and Negentropy the capability.
const (
	SpeaksNegentropy = "speaks NIP-77"
	Negentropy       = "NIP-77"
)

// Under returns the trial with its figures going under another scenario key.
func (t *Trial) Under(key string) *Trial {
	under := *t
	under.scenario = key
	return &under
}

// RunPairs runs the scenario for every pair of relays that speak NIP-77; a relay that is alone in that is paired with itself. It probes them first
// and records what the others answered.
func (r *Runner) RunPairs(ctx context.Context, s PairScenario) error {
	var able []Contender
	for _, c := range r.Contenders {
		if r.failed[c.Definition.Name] {
			continue
		}
		ok, err := r.probe(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.fail(c, err)
			r.Recorder.Find(measure.Finding{Relay: c.Definition.Name, Scenario: reconcileProbe, Check: SpeaksNegentropy, Required: true, Detail: err.Error()})
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
		r.Observer.Scenario(a+" and "+b, s.Describe())
		err := r.pair(ctx, s, pair[0], pair[1], turn.Trial)
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), r.Recorder.Save())
		}
		if err != nil {
			r.Observer.Failed(a+" and "+b, err)
			var log []string
			if fault := (*faultError)(nil); errors.As(err, &fault) {
				if log = fault.log; fault.relay == b {
					a, b = b, a // the other one failed nothing
				}
			}
			r.Recorder.Find(measure.Finding{Relay: a, Peer: b, Scenario: s.Describe().Key, Check: "completes", Required: true, Detail: err.Error(), Evidence: log})
		}
		if err := r.Recorder.Save(); err != nil {
			return err
		}
	}
	return nil
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
	say := func(ok bool, detail string) {
		if r.speaks == nil {
			r.speaks = make(map[string]answered)
		}
		r.speaks[name] = answered{ok, detail}
		r.Recorder.Find(measure.Finding{Relay: name, Scenario: reconcileProbe, Check: SpeaksNegentropy, OK: ok, Detail: detail})
	}
	if c.Definition.External() {
		say(true, "not measured: a relay that runs already cannot be given what a pair needs")
		return false, nil
	}
	if known := r.inspected[name]; known != nil && known.Result.NegentropyDetail != "" {
		say(known.Result.Negentropy, known.Result.NegentropyDetail)
		return known.Result.Negentropy, nil
	}
	process, err := relays.Start(ctx, c.Definition, c.Program, r.Settings)
	if err != nil {
		return false, err
	}
	defer func() {
		err = errors.Join(err, process.Stop(context.WithoutCancel(ctx)), process.Cleanup())
	}()
	conn, err := Dial(ctx, process.URL())
	if err != nil {
		return false, err
	}
	defer conn.Abort()
	err = negentropy.Probe(ctx, conn, 0)
	if unsupported := (*negentropy.UnsupportedError)(nil); errors.As(err, &unsupported) {
		say(false, unsupported.Error())
		return false, nil
	}
	if err != nil {
		say(false, err.Error())
		return false, nil
	}
	say(true, "NEG-OPEN is answered")
	return true, nil
}

// answered is whether a relay speaks NIP-77, and its words.
type answered struct {
	ok     bool
	detail string
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
		t := r.newTrial(process, number).Under(s.Describe().Key)
		defer func() {
			process := t.Relay // a scenario may have given it another process
			if err := errors.Join(process.Stop(context.WithoutCancel(ctx)), process.Cleanup()); err != nil {
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
			t.memory.watch(pairCtx, t.Relay)
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
	select { // the lost connection is seen before the death
	case <-a.Relay.Done():
	case <-b.Relay.Done():
	case <-time.After(reapTime):
	}
	for _, t := range trials {
		if r.gone(t) {
			return &faultError{t.Relay.Name(), ofLog(t.Relay.LogTail(20)), fmt.Errorf("%s died in %s: %w", t.Relay.Name(), s.Describe().Key, t.Relay.Err())}
		}
	}
	return err
}
