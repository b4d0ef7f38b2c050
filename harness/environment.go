package harness

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"

	"relaybench/corpus"
	"relaybench/relays/machine"
	"relaybench/results"
)

// Version is the program's version; run.sh and packagers may set it at link time.
var Version = "0.1.0"

// Tool describes this build.
func Tool() results.Tool {
	t := results.Tool{Version: Version, Go: runtime.Version(), Verifier: corpus.Verifier}
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

// Environment describes this machine as far as it bears on the figures: no host name, no user, no
// path. What the system does not tell is left empty. The relays' data goes below workDir.
func Environment(ctx context.Context, workDir string) results.Environment {
	var here machine.System
	e := results.Environment{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), QuotaCores: here.QuotaCores(), MemoryLimit: here.MemoryLimit(), Governor: here.Governor(),
		Virtualization: here.Hypervisor(), Container: here.Container(os.Getenv), LoadBefore: LoadAverage(ctx)}
	if info, err := host.InfoWithContext(ctx); err == nil {
		e.Kernel = info.KernelVersion
		e.Distribution = info.Platform + " " + info.PlatformVersion
	}
	if cpus, err := cpu.InfoWithContext(ctx); err == nil && len(cpus) > 0 {
		e.CPU = cpus[0].ModelName
	}
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		e.MemoryBytes = m.Total
	}
	e.FileSystem, e.Disk, e.Rotational = here.FileSystem(workDir)
	if e.FileSystem == "" {
		if u, err := disk.UsageWithContext(ctx, workDir); err == nil {
			e.FileSystem = u.Fstype
		}
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

// quietFor is how long the machine is watched before the run to see what others do on it.
const quietFor = 300 * time.Millisecond

// Background returns how many cores' worth of work other programs do at present; nil where the
// system does not tell. Nothing that was launched here may run meanwhile.
func Background(ctx context.Context) *float64 {
	cores, ok := machine.System{}.Background(ctx, quietFor)
	if !ok {
		return nil
	}
	return &cores
}
