package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/probe"
	"relaybench/harness/receive"
)

// probeFlags are the flags of probe.
type probeFlags struct {
	options probe.Options
	authors []string
	shapes  string
	verify  string
	json    bool
}

func newProbe(stdout, stderr io.Writer) *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe URL...",
		Short: "Look at production relays as a client sees them: connecting, first event, EOSE, duplicates, queue delay",
		Long: fmt.Sprintf(`probe asks up to %d relays at the same time what a client asks when it starts: the global feed (the newest notes), notifications (what mentions the
authors of that feed, or those that --author names) and a burst of metadata (their profiles). It measures how soon a connection, the first
event and EOSE come, what each relay brings that others brought before, and how long events wait between socket and consumer, in two
passes: with signatures checked inline by the consumer, and by a verifier on all cores that keeps their order.

It is a guest and stays small: one connection to each relay in each pass, one REQ at a time with a pause before each, %d events asked for by
default and %d at most, of %d authors at most; so six REQs to each relay in all. It sends REQ and CLOSE, never EVENT and never AUTH. An answer ends at
the latest with twice the limit and 100 events, 16 MiB, or a minute.

It exits with 1 where a relay does not answer everything to its end, or sends events that do not verify.`, probe.MaxRelays, probe.DefaultLimit, probe.MaxLimit, probe.MaxAuthors),
		RunE: func(cmd *cobra.Command, urls []string) error {
			if err := f.check(urls); err != nil {
				return err
			}
			return f.run(cmd.Context(), stdout, stderr)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.options.Limit, "limit", probe.DefaultLimit, fmt.Sprintf("events that each REQ asks for, up to %d", probe.MaxLimit))
	flags.StringArrayVar(&f.authors, "author", nil, "ask for the notifications and metadata of this author: npub1… or 64 hexadecimal digits (repeatable)")
	flags.StringVar(&f.shapes, "only", "global,notifications,metadata", "what to ask, comma-separated")
	flags.StringVar(&f.verify, "verify", "both", "how signatures are checked: inline, parallel, or both in two passes")
	flags.DurationVar(&f.options.Pause, "pause", probe.DefaultPause, fmt.Sprintf("wait before each REQ to the same relay, at least %v", probe.MinPause))
	flags.DurationVar(&f.options.Stall, "timeout", probe.DefaultStall, "give up on an answer when nothing of it comes for so long")
	flags.BoolVar(&f.options.Compression, "compression", false, "offer permessage-deflate")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// probeShapes are the shapes by the names that --only takes.
var probeShapes = []struct {
	name  string
	shape probe.Shape
}{{"global", probe.Global}, {"notifications", probe.Notifications}, {"metadata", probe.Metadata}}

// check refuses what cannot be meant and fills in the options.
func (f *probeFlags) check(urls []string) error {
	o := &f.options
	switch {
	case len(urls) == 0:
		return usagef("probe wants the relays' URLs, as in relaybench probe wss://relay.damus.io wss://nos.lol")
	case len(urls) > probe.MaxRelays:
		return usagef("probe: %d relays are more than %d at once", len(urls), probe.MaxRelays)
	case o.Limit < 1 || o.Limit > probe.MaxLimit:
		return usagef("--limit %d: give a number from 1 to %d", o.Limit, probe.MaxLimit)
	case o.Pause < probe.MinPause || o.Pause > time.Minute:
		return usagef("--pause %v: give a duration from %v to 1m", o.Pause, probe.MinPause)
	case o.Stall < 100*time.Millisecond || o.Stall > 5*time.Minute:
		return usagef("--timeout %v: give a duration from 100ms to 5m", o.Stall)
	case len(f.authors) > probe.MaxAuthors:
		return usagef("--author: %d authors are more than %d", len(f.authors), probe.MaxAuthors)
	}
	for _, text := range urls {
		address, err := relayURL(text)
		if err != nil {
			return err
		}
		if slices.Contains(o.URLs, address) {
			return usagef("probe: %q is given twice", text)
		}
		o.URLs = append(o.URLs, address)
	}
	for _, text := range f.authors {
		author, ok := corpus.ParseNpub(text)
		if !ok {
			author, ok = corpus.ParsePubKey(text)
		}
		switch {
		case ok && slices.Contains(o.Authors, author):
			return usagef("--author %q: that author is given twice", text)
		case ok:
			o.Authors = append(o.Authors, author)
		case strings.HasPrefix(text, "nsec1"):
			return usagef("--author: that is a secret key (nsec1…), which nobody should be told; give the public one, npub1…")
		case strings.HasPrefix(text, "npub1"):
			return usagef("--author %q: that npub has a mistake in it; copy it again", text)
		default:
			return usagef("--author %q: give npub1… or a public key of 64 lower-case hexadecimal digits", text)
		}
	}
	names := strings.Split(f.shapes, ",")
	for _, s := range probeShapes { // in their own order: the feed brings the authors
		if i := slices.Index(names, s.name); i >= 0 {
			o.Shapes = append(o.Shapes, s.shape)
			names = slices.Delete(names, i, i+1)
		}
	}
	if len(names) > 0 {
		return usagef("--only %q: %q is none of global, notifications, metadata, or is named twice", f.shapes, names[0])
	}
	if o.Shapes[0] != probe.Global && len(o.Authors) == 0 {
		return usagef("--only %q: without the global feed nobody is known to ask for; name somebody with --author", f.shapes)
	}
	switch f.verify {
	case "inline":
		o.Checks = []receive.Checks{receive.Inline}
	case "parallel":
		o.Checks = []receive.Checks{receive.Parallel}
	case "both":
		o.Checks = []receive.Checks{receive.Inline, receive.Parallel}
	default:
		return usagef("--verify %q: give inline, parallel or both", f.verify)
	}
	return nil
}

// relayURL checks the URL of a relay and returns it in the one form that it is known by here.
func relayURL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Scheme == "":
		return "", usagef("%q is no URL of a relay: it must look like wss://host or ws://host:port", text)
	case u.Scheme == "http" || u.Scheme == "https":
		return "", usagef("%q: a relay's URL begins with ws://, or wss:// where it is encrypted", text)
	case u.Scheme != "ws" && u.Scheme != "wss":
		return "", usagef("%q is no URL of a relay: it must begin with wss:// or ws://", text)
	case u.Hostname() == "":
		return "", usagef("%q names no host: it must look like wss://host or ws://host:port", text)
	case u.User != nil:
		return "", usagef("the URL of %s holds a user name or a password, which relays do not take", u.Host)
	case u.Fragment != "":
		return "", usagef("%q has a part after #, which is never sent: leave it out", text)
	}
	u.Host = strings.ToLower(u.Host)
	if u.Path == "/" {
		u.Path = ""
	}
	return u.String(), nil
}

func (f *probeFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	f.options.Progress = func(text string) { fmt.Fprintln(stderr, visible(text)) }
	started := time.Now().UTC()
	r, probeErr := probe.Run(ctx, f.options)
	var err error
	if f.json {
		err = writeProbeJSON(stdout, started, r)
	} else {
		err = writeProbe(stdout, r, terminalOptions(stdout).Width)
	}
	switch {
	case probeErr != nil:
		return probeErr
	case err != nil:
		return fmt.Errorf("writing what was found: %w", err)
	}
	if fell := fellShort(r); len(fell) > 0 {
		return &exitError{exitFailed, errors.New("not every answer was complete and good: " + strings.Join(fell, ", "))}
	}
	return nil
}

// fellShort names the relays that did not answer everything to its end, or sent events that do not verify.
func fellShort(r *probe.Report) (names []string) {
	for _, p := range r.Passes {
		for _, relay := range p.Relays {
			bad := func(a probe.Answer) bool {
				return a.Outcome != probe.Complete && a.Outcome != probe.NotAsked || a.Forged() > 0
			}
			if name := visible(shortURL(relay.URL)); slices.ContainsFunc(relay.Answers, bad) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// shortURL leaves out what nearly all relays' URLs have in common.
func shortURL(address string) string { return strings.TrimPrefix(address, "wss://") }

// writeProbeJSON writes in ASCII alone, as check does.
func writeProbeJSON(w io.Writer, started time.Time, r *probe.Report) error {
	text, err := json.MarshalIndent(struct {
		Tool      string    `json:"tool"`
		Verifier  string    `json:"signaturesBy"`
		StartedAt time.Time `json:"startedAt"`
		*probe.Report
	}{"relaybench " + harness.Version, corpus.Verifier, started.Truncate(time.Second), r}, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(ascii(text), '\n'))
	return err
}
