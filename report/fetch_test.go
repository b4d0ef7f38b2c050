package report

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"relaybench/harness/measure"
)

// cell records a way to download in one trial after another.
func (r *run) cell(c contender, key string, rate float64, change ...func(*measure.Measurement)) {
	scenario := "fetch." + key
	add := func(metric, unit string, better measure.Better, value float64, more ...func(*measure.Measurement)) {
		r.add(c, scenario, metric, unit, better, value, append(more, change...)...)
	}
	add(metricRecords, "events/s", measure.Higher, rate)
	add("MB/s", "MB/s", measure.None, rate*c.speed/1000)
	add("delivered", "events", measure.None, 10000)
	add("expected", "events", measure.None, 10000)
	add("missing", "events", measure.None, 0)
	if strings.HasPrefix(key, "by-id") || strings.HasPrefix(key, "negentropy") {
		add("retried", "ids", measure.None, 250)
		add("failed", "ids", measure.None, 7)
	}
	add("duplicates", "events", measure.None, 3)
	add("overfetch", "bytes/byte", measure.None, 1.02)
	add("requests", "requests", measure.None, 80)
	add("requests answered", "requests", measure.None, 79)
	add("requests closed", "requests", measure.None, 1)
	add("requests unfinished", "requests", measure.None, 0)
	add("wall time", "s", measure.None, 1e4/rate)
	add("response bytes", "MiB", measure.None, 8.2)
	add("current state", "events", measure.None, 9200)
	add("superseded", "events", measure.None, 800)
	add("deleted", "events", measure.None, 0)
	add("authors", "authors", measure.None, 310)
	add("tool peak rss", "MiB", measure.None, 61)
	add("request latency", "ms", measure.None, 1e5/rate, r.spread(80))
	add("in flight by Little's law", "requests", measure.None, 3.1)
	add("in flight configured", "requests", measure.None, 4)
	add("tool cpu per event", "us", measure.None, 2.2)
}

// downloads is a run in which relays were downloaded from.
func downloads(t testing.TB, trials int, relays ...contender) *run {
	r := newRun(t, trials)
	for i, c := range relays {
		r.join(i, c)
		for j, strategy := range []string{"giant", "paged", "sharded-giant", "sharded-paged", "negentropy"} {
			for _, form := range []string{"raw", "parsed"} {
				rate := 300_000 / float64(j+1)
				if form == "parsed" {
					rate /= 20
				}
				r.cell(c, strategy+"."+form, rate, func(m *measure.Measurement) {
					if form == "parsed" && m.Metric == metricRecords {
						limited(m)
					}
				})
				if form == "parsed" {
					r.add(c, "fetch."+strategy+".parsed", "parsed of raw", "%", measure.None, 5, func(m *measure.Measurement) {
						m.AddStatus(measure.Status{Code: measure.StatusPace, Cause: measure.CausePaceClient})
					})
				}
			}
		}
		for _, batch := range []int{50, 250} {
			for _, conns := range []int{1, 4} {
				for _, inFlight := range []int{1, 8} {
					key := fmt.Sprintf("by-id.c%d.f%d.b%d.", conns, inFlight, batch)
					r.cell(c, key+"raw", float64(20_000*conns*inFlight)*float64(batch)/100)
					r.cell(c, key+"parsed", float64(1000*conns))
				}
			}
		}
		r.cell(c, "by-id.c4.adaptive.b125.raw", 640_000)
		for _, step := range []int{1, 2, 4} {
			r.add(c, "fetch.by-id.c4.adaptive.b125.raw", fmt.Sprintf("with %d in flight", step), "events/s", measure.None, float64(step)*1e5)
		}
		r.add(c, "fetch.giant", "peak rss", "MiB", measure.None, 60)
		r.find(c.name, "fetch.giant", measure.CodeComplete, true)
		for trial := range trials {
			r.rec.Add(measure.Measurement{Relay: c.name, Scenario: "fetch.giant.raw-deflate", Metric: metricRecords, Unit: "events/s", Better: measure.Higher,
				Status: []measure.Status{{Code: measure.StatusNotMeasured, Texts: map[string]string{"text": "the relay does not agree to compression"}}}})
			_ = trial
		}
	}
	return r
}

// incomplete marks what one relay did in one cell: a strategy and its labels.
func incomplete(r *measure.Record, relay, scenario string, labels measure.Labels, s measure.Status) {
	s.Code = measure.StatusIncomplete
	for i := range r.Measurements {
		if m := &r.Measurements[i]; m.Relay == relay && m.Scenario == scenario && m.Labels.Contains(labels) && m.Labels[measure.LabelEncoding] == "" {
			m.AddStatus(s)
		}
	}
}

var raw = measure.Labels{measure.LabelForm: "raw"}

func addFetchFixtures(t testing.TB, out map[string]*measure.Record) {
	out["fetch-one-relay"] = downloads(t, 1, bolt).record()
	two := downloads(t, 4, bolt, sqlite).record()
	incomplete(two, "ref-sqlite", "fetch.giant", raw,
		measure.Status{Cause: measure.CauseMissing, Texts: map[string]string{"text": "the relay caps an answer at its newest 500 events"}})
	incomplete(two, "ref-sqlite", "fetch.by-id",
		measure.Labels{measure.LabelConnections: "4", measure.LabelInFlight: "8", measure.LabelBatch: "250", measure.LabelForm: "raw"},
		measure.Status{Cause: measure.CauseCut, Texts: map[string]string{"limit": "--cell-time 20s"}})
	out["fetch-two-relays"] = two
}

func TestADownloadThatIsIncompleteIsNotRanked(t *testing.T) {
	rank := func(change func(*measure.Record)) (marks []string, wins int) {
		r := downloads(t, 4, bolt, sqlite).record()
		change(r)
		v := newView(r)
		d := v.download()
		for _, c := range d.cells {
			if c.strategy == "giant" && c.form == "raw" {
				for _, row := range c.rate.rows {
					marks = append(marks, mark(c.rate, row))
				}
			}
		}
		_, standings, _ := v.headToHead()
		return marks, standings[0].wins
	}
	whole, wins := rank(func(*measure.Record) {})
	if strings.Join(whole, ",") != "★," || wins != 5 {
		t.Errorf("complete: %q, %d wins", whole, wins)
	}
	for _, relay := range []string{"ref-bolt", "ref-sqlite"} {
		if marks, fewer := rank(func(r *measure.Record) {
			incomplete(r, relay, "fetch.giant", raw, measure.Status{Cause: measure.CauseMissing})
		}); strings.Join(marks, ",") != "," || fewer != 4 {
			t.Errorf("%s incomplete: %q, %d wins", relay, marks, fewer)
		}
	}
}

func TestAnIncompleteFigureIsNotCompared(t *testing.T) {
	before, after := downloads(t, 6, bolt).record(), downloads(t, 6, contender{bolt.name, "batch", 0.3}).record()
	incomplete(after, "ref-bolt", "fetch.giant", raw, measure.Status{Cause: measure.CauseEnded})
	c, err := Compare(Side{Records: []*measure.Record{before}}, Side{Records: []*measure.Record{after}}, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]FigureOutcome{}
	for _, f := range c.Relays[0].Figures {
		if f.Metric == metricRecords {
			outcomes[f.place()] = f.Outcome
		}
	}
	if outcomes["fetch.giant, raw"] != Incomplete || outcomes["fetch.giant, parsed"] != Worsened || outcomes["fetch.paged, raw"] != Worsened {
		t.Errorf("%v", outcomes)
	}
}

// What was asked for again and what was never answered stand beside what is missing, for every setting, with how long a REQ took and how many were open.
func TestEverySettingHasItsFigures(t *testing.T) {
	d := newView(fixtures(t)["fetch-two-relays"]).download()
	tried := d.tried("ref-sqlite", "raw")
	if len(tried) != 8 || tried[0].cell.setting() != "1×1×50" || tried[7].cell.setting() != "4×8×250" {
		t.Fatalf("%d settings: %+v", len(tried), tried)
	}
	for _, l := range append(tried, d.lines()...) {
		figures := l.figures()
		of := func(column string) string { return figures[slices.Index(fetchHead, column)] }
		retried, failed := "250", "7"
		if l.cell.strategy != "by-id" && l.cell.strategy != "negentropy" {
			retried, failed = nothing, nothing
		}
		if len(figures) != len(fetchHead) || of("retried") != retried || of("failed") != failed || of("missing") != "0" || of("again") != "3" || of("in flight") != "3.1 of 4" {
			t.Errorf("%s, %s: %q", l.cell.label(), l.cell.form, figures)
		}
		for _, column := range []string{"REQ p50", "p99", "max"} {
			if of(column) == nothing {
				t.Errorf("%s, %s: no %s", l.cell.label(), l.cell.form, column)
			}
		}
	}
}

func TestATerminalSparesColumnsThatSayNothing(t *testing.T) {
	r := downloads(t, 1, bolt).record()
	shown := func() (retried, failed bool) {
		text := string(renderTerminal(t, r, TerminalOptions{Width: 200}))
		_, text, _ = strings.Cut(text, "events/s  ")
		text, _, _ = strings.Cut(text, "giant")
		return strings.Contains(text, "retried"), strings.Contains(text, "failed")
	}
	if retried, failed := shown(); !retried || !failed {
		t.Errorf("what is not zero is shown: retried %v, failed %v", retried, failed)
	}
	for i := range r.Measurements {
		if m := &r.Measurements[i]; m.Metric == "failed" {
			m.Trials = []float64{0}
		}
	}
	if retried, failed := shown(); !retried || failed {
		t.Errorf("nothing failed: retried %v, failed %v", retried, failed)
	}
}

// Without a corpus nothing has a fingerprint, though the record holds one.
func TestARunWithoutACorpusSaysSo(t *testing.T) {
	r := downloads(t, 1, bolt).record()
	const print = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	r.Corpus = measure.Corpus{Source: "none: what the relay holds is not known beforehand", Fingerprint: print, Kinds: map[string]int{}}
	var text, md bytes.Buffer
	if err := errors.Join(Terminal(&text, r, TerminalOptions{Width: 160}), Markdown(&md, r)); err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{"terminal": text.String(), "report.md": md.String()} {
		if !strings.Contains(out, "no corpus was named") || strings.Contains(out, print[:8]) || strings.Contains(out, "0 events") {
			t.Errorf("%s:\n%.3000s", name, out)
		}
	}
}

func TestTheMatrixNamesTheBestSetting(t *testing.T) {
	d := newView(fixtures(t)["fetch-two-relays"]).download()
	if best := d.best("ref-bolt", "raw"); best == nil || best.name() != "by-id 4×8×250, raw" {
		t.Errorf("%+v", best)
	}
	// One that was cut is not the best while another was not.
	if best := d.best("ref-sqlite", "raw"); best == nil || best.name() != "by-id 1×8×250, raw" {
		t.Errorf("%+v", best)
	}
	if d.best("ref-bolt", "raw-deflate") != nil {
		t.Error("a form that was not measured has a best")
	}
}
