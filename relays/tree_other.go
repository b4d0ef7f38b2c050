//go:build !linux

package relays

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/shirou/gopsutil/v4/process"
)

func readProcess(pid int) (reading, bool) {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return reading{}, false
	}
	r := reading{pid: pid}
	if started, err := p.CreateTime(); err == nil {
		r.started = uint64(started)
	}
	if ppid, err := p.Ppid(); err == nil {
		r.ppid = int(ppid)
	}
	if pgid, err := syscall.Getpgid(pid); err == nil {
		r.pgid = pgid
	}
	if times, err := p.Times(); err == nil {
		r.cpu = times.User + times.System
	}
	if memory, err := p.MemoryInfo(); err == nil && memory != nil {
		r.rss = memory.RSS
	}
	if status, err := p.Status(); err == nil && len(status) > 0 {
		r.zombie = status[0] == process.Zombie
	}
	return r, true
}

// childrenOf has no cheap form here.
func childrenOf(int) ([]int, bool) { return nil, false }

// allProcesses fills in only what it takes to tell who belongs to a tree; members are read one by one.
func allProcesses() []reading {
	pids, err := process.Pids()
	if err != nil {
		return nil
	}
	var all []reading
	for _, pid := range pids {
		p := &process.Process{Pid: pid}
		ppid, err := p.Ppid()
		if err != nil {
			continue
		}
		r := reading{pid: int(pid), ppid: int(ppid)}
		if pgid, err := syscall.Getpgid(int(pid)); err == nil {
			r.pgid = pgid
		}
		if started, err := p.CreateTime(); err == nil {
			r.started = uint64(started)
		}
		all = append(all, r)
	}
	return all
}

func readDetails(pid int) details {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return details{}
	}
	var d details
	if io, err := p.IOCounters(); err == nil && io != nil {
		d.read, d.written = io.DiskReadBytes, io.DiskWriteBytes
	}
	if s, err := p.NumCtxSwitches(); err == nil && s != nil {
		d.switches = uint64(max(0, s.Voluntary) + max(0, s.Involuntary))
	}
	if n, err := p.NumFDs(); err == nil {
		d.files = int(n)
	}
	return d
}

// groupAlive says whether a process group still has a member.
func groupAlive(pgid int) bool {
	return !errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH)
}

// awaitExit returns when the child has ended. There is no portable way to wait without reaping.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

func widenPipe(*os.File) {}
