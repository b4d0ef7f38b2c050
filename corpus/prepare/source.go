package prepare

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

	"relaybench/corpus"

	"github.com/klauspost/compress/zstd"
	"github.com/klauspost/pgzip"
)

// maxZstdWindow bounds what a zstd stream can make the reader allocate. The zstd program
// decompresses no more by default either.
const maxZstdWindow = 128 << 20

// SourceError says where in an event file reading had to stop, and why.
type SourceError struct {
	File   string // as it was given
	Part   string // the file's name within a tar archive, "" where there is none
	Event  int    // which event text of it, from 1
	Line   int    // of the decompressed text, from 1
	Offset int64  // byte of the decompressed text
	Err    error
}

func (e *SourceError) Error() string {
	part := ""
	if e.Part != "" {
		part = fmt.Sprintf("%.200q, ", e.Part)
	}
	return fmt.Sprintf("reading %s: %sat event %d, line %d, byte %d of the text: %v", e.File, part, e.Event, e.Line, e.Offset, e.Err)
}

func (e *SourceError) Unwrap() error { return e.Err }

// ErrTruncated marks a file that ends inside an event, its JSON array or its compressed data.
var ErrTruncated = errors.New("the file is cut short")

// source is an event file being read.
type source struct {
	*Texts
	file *os.File
	info os.FileInfo // as it was when it was opened
}

// openSource opens a file of events, plain or compressed, by its first bytes and never by its name.
func openSource(path string) (*source, error) {
	f, info, err := corpus.OpenRegular(path)
	if errors.Is(err, corpus.ErrNotRegular) {
		return nil, fmt.Errorf("%w: save the events to a file first (it is read twice)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the event file: %w", err)
	}
	s := &source{file: f, info: info}
	if info.Size() == 0 {
		err = fmt.Errorf("%s: %w: the file has no bytes", path, ErrEmpty)
	} else {
		s.Texts, err = NewTexts(f, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// Close closes the decompressors and the file.
func (s *source) Close() error { return errors.Join(s.Texts.Close(), s.file.Close()) }

// unchanged fails if the file has been written to since it was opened.
func (s *source) unchanged() error {
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("reading %s: %w", s.path, err)
	}
	if info.Size() != s.info.Size() || !info.ModTime().Equal(s.info.ModTime()) {
		return fmt.Errorf("%s changed while it was being read: wait until it is complete and try again", s.path)
	}
	return nil
}

// hash computes the sha256 of the file as stored and leaves the file at its start.
func (s *source) hash(ctx context.Context, p corpus.Progress) (string, error) {
	digest := sha256.New()
	buf := make([]byte, 1<<20)
	for done := int64(0); ; {
		n, err := s.file.ReadAt(buf, done)
		digest.Write(buf[:n])
		done += int64(n)
		p.Report("hash", done, s.info.Size())
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if err == io.EOF {
			return hex.EncodeToString(digest.Sum(nil)), nil
		}
		if err != nil {
			return "", fmt.Errorf("hashing %s: %w", s.path, err)
		}
	}
}

// text is what is read of a file, or of one in an archive, decompressed.
type text struct {
	*bufio.Reader
	close func() error
}

// jsonAhead says whether what begins here can be JSON.
func jsonAhead(r *bufio.Reader) bool {
	first, _ := r.Peek(1)
	return len(first) == 1 && bytes.IndexByte([]byte("{[\" \t\r\n\x1e"), first[0]) >= 0
}

// tarAhead says whether a tar archive begins here. What begins as JSON does is none, and is not
// waited for: a stream may say little for long.
func tarAhead(r *bufio.Reader) bool {
	if jsonAhead(r) {
		return false
	}
	head, _ := r.Peek(tarBlock)
	return isTar(head)
}

// maxNested is how many compressions may be within each other: each takes a decompressor.
const maxNested = 8

// openText finds out how the bytes are compressed, and what is compressed within that.
func openText(raw *bufio.Reader) (*text, error) {
	magic, err := raw.Peek(16)
	if err != nil && err != io.EOF {
		return nil, err
	}
	t := &text{raw, func() error { return nil }}
	for nested := 0; ; nested++ {
		r, done, err := decompress(t.Reader, magic)
		if err != nil {
			return nil, errors.Join(err, t.close())
		}
		if r == nil {
			return t, nil
		}
		outer := t.close
		t = &text{bufio.NewReaderSize(r, 1<<20), func() error { return errors.Join(done(), outer()) }}
		if nested == maxNested {
			return nil, errors.Join(errors.New("it is compressed too many times over: decompress it first"), t.close())
		}
		if jsonAhead(t.Reader) {
			return t, nil
		}
		magic, _ = t.Peek(16) // what goes wrong here does so again when it is read
	}
}

// decompress reads what begins with magic, by its compression; without one it returns nil.
func decompress(raw *bufio.Reader, magic []byte) (r io.Reader, done func() error, err error) {
	if bytes.HasPrefix(magic, gzipMagic) {
		gzip, err := pgzip.NewReaderN(raw, 256<<10, 4)
		if err != nil {
			return nil, nil, fmt.Errorf("its gzip data: %w", cutShort(err))
		}
		gzip.Multistream(false)
		return &gzipReader{raw, gzip}, gzip.Close, nil
	}
	if isZstd(magic) {
		d, err := zstd.NewReader(raw, zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderMaxMemory(4*maxZstdWindow), zstd.WithDecoderConcurrency(2))
		if err != nil {
			return nil, nil, fmt.Errorf("its zstd data: %w", err)
		}
		return d, func() error { d.Close(); return nil }, nil
	}
	if what := whatBegins(magic, foreign); what != "" {
		return nil, nil, fmt.Errorf("it is %s", what)
	}
	return nil, nil, nil
}

// beginning is what something is known by.
type beginning struct{ bytes, what string }

// whatBegins names what begins so, "" for anything that is not listed.
func whatBegins(head []byte, list []beginning) string {
	for _, known := range list {
		if bytes.HasPrefix(head, []byte(known.bytes)) {
			return known.what
		}
	}
	return ""
}

// foreign are the files that cannot be read. Without it each of their lines would count as an event
// that is none.
var foreign = []beginning{
	{"\xfd7zXZ\x00", "compressed with xz: decompress it first, or compress it with gzip or zstd"},
	{"BZh", "compressed with bzip2: decompress it first, or compress it with gzip or zstd"},
	{"\x04\x22\x4d\x18", "compressed with lz4: decompress it first, or compress it with gzip or zstd"},
	{"PK\x03\x04", "a zip archive: unpack it first"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"},
	{"SQLite format 3\x00", "an SQLite database: export its events as JSON first"},
}

var gzipMagic = []byte{0x1f, 0x8b}

// gzipReader reads gzip members that follow each other. It does so member by member to know what
// stands behind one: the library takes anything there for the next member, and then for a file that
// is cut short.
type gzipReader struct {
	raw    *bufio.Reader
	member *pgzip.Reader
}

var errBehindGzip = errors.New("its gzip data is followed by something that is not gzip: cut that off")

func (r *gzipReader) Read(p []byte) (int, error) {
	for {
		n, err := r.member.Read(p)
		if n > 0 || err != io.EOF {
			return n, err
		}
		next, err := r.raw.Peek(2)
		switch {
		case len(next) == 0:
			return 0, err // io.EOF is the good end
		case !bytes.HasPrefix(gzipMagic, next):
			return 0, errBehindGzip
		}
		if err := r.member.Reset(r.raw); err != nil {
			return 0, err
		}
		r.member.Multistream(false)
	}
}

// isZstd knows a zstd frame and a skippable frame, either of which may come first (RFC 8878).
func isZstd(magic []byte) bool {
	if len(magic) < 4 {
		return false
	}
	return bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}) || magic[0]&0xf0 == 0x50 && bytes.HasPrefix(magic[1:], []byte{0x2a, 0x4d, 0x18})
}

// cutShort gives the libraries' ends of data in the middle of things one name.
func cutShort(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: its compressed data ends early", ErrTruncated)
	case errors.Is(err, zstd.ErrMagicMismatch):
		return fmt.Errorf("its zstd data is followed by something that is not zstd: cut that off (%w)", err)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("its zstd window is over %d MiB: compress it anew with a smaller one (--long=27 or less): %w", maxZstdWindow>>20, err)
	}
	return err
}
