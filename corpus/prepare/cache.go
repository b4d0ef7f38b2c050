package prepare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"relaybench/corpus"
)

// cached opens the corpus that cacheDir holds under key and that is as m says. Where there is none,
// or a damaged one, build writes it into a folder of its own first, which then becomes the entry in
// one step. Builders of one key wait for each other, in one process or several.
func cached(ctx context.Context, cacheDir, key string, m *corpus.Manifest, p corpus.Progress, build func(dir string) error) (*corpus.Corpus, error) {
	entry := filepath.Join(cacheDir, key)
	if c, err := openAs(entry, m); err == nil || !needsBuild(err) {
		return c, err
	}
	if err := os.MkdirAll(cacheDir, 0o777); err != nil {
		return nil, fmt.Errorf("creating the corpus cache: %w", explainPermission(err))
	}
	unlock, err := Lock(ctx, entry+".lock", p)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c, err := openAs(entry, m); err == nil || !needsBuild(err) {
		return c, err // somebody else has built it meanwhile
	}
	if err := buildEntry(cacheDir, key, build); err != nil {
		return nil, err
	}
	if info, err := os.Stat(filepath.Join(entry, corpus.EventsFile)); err == nil && info.Size() >= corpus.LargeFile {
		debug.FreeOSMemory() // the index, and whatever the caller does, come in place of what building has used, and not on top
	}
	return openAs(entry, m)
}

// openAs opens a corpus that must have been prepared from what m says.
func openAs(dir string, m *corpus.Manifest) (*corpus.Corpus, error) {
	c, err := corpus.Open(dir)
	if err != nil {
		return nil, err
	}
	if !c.Manifest().SameOrigin(m) {
		err := fmt.Errorf("%w: the manifest in %s is that of another corpus", corpus.ErrDamaged, dir)
		return nil, errors.Join(err, c.Close())
	}
	// A copy under another name is the same entry: it is known by the name asked for.
	c.Manifest().Source, c.Manifest().File = m.Source, m.File
	return c, nil
}

// needsBuild tells an entry that is absent or damaged from one that this process merely cannot
// open, which is to be left alone.
func needsBuild(err error) bool {
	return errors.Is(err, corpus.ErrDamaged) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// buildEntry builds and installs an entry. The key's lock is held.
func buildEntry(cacheDir, key string, build func(dir string) error) error {
	// What a killed builder of this key has left can be nobody else's: the lock is ours.
	leftovers, _ := fs.Glob(os.DirFS(cacheDir), ".building-"+key+"-*")
	for _, name := range leftovers {
		_ = os.RemoveAll(filepath.Join(cacheDir, name))
	}
	dir, err := os.MkdirTemp(cacheDir, ".building-"+key+"-")
	if err != nil {
		return fmt.Errorf("creating a folder in the corpus cache: %w", err)
	}
	defer os.RemoveAll(dir)
	err = build(dir)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		// The error names the folder, which is the cache or the one for spilling.
		err = fmt.Errorf("%w: preparing writes the size of the events twice: free some space there, or choose another folder", err)
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("installing the prepared corpus: %w", err)
	}
	entry := filepath.Join(cacheDir, key)
	if err := os.RemoveAll(entry); err != nil { // damaged, or not there
		return fmt.Errorf("removing a damaged corpus: %w", err)
	}
	if err := os.Rename(dir, entry); err != nil {
		return fmt.Errorf("installing the prepared corpus: %w", err)
	}
	return nil
}

// Lock takes an exclusive lock on the file name, which unlock removes, for work in a cache folder
// that two processes must not do at once. It waits for the holder, and reports "wait" meanwhile.
// The kernel releases the lock of a process that dies. On a file system without locks nothing is
// locked, and two builders do the same work twice.
func Lock(ctx context.Context, name string, p corpus.Progress) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return nil, fmt.Errorf("locking the corpus cache: %w", explainPermission(err))
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil && !isAt(f, name): // the holder before has removed it: others lock the new one
			f.Close()
			continue
		case err == nil, errors.Is(err, errors.ErrUnsupported), err == syscall.ENOLCK:
			return func() {
				_ = os.Remove(name) // while it is ours; one that stays does no harm
				f.Close()
			}, nil
		case err != syscall.EWOULDBLOCK && err != syscall.EINTR:
			return nil, fmt.Errorf("locking the corpus cache: %w", errors.Join(err, f.Close()))
		}
		f.Close()
		p.Report("wait", 0, 0)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another run that prepares the same corpus: %w", context.Cause(ctx))
		}
	}
}

// isAt reports whether the open file is the one that name leads to.
func isAt(f *os.File, name string) bool {
	open, err := f.Stat()
	named, gone := os.Stat(name)
	return err == nil && gone == nil && os.SameFile(open, named)
}

func explainPermission(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: choose a cache folder that can be written to", err)
	}
	return err
}
