package relays

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// workPrefix begins the name of every folder of relays' data.
const workPrefix = "relaybench-"

// lockName is the file in it whose lock says that it is in use.
const lockName = ".lock"

// work is all folders that are open.
var work struct {
	sync.Mutex
	folders map[string]*workFolder
}

type workFolder struct {
	lock *os.File
	keep bool
}

// OpenWork makes a folder for Settings.WorkDir below parent, the system's temporary folder where it
// is "". It is locked until CloseWork, which removes it unless it is to be kept, as KillAll does.
// What processes that were killed have left there is removed as well: folders whose lock nobody
// holds.
func OpenWork(parent string, keep bool) (dir string, err error) {
	dir, lock, err := openWork(cmp.Or(parent, os.TempDir()), parent != "")
	if err != nil {
		return "", fmt.Errorf("the work folder cannot be used: %w; choose another with --work", err)
	}
	work.Lock()
	defer work.Unlock()
	if work.folders == nil {
		work.folders = map[string]*workFolder{}
	}
	work.folders[dir] = &workFolder{lock, keep}
	return dir, nil
}

func openWork(parent string, asked bool) (dir string, lock *os.File, err error) {
	parent, err = filepath.Abs(parent)
	if err == nil && asked {
		err = os.MkdirAll(parent, 0o755)
	}
	if err != nil {
		return "", nil, err
	}
	sweep(parent)
	// The folder gets its name when it is locked: before that, another process' sweep would take it
	// for one that was left behind.
	made, err := os.MkdirTemp(parent, ".new-"+workPrefix)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(parent, strings.TrimPrefix(filepath.Base(made), ".new-"))
	lock, err = os.OpenFile(filepath.Join(made, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = flock(lock) // the kernel lets go of it when the program ends
	}
	if err == nil {
		err = os.Rename(made, dir)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(made))
	}
	return dir, lock, nil
}

// CloseWork ends the use of a folder of OpenWork.
func CloseWork(dir string) error {
	work.Lock()
	defer work.Unlock()
	f := work.folders[dir]
	delete(work.folders, dir)
	return errors.Join(f.end(dir), f.lock.Close())
}

// end removes the folder, or what says that it is in use.
func (f *workFolder) end(dir string) error {
	if f.keep {
		dir = filepath.Join(dir, lockName)
	}
	return os.RemoveAll(dir)
}

func endWork() {
	work.Lock()
	defer work.Unlock()
	for dir, f := range work.folders {
		f.end(dir)
	}
}

func flock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// sweep removes folders that were left behind. One without a lock file is not touched: it is kept
// data.
func sweep(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, workPrefix+"*", lockName))
	for _, name := range locks {
		lock, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if flock(lock) == nil {
			os.RemoveAll(filepath.Dir(name))
		}
		lock.Close()
	}
}
