package machine

import (
	"path/filepath"
	"strings"
)

// deviceKinds tells kinds of block devices by how Linux names them. Of virtual devices the word on
// whether they turn is worth nothing: they often say that they do.
var deviceKinds = []struct {
	prefix, kind string
	physical     bool
}{
	{"nvme", "NVMe", true}, {"vd", "virtio", false}, {"xvd", "Xen", false}, {"sd", "SCSI or SATA", true}, {"mmcblk", "MMC", true},
	{"md", "RAID", true}, {"dm-", "device mapper", true}, {"loop", "loop", false}, {"zram", "zram", false},
	{"nbd", "network block device", false}, {"rbd", "Ceph", false}, {"bcache", "bcache", true},
}

// FileSystem tells on what a folder lies: the file system's type, the kind of its device, and
// whether that turns.
func (s System) FileSystem(dir string) (kind, disk string, rotational bool) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	var longest, device, source string
	for line := range strings.Lines(s.read("/proc/self/mountinfo")) {
		// 36 35 98:0 /root /mount options… - type source superoptions (proc_pid_mountinfo(5))
		left, right, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(left), strings.Fields(right)
		if !ok || len(f) < 5 || len(g) < 2 {
			continue
		}
		point := unescape(f[4])
		// A later mount on the same point hides an earlier one.
		if len(point) >= len(longest) && (dir == point || strings.HasPrefix(dir, strings.TrimSuffix(point, "/")+"/")) {
			longest, device, kind, source = point, f[2], g[0], g[1]
		}
	}
	if kind == "" {
		return "", "", false
	}
	name := ""
	if at, err := filepath.EvalSymlinks(s.Root + "/sys/dev/block/" + device); err == nil {
		name = filepath.Base(at)
		if !s.exists("/sys/dev/block/" + device + "/queue/rotational") { // a partition: its disk is the folder above
			name = filepath.Base(filepath.Dir(at))
		}
	} else if strings.HasPrefix(source, "/dev/") { // btrfs and others have device numbers of their own
		name = filepath.Base(source)
	}
	for _, k := range deviceKinds {
		if strings.HasPrefix(name, k.prefix) {
			turns, _ := s.count("/sys/block/" + name + "/queue/rotational")
			return kind, k.kind, k.physical && turns == 1
		}
	}
	return kind, "", false
}

// unescape undoes what mountinfo does to blanks and backslashes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
