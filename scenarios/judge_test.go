package scenarios

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/corpus/scan"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// trialOf is a trial of a relay that runs already.
func trialOf(t *testing.T, url string, c *corpus.Corpus) *harness.Trial {
	t.Helper()
	process, err := relays.Start(t.Context(), &relays.Definition{Name: "scripted", URL: url}, "", relays.Settings{WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(c, nil, time.Now().Unix())
	if err != nil {
		t.Fatal(err)
	}
	return &harness.Trial{Boot: &harness.Boot{Relay: process, Corpus: c, Model: m, Ledger: load.NewLedger(c.Len()), Options: harness.Options{Stall: 20 * time.Second}},
		Rand: rand.New(rand.NewPCG(1, 2))}
}

// TestACapIsBelievedWhereItIsOneNumber has 30 notes at a relay that sends 20 of them at most.
func TestACapIsBelievedWhereItIsOneNumber(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 30)
	trial := trialOf(t, scripted.Serve(t, scripted.Script{Cap: 20}).URL, notes)
	p := load.Publisher{URL: trial.Relay.URL(), Corpus: notes, Conns: 1, Window: 8, Stall: 20 * time.Second, Ledger: trial.Ledger}
	all := make([]int, notes.Len())
	for i := range all {
		all[i] = i
	}
	if _, err := p.Publish(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		got      []int
		longest  int
		believed bool
	}{
		{[]int{20}, 20, true}, {[]int{20, 20}, 20, true}, {[]int{20, 20}, 5, true}, // longest counts other answers
		{[]int{20, 19}, 20, false}, {[]int{20}, 21, false}, {[]int{0}, 0, false},
		{[]int{25}, 25, false}, // asked for just so many, it does not send them
	} {
		var capped []judged
		for _, n := range test.got {
			capped = append(capped, judged{&query{filter: corpus.Filter{Limit: corpus.Int(500)}}, model.CheckResult{Got: n}})
		}
		got, err := believe(t.Context(), trial, capped, test.longest)
		if err != nil || got != test.believed {
			t.Errorf("answers of %v, the longest of %d: %v, %v", test.got, test.longest, got, err)
		}
	}
}

// TestADifferenceIsToldByKindAndReason has 12 notes, of which a relay lacks five for different
// reasons; it holds one that it must not hold.
func TestADifferenceIsToldByKindAndReason(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 12)
	m, err := model.New(notes, func(i int) bool { return i != 11 }, time.Now().Unix())
	if err != nil {
		t.Fatal(err)
	}
	l := load.NewLedger(12)
	for i, a := range []load.Answer{load.NotOffered, load.Unanswered, load.Refused, load.Accepted, load.Duplicate} {
		l.Set(i, a)
	}
	d := compare(&harness.Trial{Boot: &harness.Boot{Corpus: notes, Ledger: l}}, m, []int{5, 6, 7, 8, 9, 10, 11}, []int{0, 4})
	want := map[string]float64{"held": 7, "must": 11, "missing.never delivered": 1, "missing.unanswered": 1, "missing.refused": 1, "missing.lost": 1, "missing.named and not returned": 1,
		"extra." + m.Why(11).String(): 1}
	if got := d.counts(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	same(t, "none, lost, own", fmt.Sprint(d.none(), d.lost(), d.own()), "false 2 5")
	var told []string
	for _, e := range d.evidence() {
		id, _ := corpus.ParseID(e.ID)
		i, _ := notes.Find(id)
		told = append(told, fmt.Sprint(e.Code, " ", i, " ", e.Cause, " ", e.Count, " kind ", *e.Kind))
	}
	same(t, "evidence", strings.Join(told, "\n"), strings.Join([]string{"missing 3 lost 1 kind 1", "missing 4 named and not returned 1 kind 1", "missing 0 never delivered 1 kind 1",
		"missing 2 refused 1 kind 1", "missing 1 unanswered 1 kind 1", "extra 11 " + m.Why(11).String() + " 1 kind 1"}, "\n"))
	if d := compareWith(notes, m, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, nil); !d.none() || len(d.evidence()) != 0 || d.lost()+d.own() != 0 {
		t.Errorf("no difference: %v", d.counts())
	}
	all := compareWith(notes, m, nil, func(int) string { return results.MissingLost })
	same(t, "examples", len(all.evidence()), examples)
	same(t, "of", all.evidence()[0].Count, 11)
}

// TestWhatTheProtocolLeavesOpenIsNoDifference has a note that only its author may publish (NIP-70),
// at a relay that need not know of that.
func TestWhatTheProtocolLeavesOpenIsNoDifference(t *testing.T) {
	t.Parallel()
	key, err := corpus.NewSecretKey([32]byte{31: 1})
	if err != nil {
		t.Fatal(err)
	}
	e := corpus.Event{Kind: 1, CreatedAt: 1_780_000_000, Tags: []corpus.Tag{{"-"}}, Content: "mine"}
	if err := key.Sign(&e, [32]byte{}); err != nil {
		t.Fatal(err)
	}
	c, err := corpus.FromEvents([]corpus.Event{e})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(c, nil, time.Now().Unix())
	if err != nil {
		t.Fatal(err)
	}
	for _, held := range [][]int{nil, {0}} {
		if d := compareWith(c, m, held, func(int) string { return results.MissingLost }); !d.none() {
			t.Errorf("held %v: %v", held, d.counts())
		}
	}
}

func TestSetsOfIDsAreSubtractedAndNamed(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 9)
	ids := without(notes, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, []int{2})
	same(t, "without", len(ids), 8)
	same(t, "what was taken away", ids[notes.Entry(2).ID], false)
	ids = minus(ids, map[corpus.ID]bool{notes.Entry(0).ID: true})
	same(t, "minus", len(ids), 7)
	ids[corpus.ID{9}] = true
	evidence := idEvidence(notes, results.EvidenceExtra, "why", ids)
	same(t, "examples, and the others", len(evidence), examples+1)
	same(t, "an id that is not known, first", evidence[0].ID+evidence[0].Cause, corpus.ID{9}.String()+"why")
	same(t, "kind of it", evidence[0].Kind == nil, true)
	same(t, "then in corpus order", evidence[1].ID, notes.Entry(1).ID.String())
	same(t, "the others", fmt.Sprint(evidence[examples]), fmt.Sprint(results.Evidence{Code: results.EvidenceExtra, Cause: "why", Count: 8 - examples}))
	same(t, "kind", *evidence[1].Kind, 1)
	same(t, "place", index(notes, notes.Entry(4).ID), 4)
	same(t, "no place", index(notes, corpus.ID{}), -1)
}

// TestWhatTheProtocolTakesAwayIsExcused publishes a corpus in which events are superseded and
// deleted, all of which are accepted when they come.
func TestWhatTheProtocolTakesAwayIsExcused(t *testing.T) {
	t.Parallel()
	c, key := syntheticCorpus(t, 250), "ingest.throughput"
	p := prove(t, scripted.Script{}, proving{corpus: c, scenarios: []harness.Scenario{Throughput{}, Storage{}}})
	reasons, must := gone(p.model)
	refused := p.one(t, key, "rejected").Samples
	taken := float64(c.Len()) - float64(refused)
	if len(reasons) == 0 || taken == float64(must) {
		t.Fatal("nothing of this corpus is superseded")
	}
	p.verdicts(t, key, but(throughputChecks, nil))
	p.counted(t, key, results.CodeAccepts, map[string]float64{"refused": 0, "unanswered": 0, "of": float64(must), "rightly refused": float64(refused)})
	p.counted(t, key, results.CodeAcknowledgedKept, map[string]float64{"lost": 0, "of": taken, "excused": taken - float64(must)})

	p = prove(t, scripted.Script{RefuseEvery: 7}, proving{corpus: c, scenarios: []harness.Scenario{Throughput{}}})
	wrongly, rightly := 0.0, 0.0
	for i := 6; i < c.Len(); i += 7 {
		if p.model.Holds(i) && !p.model.Optional(i) {
			wrongly++
		} else {
			rightly++
		}
	}
	same(t, "some of both", wrongly > 0 && rightly > 0, true)
	p.counted(t, key, results.CodeAccepts, map[string]float64{"refused": wrongly, "unanswered": 0, "of": float64(must), "rightly refused": rightly})
}

// later is a relay that acknowledges at once, and shows each second event in the fifth poll after
// that alone.
func later(t *testing.T) (url string) {
	var mu sync.Mutex
	raws, polls := map[string]string{}, map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for {
			_, frame, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			parts, err := scan.Elements(frame)
			if err != nil {
				return
			}
			answer := ""
			switch sub := string(parts[1]); string(parts[0]) {
			case `"EVENT"`:
				e, _ := corpus.ParseEvent(parts[1])
				mu.Lock()
				raws[e.ID.String()] = string(parts[1])
				polls[e.ID.String()] = 4 * (len(raws) % 2)
				mu.Unlock()
				answer = fmt.Sprintf(`["OK","%s",true,""]`, e.ID)
			case `"REQ"`:
				time.Sleep(20 * time.Millisecond) // so that the OK has come before the next poll
				mu.Lock()
				if _, list, ok := strings.Cut(string(frame), `"ids":["`); ok {
					id := list[:64]
					if raw := raws[id]; raw != "" && polls[id] == 0 {
						conn.Write(r.Context(), websocket.MessageText, []byte(`["EVENT",`+sub+`,`+raw+`]`))
					} else if raw != "" {
						polls[id]--
					}
				}
				mu.Unlock()
				answer = `["EOSE",` + sub + `]`
			}
			if answer != "" {
				conn.Write(r.Context(), websocket.MessageText, []byte(answer))
			}
		}
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

// TestWhatComesAfterItsOKIsNotQueryableByIt has 10 samples, five of which show when their OK has
// been there for several polls.
func TestWhatComesAfterItsOKIsNotQueryableByIt(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 50)
	d := relays.Definition{Name: "later", URL: later(t)}
	m, err := model.New(notes, nil, time.Now().Unix())
	if err != nil {
		t.Fatal(err)
	}
	recorder := results.NewRecorder(nil, nil)
	p := &proof{corpus: notes, model: m, relay: &scripted.Relay{Counts: new(scripted.Counts)}, spans: map[string]span{}, shown: map[string][]string{}}
	runner := harness.Runner{Unwatched: true, Targets: []harness.Target{{Definition: &d}}, Scenarios: []harness.Scenario{Visibility{}}, Corpus: notes, Model: m,
		Now: time.Now().Unix(), Options: harness.Options{Samples: 20, Trials: 1, Stall: 20 * time.Second}, Settings: relays.Settings{WorkDir: t.TempDir()},
		Recorder: recorder, Observer: &watcher{proof: p}}
	if err := runner.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Record = recorder.Snapshot()
	by := p.one(t, "ingest.visibility", "queryable by ok")
	same(t, "per cent queryable by OK", by.Trials[0], 50)
	same(t, "of", by.Samples, 10)
	if m := p.one(t, "ingest.visibility", "visible"); m.Samples != 0 && m.Samples != 10 {
		t.Errorf("%+v", m)
	}
	p.counted(t, "ingest.visibility", results.CodeQueryable, map[string]float64{"never": 0, "of": 10, "within s": 10})
	same(t, "processes that are out of sight have no resources", len(p.all("ingest.visibility", "cpu")), 0)
}

// TestUnexpectedEventsAreNamedAsFarAsExamplesGo has one in each of seven answers. What comes under
// another subscription is counted, and not named.
func TestUnexpectedEventsAreNamedAsFarAsExamplesGo(t *testing.T) {
	t.Parallel()
	const n = 601 // 100 are asked for at a time
	all, notes := scripted.Notes(t, n+1), scripted.Notes(t, n)
	for sub, elsewhere := range map[string]int{"": 0, "zzz": n} {
		relay := scripted.Serve(t, scripted.Script{Foreign: string(all.Raw(n)), SubID: sub, Honest: n})
		publishAll(t, notes, relay.URL)
		m := try(t, notes, relay, func(ctx context.Context, trial *harness.Trial) error {
			for i := range n {
				trial.Ledger.Set(i, load.Accepted)
			}
			_, _, err := checkStored(ctx, trial, true)
			return err
		})
		m.judged(t, "one", "trial", results.CodeOnlyAsked, results.Failed, "", "one", "events", 7+elsewhere, "elsewhere", elsewhere)
		stray := results.Evidence{Code: results.EvidenceUnexpected, ID: all.Entry(n).ID.String()}
		same(t, "evidence", fmt.Sprint(m.finding(t, "one", "trial", results.CodeOnlyAsked).Evidence), fmt.Sprint(slices.Repeat([]results.Evidence{stray}, examples)))
		m.judged(t, "one", "trial", results.CodeAcknowledgedKept, results.Holds(elsewhere == 0), "", map[int]string{n: "one"}[elsewhere], "lost", elsewhere, "of", n, "excused", 0)
	}
}

// TestWhatWasNamedWronglyIsOfTwoKinds that add up: ids of nothing, and those of events on both
// sides.
func TestWhatWasNamedWronglyIsOfTwoKinds(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 2)
	id := func(i int) map[corpus.ID]bool { return map[corpus.ID]bool{notes.Entry(i).ID: true} }
	for _, test := range []struct {
		need, twice    map[corpus.ID]bool
		unknown, named int
	}{{id(0), nil, 0, 0}, {map[corpus.ID]bool{{9}: true}, nil, 1, 0}, {id(0), id(1), 0, 1}, {map[corpus.ID]bool{{9}: true}, id(1), 1, 1}} {
		f := onlyKnown(notes, test.need, test.twice)
		same(t, "verdict", f.Verdict, results.Holds(test.unknown+test.named == 0))
		same(t, "counts", fmt.Sprint(f.Counts), fmt.Sprint(counts("ids", test.unknown, "twice", test.named)))
	}
}

// TestWhatADownloadMustBringIsWhatWasAcknowledged by a relay that was launched here, and the whole
// corpus of one that was not.
func TestWhatADownloadMustBringIsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 6)
	must := func(trial *harness.Trial, answers ...load.Answer) int {
		trial.Ledger = load.NewLedger(notes.Len())
		for i, a := range answers {
			trial.Ledger.Set(i, a)
		}
		expected, err := expectedOf(trial, corpus.Filter{})
		if err != nil {
			t.Error(err)
			return -1
		}
		return len(expected.ids())
	}
	yes, again, no := load.Accepted, load.Duplicate, load.Refused
	try(t, notes, scripted.Serve(t, scripted.Script{}), func(_ context.Context, trial *harness.Trial) error {
		same(t, "of one that was not", must(trial, yes, no), 6)
		return nil
	})
	meet(t, notes, harness.Options{}, func(ctx context.Context, r *harness.Runner) error {
		r.Scenarios = []harness.Scenario{inTrial(func(_ context.Context, trial *harness.Trial) error {
			same(t, "all", must(trial, yes, yes, yes, yes, yes, again), 6)
			same(t, "all but what was refused", must(trial, yes, again, no, yes, yes, yes), 5)
			same(t, "all but what was not answered", must(trial, yes, again, yes, load.Unanswered), 3)
			return nil
		})}
		return r.Run(ctx)
	}, scripted.External(t, "launched", scripted.Script{}))
}

// TestWhatWasNotAnsweredMayExcuseWhatIsGone has an older and a newer profile, of which the relay
// holds the newer one: sent and never answered, it was kept all the same; not sent, it is no
// excuse.
func TestWhatWasNotAnsweredMayExcuseWhatIsGone(t *testing.T) {
	t.Parallel()
	key, err := corpus.NewSecretKey([32]byte{31: 1})
	if err != nil {
		t.Fatal(err)
	}
	profiles := make([]corpus.Event, 2)
	for i := range profiles {
		profiles[i] = corpus.Event{CreatedAt: 1_780_000_000 + int64(i), Tags: []corpus.Tag{}, Content: "{}"}
		if err := key.Sign(&profiles[i], [32]byte{}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := corpus.FromEvents(profiles)
	if err != nil {
		t.Fatal(err)
	}
	for newer, lost := range map[load.Answer]int{load.Unanswered: 0, load.NotOffered: 1} {
		relay := scripted.Serve(t, scripted.Script{})
		publishAll(t, c, relay.URL)
		m := try(t, c, relay, func(ctx context.Context, trial *harness.Trial) error {
			trial.Ledger.Set(0, load.Accepted)
			trial.Ledger.Set(1, newer)
			_, _, err := checkStored(ctx, trial, true)
			return err
		})
		f := m.finding(t, "one", "trial", results.CodeAcknowledgedKept)
		same(t, "counts", fmt.Sprint(f.Counts), fmt.Sprint(counts("lost", lost, "of", 1, "excused", 1-lost)))
		same(t, "verdict", f.Verdict, results.Holds(lost == 0))
	}
}

// TestAnAnswerIsToldByExamplesOfEachFault and by how many others there are: of five of each kind,
// three are named.
func TestAnAnswerIsToldByExamplesOfEachFault(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 20)
	id := func(i int) corpus.ID { return notes.Entry(i).ID }
	j := judged{query: &query{json: []byte("{}")}}
	for i := range 5 {
		j.verdict.Missing = append(j.verdict.Missing, model.Discrepancy{ID: id(i)})
		j.verdict.Extra = append(j.verdict.Extra, model.Discrepancy{ID: id(5 + i), Reason: model.Superseded})
		j.verdict.Misordered = append(j.verdict.Misordered, id(10+i))
		j.verdict.Duplicate = append(j.verdict.Duplicate, id(15+i))
	}
	want := []results.Evidence{{Code: results.EvidenceQuestion, Text: "{}"}}
	for k, fault := range []struct{ code, cause string }{{results.EvidenceMissing, ""}, {results.EvidenceExtra, model.Superseded.String()},
		{results.EvidenceOrder, "misordered"}, {results.EvidenceOrder, "duplicate"}} {
		for i := range 3 {
			e := eventEvidence(fault.code, notes, 5*k+i)
			e.Cause = fault.cause
			want = append(want, e)
		}
		others := results.Evidence{Code: fault.code, Cause: fault.cause, Count: 2}
		if fault.code == results.EvidenceExtra { // which may be there for any reason
			others.Cause = ""
		}
		want = append(want, others)
	}
	if got := j.evidence(&harness.Trial{Boot: &harness.Boot{Corpus: notes}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// TestTheFirstEventOfACorpusIsKnown as any other is, where a relay names it as its alone.
func TestTheFirstEventOfACorpusIsKnown(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 9)
	relay := scripted.Serve(t, scripted.Script{})
	publishAll(t, notes, relay.URL)
	try(t, notes, relay, func(ctx context.Context, trial *harness.Trial) error {
		result, have, need, err := (&side{Trial: trial}).against(ctx, places(1, 9))
		same(t, "have, need, foreign", [3]int{len(have), len(need), result.Unexpected}, [3]int{0, 1, 0})
		same(t, "the one", need[notes.Entry(0).ID], true)
		return err
	})
}

// TestWhereNothingWasAcknowledgedNothingIsLookedFor though the relay holds all.
func TestWhereNothingWasAcknowledgedNothingIsLookedFor(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 9)
	relay := scripted.Serve(t, scripted.Script{})
	publishAll(t, notes, relay.URL)
	m := try(t, notes, relay, func(ctx context.Context, trial *harness.Trial) error {
		before := relay.Reqs.N()
		came, lost, err := checkStored(ctx, trial, true)
		same(t, "came, lost, REQs", [3]int{came, lost, int(relay.Reqs.N() - before)}, [3]int{})
		return err
	})
	m.judged(t, "one", "trial", results.CodeAcknowledgedKept, results.Passed, "", "", "lost", 0, "of", 0, "excused", 0)
}
