//go:build !linux

package load

import "time"

// rest sleeps for d.
func rest(d time.Duration) { time.Sleep(d) }
