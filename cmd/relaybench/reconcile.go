package main

import (
	"context"
	"encoding/json"
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

	"relaybench/harness"
	"relaybench/harness/layers"
	"relaybench/relays"
)

// reconcileFlags are the flags of reconcile.
type reconcileFlags struct {
	relays     relayFlags
	options    layers.Options
	sizes      string
	work       string
	cpuProfile string
	json       string
}

func newReconcile(stdout, stderr io.Writer) *cobra.Command {
	var f reconcileFlags
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
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd.Context(), stdout, stderr)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.sizes, "sizes", "10000,100000,1000000", "events on either side, comma-separated")
	flags.IntVar(&f.options.Repeat, "repeat", 11, "reconciliations after the first, whose median is shown")
	flags.Uint64Var(&f.options.Seed, "seed", 1, "seed of the events")
	flags.StringArrayVar(&f.relays.extra, "relay", nil, "add a `RELAY`: NAME=COMMAND with {port} and {dir}, or a name of the catalog (repeatable)")
	flags.StringVar(&f.relays.dir, "relays-dir", "", "folder with relay definitions of your own (TOML)")
	flags.IntVar(&f.options.SignedMax, "signed-max", 10_000, "the largest size at which these relays take part: their events are really signed")
	flags.DurationVar(&f.options.Stall, "timeout", 30*time.Second, "give up on a relay that makes no progress for so long")
	flags.StringVar(&f.work, "work", "", "folder for the relays' data while they run (default: the system's temporary folder)")
	flags.StringVar(&f.cpuProfile, "cpuprofile", "", "write a CPU profile of relaybench itself to this file")
	flags.StringVar(&f.json, "json", "", "write all figures to this file")
	return cmd
}

// check refuses what cannot be meant.
func (f *reconcileFlags) check() error {
	for text := range strings.SplitSeq(f.sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < layers.MinSize || n > layers.MaxSize {
			return usagef("--sizes %q: %q is no number from %d to %d; write --sizes 10000,100000", f.sizes, text, layers.MinSize, layers.MaxSize)
		}
		f.options.Sizes = append(f.options.Sizes, n)
	}
	switch o := &f.options; {
	case o.Repeat < 1 || o.Repeat > 100_000:
		return usagef("--repeat %d: give a number from 1 to 100000", o.Repeat)
	case o.SignedMax < 0 || o.SignedMax > layers.MaxSize:
		return usagef("--signed-max %d: give a number from 0 to %d", o.SignedMax, layers.MaxSize)
	case o.Stall < 100*time.Millisecond:
		return usagef("--timeout %v: give at least 100ms", o.Stall)
	}
	return nil
}

func (f *reconcileFlags) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if err := f.contenders(stderr); err != nil {
		return err
	}
	work, err := openWork(ctx, f.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	f.options.Settings = relays.Settings{WorkDir: work}
	f.options.Progress = func(text string) { fmt.Fprintln(stderr, visible(text)) }

	if f.cpuProfile != "" {
		file, err := os.Create(f.cpuProfile)
		if err != nil {
			return usagef("--cpuprofile: %w", err)
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return fmt.Errorf("profiling: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	var out *os.File
	if f.json != "" { // a file that cannot be written is found out before minutes of measuring
		if out, err = os.Create(f.json); err != nil {
			return usagef("--json: %w", err)
		}
		defer func() { err = errors.Join(err, out.Close()) }()
	}

	sizes := []layers.Size{}
	measureErr := layers.Measure(ctx, f.options, func(s layers.Size) error {
		sizes = append(sizes, s)
		return writeLayers(stdout, &s)
	})
	if len(sizes) > 0 {
		fmt.Fprint(stdout, layersLegend(f.options.Repeat))
	}
	if out != nil {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(sizes); err != nil {
			return errors.Join(measureErr, fmt.Errorf("writing %s: %w", f.json, err))
		}
	}
	if measureErr != nil {
		return measureErr
	}
	for _, s := range sizes {
		if i := slices.IndexFunc(s.Rows, func(r layers.Row) bool { return r.Failed }); i >= 0 {
			return &exitError{code: exitFailed, err: fmt.Errorf("%s at %s items: %s", s.Rows[i].Layer, count(s.Items), visible(s.Rows[i].Problem))}
		}
	}
	return nil
}

// contenders finds the relays: refrelay in both forms, where it is to be found, and those added.
func (f *reconcileFlags) contenders(stderr io.Writer) error {
	catalog, err := f.relays.catalog()
	if err != nil {
		return err
	}
	added, err := f.relays.added(catalog)
	if err != nil {
		return err
	}
	bundled, err := relays.Catalog()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(bundled, func(d relays.Definition) bool { return d.Name == "ref-memory" })
	if i < 0 {
		return errors.New("the catalog lacks ref-memory")
	}
	live := bundled[i]
	live.Name = "refrelay"
	live.Command += " --no-verify"
	rebuild := live
	rebuild.Name = "refrelay-rebuild"
	rebuild.Command += " --neg-rebuild"
	program, found, err := live.Find(f.relays.environment)
	switch {
	case err != nil:
		return usagef("%w", err)
	case found:
		for _, d := range []*relays.Definition{&live, &rebuild} {
			f.options.Relays = append(f.options.Relays, layers.Relay{Contender: harness.Contender{Definition: d, Program: program}, Trusting: true})
		}
	default:
		fmt.Fprintln(stderr, "refrelay is not found, so its rows are left out; build it beside relaybench, or set $REFRELAY_BIN")
	}
	for _, c := range added {
		if c.Definition.Name == live.Name || c.Definition.Name == rebuild.Name {
			return usagef("--relay %s: the bundled relay has that name here; give yours another", c.Definition.Name)
		}
		if c.Definition.External() {
			return usagef("--relay %s: a relay that runs already cannot be emptied and filled for each size; give the command that starts it", c.Definition.Name)
		}
		f.options.Relays = append(f.options.Relays, layers.Relay{Contender: c})
	}
	return nil
}
