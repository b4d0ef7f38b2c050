package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// TestCountsAreMeasured has every query template counted, each count held back for d.
func TestCountsAreMeasured(t *testing.T) {
	t.Parallel()
	c := syntheticCorpus(t, 250)
	const rounds, conns, d = 3, 2, 20 * time.Millisecond
	s := scripted.Script{Honest: c.Len() + forgery, CountAfter: d}
	p := prove(t, s, proving{corpus: c, scenarios: Counts(), options: harness.Options{QueryRounds: rounds, QueryConns: conns}})
	parameters, err := newQueryParameters(c, p.model)
	if err != nil {
		t.Fatal(err)
	}
	asked, held := 0, 0
	for i := range queryTemplates {
		if f, ok := queryTemplates[i].hot(parameters); ok {
			asked++
			held += p.model.Count(&f)
		}
	}
	same(t, "query templates", asked, len(queryTemplates))
	for _, key := range []string{"count.hot", "count.varied"} {
		p.figures(t, key, map[string]string{"time": "ms lower", "counted": "events/count none", "counts/s": "counts/s higher"})
		p.verdicts(t, key, but([]string{results.CodeCounted, results.CodeModel, results.CodeOnlyMessage}, nil))
		p.latency(t, key, "time", int64(rounds*asked), d)
		same(t, key+": answers of one connection", p.one(t, key, "counted").Samples, int64(rounds*asked))
		rate := p.one(t, key, "counts/s")
		same(t, key+": counts of all connections", rate.Samples, p.spans[key].did.messages-int64((1+rounds)*asked))
		seconds := float64(rate.Samples) / rate.Trials[0]
		between(t, key+": seconds of the rate", float64(rounds*asked)*d.Seconds(), seconds, p.spans[key].seconds()-float64((1+rounds)*asked)*d.Seconds())
		f := p.finding(t, key, results.CodeModel)
		same(t, key+": judged", f.Counts["of"], float64((1+rounds+conns*rounds)*asked))
		same(t, key+": wrong", f.Counts["wrong"], 0.0)
	}
	near(t, "events in a count", p.value(t, "count.hot", "counted"), float64(held)/float64(asked))
	same(t, "events in all counts", p.finding(t, "count.hot", results.CodeModel).Counts["events"], float64((1+rounds+conns*rounds)*held))
}

// A count that is wrong is told by how much, and a relay that does not count is not asked.
func TestCountsAreComparedWithTheModel(t *testing.T) {
	t.Parallel()
	c := scripted.Notes(t, 30)
	const rounds, conns = 2, 1
	for _, off := range []int64{-1, 3} {
		p := prove(t, scripted.Script{Honest: c.Len(), CountOff: off}, proving{corpus: c, scenarios: Counts()[:1], options: harness.Options{QueryRounds: rounds, QueryConns: conns}})
		f := p.finding(t, "count.hot", results.CodeModel)
		wrong := f.Counts["wrong"]
		if f.Verdict != results.Failed || wrong == 0 || wrong != f.Counts["of"] || f.Counts["missing"] != max(0, float64(-off)*wrong) || f.Counts["extra"] != max(0, float64(off)*wrong) {
			t.Errorf("counts off by %d: %v %v", off, f.Verdict, f.Counts)
		}
		same(t, "questions as evidence", len(f.Evidence), examples)
		if want := fmt.Sprintf(`{}: said %d, model has %d`, c.Len()+int(off), c.Len()); f.Evidence[0].Text != want {
			t.Errorf("evidence %q, want %q", f.Evidence[0].Text, want)
		}
	}
	p := prove(t, scripted.Script{CountOff: 1}, proving{corpus: c, scenarios: Counts()[:1]})
	f := p.finding(t, "count.hot", results.CodeMeasurable)
	if f.Verdict != results.Stated || f.Cause != results.WithoutNIP || f.Counts["nip"] != 45 || !strings.Contains(f.Texts["text"], "2 events were counted as") || len(p.all("count.hot", "time")) > 0 {
		t.Errorf("a relay that counts wrong from the first on: %+v", f)
	}
}

// TestWhatIsNoCountIsNotCounted: it is told as what it is, and stands in no figure.
func TestWhatIsNoCountIsNotCounted(t *testing.T) {
	t.Parallel()
	c, key := scripted.Notes(t, 20), "count.hot"
	for reply, want := range map[string]struct {
		closed, malformed bool
		words             string
	}{
		`["CLOSED","SUB","error: no counts"]`: {closed: true, words: "error: no counts"},
		`["COUNT","SUB",{"count":-3}]`:        {malformed: true, words: `{"count":-3}`},
		`["COUNT","SUB",{"count":"12"}]`:      {malformed: true, words: `{"count":"12"}`},
		`["COUNT","SUB",{}]`:                  {malformed: true, words: `{}`},
	} {
		p := prove(t, scripted.Script{Honest: c.Len(), CountReply: reply}, proving{corpus: c, scenarios: Counts()[:1], options: harness.Options{QueryRounds: 1, QueryConns: 1}})
		f := p.finding(t, key, results.CodeCounted)
		n := f.Counts["of"]
		if f.Verdict != results.Failed || n == 0 || want.closed != (f.Counts["closed"] == n) || want.malformed != (f.Counts["malformed"] == n) {
			t.Errorf("%s: %s %v", reply, f.Verdict, f.Counts)
		}
		if len(f.Evidence) != examples || f.Evidence[0].Code != results.EvidenceWords || f.Evidence[0].Text != want.words {
			t.Errorf("%s: %+v", reply, f.Evidence)
		}
		for _, metric := range []string{"time", "counted", "counts/s"} {
			same(t, reply+": "+metric, len(p.all(key, metric)), 0)
		}
		for _, f := range p.Findings {
			if f.Scenario == key && (f.Code == results.CodeEOSE || f.Code == results.CodeModel) {
				t.Errorf("%s: %s", reply, f.Code)
			}
		}
	}
}

// TestACountThatNeverComesIsToldOnce, with what came in its place.
func TestACountThatNeverComesIsToldOnce(t *testing.T) {
	t.Parallel()
	c := scripted.Notes(t, 20)
	p := prove(t, scripted.Script{Honest: c.Len(), CountReply: `["NOTICE","what is COUNT?"]`}, proving{corpus: c, scenarios: Counts()[:1],
		options: harness.Options{Stall: 6 * time.Second}})
	text := p.finding(t, "count.hot", results.CodeCompletes).Texts["error"]
	same(t, "the NOTICE in "+text, strings.Count(text, "what is COUNT?"), 1)
	same(t, "the scenario in "+text, strings.Count(text, "count.hot"), 0)
}

// TestARelayThatRunsAlreadyMayCountMore than it was given, and not less. A count that the relay
// calls approximate is not judged.
func TestARelayThatRunsAlreadyMayCountMore(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 10)
	m := try(t, notes, scripted.Serve(t, scripted.Script{}), func(_ context.Context, trial *harness.Trial) error {
		for key, counts := range map[string][]int{"more": {10, 13}, "less": {13, 9}} {
			asked := []query{newQuery(corpus.Filter{}), newQuery(corpus.Filter{}), newQuery(corpus.Filter{})}
			asked[0].reply.Count, asked[1].reply.Count, asked[2].reply.Approximate = counts[0], counts[1], true
			judgeCounts(trial.Under(harness.Description{Scenario: results.Scenario{Key: key}}), asked)
		}
		return nil
	})
	m.judged(t, "one", "more", results.CodeModel, results.Passed, "", "", "wrong", 0, "of", 2, "events", 20)
	m.judged(t, "one", "less", results.CodeModel, results.Failed, "", "one", "wrong", 1, "of", 2, "missing", 1)
}
