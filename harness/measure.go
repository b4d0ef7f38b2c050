package harness

import (
	"cmp"
	"context"
	"slices"
	"time"

	"relaybench/relays"
	"relaybench/relays/machine"
	"relaybench/results"
)

// Copies is how many copies of the corpus lie in the work folder at a time.
func (r *Runner) Copies() int {
	launched := 0
	for _, c := range r.Targets {
		if !c.Definition.External() {
			launched++
		}
	}
	switch {
	case r.Settings.KeepData:
		return launched * r.Options.Trials
	case slices.ContainsFunc(r.Scenarios, func(s Scenario) bool { return s.Describe().Cast > Single }):
		return min(launched, 2)
	}
	return min(launched, 1)
}

// Pin gives this process and the relays that are launched with the settings processor cores of
// their own, and notes which.
func Pin(e *results.Environment, s *relays.Settings) (undo func(), err error) {
	shares, err := machine.Divide()
	if err != nil {
		return nil, err
	}
	if undo, err = shares.Keep(); err != nil {
		return nil, err
	}
	e.HarnessCores, e.RelayCores, s.Processors = shares.Harness, shares.Relay, shares.Relay
	return undo, nil
}

// Measure is Run, before and after which calibrate measures the harness itself, with what the
// machine went through meanwhile in the record. unsaved says that the file of the record holds an
// earlier state.
func (r *Runner) Measure(ctx context.Context, calibrate func(after bool) error) (unsaved bool, err error) {
	err = r.Recorder.Save() // a folder that cannot be written is found out before an hour of measuring
	watch := machine.System{}.Watch()
	if err == nil {
		err = calibrate(false)
	}
	if err == nil {
		err = r.Run(ctx)
	}
	if err == nil {
		err = calibrate(true)
	}
	finished, during := time.Now().UTC(), watch.Conditions()
	r.Recorder.Update(func(record *results.Record) {
		MarkLimited(record)
		record.Partial, record.FinishedAt = err != nil, &finished
		record.Environment.LoadAfter, record.Environment.During = LoadAverage(context.WithoutCancel(ctx)), &during
	})
	saveErr := r.Recorder.Save()
	return saveErr != nil, cmp.Or(err, saveErr) // what cannot be saved once cannot be saved again
}
