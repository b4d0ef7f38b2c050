package reference

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockFolder keeps other processes out of a store's folder for as long as the file that it returns
// is open: the relay numbers events, and holds the set that it reconciles, in memory. bbolt locks
// its file itself.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(time.Second); ; time.Sleep(20 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		busy := errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR)
		switch {
		case err == nil:
			return f, nil
		case busy && time.Now().Before(deadline):
			continue
		case busy:
			err = errOpenElsewhere
		}
		return nil, errors.Join(err, f.Close())
	}
}
