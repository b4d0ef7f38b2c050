//go:build !linux

package relays

import (
	"fmt"
	"slices"

	"github.com/shirou/gopsutil/v4/net"
)

// listener says whose socket listens on a loopback port.
func listener(port int, members []int) (verdict, string) {
	conns, err := net.Connections("tcp")
	if err != nil {
		return undecided, ""
	}
	found := undecided
	for _, c := range conns {
		if c.Status != "LISTEN" || int(c.Laddr.Port) != port || c.Pid == 0 {
			continue
		}
		if !slices.Contains(members, int(c.Pid)) {
			return foreign, fmt.Sprintf("process %d", c.Pid)
		}
		found = own
	}
	return found, ""
}
