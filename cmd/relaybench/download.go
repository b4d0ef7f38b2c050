package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/corpus/synthetic"
	"relaybench/harness/download"
)

// defaultRelays are what --download reads without URLs: large public relays that serve anybody.
const defaultRelays = "wss://relay.damus.io,wss://nos.lol,wss://relay.primal.net"

// publicRelays is the value of --download that stands for them.
const publicRelays = "public"

// defaultDownload is how many events --download asks for where neither --limit nor --download-since
// bounds them.
const defaultDownload = 100_000

// downloadFlags are the flags that say which corpus to download.
type downloadFlags struct {
	urls         string // "" is no download
	since, until string
	interval     time.Duration
	maxBytes     int64
	fresh        bool
	all          bool // --limit 0 was said, and not left at that
}

func (f *downloadFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.urls, "download", "", fmt.Sprintf("download the newest events of the relays at these `URLS`, separated by commas, or without any, of %s; %s events unless --limit or --download-since says otherwise", strings.ReplaceAll(defaultRelays, ",", ", "), count(defaultDownload)))
	flags.Lookup("download").NoOptDefVal = publicRelays
	flags.StringVar(&f.since, "download-since", "", "download no event older than `TIME`: Unix seconds, 2026-05-31 or 2026-05-31T12:00:00Z")
	flags.StringVar(&f.until, "download-until", "", "download no event newer than `TIME` (default: when the download begins)")
	flags.DurationVar(&f.interval, "download-interval", download.DefaultInterval, "wait so long at least between two requests to a relay; below 50ms to relays of your own only")
	flags.Int64Var(&f.maxBytes, "download-max-bytes", download.DefaultMaxBytes, "stop when the events take so much room; more of it lets the download go on")
	flags.BoolVar(&f.fresh, "download-fresh", false, "begin anew, even if a download by the same flags is there, finished or not")
}

// check refuses what cannot be meant.
func (f *downloadFlags) check(flags *pflag.FlagSet) error {
	if f.urls == "" {
		for _, name := range []string{"download-since", "download-until", "download-interval", "download-max-bytes", "download-fresh"} {
			if flags.Changed(name) {
				return usagef("--%s bears on --download, which is not given", name)
			}
		}
		if flags.Changed("download") {
			return usagef("--download is empty: name relays, or leave the value out for %s", defaultRelays)
		}
		return nil
	}
	if f.urls == publicRelays {
		f.urls = defaultRelays // which records name
	}
	f.all = flags.Changed("limit")
	switch {
	case flags.Changed("corpus") || flags.Changed("real"):
		return usagef("--download, --corpus and --real name different corpora; give one of them")
	case flags.Changed("events"):
		return usagef("--events sizes the synthetic corpus; --limit says how many events to download")
	case f.interval < 0 || f.interval > time.Hour:
		return usagef("--download-interval %v: give a duration from 0 to 1h", f.interval)
	case f.maxBytes < 1<<20:
		return usagef("--download-max-bytes %d: give a number from %d, a mebibyte", f.maxBytes, 1<<20)
	}
	_, err := f.options(0)
	return err
}

// options are what to download.
func (f *downloadFlags) options(limit int) (o download.Options, err error) {
	if o.URLs, err = relayURLs(f.urls); err != nil {
		return o, usagef("--download: %w", err)
	}
	if o.Since, err = moment("download-since", f.since); err != nil {
		return o, err
	}
	if o.Until, err = moment("download-until", f.until); err != nil {
		return o, err
	}
	if o.Since != nil && o.Until != nil && *o.Since > *o.Until {
		return o, usagef("--download-since %s lies after --download-until %s", f.since, f.until)
	}
	o.Limit, o.Interval, o.MaxBytes, o.Fresh = limit, f.interval, f.maxBytes, f.fresh
	if f.interval == 0 {
		o.Interval = -1 // what is zero there is the default
	}
	return o, nil
}

// maxDownloaded bounds how many relays are read side by side.
const maxDownloaded = 16

// relayURLs reads relay URLs separated by commas. One with a query is refused: that may hold a
// secret, and where a corpus comes from is published.
func relayURLs(text string) (urls []string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		plain, err := relayURL(part)
		if err != nil {
			return nil, err
		}
		if before, _, more := strings.Cut(plain, "?"); more {
			return nil, fmt.Errorf("%q has a query behind it: leave it out, since the source of a corpus is published", before)
		}
		if plain = strings.TrimSuffix(plain, "/"); !slices.Contains(urls, plain) {
			urls = append(urls, plain)
		}
	}
	if n := len(urls); n == 0 || n > maxDownloaded {
		return nil, fmt.Errorf("%d relays are given: name 1 to %d, with commas between them", n, maxDownloaded)
	}
	return urls, nil
}

// moment reads a time, nil where none is given.
func moment(flag, text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	if unix, err := strconv.ParseInt(text, 10, 64); err == nil && unix >= 0 && unix <= synthetic.MaxBaseTime {
		return &unix, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil && t.Unix() >= 0 {
			return corpus.Int64(t.Unix()), nil
		}
	}
	return nil, usagef("--%s %q is no time: give Unix seconds, a day as 2026-05-31, or 2026-05-31T12:00:00Z", flag, text)
}

// download gets the events, and prepares them like those of a file.
func (f *corpusFlags) download(ctx context.Context, cache string, w *watcher) (*corpus.Corpus, error) {
	rules := f.prepare
	if rules.Limit == 0 && f.downloads.since == "" && !f.downloads.all {
		rules.Limit = defaultDownload
	}
	o, err := f.downloads.options(rules.Limit)
	if err != nil {
		return nil, err
	}
	o.Prepare, o.Note, o.Watch, o.Wait = rules, w.note, w.download, w.corpus
	done, err := download.Run(ctx, cache, o)
	w.endDownload()
	if err != nil {
		if o.Fresh {
			err = fmt.Errorf("%w (the same command, but without --download-fresh)", err)
		}
		return nil, err
	}
	f.sayDownloaded(w, done)
	if done.Events == 0 {
		return nil, &exitError{exitFailed, fmt.Errorf("%s: %w: no relay sent one that is wanted, and the same command asks them again", done.Source, prepare.ErrEmpty)}
	}
	rules.Source = done.Source
	return prepare.File(ctx, done.File, rules, cache, w.corpus)
}

// sayDownloaded tells what there is now.
func (f *corpusFlags) sayDownloaded(w *watcher, done *download.Result) {
	if done.Reused {
		w.note(fmt.Sprintf("the events were downloaded %s, on %s, and are used again; --download-fresh asks the relays anew",
			ago(time.Since(done.Finished)), done.Finished.Format(time.DateTime)))
	}
	for _, r := range done.Relays {
		end := "it has no more"
		switch r.Outcome {
		case download.Enough:
			end = "down to " + day(r.Next) + ", which is enough"
		case download.Failed:
			end = "then it was given up: " + r.Failure
		}
		w.note(fmt.Sprintf("%s: %s events, %s that no other had sent; %s", r.URL, count(int(r.Received)), count(int(r.New)), end))
	}
	if failed := done.Failures(); len(failed) > 0 {
		w.note(fmt.Sprintf("the download is without what %d of %d relays have; --download-fresh asks all anew", len(failed), len(done.Relays)))
	}
}

// ago says how long something is past, in its largest unit.
func ago(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		switch n := int(d / unit.of); {
		case n == 1:
			return "1 " + unit.name + " ago"
		case n > 1:
			return fmt.Sprintf("%d %ss ago", n, unit.name)
		}
	}
	return "just now"
}

// joinDownload lets the URLs follow --download as a word of their own, which a flag with an
// optional value does not know.
func joinDownload(args []string) []string {
	i := slices.Index(args, "--download")
	if i < 0 || i+1 == len(args) || args[0] == "fetch" || !strings.HasPrefix(args[i+1], "ws://") && !strings.HasPrefix(args[i+1], "wss://") {
		return args
	}
	return slices.Concat(args[:i], []string{"--download=" + args[i+1]}, args[i+2:])
}

// downloadHelp is what corpus build says of it at length.
var downloadHelp = fmt.Sprintf(`--download gets a corpus from live relays: the newest events of all of them together, each event once, verified, up to when the download
began. Each relay is asked newest first, a page at a time, one request every %v at most, for as many events as it says it sends at once (NIP-11). A relay that
fails does not end the others. Ctrl-C interrupts, and the same command goes on from there, losing and repeating nothing; so it does after a crash or a
full disk. A finished download is kept in the cache and used again by the same flags; --download-fresh asks the relays anew.`, download.DefaultInterval)
