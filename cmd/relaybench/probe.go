package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/calibrate"
	"relaybench/harness/receive"
	"relaybench/relays"
	"relaybench/scenarios"
)

func newProbe(f *runFlags) *cobra.Command {
	f.blind, f.readOnly = "what the relays hold is not known", true
	cmd := f.command(ofProbe, &cobra.Command{
		Use:   "probe URL...",
		Short: "Look at production relays as a client sees them: connecting, first event, EOSE, duplicates, queue delay",
		Args:  cobra.ArbitraryArgs,
		Long: fmt.Sprintf(`probe asks up to %d relays at the same time what a client asks when it starts: the global feed (the newest notes), notifications (what mentions the
authors of that feed, or those that --author names) and a burst of metadata (their profiles). It measures how soon a connection, the first
event and EOSE come, what each relay brings that others brought before, and how long events wait between socket and consumer, in two
passes: with signatures checked inline by the consumer, and by a verifier on all cores that keeps their order.

It is a guest and stays small: one connection to each relay in each pass, one REQ at a time with a pause before each, %d events asked for by
default and %d at most, of %d authors at most; so six REQs to each relay in all. It sends REQ and CLOSE, never EVENT and never AUTH. An answer ends at
the latest with twice the limit and 100 events, 16 MiB, or a minute.

It exits with 1 where a relay does not answer everything to its end, or sends events that do not verify.`, scenarios.MaxProbed, scenarios.DefaultProbeLimit, scenarios.MaxProbeLimit, scenarios.MaxProbeAuthors),
	}, f.probeAll)
	f.only, f.skip, f.options.Trials = []string{scenarios.ProbeFamily}, []string{calibrate.Key, harness.Preflight}, 1
	return cmd
}

func (f *runFlags) probeAll(ctx context.Context, urls []string) error {
	contenders, err := probed(urls)
	if err != nil {
		return err
	}
	if err := f.readAuthors(); err != nil {
		return err
	}
	if err := f.readShapes(); err != nil {
		return err
	}
	chosen, err := f.check()
	if err != nil {
		return err
	}
	if f.json {
		f.record = f.stdout
	}
	f.repeatedBy = []string{"probe"}
	for _, c := range contenders {
		f.repeatedBy = append(f.repeatedBy, publicAddress(c.Definition))
	}
	return f.run(ctx, chosen, contenders)
}

// publicAddress is a relay's URL without what may be a secret in it.
func publicAddress(d *relays.Definition) string {
	return d.Describe(context.Background(), "", relays.Settings{}).URL
}

// probed are the relays at these URLs.
func probed(urls []string) (all []harness.Target, err error) {
	switch {
	case len(urls) == 0:
		return nil, usagef("probe wants the relays' URLs, as in relaybench probe wss://relay.damus.io wss://nos.lol")
	case len(urls) > scenarios.MaxProbed:
		return nil, usagef("probe: %d relays are more than %d at once", len(urls), scenarios.MaxProbed)
	}
	for _, text := range urls {
		address, err := relayURL(text)
		if err != nil {
			return nil, usagef("%w", err)
		}
		d := &relays.Definition{URL: address}
		d.Name = strings.TrimPrefix(publicAddress(d), "wss://") // what nearly all relays' URLs have in common
		for _, c := range all {
			switch {
			case c.Definition.URL == d.URL:
				return nil, usagef("probe: %q is given twice", text)
			case c.Definition.Name == d.Name: // they differ in what is not public
				d.Name += " again"
			}
		}
		all = append(all, harness.Target{Definition: d})
	}
	return all, nil
}

// readAuthors reads --author.
func (f *runFlags) readAuthors() error {
	if len(f.authors) > scenarios.MaxProbeAuthors {
		return usagef("--author: %d authors are more than %d", len(f.authors), scenarios.MaxProbeAuthors)
	}
	for _, text := range f.authors {
		author, ok := corpus.ParseNpub(text)
		if !ok {
			author, ok = corpus.ParsePubKey(text)
		}
		switch {
		case ok && slices.Contains(f.probe.Authors, author):
			return usagef("--author %q: that author is given twice", text)
		case ok:
			f.probe.Authors = append(f.probe.Authors, author)
		case strings.HasPrefix(text, "nsec1"):
			return usagef("--author: that is a secret key (nsec1…), which nobody should be told; give the public one, npub1…")
		case strings.HasPrefix(text, "npub1"):
			return usagef("--author %q: that npub has a mistake in it; copy it again", text)
		default:
			return usagef("--author %q: give npub1… or a public key of 64 lower-case hexadecimal digits", text)
		}
	}
	return nil
}

// readShapes reads --only and --verify.
func (f *runFlags) readShapes() error {
	names, p := strings.Split(f.shapes, ","), &f.probe
	for _, s := range scenarios.ProbeShapes() { // in their own order: the feed brings the authors
		if i := slices.Index(names, s); i >= 0 {
			p.Shapes = append(p.Shapes, s)
			names = slices.Delete(names, i, i+1)
		}
	}
	if len(names) > 0 {
		return usagef("--only %q: %q is none of global, notifications, metadata, or is named twice", f.shapes, names[0])
	}
	if p.Shapes[0] != scenarios.ProbeShapes()[0] && len(p.Authors) == 0 {
		return usagef("--only %q: without the global feed nobody is known to ask for; name somebody with --author", f.shapes)
	}
	if f.verify != "parallel" {
		p.Checks = append(p.Checks, receive.Inline)
	}
	if f.verify != "inline" {
		p.Checks = append(p.Checks, receive.Parallel)
	}
	return nil
}
