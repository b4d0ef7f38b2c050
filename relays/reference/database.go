package reference

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"relaybench/corpus"
)

// database is a Store in an engine: rows there, and the index over them.
type database struct {
	engine engine
	sizes  indexSizes
	index  index
	ids    *bloom // of the events that exist
	marks  *bloom // of the notes that exist

	lastSeq atomic.Uint64

	// The keeper (merge.go) works beside updates.
	kick    chan struct{}
	stopped chan struct{}
	keeping sync.WaitGroup
	once    sync.Once
	closed  error

	writing sync.Mutex // held by whoever writes; guards what follows
	room    sync.Cond  // the index in memory shrank, or could not be written
	frozen  int        // runs that are being written to a segment
	dead    map[uint64]struct{}
	nextID  uint64 // of a segment
	trouble error  // of the keeper's last attempt
}

// indexSizes say how the index is cut. Tests cut it small.
type indexSizes struct {
	memory int // entries that come together in memory before they are written to a segment; at four times as many, updates wait
	block  int // entries of a block
	blocks int // that one transaction writes or deletes at most, so that updates never wait long
}

// 2.6 MB in memory are some 6,000 events; a block is 10 KB as stored and 16 KB in memory.
var usualSizes = indexSizes{memory: 1 << 16, block: 400, blocks: 256}

// openDatabase reads what the index needs and makes again the part of it that was in memory alone.
func openDatabase(e engine, sizes indexSizes) (*database, error) {
	d := &database{
		engine: e, sizes: sizes, ids: newBloom(), marks: newBloom(), dead: map[uint64]struct{}{}, nextID: 1,
		kick: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	d.room.L = &d.writing
	if err := e.view(d.recall); err != nil {
		e.close()
		return nil, err
	}
	d.keeping.Go(d.keep)
	d.wake()
	return d, nil
}

func (d *database) recall(v engineView) error {
	state := &indexState{}
	err := v.each(segmentsTable, 0, func(id uint64, row []byte) error {
		d.nextID = id + 1
		if len(row) == 0 || row[0] != segmentLive {
			d.index.garbage = append(d.index.garbage, newSegment(id, 0, 0, nil))
			return nil
		}
		s, err := decodeSegment(id, row)
		state.segments = append(state.segments, s)
		return err
	})
	if err != nil {
		return err
	}
	state.sort()
	last := state.last()
	var run []entry
	err = v.each(eventsTable, last+1, func(seq uint64, raw []byte) error {
		r, err := parseRecord(seq, raw)
		if err != nil {
			return fmt.Errorf("event %d: %w", seq, err)
		}
		run = appendEntries(run, &r)
		last = seq
		return nil
	})
	if err != nil {
		return err
	}
	if len(run) > 0 {
		state.runs = [][]entry{sortEntries(run)}
	}
	d.index.state = state
	err = v.each(deadTable, 0, func(seq uint64, _ []byte) error {
		d.dead[seq] = struct{}{}
		last = max(last, seq)
		return nil
	})
	if err != nil {
		return err
	}
	d.lastSeq.Store(last)
	if err := v.eachNote(func(key []byte) error { d.marks.add(key); return nil }); err != nil {
		return err
	}
	return d.recallIDs(v, state)
}

// recallIDs goes along the entries by id, which stand together.
func (d *database) recallIDs(v engineView, state *indexState) error {
	first := entry{group: group(byID, 0)}
	note := func(list []entry) bool {
		for i := range list {
			if list[i].group >= group(byTime, 0) {
				return false
			}
			d.ids.addID(list[i].id)
		}
		return true
	}
	for _, run := range state.runs {
		note(run[search(run, &first):])
	}
	for _, s := range state.segments {
		for i := max(0, search(s.first, &first)-1); i < len(s.first); i++ {
			list, err := s.readAside(v, i)
			if err != nil {
				return err
			}
			if !note(list[search(list, &first):]) {
				break
			}
		}
	}
	return nil
}

// LastSeq returns the highest number that was ever stored.
func (d *database) LastSeq() uint64 { return d.lastSeq.Load() }

// View reads at the state of the index at its beginning. An event that goes in the meantime may be left out.
func (d *database) View(read func(View) error) error {
	state := d.index.pin()
	defer d.unpin(state)
	return d.engine.view(func(rows engineView) error { return read(&databaseView{d, rows, state}) })
}

func (d *database) unpin(state *indexState) {
	if d.index.unpin(state) {
		d.wake()
	}
}

// Update commits a group in one transaction. What it adds to the index is in memory when it returns, and made again from the events
// after a crash.
func (d *database) Update(change func(Tx) error) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	for d.index.state.inMemory() >= 4*d.sizes.memory {
		d.wake()
		d.room.Wait()
		if d.trouble != nil {
			return fmt.Errorf("writing the index: %w", d.trouble)
		}
	}
	var tx *databaseTx
	err := d.engine.update(func(rows engineTx) error {
		tx = &databaseTx{databaseView: databaseView{d, rows, d.index.state}, rows: rows}
		if err := change(tx); err != nil {
			return err
		}
		return tx.finish()
	})
	if err != nil {
		return err
	}
	for _, seq := range tx.gone {
		d.dead[seq] = struct{}{}
	}
	if len(tx.added) > 0 {
		d.index.set(d.index.state.withRun(sortEntries(tx.added), d.frozen), nil)
		if d.index.state.inMemory() >= d.sizes.memory {
			d.wake()
		}
	}
	if tx.lastSeq > 0 {
		d.lastSeq.Store(tx.lastSeq)
	}
	return nil
}

// databaseTx writes events at once, entries and notes at its end.
type databaseTx struct {
	databaseView
	rows    engineTx
	added   []entry
	fresh   map[corpus.ID]uint64 // what it inserted
	gone    []uint64
	notes   map[string][]byte
	lastSeq uint64
}

// Scan sees the transaction's own entries as one more list.
func (t *databaseTx) Scan(q *Query, after Position) (Cursor, error) {
	v := t.databaseView
	if len(t.added) > 0 {
		t.added = sortEntries(t.added)
		v.state = &indexState{append(v.state.runs[:len(v.state.runs):len(v.state.runs)], t.added), v.state.segments}
	}
	return v.Scan(q, after)
}

func (t *databaseTx) Find(id corpus.ID) (r Record, ok bool, err error) {
	if seq, ok := t.fresh[id]; ok {
		return t.load(seq, &id)
	}
	e := idEntry(&id)
	if !t.store.ids.mayHaveID(e.id) {
		return r, false, nil
	}
	seqs, err := t.state.find(t.rows, &e, &t.store.index.cache)
	for _, seq := range seqs {
		if r, ok, err = t.load(seq, &id); ok || err != nil {
			break
		}
	}
	return r, ok, err
}

// load finds nothing where the event has gone.
func (t *databaseTx) load(seq uint64, id *corpus.ID) (Record, bool, error) {
	raw, err := t.rows.get(eventsTable, seq)
	if raw == nil || err != nil {
		return Record{}, false, err
	}
	r, err := parseRecord(seq, raw)
	return r, r.ID == *id, err
}

func (t *databaseTx) Insert(r *Record) (inserted bool, err error) {
	if r.Seq > maxSeq {
		return false, fmt.Errorf("event number %d is over %d, the most that the index can hold", r.Seq, uint64(maxSeq))
	}
	if _, have, err := t.Find(r.ID); have || err != nil {
		return false, err
	}
	if err := t.rows.put(eventsTable, r.Seq, r.Raw); err != nil {
		return false, err
	}
	if t.fresh == nil {
		t.fresh = map[corpus.ID]uint64{}
	}
	t.fresh[r.ID] = r.Seq
	t.store.ids.addID(idHalf(&r.ID))
	t.added = appendEntries(t.added, r)
	t.lastSeq = r.Seq
	return true, nil
}

// Remove leaves the index entries where they are: reading finds nothing under them, and merging drops them.
func (t *databaseTx) Remove(r *Record) error {
	if t.fresh[r.ID] != r.Seq {
		e := idEntry(&r.ID)
		seqs, err := t.state.find(t.rows, &e, &t.store.index.cache)
		if err != nil || !slices.Contains(seqs, r.Seq) {
			return err // a number that was never stored may be another event's by now
		}
	}
	delete(t.fresh, r.ID)
	t.gone = append(t.gone, r.Seq)
	if err := t.rows.put(deadTable, r.Seq, []byte{}); err != nil {
		return err
	}
	return t.rows.remove(eventsTable, r.Seq, r.Seq)
}

func (t *databaseTx) Note(key []byte) ([]byte, error) {
	if value, ok := t.notes[string(key)]; ok {
		return value, nil
	}
	if !t.store.marks.mayHave(key) {
		return nil, nil
	}
	return t.rows.note(key)
}

func (t *databaseTx) SetNote(key, value []byte) error {
	if t.notes == nil {
		t.notes = map[string][]byte{}
	}
	t.notes[string(key)] = append([]byte{}, value...)
	t.store.marks.add(key)
	return nil
}

func (t *databaseTx) finish() error {
	for key, value := range t.notes {
		if err := t.rows.setNote([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}
