package relays

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// portOwner names the process that listens at a loopback port beside or in place of the members,
// found by the inode of its socket among the descriptors of processes. It returns ""
// where the members alone listen there, or the system does not tell.
func portOwner(port int, members []int) string {
	others := listeningInodes(port)
	for _, pid := range members {
		inodes, err := socketInodes(pid)
		if errors.Is(err, fs.ErrPermission) {
			return ""
		}
		for _, inode := range inodes {
			delete(others, inode)
		}
	}
	// Two processes may share a port (SO_REUSEPORT): then only some connections would reach the
	// relay.
	for inode := range others {
		return holder(inode)
	}
	return ""
}

// listeningInodes returns the inodes of the sockets at which a connection to a loopback port may
// arrive. The kernel is asked for those that listen (sock_diag(7)): /proc/net/tcp would be read with
// thousands of closed connections.
func listeningInodes(port int) map[string]bool {
	inodes := map[string]bool{}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return inodes
	}
	defer unix.Close(fd)
	answer := make([]byte, 64<<10)
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		if unix.Sendto(fd, listenersRequest(family, port), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
			return inodes
		}
		for more := true; more; {
			n, _, err := unix.Recvfrom(fd, answer, 0)
			if err != nil {
				return inodes
			}
			messages, err := syscall.ParseNetlinkMessage(answer[:n])
			if err != nil {
				return inodes
			}
			for _, m := range messages {
				if more = m.Header.Type == sockDiagByFamily; !more { // done, or an error
					break
				}
				if inode, ok := parseListener(m.Data, port); ok {
					inodes[inode] = true
				}
			}
		}
	}
	return inodes
}

const (
	sockDiagByFamily = 20 // SOCK_DIAG_BY_FAMILY of linux/sock_diag.h
	listening        = 10 // TCP_LISTEN of the kernel's tcp_states.h
)

// listenersRequest is a netlink message that asks for the sockets of an address family that listen
// at a port: a struct inet_diag_req_v2 behind its header.
func listenersRequest(family byte, port int) []byte {
	const size = unix.SizeofNlMsghdr + 56
	b := make([]byte, size)
	native := binary.NativeEndian
	native.PutUint32(b, size)
	native.PutUint16(b[4:], sockDiagByFamily)
	native.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request := b[unix.SizeofNlMsghdr:]
	request[0], request[1] = family, unix.IPPROTO_TCP
	native.PutUint32(request[4:], 1<<listening)
	binary.BigEndian.PutUint16(request[8:], uint16(port))
	return b
}

// loopback are the addresses at which a listener gets what is sent to 127.0.0.1 or ::1.
var loopback = []netip.Addr{netip.IPv4Unspecified(), netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Unspecified(), netip.IPv6Loopback()}

// parseListener returns the inode of a struct inet_diag_msg that tells of a socket listening at a
// loopback port.
func parseListener(m []byte, port int) (inode string, ok bool) {
	if len(m) < 72 || m[1] != listening || int(binary.BigEndian.Uint16(m[4:])) != port {
		return "", false
	}
	address, _ := netip.AddrFromSlice(m[8:24])
	if m[0] == unix.AF_INET {
		address, _ = netip.AddrFromSlice(m[8:12])
	}
	return strconv.FormatUint(uint64(binary.NativeEndian.Uint32(m[68:])), 10), slices.Contains(loopback, address.Unmap())
}

func socketInodes(pid int) (inodes []string, err error) {
	paths, err := pathsOf(pid)
	for _, path := range paths {
		if inode, ok := strings.CutPrefix(path, "socket:["); ok {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	return inodes, err
}

// holder names the process that holds a socket, where it can be seen.
func holder(inode string) string {
	for _, pid := range numberedEntries("/proc") {
		if inodes, _ := socketInodes(pid); slices.Contains(inodes, inode) {
			return fmt.Sprintf("process %d (%s)", pid, commandOf(pid))
		}
	}
	return "another process"
}
