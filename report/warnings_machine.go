package report

import (
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

// MachineWarnings says what about the machine speaks against the figures: what is wrong, and what to do about it.
func MachineWarnings(r *results.Record) []string {
	r = Sanitized(r)
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	e := &r.Environment
	warnOfOthers(e, say)
	warnOfProcessor(e, say)
	warnOfMemory(e, say)
	figures := map[string]float64{}
	for _, c := range r.Calibration {
		figures[c.Name] = c.Value
	}
	switch synced, ok := figures[results.SyncMedian]; {
	case e.InMemory():
		say("The relays' data lay in memory (%s): writing and syncing cost nothing, and disk figures mean little. Put it on a disk with --work DIR.", e.FileSystem)
	case ok && synced < noSyncBelow:
		say("fsync takes %s ms: the disk promises what it has not kept, so that a relay that syncs before its OK pays nothing for it. Choose another disk with --work DIR.", Number(synced))
	}
	one, all := figures[results.ChecksOneCore], figures[results.ChecksAllCores]
	if processors := usable(e); processors >= 2 && len(e.HarnessCores) != 1 && one > 0 && all > 0 && all < one {
		say("All cores together checked %s signatures a second and one alone %s: something else takes them, or a quota does. Measure on a quieter machine.", Number(all), Number(one))
	}
	warnOfHarness(r, say)
	return out
}

func warnOfOthers(e *results.Environment, say func(string, ...any)) {
	cores := float64(e.Cores)
	if e.Cores == 0 {
		return
	}
	switch {
	case e.BusyBefore != nil:
		if *e.BusyBefore > busyShare*cores {
			say("Other programs kept %s of %s busy just before the run. Stop them, and measure again.", Number(*e.BusyBefore), Count(e.Cores, "core"))
		}
	case e.LoadBefore != nil && *e.LoadBefore > loadShare*cores:
		say("The machine was busy before the run: load %.2f on %s. Stop other programs, and measure again.", *e.LoadBefore, Count(e.Cores, "core"))
	}
	d := e.During
	if d == nil {
		return
	}
	if d.BackgroundCores > busyShare*cores {
		say("Other programs kept %s of %s busy during the run. Stop them, and measure again.", Number(d.BackgroundCores), Count(e.Cores, "core"))
	}
	if d.StolenCores > stolenShare*cores {
		say("The hypervisor gave %s of %s to other machines during the run. Measure on a machine that is not shared.", Number(d.StolenCores), Count(e.Cores, "core"))
	}
}

func warnOfProcessor(e *results.Environment, say func(string, ...any)) {
	if e.Governor != "" && e.Governor != "performance" {
		say("The CPU frequency governor is %s: clock speeds come and go. Set it with: cpupower frequency-set --governor performance.", e.Governor)
	}
	d := e.During
	if d == nil {
		return
	}
	if d.ThrottledPeriods > 0 {
		quota := ""
		if e.QuotaCores > 0 {
			quota = fmt.Sprintf(" of %s cores", Number(e.QuotaCores))
		}
		say("The control group's CPU quota%s held processes up in %s, %s s in all. Raise the quota, or run outside the container.",
			quota, Count(int(min(d.ThrottledPeriods, 1<<31)), "period"), Number(d.ThrottledSeconds))
	}
	if d.ThermalThrottles > 0 {
		say("The processor slowed itself down for heat or power %s. Let it cool, or lower the load, and measure again.", Count(int(min(d.ThermalThrottles, 1<<31)), "time"))
	}
}

func warnOfMemory(e *results.Environment, say func(string, ...any)) {
	d := e.During
	if d == nil {
		return
	}
	switch {
	case d.SwappedBytes > swapActivity:
		say("The machine moved %s to and from swap during the run. Free memory, or use a smaller corpus.", BytesText(float64(d.SwappedBytes)))
	case e.MemoryBytes > 0 && float64(d.SwapUsedBytes) > swapShare*float64(e.MemoryBytes):
		say("%s of swap are in use: memory is short. Free some, or use a smaller corpus.", BytesText(float64(d.SwapUsedBytes)))
	}
}

// warnOfHarness names the scenario in which the harness itself took the most of the processors.
func warnOfHarness(r *results.Record, say func(string, ...any)) {
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
	if pinned {
		say("relaybench used up to %.0f %% of its own cores %s: it may have held the relay back. Use a machine with more cores.", worst, where)
	} else {
		say("relaybench itself used up to %.0f %% of the processors %s, and so took them from the relay. Use a machine with more cores, and --pin.", worst, where)
	}
}

// usable is how many cores' time the run could have.
func usable(e *results.Environment) float64 {
	if e.QuotaCores > 0 {
		return min(e.QuotaCores, float64(e.Cores))
	}
	return float64(e.Cores)
}

// MachineText describes the machine in one line.
func MachineText(r *results.Record) string {
	return strings.Join(machineParts(&Sanitized(r).Environment), " · ")
}

// machineParts lists what describes the machine.
func machineParts(e *results.Environment) []string {
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(e.CPU)
	if e.Cores > 0 {
		cores := Count(e.Cores, "core")
		if e.QuotaCores > 0 {
			cores += fmt.Sprintf(" with a quota of %s", Number(e.QuotaCores))
		}
		add(cores)
	}
	if len(e.HarnessCores) > 0 {
		add(fmt.Sprintf("relaybench on %s, relays on %s", joined(e.HarnessCores), joined(e.RelayCores)))
	}
	add(Prefixed("governor ", e.Governor))
	if e.MemoryBytes > 0 {
		memory := memoryText(e.MemoryBytes)
		if e.MemoryLimit > 0 {
			memory += ", of which a control group allows " + BytesText(float64(e.MemoryLimit))
		}
		add(memory)
	}
	if e.Distribution != "" {
		add(e.Distribution)
	} else {
		add(e.OS)
	}
	add(e.Kernel)
	add(e.Virtualization)
	add(e.Container)
	disk := e.FileSystem
	if e.Disk != "" {
		disk = strings.TrimPrefix(disk+" on "+e.Disk, " on ")
	}
	if e.Rotational {
		disk += " (turning)"
	}
	add(disk)
	return parts
}

func joined(numbers []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(numbers)), ","), "[]")
}
