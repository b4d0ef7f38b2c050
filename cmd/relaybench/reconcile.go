package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"relaybench/harness"
	"relaybench/harness/calibrate"
	"relaybench/relays"
	"relaybench/scenarios"
)

// reconcileFlags say which sets are reconciled.
type reconcileFlags struct {
	on         bool
	options    scenarios.ReconcileOptions
	sizes      string
	cpuProfile string
	json       string
}

func newReconcile(stdout, stderr io.Writer) *cobra.Command {
	f := runFlags{blind: "each size has events of its own, made for it", reconcile: reconcileFlags{on: true}, only: []string{scenarios.ReconcileFamily}, skip: []string{calibrate.Key, harness.Preflight}}
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Tell where the time of a reconciliation (NIP-77) goes, layer by layer",
		Long: `Reconciles two sets of events, of which four fifths are shared, in layers that each add something: the engine alone in memory; the same
over hexadecimal digits, JSON and a loopback socket; and a relay's process. The bundled refrelay takes part in two forms, with its live index and
with --neg-rebuild, and the relays that --relay names join it.

refrelay takes signatures on trust here, so that a million events are quickly published. Other relays need really signed events and take part up to
--signed-max items.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.reconcileAll(cmd, stdout, stderr)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.reconcile.register(cmd)
	flags.Uint64Var(&f.options.Seed, "seed", 1, "seed of the events")
	flags.StringArrayVar(&f.relays.extra, "relay", nil, "add a `RELAY`: NAME=COMMAND with {port} and {dir}, or a name of the catalog (repeatable)")
	flags.StringVar(&f.relays.dir, "relays-dir", "", "folder with relay definitions of your own (TOML)")
	flags.DurationVar(&f.options.Stall, "timeout", 30*time.Second, "give up on a relay that makes no progress for so long")
	flags.StringVar(&f.out, "out", "", "folder for results; each run makes a folder below it (default: $RELAYBENCH_RESULTS, or results)")
	flags.StringVar(&f.work, "work", "", "folder for the relays' data while they run (default: the system's temporary folder)")
	flags.StringVar(&f.reconcile.cpuProfile, "cpuprofile", "", "write a CPU profile of relaybench itself to this file")
	flags.StringVar(&f.reconcile.json, "json", "", "also write the record, in the form of results.json, to this file")
	return cmd
}

// register adds the flags that run shares.
func (f *reconcileFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.sizes, "sizes", "10000,100000,1000000", "events on either side of a reconciliation in layers, comma-separated")
	flags.IntVar(&f.options.Repeat, "repeat", 11, "reconciliations after the first, whose median is shown")
	flags.IntVar(&f.options.SignedMax, "signed-max", 10_000, "the largest of these sizes at which relays take part that need really signed events")
}

// check refuses what cannot be meant. Verbs that have none of these flags have nothing to be
// refused.
func (f *reconcileFlags) check(flags *pflag.FlagSet) error {
	if flags.Lookup("sizes") == nil {
		return nil
	}
	for text := range strings.SplitSeq(f.sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < scenarios.MinReconciled || n > scenarios.MaxReconciled {
			return usagef("--sizes %q: %q is no number from %d to %d; write --sizes 10000,100000", f.sizes, text, scenarios.MinReconciled, scenarios.MaxReconciled)
		}
		f.options.Sizes = append(f.options.Sizes, n)
	}
	switch o := &f.options; {
	case o.Repeat < 1 || o.Repeat > 100_000:
		return usagef("--repeat %d: give a number from 1 to 100000", o.Repeat)
	case o.SignedMax < 0 || o.SignedMax > scenarios.MaxReconciled:
		return usagef("--signed-max %d: give a number from 0 to %d", o.SignedMax, scenarios.MaxReconciled)
	}
	return nil
}

// reconcileAll is the verb.
func (f *runFlags) reconcileAll(cmd *cobra.Command, stdout, stderr io.Writer) (err error) {
	if err := f.reconcile.check(cmd.Flags()); err != nil {
		return err
	}
	if f.options.Stall < 100*time.Millisecond {
		return usagef("--timeout %v: give at least 100ms", f.options.Stall)
	}
	f.options.Trials = 1
	contenders, err := f.reconciled(stderr)
	if err != nil {
		return err
	}
	chosen, err := f.choose()
	if err != nil {
		return err
	}
	if f.reconcile.cpuProfile != "" {
		file, err := os.Create(f.reconcile.cpuProfile)
		if err != nil {
			return usagef("--cpuprofile: %w", err)
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return fmt.Errorf("profiling: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	if f.reconcile.json != "" { // a file that cannot be written is found out before minutes of measuring
		file, err := os.Create(f.reconcile.json)
		if err != nil {
			return usagef("--json: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		f.record = file
	}
	return f.run(cmd.Context(), stdout, stderr, cmd.Flags(), chosen, contenders, repeatedBy("reconcile"))
}

// reconciled finds the relays: refrelay in both forms, where it is to be found, and those added.
func (f *runFlags) reconciled(stderr io.Writer) ([]harness.Target, error) {
	catalog, err := f.relays.catalog()
	if err != nil {
		return nil, err
	}
	added, err := f.relays.added(catalog)
	if err != nil {
		return nil, err
	}
	bundled, err := relays.Catalog()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(bundled, func(d relays.Definition) bool { return d.Name == "ref-memory" })
	if i < 0 {
		return nil, errors.New("the catalog lacks ref-memory")
	}
	live := bundled[i]
	live.Name = "refrelay"
	live.Command += " --no-verify"
	rebuild := live
	rebuild.Name = "refrelay-rebuild"
	rebuild.Command += " --neg-rebuild"
	var all []harness.Target
	program, found, err := live.Find(f.relays.environment)
	switch {
	case err != nil:
		return nil, usagef("%w", err)
	case found:
		all = []harness.Target{{Definition: &live, Program: program}, {Definition: &rebuild, Program: program}}
	default:
		fmt.Fprintln(stderr, "refrelay is not found, so its rows are left out; build it beside relaybench, or set $REFRELAY_BIN")
	}
	for _, c := range added {
		if c.Definition.Name == live.Name || c.Definition.Name == rebuild.Name {
			return nil, usagef("--relay %s: the bundled relay has that name here; give yours another", c.Definition.Name)
		}
		if c.Definition.External() {
			return nil, usagef("--relay %s: a relay that runs already cannot be emptied and filled for each size; give the command that starts it", c.Definition.Name)
		}
	}
	f.reconcile.options.Trusting, f.reconcile.options.Signed = []string{live.Name, rebuild.Name}, len(added) > 0
	return append(all, added...), nil
}
