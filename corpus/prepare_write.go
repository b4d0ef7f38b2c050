package corpus

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// writer writes a corpus's two files and sums up the manifest as it goes.
type writer struct {
	dir   string
	file  *os.File
	buf   *bufio.Writer
	tally *tally
	sum   *checksum
}

func newWriter(dir string) (*writer, error) {
	f, err := os.Create(filepath.Join(dir, EventsFile))
	if err != nil {
		return nil, fmt.Errorf("creating the prepared corpus: %w", err)
	}
	return &writer{dir: dir, file: f, buf: bufio.NewWriterSize(f, 1<<20), tally: newTally(), sum: newChecksum()}, nil
}

// add writes the next event of the corpus order.
func (w *writer) add(r *record, line []byte) error {
	w.tally.add(&Entry{ID: r.id, CreatedAt: r.createdAt, Kind: r.kind, Length: uint32(len(line))})
	w.sum.addLine(line)
	w.buf.Write(line)
	return w.buf.WriteByte('\n')
}

// finish completes both files. It does not wait until the disk has them, which can take longer than everything else: a machine that fails
// in the meantime may leave a damaged corpus, which the checksum finds, and which then is prepared anew.
func (w *writer) finish(m Manifest) error {
	err := errors.Join(w.buf.Flush(), w.file.Close())
	w.file = nil
	if err != nil {
		return fmt.Errorf("writing the prepared corpus: %w", err)
	}
	w.tally.fill(&m)
	m.Checksum = w.sum.String()
	return m.write(w.dir)
}

// close gives up whatever finish has not closed.
func (w *writer) close() {
	if w.file != nil {
		w.file.Close()
	}
}
