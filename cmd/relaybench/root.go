package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"relaybench/corpus/prepare"
	"relaybench/harness"
	"relaybench/relays"
	"relaybench/relays/machine"
	"relaybench/report/compare"
	"relaybench/report/gate"
	"relaybench/results"
)

// Exit codes, the same for every verb.
const (
	exitDone         = 0
	exitFailed       = 1   // a relay failed or a check fell short
	exitUsage        = 2   // wrong usage, a file or folder that cannot be used, or a machine that is short of what it takes
	exitRegression   = 3   // of the gate
	exitIncomparable = 4   // results that must not be held against each other
	exitInterrupted  = 130 // partial results are kept
)

// exitError ends the program with a code.
type exitError struct {
	code int
	error
}

func (e *exitError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// written is the file of the results so far.
var written atomic.Pointer[string]

// stop ends all relays, with what they leave, when a signal ends the program at once.
func stop(stderr io.Writer) {
	relays.KillAll()
	message := "relaybench: stopped at once"
	if file := written.Load(); file != nil && exists(*file) {
		message += "; what was measured so far is in " + *file
	}
	fmt.Fprintln(stderr, message)
}

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// run is the whole program: it carries out args and returns the exit code.
func run(ctx context.Context, stdout, stderr io.Writer, args []string) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer watchSignals(ctx, cancel, stderr)()
	defer relays.KillAll()

	if len(args) > 0 && strings.HasPrefix(args[0], "-") && !slices.Contains([]string{"-h", "--help", "-v", "--version"}, args[0]) {
		args = append([]string{"run"}, args...)
	}
	root := newRoot(&pipe{Writer: stdout}, stderr)
	root.SetArgs(joinDownload(completing(args)))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	code, exit, incomparable, base := exitFailed, (*exitError)(nil), (*compare.IncomparableError)(nil), (*gate.BaselineError)(nil)
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		code = exitInterrupted
	case errors.As(err, &incomparable) || errors.As(err, &base):
		code = exitIncomparable
	case errors.As(err, &exit):
		code = exit.code
	case machine.Shortage(err) != "" || unusable(err):
		code = exitUsage // nobody's failure: what was asked cannot be done so, or here
	}
	before := "relaybench: "
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line != "" {
			fmt.Fprintln(stderr, before+visible(strings.TrimSpace(line)))
		}
		before = "  "
	}
	return code
}

// watchSignals ends the context at the first signal, and the program at once at the second or at
// SIGQUIT. Relays must not outlive it all the same.
func watchSignals(ctx context.Context, cancel context.CancelCauseFunc, stderr io.Writer) (end func()) {
	signals, quit, ended := make(chan os.Signal, 2), make(chan os.Signal, 1), make(chan struct{})
	var quitting atomic.Bool
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(quit, syscall.SIGQUIT)
	// A file beyond ulimit -f is an error of the write, as on a full disk, and ends neither this
	// program nor, as ignoring would be handed on, a relay's handling of it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
	signal.Ignore(syscall.SIGPIPE) // a reader that has left is an error of the write, which pipe takes
	go func() {
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-ctx.Done():
			return
		}
		<-signals // which does not wait for anything to end well
		stop(stderr)
		os.Exit(exitInterrupted)
	}()
	go func() {
		<-quit
		quitting.Store(true)
		cancel(errInterrupted) // so that nothing is started again
		relays.KillAll()
		select {
		case <-ended:
		case <-time.After(time.Second):
		}
		stop(stderr)
		signal.Reset(syscall.SIGQUIT)
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT) // the runtime lists goroutines and ends
	}()
	return func() {
		close(ended)
		if quitting.Load() {
			select {} // SIGQUIT ends the program
		}
		signal.Stop(signals)
		signal.Stop(quit)
	}
}

// unusable says of an error that a file or a folder that was named cannot be used.
func unusable(err error) bool {
	var path *fs.PathError
	var source *prepare.SourceError
	var dump *prepare.RealDumpError
	var record *results.FileError
	return errors.As(err, &path) || errors.As(err, &source) || errors.As(err, &dump) || errors.As(err, &record) ||
		errors.Is(err, prepare.ErrEmpty) || errors.Is(err, prepare.ErrAllDropped)
}

// pipe is stdout. Where its reader has left, as head does when it has enough, the rest is written
// to nobody: that is no failure, and the exit code stays what the verdict makes it.
type pipe struct {
	io.Writer
	left    bool
	noColor bool
}

func (p *pipe) Write(b []byte) (int, error) {
	if p.left {
		return len(b), nil
	}
	n, err := p.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.left = true
		return len(b), nil
	}
	return n, err
}

func newRoot(stdout *pipe, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "relaybench",
		Short: "Measure Nostr relays head to head",
		Long: `relaybench boots Nostr relays as real processes, replays one fingerprinted corpus into each, measures them, checks every
answer against a model of what a compliant relay must hold, and writes reports that others can repeat.

A first argument that is a flag means "run".`,
		Version:       harness.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		meant := ""
		if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
			name := unknown.GetSpecifiedName()
			if newRun(new(runFlags)).Flags().Lookup(name) != nil {
				return usagef("%s has no use for --%s, which is a flag of relaybench run; %s --help lists its own", strings.TrimPrefix(cmd.CommandPath(), "relaybench "), name, cmd.CommandPath())
			}
			meant = didYouMean(flagNames(cmd).SuggestionsFor(name), "--")
		}
		return usagef("%w%s; %s --help lists the flags", err, meant, cmd.CommandPath())
	})
	root.PersistentFlags().BoolVar(&stdout.noColor, "no-color", false, "no colours, even on a terminal (so does $NO_COLOR)")
	for _, verb := range []func(*runFlags) *cobra.Command{newRun, newSync, newFetch, newCorpus, newRelays, newReport, newCompare, newGate, newReconcile, newCalibrate,
		newCheck, newProbe, newMan} {
		root.AddCommand(verb(&runFlags{stdout: stdout, stderr: stderr}))
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range append(root.Commands(), root) {
		switch {
		case cmd.Name() == "help": // cobra's own shows the root's where there is no such command
			show := cmd.Run
			cmd.Run, cmd.RunE = nil, func(cmd *cobra.Command, args []string) error {
				if found, rest, err := root.Find(args); err == nil && len(rest) > 0 && found.HasSubCommands() {
					return found.Args(found, rest)
				}
				show(cmd, args)
				return nil
			}
		case cmd.HasSubCommands():
			cmd.SuggestionsMinimumDistance = 2
			cmd.Args, cmd.RunE = noSuchCommand, func(cmd *cobra.Command, args []string) error { return cmd.Help() }
		}
	}
	completeArguments(root)
	return root
}

// noSuchCommand refuses a word that is none of a command's own commands.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unknown command %q%s; %s --help lists the commands", args[0], didYouMean(cmd.SuggestionsFor(args[0]), ""), cmd.CommandPath())
	}
	return nil
}

// didYouMean names what a misspelt word is close to, nothing where it is close to nothing.
func didYouMean(names []string, dashes string) string {
	if len(names) == 0 {
		return ""
	}
	return " (did you mean " + dashes + strings.Join(names, " or "+dashes) + "?)"
}

// flagNames is a command whose subcommands are named as the flags of cmd are: cobra knows how to
// find names that are close.
func flagNames(cmd *cobra.Command) *cobra.Command {
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: flag.Name, Hidden: flag.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	return names
}

// noArgs refuses positional arguments with a sentence that helps.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, but got %q; %s --help lists the flags", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// oneArg wants one positional argument.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%s wants one %s", cmd.CommandPath(), what)
		}
		return nil
	}
}
