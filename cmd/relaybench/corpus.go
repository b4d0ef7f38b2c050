package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/report"
)

func newCorpus(stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "corpus",
		Short: "Build, describe and verify corpora",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q; corpus has build, info and verify", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCorpusBuild(stdout, stderr), newCorpusInfo(stdout), newCorpusVerify(stdout, stderr))
	return cmd
}

func newCorpusBuild(stdout, stderr io.Writer) *cobra.Command {
	var f corpusFlags
	var work string
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Generate, download or prepare a corpus, as run would, and print what it holds",
		Long:  "build generates a corpus, prepares that of a file, or downloads one, as run would, and prints what it holds.\n\n" + downloadHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if work != "" {
				folder, err := openWork(cmd.Context(), work)
				if err != nil {
					return err
				}
				defer os.RemoveAll(folder)
				f.prepare.Spill = folder
			}
			w := newWatcher(stderr)
			c, err := f.load(cmd.Context(), w)
			w.wait(err == nil)
			if err != nil {
				return err
			}
			defer c.Close()
			return describeCorpus(stdout, c)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&work, "work", "", "folder for what sorting a large corpus writes meanwhile (default: beside the prepared corpus)")
	return cmd
}

func newCorpusInfo(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "info DIR",
		Short: "Describe a prepared corpus",
		Args:  exactArgs(1, "one argument, the folder of a prepared corpus"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := corpus.Open(args[0])
			if err != nil {
				return err
			}
			defer c.Close()
			return describeCorpus(stdout, c)
		},
	}
}

func newCorpusVerify(stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "Check a prepared corpus: every id, every signature, the order and the fingerprint",
		Args:  exactArgs(1, "one argument, the folder of a prepared corpus"),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := newWatcher(stderr)
			err := corpus.Verify(cmd.Context(), args[0], w.corpus)
			w.wait(err == nil)
			if err != nil {
				return err
			}
			c, err := corpus.Open(args[0])
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = fmt.Fprintf(stdout, "%d events, fingerprint %s: every id, signature and the order are right\n", c.Len(), c.Manifest().Fingerprint)
			return err
		},
	}
}

// describeCorpus prints what a corpus is and holds.
func describeCorpus(w io.Writer, c *corpus.Corpus) error {
	m := c.Manifest()
	fmt.Fprintf(w, "folder       %s\n", c.Dir())
	fmt.Fprintf(w, "source       %s\n", visible(m.Source))
	fmt.Fprintf(w, "fingerprint  %s\n", m.Fingerprint)
	fmt.Fprintf(w, "events       %d, %s\n", m.Events, report.BytesText(float64(m.Bytes)))
	fmt.Fprintf(w, "time         %s to %s\n", day(m.OldestUnix), day(m.NewestUnix))
	fmt.Fprintf(w, "kinds       ")
	kinds := slices.SortedFunc(maps.Keys(m.Kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(m.Kinds[b], m.Kinds[a]), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	for _, kind := range kinds[:min(len(kinds), 12)] {
		fmt.Fprintf(w, " %s×%d", kind, m.Kinds[kind])
	}
	if len(kinds) > 12 {
		fmt.Fprintf(w, " and %d kinds more", len(kinds)-12)
	}
	fmt.Fprintln(w)
	for _, reason := range slices.Sorted(maps.Keys(m.Dropped)) {
		if n := m.Dropped[reason]; n > 0 {
			first := ""
			if reason == prepare.DropUnparseable.String() && m.FirstUnparseable != nil {
				first = fmt.Sprintf(" (the first is in %s)", visible(m.FirstUnparseable.String()))
			}
			fmt.Fprintf(w, "left out     %d: %s%s\n", n, reason, first)
		}
	}
	if m.OverLimit > 0 {
		fmt.Fprintf(w, "left out     %d: older than the newest --limit\n", m.OverLimit)
	}
	if m.Undoubled > 0 {
		fmt.Fprintf(w, "backslashes  were doubled, as psql's COPY writes them, and that was undone; events: %d\n", m.Undoubled)
	}
	return nil
}

func day(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.DateTime) }
