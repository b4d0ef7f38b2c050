package report

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"relaybench/results"
)

// cell records a way to download in one trial after another.
func (r *run) cell(c contender, key string, rate float64, change ...func(*results.Measurement)) {
	scenario := "fetch." + key
	add := func(metric, unit string, better results.Better, value float64, more ...func(*results.Measurement)) {
		r.add(c, scenario, metric, unit, better, value, append(more, change...)...)
	}
	add("records/s", "events/s", results.Higher, rate)
	add("MB/s", "MB/s", results.None, rate*c.speed/1000)
	add("delivered", "events", results.None, 10000)
	add("expected", "events", results.None, 10000)
	add("missing", "events", results.None, 0)
	if strings.HasPrefix(key, "by-id") || strings.HasPrefix(key, "negentropy") {
		add("retried", "ids", results.None, 250)
		add("failed", "ids", results.None, 7)
	}
	add("duplicates", "events", results.None, 3)
	add("overfetch", "bytes/byte", results.None, 1.02)
	add("requests", "requests", results.None, 80)
	add("requests answered", "requests", results.None, 79)
	add("requests closed", "requests", results.None, 1)
	add("requests unfinished", "requests", results.None, 0)
	add("wall time", "s", results.None, 1e4/rate)
	add("response bytes", "MiB", results.None, 8.2)
	add("current state", "events", results.None, 9200)
	add("superseded", "events", results.None, 800)
	add("deleted", "events", results.None, 0)
	add("authors", "authors", results.None, 310)
	add("tool peak rss", "MiB", results.None, 61)
	add("request latency", "ms", results.None, 1e5/rate, r.spread(80))
	add("in flight by Little's law", "requests", results.None, 3.1)
	add("in flight configured", "requests", results.None, 4)
	add("tool cpu per event", "us", results.None, 2.2)
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
				r.cell(c, strategy+"."+form, rate, func(m *results.Measurement) {
					if form == "parsed" && m.Metric == "records/s" {
						limited(m)
					}
				})
				if form == "parsed" {
					r.add(c, "fetch."+strategy+".parsed", "parsed of raw", "%", results.None, 5, func(m *results.Measurement) {
						m.AddStatus(results.Status{Code: results.StatusBottleneck, Cause: results.BottleneckClient})
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
			r.add(c, "fetch.by-id.c4.adaptive.b125.raw", fmt.Sprintf("with %d in flight", step), "events/s", results.None, float64(step)*1e5)
		}
		r.add(c, "fetch.giant", "peak rss", "MiB", results.None, 60)
		r.find(c.name, "fetch.giant", results.CodeComplete, true)
		for range trials {
			r.rec.Add(results.Measurement{Relay: c.name, Scenario: "fetch.giant.raw-deflate", Metric: "records/s", Unit: "events/s", Better: results.Higher,
				Status: []results.Status{{Code: results.StatusNotMeasured, Texts: map[string]string{"text": "the relay does not agree to compression"}}}})
		}
	}
	return r
}

// incomplete marks what one relay did in one cell: a strategy and its labels.
func incomplete(r *results.Record, relay, scenario string, labels results.Labels, s results.Status) {
	s.Code = results.StatusIncomplete
	for i := range r.Measurements {
		if m := &r.Measurements[i]; m.Relay == relay && m.Scenario == scenario && m.Labels.Contains(labels) && m.Labels[results.LabelEncoding] == "" {
			m.AddStatus(s)
		}
	}
}

var raw = results.Labels{results.LabelForm: "raw"}

func addFetchFixtures(t testing.TB, out map[string]*results.Record) {
	out["fetch-one-relay"] = downloads(t, 1, bolt).record()
	two := downloads(t, 4, bolt, sqlite).record()
	incomplete(two, "ref-sqlite", "fetch.giant", raw,
		results.Status{Cause: results.CauseMissing, Texts: map[string]string{"text": "the relay caps an answer at its newest 500 events"}})
	incomplete(two, "ref-sqlite", "fetch.by-id",
		results.Labels{results.LabelConnections: "4", results.LabelInFlight: "8", results.LabelBatch: "250", results.LabelForm: "raw"},
		results.Status{Cause: results.CauseCut, Texts: map[string]string{"limit": "--cell-time 20s"}})
	out["fetch-two-relays"] = two
}

// waysOf lists the ways to download.
func waysOf(v *view) (ways []entry) {
	for _, s := range v.sections {
		for _, g := range s.layouts() {
			if g[0].layout == results.LayoutDownloads {
				ways = append(ways, waysTo(g)...)
			}
		}
	}
	return ways
}

func TestADownloadThatIsIncompleteIsNotRanked(t *testing.T) {
	rank := func(change func(*results.Record)) (marks []string, wins int) {
		r := downloads(t, 4, bolt, sqlite).record()
		change(r)
		v := newView(r)
		for _, w := range waysOf(v) {
			if strings.Join(w.labels[:2], ", ") == "giant, raw" {
				marks = append(marks, mark(w.primary()))
			}
		}
		_, standings, _ := v.headToHead()
		return marks, standings[0].wins
	}
	whole, wins := rank(func(*results.Record) {})
	if strings.Join(whole, ",") != "★," || wins != 5 {
		t.Errorf("complete: %q, %d wins", whole, wins)
	}
	for _, relay := range []string{"ref-bolt", "ref-sqlite"} {
		if marks, fewer := rank(func(r *results.Record) {
			incomplete(r, relay, "fetch.giant", raw, results.Status{Cause: results.CauseMissing})
		}); strings.Join(marks, ",") != "," || fewer != 4 {
			t.Errorf("%s incomplete: %q, %d wins", relay, marks, fewer)
		}
	}
}

// What was asked for again and what was never answered stand beside what is missing, for every
// setting, with how long a REQ took and how many were open.
func TestEverySettingHasItsFigures(t *testing.T) {
	out := string(renderMarkdown(t, fixtures(t)["fetch-two-relays"]))
	_, rest, _ := strings.Cut(out, "## Fetch")
	tried := tableIn(rest)
	if len(tried) != 2*(5*2+1+2*8+1) {
		t.Fatalf("%d ways: %v", len(tried), tried)
	}
	for _, l := range tried {
		if l["form"] == "raw-deflate" {
			if !strings.HasPrefix(l["records/s"], "n/a ") {
				t.Errorf("%v", l)
			}
			continue
		}
		retried, failed := "250", "7"
		if !strings.HasPrefix(l[""], "by-id") && l[""] != "negentropy" {
			retried, failed = nothing, nothing
		}
		if l["retried"] != retried || l["failed"] != failed || l["missing"] != "0" || l["duplicates"] != "3" || l["in flight"] != "3.10" || l["in flight at most"] != "4" {
			t.Errorf("%v", l)
		}
		for _, column := range []string{"REQ time", "REQ time p99", "REQ time max"} {
			if l[column] == nothing || l[column] == "" {
				t.Errorf("%s, %s: no %s", l[""], l["form"], column)
			}
		}
	}
}

// tableIn reads the first table of a Markdown text: its rows by the heads of the columns.
func tableIn(text string) (rows []map[string]string) {
	_, text, _ = strings.Cut(text, "\n|")
	text, _, _ = strings.Cut(text, "\n\n")
	lines := strings.Split(text, "\n")
	head := strings.Split(strings.Trim(lines[0], "|"), "|")
	for _, line := range lines[2:] {
		row := map[string]string{}
		for i, text := range strings.Split(strings.Trim(line, "|"), "|") {
			row[strings.TrimSpace(head[i])] = strings.TrimSpace(text)
		}
		rows = append(rows, row)
	}
	return rows
}

func TestATerminalSparesColumnsThatSayNothing(t *testing.T) {
	r := downloads(t, 1, bolt).record()
	for _, failed := range []bool{true, false} {
		text := string(renderTerminal(t, r, TerminalOptions{Width: 200}))
		_, text, _ = strings.Cut(text, "form")
		text, _, _ = strings.Cut(text, "giant")
		if !strings.Contains(text, "retried") || strings.Contains(text, "failed") != failed {
			t.Errorf("failed %v: columns %s", failed, text)
		}
		for i := range r.Measurements {
			if m := &r.Measurements[i]; m.Metric == "failed" {
				m.Trials = []float64{0}
			}
		}
	}
}

// Without a corpus nothing has a fingerprint, though the record holds one.
func TestARunWithoutACorpusSaysSo(t *testing.T) {
	r := downloads(t, 1, bolt).record()
	const print = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	r.Corpus = results.Corpus{Source: "none: what the relay holds is not known beforehand", Fingerprint: print, Kinds: map[string]int{}}
	var text, md bytes.Buffer
	if err := errors.Join(Terminal(&text, r, TerminalOptions{Width: 160}), Markdown(&md, r)); err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{"terminal": text.String(), "report.md": md.String()} {
		if !strings.Contains(out, "what the relay holds is not known beforehand") || strings.Contains(out, print[:8]) || strings.Contains(out, "0 events") {
			t.Errorf("%s:\n%.3000s", name, out)
		}
	}
}

func TestTheMatrixNamesTheBestSetting(t *testing.T) {
	ways := waysOf(newView(fixtures(t)["fetch-two-relays"]))
	// One that was cut is not the best while another was not.
	var found []string
	for _, w := range ways {
		if w.best {
			found = append(found, strings.Join(w.labels, " "))
		}
	}
	if got, want := strings.Join(found, ", "), "by-id 4×1×50 parsed ref-bolt, by-id 4×1×50 parsed ref-sqlite, by-id 1×8×250 raw ref-sqlite, by-id 4×8×250 raw ref-bolt"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
