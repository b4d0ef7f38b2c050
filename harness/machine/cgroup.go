package machine

import (
	"path"
	"strconv"
	"strings"
	"time"
)

// cpuGroups lists the folders of the control groups that limit this process's processor time, from its own up to the topmost that can be seen. In
// a container the path that the kernel names may not exist below the mount; what the mount itself holds is then the container's.
func (s System) cpuGroups() (dirs []string) {
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
		case parts[1] == "cpu", parts[1] == "cpu,cpuacct", parts[1] == "cpuacct,cpu":
			mount = "/sys/fs/cgroup/" + parts[1]
			if !s.exists(mount) {
				mount = "/sys/fs/cgroup/cpu"
			}
		default:
			continue
		}
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			if dir := strings.TrimSuffix(mount+at, "/"); s.exists(dir + "/cpu.stat") {
				dirs = append(dirs, dir)
			}
			if at == "/" {
				break
			}
		}
	}
	return dirs
}

// QuotaCores returns as many cores' time as the tightest control group allows; 0 where none limits it.
func (s System) QuotaCores() float64 {
	tightest := 0.0
	for _, dir := range s.cpuGroups() {
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

// throttled is in how many periods a quota has held processes up, and for how long, since the control group was made: of the group in which that
// happened most, as one that is held up holds up all below it.
func (s System) throttled() (periods uint64, held time.Duration) {
	for _, dir := range s.cpuGroups() {
		stat := s.read(dir + "/cpu.stat")
		periods = max(periods, field(stat, "nr_throttled"))
		nanoseconds := max(field(stat, "throttled_usec")*1000, field(stat, "throttled_time")) // version 2, version 1
		held = max(held, time.Duration(nanoseconds))
	}
	return periods, held
}
