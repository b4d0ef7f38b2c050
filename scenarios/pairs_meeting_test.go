package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/relays"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// meeting is a run on scripted relays: what was recorded, beside what the relays did.
type meeting struct {
	results.Record
	took  time.Duration // of the whole run
	shown []string      // progress, "done/total"
}

// looking is an Observer that keeps progress.
type looking struct {
	*testing.T
	mu    sync.Mutex
	shown []string
}

func (*looking) Trial(string, int, int, int)          {}
func (*looking) Scenario(string, harness.Description) {}
func (u *looking) Failed(relay string, err error)     { u.Logf("%s: %v", relay, err) }
func (u *looking) Progress(done, total int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.shown = append(u.shown, fmt.Sprintf("%d/%d", done, total))
}

// meet runs what run says on the relays, as relaybench does.
func meet(t *testing.T, c *corpus.Corpus, o harness.Options, run func(context.Context, *harness.Runner) error, all ...*scripted.Relay) *meeting {
	t.Helper()
	o.Seed, o.Trials, o.Stall = 1, 1, cmp.Or(o.Stall, 60*time.Second)
	o.Publishers, o.Window = cmp.Or(o.Publishers, 1), cmp.Or(o.Window, 10)
	now, work := time.Now().Unix(), t.TempDir()
	m, err := model.New(c, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	recorder := results.NewRecorder(&results.Record{Schema: results.Schema}, nil)
	look := &looking{T: t}
	r := &harness.Runner{Corpus: c, Model: m, Now: now, Options: o, Settings: relays.Settings{WorkDir: work}, Recorder: recorder, Observer: look, Unwatched: true}
	for _, relay := range all {
		r.Targets = append(r.Targets, harness.Target{Definition: relay.Definition})
	}
	began := time.Now()
	if err := run(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	nothingIsLeft(t, work)
	return &meeting{Record: recorder.Snapshot(), took: time.Since(began), shown: look.shown}
}

// inTrial is a scenario for what a test does with a trial.
type inTrial func(ctx context.Context, t *harness.Trial) error

func (inTrial) Describe() harness.Description {
	return harness.Description{Scenario: results.Scenario{Key: "trial"}}
}
func (f inTrial) Run(ctx context.Context, t *harness.Trial) error { return f(ctx, t) }

// try runs f on a relay that this process serves, under the scenario "trial" and the name "one".
func try(t *testing.T, c *corpus.Corpus, relay *scripted.Relay, f inTrial) *meeting {
	t.Helper()
	d, err := relays.FromTemplate("one", relay.URL)
	if err != nil {
		t.Fatal(err)
	}
	m := meet(t, c, harness.Options{}, func(ctx context.Context, r *harness.Runner) error {
		r.Scenarios, r.Targets = []harness.Scenario{f}, []harness.Target{{Definition: &d}}
		return r.Run(ctx)
	})
	for _, r := range m.Relays {
		if r.Outcome != results.OutcomeOK {
			t.Fatalf("%+v", r)
		}
	}
	return m
}

// figure returns the measurement of a metric, of one trial, whose labels hold those given as names
// and values by turns.
func (m *meeting) figure(t *testing.T, relay, scenario, metric string, labels ...string) *results.Measurement {
	t.Helper()
	want := results.Labels{}
	for i := 0; i < len(labels); i += 2 {
		want[labels[i]] = labels[i+1]
	}
	var found *results.Measurement
	for i := range m.Measurements {
		if f := &m.Measurements[i]; f.Relay == relay && f.Scenario == scenario && f.Metric == metric && f.Labels.Contains(want) {
			if found != nil {
				t.Fatalf("%s, %s, %s: more than one", relay, scenario, metric)
			}
			found = f
		}
	}
	if found == nil || len(found.Trials) != 1 {
		t.Fatalf("%s, %s, %s %v: not measured once: %+v\n%s", relay, scenario, metric, want, found, m.trouble())
	}
	return found
}

func (m *meeting) value(t *testing.T, relay, scenario, metric string, labels ...string) float64 {
	t.Helper()
	return m.figure(t, relay, scenario, metric, labels...).Trials[0]
}

// trouble are all findings that are not passed.
func (m *meeting) trouble() (text string) {
	for _, f := range m.Findings {
		if f.Verdict != results.Passed {
			text += fmt.Sprintf("%s with %s: %s: %s %s (%s), blames %q: %v %v\n", f.Relay, f.Peer, f.Scenario, f.Code, f.Verdict, f.Cause, f.Blames, f.Counts, f.Texts)
		}
	}
	return text
}

// usual is what every scenario of a relay that was launched records beside its own figures.
var usual = []string{"cpu", "peak rss", "read", "written", "open files", "context switches", "harness cpu", "reading delay", "reading delay p99"}

// units compares names, units and directions of all that was measured in a scenario.
func (m *meeting) units(t *testing.T, relay, scenario string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, f := range m.Measurements {
		if f.Relay == relay && f.Scenario == scenario && !slices.Contains(usual, f.Metric) {
			got[f.Metric] = f.Unit + " " + string(f.Better)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s, %s: measured\n%v, want\n%v\n%s", relay, scenario, got, want, m.trouble())
	}
}

// finding returns the one of a check.
func (m *meeting) finding(t *testing.T, relay, scenario, code string) *results.Finding {
	t.Helper()
	var found *results.Finding
	for i := range m.Findings {
		if f := &m.Findings[i]; f.Relay == relay && f.Scenario == scenario && f.Code == code {
			if found != nil {
				t.Fatalf("%s, %s: %s: more than one", relay, scenario, code)
			}
			found = f
		}
	}
	if found == nil {
		t.Fatalf("%s, %s: %s: no finding\n%s", relay, scenario, code, m.trouble())
	}
	return found
}

// judged compares verdict, cause, the relay at fault and some counts, which stand by names and
// numbers by turns.
func (m *meeting) judged(t *testing.T, relay, scenario, code string, verdict results.Verdict, cause, blames string, some ...any) {
	t.Helper()
	f := m.finding(t, relay, scenario, code)
	if f.Verdict != verdict || f.Cause != cause || f.Blames != blames {
		t.Errorf("%s, %s: %s: %s by %q, blames %q; want %s by %q, blames %q\n%+v", relay, scenario, code, f.Verdict, f.Cause, f.Blames, verdict, cause, blames, f)
	}
	for name, n := range counts(some...) {
		if f.Counts[name] != n {
			t.Errorf("%s, %s: %s: %v %s, want %v", relay, scenario, code, f.Counts[name], name, n)
		}
	}
}

// blameless fails where anything is held against the relay.
func (m *meeting) blameless(t *testing.T, relay string) {
	t.Helper()
	for _, f := range m.Findings {
		if f.Verdict == results.Failed && (f.Blames == relay || f.Blames == "" && (f.Relay == relay || f.Peer == relay)) {
			t.Errorf("%s is blamed: %+v", relay, f)
		}
	}
}

// blamed returns the codes of all checks that are held against the relay.
func (m *meeting) blamed(relay string) map[string]bool {
	codes := map[string]bool{}
	for _, f := range m.Findings {
		if f.Verdict == results.Failed && f.Blames == relay {
			codes[f.Code] = true
		}
	}
	return codes
}

// equals compares exactly, but for what a float64 cannot hold.
func equals(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) || math.IsNaN(got) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// within holds a figure between bounds, both inclusive. A histogram's 3 digits are allowed for.
func within(t *testing.T, what string, least, got, most float64) {
	t.Helper()
	if !(got >= least*(1-2e-3) && got <= most*(1+2e-3)) {
		t.Errorf("%s: %v, want %v to %v", what, got, least, most)
	}
}

// latencies decodes a figure's histogram and holds the figure against it.
func latencies(t *testing.T, what string, m *results.Measurement, samples int64, least, most time.Duration) {
	t.Helper()
	h, err := results.DecodeHistogram(m.Histogram)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	equals(t, what+": observations", float64(h.Count()), float64(samples))
	equals(t, what+": median in ms", m.Trials[0], float64(h.Quantile(0.5))/1e6)
	within(t, what+": shortest", float64(least), float64(h.Min()), float64(most))
	within(t, what+": longest", float64(least), float64(h.Max()), float64(most))
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// places are the indexes from one to another, the latter not included.
func places(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}
