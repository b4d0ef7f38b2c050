package relays

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// killMarked looks once through all processes, and kills those that bear the mark. unclear says that another, as young, shows no environment at
// all: the kernel empties it for a moment while a program is loaded, and takes it away as a process ends.
func killMarked(mark string, since uint64) (found []int, unclear bool) {
	const kernelThreads = 2 // the parent of them all; they have no environment
	self := os.Getpid()
	for _, pid := range numberedEntries("/proc") {
		if pid == self || pid == kernelThreads {
			continue
		}
		r, ok := readProcess(pid)
		if !ok || r.zombie || r.started < since || r.ppid == kernelThreads {
			continue
		}
		marked, empty := bears(pid, mark)
		unclear = unclear || empty
		if marked {
			found = append(found, pid)
			killIfMarked(pid, mark)
		}
	}
	return found, unclear
}

// bears says whether a process has the mark in the environment that it was started with. One that may not be read has not; one that is on its way out, as
// after a kill, has lost its memory before its files, and shows none.
func bears(pid int, mark string) (marked, empty bool) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false, errors.Is(err, syscall.ESRCH)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxEnvironment))
	return bytes.Contains(text, []byte(mark)), len(text) == 0 && err == nil
}

// killIfMarked holds on to the process while it looks once more: its id may have become another's since.
func killIfMarked(pid int, mark string) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		if err != unix.ESRCH {
			_ = syscall.Kill(pid, syscall.SIGKILL) // a kernel before 5.3, or a sandbox
		}
		return
	}
	defer unix.Close(fd)
	if marked, _ := bears(pid, mark); marked {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}
