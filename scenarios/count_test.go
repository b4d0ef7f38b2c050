package scenarios

import (
	"strings"
	"testing"
	"time"

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
		p.verdicts(t, key, but([]string{results.CodeModel, results.CodeOnlyMessage}, nil))
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
	}
	p := prove(t, scripted.Script{CountOff: 1}, proving{corpus: c, scenarios: Counts()[:1]})
	f := p.finding(t, "count.hot", results.CodeMeasurable)
	if f.Verdict != results.Stated || f.Cause != results.WithoutNIP || f.Counts["nip"] != 45 || !strings.Contains(f.Texts["text"], "2 events were counted as") || len(p.all("count.hot", "time")) > 0 {
		t.Errorf("a relay that counts wrong from the first on: %+v", f)
	}
}
