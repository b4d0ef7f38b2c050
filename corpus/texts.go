package corpus

import "io"

// Texts cuts a stream of events into their texts, one after another: NDJSON, concatenated JSON or one JSON array, plain or compressed with gzip or
// zstd, as its first bytes say. It reads the stream once, holds no more than its buffers, and parses nothing.
type Texts struct {
	source   *source
	splitter *splitter
}

// NewTexts begins to read a stream. Errors call it by the name given.
func NewTexts(r io.Reader, name string) (*Texts, error) {
	t := &Texts{source: &source{path: name, close: func() error { return nil }}}
	if err := t.source.openFrom(r); err != nil {
		return nil, err
	}
	t.splitter = newSplitter(t.source.text)
	return t, nil
}

// Next appends the next text to dst. whole is false, and nothing is appended, where it is longer than any event may be. After the last text the
// error is io.EOF; any other is a *SourceError, after which nothing can be read any more: ErrTruncated is in it where the stream ends inside of
// something.
func (t *Texts) Next(dst []byte) (out []byte, whole bool, err error) {
	out, whole, err = t.splitter.next(dst)
	if err != nil && err != io.EOF {
		err = &SourceError{t.source.path, t.splitter.events, t.splitter.offset, err}
	}
	return out, whole, err
}

// Read returns how many bytes of the stream, as stored, have been read.
func (t *Texts) Read() int64 { return t.source.read.Load() }

// Close frees the decompressor. The stream is left to who opened it.
func (t *Texts) Close() error { return t.source.close() }
