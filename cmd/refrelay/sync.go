package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"relaybench/relays/reference"
)

func newSync() *cobra.Command {
	var s storeFlags
	var o reference.SyncOptions
	var direction string
	cmd := &cobra.Command{
		Use:   "sync URL",
		Short: "Bring a store in line with another relay",
		Long: `Brings a store in line with another relay that speaks NIP-77: reconciles, fetches, sends, and begins again until nothing differs or
nothing moves. No relay may serve the store meanwhile.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("give the other relay's address, ws://host:port or wss://host")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	s.register(flags, "bolt", onDisk, "")
	flags.StringVar(&direction, "direction", "down", "down fetches what the other relay has, up sends it what this one has, both does both")
	flags.BoolVar(&o.NoVerify, "no-verify", false, "take ids and signatures on trust")
	flags.IntVar(&o.MaxEventBytes, "max-event-bytes", 1<<20, "longest event")
	flags.StringVar(&o.URL, "url", "", "URL under which clients know this relay, for requests to vanish from it (NIP-62)")
	flags.IntVar(&o.Conns, "connections", 1, "connections to fetch over")
	flags.IntVar(&o.InFlight, "in-flight", 8, "REQs at a time on each of them")
	flags.IntVar(&o.Batch, "batch", 250, "ids in one REQ")
	flags.IntVar(&o.Window, "window", 200, "events sent that wait for their OK")
	flags.DurationVar(&o.Stall, "timeout", 30*time.Second, "give up on a relay that makes no progress for so long")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		stdout := cmd.OutOrStdout()
		switch {
		case s.check(onDisk) != nil:
			return s.check(onDisk)
		case o.MaxEventBytes < 1 || o.Conns < 1 || o.InFlight < 1 || o.Batch < 1 || o.Window < 1 || o.Stall <= 0:
			return usagef("numbers and times must be above 0")
		}
		if u, err := url.Parse(args[0]); err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" {
			return usagef("give the other relay's address as ws://host:port or wss://host")
		}
		switch direction {
		case "down":
			o.Down = true
		case "up":
			o.Up = true
		case "both":
			o.Down, o.Up = true, true
		default:
			return usagef("--direction %q is none of down, up, both", direction)
		}
		store, closeStore, err := s.open()
		if err != nil {
			return err
		}
		defer closeStore(&err)
		began := time.Now()
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
		if err != nil {
			return quoted(err)
		}
		return nil
	}
	return cmd
}

// quoted keeps what a relay wrote into an error from the terminal.
func quoted(err error) error {
	text := strconv.QuoteToGraphic(err.Error())
	if text == `"`+err.Error()+`"` {
		return err
	}
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
