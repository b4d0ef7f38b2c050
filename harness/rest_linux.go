package harness

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"relaybench/relays/wire"
)

// rest sleeps for d in the kernel. Go's own timers wake up to a millisecond late on Linux, where they wait in epoll, which is as long as what is
// measured.
func rest(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // a signal may end it early: whoever waits looks at the clock
}

// sinceBoot is a clock that goes on while the machine is suspended.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return wire.Now()
	}
	return time.Duration(ts.Nano())
}
