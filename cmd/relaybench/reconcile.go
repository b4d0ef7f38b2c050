package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"relaybench/harness"
	"relaybench/harness/calibrate"
	"relaybench/scenarios"
)

func newReconcile(f *runFlags) *cobra.Command {
	f.blind, f.repeatedBy = "each size has events of its own, made for it", []string{"reconcile"}
	cmd := f.command(ofReconcile, &cobra.Command{
		Use:   "reconcile",
		Short: "Tell where the time of a reconciliation (NIP-77) goes, layer by layer",
		Long: `Reconciles two sets of events, of which four fifths are shared, in layers that each add something: the engine alone in memory; the same
over hexadecimal digits, JSON and a loopback socket; and a relay's process. The bundled refrelay takes part in two forms, with its live index and
with --neg-rebuild, and the relays that --relay names join it.

refrelay takes signatures on trust here, so that a million events are quickly published. Other relays need really signed events and take part up to
--signed-max items.`,
	}, f.reconcileAll)
	f.only, f.skip, f.options.Trials = []string{scenarios.ReconcileFamily}, []string{calibrate.Key, harness.Preflight}, 1
	return cmd
}

// readSizes reads --sizes.
func (f *runFlags) readSizes() error {
	f.reconcile.Sizes = nil
	for text := range strings.SplitSeq(f.sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < scenarios.MinReconciled || n > scenarios.MaxReconciled {
			return usagef("--sizes %q: %q is no number from %d to %d; write --sizes 10000,100000", f.sizes, text, scenarios.MinReconciled, scenarios.MaxReconciled)
		}
		f.reconcile.Sizes = append(f.reconcile.Sizes, n)
	}
	return nil
}

func (f *runFlags) reconcileAll(ctx context.Context, _ []string) (err error) {
	contenders, err := f.reconciled()
	if err != nil {
		return err
	}
	chosen, err := f.check()
	if err != nil {
		return err
	}
	profile, profiled, err := openOutput("cpuprofile", f.cpuProfile)
	if err != nil {
		return err
	}
	defer profiled()
	file, written, err := openOutput("json", f.jsonFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, written()) }()
	if profile != nil {
		_ = profile.Truncate(0)
		if err := pprof.StartCPUProfile(profile); err != nil {
			return fmt.Errorf("profiling: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	if file != nil {
		_ = file.Truncate(0)
		f.record = file
	}
	return f.run(ctx, chosen, contenders)
}

// reconciled finds the relays: refrelay in both forms, where it is to be found, and those added.
func (f *runFlags) reconciled() (all []harness.Target, err error) {
	added, err := f.added()
	if err != nil {
		return nil, err
	}
	memory, err := f.bundled("ref-memory")
	if err != nil {
		return nil, usagef("%w", err)
	}
	for _, form := range [][2]string{{"refrelay", " --no-verify"}, {"refrelay-rebuild", " --no-verify --neg-rebuild"}} {
		name, flags := form[0], form[1]
		if named(added, name) {
			return nil, usagef("--relay %s: the bundled relay has that name here; give yours another", name)
		}
		if f.reconcile.Trusting = append(f.reconcile.Trusting, name); memory != nil {
			d := *memory.Definition
			d.Name, d.Command = name, d.Command+flags
			all = append(all, harness.Target{Definition: &d, Program: memory.Program})
		}
	}
	if memory == nil {
		fmt.Fprintln(f.stderr, "refrelay is not found, so its rows are left out; build it beside relaybench, or set $REFRELAY_BIN")
	}
	for _, c := range added {
		if c.Definition.External() {
			return nil, usagef("--relay %s: a relay that runs already cannot be emptied and filled for each size; give the command that starts it", c.Definition.Name)
		}
	}
	f.reconcile.Signed = len(added) > 0
	return append(all, added...), nil
}
