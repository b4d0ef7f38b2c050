package scenarios

import (
	"fmt"
	"testing"
	"time"

	"relaybench/harness"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// page is how a REQ for the first page of 100 goes on, and none that asks for ids.
const page = `,{"limit":100}]`

// barred reports whether the sink's rate in a mode is barred by a finding that blames a relay.
func (m *meeting) barred(t *testing.T, key, blames string) bool {
	t.Helper()
	rate := m.figure(t, "sink", key, "records/s")
	for _, f := range m.Barring(rate) {
		if f.Blames == blames {
			return true
		}
	}
	return false
}

// TestWhoeverStopsATransferFailsAlone, as source or as sink, however it does it.
func TestWhoeverStopsATransferFailsAlone(t *testing.T) {
	t.Parallel()
	const n, key = 60, "sync.req"
	notes := scripted.Notes(t, n)
	for _, test := range []struct {
		name         string
		source, sink scripted.Script
		at           string
	}{
		{"a giant frame", scripted.Script{OnlyReqs: page, Giant: 5 << 20}, scripted.Script{}, "source"},
		{"pings without end", scripted.Script{OnlyReqs: page, Pings: true}, scripted.Script{}, "source"},
		{"NOTICEs without end", scripted.Script{OnlyReqs: page, NoticesEvery: 20 * time.Millisecond}, scripted.Script{}, "source"},
		{"hanging up half-way", scripted.Script{OnlyReqs: page, HangUpAfter: 20}, scripted.Script{}, "source"},
		{"no answer", scripted.Script{OnlyReqs: page, IgnoreEvery: 1}, scripted.Script{}, "source"},
		{"CLOSED", scripted.Script{OnlyReqs: page, CloseEvery: 1}, scripted.Script{}, "source"},
		{"hanging up on each event", scripted.Script{}, scripted.Script{HangUpEvery: 1}, "sink"},
		{"no OK", scripted.Script{}, scripted.Script{SilentEvery: 1}, "sink"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var o harness.Options // those who say nothing of use are waited for
			if s := test.source; s.Pings || s.NoticesEvery > 0 || s.IgnoreEvery > 0 || test.sink.SilentEvery > 0 {
				o.Stall = 6 * time.Second
			}
			m, _ := fill(t, &Sync{Which: []string{ModeReq}, Page: 100}, notes, o, scripted.External(t, "source", test.source), scripted.External(t, "sink", test.sink))
			by, innocent := results.EndedBySource, "sink"
			if test.at == "sink" {
				by, innocent = results.EndedBySink, "source"
			}
			m.blameless(t, innocent)
			m.judged(t, "sink", key, results.CodeComplete, results.Failed, results.CauseEnded, test.at)
			f := m.finding(t, "sink", key, results.CodeComplete)
			if f.Texts["by"] != by || f.Texts["error"] == "" || f.Counts["waited"] != 0 {
				t.Errorf("%+v", f)
			}
			if s := m.figure(t, "sink", key, "records/s").Is(results.StatusIncomplete); s == nil || s.Cause != results.CauseEnded || !m.barred(t, key, test.at) {
				t.Errorf("the rate is not barred: %+v", s)
			}
			if came := m.value(t, "sink", key, "delivered"); test.source.HangUpAfter > 0 && came != 20 || test.source.HangUpAfter == 0 && came != 0 {
				t.Errorf("%v events are there", came)
			}
		})
	}
}

// TestASourceThatDoesNotWaitIsSaidNotTo only where it ended the transfer and the sink was waited
// for.
func TestASourceThatDoesNotWaitIsSaidNotTo(t *testing.T) {
	t.Parallel()
	const n, key = 600, "sync.req"
	m, _ := fill(t, &Sync{Which: []string{ModeReq}, Page: 1000}, scripted.Notes(t, n), harness.Options{Window: 10},
		scripted.External(t, "source", scripted.Script{OnlyReqs: `,{"limit":1000}]`, HangUpAfter: 500}),
		scripted.External(t, "sink", scripted.Script{OKAfter: 30 * time.Millisecond}))
	m.blameless(t, "sink")
	m.judged(t, "sink", key, results.CodeComplete, results.Failed, results.CauseEnded, "source", "came", 500, "of", n, "waited", 1, "lost", 1)
	if f := m.finding(t, "sink", key, results.CodeComplete); f.Counts["left MB"] <= 0 {
		t.Errorf("%+v", f.Counts)
	}
}

// TestASourceThatSendsAPartIsBlamed in pages, and its sink is excused.
func TestASourceThatSendsAPartIsBlamed(t *testing.T) {
	t.Parallel()
	const n, key = 100, "sync.req"
	notes := scripted.Notes(t, n)
	for _, test := range []struct {
		name     string
		script   scripted.Script
		withheld int
	}{{"all but one in a hundred", scripted.Script{OnlyReqs: page, LeaveOutEvery: 160}, 1}, {"nothing", scripted.Script{OnlyReqs: `{"limit"`, LeaveOutEvery: 1}, n}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, _ := fill(t, &Sync{Which: []string{ModeReq}, Page: 100}, notes, harness.Options{}, scripted.External(t, "source", test.script),
				scripted.External(t, "sink", scripted.Script{}))
			m.blameless(t, "sink")
			m.judged(t, "source", key, results.CodeSendsHeld, results.Failed, "", "source", "withheld", test.withheld, "left out", 0)
			m.judged(t, "sink", key, results.CodeComplete, results.Stated, results.CauseWithheld, "", "missing", test.withheld, "expected", n)
			if !m.barred(t, key, "source") {
				t.Errorf("the rate is not barred")
			}
		})
	}
}

// TestLiesThatRepeatsHideAreJudged though all comes in the end, where it does.
func TestLiesThatRepeatsHideAreJudged(t *testing.T) {
	t.Parallel()
	const n = 400
	notes := scripted.Notes(t, n)
	other := map[string]string{"id": fmt.Sprintf(`"%064x"`, 9)}
	for _, test := range []struct {
		name    string
		mode    string
		script  scripted.Script
		code    string
		counts  []any
		metrics map[string]float64
		missing float64
	}{
		// Asking for all by id comes first, and again for 2: the transfer brings the 403rd to the
		// 802nd, in four REQs, of which at least one is whole.
		{"leaves out", ModeNegentropy, scripted.Script{LeaveOutEvery: 155}, results.CodeSendsHeld, []any{"withheld", 0, "left out", 3}, map[string]float64{"retried": 3, "unasked": 0}, 0},
		{"alters ids", ModeNegentropy, scripted.Script{AlterEvery: 155, Alter: other}, results.CodeOnlyRequested, []any{"events", 3, "elsewhere", 0, "duplicates", 0},
			map[string]float64{"retried": 3, "unasked": 3}, 0},
		{"answers elsewhere", ModeNegentropy, scripted.Script{AlterEvery: 155, SubID: "zzz"}, results.CodeOnlyRequested, []any{"events", 3, "elsewhere", 3, "duplicates", 0},
			map[string]float64{"retried": 3, "unasked": 3}, 0},
		{"sends twice", ModeNegentropy, scripted.Script{RepeatEvery: 20}, results.CodeOnlyRequested, []any{"events", 0, "duplicates", 20}, map[string]float64{"duplicates": 20, "retried": 0}, 0},
		{"alters ids in pages", ModeReq, scripted.Script{OnlyReqs: `{"limit":500}`, AlterEvery: 100, Alter: other}, results.CodeOnlyRequested, []any{"events", 1, "duplicates", 3}, // one id for all four
			map[string]float64{"of no corpus event": 1}, 3}, // the oldest comes with the page after,
		{"sends twice in pages", ModeReq, scripted.Script{OnlyReqs: `{"limit":500}`, RepeatEvery: 20}, results.CodeOnlyRequested, []any{"events", 0, "duplicates", 20},
			map[string]float64{"duplicates": 20}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.script.Honest = n
			sink := scripted.External(t, "sink", scripted.Script{})
			m, did := fill(t, &Sync{Which: []string{test.mode}, Page: 500}, notes, harness.Options{}, scripted.External(t, "source", test.script), sink)
			key := "sync." + test.mode
			m.blameless(t, "sink")
			m.judged(t, "source", key, test.code, results.Failed, "", "source", test.counts...)
			for metric, want := range test.metrics {
				equals(t, metric, m.value(t, "sink", key, metric), want)
			}
			equals(t, "missing", m.value(t, "sink", key, "missing"), test.missing)
			equals(t, "events that the sink got", float64(did[test.mode].sinkEvents), n-test.missing)
			if !m.barred(t, key, "source") {
				t.Errorf("the rate is not barred:\n%s", m.trouble())
			}
		})
	}
}

// TestASinkIsBelievedWhatItReturns, whatever it names.
func TestASinkIsBelievedWhatItReturns(t *testing.T) {
	t.Parallel()
	const n = 100
	notes := scripted.Notes(t, n)
	for _, mode := range []string{ModeReq, ModeNegentropy} {
		t.Run("returns a part by "+mode, func(t *testing.T) {
			t.Parallel()
			m, _ := fill(t, &Sync{Which: []string{mode}}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{}),
				scripted.External(t, "sink", scripted.Script{Faults: []string{"drop-results:0.3"}}))
			key := "sync." + mode
			m.blameless(t, "source")
			missing := int(m.value(t, "sink", key, "missing"))
			if missing < n/10 || missing > n/2 {
				t.Fatalf("%d of %d are missing: %s", missing, n, m.trouble())
			}
			equals(t, "delivered", m.value(t, "sink", key, "delivered"), float64(n-missing))
			m.judged(t, "sink", key, results.CodeComplete, results.Failed, results.CauseMissing, "sink", "missing", missing)
			m.judged(t, "sink", key, results.CodeHoldsSource, results.Failed, "", "sink", "missing.named and not returned", missing)
			m.judged(t, "sink", key, results.CodeAcknowledgedKept, results.Failed, "", "sink", "lost", missing)
			m.judged(t, "sink", key, results.CodeReturnsNamed, results.Failed, "", "sink", "missing", missing, "unnamed", 0)
		})
	}
	t.Run("names ids of nothing", func(t *testing.T) {
		t.Parallel()
		m, _ := fill(t, &Sync{Which: []string{ModeReq}}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{}),
			scripted.External(t, "sink", scripted.Script{Honest: n, NegReply: named(50)}))
		const key = "sync.req"
		m.blameless(t, "source")
		m.account(t, key, n)
		m.judged(t, "sink", key, results.CodeOnlyKnown, results.Failed, "", "sink", "ids", 50)
		m.judged(t, "sink", key, results.CodeReturnsNamed, results.Failed, "", "sink", "missing", 0, "unnamed", n)
		if m.blamed("sink")[results.CodeAcknowledgedKept] || m.barred(t, key, "sink") {
			t.Errorf("what it names bears on a mode that does not use it:\n%s", m.trouble())
		}
	})
	t.Run("is late", func(t *testing.T) {
		t.Parallel()
		m, _ := fill(t, &Sync{Which: []string{ModeReq}}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{}),
			scripted.External(t, "sink", scripted.Script{HideTimes: 1}))
		m.blameless(t, "source")
		m.blameless(t, "sink")
		m.account(t, "sync.req", n)
		equals(t, "late", m.value(t, "sink", "sync.req", "late"), n)
		within(t, "late by", 50, m.value(t, "sink", "sync.req", "late by"), ms(m.took))
	})
}

// TestASourceThatCannotBeAskedIsJudgedByWhatItSends: it answers no question by id, and its pages
// are whole.
func TestASourceThatCannotBeAskedIsJudgedByWhatItSends(t *testing.T) {
	t.Parallel()
	m, _ := fill(t, &Sync{Which: []string{ModeReq}, Page: 100}, scripted.Notes(t, 50), harness.Options{},
		scripted.External(t, "source", scripted.Script{OnlyReqs: `"ids"`, CloseEvery: 1, Honest: 50}), scripted.External(t, "sink", scripted.Script{}))
	m.blameless(t, "source")
	m.blameless(t, "sink")
	m.account(t, "sync.req", 50)
	m.judged(t, "source", "sync.req", results.CodeAcknowledgedKept, results.Undecided, "", "")
}

// TestWhatTheSourceLostIsNotTheSinks, also where the sink's own command brought the rest.
func TestWhatTheSourceLostIsNotTheSinks(t *testing.T) {
	t.Parallel()
	const n = 100
	notes := scripted.Notes(t, n)
	for _, mode := range SyncModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			sink := scripted.Script{}
			if mode == ModeNative {
				sink.SyncWith = &scripted.Command{}
			}
			m, _ := fill(t, &Sync{Which: []string{mode}}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{LoseEvery: 50}),
				scripted.External(t, "sink", sink))
			key := "sync." + mode
			m.blameless(t, "sink")
			m.judged(t, "source", key, results.CodeAcknowledgedKept, results.Failed, "", "source", "lost", 2, "of", n)
			m.judged(t, "source", key, results.CodeSendsHeld, results.Failed, "", "source", "withheld", 2)
			m.judged(t, "sink", key, results.CodeComplete, results.Stated, results.CauseWithheld, "", "missing", 2, "expected", n)
			if !m.barred(t, key, "source") {
				t.Errorf("the rate is not barred")
			}
		})
	}
}

// TestASinksCommandThatFailsIsBlamedWhereItIsKnown: where the relay is its own source, and not
// where the source was seen to end transfers.
func TestASinksCommandThatFailsIsBlamedWhereItIsKnown(t *testing.T) {
	t.Parallel()
	const n, key = 60, "sync.native"
	notes := scripted.Notes(t, n)
	failing := scripted.Script{SyncWith: &scripted.Command{Exit: 3, LoseEvery: 10}}
	m := meet(t, notes, harness.Options{}, aloneIn((&Sync{Which: []string{ModeNative}}).Scenarios()...), scripted.External(t, "sink", failing))
	m.judged(t, "sink", key, results.CodeSyncCommand, results.Failed, results.EndedBySink, "sink")
	m.judged(t, "sink", key, results.CodeComplete, results.Failed, results.CauseEnded, "sink")

	source := scripted.External(t, "source", scripted.Script{OnlyReqs: page, HangUpAfter: 20})
	sink := scripted.External(t, "sink", failing)
	m, _ = fill(t, &Sync{Page: 100, Which: []string{ModeReq, ModeNative}}, notes, harness.Options{}, source, sink)
	m.blameless(t, "sink")
	m.judged(t, "sink", key, results.CodeSyncCommand, results.Stated, results.EndedBySource, "")
	m.judged(t, "sink", key, results.CodeComplete, results.Failed, results.CauseEnded, "source")
	m.judged(t, "sink", key, results.CodeHoldsSource, results.Stated, results.MissingNeverDelivered, "")
}

// TestWhatASinkDoesWrongSaysNothingOfItAsASource has two relays fill each other, of which one keeps
// nine tenths of what its own command brings.
func TestWhatASinkDoesWrongSaysNothingOfItAsASource(t *testing.T) {
	t.Parallel()
	m := meet(t, syntheticCorpus(t, misbehavingNotes), harness.Options{}, aloneIn((&Sync{Which: []string{ModeNative}}).Scenarios()...), scripted.External(t, "honest", scripted.Script{SyncWith: &scripted.Command{}}),
		scripted.External(t, "bad", scripted.Script{SyncWith: &scripted.Command{LoseEvery: 10}}))
	m.blameless(t, "honest")
	told := map[string]bool{}
	for _, f := range m.Findings {
		if f.Scenario == "sync.native" && f.Verdict == results.Failed && f.Relay == "bad" && f.Peer == "honest" {
			told[f.Code] = true
		}
	}
	if !told[results.CodeHoldsSource] || !told[results.CodeComplete] {
		t.Errorf("told: %v\n%s", told, m.trouble())
	}
	for i := range m.Measurements {
		f := &m.Measurements[i]
		if f.Scenario != "sync.native" || f.Relay == f.Peer {
			continue
		}
		if bars := m.Barring(f); len(bars) > 0 != (f.Relay == "bad") {
			t.Errorf("%s from %s: %s: %+v", f.Relay, f.Peer, f.Metric, bars)
		}
	}
}
