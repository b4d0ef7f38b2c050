package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"relaybench/corpus/prepare"
	"relaybench/harness"
	"relaybench/relays"
	"relaybench/relays/machine"
	"relaybench/results"
)

// Exit codes, the same for every verb.
const (
	exitDone        = 0
	exitFailed      = 1   // a relay failed or a check fell short
	exitUsage       = 2   // wrong usage, a file or folder that cannot be used, or a machine that is short of what it takes
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
	if l.file != "" && exists(l.file) {
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
	var quitting atomic.Bool
	ended := make(chan struct{})
	defer func() {
		close(ended)
		if quitting.Load() {
			select {} // SIGQUIT ends the program
		}
	}()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	defer signal.Stop(quit)
	// A file beyond ulimit -f is an error of the write, as on a full disk, and ends neither this
	// program nor, as ignoring would be handed on, a relay's handling of it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
	signal.Ignore(syscall.SIGPIPE) // a reader that has left is an error of the write, which pipe takes
	stdout = &pipe{Writer: stdout}
	var last lastWords
	ctx = context.WithValue(ctx, lastWordsKey{}, &last)
	go func() {
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-ctx.Done():
			return
		}
		// A second signal does not wait for anything to end well; relays must not outlive it all
		// the same.
		<-signals
		relays.KillAll()
		last.speak(stderr)
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
		last.speak(stderr)
		signal.Reset(syscall.SIGQUIT)
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT) // the runtime lists goroutines and ends
	}()
	defer relays.KillAll()

	if len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-h" && args[0] != "--help" && args[0] != "-v" && args[0] != "--version" {
		args = append([]string{"run"}, args...)
	}
	root := newRoot(stdout, stderr)
	root.SetArgs(joinDownload(completing(args)))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	code := exitFailed
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		code = exit.code
	} else if machine.Shortage(err) != "" || unusable(err) {
		code = exitUsage // nobody's failure: what was asked cannot be done so, or here
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

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "relaybench",
		Short: "Measure Nostr relays head to head",
		Long: `relaybench boots Nostr relays as real processes, replays one fingerprinted corpus into each, measures them, checks every
answer against a model of what a compliant relay must hold, and writes reports that others can repeat.

A first argument that is a flag means "run".`,
		Version: harness.Version,

		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q%s; relaybench --help lists the commands", args[0], didYouMean(cmd.SuggestionsFor(args[0]), ""))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		meant := ""
		if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
			meant = didYouMean(flagNames(cmd).SuggestionsFor(unknown.GetSpecifiedName()), "--")
		}
		return usagef("%w%s; %s --help lists the flags", err, meant, cmd.CommandPath())
	})
	out, ok := stdout.(*pipe)
	if !ok {
		out = new(pipe)
	}
	root.PersistentFlags().BoolVar(&out.noColor, "no-color", false, "no colours, even on a terminal (so does $NO_COLOR)")
	root.AddCommand(newRun(stdout, stderr), newSync(stdout, stderr), newFetch(stdout, stderr), newCorpus(stdout, stderr), newRelays(stdout), newReport(stdout), newCompare(stdout), newGate(stdout, stderr), newReconcile(stdout, stderr), newCalibrate(stdout, stderr), newCheck(stdout, stderr), newProbe(stdout, stderr), newMan(stdout))
	refuseUnknownTopics(root)
	addCompletions(root)
	return root
}

// refuseUnknownTopics makes it wrong usage to name a command or a shell that there is not to one of
// cobra's own commands, which would show their help as if nothing was wrong.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			show := cmd.Run
			cmd.Run, cmd.RunE = nil, func(cmd *cobra.Command, args []string) error {
				if found, rest, err := root.Find(args); err == nil && len(rest) > 0 && found.HasSubCommands() {
					return found.Args(found, rest)
				}
				show(cmd, args)
				return nil
			}
		case "completion":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return usagef("unknown shell %q; %s has bash, fish, powershell and zsh", args[0], cmd.CommandPath())
				}
				return nil
			}
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
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

// exactArgs wants n positional arguments.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s wants %s", cmd.CommandPath(), what)
		}
		return nil
	}
}
