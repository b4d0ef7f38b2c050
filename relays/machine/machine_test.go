package machine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"relaybench/results"
)

// pretend makes a machine of files, by path; a text that begins with "-> " is a link.
func pretend(t *testing.T, files map[string]string) System {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := cutLink(text); ok {
			err = os.Symlink(target, at)
		} else {
			err = os.WriteFile(at, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return System{Root: root}
}

func cutLink(text string) (target string, ok bool) {
	if len(text) > 3 && text[:3] == "-> " {
		return text[3:], true
	}
	return "", false
}

func TestQuotaAndThrottlingAreThoseOfTheTightestGroup(t *testing.T) {
	for _, test := range []struct {
		name    string
		files   map[string]string
		cores   float64
		periods uint64
		held    time.Duration
	}{
		{"no groups", nil, 0, 0, 0},
		{"version 2, the parent limits", map[string]string{
			"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/cgroup.controllers": "cpu",
			"/sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "/sys/fs/cgroup/a/b/cpu.stat": "usage_usec 5\nnr_throttled 0\nthrottled_usec 0\n",
			"/sys/fs/cgroup/a/cpu.max": "150000 100000\n", "/sys/fs/cgroup/a/cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_usec 2500\n",
		}, 1.5, 4, 2500 * time.Microsecond},
		{"version 2 in a container, whose path is not below the mount", map[string]string{
			"/proc/self/cgroup": "0::/../../host/b\n", "/sys/fs/cgroup/cgroup.controllers": "cpu",
			"/sys/fs/cgroup/cpu.max": "50000 100000\n", "/sys/fs/cgroup/cpu.stat": "nr_throttled 1\nthrottled_usec 7\n",
		}, 0.5, 1, 7 * time.Microsecond},
		{"version 1", map[string]string{
			"/proc/self/cgroup":                                "9:name=systemd:/\n3:cpuset:/\n2:cpu,cpuacct:/docker/x\n0::/\n",
			"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":      "200000\n",
			"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":     "100000\n",
			"/sys/fs/cgroup/cpu,cpuacct/cpu.stat":              "nr_periods 3\nnr_throttled 2\nthrottled_time 9000\n",
			"/sys/fs/cgroup/cpu,cpuacct/elsewhere/cpu.cfs_quo": "1",
		}, 2, 2, 9 * time.Microsecond},
		{"version 1 without a limit", map[string]string{
			"/proc/self/cgroup": "1:cpu:/\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
			"/sys/fs/cgroup/cpu/cpu.stat": "nr_throttled 0\n",
		}, 0, 0, 0},
		{"nonsense", map[string]string{
			"/proc/self/cgroup": "0::/\nx\n:::::\n", "/sys/fs/cgroup/cgroup.controllers": "", "/sys/fs/cgroup/cpu.max": "lots 0\n", "/sys/fs/cgroup/cpu.stat": "nr_throttled\nthrottled_usec -1\n",
		}, 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := pretend(t, test.files)
			if got := s.QuotaCores(); got != test.cores {
				t.Errorf("quota of %v cores, want %v", got, test.cores)
			}
			if periods, held := s.throttled(); periods != test.periods || held != test.held {
				t.Errorf("throttled in %d periods for %v, want %d for %v", periods, held, test.periods, test.held)
			}
		})
	}
}

func TestMemoryLimitIsThatOfTheTightestGroupAndKillsAreOnesOwn(t *testing.T) {
	const installed = "MemTotal:       8388608 kB\n" // 8 GiB
	for _, test := range []struct {
		name   string
		files  map[string]string
		limit  uint64
		killed uint64
	}{
		{"no groups", map[string]string{"/proc/meminfo": installed, "/proc/vmstat": "oom_kill 3\n"}, 0, 3},
		{"version 2, the parent limits", map[string]string{
			"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/cgroup.controllers": "memory", "/proc/meminfo": installed, "/proc/vmstat": "oom_kill 99\n",
			"/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "536870912\n",
			"/sys/fs/cgroup/a/b/memory.events": "low 0\noom 7\noom_kill 6\n", "/sys/fs/cgroup/a/b/memory.events.local": "oom 2\noom_kill 1\noom_group_kill 0\n",
			"/sys/fs/cgroup/a/memory.events.local": "oom_kill 50\n",
		}, 512 << 20, 1},
		{"version 2 without local events", map[string]string{
			"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/cgroup.controllers": "memory", "/sys/fs/cgroup/a/memory.max": "1048576\n",
			"/sys/fs/cgroup/a/memory.events": "max 4\noom 7\noom_kill 6\n",
		}, 1 << 20, 6},
		{"version 1", map[string]string{
			"/proc/self/cgroup": "4:memory:/docker/x\n0::/\n", "/proc/meminfo": installed,
			"/sys/fs/cgroup/memory/memory.limit_in_bytes":   "1073741824\n", // the container's own, whose path is not below the mount
			"/sys/fs/cgroup/memory/memory.oom_control":      "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
			"/sys/fs/cgroup/memory/other/memory.oom_events": "1",
		}, 1 << 30, 2},
		{"version 1 without a limit", map[string]string{
			"/proc/self/cgroup": "4:memory:/\n", "/proc/meminfo": installed,
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "/sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\n",
		}, 0, 0},
		{"nonsense", map[string]string{
			"/proc/self/cgroup": "4:memory:/\n::\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "much\n", "/sys/fs/cgroup/memory/memory.oom_control": "oom_kill\noom_kill -1\n",
		}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := pretend(t, test.files)
			if limit, killed := s.MemoryLimit(), s.killed(); limit != test.limit || killed != test.killed {
				t.Errorf("%d bytes allowed, %d killed; want %d and %d", limit, killed, test.limit, test.killed)
			}
		})
	}
}

func TestALookoutSeesWhatIsKilledAfterItBegan(t *testing.T) {
	s := pretend(t, map[string]string{"/proc/vmstat": "oom_kill 3\n"})
	l := s.Lookout(t.TempDir())
	if short := l.Short(); short != "" {
		t.Errorf("before: %q", short)
	}
	if err := os.WriteFile(s.Root+"/proc/vmstat", []byte("oom_kill 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if short := l.Short(); short != results.ShortageMemory {
		t.Errorf("after: %q", short)
	}
}

func TestSystemCallsSayWhatIsShort(t *testing.T) {
	for err, want := range map[error]string{
		&os.PathError{Op: "write", Err: syscall.ENOSPC}: results.ShortageDisk, &os.PathError{Op: "write", Err: syscall.EDQUOT}: results.ShortageDisk,
		&os.PathError{Op: "write", Err: syscall.EFBIG}: results.ShortageFileSize, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}: results.ShortageDescriptors,
		fmt.Errorf("dialing: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}): results.ShortagePorts,
		fmt.Errorf("boot: %w", ErrNoPort): results.ShortagePorts, os.NewSyscallError("fork/exec", syscall.ENOMEM): results.ShortageMemory,
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}: "", errors.New("no space left on device"): "", nil: "",
	} {
		if got := Shortage(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

func TestLocalPorts(t *testing.T) {
	for text, want := range map[string]int{"32768\t60999\n": 28232, "40000 40000": 1, "2 1": 0, "none": 0} {
		if got := pretend(t, map[string]string{"/proc/sys/net/ipv4/ip_local_port_range": text}).LocalPorts(); got != want {
			t.Errorf("%q: %d ports, want %d", text, got, want)
		}
	}
}

func TestFileSystemIsThatOfTheInnermostMount(t *testing.T) {
	s := pretend(t, map[string]string{
		"/proc/self/mountinfo": `27 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw
30 27 0:21 / /proc rw - proc proc rw
31 27 8:1 / /data rw shared:1 - xfs /dev/sda1 rw
32 27 0:40 / /fast\040disk rw - btrfs /dev/nvme0n1p2 rw
33 27 0:41 / /shm rw - tmpfs tmpfs rw
34 31 0:42 / /data/over rw - overlay overlay rw,lowerdir=/secret
broken
`,
		"/sys/devices/virtio1/block/vda/queue/rotational": "1\n", "/sys/devices/virtio1/block/vda/vda1/partition": "1\n",
		"/sys/devices/ata1/block/sda/queue/rotational": "1\n", "/sys/devices/ata1/block/sda/sda1/partition": "1\n",
		"/sys/dev/block/254:1": "-> ../../devices/virtio1/block/vda/vda1", "/sys/dev/block/8:1": "-> ../../devices/ata1/block/sda/sda1",
		"/sys/block/vda": "-> ../devices/virtio1/block/vda", "/sys/block/sda": "-> ../devices/ata1/block/sda",
	})
	for _, test := range []struct {
		dir, kind, disk string
		rotational      bool
	}{
		{"/var/none", "ext4", "virtio", false}, // what a virtual disk says of turning is worth nothing
		{"/data/x", "xfs", "SCSI or SATA", true},
		{"/database", "ext4", "virtio", false},
		{"/fast disk/x", "btrfs", "NVMe", false},
		{"/shm", "tmpfs", "", false},
		{"/data/over/x", "overlay", "", false},
	} {
		if kind, disk, rotational := s.FileSystem(test.dir); kind != test.kind || disk != test.disk || rotational != test.rotational {
			t.Errorf("%s: %q %q %t, want %q %q %t", test.dir, kind, disk, rotational, test.kind, test.disk, test.rotational)
		}
	}
	if kind, disk, _ := pretend(t, nil).FileSystem("/"); kind != "" || disk != "" {
		t.Errorf("%q %q of a machine that tells nothing", kind, disk)
	}
}

func TestSplitKeepsCoresWholeAndApart(t *testing.T) {
	threads := func(lists ...string) System {
		files := map[string]string{}
		for i, list := range lists {
			files["/sys/devices/system/cpu/cpu"+string(rune('0'+i))+"/topology/thread_siblings_list"] = list + "\n"
		}
		return pretend(t, files)
	}
	for _, test := range []struct {
		name           string
		system         System
		processors     []int
		harness, relay []int
	}{
		{"two cores", threads("0", "1"), []int{0, 1}, []int{0}, []int{1}},
		{"the relays get the odd one", threads("0", "1", "2"), []int{0, 1, 2}, []int{0}, []int{1, 2}},
		{"siblings next to each other", threads("0-1", "0-1", "2-3", "2-3"), []int{0, 1, 2, 3}, []int{0, 1}, []int{2, 3}},
		{"siblings far apart", threads("0,2", "1,3", "0,2", "1,3"), []int{0, 1, 2, 3}, []int{0, 2}, []int{1, 3}},
		{"one core with two threads", threads("0-1", "0-1"), []int{0, 1}, []int{0}, []int{1}},
		{"some are not allowed", threads("0", "1", "2", "3"), []int{1, 3}, []int{1}, []int{3}},
		{"no topology", System{Root: t.TempDir()}, []int{4, 5}, []int{4}, []int{5}},
		{"one processor", threads("0"), []int{0}, nil, nil},
		{"none", threads(), nil, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			harness, relay, ok := test.system.Split(test.processors)
			if !slices.Equal(harness, test.harness) || !slices.Equal(relay, test.relay) || ok != (test.harness != nil) {
				t.Errorf("%v and %v, %t; want %v and %v", harness, relay, ok, test.harness, test.relay)
			}
		})
	}
}

func TestGovernorContainerAndHypervisor(t *testing.T) {
	s := pretend(t, map[string]string{
		"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n", "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
		"/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor": "powersave\n",
		"/proc/1/cgroup": "0::/docker/0123\n", "/proc/cpuinfo": "flags\t: fpu hypervisor sse\n", "/sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
	})
	if got := s.Governor(); got != "performance, powersave" {
		t.Errorf("governor %q", got)
	}
	none := func(string) string { return "" }
	if c, h := s.Container(none), s.Hypervisor(); c != "docker" || h != "Amazon EC2" {
		t.Errorf("container %q, hypervisor %q", c, h)
	}
	if got := s.Container(func(name string) string { return map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}[name] }); got != "kubernetes" {
		t.Errorf("container %q", got)
	}
	metal := pretend(t, map[string]string{"/proc/cpuinfo": "flags\t: fpu sse\n", "/sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n", "/proc/1/cgroup": "0::/init.scope\n"})
	if g, c, h := metal.Governor(), metal.Container(none), metal.Hypervisor(); g != "" || c != "" || h != "" {
		t.Errorf("bare metal: governor %q, container %q, hypervisor %q", g, c, h)
	}
}

func TestConditionsAreWhatGrewMeanwhile(t *testing.T) {
	s := pretend(t, map[string]string{
		"/proc/stat": "cpu  100 0 100 0 0 0 0 50 0 0\ncpu0 1\n", "/proc/vmstat": "pswpin 1\npswpout 2\n", "/proc/meminfo": "SwapTotal: 100 kB\nSwapFree: 60 kB\n",
		"/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "3\n",
	})
	w := s.Watch()
	w.start = w.start.Add(-10 * time.Second)
	// Far more than this test itself can have used.
	for path, text := range map[string]string{
		"/proc/stat": "cpu  100100 0 100100 0 0 0 0 2050 0 0\n", "/proc/vmstat": "pswpin 3\npswpout 2\n",
		"/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "7\n",
	} {
		if err := os.WriteFile(s.Root+path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := w.Conditions()
	if c.Seconds < 10 || c.BackgroundCores <= 0 || c.BackgroundCores > 200 || c.StolenCores <= 0 || c.StolenCores > 2 {
		t.Errorf("%+v: want up to 200 background cores and 2 stolen ones over at least 10 s", c)
	}
	if c.ThermalThrottles != 4 || c.SwappedBytes != 2*uint64(os.Getpagesize()) || c.SwapUsedBytes != 40*1024 {
		t.Errorf("%+v: want 4 thermal throttles, two pages swapped and 40 KiB of swap in use", c)
	}
	// A counter that is set back is no growth.
	if err := os.WriteFile(s.Root+"/proc/stat", []byte("cpu  1 0 1 0 0 0 0 0 0 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := w.Conditions(); c.BackgroundCores != 0 || c.StolenCores != 0 {
		t.Errorf("after the counters were set back: %+v", c)
	}
}

func TestBackgroundIsUnknownWhereTheKernelDoesNotCount(t *testing.T) {
	if cores, ok := pretend(t, nil).Background(t.Context(), time.Hour); ok {
		t.Errorf("%v cores", cores)
	}
}
