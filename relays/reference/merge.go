package reference

import (
	"cmp"
	"errors"
	"slices"
)

// The keeper writes the index's lists from memory to segments, and merges segments: four of about one size become one, so that there are few
// of them and every entry is rewritten only once for each fourfold growth.
const mergeSegments = 4

// wake makes the keeper look whether there is something to do.
func (d *database) wake() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// keep is the keeper. What it fails to do is tried again when it is woken next, and reported by an Update that cannot do without.
func (d *database) keep() {
	for {
		select {
		case <-d.stopped:
			return
		case <-d.kick:
		}
		err := d.tidy()
		d.writing.Lock()
		d.trouble = err
		d.room.Broadcast()
		d.writing.Unlock()
	}
}

var errStopped = errors.New("the store is being closed")

// tidy does what is to be done.
func (d *database) tidy() error {
	for {
		select {
		case <-d.stopped:
			return errStopped
		default:
		}
		state := d.index.pin()
		d.index.unpin(state)
		sources := state.toMerge(d.sizes.memory)
		var err error
		switch {
		case state.inMemory() >= d.sizes.memory:
			err = d.writeRuns()
		case len(sources) > 0:
			err = d.merge(sources)
		default:
			if sources = d.rotten(state); len(sources) == 0 {
				return d.deleteGarbage()
			}
			err = d.merge(sources)
		}
		if err != nil {
			return err
		}
	}
}

// Close writes the rest of the index, so that opening again is quick, and closes the engine. Closing again does nothing.
func (d *database) Close() error {
	d.once.Do(func() {
		close(d.stopped)
		d.keeping.Wait()
		d.closed = errors.Join(d.writeRuns(), d.deleteGarbage(), d.engine.close())
	})
	return d.closed
}

func (s *indexState) sort() {
	slices.SortFunc(s.segments, func(a, b *segment) int { return cmp.Compare(a.last, b.last) })
}

// level says of which size a segment is, where the lowest is one that comes from memory, and each is four times the one below.
func (s *segment) level(memory int) (n int) {
	for size := s.entries / mergeSegments; size >= memory; size /= mergeSegments {
		n++
	}
	return n
}

// toMerge returns the latest segments if there are enough that are no larger than the last of them, nil otherwise.
func (s *indexState) toMerge(memory int) []*segment {
	for level := 0; ; level++ {
		n := 0
		for _, seg := range slices.Backward(s.segments) {
			if seg.level(memory) > level {
				break
			}
			n++
		}
		if n >= mergeSegments {
			return s.segments[len(s.segments)-n:]
		}
		if n == len(s.segments) {
			return nil
		}
	}
}

// rotten returns a segment of which more than a quarter is of events that have gone.
func (d *database) rotten(state *indexState) []*segment {
	d.writing.Lock()
	defer d.writing.Unlock()
	if len(d.dead) == 0 {
		return nil
	}
	counts := make([]int, len(state.segments))
	for seq := range d.dead {
		if i, _ := slices.BinarySearchFunc(state.segments, seq, func(s *segment, seq uint64) int { return cmp.Compare(s.last, seq) }); i < len(counts) {
			counts[i]++
		}
	}
	for i, n := range counts {
		if n*4*entriesPerEvent > state.segments[i].entries {
			return state.segments[i : i+1]
		}
	}
	return nil
}

// entriesPerEvent is about how many entries an event has.
const entriesPerEvent = 8

// writeRuns writes what is in memory to a segment.
func (d *database) writeRuns() error {
	d.writing.Lock()
	state := d.index.state
	if len(state.runs) == 0 {
		d.writing.Unlock()
		return nil
	}
	d.frozen = len(state.runs)
	w := d.newWriter(state.last(), d.lastSeq.Load())
	d.writing.Unlock()

	var all []entry
	for _, run := range slices.Backward(state.runs) { // the last are the shortest
		all = mergeEntries(run, all)
	}
	err := func() error {
		for i := range all {
			if err := w.add(&all[i]); err != nil {
				return err
			}
		}
		return w.finish(nil, func(now *indexState, s *segment) *indexState {
			return &indexState{slices.Clone(now.runs[len(state.runs):]), append(slices.Clip(now.segments), s)}
		})
	}()
	d.writing.Lock()
	d.frozen = 0
	d.writing.Unlock()
	return err
}

// merge writes one segment in place of neighbours.
func (d *database) merge(sources []*segment) error {
	first, last := sources[0], sources[len(sources)-1]
	d.writing.Lock()
	place := slices.Index(d.index.state.segments, first)
	before := uint64(0)
	if place > 0 {
		before = d.index.state.segments[place-1].last
	}
	w := d.newWriter(before, last.last)
	d.writing.Unlock()

	readers := make([]*segmentReader, len(sources))
	for i, s := range sources {
		readers[i] = &segmentReader{d: d, segment: s}
		if err := readers[i].fill(); err != nil {
			return err
		}
	}
	for {
		var least *segmentReader
		for _, r := range readers {
			if len(r.list) > 0 && (least == nil || compareEntries(&r.list[0], &least.list[0]) < 0) {
				least = r
			}
		}
		if least == nil {
			break
		}
		if err := w.add(&least.list[0]); err != nil {
			return err
		}
		if least.list = least.list[1:]; len(least.list) == 0 {
			if err := least.fill(); err != nil {
				return err
			}
		}
	}
	return w.finish(sources, func(now *indexState, s *segment) *indexState {
		return &indexState{now.runs, slices.Replace(slices.Clone(now.segments), place, place+len(sources), s)}
	})
}

// segmentReader goes through a whole segment, each block in a short view.
type segmentReader struct {
	d       *database
	segment *segment
	list    []entry
	next    int
}

func (r *segmentReader) fill() error {
	if r.next == len(r.segment.first) {
		return nil
	}
	return r.d.engine.view(func(v engineView) (err error) {
		r.list, err = r.segment.readAside(v, r.next)
		r.next++
		return err
	})
}

// segmentWriter writes a segment from entries that come in order.
type segmentWriter struct {
	d       *database
	segment *segment
	dead    map[uint64]struct{} // in the segment's range
	begun   bool                // something is in the engine already
	list    []entry             // of the next block
	blocks  [][]byte            // not yet in the engine
}

// newWriter begins a segment of the events after one number up to another. It needs d.writing.
func (d *database) newWriter(after, last uint64) *segmentWriter {
	w := &segmentWriter{d: d, segment: newSegment(d.nextID, last, 0, nil), dead: map[uint64]struct{}{}}
	d.nextID++
	for seq := range d.dead {
		if after < seq && seq <= last {
			w.dead[seq] = struct{}{}
		}
	}
	return w
}

func (w *segmentWriter) add(e *entry) error {
	if _, dead := w.dead[e.seq()]; dead {
		return nil
	}
	w.segment.entries++
	if w.list = append(w.list, *e); len(w.list) < w.d.sizes.block {
		return nil
	}
	w.cut()
	if len(w.blocks) < w.d.sizes.blocks {
		return nil
	}
	return w.write(func(tx engineTx) error {
		if w.begun {
			return nil
		}
		return tx.put(segmentsTable, w.segment.id, []byte{segmentUnfinished})
	})
}

// cut ends the block.
func (w *segmentWriter) cut() {
	if len(w.list) > 0 {
		w.segment.first = append(w.segment.first, w.list[0])
		w.blocks = append(w.blocks, appendBlock(make([]byte, 0, 28*len(w.list)), w.list))
		w.list = w.list[:0]
	}
}

// write brings the blocks into the engine, together with something else.
func (w *segmentWriter) write(also func(tx engineTx) error) error {
	w.d.writing.Lock()
	defer w.d.writing.Unlock()
	return w.writeLocked(also)
}

func (w *segmentWriter) writeLocked(also func(tx engineTx) error) error {
	err := w.d.engine.update(func(tx engineTx) error {
		n := len(w.segment.first) - len(w.blocks)
		for i, b := range w.blocks {
			if err := tx.put(blocksTable, blockKey(w.segment.id, n+i), b); err != nil {
				return err
			}
		}
		return also(tx)
	})
	w.blocks, w.begun = nil, true
	return err
}

// finish makes the segment take the place of others, in the engine and for readers. The dead whose entries it left out are forgotten.
func (w *segmentWriter) finish(sources []*segment, replace func(*indexState, *segment) *indexState) error {
	w.cut()
	d := w.d
	d.writing.Lock()
	defer d.writing.Unlock()
	err := w.writeLocked(func(tx engineTx) error {
		for _, s := range sources {
			if err := tx.put(segmentsTable, s.id, []byte{segmentGone}); err != nil {
				return err
			}
		}
		for seq := range w.dead {
			if err := tx.remove(deadTable, seq, seq); err != nil {
				return err
			}
		}
		return tx.put(segmentsTable, w.segment.id, w.segment.encode())
	})
	if err != nil {
		d.index.set(d.index.state, []*segment{w.segment}) // what is there of it is to be deleted
		return err
	}
	for seq := range w.dead {
		delete(d.dead, seq)
	}
	s := newSegment(w.segment.id, w.segment.last, w.segment.entries, w.segment.first)
	d.index.set(replace(d.index.state, s), sources)
	d.frozen = 0
	d.room.Broadcast()
	return nil
}

// deleteGarbage deletes the rows of segments that nobody reads any more.
func (d *database) deleteGarbage() error {
	for _, s := range d.index.takeGarbage() {
		for n := 0; ; n += d.sizes.blocks {
			last := n+d.sizes.blocks >= len(s.first)
			d.writing.Lock()
			err := d.engine.update(func(tx engineTx) error {
				if !last {
					return tx.remove(blocksTable, blockKey(s.id, n), blockKey(s.id, n+d.sizes.blocks-1))
				}
				return errors.Join(tx.remove(blocksTable, blockKey(s.id, n), blockKey(s.id+1, 0)-1), tx.remove(segmentsTable, s.id, s.id))
			})
			d.writing.Unlock()
			if err != nil {
				return err // the next opening finds it again
			}
			if last {
				break
			}
		}
	}
	return nil
}
