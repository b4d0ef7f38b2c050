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
	e, d := &r.Environment, r.Environment.During
	if d == nil {
		d = &results.Conditions{}
	}
	warn := func(holds bool, format string, args ...any) {
		if holds {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	cores, all := float64(e.Cores), Count(e.Cores, "core")
	before, load := -1.0, -1.0 // where they are not known
	if e.BusyBefore != nil {
		before = *e.BusyBefore
	} else if e.LoadBefore != nil {
		load = *e.LoadBefore
	}
	warn(cores > 0 && before > busyShare*cores, "Other programs kept %s of %s busy just before the run. Stop them, and measure again.", Number(before), all)
	warn(cores > 0 && load > loadShare*cores, "The machine was busy before the run: load %.2f on %s. Stop other programs, and measure again.", load, all)
	warn(cores > 0 && d.BackgroundCores > busyShare*cores,
		"Other programs kept %s of %s busy during the run. Stop them, and measure again.", Number(d.BackgroundCores), all)
	warn(cores > 0 && d.StolenCores > stolenShare*cores,
		"The hypervisor gave %s of %s to other machines during the run. Measure on a machine that is not shared.", Number(d.StolenCores), all)

	warn(e.Governor != "" && e.Governor != "performance",
		"The CPU frequency governor is %s: clock speeds come and go. Set it with: cpupower frequency-set --governor performance.", e.Governor)
	quota := ""
	if e.QuotaCores > 0 {
		quota = fmt.Sprintf(" of %s cores", Number(e.QuotaCores))
	}
	warn(d.ThrottledPeriods > 0, "The control group's CPU quota%s held processes up in %s, %s s in all. Raise the quota, or run outside the container.",
		quota, Count(int(min(d.ThrottledPeriods, 1<<31)), "period"), Number(d.ThrottledSeconds))
	warn(d.ThermalThrottles > 0, "The processor slowed itself down for heat or power %s. Let it cool, or lower the load, and measure again.",
		Count(int(min(d.ThermalThrottles, 1<<31)), "time"))

	swapped := d.SwappedBytes > swapActivity
	warn(swapped, "The machine moved %s to and from swap during the run. Free memory, or use a smaller corpus.", BytesText(float64(d.SwappedBytes)))
	warn(!swapped && e.MemoryBytes > 0 && float64(d.SwapUsedBytes) > swapShare*float64(e.MemoryBytes),
		"%s of swap are in use: memory is short. Free some, or use a smaller corpus.", BytesText(float64(d.SwapUsedBytes)))

	figures := map[string]float64{}
	for _, c := range r.Calibration {
		figures[c.Name] = c.Value
	}
	synced, known := figures[results.SyncMedian]
	warn(e.InMemory(), "The relays' data lay in memory (%s): writing and syncing cost nothing, and disk figures mean little. Put it on a disk with --work DIR.", e.FileSystem)
	warn(!e.InMemory() && known && synced < noSyncBelow,
		"fsync takes %s ms: the disk promises what it has not kept, so that a relay that syncs before its OK pays nothing for it. Choose another disk with --work DIR.", Number(synced))
	one, together := figures[results.ChecksOneCore], figures[results.ChecksAllCores]
	warn(usable(e) >= 2 && len(e.HarnessCores) != 1 && one > 0 && together > 0 && together < one,
		"All cores together checked %s signatures a second and one alone %s: something else takes them, or a quota does. Measure on a quieter machine.", Number(together), Number(one))
	warnOfHarness(r, warn)
	return out
}

// warnOfHarness names the scenario in which the harness itself took the most of the processors.
func warnOfHarness(r *results.Record, warn func(bool, string, ...any)) {
	limit, pinned := harnessShare, len(r.Environment.HarnessCores) > 0
	if pinned {
		limit = pinnedShare
	}
	var scenarios, relays []string
	worst := 0.0
	for i := range r.Measurements {
		m := &r.Measurements[i]
		share, ok := m.Value()
		if m.Metric != "harness cpu" || !ok || share < limit {
			continue
		}
		worst = max(worst, share)
		scenarios, relays = AddNew(scenarios, m.Scenario), AddNew(relays, m.Relay)
	}
	if len(scenarios) == 0 {
		return
	}
	where := fmt.Sprintf("with %s in %s", And(relays...), firstOf(scenarios, 3))
	warn(pinned, "relaybench used up to %.0f %% of its own cores %s: it may have held the relay back. Use a machine with more cores.", worst, where)
	warn(!pinned, "relaybench itself used up to %.0f %% of the processors %s, and so took them from the relay. Use a machine with more cores, and --pin.", worst, where)
}

// usable is how many cores' time the run could have.
func usable(e *results.Environment) float64 {
	if e.QuotaCores > 0 {
		return min(e.QuotaCores, float64(e.Cores))
	}
	return float64(e.Cores)
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
		memory = memoryText(e.MemoryBytes)
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
