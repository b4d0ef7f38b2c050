package results

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"
)

func newRecorder(t *testing.T) *Recorder {
	t.Helper()
	return NewRecorder(&Record{}, nil)
}

func TestAddContinuesTheSameMeasurement(t *testing.T) {
	r := newRecorder(t)
	for trial := range 3 {
		h := NewHistogram()
		h.RecordN(time.Duration(trial+1)*time.Millisecond, 100)
		m := Measurement{Relay: "a", Scenario: "s", Metric: "m", Unit: "ms", Better: Lower, Trials: []float64{float64(trial + 1)}, Timeline: []float64{float64(trial)}, Status: []Status{{Code: StatusCoarse}}, Exact: trial < 2}
		if err := m.SetHistogram(h); err != nil {
			t.Fatal(err)
		}
		r.Add(m)
	}
	got := r.Snapshot().Measurements
	if len(got) != 1 {
		t.Fatalf("%d measurements", len(got))
	}
	m := got[0]
	h, err := DecodeHistogram(m.Histogram)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Trials, []float64{1, 2, 3}) || m.Samples != 300 || h.Count() != 300 || !slices.Equal(m.Timeline, []float64{2}) || len(m.Status) != 1 || m.Exact {
		t.Errorf("merged to %+v with %d in its histogram", m, h.Count())
	}
}

func TestAddKeepsApartWhatDiffers(t *testing.T) {
	base := Measurement{Relay: "a", Scenario: "s", Metric: "m", Unit: "ms", Better: Lower, Trials: []float64{1}}
	for name, change := range map[string]func(*Measurement){
		"relay": func(m *Measurement) { m.Relay = "b" }, "peer": func(m *Measurement) { m.Peer = "b" }, "scenario": func(m *Measurement) { m.Scenario = "t" },
		"metric": func(m *Measurement) { m.Metric = "n" }, "unit": func(m *Measurement) { m.Unit = "s" }, "direction": func(m *Measurement) { m.Better = None },
		"labels": func(m *Measurement) { m.Labels = Labels{LabelForm: "hot"} },
	} {
		t.Run(name, func(t *testing.T) {
			r, other := newRecorder(t), base
			change(&other)
			r.Add(base)
			r.Add(other)
			if n := len(r.Snapshot().Measurements); n != 2 {
				t.Errorf("%d measurements, want 2", n)
			}
		})
	}
}

func TestAddDoesNotLetOneBadValueCostTheRecord(t *testing.T) {
	r := newRecorder(t)
	r.Add(Measurement{Relay: "a", Scenario: "s", Metric: "m", Trials: []float64{math.NaN(), 2, math.Inf(1)}, Timeline: []float64{1, math.NaN()}, Histogram: "AAAA"})
	h := NewHistogram()
	h.Record(1)
	m := Measurement{Relay: "a", Scenario: "s", Metric: "m"}
	if err := m.SetHistogram(h); err != nil {
		t.Fatal(err)
	}
	r.Add(m)
	got := r.Snapshot().Measurements[0]
	if !slices.Equal(got.Trials, []float64{2}) || !slices.Equal(got.Timeline, []float64{1, 0}) || got.Is(StatusNoNumber) == nil || got.Is(StatusBadHistogram) == nil {
		t.Errorf("kept %+v", got)
	}
}

func TestFindKeepsTheHeaviestVerdict(t *testing.T) {
	f := func(v Verdict, n float64, evidence ...string) Finding {
		f := Finding{Relay: "a", Scenario: "s", Code: "c", Verdict: v, Counts: map[string]float64{"n": n}}
		if v == Failed {
			f.Blames = "a"
		}
		for _, text := range evidence {
			f.Evidence = append(f.Evidence, Evidence{Code: EvidenceWords, Text: text})
		}
		return f
	}
	for _, c := range []struct {
		name     string
		in       []Finding
		verdict  Verdict
		n        float64
		evidence []string
	}{
		{"held twice", []Finding{f(Passed, 1, "x"), f(Passed, 2)}, Passed, 1, []string{"x"}},
		{"failed second", []Finding{f(Passed, 1, "x"), f(Failed, 2, "y")}, Failed, 2, []string{"y"}},
		{"failed first", []Finding{f(Failed, 2, "y"), f(Passed, 1, "x")}, Failed, 2, []string{"y"}},
		{"failed twice", []Finding{f(Failed, 2, "y"), f(Failed, 3, "y", "z")}, Failed, 2, []string{"y", "z"}},
		{"asked at last", []Finding{f(Undecided, 1, "x"), f(Passed, 2, "y")}, Passed, 2, []string{"y"}},
		{"asked once and not again", []Finding{f(Passed, 2, "y"), f(Undecided, 1, "x")}, Passed, 2, []string{"y"}},
		{"stated among passed", []Finding{f(Passed, 1), f(Stated, 2, "x"), f(Passed, 3)}, Stated, 2, []string{"x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorder(t)
			for _, f := range c.in {
				r.AddFinding(f)
			}
			all := r.Snapshot().Findings
			if len(all) != 1 {
				t.Fatalf("%d findings", len(all))
			}
			var evidence []string
			for _, e := range all[0].Evidence {
				evidence = append(evidence, e.Text)
			}
			if got := all[0]; got.Verdict != c.verdict || got.Counts["n"] != c.n || !slices.Equal(evidence, c.evidence) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestForgedEventsOfAllBootsAreCounted, as evidence names those of all.
func TestForgedEventsOfAllBootsAreCounted(t *testing.T) {
	r := newRecorder(t)
	for range 2 {
		r.AddFinding(Finding{Relay: "a", Scenario: "s", Code: CodeForgedRefused, Verdict: Failed, Counts: map[string]float64{"of": 4, "accepted": 3}})
	}
	if got := r.Snapshot().Findings[0].Counts; got["of"] != 8 || got["accepted"] != 6 {
		t.Errorf("%v", got)
	}
}

func TestWhatFailsWhileTheMachineIsShortIsUndecided(t *testing.T) {
	r := NewRecorder(&Record{}, nil)
	short := ""
	r.WhenShort(func() string { return short })
	find := func(code string, v Verdict) {
		f := Finding{Relay: "a", Scenario: "s", Code: code, Verdict: v, Cause: "own"}
		if v == Failed {
			f.Blames, f.BearsOn = "a", everything
		}
		r.AddFinding(f)
		r.Add(Measurement{Relay: "a", Scenario: "s", Metric: code, Trials: []float64{1}})
	}
	find("before", Failed)
	short = ShortageDisk
	find("meanwhile", Failed)
	find("passed", Passed)
	short = ""
	find("after", Failed)
	rec := r.Snapshot()
	for i, want := range []struct {
		verdict Verdict
		cause   string
	}{{Failed, "own"}, {Undecided, ShortageDisk}, {Passed, "own"}, {Failed, "own"}} {
		f, m := rec.Findings[i], rec.Measurements[i]
		if f.Verdict != want.verdict || f.Cause != want.cause || (f.Blames == "a") != (want.verdict == Failed) || (len(f.BearsOn) > 0) != (want.verdict == Failed) {
			t.Errorf("%s: %+v", f.Code, f)
		}
		incomplete := m.Is(StatusIncomplete)
		if meanwhile := i == 1 || i == 2; meanwhile != (incomplete != nil && incomplete.Cause == CauseShortage && incomplete.Because == ShortageDisk) {
			t.Errorf("%s: %+v", m.Metric, m.Status)
		}
	}
}

func TestFindTellsApartWhomItBlames(t *testing.T) {
	r := newRecorder(t)
	for _, blamed := range []string{"a", "b", "a"} {
		r.AddFinding(Finding{Relay: "a", Peer: "b", Scenario: "negentropy", Code: CodeHoldsUnion, Verdict: Failed, Blames: blamed})
	}
	r.AddFinding(Finding{Relay: "a", Peer: "b", Scenario: "negentropy", Code: CodeHoldsUnion, Verdict: Passed, Blames: "b"})
	got := r.Snapshot().Findings
	if len(got) != 2 || got[0].Blames != "a" || got[1].Blames != "b" {
		t.Errorf("%+v", got)
	}
}

func TestFindBoundsEvidence(t *testing.T) {
	r := newRecorder(t)
	for i := range 3 {
		var e []Evidence
		for j := range 80 {
			e = append(e, Evidence{Code: EvidenceWords, Text: fmt.Sprint(i, j)})
		}
		r.AddFinding(Finding{Relay: "a", Code: "c", Verdict: Failed, Evidence: e})
	}
	if n := len(r.Snapshot().Findings[0].Evidence); n != maxEvidence {
		t.Errorf("%d lines of evidence", n)
	}
}

func TestSetRelayReplacesByName(t *testing.T) {
	r := newRecorder(t)
	r.SetRelay(Relay{Name: "a", Outcome: OutcomeSkipped, Reason: "x"})
	r.SetRelay(Relay{Name: "b", Outcome: OutcomeOK})
	r.SetRelay(Relay{Name: "a", Outcome: OutcomeOK, Version: "2"})
	got := r.Snapshot().Relays
	if len(got) != 2 || got[0].Name != "a" || got[0].Version != "2" || got[1].Name != "b" {
		t.Errorf("%+v", got)
	}
}

func TestSetRelayKeepsWhatWasProbed(t *testing.T) {
	r := newRecorder(t)
	r.SetRelay(Relay{Name: "a", Capabilities: map[string]string{"NIP-77": "yes"}})
	r.SetRelay(Relay{Name: "a", Outcome: OutcomeOK})
	if got := r.Snapshot().Relays[0]; got.Outcome != OutcomeOK || got.Capabilities["NIP-77"] != "yes" {
		t.Errorf("%+v", got)
	}
	r.SetRelay(Relay{Name: "a", Capabilities: map[string]string{"NIP-77": "no"}})
	if got := r.Snapshot().Relays[0]; got.Capabilities["NIP-77"] != "no" {
		t.Errorf("%+v", got)
	}
}

// Under the race detector this fails as soon as a snapshot shares anything with the record.
func TestSnapshotsShareNothingWithTheRecord(t *testing.T) {
	r := NewRecorder(fullRecord(t), func(rec *Record) error { scribble(rec); return nil })
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 20 {
				r.Add(Measurement{Relay: fmt.Sprint(w), Scenario: "s", Metric: "m", Trials: []float64{float64(i)}})
				r.AddFinding(Finding{Relay: "a", Scenario: "preflight", Code: "c", Counts: map[string]float64{"x": 1}, Labels: Labels{"y": "z"}, Evidence: []Evidence{{Text: fmt.Sprint(w, i)}}})
				r.Describe(Scenario{Key: fmt.Sprint(i), Uses: []string{"ids"}}, Metric{Key: fmt.Sprint(i)})
				r.SetRelay(Relay{Name: "a", Config: map[string]string{"x": "y"}, Outcome: OutcomeOK})
				s := r.Snapshot()
				scribble(&s)
				r.Update(func(rec *Record) { rec.Options["load"] = i; rec.Environment.LoadAfter = new(float64) })
				if err := r.Save(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, m := range r.Snapshot().Measurements {
		if m.Scenario == "s" && len(m.Trials) != 20 {
			t.Errorf("%s has %d trials", m.Relay, len(m.Trials))
		}
	}
}

// scribble writes to everything that a shallow copy would share.
func scribble(r *Record) {
	r.Options["x"] = 1
	if args, ok := r.Options["args"].([]any); ok {
		args[0] = "scribbled"
	}
	r.Corpus.Kinds["7"]++
	r.Corpus.Dropped["x"]++
	for i := range r.Relays {
		r.Relays[i].Config["z"] = "z"
		for j := range r.Relays[i].Notes {
			r.Relays[i].Notes[j] = "z"
		}
	}
	for i := range r.Measurements {
		r.Measurements[i].Trials[0] = -1
		if r.Measurements[i].Labels != nil {
			r.Measurements[i].Labels["x"] = "z"
		}
	}
	for i := range r.Findings {
		r.Findings[i].Evidence = append(r.Findings[i].Evidence[:0], Evidence{Text: "z"})
		r.Findings[i].Counts["x"]++
		r.Findings[i].Labels["x"] = "z"
	}
	for i := range r.Scenarios {
		if len(r.Scenarios[i].Uses) > 0 {
			r.Scenarios[i].Uses[0] = "z"
		}
	}
	for i := range r.Calibration {
		r.Calibration[i].Value++
	}
	*r.FinishedAt = time.Time{}
	*r.Environment.LoadBefore, *r.Environment.BusyBefore = 9, 9
	r.Environment.During.Seconds, r.Environment.HarnessCores[0], r.Environment.RelayCores[0] = 9, 9, 9
}

func TestSaveHandsOnTheErrorOfItsFunction(t *testing.T) {
	want := errors.New("full")
	if err := NewRecorder(nil, func(*Record) error { return want }).Save(); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
	if err := NewRecorder(nil, nil).Save(); err != nil {
		t.Errorf("without a function: %v", err)
	}
}

func TestValueIsTheMedianOfTheTrials(t *testing.T) {
	for _, c := range []struct {
		trialCount []float64
		want       float64
		ok         bool
	}{{nil, 0, false}, {[]float64{3}, 3, true}, {[]float64{9, 1, 3}, 3, true}, {[]float64{4, 1, 3, 2}, 2.5, true}, {[]float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64, true}} {
		m := Measurement{Trials: c.trialCount}
		if got, ok := m.Value(); got != c.want || ok != c.ok {
			t.Errorf("%v: %v %v", c.trialCount, got, ok)
		}
	}
}

func TestDescribeKeepsTheOrderOfReading(t *testing.T) {
	r := newRecorder(t)
	r.Describe(Scenario{Key: "c", Order: 3}, Metric{Key: "cpu", Role: RoleResource})
	r.Describe(Scenario{Key: "a", Order: 1}, Metric{Key: "accepted", Role: RoleFigure}, Metric{Key: "rss", Role: RoleResource})
	r.Describe(Scenario{Key: "b1", Order: 2}, Metric{Key: "refused", Role: RoleStated})
	r.Describe(Scenario{Key: "b2", Order: 2}, Metric{Key: "cpu", Role: RoleFigure})
	r.Describe(Scenario{Key: "b1", Order: 9}, Metric{Key: "accepted", Role: RoleResource})
	s := r.Snapshot()
	var scenarios, metrics []string
	for _, o := range s.Scenarios {
		scenarios = append(scenarios, fmt.Sprint(o.Key, o.Order))
	}
	for _, m := range s.Metrics {
		metrics = append(metrics, fmt.Sprint(m.Key, " ", m.Role))
	}
	if want := []string{"a1", "b12", "b22", "c3"}; !slices.Equal(scenarios, want) {
		t.Errorf("scenarios %q, want %q", scenarios, want)
	}
	if want := []string{"accepted figure", "refused stated", "cpu resource", "rss resource"}; !slices.Equal(metrics, want) {
		t.Errorf("metrics %q, want %q", metrics, want)
	}
}

func TestRangeIsTheSmallestAndTheLargestTrial(t *testing.T) {
	for _, c := range []struct {
		trialCount []float64
		lo, hi     float64
	}{{nil, 0, 0}, {[]float64{3}, 3, 3}, {[]float64{4, 9, 2, 5}, 2, 9}} {
		m := Measurement{Trials: c.trialCount}
		if lo, hi := m.Range(); lo != c.lo || hi != c.hi {
			t.Errorf("%v: %v to %v", c.trialCount, lo, hi)
		}
	}
}

func TestWhatAFailedCheckBearsOnGathersOverTrials(t *testing.T) {
	r := NewRecorder(nil, nil)
	for _, on := range []string{"query.*", "storage", "query.*"} {
		r.AddFinding(Finding{Relay: "a", Scenario: "s", Code: "c", Verdict: Failed, Blames: "a", BearsOn: []Scope{{Scenario: on}}})
	}
	rec := r.Snapshot()
	if got := rec.Findings[0].BearsOn; len(got) != 2 || got[0].Scenario != "query.*" || got[1].Scenario != "storage" {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsHeldIsTakenInOrForgotten(t *testing.T) {
	m := Measurement{Relay: "a", Scenario: "s", Metric: "m", Unit: "ms", Better: Lower, Trials: []float64{1}}
	stated := Measurement{Relay: "a", Scenario: "s", Metric: "n", Unit: "ms", Better: None, Trials: []float64{1}}
	f := Finding{Relay: "a", Scenario: "s", Code: CodeModel, Verdict: Failed, Blames: "a", BearsOn: []Scope{{Scenario: "s"}}}
	for _, test := range []struct {
		name    string
		take    bool
		marks   []Status
		figures int
		verdict Verdict
	}{
		{"taken", true, nil, 2, Failed},
		{"forgotten", false, nil, 0, ""},
		{"marked", true, []Status{{Code: StatusRepeated}}, 2, Failed},
		{"marked as nobody's", true, []Status{{Code: StatusAway}}, 2, Undecided},
	} {
		r := newRecorder(t)
		r.Hold()
		r.Add(m)
		r.Add(stated)
		r.AddFinding(f)
		if s := r.Snapshot(); len(s.Measurements)+len(s.Findings) > 0 {
			t.Errorf("%s: not held", test.name)
		}
		r.Release(test.take, test.marks...)
		r.Release(true) // nothing is held any more
		s := r.Snapshot()
		if len(s.Measurements) != test.figures {
			t.Errorf("%s: %d figures", test.name, len(s.Measurements))
		}
		for _, got := range s.Measurements {
			if want := len(test.marks); got.Better == None && len(got.Status) > 0 || got.Better != None && len(got.Status) != want {
				t.Errorf("%s: %s has marks %v", test.name, got.Metric, got.Status)
			}
		}
		if test.take && (s.Findings[0].Verdict != test.verdict || (test.verdict == Failed) != (s.Findings[0].Blames == "a")) {
			t.Errorf("%s: %+v", test.name, s.Findings)
		}
		r.Add(m)
		if len(r.Snapshot().Measurements) == 0 {
			t.Errorf("%s: holds on", test.name)
		}
	}
}
