package relays

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// childAttributes gives a child its own process group, and has the kernel kill it when relaybench dies without a chance to do
// so itself (SIGKILL, out of memory).
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// launcher is the one goroutine that starts children. The kernel sends the parent-death signal when the *thread* that forked
// ends, not the process, and the Go runtime ends threads as it likes: so every child is forked from one thread that is locked to
// a goroutine that never returns.
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

func spawn(cmd *exec.Cmd) error {
	failed := make(chan error)
	launcher() <- func() { failed <- cmd.Start() }
	return <-failed
}
