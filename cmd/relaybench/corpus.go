package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/harness/download"
	"relaybench/relays"
	"relaybench/report"
)

func newCorpus(f *runFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "corpus", Short: "Build, describe and verify corpora"}
	build := f.command(ofBuild, &cobra.Command{
		Use:   "build",
		Short: "Generate, download or prepare a corpus, as run would, and print what it holds",
		Long: fmt.Sprintf(`build generates a corpus, prepares that of a file, or downloads one, as run would, and prints what it holds.

--download gets a corpus from live relays: the newest events of all of them together, each event once, verified, up to when the download
began. Each relay is asked newest first, a page at a time, one request every %v at most, for as many events as it says it sends at once (NIP-11). A relay that
fails does not end the others. Ctrl-C interrupts, and the same command goes on from there, losing and repeating nothing; so it does after a crash or a
full disk. A finished download is kept in the cache and used again by the same flags; --download-fresh asks the relays anew.`, download.DefaultInterval),
	}, f.buildCorpus)
	prepared := oneArg("argument, the folder of a prepared corpus")
	info := &cobra.Command{Use: "info DIR", Short: "Describe a prepared corpus", Args: prepared,
		RunE: func(cmd *cobra.Command, args []string) error { return openCorpus(args[0], f.describeCorpus) }}
	verify := &cobra.Command{Use: "verify DIR", Short: "Check a prepared corpus: every id, every signature, the order and the fingerprint", Args: prepared,
		RunE: func(cmd *cobra.Command, args []string) error {
			w := newWatcher(f.stderr)
			err := corpus.Verify(cmd.Context(), args[0], w.corpus)
			w.wait(err == nil)
			if err != nil {
				return err
			}
			return openCorpus(args[0], func(c *corpus.Corpus) error {
				_, err := fmt.Fprintf(f.stdout, "%d events, fingerprint %s: every id, signature and the order are right\n", c.Len(), c.Manifest().Fingerprint)
				return err
			})
		}}
	cmd.AddCommand(build, info, verify)
	return cmd
}

func (f *runFlags) buildCorpus(ctx context.Context, _ []string) error {
	if err := f.checkCorpus(); err != nil {
		return err
	}
	if f.work != "" {
		folder, err := relays.OpenWork(f.work, false)
		if err != nil {
			return err
		}
		defer relays.CloseWork(folder)
		f.rules.Spill = folder
	}
	w := newWatcher(f.stderr)
	c, err := f.load(ctx, w)
	w.wait(err == nil)
	if err != nil {
		return err
	}
	defer c.Close()
	return f.describeCorpus(c)
}

// openCorpus does something with the prepared corpus in a folder.
func openCorpus(dir string, do func(*corpus.Corpus) error) error {
	c, err := corpus.Open(dir)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// describeCorpus prints what a corpus is and holds.
func (f *runFlags) describeCorpus(c *corpus.Corpus) error {
	m := c.Manifest()
	line := func(title, format string, args ...any) {
		fmt.Fprintf(f.stdout, "%-13s"+format+"\n", append([]any{title}, args...)...)
	}
	line("folder", "%s", c.Dir())
	line("source", "%s", visible(m.Source))
	line("fingerprint", "%s", m.Fingerprint)
	line("events", "%d, %s", m.Events, report.BytesText(float64(m.Bytes)))
	line("time", "%s to %s", day(m.OldestUnix), day(m.NewestUnix))
	kinds, list := slices.SortedFunc(maps.Keys(m.Kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(m.Kinds[b], m.Kinds[a]), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}), []string{}
	for _, kind := range kinds[:min(len(kinds), 12)] {
		list = append(list, fmt.Sprintf("%s×%d", kind, m.Kinds[kind]))
	}
	if len(kinds) > 12 {
		list = append(list, fmt.Sprintf("and %d kinds more", len(kinds)-12))
	}
	line("kinds", "%s", strings.Join(list, " "))
	for _, reason := range slices.Sorted(maps.Keys(m.Dropped)) {
		first := ""
		if reason == prepare.DropUnparseable.String() && m.FirstUnparseable != nil {
			first = fmt.Sprintf(" (the first is in %s)", visible(m.FirstUnparseable.String()))
		}
		if n := m.Dropped[reason]; n > 0 {
			line("left out", "%d: %s%s", n, reason, first)
		}
	}
	if m.OverLimit > 0 {
		line("left out", "%d: older than the newest --limit", m.OverLimit)
	}
	if m.Undoubled > 0 {
		line("backslashes", "were doubled, as psql's COPY writes them, and that was undone; events: %d", m.Undoubled)
	}
	return nil
}

func day(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.DateTime) }
