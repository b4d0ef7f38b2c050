package machine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrOneCore is returned where there is nothing to divide.
var ErrOneCore = errors.New("there is one processor core here, and harness and relay cannot each have their own; leave --pin out, or use a machine with two or more")

// Pinned says who runs where.
type Pinned struct {
	Harness, Relay []int // logical processors
	Undo           func()
}

// Pin keeps this process, all its threads and those to come, to its share of the processors, and as many goroutines at a time as that has. The
// relays' share is for whoever launches them. Undo gives everything back.
func Pin() (*Pinned, error) {
	allowed, err := affinity(0)
	if err != nil {
		return nil, fmt.Errorf("reading which processors may be used: %w", err)
	}
	var p Pinned
	var ok bool
	if p.Harness, p.Relay, ok = (System{}).Split(allowed); !ok {
		return nil, ErrOneCore
	}
	if err := keepTo(p.Harness); err != nil {
		return nil, errors.Join(err, keepTo(allowed))
	}
	procs := runtime.GOMAXPROCS(len(p.Harness))
	p.Undo = func() {
		_ = keepTo(allowed)
		runtime.GOMAXPROCS(procs)
	}
	return &p, nil
}

// affinity returns the processors that a thread may use; 0 is the calling one.
func affinity(tid int) (processors []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &set); err != nil {
		return nil, err
	}
	for i := 0; len(processors) < set.Count(); i++ {
		if set.IsSet(i) {
			processors = append(processors, i)
		}
	}
	return processors, nil
}

// setAffinity keeps a thread to processors; 0 is the calling one.
func setAffinity(tid int, processors []int) error {
	var set unix.CPUSet
	for _, p := range processors {
		set.Set(p)
	}
	return unix.SchedSetaffinity(tid, &set)
}

// keepTo keeps every thread of this process to processors. Threads inherit that from the one that makes them, and those that are made meanwhile
// by one that was not reached yet are found when the list is read again.
func keepTo(processors []int) error {
	var done []int
	for {
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("listing this process's threads: %w", err)
		}
		reached := len(done)
		for _, e := range entries {
			tid, err := strconv.Atoi(e.Name())
			if err != nil || slices.Contains(done, tid) {
				continue
			}
			if err := setAffinity(tid, processors); err != nil && !errors.Is(err, unix.ESRCH) { // one that ended meanwhile is kept to nothing
				return fmt.Errorf("keeping a thread to processors %v: %w", processors, err)
			}
			done = append(done, tid)
		}
		if len(done) == reached {
			return nil
		}
	}
}
