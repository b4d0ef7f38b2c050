package relays

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of whatever descends from it and loses its own parent
// (PR_SET_CHILD_SUBREAPER, Linux 3.4): a daemon that cleared its environment and changed its
// session is found among the children.
var adoptOrphans = sync.OnceFunc(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })

// orphans reaps the family's orphans that have ended and returns the others, which it kills if it
// is told to. Only ids that are known not to be waited for by anybody else are waited for. unclear
// says that of another child it cannot be told yet whose it is.
func (f *family) orphans(end bool) (alive []int, unclear bool) {
	kin.Lock()
	defer kin.Unlock()
	session, err := unix.Getsid(0)
	if err != nil {
		return nil, false
	}
	for _, r := range otherChildren() {
		owned, known := f.owns(r, session)
		unclear = unclear || !known
		if !owned {
			continue
		}
		if r.zombie { // which its first thread alone may be
			if pid, err := unix.Wait4(r.pid, nil, unix.WNOHANG, nil); pid == r.pid || err != nil {
				continue
			}
		}
		alive = append(alive, r.pid)
		if end {
			_ = kill(r.pid, syscall.SIGKILL) // our child, which nobody else waits for: the id is still its own
		}
	}
	return alive, unclear
}

// otherChildren returns this process's children that were not launched by this package. The caller
// holds kin's lock.
func otherChildren() (found []reading) {
	self := os.Getpid()
	children, ok := childrenOf(self)
	if !ok {
		for _, r := range allProcesses() {
			children = append(children, r.pid)
		}
	}
	for _, pid := range children {
		if r, ok := readProcess(pid); ok && r.ppid == self && !kin.launched[pid] {
			found = append(found, r)
		}
	}
	return found
}

// owns says whether a child that was not launched here is the family's. Other code of this program
// may launch children, but no daemons: what is in this program's own session, was not seen to
// descend from the leader and does not bear its mark is left alone. known is false where that
// cannot be told yet: the kernel empties the environment for a moment while it loads a program. The
// caller holds kin's lock.
func (f *family) owns(r reading, session int) (owned, known bool) {
	switch {
	case r.started < f.since:
		return false, true
	case f.saw(r):
		return true, true
	}
	environment := environmentOf(r.pid)
	switch {
	case bytes.Contains(environment, []byte(f.mark)):
		return true, true
	case r.session == session:
		return false, r.zombie || len(environment) > 0
	}
	var others []*family
	for o := range kin.living {
		if o != f && o.since <= r.started {
			if o.saw(r) {
				return false, true
			}
			others = append(others, o)
		}
	}
	if len(others) == 0 {
		return true, true
	}
	// Several relays run that may have left it behind. What it still has of one of them tells; else
	// it is left for the last to end.
	paths, _ := pathsOf(r.pid)
	for _, o := range others {
		if bytes.Contains(environment, []byte(o.mark)) || o.holds(paths) {
			return false, true
		}
	}
	return f.holds(paths), true
}

// saw says whether a process is in the leader's group, or was found to descend from the leader
// while its parents lived.
func (f *family) saw(r reading) bool { return r.pgid == f.group || f.tree.has(r) }

// holds says whether one of the paths lies in the family's folder.
func (f *family) holds(paths []string) bool {
	return f.root != "" && slices.ContainsFunc(paths, func(path string) bool {
		return path == f.root || strings.HasPrefix(path, f.root+"/")
	})
}

// pathsOf returns where a process works and what it has open, as far as that may be read.
func pathsOf(pid int) (paths []string, err error) {
	dir := "/proc/" + strconv.Itoa(pid)
	open, err := os.ReadDir(dir + "/fd")
	links := []string{dir + "/cwd"}
	for _, e := range open {
		links = append(links, dir+"/fd/"+e.Name())
	}
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil {
			paths = append(paths, path)
		}
	}
	return paths, err
}

// maxEnvironment is more than any environment that a relay was launched with.
const maxEnvironment = 4 << 20

func environmentOf(pid int) []byte {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxEnvironment))
	return text
}

// commandOf returns a process's name (proc_pid_comm(5)).
func commandOf(pid int) string {
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return cleanLine(name, 40)
}
