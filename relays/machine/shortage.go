package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"relaybench/results"
)

// Shortage names what the machine was short of where a system call says so: one of results'
// Shortage codes, else "". Words of relays carry no such error.
func Shortage(err error) string {
	for _, known := range []struct {
		err  error
		code string
	}{
		{syscall.ENOSPC, results.ShortageDisk}, {syscall.EDQUOT, results.ShortageDisk}, {syscall.EFBIG, results.ShortageFileSize},
		{syscall.EMFILE, results.ShortageDescriptors}, {syscall.ENFILE, results.ShortageDescriptors},
		{syscall.EADDRNOTAVAIL, results.ShortagePorts}, {ErrNoPort, results.ShortagePorts}, {syscall.ENOMEM, results.ShortageMemory},
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return ""
}

// A Lookout tells what the machine is short of.
type Lookout struct {
	system System
	dir    string
	killed uint64 // before
}

// Lookout begins to look. Relays' data goes below dir, which may be "" for none.
func (s System) Lookout(dir string) *Lookout {
	return &Lookout{system: s, dir: dir, killed: s.killed()}
}

// Short returns what the machine is short of, or what it killed for since the look began: one of
// results' Shortage codes, "" for nothing that can be seen.
func (l *Lookout) Short() string {
	if l.system.killed() > l.killed {
		return results.ShortageMemory
	}
	if short := l.Full(); short != "" {
		return short
	}
	if l.dir != "" {
		if short := Shortage(tryToWrite(l.dir)); short != "" {
			return short
		}
		if limit, ok := Limit(unix.RLIMIT_FSIZE); ok && reaches(l.dir, limit) {
			return results.ShortageFileSize
		}
	}
	_, err := FreePort()
	return Shortage(err)
}

// Full returns results.ShortageDisk or results.ShortageInodes where the folder's file system is as
// good as full, else "".
func (l *Lookout) Full() string {
	room, ok := RoomIn(l.dir)
	switch {
	case !ok:
		return ""
	case room.Bytes < max(1<<20, min(room.Of/100, 64<<20)): // stores allocate in large pieces
		return results.ShortageDisk
	case room.Inodes < fewInodes:
		return results.ShortageInodes
	}
	return ""
}

const fewInodes = 32

// Room is what a file system has left for this user. A quota may leave less.
type Room struct {
	Bytes  uint64
	Of     uint64 // bytes in all
	Inodes uint64 // the largest number where the file system does not count them
}

// RoomIn returns the room in a folder's file system.
func RoomIn(dir string) (r Room, ok bool) {
	var s unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &s) != nil {
		return r, false
	}
	free := uint64(s.Bavail)
	if os.Geteuid() == 0 {
		free = uint64(s.Bfree) // a reserve is root's to use
	}
	r = Room{Bytes: free * uint64(s.Bsize), Of: uint64(s.Blocks) * uint64(s.Bsize), Inodes: uint64(s.Ffree)}
	if s.Files == 0 {
		r.Inodes = 1<<64 - 1
	}
	return r, true
}

// Limit returns a limit that the shell sets (setrlimit(2)); ok is false where there is none.
func Limit(resource int) (limit uint64, ok bool) {
	var l unix.Rlimit
	if unix.Getrlimit(resource, &l) != nil || uint64(l.Cur) >= 1<<62 { // infinite
		return 0, false
	}
	return uint64(l.Cur), true
}

// tryToWrite writes a little: a quota shows nowhere else.
func tryToWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".room-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 64<<10))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// reaches says whether a file below dir is as large as files may be.
func reaches(dir string, limit uint64) (found bool) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil && uint64(info.Size())+4096 > limit { // a block
				found = true
				return fs.SkipAll
			}
		}
		return nil
	})
	return found
}

// Ended returns what a process was short of that ended by itself, where that is known or cannot be
// ruled out: by the signals of the shell's limits, by what can be seen, and by limits that no
// program can be expected to say that it met.
func (l *Lookout) Ended(state *os.ProcessState) string {
	if state != nil {
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			switch status.Signal() {
			case syscall.SIGXFSZ:
				return results.ShortageFileSize
			case syscall.SIGXCPU:
				return results.ShortageCPUTime
			}
		}
	}
	if short := l.Short(); short != "" {
		return short
	}
	for _, limit := range []struct {
		resource int
		code     string
	}{{unix.RLIMIT_AS, results.ShortageAddressSpace}, {unix.RLIMIT_FSIZE, results.ShortageFileSize}, {unix.RLIMIT_CPU, results.ShortageCPUTime}} {
		if _, ok := Limit(limit.resource); ok {
			return limit.code
		}
	}
	return ""
}

// LocalPorts is how many ports the system gives to connections (ip_local_port_range); 0 where it
// does not tell.
func (s System) LocalPorts() int {
	low, high := 0, 0
	if n, _ := fmt.Sscan(s.read("/proc/sys/net/ipv4/ip_local_port_range"), &low, &high); n != 2 || high < low {
		return 0
	}
	return high - low + 1
}
