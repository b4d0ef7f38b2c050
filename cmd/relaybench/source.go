package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/corpus/synthetic"
	"relaybench/harness/download"
	"relaybench/relays"
	"relaybench/report"
	"relaybench/results"
)

// defaultRelays are what --download reads without URLs: large public relays that serve anybody.
const defaultRelays = "wss://relay.damus.io,wss://nos.lol,wss://relay.primal.net"

// publicRelays is the value of --download that stands for them.
const publicRelays = "public"

// defaultDownload is how many events --download asks for where neither --limit nor --download-since
// bounds them.
const defaultDownload = 100_000

// checkCorpus refuses what cannot be meant of a corpus, before anything is built or booted.
func (f *runFlags) checkCorpus() error {
	changed := f.flags.Changed
	if _, err := f.ends(); err != nil {
		return err
	}
	if f.download == publicRelays {
		f.download = defaultRelays // which records name
	}
	switch {
	case f.download != "" && (changed("corpus") || changed("real")):
		return usagef("--download, --corpus and --real name different corpora; give one of them")
	case f.download != "" && changed("events"):
		return usagef("--events sizes the synthetic corpus; --limit says how many events to download")
	case f.download != "":
		return f.understandDownload()
	case changed("corpus") && f.corpus == "":
		return usagef("--corpus is empty: name a file of events")
	case f.corpus != "" && f.real:
		return usagef("--corpus and --real name two corpora; give one of them")
	case (f.corpus != "" || f.real) && changed("events"):
		return usagef("--events sizes the synthetic corpus; to take part of a file, use --limit")
	}
	for _, s := range f.settings {
		if strings.HasPrefix(s.name, "download-") && changed(s.name) {
			return usagef("--%s bears on --download, which is not given", s.name)
		}
	}
	if changed("download") {
		return usagef("--download is empty: name relays, or leave the value out for %s", defaultRelays)
	}
	return nil
}

// understandDownload reads what is to be downloaded.
func (f *runFlags) understandDownload() (err error) {
	d := &f.downloads
	if d.URLs, err = relayURLs(f.download); err != nil {
		return usagef("--download: %w", err)
	}
	if d.Since, err = moment("download-since", f.since); err != nil {
		return err
	}
	if d.Until, err = moment("download-until", f.until); err != nil {
		return err
	}
	if d.Since != nil && d.Until != nil && *d.Since > *d.Until {
		return usagef("--download-since %s lies after --download-until %s", f.since, f.until)
	}
	return nil
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

// relayURL reads the URL of a relay to which nothing is told but what is asked.
func relayURL(text string) (string, error) {
	u, err := relays.ParseURL(text)
	switch {
	case err != nil:
		return "", err
	case u.User != nil:
		return "", fmt.Errorf("the URL of %s holds a user name or a password, which relays do not take", u.Host)
	case u.Fragment != "":
		return "", fmt.Errorf("%q has a part after #, which is never sent: leave it out", text)
	}
	return u.String(), nil
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

// ends is when the synthetic corpus ends.
func (f *runFlags) ends() (int64, error) {
	if f.baseTime == "now" {
		return time.Now().Unix(), nil
	}
	base, err := strconv.ParseInt(f.baseTime, 10, 64)
	if err != nil || base < synthetic.MinBaseTime || base > synthetic.MaxBaseTime {
		return 0, usagef("--base-time %q: give Unix seconds from %d to %d, or \"now\"", f.baseTime, synthetic.MinBaseTime, int64(synthetic.MaxBaseTime))
	}
	return base, nil
}

// load builds the corpus, or takes it from the cache, and says what of it could not be read.
func (f *runFlags) load(ctx context.Context, w *watcher) (*corpus.Corpus, error) {
	c, err := f.build(ctx, w)
	if err != nil {
		return nil, err
	}
	m := c.Manifest()
	if first := m.FirstUnparseable; first != nil {
		w.note("%s: left out since it is no event: %s; the first is in %s", m.Source, count(m.Dropped[prepare.DropUnparseable.String()]), first)
	}
	if m.Undoubled > 0 {
		w.note("%s: events with doubled backslashes, as psql's COPY writes them: %s; that was undone, and their ids are right", m.Source, count(m.Undoubled))
	}
	return c, nil
}

func (f *runFlags) build(ctx context.Context, w *watcher) (*corpus.Corpus, error) {
	cache := cmp.Or(f.cache, os.Getenv("RELAYBENCH_CACHE"))
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no cache folder: %w; set $RELAYBENCH_CACHE or give --cache", err)
		}
		cache = filepath.Join(user, "relaybench")
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return nil, err
	}
	file, rules := f.corpus, f.rules
	switch {
	case f.download != "":
		if rules.Limit == 0 && f.since == "" && !f.flags.Changed("limit") {
			rules.Limit = defaultDownload
		}
		var done *download.Result
		if done, err = f.get(ctx, cache, rules, w); err == nil {
			file, rules.Source = done.File, done.Source
		}
	case f.real:
		file, err = prepare.RealDump(ctx, cache, w.corpus)
	}
	if err != nil {
		return nil, err
	}
	if file != "" {
		return prepare.File(ctx, file, rules, cache, w.corpus)
	}
	base, err := f.ends()
	if err != nil {
		return nil, err
	}
	return prepare.Synthetic(ctx, synthetic.Spec{Events: f.events, Seed: f.options.Seed, BaseTime: base}, rules, cache, w.corpus)
}

// get downloads the events, and tells what there is now.
func (f *runFlags) get(ctx context.Context, cache string, rules prepare.Options, w *watcher) (*download.Result, error) {
	o := f.downloads
	o.Limit, o.Prepare, o.Watch, o.Wait = rules.Limit, rules, w.download, w.corpus
	o.Note = func(line string) { w.note("%s", line) }
	if o.Interval == 0 {
		o.Interval = -1 // what is zero there is the default
	}
	done, err := download.Run(ctx, cache, o)
	w.endDownload()
	if err != nil {
		if o.Fresh {
			err = fmt.Errorf("%w (the same command, but without --download-fresh)", err)
		}
		return nil, err
	}
	if done.Reused {
		w.note("the events were downloaded %s, on %s, and are used again; --download-fresh asks the relays anew", ago(time.Since(done.Finished)), done.Finished.Format(time.DateTime))
	}
	for _, r := range done.Relays {
		end := "it has no more"
		switch r.Outcome {
		case download.Enough:
			end = "down to " + day(r.Next) + ", which is enough"
		case download.Failed:
			end = "then it was given up: " + r.Failure
		}
		w.note("%s: %s events, %s that no other had sent; %s", r.URL, count(int(r.Received)), count(int(r.New)), end)
	}
	if failed := done.Failures(); len(failed) > 0 {
		w.note("the download is without what %d of %d relays have; --download-fresh asks all anew", len(failed), len(done.Relays))
	}
	if done.Events == 0 {
		return nil, &exitError{exitFailed, fmt.Errorf("%s: %w: no relay sent one that is wanted, and the same command asks them again", done.Source, prepare.ErrEmpty)}
	}
	return done, nil
}

// ago says how long something is past, in its largest unit.
func ago(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int(d / unit.of); n > 0 {
			return report.Count(n, unit.name) + " ago"
		}
	}
	return "just now"
}

// joinDownload lets the URLs follow --download as a word of their own, which a flag with an
// optional value does not know.
func joinDownload(args []string) []string {
	i := slices.Index(args, "--download")
	if i < 0 || i+1 == len(args) || args[0] == "fetch" || !isAddress(args[i+1]) {
		return args
	}
	return slices.Concat(args[:i], []string{"--download=" + args[i+1]}, args[i+2:])
}

func isAddress(text string) bool {
	return strings.HasPrefix(text, "ws://") || strings.HasPrefix(text, "wss://")
}

// noCorpus is what the record says of the corpus where there is none.
func noCorpus(why string) results.Corpus {
	return results.Corpus{Source: "none: " + why, Fingerprint: fmt.Sprintf("%x", sha256.Sum256(nil)), Kinds: map[string]int{}}
}
