package report

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"relaybench/report/reporttest"
	"relaybench/results"
)

// A run builds a record the way the scenarios do; each relay has a speed that its figures follow.
type run struct {
	t      testing.TB
	rec    *results.Recorder
	trials int
}

type contender struct {
	name, durability string
	speed            float64 // 1 is the yardstick
}

var (
	bolt   = contender{"ref-bolt", "batch", 1}
	sqlite = contender{"ref-sqlite", "batch", 0.62}
)

func newRun(t testing.TB, trials int, relays ...contender) *run {
	t.Helper()
	started := time.Date(2026, 8, 30, 12, 0, 0, 0, time.UTC)
	finished, before, after := started.Add(58*time.Second), 0.21, 1.87
	rec := &results.Record{
		StartedAt: started, FinishedAt: &finished,
		Tool: results.Tool{Version: "0.1.0", Revision: "4f1c2d3e4f5a6b7c8d9e", Go: "go1.26.8", Verifier: "btcec/v2"},
		Environment: results.Environment{OS: "linux", Arch: "amd64", Kernel: "6.8.0", Distribution: "Debian 12", CPU: "AMD EPYC 7B13", Cores: 2,
			MemoryBytes: 8 << 30, Virtualization: "kvm", FileSystem: "ext4", LoadBefore: &before, LoadAfter: &after},
		Calibration: []results.Calibration{{Name: "clock resolution", Value: 58, Unit: "ns"}, {Name: "loopback echo, median", Value: 0.031, Unit: "ms"},
			{Name: "EVENT to OK against null, 4 connections", Value: 412345, Unit: "events/s"}, {Name: "signature checks, all cores", Value: 12410, Unit: "checks/s"}},
		Corpus: results.Corpus{Source: "synthetic relaybench-go/1, seed 1", Fingerprint: strings.Repeat("3fa9c01d7be24856", 4), Events: 10000, Bytes: 8412345,
			Kinds: map[string]int{"0": 612, "1": 4870, "3": 540, "4": 170, "6": 700, "7": 2400, "9735": 520, "10002": 18, "30023": 170}, Dropped: map[string]int{"duplicate id": 3, "bad signature": 1}},
		Options: map[string]any{"events": 10000.0, "args": []any{"--events", "10000", "--relay", "mine=/opt/my relay/bin --port {port} --db {dir}"}},
	}
	r := &run{t: t, rec: results.NewRecorder(rec, nil), trials: trials}
	for i, c := range relays {
		r.join(i, c)
		r.measure(c)
	}
	return r
}

// join adds a relay to the run.
func (r *run) join(i int, c contender) {
	r.rec.SetRelay(results.Relay{Name: c.name, Command: "refrelay --listen 127.0.0.1:{port} --store " + strings.TrimPrefix(c.name, "ref-") + " --dir {dir}", Version: "refrelay 0.1.0",
		SHA256: strings.Repeat(fmt.Sprintf("%x1b2c3d4", i+9), 8), Durability: c.durability, Capabilities: map[string]string{"nip45": "yes", "nip77": "no"},
		Config: map[string]string{"relay.toml": "[limits]\nmax_event_bytes = 65536\n"}, Outcome: results.OutcomeOK})
	r.find(c.name, "preflight", results.CodeStores, true)
	r.find(c.name, "preflight", results.CodeBadSignature, true)
}

func (r *run) add(c contender, scenario, metric, unit string, better results.Better, value float64, change ...func(*results.Measurement)) {
	for trial := range r.trials {
		v := value
		switch {
		case better == results.Higher && unit != "%":
			v = value * c.speed * reporttest.Wobble(trial)
		case better == results.Lower && value > 0:
			v = value / c.speed * reporttest.Wobble(trial)
		}
		m := results.Measurement{Relay: c.name, Scenario: scenario, Metric: metric, Unit: unit, Better: better, Trials: []float64{v}}
		for _, f := range change {
			f(&m)
		}
		r.rec.Add(m)
	}
}

// spread gives a measurement a histogram of n observations around its value.
func (r *run) spread(n int) func(*results.Measurement) {
	return func(m *results.Measurement) {
		h := results.NewHistogram()
		for i := range n {
			q := (float64(i) + 0.5) / float64(n)
			h.Record(time.Duration(m.Trials[0] * 1e6 * math.Exp(0.35*math.Log(q/(1-q)))))
		}
		if err := m.SetHistogram(h); err != nil {
			r.t.Fatal(err)
		}
	}
}

func exact(m *results.Measurement) { m.Exact = true }

func (r *run) ingest(c contender) {
	r.add(c, "ingest.throughput", "accepted", "events/s", results.Higher, 6200, func(m *results.Measurement) {
		m.Timeline = []float64{m.Trials[0] * 0.4, m.Trials[0], m.Trials[0] * 1.1, m.Trials[0] * 0.9}
	})
	r.add(c, "ingest.throughput", "rejected", "events/s", results.None, 0)
	r.add(c, "ingest.throughput", "unacknowledged", "events", results.Lower, 0)
	r.add(c, "ingest.throughput", "duplicates", "events", results.None, 0)
	r.add(c, "ingest.throughput", "ok latency", "ms", results.Lower, 118, r.spread(2000))
	r.resources(c, "ingest.throughput", 4.1)
}

func (r *run) resources(c contender, scenario string, cpu float64) {
	for _, x := range []struct {
		metric, unit string
		value        float64
	}{{"cpu", "s", cpu / c.speed}, {"peak rss", "MiB", 61 + cpu}, {"read", "MiB", 0.4}, {"written", "MiB", 2.2 * cpu}, {"open files", "files", 19}} {
		r.add(c, scenario, x.metric, x.unit, results.None, x.value)
	}
}

func (r *run) measure(c contender) {
	r.ingest(c)
	r.add(c, "ingest.visibility", "ok", "ms", results.Lower, 0.61, r.spread(200))
	r.add(c, "ingest.visibility", "visible", "ms", results.Lower, 0.84, r.spread(200))
	r.add(c, "ingest.visibility", "queryable by ok", "%", results.Higher, 100)
	r.add(c, "ingest.visibility", "poll round trip", "ms", results.None, 0.11)
	for i, key := range []string{"firehose", "thread", "by-ids", "empty"} {
		for _, form := range []string{"hot", "varied"} {
			scenario := "query." + key + "." + form
			events := []float64{500, 212, 100, 0}[i]
			r.add(c, scenario, "first event", "ms", results.Lower, 0.3+0.1*float64(i))
			r.add(c, scenario, "eose", "ms", results.Lower, []float64{3.1, 1.4, 0.9, 0.08}[i], r.spread(400))
			if events > 0 {
				r.add(c, scenario, "events/s", "events/s", results.Higher, 240000/float64(i+1))
			}
			r.add(c, scenario, "events", "count", results.None, events, exact)
			r.find(c.name, scenario, results.CodeModel, true)
		}
	}
	r.resources(c, "query.thread.hot", 0.7)
	r.resources(c, "query.by-ids.varied", 0.3)
	r.add(c, "storage", "allocated", "bytes/event", results.Lower, 1540, exact)
	r.add(c, "storage", "apparent", "bytes/event", results.Lower, 1490, exact)
	r.add(c, "storage", "write amplification", "bytes/byte", results.Lower, 3.4)
}

func (r *run) find(relay, scenario, code string, ok bool, evidence ...results.Evidence) {
	detail := "it does"
	if !ok {
		detail = "3 of 200 answers differ from the model"
	}
	r.rec.AddFinding(reporttest.Finding(relay, "", scenario, code, ok, detail, evidence...))
}

func (r *run) record() *results.Record {
	rec := r.rec.Snapshot()
	return reporttest.Described(&rec)
}

// limited marks a figure as the harness's.
func limited(m *results.Measurement) {
	m.AddStatus(results.Status{Code: results.StatusLimited, Cause: results.CauseCeiling})
}

// fixtures are built once: rendering must leave them as they are anyway.
func fixtures(t testing.TB) map[string]*results.Record {
	built.Do(func() { built.records = buildFixtures(t) })
	return built.records
}

var built struct {
	sync.Once
	records map[string]*results.Record
}

func buildFixtures(t testing.TB) map[string]*results.Record {
	out := map[string]*results.Record{}
	out["two-healthy"] = newRun(t, 1, bolt, sqlite).record()
	out["three-trials"] = newRun(t, 3, bolt, sqlite, contender{"close", "batch", 0.99}).record()
	out["one-relay"] = newRun(t, 1, bolt).record()
	out["syncs"] = syncRun(t, 2)

	killed := newRun(t, 1, bolt, sqlite)
	doomed := contender{"mine", "unknown", 0.4}
	killed.rec.SetRelay(results.Relay{Name: "mine", Command: "/opt/mine --port {port} --db {dir}", Version: "", Durability: "unknown", Outcome: results.OutcomeFailed,
		Reason: "killed by signal 9 during ingest.throughput after 4,211 events", LogTail: []string{"listening on 127.0.0.1:40123", "compaction started", "out of memory"}})
	killed.add(doomed, "ingest.visibility", "ok", "ms", results.Lower, 0.61, killed.spread(200))
	out["killed-mid-ingest"] = killed.record()

	partial := newRun(t, 1, bolt, contender{"a-relay-with-quite-a-long-name-indeed", "commit", 0.1})
	partial.find("ref-bolt", "query.thread.hot", results.CodeModel, false,
		results.Evidence{Code: results.EvidenceMissing, ID: strings.Repeat("ab", 32)},
		results.Evidence{Code: results.EvidenceExtra, ID: strings.Repeat("cd", 32), Cause: "superseded"})
	partial.add(sqlite, "query.deep-page.hot", "eose", "ms", results.Lower, 5, limited)
	partial.rec.Update(func(rec *results.Record) { rec.Partial, rec.FinishedAt, rec.Tool.Modified = true, nil, true })
	partial.rec.AddFinding(results.Finding{Relay: "ref-bolt", Scenario: "preflight", Code: "answers-count", Verdict: results.Stated,
		Cause: results.StatusText, Texts: map[string]string{"text": "no answer within 5 s"}})
	out["partial"] = partial.record()

	bad := newRun(t, 1, contender{reporttest.Hostile, "none", 1}, contender{"逐次リレー⚡", "batch", 0.8})
	bad.rec.SetRelay(results.Relay{Name: reporttest.Hostile, Command: reporttest.Hostile, Version: reporttest.Hostile, Durability: reporttest.Hostile, Outcome: results.OutcomeFailed, Reason: reporttest.Hostile, LogTail: []string{reporttest.Hostile, "```"},
		Notes: []string{reporttest.Hostile}, Capabilities: map[string]string{reporttest.Hostile: reporttest.Hostile}, Config: map[string]string{reporttest.Hostile: reporttest.Hostile + "\n````\n" + reporttest.Hostile}})
	bad.rec.Add(results.Measurement{Relay: reporttest.Hostile, Scenario: "ingest.throughput", Metric: "rejected: " + reporttest.Hostile, Unit: reporttest.Hostile, Better: results.None, Trials: []float64{4},
		Status: []results.Status{{Code: reporttest.Hostile, Cause: reporttest.Hostile, Texts: map[string]string{"text": reporttest.Hostile}}}})
	bad.rec.AddFinding(reporttest.Finding(reporttest.Hostile, "", reporttest.Hostile, reporttest.Hostile, false, reporttest.Hostile,
		results.Evidence{Code: reporttest.Hostile, ID: reporttest.Hostile, Cause: reporttest.Hostile, Text: reporttest.Hostile}, results.Evidence{Code: results.EvidenceText, Text: reporttest.Hostile}))
	bad.rec.Update(func(rec *results.Record) {
		rec.Options["args"] = []any{reporttest.Hostile}
		rec.Corpus.Source, rec.Environment.CPU = reporttest.Hostile, reporttest.Hostile
		rec.Corpus.Kinds[reporttest.Hostile], rec.Corpus.Dropped[reporttest.Hostile] = 3, 4
	})
	out["hostile-names"] = bad.record()
	out["throttled"] = throttled(t)
	addPairFixtures(t, out)
	addFetchFixtures(t, out)
	return out
}
