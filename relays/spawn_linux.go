package relays

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"relaybench/relays/machine"
)

// childAttributes gives a child its own process group, and has the kernel kill it when relaybench
// dies without a chance to do so itself (SIGKILL, out of memory).
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// launcher is the one goroutine that starts children. The kernel sends the parent-death signal when
// the *thread* that forked ends, not the process, and the Go runtime ends threads as it likes: so
// every child is forked from one thread that is locked to a goroutine that never returns.
var launcher = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// spawn starts cmd, kept to processors where there are any: the child inherits what the thread that
// forks it is kept to, so that not even its first instruction runs elsewhere, and a runtime that
// counts its processors as it starts counts right.
func spawn(cmd *exec.Cmd, processors []int) error {
	failed := make(chan error)
	launcher() <- func() {
		if len(processors) == 0 {
			failed <- cmd.Start()
			return
		}
		before, err := machine.Affinity(0)
		if err == nil {
			err = machine.SetAffinity(0, processors)
		}
		if err == nil {
			err = cmd.Start()
			_ = machine.SetAffinity(0, before)
		}
		failed <- err
	}
	return <-failed
}
