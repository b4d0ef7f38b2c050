package harness

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/relays"
)

// memory is the most that a relay was seen to hold, in bytes, over all its processes in a scenario.
type memory struct {
	peak     atomic.Uint64
	watching sync.WaitGroup
}

func (m *memory) note(bytes uint64) {
	for was := m.peak.Load(); bytes > was && !m.peak.CompareAndSwap(was, bytes); was = m.peak.Load() {
	}
}

// watch looks at a process until ctx or the process ends, and has others look as often.
func (m *memory) watch(ctx context.Context, p *relays.Process, also func()) {
	m.watching.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			usage, err := p.Usage()
			if err != nil {
				return
			}
			m.note(usage.RSS)
			also()
			select {
			case <-tick.C:
			case <-p.Done():
				return
			case <-ctx.Done():
				return
			}
		}
	})
}

// most waits until all watching has ended.
func (m *memory) most() uint64 {
	m.watching.Wait()
	return m.peak.Load()
}
