package prepare

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// Texts cuts a stream of events into their texts, one after another: JSON in any sequence, in
// arrays or not, or a tar archive of such files, plain or compressed with gzip or zstd, as its
// first bytes say. It reads the stream once, holds no more than its buffers, and parses nothing.
type Texts struct {
	path     string       // of the file, as it was given: what people are told
	read     atomic.Int64 // bytes of the stream consumed
	whole    *text
	archive  *archive // of the whole text, where it is one
	part     *text    // of the file in it that is being read
	name     string   // of that file
	splitter *splitter
}

// NewTexts begins to read a stream. Errors call it by the name given.
func NewTexts(r io.Reader, name string) (*Texts, error) {
	t := &Texts{path: name}
	whole, err := openText(bufio.NewReaderSize(io.TeeReader(r, counter{&t.read}), 256<<10))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	t.whole = whole
	if tarAhead(whole.Reader) { // what goes wrong here does so again when it is read
		in := &zeroTail{r: whole}
		t.archive = &archive{in: in, tar: tar.NewReader(in)}
	} else {
		t.splitter = newSplitter(whole.Reader)
	}
	return t, nil
}

// Next appends the next text to dst. whole is false, and nothing is appended, where it is longer
// than any event may be. After the last text the error is io.EOF; any other says where, after which
// nothing can be read any more: ErrTruncated is in it where the stream ends inside of something.
func (t *Texts) Next(dst []byte) (out []byte, whole bool, err error) {
	return t.next(context.Background(), dst)
}

func (t *Texts) next(ctx context.Context, dst []byte) (out []byte, whole bool, err error) {
	for ctx.Err() == nil {
		if t.splitter == nil {
			if err := t.nextPart(ctx); err != nil {
				return dst, false, err
			}
		}
		out, whole, err = t.splitter.next(dst)
		if err != io.EOF || t.archive == nil {
			return out, whole, t.splitter.failure(t.path, t.name, err)
		}
		t.splitter = nil
	}
	return dst, false, context.Cause(ctx)
}

// nextPart goes on with the next file of an archive. The error is io.EOF behind the last.
func (t *Texts) nextPart(ctx context.Context) error {
	if t.part != nil {
		if err := t.part.close(); err != nil {
			return fmt.Errorf("reading %s: %w", t.path, err)
		}
		t.part = nil
	}
	name, file, err := t.archive.next(ctx)
	if err == io.EOF || ctx.Err() != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", t.path, err)
	}
	t.name = name
	t.part, err = openText(bufio.NewReaderSize(file, 256<<10))
	if err == nil && tarAhead(t.part.Reader) {
		err = errors.New("a tar archive within a tar archive: unpack it first")
	}
	if err != nil {
		return fmt.Errorf("reading %s: %.200q: %w", t.path, name, err)
	}
	t.splitter = newSplitter(t.part.Reader)
	return nil
}

// place is where the last text began.
func (t *Texts) place() place { return place{t.name, t.splitter.at} }

// Close frees the decompressors. The stream is left to who opened it.
func (t *Texts) Close() (err error) {
	for _, open := range []*text{t.part, t.whole} {
		if open != nil {
			err = errors.Join(err, open.close())
		}
	}
	return err
}

// counter adds up what passes through a TeeReader.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
