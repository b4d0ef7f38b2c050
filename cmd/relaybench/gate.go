package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"relaybench/harness"
	"relaybench/harness/calibrate"
	"relaybench/report/compare"
	"relaybench/report/gate"
	"relaybench/results"
)

// exitRegression is the gate's own exit code.
const exitRegression = 3

// gateScenarios are what a gate measures where nothing else is asked for: ingest, storage, and
// three queries that are answered from indexes of different kinds. All of it takes a few seconds a
// trial.
var gateScenarios = []string{"ingest.throughput", "ingest.visibility", "query.firehose", "query.follow-feed", "query.thread", "storage"}

// What else a gate does by default, beside what run does.
const (
	gateTrials      = 10
	gateMaxTrials   = 30
	gateQueryRounds = 30
)

// gateFlags are the flags of gate.
type gateFlags struct {
	runFlags
	base, head     string
	baseline       string
	aa             bool
	threshold      float64
	thresholdsFile string
	maxTrials      int
	junit          string

	overrides []gate.Threshold
	stored    *results.Record // the baseline
}

func newGate(stdout, stderr io.Writer) *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Fail when one build of a relay is slower than another: for CI",
		Long: `gate measures two builds of a relay, and fails when the second got worse: significantly, by more than a threshold, and again in a second run
of what became suspect. Where that cannot tell, it measures more trials of that alone, up to --max-trials.

With --base and --head both are booted in turn on this machine, interleaved in balanced order: the robust form, for pull requests.
With --baseline, head is held against a stored results.json of the same class of machine, whose settings it takes over. That is quicker and
weaker: the day and the machine's load count as changes too.

A relay is NAME=COMMAND, a bare COMMAND with {port} and {dir}, or a name of the catalog. A command may begin with variables for its
environment: DEBUG=1 /path/relay --port {port}.

Exit codes: 0 nothing got worse; 1 head failed or fell short of a required check, or the trials could not tell; 2 wrong usage;
3 head got worse; 4 not comparable: the baseline was measured otherwise, or base itself fell short of a required check.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.gate(cmd, stdout, stderr) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.base, "base", "", "the relay as it was; with --baseline, the name of the relay in that record")
	flags.StringVar(&f.head, "head", "", "the relay as it is to become")
	flags.StringVar(&f.baseline, "baseline", "", "a stored results.json (or a run's folder) to hold head against, instead of booting base")
	flags.BoolVar(&f.aa, "aa", false, "run base a second time beside itself, and hold no change within that noise against head")
	flags.Float64Var(&f.threshold, "threshold", 5, "by how many per cent a figure may get worse")
	flags.StringVar(&f.thresholdsFile, "thresholds", "", "TOML file with thresholds for single figures: \"query.* eose\" = 10")
	flags.IntVar(&f.maxTrials, "max-trials", gateMaxTrials, "trials of each relay that may be taken together to confirm what became suspect")
	flags.StringVar(&f.junit, "junit", "", "write the verdict to this file as JUnit XML")
	f.register(cmd)
	for name, value := range map[string]string{"trials": fmt.Sprint(gateTrials), "query-rounds": fmt.Sprint(gateQueryRounds)} {
		flag := flags.Lookup(name)
		flag.DefValue = value
		flag.Value.Set(value)
	}
	flags.Lookup("trials").Usage = "fresh boots of each relay, interleaved"
	flags.Lookup("only").Usage = "measure only these scenarios (default: " + strings.Join(gateScenarios, ",") + ")"
	return cmd
}

func (f *gateFlags) gate(cmd *cobra.Command, stdout, stderr io.Writer) error {
	ctx, flags := cmd.Context(), cmd.Flags()
	if err := f.understand(flags); err != nil {
		return err
	}
	// Set as if asked for: --quick must leave them alone (a quick gate does less in a trial; with
	// fewer trials it could not judge), and who repeats the run must know them.
	if err := apply(flags, map[string]string{"trials": fmt.Sprint(f.options.Trials), "only": strings.Join(gateScenarios, ",")}); err != nil {
		return err
	}
	f.quicken(flags)
	if err := flags.Set("query-rounds", fmt.Sprint(f.options.QueryRounds)); err != nil {
		return err
	}
	f.options.Seed = f.corpus.seed
	chosen, err := f.check(cmd)
	if err != nil {
		return err
	}
	figures := 0
	for _, key := range chosen {
		figures += gate.FiguresOf(key)
	}
	if need := gate.TrialsFor(figures); f.options.Trials < need {
		return usagef("--trials %d cannot judge %d figures together: give at least %d, or choose fewer scenarios with --only", f.options.Trials, figures, need)
	}
	switch {
	case !flags.Changed("max-trials"):
		f.maxTrials = max(f.maxTrials, f.options.Trials)
	case f.maxTrials < f.options.Trials || f.maxTrials > 1000:
		return usagef("--max-trials %d: give a number from --trials (%d) to 1000", f.maxTrials, f.options.Trials)
	}
	if err := writable(f.junit); err != nil {
		return usagef("--junit %s cannot be written: %w", f.junit, err)
	}
	contenders, o, err := f.contenders(ctx, stderr)
	if err != nil {
		return err
	}
	var may func(*results.Record) error
	if f.stored != nil {
		may = func(r *results.Record) error {
			fillIn(r.Options)
			if o.Base, err = gate.CheckBaseline(f.stored, f.base, r); err != nil {
				return refused(err)
			}
			if err := gate.BaselineDecides(f.stored, o.Base, chosen, f.options.Trials); err != nil {
				return &exitError{exitIncomparable, err}
			}
			return nil
		}
	}
	verdict, files, err := f.judge(ctx, stderr, flags, chosen, contenders, &o, may)
	if err != nil {
		return err
	}
	if err := f.publish(stdout, verdict, files); err != nil {
		return err
	}
	switch verdict.Result {
	case gate.Green:
		return nil
	case gate.Red:
		return &exitError{exitRegression, errors.New(verdict.Headline())}
	}
	return &exitError{exitFailed, errors.New(verdict.Headline())}
}

// judge measures, and measures again what became suspect until that is settled, or as many trials
// as it may. It returns the files that it wrote, the first run's first.
func (f *gateFlags) judge(ctx context.Context, stderr io.Writer, flags *pflag.FlagSet, chosen []string, contenders []harness.Target,
	o *gate.Options, may func(*results.Record) error) (*gate.Verdict, []string, error) {
	var files []string
	measured := func(chosen []string) (*results.Record, error) {
		r, out, err := f.measure(ctx, stderr, flags, chosen, contenders, may)
		if r == nil {
			return nil, err
		}
		md, file := filepath.Join(out, "report.md"), filepath.Join(out, "results.json")
		if err != nil {
			err = fmt.Errorf("%w: there is no verdict", err)
			if exists(file) {
				err = fmt.Errorf("%w; what was measured so far is in %s", err, file)
			}
		}
		files = append(files, file, md)
		return r, errors.Join(err, writeMarkdown(r, md))
	}
	r, err := measured(chosen)
	if err != nil {
		return nil, nil, err
	}
	verdict, err := gate.Judge(r, *o)
	if err != nil {
		return nil, nil, refused(err)
	}
	for trials := verdict.MoreTrials(); trials > 0; trials = verdict.MoreTrials() {
		suspects := verdict.Suspects()
		fmt.Fprintf(stderr, "measuring %d more trials of what may have got worse: %s\n", trials, strings.Join(suspects, ", "))
		again := slices.DeleteFunc(slices.Clone(chosen), func(key string) bool {
			return key != calibrate.Key && // which is of the machine as it is now
				!slices.ContainsFunc(suspects, func(suspect string) bool { return results.MatchScenario(key+".*", suspect) })
		})
		if only, ok := flags.Lookup("only").Value.(pflag.SliceValue); ok {
			if err := only.Replace(again); err != nil {
				return nil, nil, err
			}
		}
		if err := flags.Set("trials", fmt.Sprint(trials)); err != nil {
			return nil, nil, err
		}
		if r, err = measured(again); err != nil {
			return nil, nil, err
		}
		if err := verdict.Confirm(r); err != nil {
			return nil, nil, refused(err)
		}
	}
	return verdict, files, nil
}

// refused gives what cannot be compared its exit code.
func refused(err error) error {
	incomparable, base := (*compare.IncomparableError)(nil), (*gate.BaselineError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &incomparable), errors.As(err, &base):
		return &exitError{exitIncomparable, err}
	}
	return &exitError{exitUsage, err}
}

// understand reads what the gate's own flags name, and takes over a baseline's settings.
func (f *gateFlags) understand(flags *pflag.FlagSet) error {
	switch {
	case f.head == "":
		return usagef("gate wants --head 'COMMAND --port {port} --db {dir}', the relay to judge")
	case f.base == "" && f.baseline == "":
		return usagef("gate wants --base, the relay to compare with, or --baseline, a stored results.json")
	case f.baseline != "" && f.aa:
		return usagef("--aa runs base beside itself, and with --baseline no base is run; give --base a command instead")
	case !(f.threshold >= 0 && f.threshold <= 10_000):
		return usagef("--threshold %v: give per cent, a number from 0", f.threshold)
	}
	if f.thresholdsFile != "" {
		text, err := os.ReadFile(f.thresholdsFile)
		if err != nil {
			return usagef("--thresholds: %w", err)
		}
		if f.overrides, err = gate.ParseThresholds(string(text)); err != nil {
			return usagef("--thresholds %s: %w", f.thresholdsFile, err)
		}
	}
	if f.baseline == "" {
		return nil
	}
	files, err := resultsIn(f.baseline)
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return usagef("--baseline %s holds %d results; name one of them", f.baseline, len(files))
	}
	if f.stored, err = readResults(files[0]); err != nil {
		return usagef("--baseline: %w", err)
	}
	return f.adopt(flags)
}

// adopt takes over the settings of the baseline that were not set otherwise, so that what is
// measured now compares with it.
func (f *gateFlags) adopt(flags *pflag.FlagSet) error {
	keep := []string{"trials", "only", "skip", "quick", "corpus", "args", "timeout", "ready-timeout", "stop-grace"}
	var err error
	flags.VisitAll(func(flag *pflag.Flag) {
		value, ok := f.stored.Options[flag.Name]
		if !ok || err != nil || flag.Changed || slices.Contains(keep, flag.Name) || slices.Contains(private, flag.Name) {
			return
		}
		text := fmt.Sprint(value)
		if number, isNumber := value.(float64); isNumber {
			text = fmt.Sprintf("%.0f", number)
		}
		if text == flag.Value.String() {
			return
		}
		if flag.Name == "events" && (f.stored.Options["real"] == true || f.stored.Options["corpus"] != nil) {
			return // it sizes synthetic corpora alone
		}
		if setErr := flags.Set(flag.Name, text); setErr != nil {
			err = usagef("the baseline's --%s %s: %w", flag.Name, text, setErr)
		}
	})
	return err
}

// contenders makes the relays of the gate, and says what is to be judged.
func (f *gateFlags) contenders(ctx context.Context, stderr io.Writer) ([]harness.Target, gate.Options, error) {
	o := gate.Options{Baseline: f.stored, Threshold: f.threshold / 100, Overrides: f.overrides, MaxTrials: f.maxTrials}
	head, err := f.contender("--head", f.head, "head")
	if err != nil {
		return nil, o, err
	}
	all := []harness.Target{head}
	if f.stored == nil {
		base, err := f.contender("--base", f.base, "base")
		if err != nil {
			return nil, o, err
		}
		if base.Definition.Name == head.Definition.Name {
			name := base.Definition.Name
			rename(&base, short(name)+"-base")
			rename(&head, short(name)+"-head")
		}
		all = []harness.Target{base, head}
		if f.aa {
			again := base
			rename(&again, short(base.Definition.Name)+"-again")
			o.Again = again.Definition.Name
			all = []harness.Target{base, again, head}
		}
		o.Base = base.Definition.Name
	}
	o.Head = head.Definition.Name
	fmt.Fprintln(stderr, "relays:")
	for _, c := range all {
		fmt.Fprintf(stderr, "  %-16s %s\n", c.Definition.Name, visible(c.Program))
	}
	return all, o, nil
}

// short leaves room for a suffix in a relay's name.
func short(name string) string { return name[:min(len(name), 26)] }

// rename gives a contender another name, without touching who else has its definition.
func rename(c *harness.Target, name string) {
	d := *c.Definition
	d.Name = name
	c.Definition = &d
}

// contender reads one of --base and --head.
func (f *gateFlags) contender(flag, text, name string) (c harness.Target, err error) {
	catalog, err := f.relays.catalog()
	if err != nil {
		return c, err
	}
	if c, err = f.relays.one(catalog, flag, text, name); err == nil && c.Definition.External() {
		err = usagef("%s %s: a gate boots a fresh relay for each trial, and cannot use one that runs already", flag, text)
	}
	return c, err
}

// publish writes the verdict everywhere it belongs: to stdout, beside the results, into GitHub's
// summary of the job, and as JUnit XML.
func (f *gateFlags) publish(stdout io.Writer, v *gate.Verdict, files []string) error {
	var md bytes.Buffer
	if err := v.Document().Markdown(&md); err != nil {
		return err
	}
	beside := filepath.Join(filepath.Dir(files[0]), "gate.md")
	errs := []error{writeWhole(beside, md.Bytes())}
	if path := os.Getenv("GITHUB_STEP_SUMMARY"); path != "" {
		errs = append(errs, appendTo(path, md.Bytes()))
	}
	if f.junit != "" {
		var junit bytes.Buffer
		errs = append(errs, v.JUnit(&junit))
		errs = append(errs, os.WriteFile(f.junit, junit.Bytes(), 0o644))
	}
	o := terminalOptions(stdout)
	o.Files = existing(append(files, beside)...)
	if err := errors.Join(append(errs, v.Document().Terminal(stdout, o))...); err != nil {
		return fmt.Errorf("writing the verdict (%s): %w", v.Headline(), err)
	}
	return nil
}

// writable tells why a file could not be written, without touching what it holds; nil if it can,
// and for "".
func writable(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("it is a folder; name a file")
	case err == nil && !info.Mode().IsRegular():
		return nil // a pipe or a device, which opening might wait for
	case err == nil:
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return file.Close()
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".relaybench-*")
	if err != nil {
		return fmt.Errorf("no file can be made in its folder: %w", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// appendTo adds text to a file that others write to as well.
func appendTo(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Close())
}
