package scenarios

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/relays/negentropy"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// paired reconciles relays with each other.
func paired(n Negentropy) func(context.Context, *harness.Runner) error {
	return aloneIn(n)
}

// played is what a reconciliation comes to.
type played struct {
	rounds   int
	up, down int64 // bytes of frames
}

// play carries a reconciliation out in memory, and counts the frames that it takes.
func play(t *testing.T, ours, theirs negentropy.Storage) (p played) {
	t.Helper()
	frame := func(text string, mask int64) int64 {
		header := int64(2)
		if len(text) >= 126 {
			header = 4
		}
		if len(text) >= 1<<16 {
			header = 10
		}
		return int64(len(text)) + header + mask
	}
	hex := func(message []byte) string { return string(negentropy.AppendHex(nil, message)) }
	us, them := negentropy.NewInitiator(ours, negentropy.DefaultFrameLimit, nil, nil), negentropy.NewResponder(theirs, 0)
	message := us.Open(nil)
	for label := `["NEG-OPEN","neg123456",{},"`; !us.Done(); label = `["NEG-MSG","neg123456","` {
		p.up += frame(label+hex(message)+`"]`, 4)
		answer, err := them.Next(nil, message)
		if err != nil {
			t.Fatal(err)
		}
		p.rounds++
		p.down += frame(`["NEG-MSG","neg123456","`+hex(answer)+`"]`, 0)
		if message, err = us.Next(nil, answer); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func setIn(t *testing.T, c *corpus.Corpus, indexes []int, others ...corpus.Event) negentropy.Storage {
	t.Helper()
	set, err := sealed(c, indexes, others...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// reconciledUnits are the figures of a reconciliation in which something differs.
var reconciledUnits = map[string]string{"time": "ms lower", "first answer": "ms none", "harness share": "% none", "rounds": "rounds none", "bytes up": "bytes none",
	"bytes down": "bytes none", "have": "events none", "need": "events none", "bytes per difference": "bytes/event lower"}

// TestAPairsFiguresAreThoseOfTheScript reconciles 500 notes, of which each relay begins with 400.
// Every answer takes its time, so that the rounds, which are played in memory, bound what a
// reconciliation takes.
func TestAPairsFiguresAreThoseOfTheScript(t *testing.T) {
	t.Parallel()
	const held, okHeld, eoseHeld = 25 * time.Millisecond, 15 * time.Millisecond, 40 * time.Millisecond
	notes := scripted.Notes(t, 500)
	script := scripted.Script{NegAfter: held, OKAfter: okHeld, EOSEAfter: eoseHeld}
	both := map[string]*scripted.Relay{"alpha": scripted.External(t, "alpha", script), "beta": scripted.External(t, "beta", script)}
	m := meet(t, notes, harness.Options{Window: 40}, paired(Negentropy{Scattered: true}), both["alpha"], both["beta"])
	took := ms(m.took)
	for _, f := range m.Findings {
		if f.Verdict == results.Failed || f.Verdict == results.Undecided {
			t.Errorf("%+v", f)
		}
	}

	older, newer, all := places(0, 400), places(100, 500), places(0, 500)
	extra := corpus.Event{ID: corpus.ID{1}, CreatedAt: time.Now().Unix()}
	same := play(t, setIn(t, notes, all), setIn(t, notes, all))
	more := play(t, setIn(t, notes, all), setIn(t, notes, all, extra)) // the client lacks it
	less := play(t, setIn(t, notes, all[1:]), setIn(t, notes, all))
	for name, relay := range both {
		peer := map[string]string{"alpha": "beta", "beta": "alpha"}[name]
		first := play(t, setIn(t, notes, newer), setIn(t, notes, older))
		if name == "beta" {
			first = play(t, setIn(t, notes, older), setIn(t, notes, newer))
		}
		rounds := 1.0 // of the probe
		for _, phase := range []struct {
			name       string
			want       played
			have, need float64
			exact      bool
		}{{phaseInitial, first, 100, 100, true}, {phaseIdentical, same, 0, 0, true}, {phaseAfterWrite, more, 0, 1, false}} {
			key := "negentropy." + phase.name
			what := name + ", " + phase.name
			units := reconciledUnits
			if phase.need == 0 {
				units = without1(units, "bytes per difference")
			}
			m.units(t, name, key, units)
			equals(t, what+": rounds", m.value(t, name, key, "rounds"), float64(phase.want.rounds))
			equals(t, what+": bytes up", m.value(t, name, key, "bytes up"), float64(phase.want.up))
			equals(t, what+": bytes down", m.value(t, name, key, "bytes down"), float64(phase.want.down))
			equals(t, what+": have", m.value(t, name, key, "have"), phase.have)
			equals(t, what+": need", m.value(t, name, key, "need"), phase.need)
			if differing := phase.have + phase.need; differing > 0 {
				equals(t, what+": bytes per difference", m.value(t, name, key, "bytes per difference"), float64(phase.want.up+phase.want.down)/differing)
			}
			least := float64(phase.want.rounds) * ms(held)
			time := m.value(t, name, key, "time")
			within(t, what+": time", least, time, took)
			within(t, what+": first answer", ms(held), m.value(t, name, key, "first answer"), time-least+ms(held))
			within(t, what+": share of the harness", 1e-6, m.value(t, name, key, "harness share"), 100*(time-least)/time)
			for _, metric := range []string{"rounds", "bytes up", "bytes down", "have", "need"} {
				if f := m.figure(t, name, key, metric); f.Exact != phase.exact || f.Peer != peer || f.Labels[results.LabelPhase] != phase.name {
					t.Errorf("%s: %s: exact %v, peer %q, labels %v", what, metric, f.Exact, f.Peer, f.Labels)
				}
			}
			rounds += float64(phase.want.rounds)
		}

		key := "negentropy.heartbeat"
		m.units(t, name, key, map[string]string{"time": "ms lower", "rounds": "rounds none", "bytes up": "bytes none", "bytes down": "bytes none"})
		equals(t, name+", heartbeat: rounds", m.value(t, name, key, "rounds"), float64(same.rounds))
		equals(t, name+", heartbeat: bytes up", m.value(t, name, key, "bytes up"), float64(same.up))
		equals(t, name+", heartbeat: bytes down", m.value(t, name, key, "bytes down"), float64(same.down))
		for _, metric := range []string{"rounds", "bytes up", "bytes down"} {
			if !m.figure(t, name, key, metric).Exact {
				t.Errorf("%s, heartbeat: %s is not exact", name, metric)
			}
		}
		latencies(t, name+", heartbeat", m.figure(t, name, key, "time"), heartbeats, time.Duration(same.rounds)*held, m.took)
		rounds += heartbeats * float64(same.rounds)
		for phase, times := range map[string]int{phaseIdentical: 1, phaseHeartbeat: leftOutBeats} { // with one event less, not measured
			m.judged(t, name, "negentropy."+phase, results.CodeNamesLeft, results.Passed, "", "", "missing", 0, "of", times)
			rounds += float64(times * less.rounds)
		}

		key = "negentropy.scattered"
		removed := m.finding(t, name, key, results.CodeScattered).Counts["of"]
		within(t, name+", scattered: 1 in 100 of 500", 1, removed, 25)
		m.units(t, name, key, reconciledUnits)
		equals(t, name+", scattered: have", m.value(t, name, key, "have"), 0)
		equals(t, name+", scattered: need", m.value(t, name, key, "need"), removed+1) // and the event of the phase before
		bytes := m.value(t, name, key, "bytes up") + m.value(t, name, key, "bytes down")
		equals(t, name+", scattered: bytes per difference", m.value(t, name, key, "bytes per difference"), bytes/(removed+1))
		within(t, name+", scattered: time", m.value(t, name, key, "rounds")*ms(held), m.value(t, name, key, "time"), took)
		equals(t, name+": rounds of all", rounds+m.value(t, name, key, "rounds"), float64(relay.NegAnswers.N()))

		// 100 ids are one REQ, whose 100 events go out 40 at a time.
		key = "negentropy.transfer"
		m.units(t, name, key, map[string]string{"events": "events none", "duration": "s lower", "events/s": "events/s higher"})
		equals(t, name+", transfer: events", m.value(t, name, key, "events"), 100)
		seconds := m.value(t, name, key, "duration")
		within(t, name+", transfer: duration", (eoseHeld + okHeld).Seconds(), seconds, m.took.Seconds())
		equals(t, name+", transfer: rate × duration", m.value(t, name, key, "events/s")*seconds, 100)

		m.judged(t, name, "negentropy", results.CodeHoldsSeeded, results.Passed, "", "", "held", 400, "must", 400)
		m.judged(t, name, "negentropy.initial", results.CodeDifference, results.Passed, "", "", "have", 100, "must have", 100, "need", 100, "must need", 100)
		m.judged(t, name, "negentropy.transfer", results.CodeCarried, results.Passed, "", "", "asked", 100, "fetched", 100, "accepted", 100)
		m.judged(t, name, "negentropy.identical", results.CodeHoldsUnion, results.Passed, "", "", "held", 500, "must", 500, "own", 0)
		m.judged(t, name, "negentropy.heartbeat", results.CodeSteady, results.Passed, "", "", "times", 0, "of", heartbeats)
		m.judged(t, name, "negentropy.after-write", results.CodeAtOnce, results.Passed, "", "", "ids", 0)
		for _, phase := range []string{phaseInitial, phaseIdentical, phaseHeartbeat, phaseAfterWrite, phaseScattered} {
			m.judged(t, name, "negentropy."+phase, results.CodeOnlyKnown, results.Passed, "", "", "ids", 0, "twice", 0)
			equals(t, name+", "+phase+": evidence", float64(len(m.finding(t, name, "negentropy."+phase, results.CodeOnlyKnown).Evidence)), 0)
		}
		// Each NEG-OPEN costs the same, as where the set is built anew.
		f := m.finding(t, name, "negentropy.heartbeat", results.CodeSetRebuilt)
		equals(t, name+": first", f.Counts["first ms"], m.value(t, name, "negentropy.initial", "time"))
		equals(t, name+": repeated", f.Counts["ms"], m.value(t, name, "negentropy.heartbeat", "time"))
		if rebuilt := f.Counts["ms"] >= f.Counts["first ms"]/3; rebuilt != (f.Verdict == results.Stated) {
			t.Errorf("%+v", f)
		}
	}
}

func without1(all map[string]string, name string) map[string]string {
	rest := map[string]string{}
	for k, v := range all {
		if k != name {
			rest[k] = v
		}
	}
	return rest
}

// TestASideThatLacksNothingIsGivenNothing has one note, which one side begins with.
func TestASideThatLacksNothingIsGivenNothing(t *testing.T) {
	t.Parallel()
	m := meet(t, scripted.Notes(t, 1), harness.Options{}, paired(Negentropy{}), scripted.External(t, "without", scripted.Script{}), scripted.External(t, "with", scripted.Script{}))
	for relay, n := range map[string]int{"without": 1, "with": 0} {
		m.blameless(t, relay)
		equals(t, relay+": events", m.value(t, relay, "negentropy.transfer", "events"), float64(n))
		m.judged(t, relay, "negentropy.transfer", results.CodeCarried, results.Passed, "", "", "asked", n, "accepted", n)
		m.judged(t, relay, "negentropy.identical", results.CodeHoldsUnion, results.Passed, "", "", "held", 1, "must", 1)
	}
	m.units(t, "with", "negentropy.transfer", map[string]string{"events": "events none"})
}

// TestAReconciliationIsRecordedInItsUnits computes each figure from a known result.
func TestAReconciliationIsRecordedInItsUnits(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 1)
	result := negentropy.Result{Rounds: 3, BytesUp: 1000, BytesDown: 3000, Have: 7, Need: 3, Duration: 250 * time.Millisecond,
		FirstAnswer: 40 * time.Millisecond, Engine: 20 * time.Millisecond, Coding: 30 * time.Millisecond}
	m := try(t, notes, scripted.Serve(t, scripted.Script{}), func(ctx context.Context, trial *harness.Trial) error {
		record(trial.Under(harness.Description{Scenario: results.Scenario{Key: "exact"}}), result, true)
		split := result
		split.Refused = 1
		record(trial.Under(harness.Description{Scenario: results.Scenario{Key: "split"}}), split, true)
		return nil
	})
	for _, key := range []string{"exact", "split"} {
		m.units(t, "one", key, reconciledUnits)
		for metric, want := range map[string]float64{"time": 250, "first answer": 40, "harness share": 20, "rounds": 3, "bytes up": 1000, "bytes down": 3000, "have": 7,
			"need": 3, "bytes per difference": 400} {
			f := m.figure(t, "one", key, metric)
			equals(t, key+": "+metric, f.Trials[0], want)
			timed := metric == "time" || metric == "first answer" || metric == "harness share"
			if f.Exact != (key == "exact" && !timed) {
				t.Errorf("%s: %s: exact %v", key, metric, f.Exact)
			}
		}
	}
}

// TestASetThatIsBuiltAnewIsStated takes the first reconciliation for much longer than a repeated
// one, and for none that tells.
func TestASetThatIsBuiltAnewIsStated(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 10)
	times := func(d time.Duration) *results.Histogram {
		h := results.NewHistogram()
		for range heartbeats {
			h.Record(d)
		}
		return h
	}
	third := times(30 * time.Millisecond).Quantile(0.5) // as the histogram tells it
	verdicts := map[string]results.Verdict{}
	try(t, notes, scripted.Serve(t, scripted.Script{}), func(ctx context.Context, trial *harness.Trial) error {
		for name, test := range map[string]struct{ first, again time.Duration }{
			"kept": {90 * time.Millisecond, 29 * time.Millisecond}, "built anew": {90 * time.Millisecond, 31 * time.Millisecond},
			"too short": {4999 * time.Microsecond, 4 * time.Millisecond}, "long enough": {5 * time.Millisecond, 4 * time.Millisecond},
			"just a third": {3 * third, 30 * time.Millisecond},
		} {
			recorder := trial.Under(harness.Description{Scenario: results.Scenario{Key: name}})
			(&side{Trial: recorder, first: test.first}).findRebuilt(recorder, times(test.again))
		}
		return nil
	}).each(func(f *results.Finding) { verdicts[f.Scenario] = f.Verdict })
	for name, want := range map[string]results.Verdict{"kept": results.Passed, "built anew": results.Stated, "too short": "", "long enough": results.Stated,
		"just a third": results.Stated} {
		if verdicts[name] != want {
			t.Errorf("%s: %q, want %q", name, verdicts[name], want)
		}
	}
}

// TestTheOneMoreEventIsOfAMinuteAgo and verifies: no relay takes it for one from the future.
func TestTheOneMoreEventIsOfAMinuteAgo(t *testing.T) {
	before := time.Now().Unix()
	e, err := freshEvent(&side{Trial: &harness.Trial{Rand: rand.New(rand.NewPCG(1, 2))}})
	if err != nil || e.Verify() != nil {
		t.Fatal(err, e.Verify())
	}
	between(t, "created_at", before-60, e.CreatedAt, time.Now().Unix()-60)
}

func (m *meeting) each(f func(*results.Finding)) {
	for i := range m.Findings {
		f(&m.Findings[i])
	}
}
