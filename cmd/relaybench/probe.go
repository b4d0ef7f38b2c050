package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/calibrate"
	"relaybench/harness/receive"
	"relaybench/relays"
	"relaybench/results"
	"relaybench/scenarios"
)

// probeFlags are the flags of probe.
type probeFlags struct {
	on      bool
	options scenarios.ProbeOptions
	authors []string
	shapes  string
	verify  string
	json    bool
}

func newProbe(stdout, stderr io.Writer) *cobra.Command {
	f := runFlags{blind: "what the relays hold is not known", readOnly: true, probe: probeFlags{on: true}, only: []string{scenarios.ProbeFamily},
		skip: []string{calibrate.Key, harness.Preflight}}
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

It exits with 1 where a relay does not answer everything to its end, or sends events that do not verify.`, scenarios.MaxProbed, scenarios.DefaultProbeLimit, scenarios.MaxProbeLimit, scenarios.MaxProbeAuthors),
		RunE: func(cmd *cobra.Command, urls []string) error {
			return f.probeAll(cmd, urls, stdout, stderr)
		},
	}
	flags, p := cmd.Flags(), &f.probe
	flags.SortFlags = false
	flags.IntVar(&p.options.Limit, "limit", scenarios.DefaultProbeLimit, fmt.Sprintf("events that each REQ asks for, up to %d", scenarios.MaxProbeLimit))
	flags.StringArrayVar(&p.authors, "author", nil, "ask for the notifications and metadata of this author: npub1… or 64 hexadecimal digits (repeatable)")
	flags.StringVar(&p.shapes, "only", strings.Join(scenarios.ProbeShapes(), ","), "what to ask, comma-separated")
	flags.StringVar(&p.verify, "verify", "both", "how signatures are checked: inline, parallel, or both in two passes")
	flags.DurationVar(&p.options.Pause, "pause", scenarios.DefaultProbePause, fmt.Sprintf("wait before each REQ to the same relay, at least %v", scenarios.MinProbePause))
	flags.DurationVar(&f.options.Stall, "timeout", 10*time.Second, "give up on an answer when nothing of it comes for so long")
	flags.BoolVar(&p.options.Compression, "compression", false, "offer permessage-deflate")
	flags.StringVar(&f.out, "out", "", "folder for results; each run makes a folder below it (default: $RELAYBENCH_RESULTS, or results)")
	flags.BoolVar(&p.json, "json", false, "print the record, in the form of results.json, in place of the report")
	return cmd
}

// probeAll is the verb.
func (f *runFlags) probeAll(cmd *cobra.Command, urls []string, stdout, stderr io.Writer) error {
	contenders, err := f.probed(urls)
	if err != nil {
		return err
	}
	f.options.Trials = 1
	if f.probe.json {
		f.record = stdout
	}
	chosen, err := f.choose()
	if err != nil {
		return err
	}
	return f.run(cmd.Context(), stdout, stderr, cmd.Flags(), chosen, contenders, func(r *results.Record) error {
		args, _ := r.Options["args"].([]string)
		words := []string{"probe"}
		for _, c := range contenders {
			words = append(words, publicAddress(c.Definition))
		}
		r.Options["args"] = append(words, args[:len(args)-2*len(contenders)]...) // without --relay and its name
		return nil
	})
}

// publicAddress is a relay's URL without what may be a secret in it.
func publicAddress(d *relays.Definition) string {
	return d.Describe(context.Background(), "", relays.Settings{}).URL
}

// probed refuses what cannot be meant, fills in the options, and returns the relays.
func (f *runFlags) probed(urls []string) (all []harness.Target, err error) {
	o, stall := &f.probe.options, f.options.Stall
	switch {
	case len(urls) == 0:
		return nil, usagef("probe wants the relays' URLs, as in relaybench probe wss://relay.damus.io wss://nos.lol")
	case len(urls) > scenarios.MaxProbed:
		return nil, usagef("probe: %d relays are more than %d at once", len(urls), scenarios.MaxProbed)
	case o.Limit < 1 || o.Limit > scenarios.MaxProbeLimit:
		return nil, usagef("--limit %d: give a number from 1 to %d", o.Limit, scenarios.MaxProbeLimit)
	case o.Pause < scenarios.MinProbePause || o.Pause > time.Minute:
		return nil, usagef("--pause %v: give a duration from %v to 1m", o.Pause, scenarios.MinProbePause)
	case stall < 100*time.Millisecond || stall > 5*time.Minute:
		return nil, usagef("--timeout %v: give a duration from 100ms to 5m", stall)
	case len(f.probe.authors) > scenarios.MaxProbeAuthors:
		return nil, usagef("--author: %d authors are more than %d", len(f.probe.authors), scenarios.MaxProbeAuthors)
	}
	for _, text := range urls {
		address, err := relayURL(text)
		if err != nil {
			return nil, err
		}
		d := &relays.Definition{URL: address}
		d.Name = strings.TrimPrefix(publicAddress(d), "wss://") // what nearly all relays' URLs have in common
		for _, c := range all {
			switch {
			case c.Definition.URL == address:
				return nil, usagef("probe: %q is given twice", text)
			case c.Definition.Name == d.Name: // they differ in what is not public
				d.Name += " again"
			}
		}
		all = append(all, harness.Target{Definition: d})
	}
	for _, text := range f.probe.authors {
		author, ok := corpus.ParseNpub(text)
		if !ok {
			author, ok = corpus.ParsePubKey(text)
		}
		switch {
		case ok && slices.Contains(o.Authors, author):
			return nil, usagef("--author %q: that author is given twice", text)
		case ok:
			o.Authors = append(o.Authors, author)
		case strings.HasPrefix(text, "nsec1"):
			return nil, usagef("--author: that is a secret key (nsec1…), which nobody should be told; give the public one, npub1…")
		case strings.HasPrefix(text, "npub1"):
			return nil, usagef("--author %q: that npub has a mistake in it; copy it again", text)
		default:
			return nil, usagef("--author %q: give npub1… or a public key of 64 lower-case hexadecimal digits", text)
		}
	}
	names := strings.Split(f.probe.shapes, ",")
	for _, s := range scenarios.ProbeShapes() { // in their own order: the feed brings the authors
		if i := slices.Index(names, s); i >= 0 {
			o.Shapes = append(o.Shapes, s)
			names = slices.Delete(names, i, i+1)
		}
	}
	if len(names) > 0 {
		return nil, usagef("--only %q: %q is none of global, notifications, metadata, or is named twice", f.probe.shapes, names[0])
	}
	if o.Shapes[0] != scenarios.ProbeShapes()[0] && len(o.Authors) == 0 {
		return nil, usagef("--only %q: without the global feed nobody is known to ask for; name somebody with --author", f.probe.shapes)
	}
	switch f.probe.verify {
	case "inline":
		o.Checks = []receive.Checks{receive.Inline}
	case "parallel":
		o.Checks = []receive.Checks{receive.Parallel}
	case "both":
		o.Checks = []receive.Checks{receive.Inline, receive.Parallel}
	default:
		return nil, usagef("--verify %q: give inline, parallel or both", f.probe.verify)
	}
	return all, nil
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
