// Command refrelay is relaybench's reference relay as a program: see package relays/reference.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"relaybench/corpus"
	"relaybench/relays/reference"
)

// garbagePercent lets the heap grow to four times what is in use between two collections: what is
// in use is bounded and small, a few tens of MB.
const garbagePercent = 300

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Stdin, os.Stdout, os.Stderr, os.Args[1:]))
}

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a command line that means nothing.
type usageError struct{ error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// run serves until ctx ends, or does what another verb says, and returns the exit code.
func run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	root := newRoot()
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "%s: %v\n", cmd.CommandPath(), err)
	if wrong := (usageError{}); errors.As(err, &wrong) {
		fmt.Fprintf(stderr, "Try %s --help.\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailed
}

// settings are what the flags of the relay say.
type settings struct {
	storeFlags
	listen  string
	options reference.Options
	faults  []string
}

func newRoot() *cobra.Command {
	var s settings
	root := &cobra.Command{
		Use:   "refrelay",
		Short: "relaybench's reference Nostr relay",
		Long: "refrelay is relaybench's reference Nostr relay. Without a command it serves.\n\n" +
			"Faults, for tests only (a share is of the events, which ones depends on their ids):\n" + reference.FaultHelp(),
		Version:           reference.Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unexpected argument %q; the verbs, which come first, are import, export, sync", args[0])
			}
			return s.check()
		},
		RunE: s.serve,
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cobra.EnableCommandSorting = false
	root.AddCommand(newImport(), newExport(), newSync())
	flags := root.Flags()
	flags.StringVar(&s.listen, "listen", "127.0.0.1:7777", "address to listen on, HOST:PORT; port 0 picks a free one")
	s.register(flags, "memory", reference.StoreKinds, " (null keeps nothing and checks nothing)")
	flags.BoolVar(&s.options.NoVerify, "no-verify", false, "take ids and signatures on trust")
	flags.StringVar(&s.options.Name, "name", "relaybench reference relay", "the relay's name in its information document")
	flags.StringVar(&s.options.URL, "url", "", "URL under which clients know this relay (default ws:// and the address)")
	flags.IntVar(&s.options.MaxMessageBytes, "max-message-bytes", 1<<20, "longest client message")
	flags.IntVar(&s.options.MaxEventBytes, "max-event-bytes", 0, "longest event (default: as long as a message may be)")
	flags.IntVar(&s.options.MaxLimit, "max-limit", 0, "most events that answer one filter (default: all that match)")
	flags.IntVar(&s.options.MaxSubscriptions, "max-subscriptions", 64, "most subscriptions open on one connection")
	flags.IntVar(&s.options.NegMaxEvents, "neg-max-events", 0, "most events of one reconciliation (default: all for time ranges, 1,000,000 for other filters)")
	flags.IntVar(&s.options.NegFrameLimit, "neg-frame-limit", 500_000, "longest negentropy message sent, in bytes before hexadecimal digits double it")
	flags.BoolVar(&s.options.NegRebuild, "neg-rebuild", false, "build the set anew at each NEG-OPEN, as relays without a live index do")
	flags.DurationVar(&s.options.Delay, "delay", 0, "send each OK so long after its event was committed: latency that costs no throughput of its own")
	flags.StringArrayVar(&s.faults, "fault", nil, "for tests only: misbehave on purpose, in one of the ways above (repeatable)")
	return root
}

func (s *settings) check() (err error) {
	o := &s.options
	if err := s.storeFlags.check(reference.StoreKinds); err != nil {
		return err
	}
	switch {
	case o.MaxEventBytes < 0 || o.MaxLimit < 0 || o.NegMaxEvents < 0 || o.NegFrameLimit < 1:
		return usagef("limits cannot be negative, and --neg-frame-limit not 0")
	case o.Delay < 0 || o.Delay > time.Hour:
		return usagef("--delay %v is not between 0 and 1h", o.Delay)
	case s.store == "null" && (o.Delay > 0 || len(s.faults) > 0):
		return usagef("--store null, which does no work, takes neither --delay nor --fault")
	case o.MaxSubscriptions < 1:
		return usagef("--max-subscriptions must be at least 1")
	case o.MaxMessageBytes < 256 || o.MaxMessageBytes > 16<<20:
		return usagef("--max-message-bytes %d is not between 256 and %d", o.MaxMessageBytes, 16<<20)
	}
	_, port, err := net.SplitHostPort(s.listen)
	if err != nil {
		return usagef("--listen %q is not HOST:PORT", s.listen)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return usagef("--listen %q: there is no port %s; ports are numbers up to 65535", s.listen, port)
	}
	if o.Faults, err = reference.ParseFaults(s.faults); err != nil {
		return usagef("--fault %w", err)
	}
	return nil
}

// serve opens the store, and serves.
func (s *settings) serve(cmd *cobra.Command, _ []string) error {
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer listener.Close()
	return s.with(func(store reference.Store) error {
		s.options.Store = store
		s.options.Log = func(format string, a ...any) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s refrelay: %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, a...))
		}
		if len(s.faults) > 0 {
			s.options.Log("misbehaves on purpose: %s", strings.Join(s.faults, ", "))
		}
		durability, verifier := s.durability, corpus.Verifier
		if s.store == "memory" || s.store == "null" {
			durability = string(reference.DurabilityNone)
		}
		if s.options.NoVerify || s.store == "null" {
			verifier = "not checked"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "refrelay %s listening on ws://%s (store %s, durability %s, signatures %s)\n", reference.Version, listener.Addr(), s.store, durability, verifier)
		return reference.Serve(cmd.Context(), listener, s.options)
	})
}
