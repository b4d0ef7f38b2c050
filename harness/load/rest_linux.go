package load

import (
	"syscall"
	"time"
)

// rest sleeps for d in the kernel. Go's own timers wake up to a millisecond late on Linux, where
// they wait in epoll, which is as long as what is measured.
func rest(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // a signal may end it early: whoever waits looks at the clock
}
