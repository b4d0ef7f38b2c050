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

// Spent is one party's part.
type Spent struct {
	Known   bool // false where the system does not tell: of a relay that was not launched here
	CPU     time.Duration
	PeakRSS uint64 // bytes: the most that was seen resident
}

// Meter takes what a run uses from Measure to Stop.
type Meter struct {
	relays   []*relays.Process
	began    []Spent // before, of the tool and the relays
	peaks    []*relays.Peak
	own      *process.Process // nil where the system does not tell
	ownPeak  uint64
	end      context.CancelFunc
	sampling sync.WaitGroup
	usage    *Usage // once it is stopped
}

// meterEvery is how often the tool's own memory is looked at.
const meterEvery = 200 * time.Millisecond

// Measure begins to measure the tool and the relays.
func Measure(of ...*relays.Process) *Meter {
	m := &Meter{relays: of}
	m.own, _ = process.NewProcess(int32(os.Getpid()))
	for _, p := range of {
		m.peaks = append(m.peaks, p.Peak())
	}
	m.began = m.used()
	running, end := context.WithCancel(context.Background())
	m.end = end
	m.sampling.Go(func() {
		tick := time.NewTicker(meterEvery)
		defer tick.Stop()
		for more := true; more; {
			m.look()
			select {
			case <-tick.C:
			case <-running.Done():
				more = false
			}
		}
		m.look()
	})
	return m
}

// look takes one sample of the tool's memory.
func (m *Meter) look() {
	if m.own != nil {
		if memory, err := m.own.MemoryInfo(); err == nil {
			m.ownPeak = max(m.ownPeak, memory.RSS)
		}
	}
}

// used is the processor time that the tool and the relays have had.
func (m *Meter) used() []Spent {
	all := []Spent{{Known: m.own != nil, CPU: machine.OwnCPU()}}
	for _, p := range m.relays {
		u, err := p.Usage()
		all = append(all, Spent{Known: err == nil, CPU: time.Duration(u.CPUSeconds * float64(time.Second))})
	}
	return all
}

// Stop ends the measuring and returns what was used since Measure. Stopping again changes nothing.
func (m *Meter) Stop() *Usage {
	if m.usage != nil {
		return m.usage
	}
	m.end()
	m.sampling.Wait()
	all := m.used()
	for i := range all {
		all[i].CPU -= m.began[i].CPU
		if i > 0 {
			all[i].PeakRSS = m.peaks[i-1].Bytes()
		}
	}
	all[0].PeakRSS = m.ownPeak
	m.usage = &Usage{Tool: all[0], Relays: all[1:]}
	return m.usage
}
