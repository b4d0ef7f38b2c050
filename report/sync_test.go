package report

import (
	"slices"
	"strings"
	"testing"

	"relaybench/report/reporttest"
	"relaybench/results"
)

// syncRun is a run in which two relays fill each other, one of which has no command of its own, and
// one of which drops slow readers.
func syncRun(t testing.TB, trials int) *results.Record {
	impatient := contender{"impatient", "none", 1.2}
	r := pairRun(t, trials, bolt, impatient)
	for _, source := range []contender{bolt, impatient} {
		for _, sink := range []contender{bolt, impatient} {
			r.probe(sink.name, true, "NEG-OPEN is answered")
			r.rec.AddFinding(results.Finding{Relay: sink.name, Peer: source.name, Scenario: "sync.native", Code: results.CodeHasWay,
				Verdict: results.Stated, Cause: results.StatusText, Texts: map[string]string{"text": "its definition names no sync command"}})
			r.syncs(sink, source, "sync.negentropy", 9574, "")
			if source.name == "impatient" {
				r.syncs(sink, source, "sync.req", 484, "stopped by the source: the relay closed the connection with code 1008: \""+reporttest.Hostile+"\", after 484 of 9574 events")
			} else {
				r.syncs(sink, source, "sync.req", 9574, "")
			}
		}
	}
	return r.record()
}

func (r *run) syncs(sink, source contender, scenario string, delivered float64, stopped string) {
	with := peered(source)
	mark := func(m *results.Measurement) {
		m.Peer = source.name
		if stopped != "" {
			m.AddStatus(results.Status{Code: results.StatusIncomplete, Cause: results.CauseEnded})
		}
	}
	r.add(sink, scenario, "records/s", "events/s", results.Higher, 5200, mark, func(m *results.Measurement) { m.Timeline = []float64{900, 5000, 3674} })
	r.add(sink, scenario, "wall time", "s", results.None, delivered/5200, mark)
	r.add(sink, scenario, "delivered", "events", results.None, delivered, mark)
	r.add(sink, scenario, "expected", "events", results.None, 9574, mark)
	r.add(sink, scenario, "source cpu", "s", results.None, 0.21, mark)
	r.add(sink, scenario, "sink cpu", "s", results.None, 1.31, mark)
	r.add(sink, scenario, "tool cpu", "s", results.None, 0.16, mark)
	r.add(sink, scenario, "tool's share of the sink's cpu", "%", results.None, 12.2, with)
	r.add(sink, scenario, "refused: replaced", "events", results.None, 3, with)
	if scenario == "sync.negentropy" {
		r.add(sink, scenario, "reconcile time", "ms", results.None, 9.2, with)
		r.add(sink, scenario, "reconcile rounds", "rounds", results.None, 2, with)
		r.add(sink, scenario, "transfers", "transfers", results.None, 1, with)
		r.add(sink, scenario, "stragglers", "events", results.None, 0, with)
	}
	whole := reporttest.Finding(sink.name, source.name, scenario, results.CodeComplete, stopped == "", stopped)
	if stopped != "" { // by the source, which is to blame
		whole.Blames = source.name
	}
	r.rec.AddFinding(whole)
	if stopped == "" {
		r.rec.AddFinding(reporttest.Finding(sink.name, source.name, scenario, results.CodeHoldsSource, true, "holds what it must"))
	}
}

func TestSyncsAreMatricesOfSourcesAndSinks(t *testing.T) {
	text := string(renderTerminal(t, syncRun(t, 1), TerminalOptions{Width: 100}))
	for _, want := range []string{
		"by the sink's own sync command",
		"ref-bolt n/a ¹ n/a ¹ impatient n/a ¹ n/a ¹ ¹ its definition names no sync command",
		"484 of 9,574",
		"✗ impatient → ref-bolt: stopped by the source: the relay closed the connection with code 1008",
		"from to records/s",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%q is not said in\n%s", want, text)
		}
	}
	for _, never := range []string{"NEGENTROPY", "Not reconciled", "★", "examples stand"} {
		if strings.Contains(text, never) {
			t.Errorf("%q is said in\n%s", never, text)
		}
	}
}

func TestASyncThatWasCutCountsForNoRanking(t *testing.T) {
	v := newView(syncRun(t, 6))
	for _, s := range v.sections {
		for _, sc := range s.scenarios {
			if len(sc.blocks) > 0 {
				t.Errorf("section %s ranks %s", s.title, sc.Key)
			}
		}
	}
	if _, _, ok := v.headToHead(); ok {
		t.Error("syncs rank somebody")
	}
}

// A source that kills slow readers is told of as the one at fault, and not its sinks.
func TestASourceIsBlamedForWhatItCut(t *testing.T) {
	v := newView(syncRun(t, 1))
	if o := v.outcomes("ref-bolt"); o.count(results.Failed) != 0 {
		t.Errorf("the sink failed %d checks", o.count(results.Failed))
	}
	if o := v.outcomes("impatient"); o.count(results.Failed) != 2 {
		t.Errorf("the source failed %d checks", o.count(results.Failed))
	}
	d := v.verdict()
	if len(d.grave) != 1 || !strings.HasPrefix(d.grave[0], "impatient failed 1 check, 2 times in all: is complete") {
		t.Errorf("the head says %q", d.grave)
	}
}

// Who ended a transfer, and how far it was, is said from what the finding counts.
func TestTheEndOfATransferIsSaid(t *testing.T) {
	f := results.Finding{Code: results.CodeComplete, Verdict: results.Failed, Cause: results.CauseEnded, Texts: map[string]string{"error": "connection lost"}}
	for _, c := range []struct {
		by     string
		counts map[string]float64
		want   string
	}{
		{"", nil, "connection lost"},
		{results.EndedBySink, map[string]float64{"came": 0, "of": 1723, "lost": 0}, "stopped by the sink: connection lost, after 0 of 1,723 events"},
		{results.EndedBySource, map[string]float64{"came": 1000, "of": 1723, "lost": 1}, "stopped by the source: connection lost, after 1,000 of 1,723 events"},
		{results.EndedBySource, map[string]float64{"came": 5, "of": 10, "lost": 5, "left MB": 1.26, "waited": 1},
			"stopped by the source: connection lost, after 5 of 10 events, with about 1.3 MB of the page still to come, 5 connections lost; relaybench had been waiting for the sink: " +
				"the source does not wait for slow readers"},
		{results.EndedByUnknown, nil, "connection lost; nobody saw whether the source or the sink ended it"},
	} {
		f.Texts["by"], f.Counts = c.by, c.counts
		if got := findingText(&f); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A cell never says that more came than had to.
func TestACellSaysHowMuchOfWhatHadToComeCame(t *testing.T) {
	amounts := func(delivered, expected, missing float64) *entry {
		e := &entry{scenario: &scenario{Scenario: &results.Scenario{Primary: "rate"}}}
		m := &results.Measurement{Status: []results.Status{{Code: results.StatusIncomplete}}}
		for metric, x := range map[string]float64{"rate": 5, "delivered": delivered, "expected": expected, "missing": missing} {
			if x >= 0 {
				e.facts = append(e.facts, &block{scenario: e.Scenario, metric: results.Metric{Key: metric}, rows: []*row{{m: m, has: true, value: x}}})
			}
		}
		return e
	}
	d := &composer{Document: &Document{}, v: newView(&results.Record{})}
	for want, e := range map[string]*entry{
		"484 of 9,574":   amounts(484, 9574, 9090),
		"1,723 of 1,723": amounts(1915, 1723, 0),
		"1,703 of 1,723": amounts(1915, 1723, 20),
		"1,722 of 1,722": amounts(1915, 1722, -1),
		"1,915 of ?":     amounts(1915, -1, -1),
	} {
		if got := d.synced(e, nil); got.text != want || got.style != Red {
			t.Errorf("%q, want %q", got.text, want)
		}
	}
}

// TestExamplesOfASyncAreShownOnce however many checks and pairs name them, and what need not come
// is said once.
func TestExamplesOfASyncAreShownOnce(t *testing.T) {
	r := syncRun(t, 1)
	id := "5a" + strings.Repeat("0", 62)
	for _, peer := range []string{"ref-bolt", "impatient"} {
		for _, code := range []string{results.CodeHoldsSource, results.CodeAcknowledgedKept} {
			f := results.Finding{Relay: "impatient", Peer: peer, Scenario: "sync.negentropy", Code: code, Verdict: results.Failed, Blames: "impatient",
				Counts:   map[string]float64{"held": 9, "must": 10, "missing.lost": 1, "lost": 1, "of": 10, "rightly.superseded": 127},
				Evidence: []results.Evidence{{Code: results.EvidenceMissing, ID: id, Cause: results.MissingLost}}}
			r.Findings = append(r.Findings, f)
		}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f results.Finding) bool { return f.Code == results.CodeHoldsSource && f.Verdict == results.Passed })
	for name, out := range map[string]string{"terminal": string(renderTerminal(t, r, TerminalOptions{Width: 200})), "markdown": string(renderMarkdown(t, r))} {
		_, section, _ := strings.Cut(out, "by the sink's own sync command")
		section, _, _ = strings.Cut(section, "HARNESS ──")
		section, _, _ = strings.Cut(section, "\n## ")
		if n := strings.Count(section, id[:12]); n != 1 {
			t.Errorf("%s: the example stands %d times", name, n)
		}
		if n := strings.Count(section, shownAbove); n != 3 {
			t.Errorf("%s: %d checks refer to it", name, n)
		}
		if n := strings.Count(out, "127 superseded"); n != 1 {
			t.Errorf("%s: what need not come is said %d times", name, n)
		}
	}
}
