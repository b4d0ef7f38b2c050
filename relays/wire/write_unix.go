//go:build unix

package wire

import "syscall"

const canWriteOnce = true

// writeOnce gives the socket what it takes without waiting, which may be nothing.
func writeOnce(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), p)
		switch err {
		case nil:
			return n, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, nil
		default:
			return 0, err
		}
	}
}
