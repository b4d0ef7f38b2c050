package machine

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// groups lists the folders of the control groups of a controller that this process is in, from its
// own up to the topmost that can be seen: those that hold a file. In a container the path that the
// kernel names may not exist below the mount; what the mount itself holds is then the container's.
func (s System) groups(controller, file string) (dirs []string) {
	for line := range strings.Lines(s.read("/proc/self/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
		if len(parts) != 3 {
			continue
		}
		var mount string
		switch {
		case parts[0] == "0" && parts[1] == "": // version 2
			mount = "/sys/fs/cgroup"
			if !s.exists(mount + "/cgroup.controllers") {
				mount += "/unified"
			}
		case slices.Contains(strings.Split(parts[1], ","), controller):
			mount = "/sys/fs/cgroup/" + parts[1]
			if !s.exists(mount) {
				mount = "/sys/fs/cgroup/" + controller
			}
		default:
			continue
		}
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			if dir := strings.TrimSuffix(mount+at, "/"); s.exists(dir + "/" + file) {
				dirs = append(dirs, dir)
			}
			if at == "/" {
				break
			}
		}
	}
	return dirs
}

// QuotaCores returns as many cores' time as the tightest control group allows; 0 where none limits
// it.
func (s System) QuotaCores() float64 {
	tightest := 0.0
	for _, dir := range s.groups("cpu", "cpu.stat") {
		quota, period := "", ""
		if f := strings.Fields(s.read(dir + "/cpu.max")); len(f) == 2 {
			quota, period = f[0], f[1]
		} else {
			quota, period = strings.TrimSpace(s.read(dir+"/cpu.cfs_quota_us")), strings.TrimSpace(s.read(dir+"/cpu.cfs_period_us"))
		}
		q, err := strconv.ParseFloat(quota, 64) // "max" and -1 are no limit
		p, err2 := strconv.ParseFloat(period, 64)
		if err != nil || err2 != nil || q <= 0 || p <= 0 {
			continue
		}
		if cores := q / p; tightest == 0 || cores < tightest {
			tightest = cores
		}
	}
	return tightest
}

// throttled is in how many periods a quota has held processes up, and for how long, since the
// control group was made: of the group in which that happened most, as one that is held up holds up
// all below it.
func (s System) throttled() (periods uint64, held time.Duration) {
	for _, dir := range s.groups("cpu", "cpu.stat") {
		stat := s.read(dir + "/cpu.stat")
		periods = max(periods, field(stat, "nr_throttled"))
		nanoseconds := max(field(stat, "throttled_usec")*1000, field(stat, "throttled_time")) // version 2, version 1
		held = max(held, time.Duration(nanoseconds))
	}
	return periods, held
}

// MemoryLimit is how many bytes of memory the tightest control group allows; 0 where none limits it
// below what is installed.
func (s System) MemoryLimit() (bytes uint64) {
	installed := field(s.read("/proc/meminfo"), "MemTotal:") * 1024
	for _, file := range []string{"memory.max", "memory.limit_in_bytes"} { // versions 2 and 1
		for _, dir := range s.groups("memory", file) {
			if limit, ok := s.count(dir + "/" + file); ok && (installed == 0 || limit < installed) && (bytes == 0 || limit < bytes) {
				bytes = limit
			}
		}
	}
	return bytes
}

// killed is how many processes of this process's own memory group, which is also its children's,
// the kernel has killed for memory; on the whole machine where there are no such groups.
func (s System) killed() uint64 {
	// Version 2, version 2 before it told a group from those below, and version 1.
	for _, file := range []string{"memory.events.local", "memory.events", "memory.oom_control"} {
		if dirs := s.groups("memory", file); len(dirs) > 0 {
			return field(s.read(dirs[0]+"/"+file), "oom_kill")
		}
	}
	return field(s.read("/proc/vmstat"), "oom_kill")
}
