package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/clipperhouse/displaywidth"

	"relaybench/report"
	"relaybench/report/reporttest"
	"relaybench/results"
)

func mustCompare(t *testing.T, before, after Side, o Options) *Comparison {
	t.Helper()
	c, err := Compare(before, after, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// compared is a record of the named relays with ten trials; slower multiplies what it takes, and
// change does the rest.
func compared(slower float64, change func(*results.Record), relays ...string) *results.Record {
	r := reporttest.Header()
	trials := func(center float64) []float64 {
		out := make([]float64, 10)
		for i := range out {
			out[i] = center * reporttest.Wobble(i)
		}
		return out
	}
	for _, name := range relays {
		r.Relays = append(r.Relays, results.Relay{Name: name, Durability: "batch", Outcome: results.OutcomeOK})
		add := func(scenario, metric, unit string, better results.Better, exact bool, trials []float64) {
			r.Measurements = append(r.Measurements, results.Measurement{Relay: name, Scenario: scenario, Metric: metric, Unit: unit, Better: better, Exact: exact, Trials: trials})
		}
		add("ingest.throughput", "accepted", "events/s", results.Higher, false, trials(6200/slower))
		add("ingest.throughput", "ok latency", "ms", results.Lower, false, trials(118*slower))
		add("ingest.throughput", "cpu", "s", results.None, false, trials(4))
		add("query.thread.hot", "eose", "ms", results.Lower, false, trials(1.4))
		add("query.thread.hot", "queries/s", "queries/s", results.Higher, false, trials(2400))
		add("query.thread.hot", "events", "events/query", results.None, true, []float64{212, 212, 212})
		add("storage", "allocated", "bytes/event", results.Lower, false, trials(1540/slower))
	}
	if change != nil {
		change(r)
	}
	if len(r.Measurements) == 0 {
		return r
	}
	return reporttest.Described(r)
}

func side(label string, records ...*results.Record) Side { return Side{label, records} }

func renderings(t *testing.T, c *Comparison) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for name, write := range map[string]func(io.Writer) error{
		"txt": func(w io.Writer) error { return c.Document().Terminal(w, report.TerminalOptions{Width: 100}) }, "md": c.Document().Markdown, "json": c.JSON, "bench": c.Benchfmt,
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		out[name] = b.Bytes()
	}
	return out
}

func TestComparisonsLookAsTheyShould(t *testing.T) {
	before := compared(1, nil, "mine", "other", "gone")
	after := compared(1.15, func(r *results.Record) {
		for i := range r.Measurements {
			switch m := &r.Measurements[i]; {
			case m.Relay == "mine" && m.Exact:
				m.Trials = []float64{100, 100, 100}
			case m.Relay == "other" && m.Metric == "eose":
				m.Metric = "renamed"
			}
		}
		r.Relays[1].Durability = "commit"
		r.Findings = append(r.Findings, reporttest.Finding("mine", "", "query.thread.hot", results.CodeModel, false, "it does not"))
		r.Tool.Revision = "99e1c2d09f7766"
	}, "mine", "other", "come")
	c := mustCompare(t, side("20260830T120000Z", before), side("20260831T120000Z", after, after), Options{})
	for ext, text := range renderings(t, c) {
		reporttest.Golden(t, "compare."+ext, text)
	}
	forced := mustCompare(t, side("a", before), side("b", compared(1, func(r *results.Record) { r.Environment.Cores = 8 }, "mine")), Options{Force: true, All: true})
	reporttest.Golden(t, "compare-forced.txt", renderings(t, forced)["txt"])
	reporttest.Golden(t, "compare-forced.md", renderings(t, forced)["md"])
}

func TestComparisonRefusesWhatWasNotMeasuredAlike(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*results.Record)
		want   []string // the differing fields
	}{
		{"nothing differs", func(*results.Record) {}, nil},
		{"corpus", func(r *results.Record) { r.Corpus.Fingerprint = strings.Repeat("0", 64) }, []string{"corpus fingerprint: 3fa9c01d7be24856 ≠ 0000000000000000"}},
		{"corpus in its last digit", func(r *results.Record) { r.Corpus.Fingerprint = r.Corpus.Fingerprint[:63] + "0" },
			[]string{"corpus fingerprint: " + strings.Repeat("3fa9c01d7be24856", 4) + " ≠ " + strings.Repeat("3fa9c01d7be24856", 4)[:63] + "0"}},
		{"a setting", func(r *results.Record) { r.Options["window"] = 100.0 }, []string{"option window: 200 ≠ 100"}},
		{"a setting that one lacks", func(r *results.Record) { r.Options["pin"] = true }, []string{"option pin: not recorded ≠ true"}},
		{"settings in another type", func(r *results.Record) { r.Options["window"], r.Options["seed"] = int64(200), uint64(1) }, nil},
		{"settings that bear on no figure", func(r *results.Record) { r.Options["trials"], r.Options["args"], r.Options["only"] = 30, nil, "x" }, nil},
		{"scenarios that one alone ran", func(r *results.Record) { r.Options["neg-scattered"], r.Options["sync"] = true, true }, nil},
		{"processor", func(r *results.Record) { r.Environment.CPU = "Xeon" }, []string{"processor: AMD EPYC 7543 ≠ Xeon"}},
		{"cores and system", func(r *results.Record) { r.Environment.Cores, r.Environment.OS = 8, "darwin" }, []string{"operating system: linux ≠ darwin", "cores: 2 ≠ 8"}},
		{"architecture", func(r *results.Record) { r.Environment.Arch = "arm64" }, []string{"architecture: amd64 ≠ arm64"}},
		{"a quota", func(r *results.Record) { r.Environment.QuotaCores = 1.5 }, []string{"quota of the control group: none ≠ 1.50 cores"}},
		{"governor", func(r *results.Record) { r.Environment.Governor = "powersave" }, []string{"frequency governor: performance ≠ powersave"}},
		{"disk and file system", func(r *results.Record) { r.Environment.Disk, r.Environment.FileSystem = "SATA", "tmpfs" },
			[]string{"file system of the work folder: ext4 ≠ tmpfs", "disk of the work folder: NVMe ≠ SATA"}},
		{"a disk that turns", func(r *results.Record) { r.Environment.Rotational = true }, []string{"disk of the work folder: NVMe ≠ NVMe, which turns"}},
		{"hypervisor", func(r *results.Record) { r.Environment.Virtualization = "xen" }, []string{"hypervisor: kvm ≠ xen"}},
		{"cores of their own", func(r *results.Record) { r.Environment.RelayCores, r.Environment.HarnessCores = []int{1}, []int{0} },
			[]string{"cores of the relays alone: 0 ≠ 1", "cores of the harness alone: 0 ≠ 1"}},
		{"what one does not tell is a caution", func(r *results.Record) { r.Environment.Governor, r.Environment.Disk = "", "" }, nil},
		{"kernel and version are cautions", func(r *results.Record) { r.Environment.Kernel, r.Tool.Version = "7", "2" }, nil},
		{"what checks signatures is a caution", func(r *results.Record) { r.Tool.Verifier = "libsecp256k1" }, nil},
		{"a reporttest.Hostile value", func(r *results.Record) { r.Environment.CPU = "x\x1b[2J" }, []string{`processor: AMD EPYC 7543 ≠ x\u{1b}[2J`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := side("", compared(1, nil, "mine")), side("", compared(1, c.change, "mine"))
			_, err := Compare(before, after, Options{})
			var got []string
			if incomparable := (*IncomparableError)(nil); errors.As(err, &incomparable) {
				for _, d := range incomparable.Differences {
					got = append(got, d.String())
					if !strings.Contains(err.Error(), d.String()) {
						t.Errorf("the message lacks %q: %v", d, err)
					}
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("differs in %q, want %q", got, c.want)
			}
			forced := mustCompare(t, before, after, Options{Force: true})
			if banner := strings.Contains(string(renderings(t, forced)["txt"]), "NOT COMPARABLE"); banner != (len(c.want) > 0) {
				t.Errorf("banner %t when forced", banner)
			}
		})
	}
	if _, err := Compare(side("a"), side("b", compared(1, nil, "mine")), Options{}); err == nil {
		t.Error("an empty side was compared")
	}
}

func TestFiguresMoveOnlyWithEvidence(t *testing.T) {
	m := func(better results.Better, exact bool, trials ...float64) *results.Record {
		return &results.Record{Relays: []results.Relay{{Name: "a", Outcome: results.OutcomeOK}},
			Measurements: []results.Measurement{{Relay: "a", Scenario: "s", Metric: "m", Better: better, Exact: exact, Trials: trials}}}
	}
	for _, c := range []struct {
		name          string
		before, after *results.Record
		want          Outcome
	}{
		{"more where more is better", m(results.Higher, false, 1, 2, 3, 4), m(results.Higher, false, 6, 7, 8, 9), Improved},
		{"more where less is better", m(results.Lower, false, 1, 2, 3, 4), m(results.Lower, false, 6, 7, 8, 9), Worsened},
		{"more where neither is", m(results.None, false, 1, 2, 3, 4), m(results.None, false, 6, 7, 8, 9), Changed},
		{"too few trials", m(results.Lower, false, 1, 2, 3), m(results.Lower, false, 6, 7, 8), Unsettled},
		{"overlap", m(results.Lower, false, 1, 5, 3, 8), m(results.Lower, false, 6, 2, 8, 4), Unsettled},
		{"exactly the same", m(results.None, true, 5, 6), m(results.None, true, 5, 6, 9), Equal},
		{"exactly, in one trial", m(results.None, true, 5, 6), m(results.None, true, 5, 7), Changed},
		{"exactly, and worse", m(results.Lower, true, 5), m(results.Lower, true, 5.0001), Worsened},
		{"exactly, and better", m(results.Lower, true, 5), m(results.Lower, true, 4), Improved},
		{"exact on one side alone is not exact", m(results.Lower, true, 5), m(results.Lower, false, 4), Unsettled},
	} {
		c2 := mustCompare(t, side("", c.before), side("", c.after), Options{All: true})
		if got := c2.Relays[0].Figures[0].Outcome; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// fitsAnyTerminal tells of lines that are wider than the terminal that they are for, and of texts
// that a narrow one leaves out.
func fitsAnyTerminal(t *testing.T, write func(w io.Writer, width int) error) {
	t.Helper()
	for width := 20; width <= 80; width += 5 {
		var b bytes.Buffer
		if err := write(&b, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			if n := displaywidth.String(line); n > width {
				t.Errorf("at %d: %q has %d cells", width, line, n)
			}
		}
		if width < 60 && strings.Contains(b.String(), "…") {
			t.Errorf("at %d something is left out:\n%s", width, b.String())
		}
	}
}

// On a terminal of any width no line of a comparison goes beyond it.
func TestComparisonsFitAnyTerminal(t *testing.T) {
	c := mustCompare(t, side("20260830T120000Z", compared(1, nil, "mine", "gone")), side("b", compared(1.2, nil, "mine")), Options{All: true})
	fitsAnyTerminal(t, func(w io.Writer, width int) error {
		return c.Document().Terminal(w, report.TerminalOptions{Width: width})
	})
}

func TestSidesPoolTheirFilesAndLoneRelaysMatch(t *testing.T) {
	few := func(slower float64, name string) *results.Record {
		return compared(slower, func(r *results.Record) {
			for i := range r.Measurements {
				r.Measurements[i].Trials = r.Measurements[i].Trials[:2]
			}
		}, name)
	}
	c := mustCompare(t, side("", few(1, "mine")), side("", few(2, "yours")), Options{})
	if len(c.Relays) != 1 || c.Relays[0].Old != "mine" || c.Relays[0].New != "yours" || len(c.Unmatched) > 0 {
		t.Errorf("relays that are alone on their sides do not match: %+v %q", c.Relays, c.Unmatched)
	}
	untold := mustCompare(t, side("", compared(1, nil, "mine")), side("", compared(1, func(r *results.Record) { r.Environment.Governor, r.Environment.Disk = "", "" }, "mine")), Options{})
	if !slices.Contains(untold.Cautions, "Some of the results do not tell the frequency governor and the disk of the work folder: make sure that it was the same.") {
		t.Errorf("what one side does not tell: %q", untold.Cautions)
	}
	checked := func(by string) Side {
		return side("", compared(1, func(r *results.Record) { r.Tool.Verifier = by }, "mine"))
	}
	for by, told := range map[string]bool{"btcec": false, "libsecp256k1": true} {
		cautions := mustCompare(t, checked("btcec"), checked(by), Options{}).Cautions
		if slices.ContainsFunc(cautions, func(s string) bool { return strings.HasSuffix(s, ": btcec, libsecp256k1.") }) != told {
			t.Errorf("signatures checked by btcec and %s: %q", by, cautions)
		}
	}
	if f := c.Relays[0].Figures[0]; f.Outcome != Unsettled || !slices.ContainsFunc(c.Cautions, func(s string) bool { return strings.Contains(s, "never be significant") }) {
		t.Errorf("two trials a side: %s, %q", f.Outcome, c.Cautions)
	}
	c = mustCompare(t, side("", few(1, "mine"), few(1, "mine")), side("", few(2, "mine"), few(2, "mine")), Options{})
	if f := c.Relays[0].Figures[0]; f.Outcome != Worsened || f.Test.N1 != 4 || f.Test.N2 != 4 {
		t.Errorf("two files a side: %s, n=%d+%d", f.Outcome, f.Test.N1, f.Test.N2)
	}
	c = mustCompare(t, side("", compared(1, nil, "a", "b")), side("", compared(1, nil, "b", "c")), Options{})
	if len(c.Relays) != 1 || c.Relays[0].Old != "b" || len(c.Unmatched) != 2 {
		t.Errorf("matched %+v, unmatched %q", c.Relays, c.Unmatched)
	}
}

func TestComparisonsOfHostileRecordsAreSafe(t *testing.T) {
	rename := func(r *results.Record) {
		for i := range r.Measurements {
			m := &r.Measurements[i]
			m.Scenario, m.Unit = m.Scenario+reporttest.Hostile, reporttest.Hostile
		}
		r.Environment.CPU, r.Corpus.Fingerprint = reporttest.Hostile, reporttest.Hostile
		r.Findings = append(r.Findings, reporttest.Finding(reporttest.Hostile, "", "", reporttest.Hostile, false, reporttest.Hostile))
	}
	c := mustCompare(t, side(reporttest.Hostile, compared(1, rename, reporttest.Hostile)), side(reporttest.Hostile, compared(1.2, rename, reporttest.Hostile)), Options{All: true})
	for ext, text := range renderings(t, c) {
		if i := bytes.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s lets %q through", ext, text[i:min(i+8, len(text))])
		}
		switch ext {
		case "md":
			if bad := reporttest.Markup(string(text)); bad != "" {
				t.Errorf("markup of a record's own in %q", bad)
			}
		case "json":
			if !json.Valid(text) {
				t.Error("not JSON")
			}
		case "txt":
			for l := range strings.Lines(string(text)) {
				if displaywidth.String(strings.TrimSuffix(l, "\n")) > 100 {
					t.Errorf("a line is too wide: %q", l)
				}
			}
		}
	}
}

func TestFiguresTakenWhileTheHarnessWasAwayAreNotCompared(t *testing.T) {
	r := func(code string) *results.Record {
		return &results.Record{Relays: []results.Relay{{Name: "a", Outcome: results.OutcomeOK}}, Measurements: []results.Measurement{
			{Relay: "a", Scenario: "s", Metric: "m", Unit: "ms", Better: results.Lower, Trials: reporttest.Spread(10), Status: []results.Status{{Code: code}}}}}
	}
	for code, want := range map[string]Outcome{results.StatusAway: Incomplete, results.StatusRepeated: Unsettled} {
		for _, sides := range [][2]string{{code, results.StatusCoarse}, {results.StatusCoarse, code}} {
			c := mustCompare(t, side("", r(sides[0])), side("", r(sides[1])), Options{})
			if got := c.Relays[0].Figures[0].Outcome; got != want {
				t.Errorf("%v: %s, want %s", sides, got, want)
			}
		}
	}
}

// TestMetricsOfOneTitleAreToldApart by their keys, and only they show keys.
func TestMetricsOfOneTitleAreToldApart(t *testing.T) {
	r := compared(1, func(r *results.Record) {
		r.Metrics = append(r.Metrics, results.Metric{Key: "eose of another", Title: "time to EOSE"})
		for _, m := range r.Measurements {
			if m.Metric == "eose" {
				m.Metric = "eose of another"
				r.Measurements = append(r.Measurements, m)
			}
		}
	}, "mine")
	var got []string
	for _, f := range mustCompare(t, side("a", r), side("b", r), Options{}).Relays[0].Figures {
		if f.Scenario == "query.thread.hot" {
			got = append(got, f.title)
		}
	}
	slices.Sort(got)
	want := []string{"answers/s from all connections", "events in the answer", "time to EOSE (eose of another)", "time to EOSE (eose)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestWhatOneSideHasIsSaidOnce for all relays of which it is the same.
func TestWhatOneSideHasIsSaidOnce(t *testing.T) {
	old := compared(1, nil, "mine", "other")
	c := mustCompare(t, side("a", old), side("b", compared(1, func(r *results.Record) {
		r.Measurements = slices.DeleteFunc(r.Measurements, func(m results.Measurement) bool { return m.Scenario == "query.thread.hot" })
	}, "mine", "other")), Options{})
	want := "Only a has these figures of mine and other: query.thread.hot (3 figures)."
	if got := c.alone(); !slices.Equal(got, []string{want}) {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"txt", "md"} {
		if out := string(renderings(t, c)[name]); strings.Count(out, "thread") != 1 || strings.Contains(out, string(OldAlone)) {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}

// form1 is a record of form 1, which is upgraded on reading.
func form1(t *testing.T) *results.Record {
	t.Helper()
	r, err := results.ReadRecord(filepath.Join("..", "testdata", "form1.json"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A record of form 1 compares with one of this form: keys, labels and metrics are the same.
func TestForm1ComparesWithThisForm(t *testing.T) {
	old, now := form1(t), form1(t)
	path := filepath.Join(t.TempDir(), "results.json")
	if err := now.Write(path); err != nil {
		t.Fatal(err)
	}
	now, err := results.ReadRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	c := mustCompare(t, side("old", old), side("new", now), Options{All: true})
	if len(c.Relays) != 3 || len(c.Unmatched) != 0 {
		t.Fatalf("%d relays match, unmatched %q", len(c.Relays), c.Unmatched)
	}
	incomplete := 0
	for _, r := range c.Relays {
		seen := map[string]bool{}
		for i := range r.Figures {
			f := &r.Figures[i]
			if f.Outcome == Incomplete {
				incomplete++
			} else if f.Outcome != Equal && f.Outcome != Unsettled {
				t.Errorf("%s %s: %s", r.Old, f.Name(), f.Outcome)
			}
			if name := f.Name() + f.Unit; seen[name] {
				t.Errorf("two figures of %s are called %q", r.Old, name)
			} else {
				seen[name] = true
			}
		}
	}
	if incomplete == 0 {
		t.Error("incomplete downloads are compared")
	}
}

// What tells figures of one scenario apart is in their names, in the lines for benchstat and in
// JSON.
func TestComparisonsTellLabelsApart(t *testing.T) {
	r := func(factor float64) *results.Record {
		return &results.Record{Relays: []results.Relay{{Name: "a", Outcome: results.OutcomeOK}}, Measurements: []results.Measurement{
			{Relay: "a", Scenario: "s", Metric: "m", Unit: "ms", Better: results.Lower, Trials: reporttest.Spread(10), Labels: results.Labels{"form": "raw", "strategy": "x"}},
			{Relay: "a", Scenario: "s", Metric: "m", Unit: "ms", Better: results.Lower, Trials: reporttest.Spread(20 * factor), Labels: results.Labels{"form": "parsed", "strategy": "x"}}}}
	}
	c := mustCompare(t, side("", r(1)), side("", r(2)), Options{})
	var got []string
	for _, f := range c.Relays[0].Figures {
		got = append(got, f.place()+": "+string(f.Outcome))
	}
	if strings.Join(got, "; ") != "s, parsed: worse; s, raw: ~" {
		t.Errorf("%q", got)
	}
	out := renderings(t, c)
	if bench := string(out["bench"]); !strings.Contains(bench, "BenchmarkS/form=parsed/relay=a/side=new") || strings.Contains(bench, "strategy") {
		t.Errorf("%s", bench)
	}
	if !strings.Contains(string(out["json"]), `"form": "parsed"`) {
		t.Errorf("%s", out["json"])
	}
}

func TestAnIncompleteFigureIsNotCompared(t *testing.T) {
	r := func(value float64, status ...results.Status) *results.Record {
		m := func(form string, status ...results.Status) results.Measurement {
			return results.Measurement{Relay: "a", Scenario: "fetch.giant", Metric: "records/s", Unit: "events/s", Better: results.Higher, Trials: reporttest.Spread(value),
				Labels: results.Labels{results.LabelForm: form}, Status: status}
		}
		return &results.Record{Relays: []results.Relay{{Name: "a", Outcome: results.OutcomeOK}}, Measurements: []results.Measurement{m("raw", status...), m("parsed")}}
	}
	c := mustCompare(t, side("", r(10)), side("", r(3, results.Status{Code: results.StatusIncomplete, Cause: results.CauseEnded})), Options{})
	outcomes := map[string]Outcome{}
	for _, f := range c.Relays[0].Figures {
		outcomes[f.place()] = f.Outcome
	}
	if outcomes["fetch.giant, raw"] != Incomplete || outcomes["fetch.giant, parsed"] != Worsened {
		t.Errorf("%v", outcomes)
	}
}

// What a machine was short of is no shortcoming of a relay.
func TestAShortageIsNoShortcoming(t *testing.T) {
	r := &results.Record{Relays: []results.Relay{{Name: "a", Outcome: results.OutcomeUnmeasured, Shortage: results.ShortageDisk, Reason: "died in ingest.throughput: exited with status 1"}},
		Findings: []results.Finding{{Relay: "a", Scenario: "storage", Code: results.CodeCompletes, Verdict: results.Undecided, Cause: results.ShortageMemory}}}
	if short := Shortcomings([]*results.Record{r}, "a", func(*results.Measurement) bool { return true }); len(short) > 0 {
		t.Errorf("it is said that a fell short: %q", short)
	}
}

func TestTheHarnessItselfIsComparedUnderItsName(t *testing.T) {
	layers := func(ms float64) Side {
		r := &results.Record{Relays: []results.Relay{{Name: "alpha", Outcome: results.OutcomeOK}}, Metrics: []results.Metric{{Key: "warm", Title: "warm"}}}
		for _, m := range []results.Measurement{{Scenario: "reconcile.harness", Labels: results.Labels{results.LabelLayer: "in memory"}},
			{Scenario: "reconcile.harness", Labels: results.Labels{results.LabelLayer: "loopback"}}, {Relay: "alpha", Scenario: "reconcile.relay"}} {
			m.Metric, m.Unit, m.Better, m.Trials = "warm", "ms", results.Lower, []float64{ms}
			r.Measurements = append(r.Measurements, m)
			r.Scenarios = append(r.Scenarios, results.Scenario{Key: m.Scenario, Title: m.Scenario, Section: "Reconcile", Primary: "warm", Layout: results.LayoutTable})
		}
		return Side{Label: "side", Records: []*results.Record{r}}
	}
	var b strings.Builder
	if err := mustCompare(t, layers(123), layers(124), Options{}).Document().Terminal(&b, report.TerminalOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"THE HARNESS ITSELF", "ALPHA", "reconcile.harness", "loopback"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "with itself") {
		t.Errorf("nobody met anybody:\n%s", b.String())
	}
}
