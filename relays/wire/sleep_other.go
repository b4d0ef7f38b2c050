//go:build !linux

package wire

import "time"

// Sleep sleeps for about d, as finely as the system's timers go.
func Sleep(d time.Duration) { time.Sleep(d) }
