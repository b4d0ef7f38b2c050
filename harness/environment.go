package harness

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"

	"relaybench/corpus"
	"relaybench/harness/measure"
)

// Version is the program's version; run.sh and packagers may set it at link time.
var Version = "0.1.0"

// Tool describes this build.
func Tool() measure.Tool {
	t := measure.Tool{Version: Version, Go: runtime.Version(), Verifier: corpus.Verifier}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				t.Revision = s.Value
			case "vcs.modified":
				t.Modified = s.Value == "true"
			}
		}
	}
	return t
}

// Environment describes this machine as far as it bears on the figures: no host name, no user, no path. What the system does not tell
// is left empty.
func Environment(ctx context.Context, workDir string) measure.Environment {
	e := measure.Environment{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), LoadBefore: LoadAverage(ctx)}
	if info, err := host.InfoWithContext(ctx); err == nil {
		e.Kernel = info.KernelVersion
		e.Distribution = info.Platform + " " + info.PlatformVersion
		if info.VirtualizationRole == "guest" {
			e.Virtualization = info.VirtualizationSystem
		}
	}
	if cpus, err := cpu.InfoWithContext(ctx); err == nil && len(cpus) > 0 {
		e.CPU = cpus[0].ModelName
	}
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		e.MemoryBytes = m.Total
	}
	if u, err := disk.UsageWithContext(ctx, workDir); err == nil {
		e.FileSystem = u.Fstype
	}
	return e
}

// LoadAverage returns the system's 1-minute load average, nil where there is none.
func LoadAverage(ctx context.Context) *float64 {
	l, err := load.AvgWithContext(ctx)
	if err != nil {
		return nil
	}
	return &l.Load1
}
