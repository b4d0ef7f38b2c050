package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"relaybench/harness"
	"relaybench/relays"
)

// Exit codes, the same for every verb.
const (
	exitDone        = 0
	exitFailed      = 1 // a relay failed or a check fell short
	exitUsage       = 2
	exitInterrupted = 130 // partial results are kept
)

// exitError ends the program with a code; an empty message means that all has been said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// lastWords is what remains to be done when a second signal ends the program at once.
type lastWords struct {
	mu   sync.Mutex
	work string // a folder to remove
	file string // where the results so far are
}

type lastWordsKey struct{}

func (l *lastWords) set(work, file string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.work, l.file = work, file
}

func (l *lastWords) speak(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.work != "" {
		os.RemoveAll(l.work)
	}
	message := "relaybench: stopped at once"
	if l.file != "" {
		message += "; what was measured so far is in " + l.file
	}
	fmt.Fprintln(w, message)
}

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// run is the whole program: it carries out args and returns the exit code.
func run(ctx context.Context, stdout, stderr io.Writer, args []string) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	signal.Ignore(syscall.SIGPIPE) // a reader that has left is an error of the write, after which everything is still cleaned up
	var last lastWords
	ctx = context.WithValue(ctx, lastWordsKey{}, &last)
	go func() {
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-ctx.Done():
			return
		}
		// A second signal does not wait for anything to end well; relays must not outlive it all the same.
		<-signals
		relays.KillAll()
		last.speak(stderr)
		os.Exit(exitInterrupted)
	}()
	defer relays.KillAll()

	if len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-h" && args[0] != "--help" && args[0] != "-v" && args[0] != "--version" {
		args = append([]string{"run"}, args...)
	}
	root := newRoot(stdout, stderr)
	root.SetArgs(joinDownload(args))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	code := exitFailed
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		code = exit.code
	}
	if errors.Is(context.Cause(ctx), errInterrupted) {
		code = exitInterrupted
	}
	for i, line := range strings.Split(err.Error(), "\n") {
		switch {
		case line == "":
		case i == 0:
			fmt.Fprintln(stderr, "relaybench:", visible(line))
		default:
			fmt.Fprintln(stderr, "  "+visible(strings.TrimSpace(line)))
		}
	}
	return code
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "relaybench",
		Short: "Measure Nostr relays head to head",
		Long: `relaybench boots Nostr relays as real processes, replays one fingerprinted corpus into each, measures them, checks every
answer against a model of what a compliant relay must hold, and writes reports that others can repeat.

A first argument that is a flag means "run".`,
		Version:       harness.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q; relaybench --help lists the commands", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; %s --help lists the flags", err, cmd.CommandPath())
	})
	root.AddCommand(newRun(stdout, stderr), newSync(stdout, stderr), newFetch(stdout, stderr), newCorpus(stdout, stderr), newRelays(stdout), newReport(stdout), newCompare(stdout), newGate(stdout, stderr), newReconcile(stdout, stderr), newCalibrate(stdout, stderr), newCheck(stdout, stderr), newProbe(stdout, stderr))
	return root
}

// noArgs refuses positional arguments with a sentence that helps.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, but got %q; %s --help lists the flags", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// exactArgs wants n positional arguments.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s wants %s", cmd.CommandPath(), what)
		}
		return nil
	}
}
