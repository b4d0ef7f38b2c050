package machine

import (
	"fmt"
	"path/filepath"
	"syscall"

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

func sized(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// Allows makes sure that what this machine and shell do not allow to so many connections does not
// become the relays' fault. The error is a sentence that says what to raise.
func (s System) Allows(conns int) error {
	if ports := s.LocalPorts(); ports > 0 && ports < conns+sparePorts {
		return fmt.Errorf("%d connections need %d local ports, and this machine has %d: widen net.ipv4.ip_local_port_range, or lower --publishers and --query-conns", conns, conns+sparePorts, ports)
	}
	if size, ok := Limit(syscall.RLIMIT_FSIZE); ok && size < leastFileSize {
		return fmt.Errorf("files may have %s here, which is too little for any relay's data: raise ulimit -f", sized(size))
	}
	if space, ok := Limit(syscall.RLIMIT_AS); ok && space < leastAddressSpace {
		return fmt.Errorf("processes may have %s of address space here, and relays map their data: raise ulimit -v", sized(space))
	}
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil {
		return nil
	}
	if need := uint64(conns) + spareFiles; uint64(files.Cur) < need {
		return fmt.Errorf("%d connections need %d open files, and this shell allows %d: raise ulimit -n, or lower --publishers and --query-conns", conns, need, files.Cur)
	}
	// Go raises its own limit as far as it may and hides that from children, unless it is set: a
	// relay has as many connections as the harness.
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files)
	return nil
}

// Holds makes sure that relays have room for the corpus: held of them at a time keep data below
// work. The error is a sentence that says what to do, and beware one on what may be too little.
func (s System) Holds(work string, c results.Corpus, held int) (beware string, err error) {
	size := uint64(c.Bytes)
	if limit, ok := Limit(syscall.RLIMIT_FSIZE); ok && limit < size {
		return "", fmt.Errorf("files may have %s here, and the corpus has %s: raise ulimit -f", sized(limit), sized(size))
	}
	if limit, need := s.MemoryLimit(), leastMemory+memoryPerEvent*uint64(c.Events); limit > 0 && limit < need {
		return "", fmt.Errorf("the control group allows %s of memory, and relaybench alone takes %s for this corpus: raise it, or use a smaller corpus", sized(limit), sized(need))
	}
	parent, need := filepath.Dir(work), size*uint64(held) // the parent was asked for
	room, ok := RoomIn(work)
	full := s.Lookout(work).Full()
	switch free := sized(room.Bytes) + " are free in " + parent; {
	case !ok || held == 0:
	case full == results.ShortageInodes || room.Inodes < uint64(leastInodes*held):
		return "", fmt.Errorf("the file system of %s has room for %d files, and relays need more: remove some, or choose another with --work", parent, room.Inodes)
	case full != "" || room.Bytes < need:
		return "", fmt.Errorf("%s, and the relays' data takes more than %s: free some, or choose another disk with --work", free, sized(need))
	case room.Bytes < 4*need:
		return free + ", and the relays' data may take more than that: --work chooses another disk", nil
	}
	return "", nil
}
