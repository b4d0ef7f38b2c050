package harness

import (
	"runtime"
	"time"

	"relaybench/harness/machine"
	"relaybench/harness/measure"
	"relaybench/harness/wire"
	"relaybench/relays"
)

// spent is what relay and harness had used at one moment.
type spent struct {
	relay    relays.Usage // of its whole process tree
	relaySet bool         // false for a relay that was not launched here
	own      time.Duration
	at       time.Duration
}

func (t *Trial) spent() spent {
	s := spent{own: machine.OwnCPU(), at: wire.Now()}
	if t.stopped {
		s.relay, s.relaySet = t.used, true
	} else if usage, err := t.Relay.Usage(); err == nil {
		t.used = together(t.past, usage)
		s.relay, s.relaySet = t.used, true
	}
	return s
}

// begin notes what was used before a scenario.
func (t *Trial) begin() {
	t.ownShareSet, t.unmeasured = false, false
	t.began = t.spent()
}

const mib = 1 << 20

// resources records what the relay's process tree used during the scenario, and what share of the processors the harness took itself. peak is the
// most memory that the relay was seen to hold, in bytes.
func (t *Trial) resources(peak uint64) {
	if t.unmeasured {
		return
	}
	before, after := t.began, t.spent()
	t.ownShare(before, after)
	if !before.relaySet || !after.relaySet {
		return
	}
	a, b := after.relay, before.relay
	t.Value("cpu", "s", measure.None, a.CPUSeconds-b.CPUSeconds)
	t.Value("peak rss", "MiB", measure.None, float64(max(peak, a.RSS))/mib)
	t.Value("read", "MiB", measure.None, float64(a.ReadBytes-b.ReadBytes)/mib)
	t.Value("written", "MiB", measure.None, float64(a.WriteBytes-b.WriteBytes)/mib)
	t.Value("open files", "files", measure.None, float64(a.OpenFiles))
	t.Value("context switches", "switches", measure.None, float64(a.ContextSwitches-b.ContextSwitches))
}

// ownShare records how much of the processors that it may use the harness kept busy, once in a scenario. From there on where it nears all of them
// (half of them, where the relay has to share them) the harness may hold the relay back.
func (t *Trial) ownShare(before, after spent) {
	if took := after.at - before.at; took > 0 && !t.ownShareSet {
		t.ownShareSet = true
		t.Value("harness cpu", "%", measure.None, 100*float64(after.own-before.own)/float64(took)/float64(runtime.GOMAXPROCS(0)))
	}
}

// coarseCPU is how much processor time, in seconds, is too little to divide: it is counted in steps of 10 ms.
const coarseCPU = 0.2

// Ingested records what it cost the relay to accept so many events, of so many bytes in all, since the scenario began. A scenario calls it as soon
// as they are accepted, before it looks at anything else.
func (t *Trial) Ingested(events, bytes int64) {
	before, after := t.began, t.spent()
	t.ownShare(before, after)
	if events == 0 || bytes == 0 || !before.relaySet || !after.relaySet {
		return
	}
	a, b := after.relay, before.relay
	cpu := measure.Measurement{Metric: "cpu per 1,000 accepted", Unit: "s", Better: measure.Lower,
		Trials: []float64{(a.CPUSeconds - b.CPUSeconds) * 1000 / float64(events)}, Samples: events}
	if a.CPUSeconds-b.CPUSeconds < coarseCPU {
		cpu.Note = "coarse: from less than 0.2 s of CPU time, which is counted in steps of 10 ms"
	}
	t.Measure(cpu)
	t.Value("write amplification while publishing", "bytes/byte", measure.None, float64(a.WriteBytes-b.WriteBytes)/float64(bytes))
	t.Value("switches per accepted event", "switches/event", measure.None, float64(a.ContextSwitches-b.ContextSwitches)/float64(events))
}
