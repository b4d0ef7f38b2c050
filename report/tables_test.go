package report

import (
	"strings"
	"testing"

	"relaybench/results"
)

// layers is a run of reconciliations in layers: two without a relay, one with.
func layers() *results.Record {
	r := &results.Record{Relays: []results.Relay{{Name: "alpha", Outcome: results.OutcomeOK}},
		Metrics: []results.Metric{{Key: "warm", Title: "warm", Meaning: "the median of all"}, {Key: "engine", Title: "engine", Meaning: "the protocol"}, {Key: "need", Title: "need"}}}
	for _, key := range []string{"reconcile.harness", "reconcile.relay"} {
		r.Scenarios = append(r.Scenarios, results.Scenario{Key: key, Title: "about " + key, Section: "Reconcile", Order: 1, Primary: "warm", Layout: results.LayoutTable,
			Tables: []string{results.LabelSize}, Rows: []string{results.LabelLayer}})
	}
	add := func(relay, scenario, metric, unit string, better results.Better, value float64, labels ...string) {
		l := results.Labels{results.LabelSize: "1000"}
		for i := 0; i < len(labels); i += 2 {
			l[labels[i]] = labels[i+1]
		}
		r.Measurements = append(r.Measurements, results.Measurement{Relay: relay, Scenario: scenario, Metric: metric, Unit: unit, Better: better, Trials: []float64{value}, Labels: l})
	}
	for i, layer := range []string{"in memory", "loopback"} {
		ms := []float64{0.005, 123}[i]
		add("", "reconcile.harness", "warm", "ms", results.Lower, ms, results.LabelLayer, layer)
		add("", "reconcile.harness", "engine", "ms", results.None, ms/5, results.LabelLayer, layer, results.LabelRole, "harness")
		add("", "reconcile.harness", "engine", "ms", results.None, ms/4, results.LabelLayer, layer, results.LabelRole, "peer")
		add("", "reconcile.harness", "warm", "ms", results.Lower, 2*ms, results.LabelLayer, layer, results.LabelSize, "10")
	}
	add("alpha", "reconcile.relay", "warm", "ms", results.Lower, 250)
	add("alpha", "reconcile.relay", "need", "events", results.None, 200)
	return r
}

func TestTablesHaveARowForEachRelayAndForTheHarnessItself(t *testing.T) {
	out := string(renderTerminal(t, layers(), TerminalOptions{Width: 160}))
	text := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		"about reconcile.harness. about reconcile.relay. 1,000 items a side", "warm: the median of all; engine: the protocol.",
		"1,000 items a side warm engine: harness engine: peer need",
		"in memory 0.005 ms 0.001 ms 0.001 ms –",
		"loopback 123 ms 24.6 ms 30.8 ms –", "alpha 250 ms – – 200",
		"10 items a side warm in memory 0.010 ms", "loopback 246 ms",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if strings.Index(text, "in memory 0.005") > strings.Index(text, "alpha 250") {
		t.Error("the harness itself does not come first")
	}
	for _, unwanted := range []string{"HEAD TO HEAD", "★", "Only one relay took part", "not calibrated", "Nobody asked"} {
		if strings.Contains(out, unwanted) {
			t.Errorf("nothing is ranked, and the report says %q:\n%s", unwanted, out)
		}
	}
}
