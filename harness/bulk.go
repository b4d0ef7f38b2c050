package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"relaybench/relays"
	"relaybench/results"
)

// bulkScenario moves a relay's events in bulk.
type bulkScenario interface {
	Scenario
	Bulk() // says so
}

// IsBulk reports whether a scenario moves a relay's events in bulk, so that it is measured by RunBulk.
func IsBulk(s Described) bool {
	_, ok := s.(bulkScenario)
	return ok
}

// RunBulk runs scenarios on the relays in their bulk form, each booted anew for each trial, after Run. What they were launched as otherwise stands in the
// record already, and what is raised is noted there. A relay that runs already is not given the corpus a second time and takes no part.
func (r *Runner) RunBulk(ctx context.Context, list []Scenario) error {
	defer r.watchClock(ctx)()
	defer func() { r.short.end() }()
	for _, turn := range Plan(len(r.Contenders), r.Options.Trials) {
		c := r.Contenders[turn.Relay]
		name := c.Definition.Name
		if r.failed[name] {
			continue
		}
		if c.Definition.External() {
			for _, s := range list {
				r.Recorder.Find(results.Finding{Relay: name, Scenario: s.Describe().Key, Code: results.CodeMeasurable, Verdict: results.Stated, Cause: results.ExternalBulk})
			}
			continue
		}
		r.Observer.Turn(name, turn.Trial, r.Options.Trials)
		r.begin(c)
		err := r.passes(ctx, c, len(list), func(p *pass) error { return r.bulkTurn(ctx, c, turn.Trial, list, p) })
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), r.Recorder.Save())
		}
		if unsaved := (*saveError)(nil); errors.As(err, &unsaved) {
			return unsaved.err
		}
		if err != nil {
			r.Observer.Failed(name, err)
			if !r.toldOf(name, list) {
				d := list[0].Describe()
				r.Recorder.Describe(d.Scenario, d.Metrics...)
				f := r.incomplete(d, err, nil)
				f.Relay, f.Blames = name, name
				r.Recorder.Find(f)
			}
		}
		if err := r.Recorder.Save(); err != nil {
			return err
		}
	}
	return nil
}

// toldOf reports whether a finding of one of the scenarios says already that it did not complete.
func (r *Runner) toldOf(relay string, list []Scenario) bool {
	record := r.Recorder.Snapshot()
	return slices.ContainsFunc(record.Findings, func(f results.Finding) bool {
		return f.Relay == relay && f.Code == results.CodeCompletes && slices.ContainsFunc(list, func(s Scenario) bool { return s.Describe().Key == f.Scenario })
	})
}

// bulkTurn boots one relay in its bulk form, and runs the scenarios on it.
func (r *Runner) bulkTurn(ctx context.Context, c Contender, number int, list []Scenario, p *pass) (err error) {
	from := r.clock.away()
	process, err := relays.Start(ctx, c.Definition.Bulk(), c.Program, r.Settings)
	if err != nil {
		p.repeatFrom(0, r.clock.away().since(from))
		return fmt.Errorf("%s did not start in its bulk form: %w", c.Definition.Name, err)
	}
	t := r.newTrial(process, number)
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute+r.Settings.StopGrace)
		defer cancel()
		process := t.Relay // it may have been started again
		err = errors.Join(err, t.ended(errors.Join(process.Stop(stop), process.Cleanup())))
	}()
	r.noteBulk(process)
	bulk := *r
	bulk.Scenarios = list
	return bulk.scenarios(ctx, t, p)
}
