package main

import (
	"github.com/spf13/cobra"

	"relaybench/harness"
	"relaybench/scenarios"
)

// What --seed-by takes.
const (
	seedByPublish = "publish"
	seedByImport  = "import"
)

// registerSeed adds the flag that says how relays are loaded where nothing measured loads them.
func (f *runFlags) registerSeed(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.seedBy, "seed-by", seedByPublish, "load relays for the scenarios that need it by publish, or by import: the relay's own command where it has one, measured as scenario import")
}

func (f *runFlags) checkSeed() error {
	switch f.seedBy {
	case "", seedByPublish, seedByImport:
		return nil
	}
	return usagef("--seed-by %s: give publish or import", f.seedBy)
}

// seeder is what loads relays, nil where they are published to.
func (f *runFlags) seeder() harness.Scenario {
	if f.seedBy != seedByImport {
		return nil
	}
	return scenarios.Import{}
}

// imports says whether the scenario import takes part: where --only may name it, or --seed-by asks
// for it.
func (f *runFlags) imports() bool { return len(f.only) > 0 || f.seedBy == seedByImport }
