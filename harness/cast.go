package harness

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"relaybench/harness/preflight"
	"relaybench/relays"
	"relaybench/results"
)

// stage is all scenarios of one cast and one form of launch: they are run one stage after another.
type stage struct {
	cast      Cast
	bulk      bool
	scenarios []Scenario
}

// stages divides the scenarios. The first stage is that of single relays as they are launched by
// default, even with no scenario: it finds out whether each relay starts and ends.
func (r *Runner) stages() []stage {
	all := []stage{{}}
	for _, s := range r.Scenarios {
		d := s.Describe()
		bulk := d.Bulk && !r.ReadOnly // whoever only reads launches nothing
		i := slices.IndexFunc(all, func(o stage) bool { return o.cast == d.Cast && o.bulk == bulk })
		if i < 0 {
			i = len(all)
			all = append(all, stage{cast: d.Cast, bulk: bulk})
		}
		all[i].scenarios = append(all[i].scenarios, s)
	}
	slices.SortStableFunc(all, func(a, b stage) int { return a.rank() - b.rank() })
	return all
}

// rank orders stages by cast, with the bulk form behind the other.
func (s *stage) rank() int {
	if s.bulk {
		return 2*int(s.cast) + 1
	}
	return 2 * int(s.cast)
}

// plain reports whether a relay's outcome is decided by the stage.
func (s *stage) plain() bool { return s.cast == Single && !s.bulk }

// scheduled is one trial of one relay with all scenarios of a stage, or of two with one.
type scheduled struct {
	stage
	relays []Target // of an ordered pair the sink and then the source
	trial  int
	boots  []*Boot // of the present pass, by relay; nil where one did not start
}

func (t *scheduled) name(place int) string { return t.relays[place].Definition.Name }

// label is what it is called by whoever watches.
func (t *scheduled) label() string {
	switch t.cast {
	case Pair:
		return t.name(0) + " and " + t.name(1)
	case Ordered:
		return t.name(1) + " → " + t.name(0)
	}
	return t.name(0)
}

// schedule plans a stage over the relays that take part in it.
func (s stage) schedule(able []Target, trials int) (all []scheduled) {
	var pairs [][]Target
	for i, a := range able {
		for _, b := range able[i+1:] {
			pairs = append(pairs, []Target{a, b})
		}
	}
	if len(able) == 1 {
		pairs = [][]Target{{able[0], able[0]}}
	}
	for trial := range trials {
		add := func(scenarios []Scenario, relays ...Target) {
			all = append(all, scheduled{stage: stage{s.cast, s.bulk, scenarios}, relays: relays, trial: trial})
		}
		each := func(relays ...Target) {
			for one := range slices.Chunk(s.scenarios, 1) {
				add(one, relays...)
			}
		}
		switch s.cast {
		case Single:
			for _, c := range alternated(able, trial) {
				add(s.scenarios, c)
			}
		case Pair:
			for _, pair := range alternated(pairs, trial) {
				each(pair...)
			}
		case Ordered:
			for _, source := range alternated(able, trial) {
				for _, sink := range alternated(able, trial) {
					each(sink, source)
				}
			}
		}
	}
	return all
}

// alternated turns an order round in every other trial (A B, B A, …), so that drift of the machine
// touches all alike: which share of the events a relay begins with, and who goes first, must not
// decide who is faster.
func alternated[T any](all []T, trial int) []T {
	all = slices.Clone(all)
	if trial%2 == 1 {
		slices.Reverse(all)
	}
	return all
}

// able are the relays that take part in a stage. Of the others it is recorded why they do not. The
// error is the interruption of ctx.
func (r *Runner) able(ctx context.Context, s stage) (all []Target, err error) {
	for _, o := range s.scenarios {
		if d := o.Describe(); d.Cast == Pair { // which may find no pair
			r.Recorder.Describe(d.Scenario, d.Metrics...)
		}
	}
	for _, c := range r.Targets {
		name, external := c.Definition.Name, c.Definition.External()
		switch {
		case r.failed[name]:
		case s.plain() && len(s.scenarios) == 0 && external: // nothing is asked of it, so that it is not inspected either
		case s.bulk && external:
			for _, o := range s.scenarios {
				d := o.Describe()
				r.exclude(c, d.Key, d.External)
			}
			if s.cast == Ordered {
				r.Observer.Failed(name, errors.New("a relay that runs already is not filled: it takes no part in sync"))
			}
		case s.cast == Single:
			all = append(all, c)
		default:
			reconciles := false
			err := r.attempt(ctx, name, func() (err error) {
				reconciles, err = r.reconciles(ctx, c)
				return err
			})
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				r.failed[name] = true
				r.Observer.Failed(name, err)
			} else if reconciles || s.cast == Ordered {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// reconcileProbe is the scenario key under which it is kept whether a relay speaks NIP-77.
const reconcileProbe = "negentropy.probe"

// reconciles finds out whether a relay speaks NIP-77: from the preflight, or else by booting it. The
// error says that it does not start.
func (r *Runner) reconciles(ctx context.Context, c Target) (bool, error) {
	name := c.Definition.Name
	how, known := r.speaks[name]
	told := r.inspected[name]
	switch {
	case known:
		return how.Answered(), nil
	case c.Definition.External():
		how.Cause = results.NIP77External
	case told != nil && told.Result.Negentropy.Cause != "":
		r.speaks[name] = told.Result.Negentropy // which the preflight has recorded
		return told.Result.Negentropy.Answered(), nil
	}
	f := results.Finding{Relay: name, Scenario: reconcileProbe, Code: results.CodeNIP77, Verdict: results.Undecided, Cause: results.NIP77Unreached}
	if how.Cause == "" {
		asked, err := r.ask(ctx, c, results.CodeNIP77)
		if ctx.Err() != nil {
			return false, err
		}
		if asked.unasked() {
			err = errors.New(asked.Relay.Reason)
			f.Texts = map[string]string{"error": err.Error()}
			r.Recorder.AddFinding(f)
			return false, err
		}
		how = asked.Result.Negentropy
	}
	r.speaks[name] = how
	if f.Texts = how.Texts; how.Cause != "" {
		f.Verdict, f.Cause = results.Stated, how.Cause
	}
	if how.Broken() {
		f.Verdict, f.Cause, f.Blames, f.BearsOn = results.Failed, how.Cause, name, results.BearsOn(results.CodeNIP77, reconcileProbe, nil)
		if how.Unkept {
			f.Counts = map[string]float64{"advertised": 1}
		}
	}
	r.Recorder.AddFinding(f)
	return how.Answered(), nil
}

// findNIPs finds out whether a relay speaks the NIPs that a trial's scenarios ask with: from the
// preflight, or else by booting it.
func (r *Runner) findNIPs(ctx context.Context, t *scheduled) error {
	name := t.name(0)
	if r.inspected[name] == nil {
		r.inspected[name] = &Inspection{}
	}
	known := &r.inspected[name].Result
	if known.Speaks == nil {
		known.Speaks, known.Capabilities = make(map[int]bool), make(map[string]string)
	}
	var open []string
	for _, s := range t.scenarios {
		nip := s.Describe().NIP
		if _, asked := known.Speaks[nip]; nip != 0 && !asked {
			open = append(open, preflight.NIP(nip))
			known.Speaks[nip] = false
		}
	}
	if len(open) == 0 || r.ReadOnly { // asking publishes events
		return nil
	}
	asked, err := r.ask(ctx, t.relays[0], open...)
	maps.Copy(known.Speaks, asked.Result.Speaks)
	maps.Copy(known.Capabilities, asked.Result.Capabilities)
	return err
}

// atOnce runs scenarios of the harness by itself, with all relays that run already, in each trial.
func (r *Runner) atOnce(ctx context.Context, all []Scenario) error {
	for trial := range r.Options.Trials {
		for _, s := range all {
			d := s.Describe()
			itself := r.newTrial(nil, d, trial)
			for _, c := range r.Targets {
				if c.Definition.External() {
					p, err := relays.Prepare(c.Definition, c.Program, r.Settings)
					if err != nil {
						return err
					}
					itself.All = append(itself.All, r.newTrial(p, d, trial))
				}
			}
			r.Observer.Scenario("relaybench", d)
			describe(r.Recorder, d)
			gone, err := r.held(func() error { return s.Run(ctx, itself) })
			r.release(gone, away{})
			if ctx.Err() != nil {
				return errors.Join(context.Cause(ctx), r.save())
			}
			for _, t := range itself.All {
				described := t.Relay.Describe()
				if described.Outcome = results.OutcomeOK; t.Unready != nil {
					described.Outcome, described.Reason = results.OutcomeNoStart, t.Unready.Error()
				}
				r.Recorder.SetRelay(described)
			}
			if err := cmp.Or(err, r.save()); err != nil {
				return err
			}
		}
	}
	return nil
}

// newTrial is of a scenario on one relay that the engine neither boots nor watches.
func (r *Runner) newTrial(p *relays.Process, d Description, trial int) *Trial {
	return r.trialOf(r.newBoot(p, trial), d)
}

// exclude states that a scenario is none for a relay.
func (r *Runner) exclude(c Target, key string, f results.Finding) {
	f.Relay, f.Scenario, f.Code = c.Definition.Name, cmp.Or(f.Scenario, key), cmp.Or(f.Code, results.CodeMeasurable)
	f.Verdict = results.Stated
	r.Recorder.AddFinding(f)
}
