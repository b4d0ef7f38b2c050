package report

import (
	"cmp"
	"fmt"
	"strings"

	"relaybench/results"
)

// From where on what a machine did is worth a warning.
const (
	busyShare    = 0.1     // of the cores, used by other programs
	loadShare    = 0.5     // of the cores, as load average, where nothing better is known
	stolenShare  = 0.02    // of the cores, given to others by the hypervisor
	swapActivity = 1 << 20 // bytes
	swapShare    = 0.1     // of the memory
	harnessShare = 50.0    // per cent of the processors that harness and relay share
	pinnedShare  = 90.0    // per cent of the processors that are the harness's own
	noSyncBelow  = 0.02    // ms: faster than any storage that keeps what it promised
)

// MachineWarnings says what about the machine speaks against the figures: what is wrong, and what
// to do about it.
func MachineWarnings(r *results.Record) (out []string) {
	r = Sanitized(r)
	e, d := &r.Environment, cmp.Or(r.Environment.During, &results.Conditions{})
	before, load := e.BusyBefore, e.LoadBefore
	if before != nil {
		load = nil // which says less
	}
	before, load = cmp.Or(before, new(float64)), cmp.Or(load, new(float64))
	figures := map[string]float64{}
	for _, c := range r.Calibration {
		figures[c.Name] = c.Value
	}
	one, together := figures[results.ChecksOneCore], figures[results.ChecksAllCores]
	fsync, synced := figures[results.SyncMedian]
	pinned := len(e.HarnessCores) > 0
	harness, where := harnessLoad(r, pinned)
	facts := &results.Finding{
		Texts: map[string]string{"governor": e.Governor, "file system": e.FileSystem, "where": where},
		Counts: map[string]float64{"cores": float64(e.Cores), "before": *before, "load": *load,
			"background": d.BackgroundCores, "stolen": d.StolenCores,
			"quota": e.QuotaCores, "periods": float64(d.ThrottledPeriods), "throttled": d.ThrottledSeconds, "heat": float64(d.ThermalThrottles),
			"swapped": float64(d.SwappedBytes), "in swap": float64(d.SwapUsedBytes), "fsync": fsync,
			"one": one, "together": together, "harness": harness},
	}
	busy := func(used, share float64) bool { return e.Cores > 0 && used > share*float64(e.Cores) }
	usable := float64(e.Cores) // whose time the run could have
	if e.QuotaCores > 0 {
		usable = min(e.QuotaCores, usable)
	}
	swapped := d.SwappedBytes > swapActivity
	for _, x := range []struct {
		warning string
		holds   bool
	}{
		{"busy-before", busy(*before, busyShare)},
		{"load", busy(*load, loadShare)},
		{"busy", busy(d.BackgroundCores, busyShare)},
		{"stolen", busy(d.StolenCores, stolenShare)},
		{"governor", e.Governor != "" && e.Governor != "performance"},
		{"quota", d.ThrottledPeriods > 0},
		{"heat", d.ThermalThrottles > 0},
		{"swapping", swapped},
		{"swap-in-use", !swapped && e.MemoryBytes > 0 && float64(d.SwapUsedBytes) > swapShare*float64(e.MemoryBytes)},
		{"in-memory", e.InMemory()},
		{"no-sync", !e.InMemory() && synced && fsync < noSyncBelow},
		{"shared-cores", usable >= 2 && len(e.HarnessCores) != 1 && one > 0 && together > 0 && together < one},
		{"own-cores", pinned && where != ""},
		{"harness", !pinned && where != ""},
	} {
		if x.holds {
			out = append(out, expand(facts, word("machine", x.warning)))
		}
	}
	return out
}

// harnessLoad is the most that the harness itself took of the processors, in per cent, and where it
// took too much; "" for nowhere.
func harnessLoad(r *results.Record, pinned bool) (worst float64, where string) {
	limit := harnessShare
	if pinned {
		limit = pinnedShare
	}
	var scenarios, relays []string
	for i := range r.Measurements {
		m := &r.Measurements[i]
		if share, ok := m.Value(); ok && m.Metric == "harness cpu" && share >= limit {
			worst = max(worst, share)
			scenarios, relays = AddNew(scenarios, m.Scenario), AddNew(relays, m.Relay)
		}
	}
	if more := len(scenarios) - 3; more > 0 {
		scenarios = append(scenarios[:3], fmt.Sprint(more, " more"))
	}
	if len(scenarios) > 0 {
		where = fmt.Sprintf("with %s in %s", And(relays...), And(scenarios...))
	}
	return worst, where
}

// machineParts lists what describes the machine.
func machineParts(e *results.Environment) []string {
	cores, pinned, memory, disk := "", "", "", e.FileSystem
	if e.Cores > 0 {
		cores = Count(e.Cores, "core")
	}
	if e.Cores > 0 && e.QuotaCores > 0 {
		cores += fmt.Sprintf(" with a quota of %s", Number(e.QuotaCores))
	}
	if len(e.HarnessCores) > 0 {
		pinned = fmt.Sprintf("relaybench on %s, relays on %s", joined(e.HarnessCores), joined(e.RelayCores))
	}
	if e.MemoryBytes > 0 {
		memory = fmt.Sprintf("%.1f GiB", float64(e.MemoryBytes)/(1<<30))
	}
	if e.MemoryBytes > 0 && e.MemoryLimit > 0 {
		memory += ", of which a control group allows " + BytesText(float64(e.MemoryLimit))
	}
	if e.Disk != "" {
		disk = strings.TrimPrefix(disk+" on "+e.Disk, " on ")
	}
	if e.Rotational {
		disk += " (turning)"
	}
	return telling([]string{e.CPU, cores, pinned, Prefixed("governor ", e.Governor), memory, cmp.Or(e.Distribution, e.OS), e.Kernel, e.Virtualization, e.Container, disk})
}

func joined(numbers []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(numbers)), ","), "[]")
}
