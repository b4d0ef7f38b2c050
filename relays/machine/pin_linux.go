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

// Shares are whose the processors are.
type Shares struct{ Harness, Relay []int } // logical processors

// Divide gives harness and relays processors of their own, out of those that this process may use.
// Nothing changes yet.
func Divide() (*Shares, error) {
	allowed, err := Affinity(0)
	if err != nil {
		return nil, err
	}
	harness, relay, ok := System{}.Split(allowed)
	if !ok {
		return nil, ErrOneCore
	}
	return &Shares{Harness: harness, Relay: relay}, nil
}

// Keep keeps this process, all its threads and those to come, to the harness's share, and to as
// many goroutines at a time as that has processors. The relays' share is for whoever launches them.
// undo gives everything back.
func (s *Shares) Keep() (undo func(), err error) {
	allowed, err := Affinity(0)
	if err != nil {
		return nil, err
	}
	if err := keepTo(s.Harness); err != nil {
		return nil, errors.Join(err, keepTo(allowed))
	}
	procs := runtime.GOMAXPROCS(len(s.Harness))
	return func() {
		_ = keepTo(allowed)
		runtime.GOMAXPROCS(procs)
	}, nil
}

// Affinity returns the processors that a thread may use; 0 is the calling one.
func Affinity(tid int) (processors []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("reading which processors may be used: %w", err)
	}
	for i := 0; len(processors) < set.Count(); i++ {
		if set.IsSet(i) {
			processors = append(processors, i)
		}
	}
	return processors, nil
}

// SetAffinity keeps a thread to processors; 0 is the calling one.
func SetAffinity(tid int, processors []int) error {
	var set unix.CPUSet
	for _, p := range processors {
		set.Set(p)
	}
	if err := unix.SchedSetaffinity(tid, &set); err != nil {
		return fmt.Errorf("keeping a thread to processors %v: %w", processors, err)
	}
	return nil
}

// keepTo keeps every thread of this process to processors. Threads inherit that from the one that
// makes them, and those that are made meanwhile by one that was not reached yet are found when the
// list is read again.
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
			if err := SetAffinity(tid, processors); err != nil && !errors.Is(err, unix.ESRCH) { // one that ended meanwhile is kept to nothing
				return err
			}
			done = append(done, tid)
		}
		if len(done) == reached {
			return nil
		}
	}
}
