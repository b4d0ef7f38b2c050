package corpus

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// runBytes is how much the sorter holds before it writes a sorted run to disk; it holds twice that while a run is being written.
// maxRuns bounds the files that a merge has open.
const (
	runBytes = 64 << 20
	maxRuns  = 128
)

// record is what the sorter knows of an event beside its canonical line.
type record struct {
	createdAt int64
	id        ID
	kind      uint16
	start     uint32 // of the line in its run's lines
	length    uint32
}

// recordSize is what a record takes in memory, about.
const recordSize = 56

func compareRecords(a, b *record) int {
	return cmp.Or(cmp.Compare(a.createdAt, b.createdAt), bytes.Compare(a.id[:], b.id[:]))
}

// run is a part of the events, in memory.
type run struct {
	records []record
	lines   []byte
}

func (r *run) size() int { return len(r.lines) + recordSize*len(r.records) }

func (r *run) line(rec *record) []byte { return r.lines[rec.start:][:rec.length] }

// sort keeps the order of arrival among equals.
func (r *run) sort() {
	slices.SortStableFunc(r.records, func(a, b record) int { return compareRecords(&a, &b) })
}

// sorter puts any number of events into corpus order in bounded memory: runs sorted in memory, written to temporary files, merged. Of
// events with one id it keeps the one that was added first.
type sorter struct {
	dir        string
	own        bool // dir was made for it alone
	runBytes   int
	maxRuns    int
	added      int
	duplicates int // found so far: complete after each

	current *run
	spare   *run
	files   []string   // runs on disk, oldest first
	named   int        // files ever created
	writing chan error // result of the run being written, nil if there is none
}

func newSorter(dir string) *sorter {
	return &sorter{dir: dir, runBytes: runBytes, maxRuns: maxRuns, current: new(run), spare: new(run)}
}

// add takes an event; line is copied.
func (s *sorter) add(ctx context.Context, createdAt int64, id *ID, kind uint16, line []byte) error {
	if len(s.current.records) > 0 && s.current.size()+len(line)+recordSize > s.runBytes {
		if err := s.spill(ctx); err != nil {
			return err
		}
	}
	r := s.current
	r.records = append(r.records, record{createdAt, *id, kind, uint32(len(r.lines)), uint32(len(line))})
	if len(r.lines)+len(line) > cap(r.lines) {
		// Twice the size each time, where append takes a quarter more: it would move the text five times over.
		r.lines = slices.Grow(r.lines, max(len(line), min(len(r.lines), s.runBytes-len(r.lines)), 1<<16))
	}
	r.lines = append(r.lines, line...)
	s.added++
	return nil
}

// spill starts writing the current run to disk, once the run before it has been written, and goes on with an empty one.
func (s *sorter) spill(ctx context.Context) error {
	if err := s.wait(); err != nil {
		return err
	}
	if len(s.files) >= s.maxRuns {
		if err := s.mergeToOne(ctx); err != nil {
			return err
		}
	}
	full, name := s.current, s.newName()
	s.current, s.spare = s.spare, full
	s.current.records, s.current.lines = s.current.records[:0], s.current.lines[:0]
	s.files = append(s.files, name)
	s.writing = make(chan error, 1)
	go func(done chan<- error) {
		full.sort()
		done <- writeRun(name, full)
	}(s.writing)
	return nil
}

// wait returns when no run is being written.
func (s *sorter) wait() error {
	if s.writing == nil {
		return nil
	}
	err := <-s.writing
	s.writing = nil
	return err
}

// close removes all temporary files. What becomes of a run that is still being written no longer matters.
func (s *sorter) close() {
	_ = s.wait()
	for _, name := range s.files {
		_ = os.Remove(name) // the folder is removed or used: a file left over does no harm to either
	}
	if s.own {
		_ = os.RemoveAll(s.dir)
	}
}

func (s *sorter) newName() string {
	s.named++
	return filepath.Join(s.dir, fmt.Sprintf("run-%d", s.named))
}

// each visits the newest limit events (all, if limit is 0) in corpus order and returns how many older ones it passed over. It is called
// once, after the last add.
func (s *sorter) each(ctx context.Context, limit int, visit func(r *record, line []byte) error) (over int, err error) {
	if err := s.wait(); err != nil {
		return 0, err
	}
	if len(s.files) == 0 {
		return s.eachInMemory(ctx, limit, visit)
	}
	if err := s.spill(ctx); err != nil {
		return 0, err
	}
	if err := s.wait(); err != nil {
		return 0, err
	}
	s.current, s.spare = nil, nil
	if limit == 0 {
		return 0, s.merge(ctx, visit)
	}
	// How many to pass over is known once duplicates are gone: one more pass over the disk, for dumps that need a limit and do not fit
	// into memory.
	if err := s.mergeToOne(ctx); err != nil {
		return 0, err
	}
	over = max(0, s.added-s.duplicates-limit)
	skip := over
	return over, s.merge(ctx, func(r *record, line []byte) error {
		if skip > 0 {
			skip--
			return nil
		}
		return visit(r, line)
	})
}

func (s *sorter) eachInMemory(ctx context.Context, limit int, visit func(r *record, line []byte) error) (over int, err error) {
	s.current.sort()
	before := len(s.current.records)
	s.current.records = slices.CompactFunc(s.current.records, func(a, b record) bool { return compareRecords(&a, &b) == 0 })
	records := s.current.records
	s.duplicates += before - len(records)
	if limit > 0 {
		over = max(0, len(records)-limit)
	}
	for i := over; i < len(records); i++ {
		if i%4096 == 0 && ctx.Err() != nil {
			return over, context.Cause(ctx)
		}
		if err := visit(&records[i], s.current.line(&records[i])); err != nil {
			return over, err
		}
	}
	return over, nil
}

// mergeToOne replaces all runs on disk by one.
func (s *sorter) mergeToOne(ctx context.Context) error {
	name := s.newName()
	out, err := createRun(name)
	if err != nil {
		return err
	}
	if err := errors.Join(s.merge(ctx, out.add), out.close()); err != nil {
		return err
	}
	for _, old := range s.files {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("removing a sorted run: %w", err)
		}
	}
	s.files = []string{name}
	return nil
}

// merge visits the events of all runs on disk in order, each id once. The runs are in order of arrival, so that among equals the earliest
// run goes first.
func (s *sorter) merge(ctx context.Context, visit func(r *record, line []byte) error) error {
	readers := make([]*runReader, 0, len(s.files))
	defer func() {
		for _, r := range readers {
			r.file.Close()
		}
	}()
	var queue runQueue
	for i, name := range s.files {
		r, err := openRun(name, i)
		if err != nil {
			return err
		}
		readers = append(readers, r)
		more, err := r.next()
		if err != nil {
			return err
		}
		if more {
			queue.push(r)
		}
	}
	var last ID
	for n := 0; len(queue) > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := queue[0]
		if n > 0 && r.record.id == last {
			s.duplicates++
		} else if err := visit(&r.record, r.line); err != nil {
			return err
		}
		last = r.record.id
		more, err := r.next()
		if err != nil {
			return err
		}
		if !more {
			queue[0] = queue[len(queue)-1]
			queue = queue[:len(queue)-1]
		}
		queue.sink(0)
	}
	return nil
}

// runQueue is a binary heap with the run whose event comes next at its root.
type runQueue []*runReader

func (q runQueue) before(a, b int) bool {
	return cmp.Or(compareRecords(&q[a].record, &q[b].record), cmp.Compare(q[a].order, q[b].order)) < 0
}

func (q *runQueue) push(r *runReader) {
	*q = append(*q, r)
	for i := len(*q) - 1; i > 0 && q.before(i, (i-1)/2); i = (i - 1) / 2 {
		(*q)[i], (*q)[(i-1)/2] = (*q)[(i-1)/2], (*q)[i]
	}
}

func (q runQueue) sink(i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q); child++ {
			if q.before(child, first) {
				first = child
			}
		}
		if first == i {
			return
		}
		q[i], q[first] = q[first], q[i]
		i = first
	}
}

// A run on disk is a sequence of headers, each followed by its line: created_at (8 bytes, little-endian), id (32), kind (2), length (4).
const headerSize = 8 + 32 + 2 + 4

type runWriter struct {
	file *os.File
	buf  *bufio.Writer
	head [headerSize]byte
}

func createRun(name string) (*runWriter, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("creating a sorted run: %w", err)
	}
	return &runWriter{file: f, buf: bufio.NewWriterSize(f, 1<<20)}, nil
}

func (w *runWriter) add(r *record, line []byte) error {
	binary.LittleEndian.PutUint64(w.head[:], uint64(r.createdAt))
	copy(w.head[8:], r.id[:])
	binary.LittleEndian.PutUint16(w.head[40:], r.kind)
	binary.LittleEndian.PutUint32(w.head[42:], r.length)
	w.buf.Write(w.head[:])
	_, err := w.buf.Write(line)
	return err
}

func (w *runWriter) close() error {
	if err := errors.Join(w.buf.Flush(), w.file.Close()); err != nil {
		return fmt.Errorf("writing a sorted run: %w", err)
	}
	return nil
}

func writeRun(name string, r *run) error {
	w, err := createRun(name)
	if err != nil {
		return err
	}
	for i := range r.records {
		if err := w.add(&r.records[i], r.line(&r.records[i])); err != nil {
			break // the buffer keeps the error for close
		}
	}
	return w.close()
}

// runReader reads a run back; record and line are the event it stands at.
type runReader struct {
	file   *os.File
	buf    *bufio.Reader
	order  int
	record record
	line   []byte
	head   [headerSize]byte
}

func openRun(name string, order int) (*runReader, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening a sorted run: %w", err)
	}
	return &runReader{file: f, buf: bufio.NewReaderSize(f, 256<<10), order: order}, nil
}

// next moves on to the next event; more is false behind the last.
func (r *runReader) next() (more bool, err error) {
	_, err = io.ReadFull(r.buf, r.head[:])
	if err == io.EOF {
		return false, nil
	}
	if err == nil {
		r.record.createdAt = int64(binary.LittleEndian.Uint64(r.head[:]))
		copy(r.record.id[:], r.head[8:])
		r.record.kind = binary.LittleEndian.Uint16(r.head[40:])
		r.record.length = binary.LittleEndian.Uint32(r.head[42:])
		r.line = slices.Grow(r.line[:0], int(r.record.length))[:r.record.length]
		_, err = io.ReadFull(r.buf, r.line)
	}
	if err != nil {
		return false, fmt.Errorf("reading a sorted run: %w", err)
	}
	return true, nil
}
