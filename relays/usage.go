package relays

import (
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Usage is what a relay's whole process tree has used since it was launched. Every figure is a
// lower bound: what a process did between its last sample and its end is known only where its
// parent, also of the tree, reaped it. No cumulative figure ever falls.
type Usage struct {
	CPUSeconds      float64 // user and system time
	RSS             uint64  // bytes resident now, summed over the tree; shared pages count once for each process
	PeakRSS         uint64  // bytes: the largest RSS seen, and no less than any one process's own high-water mark
	ReadBytes       uint64  // bytes fetched from storage
	WriteBytes      uint64  // bytes sent to storage
	OpenFiles       int     // descriptors open now
	ContextSwitches uint64  // voluntary and not, over all threads
}

var errNotBooted = errors.New("the relay has not been booted yet")

// Usage samples the tree now; after the relay's end it returns the last figures. ErrExternal for a
// relay that was not launched here.
func (p *Process) Usage() (Usage, error) {
	switch {
	case p.External():
		return Usage{}, ErrExternal
	case p.tree == nil:
		return Usage{}, errNotBooted
	}
	return p.tree.usage(), nil
}

// Peak is the most memory that a relay's process tree is seen to hold from a moment on.
type Peak struct {
	tree *tree // nil for a relay that was not launched here
	most uint64
}

// Peak begins to look.
func (p *Process) Peak() *Peak {
	k := &Peak{tree: p.tree}
	if k.tree != nil {
		k.tree.mu.Lock()
		k.tree.peaks = append(k.tree.peaks, k)
		k.tree.mu.Unlock()
	}
	k.Bytes()
	return k
}

// Bytes is the largest RSS seen up to now; 0 for a relay that was not launched here.
func (k *Peak) Bytes() uint64 {
	if k.tree == nil {
		return 0
	}
	k.tree.usage()
	k.tree.mu.Lock()
	defer k.tree.mu.Unlock()
	return k.most
}

const (
	sampleEvery = 200 * time.Millisecond
	fullEvery   = 5  // every how many samples new members and the costly figures are looked for
	searchEvery = 50 // every how many samples new members are looked for among all processes of the machine
)

// reading is what the system says of one process. started tells a process from a later one with the
// same id.
type reading struct {
	pid, ppid, pgid int
	session         int // Linux only
	started         uint64
	zombie          bool
	cpu             float64 // seconds of its own
	reaped          float64 // seconds of the children it waited for
	rss             uint64
}

// details are the figures that cost more to read. Storage bytes include those of children that were
// waited for, where the system counts so.
type details struct {
	highWater, read, written, switches uint64
	files                              int
}

type member struct {
	reading
	details
	gone bool
}

// tree samples a process and what descends from it or shares its group.
type tree struct {
	leader int
	reap   func() // waits for members that ended as orphans
	quit   chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	closed  bool
	members map[int]*member // alive, by pid
	ownCPU  float64         // of members that are gone, each at its highest
	banked  member          // of members that are gone: what nobody in the tree has taken over
	peak    uint64
	peaks   []*Peak
	last    Usage
}

// watchTree begins to sample the group that pid leads.
func watchTree(pid int, reap func()) *tree {
	t := &tree{leader: pid, reap: reap, quit: make(chan struct{}), ended: make(chan struct{}), members: map[int]*member{}}
	if r, ok := readProcess(pid); ok {
		t.members[pid] = &member{reading: r}
	}
	go t.run()
	return t
}

func (t *tree) run() {
	defer close(t.ended)
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-t.quit:
			return
		case <-tick.C:
			t.mu.Lock()
			if n%searchEvery == 0 {
				t.search()
			}
			t.sample(n%fullEvery == 0)
			t.mu.Unlock()
			if n%fullEvery == 0 {
				t.reap()
			}
		}
	}
}

func (t *tree) usage() Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.sample(true)
	}
	return t.last
}

// pids returns the members alive now.
func (t *tree) pids() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.search()
	return slices.Collect(maps.Keys(t.members))
}

// sample reads every member; a full one also looks for new members and reads their details.
func (t *tree) sample(full bool) {
	if full {
		t.discover()
	}
	for pid, m := range t.members {
		r, ok := readProcess(pid)
		if m.gone = !ok || r.started != m.started; m.gone {
			continue
		}
		r.cpu = max(r.cpu, m.cpu)
		m.reading = r
		if full {
			d := readDetails(pid)
			if r.zombie {
				d.files = 0
			}
			d.highWater, d.switches = max(d.highWater, m.highWater), max(d.switches, m.switches)
			d.read, d.written = max(d.read, m.read), max(d.written, m.written)
			m.details = d
		}
	}
	for _, m := range t.members {
		if m.gone {
			t.bank(m)
		}
	}
	maps.DeleteFunc(t.members, func(_ int, m *member) bool { return m.gone })
	t.sum()
}

// bank keeps what a member that ended had used. The kernel adds a child's figures to the parent
// that waits for it, so they are banked only where no ancestor in the tree is alive to have them.
func (t *tree) bank(m *member) {
	t.ownCPU += m.cpu
	t.banked.switches += m.switches
	t.banked.highWater = max(t.banked.highWater, m.highWater)
	for up, next := m, t.members[m.ppid]; next != nil && next != up; up, next = next, t.members[next.ppid] {
		if !next.gone {
			return
		}
	}
	t.banked.cpu += m.cpu + m.reaped
	t.banked.read += m.read
	t.banked.written += m.written
}

// sum brings the totals up to date. Two lower bounds of the CPU time are known: with reaped
// children (which misses those whose parent ignored their end) and each member at its own highest
// (which misses those that lived between two samples).
func (t *tree) sum() {
	now := Usage{ContextSwitches: t.banked.switches, ReadBytes: t.banked.read, WriteBytes: t.banked.written}
	withReaped, own := t.banked.cpu, t.ownCPU
	t.peak = max(t.peak, t.banked.highWater)
	for _, m := range t.members {
		withReaped += m.cpu + m.reaped
		own += m.cpu
		now.ReadBytes += m.read
		now.WriteBytes += m.written
		now.ContextSwitches += m.switches
		now.RSS += m.rss
		now.OpenFiles += m.files
		t.peak = max(t.peak, m.highWater)
	}
	t.peak = max(t.peak, now.RSS)
	for _, k := range t.peaks {
		k.most = max(k.most, now.RSS)
	}
	now.CPUSeconds = max(withReaped, own, t.last.CPUSeconds)
	now.ReadBytes = max(now.ReadBytes, t.last.ReadBytes)
	now.WriteBytes = max(now.WriteBytes, t.last.WriteBytes)
	now.ContextSwitches = max(now.ContextSwitches, t.last.ContextSwitches)
	now.PeakRSS = t.peak
	t.last = now
}

// discover adds the children of members and theirs.
func (t *tree) discover() {
	for unseen := slices.Collect(maps.Keys(t.members)); len(unseen) > 0; unseen = unseen[1:] {
		pid := unseen[0]
		children, ok := childrenOf(pid)
		if !ok && !t.members[pid].zombie {
			if _, alive := readProcess(pid); alive {
				t.search() // the kernel does not list them
				return
			}
		}
		for _, child := range children {
			if t.members[child] != nil {
				continue
			}
			if r, ok := readProcess(child); ok {
				t.members[child] = &member{reading: r}
				unseen = append(unseen, child)
			}
		}
	}
}

// search adds what belongs to the group or descends from a member, among all processes: it also
// finds whose parent ended before it was seen.
func (t *tree) search() {
	all := allProcesses()
	for grew := true; grew; {
		grew = false
		for _, r := range all {
			if t.members[r.pid] == nil && (r.pgid == t.leader || t.members[r.ppid] != nil && r.ppid > 1) {
				t.members[r.pid] = &member{reading: r}
				grew = true
			}
		}
	}
}

// final takes the last sample of a leader that has ended and is not yet reaped.
func (t *tree) final() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.search()
	t.sample(true)
}

// has says whether a process is or was a member, and not just another with its id.
func (t *tree) has(r reading) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.members[r.pid]
	return m != nil && m.started == r.started
}

// kill ends the members that are still alive, in whatever group, and returns them.
func (t *tree) kill() (alive []int) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for pid, m := range t.members {
		if r, ok := readProcess(pid); ok && r.started == m.started && !r.zombie {
			_ = kill(pid, syscall.SIGKILL)
			alive = append(alive, pid)
		}
	}
	return alive
}

// close ends the sampling. state is the reaped leader's.
func (t *tree) close(state *os.ProcessState) {
	close(t.quit)
	<-t.ended
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sample(false)
	// The kernel's own account of the leader and all it waited for. Its ru_maxrss is of no use: it
	// includes the moment between fork and exec, when the child still was a copy of relaybench.
	if state != nil {
		t.last.CPUSeconds = max(t.last.CPUSeconds, (state.UserTime() + state.SystemTime()).Seconds())
	}
	t.last.RSS, t.last.OpenFiles = 0, 0
	t.closed = true
}
