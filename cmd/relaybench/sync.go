package main

import (
	"github.com/spf13/cobra"

	"relaybench/scenarios"
)

func newSync(f *runFlags) *cobra.Command {
	f.sync, f.presets = true, map[string]string{"trials": "1", "only": scenarios.SyncFamily}
	return f.command(ofSync, &cobra.Command{
		Use:   "sync",
		Short: "Measure how an empty relay gets what a full one has, for every source and sink",
		Long: `Each relay in turn is filled with the corpus and every other, and an empty form of itself, gets it all:
  native      by the sink's own sync command
  negentropy  by reconciliation (NIP-77) with relaybench as the agent: reconcile, fetch by id, publish, and again until nothing differs
  req         by REQs in pages, newest first, published at the pace of the sink
It takes the flags of run. Relays run with the limits raised that stand in the way of a bulk transfer, where their definition says which.`,
	}, f.start)
}
