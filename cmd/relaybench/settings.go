package main

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"relaybench/corpus/prepare"
	"relaybench/harness"
	"relaybench/harness/download"
	"relaybench/relays"
	"relaybench/report"
	"relaybench/report/compare"
	"relaybench/report/gate"
	"relaybench/results"
	"relaybench/scenarios"
)

// runFlags are the settings of all verbs. A verb has flags for some of them, and the others are at
// their defaults.
type runFlags struct {
	stdout, stderr io.Writer
	verb           verbs
	flags          *pflag.FlagSet
	settings       []setting
	presets        map[string]string // flags that the verb sets where they are not given

	// Of the corpus. Without URLs to download from there is no download.
	baseTime, corpus, cache, download, since, until string
	events                                          int
	real                                            bool
	rules                                           prepare.Options
	downloads                                       download.Options

	// Of the relays, and what is measured.
	relays                               repeated
	relaysDir, geodeBin, strfryBin       string
	ready, grace                         time.Duration // until a relay is ready, and from its stop signal to SIGKILL
	only, skip, syncModes                []string
	options                              harness.Options
	fetches                              scenarios.FetchOptions
	reconcile                            scenarios.ReconcileOptions
	probe                                scenarios.ProbeOptions
	page                                 int
	seedBy, direction, filter, matrix    string
	sizes, shapes, verify                string
	authors                              repeated
	geodeNoIndex, quick, scattered       bool
	sync, fetch, pin, short              bool
	base, head, baseline, thresholds     string
	again                                bool
	threshold                            float64 // per cent
	judged                               gate.Options
	before, after                        repeated
	compare                              compare.Options
	out, work, cpuProfile, junit, format string
	jsonFile                             string
	keepData, json                       bool

	// What the verb makes of them.
	blind      string                      // why there is no corpus
	readOnly   bool                        // the relays are somebody's: nothing is published to them
	repeatedBy []string                    // the verb and its operands, for who repeats it; none: run
	may        func(*results.Record) error // ends a run before anything is measured; nil: goes on
	record     io.Writer                   // where the record goes as well; stdout: in place of the report
	unsaved    bool                        // results.json holds an earlier state than the record
}

// repeated are the values of a flag that is given once for each, since they may hold commas.
type repeated []string

// verbs are those that have a setting as a flag.
type verbs uint

const (
	ofRun verbs = 1 << iota
	ofSync
	ofFetch
	ofGate
	ofReconcile
	ofProbe
	ofCalibrate
	ofCheck
	ofBuild
	ofRelays
	ofCompare
	ofReport
	ofMeasuring = ofRun | ofSync | ofFetch | ofGate
	ofCorpora   = ofMeasuring | ofBuild
)

// setting is a flag of some verbs.
type setting struct {
	name  string
	of    verbs
	to    any   // where its value goes
	usual any   // its default, where that is not nothing
	takes *rule // nil: anything
	usage string
}

// rule says what a value may be.
type rule struct {
	least, most int64    // of a number or a duration; 0 at most is no bound
	words       []string // one of these, or a list of some
}

func from[T int | time.Duration](least T, most ...T) *rule {
	r := &rule{least: int64(least)}
	if len(most) > 0 {
		r.most = int64(most[0])
	}
	return r
}

func oneOf(words ...string) *rule { return &rule{words: words} }

// table lists all settings. Of several that one name has in different verbs, the first gives the
// default for the verbs that have no such flag.
func (f *runFlags) table() []setting {
	o, d, p := &f.options, &f.downloads, &f.rules
	downloaded := fmt.Sprintf("download the newest events of the relays at these `URLS`, separated by commas, or without any, of %s; %s events unless --limit or --download-since says otherwise",
		strings.ReplaceAll(defaultRelays, ",", ", "), count(defaultDownload))
	directions := oneOf(string(relays.Down), string(relays.Up), string(relays.Both))
	return []setting{
		{"base", ofGate, &f.base, nil, nil, "the relay as it was; with --baseline, the name of the relay in that record"},
		{"head", ofGate, &f.head, nil, nil, "the relay as it is to become"},
		{"baseline", ofGate, &f.baseline, nil, nil, "a stored results.json (or a run's folder) to hold head against, instead of booting base"},
		{"aa", ofGate, &f.again, nil, nil, "run base a second time beside itself, and hold no change within that noise against head"},
		{"threshold", ofGate, &f.threshold, 5.0, nil, "by how many per cent a figure may get worse"},
		{"thresholds", ofGate, &f.thresholds, nil, nil, "TOML file with thresholds for single figures: \"query.* eose\" = 10"},
		{"max-trials", ofGate, &f.judged.MaxTrials, 30, nil, "trials of each relay that may be taken together to confirm what became suspect"},
		{"junit", ofGate, &f.junit, nil, nil, "write the verdict to this file as JUnit XML"},

		{"old", ofCompare, &f.before, nil, nil, "results of the old side (repeatable)"},
		{"new", ofCompare, &f.after, nil, nil, "results of the new side (repeatable)"},
		{"format", ofCompare, &f.format, "text", oneOf("text", "md", "json", "benchfmt"), "text, md, json or benchfmt (the Go benchmark format: pipe it into benchstat -col /side -)"},
		{"format", ofReport, &f.format, "text", oneOf("text", "md"), "text or md"},
		{"all", ofCompare, &f.compare.All, nil, nil, "show the figures without a direction as well"},
		{"force", ofCompare, &f.compare.Force, nil, nil, "compare what is not comparable, under a banner that says so"},

		{"sizes", ofRun | ofReconcile, &f.sizes, "10000,100000,1000000", nil, "events on either side of a reconciliation in layers, comma-separated"},
		{"repeat", ofRun | ofReconcile, &f.reconcile.Repeat, 11, from(1, 100_000), "reconciliations after the first, whose median is shown"},
		{"signed-max", ofRun | ofReconcile, &f.reconcile.SignedMax, 10_000, from(0, scenarios.MaxReconciled), "the largest of these sizes at which relays take part that need really signed events"},

		{"limit", ofProbe, &f.probe.Limit, scenarios.DefaultProbeLimit, from(1, scenarios.MaxProbeLimit), fmt.Sprintf("events that each REQ asks for, up to %d", scenarios.MaxProbeLimit)},
		{"author", ofProbe, &f.authors, nil, nil, "ask for the notifications and metadata of this author: npub1… or 64 hexadecimal digits (repeatable)"},
		{"only", ofProbe, &f.shapes, strings.Join(scenarios.ProbeShapes(), ","), nil, "what to ask, comma-separated"},
		{"verify", ofProbe, &f.verify, "both", oneOf("inline", "parallel", "both"), "how signatures are checked: inline, parallel, or both in two passes"},
		{"pause", ofProbe, &f.probe.Pause, scenarios.DefaultProbePause, from(scenarios.MinProbePause, time.Minute), fmt.Sprintf("wait before each REQ to the same relay, at least %v", scenarios.MinProbePause)},
		{"compression", ofProbe, &f.probe.Compression, nil, nil, "offer permessage-deflate"},

		{"events", ofCorpora, &f.events, 10_000, from(1, 100_000_000), "size of the synthetic corpus"},
		{"seed", ofCorpora | ofReconcile, &o.Seed, 1, nil, "seed of the synthetic corpus and of every draw"},
		{"base-time", ofCorpora, &f.baseTime, "1780272000", nil, "when the synthetic corpus ends: Unix seconds, or \"now\""},
		{"corpus", ofCorpora, &f.corpus, nil, nil, "use the events of this file: JSON in any sequence, in arrays or not, or a tar archive of such files, plain, gzip or zstd"},
		{"real", ofCorpora, &f.real, nil, nil, "use the public dump of real events: $RELAYBENCH_REAL, the cached copy, or a download"},
		{"download", ofCorpora, &f.download, nil, nil, downloaded},
		{"download-since", ofCorpora, &f.since, nil, nil, "download no event older than `TIME`: Unix seconds, 2026-05-31 or 2026-05-31T12:00:00Z"},
		{"download-until", ofCorpora, &f.until, nil, nil, "download no event newer than `TIME` (default: when the download begins)"},
		{"download-interval", ofCorpora, &d.Interval, download.DefaultInterval, from(0, time.Hour), "wait so long at least between two requests to a relay; below 50ms to relays of your own only"},
		{"download-max-bytes", ofCorpora, &d.MaxBytes, download.DefaultMaxBytes, from(1 << 20), "stop when the events take so much room; more of it lets the download go on"},
		{"download-fresh", ofCorpora, &d.Fresh, nil, nil, "begin anew, even if a download by the same flags is there, finished or not"},
		{"limit", ofCorpora, &p.Limit, nil, from(0), "keep only the newest N events (0: all)"},
		{"max-event-bytes", ofCorpora, &p.MaxEventBytes, 65536, from(1, 15<<20), "leave out larger events, and set relays up to accept up to this size"},
		{"max-tags", ofCorpora | ofCheck, &p.MaxTags, 2000, from(1, 1_000_000), "leave out events with more tags, and set relays up to accept up to so many"},
		{"keep-deletions", ofCorpora, &p.KeepDeletions, nil, nil, "keep deletion requests (kind 5) in the corpus"},
		{"keep-control-characters", ofCorpora, &p.KeepControlCharacters, nil, nil, "keep events with control characters that NIP-01 gives no escape, which implementations hash differently"},
		{"cache", ofCorpora | ofCalibrate, &f.cache, nil, nil, "folder for prepared corpora (default: $RELAYBENCH_CACHE, or relaybench in the user's cache folder)"},

		{"samples", ofMeasuring &^ ofFetch, &o.Samples, 200, from(1, 1_000_000), "events published one by one to measure visibility"},
		{"publishers", ofMeasuring, &o.Publishers, 4, from(1, 1024), "connections that publish"},
		{"window", ofMeasuring | ofCalibrate, &o.Window, 200, from(1, 100_000), "unacknowledged events on each connection that publishes"},
		{"rate", ofMeasuring &^ ofFetch, &o.Rate, 500, from(1, 100_000), "events per second, over those connections together, that ingest.paced publishes on a schedule"},
		{"query-rounds", ofRun | ofSync, &o.QueryRounds, 10, from(1, 100_000), "timed repetitions of each query on one connection"},
		{"query-rounds", ofGate, &o.QueryRounds, 30, from(1, 100_000), "timed repetitions of each query on one connection"},
		{"query-conns", ofMeasuring &^ ofFetch, &o.QueryConns, 8, from(1, 1024), "connections that ask at once"},
		{"trials", ofMeasuring &^ ofGate, &o.Trials, 3, from(1, 1000), "fresh boots of each relay, interleaved over the relays (1 with --quick)"},
		{"trials", ofGate, &o.Trials, 10, from(1, 1000), "fresh boots of each relay, interleaved"},
		{"timeout", ofMeasuring | ofReconcile, &o.Stall, 30 * time.Second, from(100 * time.Millisecond), "give up on a relay that makes no progress for so long"},
		{"timeout", ofProbe, &o.Stall, 10 * time.Second, from(100*time.Millisecond, 5*time.Minute), "give up on an answer when nothing of it comes for so long"},
		{"ready-timeout", ofMeasuring | ofReconcile | ofCheck, &f.ready, nil, from(time.Duration(0)), "how long a relay may take to become ready (default: what its definition says, 30s)"},
		{"stop-grace", ofMeasuring, &f.grace, nil, from(0, time.Hour), "how long a relay may take to end after its stop signal, before it is killed (default: what its definition says, 10s)"},
		{"quick", ofMeasuring, &f.quick, nil, nil, "a short run: 2,000 events (synthetic, downloaded, or fetched of a relay that runs already), 50 samples, 3 query rounds on 4 connections, 1 trial, where not set otherwise"},
		{"relays-dir", ofMeasuring | ofReconcile | ofCheck | ofRelays, &f.relaysDir, nil, nil, "folder with relay definitions of your own (TOML)"},
		{"geode-bin", ofMeasuring, &f.geodeBin, nil, nil, "geode's program (as $GEODE_BIN)"},
		{"strfry-bin", ofMeasuring, &f.strfryBin, nil, nil, "strfry's program (as $STRFRY_BIN)"},
		{"only", ofMeasuring &^ ofGate, &f.only, nil, nil, "run only these scenarios: keys or globs, query.thread.* (repeatable, comma-separated)"},
		{"only", ofGate, &f.only, nil, nil, "measure only these scenarios (default: " + gateScenarios + ")"},
		{"skip", ofMeasuring, &f.skip, nil, nil, "leave out these scenarios: keys or globs"},
		{"neg-scattered", ofMeasuring &^ ofFetch, &f.scattered, nil, nil, "also reconcile (NIP-77) with one event in a hundred missing at random, the algorithm's worst case"},
		{"pin", ofMeasuring | ofCalibrate, &f.pin, nil, nil, "keep relaybench and the relays on processor cores of their own, half of them each (Linux, two cores or more)"},
		{"out", ofMeasuring | ofReconcile | ofProbe, &f.out, nil, nil, "folder for results; each run makes a folder below it (default: $RELAYBENCH_RESULTS, or results)"},
		{"work", ofMeasuring | ofReconcile | ofCheck, &f.work, nil, nil, "folder for the relays' data while they run, and for sorting a large corpus (default: the system's temporary folder, and beside the corpus)"},
		{"work", ofCalibrate, &f.work, nil, nil, "folder whose disk is measured (default: the system's temporary folder)"},
		{"work", ofBuild, &f.work, nil, nil, "folder for what sorting a large corpus writes meanwhile (default: beside the prepared corpus)"},
		{"keep-data", ofMeasuring, &f.keepData, nil, nil, "keep the relays' data folders and say where they are"},
		{"seed-by", ofMeasuring &^ ofGate, &f.seedBy, seedByPublish, oneOf(seedByPublish, seedByImport), "load relays for the scenarios that need it by publish, or by import: the relay's own command where it has one, measured as scenario import"},
		{"short", ofCalibrate, &f.short, nil, nil, "as briefly as every run does it: about 2 seconds, over the connections that a run uses by default"},

		{"relay", ofRun | ofSync | ofCheck | ofReconcile, &f.relays, nil, nil, "add a `RELAY`: NAME=COMMAND with {port} and {dir}, NAME=ws://host:port, or a name of the catalog (repeatable)"},
		{"geode-no-search", ofRun | ofSync, &f.geodeNoIndex, nil, nil, "run geode without its full-text index"},
		{"max-event-bytes", ofCheck, &p.MaxEventBytes, 65536, from(1024), "set relays up to accept events up to this size, and probe up to it"},
		{"sync-modes", ofRun | ofSync, &f.syncModes, nil, oneOf(scenarios.SyncModes()...), "how relays are synced: " + strings.Join(scenarios.SyncModes(), ", ") + " (all)"},
		{"dir", ofRun | ofSync, &f.direction, string(relays.Down), directions, "whose side the agent of mode negentropy takes: down (the sink's, pulling), up (the source's, pushing), both (each lacks a fifth of the corpus)"},
		{"page", ofRun | ofSync, &f.page, scenarios.DefaultPage, from(1, 10_000_000), "events asked for at a time in sync's mode req, and in the pages of --fetch, or as many as the relay says that it sends at once (NIP-11); the same as fetch's --page"},
		{"page", ofFetch, &f.page, scenarios.DefaultPage, from(1, 1_000_000), "events asked for in a page, or as many as the relay says that it sends at once (NIP-11); the same as run's --page"},
		{"filter", ofRun | ofFetch, &f.filter, "{}", nil, "what is fetched: a filter (NIP-01) without limit"},
		{"matrix", ofRun | ofFetch, &f.matrix, "small", oneOf("small", "full"), "settings of fetch.by-id: small (8 of them) or full (connections 1 to 16 × REQs in flight 1 to 20 × batches 50 to 250: 75)"},
		{"adaptive", ofRun | ofFetch, &f.fetches.Adaptive, nil, nil, "also fetch by id with as many REQs in flight as make it faster, found on the way"},
		{"cell-time", ofRun, &f.fetches.Time, 20 * time.Second, from(time.Duration(0)), "cut each way to fetch after so long, and where it is given also each sync and import (0: ended once they take far longer than whatever was measured before them)"},
		{"cell-time", ofFetch, &f.fetches.Time, 20 * time.Second, from(time.Duration(0)), "cut each way to fetch after so long (0: ended once it takes far longer than whatever was measured before it)"},
		{"cell-time", ofSync, &f.fetches.Time, time.Duration(0), from(time.Duration(0)), "cut each sync after so long (0: ended once it takes far longer than whatever was measured before it); the same as run's --cell-time"},
		{"cell-events", ofRun | ofFetch, &f.fetches.Events, nil, from(0), "cut each way to fetch after so many events (0: never)"},
		{"shards", ofRun | ofFetch, &f.fetches.Shards, 4, from(1, 64), "connections that the sharded ways divide the time over"},
		{"fetch", ofRun, &f.fetch, nil, nil, "also measure how a client downloads from each relay, as the verb fetch does alone"},
		{"sync", ofRun, &f.sync, nil, nil, "also measure how each relay fills each other, as the verb sync does alone"},

		{"cpuprofile", ofReconcile, &f.cpuProfile, nil, nil, "write a CPU profile of relaybench itself to this file"},
		{"json", ofReconcile, &f.jsonFile, nil, nil, "also write the record, in the form of results.json, to this file"},
		{"json", ofProbe | ofCalibrate | ofCheck, &f.json, nil, nil, "print JSON, as results.json has it, in place of the report"},
	}
}

// command makes cmd a verb with the flags that the table has for it. What it does is run, once the
// values of the flags are known to be possible.
func (f *runFlags) command(of verbs, cmd *cobra.Command, run func(ctx context.Context, args []string) error) *cobra.Command {
	f.verb, f.flags, f.settings = of, cmd.Flags(), f.table()
	f.flags.SortFlags = false
	for _, s := range slices.Backward(f.settings) {
		s.reset()
	}
	f.settings = slices.DeleteFunc(f.settings, func(s setting) bool { return s.of&of == 0 })
	for _, s := range f.settings {
		s.reset()
		s.register(f.flags)
		if complete := s.completion(); complete != nil {
			_ = cmd.RegisterFlagCompletionFunc(s.name, complete) // fails for a flag that is not there alone
		}
	}
	for name, value := range f.presets {
		f.flags.Lookup(name).DefValue = value
	}
	if flag := f.flags.Lookup("download"); flag != nil {
		flag.NoOptDefVal = publicRelays
	}
	if cmd.Args == nil {
		cmd.Args = noArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.possible(); err != nil {
			return err
		}
		return run(cmd.Context(), args)
	}
	return cmd
}

// reset sets the default.
func (s *setting) reset() {
	if to := reflect.ValueOf(s.to).Elem(); s.usual != nil {
		to.Set(reflect.ValueOf(s.usual).Convert(to.Type()))
	}
}

func (s *setting) register(flags *pflag.FlagSet) {
	switch to := s.to.(type) {
	case *bool:
		flags.BoolVar(to, s.name, *to, s.usage)
	case *int:
		flags.IntVar(to, s.name, *to, s.usage)
	case *int64:
		flags.Int64Var(to, s.name, *to, s.usage)
	case *uint64:
		flags.Uint64Var(to, s.name, *to, s.usage)
	case *float64:
		flags.Float64Var(to, s.name, *to, s.usage)
	case *time.Duration:
		flags.DurationVar(to, s.name, *to, s.usage)
	case *string:
		flags.StringVar(to, s.name, *to, s.usage)
	case *[]string:
		flags.StringSliceVar(to, s.name, *to, s.usage)
	case *repeated:
		flags.StringArrayVar((*[]string)(to), s.name, *to, s.usage)
	}
}

// possible refuses values that their flags do not take.
func (f *runFlags) possible() error {
	for _, s := range f.settings {
		if s.takes == nil {
			continue
		}
		if value, wanted := s.takes.refuse(reflect.ValueOf(s.to).Elem().Interface()); wanted != "" {
			return usagef("--%s %s: give %s", s.name, value, wanted)
		}
	}
	return nil
}

// refuse returns what of a value is not taken, and what to give instead, "" where it is taken.
func (r *rule) refuse(value any) (given, wanted string) {
	if len(r.words) > 0 {
		list, ok := value.([]string)
		if !ok {
			list = []string{value.(string)}
		}
		if i := slices.IndexFunc(list, func(word string) bool { return !slices.Contains(r.words, word) }); i >= 0 {
			last := len(r.words) - 1
			return strconv.Quote(list[i]), strings.Join(r.words[:last], ", ") + " or " + r.words[last]
		}
		return "", ""
	}
	n := reflect.ValueOf(value).Int()
	if n >= r.least && (r.most == 0 || n <= r.most) {
		return "", ""
	}
	wanted, show := "a number from ", func(n int64) string { return report.Thousands(fmt.Sprint(n)) }
	if _, ok := value.(time.Duration); ok {
		wanted, show = "a duration from ", func(n int64) string { return time.Duration(n).String() }
	}
	if wanted += show(r.least); r.most > 0 {
		wanted += " to " + show(r.most)
	}
	return fmt.Sprint(value), wanted
}

// preset sets what the verb does by default, as if it were asked for, so that the record names it.
func (f *runFlags) preset() error {
	for name, value := range f.presets {
		if !f.flags.Changed(name) {
			if err := f.flags.Set(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// quickEvents is how many events --quick takes.
const quickEvents = 2000

// quicken lowers what --quick lowers, where nothing else was asked for.
func (f *runFlags) quicken() {
	for name, value := range map[string]int{"events": quickEvents, "samples": 50, "query-rounds": 3, "query-conns": 4, "trials": 1, "limit": quickEvents, "cell-events": quickEvents} {
		flag := f.flags.Lookup(name)
		if !f.quick || flag == nil || flag.Changed || name == "limit" && f.download == "" || name == "cell-events" && f.blind == "" {
			continue
		}
		_ = flag.Value.Set(strconv.Itoa(value)) // which every number takes
	}
}
