package results

import (
	"strings"
	"testing"
	"time"
)

// fullRecord has every field of the record set, so that what is tested with it is tested for all of
// them.
func fullRecord(t testing.TB) *Record {
	t.Helper()
	h := NewHistogram()
	for i := range 2000 {
		h.Record(time.Duration(i) * time.Microsecond)
	}
	kind := 0
	finished, load := time.Date(2026, 8, 30, 12, 1, 0, 0, time.UTC), 0.25
	r := &Record{
		Schema: Schema, Partial: true, StartedAt: finished.Add(-time.Minute), FinishedAt: &finished,
		Tool: Tool{Version: "0.1.0", Revision: "abc", Modified: true, Go: "go1.26.8", Verifier: "btcec/v2"},
		Environment: Environment{OS: "linux", Arch: "amd64", Kernel: "6.8", Distribution: "Debian 12", CPU: "a CPU", Cores: 2, MemoryBytes: 8 << 30,
			Virtualization: "kvm", FileSystem: "ext4", LoadBefore: &load, LoadAfter: &load, QuotaCores: 1.5, Governor: "performance", Container: "docker",
			Disk: "NVMe", Rotational: true, HarnessCores: []int{0}, RelayCores: []int{1}, BusyBefore: &load,
			During: &Conditions{Seconds: 60, BackgroundCores: 0.1, StolenCores: 0.01, HarnessCores: 0.8, ThrottledPeriods: 3, ThrottledSeconds: 0.2, ThermalThrottles: 2,
				SwappedBytes: 4096, SwapUsedBytes: 8192}},
		Calibration: []Calibration{{Name: "null relay, EVENT to OK", Labels: Labels{LabelConnections: "4"}, Value: 58, Unit: "events/s"}},
		Corpus: Corpus{Source: "synthetic", Fingerprint: strings.Repeat("0a", 32), Events: 10, Bytes: 6000,
			Kinds: map[string]int{"1": 9, "30023": 1}, Dropped: map[string]int{"bad signature": 1}},
		Options: map[string]any{"events": 10.0, "args": []any{"--events", "10"}},
		Relays: []Relay{{Name: "a", Command: "a --port {port}", URL: "ws://127.0.0.1:1", Config: map[string]string{"a.conf": "x = 1\n"}, Version: "1",
			SHA256: strings.Repeat("0b", 32), Durability: "commit", Capabilities: map[string]string{"nip77": "yes"}, Notes: []string{"a note"},
			Outcome: OutcomeFailed, Reason: "killed", LogTail: []string{"last words"}},
			{Name: "b", Config: map[string]string{"b.conf": ""}, Capabilities: map[string]string{"nip77": "no"}, Durability: "unknown", Notes: []string{""},
				Outcome: OutcomeFailed, Reason: "killed", LogTail: []string{""}}},
		Measurements: []Measurement{{Relay: "a", Peer: "b", Scenario: "ingest.throughput", Metric: "ok latency", Unit: "ms", Better: Lower,
			Trials: []float64{1, 2}, Clamped: 1, Timeline: []float64{1, 2}, Exact: true,
			Labels: Labels{LabelForm: "hot"}, Status: []Status{{Code: StatusIncomplete, Cause: CauseCut, Because: "cap", Counts: map[string]float64{"n": 1}, Texts: map[string]string{"limit": "--cell-time 1s"}}}}},
		Scenarios: []Scenario{{Key: "ingest.throughput", Title: "Publishing", Section: "Ingest", Order: 1, Primary: "accepted", Unit: "events/s", Layout: LayoutBars,
			Uses: []string{UsesIDs}, Headlines: []Headline{{Metric: "accepted", Title: "accepted/s", Labels: Labels{LabelForm: "raw"}}}, Durability: true, Ceiling: CeilingIngest, RoundTrips: []string{"ok latency"}}},
		Metrics: []Metric{{Key: "ok latency", Title: "EVENT to OK", Meaning: "from the EVENT to its OK", Role: RoleFigure, Sums: true}},
		Findings: []Finding{{Relay: "a", Peer: "b", Scenario: "preflight", Labels: Labels{LabelForm: "hot"}, Code: CodeBadSignature, Verdict: Failed, Cause: "accepted",
			Counts: map[string]float64{"of": 1}, Texts: map[string]string{"answer": "OK true"}, BearsOn: []Scope{{Scenario: "query.*", Uses: UsesKinds, Role: AsRelay, Labels: Labels{LabelForm: "hot"}}},
			Blames: "a", Evidence: []Evidence{{Code: EvidenceExtra, ID: strings.Repeat("0c", 32), Kind: &kind, Cause: "superseded", Count: 3, Text: "words"}}}},
	}
	if err := r.Measurements[0].SetHistogram(h); err != nil {
		t.Fatal(err)
	}
	r.Measurements[0].Clamped = 1
	return r
}
