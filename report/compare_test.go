package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/results"
)

// compared is a record of the named relays with ten trials; slower multiplies what it takes, and change does the rest.
func compared(slower float64, change func(*results.Record), relays ...string) *results.Record {
	r := &results.Record{
		Schema: results.Schema, StartedAt: time.Date(2026, 8, 30, 12, 0, 0, 0, time.UTC),
		Tool:        results.Tool{Version: "0.1.0", Revision: "4be1c2d09f7766"},
		Environment: results.Environment{OS: "linux", Arch: "amd64", Kernel: "6.8", CPU: "AMD EPYC 7543", Cores: 2, Governor: "performance", Virtualization: "kvm", FileSystem: "ext4", Disk: "NVMe"},
		Corpus:      results.Corpus{Source: "synthetic", Fingerprint: strings.Repeat("3fa9c01d7be24856", 4), Events: 10000},
		Options:     map[string]any{"window": 200.0, "samples": 200.0, "seed": 1.0, "trials": 10.0, "args": []any{"--trials", "10"}},
	}
	trials := func(center float64) []float64 {
		out := make([]float64, 10)
		for i := range out {
			out[i] = center * wobble(i)
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
	return described(r)
}

func mustCompare(t *testing.T, before, after Side, o CompareOptions) *Comparison {
	t.Helper()
	c, err := Compare(before, after, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func side(label string, records ...*results.Record) Side { return Side{label, records} }

func renderings(t *testing.T, c *Comparison) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for name, write := range map[string]func(io.Writer) error{
		"txt": func(w io.Writer) error { return c.Terminal(w, TerminalOptions{Width: 100}) }, "md": c.Markdown, "json": c.JSON, "bench": c.Benchfmt,
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
		r.Findings = append(r.Findings, finding("mine", "", "query.thread.hot", results.CodeModel, false, "it does not"))
		r.Tool.Revision = "99e1c2d09f7766"
	}, "mine", "other", "come")
	c := mustCompare(t, side("20260830T120000Z", before), side("20260831T120000Z", after, after), CompareOptions{})
	for ext, text := range renderings(t, c) {
		golden(t, "compare."+ext, text)
	}
	forced := mustCompare(t, side("a", before), side("b", compared(1, func(r *results.Record) { r.Environment.Cores = 8 }, "mine")), CompareOptions{Force: true, All: true})
	golden(t, "compare-forced.txt", renderings(t, forced)["txt"])
	golden(t, "compare-forced.md", renderings(t, forced)["md"])
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
		{"a hostile value", func(r *results.Record) { r.Environment.CPU = "x\x1b[2J" }, []string{`processor: AMD EPYC 7543 ≠ x\u{1b}[2J`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := side("", compared(1, nil, "mine")), side("", compared(1, c.change, "mine"))
			_, err := Compare(before, after, CompareOptions{})
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
			forced := mustCompare(t, before, after, CompareOptions{Force: true})
			if banner := strings.Contains(string(renderings(t, forced)["txt"]), "NOT COMPARABLE"); banner != (len(c.want) > 0) {
				t.Errorf("banner %t when forced", banner)
			}
		})
	}
	if _, err := Compare(side("a"), side("b", compared(1, nil, "mine")), CompareOptions{}); err == nil {
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
		want          FigureOutcome
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
		c2 := mustCompare(t, side("", c.before), side("", c.after), CompareOptions{All: true})
		if got := c2.Relays[0].Figures[0].Outcome; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// On a terminal of any width no line of a comparison, a gate or checks goes beyond it.
func TestComparisonsAndGatesFitAnyTerminal(t *testing.T) {
	c := mustCompare(t, side("20260830T120000Z", compared(1, nil, "mine", "gone")), side("b", compared(1.2, nil, "mine")), CompareOptions{All: true})
	g := mustGate(t, gated(10, []string{"base", "head"}, flat1), pairOfBuilds)
	checks := []Checked{{Relay: results.Relay{Name: "mine", Outcome: results.OutcomeOK, Capabilities: map[string]string{"a capability with a long name": "yes, and more"}},
		Findings: []results.Finding{{Code: results.CodeStores, Verdict: results.Passed}, {Code: results.CodeLimit, Verdict: results.Failed, Cause: results.CauseFlood}}}}
	for w := 20; w <= 80; w += 5 {
		o := TerminalOptions{Width: w}
		for name, write := range map[string]func(io.Writer) error{"compare": func(b io.Writer) error { return c.Terminal(b, o) },
			"gate": func(b io.Writer) error { return g.Terminal(b, o) }, "check": func(b io.Writer) error { return Checks(b, checks, o) }} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(b.String(), "\n") {
				if width(line) > w {
					t.Errorf("%s at %d: %q has %d cells", name, w, line, width(line))
				}
			}
			if w < narrow && strings.Contains(b.String(), "…") {
				t.Errorf("%s at %d leaves something out:\n%s", name, w, b.String())
			}
		}
	}
}

func TestSidesPoolTheirFilesAndLoneRelaysMatch(t *testing.T) {
	few := func(slower float64, name string) *results.Record {
		return compared(slower, func(r *results.Record) {
			for i := range r.Measurements {
				r.Measurements[i].Trials = r.Measurements[i].Trials[:2]
			}
		}, name)
	}
	c := mustCompare(t, side("", few(1, "mine")), side("", few(2, "yours")), CompareOptions{})
	if len(c.Relays) != 1 || c.Relays[0].Old != "mine" || c.Relays[0].New != "yours" || len(c.Unmatched) > 0 {
		t.Errorf("relays that are alone on their sides do not match: %+v %q", c.Relays, c.Unmatched)
	}
	untold := mustCompare(t, side("", compared(1, nil, "mine")), side("", compared(1, func(r *results.Record) { r.Environment.Governor, r.Environment.Disk = "", "" }, "mine")), CompareOptions{})
	if !slices.Contains(untold.Cautions, "Some of the results do not tell the frequency governor, the disk of the work folder: make sure that it was the same.") {
		t.Errorf("what one side does not tell: %q", untold.Cautions)
	}
	checked := func(by string) Side {
		return side("", compared(1, func(r *results.Record) { r.Tool.Verifier = by }, "mine"))
	}
	for by, told := range map[string]bool{"btcec": false, "libsecp256k1": true} {
		cautions := mustCompare(t, checked("btcec"), checked(by), CompareOptions{}).Cautions
		if slices.ContainsFunc(cautions, func(s string) bool { return strings.HasSuffix(s, ": btcec, libsecp256k1.") }) != told {
			t.Errorf("signatures checked by btcec and %s: %q", by, cautions)
		}
	}
	if f := c.Relays[0].Figures[0]; f.Outcome != Unsettled || !slices.ContainsFunc(c.Cautions, func(s string) bool { return strings.Contains(s, "never be significant") }) {
		t.Errorf("two trials a side: %s, %q", f.Outcome, c.Cautions)
	}
	c = mustCompare(t, side("", few(1, "mine"), few(1, "mine")), side("", few(2, "mine"), few(2, "mine")), CompareOptions{})
	if f := c.Relays[0].Figures[0]; f.Outcome != Worsened || f.Test.N1 != 4 || f.Test.N2 != 4 {
		t.Errorf("two files a side: %s, n=%d+%d", f.Outcome, f.Test.N1, f.Test.N2)
	}
	c = mustCompare(t, side("", compared(1, nil, "a", "b")), side("", compared(1, nil, "b", "c")), CompareOptions{})
	if len(c.Relays) != 1 || c.Relays[0].Old != "b" || len(c.Unmatched) != 2 {
		t.Errorf("matched %+v, unmatched %q", c.Relays, c.Unmatched)
	}
}

func TestComparisonsOfHostileRecordsAreSafe(t *testing.T) {
	rename := func(r *results.Record) {
		for i := range r.Measurements {
			m := &r.Measurements[i]
			m.Scenario, m.Unit = m.Scenario+hostile, hostile
		}
		r.Environment.CPU, r.Corpus.Fingerprint = hostile, hostile
		r.Findings = append(r.Findings, finding(hostile, "", "", hostile, false, hostile))
	}
	c := mustCompare(t, side(hostile, compared(1, rename, hostile)), side(hostile, compared(1.2, rename, hostile)), CompareOptions{All: true})
	for ext, text := range renderings(t, c) {
		if i := bytes.IndexFunc(text, func(r rune) bool { return r != '\n' && !shows(r) }); i >= 0 {
			t.Errorf("%s lets %q through", ext, text[i:min(i+8, len(text))])
		}
		switch ext {
		case "md":
			if bad := markup(string(text)); bad != "" {
				t.Errorf("markup of a record's own in %q", bad)
			}
		case "json":
			if !json.Valid(text) {
				t.Error("not JSON")
			}
		case "txt":
			for l := range strings.Lines(string(text)) {
				if width(strings.TrimSuffix(l, "\n")) > 100 {
					t.Errorf("a line is too wide: %q", l)
				}
			}
		}
	}
}

func TestFiguresTakenWhileTheHarnessWasAwayAreNotCompared(t *testing.T) {
	r := func(code string) *results.Record {
		return &results.Record{Relays: []results.Relay{{Name: "a", Outcome: results.OutcomeOK}}, Measurements: []results.Measurement{
			{Relay: "a", Scenario: "s", Metric: "m", Unit: "ms", Better: results.Lower, Trials: spread(10), Status: []results.Status{{Code: code}}}}}
	}
	for code, want := range map[string]FigureOutcome{results.StatusAway: Incomplete, results.StatusRepeated: Unsettled} {
		for _, sides := range [][2]string{{code, results.StatusCoarse}, {results.StatusCoarse, code}} {
			c := mustCompare(t, side("", r(sides[0])), side("", r(sides[1])), CompareOptions{})
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
	for _, f := range mustCompare(t, side("a", r), side("b", r), CompareOptions{}).Relays[0].Figures {
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
	}, "mine", "other")), CompareOptions{})
	want := "Of mine, other there is in a alone: query.thread.hot (3 figures)."
	if got := c.alone(); !slices.Equal(got, []string{want}) {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"txt", "md"} {
		if out := string(renderings(t, c)[name]); strings.Count(out, "thread") != 1 || strings.Contains(out, string(OldAlone)) {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}
