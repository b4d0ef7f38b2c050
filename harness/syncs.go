package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/harness/measure"
	"relaybench/relays"
)

// SyncScenario measures how an empty relay gets what a full one has, one mode at a time.
type SyncScenario interface {
	Describe() Description
	Modes() []string // in the order in which they are measured: "native"
	// RunSync measures one mode of one pair. As with Scenario, a wrong answer is a finding; an error says that the pair could not be measured in
	// this mode.
	RunSync(ctx context.Context, mode string, s *Syncing) error
	// Shares says which events of the corpus source and sink begin with: nil is all of them for the source, and none for the sink. A sink with a share
	// makes the source not to be used again.
	Shares(m *corpus.Model) (source, sink func(i int) bool)
}

// Syncing is one source and one sink for one mode.
type Syncing struct {
	Source *Trial
	Sink   *Trial // after Boot or Prepare

	runner *Runner
	sink   Contender
	number int
	key    string
	offer  func(i int) bool
	watch  func(*relays.Process) // its death ends the mode at once
}

// NegentropyOf says whether the relay of this name was found to speak NIP-77, and what it answered.
func (s *Syncing) NegentropyOf(name string) (bool, string) {
	known := s.runner.speaks[name]
	return known.ok, known.detail
}

// Say records a finding on a sink that was not booted.
func (s *Syncing) Say(f measure.Finding) {
	f.Relay, f.Peer, f.Scenario = s.sink.Definition.Name, s.Source.Relay.Name(), s.key
	s.runner.Recorder.Find(f)
}

// SayOf records a finding on one of the relays by itself, whatever the other did.
func (s *Syncing) SayOf(t *Trial, f measure.Finding) {
	alone := *t
	alone.peer = ""
	alone.Find(f)
}

// SinkDefinition is the sink as it will be launched.
func (s *Syncing) SinkDefinition() *relays.Definition { return s.sink.Definition }

// Boot starts the sink on a fresh folder, and publishes the share that it begins with.
func (s *Syncing) Boot(ctx context.Context) error {
	process, err := relays.Start(ctx, s.sink.Definition, s.sink.Program, s.runner.Settings)
	if err != nil {
		return err
	}
	s.adopt(process)
	s.watch(process)
	if s.offer == nil {
		return nil
	}
	return s.runner.publish(ctx, s.Sink, s.offer)
}

// Prepare makes the sink's fresh folder and starts nothing: for a sync command that works on a relay that does not run. Restart boots it.
func (s *Syncing) Prepare() error {
	process, err := relays.Prepare(s.sink.Definition, s.sink.Program, s.runner.Settings)
	if err != nil {
		return err
	}
	s.adopt(process)
	return nil
}

// Restart boots the sink over the data that its last process or command left.
func (s *Syncing) Restart(ctx context.Context) error {
	process, err := s.Sink.Relay.Restart(ctx)
	if err != nil {
		return err
	}
	s.Sink.Relay = process
	s.watch(process)
	return nil
}

func (s *Syncing) adopt(process *relays.Process) {
	s.Sink = s.runner.newTrial(process, s.number).Under(s.key)
	s.Sink.peer = s.Source.Relay.Name()
	s.Source.peer = process.Name()
	s.Sink.Rand = s.runner.random(s.key, s.number)
}

// RunSyncs runs the scenario for every ordered pair of relays that can be launched here. A source is filled once and serves all sinks in turn, unless they
// write to it. It is asked whether it speaks NIP-77 first. All relays run in their bulk form where they have one.
func (r *Runner) RunSyncs(ctx context.Context, s SyncScenario) error {
	var able []Contender
	for _, c := range r.Contenders {
		name := c.Definition.Name
		if r.failed[name] {
			continue
		}
		if c.Definition.External() {
			const why = "not measured: a relay that runs already is not to be filled"
			r.Recorder.Find(measure.Finding{Relay: name, Scenario: s.Describe().Key, Check: CanSync, Detail: why})
			r.Observer.Failed(name, errors.New("sync is "+why))
			continue
		}
		if _, known := r.speaks[name]; !known {
			_, err := r.probe(ctx, c)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				r.fail(c, err)
				continue
			}
		}
		c.Definition = c.Definition.Bulk()
		able = append(able, c)
	}
	for _, turn := range Plan(len(able), r.Options.Trials) {
		if err := r.syncsFrom(ctx, s, able, turn); err != nil {
			return err
		}
	}
	return nil
}

// CanSync is the check under which it is kept why a pair cannot be measured in a mode.
const CanSync = "has a way"

// syncsFrom measures one source with all sinks.
func (r *Runner) syncsFrom(ctx context.Context, s SyncScenario, able []Contender, turn Turn) error {
	offered, sinkOffered := s.Shares(r.Model)
	source := &syncSource{runner: r, contender: able[turn.Relay], offered: offered}
	defer source.end(ctx)
	name := source.contender.Definition.Name
	for i := range able {
		if turn.Trial%2 == 1 {
			i = len(able) - 1 - i
		}
		sink := able[i]
		label := name + " → " + sink.Definition.Name
		for _, mode := range s.Modes() {
			if r.failed[name] || r.failed[sink.Definition.Name] {
				continue
			}
			d := s.Describe()
			d.Key, d.Title = d.Key+"."+mode, d.Title+", "+mode
			r.Observer.Turn(label, turn.Trial, r.Options.Trials)
			err := source.ready(ctx, turn.Trial, d)
			if err == nil {
				r.Observer.Scenario(label, d)
				err = r.sync(ctx, s, mode, d.Key, source, sink, turn.Trial, sinkOffered)
			} else if ctx.Err() == nil {
				if source.trial != nil {
					if dead := diedIn(source.trial, "seeding"); dead != nil {
						err = dead
					} else {
						err = r.explain(ctx, source.trial, "seeding", err)
					}
				}
				err = &sourceFailure{err}
				r.failed[name] = true
			}
			if ctx.Err() != nil {
				return errors.Join(context.Cause(ctx), r.Recorder.Save())
			}
			if err != nil {
				r.Observer.Failed(label, err)
				var theirs *sourceFailure
				ofSource := errors.As(err, &theirs)
				log := lastWords(err)
				r.Recorder.Find(measure.Finding{Relay: sink.Definition.Name, Peer: name, Scenario: d.Key, Check: "completes", Required: !ofSource, Detail: err.Error(), Evidence: log})
				if ofSource {
					r.Recorder.Find(measure.Finding{Relay: name, Scenario: d.Key, Check: "serves as a source", Required: true, Detail: err.Error(), Evidence: log})
				}
				source.end(ctx) // who knows what state it is in
			}
			if sinkOffered != nil {
				source.end(ctx)
			}
			if err := r.Recorder.Save(); err != nil {
				return err
			}
		}
	}
	return nil
}

// sourceFailure is what kept a source from being one: no failure of the sink.
type sourceFailure struct{ error }

func (e *sourceFailure) Unwrap() error { return e.error }

// syncSource is a source that is filled when it is needed.
type syncSource struct {
	runner    *Runner
	contender Contender
	offered   func(i int) bool
	trial     *Trial
}

// ready boots and fills the source unless it is.
func (s *syncSource) ready(ctx context.Context, number int, d Description) error {
	r := s.runner
	if s.trial != nil && !r.gone(s.trial) {
		return nil
	}
	s.end(ctx)
	process, err := relays.Start(ctx, s.contender.Definition, s.contender.Program, r.Settings)
	if err != nil {
		return err
	}
	s.trial = r.newTrial(process, number)
	r.noteBulk(process)
	if s.offered == nil {
		return r.seed(ctx, s.trial)
	}
	return r.publish(ctx, s.trial, s.offered)
}

// end stops the source and removes its data.
func (s *syncSource) end(ctx context.Context) {
	if s.trial == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := errors.Join(s.trial.Relay.Stop(ctx), s.trial.Relay.Cleanup()); err != nil {
		s.runner.Observer.Failed(s.contender.Definition.Name, err)
	}
	s.trial = nil
}

// noteBulk keeps in the record how a relay was launched where its limits were raised.
func (r *Runner) noteBulk(p *relays.Process) {
	bulk := p.Describe()
	r.Recorder.Update(func(record *measure.Record) {
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

// sync measures one mode on one pair.
func (r *Runner) sync(ctx context.Context, s SyncScenario, mode, key string, source *syncSource, sink Contender, number int, offered func(i int) bool) (failed error) {
	syncCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := func(p *relays.Process) {
		go func() {
			select {
			case <-p.Done():
				if p.Err() != nil {
					cancel(errDied)
				}
			case <-syncCtx.Done():
			}
		}()
	}
	y := &Syncing{Source: source.trial.Under(key), runner: r, sink: sink, number: number, key: key, offer: offered, watch: watch}
	watch(y.Source.Relay)
	defer func() {
		if y.Sink == nil {
			return
		}
		if err := errors.Join(y.Sink.Relay.Stop(context.WithoutCancel(ctx)), y.Sink.Relay.Cleanup()); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", sink.Definition.Name, err))
		}
	}()
	r.Corpus.Forget()
	err := s.RunSync(syncCtx, mode, y)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if death := diedIn(y.Source, key); death != nil {
		return &sourceFailure{death}
	}
	if y.Sink != nil {
		if death := diedIn(y.Sink, key); death != nil {
			return death
		}
	}
	return err
}

// diedIn says so of a relay that did. A killed process closes its sockets before it can be reaped; it is given the moment it needs to become the explanation of
// what went wrong.
func diedIn(t *Trial, doing string) error {
	select {
	case <-t.Relay.Done():
	case <-time.After(250 * time.Millisecond):
	}
	if err := t.Relay.Err(); err != nil {
		return &death{fmt.Errorf("%s died in %s: %w", t.Relay.Name(), doing, err), t.Relay.LogTail(wordsKept)}
	}
	return nil
}

// death is the end of a relay that was not told to end, with what its log said last.
type death struct {
	error
	log []string
}

func (e *death) Unwrap() error { return e.error }

// wordsKept is how many lines of the log of a relay that failed stand with the pair.
const wordsKept = 5

// lastWords is what the relay or the command that failed said last.
func lastWords(err error) []string {
	var log []string
	var dead *death
	var start *relays.StartError
	var command *relays.CommandError
	switch {
	case errors.As(err, &dead):
		log = dead.log
	case errors.As(err, &start):
		log = start.LogTail
	case errors.As(err, &command):
		log = command.LogTail
	}
	return log[max(0, len(log)-wordsKept):]
}
