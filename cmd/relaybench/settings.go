package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/corpus/synthetic"
)

// corpusFlags are the flags that say which corpus to use. The verbs run and corpus build share
// them.
type corpusFlags struct {
	events   int
	seed     uint64
	baseTime string
	file     string
	real     bool
	prepare  prepare.Options
	cache    string

	downloads downloadFlags
}

func (f *corpusFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.events, "events", 10000, "size of the synthetic corpus")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the synthetic corpus and of every draw")
	flags.StringVar(&f.baseTime, "base-time", "1780272000", "when the synthetic corpus ends: Unix seconds, or \"now\"")
	flags.StringVar(&f.file, "corpus", "", "use the events of this file: JSON in any sequence, in arrays or not, or a tar archive of such files, plain, gzip or zstd")
	flags.BoolVar(&f.real, "real", false, "use the public dump of real events: $RELAYBENCH_REAL, the cached copy, or a download")
	f.downloads.register(flags)
	flags.IntVar(&f.prepare.Limit, "limit", 0, "keep only the newest N events (0: all)")
	flags.IntVar(&f.prepare.MaxEventBytes, "max-event-bytes", 65536, "leave out larger events, and set relays up to accept up to this size")
	flags.IntVar(&f.prepare.MaxTags, "max-tags", 2000, "leave out events with more tags, and set relays up to accept up to so many")
	flags.BoolVar(&f.prepare.KeepDeletions, "keep-deletions", false, "keep deletion requests (kind 5) in the corpus")
	flags.BoolVar(&f.prepare.KeepControlCharacters, "keep-control-characters", false, "keep events with control characters that NIP-01 gives no escape, which implementations hash differently")
	flags.StringVar(&f.cache, "cache", "", "folder for prepared corpora (default: $RELAYBENCH_CACHE, or relaybench in the user's cache folder)")
}

// check refuses what cannot be meant, before anything is built or booted.
func (f *corpusFlags) check(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("corpus") && f.file == "":
		return usagef("--corpus is empty: name a file of events")
	case f.events < 1 || f.events > 100_000_000:
		return usagef("--events %d: give a number from 1 to 100,000,000", f.events)
	case f.file != "" && f.real:
		return usagef("--corpus and --real name two corpora; give one of them")
	case (f.file != "" || f.real) && cmd.Flags().Changed("events"):
		return usagef("--events sizes the synthetic corpus; to take part of a file, use --limit")
	case f.prepare.Limit < 0:
		return usagef("--limit %d: give a number from 0", f.prepare.Limit)
	case f.prepare.MaxEventBytes < 1 || f.prepare.MaxEventBytes > 15<<20:
		return usagef("--max-event-bytes %d: give a number from 1 to %d", f.prepare.MaxEventBytes, 15<<20)
	case f.prepare.MaxTags < 1 || f.prepare.MaxTags > 1_000_000:
		return usagef("--max-tags %d: give a number from 1 to 1,000,000", f.prepare.MaxTags)
	}
	if _, err := f.base(); err != nil {
		return err
	}
	return f.downloads.check(cmd.Flags())
}

func (f *corpusFlags) base() (int64, error) {
	if f.baseTime == "now" {
		return time.Now().Unix(), nil
	}
	base, err := strconv.ParseInt(f.baseTime, 10, 64)
	if err != nil || base < synthetic.MinBaseTime || base > synthetic.MaxBaseTime {
		return 0, usagef("--base-time %q: give Unix seconds from %d to %d, or \"now\"", f.baseTime, synthetic.MinBaseTime, int64(synthetic.MaxBaseTime))
	}
	return base, nil
}

// load builds the corpus, or takes it from the cache, and says what of it could not be read. The
// watcher may be nil.
func (f *corpusFlags) load(ctx context.Context, w *watcher) (*corpus.Corpus, error) {
	c, err := f.build(ctx, w)
	if err != nil || w == nil {
		return c, err
	}
	m := c.Manifest()
	if first := m.FirstUnparseable; first != nil {
		w.note(fmt.Sprintf("%s: left out since it is no event: %s; the first is in %s", m.Source, count(m.Dropped[prepare.DropUnparseable.String()]), first))
	}
	if m.Undoubled > 0 {
		w.note(fmt.Sprintf("%s: events with doubled backslashes, as psql's COPY writes them: %s; that was undone, and their ids are right", m.Source, count(m.Undoubled)))
	}
	return c, nil
}

func (f *corpusFlags) build(ctx context.Context, w *watcher) (*corpus.Corpus, error) {
	cache, err := cacheDir(f.cache)
	if err != nil {
		return nil, err
	}
	if f.downloads.urls != "" {
		return f.download(ctx, cache, w)
	}
	var progress corpus.Progress
	if w != nil {
		progress = w.corpus
	}
	file := f.file
	if f.real {
		if file, err = prepare.RealDump(ctx, cache, progress); err != nil {
			return nil, err
		}
	}
	if file != "" {
		return prepare.File(ctx, file, f.prepare, cache, progress)
	}
	base, err := f.base()
	if err != nil {
		return nil, err
	}
	return prepare.Synthetic(ctx, synthetic.Spec{Events: f.events, Seed: f.seed, BaseTime: base}, f.prepare, cache, progress)
}

// cacheDir returns the folder for corpora: what was asked for, $RELAYBENCH_CACHE, or the user's
// cache folder.
func cacheDir(asked string) (string, error) {
	if asked == "" {
		asked = os.Getenv("RELAYBENCH_CACHE")
	}
	if asked == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no cache folder: %w; set $RELAYBENCH_CACHE or give --cache", err)
		}
		asked = filepath.Join(user, "relaybench")
	}
	return filepath.Abs(asked)
}
