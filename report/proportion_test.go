package report

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"relaybench/report/reporttest"
	"relaybench/results"
)

// proportionate is a run of three relays over one scenario of each kind, in which all have the same
// figures to show.
func proportionate(change func(*results.Record)) *results.Record {
	r := &results.Record{StartedAt: contest(all()).StartedAt}
	for i, s := range []results.Scenario{
		{Key: "ingest.throughput", Layout: results.LayoutBars}, {Key: "ingest.visibility", Layout: results.LayoutBars},
		{Key: "live.fanout", Layout: results.LayoutBars},
		{Key: "query.hashtag.hot", Layout: results.LayoutQueries, Primary: "m", Uses: []string{results.UsesKinds, "#t", results.UsesLimit, results.UsesOrder}},
		{Key: "query.by-ids.hot", Layout: results.LayoutQueries, Primary: "m", Uses: []string{results.UsesIDs}},
		{Key: "storage", Layout: results.LayoutBars}, {Key: "crash", Layout: results.LayoutBars}, {Key: "import", Layout: results.LayoutBars},
		{Key: "negentropy.initial", Layout: results.LayoutPairs, Primary: "m"}, {Key: "negentropy.heartbeat", Layout: results.LayoutPairs, Primary: "m"},
		{Key: "sync.req", Layout: results.LayoutMatrix, Primary: "m"}, {Key: "fetch.giant", Layout: results.LayoutDownloads, Primary: "m"},
	} {
		s.Order, s.Title, s.Section = i, s.Key, strings.Split(s.Key, ".")[0]
		s.Headlines = []results.Headline{{Metric: s.Primary, Title: s.Key}}
		r.Scenarios = append(r.Scenarios, s)
	}
	names := []string{"a", "b", "c"}
	for i, name := range names {
		r.Relays = append(r.Relays, results.Relay{Name: name, Durability: "batch", Outcome: results.OutcomeOK})
		for _, s := range r.Scenarios {
			m := results.Measurement{Relay: name, Scenario: s.Key, Metric: "m", Unit: "ms", Better: results.Lower, Trials: reporttest.Spread(float64(10 * (i + 1)))}
			if s.Layout == results.LayoutPairs || s.Layout == results.LayoutMatrix {
				m.Peer = names[(i+1)%3]
			}
			if s.Layout == results.LayoutDownloads {
				m.Labels = results.Labels{results.LabelForm: "raw", results.LabelStrategy: "giant"}
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
		results.CodeStores: everything, results.CodeText: everything, results.CodeAcknowledgedKept: everything, results.CodeRemembers: everything, results.CodeUnaltered: everything,
		results.CodeBadSignature: takesIn, results.CodeBadID: takesIn, results.CodeForgedRefused: takesIn,
		results.CodeAccepts: keeps, results.CodeReplaceable: keeps, results.CodeAddressable: keeps,
		results.CodeFilterTagT: hashtag, results.CodeFilterKinds: hashtag, results.CodeLimit: hashtag, results.CodeOrder: hashtag,
		results.CodeFilterIDs: byIDs, results.CodeFilterTagE: nil, results.CodeFilterAuthors: nil,
		results.CodeLive: {"live.fanout"}, results.CodeLiveFilter: {"live.fanout"}, results.CodeNIP77: reconciles,
	} {
		for verdict, bars := range map[results.Verdict][]string{results.Failed: want, results.Stated: nil, results.Undecided: nil} {
			v := newView(proportionate(func(r *results.Record) {
				f := reporttest.Finding("a", "", "preflight", code, false, "it does not")
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
					barred := st.name == "a" && slices.Contains(bars, title) || v.scenario(title).Layout == results.LayoutPairs && slices.Contains(bars, title)
					if (len(c.notes) > 0) != (barred && c.row != nil && len(c.row.bars) > 0) || c.ratio > 0 && st.name == "a" && slices.Contains(bars, title) {
						t.Errorf("%s %s: %s in %s has ratio %v and notes %q", verdict, code, st.name, title, c.ratio, c.notes)
					}
				}
			}
		}
	}
}

func TestChecksAreToldByHowTheyEnded(t *testing.T) {
	r := contest(func(r *results.Record) {
		for code, verdict := range map[string]results.Verdict{results.CodeLimit: results.Failed, results.CodeOrder: results.Undecided, results.CodeControl: results.Stated} {
			f := reporttest.Finding("b", "a", "ingest.throughput", code, false, "it was seen so", results.Evidence{Code: results.EvidenceWords, Text: "no"})
			f.Verdict, f.Blames = verdict, "a"
			r.Findings = append(r.Findings, f)
		}
	})
	slices.SortFunc(r.Findings, func(a, b results.Finding) int { return strings.Compare(a.Code, b.Code) })
	text, md := string(renderTerminal(t, r, TerminalOptions{Width: 100})), string(renderMarkdown(t, r))
	for _, want := range []string{"✗ a: failed 1 check; 1 passed", "✓ b: 1 check passed; 1 undecided; 1 stated", "? could not be asked, and held against nobody: " + CheckTitle(results.CodeOrder),
		"· stated: it was seen so"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said in\n%s", want, text)
		}
	}
	for _, want := range []string{"❌ **a**", "✅ **b**", "❔ answers newest first"} {
		if !strings.Contains(md, want) {
			t.Errorf("%q is not said in\n%s", want, md)
		}
	}
}

// TestWhyChecksCouldNotBeAskedIsWrittenOnce where it is the same.
func TestWhyChecksCouldNotBeAskedIsWrittenOnce(t *testing.T) {
	var b bytes.Buffer
	c := Checked{Relay: results.Relay{Name: "mine", Outcome: results.OutcomeOK}}
	for _, code := range []string{results.CodeLimit, results.CodeOrder, results.CodeLive, results.CodeClose} {
		f := results.Finding{Relay: "mine", Code: code, Verdict: results.Undecided, Cause: results.CauseLost, Texts: map[string]string{"error": "EOF", "doing": "asking"}}
		if code == results.CodeLive {
			f.Cause = results.CauseTime
		}
		c.Findings = append(c.Findings, f)
	}
	if err := Checks(&b, []Checked{c}, TerminalOptions{Width: 160}); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	if strings.Count(out, "the connection was lost while asking: EOF") != 1 || !strings.Contains(out, "? "+CheckTitle(results.CodeLive)) ||
		!strings.Contains(out, "likewise: "+CheckTitle(results.CodeOrder)+"; "+CheckTitle(results.CodeClose)+"\n") || !strings.Contains(out, "4 could not be asked") {
		t.Errorf("\n%s", out)
	}
}

func TestAPreflightIsWrittenCheckByCheck(t *testing.T) {
	var b bytes.Buffer
	c := Checked{Relay: results.Relay{Name: "mine", Version: "1", Durability: "commit", Outcome: results.OutcomeOK, Capabilities: map[string]string{"nip77": "yes"}}}
	verdicts := map[string]results.Verdict{results.CodeStores: results.Passed, results.CodeLimit: results.Failed, results.CodeOrder: results.Undecided, results.CodeControl: results.Stated}
	for _, code := range slices.Sorted(maps.Keys(verdicts)) {
		f := reporttest.Finding("mine", "", "preflight", code, false, "it was seen "+reporttest.Hostile, results.Evidence{Code: results.EvidenceWords, Text: reporttest.Hostile})
		f.Verdict = verdicts[code]
		c.Findings = append(c.Findings, f)
	}
	if err := Checks(&b, []Checked{c}, TerminalOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	if bad := unsafe(b.String()); bad != "" {
		t.Errorf("lets %q through", bad)
	}
	for _, want := range []string{"✓ " + CheckTitle(results.CodeStores), "✗ " + CheckTitle(results.CodeLimit), "? " + CheckTitle(results.CodeOrder), "· " + CheckTitle(results.CodeControl),
		"1 check passed, 1 stated, 1 could not be asked, 1 failed"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not said in\n%s", want, b.String())
		}
	}
}
