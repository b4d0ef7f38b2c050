package relays

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// portOwner names the process that listens at a loopback port beside or in place of the members,
// found by the inode of its socket in /proc/net and in the descriptors of processes. It returns ""
// where the members alone listen there, or the system does not tell.
func portOwner(port int, members []int) string {
	others := map[string]bool{} // inodes
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		listeningInodes(table, port, others)
	}
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

// loopbackAddresses are the local addresses, as /proc/net/tcp and tcp6 write them, at which
// 127.0.0.1 or ::1 is reached. The kernel writes words in the machine's byte order.
var loopbackAddresses = map[string]bool{
	"00000000": true, "0100007F": true, "7F000001": true,
	"00000000000000000000000000000000": true,
	"00000000000000000000000001000000": true, "00000000000000000000000000000001": true,
	"0000000000000000FFFF00000100007F": true, "00000000000000000000FFFF7F000001": true,
}

func listeningInodes(table string, port int, inodes map[string]bool) {
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan() // the head
	for lines.Scan() {
		// Sockets that listen come before all others, of which there may be thousands.
		if fields := strings.Fields(lines.Text()); len(fields) < 4 || fields[3] != listening {
			return
		}
		if inode, ok := parseListening(lines.Text(), port); ok {
			inodes[inode] = true
		}
	}
}

const listening = "0A" // as a socket's state

// parseListening returns the inode from a line of /proc/net/tcp that tells of a socket listening at
// port (proc_net(5)).
func parseListening(line string, port int) (inode string, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 10 || fields[3] != listening || fields[9] == "0" {
		return "", false
	}
	address, hex, ok := strings.Cut(fields[1], ":")
	if !ok || !loopbackAddresses[address] {
		return "", false
	}
	if n, err := strconv.ParseUint(hex, 16, 16); err != nil || int(n) != port {
		return "", false
	}
	return fields[9], true
}

func socketInodes(pid int) ([]string, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var inodes []string
	for _, e := range entries {
		target, err := os.Readlink(dir + "/" + e.Name())
		if err != nil {
			continue
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	return inodes, nil
}

// holder names the process that holds a socket, where it can be seen.
func holder(inode string) string {
	for _, pid := range numberedEntries("/proc") {
		inodes, err := socketInodes(pid)
		if err != nil {
			continue
		}
		for _, held := range inodes {
			if held == inode {
				return fmt.Sprintf("process %d (%s)", pid, commandOf(pid))
			}
		}
	}
	return "another process"
}
