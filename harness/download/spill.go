package download

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"relaybench/corpus"
)

// spill is the file that events go to as they come: NDJSON that is only ever appended to, in canonical form.
type spill struct {
	file  *os.File
	w     *bufio.Writer
	bytes int64 // written, buffered ones included
}

const spillBuffer = 1 << 20

// openSpill opens the file, cuts off what was written after the checkpoint, and calls each for every event before it.
func openSpill(name string, valid int64, each func(id *corpus.ID, createdAt int64)) (s *spill, err error) {
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
	if err := readSpill(f, each); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return &spill{f, bufio.NewWriterSize(f, spillBuffer), valid}, nil
}

// readSpill goes through the file to its end.
func readSpill(f *os.File, each func(id *corpus.ID, createdAt int64)) error {
	r := bufio.NewReaderSize(f, spillBuffer)
	for {
		line, err := r.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		id, at, ok := lineHead(line)
		for errors.Is(err, bufio.ErrBufferFull) { // only the head matters
			_, err = r.ReadSlice('\n')
		}
		if !ok || err != nil {
			return fmt.Errorf("a line of it is no event, or only the beginning of one")
		}
		each(&id, at)
	}
}

// lineHead reads the id and the time of an event's canonical JSON, in which they stand at known places.
func lineHead(line []byte) (id corpus.ID, createdAt int64, ok bool) {
	const (
		beforeID   = `{"id":"`
		beforeKey  = `","pubkey":"`
		beforeTime = `","created_at":`
		digits     = 64
		keyAt      = len(beforeID) + digits
		timeAt     = keyAt + len(beforeKey) + digits
		at         = timeAt + len(beforeTime)
	)
	if len(line) < at || string(line[:len(beforeID)]) != beforeID || string(line[keyAt:keyAt+len(beforeKey)]) != beforeKey ||
		string(line[timeAt:at]) != beforeTime {
		return id, 0, false
	}
	id, ok = corpus.ParseID(line[len(beforeID):keyAt])
	end := bytes.IndexByte(line[at:min(len(line), at+21)], ',')
	if !ok || end < 0 {
		return id, 0, false
	}
	createdAt, err := strconv.ParseInt(string(line[at:at+end]), 10, 64)
	return id, createdAt, err == nil
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
