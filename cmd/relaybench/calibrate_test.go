package main

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"relaybench/relays/machine"
	"relaybench/report"
	"relaybench/results"
)

// calibrated are the figures that a calibration has over these connections.
func calibrated(publishing, asking []int) (figures []results.Calibration) {
	for _, name := range []string{results.ClockRead, results.RecordCost, results.ChecksOneCore, results.ChecksAllCores, results.EventsParsed, results.FramesScanned,
		results.HexEncoded, results.HexDecoded, results.SyncMedian, results.SyncTail, results.EchoMedian, results.EchoTail, results.LateMedian, results.LateTail} {
		figures = append(figures, results.Calibration{Name: name})
	}
	over := func(name string, connections []int) {
		for _, n := range connections {
			figures = append(figures, results.Calibration{Name: name, Labels: results.Labels{results.LabelConnections: strconv.Itoa(n)}})
		}
	}
	over(results.CeilingPublish, publishing)
	over(results.CostPublish, publishing)
	over(results.CeilingReceive, asking)
	return figures
}

// calibratedAfter are those that a run takes once more at its end.
func calibratedAfter(publishing, asking []int) (figures []results.Calibration) {
	for _, c := range calibrated(publishing, asking) {
		switch c.Name {
		case results.EchoMedian, results.EchoTail, results.CeilingPublish, results.CeilingReceive:
			c.Labels = c.Labels.With(results.Labels{results.LabelWhen: "after"})
			figures = append(figures, c)
		}
	}
	return figures
}

// holds asserts that each figure is there once, in a unit, and not below nothing.
func holds(t *testing.T, figures, want []results.Calibration) {
	t.Helper()
	for _, w := range want {
		found := 0
		for _, c := range figures {
			if c.Name != w.Name || !c.Labels.Equal(w.Labels) {
				continue
			}
			if found++; c.Value < 0 || c.Unit == "" {
				t.Errorf("%s %v: %v %s", c.Name, c.Labels, c.Value, c.Unit)
			}
		}
		if found != 1 {
			t.Errorf("%d figures %q %v", found, w.Name, w.Labels)
		}
	}
}

func TestCalibrateMeasuresTheHarnessAndLeavesNothing(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	code, stdout, stderr := relaybench(t, "calibrate", "--short", "--json", "--work", work)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var got struct {
		Tool        results.Tool
		Environment results.Environment
		Calibration []results.Calibration
		Warnings    []string
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	holds(t, got.Calibration, calibrated([]int{1, 4}, []int{8}))
	if got.Tool.Verifier == "" || got.Environment.During == nil || got.Warnings == nil {
		t.Errorf("%+v", got)
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("left in the work folder: %v", left)
	}
}

// The same figure over 1 and over 4 connections is two figures.
func TestCalibrateTellsItsRowsApart(t *testing.T) {
	var b strings.Builder
	if err := report.Calibration(&b, &results.Record{Calibration: calibrated([]int{1, 4, 16}, []int{1, 8})}, report.TerminalOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(b.String()) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if names[name] && name != "" {
			t.Errorf("%q stands there twice:\n%s", name, b.String())
		}
		names[name] = true
	}
	if !names[results.CeilingPublish+", 16 connections"] {
		t.Errorf("no connections:\n%s", b.String())
	}
}

func TestCalibrateWithoutTheNullRelaySaysWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := relaybenchWith(t, []string{"REFRELAY_BIN=", "PATH=/nowhere"}, "calibrate", "--short")
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if !strings.Contains(stderr, "refrelay") || !strings.Contains(stdout, results.ChecksAllCores) || strings.Contains(stdout, results.CeilingPublish) {
		t.Errorf("stdout:\n%s\nstderr:\n%s", stdout, stderr)
	}
}

// TestRunRecordsMachineAndResources looks at what a run keeps beside its figures: its own ceilings,
// what the machine went through, who had which cores, and what the relay consumed.
func TestRunRecordsMachineAndResources(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	args := []string{"--quick", "--events=600", "--only=ingest.throughput,query.thread", "--skip=preflight", "--out", out}
	_, cannot := machine.Divide()
	if cannot == nil {
		args = append(args, "--pin")
	}
	code, _, stderr := relaybenchWith(t, withoutSQLite, args...)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	holds(t, r.Calibration, calibrated([]int{1, 4}, []int{4}))
	holds(t, r.Calibration, calibratedAfter([]int{1, 4}, []int{4}))
	e := r.Environment
	if e.During == nil || e.During.Seconds <= 0 || e.During.HarnessCores <= 0 {
		t.Errorf("during the run: %+v", e.During)
	}
	if cannot == nil {
		if len(e.HarnessCores) == 0 || len(e.RelayCores) == 0 || slices.ContainsFunc(e.HarnessCores, func(p int) bool { return slices.Contains(e.RelayCores, p) }) {
			t.Errorf("cores %v and %v, want some each and none in common", e.HarnessCores, e.RelayCores)
		}
		if r.Options["pin"] != true {
			t.Errorf("option pin is %v", r.Options["pin"])
		}
	}
	for _, want := range []struct {
		scenario, metric string
		better           results.Better
	}{
		{"ingest.throughput", "cpu per 1,000 accepted", results.Lower},
		{"ingest.throughput", "write amplification while publishing", results.None},
		{"ingest.throughput", "switches per accepted event", results.None},
		{"ingest.throughput", "peak rss", results.None},
		{"ingest.throughput", "harness cpu", results.None},
		{"ingest.throughput", "reading delay", results.None},
		{"query.thread.hot", "context switches", results.None},
		{"query.thread.hot", "harness cpu", results.None},
		{"query.thread.hot", "reading delay", results.None},
	} {
		i := slices.IndexFunc(r.Measurements, func(m results.Measurement) bool { return m.Scenario == want.scenario && m.Metric == want.metric })
		if i < 0 {
			t.Errorf("%s: no %s", want.scenario, want.metric)
		} else if m := r.Measurements[i]; m.Better != want.better || len(m.Trials) != 1 || m.Trials[0] < 0 {
			t.Errorf("%s: %s: %+v", want.scenario, want.metric, m)
		}
	}
}
