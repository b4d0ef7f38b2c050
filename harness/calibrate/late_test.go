package calibrate

import (
	"slices"
	"testing"
	"time"

	"relaybench/corpus/prepare"
	"relaybench/corpus/synthetic"
	"relaybench/harness"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
	"relaybench/results"
)

// TestCalibrationMeasuresSomethingHoweverLateItIs gives each figure no time at all, as a machine
// does that is so busy that the time is over before connections are open and workers run. Each is
// of one event at least.
func TestCalibrationMeasuresSomethingHoweverLateItIs(t *testing.T) {
	t.Parallel()
	c, err := prepare.Synthetic(t.Context(), synthetic.Spec{Events: 50, Seed: 1, BaseTime: 1_780_272_000}, prepare.Options{}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	url := referencetest.Serve(t, reference.Options{Store: reference.Null{}})
	calibrator := Stage{Corpus: c, Options: harness.Options{Window: 10, Stall: 30 * time.Second}, effort: effort{rounds: 1}}
	if err := calibrator.checks(t.Context()); err != nil {
		t.Error(err)
	}
	for _, n := range []int{1, 4} {
		if err := calibrator.publishing(t.Context(), url, n); err != nil {
			t.Errorf("%d connections: %v", n, err)
		}
	}
	if err := calibrator.late(t.Context(), url, 4); err != nil {
		t.Error(err)
	}
	for _, want := range []results.Calibration{{Name: results.ChecksOneCore}, {Name: results.ChecksAllCores}, {Name: results.CeilingPublish, Labels: results.Labels{results.LabelConnections: "1"}},
		{Name: results.CeilingPublish, Labels: results.Labels{results.LabelConnections: "4"}}, {Name: results.LateMedian}, {Name: results.LateTail}} {
		name := want.Name
		if i := slices.IndexFunc(calibrator.figures, func(f results.Calibration) bool { return f.Name == name && f.Labels.Equal(want.Labels) }); i < 0 || calibrator.figures[i].Value <= 0 {
			t.Errorf("%s: %+v", name, calibrator.figures)
		}
	}
	if rate, err := calibrator.receive(t.Context(), url, 4, 0); err != nil || rate <= 0 {
		t.Errorf("receiving: %v events/s, %v", rate, err)
	}
}
