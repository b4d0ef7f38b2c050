//go:build !linux

package relays

import (
	"os"
	"slices"
	"syscall"

	"github.com/shirou/gopsutil/v4/process"
)

// killMarked looks once through all processes, and kills those that bear the mark, where the system shows the environment of another process.
func killMarked(mark string, since uint64) (found []int, unclear bool) {
	pids, err := process.Pids()
	if err != nil {
		return nil, false
	}
	for _, pid := range pids {
		p := &process.Process{Pid: pid}
		if started, err := p.CreateTime(); int(pid) == os.Getpid() || err != nil || uint64(started) < since {
			continue
		}
		if environment, err := p.Environ(); err == nil && slices.Contains(environment, mark) {
			found = append(found, int(pid))
			_ = syscall.Kill(int(pid), syscall.SIGKILL)
		}
	}
	return found, false
}
