//go:build !linux

package relays

import "github.com/shirou/gopsutil/v4/process"

// adoptOrphans is Linux's alone: elsewhere what loses its parent becomes a child of init.
func adoptOrphans() {}

func (f *family) orphans(bool) []int { return nil }

// commandOf returns a process's name.
func commandOf(pid int) string {
	name, _ := (&process.Process{Pid: int32(pid)}).Name()
	return cleanLine([]byte(name), 40)
}
