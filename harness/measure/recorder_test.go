package measure

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
		m := Measurement{Relay: "a", Scenario: "s", Metric: "m", Unit: "ms", Better: Lower, Trials: []float64{float64(trial + 1)}, Timeline: []float64{float64(trial)}, Note: "n", Exact: trial < 2}
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
	if !slices.Equal(m.Trials, []float64{1, 2, 3}) || m.Samples != 300 || h.Count() != 300 || !slices.Equal(m.Timeline, []float64{2}) || m.Note != "n" || m.Exact {
		t.Errorf("merged to %+v with %d in its histogram", m, h.Count())
	}
}

func TestAddKeepsApartWhatDiffers(t *testing.T) {
	base := Measurement{Relay: "a", Scenario: "s", Metric: "m", Unit: "ms", Better: Lower, Trials: []float64{1}}
	for name, change := range map[string]func(*Measurement){
		"relay": func(m *Measurement) { m.Relay = "b" }, "peer": func(m *Measurement) { m.Peer = "b" }, "scenario": func(m *Measurement) { m.Scenario = "t" },
		"metric": func(m *Measurement) { m.Metric = "n" }, "unit": func(m *Measurement) { m.Unit = "s" }, "direction": func(m *Measurement) { m.Better = None },
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
	if !slices.Equal(got.Trials, []float64{2}) || !slices.Equal(got.Timeline, []float64{1, 0}) || got.Note != "a trial gave no number; the histogram of a trial could not be read" {
		t.Errorf("kept %+v", got)
	}
}

func TestFindHoldsOnlyIfEveryTrialHeld(t *testing.T) {
	f := func(ok bool, detail string, evidence ...string) Finding {
		return Finding{Relay: "a", Scenario: "s", Check: "c", OK: ok, Required: true, Detail: detail, Evidence: evidence}
	}
	for _, c := range []struct {
		name     string
		in       []Finding
		ok       bool
		detail   string
		evidence []string
	}{
		{"held twice", []Finding{f(true, "fine", "x"), f(true, "fine again")}, true, "fine", []string{"x"}},
		{"failed second", []Finding{f(true, "fine", "x"), f(false, "two missing", "y")}, false, "two missing", []string{"y"}},
		{"failed first", []Finding{f(false, "two missing", "y"), f(true, "fine", "x")}, false, "two missing", []string{"y"}},
		{"failed twice", []Finding{f(false, "two missing", "y"), f(false, "three missing", "y", "z")}, false, "two missing", []string{"y", "z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorder(t)
			for _, f := range c.in {
				r.Find(f)
			}
			got := r.Snapshot().Findings
			if len(got) != 1 || got[0].OK != c.ok || got[0].Detail != c.detail || !slices.Equal(got[0].Evidence, c.evidence) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestFindBoundsEvidence(t *testing.T) {
	r := newRecorder(t)
	for i := range 3 {
		var e []string
		for j := range 80 {
			e = append(e, fmt.Sprint(i, j))
		}
		r.Find(Finding{Relay: "a", Check: "c", Evidence: e})
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
				r.Find(Finding{Relay: "a", Scenario: "preflight", Check: "c", Evidence: []string{fmt.Sprint(w, i)}})
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
	}
	for i := range r.Findings {
		r.Findings[i].Evidence = append(r.Findings[i].Evidence[:0], "z")
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
		trials []float64
		want   float64
		ok     bool
	}{{nil, 0, false}, {[]float64{3}, 3, true}, {[]float64{9, 1, 3}, 3, true}, {[]float64{4, 1, 3, 2}, 2.5, true}, {[]float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64, true}} {
		m := Measurement{Trials: c.trials}
		if got, ok := m.Value(); got != c.want || ok != c.ok {
			t.Errorf("%v: %v %v", c.trials, got, ok)
		}
	}
}
