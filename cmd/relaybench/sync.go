package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"relaybench/relays"
	"relaybench/scenarios"
)

// syncFlags say how relays are synced.
type syncFlags struct {
	on        bool
	modes     []string
	direction string
	page      int
}

func newSync(stdout, stderr io.Writer) *cobra.Command {
	f := runFlags{sync: syncFlags{on: true}}
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Measure how an empty relay gets what a full one has, for every source and sink",
		Long: `Each relay in turn is filled with the corpus and every other, and an empty form of itself, gets it all:
  native      by the sink's own sync command
  negentropy  by reconciliation (NIP-77) with relaybench as the agent: reconcile, fetch by id, publish, and again until nothing differs
  req         by REQs in pages, newest first, published at the pace of the sink
It takes the flags of run. Relays run with the limits raised that stand in the way of a bulk transfer, where their definition says which.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := apply(cmd.Flags(), syncDefaults); err != nil {
				return err
			}
			return f.start(cmd, stdout, stderr)
		},
	}
	f.register(cmd)
	f.registerRelays(cmd)
	f.registerSeed(cmd)
	f.sync.register(cmd)
	cmd.Flags().DurationVar(&f.fetch.time, "cell-time", 0, "cut each sync after so long (0: ended once it takes far longer than whatever was measured before it); the same as run's --cell-time")
	preset(cmd.Flags(), syncDefaults)
	return cmd
}

// syncDefaults are what the verb does where its flags say nothing else.
var syncDefaults = map[string]string{"trials": "1", "only": "sync"}

// register adds the flags that say how to sync.
func (f *syncFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.modes, "sync-modes", nil, "how relays are synced: "+strings.Join(scenarios.SyncModes(), ", ")+" (all)")
	flags.StringVar(&f.direction, "dir", string(relays.Down), "whose side the agent of mode negentropy takes: down (the sink's, pulling), up (the source's, pushing), both (each lacks a fifth of the corpus)")
	flags.IntVar(&f.page, "page", scenarios.DefaultPage, "events asked for at a time in mode req")
}

// check refuses what cannot be meant. Verbs that have none of these flags have nothing to be
// refused.
func (f *syncFlags) check(flags *pflag.FlagSet) error {
	if flags.Lookup("sync-modes") == nil {
		return nil
	}
	for _, mode := range f.modes {
		if !slices.Contains(scenarios.SyncModes(), mode) {
			return usagef("--sync-modes %s: the modes are %s", mode, strings.Join(scenarios.SyncModes(), ", "))
		}
	}
	switch relays.Direction(f.direction) {
	case relays.Down, relays.Up, relays.Both:
	default:
		return usagef("--dir %s: give down, up or both", f.direction)
	}
	if f.page < 1 || f.page > 10_000_000 {
		return usagef("--page %d: give a number from 1 to 10,000,000", f.page)
	}
	return nil
}
