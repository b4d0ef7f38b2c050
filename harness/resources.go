package harness

import (
	"runtime"
	"time"

	"relaybench/relays"
	"relaybench/relays/machine"
	"relaybench/relays/wire"
	"relaybench/results"
)

// own is what the harness itself had used at one moment, and how long the frames that it had read
// had waited for it.
type own struct {
	at, cpu time.Duration
	delays  *wire.Delays
}

func ownNow() own { return own{at: wire.Now(), cpu: machine.OwnCPU(), delays: wire.ReadingDelays()} }

// spent is what relay and harness had used at one moment.
type spent struct {
	relay relays.Usage // of its whole process tree
	known bool         // false for a relay that was not launched here
	own   own
}

func (b *Boot) spent() spent {
	known := b.stopped
	if !known {
		if usage, err := b.Relay.Usage(); err == nil {
			b.used, known = together(b.past, usage), true
		}
	}
	return spent{b.used, known, ownNow()}
}

// begin notes what was used before a scenario.
func (t *Trial) begin() { t.began = t.spent() }

// resourceMetrics describes what every scenario records beside its own figures.
var resourceMetrics = []results.Metric{
	{Key: "cpu", Title: "cpu", Role: results.RoleResource, Sums: true}, {Key: "peak rss", Title: "peak rss", Role: results.RoleResource},
	{Key: "read", Title: "read", Role: results.RoleResource, Sums: true}, {Key: "written", Title: "written", Role: results.RoleResource, Sums: true},
	{Key: "open files", Title: "open files", Role: results.RoleResource}, {Key: "context switches", Title: "context switches", Role: results.RoleResource, Sums: true},
	{Key: metricOwnCPU, Title: "harness cpu", Role: results.RoleResource}, {Key: metricReading, Title: "frames waited to be read", Role: results.RoleResource},
	{Key: metricReadingTail, Title: "frames waited, p99", Role: results.RoleResource},
	{Key: "cpu per 1,000 accepted", Title: "cpu per 1,000 accepted", Role: results.RoleResource},
}

// The harness's own evidence, in each scenario.
const (
	metricOwnCPU = "harness cpu" // % of the processors that it may use
	// ms from a frame's arrival to its reading: the median, which is held against medians, and p99.
	metricReading, metricReadingTail = "reading delay", "reading delay p99"
)

const mib = 1 << 20

// resources records what the relay's process tree used during the scenario, and what share of the
// processors the harness took itself.
func (t *Trial) resources() {
	if t.unmeasured {
		return
	}
	used, known := t.sinceBegan()
	if !known {
		return
	}
	most := max(t.commandPeak, used.RSS)
	for _, peak := range t.peaks {
		most = max(most, peak.Bytes())
	}
	t.Value("cpu", "s", results.None, used.CPUSeconds)
	t.Value("peak rss", "MiB", results.None, float64(most)/mib)
	t.Value("read", "MiB", results.None, float64(used.ReadBytes)/mib)
	t.Value("written", "MiB", results.None, float64(used.WriteBytes)/mib)
	t.Value("open files", "files", results.None, float64(used.OpenFiles))
	t.Value("context switches", "switches", results.None, float64(used.ContextSwitches))
}

// sinceBegan is what the relay has used since the scenario began, as far as that adds up, and else
// what it uses now. The harness's own part is recorded by the way.
func (t *Trial) sinceBegan() (used relays.Usage, known bool) {
	before, after := t.began, t.spent()
	t.ownPart(after.own)
	used = after.relay
	used.CPUSeconds -= before.relay.CPUSeconds
	used.ReadBytes -= before.relay.ReadBytes
	used.WriteBytes -= before.relay.WriteBytes
	used.ContextSwitches -= before.relay.ContextSwitches
	return used, before.known && after.known
}

// OwnPart records the harness's own part in what was measured since the scenario began, or since
// Under: evidence on whether the figures are the relay's. A scenario calls it as soon as the timed
// work is done, before it looks at anything else; the first call counts, and where there is none
// the end of the scenario does.
func (t *Trial) OwnPart() { t.ownPart(ownNow()) }

func (t *Trial) ownPart(now own) {
	t.reading(now)
	if took := now.at - t.began.own.at; took > 0 && !t.ownCPUSet {
		t.ownCPUSet = true
		t.Value(metricOwnCPU, "%", results.None, 100*float64(now.cpu-t.began.own.cpu)/float64(took)/float64(runtime.GOMAXPROCS(0)))
	}
}

// OwnReading is OwnPart for how long frames waited to be read, alone: where the latencies are
// measured first, and what comes after them is another load.
func (t *Trial) OwnReading() { t.reading(ownNow()) }

func (t *Trial) reading(now own) {
	waited := now.delays.Since(t.began.own.delays)
	if waited.Samples == 0 || t.readingSet {
		return
	}
	t.readingSet = true
	for metric, q := range map[string]float64{metricReading: 0.5, metricReadingTail: 0.99} {
		t.Measure(results.Measurement{Metric: metric, Unit: "ms", Better: results.None,
			Trials: []float64{Milliseconds(waited.Quantile(q))}, Samples: int64(waited.Samples)})
	}
}

// coarseCPU is how much processor time, in seconds, is too little to divide: it is counted in steps
// of 10 ms.
const coarseCPU = 0.2

// Ingested records what it cost the relay to accept so many events, of so many bytes in all, since
// the scenario began. A scenario calls it as soon as they are accepted, before it looks at anything
// else.
func (t *Trial) Ingested(events, bytes int64) {
	used, known := t.sinceBegan()
	if events == 0 || bytes == 0 || !known {
		return
	}
	cpu := results.Measurement{Metric: "cpu per 1,000 accepted", Unit: "s", Better: results.Lower,
		Trials: []float64{used.CPUSeconds * 1000 / float64(events)}, Samples: events}
	if used.CPUSeconds < coarseCPU {
		cpu.AddStatus(results.Status{Code: results.StatusCoarse, Counts: map[string]float64{"below s": coarseCPU, "step s": 0.01}})
	}
	t.Measure(cpu)
	t.Value("write amplification while publishing", "bytes/byte", results.None, float64(used.WriteBytes)/float64(bytes))
	t.Value("switches per accepted event", "switches/event", results.None, float64(used.ContextSwitches)/float64(events))
}
