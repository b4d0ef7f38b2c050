package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"relaybench/report/compare"
	"relaybench/results"
)

func newCompare(f *runFlags) *cobra.Command {
	return f.command(ofCompare, &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Compare results with earlier ones, figure by figure, with a test of significance",
		Args:  cobra.ArbitraryArgs,
		Long: `compare holds two sides of results against each other: medians with their confidence intervals, the change, and whether it is
significant (Mann–Whitney U). A side is a results.json, a run's folder, a folder of such folders, or several of them separated by commas;
--old and --new name further ones. The trials of a side are taken together.

It refuses, with exit code 4, to compare what was not measured alike: another corpus, other settings, another class of machine.`,
	}, func(ctx context.Context, args []string) error {
		options := terminalOptions(f.stdout)
		return interruptible(ctx, f.stdout, func(w io.Writer) error {
			c, err := f.compareSides(args)
			if err != nil {
				return err
			}
			switch f.format {
			case "md":
				return c.Document().Markdown(w)
			case "json":
				return c.JSON(w)
			case "benchfmt":
				return c.Benchfmt(w)
			}
			return c.Document().Terminal(w, options)
		})
	})
}

func (f *runFlags) compareSides(args []string) (*compare.Comparison, error) {
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
	c, err := compare.Compare(before, after, f.compare)
	if incomparable := (*compare.IncomparableError)(nil); errors.As(err, &incomparable) {
		err = fmt.Errorf("%w\nUse --force to look at them all the same", err)
	}
	return c, err
}

// maxSide bounds how many results one side may hold.
const maxSide = 1000

// readSide reads the results of one side: files, runs' folders, and folders of those. It refuses
// results that were read already, by what they say and not by their names: their trials would count
// twice, or be compared with themselves.
func readSide(lists []string, read map[[sha256.Size]byte]string) (s compare.Side, err error) {
	names := strings.Split(strings.Join(lists, ","), ",")
	for _, name := range names {
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
	}
	// The folders above are nobody's business in a report.
	if s.Label = filepath.Base(names[0]); s.Label == "results.json" {
		if abs, err := filepath.Abs(names[0]); err == nil {
			s.Label = filepath.Base(filepath.Dir(abs))
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
	for name, value := range publicFlags(newRun(new(runFlags)).Flags()) {
		if _, ok := options[name]; !ok {
			options[name] = value
		}
	}
}

// resultsIn finds the results that a name stands for.
func resultsIn(name string) (files []string, err error) {
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
	for _, pattern := range []string{"results.json", "*/results.json"} {
		files, err = fs.Glob(os.DirFS(name), pattern)
		for i := range files {
			files[i] = filepath.Join(name, files[i])
		}
		if err != nil || len(files) > 0 {
			return files, err
		}
	}
	return nil, usagef("%s holds no results.json, nor does a folder in it", name)
}

// oneResult finds the one results.json that a name stands for.
func oneResult(name string) (string, error) {
	files, err := resultsIn(name)
	if err == nil && len(files) > 1 {
		err = usagef("%s holds %d results; name one of them", name, len(files))
	}
	if err != nil {
		return "", err
	}
	return files[0], nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
