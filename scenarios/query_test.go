package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// queriesOf are the query templates of these keys, "firehose.hot".
func queriesOf(keys ...string) (list []harness.Scenario) {
	for _, key := range keys {
		for _, s := range Queries() {
			if s.Describe().Key == "query."+key {
				list = append(list, s)
			}
		}
	}
	return list
}

var queryFigures = map[string]string{"eose": "ms lower", "first event": "ms lower", "events": "events/query none", "events/s": "events/s higher",
	"queries/s": "queries/s higher"}

var queryChecks = []string{results.CodeUnaltered, results.CodeOnlyMessage, results.CodeEOSE, results.CodeModel}

// once is a delay of answers by which a rate is taken of each question once: rounds of it are
// longer than rateTime.
const (
	once   = 60 * time.Millisecond
	rounds = 4
	conns  = 2
	asks   = warmUps + rounds + conns*rounds // of one query
)

// forgery is how many EVENTs come after those of a corpus, and one REQ for them.
const forgery = 4

// TestQueriesAreMeasured asks for 150 notes over 5 connections: an answer holds them all, and takes
// d.
func TestQueriesAreMeasured(t *testing.T) {
	t.Parallel()
	const n, rounds, conns, first, d, key = 150, 6, 5, 20 * time.Millisecond, 250 * time.Millisecond, "query.firehose.hot"
	s := scripted.Script{Honest: n + forgery, FirstAfter: first, EOSEAfter: d, CPUPerMessage: 3 * time.Millisecond, WritePerMessage: 4096}
	p := prove(t, s, proving{corpus: scripted.Notes(t, n), scenarios: queriesOf("firehose.hot"), options: harness.Options{QueryRounds: rounds, QueryConns: conns}})
	p.figures(t, key, queryFigures)
	p.verdicts(t, key, but(queryChecks, nil))
	did := p.spans[key].did
	events := p.one(t, key, "events")
	same(t, "events in an answer", events.Trials[0], n)
	same(t, "of answers", events.Samples, rounds)
	same(t, "exact", events.Exact, true)
	same(t, "progress", fmt.Sprint(p.shown[key]), fmt.Sprint(steps(1, rounds)))
	eose := p.latency(t, key, "eose", rounds, d)
	soon := p.latency(t, key, "first event", rounds, first)
	between(t, "the first event, of its order of magnitude", first, soon.Min(), d)
	between(t, "the first event", 0, soon.Max(), eose.Max())

	queries, all := p.one(t, key, "queries/s"), p.one(t, key, "events/s")
	answers := did.eoses - warmUps - rounds // which the relay gave over all connections
	same(t, "answers", queries.Samples, answers)
	same(t, "events", all.Samples, n*answers)
	seconds := float64(answers) / queries.Trials[0]
	near(t, "events/s", all.Trials[0], n*float64(answers)/seconds)
	alone := (warmUps + rounds) * d.Seconds()
	between(t, "seconds of the rate", rounds*d.Seconds(), seconds, p.spans[key].seconds()-alone)
	between(t, "queries/s, by what all connections can ask at most", 0, queries.Trials[0], conns/d.Seconds())
	p.consumed(t, key, s)
	p.counted(t, key, results.CodeModel, map[string]float64{"wrong": 0, "of": warmUps + rounds + conns*rounds, "events": n * (warmUps + rounds + conns*rounds), "elsewhere": 0})
}

// TestEveryStockQueryIsMeasured asks all of them in both forms.
func TestEveryStockQueryIsMeasured(t *testing.T) {
	t.Parallel()
	c := syntheticCorpus(t, 250)
	const rounds, conns, first, d = 3, 3, 5 * time.Millisecond, 12 * time.Millisecond
	s := scripted.Script{Honest: c.Len() + forgery, FirstAfter: first, EOSEAfter: d}
	p := prove(t, s, proving{corpus: c, scenarios: Queries(), options: harness.Options{QueryRounds: rounds, QueryConns: conns, Publishers: 2}})
	parameters, err := newQueryParameters(c, p.model)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "scenarios", len(p.Scenarios), 2*len(queryTemplates))
	for i := range queryTemplates {
		for _, form := range []string{"hot", "varied"} {
			key := "query." + queryTemplates[i].key + "." + form
			found := p.value(t, key, "events")
			want := map[string]string{}
			for metric, unit := range queryFigures {
				if found > 0 || metric != "events/s" && metric != "first event" {
					want[metric] = unit
				}
			}
			// What is drawn may find nothing when it is asked alone, and something later.
			if form == "varied" && queryTemplates[i].key != "empty" && len(p.all(key, "events/s")) > 0 {
				want["events/s"] = queryFigures["events/s"]
			}
			p.figures(t, key, want)
			p.verdicts(t, key, but(queryChecks, nil))
			p.latency(t, key, "eose", rounds, d)
			events, did := p.one(t, key, "events"), p.spans[key].did
			same(t, key+": answers of one connection", events.Samples, rounds)
			same(t, key+": exact", events.Exact, true)
			queries := p.one(t, key, "queries/s")
			same(t, key+": answers", queries.Samples, did.eoses-warmUps-rounds)
			seconds := float64(queries.Samples) / queries.Trials[0]
			between(t, key+": seconds of the rate", max(rateTime, rounds*d).Seconds(), seconds, p.spans[key].seconds()-(warmUps+rounds)*d.Seconds())
			between(t, key+": rounds", conns*rounds, queries.Samples, 1<<20)
			together, labels := int64(0), results.Labels{results.LabelQuery: queryTemplates[i].key, results.LabelForm: form}
			for _, all := range p.all(key, "events/s") {
				together = all.Samples
				near(t, key+": events/s", all.Trials[0], float64(all.Samples)/seconds)
			}
			for _, m := range p.Measurements {
				if m.Scenario == key && !m.Labels.Equal(labels) {
					t.Errorf("%s, %s: labels %v, want %v", key, m.Metric, m.Labels, labels)
				}
			}
			sent := did.sent - together - int64(found*rounds+0.5) // in the questions to warm up
			if form == "varied" {
				between(t, key+": events that were sent to warm up", 0, sent, warmUps*int64(c.Len()))
				continue
			}
			f, _ := queryTemplates[i].hot(parameters)
			f.Limit = corpus.Int(templateLimit)
			answer := int64(len(p.model.Query(&f)))
			same(t, key+": events in an answer", found, float64(answer))
			same(t, key+": events from all connections", together, answer*queries.Samples)
			same(t, key+": events that were sent to warm up", sent, warmUps*answer)
			if (answer > 0) != (len(p.all(key, "first event")) == 1) {
				t.Errorf("%s: %d events; first event %v", key, answer, p.all(key, "first event"))
			}
		}
	}
}

// TestEachFaultOfAnAnswerFailsItsOwnCheck asks for 100 notes, each question once.
func TestEachFaultOfAnAnswerFailsItsOwnCheck(t *testing.T) {
	t.Parallel()
	const n, key = 100, "query.firehose.hot"
	notes := scripted.Notes(t, n+1)
	foreign := string(notes.Raw(n))
	var twice []string
	for i := n - 1; i >= 0; i-- {
		twice = append(twice, string(notes.Raw(i)))
	}
	twice = append(twice, twice[n-1])
	right := map[string]float64{"wrong": 0, "of": asks, "events": asks * n, "elsewhere": 0}
	wrong := func(events int, more map[string]float64) map[string]float64 {
		all := map[string]float64{"wrong": asks, "of": asks, "events": asks * float64(events), "elsewhere": 0}
		for name, x := range more {
			all[name] = asks * x
		}
		return all
	}
	for _, test := range []struct {
		name    string
		script  scripted.Script
		differ  map[string]results.Verdict
		code    string
		counts  map[string]float64
		names   string
		indexes []int
	}{
		{"honest", scripted.Script{}, nil, results.CodeModel, right, "", nil},
		{"leaves out", scripted.Script{LeaveOutEvery: 50}, map[string]results.Verdict{results.CodeModel: results.Failed},
			results.CodeModel, wrong(n-2, map[string]float64{"missing": 2, "missing.acknowledged": 2}), results.EvidenceMissing, []int{50, 0, 50, 0, 50, 0, 50, 0, 50, 0}},
		{"oldest first", scripted.Script{Faults: []string{"wrong-order"}}, map[string]results.Verdict{results.CodeModel: results.Failed},
			results.CodeModel, wrong(n, map[string]float64{"misordered": n - 1}), "", nil},
		{"foreign", scripted.Script{Foreign: foreign}, map[string]results.Verdict{results.CodeModel: results.Failed},
			results.CodeModel, wrong(n+1, map[string]float64{"extra": 1}), "", nil},
		{"twice", scripted.Script{Answer: twice}, map[string]results.Verdict{results.CodeModel: results.Failed},
			results.CodeModel, wrong(n+1, map[string]float64{"duplicate": 1}), results.EvidenceOrder, []int{0, 0, 0, 0, 0}},
		{"without ids", scripted.Script{Foreign: `{"kind":1}`}, map[string]results.Verdict{results.CodeModel: results.Failed},
			results.CodeModel, wrong(n, map[string]float64{"no id": 1}), "", nil},
		{"alters", scripted.Script{Alter: map[string]string{"content": `"x"`}}, map[string]results.Verdict{results.CodeUnaltered: results.Failed},
			results.CodeUnaltered, map[string]float64{"altered": warmUps * n, "of": warmUps * n}, results.EvidenceAltered, []int{99, 98, 97, 96, 95}},
		{"closes", scripted.Script{CloseEvery: 8, CloseReason: "error: no"}, map[string]results.Verdict{results.CodeEOSE: results.Failed},
			results.CodeEOSE, map[string]float64{"closed": 2, "of": asks}, "", nil},
		{"closes half", scripted.Script{CloseEvery: 2}, map[string]results.Verdict{results.CodeEOSE: results.Failed},
			results.CodeEOSE, map[string]float64{"closed": (asks + 1) / 2, "of": asks}, "", nil},
		{"capped", scripted.Script{Cap: 20}, map[string]results.Verdict{results.CodeUncapped: results.Stated},
			results.CodeUncapped, map[string]float64{"capped": asks, "of": asks, "events": 20}, "", nil},
		{"nothing", scripted.Script{Answer: []string{}}, map[string]results.Verdict{results.CodeModel: results.Failed},
			results.CodeModel, wrong(0, map[string]float64{"missing": n, "missing.acknowledged": n}), "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.script.Honest, test.script.FirstAfter, test.script.EOSEAfter = n+forgery, once, once
			p := prove(t, test.script, proving{corpus: scripted.Notes(t, n), scenarios: queriesOf("firehose.hot"), options: harness.Options{QueryRounds: rounds, QueryConns: conns}})
			p.verdicts(t, key, but(queryChecks, test.differ))
			if f := p.finding(t, key, test.code); test.name == "leaves out" && f.Counts["wrong"] > asks-conns {
				test.counts["wrong"] = f.Counts["wrong"] // two answers at a time share what is left out
			}
			f := p.counted(t, key, test.code, test.counts)
			if test.names != "" {
				p.names(t, f, test.names, test.indexes...)
			}
			queries, events := p.one(t, key, "queries/s").Samples, p.value(t, key, "events")
			switch test.name {
			case "closes": // the 7th question of one connection, and the last of all
				same(t, "answers", queries, conns*rounds-1)
				p.latency(t, key, "eose", rounds-1, once)
				same(t, "events", events, n)
				same(t, "evidence", f.Evidence[1], results.Evidence{Code: results.EvidenceWords, Text: "error: no"})
				p.counted(t, key, results.CodeModel, map[string]float64{"wrong": 0, "of": asks - 2, "events": (asks - 2) * n, "elsewhere": 0})
			case "closes half":
				same(t, "evidence", len(f.Evidence), examples)
				same(t, "answers, and those on one connection", queries+p.one(t, key, "eose").Samples, (conns+1)*rounds/2)
			case "capped":
				same(t, "events", events, 20)
			default:
				same(t, "answers", queries, conns*rounds)
				near(t, "events", events, p.finding(t, key, results.CodeModel).Counts["events"]/asks)
			}
			if test.code == results.CodeModel && f.Verdict == results.Failed && f.Evidence[0].Text != `{"limit":500}` {
				t.Errorf("the question is not told: %+v", f.Evidence[0])
			}
		})
	}
}

func TestFramesThatAreNoMessageAreStated(t *testing.T) {
	t.Parallel()
	const n, key = 60, "query.firehose.hot"
	p := prove(t, scripted.Script{Faults: []string{"garbage-frames"}, FirstAfter: once, EOSEAfter: once},
		proving{corpus: scripted.Notes(t, n), scenarios: queriesOf("firehose.hot"), options: harness.Options{QueryRounds: rounds, QueryConns: conns}})
	p.verdicts(t, key, but(queryChecks, map[string]results.Verdict{results.CodeOnlyMessage: results.Stated}))
	f := p.counted(t, key, results.CodeOnlyMessage, map[string]float64{"frames": float64(p.spans[key].did.garbage)})
	frames, causes := 0.0, map[string]bool{}
	for _, e := range f.Evidence {
		same(t, "evidence", e.Code, results.EvidenceFrame)
		frames, causes[e.Cause] = frames+float64(e.Count), true
	}
	same(t, "frames in the evidence", frames, f.Counts["frames"])
	same(t, "without a cause", causes[""], false)
}

// TestWhatWasRefusedIsMissingForThat has 6 of 60 notes refused and 5 never stored.
func TestWhatWasRefusedIsMissingForThat(t *testing.T) {
	t.Parallel()
	const n, key = 60, "query.firehose.hot"
	p := prove(t, scripted.Script{RefuseEvery: 10, LoseEvery: 11, FirstAfter: once, EOSEAfter: once},
		proving{corpus: scripted.Notes(t, n), scenarios: queriesOf("firehose.hot"), options: harness.Options{QueryRounds: rounds, QueryConns: conns}})
	p.counted(t, key, results.CodeModel, map[string]float64{"wrong": asks, "of": asks, "events": asks * (n - 11), "elsewhere": 0,
		"missing": asks * 11, "missing.refused": asks * 6, "missing.acknowledged": asks * 5})
}

// TestAQueryWithoutAnythingToAskAboutIsNotMeasured has notes without hashtags.
func TestAQueryWithoutAnythingToAskAboutIsNotMeasured(t *testing.T) {
	t.Parallel()
	p := prove(t, scripted.Script{}, proving{corpus: scripted.Notes(t, 20), scenarios: queriesOf("hashtag.hot", "hashtag.varied")})
	for _, key := range []string{"query.hashtag.hot", "query.hashtag.varied"} {
		p.verdicts(t, key, map[string]results.Verdict{results.CodeMeasurable: results.Stated})
		same(t, "cause", p.counted(t, key, results.CodeMeasurable, nil).Cause, results.NothingToAsk)
		for _, m := range p.Measurements {
			if strings.HasPrefix(m.Scenario, key) {
				t.Errorf("%s: %s was recorded", key, m.Metric)
			}
		}
	}
}

// TestAnswersThatChangeAreJudgedToo leaves out an event of the second round of questions that are
// asked over and over, and one of each few rounds after that.
func TestAnswersThatChangeAreJudgedToo(t *testing.T) {
	t.Parallel()
	const n, key, rounds, conns = 20, "query.firehose.hot", 1, 1 // of several connections, one might be rounds ahead
	const asks = warmUps + rounds + conns*rounds
	const every = asks*n + n/2
	p := prove(t, scripted.Script{LeaveOutEvery: every}, proving{corpus: scripted.Notes(t, n), scenarios: queriesOf("firehose.hot"),
		options: harness.Options{QueryRounds: rounds, QueryConns: conns}})
	if p.spans[key].did.sent < every {
		t.Skipf("this machine is too busy for a second round of questions in %v", rateTime)
	}
	p.verdicts(t, key, but(queryChecks, map[string]results.Verdict{results.CodeModel: results.Failed}))
	f := p.finding(t, key, results.CodeModel)
	if f.Counts["wrong"] < 1 || f.Counts["of"] <= asks || f.Counts["of"] > asks+conns*keptChanges {
		t.Errorf("%v", f.Counts)
	}
	same(t, "events", f.Counts["events"], f.Counts["of"]*n-f.Counts["wrong"])

	p = prove(t, scripted.Script{}, proving{corpus: scripted.Notes(t, n), scenarios: queriesOf("firehose.hot"), options: harness.Options{QueryRounds: rounds, QueryConns: conns}})
	p.counted(t, key, results.CodeModel, map[string]float64{"wrong": 0, "of": asks, "events": asks * n, "elsewhere": 0})
}
