package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/relays/reference"
)

// verb is what refrelay does other than serve, with a store that nobody serves meanwhile.
type verb struct {
	name, arguments, about string
	// set registers the flags, and returns what does the work once they are parsed.
	set func(*pflag.FlagSet) action
}

// action does a verb's work. A *usageError is wrong usage.
type action func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) error

func verbs() []*verb {
	return []*verb{
		{"import", "[FILE…]", "Takes events into a store by the rules of a relay: from files, or from standard input where there is none or it is -.\nNDJSON, concatenated JSON or a JSON array, plain or compressed with gzip or zstd. No relay may serve the store meanwhile.", setImport},
		{"export", "", "Writes the events of a store to standard output, one a line, the oldest first. No relay may serve the store meanwhile.", setExport},
		{"sync", "URL", "Brings a store in line with another relay that speaks NIP-77: reconciles, fetches, sends, and begins again until nothing differs or\nnothing moves. No relay may serve the store meanwhile.", setSync},
	}
}

func findVerb(name string) *verb {
	for _, v := range verbs() {
		if v.name == name {
			return v
		}
	}
	return nil
}

func verbNames() string {
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	return strings.Join(names, ", ")
}

// usageError is a command line that means nothing.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, a ...any) error { return &usageError{fmt.Sprintf(format, a...)} }

func (v *verb) execute(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	flags := pflag.NewFlagSet(v.name, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard)
	do := v.set(flags)
	flags.BoolP("help", "h", false, "print this help and end")
	err := flags.Parse(args)
	if help, _ := flags.GetBool("help"); help {
		fmt.Fprintf(stdout, "refrelay %s\n\n%s\n\nUsage: refrelay %s [flags] %s\n\n%s", v.name, v.about, v.name, v.arguments, flags.FlagUsages())
		return exitDone
	}
	if err != nil {
		err = usagef("%v", err)
	} else {
		err = do(ctx, stdin, stdout, stderr, flags.Args())
	}
	wrong := (*usageError)(nil)
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "refrelay %s: %v\nTry refrelay %s --help.\n", v.name, err, v.name)
		return exitUsage
	case err != nil:
		fmt.Fprintf(stderr, "refrelay %s: %v\n", v.name, err)
		return exitFailed
	}
	return exitDone
}

// storeFlags say which store.
type storeFlags struct{ store, dir, durability string }

func (f *storeFlags) register(flags *pflag.FlagSet, usual string, kinds []string, more string) {
	flags.StringVar(&f.store, "store", usual, "where events are kept: "+strings.Join(kinds, ", ")+more)
	flags.StringVar(&f.dir, "dir", "", "the store's directory, created if absent; bolt and sqlite need it")
	flags.StringVar(&f.durability, "durability", string(reference.DurabilityCommit), "what an OK promises: commit (synced before it), batch (synced a little later), none")
}

func (f *storeFlags) check(kinds []string) error {
	switch {
	case !slices.Contains(kinds, f.store):
		return usagef("--store %q is none of %s", f.store, strings.Join(kinds, ", "))
	case !slices.Contains(reference.Durabilities, reference.Durability(f.durability)):
		return usagef("--durability %q is none of commit, batch, none", f.durability)
	case f.dir == "" && (f.store == "bolt" || f.store == "sqlite"):
		return usagef("--store %s needs --dir", f.store)
	}
	return nil
}

// open opens the store. What is returned beside it closes it, and adds to an error what went wrong in that.
func (f *storeFlags) open() (reference.Store, func(*error), error) {
	store, err := reference.OpenStore(f.store, f.dir, reference.Durability(f.durability))
	if err != nil {
		return nil, nil, err
	}
	return store, func(failed *error) {
		if err := store.Close(); err != nil {
			*failed = errors.Join(*failed, fmt.Errorf("closing the %s store: %w", f.store, err))
		}
	}, nil
}

// onDisk are the stores that outlive a process.
var onDisk = []string{"bolt", "sqlite"}
