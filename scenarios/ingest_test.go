package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relaybench/harness"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// The checks of publishing at full speed. Corpora here are of fewer than 256 events: the forged
// ones then come after all of them.
var throughputChecks = []string{results.CodeForgedRefused, results.CodeAccepts, results.CodeConnections, results.CodeOnlyMessage, results.CodeUnseenBefore,
	results.CodeUnaltered, results.CodeOnlyAsked, results.CodeAcknowledgedKept}

var throughputFigures = map[string]string{
	"accepted": "events/s higher", "rejected": "events/s none", "duplicates": "events none", "unacknowledged": "events lower", "ok latency": "ms lower",
	"cpu per 1,000 accepted": "s lower", "write amplification while publishing": "bytes/byte none", "switches per accepted event": "switches/event none",
}

// TestPublishingAtFullSpeedIsMeasured has 240 notes: each fifth is refused (48), and each 13th of
// all (18) is known, but for those refused (3).
func TestPublishingAtFullSpeedIsMeasured(t *testing.T) {
	t.Parallel()
	for _, conns := range []int{1, 3} {
		const n, refused, duplicates, window, d, key = 240, 48, 15, 8, 40 * time.Millisecond, "ingest.throughput"
		const accepted = n - refused - duplicates
		s := scripted.Script{RefuseEvery: 5, RefuseReasons: []string{"blocked: one", "rate-limited: two", "three"}, DuplicateEvery: 13, OKAfter: d,
			CPUPerMessage: 2 * time.Millisecond, WritePerMessage: 8192, Memory: 64 << 20, Files: 30}
		p := prove(t, s, proving{corpus: scripted.Notes(t, n), scenarios: []harness.Scenario{Throughput{}},
			options: harness.Options{Publishers: conns, Window: window}})
		want := map[string]string{"rejected events": "events none"}
		for metric, form := range throughputFigures {
			want[metric] = form
		}
		p.figures(t, key, want)

		rate := p.one(t, key, "accepted")
		seconds := accepted / rate.Trials[0]
		same(t, "accepted", rate.Samples, accepted)
		between(t, "seconds", (p.relay.Accepted.Last() - p.relay.Events.First()).Seconds(), seconds, p.spans[key].seconds())
		between(t, "seconds by what is in flight at most", n/float64(conns*window)*d.Seconds(), seconds, p.spans[key].seconds())
		same(t, "rejected", p.one(t, key, "rejected").Samples, refused)
		near(t, "rejected", p.value(t, key, "rejected"), refused/seconds)
		sum := 0.0
		for _, x := range rate.Timeline {
			sum += x
		}
		same(t, "sum of the timeline", sum, accepted)
		between(t, "seconds of the timeline", 1, len(rate.Timeline), int(seconds)+1)
		same(t, "duplicates", p.value(t, key, "duplicates"), duplicates)
		same(t, "unacknowledged", p.value(t, key, "unacknowledged"), 0)
		same(t, "kinds of refusal", len(p.all(key, "rejected events")), 3)
		for _, m := range p.all(key, "rejected events") {
			if reason := m.Labels[results.LabelReason]; !strings.Contains("blocked rate-limited other", reason) || m.Trials[0] != 16 {
				t.Errorf("refused for %q: %v, want 16", reason, m.Trials)
			}
		}
		h := p.latency(t, key, "ok latency", n, d)
		between(t, "mean latency, by what is in flight at most", 0, h.Mean().Seconds(), seconds*float64(conns*window)/n)

		p.consumed(t, key, s)
		cpu := p.one(t, key, "cpu per 1,000 accepted")
		same(t, "divided by", cpu.Samples, accepted)
		between(t, "cpu per 1,000 accepted", (n*0.002-0.03)*1000/accepted, cpu.Trials[0], p.value(t, key, "cpu")*1000/accepted)
		same(t, "coarse", cpu.Is(results.StatusCoarse) != nil, cpu.Trials[0]*accepted/1000 < 0.2)
		least, most := lengths(p.corpus)
		between(t, "write amplification", n*8192/(accepted*most), p.value(t, key, "write amplification while publishing"),
			p.value(t, key, "written")*(1<<20)/(accepted*least))
		between(t, "switches per accepted event", 1/float64(accepted), p.value(t, key, "switches per accepted event"), p.value(t, key, "context switches")/accepted)

		p.verdicts(t, key, but(throughputChecks, map[string]results.Verdict{results.CodeAccepts: results.Failed}))
		f := p.counted(t, key, results.CodeAccepts, map[string]float64{"refused": refused, "unanswered": 0, "of": n, "rightly refused": 0})
		for _, e := range f.Evidence[:3] {
			if e.Count != 16 || e.Text == "" || e.ID != "" {
				t.Errorf("evidence %+v, want that 16 were refused", e)
			}
		}
		same(t, "evidence", len(f.Evidence), 3+examples)
		p.counted(t, key, results.CodeUnseenBefore, map[string]float64{"duplicates": duplicates, "of": accepted + duplicates})
		p.counted(t, key, results.CodeAcknowledgedKept, map[string]float64{"lost": 0, "of": accepted + duplicates, "excused": 0})
		p.counted(t, key, results.CodeForgedRefused, map[string]float64{"of": 4, "accepted": 0, "returned": 0})
		same(t, "outcome", p.Relays[0].Outcome, results.OutcomeOK)
	}
}

// TestEachFaultOfPublishingFailsItsOwnCheck publishes 120 notes, one at a time.
func TestEachFaultOfPublishingFailsItsOwnCheck(t *testing.T) {
	t.Parallel()
	const n, key = 120, "ingest.throughput"
	foreign := string(scripted.Notes(t, n+1).Raw(n))
	for _, test := range []struct {
		name    string
		script  scripted.Script
		differ  map[string]results.Verdict
		code    string
		counts  map[string]float64
		code2   string // of evidence
		indexes []int
	}{
		{"honest", scripted.Script{}, nil, results.CodeAcknowledgedKept, map[string]float64{"lost": 0, "of": n, "excused": 0}, "", nil},
		{"loses", scripted.Script{LoseEvery: 17}, map[string]results.Verdict{results.CodeAcknowledgedKept: results.Failed}, results.CodeAcknowledgedKept,
			map[string]float64{"lost": 7, "of": n, "excused": 0}, results.EvidenceMissing, []int{16, 33, 50, 67, 84}},
		{"leaves out", scripted.Script{LeaveOutEvery: 50}, map[string]results.Verdict{results.CodeAcknowledgedKept: results.Stated}, results.CodeAcknowledgedKept,
			map[string]float64{"lost": 0, "of": n, "excused": 0, "late": 2}, "", nil},
		{"refuses", scripted.Script{RefuseEvery: 50}, map[string]results.Verdict{results.CodeAccepts: results.Failed}, results.CodeAccepts,
			map[string]float64{"refused": 2, "unanswered": 0, "of": n, "rightly refused": 0}, results.EvidenceRefused, []int{49, 99}},
		{"knows", scripted.Script{DuplicateEvery: 9}, map[string]results.Verdict{results.CodeUnseenBefore: results.Failed}, results.CodeUnseenBefore,
			map[string]float64{"duplicates": 13, "of": n}, "", nil},
		{"knows a tenth", scripted.Script{DuplicateEvery: 10}, nil, results.CodeUnseenBefore, map[string]float64{"duplicates": 12, "of": n}, "", nil},
		{"verifies nothing", scripted.Script{Faults: []string{"no-verify"}}, map[string]results.Verdict{results.CodeForgedRefused: results.Failed},
			results.CodeForgedRefused, map[string]float64{"of": 4, "accepted": 4, "returned": 4}, "", nil},
		{"acknowledges anything", scripted.Script{Honest: n, LoseEvery: 1}, map[string]results.Verdict{results.CodeForgedRefused: results.Failed},
			results.CodeForgedRefused, map[string]float64{"of": 4, "accepted": 4, "returned": 0}, "", nil},
		{"says what is no message", scripted.Script{GarbageEvery: 50, Garbage: "[1,"}, map[string]results.Verdict{results.CodeOnlyMessage: results.Stated},
			results.CodeOnlyMessage, map[string]float64{"frames": 2}, "", nil},
		{"alters", scripted.Script{Alter: map[string]string{"content": `"x"`}}, map[string]results.Verdict{results.CodeUnaltered: results.Failed},
			results.CodeUnaltered, map[string]float64{"altered": n, "of": n}, results.EvidenceAltered, nil},
		{"sends what nobody asked for", scripted.Script{Foreign: foreign}, map[string]results.Verdict{results.CodeOnlyAsked: results.Failed},
			results.CodeOnlyAsked, map[string]float64{"events": 2, "elsewhere": 0}, "", nil},
		{"hangs up", scripted.Script{HangUpEvery: 50, RefuseEvery: 45}, map[string]results.Verdict{results.CodeConnections: results.Stated, results.CodeAccepts: results.Failed},
			results.CodeConnections, map[string]float64{"lost": 2}, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := prove(t, test.script, proving{corpus: scripted.Notes(t, n), scenarios: []harness.Scenario{Throughput{}}, options: harness.Options{Window: 1}})
			p.figures(t, key, func() map[string]string {
				want := map[string]string{}
				for metric, form := range throughputFigures {
					want[metric] = form
				}
				if test.script.RefuseEvery > 0 {
					want["rejected events"] = "events none"
				}
				return want
			}())
			p.verdicts(t, key, but(throughputChecks, test.differ))
			f := p.finding(t, key, test.code)
			if late := f.Counts["late ms"]; (late > 0) != (test.counts["late"] > 0) {
				t.Errorf("%v, late by %v ms", f.Counts, late)
			}
			delete(f.Counts, "late ms")
			p.counted(t, key, test.code, test.counts)
			if test.code2 == results.EvidenceAltered { // several answers come at a time
				same(t, "evidence", len(f.Evidence), examples)
			} else {
				p.names(t, f, test.code2, test.indexes...)
			}
			if unanswered := float64(p.relay.HangUps.N()); unanswered > 0 {
				same(t, "unacknowledged", p.value(t, key, "unacknowledged"), unanswered)
				same(t, "accepted", p.one(t, key, "accepted").Samples, n-4)
				p.counted(t, key, results.CodeAccepts, map[string]float64{"refused": 2, "unanswered": 2, "of": n, "rightly refused": 0})
			}
			same(t, "outcome", p.Relays[0].Outcome, results.OutcomeOK)
		})
	}
}

// TestAnOKForAnotherEventIsNone has one note of 60 whose OK names an id that nobody sent: it
// stalls, and what is known is recorded.
func TestAnOKForAnotherEventIsNone(t *testing.T) {
	t.Parallel()
	const n, key = 60, "ingest.throughput"
	p := prove(t, scripted.Script{WrongIDEvery: n}, proving{corpus: scripted.Notes(t, n), scenarios: []harness.Scenario{Throughput{}},
		options: harness.Options{Stall: 6 * time.Second}})
	same(t, "unacknowledged", p.value(t, key, "unacknowledged"), 1)
	same(t, "accepted", p.one(t, key, "accepted").Samples, n-1)
	p.counted(t, key, results.CodeOnlySent, map[string]float64{"oks": 1})
	p.counted(t, key, results.CodeAccepts, map[string]float64{"refused": 0, "unanswered": 1, "of": n, "rightly refused": 0})
	p.verdicts(t, key, map[string]results.Verdict{results.CodeAccepts: results.Failed, results.CodeConnections: results.Passed, results.CodeOnlyMessage: results.Passed,
		results.CodeUnseenBefore: results.Passed, results.CodeForgedRefused: results.Passed, results.CodeOnlySent: results.Stated, results.CodeCompletes: results.Failed})
}

var visibilityChecks = []string{results.CodeAcceptsSingle, results.CodeUnseenBefore, results.CodeQueryable}

var visibilityFigures = map[string]string{"ok": "ms lower", "visible": "ms lower", "poll round trip": "ms none", "queryable by ok": "% higher"}

// TestFromPublishToReadableIsMeasured has 20 samples of 100 notes, of which the last is lost: it is
// never seen, and 19 of 20 are seen by their OK.
func TestFromPublishToReadableIsMeasured(t *testing.T) {
	t.Parallel()
	const n, key, ok, answer = 20, "ingest.visibility", 60 * time.Millisecond, 25 * time.Millisecond
	s := scripted.Script{OKAfter: ok, FirstAfter: answer, EOSEAfter: answer, LiveAfter: answer, LoseEvery: n}
	p := prove(t, s, proving{corpus: scripted.Notes(t, 100), scenarios: []harness.Scenario{Visibility{}}, options: harness.Options{Stall: 5 * time.Second}})
	p.figures(t, key, visibilityFigures)
	same(t, "progress", fmt.Sprint(p.shown[key]), fmt.Sprint(steps(1, n)))
	p.latency(t, key, "ok", n, ok)
	p.latency(t, key, "visible", n-1, answer)
	p.latency(t, key, "poll round trip", p.spans[key].did.eoses, answer)
	by := p.one(t, key, "queryable by ok")
	same(t, "per cent queryable by OK", by.Trials[0], 95)
	same(t, "of", by.Samples, n)
	p.consumed(t, key, s)
	p.verdicts(t, key, but(visibilityChecks, map[string]results.Verdict{results.CodeQueryable: results.Failed}))
	f := p.counted(t, key, results.CodeQueryable, map[string]float64{"never": 1, "of": n, "within s": 5})
	p.names(t, f, results.EvidenceMissing, 95)
	p.counted(t, key, results.CodeAcceptsSingle, map[string]float64{"accepted": n, "of": n})
}

// TestWhatCameAmongOthersIsVisibleByItsEOSE has an event that nobody asked for before the one that
// was published: only the first event's time is known, and it is not that one's.
func TestWhatCameAmongOthersIsVisibleByItsEOSE(t *testing.T) {
	t.Parallel()
	const key, eose = "ingest.visibility", 150 * time.Millisecond
	notes := scripted.Notes(t, 26)
	s := scripted.Script{Foreign: string(notes.Raw(25)), EOSEAfter: eose}
	p := prove(t, s, proving{corpus: scripted.Notes(t, 25), scenarios: []harness.Scenario{Visibility{}}})
	p.latency(t, key, "visible", 5, eose)
	p.latency(t, key, "poll round trip", p.spans[key].did.eoses, eose)
}

// TestWhatIsRefusedIsNotWaitedFor refuses each third of 20 samples (6), and knows each fifth (4)
// but for the one that it refuses.
func TestWhatIsRefusedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	const key = "ingest.visibility"
	notes := proving{corpus: scripted.Notes(t, 100), scenarios: []harness.Scenario{Visibility{}}}
	p := prove(t, scripted.Script{RefuseEvery: 3, RefuseReasons: []string{"blocked: no"}, DuplicateEvery: 5}, notes) // 6 refused, 3 known
	by := p.one(t, key, "queryable by ok")
	same(t, "per cent queryable by OK", by.Trials[0], 100)
	same(t, "of", by.Samples, 14)
	p.latency(t, key, "ok", 20, 0)
	p.latency(t, key, "visible", 14, 0)
	p.verdicts(t, key, but(visibilityChecks, map[string]results.Verdict{results.CodeAcceptsSingle: results.Failed, results.CodeUnseenBefore: results.Failed}))
	f := p.counted(t, key, results.CodeAcceptsSingle, map[string]float64{"accepted": 14, "of": 20})
	p.names(t, f, results.EvidenceRefused, 10, 25, 40, 55, 70)
	same(t, "its words", f.Evidence[0].Text, "blocked: no")
	p.counted(t, key, results.CodeUnseenBefore, map[string]float64{"duplicates": 4 - 1, "of": 14})
	p.counted(t, key, results.CodeQueryable, map[string]float64{"never": 0, "of": 14, "within s": 10})

	p = prove(t, scripted.Script{RefuseEvery: 1}, notes)
	p.counted(t, key, results.CodeAcceptsSingle, map[string]float64{"accepted": 0, "of": 20})
	same(t, "figures of what was not accepted", len(p.all(key, "queryable by ok"))+len(p.all(key, "visible")), 0)

	p = prove(t, scripted.Script{}, notes)
	p.figures(t, key, visibilityFigures)
	p.verdicts(t, key, but(visibilityChecks, nil))
}

// TestARelayThatStoresNothingIsNotWaitedForAgainAndAgain costs three deadlines, and not 20.
func TestARelayThatStoresNothingIsNotWaitedForAgainAndAgain(t *testing.T) {
	t.Parallel()
	const key, answer = "ingest.visibility", 50 * time.Millisecond
	p := prove(t, scripted.Script{LoseEvery: 1, EOSEAfter: answer}, proving{corpus: scripted.Notes(t, 100), scenarios: []harness.Scenario{Visibility{}},
		options: harness.Options{Stall: 3 * time.Second}})
	same(t, "events", p.spans[key].did.events, maxNever)
	p.counted(t, key, results.CodeQueryable, map[string]float64{"never": maxNever, "of": maxNever, "within s": 3})
	between(t, "seconds", 3*maxNever, p.spans[key].seconds(), 600)
	p.counted(t, key, results.CodeAcceptsSingle, map[string]float64{"accepted": maxNever, "of": maxNever})
	same(t, "per cent queryable by OK", p.value(t, key, "queryable by ok"), 0)
	same(t, "latencies of what was never seen", len(p.all(key, "visible")), 0)
	p.latency(t, key, "ok", maxNever, 0)
}

var pacedChecks = []string{results.CodeUnseenBefore, results.CodeOnlyMessage, results.CodeConnections, results.CodeAcceptsPaced}

var pacedFigures = map[string]string{"ok from intended": "ms lower", "send delay": "ms none"}

// TestPublishingOnAScheduleIsMeasured freezes the relay for a second, from the fifth of 100 events
// on that are due 10 ms apart: half of all wait for half of that second at least.
func TestPublishingOnAScheduleIsMeasured(t *testing.T) {
	t.Parallel()
	const n, rate, key = 100, 100, "ingest.paced"
	for _, conns := range []int{1, 3} {
		s := scripted.Script{FreezeAt: 5, Freeze: time.Second, DuplicateEvery: 20, WritePerMessage: 8192}
		p := prove(t, s, proving{corpus: scripted.Notes(t, 5*n), scenarios: []harness.Scenario{Paced{}}, options: harness.Options{Publishers: conns, Rate: rate}})
		p.figures(t, key, pacedFigures)
		p.latency(t, key, "ok from intended", n, 0)
		p.latency(t, key, "send delay", n, 0)
		between(t, "median latency in ms", 499, p.value(t, key, "ok from intended"), 1000*p.spans[key].seconds())
		between(t, "seconds", (n-1)/float64(rate), p.spans[key].seconds(), 600)
		p.limitedByLateness(t)
		p.consumed(t, key, s)
		p.verdicts(t, key, but(pacedChecks, nil))
		p.counted(t, key, results.CodeAcceptsPaced, map[string]float64{"accepted": n, "refused": 0, "unanswered": 0, "of": n, "rate": rate})
		p.counted(t, key, results.CodeUnseenBefore, map[string]float64{"duplicates": 5, "of": n})
	}
}

// limitedByLateness compares the mark with the figures that it rests on.
func (p *proof) limitedByLateness(t *testing.T) {
	t.Helper()
	m := p.one(t, "ingest.paced", "ok from intended")
	late := p.value(t, "ingest.paced", "send delay") >= m.Trials[0]*4/5
	if s := m.Is(results.StatusLimited); late != (s != nil && s.Cause == results.CauseLateness) {
		t.Errorf("sent late: %v; marked: %+v", late, m.Status)
	}
}

func TestALatencyThatIsMostlyOurOwnIsMarked(t *testing.T) {
	for _, test := range []struct {
		late, all time.Duration
		marked    bool
	}{{80, 100, true}, {79, 100, false}, {100, 100, true}, {0, 0, false}, {0, 100, false}} {
		status := lateness(test.late, test.all)
		if marked := len(status) == 1 && status[0].Code == results.StatusLimited && status[0].Cause == results.CauseLateness; marked != test.marked {
			t.Errorf("%v of %v: %+v", test.late, test.all, status)
		}
	}
}

// TestALostConnectionOnAScheduleIsTold refuses the 20th of 30 events, and hangs up at the last.
func TestALostConnectionOnAScheduleIsTold(t *testing.T) {
	t.Parallel()
	const n, key = 40, "ingest.paced"
	p := prove(t, scripted.Script{HangUpEvery: 30, RefuseEvery: 20}, proving{corpus: scripted.Notes(t, 5*n), scenarios: []harness.Scenario{Paced{}}, options: harness.Options{Rate: 15}})
	p.verdicts(t, key, but(pacedChecks, map[string]results.Verdict{results.CodeConnections: results.Stated, results.CodeAcceptsPaced: results.Failed}))
	if f := p.counted(t, key, results.CodeConnections, map[string]float64{"lost": 1}); f.Texts["error"] == "" {
		t.Error("why it was lost is not told")
	}
	if f := p.finding(t, key, results.CodeAcceptsPaced); f.Counts["refused"] != 1 || f.Counts["unanswered"] < 1 {
		t.Errorf("%v", f.Counts)
	}
}

func TestEachFaultOnAScheduleIsToldByItsOwnCheck(t *testing.T) {
	t.Parallel()
	const n, key = 40, "ingest.paced"
	for _, test := range []struct {
		name    string
		script  scripted.Script
		code    string
		verdict results.Verdict
		counts  map[string]float64
	}{
		{"refuses", scripted.Script{RefuseEvery: 10, RefuseReasons: []string{"blocked: no"}}, results.CodeAcceptsPaced, results.Failed,
			map[string]float64{"accepted": 36, "refused": 4, "unanswered": 0, "of": n, "rate": 400}},
		{"knows", scripted.Script{DuplicateEvery: 8}, results.CodeUnseenBefore, results.Failed, map[string]float64{"duplicates": 5, "of": n}},
		{"says what is no message", scripted.Script{GarbageEvery: 10}, results.CodeOnlyMessage, results.Stated, map[string]float64{"frames": 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := prove(t, test.script, proving{corpus: scripted.Notes(t, 5*n), scenarios: []harness.Scenario{Paced{}}, options: harness.Options{Publishers: 2}})
			p.verdicts(t, key, but(pacedChecks, map[string]results.Verdict{test.code: test.verdict}))
			f := p.counted(t, key, test.code, test.counts)
			switch test.code {
			case results.CodeAcceptsPaced:
				same(t, "evidence", f.Evidence[0], results.Evidence{Code: results.EvidenceRefused, Cause: "blocked", Count: 4, Text: "blocked: no"})
			case results.CodeOnlyMessage:
				same(t, "evidence", f.Evidence[0], results.Evidence{Code: results.EvidenceFrame, Cause: "not-json", Count: 4, Text: "]]garbage"})
			}
		})
	}
}

// TestAScheduleOfTwoSecondsIsNoLonger has events enough for 40, of which 2 s at 15 a second are 30.
func TestAScheduleOfTwoSecondsIsNoLonger(t *testing.T) {
	t.Parallel()
	p := prove(t, scripted.Script{}, proving{corpus: scripted.Notes(t, 200), scenarios: []harness.Scenario{Paced{}}, options: harness.Options{Rate: 15, Publishers: 3}})
	p.latency(t, "ingest.paced", "ok from intended", 30, 0)
	between(t, "seconds", 29.0/15, p.spans["ingest.paced"].seconds(), 600)
}

// TestACorpusTooSmallToPublishMoreOfIsNoFailure has one note, which is published at full speed.
func TestACorpusTooSmallToPublishMoreOfIsNoFailure(t *testing.T) {
	t.Parallel()
	p := prove(t, scripted.Script{}, proving{corpus: scripted.Notes(t, 1), scenarios: []harness.Scenario{Throughput{}, Visibility{}, Paced{}}})
	for _, key := range []string{"ingest.visibility", "ingest.paced"} {
		p.verdicts(t, key, map[string]results.Verdict{results.CodeMeasurable: results.Stated})
		same(t, "cause", p.counted(t, key, results.CodeMeasurable, nil).Cause, results.NothingToPublish)
	}
}
