package corpus

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrNotRegular marks a path that leads to a folder, device, pipe or socket.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens a regular file for reading. Whatever else stands at path is refused without
// being opened: opening a pipe waits for a writer, where no signal is heard, and opening a device
// can do things. The error names the path as given.
func OpenRegular(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := checkRegular(path, info); err != nil {
		return nil, nil, err
	}
	// Something else may be there by now: what is opened must not wait, and is looked at again.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = checkRegular(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func checkRegular(path string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a folder, %w", path, ErrNotRegular)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is %w", path, ErrNotRegular)
	}
	return nil
}
