package relays

import (
	"crypto/rand"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// markVariable is set, to another random value at each boot, in the environment of all that is
// launched. A process that leaves its group and its parent, as a daemon does, still has it.
const markVariable = "RELAYBENCH_BOOT"

func newMark() string { return markVariable + "=" + rand.Text() }

const (
	sweepTime  = 2 * time.Second        // for those that start others as fast as they are killed
	sweepAgain = 2 * time.Millisecond   // from one look to the next
	loadTime   = 300 * time.Millisecond // for those that are being given their program, and show no environment
)

// family is the processes of one launch: the leader that was started here, what is in its group,
// what descends from it, and what bears its mark.
type family struct {
	mark string // an assignment in the environment of all of them, unless they clear it
	root string // the folder that they are to work in; "" for none

	// Set by start, under kin's lock.
	group int    // the leader's id, which is its group's
	since uint64 // when the leader was started, as in reading.started
	tree  *tree  // nil where they are not watched
}

// kin lists the families that live and the children that were launched here. Its lock is held over
// each fork, so that a new child is listed before orphans are looked for.
var kin struct {
	sync.Mutex
	living   map[*family]bool
	launched map[int]bool // children that exec.Cmd waits for
}

// start launches the leader. Processes of the family that lose their parent become children of this
// one (Linux).
func (f *family) start(cmd *exec.Cmd, processors []int) error {
	adoptOrphans()
	if real, err := filepath.EvalSymlinks(f.root); err == nil && f.root != "" {
		f.root = real
	}
	kin.Lock()
	defer kin.Unlock()
	if err := spawn(cmd, processors); err != nil {
		return err
	}
	f.group = cmd.Process.Pid
	leader, _ := readProcess(f.group)
	f.since = leader.started
	if kin.living == nil {
		kin.living, kin.launched = map[*family]bool{}, map[int]bool{}
	}
	kin.living[f], kin.launched[f.group] = true, true
	return nil
}

func (f *family) watch() *tree {
	t := watchTree(f.group, f.reap)
	kin.Lock()
	defer kin.Unlock()
	f.tree = t
	return t
}

// end kills all of the family that is left, once its leader has been waited for, and returns what
// could not be ended within sweepTime.
func (f *family) end() []Survivor {
	kin.Lock()
	delete(kin.launched, f.group)
	delete(kin.living, f) // of two that end at the same time, the later one takes what may be either's
	kin.Unlock()
	began := time.Now()
	for {
		alive, unclear := f.orphans(true)
		alive = append(alive, f.tree.kill()...)
		waited := time.Since(began)
		switch {
		case len(alive) == 0 && (!unclear || waited >= loadTime):
			return nil
		case waited >= sweepTime:
			return survivors(alive)
		}
		time.Sleep(sweepAgain)
	}
}

// reap waits for those of the family that have ended after they lost their parent: until then they
// take up an id.
func (f *family) reap() { f.orphans(false) }

// kill is syscall.Kill, except in tests.
var kill = syscall.Kill

// Survivor is a process that could not be ended.
type Survivor struct {
	PID     int
	Command string // its name as the system has it, at most 40 bytes; the process may have chosen it
}

// LeftoverError is a relay of which processes run on that could not be ended: of another user, or
// in a system call that does not return.
type LeftoverError struct{ Processes []Survivor }

func (e *LeftoverError) Error() string {
	names := make([]string, len(e.Processes))
	for i, p := range e.Processes {
		names[i] = fmt.Sprintf("%d (%s)", p.PID, p.Command)
	}
	return "could not be ended, and run on: process " + strings.Join(names, ", ")
}

func survivors(pids []int) (list []Survivor) {
	slices.Sort(pids)
	for _, pid := range slices.Compact(pids) {
		list = append(list, Survivor{pid, commandOf(pid)})
	}
	return list
}
