package corpus

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Writer writes a corpus's two files and sums up the manifest as it goes.
type Writer struct {
	dir     string
	file    *os.File
	buf     *bufio.Writer
	summary *summary
	sum     *checksum
}

// NewWriter begins a corpus in dir, which exists and has none.
func NewWriter(dir string) (*Writer, error) {
	f, err := os.Create(filepath.Join(dir, EventsFile))
	if err != nil {
		return nil, fmt.Errorf("creating the prepared corpus: %w", err)
	}
	return &Writer{dir: dir, file: f, buf: bufio.NewWriterSize(f, 1<<20), summary: newSummary(), sum: newChecksum()}, nil
}

// Add writes the next event of the corpus order. Of its entry Offset and Length are not read.
func (w *Writer) Add(e Entry, line []byte) error {
	e.Length = uint32(len(line))
	w.summary.add(&e)
	w.sum.addLine(line)
	w.buf.Write(line)
	return w.buf.WriteByte('\n')
}

// Finish completes both files. It does not wait until the disk has them, which can take longer than
// everything else: a machine that fails in the meantime may leave a damaged corpus, which the
// checksum finds, and which then is prepared anew.
func (w *Writer) Finish(m Manifest) error {
	err := errors.Join(w.buf.Flush(), w.file.Close())
	w.file = nil
	if err != nil {
		return fmt.Errorf("writing the prepared corpus: %w", err)
	}
	w.summary.fill(&m)
	m.Checksum = w.sum.String()
	return m.write(w.dir)
}

// Close gives up whatever Finish has not closed.
func (w *Writer) Close() {
	if w.file != nil {
		w.file.Close()
	}
}
