package scenarios

import (
	"context"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/relays"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// TestWhoeverStopsASyncIsBlamed and nobody else: each relay with each as it comes.
func TestWhoeverStopsASyncIsBlamed(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 60)
	stops := scripted.External(t, "stops", scripted.Script{Honest: 60, Faults: []string{"closed-midway"}})
	m := meet(t, notes, harness.Options{}, aloneIn((&Sync{Which: []string{ModeReq}, Page: 100}).Scenarios()...),
		stops, scripted.External(t, "first", scripted.Script{}), scripted.External(t, "second", scripted.Script{}))
	for _, sink := range []string{"first", "second"} {
		m.blameless(t, sink)
	}
	n := 0
	m.each(func(f *results.Finding) {
		if f.Code != results.CodeComplete || f.Peer != "stops" {
			return
		}
		n++
		if f.Verdict != results.Failed || f.Blames != "stops" || f.Cause != results.CauseEnded || f.Texts["by"] != results.EndedBySource {
			t.Errorf("%+v", f)
		}
	})
	equals(t, "sinks under which the source is blamed", float64(n), 3)
	for _, sink := range []string{"first", "second"} {
		for i := range m.Measurements {
			if f := &m.Measurements[i]; f.Relay == sink && f.Peer == "stops" && f.Metric == "records/s" {
				if s := f.Is(results.StatusIncomplete); s == nil || s.Cause != results.CauseEnded {
					t.Errorf("%s: the rate of a part passes for that of the whole: %+v", sink, f.Status)
				}
				if len(m.Barring(f)) == 0 {
					t.Errorf("%s: its rate is not barred", sink)
				}
			}
			if f := &m.Measurements[i]; f.Relay == sink && f.Peer == "first" && f.Metric == "records/s" && (f.Is(results.StatusIncomplete) != nil || len(m.Barring(f)) > 0) {
				t.Errorf("%s: %+v %+v", sink, f.Status, m.Barring(f))
			}
		}
	}
}

// TestWhereASyncStoppedIsTold with how much was still to come of the page: counted by the events
// that came, or by those of the corpus where none did. A sink that answers nothing takes what its
// window and relaybench hold. Whoever stopped it is blamed, and nobody else.
func TestWhereASyncStoppedIsTold(t *testing.T) {
	t.Parallel()
	const n = 400
	key, err := corpus.NewSecretKey([32]byte{31: 1})
	if err != nil {
		t.Fatal(err)
	}
	events := make([]corpus.Event, n)
	for i := range events { // the newer, the longer
		events[i] = corpus.Event{Kind: 1, CreatedAt: 1_780_000_000 + int64(i), Tags: []corpus.Tag{}, Content: strings.Repeat("x", 2000+20*i)}
		if err := key.Sign(&events[i], [32]byte{}); err != nil {
			t.Fatal(err)
		}
	}
	notes, err := corpus.FromEvents(events)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, by     string
		source, sink scripted.Script
		page         int
		least, most  int // events that came
		left         func(came int) int
		waited       bool // for the sink, by a source that ended it
	}{
		{"at once", "source", scripted.Script{Honest: n, CloseEvery: 1}, scripted.Script{}, 150, 0, 0, func(int) int { return 150 }, false},
		{"before the last page", "source", scripted.Script{Honest: n, Faults: []string{"closed-midway"}}, scripted.Script{}, n, 1, n, func(came int) int { return n - came }, false},
		{"in the second page", "sink", scripted.Script{}, scripted.Script{SilentEvery: 1}, 150, 257, 267, func(came int) int { return 150 - (came - 150) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, _ := fill(t, &Sync{Which: []string{ModeReq}, Page: test.page}, notes, harness.Options{Window: 10, Stall: 2 * time.Second}, scripted.External(t, "source", test.source),
				scripted.External(t, "sink", test.sink))
			if test.by == "sink" {
				m.blameless(t, "source")
				within(t, "never answered", 1, m.value(t, "sink", "sync.req", "never answered by the sink"), 10)
				within(t, "wall time, with that of the stall", 2, m.value(t, "sink", "sync.req", "wall time"), m.took.Seconds())
			} else {
				m.blameless(t, "sink")
			}
			m.judged(t, "sink", "sync.req", results.CodeComplete, results.Failed, results.CauseEnded, test.by)
			f := m.finding(t, "sink", "sync.req", results.CodeComplete)
			came := int(f.Counts["came"])
			between(t, "events that came", test.least, came, test.most)
			newest, bytes := n, 0
			if came > 0 {
				newest = came
			}
			for i := n - newest; i < n; i++ {
				bytes += int(notes.Entry(i).Length)
			}
			same(t, "of", f.Counts["of"], n)
			left := float64(test.left(came)*(bytes/newest)) / 1e6
			within(t, "left", left, f.Counts["left MB"], left) // before the first event, lines of the corpus stand for events
			same(t, "waited", f.Counts["waited"] > 0, test.waited)
			same(t, "by", f.Texts["by"], map[string]string{"source": results.EndedBySource, "sink": results.EndedBySink}[test.by])
		})
	}
}

// TestASourceThatBreaksNIP77IsBlamed, and not the sink that was to be filled by it.
func TestASourceThatBreaksNIP77IsBlamed(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 50)
	m, _ := fill(t, &Sync{Which: []string{ModeNegentropy}}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{Honest: 50, NegReply: "zz"}),
		scripted.External(t, "sink", scripted.Script{}))
	m.blameless(t, "sink")
	m.judged(t, "sink", "sync.negentropy", results.CodeNIP77, results.Failed, results.CauseBreaks, "source")
	m.judged(t, "sink", "sync.negentropy", results.CodeCompletes, results.Failed, "", "source")
}

// TestASourceThatNamesIDsOfNothingIsAskedInstead, and what it holds is known all the same.
func TestASourceThatNamesIDsOfNothingIsAskedInstead(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 50)
	m, _ := fill(t, &Sync{Which: []string{ModeNegentropy}}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{Honest: 50, NegReply: named(7)}),
		scripted.External(t, "sink", scripted.Script{}))
	m.blameless(t, "sink")
	m.judged(t, "source", "sync.negentropy", results.CodeOnlyKnown, results.Failed, "", "source", "ids", 7, "twice", 0)
	equals(t, "ids of no corpus event", m.value(t, "sink", "sync.negentropy", "ids of no corpus event"), 7)
	m.each(func(f *results.Finding) { // it was asked by id, and sent nothing else: that is checked elsewhere
		if f.Relay == "source" && f.Code == results.CodeOnlyAsked {
			t.Errorf("%+v", f)
		}
	})
	equals(t, "expected", m.value(t, "sink", "sync.negentropy", "expected"), 50)
	equals(t, "missing", m.value(t, "sink", "sync.negentropy", "missing"), 50)
}

// TestASourceThatDoesNotSendIsBlamed, in what it sends elsewhere, and what it leaves out.
func TestASourceThatDoesNotSendIsBlamed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		script scripted.Script
		counts []any
	}{
		{"leaves out", scripted.Script{Faults: []string{"drop-results:1"}}, []any{"withheld", 50, "altered", 0, "elsewhere", 0}},
		{"elsewhere", scripted.Script{SubID: "zzz"}, []any{"withheld", 50, "altered", 0}},
		{"altered", scripted.Script{Alter: map[string]string{"content": `"other"`}}, []any{"withheld", 50, "altered", 50, "elsewhere", 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.script.Honest = 50
			notes := scripted.Notes(t, 50)
			m, _ := fill(t, &Sync{Which: []string{ModeNegentropy}}, notes, harness.Options{}, scripted.External(t, "source", test.script), scripted.External(t, "sink", scripted.Script{}))
			m.blameless(t, "sink")
			m.judged(t, "source", "sync.negentropy", results.CodeSendsHeld, results.Failed, "", "source", test.counts...)
			m.judged(t, "sink", "sync.negentropy", results.CodeHoldsSource, results.Stated, results.MissingNeverDelivered, "", "missing.never delivered", 50)
			m.judged(t, "sink", "sync.negentropy", results.CodeComplete, results.Stated, results.CauseWithheld, "", "missing", 50)
			if f := m.finding(t, "source", "sync.negentropy", results.CodeSendsHeld); test.name == "elsewhere" && f.Counts["elsewhere"] < 50 {
				t.Errorf("%+v", f.Counts)
			}
			if m.value(t, "sink", "sync.negentropy", "not sent by the source") < 50 && test.name != "altered" {
				t.Errorf("too few are not sent")
			}
		})
	}
}

// TestEachSideOfASyncAnswersForItself where events go both ways.
func TestEachSideOfASyncAnswersForItself(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 100)
	m, _ := fill(t, &Sync{Which: []string{ModeNegentropy}, Direction: relays.Both}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{}),
		scripted.External(t, "sink", scripted.Script{Honest: 80, CloseEvery: 1, CloseReason: "blocked: no"}))
	m.blameless(t, "source")
	const key = "sync.negentropy"
	m.judged(t, "sink", key, results.CodeCompletes, results.Failed, "", "sink")
}

// TestASinkThatHoldsWhatItMustNotIsBlamed though nothing is missing: it shows all of the corpus,
// what is superseded as well.
func TestASinkThatHoldsWhatItMustNotIsBlamed(t *testing.T) {
	t.Parallel()
	c := syntheticCorpus(t, 250)
	s := scripted.Script{NegError: "unsupported", NIP11: "{}", Answer: []string{}}
	for i := range c.Len() {
		s.Answer = append(s.Answer, string(c.Raw(i)))
	}
	m, _ := fill(t, &Sync{Which: []string{ModeReq}, Page: 1000}, c, harness.Options{}, scripted.External(t, "source", scripted.Script{}), scripted.External(t, "sink", s))
	m.blameless(t, "source")
	m.judged(t, "sink", "sync.req", results.CodeHoldsSource, results.Failed, "", "sink", "held", c.Len())
	extra := 0.0
	f := m.finding(t, "sink", "sync.req", results.CodeHoldsSource)
	for name, n := range f.Counts {
		if strings.HasPrefix(name, "extra.") {
			extra += n
		}
		same(t, name+" is missing", strings.HasPrefix(name, "missing."), false)
	}
	equals(t, "extra", extra, float64(c.Len())-f.Counts["must"])
}

// TestARelayThatRunsAlreadyIsLeftAloneInASync is inspected by nothing, since that would publish to
// it.
func TestARelayThatRunsAlreadyIsLeftAloneInASync(t *testing.T) {
	t.Parallel()
	runs := scripted.Serve(t, scripted.Script{})
	d, err := relays.FromTemplate("runs", runs.URL)
	if err != nil {
		t.Fatal(err)
	}
	m := meet(t, scripted.Notes(t, 5), harness.Options{}, func(ctx context.Context, r *harness.Runner) error {
		r.Preflight, r.Scenarios, r.Targets = true, (&Sync{}).Scenarios(), []harness.Target{{Definition: &d}}
		return r.Run(ctx)
	})
	same(t, "events", runs.Events.N(), 0)
	m.judged(t, "runs", "sync", results.CodeHasWay, results.Stated, results.ExternalSync, "")
}
