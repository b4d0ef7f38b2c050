package wire

import (
	"syscall"
	"time"
)

// Sleep sleeps for about d in the kernel, to some 100 µs. Go's own timers wake up to a millisecond
// late on Linux, where they wait in epoll. A signal may end it early: whoever waits looks at the
// clock.
func Sleep(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil)
}
