package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"relaybench/harness"
	"relaybench/harness/calibrate"
	"relaybench/report"
	"relaybench/results"
)

func newCalibrate(f *runFlags) *cobra.Command {
	cmd := f.command(ofCalibrate, &cobra.Command{
		Use:   "calibrate",
		Short: "Measure this machine and relaybench itself: what no relay's figures can go beyond here",
		Long: `Measures the clock, signature checks, parsing and coding, the receive path of a client stage by stage, fsync of the disk that --work lies on, the
shortest time in which anything can be asked and answered over the loopback, and how fast events can be published to and received from the null relay,
which does no work, over 1, 4 and 16 connections. Then it says what on this machine would spoil a measurement, and what to do about it.

Every run does the same in a short form, without the receive path, and asks the null relay once more at its end. Figures that come within 20 % of a
bound on which both agree are marked as limited by the harness.`,
	}, f.calibrateAlone)
	f.events = calibrationEvents
	return cmd
}

// calibrationEvents is how many events the calibration publishes, again and again.
const calibrationEvents = 2000

func (f *runFlags) calibrateAlone(ctx context.Context, _ []string) error {
	r, _, calibrateErr := f.measure(ctx, []string{calibrate.Key}, nil)
	if r == nil {
		return calibrateErr
	}
	if !f.json {
		return cmp.Or(calibrateErr, report.Calibration(f.stdout, r, terminalOptions(f.stdout)))
	}
	return cmp.Or(calibrateErr, writeJSON(f.stdout, struct { // the parts of a record that a calibration fills in
		Tool        results.Tool          `json:"tool"`
		Environment results.Environment   `json:"environment"`
		Calibration []results.Calibration `json:"calibration"`
		Warnings    []string              `json:"warnings"`
	}{r.Tool, r.Environment, r.Calibration, append([]string{}, report.MachineWarnings(r)...)}))
}

// calibrate measures the harness itself, before a run and once more after it. What falls short of
// that is said, and ends nothing: the figures that are missing mark none of the run's. Of the verb
// it is the error.
func (f *runFlags) calibrate(ctx context.Context, w *watcher, r *harness.Runner, after bool) (err error) {
	alone := f.verb == ofCalibrate
	if alone && after {
		return nil
	}
	stage := calibrate.Stage{Settings: r.Settings, Corpus: r.Corpus, Options: f.options, After: after}
	if stage.Null, _ = f.bundled("ref-null"); stage.Null == nil && alone {
		w.note("refrelay is not found, so what needs the null relay is left out; build it beside relaybench, or set $REFRELAY_BIN")
	}
	switch {
	case alone:
		stage.Full, stage.Progress = !f.short, func(what string) { w.note("measuring %s", what) }
	case after:
		w.note("calibrating the harness once more")
	default:
		w.note("calibrating the harness")
	}
	if !after {
		busy := harness.Background(ctx)
		r.Recorder.Update(func(record *results.Record) { record.Environment.BusyBefore = busy })
	}
	figures, err := stage.Run(ctx)
	r.Recorder.Update(func(record *results.Record) { record.Calibration = append(record.Calibration, figures...) })
	if err != nil && !alone {
		if ctx.Err() == nil {
			w.note("calibration fell short: %v", err)
		}
		return nil
	}
	return err
}
