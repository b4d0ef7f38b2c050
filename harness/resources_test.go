package harness

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/relays"
	"relaybench/relays/machine"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
	"relaybench/relays/scripted"
	"relaybench/relays/wire"
	"relaybench/results"
)

// inScenario makes a trial of a relay that runs already in a scenario that has just begun, and what
// it records.
func inScenario(t *testing.T, url string) (*Trial, *results.Recorder) {
	t.Helper()
	process, err := relays.Start(t.Context(), &relays.Definition{Name: "scripted", URL: url}, "", relays.Settings{WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	recorder := results.NewRecorder(nil, nil)
	trial := &Trial{Boot: &Boot{Relay: process, recorder: recorder}, scenario: "query.thread.hot"}
	trial.begin()
	return trial, recorder
}

func recorded(r *results.Recorder, scenario, metric string) *results.Measurement {
	s := r.Snapshot()
	if i := slices.IndexFunc(s.Measurements, func(m results.Measurement) bool { return m.Scenario == scenario && m.Metric == metric }); i >= 0 {
		return &s.Measurements[i]
	}
	return nil
}

// burst answers whatever comes with so many frames in one segment.
func burst(t *testing.T, frames int) (url string) {
	t.Helper()
	const notice = `["NOTICE",""]`
	return scripted.Repeat(t, strings.Repeat("\x81"+string(rune(len(notice)))+notice, frames))
}

// TestAScenarioRecordsHowLongFramesWaitedToBeRead reads a burst of frames with a pause after the
// first: the others waited for as long.
func TestAScenarioRecordsHowLongFramesWaitedToBeRead(t *testing.T) {
	const frames, pause = 20, 10 * time.Millisecond
	conn, err := wire.Dial(t.Context(), burst(t, frames), wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Abort()
	conn.WatchUseful(time.Minute)
	trial, recorder := inScenario(t, referencetest.Serve(t, reference.Options{Store: reference.Null{}}))
	read := func() (arrived []time.Duration) {
		if err := conn.Send([]byte(`["REQ","s",{}]`)); err != nil {
			t.Fatal(err)
		}
		for range frames {
			_, at, err := conn.Read()
			if err != nil {
				t.Fatal(err)
			}
			if arrived = append(arrived, at); len(arrived) == 1 {
				time.Sleep(pause) // the consumer is what is slow here
			}
		}
		return arrived
	}
	begun := wire.Now()
	if arrived := read(); arrived[0] != arrived[1] {
		t.Fatalf("the frames did not come together: %v", arrived)
	}
	most := wire.Now() - begun
	trial.OwnReading()
	read() // counts no more in this scenario
	trial.OwnReading()
	trial.resources()
	m := recorded(recorder, trial.scenario, metricReading)
	if m == nil {
		t.Fatal("nothing was recorded")
	}
	if m.Unit != "ms" || m.Better != results.None || len(m.Trials) != 1 || m.Samples != frames {
		t.Errorf("%+v, want one trial of %d samples in ms", m, frames)
	}
	tail := recorded(recorder, trial.scenario, metricReadingTail)
	if tail == nil {
		t.Fatal("no p99 was recorded")
	}
	for what, v := range map[string]float64{"the median": m.Trials[0], "p99": tail.Trials[0]} {
		if v < Milliseconds(pause) || v > 1.125*Milliseconds(most) {
			t.Errorf("%s is %g ms; the consumer paused for %v, and all of it took %v", what, v, pause, most)
		}
	}
	if cpu := recorded(recorder, trial.scenario, metricOwnCPU); cpu == nil || len(cpu.Trials) != 1 {
		t.Errorf("the end of the scenario records the processors that nobody recorded before: %+v", cpu)
	}

	// What goes under another scenario begins anew.
	under := trial.Under(described("query.thread.varied", ""))
	under.OwnPart()
	if m := recorded(recorder, under.scenario, metricReading); m != nil {
		t.Errorf("nothing was read in it: %+v", m)
	}
	read()
	under.OwnPart()
	if m := recorded(recorder, under.scenario, metricReading); m == nil || m.Samples != frames {
		t.Errorf("%+v, want %d samples", m, frames)
	}
}

func TestAScenarioRecordsTheHarnessShareOfTheProcessors(t *testing.T) {
	procs := float64(runtime.GOMAXPROCS(0))
	url := referencetest.Serve(t, reference.Options{Store: reference.Null{}})
	begun, used := wire.Now(), machine.OwnCPU()
	trial, recorder := inScenario(t, url)
	const burnt = 60 * time.Millisecond
	start := wire.Now()
	for before := machine.OwnCPU(); machine.OwnCPU()-before < burnt; {
	}
	took := wire.Now() - start
	trial.OwnPart()
	least := 100 * burnt.Seconds() / (wire.Now() - begun).Seconds() / procs
	most := 100 * (machine.OwnCPU() - used).Seconds() / took.Seconds() / procs
	m := recorded(recorder, trial.scenario, metricOwnCPU)
	if m == nil || m.Unit != "%" || m.Better != results.None || len(m.Trials) != 1 {
		t.Fatalf("%+v", m)
	}
	if v := m.Trials[0]; v < least || v > most {
		t.Errorf("%g %%, want %g to %g", v, least, most)
	}
	trial.OwnPart()
	trial.resources()
	if m := recorded(recorder, trial.scenario, metricOwnCPU); len(m.Trials) != 1 {
		t.Errorf("recorded more than once: %+v", m)
	}
}
