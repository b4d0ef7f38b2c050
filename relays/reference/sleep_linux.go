package reference

import (
	"syscall"
	"time"
)

// sleepFine sleeps for about d, to some 100 µs; time.Sleep takes a millisecond at least.
func sleepFine(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&t, nil) // an error is a signal that came first
}
