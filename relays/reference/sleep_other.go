//go:build !linux

package reference

import "time"

// sleepFine sleeps for about d, as finely as the system's timers go.
func sleepFine(d time.Duration) { time.Sleep(d) }
