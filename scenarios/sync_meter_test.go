package scenarios

import (
	"testing"
	"time"

	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/machine"
	"relaybench/relays/scripted"
)

// TestWhatARunUsesIsWhatItUsedSinceItBegan, of the tool and of a relay that had used some before.
func TestWhatARunUsesIsWhatItUsedSinceItBegan(t *testing.T) {
	t.Parallel()
	const cpu = 30 * time.Millisecond
	notes := scripted.Notes(t, 10)
	relay := scripted.External(t, "relay", scripted.Script{CPUPerMessage: cpu, Memory: 64 << 20})
	p, err := relays.Start(t.Context(), relay.Definition, "", relays.Settings{WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Cleanup()
	defer p.Kill()
	publishAll(t, notes, p.URL())
	used := func() float64 {
		u, err := p.Usage()
		if err != nil {
			t.Fatal(err)
		}
		return u.CPUSeconds
	}
	for _, busy := range []bool{false, true} {
		own, its := machine.OwnCPU(), used()
		if its < (10*cpu - 20*time.Millisecond).Seconds() { // the system counts in ticks of 10 ms
			t.Errorf("%v s before", its)
		}
		stop := load.Measure(p)
		if busy {
			publishAll(t, notes, p.URL())
		}
		u := stop()
		if most := machine.OwnCPU() - own; u.Tool.CPU < 0 || u.Tool.CPU > most || !u.Tool.Known {
			t.Errorf("the tool used %v, of at most %v", u.Tool.CPU, most)
		}
		least := 0.0
		if busy {
			least = (10*cpu - 20*time.Millisecond).Seconds()
		}
		if got, most := u.Relays[0].CPU.Seconds(), used()-its; got < least-1e-6 || got > most+1e-6 || !u.Relays[0].Known {
			t.Errorf("the relay used %v s, of %v to %v", got, least, most)
		}
		if u.Relays[0].PeakRSS < 64<<20 {
			t.Errorf("%d bytes of memory", u.Relays[0].PeakRSS)
		}
	}
}
