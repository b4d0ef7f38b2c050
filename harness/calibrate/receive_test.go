package calibrate

import (
	"context"
	"slices"
	"testing"
	"time"

	"relaybench/corpus/prepare"
	"relaybench/corpus/synthetic"
	"relaybench/results"
)

func TestTheReceivePathIsCalibratedStageByStage(t *testing.T) {
	c, err := prepare.Synthetic(t.Context(), synthetic.Spec{Events: 300, Seed: 1, BaseTime: 1_780_272_000}, prepare.Options{}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	calibrator := Stage{Corpus: c, effort: effort{rounds: 1, checks: 50 * time.Millisecond, coding: 5 * time.Millisecond}}
	if err := calibrator.receivePath(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ReceiveScanned, ReceiveKnown, ReceiveDispatched + ", 1 feeder", ReceiveDispatched + ", 4 feeders", ReceiveInline, ReceiveParallel} {
		i := slices.IndexFunc(calibrator.figures, func(f results.Calibration) bool { return f.Name == name })
		if i < 0 || calibrator.figures[i].Value <= 0 || calibrator.figures[i].Unit == "" {
			t.Errorf("%s: %+v", name, calibrator.figures)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := calibrator.receivePath(ended); err == nil {
		t.Error("it went on after its context had ended")
	}
}
