package scripted

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"relaybench/relays/machine"
)

// load is what a scripted relay uses of its machine.
type load struct {
	script  *Script
	mu      sync.Mutex // so that the processor time of one message is not taken for another's
	ballast []byte
	files   []*os.File // the first takes what is written
}

func newLoad(s *Script, dir string) *load {
	u := &load{script: s, ballast: make([]byte, s.Memory)}
	for i := 0; i < len(u.ballast); i += os.Getpagesize() {
		u.ballast[i] = 1
	}
	open := func(name string) *os.File {
		f := must(os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644))
		u.files = append(u.files, f)
		return f
	}
	if s.WritePerMessage > 0 {
		open("written")
	}
	if s.Sparse > 0 {
		check(open("sparse").Truncate(s.Sparse))
	}
	for i := range s.Files {
		open(fmt.Sprint("open-", i))
	}
	return u
}

func (u *load) end() {
	for _, f := range u.files {
		f.Close()
	}
	clear(u.ballast) // which it is kept for until now
}

// use uses what one message is to use.
func (u *load) use() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for until := machine.OwnCPU() + u.script.CPUPerMessage; machine.OwnCPU() < until; {
	}
	if u.script.WritePerMessage > 0 {
		must(u.files[0].Write(make([]byte, u.script.WritePerMessage)))
		if u.script.Fsync {
			check(u.files[0].Sync())
		}
	}
}
