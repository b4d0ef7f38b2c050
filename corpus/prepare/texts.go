package prepare

import (
	"context"
	"io"
)

// Texts cuts a stream of events into their texts, one after another: JSON in any sequence, in
// arrays or not, or a tar archive of such files, plain or compressed with gzip or zstd, as its
// first bytes say. It reads the stream once, holds no more than its buffers, and parses nothing.
type Texts struct {
	source   *source
	splitter *splitter // of the text at hand, nil before the first and between two
	part     string
}

// NewTexts begins to read a stream. Errors call it by the name given.
func NewTexts(r io.Reader, name string) (*Texts, error) {
	t := &Texts{source: &source{path: name}}
	if err := t.source.openFrom(r); err != nil {
		return nil, err
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
			part, text, err := t.source.next(ctx)
			if err != nil {
				return dst, false, err
			}
			t.part, t.splitter = part, newSplitter(text)
		}
		out, whole, err = t.splitter.next(dst)
		if err != io.EOF {
			return out, whole, t.splitter.failure(t.source.path, t.part, err)
		}
		t.splitter = nil
	}
	return dst, false, context.Cause(ctx)
}

// place is where the last text began.
func (t *Texts) place() place { return place{t.part, t.splitter.at} }

// Close frees the decompressor. The stream is left to who opened it.
func (t *Texts) Close() error { return t.source.closeTexts() }
