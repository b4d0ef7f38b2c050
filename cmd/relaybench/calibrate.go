package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/calibrate"
	"relaybench/relays"
	"relaybench/relays/machine"
	"relaybench/report"
	"relaybench/results"
)

// calibrateFlags are the flags of calibrate.
type calibrateFlags struct {
	relays      relayFlags
	options     harness.Options
	cache, work string
	short, pin  bool
	json        bool
}

func newCalibrate(stdout, stderr io.Writer) *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure this machine and relaybench itself: what no relay's figures can go beyond here",
		Long: `Measures the clock, signature checks, parsing and coding, the receive path of a client stage by stage, fsync of the disk that --work lies on, the
shortest time in which anything can be asked and answered over the loopback, and how fast events can be published to and received from the null relay,
which does no work, over 1, 4 and 16 connections. Then it says what on this machine would spoil a measurement, and what to do about it.

Every run does the same in a short form, without the receive path, and asks the null relay once more at its end. Figures that come within 20 % of a
bound on which both agree are marked as limited by the harness.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.options.Window < 1 || f.options.Window > 100_000 {
				return usagef("--window %d: give a number from 1 to 100000", f.options.Window)
			}
			return f.run(cmd.Context(), stdout, stderr)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.work, "work", "", "folder whose disk is measured (default: the system's temporary folder)")
	flags.IntVar(&f.options.Window, "window", 200, "unacknowledged events on each connection")
	flags.BoolVar(&f.pin, "pin", false, "keep relaybench and the null relay on processor cores of their own, as run --pin does")
	flags.BoolVar(&f.short, "short", false, "as briefly as every run does it: about 2 seconds, over the connections that a run uses by default")
	flags.BoolVar(&f.json, "json", false, "print JSON, in the form that results.json has")
	flags.StringVar(&f.cache, "cache", "", "folder for prepared corpora (default: $RELAYBENCH_CACHE, or relaybench in the user's cache folder)")
	return cmd
}

// calibrationEvents is how many events the calibration publishes, again and again.
const calibrationEvents = 2000

func (f *calibrateFlags) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	loadBefore := harness.LoadAverage(ctx)
	work, err := openWork(ctx, f.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	settings := relays.Settings{WorkDir: work}
	environment := harness.Environment(ctx, work)
	environment.LoadBefore = loadBefore
	c, err := (&corpusFlags{events: calibrationEvents, seed: 1, baseTime: "1780272000", cache: f.cache}).load(ctx, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if f.pin {
		undo, err := pin(&environment, &settings)
		if err != nil {
			return usagef("--pin: %w", err)
		}
		defer undo()
	}
	environment.BusyBefore = harness.Background(ctx)
	watch := machine.System{}.Watch()
	f.options.Publishers, f.options.QueryConns, f.options.Stall = 4, 8, 30*time.Second
	stage := calibrate.Stage{Settings: settings, Corpus: c, Options: f.options, Full: !f.short,
		Progress: func(what string) { fmt.Fprintln(stderr, "measuring "+what) }}
	if null, ok := f.relays.nullRelay(); ok {
		stage.Null = &null
	} else {
		fmt.Fprintln(stderr, "refrelay is not found, so what needs the null relay is left out; build it beside relaybench, or set $REFRELAY_BIN")
	}
	figures, calibrateErr := stage.Run(ctx)
	during := watch.Conditions()
	environment.During, environment.LoadAfter = &during, harness.LoadAverage(context.WithoutCancel(ctx))
	record := results.Record{Tool: harness.Tool(), Environment: environment, Calibration: figures}
	if f.json {
		err = writeCalibrationJSON(stdout, &record)
	} else {
		err = report.Calibration(stdout, &record, terminalOptions(stdout))
	}
	return cmp.Or(calibrateErr, err)
}

// pin gives relaybench and the relays that settings are for cores of their own, and notes which.
func pin(e *results.Environment, s *relays.Settings) (undo func(), err error) {
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

// calibrate measures the harness itself for a run, before it and once more after it. What falls
// short is said, and ends nothing: the figures that are missing mark none of the run's.
func (f *runFlags) calibrate(ctx context.Context, w *watcher, recorder *results.Recorder, c *corpus.Corpus, settings relays.Settings, after bool) {
	stage := calibrate.Stage{Settings: settings, Corpus: c, Options: f.options, After: after}
	if null, ok := f.relays.nullRelay(); ok {
		stage.Null = &null
	}
	if after {
		w.note("calibrating the harness once more")
	} else {
		w.note("calibrating the harness")
		busy := harness.Background(ctx)
		recorder.Update(func(r *results.Record) { r.Environment.BusyBefore = busy })
	}
	figures, err := stage.Run(ctx)
	if err != nil && ctx.Err() == nil {
		w.note("calibration fell short: " + err.Error())
	}
	recorder.Update(func(r *results.Record) { r.Calibration = append(r.Calibration, figures...) })
}

// writeCalibrationJSON writes the parts of a record that a calibration fills in.
func writeCalibrationJSON(w io.Writer, r *results.Record) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Tool        results.Tool          `json:"tool"`
		Environment results.Environment   `json:"environment"`
		Calibration []results.Calibration `json:"calibration"`
		Warnings    []string              `json:"warnings"`
	}{r.Tool, r.Environment, r.Calibration, append([]string{}, report.MachineWarnings(r)...)})
}
