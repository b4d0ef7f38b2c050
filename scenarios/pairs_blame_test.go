package scenarios

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/preflight"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// TestWhoDropsEventsIsBlamedAlone pairs a relay that does not store every hundredth event that it
// acknowledges.
func TestWhoDropsEventsIsBlamedAlone(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 500)
	honest, lossy := scripted.External(t, "honest", scripted.Script{}), scripted.External(t, "lossy", scripted.Script{LoseEvery: 100, DuplicateEvery: 7})
	m := meet(t, notes, harness.Options{}, paired(Negentropy{}), honest, lossy)
	m.blameless(t, "honest")
	// Of the 400 newer ones it loses the notes 199, 299, 399 and 499. Of the 103 that are carried
	// to it, which begin with the 100 older ones, it loses note 99. Note 499 is on no side then.
	m.judged(t, "lossy", "negentropy", results.CodeHoldsSeeded, results.Failed, "", "lossy", "held", 396, "must", 400, "missing.lost", 4)
	m.judged(t, "lossy", "negentropy", results.CodeAcknowledgedKept, results.Failed, "", "lossy", "lost", 4, "of", 400)
	m.judged(t, "lossy", "negentropy.identical", results.CodeHoldsUnion, results.Failed, "", "lossy", "held", 498, "must", 500, "missing.lost", 2, "own", 2)
	m.judged(t, "lossy", "negentropy.identical", results.CodeAcknowledgedKept, results.Failed, "", "lossy", "lost", 2, "of", 500)
	m.judged(t, "honest", "negentropy.identical", results.CodeHoldsUnion, results.Stated, results.MissingNeverDelivered, "",
		"held", 499, "must", 500, "missing.never delivered", 1, "own", 0)
	equals(t, "carried to the honest one", m.value(t, "honest", "negentropy.transfer", "events"), 99)
	equals(t, "carried to the other", m.value(t, "lossy", "negentropy.transfer", "events"), 103)
	equals(t, "events of which 1 in 100 is lost", float64(lossy.Events.N()), 509) // with the probe's, the one more, and four that are forged
	if f := m.finding(t, "lossy", "negentropy", results.CodeAcknowledgedKept); len(f.Evidence) != 4 || f.Evidence[0].ID == "" || f.Evidence[0].Cause != results.MissingLost || f.BearsOn[0].Scenario != "*" {
		t.Errorf("%+v", f)
	}
}

// TestRefusalsAreCountedByReason refuses every tenth event that is carried over.
func TestRefusalsAreCountedByReason(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 500)
	picky := scripted.External(t, "picky", scripted.Script{Honest: 400, RefuseEvery: 10, RefuseReasons: []string{"pow: more", "no"}})
	m := meet(t, notes, harness.Options{}, paired(Negentropy{}), scripted.External(t, "honest", scripted.Script{}), picky)
	m.blameless(t, "honest")
	equals(t, "refused for pow", m.value(t, "picky", "negentropy.transfer", "refused", results.LabelReason, "pow"), 5)
	equals(t, "refused for another reason", m.value(t, "picky", "negentropy.transfer", "refused", results.LabelReason, "other"), 5)
	if f := m.figure(t, "picky", "negentropy.transfer", "refused", results.LabelReason, "pow"); f.Unit != "events" || f.Better != results.None {
		t.Errorf("%+v", f)
	}
	equals(t, "events/s × s", m.value(t, "picky", "negentropy.transfer", "events/s")*m.value(t, "picky", "negentropy.transfer", "duration"), 90)
	m.judged(t, "picky", "negentropy.transfer", results.CodeCarried, results.Passed, "", "", "asked", 100, "fetched", 100, "accepted", 90, "refused", 10)
	m.judged(t, "picky", "negentropy.identical", results.CodeHoldsUnion, results.Failed, "", "picky", "missing.refused", 10, "own", 10)
}

// TestWhatALostConnectionLeavesUnansweredIsItsDoing drops the connection at every 30th event: at
// two of the 80 that it begins with, which are carried to it with 20 others, and at one of those.
func TestWhatALostConnectionLeavesUnansweredIsItsDoing(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 100)
	m := meet(t, notes, harness.Options{Window: 1}, paired(Negentropy{}), scripted.External(t, "honest", scripted.Script{}),
		scripted.External(t, "drops", scripted.Script{HangUpEvery: 30}))
	m.blameless(t, "honest")
	m.judged(t, "drops", "negentropy", results.CodeHoldsSeeded, results.Failed, "", "drops", "held", 78, "must", 80, "missing.unanswered", 2)
	m.judged(t, "drops", "negentropy.transfer", results.CodeCarried, results.Failed, "", "drops", "asked", 22, "fetched", 22, "accepted", 21, "unanswered", 1)
	m.judged(t, "drops", "negentropy.identical", results.CodeHoldsUnion, results.Failed, "", "drops", "held", 99, "must", 100, "missing.unanswered", 1, "own", 1)
}

// TestDuplicatesAreCarriedOver by a sink that says that it had every tenth event already.
func TestDuplicatesAreCarriedOver(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 100)
	m := meet(t, notes, harness.Options{}, paired(Negentropy{}), scripted.External(t, "honest", scripted.Script{}),
		scripted.External(t, "again", scripted.Script{DuplicateEvery: 10}))
	for _, relay := range []string{"honest", "again"} {
		m.blameless(t, relay)
		equals(t, relay+": events/s × s", m.value(t, relay, "negentropy.transfer", "events/s")*m.value(t, relay, "negentropy.transfer", "duration"), 20)
		m.judged(t, relay, "negentropy.transfer", results.CodeCarried, results.Passed, "", "", "accepted", 20, "unanswered", 0)
	}
}

// TestASourceThatLeavesOutEventsIsBlamed, and not the sink that could not be given them.
func TestASourceThatLeavesOutEventsIsBlamed(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 500)
	// It answers in full until it has been given its 400 events and the 100 that are carried to it,
	// and one more.
	m := meet(t, notes, harness.Options{}, paired(Negentropy{}), scripted.External(t, "holey", scripted.Script{Honest: 400, LeaveOutEvery: 450}),
		scripted.External(t, "honest", scripted.Script{}))
	m.blameless(t, "honest")
	// Of the 400 that it is asked for after seeding none is the 450th, of the 100 that it is to
	// send then the 50th is.
	m.judged(t, "honest", "negentropy.transfer", results.CodeCarried, results.Failed, "", "holey", "asked", 100, "fetched", 99, "missing", 1, "accepted", 99)
	m.judged(t, "honest", "negentropy.identical", results.CodeHoldsUnion, results.Stated, results.MissingNeverDelivered, "", "missing.never delivered", 1)
}

// TestASinkThatDoesNotAnswerIsBlamed, and not the source.
func TestASinkThatDoesNotAnswerIsBlamed(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 100)
	m := meet(t, notes, harness.Options{Stall: 2 * time.Second}, paired(Negentropy{}), scripted.External(t, "honest", scripted.Script{}),
		scripted.External(t, "silent", scripted.Script{Honest: 80, SilentEvery: 5}))
	m.blameless(t, "honest")
	m.judged(t, "silent", "negentropy", results.CodeCompletes, results.Failed, "", "silent")
}

// liar is a payload with which NEG-OPEN and NEG-MSG are answered.
type liar struct {
	name, payload string
	code          string // of negentropy.ProtocolError; "" for one that names ids of nothing
}

func liars() []liar {
	r := rand.New(rand.NewPCG(1, 1))
	random := func(bytes int) string {
		var b strings.Builder
		for range bytes {
			fmt.Fprintf(&b, "%02x", r.IntN(256))
		}
		return b.String()
	}
	return []liar{
		{"no hex", "hello", "not-hex"},
		{"random bytes", "00" + random(300), "malformed"},
		{"a count of 2^40", "61000002a08080808000", "count-too-large"},
		{"endless fingerprints", "61000001" + random(16), "endless"},
		{"a list of 6 MB", "61000002" + "85dc35" + random(93_749*32), "oversized"},
	}
}

// TestWhoBreaksNIP77FailsAlone asks a relay by itself, as the preflight and the probe before pairs
// do.
func TestWhoBreaksNIP77FailsAlone(t *testing.T) {
	t.Parallel()
	asked := func(t *testing.T, s scripted.Script) (results.Finding, preflight.Negentropy) {
		result, err := preflight.Run(t.Context(), preflight.Options{URL: scripted.Serve(t, s).URL, Relay: "one", Only: []string{results.CodeNIP77}})
		if err != nil || len(result.Findings) != 1 {
			t.Fatal(err, result.Findings)
		}
		return result.Findings[0], result.Negentropy
	}
	for _, l := range liars() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			f, how := asked(t, scripted.Script{NegReply: l.payload})
			if f.Verdict != results.Failed || f.Cause != results.CauseBreaks || f.Blames != "one" || f.Texts["code"] != l.code || !how.Broken() {
				t.Errorf("%+v", f)
			}
			bears := func(scenario string) bool {
				return slices.ContainsFunc(f.BearsOn, func(s results.Scope) bool { return s.Matches(scenario) })
			}
			if !bears("negentropy.initial") || !bears("sync.negentropy") || !bears("fetch.negentropy") || bears("ingest.throughput") || bears("sync.req") {
				t.Errorf("bears on %v", f.BearsOn)
			}
		})
	}
	const names77, names1 = `{"supported_nips":[1,77]}`, `{"supported_nips":[1,11]}`
	const never = time.Hour
	for _, test := range []struct {
		name    string
		script  scripted.Script
		verdict results.Verdict
		cause   string
	}{
		{"answered", scripted.Script{}, results.Passed, results.CauseAnswered},
		{"identical, though it holds an event more", scripted.Script{NegReply: "61"}, results.Failed, results.CauseBreaks},
		{"identical, of a relay that took no event", scripted.Script{NegReply: "61", RefuseEvery: 1}, results.Passed, results.CauseAnswered},
		{"identical, of a relay that keeps no event", scripted.Script{NegReply: "61", LoseEvery: 1}, results.Passed, results.CauseAnswered},
		{"refused, and nothing is promised", scripted.Script{NegError: "error: no", NIP11: names1}, results.Stated, results.CauseRefused},
		{"unknown, and nothing is promised", scripted.Script{NegError: "unsupported", NIP11: names1}, results.Stated, results.CauseUnsupported},
		{"silence, and nothing is promised", scripted.Script{NegAfter: never, NIP11: names1}, results.Stated, results.CauseUnsupported},
		{"refused, though it is promised", scripted.Script{NegError: "error: no", NIP11: names77}, results.Failed, results.CauseRefused},
		{"unknown, though it is promised", scripted.Script{NegError: "unsupported", NIP11: names77}, results.Failed, results.CauseUnsupported},
		{"silence, though it is promised", scripted.Script{NegAfter: never, NIP11: names77}, results.Failed, results.CauseUnsupported},
		{"for those who say who they are", scripted.Script{NegError: "auth-required: who is it", NIP11: names77}, results.Stated, results.CauseRefused},
		{"promised by no document", scripted.Script{NegError: "error: no", NIP11: "]"}, results.Stated, results.CauseRefused},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f, how := asked(t, test.script)
			if f.Verdict != test.verdict || f.Cause != test.cause || how.Cause != test.cause || how.Broken() != (test.verdict == results.Failed) {
				t.Errorf("%+v, %+v", f, how)
			}
			if failed := test.verdict == results.Failed; (f.Blames == "one") != failed || (len(f.BearsOn) > 0) != failed || (f.Counts["advertised"] == 1) != (failed && f.Cause != results.CauseBreaks) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestTheProbeBeforePairsFailsWhoBreaksNIP77 where no preflight has asked.
func TestTheProbeBeforePairsFailsWhoBreaksNIP77(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 20)
	m := meet(t, notes, harness.Options{}, paired(Negentropy{}),
		scripted.External(t, "breaks", scripted.Script{NegReply: "zz"}),
		scripted.External(t, "promises", scripted.Script{NegError: "error: no", NIP11: `{"supported_nips":[77]}`}),
		scripted.External(t, "without", scripted.Script{NegError: "unsupported", NIP11: `{"supported_nips":[1]}`}))
	const key = "negentropy.probe"
	m.judged(t, "breaks", key, results.CodeNIP77, results.Failed, results.CauseBreaks, "breaks")
	m.judged(t, "promises", key, results.CodeNIP77, results.Failed, results.CauseRefused, "promises", "advertised", 1)
	m.judged(t, "without", key, results.CodeNIP77, results.Stated, results.CauseUnsupported, "")
	m.blameless(t, "without")
	if len(m.Measurements) > 0 {
		t.Errorf("%d figures of relays that do not reconcile", len(m.Measurements))
	}
}

// TestWhoBreaksNIP77InAPairFails answers the probe, and lies when it has its events.
func TestWhoBreaksNIP77InAPairFails(t *testing.T) {
	t.Parallel()
	for _, l := range liars() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			notes := scripted.Notes(t, 50)
			m := meet(t, notes, harness.Options{}, paired(Negentropy{}), scripted.External(t, "honest", scripted.Script{}),
				scripted.External(t, "liar", scripted.Script{Honest: 40, NegReply: l.payload}))
			m.blameless(t, "honest")
			m.judged(t, "liar", "negentropy", results.CodeNIP77, results.Failed, results.CauseBreaks, "liar")
			m.judged(t, "liar", "negentropy", results.CodeCompletes, results.Failed, "", "liar")
			f := m.finding(t, "liar", "negentropy", results.CodeNIP77)
			if f.Texts["code"] != l.code || f.Peer != "honest" || len(f.BearsOn) == 0 {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestALiarLeavesItsPeersFiguresAlone where what the peer had to do is the same whatever was said,
// and bars them where the peer was reconciled with less.
func TestALiarLeavesItsPeersFiguresAlone(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 60)
	for name, test := range map[string]struct {
		script scripted.Script
		bars   string // the scenarios of the honest relay
	}{
		"calls all identical":   {scripted.Script{Honest: 48, NegReply: "61"}, ""},
		"names ids of nothing":  {scripted.Script{Honest: 48, NegReply: named(7)}, ""},
		"refuses what it seeds": {scripted.Script{RefuseEvery: 20}, "negentropy.after-write negentropy.heartbeat negentropy.identical negentropy.initial negentropy.transfer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := meet(t, notes, harness.Options{}, paired(Negentropy{}), scripted.External(t, "honest", scripted.Script{}), scripted.External(t, "bad", test.script))
			barred, figures := map[string]bool{}, 0
			for i := range m.Measurements {
				if f := &m.Measurements[i]; f.Relay == "honest" && f.Peer == "bad" && strings.HasPrefix(f.Scenario, "negentropy.") {
					figures++
					if len(m.Barring(f)) > 0 {
						barred[f.Scenario] = true
					}
				}
			}
			if got := strings.Join(slices.Sorted(maps.Keys(barred)), " "); got != test.bars || figures == 0 {
				t.Errorf("of %d figures barred in %q, want %q\n%s", figures, got, test.bars, m.trouble())
			}
		})
	}
}

// named is a list of ids that nobody published, over the whole range.
func named(n int) string {
	payload := fmt.Sprintf("61000002%02x", n)
	for i := range n {
		payload += fmt.Sprintf("%064x", i+1)
	}
	return payload
}

// TestIDsOfNothingAreNotTakenForALoss by a relay that holds all it was given, and names others when
// it is reconciled with.
func TestIDsOfNothingAreNotTakenForALoss(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 50)
	m := meet(t, notes, harness.Options{}, paired(Negentropy{Scattered: true}), scripted.External(t, "honest", scripted.Script{}),
		scripted.External(t, "raves", scripted.Script{Honest: 40, NegReply: named(7)}))
	m.blameless(t, "honest")
	for _, phase := range phases {
		if phase != phaseTransfer {
			m.judged(t, "raves", "negentropy."+phase, results.CodeOnlyKnown, results.Failed, "", "raves", "ids", 7, "twice", 0)
			f, named, others := m.finding(t, "raves", "negentropy."+phase, results.CodeOnlyKnown), 0, int64(0)
			for _, e := range f.Evidence {
				if strings.HasPrefix(e.ID, "000000000000000") {
					named++
				}
				others += e.Count
				same(t, phase+": evidence", e.Code, results.EvidenceUnexpected)
			}
			same(t, phase+": named as evidence", named, examples)
			same(t, phase+": others", others, 7-examples)
		}
	}
	m.judged(t, "raves", "negentropy.identical", results.CodeHoldsUnion, results.Passed, "", "", "held", 50, "must", 50)
	m.judged(t, "raves", "negentropy.after-write", results.CodeAtOnce, results.Passed, "", "", "ids", 0)
	m.judged(t, "raves", "negentropy.heartbeat", results.CodeSteady, results.Failed, "", "raves", "ids", 57, "times", heartbeats)
	if m.blamed("raves")[results.CodeAcknowledgedKept] {
		t.Errorf("told as lost:\n%s", m.trouble())
	}
}

// TestEventsUnderAnotherSubscriptionAreToldAsSuch in answers to questions by id.
func TestEventsUnderAnotherSubscriptionAreToldAsSuch(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 50)
	m := meet(t, notes, harness.Options{}, paired(Negentropy{}), scripted.External(t, "honest", scripted.Script{}),
		scripted.External(t, "elsewhere", scripted.Script{Honest: 40, SubID: "zzz"}))
	m.blameless(t, "honest")
	m.judged(t, "elsewhere", "negentropy", results.CodeOnlyAsked, results.Failed, "", "elsewhere", "events", 40, "elsewhere", 40)
	m.judged(t, "honest", "negentropy", results.CodeOnlyAsked, results.Passed, "", "", "events", 0, "elsewhere", 0)
}

// TestACarriedEventUnderAnotherSubscriptionIsToldAsSuch where the seeding went well.
func TestACarriedEventUnderAnotherSubscriptionIsToldAsSuch(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 50)
	relay := scripted.Serve(t, scripted.Script{Honest: 50, SubID: "zzz"})
	m := try(t, notes, relay, func(ctx context.Context, trial *harness.Trial) error {
		all := places(0, 50)
		s := &side{Trial: trial}
		if err := s.seed(ctx, harness.Loaded); err != nil {
			return err
		}
		s.held = all
		var err error
		if s.seeded, err = model.NewStatuses(notes, func(int) bool { return true }, trial.Now); err != nil {
			return err
		}
		sink := &side{Trial: trial.Under(harness.Description{}), other: s, offered: make([]bool, 50)}
		return sink.transfer(ctx, sink.Under(describePhase(phaseTransfer)))
	})
	m.judged(t, "one", "negentropy.transfer", results.CodeCarried, results.Failed, "", "one", "asked", 50, "fetched", 0, "missing", 50, "elsewhere", 50)
}
