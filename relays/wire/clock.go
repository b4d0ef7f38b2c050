package wire

import "time"

var started = time.Now()

// Now is the time since the process started, from the monotonic clock: the one time base of every
// figure relaybench takes.
func Now() time.Duration { return time.Since(started) }
