package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// writeWhole leaves either the whole file or none: a disk that is full takes a part of it.
func writeWhole(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil && regular(path) { // never a device or a pipe
		os.Remove(path)
	}
	return err
}

// existing are those of the files that were written: on a full disk some were not.
func existing(files ...string) []string {
	return slices.DeleteFunc(files, func(file string) bool { return !regular(file) })
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// openResults makes the run's own folder.
func (f *runFlags) openResults(started time.Time) (string, error) {
	parent := f.out
	if parent == "" {
		parent = os.Getenv("RELAYBENCH_RESULTS")
	}
	if parent == "" {
		parent = "results"
	}
	stamp := started.Format("20060102T150405Z")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("the results folder cannot be made: %w; choose another with --out", err)
	}
	for n := 1; n < 100; n++ {
		dir := filepath.Join(parent, stamp)
		if n > 1 {
			dir += fmt.Sprintf("-%d", n)
		}
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("results cannot be written: %w; choose another folder with --out", err)
		}
	}
	return "", fmt.Errorf("results cannot be written: %s has too many runs of this second", parent)
}

// workPrefix begins the name of every run's folder of data.
const workPrefix = "relaybench-"

// openWork makes the folder that holds the relays' data folders, below parent (the system's
// temporary folder where it is ""). It holds a lock on it as long as it lives, and removes what
// runs that were killed have left behind: folders whose lock nobody holds. A second signal removes
// the folder as well.
func openWork(ctx context.Context, asked string) (string, error) {
	parent := cmp.Or(asked, os.TempDir())
	parent, err := filepath.Abs(parent)
	if err == nil && asked != "" {
		err = os.MkdirAll(parent, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("the work folder cannot be made: %w; choose another with --work", err)
	}
	sweep(parent)
	// The folder gets its name when it is locked: before that, another run's sweep would take it
	// for one that was left behind.
	made, err := os.MkdirTemp(parent, ".new-"+workPrefix)
	if err != nil {
		return "", fmt.Errorf("the work folder cannot be used: %w; choose another with --work", err)
	}
	work := filepath.Join(parent, strings.TrimPrefix(filepath.Base(made), ".new-"))
	lock, err := os.OpenFile(filepath.Join(made, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // the kernel lets go of it when the program ends
	}
	if err == nil {
		err = os.Rename(made, work)
	}
	if err != nil {
		os.RemoveAll(made)
		return "", fmt.Errorf("the work folder cannot be locked: %w; choose another with --work", err)
	}
	workLocks.Store(work, lock)
	if last, ok := ctx.Value(lastWordsKey{}).(*lastWords); ok {
		last.set(work, "")
	}
	return work, nil
}

// workLocks keeps the locks' files open, by folder, until the program ends.
var workLocks sync.Map

const lockName = ".lock"

// sweep removes the work folders of runs that ended without a chance to do so. A folder without a
// lock file is not touched: it is kept data.
func sweep(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, workPrefix+"*", lockName))
	for _, name := range locks {
		lock, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(filepath.Dir(name))
		}
		lock.Close()
	}
}
