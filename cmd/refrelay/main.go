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

	"github.com/spf13/pflag"

	"relaybench/corpus"
	"relaybench/relays/reference"
)

// garbagePercent lets the heap grow to four times what is in use between two collections: what is in use is bounded and small, a few tens of MB.
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

// settings are what the flags say.
type settings struct {
	storeFlags
	listen  string
	options reference.Options
	faults  []string
	version bool
}

// run serves until ctx ends, or does what another verb says. It returns the exit code: 0 when all went well, 1 when it failed, 2 for wrong usage.
func run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	if len(args) > 0 {
		if v := findVerb(args[0]); v != nil {
			return v.execute(ctx, stdin, stdout, stderr, args[1:])
		}
	}
	s, err := parse(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitDone
	case err != nil:
		fmt.Fprintf(stderr, "refrelay: %v\nTry refrelay --help.\n", err)
		return exitUsage
	case s.version:
		fmt.Fprintln(stdout, "refrelay", reference.Version)
		return exitDone
	}
	if err := serve(ctx, stdout, stderr, s); err != nil {
		fmt.Fprintf(stderr, "refrelay: %v\n", err)
		return exitFailed
	}
	return exitDone
}

func parse(args []string, stdout io.Writer) (settings, error) {
	var s settings
	flags := pflag.NewFlagSet("refrelay", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:7777", "address to listen on, HOST:PORT; port 0 picks a free one")
	s.storeFlags.register(flags, "memory", reference.StoreKinds, " (null keeps nothing and checks nothing)")
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
	flags.StringArrayVar(&s.faults, "fault", nil, "for tests only: misbehave on purpose, in one of the ways below (repeatable)")
	flags.BoolVar(&s.version, "version", false, "print the version and end")
	flags.BoolP("help", "h", false, "print this help and end")
	err := flags.Parse(args)
	if help, _ := flags.GetBool("help"); help {
		fmt.Fprintf(stdout, "refrelay: relaybench's reference Nostr relay\n\nUsage: refrelay [flags]                serves\n       refrelay import [flags] [FILE…]  takes events from files or standard input into a store that nobody serves\n       refrelay export [flags]          writes a store's events to standard output\n       refrelay sync [flags] URL        brings a store in line with another relay\n\n%s\nFaults, for tests only (a share is of the events, which ones depends on their ids):\n%s", flags.FlagUsages(), reference.FaultHelp())
		return s, pflag.ErrHelp
	}
	if err != nil {
		return s, err
	}
	return s, s.check(flags)
}

func (s *settings) check(flags *pflag.FlagSet) error {
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; the verbs, which come first, are %s", flags.Arg(0), verbNames())
	case s.storeFlags.check(reference.StoreKinds) != nil:
		return s.storeFlags.check(reference.StoreKinds)
	case s.options.MaxEventBytes < 0 || s.options.MaxLimit < 0 || s.options.NegMaxEvents < 0 || s.options.NegFrameLimit < 1:
		return errors.New("limits cannot be negative, and --neg-frame-limit not 0")
	case s.options.Delay < 0 || s.options.Delay > time.Hour:
		return fmt.Errorf("--delay %v is not between 0 and 1h", s.options.Delay)
	case s.store == "null" && (s.options.Delay > 0 || len(s.faults) > 0):
		return errors.New("--store null, which does no work, takes neither --delay nor --fault")
	case s.options.MaxSubscriptions < 1:
		return errors.New("--max-subscriptions must be at least 1")
	case s.options.MaxMessageBytes < 256 || s.options.MaxMessageBytes > 16<<20:
		return fmt.Errorf("--max-message-bytes %d is not between 256 and %d", s.options.MaxMessageBytes, 16<<20)
	}
	if _, _, err := net.SplitHostPort(s.listen); err != nil {
		return fmt.Errorf("--listen %q is not HOST:PORT", s.listen)
	}
	faults, err := reference.ParseFaults(s.faults)
	if err != nil {
		return fmt.Errorf("--fault %w", err)
	}
	s.options.Faults = faults
	return nil
}

// serve opens the store, serves, and closes the store whatever happened.
func serve(ctx context.Context, stdout, stderr io.Writer, s settings) (err error) {
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer listener.Close()
	store, closeStore, err := s.open()
	if err != nil {
		return err
	}
	defer closeStore(&err)
	s.options.Store = store
	s.options.Log = func(format string, a ...any) {
		fmt.Fprintf(stderr, "%s refrelay: %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, a...))
	}
	if len(s.faults) > 0 {
		s.options.Log("misbehaves on purpose: %s", strings.Join(s.faults, ", "))
	}
	fmt.Fprintf(stdout, "refrelay %s listening on ws://%s (store %s, durability %s, signatures %s)\n", reference.Version, listener.Addr(), s.store, s.promise(), s.verifier())
	return reference.Serve(ctx, listener, s.options)
}

func (s *settings) promise() string {
	if s.store == "memory" || s.store == "null" {
		return string(reference.DurabilityNone)
	}
	return s.durability
}

func (s *settings) verifier() string {
	if s.options.NoVerify || s.store == "null" {
		return "not checked"
	}
	return corpus.Verifier
}
