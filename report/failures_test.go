package report

import (
	"fmt"
	"strings"
	"testing"

	"relaybench/report/reporttest"
	"relaybench/results"
)

// throttled is a run with a relay that refuses most events and so fails nearly every query, and one
// that loses what it acknowledged.
func throttled(t testing.TB) *results.Record {
	slow, loser := contender{"slow", "unknown", 0.3}, contender{"loser", "none", 1.4}
	r := newRun(t, 1, bolt, sqlite, slow, loser)
	r.rec.Update(func(rec *results.Record) {
		rec.Corpus.Source = "synthetic: relaybench-go 1, 10000 events, seed 1"
		rec.Corpus.Dropped = map[string]int{"deletion": 26, "tag_value_too_long": 4, "too_large": 1, "bad_id": 0}
	})
	r.rec.Add(results.Measurement{Relay: "slow", Scenario: "ingest.throughput", Metric: "rejected: rate-limited", Unit: "events", Better: results.None, Trials: []float64{1710}})
	r.rec.Add(results.Measurement{Relay: "slow", Scenario: "ingest.throughput", Metric: "accepted", Unit: "events/s", Better: results.Higher, Samples: 240})
	id := func(n int) string { return strings.Repeat(fmt.Sprintf("%04x", n*2731%65536), 16) }
	fail := func(relay, scenario, code, detail string, counts map[string]float64, evidence ...results.Evidence) {
		f := reporttest.Finding(relay, "", scenario, code, false, detail, evidence...)
		f.Counts = counts
		r.rec.AddFinding(f)
	}
	missing := func(n, kind int) results.Evidence {
		return results.Evidence{Code: results.EvidenceMissing, ID: id(n), Kind: &kind}
	}
	fail("slow", "ingest.throughput", results.CodeAccepts, "of 1,915 events that a compliant relay keeps: 1,642 refused",
		map[string]float64{"refused": 1642, "of": 1915}, missing(1, 1), missing(2, 7), missing(3, 1),
		results.Evidence{Code: results.EvidenceRefused, Cause: "rate-limited", Count: 1710, Text: "slow down"})
	fail("loser", "ingest.throughput", results.CodeAcknowledgedKept, "1,862 of 2,000 acknowledged events are missing", nil, missing(4, 1), missing(5, 3))
	for i, q := range []string{"profiles", "hashtag", "recent-window", "notifications"} {
		for _, form := range []string{"hot", "varied"} {
			scenario := "query." + q + "." + form
			fail("slow", scenario, results.CodeModel, fmt.Sprintf("0 of 18 answers right, %d events", 1000+i),
				map[string]float64{"missing.refused": 12},
				results.Evidence{Code: results.EvidenceQuestion, Text: `{"authors":["` + id(6) + `"],"limit":50}`},
				results.Evidence{Code: results.EvidenceMissing, ID: id(7)}, results.Evidence{Code: results.EvidenceMissing, ID: id(8)},
				results.Evidence{Code: results.EvidenceMissing, Count: 10})
			fail("loser", scenario, results.CodeModel, "3 of 18 answers right, 70 events",
				map[string]float64{"missing.acknowledged": 7, "missing.refused": 5}, results.Evidence{Code: results.EvidenceMissing, ID: id(9)})
		}
	}
	rec := r.record()
	for i := range rec.Findings { // as a scenario labels its findings
		f := &rec.Findings[i]
		for _, m := range rec.Measurements {
			if m.Scenario == f.Scenario && m.Labels[results.LabelReason] == "" {
				f.Labels = m.Labels
			}
		}
		if s := rec.Scenario(f.Scenario); s != nil && f.Labels == nil && s.Layout == results.LayoutQueries {
			f.Labels = results.Labels{results.LabelQuery: strings.Split(f.Scenario, ".")[1]}
		}
	}
	return rec
}

func TestChecksThatFailAlikeAreOneFailure(t *testing.T) {
	v := newView(throttled(t))
	o := v.outcomes("slow")
	var got []string
	for _, x := range o.list {
		got = append(got, v.brief(x)+" → "+x.follows)
	}
	want := CheckTitle(results.CodeAccepts) + " (ingest.throughput) → \n" + CheckTitle(results.CodeModel) +
		" (8 of 16 queries) → follows from the 1,642 events it refused"
	if strings.Join(got, "\n") != want || o.passed != 10 {
		t.Errorf("%d passed, got %s", o.passed, strings.Join(got, "\n"))
	}
	if rest := v.rest(o.list[1], 1); rest != "profiles; hashtag; recent-window; notifications" {
		t.Errorf("the rest is %q", rest)
	}
	// What it refused was not checked.
	if f := v.outcomes("loser").list[1].follows; f != "may follow from what it lost: 1,862 of 2,000 acknowledged events are missing" {
		t.Errorf("got %q", f)
	}
}

func TestARelayThatRefusesMuchIsCalledSo(t *testing.T) {
	d := newView(throttled(t)).verdict()
	if d.grave[0] != `slow refused 1,642 of 1,915 events that a compliant relay keeps, rate-limited: slow down.` {
		t.Errorf("got %q", d.grave[0])
	}
}

func TestEvidenceIsShortOnATerminal(t *testing.T) {
	a, b, one := strings.Repeat("0a1b", 16), strings.Repeat("9c8d", 16), 1
	type e = results.Evidence
	for _, c := range []struct {
		name, want string
		evidence   []e
	}{
		{"reasons come first", "refused, error, 1,900 times: disk full|missing, kind 1: 0a1b0a1b0a1b…",
			[]e{{Code: results.EvidenceMissing, ID: a, Kind: &one}, {Code: results.EvidenceRefused, Cause: "error", Count: 1900, Text: "disk full"}}},
		{"ids of one kind share a line", "missing: 0a1b0a1b0a1b…, 9c8d9c8d9c8d…, and 1,200 more|extra: 0a1b0a1b0a1b…",
			[]e{{Code: results.EvidenceMissing, ID: a}, {Code: results.EvidenceMissing, ID: b}, {Code: results.EvidenceMissing, Count: 1200}, {Code: results.EvidenceExtra, ID: a}}},
		{"what is named again, in another trial, stands once", `asked: {}|missing: 0a1b0a1b0a1b…, and 3 more|extra: 2 more`,
			[]e{{Code: results.EvidenceQuestion, Text: "{}"}, {Code: results.EvidenceMissing, ID: a}, {Code: results.EvidenceMissing, Count: 3}, {Code: results.EvidenceQuestion, Text: "{}"},
				{Code: results.EvidenceMissing, ID: a}, {Code: results.EvidenceMissing, Count: 3}, {Code: results.EvidenceExtra, Count: 2}}},
		{"how many are of a kind, not how often", "missing, kind 1, acknowledged and not found, 6 in all: 0a1b0a1b0a1b…, 9c8d9c8d9c8d…",
			[]e{{Code: results.EvidenceMissing, ID: a, Kind: &one, Cause: "lost", Count: 6}, {Code: results.EvidenceMissing, ID: b, Kind: &one, Cause: "lost", Count: 6}}},
		{"what has words of its own stands alone", "altered: 0a1b0a1b0a1b…; its content|altered: 9c8d9c8d9c8d…; its tags",
			[]e{{Code: results.EvidenceAltered, ID: a, Text: "its content"}, {Code: results.EvidenceAltered, ID: b, Text: "its tags"}}},
		{"ids within filters are short too", `asked: {"ids":["0a1b0a1b0a1b…","9c8d9c8d9c8d…"]}`,
			[]e{{Code: results.EvidenceQuestion, Text: `{"ids":["` + a + `","` + b + `"]}`}}},
		{"lines of form 1 stay", "1 of 2 events", []e{{Code: results.EvidenceText, Text: "1 of 2 events"}}},
	} {
		if got := strings.Join(evidenceLines(c.evidence, true), "|"); got != c.want {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
	if got := evidenceLines([]e{{Code: results.EvidenceMissing, ID: a}, {Code: results.EvidenceMissing, ID: b}}, false); len(got) != 2 || got[0] != "missing: "+a {
		t.Errorf("in Full: %q", got)
	}
}

func TestWhatOnlyRepeatsAWinIsNotCounted(t *testing.T) {
	for _, c := range []struct {
		name    string
		first   [2]float64 // of a and b, whose EOSE comes after 1 and 2 ms
		answers [2]float64 // per second, where 10 events are an answer and a and b send 1,000 and 500 events/s
		of      int
	}{
		{"a first event in the packet of the EOSE, and one rate in two units", [2]float64{0.97, 2}, [2]float64{100, 50}, 3},
		{"a first event well before it", [2]float64{0.5, 1.5}, [2]float64{100, 50}, 4},
		{"one that comes late from whom is first otherwise", [2]float64{1, 0.2}, [2]float64{100, 50}, 4},
		{"rates that do not belong together", [2]float64{1, 2}, [2]float64{100, 80}, 4},
	} {
		r := contest(func(r *results.Record) {
			for i, relay := range []string{"a", "b"} {
				add := func(metric, unit string, better results.Better, x float64) {
					r.Measurements = append(r.Measurements, results.Measurement{Relay: relay, Scenario: "query.thread.hot", Metric: metric, Unit: unit, Better: better, Trials: reporttest.Spread(x)})
				}
				add("eose", "ms", results.Lower, []float64{1, 2}[i])
				add("first event", "ms", results.Lower, c.first[i])
				add("events/s", "events/s", results.Higher, []float64{1000, 500}[i])
				add("queries/s", "queries/s", results.Higher, c.answers[i])
			}
		})
		_, standings, _ := newView(r).headToHead()
		if standings[0].of != c.of {
			t.Errorf("%s: %d contests, want %d", c.name, standings[0].of, c.of)
		}
	}
}

// TestFootnotesOfACellAscend, though a note of another cell came first.
func TestFootnotesOfACellAscend(t *testing.T) {
	var foot footnotes
	if got := foot.sign([]string{"b"}) + " " + foot.sign([]string{"a", "b"}); got != "¹ ¹,²" {
		t.Error(got)
	}
	if got := foot.sign([]string{"c", "a"}); got != "²,³" {
		t.Error(got)
	}
}
