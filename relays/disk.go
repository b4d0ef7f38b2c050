package relays

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Disk is what the relay's files take, in bytes. Folders, the log and the rendered configuration do
// not count.
type Disk struct {
	Allocated int64 // blocks given to the files; what a sparse LMDB map really takes
	Apparent  int64 // the files' lengths
}

// Disk measures the relay's folder. Once the relay has ended, its files are synced first, since a
// file system may give out blocks only as it writes back. A folder that is gone, or no longer a
// folder, is an error. ErrExternal for a relay that was not launched here.
func (p *Process) Disk() (Disk, error) {
	if p.External() {
		return Disk{}, ErrExternal
	}
	p.mu.Lock()
	ended := !p.running()
	p.mu.Unlock()
	ours := p.def.config(blanks{settings: p.settings})
	seen := map[[2]uint64]bool{} // device and inode: a hard link takes no second set of blocks
	var disk Disk
	err := filepath.WalkDir(p.dir, func(path string, e fs.DirEntry, err error) error {
		switch whole, gone := path == p.dir, errors.Is(err, fs.ErrNotExist); {
		case whole && gone:
			return errors.New("its data folder is gone")
		case whole && err == nil && !e.IsDir(): // a symbolic link is not followed: what it leads to is not the relay's
			return errors.New("its data folder is no longer a folder")
		case gone: // since its folder was read: relays merge and delete files as they run
			return nil
		case err != nil || !e.Type().IsRegular():
			return err
		}
		if name, err := filepath.Rel(p.dir, path); err == nil {
			if _, rendered := ours[filepath.ToSlash(name)]; rendered {
				return nil
			}
		}
		if ended {
			if f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0); err == nil {
				_ = f.Sync()
				f.Close()
			}
		}
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			id := [2]uint64{uint64(st.Dev), st.Ino}
			if seen[id] {
				return nil
			}
			seen[id] = true
			disk.Allocated += int64(st.Blocks) * 512 // st_blocks counts 512 bytes whatever the file system's own block
		}
		disk.Apparent += info.Size()
		return nil
	})
	if err != nil {
		return Disk{}, fmt.Errorf("its disk use cannot be measured: %s", p.Public(brief(err).Error()))
	}
	return disk, nil
}
