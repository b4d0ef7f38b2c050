package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// runFlags are the flags of run.
type runFlags struct {
	corpus     corpusFlags
	relays     relayFlags
	options    harness.Options
	ready      time.Duration
	grace      time.Duration // from a relay's stop signal to SIGKILL
	quick      bool
	scattered  bool
	only, skip []string
	pin        bool
	seedBy     string // publish or import
	sync       syncFlags
	fetch      fetchFlags
	reconcile  reconcileFlags
	probe      probeFlags
	blind      string    // why there is no corpus
	readOnly   bool      // the relays are somebody's: nothing is published to them
	record     io.Writer // where the record goes as well; stdout: in place of the report
	out, work  string
	keepData   bool
	unsaved    bool // results.json holds an earlier state than the record
}

func newRun(stdout, stderr io.Writer) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Measure every relay on this machine, and those added with --relay",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.start(cmd, stdout, stderr)
		},
	}
	f.register(cmd)
	f.registerSeed(cmd)
	f.registerRelays(cmd)
	f.sync.register(cmd)
	f.fetch.register(cmd)
	f.reconcile.register(cmd)
	f.reconcile.options.Signed = true // whoever takes part
	cmd.Flags().Lookup("page").Usage = "events asked for at a time in sync's mode req, and in the pages of --fetch, or as many as the relay says that it sends at once (NIP-11); the same as fetch's --page"
	cmd.Flags().Lookup("cell-time").Usage = "cut each way to fetch after so long, and where it is given also each sync and import (0: ended once they take far longer than whatever was measured before them)"
	cmd.Flags().BoolVar(&f.fetch.on, "fetch", false, "also measure how a client downloads from each relay, as the verb fetch does alone")
	cmd.Flags().BoolVar(&f.sync.on, "sync", false, "also measure how each relay fills each other, as the verb sync does alone")
	return cmd
}

// start checks the flags and runs what they ask for.
func (f *runFlags) start(cmd *cobra.Command, stdout, stderr io.Writer) error {
	f.quicken(cmd.Flags())
	f.options.Seed = f.corpus.seed
	chosen, err := f.check(cmd)
	if err != nil {
		return err
	}
	fmt.Fprintln(stderr, "relays:")
	contenders, err := f.relays.contenders(cmd.Context(), stderr)
	if err != nil {
		return err
	}
	return f.run(cmd.Context(), stdout, stderr, cmd.Flags(), chosen, contenders, nil)
}

// registerRelays adds the flags that name relays beside those that were found.
func (f *runFlags) registerRelays(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.relays.extra, "relay", nil, "add a `RELAY`: NAME=COMMAND with {port} and {dir}, NAME=ws://host:port, or a name of the catalog (repeatable)")
	flags.BoolVar(&f.relays.geodeNoIndex, "geode-no-search", false, "run geode without its full-text index")
}

// register adds the flags that say how to measure. The verbs run and gate share them.
func (f *runFlags) register(cmd *cobra.Command) {
	f.corpus.register(cmd)
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.options.Samples, "samples", 200, "events published one by one to measure visibility")
	flags.IntVar(&f.options.Publishers, "publishers", 4, "connections that publish")
	flags.IntVar(&f.options.Window, "window", 200, "unacknowledged events on each of them")
	flags.IntVar(&f.options.Rate, "rate", 500, "events per second, over those connections together, that ingest.paced publishes on a schedule")
	flags.IntVar(&f.options.QueryRounds, "query-rounds", 10, "timed repetitions of each query on one connection")
	flags.IntVar(&f.options.QueryConns, "query-conns", 8, "connections that ask at once")
	flags.IntVar(&f.options.Trials, "trials", 3, "fresh boots of each relay, interleaved over the relays (1 with --quick)")
	flags.DurationVar(&f.options.Stall, "timeout", 30*time.Second, "give up on a relay that makes no progress for so long")
	flags.DurationVar(&f.ready, "ready-timeout", 0, "how long a relay may take to become ready (default: what its definition says, 30s)")
	flags.DurationVar(&f.grace, "stop-grace", 0, "how long a relay may take to end after its stop signal, before it is killed (default: what its definition says, 10s)")
	flags.BoolVar(&f.quick, "quick", false, "a short run: 2,000 events (synthetic or downloaded), 50 samples, 3 query rounds on 4 connections, 1 trial, where not set otherwise")
	flags.StringVar(&f.relays.dir, "relays-dir", "", "folder with relay definitions of your own (TOML)")
	flags.StringVar(&f.relays.geodeBin, "geode-bin", "", "geode's program (as $GEODE_BIN)")
	flags.StringVar(&f.relays.strfryBin, "strfry-bin", "", "strfry's program (as $STRFRY_BIN)")
	flags.StringSliceVar(&f.only, "only", nil, "run only these scenarios: keys or globs, query.thread.* (repeatable, comma-separated)")
	flags.StringSliceVar(&f.skip, "skip", nil, "leave out these scenarios: keys or globs")
	flags.BoolVar(&f.scattered, "neg-scattered", false, "also reconcile (NIP-77) with one event in a hundred missing at random, the algorithm's worst case")
	flags.BoolVar(&f.pin, "pin", false, "keep relaybench and the relay on processor cores of their own, half of them each (Linux, two cores or more)")
	flags.StringVar(&f.out, "out", "", "folder for results; each run makes a folder below it (default: $RELAYBENCH_RESULTS, or results)")
	flags.StringVar(&f.work, "work", "", "folder for the relays' data while they run, and for sorting a large corpus (default: the system's temporary folder, and beside the corpus)")
	flags.BoolVar(&f.keepData, "keep-data", false, "keep the relays' data folders and say where they are")
}

// quickEvents is how many events --quick takes.
const quickEvents = 2000

// quicken lowers what --quick lowers, where nothing else was asked for.
func (f *runFlags) quicken(flags *pflag.FlagSet) {
	if !f.quick {
		return
	}
	for name, lower := range map[string]func(){
		"events":       func() { f.corpus.events = quickEvents },
		"samples":      func() { f.options.Samples = 50 },
		"query-rounds": func() { f.options.QueryRounds = 3 },
		"query-conns":  func() { f.options.QueryConns = 4 },
		"trials":       func() { f.options.Trials = 1 },
		"limit": func() {
			if f.corpus.downloads.urls != "" {
				f.corpus.prepare.Limit = quickEvents
			}
		},
	} {
		if !flags.Changed(name) {
			lower()
		}
	}
}

// check refuses what cannot be meant, and returns the keys of what is chosen.
func (f *runFlags) check(cmd *cobra.Command) ([]string, error) {
	if err := f.corpus.check(cmd); err != nil {
		return nil, err
	}
	for _, n := range []struct {
		flag        string
		value, most int
	}{
		{"samples", f.options.Samples, 1_000_000},
		{"publishers", f.options.Publishers, 1024},
		{"window", f.options.Window, 100_000},
		{"rate", f.options.Rate, 100_000},
		{"query-rounds", f.options.QueryRounds, 100_000},
		{"query-conns", f.options.QueryConns, 1024},
		{"trials", f.options.Trials, 1000},
	} {
		if n.value < 1 || n.value > n.most {
			return nil, usagef("--%s %d: give a number from 1 to %d", n.flag, n.value, n.most)
		}
	}
	if n := f.options.Publishers * f.options.Window; n > 1_000_000 {
		return nil, usagef("--publishers %d with --window %d: %d events in flight; keep the product within 1,000,000", f.options.Publishers, f.options.Window, n)
	}
	if n := f.options.QueryConns * f.options.QueryRounds; n > 20_000 {
		return nil, usagef("--query-conns %d with --query-rounds %d: %d questions a query; keep the product within 20,000", f.options.QueryConns, f.options.QueryRounds, n)
	}
	if err := checkLimits(max(f.options.Publishers, f.options.QueryConns)); err != nil {
		return nil, err
	}
	if err := f.checkSeed(); err != nil {
		return nil, err
	}
	if err := f.sync.check(cmd.Flags()); err != nil {
		return nil, err
	}
	if err := f.fetch.check(cmd.Flags()); err != nil {
		return nil, err
	}
	if err := f.reconcile.check(cmd.Flags()); err != nil {
		return nil, err
	}
	if f.fetch.target == "" && cmd.Flags().Changed("cell-time") {
		f.options.CellTime = f.fetch.time
	}
	if f.ready < 0 {
		return nil, usagef("--ready-timeout %v: give a duration from 0", f.ready)
	}
	if f.grace < 0 || f.grace > time.Hour {
		return nil, usagef("--stop-grace %v: give a duration up to 1h, or 0 for what the relay's definition says", f.grace)
	}
	if f.options.Stall < 100*time.Millisecond {
		return nil, usagef("--timeout %v: give at least 100ms", f.options.Stall)
	}
	if f.pin {
		if _, err := machine.Divide(); err != nil {
			return nil, usagef("--pin: %w", err)
		}
	}
	chosen, err := f.choose()
	if err != nil {
		return nil, usagef("%w; the keys are: %s", err, strings.Join(f.scenarioKeys(), ", "))
	}
	if len(chosen) == 0 {
		return nil, usagef("--only and --skip leave no scenario to run")
	}
	return chosen, nil
}

// choose returns the keys that --only and --skip leave, in the order of the run; nothing where that
// is no scenario. Calibration and preflight are left out only by --skip: they are cheap beside any
// scenario, and without them a relay that takes forged events would be ranked, or the harness
// itself.
func (f *runFlags) choose() ([]string, error) {
	only := f.only
	if len(only) > 0 && f.sync.on {
		only = append(slices.Clone(only), scenarios.SyncFamily)
	}
	if len(only) > 0 && f.fetch.on && f.fetch.target == "" {
		only = append(slices.Clone(only), scenarios.FetchFamily)
	}
	chosen, err := harness.Select(f.scenarioKeys(), only, f.skip)
	if chosen = slices.DeleteFunc(chosen, f.unasked); err != nil || len(chosen) == 0 {
		return nil, err
	}
	stages, err := harness.Select(f.scenarioKeys(), nil, f.skip)
	if err != nil {
		return nil, err
	}
	stages = slices.DeleteFunc(stages, func(key string) bool { return !isStage(key) })
	return append(stages, slices.DeleteFunc(chosen, isStage)...), nil
}

// unasked tells whether a scenario is left out because nobody asked for it: fetching, syncing and
// reconciling in layers take their time.
func (f *runFlags) unasked(key string) bool {
	switch family, mode, _ := strings.Cut(key, "."); family {
	case scenarios.FetchFamily, scenarios.ReconcileFamily:
		return !(f.fetch.on && family == scenarios.FetchFamily) && !slices.ContainsFunc(f.only, func(p string) bool { return strings.HasPrefix(p, family) })
	case scenarios.SyncFamily:
		return !f.sync.on && len(f.only) == 0 || len(f.sync.modes) > 0 && !slices.Contains(f.sync.modes, mode)
	}
	return false
}

// isStage tells whether a key is none of a scenario, but of what comes before all of them.
func isStage(key string) bool { return key == calibrate.Key || key == harness.Preflight }

// allScenarios lists the scenarios of a run, in the order in which they run on a relay.
func (f *runFlags) allScenarios() []harness.Scenario {
	all := append([]harness.Scenario{scenarios.Visibility{}, scenarios.Paced{}, scenarios.Throughput{}}, scenarios.Queries()...)
	all = append(all, scenarios.Counts()...)
	all = append(all, scenarios.Storage{})
	if f.imports() {
		all = append(all, scenarios.Import{})
	}
	all = append(append(all, f.fetches()...), scenarios.Crash{}, scenarios.Negentropy{Scattered: f.scattered})
	all = append(all, (&scenarios.Sync{Direction: relays.Direction(f.sync.direction), Page: f.sync.page}).Scenarios()...)
	if f.probe.on { // of relays that are somebody's, which run would publish to
		all = append(all, &scenarios.Probe{ProbeOptions: f.probe.options})
	}
	return append(all, scenarios.Reconciles(f.reconcile.options)...)
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
func (f *runFlags) run(ctx context.Context, stdout, stderr io.Writer, flags *pflag.FlagSet, chosen []string, contenders []harness.Target, may func(*results.Record) error) error {
	final, out, err := f.measure(ctx, stderr, flags, chosen, contenders, may)
	if final == nil {
		return err
	}
	if f.record != nil {
		err = cmp.Or(err, writeRecord(f.record, final))
	}
	if err := cmp.Or(err, f.render(stdout, final, out)); err != nil {
		return err
	}
	return verdict(final)
}

// measure carries out the chosen scenarios on the contenders, and returns the record and the folder
// that holds it. It returns a record with an error when the run ended early, and none when nothing
// was measured. Before anything is, may (where it is not nil) sees the record with the corpus, the
// machine and the settings, and ends the run with an error.
func (f *runFlags) measure(ctx context.Context, stderr io.Writer, flags *pflag.FlagSet, chosen []string, contenders []harness.Target,
	may func(*results.Record) error) (final *results.Record, out string, err error) {
	started := time.Now().UTC()
	loadBefore := harness.LoadAverage(ctx) // before making a corpus adds to it
	w := newWatcher(stderr)
	measured := slices.DeleteFunc(f.allScenarios(), func(s harness.Scenario) bool { return !slices.Contains(chosen, s.Describe().Key) })
	inspect, measureHarness := slices.Contains(chosen, harness.Preflight), slices.Contains(chosen, calibrate.Key)
	for _, c := range contenders {
		if ok, why := c.Definition.Accepts(f.corpus.prepare.MaxEventBytes); !ok {
			fmt.Fprintf(stderr, "  %-16s beware: %s\n", c.Definition.Name, visible(why))
		}
	}
	if f.ready > 0 {
		for _, c := range contenders {
			c.Definition.ReadyTimeout = relays.Duration(f.ready)
		}
	}
	if out, err = f.openResults(started); err != nil {
		return nil, "", err
	}
	work, err := openWork(ctx, f.work)
	if err != nil {
		return nil, "", err
	}
	if f.work != "" {
		f.corpus.prepare.Spill = work
	}
	defer func() {
		if f.keepData {
			os.Remove(filepath.Join(work, lockName))
			fmt.Fprintf(stderr, "the relays' data is kept in %s\n", work)
			return
		}
		err = errors.Join(err, os.RemoveAll(work))
	}()

	var c *corpus.Corpus
	var expected *model.Model
	described := noCorpus(f.blind)
	if f.blind == "" {
		c, err = f.corpus.load(ctx, w)
		w.wait(err == nil)
		if err != nil {
			os.Remove(out) // nothing was measured: leave no empty folder
			return nil, "", err
		}
		defer c.Close()
		if expected, err = model.New(c, nil, started.Unix()); err != nil {
			return nil, "", fmt.Errorf("computing what a compliant relay holds: %w; check the corpus with relaybench corpus verify %s", err, c.Dir())
		}
		manifest := c.Manifest()
		described = results.Corpus{Source: manifest.Source, Fingerprint: manifest.Fingerprint, Events: manifest.Events,
			Bytes: manifest.Bytes, Kinds: manifest.Kinds, Dropped: manifest.Dropped}
	}

	held := 0 // relays with data at a time
	for _, c := range contenders {
		if !c.Definition.External() {
			held++
		}
	}
	switch {
	case f.keepData:
		held *= f.options.Trials
	case slices.ContainsFunc(measured, func(s harness.Scenario) bool { return s.Describe().Cast > harness.Single }):
		held = min(held, 2)
	default:
		held = min(held, 1)
	}
	if held > 0 && slices.Contains(chosen, scenarios.Import{}.Describe().Key) {
		held++ // what its command reads
	}
	if err := checkRoom(stderr, work, described, held); err != nil {
		os.Remove(out)
		return nil, "", err
	}
	settings := relays.Settings{WorkDir: work, MaxEventBytes: f.corpus.prepare.MaxEventBytes, MaxTags: f.corpus.prepare.MaxTags, KeepData: f.keepData,
		StopGrace: f.grace}
	environment := harness.Environment(ctx, work)
	environment.LoadBefore = loadBefore
	if f.pin {
		undo, err := pin(&environment, &settings)
		if err != nil {
			return nil, "", err
		}
		defer undo()
	}
	record := &results.Record{
		Schema: results.Schema, Partial: true, StartedAt: started,
		Tool: harness.Tool(), Environment: environment, Corpus: described, Options: publicFlags(flags),
	}
	record.Options["args"] = f.repeatable(ctx, flags, contenders, settings)
	if may != nil {
		if err := may(record); err != nil {
			os.Remove(out)
			return nil, "", err
		}
	}
	file := filepath.Join(out, "results.json")
	if last, ok := ctx.Value(lastWordsKey{}).(*lastWords); ok {
		keep := work
		if f.keepData {
			keep = ""
		}
		last.set(keep, file)
	}
	recorder := results.NewRecorder(record, func(r *results.Record) error { return r.Write(file) })
	runner := harness.Runner{Targets: contenders, Scenarios: measured, Corpus: c, Model: expected, Now: started.Unix(), Options: f.options,
		Settings: settings, Recorder: recorder, Observer: w, Preflight: inspect, Seeder: f.seeder(), ReadOnly: f.readOnly}

	runErr := recorder.Save() // a folder that cannot be written is found out before an hour of measuring
	watch := machine.System{}.Watch()
	if runErr == nil && measureHarness {
		f.calibrate(ctx, w, recorder, c, settings, false)
	}
	if runErr == nil {
		runErr = runner.Run(ctx)
	}
	if runErr == nil && measureHarness {
		f.calibrate(ctx, w, recorder, c, settings, true)
	}
	w.wait(runErr == nil)
	finished := time.Now().UTC()
	during := watch.Conditions()
	recorder.Update(func(r *results.Record) {
		harness.MarkLimited(r)
		r.Partial = runErr != nil
		r.FinishedAt = &finished
		r.Environment.LoadAfter = harness.LoadAverage(context.WithoutCancel(ctx))
		r.Environment.During = &during
	})
	saveErr := recorder.Save()
	f.unsaved = saveErr != nil
	snapshot := recorder.Snapshot()
	return &snapshot, out, cmp.Or(runErr, saveErr) // what cannot be saved once cannot be saved again
}

// verdict turns a finished run into its exit code and one sentence; the report says the rest.
func verdict(r *results.Record) error {
	var trouble []string
	for _, relay := range r.Relays {
		if relay.Outcome != results.OutcomeOK && relay.Outcome != results.OutcomeUnmeasured {
			trouble = append(trouble, visible(relay.Name+": "+relay.Reason))
		}
	}
	short := make(map[string]int)
	for _, f := range r.Findings {
		blamed := cmp.Or(f.Blames, f.Relay, "relaybench itself")
		yardstick := slices.ContainsFunc(r.Relays, func(x results.Relay) bool { return x.Name == blamed && x.NeverRanked != "" })
		if f.Verdict == results.Failed && !yardstick {
			short[blamed]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(short)) {
		checks := "checks"
		if short[name] == 1 {
			checks = "check"
		}
		trouble = append(trouble, visible(fmt.Sprintf("%s: %d %s failed, see the report", name, short[name], checks)))
	}
	code, shortages := exitFailed, report.Shortages(r)
	if len(trouble) == 0 && len(shortages) == 0 {
		return nil
	}
	if len(trouble) == 0 {
		code = exitUsage // no relay failed: this machine cannot do what was asked of it
	}
	return &exitError{code: code, err: errors.New(strings.Join(append(shortages, trouble...), "\n  "))}
}

// render writes the reports of a record beside it, and the terminal's to stdout.
func (f *runFlags) render(stdout io.Writer, r *results.Record, out string) error {
	mdErr := writeMarkdown(r, filepath.Join(out, "report.md"))
	if f.record == stdout {
		return mdErr
	}
	o := terminalOptions(stdout)
	o.Files = existing(filepath.Join(out, "results.json"), filepath.Join(out, "report.md"))
	o.Earlier = f.unsaved && len(o.Files) > 0 && filepath.Base(o.Files[0]) == "results.json"
	if err := report.Terminal(stdout, r, o); err != nil {
		return errors.Join(mdErr, fmt.Errorf("writing the report: %w", err))
	}
	return mdErr
}

// writeRecord writes a record in the form of results.json, in ASCII alone.
func writeRecord(w io.Writer, r *results.Record) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		_, err = w.Write(append(ascii(text), '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	return nil
}

// writeMarkdown leaves either the whole report or none.
func writeMarkdown(r *results.Record, path string) error {
	var text bytes.Buffer
	if err := report.Markdown(&text, r); err != nil {
		return fmt.Errorf("writing the Markdown report: %w", err)
	}
	if err := writeWhole(path, text.Bytes()); err != nil {
		return fmt.Errorf("writing the Markdown report: %w", err)
	}
	return nil
}
