package prepare

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A tar archive is told by these bytes in the header of its first entry (POSIX.1-1988 and since).
const (
	tarMagicAt = 257
	tarMagic   = "ustar"
	tarBlock   = 512
)

// isTar reports whether a text that begins with head is a tar archive.
func isTar(head []byte) bool {
	return len(head) >= tarMagicAt+len(tarMagic) && string(head[tarMagicAt:tarMagicAt+len(tarMagic)]) == tarMagic
}

// archive reads the files of a tar archive, each a text of its own, one after another. What is no
// file ends it: events might be missing.
type archive struct {
	in  *zeroTail
	tar *tar.Reader
	at  string // name of the entry read last
}

// next returns the next file and its name. The error is io.EOF behind the last.
func (a *archive) next(ctx context.Context) (name string, r io.Reader, err error) {
	for {
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		h, err := a.tar.Next()
		switch {
		case err == io.EOF:
			return "", nil, a.end(ctx)
		case errors.Is(err, tar.ErrInsecurePath): // nothing is written by that name
		case errors.Is(err, io.ErrUnexpectedEOF):
			return "", nil, fmt.Errorf("%w: its tar archive ends %s", ErrTruncated, a.behind())
		case err != nil:
			return "", nil, fmt.Errorf("its tar archive is damaged %s: %w", a.behind(), cutShort(err))
		}
		a.at = h.Name
		sparse := slices.ContainsFunc(slices.Collect(maps.Keys(h.PAXRecords)), func(key string) bool { return strings.HasPrefix(key, "GNU.sparse.") })
		switch {
		case h.Typeflag == tar.TypeDir, h.Typeflag == tar.TypeXGlobalHeader:
			continue
		case h.Typeflag == tar.TypeReg && !sparse:
			return h.Name, &tarFile{a.tar}, nil
		case sparse:
			h.Typeflag = tar.TypeGNUSparse
		}
		what := cmp.Or(entryKinds[h.Typeflag], "of a kind that relaybench does not know")
		return "", nil, fmt.Errorf("entry %.200q of its tar archive is %s, and what it stands for cannot be read: pack regular files alone", h.Name, what)
	}
}

// entryKinds are the entries of an archive that are no plain files. The content of a sparse one is
// made up of its holes, which may be of any size.
var entryKinds = map[byte]string{
	tar.TypeGNUSparse: "a sparse file", tar.TypeLink: "a link", tar.TypeSymlink: "a link",
	tar.TypeChar: "a device", tar.TypeBlock: "a device", tar.TypeFifo: "a pipe",
}

func (a *archive) behind() string {
	if a.at == "" {
		return "in its first entry"
	}
	return fmt.Sprintf("behind entry %.200q", a.at)
}

// end makes sure that the archive has come to its end, and that no other follows. It returns io.EOF
// when that is so.
func (a *archive) end(ctx context.Context) error {
	if a.in.zeros < tarBlock {
		return fmt.Errorf("%w: its tar archive has no end %s", ErrTruncated, a.behind())
	}
	for buf := make([]byte, 64<<10); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := a.in.Read(buf)
		switch {
		case a.in.zeros < int64(n):
			return errors.New("the end of its tar archive is followed by something else, perhaps a second archive: unpack it first")
		case err != nil:
			return cutShort(err) // io.EOF is the good end
		}
	}
}

// tarFile is one file of an archive.
type tarFile struct{ r io.Reader }

func (f *tarFile) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: its tar archive ends inside this file", ErrTruncated)
	}
	return n, err
}

// zeroTail counts the zero bytes that were read last: those that end an archive, which the library
// does without.
type zeroTail struct {
	r     io.Reader
	zeros int64
}

func (z *zeroTail) Read(p []byte) (int, error) {
	n, err := z.r.Read(p)
	rest := len(bytes.TrimRight(p[:n], "\x00"))
	if rest > 0 {
		z.zeros = 0
	}
	z.zeros += int64(n - rest)
	return n, err
}
