package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"relaybench/harness"
	"relaybench/harness/calibrate"
	"relaybench/report/gate"
	"relaybench/results"
)

// gateScenarios are what a gate measures where nothing else is asked for: ingest, storage, and
// three queries that are answered from indexes of different kinds. All of it takes a few seconds a
// trial.
const gateScenarios = "ingest.throughput,ingest.visibility,query.firehose,query.follow-feed,query.thread,storage"

func newGate(f *runFlags) *cobra.Command {
	return f.command(ofGate, &cobra.Command{
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
	}, f.gate)
}

func (f *runFlags) gate(ctx context.Context, _ []string) error {
	if err := f.understandGate(); err != nil {
		return err
	}
	// Set as if asked for: --quick must leave them alone (a quick gate does less in a trial; with
	// fewer trials it could not judge), and who repeats the run must know them.
	f.presets = map[string]string{"trials": fmt.Sprint(f.options.Trials), "only": gateScenarios}
	chosen, err := f.check()
	if err != nil {
		return err
	}
	if err := f.flags.Set("query-rounds", fmt.Sprint(f.options.QueryRounds)); err != nil {
		return err
	}
	figures := 0
	for _, key := range chosen {
		figures += gate.FiguresOf(key)
	}
	j, trials := &f.judged, f.options.Trials
	if need := gate.TrialsFor(figures); trials < need {
		return usagef("--trials %d cannot judge %d figures together: give at least %d, or choose fewer scenarios with --only", trials, figures, need)
	}
	switch {
	case !f.flags.Changed("max-trials"):
		j.MaxTrials = max(j.MaxTrials, trials)
	case j.MaxTrials < trials || j.MaxTrials > 1000:
		return usagef("--max-trials %d: give a number from --trials (%d) to 1000", j.MaxTrials, trials)
	}
	contenders, err := f.rivals()
	if err != nil {
		return err
	}
	junit, done, err := openOutput("junit", f.junit)
	if err != nil {
		return err
	}
	defer done()
	if j.Baseline != nil {
		f.may = func(r *results.Record) error {
			fillIn(r.Options)
			if j.Base, err = gate.CheckBaseline(j.Baseline, f.base, r); err != nil {
				return usagef("%w", err)
			}
			if err := gate.BaselineDecides(j.Baseline, j.Base, chosen, trials); err != nil {
				return &exitError{exitIncomparable, err}
			}
			return nil
		}
	}
	verdict, files, err := f.judge(ctx, chosen, contenders)
	if err != nil {
		return err
	}
	if err := f.publish(verdict, files, junit); err != nil {
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
func (f *runFlags) judge(ctx context.Context, chosen []string, contenders []harness.Target) (*gate.Verdict, []string, error) {
	var files []string
	measured := func(chosen []string) (*results.Record, error) {
		r, out, err := f.measure(ctx, chosen, contenders)
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
	verdict, err := gate.Judge(r, f.judged)
	if err != nil {
		return nil, nil, usagef("%w", err)
	}
	for trials := verdict.MoreTrials(); trials > 0; trials = verdict.MoreTrials() {
		suspects := verdict.Suspects()
		fmt.Fprintf(f.stderr, "measuring %d more trials of what may have got worse: %s\n", trials, strings.Join(suspects, ", "))
		again := slices.DeleteFunc(slices.Clone(chosen), func(key string) bool {
			return key != calibrate.Key && // which is of the machine as it is now
				!slices.ContainsFunc(suspects, func(suspect string) bool { return results.MatchScenario(key+".*", suspect) })
		})
		f.only, f.options.Trials = again, trials
		if r, err = measured(again); err != nil {
			return nil, nil, err
		}
		if err := verdict.Confirm(r); err != nil {
			return nil, nil, usagef("%w", err)
		}
	}
	return verdict, files, nil
}

// understandGate reads what the gate's own flags name, and takes over a baseline's settings.
func (f *runFlags) understandGate() (err error) {
	j := &f.judged
	switch {
	case f.head == "":
		return usagef("gate wants --head 'COMMAND --port {port} --db {dir}', the relay to judge")
	case f.base == "" && f.baseline == "":
		return usagef("gate wants --base, the relay to compare with, or --baseline, a stored results.json")
	case f.baseline != "" && f.again:
		return usagef("--aa runs base beside itself, and with --baseline no base is run; give --base a command instead")
	case !(f.threshold >= 0 && f.threshold <= 10_000):
		return usagef("--threshold %v: give per cent, a number from 0", f.threshold)
	}
	if j.Threshold = f.threshold / 100; f.thresholds != "" {
		text, err := os.ReadFile(f.thresholds)
		if err != nil {
			return usagef("--thresholds: %w", err)
		}
		if j.Overrides, err = gate.ParseThresholds(string(text)); err != nil {
			return usagef("--thresholds %s: %w", f.thresholds, err)
		}
	}
	if f.baseline == "" {
		return nil
	}
	file, err := oneResult(f.baseline)
	if err != nil {
		return err
	}
	if j.Baseline, err = readResults(file); err != nil {
		return usagef("--baseline: %w", err)
	}
	return f.adopt(j.Baseline.Options)
}

// adopt takes over the settings of the baseline that were not set otherwise, so that what is
// measured now compares with it.
func (f *runFlags) adopt(options map[string]any) (err error) {
	keep := append([]string{"trials", "only", "skip", "quick", "corpus", "args", "timeout", "ready-timeout", "stop-grace"}, private...)
	f.flags.VisitAll(func(flag *pflag.Flag) {
		value, ok := options[flag.Name]
		if !ok || err != nil || flag.Changed || slices.Contains(keep, flag.Name) {
			return
		}
		text := fmt.Sprint(value)
		if number, isNumber := value.(float64); isNumber {
			text = fmt.Sprintf("%.0f", number)
		}
		if text == flag.Value.String() || flag.Name == "events" && (options["real"] == true || options["corpus"] != nil) {
			return // it sizes synthetic corpora alone
		}
		if setErr := f.flags.Set(flag.Name, text); setErr != nil {
			err = usagef("the baseline's --%s %s: %w", flag.Name, text, setErr)
		}
	})
	return err
}

// rivals makes the relays of the gate, and says what is to be judged.
func (f *runFlags) rivals() (all []harness.Target, err error) {
	j, read := &f.judged, func(flag, text, name string) harness.Target {
		c, oneErr := f.one(flag, text, name)
		if oneErr == nil && c.Definition.External() {
			oneErr = usagef("%s %s: a gate boots a fresh relay for each trial, and cannot use one that runs already", flag, text)
		}
		err = cmp.Or(err, oneErr)
		return c
	}
	head := read("--head", f.head, "head")
	all = []harness.Target{head}
	if j.Baseline == nil {
		base := read("--base", f.base, "base")
		if err != nil {
			return nil, err
		}
		name := base.Definition.Name
		short := name[:min(len(name), 26)] // which leaves room for a suffix
		if name == head.Definition.Name {
			base.Definition.Name, head.Definition.Name = short+"-base", short+"-head"
		}
		j.Base, all = base.Definition.Name, []harness.Target{base, head}
		if f.again {
			d := *base.Definition
			d.Name = j.Base[:min(len(j.Base), 26)] + "-again"
			j.Again, all = d.Name, []harness.Target{base, {Definition: &d, Program: base.Program}, head}
		}
	}
	if err != nil {
		return nil, err
	}
	j.Head = head.Definition.Name
	fmt.Fprintln(f.stderr, "relays:")
	for _, c := range all {
		fmt.Fprintf(f.stderr, "  %-16s %s\n", c.Definition.Name, visible(c.Program))
	}
	return all, nil
}

// publish writes the verdict everywhere it belongs: to stdout, beside the results, into GitHub's
// summary of the job, and as JUnit XML.
func (f *runFlags) publish(v *gate.Verdict, files []string, junit *os.File) error {
	var md bytes.Buffer
	if err := v.Document().Markdown(&md); err != nil {
		return err
	}
	beside := filepath.Join(filepath.Dir(files[0]), "gate.md")
	errs := []error{writeWhole(beside, md.Bytes())}
	if path := os.Getenv("GITHUB_STEP_SUMMARY"); path != "" {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) // others write to it as well
		if err == nil {
			_, err = fmt.Fprintf(file, "%s\n", md.Bytes())
			err = errors.Join(err, file.Close())
		}
		errs = append(errs, err)
	}
	if junit != nil {
		_ = junit.Truncate(0) // a pipe cannot be
		errs = append(errs, v.JUnit(junit))
	}
	o := terminalOptions(f.stdout)
	o.Files = existing(append(files, beside)...)
	if err := errors.Join(append(errs, v.Document().Terminal(f.stdout, o))...); err != nil {
		return fmt.Errorf("writing the verdict (%s): %w", v.Headline(), err)
	}
	return nil
}
