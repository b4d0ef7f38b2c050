package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"relaybench/corpus/prepare"
	"relaybench/relays"
	"relaybench/relays/reference"
)

func newImport() *cobra.Command {
	var s storeFlags
	var o reference.ImportOptions
	cmd := s.verb(&cobra.Command{
		Use:   "import [FILE…]",
		Short: "Take events from files or standard input into a store",
		Long: `Takes events into a store by the rules of a relay: from files, or from standard input where there is none or it is -.
NDJSON, concatenated JSON or a JSON array, plain or compressed with gzip or zstd. No relay may serve the store meanwhile.`,
	}, func(files []string) error {
		if o.MaxEventBytes < 1 {
			return usagef("--max-event-bytes %d: give a number from 1", o.MaxEventBytes)
		}
		for _, file := range files {
			if _, err := os.Stat(file); err != nil && file != "-" {
				return err // before anything is stored
			}
		}
		return nil
	}, func(cmd *cobra.Command, store reference.Store, files []string) (err error) {
		began, said := time.Now(), time.Now()
		o.Progress = func(n reference.Imported) {
			if time.Since(said) >= time.Second {
				said = time.Now()
				fmt.Fprintf(cmd.ErrOrStderr(), "%d read, %d stored\n", n.Read, n.Stored)
			}
		}
		if len(files) == 0 {
			files = []string{"-"}
		}
		importer := reference.NewImporter(store, o)
		for _, file := range files {
			err = errors.Join(err, importFile(cmd.Context(), importer, cmd.InOrStdin(), file))
			if cmd.Context().Err() != nil {
				err = errors.New("interrupted: what is counted is stored, and the rest can be imported again")
				break
			}
		}
		printImported(cmd.OutOrStdout(), importer.Total())
		printRate(cmd.OutOrStdout(), importer.Total().Read, time.Since(began))
		return err
	})
	flags := cmd.Flags()
	flags.BoolVar(&o.NoVerify, "no-verify", false, "take ids and signatures on trust")
	flags.IntVar(&o.MaxEventBytes, "max-event-bytes", 1<<20, "longest event")
	flags.StringVar(&o.URL, "url", "", "URL under which clients know the relay, for requests to vanish from it (NIP-62)")
	return cmd
}

// importFile imports one file, or standard input. A file that cannot be read to its end is an
// error, and what came before it is stored.
func importFile(ctx context.Context, importer *reference.Importer, in io.Reader, file string) error {
	name := "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in, name = f, file
	}
	texts, err := prepare.NewTexts(in, name)
	if err != nil {
		return err
	}
	if err = importer.Run(ctx, texts.Next); ctx.Err() != nil {
		return err // it may still be read from
	}
	return errors.Join(err, texts.Close())
}

func newExport() *cobra.Command {
	var s storeFlags
	var o reference.ExportOptions
	var since, until int64
	cmd := s.verb(&cobra.Command{
		Use:   "export",
		Short: "Write a store's events to standard output",
		Long:  "Writes the events of a store to standard output, one a line, the oldest first. No relay may serve the store meanwhile.",
	}, func(args []string) error {
		if len(args) > 0 {
			return usagef("unexpected argument %q: events go to standard output", args[0])
		}
		if _, err := os.Stat(filepath.Join(s.dir, "events."+s.store)); err != nil {
			return fmt.Errorf("there is no store to export: %w", err) // opening would make an empty one
		}
		return nil
	}, func(cmd *cobra.Command, store reference.Store, _ []string) error {
		if cmd.Flags().Changed("since") {
			o.Since = &since
		}
		if cmd.Flags().Changed("until") {
			o.Until = &until
		}
		o.Now = time.Now().Unix()
		n, err := reference.Export(cmd.Context(), store, cmd.OutOrStdout(), o)
		switch {
		case cmd.Context().Err() != nil:
			return errors.New("interrupted: what was written is not all")
		case err != nil:
			return fmt.Errorf("after %d events: %w", n, err)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%d events\n", n)
		return nil
	})
	flags := cmd.Flags()
	flags.Int64Var(&since, "since", 0, "only events made at this time or later, in Unix seconds")
	flags.Int64Var(&until, "until", 0, "only events made at this time or earlier, in Unix seconds")
	flags.BoolVar(&o.NewestFirst, "reverse", false, "the newest first")
	return cmd
}

func newSync() *cobra.Command {
	var s storeFlags
	var o reference.SyncOptions
	var direction string
	cmd := s.verb(&cobra.Command{
		Use:   "sync URL",
		Short: "Bring a store in line with another relay",
		Long: `Brings a store in line with another relay that speaks NIP-77: reconciles, fetches, sends, and begins again until nothing differs or
nothing moves. No relay may serve the store meanwhile.`,
	}, func(args []string) error {
		o.Down, o.Up = direction == "down" || direction == "both", direction == "up" || direction == "both"
		switch {
		case len(args) != 1:
			return usagef("give the other relay's address, ws://host:port or wss://host")
		case o.MaxEventBytes < 1 || o.Conns < 1 || o.InFlight < 1 || o.Batch < 1 || o.Window < 1 || o.Stall <= 0:
			return usagef("numbers and times must be above 0")
		case !o.Down && !o.Up:
			return usagef("--direction %q is none of down, up, both", direction)
		}
		if _, err := relays.ParseURL(args[0]); err != nil {
			return usageError{err}
		}
		return nil
	}, func(cmd *cobra.Command, store reference.Store, args []string) error {
		stdout, began := cmd.OutOrStdout(), time.Now()
		o.Told = func(text string) { fmt.Fprintln(stdout, text) }
		var said atomic.Int64
		o.Moved = func(came, sent int64) {
			if now := time.Now().Unix(); said.Swap(now) != now {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d fetched, %d sent\n", came, sent)
			}
		}
		done, err := reference.Sync(cmd.Context(), store, args[0], o)
		if cmd.Context().Err() != nil {
			err = errors.New("interrupted: what is counted is stored, and syncing again goes on from there")
		}
		printSynced(stdout, done, time.Since(began))
		return quoted(err)
	})
	flags := cmd.Flags()
	flags.StringVar(&direction, "direction", "down", "down fetches what the other relay has, up sends it what this one has, both does both")
	flags.BoolVar(&o.NoVerify, "no-verify", false, "take ids and signatures on trust")
	flags.IntVar(&o.MaxEventBytes, "max-event-bytes", 1<<20, "longest event")
	flags.StringVar(&o.URL, "url", "", "URL under which clients know this relay, for requests to vanish from it (NIP-62)")
	flags.IntVar(&o.Conns, "connections", 1, "connections to fetch over")
	flags.IntVar(&o.InFlight, "in-flight", 8, "REQs at a time on each of them")
	flags.IntVar(&o.Batch, "batch", 250, "ids in one REQ")
	flags.IntVar(&o.Window, "window", 200, "events sent that wait for their OK")
	flags.DurationVar(&o.Stall, "timeout", 30*time.Second, "give up on a relay that makes no progress for so long")
	return cmd
}

// quoted keeps what a relay wrote into an error from the terminal.
func quoted(err error) error {
	if err == nil {
		return nil
	}
	text := strconv.QuoteToGraphic(err.Error())
	return errors.New(strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`))
}

func printSynced(w io.Writer, n reference.Synced, took time.Duration) {
	fmt.Fprintf(w, "%9d reconciliations, in %.3f s\n", n.Rounds, n.Reconciling.Seconds())
	if n.Asked > 0 {
		printImported(w, n.Imported)
	}
	printCounts(w, count{n.Missing, "named by the relay and not sent"},
		count{n.Unexpected, "sent by the relay unasked"},
		count{n.Sent, "sent to the relay"},
		count{n.Accepted, "accepted by it"},
		count{n.Refused, "refused by it"},
		count{n.Unanswered, "never answered by it"},
		count{int64(n.LeftDown), "left that only the relay has"},
		count{int64(n.LeftUp), "left that only the store has"})
	printRate(w, n.Read+n.Sent, took)
}
