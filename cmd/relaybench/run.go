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
	"time"

	"github.com/spf13/cobra"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/calibrate"
	"relaybench/relays"
	"relaybench/relays/machine"
	"relaybench/report"
	"relaybench/results"
	"relaybench/scenarios"
)

// What --seed-by takes.
const (
	seedByPublish = "publish"
	seedByImport  = "import"
)

func newRun(f *runFlags) *cobra.Command {
	f.reconcile.Signed = true // whoever takes part
	return f.command(ofRun, &cobra.Command{Use: "run", Short: "Measure every relay on this machine, and those added with --relay"}, f.start)
}

// start runs what the flags ask for on the relays that are found and added.
func (f *runFlags) start(ctx context.Context, _ []string) error {
	chosen, err := f.check()
	if err != nil {
		return err
	}
	fmt.Fprintln(f.stderr, "relays:")
	contenders, err := f.contenders(ctx, f.stderr)
	if err != nil {
		return err
	}
	return f.run(ctx, chosen, contenders)
}

// check sets what was not asked for, refuses what cannot be meant together, and returns the keys of
// what is chosen.
func (f *runFlags) check() ([]string, error) {
	if err := f.preset(); err != nil {
		return nil, err
	}
	f.quicken()
	err := cmp.Or(f.possible(), f.checkCorpus(), f.readSizes())
	if err != nil {
		return nil, err
	}
	o := &f.options
	if n := o.Publishers * o.Window; n > 1_000_000 {
		return nil, usagef("--publishers %d with --window %d: %d events in flight; keep the product within 1,000,000", o.Publishers, o.Window, n)
	}
	if n := o.QueryConns * o.QueryRounds; n > 20_000 {
		return nil, usagef("--query-conns %d with --query-rounds %d: %d questions a query; keep the product within 20,000", o.QueryConns, o.QueryRounds, n)
	}
	if f.verb != ofProbe { // which boots nothing
		if err := (machine.System{}).Allows(max(o.Publishers, o.QueryConns)); err != nil {
			return nil, usagef("%w", err)
		}
	}
	if f.fetches.Filter, err = corpus.ParseFilter([]byte(f.filter)); err != nil {
		return nil, usagef("--filter %s: %w", f.filter, err)
	}
	if f.fetches.Filter.Limit != nil {
		return nil, usagef("--filter %s: leave the limit out; --cell-events N takes so many", f.filter)
	}
	if f.verb != ofFetch && f.flags.Changed("cell-time") {
		o.CellTime = f.fetches.Time
	}
	chosen, err := f.choose()
	if err != nil {
		return nil, usagef("%w; %sthe keys are: %s", err, f.relayHint(), strings.Join(f.scenarioKeys(), ", "))
	}
	if len(chosen) == 0 {
		return nil, usagef("--only and --skip leave no scenario to run")
	}
	return chosen, nil
}

// relayHint says how to choose relays where a pattern for scenarios names one.
func (f *runFlags) relayHint() string {
	catalog, _ := f.catalog()
	for _, name := range slices.Concat(f.only, f.skip) {
		if indexOf(catalog, name) >= 0 {
			return fmt.Sprintf("%s is a relay, which %s=1 in the environment leaves out and --relay %s adds; ", name, relays.SkipVariable(name), name)
		}
	}
	return ""
}

// choose returns the keys that --only and --skip leave, in the order of the run; nothing where that
// is no scenario. Calibration and preflight are left out only by --skip: they are cheap beside any
// scenario, and without them a relay that takes forged events would be ranked, or the harness
// itself.
func (f *runFlags) choose() ([]string, error) {
	only := f.only
	for family, asked := range map[string]bool{scenarios.SyncFamily: f.sync, scenarios.FetchFamily: f.fetch && f.verb != ofFetch} {
		if len(f.only) > 0 && asked {
			only = append(slices.Clip(only), family)
		}
	}
	keys := f.scenarioKeys()
	chosen, err := harness.Select(keys, only, f.skip)
	if chosen = slices.DeleteFunc(chosen, f.unasked); err != nil || len(chosen) == 0 {
		return nil, err
	}
	stages, err := harness.Select(keys, nil, f.skip)
	stages = slices.DeleteFunc(stages, func(key string) bool { return !isStage(key) })
	return append(stages, slices.DeleteFunc(chosen, isStage)...), err
}

// unasked tells whether a scenario is left out because nobody asked for it: fetching, syncing and
// reconciling in layers take their time.
func (f *runFlags) unasked(key string) bool {
	switch family, mode, _ := strings.Cut(key, "."); family {
	case scenarios.FetchFamily, scenarios.ReconcileFamily:
		return !(f.fetch && family == scenarios.FetchFamily) && !slices.ContainsFunc(f.only, func(p string) bool { return strings.HasPrefix(p, family) })
	case scenarios.SyncFamily:
		return !f.sync && len(f.only) == 0 || len(f.syncModes) > 0 && !slices.Contains(f.syncModes, mode)
	}
	return false
}

// isStage tells whether a key is none of a scenario, but of what comes before all of them.
func isStage(key string) bool { return key == calibrate.Key || key == harness.Preflight }

// allScenarios lists the scenarios of a run, in the order in which they run on a relay.
func (f *runFlags) allScenarios() []harness.Scenario {
	all := append([]harness.Scenario{scenarios.Visibility{}, scenarios.Paced{}, scenarios.Throughput{}}, scenarios.Queries()...)
	all = append(append(all, scenarios.Counts()...), scenarios.Storage{})
	if len(f.only) > 0 || f.seedBy == seedByImport { // where it may be named, or is asked for
		all = append(all, scenarios.Import{})
	}
	fetches := f.fetches
	fetches.Page, fetches.Full = f.page, f.matrix == "full"
	all = append(append(all, scenarios.Fetches(fetches)...), scenarios.Crash{}, scenarios.Negentropy{Scattered: f.scattered})
	all = append(all, (&scenarios.Sync{Direction: relays.Direction(f.direction), Page: f.page}).Scenarios()...)
	if f.verb == ofProbe { // of relays that are somebody's, which run would publish to
		all = append(all, &scenarios.Probe{ProbeOptions: f.probe})
	}
	return append(all, scenarios.Reconciles(f.reconcile)...)
}

// scenarioKeys are the keys that --only and --skip choose from.
func (f *runFlags) scenarioKeys() []string {
	keys := []string{calibrate.Key, harness.Preflight}
	for _, s := range f.allScenarios() {
		keys = append(keys, s.Describe().Key)
	}
	return slices.Compact(keys)
}

// run measures, and tells of it. See measure.
func (f *runFlags) run(ctx context.Context, chosen []string, contenders []harness.Target) error {
	final, out, err := f.measure(ctx, chosen, contenders)
	if final == nil {
		return err
	}
	if f.record != nil {
		err = cmp.Or(err, writeJSON(f.record, final))
	}
	if err := cmp.Or(err, f.render(final, out)); err != nil {
		return err
	}
	return verdict(final)
}

// measure carries out the chosen scenarios on the contenders, and returns the record and the folder
// that holds it. It returns a record with an error when the run ended early, and none when nothing
// was measured. Before anything is, f.may sees the record with the corpus, the machine and the
// settings.
func (f *runFlags) measure(ctx context.Context, chosen []string, contenders []harness.Target) (final *results.Record, out string, err error) {
	started := time.Now().UTC()
	loadBefore := harness.LoadAverage(ctx) // before making a corpus adds to it
	for _, c := range contenders {
		if ok, why := c.Definition.Accepts(f.rules.MaxEventBytes); !ok {
			fmt.Fprintf(f.stderr, "  %-16s beware: %s\n", c.Definition.Name, visible(why))
		}
		if f.ready > 0 {
			c.Definition.ReadyTimeout = relays.Duration(f.ready)
		}
	}
	if f.verb != ofCalibrate {
		if out, err = f.openResults(started); err != nil {
			return nil, "", err
		}
		defer os.Remove(out) // where nothing was measured, and it is empty
	}
	work, err := relays.OpenWork(f.work, f.keepData)
	if err != nil {
		return nil, "", err
	}
	if f.work != "" {
		f.rules.Spill = work
	}
	defer func() {
		if err = errors.Join(err, relays.CloseWork(work)); f.keepData {
			fmt.Fprintf(f.stderr, "the relays' data is kept in %s\n", work)
		}
	}()
	w := newWatcher(f.stderr)
	runner := harness.Runner{Targets: contenders, Now: started.Unix(), Options: f.options, Observer: w, Preflight: slices.Contains(chosen, harness.Preflight), ReadOnly: f.readOnly,
		Scenarios: slices.DeleteFunc(f.allScenarios(), func(s harness.Scenario) bool { return !slices.Contains(chosen, s.Describe().Key) }),
		Settings:  relays.Settings{WorkDir: work, MaxEventBytes: f.rules.MaxEventBytes, MaxTags: f.rules.MaxTags, KeepData: f.keepData, StopGrace: f.grace}}
	if f.seedBy == seedByImport {
		runner.Seeder = scenarios.Import{}
	}
	record := &results.Record{Schema: results.Schema, Partial: true, StartedAt: started, Tool: harness.Tool()}
	if record.Corpus, err = f.replay(ctx, w, &runner); err != nil {
		return nil, "", err
	}
	if runner.Corpus != nil {
		defer runner.Corpus.Close()
	}
	copies := runner.Copies()
	if copies > 0 && slices.Contains(chosen, (scenarios.Import{}).Describe().Key) {
		copies++ // what its command reads
	}
	if beware, err := (machine.System{}).Holds(work, record.Corpus, copies); err != nil {
		return nil, "", usagef("%w", err)
	} else if beware != "" {
		fmt.Fprintln(f.stderr, "beware: "+beware)
	}
	record.Environment, record.Options = harness.Environment(ctx, work), publicFlags(f.flags)
	record.Environment.LoadBefore = loadBefore
	if f.pin {
		undo, err := harness.Pin(&record.Environment, &runner.Settings)
		if err != nil {
			return nil, "", usagef("--pin: %w", err)
		}
		defer undo()
	}
	record.Options["args"] = f.repeatable(ctx, contenders, runner.Settings)
	if f.may != nil {
		if err := f.may(record); err != nil {
			return nil, "", err
		}
	}
	save := func(*results.Record) error { return nil }
	if f.verb != ofCalibrate {
		file := filepath.Join(out, "results.json")
		save = func(r *results.Record) error { return r.Write(file) }
		written.Store(&file)
	}
	runner.Recorder = results.NewRecorder(record, save)
	f.unsaved, err = runner.Measure(ctx, func(after bool) error {
		if !slices.Contains(chosen, calibrate.Key) {
			return nil
		}
		return f.calibrate(ctx, w, &runner, after)
	})
	w.wait(err == nil)
	snapshot := runner.Recorder.Snapshot()
	return &snapshot, out, err
}

// replay gives the runner the corpus with its model, and describes it.
func (f *runFlags) replay(ctx context.Context, w *watcher, r *harness.Runner) (results.Corpus, error) {
	if f.blind != "" {
		return noCorpus(f.blind), nil
	}
	c, err := f.load(ctx, w)
	w.wait(err == nil)
	if err != nil {
		return results.Corpus{}, err
	}
	if r.Model, err = model.New(c, nil, r.Now); err != nil {
		c.Close()
		return results.Corpus{}, fmt.Errorf("computing what a compliant relay holds: %w; check the corpus with relaybench corpus verify %s", err, c.Dir())
	}
	r.Corpus = c
	m := c.Manifest()
	return results.Corpus{Source: m.Source, Fingerprint: m.Fingerprint, Events: m.Events, Bytes: m.Bytes, Kinds: m.Kinds, Dropped: m.Dropped}, nil
}

// verdict turns a finished run into its exit code and one sentence; the report says the rest.
func verdict(r *results.Record) error {
	trouble, shortages := report.Trouble(r), report.Shortages(r)
	code := exitFailed
	if len(trouble) == 0 {
		code = exitUsage // no relay failed: this machine cannot do what was asked of it
	}
	if all := append(shortages, trouble...); len(all) > 0 {
		return &exitError{code, errors.New(strings.Join(all, "\n"))}
	}
	return nil
}

// render writes the reports of a record beside it, and the terminal's to stdout.
func (f *runFlags) render(r *results.Record, out string) error {
	mdErr := writeMarkdown(r, filepath.Join(out, "report.md"))
	if f.record == f.stdout {
		return mdErr
	}
	o := terminalOptions(f.stdout)
	o.Files = existing(filepath.Join(out, "results.json"), filepath.Join(out, "report.md"))
	o.Earlier = f.unsaved && len(o.Files) > 0 && filepath.Base(o.Files[0]) == "results.json"
	if err := report.Terminal(f.stdout, r, o); err != nil {
		return errors.Join(mdErr, fmt.Errorf("writing the report: %w", err))
	}
	return mdErr
}

// writeMarkdown leaves either the whole report or none.
func writeMarkdown(r *results.Record, path string) error {
	var text bytes.Buffer
	err := report.Markdown(&text, r)
	if err == nil {
		err = writeWhole(path, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("writing the Markdown report: %w", err)
	}
	return nil
}
