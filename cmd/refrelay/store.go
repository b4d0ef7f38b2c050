package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"relaybench/relays/reference"
)

// onDisk are the stores that outlive a process.
var onDisk = []string{"bolt", "sqlite"}

// storeFlags say which store.
type storeFlags struct{ store, dir, durability string }

func (f *storeFlags) register(flags *pflag.FlagSet, usual string, kinds []string, more string) {
	flags.SortFlags = false
	flags.StringVar(&f.store, "store", usual, "where events are kept: "+strings.Join(kinds, ", ")+more)
	flags.StringVar(&f.dir, "dir", "", "the store's directory, created if absent; bolt and sqlite need it")
	flags.StringVar(&f.durability, "durability", string(reference.DurabilityCommit), "what an OK promises: commit (synced before it), batch (synced a little later), none")
}

// with opens the store for what is done with it, and closes it whatever happened.
func (f *storeFlags) with(do func(reference.Store) error) (err error) {
	store, err := reference.OpenStore(f.store, f.dir, reference.Durability(f.durability))
	if err != nil {
		return err
	}
	defer func() {
		if failed := store.Close(); failed != nil {
			err = errors.Join(err, fmt.Errorf("closing the %s store: %w", f.store, failed))
		}
	}()
	return do(store)
}

func (f *storeFlags) check(kinds []string) error {
	switch {
	case !slices.Contains(kinds, f.store):
		return usagef("--store %q is none of %s", f.store, strings.Join(kinds, ", "))
	case !slices.Contains(reference.Durabilities, reference.Durability(f.durability)):
		return usagef("--durability %q is none of commit, batch, none", f.durability)
	case f.dir == "" && slices.Contains(onDisk, f.store):
		return usagef("--store %s needs --dir", f.store)
	}
	return nil
}

// verb completes one that works on a store on disk: check looks at what was asked for, before the
// store is opened for run.
func (f *storeFlags) verb(cmd *cobra.Command, check func(args []string) error, run func(cmd *cobra.Command, store reference.Store, args []string) error) *cobra.Command {
	f.register(cmd.Flags(), "bolt", onDisk, "")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if err := f.check(onDisk); err != nil {
			return err
		}
		return check(args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.with(func(store reference.Store) error { return run(cmd, store, args) })
	}
	return cmd
}

// count is how many events, or ids, came to something.
type count struct {
	n    int64
	what string
}

// printCounts prints a line for each count but those of none.
func printCounts(w io.Writer, counts ...count) {
	for _, c := range counts {
		if c.n > 0 {
			fmt.Fprintf(w, "%9d %s\n", c.n, c.what)
		}
	}
}

// printImported says what became of events that were taken in.
func printImported(w io.Writer, n reference.Imported) {
	fmt.Fprintf(w, "%9d read\n%9d stored\n", n.Read, n.Stored)
	printCounts(w, count{n.Duplicates, "held already"},
		count{n.Superseded, "superseded by newer versions"},
		count{n.Deleted, "deleted by their authors"},
		count{n.Vanished, "of authors who asked to vanish"},
		count{n.Expired, "expired"},
		count{n.Ephemeral, "ephemeral"},
		count{n.Protected, "protected, only for authenticated authors"},
		count{n.Invalid, "with a wrong id or signature, or too long"},
		count{n.Broken, "no event"})
}

func printRate(w io.Writer, events int64, took time.Duration) {
	if seconds := took.Seconds(); seconds > 0 {
		fmt.Fprintf(w, "in %.1f s: %.0f events/s\n", seconds, float64(events)/seconds)
	}
}
