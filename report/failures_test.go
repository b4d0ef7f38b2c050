package report

import (
	"fmt"
	"strings"
	"testing"

	"relaybench/harness/measure"
)

// throttled is a run with a relay that refuses most events and so fails nearly every query, and one that loses what it acknowledged.
func throttled(t testing.TB) *measure.Record {
	slow, loser := contender{"slow", "unknown", 0.3}, contender{"loser", "none", 1.4}
	r := newRun(t, 1, bolt, sqlite, slow, loser)
	r.rec.Update(func(rec *measure.Record) {
		rec.Corpus.Source = "synthetic: relaybench-go 1, 10000 events, seed 1"
		rec.Corpus.Dropped = map[string]int{"deletion": 26, "tag_value_too_long": 4, "too_large": 1, "bad_id": 0}
	})
	r.rec.Add(measure.Measurement{Relay: "slow", Scenario: "ingest.throughput", Metric: refusedFor + "rate-limited", Unit: "events", Better: measure.None, Trials: []float64{1710}})
	r.rec.Add(measure.Measurement{Relay: "slow", Scenario: "ingest.throughput", Metric: "accepted", Unit: "events/s", Better: measure.Higher, Samples: 240})
	fail := func(relay, scenario, check, detail string, evidence ...string) {
		r.rec.Find(measure.Finding{Relay: relay, Scenario: scenario, Check: check, Required: true, Detail: detail, Evidence: evidence})
	}
	id := func(n int) string { return strings.Repeat(fmt.Sprintf("%04x", n*2731%65536), 16) }
	fail("slow", "ingest.throughput", checkAccepts, "of 1915 events that a compliant relay keeps: 1642 refused", id(1)+" (kind 1)", id(2)+" (kind 7)", id(3)+" (kind 1)", "rate-limited, 1710 times: rate-limited: slow down")
	fail("loser", "ingest.throughput", checkKept, "1862 of 2000 acknowledged events are missing; 84 more were superseded since", id(4)+" (kind 1)", id(5)+" (kind 3)")
	for i, q := range []string{"profiles", "hashtag", "recent-window", "notifications"} {
		for _, form := range []string{"hot", "varied"} {
			scenario := "query." + q + "." + form
			fail("slow", scenario, checkAnswers, fmt.Sprintf("0 of 18 answers right, %d events", 1000+i), `38 of 50 events: 12 missing for {"authors":["`+id(6)+`"],"limit":50}`,
				"missing "+id(7), "missing "+id(8), "and 10 more", "of the missing, the relay had acknowledged 0, refused 12, never answered 0")
			fail("loser", scenario, checkAnswers, "3 of 18 answers right, 70 events", `38 of 50 events: 12 missing for {"limit":50}`, "missing "+id(9), "of the missing, the relay had acknowledged 7, refused 5, never answered 0")
		}
	}
	return r.record()
}

func TestChecksThatFailAlikeAreOneFailure(t *testing.T) {
	v := newView(throttled(t))
	failures, passed := v.failures("slow")
	var got []string
	for _, f := range failures {
		got = append(got, f.brief()+" → "+f.follows)
	}
	want := "accepts what a compliant relay keeps (ingest.throughput) → \nreturns what the model returns (8 of 16 queries) → follows from the 1,710 events it refused"
	if strings.Join(got, "\n") != want || passed != 10 {
		t.Errorf("%d passed, got %s", passed, strings.Join(got, "\n"))
	}
	if rest := failures[1].rest(1); rest != "profiles.varied, hashtag, recent-window, notifications" {
		t.Errorf("the rest is %q", rest)
	}
	failures, _ = v.failures("loser")
	if f := failures[1].follows; f != "may follow from what it lost: 1,862 of 2,000 acknowledged events are missing" { // what it refused was not checked
		t.Errorf("got %q", f)
	}
}

func TestAThrottledRelayIsCalledSo(t *testing.T) {
	d := newView(throttled(t)).verdict()
	if d.grave[0] != `slow is throttled: it refused 1,710 of 1,950 events as rate-limited, saying "slow down".` {
		t.Errorf("got %q", d.grave[0])
	}
}

func TestEvidenceIsShortOnATerminal(t *testing.T) {
	a, b := strings.Repeat("0a1b", 16), strings.Repeat("9c8d", 16)
	for _, c := range []struct {
		name, want string
		evidence   []string
	}{
		{"reasons come first", "error, 1,900 times: disk full|0a1b0a1b0a1b… (kind 1)", []string{a + " (kind 1)", "error, 1900 times: disk full"}},
		{"ids of one kind share a line", "missing 0a1b0a1b0a1b…, 9c8d9c8d9c8d…, and 1,200 more|extra 0a1b0a1b0a1b…", []string{"missing " + a, "missing " + b, "and 1200 more", "extra " + a}},
		{"a reason that repeats stands before its ids", "too old: 0a1b0a1b0a1b…, 9c8d9c8d9c8d…|too new: 0a1b0a1b0a1b…", []string{a + ": too old", b + ": too old", a + ": too new"}},
		{"ids within filters are short too", `1 of 2 events for {"ids":["0a1b0a1b0a1b…","9c8d9c8d9c8d…`, []string{`1 of 2 events for {"ids":["` + a + `","` + b[:40] + "…"}},
		{"remarks stay", "missing: refused: 0a1b0a1b0a1b… (again), 9c8d9c8d9c8d…, and 3 more", []string{"missing: refused: " + a + " (again)", "missing: refused: " + b, "missing: refused: and 3 more"}},
	} {
		if got := strings.Join(digest(c.evidence), "|"); got != c.want {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}

func TestOnlyAmountsAreSeparated(t *testing.T) {
	for text, want := range map[string]string{
		"of 1915 events that it keeps: 1642 refused": "of 1,915 events that it keeps: 1,642 refused",
		"acknowledged 0, refused 12345":              "acknowledged 0, refused 12,345",
		"newer than 18446744072349837266":            "newer than 18446744072349837266",
		"dial 127.0.0.1:35433":                       "dial 127.0.0.1:35433",
		"(kind 30023)":                               "(kind 30023)",
	} {
		if got := readable(text); got != want {
			t.Errorf("got %q", got)
		}
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
		r := contest(func(r *measure.Record) {
			for i, relay := range []string{"a", "b"} {
				add := func(metric, unit string, better measure.Better, x float64) {
					r.Measurements = append(r.Measurements, measure.Measurement{Relay: relay, Scenario: "query.thread.hot", Metric: metric, Unit: unit, Better: better, Trials: []float64{x}})
				}
				add("eose", "ms", measure.Lower, []float64{1, 2}[i])
				add("first event", "ms", measure.Lower, c.first[i])
				add("events/s", "events/s", measure.Higher, []float64{1000, 500}[i])
				add("queries/s", "queries/s", measure.Higher, c.answers[i])
			}
		})
		_, standings, _ := newView(r).headToHead()
		if standings[0].of != c.of {
			t.Errorf("%s: %d contests, want %d", c.name, standings[0].of, c.of)
		}
	}
}
