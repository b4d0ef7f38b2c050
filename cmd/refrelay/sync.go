package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"relaybench/relays/reference"
)

func setSync(flags *pflag.FlagSet) action {
	var s storeFlags
	var o reference.SyncOptions
	var direction string
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
	return func(ctx context.Context, _ io.Reader, stdout, stderr io.Writer, args []string) (err error) {
		switch {
		case len(args) != 1:
			return usagef("give the other relay's address, ws://host:port or wss://host")
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
		o.Told = func(text string, _ reference.Synced) { fmt.Fprintln(stdout, text) }
		var said atomic.Int64
		o.Moved = func(came, sent int64) {
			if now := time.Now().Unix(); said.Swap(now) != now {
				fmt.Fprintf(stderr, "%d fetched, %d sent\n", came, sent)
			}
		}
		done, err := reference.Sync(ctx, store, args[0], o)
		if ctx.Err() != nil {
			err = errors.New("interrupted: what is counted is stored, and syncing again goes on from there")
		}
		printSynced(stdout, done, time.Since(began))
		if err != nil {
			return quoted(err)
		}
		return nil
	}
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
		printCounts(w, n.Imported)
	}
	for _, line := range []struct {
		count int64
		what  string
	}{
		{n.Missing, "named by the relay and not sent"},
		{n.Strays, "sent by the relay unasked"},
		{n.Sent, "sent to the relay"},
		{n.Accepted, "accepted by it"},
		{n.Refused, "refused by it"},
		{n.Unanswered, "never answered by it"},
		{int64(n.LeftDown), "left that only the relay has"},
		{int64(n.LeftUp), "left that only the store has"},
	} {
		if line.count > 0 {
			fmt.Fprintf(w, "%9d %s\n", line.count, line.what)
		}
	}
	if seconds := took.Seconds(); seconds > 0 {
		fmt.Fprintf(w, "in %.1f s: %.0f events/s\n", seconds, float64(n.Read+n.Sent)/seconds)
	}
}
