package main

import (
	"fmt"
	"io"
	"path/filepath"
	"syscall"

	"relaybench/relays/machine"
	"relaybench/report"
	"relaybench/results"
)

// What a run takes at the least, whatever its corpus. Relays map their stores into memory and make
// large files beforehand.
const (
	leastFileSize     = 64 << 20 // bytes
	leastAddressSpace = 4 << 30  // bytes
	leastMemory       = 64 << 20 // bytes, and memoryPerEvent
	memoryPerEvent    = 110      // bytes, of the corpus's index
	leastInodes       = 64       // for each relay
	sparePorts        = 16
	spareFiles        = 64
)

// checkLimits makes sure that what this machine and shell do not allow does not become the relays'
// fault.
func checkLimits(conns int) error {
	if ports := (machine.System{}).LocalPorts(); ports > 0 && ports < conns+sparePorts {
		return usagef("%d connections need %d local ports, and this machine has %d: widen net.ipv4.ip_local_port_range, or lower --publishers and --query-conns", conns, conns+sparePorts, ports)
	}
	if size, ok := machine.Limit(syscall.RLIMIT_FSIZE); ok && size < leastFileSize {
		return usagef("files may have %s here, which is too little for any relay's data: raise ulimit -f", report.BytesText(float64(size)))
	}
	if space, ok := machine.Limit(syscall.RLIMIT_AS); ok && space < leastAddressSpace {
		return usagef("processes may have %s of address space here, and relays map their data: raise ulimit -v", report.BytesText(float64(space)))
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return nil
	}
	if need := uint64(conns) + spareFiles; uint64(files.Cur) < need {
		return usagef("%d connections need %d open files, and this shell allows %d: raise ulimit -n, or lower --publishers and --query-conns", conns, need, files.Cur)
	}
	// Go raises its own limit as far as it may and hides that from children, unless it is set: a
	// relay has as many connections as the harness.
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files)
	return nil
}

// checkRoom makes sure that relays have room for the corpus: held of them at a time keep data below
// work. What may be too little is told to stderr.
func checkRoom(stderr io.Writer, work string, c results.Corpus, held int) error {
	need := uint64(c.Bytes) * uint64(held)
	if size, ok := machine.Limit(syscall.RLIMIT_FSIZE); ok && size < uint64(c.Bytes) {
		return usagef("files may have %s here, and the corpus has %s: raise ulimit -f", report.BytesText(float64(size)), report.BytesText(float64(c.Bytes)))
	}
	if limit, need := (machine.System{}).MemoryLimit(), leastMemory+memoryPerEvent*uint64(c.Events); limit > 0 && limit < need {
		return usagef("the control group allows %s of memory, and relaybench alone takes %s for this corpus: raise it, or use a smaller corpus", report.BytesText(float64(limit)), report.BytesText(float64(need)))
	}
	parent := filepath.Dir(work) // which was asked for
	room, ok := machine.RoomIn(work)
	full := machine.System{}.Lookout(work).Full()
	switch {
	case !ok || held == 0:
	case full == results.ShortageInodes || room.Inodes < uint64(leastInodes*held):
		return usagef("the file system of %s has room for %d files, and relays need more: remove some, or choose another with --work", parent, room.Inodes)
	case full != "" || room.Bytes < need:
		return usagef("%s are free in %s, and the relays' data takes more than %s: free some, or choose another disk with --work", report.BytesText(float64(room.Bytes)), parent, report.BytesText(float64(need)))
	case room.Bytes < 4*need:
		fmt.Fprintf(stderr, "beware: %s are free in %s, and the relays' data may take more than that: --work chooses another disk\n", report.BytesText(float64(room.Bytes)), parent)
	}
	return nil
}
