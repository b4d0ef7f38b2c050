// Package machine tells what a machine is and what it goes through, as far as that bears on
// measurements, and keeps processes to some of its processors. What the system does not tell is
// left empty; nothing it returns names the host, a user or a path.
package machine

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// System is where the kernel's files are read. The zero value is this machine.
type System struct{ Root string } // "" is "/"; a test puts /proc and /sys elsewhere

// maxFile bounds what is read of one file, in bytes. /proc/cpuinfo of a large machine is the
// largest.
const maxFile = 4 << 20

// read returns a file's text, "" where it cannot be read.
func (s System) read(path string) string {
	f, err := os.Open(s.Root + path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return string(text)
}

func (s System) exists(path string) bool {
	_, err := os.Stat(s.Root + path)
	return err == nil
}

// glob lists the files that match a pattern, as read takes them.
func (s System) glob(pattern string) []string {
	paths, _ := filepath.Glob(s.Root + pattern)
	for i := range paths {
		paths[i] = strings.TrimPrefix(paths[i], s.Root)
	}
	return paths
}

// count reads a file that holds one number.
func (s System) count(path string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(s.read(path)), 10, 64)
	return n, err == nil
}

// field returns the number after a word that begins a line.
func field(text, word string) uint64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == word {
			n, _ := strconv.ParseUint(f[1], 10, 64)
			return n
		}
	}
	return 0
}
