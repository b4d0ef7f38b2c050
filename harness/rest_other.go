//go:build !linux

package harness

import "time"

// rest sleeps for d.
func rest(d time.Duration) { time.Sleep(d) }
