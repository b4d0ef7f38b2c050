package harness

import (
	"testing"

	"relaybench/relays"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
	"relaybench/results"
)

// resourceTrial is one in a scenario in which its relay, which has ended, used so much.
func resourceTrial(t *testing.T) (*Trial, *results.Recorder) {
	t.Helper()
	trial, recorder := inScenario(t, referencetest.Serve(t, reference.Options{Store: reference.Null{}}))
	trial.stopped = true
	trial.used = relays.Usage{CPUSeconds: 12.5, RSS: 30 << 20, PeakRSS: 90 << 20, ReadBytes: 7 << 20, WriteBytes: 20 << 20, OpenFiles: 17, ContextSwitches: 1700}
	trial.began.relay = relays.Usage{CPUSeconds: 2.5, RSS: 20 << 20, PeakRSS: 80 << 20, ReadBytes: 4 << 20, WriteBytes: 10 << 20, OpenFiles: 9, ContextSwitches: 700}
	trial.began.known = true
	return trial, recorder
}

// recordedAs compares one figure in value, unit and direction.
func recordedAs(t *testing.T, trial *Trial, r *results.Recorder, metric, unit string, better results.Better, value float64) *results.Measurement {
	t.Helper()
	m := recorded(r, trial.scenario, metric)
	if m == nil || len(m.Trials) != 1 || m.Trials[0] != value || m.Unit != unit || m.Better != better {
		t.Fatalf("%s: %+v, want %g %s, %s", metric, m, value, unit, better)
	}
	return m
}

func TestResourcesAreWhatWasUsedSinceTheScenarioBegan(t *testing.T) {
	for _, test := range []struct{ watched, peak float64 }{{50, 50}, {0, 30}} {
		trial, recorder := resourceTrial(t)
		trial.commandPeak = uint64(test.watched) << 20
		trial.resources()
		recordedAs(t, trial, recorder, "cpu", "s", results.None, 10)
		recordedAs(t, trial, recorder, "peak rss", "MiB", results.None, test.peak)
		recordedAs(t, trial, recorder, "read", "MiB", results.None, 3)
		recordedAs(t, trial, recorder, "written", "MiB", results.None, 10)
		recordedAs(t, trial, recorder, "open files", "files", results.None, 17)
		recordedAs(t, trial, recorder, "context switches", "switches", results.None, 1000)
	}
	trial, recorder := resourceTrial(t)
	trial.unmeasured = true
	trial.resources()
	trial.unmeasured, trial.began.known = false, false // one that runs already
	trial.resources()
	if m := recorded(recorder, trial.scenario, "cpu"); m != nil {
		t.Errorf("%+v was recorded of a scenario that was none, or of a relay that is out of sight", m)
	}
}

func TestWhatAcceptingCostIsDividedByWhatWasAccepted(t *testing.T) {
	trial, recorder := resourceTrial(t)
	trial.Ingested(500, 5<<20)
	m := recordedAs(t, trial, recorder, "cpu per 1,000 accepted", "s", results.Lower, 20)
	expect(t, "samples", m.Samples, 500)
	expect(t, "coarse", m.Is(results.StatusCoarse) != nil, false)
	recordedAs(t, trial, recorder, "write amplification while publishing", "bytes/byte", results.None, 2)
	recordedAs(t, trial, recorder, "switches per accepted event", "switches/event", results.None, 2)

	trial, recorder = resourceTrial(t)
	trial.began.relay.CPUSeconds = 12.375
	trial.Ingested(500, 5<<20)
	m = recordedAs(t, trial, recorder, "cpu per 1,000 accepted", "s", results.Lower, 0.25)
	if s := m.Is(results.StatusCoarse); s == nil || s.Counts["below s"] != coarseCPU || s.Counts["step s"] != 0.01 {
		t.Errorf("an eighth of a second in steps of 10 ms is coarse: %+v", m.Status)
	}

	trial, recorder = resourceTrial(t)
	trial.began.relay.CPUSeconds, trial.used.CPUSeconds = 0, coarseCPU
	trial.Ingested(1000, 5<<20)
	m = recordedAs(t, trial, recorder, "cpu per 1,000 accepted", "s", results.Lower, coarseCPU)
	expect(t, "from there on it is not", m.Is(results.StatusCoarse) != nil, false)

	for _, nothing := range [][2]int64{{0, 5}, {5, 0}} {
		trial, recorder = resourceTrial(t)
		trial.Ingested(nothing[0], nothing[1])
		if m := recorded(recorder, trial.scenario, "cpu per 1,000 accepted"); m != nil {
			t.Errorf("%v: %+v", nothing, m)
		}
	}
}

func TestTwoProcessesOneAfterTheOtherAreAddedUp(t *testing.T) {
	first := relays.Usage{CPUSeconds: 1, RSS: 10, PeakRSS: 50, ReadBytes: 100, WriteBytes: 1000, OpenFiles: 5, ContextSwitches: 7}
	second := relays.Usage{CPUSeconds: 2, RSS: 20, PeakRSS: 40, ReadBytes: 200, WriteBytes: 2000, OpenFiles: 6, ContextSwitches: 8}
	expect(t, "together", together(first, second),
		relays.Usage{CPUSeconds: 3, RSS: 20, PeakRSS: 50, ReadBytes: 300, WriteBytes: 3000, OpenFiles: 6, ContextSwitches: 15})
}

func TestNoTimeHasNoShareOfTheProcessors(t *testing.T) {
	trial, recorder := resourceTrial(t)
	trial.ownPart(trial.began.own)
	if m := recorded(recorder, trial.scenario, metricOwnCPU); m != nil {
		t.Errorf("%+v", m)
	}
}

func TestARelayOutOfSightHasNoResources(t *testing.T) {
	trial, recorder := inScenario(t, referencetest.Serve(t, reference.Options{Store: reference.Null{}}))
	trial.resources()
	if m := recorded(recorder, trial.scenario, "cpu"); m != nil || trial.spent().known {
		t.Errorf("%+v", m)
	}
}
