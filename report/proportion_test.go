package report

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"relaybench/harness/measure"
)

// proportionate is a run of three relays over one scenario of each kind, in which all have the same
// figures to show.
func proportionate(change func(*measure.Record)) *measure.Record {
	r := &measure.Record{StartedAt: contest(all()).StartedAt}
	for i, s := range []measure.Scenario{
		{Key: "ingest.throughput", Layout: measure.LayoutBars}, {Key: "ingest.visibility", Layout: measure.LayoutBars},
		{Key: "live.fanout", Layout: measure.LayoutBars},
		{Key: "query.hashtag.hot", Layout: measure.LayoutQueries, Primary: "m", Uses: []string{measure.UsesKinds, "#t", measure.UsesLimit, measure.UsesOrder}},
		{Key: "query.by-ids.hot", Layout: measure.LayoutQueries, Primary: "m", Uses: []string{measure.UsesIDs}},
		{Key: "storage", Layout: measure.LayoutBars}, {Key: "crash", Layout: measure.LayoutBars}, {Key: "import", Layout: measure.LayoutBars},
		{Key: "negentropy.initial", Layout: measure.LayoutPairs, Primary: "m"}, {Key: "negentropy.heartbeat", Layout: measure.LayoutPairs, Primary: "m"},
		{Key: "sync.req", Layout: measure.LayoutMatrix, Primary: "m"}, {Key: "fetch.giant", Layout: measure.LayoutDownloads, Primary: "m"},
	} {
		s.Order, s.Title, s.Section = i, s.Key, strings.Split(s.Key, ".")[0]
		s.Headlines = []measure.Headline{{Metric: s.Primary, Title: s.Key}}
		r.Scenarios = append(r.Scenarios, s)
	}
	names := []string{"a", "b", "c"}
	for i, name := range names {
		r.Relays = append(r.Relays, measure.Relay{Name: name, Durability: "batch", Outcome: measure.OutcomeOK})
		for _, s := range r.Scenarios {
			m := measure.Measurement{Relay: name, Scenario: s.Key, Metric: "m", Unit: "ms", Better: measure.Lower, Trials: spread(float64(10 * (i + 1)))}
			if s.Layout == measure.LayoutPairs || s.Layout == measure.LayoutMatrix {
				m.Peer = names[(i+1)%3]
			}
			if s.Layout == measure.LayoutDownloads {
				m.Labels = measure.Labels{measure.LabelForm: "raw", measure.LabelStrategy: "giant"}
			}
			r.Measurements = append(r.Measurements, m)
		}
	}
	change(r)
	return r
}

// A relay that fails one check competes in all figures but those on which it bears.
func TestOneFailedCheckBarsWhatItBearsOn(t *testing.T) {
	everything := []string{"ingest.throughput", "ingest.visibility", "live.fanout", "query.hashtag.hot", "query.by-ids.hot", "storage", "crash", "import",
		"negentropy.initial", "negentropy.heartbeat", "sync.req", "fetch.giant"}
	takesIn := []string{"ingest.throughput", "ingest.visibility", "storage", "crash", "import", "sync.req"}
	keeps := []string{"ingest.throughput", "storage", "import"}
	reconciles := []string{"negentropy.initial", "negentropy.heartbeat"}
	hashtag, byIDs := []string{"query.hashtag.hot"}, []string{"query.by-ids.hot"}
	for code, want := range map[string][]string{
		measure.CodeStores: everything, measure.CodeText: everything, measure.CodeAcknowledgedKept: everything, measure.CodeRemembers: everything, measure.CodeUnaltered: everything,
		measure.CodeBadSignature: takesIn, measure.CodeBadID: takesIn, measure.CodeForgedRefused: takesIn,
		measure.CodeAccepts: keeps, measure.CodeReplaceable: keeps, measure.CodeAddressable: keeps,
		measure.CodeFilterTagT: hashtag, measure.CodeFilterKinds: hashtag, measure.CodeLimit: hashtag, measure.CodeOrder: hashtag,
		measure.CodeFilterIDs: byIDs, measure.CodeFilterTagE: nil, measure.CodeFilterAuthors: nil,
		measure.CodeLive: {"live.fanout"}, measure.CodeLiveFilter: {"live.fanout"}, measure.CodeNIP77: reconciles,
	} {
		for verdict, bars := range map[measure.Verdict][]string{measure.Failed: want, measure.Stated: nil, measure.Undecided: nil} {
			v := newView(proportionate(func(r *measure.Record) {
				f := finding("a", "", "preflight", code, false, "it does not")
				f.Verdict = verdict
				r.Findings = append(r.Findings, f)
			}))
			var got []string
			for i := range v.rec.Measurements {
				if m := &v.rec.Measurements[i]; m.Relay == "a" && len(v.bars(m)) > 0 {
					got = append(got, m.Scenario)
				}
			}
			if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(bars))) {
				t.Errorf("%s %s bars %q, want %q", verdict, code, got, bars)
			}
			titles, standings, ok := v.headToHead()
			if !ok {
				t.Fatalf("%s %s: nobody is ranked", verdict, code)
			}
			for i, title := range titles {
				for _, st := range standings {
					c := st.cells[i]
					barred := st.name == "a" && slices.Contains(bars, title) || v.scenario(title).Layout == measure.LayoutPairs && slices.Contains(bars, title)
					if (len(c.notes) > 0) != (barred && c.row != nil && len(c.row.bars) > 0) || c.ratio > 0 && st.name == "a" && slices.Contains(bars, title) {
						t.Errorf("%s %s: %s in %s has ratio %v and notes %q", verdict, code, st.name, title, c.ratio, c.notes)
					}
				}
			}
		}
	}
}

func TestChecksAreToldByHowTheyEnded(t *testing.T) {
	r := contest(func(r *measure.Record) {
		for code, verdict := range map[string]measure.Verdict{measure.CodeLimit: measure.Failed, measure.CodeOrder: measure.Undecided, measure.CodeControl: measure.Stated} {
			f := finding("b", "a", "ingest.throughput", code, false, "it was seen so", measure.Evidence{Code: measure.EvidenceWords, Text: "no"})
			f.Verdict, f.Blames = verdict, "a"
			r.Findings = append(r.Findings, f)
		}
	})
	slices.SortFunc(r.Findings, func(a, b measure.Finding) int { return strings.Compare(a.Code, b.Code) })
	text, md := string(renderTerminal(t, r, TerminalOptions{Width: 100})), string(renderMarkdown(t, r))
	for _, want := range []string{"✗ a  failed 1 check; 1 passed", "✓ b  1 check passed", "? could not be asked, and held against nobody: " + checkTitle(measure.CodeOrder),
		"· stated: it was seen so"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said in\n%s", want, text)
		}
	}
	for _, want := range []string{"❌ **a**", "❔ **b**", "· **b**"} {
		if !strings.Contains(md, want) {
			t.Errorf("%q is not said in\n%s", want, md)
		}
	}
}

// TestWhyChecksCouldNotBeAskedIsWrittenOnce where it is the same.
func TestWhyChecksCouldNotBeAskedIsWrittenOnce(t *testing.T) {
	var b bytes.Buffer
	c := Checked{Relay: measure.Relay{Name: "mine", Outcome: measure.OutcomeOK}}
	for _, code := range []string{measure.CodeLimit, measure.CodeOrder, measure.CodeLive, measure.CodeClose} {
		f := measure.Finding{Relay: "mine", Code: code, Verdict: measure.Undecided, Cause: measure.CauseLost, Texts: map[string]string{"error": "EOF", "doing": "asking"}}
		if code == measure.CodeLive {
			f.Cause = measure.CauseTime
		}
		c.Findings = append(c.Findings, f)
	}
	if err := Checks(&b, []Checked{c}, TerminalOptions{Width: 160}); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	if strings.Count(out, "the connection was lost while asking: EOF") != 1 || !strings.Contains(out, "? "+checkTitle(measure.CodeLive)) ||
		!strings.Contains(out, "likewise: "+checkTitle(measure.CodeOrder)+"; "+checkTitle(measure.CodeClose)+"\n") || !strings.Contains(out, "4 could not be asked") {
		t.Errorf("\n%s", out)
	}
}

func TestAPreflightIsWrittenCheckByCheck(t *testing.T) {
	var b bytes.Buffer
	c := Checked{Relay: measure.Relay{Name: "mine", Version: "1", Durability: "commit", Outcome: measure.OutcomeOK, Capabilities: map[string]string{"nip77": "yes"}}}
	verdicts := map[string]measure.Verdict{measure.CodeStores: measure.Passed, measure.CodeLimit: measure.Failed, measure.CodeOrder: measure.Undecided, measure.CodeControl: measure.Stated}
	for _, code := range slices.Sorted(maps.Keys(verdicts)) {
		f := finding("mine", "", "preflight", code, false, "it was seen "+hostile, measure.Evidence{Code: measure.EvidenceWords, Text: hostile})
		f.Verdict = verdicts[code]
		c.Findings = append(c.Findings, f)
	}
	if err := Checks(&b, []Checked{c}, TerminalOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	if bad := unsafe(b.String()); bad != "" {
		t.Errorf("lets %q through", bad)
	}
	for _, want := range []string{"✓ " + checkTitle(measure.CodeStores), "✗ " + checkTitle(measure.CodeLimit), "? " + checkTitle(measure.CodeOrder), "· " + checkTitle(measure.CodeControl),
		"1 check passed, 1 stated, 1 could not be asked, 1 failed"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not said in\n%s", want, b.String())
		}
	}
}

// What tells figures of one scenario apart is in their names, in the lines for benchstat and in
// JSON.
func TestComparisonsTellLabelsApart(t *testing.T) {
	r := func(factor float64) *measure.Record {
		return &measure.Record{Relays: []measure.Relay{{Name: "a", Outcome: measure.OutcomeOK}}, Measurements: []measure.Measurement{
			{Relay: "a", Scenario: "s", Metric: "m", Unit: "ms", Better: measure.Lower, Trials: spread(10), Labels: measure.Labels{"form": "raw", "strategy": "x"}},
			{Relay: "a", Scenario: "s", Metric: "m", Unit: "ms", Better: measure.Lower, Trials: spread(20 * factor), Labels: measure.Labels{"form": "parsed", "strategy": "x"}}}}
	}
	c := mustCompare(t, side("", r(1)), side("", r(2)), CompareOptions{})
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
