//go:build !linux

package relays

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"
)

// childAttributes gives a child its own process group. There is no parent-death signal here: after
// a SIGKILL of relaybench its relays run on.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// spawn starts cmd; processes cannot be kept to processors here.
func spawn(cmd *exec.Cmd, _ []int) error { return cmd.Start() }

// adoptOrphans is Linux's alone: elsewhere what loses its parent becomes a child of init.
func adoptOrphans() {}

// commandOf returns a process's name.
func commandOf(pid int) string {
	name, _ := (&process.Process{Pid: int32(pid)}).Name()
	return cleanLine([]byte(name), 40)
}

// orphans returns the processes that bear the family's mark, and kills them if it is told to, where
// the system shows the environment of another process.
func (f *family) orphans(end bool) (alive []int, unclear bool) {
	if !end {
		return nil, false // nobody here has to wait for them
	}
	pids, _ := process.Pids()
	for _, pid := range pids {
		p := &process.Process{Pid: pid}
		if started, err := p.CreateTime(); int(pid) == os.Getpid() || err != nil || uint64(started) < f.since {
			continue
		}
		if environment, err := p.Environ(); err == nil && slices.Contains(environment, f.mark) {
			alive = append(alive, int(pid))
			_ = syscall.Kill(int(pid), syscall.SIGKILL)
		}
	}
	return alive, false
}

// portOwner names the process that listens at a loopback port in place of the members; "" for none.
func portOwner(port int, members []int) string {
	conns, err := net.Connections("tcp")
	if err != nil {
		return ""
	}
	for _, c := range conns {
		if c.Status == "LISTEN" && int(c.Laddr.Port) == port && c.Pid != 0 && !slices.Contains(members, int(c.Pid)) {
			return fmt.Sprintf("process %d", c.Pid)
		}
	}
	return ""
}

func readProcess(pid int) (reading, bool) {
	p, r, ok := identify(pid)
	if !ok {
		return r, false
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

// identify reads what it takes to tell who belongs to a tree.
func identify(pid int) (p *process.Process, r reading, ok bool) {
	p = &process.Process{Pid: int32(pid)}
	ppid, err := p.Ppid()
	if err != nil {
		return p, r, false
	}
	r = reading{pid: pid, ppid: int(ppid)}
	if pgid, err := syscall.Getpgid(pid); err == nil {
		r.pgid = pgid
	}
	if started, err := p.CreateTime(); err == nil {
		r.started = uint64(started)
	}
	return p, r, true
}

// childrenOf has no cheap form here.
func childrenOf(int) ([]int, bool) { return nil, false }

// allProcesses only identifies them; members are read one by one.
func allProcesses() (all []reading) {
	pids, _ := process.Pids()
	for _, pid := range pids {
		if _, r, ok := identify(int(pid)); ok {
			all = append(all, r)
		}
	}
	return all
}

func readDetails(pid int) details {
	p := &process.Process{Pid: int32(pid)}
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
