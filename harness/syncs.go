package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"relaybench/corpus"
	"relaybench/harness/preflight"
	"relaybench/relays"
	"relaybench/results"
)

// SyncScenario measures how an empty relay gets what a full one has, one mode at a time.
type SyncScenario interface {
	Describe() Description
	Modes() []string // in the order in which they are measured: "native"
	// DescribeMode is Describe for one mode.
	DescribeMode(mode string) Description
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

	runner      *Runner
	sink        Contender
	number      int
	description Description
	offer       func(i int) bool
	watch       func(*relays.Process) // its death ends the mode at once
}

// NegentropyOf says whether the relay of this name was found to speak NIP-77, and what it answered.
func (s *Syncing) NegentropyOf(name string) (bool, preflight.Negentropy) {
	known := s.runner.speaks[name]
	return known.Answered(), known
}

// NoWay records why the mode is none for a sink, which was not booted.
func (s *Syncing) NoWay(why results.Reason) {
	s.runner.Recorder.Find(results.Finding{Relay: s.sink.Definition.Name, Peer: s.Source.Relay.Name(), Scenario: s.description.Key, Labels: s.description.Labels,
		Code: results.CodeHasWay, Verdict: results.Stated, Cause: why.Code, Counts: why.Counts, Texts: why.Texts})
}

// FindAlone records a finding on one of the relays by itself, whatever the other did.
func (s *Syncing) FindAlone(t *Trial, f results.Finding) {
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
	s.Sink = s.runner.newTrial(process, s.number).Under(s.description)
	s.Sink.peer = s.Source.Relay.Name()
	s.Source.peer = process.Name()
	s.Sink.Rand = s.runner.random(s.description.Key, s.number)
}

// RunSyncs runs the scenario for every ordered pair of relays that can be launched here. A source is filled once and serves all sinks in turn, unless they
// write to it. It is asked whether it speaks NIP-77 first. All relays run in their bulk form where they have one.
func (r *Runner) RunSyncs(ctx context.Context, s SyncScenario) error {
	defer r.watchClock(ctx)()
	defer func() { r.short.end() }()
	var able []Contender
	for _, c := range r.Contenders {
		name := c.Definition.Name
		if r.failed[name] {
			continue
		}
		if c.Definition.External() {
			r.Recorder.Find(results.Finding{Relay: name, Scenario: s.Describe().Key, Code: results.CodeHasWay, Verdict: results.Stated, Cause: results.ExternalSync})
			r.Observer.Failed(name, errors.New("a relay that runs already is not filled: it takes no part in sync"))
			continue
		}
		if _, known := r.speaks[name]; !known {
			err := r.attempt(ctx, name, func() error { _, err := r.probe(ctx, c); return err })
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
			d := s.DescribeMode(mode)
			r.Recorder.Describe(d.Scenario, d.Metrics...)
			r.Observer.Turn(label+", "+d.Key, turn.Trial, r.Options.Trials)
			ready := false
			r.begin(source.contender, sink)
			err := r.attempt(ctx, label, func() error {
				err := source.ready(ctx, turn.Trial, d)
				if ready = err == nil; ready {
					r.Observer.Scenario(label, d)
					err = r.sync(ctx, s, mode, d, source, sink, turn.Trial, sinkOffered)
				} else if ctx.Err() == nil {
					err = source.failed(ctx, err)
				}
				if err != nil && ctx.Err() == nil {
					r.findSync(d, name, sink.Definition.Name, err)
				}
				if err != nil || sinkOffered != nil {
					source.end(ctx) // who knows what state it is in
				}
				return err
			})
			if ctx.Err() != nil {
				return errors.Join(context.Cause(ctx), r.Recorder.Save())
			}
			if !ready {
				r.failed[name] = true
			}
			if err != nil {
				r.Observer.Failed(label, err)
			}
			if err := r.Recorder.Save(); err != nil {
				return err
			}
		}
	}
	return nil
}

// findSync records that a mode could not be measured to the end, and who is to blame.
func (r *Runner) findSync(d Description, source, sink string, err error) {
	theirs := (*sourceFailure)(nil)
	ofSource := errors.As(err, &theirs)
	f := r.incomplete(d, err, ofLog(lastWords(err)))
	f.Blames = sink
	if fault := (*faultError)(nil); errors.As(err, &fault) {
		f.Blames = fault.relay
	}
	role := results.AsRelay
	if ofSource || f.Blames != sink {
		f.Blames, role = source, results.AsPeer
	}
	for i := range f.BearsOn {
		f.BearsOn[i].Role = role
	}
	for _, broken := range append(breaches(d, err), f) {
		broken.Relay, broken.Peer, broken.Blames = sink, source, f.Blames
		r.Recorder.Find(broken)
	}
	if ofSource {
		f.Relay, f.Peer, f.Code = source, "", results.CodeServesSource
		r.Recorder.Find(f)
	}
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

// failed is the error of a source that did not become ready.
func (s *syncSource) failed(ctx context.Context, err error) error {
	if s.trial != nil {
		if dead := diedIn(ctx, s.trial, "seeding"); dead != nil {
			err = dead
		} else {
			err = s.runner.explain(ctx, s.trial, "seeding", err)
		}
	}
	return &sourceFailure{err}
}

// end stops the source and removes its data.
func (s *syncSource) end(ctx context.Context) {
	if s.trial == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.trial.ended(errors.Join(s.trial.Relay.Stop(ctx), s.trial.Relay.Cleanup())); err != nil {
		s.runner.Observer.Failed(s.contender.Definition.Name, err)
	}
	s.trial = nil
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

// sync measures one mode on one pair.
func (r *Runner) sync(ctx context.Context, s SyncScenario, mode string, d Description, source *syncSource, sink Contender, number int, offered func(i int) bool) (failed error) {
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
	y := &Syncing{Source: source.trial.Under(d), runner: r, sink: sink, number: number, description: d, offer: offered, watch: watch}
	watch(y.Source.Relay)
	defer func() {
		if y.Sink == nil {
			return
		}
		if err := y.Sink.ended(errors.Join(y.Sink.Relay.Stop(context.WithoutCancel(ctx)), y.Sink.Relay.Cleanup())); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", sink.Definition.Name, err))
		}
	}()
	r.Corpus.Forget()
	err := s.RunSync(syncCtx, mode, y)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if death := diedIn(ctx, y.Source, d.Key); death != nil {
		return &sourceFailure{death}
	}
	if y.Sink != nil {
		if death := diedIn(ctx, y.Sink, d.Key); death != nil {
			return death
		}
	}
	return err
}

// diedIn says so of a relay that did.
func diedIn(ctx context.Context, t *Trial, doing string) error {
	if dead := awaitEnd(ctx, t.Relay); dead != nil && dead.Err() != nil {
		return &death{fmt.Errorf("%s died in %s: %w", t.Relay.Name(), doing, dead.Err()), dead.LogTail(wordsKept)}
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
