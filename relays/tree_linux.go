package relays

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// The figures come straight from /proc: gopsutil leaves out what is needed to count a child once
// and only once (the CPU time of reaped children, storage bytes apart from characters, context
// switches of all threads), and costs several times as much.

const ticksPerSecond = 100 // USER_HZ, the same on every architecture that Go supports

var pageSize = uint64(os.Getpagesize())

// readProcess reads /proc/<pid>/stat (proc_pid_stat(5)).
func readProcess(pid int) (reading, bool) {
	var buf [1024]byte // a line of 52 numbers and a name of at most 64 bytes
	text, _ := readShort("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	return parseStat(text)
}

// readShort reads a file of /proc with a third of the system calls that os.ReadFile makes.
func readShort(path string, buf []byte) (text []byte, ok bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil, false
	}
	return buf[:n], true
}

// childrenOf returns the children of a process, where the kernel lists them (CONFIG_PROC_CHILDREN).
func childrenOf(pid int) (children []int, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	var buf [4096]byte // of some 500 children; more are found when all processes are looked through
	for _, tid := range numberedEntries(dir) {
		text, readable := readShort(dir+"/"+strconv.Itoa(tid)+"/children", buf[:])
		ok = ok || readable
		for _, field := range bytes.Fields(text) {
			if n, err := strconv.Atoi(string(field)); err == nil {
				children = append(children, n)
			}
		}
	}
	return children, ok
}

func parseStat(text []byte) (reading, bool) {
	// The program's name stands in parentheses and may hold anything, parentheses and spaces
	// included.
	open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || shut < open {
		return reading{}, false
	}
	fields := bytes.Fields(text[shut+1:])
	if len(fields) < 22 {
		return reading{}, false
	}
	bad := false
	number := func(field int) int64 { // numbered as in the manual, where the state is field 3
		n, err := strconv.ParseInt(string(fields[field-3]), 10, 64)
		bad = bad || err != nil
		return max(0, n)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	r := reading{
		pid: pid, ppid: int(number(4)), pgid: int(number(5)), session: int(number(6)),
		started: uint64(number(22)),
		zombie:  fields[0][0] == 'Z' || fields[0][0] == 'X',
		cpu:     float64(number(14)+number(15)) / ticksPerSecond,
		reaped:  float64(number(16)+number(17)) / ticksPerSecond,
		rss:     uint64(number(24)) * pageSize,
	}
	return r, err == nil && !bad
}

func allProcesses() []reading {
	var all []reading
	for _, pid := range numberedEntries("/proc") {
		if r, ok := readProcess(pid); ok {
			all = append(all, r)
		}
	}
	return all
}

func numberedEntries(dir string) []int {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	numbers := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// readDetails reads what /proc says in other files. What may not be read stays zero.
func readDetails(pid int) details {
	dir := "/proc/" + strconv.Itoa(pid)
	var d details
	var buf [8192]byte
	if text, ok := readShort(dir+"/status", buf[:]); ok {
		d.highWater = colonValue(text, "VmHWM:") * 1024
	}
	if text, ok := readShort(dir+"/io", buf[:]); ok {
		d.read, d.written = colonValue(text, "read_bytes:"), colonValue(text, "write_bytes:")
		// Bytes of files that were deleted before they were written back never reached storage.
		d.written -= min(d.written, colonValue(text, "cancelled_write_bytes:"))
	}
	for _, tid := range numberedEntries(dir + "/task") {
		if text, ok := readShort(dir+"/task/"+strconv.Itoa(tid)+"/status", buf[:]); ok {
			d.switches += colonValue(text, "voluntary_ctxt_switches:") + colonValue(text, "nonvoluntary_ctxt_switches:")
		}
	}
	d.files = len(numberedEntries(dir + "/fd"))
	return d
}

// colonValue returns the number after a label that begins a line.
func colonValue(text []byte, label string) uint64 {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(label)); ok {
			if f := bytes.Fields(rest); len(f) > 0 {
				n, _ := strconv.ParseUint(string(f[0]), 10, 64)
				return n
			}
		}
	}
	return 0
}

// groupAlive says whether a process group still has a member that runs; one that only waits to be
// reaped does not count.
func groupAlive(pgid int) bool {
	return !errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) &&
		slices.ContainsFunc(allProcesses(), func(r reading) bool { return r.pgid == pgid && !r.zombie })
}

// awaitExit returns when the child has ended, and leaves it to be reaped: until then its id, which
// is its group's, cannot be given to another process, and its last figures can be read.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case err == nil:
			return
		case !errors.Is(err, unix.EINTR):
			_ = cmd.Wait() // a sandbox without waitid: reap at once
			return
		}
	}
}

// widenPipe lets a relay write 1 MiB of log ahead of relaybench.
func widenPipe(f *os.File) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}
