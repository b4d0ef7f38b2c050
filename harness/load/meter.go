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

// Meter samples a run from Measure to Stop.
type Meter struct {
	relays   []*relays.Process
	own      *process.Process
	end      context.CancelFunc
	sampling sync.WaitGroup
	once     sync.Once
	usage    Usage
	began    []time.Duration // CPU time before, of the tool and the relays
}

// meterEvery is how often memory is looked at.
const meterEvery = 200 * time.Millisecond

// Measure begins to sample the tool and the relays.
func Measure(of ...*relays.Process) *Meter {
	m := &Meter{relays: of, usage: Usage{Relays: make([]Spent, len(of))}}
	m.own, _ = process.NewProcess(int32(os.Getpid()))
	m.look()
	m.began = append(m.began, m.usage.Tool.CPU)
	for _, r := range m.usage.Relays {
		m.began = append(m.began, r.CPU)
	}
	running, end := context.WithCancel(context.Background())
	m.end = end
	m.sampling.Go(func() {
		tick := time.NewTicker(meterEvery)
		defer tick.Stop()
		for running.Err() == nil {
			select {
			case <-tick.C:
			case <-running.Done():
			}
			m.look()
		}
	})
	return m
}

// look takes one sample.
func (m *Meter) look() {
	if m.own != nil {
		if memory, err := m.own.MemoryInfo(); err == nil {
			m.usage.Tool.Known = true
			m.usage.Tool.PeakRSS = max(m.usage.Tool.PeakRSS, memory.RSS)
		}
	}
	m.usage.Tool.CPU = machine.OwnCPU()
	for i, p := range m.relays {
		if u, err := p.Usage(); err == nil {
			r := &m.usage.Relays[i]
			r.Known = true
			r.CPU = time.Duration(u.CPUSeconds * float64(time.Second))
			r.PeakRSS = max(r.PeakRSS, u.RSS)
		}
	}
}

// Stop ends the sampling and returns what was used since Measure.
func (m *Meter) Stop() *Usage {
	m.once.Do(func() {
		m.end()
		m.sampling.Wait()
		m.usage.Tool.CPU -= m.began[0]
		for i := range m.usage.Relays {
			m.usage.Relays[i].CPU -= m.began[i+1]
		}
	})
	return &m.usage
}
