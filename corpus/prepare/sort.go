package prepare

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"relaybench/corpus"
)

// sortEntry is what the sorter knows of an event beside its canonical line: 56 bytes.
type sortEntry struct {
	createdAt int64
	id        corpus.ID
	start     int64 // of the line in the spool
	length    uint32
	kind      uint16
}

func compareEntries(a, b *sortEntry) int {
	return cmp.Or(cmp.Compare(a.createdAt, b.createdAt), bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.start, b.start))
}

// chunkEntries is how many entries are sorted at a time, while more come: 10 million are in 20
// chunks, few enough to look at the first of each in turn.
const chunkEntries = 1 << 19

// sorter puts any number of events into corpus order. Their lines go to a file, the spool, in order
// of arrival; only entries are sorted, in memory, of which 10 million take 560 MB. Of events with
// one id it keeps the one that was added first.
type sorter struct {
	dir        string // of the spool
	spool      *os.File
	buffer     *bufio.Writer
	end        int64 // of the spool
	entries    []sortEntry
	full       [][]sortEntry // sorted, once sorting is done
	sorting    sync.WaitGroup
	added      int
	duplicates int // known after each
}

func newSorter(dir string) *sorter { return &sorter{dir: dir} }

// add takes an event; line is copied.
func (s *sorter) add(createdAt int64, id *corpus.ID, kind uint16, line []byte) error {
	if s.spool == nil {
		spool, err := os.CreateTemp(s.dir, "spool-")
		if err != nil {
			return fmt.Errorf("making room to sort in: %w", err)
		}
		_ = os.Remove(spool.Name()) // an open file needs no name, and nothing is left however this process ends
		s.spool, s.buffer = spool, bufio.NewWriterSize(spool, 1<<20)
	}
	if _, err := s.buffer.Write(line); err != nil {
		return fmt.Errorf("writing what is to be sorted: %w", err)
	}
	s.entries = append(s.entries, sortEntry{createdAt, *id, s.end, uint32(len(line)), kind})
	s.end += int64(len(line))
	s.added++
	if len(s.entries) == chunkEntries {
		s.seal()
	}
	return nil
}

// seal begins a new chunk, and sorts the one before it meanwhile.
func (s *sorter) seal() {
	chunk := s.entries
	if len(chunk) == 0 {
		return
	}
	s.full, s.entries = append(s.full, chunk), nil
	s.sorting.Go(func() { slices.SortFunc(chunk, func(a, b sortEntry) int { return compareEntries(&a, &b) }) })
}

// close gives the spool up.
func (s *sorter) close() {
	s.sorting.Wait()
	if s.spool != nil {
		s.spool.Close() // what could not be written has been told
	}
}

// each visits the newest limit events (all, if limit is 0) in corpus order and returns how many
// older ones it passed over. It is called once, after the last add.
func (s *sorter) each(ctx context.Context, limit int, visit func(r *sortEntry, line []byte) error) (over int, err error) {
	if s.added == 0 {
		return 0, nil
	}
	if err := s.buffer.Flush(); err != nil {
		return 0, fmt.Errorf("writing what is to be sorted: %w", err)
	}
	s.seal()
	s.sorting.Wait()
	n := 0
	for range s.inOrder {
		n++
	}
	s.duplicates = s.added - n
	if limit > 0 {
		over = max(0, n-limit)
	}
	n = 0
	var line []byte
	for r := range s.inOrder {
		if n%4096 == 0 && ctx.Err() != nil {
			return over, context.Cause(ctx)
		}
		if n++; n <= over {
			continue
		}
		line = slices.Grow(line[:0], int(r.length))[:r.length]
		if _, err := s.spool.ReadAt(line, r.start); err != nil {
			return over, fmt.Errorf("reading what was sorted: %w", err)
		}
		if err := visit(r, line); err != nil {
			return over, err
		}
	}
	return over, nil
}

// inOrder merges the chunks: the first entry of each id.
func (s *sorter) inOrder(yield func(*sortEntry) bool) {
	rest := slices.Clone(s.full) // in the order of the first entry of each
	byFirst := func(a, b []sortEntry) int { return compareEntries(&a[0], &b[0]) }
	slices.SortFunc(rest, byFirst)
	for last := (*sortEntry)(nil); len(rest) > 0; {
		next := &rest[0][0]
		if (last == nil || next.id != last.id || next.createdAt != last.createdAt) && !yield(next) {
			return
		}
		last = next
		if rest[0] = rest[0][1:]; len(rest[0]) == 0 {
			rest = rest[1:]
		}
		for i := 1; i < len(rest) && byFirst(rest[i-1], rest[i]) > 0; i++ {
			rest[i-1], rest[i] = rest[i], rest[i-1]
		}
	}
}
