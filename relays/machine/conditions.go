package machine

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"relaybench/results"
)

// ticksPerSecond is the unit of /proc/stat: USER_HZ, the same on every architecture that Go
// supports.
const ticksPerSecond = 100

// A Watch sees what the machine goes through.
type Watch struct {
	system System
	start  time.Time
	before counters
}

// counters are totals that only grow, in seconds, bytes and times.
type counters struct {
	known           bool    // the kernel counts the machine's processor time
	worked, stolen  float64 // of all processors together
	harness, relays float64
	periods         uint64
	held            time.Duration
	thermal         uint64
	swapped         uint64
}

// Watch begins to watch.
func (s System) Watch() *Watch {
	return &Watch{system: s, start: time.Now(), before: s.counters()}
}

// Conditions returns what happened since the watch began. Relays that run still count as
// background: stop them first.
func (w *Watch) Conditions() results.Conditions {
	now, before := w.system.counters(), w.before
	seconds := time.Since(w.start).Seconds()
	c := results.Conditions{
		Seconds:          seconds,
		HarnessCores:     max(0, now.harness-before.harness) / seconds,
		ThrottledPeriods: grown(now.periods, before.periods),
		ThrottledSeconds: max(0, now.held-before.held).Seconds(),
		ThermalThrottles: grown(now.thermal, before.thermal),
		SwappedBytes:     grown(now.swapped, before.swapped),
		SwapUsedBytes:    w.system.swapUsed(),
	}
	if now.known && before.known {
		c.StolenCores = max(0, now.stolen-before.stolen) / seconds
		c.BackgroundCores = max(0, now.worked-before.worked-(now.harness-before.harness)-(now.relays-before.relays)) / seconds
	}
	return c
}

// Background watches for a while, in which nothing that was launched here may run, and returns how
// many cores' worth of work other programs did.
func (s System) Background(ctx context.Context, d time.Duration) (cores float64, ok bool) {
	w := s.Watch()
	if !w.before.known {
		return 0, false
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return 0, false
	}
	return w.Conditions().BackgroundCores, true
}

// grown is how far a counter has come; one that was set back has not.
func grown(now, before uint64) uint64 { return now - min(now, before) }

func (s System) counters() (c counters) {
	line, _, _ := strings.Cut(s.read("/proc/stat"), "\n")
	// cpu user nice system idle iowait irq softirq steal … Interrupts are left out: those of the
	// loopback are served on behalf of whoever sends, and not counted as anyone's.
	if f := strings.Fields(line); len(f) > 8 && f[0] == "cpu" {
		ticks := func(i int) float64 {
			n, _ := strconv.ParseUint(f[i], 10, 64)
			return float64(n) / ticksPerSecond
		}
		c.known, c.worked, c.stolen = true, ticks(1)+ticks(2)+ticks(3), ticks(8)
	}
	c.harness, c.relays = OwnCPU().Seconds(), processorTime(syscall.RUSAGE_CHILDREN).Seconds()
	c.periods, c.held = s.throttled()
	c.thermal = s.thermalThrottles()
	vm := s.read("/proc/vmstat")
	c.swapped = (field(vm, "pswpin") + field(vm, "pswpout")) * uint64(os.Getpagesize())
	return c
}

func (s System) swapUsed() uint64 {
	info := s.read("/proc/meminfo") // in KiB
	return grown(field(info, "SwapTotal:"), field(info, "SwapFree:")) * 1024
}

// OwnCPU is the processor time that this process has used.
func OwnCPU() time.Duration { return processorTime(syscall.RUSAGE_SELF) }

func processorTime(whose int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(whose, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
