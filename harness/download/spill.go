package download

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
)

// spill is the file that events go to as they come: canonical NDJSON, only appended to.
type spill struct {
	file  *os.File
	w     *bufio.Writer
	bytes int64 // written, buffered ones included
}

const spillBuffer = 1 << 20

// openSpill cuts off what came after the checkpoint, and calls each for every event before it.
func openSpill(name string, valid int64, each func(*corpus.Entry)) (s *spill, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrDamaged, name)
	case info.Size() < valid:
		return nil, fmt.Errorf("%w: %s has %d bytes, and should have %d", ErrDamaged, name, info.Size(), valid)
	}
	if err := f.Truncate(valid); err != nil {
		return nil, err
	}
	if err := readSpill(f, valid, each); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return &spill{f, bufio.NewWriterSize(f, spillBuffer), valid}, nil
}

// readSpill goes through the file of so many bytes to its end.
func readSpill(f *os.File, size int64, each func(*corpus.Entry)) error {
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, spillBuffer), prepare.MaxEventBytesCeiling+2)
	var e corpus.Entry
	read := int64(0)
	for lines.Scan() {
		if err := e.Read(lines.Bytes()); err != nil {
			return fmt.Errorf("behind byte %d: %w", read, err)
		}
		read += int64(e.Length) + 1
		each(&e)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("behind byte %d: %w", read, err)
	}
	if read != size {
		return errors.New("its last line has no end")
	}
	return nil
}

// add appends an event.
func (s *spill) add(line []byte) error {
	s.bytes += int64(len(line)) + 1
	_, _ = s.w.Write(line) // an error comes back from whatever is written next
	return s.w.WriteByte('\n')
}

// sync puts all that was added on the disk.
func (s *spill) sync() error {
	if err := s.w.Flush(); err != nil {
		return err
	}
	return s.file.Sync()
}
