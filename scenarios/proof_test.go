package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/corpus/prepare"
	"relaybench/corpus/synthetic"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// proof is a run of scenarios on a scripted relay: what was recorded, beside what the relay did.
type proof struct {
	results.Record
	corpus *corpus.Corpus
	model  *model.Model
	relay  *scripted.Relay
	spans  map[string]span     // by scenario; of its last time
	shown  map[string][]string // progress by scenario, "done/total"; of its last time
	failed []error
}

// span is one scenario, from before it to after it.
type span struct {
	began, ended time.Duration
	before, did  did
}

// did is what the relay did, in messages.
type did struct{ events, accepted, duplicates, reqs, sent, eoses, garbage, messages int64 }

func (d did) minus(o did) did {
	return did{d.events - o.events, d.accepted - o.accepted, d.duplicates - o.duplicates, d.reqs - o.reqs, d.sent - o.sent, d.eoses - o.eoses,
		d.garbage - o.garbage, d.messages - o.messages}
}

func didBy(c *scripted.Counts) did {
	return did{c.Events.N(), c.Accepted.N(), c.Duplicates.N(), c.Reqs.N(), c.Sent.N(), c.EOSEs.N(), c.Garbage.N(),
		c.Events.N() + c.Reqs.N() + c.CountReqs.N() + c.NegOpens.N()}
}

// proving is what goes into such a run, beside the script.
type proving struct {
	corpus     *corpus.Corpus
	scenarios  []harness.Scenario
	options    harness.Options
	durability relays.Durability
	seeder     harness.Scenario
	grace      time.Duration // from the relay's stop signal to its being killed
	budget     *load.Budget
}

// prove runs scenarios as relaybench does: the relay is a process of its own.
func prove(t *testing.T, s scripted.Script, what proving) *proof {
	t.Helper()
	p := &proof{relay: scripted.External(t, "scripted", s), corpus: what.corpus, spans: map[string]span{}, shown: map[string][]string{}}
	o := &what.options
	o.Seed = cmp.Or(o.Seed, 1)
	o.Samples, o.Publishers, o.Window, o.Rate = cmp.Or(o.Samples, 20), cmp.Or(o.Publishers, 1), cmp.Or(o.Window, 4), cmp.Or(o.Rate, 400)
	o.QueryRounds, o.QueryConns, o.Trials = cmp.Or(o.QueryRounds, 4), cmp.Or(o.QueryConns, 2), cmp.Or(o.Trials, 1)
	o.Stall = cmp.Or(o.Stall, 30*time.Second)
	p.relay.Definition.Durability = cmp.Or(what.durability, relays.DurabilityOpen)
	now := time.Now().Unix()
	var err error
	if p.model, err = model.New(p.corpus, nil, now); err != nil {
		t.Fatal(err)
	}
	w := &watcher{proof: p}
	recorder := results.NewRecorder(nil, func(*results.Record) error { w.end(); return nil })
	runner := harness.Runner{
		Unwatched: true, // a machine that stood still would have it all done once more
		Targets:   []harness.Target{{Definition: p.relay.Definition}}, Scenarios: what.scenarios, Corpus: p.corpus, Model: p.model, Now: now,
		Options: *o, Settings: relays.Settings{WorkDir: t.TempDir(), StopGrace: what.grace}, Recorder: recorder, Observer: w, Seeder: what.seeder, Budget: what.budget,
	}
	if err := runner.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Record = recorder.Snapshot()
	return p
}

// watcher is the Observer that keeps the spans.
type watcher struct {
	*proof
	mu  sync.Mutex
	key string
}

func (w *watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.spans[w.key]; ok {
		s.ended, s.did = scripted.Clock(), didBy(w.relay.Counts).minus(s.before)
		w.spans[w.key] = s
	}
	w.key = ""
}

func (w *watcher) Scenario(_ string, d harness.Description) {
	w.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.key = d.Key
	w.spans[d.Key] = span{began: scripted.Clock(), before: didBy(w.relay.Counts)}
	delete(w.shown, d.Key)
}

func (w *watcher) Trial(string, int, int, int) {}

func (w *watcher) Progress(done, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shown[w.key] = append(w.shown[w.key], fmt.Sprintf("%d/%d", done, total))
}

func (w *watcher) Failed(_ string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, err)
}

// steps is progress by steps of so many.
func steps(step, total int) (all []string) {
	for done := step; done <= total; done += step {
		all = append(all, fmt.Sprintf("%d/%d", done, total))
	}
	return all
}

// seconds is how long a scenario took.
func (s span) seconds() float64 { return (s.ended - s.began).Seconds() }

// all are the measurements of a metric, under whatever labels.
func (p *proof) all(scenario, metric string) (all []*results.Measurement) {
	for i := range p.Measurements {
		if m := &p.Measurements[i]; m.Scenario == scenario && m.Metric == metric {
			all = append(all, m)
		}
	}
	return all
}

// one is the measurement of a metric, of one trial.
func (p *proof) one(t *testing.T, scenario, metric string) *results.Measurement {
	t.Helper()
	all := p.all(scenario, metric)
	if len(all) != 1 || len(all[0].Trials) != 1 {
		t.Fatalf("%s, %s: %d measurements, want one of one trial\n%v", scenario, metric, len(all), p.told())
	}
	return all[0]
}

func (p *proof) value(t *testing.T, scenario, metric string) float64 {
	t.Helper()
	return p.one(t, scenario, metric).Trials[0]
}

// told says what went wrong, for a test that cannot go on.
func (p *proof) told() (all []string) {
	for _, f := range p.Findings {
		if f.Verdict != results.Passed {
			all = append(all, fmt.Sprintf("%s %s %s %v %v", f.Scenario, f.Code, f.Verdict, f.Counts, f.Texts))
		}
	}
	return append(all, fmt.Sprint(p.failed))
}

// latency compares a latency with its histogram: the value is the median, in milliseconds. It
// returns the histogram.
func (p *proof) latency(t *testing.T, scenario, metric string, samples int64, least time.Duration) *results.Histogram {
	t.Helper()
	m := p.one(t, scenario, metric)
	h, err := results.DecodeHistogram(m.Histogram)
	if err != nil {
		t.Fatalf("%s, %s: %v", scenario, metric, err)
	}
	name := scenario + ", " + metric
	same(t, name+": observations", h.Count(), samples)
	same(t, name+": the value is the median in ms", m.Trials[0], float64(h.Quantile(0.5))/1e6)
	between(t, name+": least", least-least/500, h.Min(), h.Quantile(0.5))
	between(t, name+": longest", h.Quantile(0.99), h.Max(), p.spans[scenario].ended-p.spans[scenario].began)
	return h
}

// resources are recorded in every scenario of a relay that was launched.
var resources = map[string]string{
	"cpu": "s none", "peak rss": "MiB none", "read": "MiB none", "written": "MiB none", "open files": "files none", "context switches": "switches none",
	"harness cpu": "% none", "reading delay": "ms none", "reading delay p99": "ms none",
}

// figures compares the names, units and directions of all that was measured in a scenario: nothing
// is missing, and nothing is more.
func (p *proof) figures(t *testing.T, scenario string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, m := range p.Measurements {
		if m.Scenario == scenario {
			got[m.Metric] = m.Unit + " " + string(m.Better)
		}
	}
	all := maps.Clone(resources)
	maps.Copy(all, want)
	want = all
	if _, ok := got["reading delay"]; !ok && p.spans[scenario].did.messages == 0 {
		delete(want, "reading delay") // nothing had to be read
		delete(want, "reading delay p99")
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: %v\nwant %v\n%v", scenario, got, want, p.told())
	}
}

// verdicts compares the verdicts of all checks of a scenario. What failed blames the relay and
// bears on what the table says; nothing else does.
func (p *proof) verdicts(t *testing.T, scenario string, want map[string]results.Verdict) {
	t.Helper()
	got := map[string]results.Verdict{}
	for _, f := range p.Findings {
		if f.Scenario != scenario {
			continue
		}
		got[f.Code] = f.Verdict
		blames, bears := "", []results.Scope(nil)
		if f.Verdict == results.Failed {
			blames, bears = "scripted", results.BearsOn(f.Code, scenario, f.Labels)
		}
		if f.Blames != blames || !reflect.DeepEqual(f.BearsOn, bears) {
			t.Errorf("%s, %s: blames %q and bears on %v, want %q and %v", scenario, f.Code, f.Blames, f.BearsOn, blames, bears)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: %v\nwant %v\n%v", scenario, got, want, p.told())
	}
}

// but are verdicts that all passed, but for some.
func but(codes []string, others map[string]results.Verdict) map[string]results.Verdict {
	all := map[string]results.Verdict{}
	for _, code := range codes {
		all[code] = results.Passed
	}
	maps.Copy(all, others)
	return all
}

func (p *proof) finding(t *testing.T, scenario, code string) *results.Finding {
	t.Helper()
	i := slices.IndexFunc(p.Findings, func(f results.Finding) bool { return f.Scenario == scenario && f.Code == code })
	if i < 0 {
		t.Fatalf("%s: nothing of %s\n%v", scenario, code, p.told())
	}
	return &p.Findings[i]
}

// counted compares the counts of a finding, which it returns.
func (p *proof) counted(t *testing.T, scenario, code string, want map[string]float64) *results.Finding {
	t.Helper()
	f := p.finding(t, scenario, code)
	if !maps.Equal(f.Counts, want) {
		t.Errorf("%s, %s: %v, want %v", scenario, code, f.Counts, want)
	}
	return f
}

// names compares the events that a finding's evidence of a code names with those of the corpus.
func (p *proof) names(t *testing.T, f *results.Finding, code string, indexes ...int) {
	t.Helper()
	var got, want []string
	for _, e := range f.Evidence {
		if e.Code == code && e.ID != "" {
			got = append(got, e.ID)
		}
	}
	for _, i := range indexes {
		want = append(want, p.corpus.Entry(i).ID.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: evidence %q, want %q", f.Code, got, want)
	}
}

// consumed compares the resources of a scenario with what the script uses for each message.
func (p *proof) consumed(t *testing.T, scenario string, s scripted.Script) {
	t.Helper()
	n, value := float64(p.spans[scenario].did.messages), func(metric string) float64 { return p.value(t, scenario, metric) }
	cpu := n * s.CPUPerMessage.Seconds()
	between(t, scenario+": cpu", max(0, cpu-0.05), value("cpu"), p.spans[scenario].seconds()*100) // counted in steps of 10 ms, of each process
	if s.CPUPerMessage > 0 && n > 100 {
		between(t, scenario+": order of magnitude of the cpu", 0, value("cpu"), 20*cpu+2)
	}
	between(t, scenario+": peak rss", float64(s.Memory)/(1<<20), value("peak rss"), float64(s.Memory)/(1<<20)*4+400)
	written := n * float64(s.WritePerMessage) / (1 << 20)
	between(t, scenario+": written", 0.9*written, value("written"), 4*written+16) // the last messages may be written after the last look
	between(t, scenario+": read", 0, value("read"), 1024)
	between(t, scenario+": open files", float64(s.Files), value("open files"), float64(s.Files)+100)
	between(t, scenario+": context switches", 1, value("context switches"), 1e6)
	between(t, scenario+": harness cpu", 0, value("harness cpu"), 100.5)
	if m := p.one(t, scenario, "reading delay"); m.Trials[0] < 0 || m.Samples < 1 {
		t.Errorf("%s: %+v", scenario, m)
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// near compares figures of floating point.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// between compares with bounds that the script or the same run sets.
func between[T cmp.Ordered](t *testing.T, what string, least, got, most T) {
	t.Helper()
	if !(least <= got && got <= most) {
		t.Errorf("%s: %v, want %v to %v", what, got, least, most)
	}
}

// syntheticCorpus is a corpus of all kinds, in a file.
func syntheticCorpus(t *testing.T, events int) *corpus.Corpus {
	t.Helper()
	c, err := prepare.Synthetic(t.Context(), synthetic.Spec{Events: events, Seed: 1, BaseTime: 1_780_272_000}, prepare.Options{}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// lengths are those of the shortest and of the longest event, in bytes.
func lengths(c *corpus.Corpus) (least, most float64) {
	least = math.Inf(1)
	for i := range c.Len() {
		n := float64(c.Entry(i).Length)
		least, most = min(least, n), max(most, n)
	}
	return least, most
}
