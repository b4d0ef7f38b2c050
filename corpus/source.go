package corpus

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"github.com/klauspost/pgzip"
)

// maxZstdWindow bounds what a zstd stream can make the reader allocate. The zstd program decompresses no more by default either.
const maxZstdWindow = 128 << 20

// SourceError says where in an event file reading had to stop, and why.
type SourceError struct {
	File   string // base name
	Event  int    // which event text of the file, from 1
	Offset int64  // byte of the decompressed text
	Err    error
}

func (e *SourceError) Error() string {
	return fmt.Sprintf("reading %s: at event %d, byte %d of the text: %v", e.File, e.Event, e.Offset, e.Err)
}

func (e *SourceError) Unwrap() error { return e.Err }

// ErrTruncated marks a file that ends inside an event, inside its JSON array or inside its compressed data.
var ErrTruncated = errors.New("the file is cut short")

// source is an event file being read: the decompressed text and how much of the file has been consumed for it.
type source struct {
	name  string // base name
	size  int64  // of the file
	file  *os.File
	info  os.FileInfo
	read  atomic.Int64 // bytes of the file consumed
	text  io.Reader
	close func() error
}

// openSource opens a file of events, plain or compressed, by its first bytes and never by its name.
func openSource(path string) (*source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the event file: %w", err)
	}
	s := &source{name: filepath.Base(path), file: f, close: func() error { return nil }}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *source) open() error {
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("opening the event file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: save the events to a file first (it is read twice)", s.name)
	}
	s.info, s.size = info, info.Size()
	if s.size == 0 {
		return fmt.Errorf("%s: %w: the file has no bytes", s.name, ErrEmpty)
	}
	raw := bufio.NewReaderSize(io.TeeReader(s.file, counter{&s.read}), 256<<10)
	magic, err := raw.Peek(4)
	if err != nil && err != io.EOF {
		return fmt.Errorf("reading %s: %w", s.name, err)
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return s.openGzip(raw)
	case isZstd(magic):
		return s.openZstd(raw)
	}
	s.text = raw
	return nil
}

func (s *source) openGzip(raw io.Reader) error {
	r, err := pgzip.NewReaderN(raw, 256<<10, 4)
	if err != nil {
		return fmt.Errorf("reading %s as gzip: %w", s.name, cutShort(err))
	}
	s.text, s.close = r, r.Close
	return nil
}

func (s *source) openZstd(raw io.Reader) error {
	r, err := zstd.NewReader(raw, zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderMaxMemory(4*maxZstdWindow), zstd.WithDecoderConcurrency(2))
	if err != nil {
		return fmt.Errorf("reading %s as zstd: %w", s.name, err)
	}
	s.text, s.close = r, func() error { r.Close(); return nil }
	return nil
}

// isZstd knows a zstd frame and a skippable frame, either of which may come first (RFC 8878).
func isZstd(magic []byte) bool {
	if len(magic) < 4 {
		return false
	}
	return bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}) || magic[0]&0xf0 == 0x50 && bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18})
}

// cutShort gives the libraries' ends of data in the middle of things one name.
func cutShort(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: its compressed data ends early", ErrTruncated)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("its zstd window is over %d MiB: compress it anew with a smaller one (--long=27 or less): %w", maxZstdWindow>>20, err)
	}
	return err
}

// Close closes the decompressor and the file.
func (s *source) Close() error { return errors.Join(s.close(), s.file.Close()) }

// unchanged fails if the file has been written to since it was opened.
func (s *source) unchanged() error {
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("reading %s: %w", s.name, err)
	}
	if info.Size() != s.size || !info.ModTime().Equal(s.info.ModTime()) {
		return fmt.Errorf("%s changed while it was being read: wait until it is complete and try again", s.name)
	}
	return nil
}

// hash computes the sha256 of the file as stored and leaves the file at its start.
func (s *source) hash(ctx context.Context, p Progress) (string, error) {
	digest := sha256.New()
	buf := make([]byte, 1<<20)
	for done := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return "", fmt.Errorf("hashing %s: %w", s.name, err)
		}
		n, err := s.file.ReadAt(buf, done)
		digest.Write(buf[:n])
		done += int64(n)
		p.Report("hash", done, s.size)
		if err == io.EOF {
			return hex.EncodeToString(digest.Sum(nil)), nil
		}
		if err != nil {
			return "", fmt.Errorf("hashing %s: %w", s.name, err)
		}
	}
}

// counter adds up what passes through a TeeReader.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
