package machine

import (
	"slices"
	"strings"
)

// hypervisors are recognised by what the firmware says of the vendor or the product, in lower case.
var hypervisors = []struct{ word, name string }{
	{"kvm", "kvm"}, {"qemu", "kvm"}, {"amazon", "Amazon EC2"}, {"google", "Google Compute Engine"}, {"vmware", "VMware"}, {"virtualbox", "VirtualBox"},
	{"microsoft", "Hyper-V"}, {"xen", "Xen"}, {"digitalocean", "DigitalOcean"}, {"hetzner", "Hetzner"}, {"parallels", "Parallels"},
}

// Hypervisor names what runs the virtual machine; "" on bare metal, as far as can be told.
func (s System) Hypervisor() string {
	firmware := strings.ToLower(s.read("/sys/class/dmi/id/sys_vendor") + s.read("/sys/class/dmi/id/product_name") + s.read("/sys/hypervisor/type"))
	info := s.read("/proc/cpuinfo")
	virtual := false
	for line := range strings.Lines(info) {
		if name, flags, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "flags" {
			virtual = slices.Contains(strings.Fields(flags), "hypervisor")
			break
		}
	}
	for _, h := range hypervisors {
		// Microsoft makes computers as well: of x86 processors, only those in a virtual machine
		// have the flag.
		if strings.Contains(firmware, h.word) && (virtual || h.name == "kvm" || !strings.Contains(info, "flags")) {
			return h.name
		}
	}
	if virtual {
		return "a hypervisor"
	}
	return ""
}

// Container names what runs the container; "" outside of one, as far as can be told. getenv reads
// the environment.
func (s System) Container(getenv func(string) string) string {
	switch groups := s.read("/proc/1/cgroup"); {
	case getenv("KUBERNETES_SERVICE_HOST") != "" || strings.Contains(groups, "kubepods"):
		return "kubernetes"
	case s.exists("/run/.containerenv") || getenv("container") == "podman":
		return "podman"
	case s.exists("/.dockerenv") || strings.Contains(groups, "/docker"):
		return "docker"
	case strings.Contains(groups, "/lxc") || getenv("container") == "lxc":
		return "lxc"
	case getenv("container") != "":
		return "a container"
	}
	return ""
}
