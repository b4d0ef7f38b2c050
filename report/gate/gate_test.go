package gate

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"relaybench/report"
	"relaybench/report/compare"
	"relaybench/report/reporttest"
	"relaybench/results"

	"github.com/clipperhouse/displaywidth"
)

// gated is a record of a gate: relays over the scenarios that a gate measures, with trials from
// value, which is given the figure's centre. It is called trial by trial and, within one, figure by
// figure, as a run measures.
func gated(trials int, relays []string, value func(relay, figure string, trial int, center float64, better results.Better) float64) *results.Record {
	finished := time.Date(2026, 8, 30, 12, 2, 30, 0, time.UTC)
	rec := reporttest.Header()
	rec.FinishedAt = &finished
	recorder := results.NewRecorder(rec, nil)
	for i, name := range relays {
		recorder.SetRelay(results.Relay{Name: name, Durability: "batch", Outcome: results.OutcomeOK, SHA256: strings.Repeat(fmt.Sprint(i), 64)})
	}
	type figure struct {
		scenario, metric, unit string
		better                 results.Better
		center                 float64
	}
	figures := []figure{{"ingest.visibility", "ok", "ms", results.Lower, 0.6}, {"ingest.visibility", "visible", "ms", results.Lower, 0.8},
		{"ingest.throughput", "accepted", "events/s", results.Higher, 6200}, {"ingest.throughput", "ok latency", "ms", results.Lower, 118},
		{"ingest.throughput", "unacknowledged", "events", results.Lower, 3}}
	for _, q := range []string{"firehose", "follow-feed", "thread"} {
		for _, form := range []string{".hot", ".varied"} {
			figures = append(figures, figure{"query." + q + form, "eose", "ms", results.Lower, 1.4}, figure{"query." + q + form, "queries/s", "queries/s", results.Higher, 2400})
		}
	}
	figures = append(figures, figure{"storage", "allocated", "bytes/event", results.Lower, 1540}, figure{"storage", "write amplification", "bytes/byte", results.Lower, 3.4})
	for trial := range trials {
		for _, relay := range relays {
			for _, f := range figures {
				recorder.Add(results.Measurement{Relay: relay, Scenario: f.scenario, Metric: f.metric, Unit: f.unit, Better: f.better,
					Trials: []float64{value(relay, f.scenario+" "+f.metric, trial, f.center, f.better)}})
			}
			recorder.Add(results.Measurement{Relay: relay, Scenario: "query.thread.hot", Metric: "events", Unit: "events/query", Better: results.None, Exact: true, Trials: []float64{212}})
		}
	}
	out := recorder.Snapshot()
	out.Options["trials"] = float64(trials)
	return reporttest.Described(&out)
}

// noisyMachine makes the noise of a shared machine: log-normal in each figure, a part that all
// figures of a trial have in common, spells in which something else runs, and a drift over the run.
type noisyMachine struct {
	rnd   *rand.Rand
	noise float64
	spell map[string]float64
}

func newMachine(seed uint64, noise float64) *noisyMachine {
	return &noisyMachine{rand.New(rand.NewPCG(seed, 7)), noise, map[string]float64{}}
}

func (m *noisyMachine) value(relay string, trial int, center float64, better results.Better, slower float64) float64 {
	k := fmt.Sprint(relay, trial)
	if m.spell[k] == 0 {
		m.spell[k] = math.Exp(0.5 * m.noise * m.rnd.NormFloat64())
		if m.rnd.Float64() < 0.05 {
			m.spell[k] *= 1.5
		}
	}
	slower *= m.spell[k] * math.Exp(m.noise*m.rnd.NormFloat64()) * (1 + 0.004*float64(trial))
	if better == results.Higher {
		return center / slower
	}
	return center * slower
}

func mustGate(t *testing.T, r *results.Record, o Options) *Verdict {
	t.Helper()
	g, err := Judge(r, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// concluded judges as the verb does: with further runs, of as many trials as the verdict asks for,
// until it is final.
func concluded(t *testing.T, o Options, first *results.Record, run func(trials int) *results.Record) *Verdict {
	t.Helper()
	g := mustGate(t, first, o)
	for n := g.MoreTrials(); n > 0; n = g.MoreTrials() {
		if err := g.Confirm(run(n)); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// twice is concluded with the same record for each further run.
func twice(t *testing.T, first, second *results.Record, o Options) *Verdict {
	t.Helper()
	return concluded(t, o, first, func(int) *results.Record { return second })
}

var pairOfBuilds = Options{Base: "base", Head: "head", Threshold: 0.05, MaxTrials: 30}

// stated is a check of a relay that found a property.
func stated(relay string) func(*results.Record) {
	return func(r *results.Record) {
		reporttest.Failed(relay)(r)
		r.Findings[len(r.Findings)-1].Verdict = results.Stated
	}
}

func TestAGateJudgesByEvidenceAndSize(t *testing.T) {
	steady := func(relay string, head map[string]float64) func(relay, figure string, trial int, center float64, better results.Better) float64 {
		return func(r, figure string, trial int, center float64, better results.Better) float64 {
			v := center * (1 + 0.002*float64(trial%5))
			if f := head[figure]; r == relay && f != 0 {
				v *= f
			}
			return v
		}
	}
	record := func(head map[string]float64, changes ...func(*results.Record)) *results.Record {
		r := gated(10, []string{"base", "head"}, steady("head", head))
		for _, c := range changes {
			c(r)
		}
		return r
	}
	exactly := func(v float64) func(*results.Record) {
		return func(r *results.Record) {
			for i := range r.Measurements {
				if m := &r.Measurements[i]; m.Relay == "head" && m.Exact {
					for k := range m.Trials {
						m.Trials[k] = v
					}
				}
			}
		}
	}
	few := func(n int) func(*results.Record) {
		return func(r *results.Record) {
			for i := range r.Measurements {
				r.Measurements[i].Trials = r.Measurements[i].Trials[:n]
			}
		}
	}
	for _, c := range []struct {
		name   string
		r      *results.Record
		change func(*Options)
		want   Result
		figure string // whose judgement is looked at
		judged Judgement
	}{
		{"nothing changed", record(nil), nil, Green, "ingest.throughput accepted", NoEvidence},
		{"slower", record(map[string]float64{"ingest.throughput accepted": 0.9}), nil, Red, "ingest.throughput accepted", GotWorse},
		{"faster", record(map[string]float64{"ingest.throughput accepted": 1.1}), nil, Green, "ingest.throughput accepted", GotBetter},
		{"a latency that rises", record(map[string]float64{"query.thread.hot eose": 1.1}), nil, Red, "query.thread.hot eose", GotWorse},
		{"below the threshold", record(map[string]float64{"query.thread.hot eose": 1.03}), nil, Green, "query.thread.hot eose", SlightlyOff},
		{"a lower threshold", record(map[string]float64{"query.thread.hot eose": 1.03}), func(o *Options) { o.Threshold = 0.01 }, Red, "query.thread.hot eose", GotWorse},
		{"an override allows it", record(map[string]float64{"query.thread.hot eose": 1.2}), func(o *Options) { o.Overrides = []Threshold{{"query.* eose", 0.3}} }, Green, "query.thread.hot eose", SlightlyOff},
		{"an override forbids it", record(map[string]float64{"storage allocated": 1.02}), func(o *Options) { o.Overrides = []Threshold{{"*", 0.5}, {"storage allocated", 0.01}} }, Red, "storage allocated", GotWorse},
		{"another number of results", record(nil, exactly(211)), nil, Red, "query.thread.hot events", Differs},
		{"which an override allows", record(nil, exactly(211)), func(o *Options) { o.Overrides = []Threshold{{"query.* events", 0.01}} }, Green, "query.thread.hot events", SlightlyOff},
		{"too few trials", record(map[string]float64{"ingest.throughput accepted": 0.5}, few(5)), nil, Undecided, "ingest.throughput accepted", Undecidable},
		{"too few trials, but an exact figure", record(nil, few(5), exactly(1)), nil, Red, "query.thread.hot events", Differs},
		{"head fails a check", record(nil, reporttest.Failed("head", "query.thread.hot")), nil, FellShort, "storage allocated", NoEvidence},
		{"head has a property stated", record(nil, stated("head")), nil, Green, "storage allocated", NoEvidence},
		{"head crashes", record(nil, func(r *results.Record) { r.Relays[1].Outcome, r.Relays[1].Reason = results.OutcomeFailed, "died" }), nil, FellShort, "storage allocated", NoEvidence},
		{"head lacks a figure", record(nil, func(r *results.Record) {
			r.Measurements = slices.DeleteFunc(r.Measurements, func(m results.Measurement) bool { return m.Relay == "head" && m.Metric == "visible" })
		}), nil, FellShort, "storage allocated", NoEvidence},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := pairOfBuilds
			if c.change != nil {
				c.change(&o)
			}
			g := twice(t, c.r, c.r, o)
			if g.Result != c.want {
				t.Errorf("%s, want %s: %s", g.Result, c.want, g.Headline())
			}
			i := slices.IndexFunc(g.Figures, func(f Figure) bool { return f.Name() == c.figure })
			if i < 0 || g.Figures[i].Judgement != c.judged {
				t.Errorf("%s is judged %+v, want %q", c.figure, g.Figures, c.judged)
			}
			if slices.ContainsFunc(g.Figures, func(f Figure) bool { return f.Metric == "unacknowledged" }) {
				t.Error("a figure that is none of the gate's was judged")
			}
		})
	}
}

func TestWhatBaseDiffersFromItselfIsNotHeldAgainstHead(t *testing.T) {
	r := gated(10, []string{"base", "again", "head"}, func(relay, figure string, trial int, center float64, _ results.Better) float64 {
		v := center * (1 + 0.002*float64(trial%5))
		switch {
		case figure == "ingest.visibility ok" && relay != "base":
			return v * 1.2 // by which even base comes out differently the second time
		case figure == "ingest.visibility visible" && relay == "head":
			return v * 1.2
		}
		return v
	})
	o := pairOfBuilds
	o.Again = "again"
	g := twice(t, r, r, o)
	if worse := g.Judged(GotWorse); len(worse) != 1 || worse[0].Name() != "ingest.visibility visible" {
		t.Errorf("held against head: %+v", worse)
	}
	if noise := g.Judged(BelowNoise); len(noise) != 1 || noise[0].Name() != "ingest.visibility ok" {
		t.Errorf("like noise: %+v", noise)
	}
	if !slices.ContainsFunc(g.Cautions, func(s string) bool { return strings.Contains(s, "Noise floor: base differs from itself by up to 20.") }) {
		t.Errorf("the floor is not told: %q", g.Cautions)
	}
}

func TestTheFirstOfTheLargestFloorsIsNamed(t *testing.T) {
	r := gated(10, []string{"base", "again", "head"}, func(relay, figure string, trial int, center float64, _ results.Better) float64 {
		if relay == "again" {
			switch figure {
			case "ingest.visibility visible", "storage allocated":
				return 4
			case "ingest.visibility ok", "ingest.throughput accepted":
				return 3
			}
		}
		return 2
	})
	o := pairOfBuilds
	o.Again = "again"
	const want = "Noise floor: base differs from itself by up to 100 % (ingest.visibility visible)."
	if g := mustGate(t, r, o); !slices.ContainsFunc(g.Cautions, func(s string) bool { return strings.HasPrefix(s, want) }) {
		t.Errorf("told %q, want %q", g.Cautions, want)
	}
}

func flat1(_, _ string, trial int, center float64, _ results.Better) float64 {
	return center * (1 + 0.002*float64(trial%5))
}

func TestAGateRefusesWhatCannotBeABase(t *testing.T) {
	baseline := func(changes ...func(*results.Record)) *results.Record {
		r := gated(10, []string{"mine"}, flat1)
		for _, c := range changes {
			c(r)
		}
		return r
	}
	for _, c := range []struct {
		name     string
		baseline *results.Record
		base     string
		want     string // of the error; "" for none
		kind     any
	}{
		{"a sound one", baseline(), "mine", "", nil},
		{"its only relay needs no name", baseline(), "", "", nil},
		{"a relay that it lacks", baseline(), "yours", "has no relay yours; it has mine", nil},
		{"two relays and no name", gated(10, []string{"a", "b"}, flat1), "", "2 relays (a, b)", nil},
		{"a failed required check", baseline(reporttest.Failed("mine", "storage")), "mine", "fell short itself: c (preflight)", new(*BaselineError)},
		{"a property stated", baseline(stated("mine")), "mine", "", nil},
		{"a partial run", baseline(func(r *results.Record) { r.Partial = true }), "mine", "did not finish", new(*BaselineError)},
		{"another corpus", baseline(func(r *results.Record) { r.Corpus.Fingerprint = strings.Repeat("1", 64) }), "mine", "corpus fingerprint", new(*compare.IncomparableError)},
		{"another machine", baseline(func(r *results.Record) { r.Environment.CPU = "Xeon" }), "mine", "processor: Xeon", new(*compare.IncomparableError)},
		{"other settings", baseline(func(r *results.Record) { r.Options["window"] = 1.0 }), "mine", "option window: 1 ≠ 200", new(*compare.IncomparableError)},
	} {
		t.Run(c.name, func(t *testing.T) {
			name, err := CheckBaseline(c.baseline, c.base, gated(10, []string{"head"}, flat1))
			switch {
			case c.want == "" && (err != nil || name != "mine"):
				t.Fatalf("%q, %v", name, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Fatalf("error %v, want …%s…", err, c.want)
			case c.kind != nil && !errors.As(err, c.kind):
				t.Errorf("the error is a %T", err)
			}
		})
	}
	r := gated(10, []string{"base", "head"}, flat1)
	reporttest.Failed("base", "ingest.*")(r)
	var base *BaselineError
	if _, err := Judge(r, pairOfBuilds); !errors.As(err, &base) {
		t.Errorf("a base that fell short in the same run: %v", err)
	}
	g := mustGate(t, gated(10, []string{"head"}, flat1), Options{Base: "mine", Head: "head", Baseline: baseline(), Threshold: 0.05})
	if g.Result != Green || !slices.ContainsFunc(g.Cautions, func(s string) bool { return strings.Contains(s, "stored record") }) {
		t.Errorf("against a stored record: %s %q", g.Result, g.Cautions)
	}
	stored := baseline()
	stored.Tool.Verifier = "libsecp256k1"
	run := gated(10, []string{"head"}, flat1)
	run.Tool.Verifier = "btcec"
	g = mustGate(t, run, Options{Base: "mine", Head: "head", Baseline: stored, Threshold: 0.05})
	if !slices.ContainsFunc(g.Cautions, func(s string) bool { return strings.HasSuffix(s, ": libsecp256k1, btcec.") }) {
		t.Errorf("other signature checks: %q", g.Cautions)
	}
}

func TestVerdictsLookAsTheyShould(t *testing.T) {
	m := newMachine(3, 0.01)
	r := gated(10, []string{"base", "head"}, func(relay, figure string, trial int, center float64, better results.Better) float64 {
		slower := 1.0
		switch {
		case relay != "head":
		case figure == "ingest.throughput accepted" || figure == "ingest.throughput ok latency":
			slower = 1.18
		case figure == "query.thread.hot eose":
			slower = 0.8
		case figure == "storage allocated":
			slower = 1.04
		}
		return m.value(relay, trial, center, better, slower)
	})
	red := twice(t, r, r, pairOfBuilds)
	short := mustGate(t, gated(10, []string{"base", reporttest.Hostile}, flat1), Options{Base: "base", Head: reporttest.Hostile, Threshold: 0.05, Overrides: []Threshold{{reporttest.Hostile, 1}}})
	short.Short, short.Result = []string{report.Visible(reporttest.Hostile)}, FellShort
	few := mustGate(t, gated(4, []string{"base", "head"}, flat1), pairOfBuilds)
	atMost := pairOfBuilds
	atMost.MaxTrials = 6
	unclear := twice(t, two(stalled, torn), two(stalled, torn), atMost)
	for name, g := range map[string]*Verdict{"gate-red": red, "gate-short": short, "gate-undecided": few, "gate-unclear": unclear} {
		for ext, write := range map[string]func(io.Writer) error{
			"txt": func(w io.Writer) error {
				return g.Document().Terminal(w, report.TerminalOptions{Width: 100, Files: []string{"results/20260830T120000Z/report.md", "results/20260830T120000Z/results.json"}})
			}, "md": g.Document().Markdown, "xml": g.JUnit,
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			reporttest.Golden(t, name+"."+ext, b.Bytes())
			if i := bytes.IndexFunc(b.Bytes(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%s.%s lets %q through", name, ext, b.Bytes()[i:min(i+8, b.Len())])
			}
			switch ext {
			case "md":
				if bad := reporttest.Markup(b.String()); bad != "" {
					t.Errorf("markup of a record's own in %q", bad)
				}
			case "xml":
				var s junitSuite
				if err := xml.Unmarshal(b.Bytes(), &s); err != nil || s.Tests != len(s.Cases) || s.Failures+s.Errors == 0 {
					t.Errorf("%s: JUnit of %d tests, %d failures: %v", name, s.Tests, s.Failures, err)
				}
			case "txt":
				for l := range strings.Lines(b.String()) {
					if displaywidth.String(strings.TrimSuffix(l, "\n")) > 100 {
						t.Errorf("%s: a line is too wide: %q", name, l)
					}
				}
			}
		}
	}
}

func TestThresholdsAreReadAndFit(t *testing.T) {
	all, err := ParseThresholds("# CI\n\"query.* eose\" = 10\n\"query.thread.* *\" = 20.5\n\"*\" = 3\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"query.firehose.hot eose": 0.1, "query.thread.hot eose": 0.205, "query.thread.hot queries/s": 0.205, "storage allocated": 0.03} {
		if got, ok := thresholdFor(all, name); !ok || math.Abs(got.Share-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got.Share, want)
		}
	}
	for text, want := range map[string]string{
		"x = ":                       "line 1",
		"query.thread.hot = 5":       "write one line a figure",
		"\"a\" = -1":                 "give per cent",
		"\"a\" = nan":                "give per cent",
		"\"a\" = \"5 %\"":            "give per cent",
		"\"a\" = 1e9":                "give per cent",
		"[ingest]\n\"accepted\" = 5": "give per cent",
	} {
		if _, err := ParseThresholds(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want …%s…", text, err, want)
		}
	}
}

func FuzzParseThresholds(f *testing.F) {
	f.Add("\"query.* eose\" = 10\n", "query.thread.hot eose")
	f.Add("a = 1\n\"b?\" = 2.5", "bc")
	f.Add("[x]\ny=1", "")
	f.Add("\"***a***\" = 1", "aaaa")
	f.Fuzz(func(t *testing.T, text, name string) {
		all, err := ParseThresholds(text)
		if err != nil {
			return
		}
		for _, x := range all {
			if !(x.Share >= 0 && x.Share <= 100) {
				t.Errorf("a share of %v", x.Share)
			}
		}
		if best, ok := thresholdFor(all, name); ok && !matchGlob(best.Pattern, name) {
			t.Errorf("%q does not fit %q", best.Pattern, name)
		}
		if !matchGlob("*", name) || !matchGlob(strings.ReplaceAll(name, "*", "?"), name) {
			t.Errorf("%q does not fit itself", name)
		}
	})
}

// TestGatesJudgeWhatBuildsTakeToReconcileWithEachOther has two builds that were reconciled with
// each other, and a third relay that is each one's other peer.
func TestGatesJudgeWhatBuildsTakeToReconcileWithEachOther(t *testing.T) {
	reconciled := func(slower float64) *results.Record {
		r := gated(10, []string{"base", "head"}, func(_, _ string, trial int, center float64, _ results.Better) float64 {
			return center * reporttest.Wobble(trial)
		})
		add := func(relay, peer string, factor, lacks float64) {
			var times, need []float64
			for trial := range 10 {
				times, need = append(times, 20*factor*reporttest.Wobble(trial)), append(need, lacks)
			}
			r.Measurements = append(r.Measurements,
				results.Measurement{Relay: relay, Peer: peer, Scenario: "negentropy.initial", Metric: "time", Unit: "ms", Better: results.Lower, Trials: times},
				results.Measurement{Relay: relay, Peer: peer, Scenario: "negentropy.initial", Metric: "need", Unit: "events", Better: results.None, Exact: true, Trials: need})
		}
		add("base", "head", 1, 100)
		add("head", "base", slower, 101)
		add("base", "third", 1, 100)
		return r
	}
	if g := twice(t, reconciled(1), reconciled(1), pairOfBuilds); g.Result != Green {
		t.Errorf("the same: %s %v", g.Headline(), g.Short)
	}
	g := twice(t, reconciled(1.3), reconciled(1.3), pairOfBuilds)
	if bad := g.Judged(GotWorse, Differs); g.Result != Red || len(bad) != 1 || bad[0].Name() != "negentropy.initial time with the other build" {
		t.Errorf("30 %% slower: %s %+v", g.Headline(), bad)
	}
}
