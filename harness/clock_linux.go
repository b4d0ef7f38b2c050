package harness

import (
	"time"

	"golang.org/x/sys/unix"

	"relaybench/relays/wire"
)

// sinceBoot is a clock that goes on while the machine is suspended.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return wire.Now()
	}
	return time.Duration(ts.Nano())
}
