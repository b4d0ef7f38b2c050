package reference

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"relaybench/corpus"
)

// Bolt keeps events in a bbolt file with two buckets: "events", Seq to event, which grows at its end; and "index", whose keys
// boltkeys.go lays out. Index keys of a group are collected and put in sorted order, so that each page of the tree is touched once.
type Bolt struct {
	db      *bolt.DB
	lastSeq atomic.Uint64
	close   func() error
}

var (
	eventsBucket = []byte("events")
	indexBucket  = []byte("index")
)

// syncEvery is how far the disk may be behind under DurabilityBatch.
const syncEvery = 200 * time.Millisecond

func openBolt(dir string, d Durability) (*Bolt, error) {
	path := filepath.Join(dir, "events.bolt")
	db, err := bolt.Open(path, 0o644, &bolt.Options{
		Timeout:         time.Second, // another process has the file: say so instead of waiting for ever
		NoSync:          d != DurabilityCommit,
		NoFreelistSync:  true,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: 1 << 30, // address space only: growing the map would wait for readers
	})
	if err != nil {
		return nil, fmt.Errorf("opening the bolt store %s: %w", path, err)
	}
	b := &Bolt{db: db}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(indexBucket)
		if err != nil {
			return err
		}
		events, err := tx.CreateBucketIfNotExists(eventsBucket)
		if err == nil {
			b.lastSeq.Store(events.Sequence())
		}
		return err
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("preparing the bolt store %s: %w", path, err)
	}
	stop := make(chan struct{})
	var syncing sync.WaitGroup
	if d == DurabilityBatch {
		syncing.Go(func() { b.syncUntil(stop) })
	}
	b.close = sync.OnceValue(func() error {
		close(stop)
		syncing.Wait()
		return errors.Join(db.Sync(), db.Close())
	})
	return b, nil
}

func (b *Bolt) syncUntil(stop <-chan struct{}) {
	ticker := time.NewTicker(syncEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.db.Sync() // an error here comes again with the sync of Close
		case <-stop:
			return
		}
	}
}

// LastSeq returns the highest number stored; bolt keeps it as the events bucket's sequence.
func (b *Bolt) LastSeq() uint64 { return b.lastSeq.Load() }

// Close syncs and closes the file. Closing again does nothing.
func (b *Bolt) Close() error { return b.close() }

// View reads in one transaction.
func (b *Bolt) View(read func(View) error) error {
	return b.db.View(func(tx *bolt.Tx) error { return read(newBoltTx(tx)) })
}

// Update commits a group in one transaction.
func (b *Bolt) Update(change func(Tx) error) error {
	var t *boltTx
	err := b.db.Update(func(tx *bolt.Tx) error {
		t = newBoltTx(tx)
		if err := change(t); err != nil {
			return err
		}
		if t.lastSeq > 0 {
			if err := t.events.SetSequence(t.lastSeq); err != nil {
				return err
			}
		}
		return t.flush()
	})
	if err == nil && t.lastSeq > 0 {
		b.lastSeq.Store(t.lastSeq)
	}
	return err
}

// boltTx is one transaction. pending holds index changes in the order in which they were asked for; later ones win.
type boltTx struct {
	events, index *bolt.Bucket
	pending       []change
	changed       map[string][]byte // what point look-ups must see of pending: ids and notes
	lastSeq       uint64
}

// change is a key to put, or to delete where value is nil. at is its place in the order of changes.
type change struct {
	key, value []byte
	at         int
}

func newBoltTx(tx *bolt.Tx) *boltTx {
	t := &boltTx{events: tx.Bucket(eventsBucket), index: tx.Bucket(indexBucket)}
	t.events.FillPercent = 1 // only ever appended to
	return t
}

// get looks a key up that only point look-ups use.
func (t *boltTx) get(key []byte) []byte {
	if value, ok := t.changed[string(key)]; ok {
		return value
	}
	return t.index.Get(key)
}

func (t *boltTx) set(key, value []byte) {
	if t.changed == nil {
		t.changed = map[string][]byte{}
	}
	t.changed[string(key)] = value
	t.later(key, value)
}

func (t *boltTx) later(key, value []byte) {
	t.pending = append(t.pending, change{key, value, len(t.pending)})
}

// flush brings the index up to date.
func (t *boltTx) flush() error {
	slices.SortFunc(t.pending, func(a, b change) int { return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(a.at, b.at)) })
	for i, c := range t.pending {
		if i+1 < len(t.pending) && bytes.Equal(c.key, t.pending[i+1].key) {
			continue // a later change of the same key follows
		}
		var err error
		if c.value == nil {
			err = t.index.Delete(c.key)
		} else {
			err = t.index.Put(c.key, c.value)
		}
		if err != nil {
			return err
		}
	}
	t.pending, t.changed = t.pending[:0], nil
	return nil
}

func (t *boltTx) Find(id corpus.ID) (Record, bool, error) {
	seq := t.get(idKey(id))
	if seq == nil {
		return Record{}, false, nil
	}
	r, err := t.load(seq)
	return r, err == nil, err
}

// load reads an event. Its Raw points into the file's map, or into the transaction's own pages.
func (t *boltTx) load(seq []byte) (Record, error) {
	value := t.events.Get(seq)
	if len(value) < 8 {
		return Record{}, errBrokenRecord
	}
	return parseRecord(binary.BigEndian.Uint64(seq), int64(binary.BigEndian.Uint64(value)), value[8:])
}

func (t *boltTx) Insert(r *Record) (bool, error) {
	key := idKey(r.ID)
	if t.get(key) != nil {
		return false, nil
	}
	seq := binary.BigEndian.AppendUint64(nil, r.Seq)
	value := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(r.Raw)), uint64(r.Expires))
	if err := t.events.Put(seq, append(value, r.Raw...)); err != nil {
		return false, err
	}
	t.set(key, seq)
	for _, key := range indexKeys(r) {
		t.later(key, seq)
	}
	t.lastSeq = r.Seq
	return true, nil
}

func (t *boltTx) Remove(r *Record) error {
	for _, key := range indexKeys(r) {
		t.later(key, nil)
	}
	t.set(idKey(r.ID), nil)
	return t.events.Delete(binary.BigEndian.AppendUint64(nil, r.Seq))
}

func (t *boltTx) Note(key []byte) ([]byte, error) { return t.get(noteKey(key)), nil }

func (t *boltTx) SetNote(key, value []byte) error {
	t.set(noteKey(key), slices.Clone(value))
	return nil
}
