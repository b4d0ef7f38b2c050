package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// incompletes are the scenarios that did not come to their end.
func (p *proof) incompletes() (keys []string) {
	for _, f := range p.Findings {
		if f.Code == results.CodeCompletes {
			keys = append(keys, f.Scenario)
		}
	}
	return keys
}

// TestOneUnansweredQuestionCostsOneScenario has six queries of 15 questions each, and leaves the
// 50th question of a boot unanswered: the fourth query fails, the relay is started again over its
// data, and the others are measured as if nothing had been.
func TestOneUnansweredQuestionCostsOneScenario(t *testing.T) {
	t.Parallel()
	const n, failed = 120, "query.by-ids.hot"
	keys := []string{"query.firehose.hot", "query.firehose.varied", "query.global-feed.hot", failed, "query.empty.hot", "query.deep-page.hot"}
	var scenarios []harness.Scenario
	for _, key := range keys {
		scenarios = append(scenarios, queriesOf(strings.TrimPrefix(key, "query."))...)
	}
	s := scripted.Script{Persist: true, IgnoreEvery: 50, FirstAfter: once, EOSEAfter: once}
	p := prove(t, s, proving{corpus: scripted.Notes(t, n), scenarios: scenarios, options: harness.Options{QueryRounds: rounds, QueryConns: conns, Stall: 5 * time.Second}})
	if got := p.incompletes(); !slices.Equal(got, []string{failed}) {
		t.Fatalf("%v did not complete, want %s alone\n%v", got, failed, p.told())
	}
	f := p.counted(t, failed, results.CodeCompletes, nil)
	if len(f.Evidence) != 1 || f.Evidence[0].Code != results.EvidenceQuestion || !strings.HasPrefix(f.Evidence[0].Text, `{"ids":[`) {
		t.Errorf("the question is not in the evidence: %+v", f.Evidence)
	}
	if f.Verdict != results.Failed || f.Blames != "scripted" || f.Texts["error"] == "" || len(f.BearsOn) != 1 || f.BearsOn[0].Scenario != failed+".*" {
		t.Errorf("%+v", f)
	}
	for _, key := range keys {
		if key == failed {
			same(t, "figures of what failed", len(p.all(key, "queries/s")), 0)
			continue
		}
		p.verdicts(t, key, but(queryChecks, nil))
		p.latency(t, key, "eose", rounds, once)
		same(t, key+": answers", p.one(t, key, "queries/s").Samples, conns*rounds)
	}
	same(t, "boots", p.relay.Boots.N(), 2)
	same(t, "published", p.relay.Events.N(), n+forgery)
	same(t, "outcome", p.Relays[0].Outcome, results.OutcomeOK)
	same(t, "told of as failed", len(p.failed), 0)
}

// TestARelayThatDiesGoesOn dies at the 100th of 130 events of a boot, which it never stores: what
// had not been sent is sent to the next one.
func TestARelayThatDiesGoesOn(t *testing.T) {
	t.Parallel()
	const n, key = 130, "query.firehose.hot"
	p := prove(t, scripted.Script{Persist: true, DieAt: 100, FirstAfter: once, EOSEAfter: once}, proving{corpus: scripted.Notes(t, n),
		scenarios: append([]harness.Scenario{Throughput{}}, queriesOf("firehose.hot")...), options: harness.Options{Window: 1, QueryRounds: rounds, QueryConns: conns}})
	if got := p.incompletes(); !slices.Equal(got, []string{"ingest.throughput"}) {
		t.Fatalf("%v did not complete", got)
	}
	f := p.counted(t, "ingest.throughput", results.CodeCompletes, nil)
	if !strings.Contains(f.Texts["error"], "died") {
		t.Errorf("why: %q", f.Texts["error"])
	}
	same(t, "accepted", p.one(t, "ingest.throughput", "accepted").Samples, 99)
	same(t, "unacknowledged", p.value(t, "ingest.throughput", "unacknowledged"), 1)
	same(t, "boots", p.relay.Boots.N(), 2)
	same(t, "events in an answer", p.value(t, key, "events"), n-1)
	p.counted(t, key, results.CodeModel, map[string]float64{"wrong": asks, "of": asks, "events": asks * (n - 1), "elsewhere": 0, "missing": asks, "missing.unanswered": asks})
	same(t, "outcome", p.Relays[0].Outcome, results.OutcomeOK)
}

// failing is a scenario that runs fail, and counts how often it ran.
type failing struct {
	key  string
	ran  *[]string
	fail func(t *harness.Trial) error
}

func (f failing) Describe() harness.Description {
	return harness.Description{Scenario: results.Scenario{Key: f.key}}
}

func (f failing) Run(_ context.Context, t *harness.Trial) error {
	*f.ran = append(*f.ran, fmt.Sprint(f.key, t.Number))
	t.Value("figure", "s", results.None, float64(t.Number))
	return f.fail(t)
}

// TestThreeFailuresInARowEndATrial has scenarios that fail: a trial ends with the third in a row,
// and the next one runs all the same.
func TestThreeFailuresInARowEndATrial(t *testing.T) {
	t.Parallel()
	var ran []string
	scenario := func(key string, fails func(trial int) bool) harness.Scenario {
		return failing{key, &ran, func(t *harness.Trial) error {
			if fails(t.Number) {
				return errors.New("on purpose")
			}
			return nil
		}}
	}
	always, never := func(int) bool { return true }, func(int) bool { return false }
	p := prove(t, scripted.Script{Persist: true}, proving{corpus: scripted.Notes(t, 5), options: harness.Options{Trials: 2}, scenarios: []harness.Scenario{
		scenario("a", always), scenario("b", always), scenario("c", never), scenario("d", always), scenario("e", always),
		scenario("f", func(trial int) bool { return trial == 0 }), scenario("g", never)}})
	same(t, "ran", strings.Join(ran, " "), "a0 b0 c0 d0 e0 f0 a1 b1 c1 d1 e1 f1 g1")
	same(t, "boots", p.relay.Boots.N(), 1+4+1+4)
	same(t, "outcome", p.Relays[0].Outcome, results.OutcomeFailed)
	if !strings.Contains(p.Relays[0].Reason, "3 scenarios in a row failed") {
		t.Errorf("reason: %q", p.Relays[0].Reason)
	}
	same(t, "incomplete", strings.Join(p.incompletes(), ""), "abdef")
	same(t, "told of as failed", len(p.failed), 1)
	same(t, "trials of g", len(p.all("g", "figure")[0].Trials), 1)
}

// TestARelayThatDoesNotStartAgainIsGivenUp has its script taken away in the first scenario, which
// fails.
func TestARelayThatDoesNotStartAgainIsGivenUp(t *testing.T) {
	t.Parallel()
	var ran []string
	takeAway := func(t *harness.Trial) error {
		for _, file := range t.Relay.Definition().Env {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
		return errors.New("on purpose")
	}
	nothing := func(*harness.Trial) error { return nil }
	p := prove(t, scripted.Script{}, proving{corpus: scripted.Notes(t, 5), options: harness.Options{Trials: 2},
		scenarios: []harness.Scenario{failing{"a", &ran, takeAway}, failing{"b", &ran, nothing}}})
	same(t, "ran", strings.Join(ran, " "), "a0")
	if !strings.Contains(p.told()[len(p.told())-1], "did not start again over its data") {
		t.Errorf("told: %v", p.failed)
	}
	same(t, "boots", p.relay.Boots.N(), 1)
}

// TestResourcesAreThoseOfAllProcessesOfAScenario starts the relay anew in the middle of a scenario.
func TestResourcesAreThoseOfAllProcessesOfAScenario(t *testing.T) {
	t.Parallel()
	var ran []string
	notes := scripted.Notes(t, 100)
	half := func(t *harness.Trial, from int) error {
		p := load.Publisher{URL: t.Relay.URL(), Corpus: notes, Conns: 1, Window: 4, Stall: 30 * time.Second, Ledger: load.NewLedger(100)}
		indexes := make([]int, 50)
		for i := range indexes {
			indexes[i] = from + i
		}
		_, err := p.Publish(context.Background(), indexes)
		return err
	}
	twice := func(t *harness.Trial) error {
		if err := half(t, 0); err != nil {
			return err
		}
		if _, _, err := t.Stop(context.Background()); err != nil {
			return err
		}
		if err := t.Restart(context.Background()); err != nil {
			return err
		}
		return half(t, 50)
	}
	s := scripted.Script{CPUPerMessage: 4 * time.Millisecond, WritePerMessage: 16384}
	p := prove(t, s, proving{corpus: notes, scenarios: []harness.Scenario{failing{"twice", &ran, twice}}})
	p.consumed(t, "twice", s)
}
