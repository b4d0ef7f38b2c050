package results

import (
	"reflect"
	"slices"
	"sync"
)

// maxEvidence bounds the evidence that one finding gathers over the trials.
const maxEvidence = 50

// Recorder collects what a run produces into one record. It is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	rec    *Record
	save   func(*Record) error
	staged *staging // nil: nothing is held
	short  func() string

	saving sync.Mutex // one save at a time, so that an older snapshot never overwrites a newer one
}

// NewRecorder collects into rec, which belongs to the recorder from now on. Save hands snapshots to
// save; nil keeps them in memory alone.
func NewRecorder(rec *Record, save func(*Record) error) *Recorder {
	if rec == nil {
		rec = &Record{}
	}
	rec.normalize()
	return &Recorder{rec: rec, save: save, short: func() string { return "" }}
}

// staging is what is not in the record yet.
type staging struct {
	measurements []Measurement
	findings     []Finding
}

// Hold keeps measurements and findings out of the record from now on, until Release.
func (r *Recorder) Hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.staged = new(staging)
}

// Release takes in what was held, or forgets it. The marks are noted of each figure that has a
// direction. Where one says that the harness was away, no check has failed: it is undecided.
func (r *Recorder) Release(take bool, marks ...Status) {
	r.mu.Lock()
	h := r.staged
	r.staged = nil
	r.mu.Unlock()
	if h == nil || !take {
		return
	}
	gone := slices.ContainsFunc(marks, func(s Status) bool { return s.Code == StatusAway })
	for _, m := range h.measurements {
		for _, s := range marks {
			if m.Better != None && len(m.Trials) > 0 {
				m.AddStatus(s)
			}
		}
		r.Add(m)
	}
	for _, f := range h.findings {
		if gone && f.Verdict == Failed {
			f.Verdict = Undecided
		}
		r.AddFinding(f)
	}
}

// WhenShort has the recorder ask what the machine is short of at present: one of the Shortage
// codes, "" for nothing. What fails while it is short of something is undecided, and a figure of
// that time is incomplete.
func (r *Recorder) WhenShort(short func() string) { r.short = short }

// Add takes a measurement in. One with the same relay, peer, scenario, labels, metric, unit and
// direction as an earlier one continues it: trials are appended, histograms merged, samples summed,
// and the timeline is the newest. Values that are not finite or below 0 are left out and noted:
// nobody reads a record that holds one, and it must not cost the whole record. For the same reason
// one that would take its figure beyond the run's trials is left out: the earlier values stand.
func (r *Recorder) Add(m Measurement) {
	m = clone(m)
	kept := slices.DeleteFunc(slices.Clone(m.Trials), func(v float64) bool { return !valid(v) })
	if len(kept) < len(m.Trials) {
		m.AddStatus(Status{Code: StatusNoNumber})
	}
	m.Trials = kept
	if shortage := r.short(); shortage != "" {
		m.AddStatus(Status{Code: StatusIncomplete, Cause: CauseShortage, Because: shortage})
	}
	for i, v := range m.Timeline {
		if !valid(v) {
			m.Timeline[i] = 0
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.staged != nil {
		r.staged.measurements = append(r.staged.measurements, m)
		return
	}
	i := slices.IndexFunc(r.rec.Measurements, func(o Measurement) bool {
		return o.Relay == m.Relay && o.Peer == m.Peer && o.Scenario == m.Scenario && o.Metric == m.Metric && o.Unit == m.Unit && o.Better == m.Better &&
			o.Labels.Equal(m.Labels)
	})
	if i < 0 {
		present(&m.Trials)
		r.rec.Measurements = append(r.rec.Measurements, m)
		return
	}
	o := &r.rec.Measurements[i]
	if trials, err := r.rec.trialCount(); err == nil && len(o.Trials)+len(m.Trials) > trials {
		return
	}
	o.Trials = append(o.Trials, m.Trials...)
	o.Samples += m.Samples
	o.Clamped += m.Clamped
	o.Exact = o.Exact && m.Exact
	if len(m.Timeline) > 0 {
		o.Timeline = m.Timeline
	}
	for _, status := range m.Status {
		o.AddStatus(status)
	}
	merged, err := mergeEncoded(o.Histogram, m.Histogram)
	if err != nil {
		o.AddStatus(Status{Code: StatusBadHistogram})
	}
	o.Histogram = merged
}

// mergeEncoded returns a with b added; with an error it returns a as it was.
func mergeEncoded(a, b string) (string, error) {
	if a == "" || b == "" {
		return a + b, nil
	}
	sum := NewHistogram()
	for _, text := range []string{a, b} {
		h, err := DecodeHistogram(text)
		if err != nil {
			return a, err
		}
		sum.Merge(h)
	}
	merged, err := sum.Encode()
	if err != nil {
		return a, err
	}
	return merged, nil
}

// weight orders verdicts: of several trials of one check the heaviest stands. What could not be
// asked gives way to any answer.
var weight = map[Verdict]int{Undecided: 0, Passed: 1, Stated: 2, Failed: 3}

// AddFinding takes a finding in. A check that ran in several trials is one finding, told apart by
// whom it blames: it holds if it held every time, counts and texts are those of the first time of
// its heaviest verdict (where each boot is asked of other events, as of forged ones, the counts of
// all such times together), and what it bears on and its evidence gather, the latter up to a bound.
func (r *Recorder) AddFinding(f Finding) {
	f = clone(f)
	f.Evidence = f.Evidence[:min(len(f.Evidence), maxEvidence)]
	if f.Verdict == Failed {
		if shortage := r.short(); shortage != "" {
			f.Verdict, f.Cause = Undecided, shortage
		}
	}
	if f.Verdict != Failed {
		f.Blames, f.BearsOn = "", nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.staged != nil {
		r.staged.findings = append(r.staged.findings, f)
		return
	}
	i := slices.IndexFunc(r.rec.Findings, func(o Finding) bool {
		return o.Relay == f.Relay && o.Peer == f.Peer && o.Scenario == f.Scenario && o.Code == f.Code && o.Labels.Equal(f.Labels) &&
			(o.Blames == f.Blames || o.Verdict != Failed || f.Verdict != Failed)
	})
	if i < 0 {
		r.rec.Findings = append(r.rec.Findings, f)
		return
	}
	o := &r.rec.Findings[i]
	switch {
	case weight[f.Verdict] < weight[o.Verdict]:
	case weight[f.Verdict] > weight[o.Verdict]:
		*o = f
	default:
		if f.Code == CodeForgedRefused && o.Counts != nil { // each boot is sent forged events of its own
			for name, n := range f.Counts {
				o.Counts[name] += n
			}
		}
		for _, s := range f.BearsOn {
			if !slices.ContainsFunc(o.BearsOn, func(x Scope) bool { return reflect.DeepEqual(x, s) }) {
				o.BearsOn = append(o.BearsOn, s)
			}
		}
		for _, e := range f.Evidence {
			if len(o.Evidence) < maxEvidence && !slices.ContainsFunc(o.Evidence, func(x Evidence) bool { return reflect.DeepEqual(x, e) }) {
				o.Evidence = append(o.Evidence, e)
			}
		}
	}
}

// Describe takes in how a scenario and its metrics are called. The first description of a key
// stands; scenarios are kept in their order, metrics in the order in which they come.
func (r *Recorder) Describe(s Scenario, metrics ...Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rec.Scenario(s.Key) == nil {
		at, _ := slices.BinarySearchFunc(r.rec.Scenarios, s.Order+1, func(o Scenario, order int) int { return o.Order - order })
		r.rec.Scenarios = slices.Insert(r.rec.Scenarios, at, clone(s))
	}
	for _, m := range metrics {
		if slices.ContainsFunc(r.rec.Metrics, func(o Metric) bool { return o.Key == m.Key }) {
			continue
		}
		at := len(r.rec.Metrics)
		if m.Role != RoleResource { // what was consumed comes last
			if i := slices.IndexFunc(r.rec.Metrics, func(o Metric) bool { return o.Role == RoleResource }); i >= 0 {
				at = i
			}
		}
		r.rec.Metrics = slices.Insert(r.rec.Metrics, at, m)
	}
}

// SetRelay adds a relay, or replaces the one of that name. One that comes without capabilities
// keeps those that are known: they are probed once, and the relay is described anew at each boot.
func (r *Recorder) SetRelay(relay Relay) {
	relay = clone(relay)
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.rec.Relays, func(o Relay) bool { return o.Name == relay.Name }); i >= 0 {
		if relay.Capabilities == nil {
			relay.Capabilities = r.rec.Relays[i].Capabilities
		}
		r.rec.Relays[i] = relay
		return
	}
	r.rec.Relays = append(r.rec.Relays, relay)
}

// Update changes the record under the recorder's lock: Partial, FinishedAt, the load after the run.
func (r *Recorder) Update(change func(*Record)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.rec)
	r.rec.normalize()
}

// Save hands a snapshot to the function that NewRecorder was given. Measuring goes on meanwhile:
// only other saves wait.
func (r *Recorder) Save() error {
	if r.save == nil {
		return nil
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	snapshot := r.Snapshot()
	return r.save(&snapshot)
}

// Snapshot returns a copy that shares no memory with the record.
func (r *Recorder) Snapshot() Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return clone(*r.rec)
}
