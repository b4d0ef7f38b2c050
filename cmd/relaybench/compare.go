package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"relaybench/report"
	"relaybench/report/compare"
	"relaybench/results"
)

// exitIncomparable is for results that must not be held against each other.
const exitIncomparable = 4

// compareFlags are the flags of compare.
type compareFlags struct {
	before, after []string
	format        string
	options       compare.Options
}

func newCompare(stdout io.Writer) *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Compare results with earlier ones, figure by figure, with a test of significance",
		Long: `compare holds two sides of results against each other: medians with their confidence intervals, the change, and whether it is
significant (Mann–Whitney U). A side is a results.json, a run's folder, a folder of such folders, or several of them separated by commas;
--old and --new name further ones. The trials of a side are taken together.

It refuses, with exit code 4, to compare what was not measured alike: another corpus, other settings, another class of machine.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options := terminalOptions(stdout)
			return interruptible(cmd.Context(), stdout, func(w io.Writer) error {
				c, err := f.compare(args)
				if err != nil {
					return err
				}
				return f.render(w, c, options)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.before, "old", nil, "results of the old side (repeatable)")
	flags.StringArrayVar(&f.after, "new", nil, "results of the new side (repeatable)")
	flags.StringVar(&f.format, "format", "text", "text, md, json or benchfmt (the Go benchmark format: pipe it into benchstat -col /side -)")
	flags.BoolVar(&f.options.All, "all", false, "show the figures without a direction as well")
	flags.BoolVar(&f.options.Force, "force", false, "compare what is not comparable, under a banner that says so")
	return cmd
}

func (f *compareFlags) compare(args []string) (*compare.Comparison, error) {
	if !slices.Contains([]string{"text", "md", "json", "benchfmt"}, f.format) {
		return nil, usagef("--format %q: give text, md, json or benchfmt", f.format)
	}
	// What the flags leave open the arguments fill, in order.
	switch open := 2 - min(len(f.before), 1) - min(len(f.after), 1); {
	case len(args) == 2:
		f.before, f.after = append(f.before, args[0]), append(f.after, args[1])
	case len(args) == 1 && open == 1 && len(f.before) == 0:
		f.before = args
	case len(args) == 1 && open == 1:
		f.after = args
	case len(args) > 0 || open > 0:
		return nil, usagef("compare wants two arguments, OLD and NEW; several results a side are separated by commas, or named with --old and --new")
	}
	read := map[[sha256.Size]byte]string{}
	before, err := readSide(f.before, read)
	if err != nil {
		return nil, err
	}
	after, err := readSide(f.after, read)
	if err != nil {
		return nil, err
	}
	c, err := compare.Compare(before, after, f.options)
	if incomparable := (*compare.IncomparableError)(nil); errors.As(err, &incomparable) {
		return nil, &exitError{exitIncomparable, fmt.Errorf("%w\nUse --force to look at them all the same", err)}
	}
	return c, err
}

func (f *compareFlags) render(w io.Writer, c *compare.Comparison, options report.TerminalOptions) error {
	switch f.format {
	case "md":
		return c.Document().Markdown(w)
	case "json":
		return c.JSON(w)
	case "benchfmt":
		return c.Benchfmt(w)
	}
	return c.Document().Terminal(w, options)
}

// maxSide bounds how many results one side may hold.
const maxSide = 1000

// readSide reads the results of one side: files, runs' folders, and folders of those. It refuses
// results that were read already, by what they say and not by their names: their trials would count
// twice, or be compared with themselves.
func readSide(names []string, read map[[sha256.Size]byte]string) (compare.Side, error) {
	var s compare.Side
	for _, list := range names {
		for _, name := range strings.Split(list, ",") {
			files, err := resultsIn(name)
			if err != nil {
				return s, err
			}
			for _, file := range files {
				r, err := readResults(file)
				if err != nil {
					return s, err
				}
				sum, err := r.Hash()
				if err != nil {
					return s, fmt.Errorf("%s: %w", file, err)
				}
				if other, twice := read[sum]; twice {
					return s, usagef("%s holds the same results as %s: give each once, on one side", file, other)
				}
				read[sum] = file
				if s.Records = append(s.Records, r); len(s.Records) > maxSide {
					return s, usagef("a side holds more than %d results", maxSide)
				}
			}
			if s.Label == "" {
				s.Label = sideLabel(name)
			}
		}
	}
	return s, nil
}

// readResults reads results to compare with others. A setting that the version of relaybench that
// took them did not have yet gets its default, which is what was done before there was a choice:
// what is measured now compares with it as long as it is set so.
func readResults(file string) (*results.Record, error) {
	r, err := results.ReadRecord(file)
	if err == nil && len(r.Options) > 0 {
		fillIn(r.Options)
	}
	return r, err
}

// fillIn adds the defaults of what run could be asked for and was not.
func fillIn(options map[string]any) {
	for name, value := range publicFlags(newRun(io.Discard, io.Discard).Flags()) {
		if _, ok := options[name]; !ok {
			options[name] = value
		}
	}
}

// sideLabel names a side after its first file or folder, without the folders above: they are
// nobody's business in a report.
func sideLabel(name string) string {
	if base := filepath.Base(name); base != "results.json" {
		return base
	}
	if abs, err := filepath.Abs(name); err == nil {
		return filepath.Base(filepath.Dir(abs))
	}
	return "results.json"
}

// resultsIn finds the results that a name stands for.
func resultsIn(name string) ([]string, error) {
	if name == "" {
		return nil, usagef("an empty name where results were expected")
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, usagef("reading results: %w", err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	if file := filepath.Join(name, "results.json"); exists(file) {
		return []string{file}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	var files []string
	for _, e := range entries {
		if file := filepath.Join(name, e.Name(), "results.json"); e.IsDir() && exists(file) {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, usagef("%s holds no results.json, nor does a folder in it", name)
	}
	return files, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
