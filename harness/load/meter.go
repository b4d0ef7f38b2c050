package load

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"relaybench/relays"
	"relaybench/relays/machine"
)

// Usage is what a run used: relaybench itself, and each relay's process tree.
type Usage struct {
	Tool   Spent
	Relays []Spent // in the order in which they were given
}

// Spent is what one party used.
type Spent struct {
	Known   bool // false where the system does not tell: of a relay that was not launched here
	CPU     time.Duration
	PeakRSS uint64 // bytes: the most that was seen resident
}

// meterEvery is how often the tool's own memory is looked at.
const meterEvery = 200 * time.Millisecond

// Measure begins to measure what the tool and the relays use. stop ends that and returns it, and
// the same again when it is called again.
func Measure(of ...*relays.Process) (stop func() *Usage) {
	own, _ := process.NewProcess(int32(os.Getpid())) // nil where the system does not tell
	cpu := func() []Spent {
		all := []Spent{{Known: own != nil, CPU: machine.OwnCPU()}}
		for _, p := range of {
			u, err := p.Usage()
			all = append(all, Spent{Known: err == nil, CPU: time.Duration(u.CPUSeconds * float64(time.Second))})
		}
		return all
	}
	var peaks []*relays.Peak
	for _, p := range of {
		peaks = append(peaks, p.Peak())
	}
	began := cpu()
	running, end := context.WithCancel(context.Background())
	most := make(chan uint64, 1)
	go func() {
		tick := time.NewTicker(meterEvery)
		defer tick.Stop()
		peak := uint64(0)
		for last := false; own != nil; {
			if memory, err := own.MemoryInfo(); err == nil {
				peak = max(peak, memory.RSS)
			}
			if last {
				break
			}
			select {
			case <-tick.C:
			case <-running.Done():
				last = true
			}
		}
		most <- peak
	}()
	return sync.OnceValue(func() *Usage {
		end()
		all := cpu()
		all[0].PeakRSS = <-most
		for i := range all {
			all[i].CPU -= began[i].CPU
			if i > 0 {
				all[i].PeakRSS = peaks[i-1].Bytes()
			}
		}
		return &Usage{Tool: all[0], Relays: all[1:]}
	})
}
