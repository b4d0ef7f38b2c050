package reference

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"relaybench/corpus"
)

// boltStore keeps events in one bbolt file: a bucket of events by Seq, which grows at its end, a
// bucket of index keys (boltindex.go), and the relay's notes. A group is one bbolt transaction.
type boltStore struct {
	onDisk
	db *bolt.DB
}

var (
	eventsBucket = []byte("events") // Seq → canonical JSON
	indexBucket  = []byte("index")  // see boltindex.go
	notesBucket  = []byte("notes")
)

// syncEvery is how far the disk may be behind under DurabilityBatch.
const syncEvery = 200 * time.Millisecond

func openBolt(dir string, d Durability) (Store, error) {
	path := filepath.Join(dir, "events.bolt")
	db, err := bolt.Open(path, 0o644, &bolt.Options{
		Timeout:         time.Second, // another has the file: say so instead of waiting for ever
		NoSync:          d != DurabilityCommit,
		NoFreelistSync:  true,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: 1 << 30, // address space only: growing the map would wait for readers
	})
	if errors.Is(err, berrors.ErrTimeout) {
		err = errOpenElsewhere
	}
	if err != nil {
		return nil, fmt.Errorf("opening the bolt store %s: %w", path, err)
	}
	b := &boltStore{db: db}
	if err := db.Update(b.prepare); err != nil {
		db.Close()
		return nil, fmt.Errorf("preparing the bolt store %s: %w", path, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var syncing sync.WaitGroup
	if d == DurabilityBatch {
		syncing.Go(func() {
			for tick := time.Tick(syncEvery); ; {
				select {
				case <-tick:
					db.Sync() // an error here comes again with the sync of Close
				case <-ctx.Done():
					return
				}
			}
		})
	}
	b.close = sync.OnceValue(func() error {
		stop()
		syncing.Wait()
		return errors.Join(db.Sync(), db.Close())
	})
	return b, nil
}

func (b *boltStore) prepare(tx *bolt.Tx) error {
	if tx.Bucket([]byte("segments")) != nil {
		return errOldFormat
	}
	for _, name := range [][]byte{eventsBucket, indexBucket, notesBucket} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	b.lastSeq.Store(tx.Bucket(eventsBucket).Sequence())
	return nil
}

// View reads in one transaction.
func (b *boltStore) View(read func(View) error) error {
	return b.db.View(func(tx *bolt.Tx) error {
		t := newBoltTx(tx)
		err := read(t)
		return cmp.Or(t.err, err)
	})
}

// Update commits a group in one transaction.
func (b *boltStore) Update(change func(Tx) error) error {
	var last uint64
	err := b.db.Update(func(tx *bolt.Tx) error {
		t := newBoltTx(tx)
		if err := change(t); err != nil || t.err != nil {
			return cmp.Or(t.err, err)
		}
		if last = t.lastSeq; last > 0 {
			t.failed(t.events.SetSequence(last))
		}
		t.flush()
		return t.err
	})
	if err == nil && last > 0 {
		b.lastSeq.Store(last)
	}
	return err
}

// boltTx is one transaction. Values point into the file's map, or into the transaction's own pages.
type boltTx struct {
	trouble
	events, index, notes *bolt.Bucket
	pending              []keyChange // of the index, but for ids
	lastSeq              uint64
}

// keyChange puts a key, or deletes it where the value is nil.
type keyChange struct{ key, value []byte }

func newBoltTx(tx *bolt.Tx) *boltTx {
	t := &boltTx{events: tx.Bucket(eventsBucket), index: tx.Bucket(indexBucket), notes: tx.Bucket(notesBucket)}
	t.events.FillPercent = 1 // appended to
	return t
}

// load reads an event by its number as it stands in keys and index values.
func (t *boltTx) load(seq []byte) (r Record, ok bool) {
	raw := t.events.Get(seq)
	if raw == nil || t.err != nil {
		return r, false
	}
	r, err := parseRecord(binary.BigEndian.Uint64(seq), raw)
	return r, !t.failed(err)
}

func (t *boltTx) Find(id corpus.ID) (r Record, ok bool) {
	if value := t.index.Get(idKey(&id)); value != nil {
		return t.load(value[:8])
	}
	return r, false
}

func (t *boltTx) Insert(r *Record) (inserted bool) {
	if t.err != nil || t.index.Get(idKey(&r.ID)) != nil {
		return false
	}
	value := indexValue(r)
	for _, key := range indexKeys(r) {
		t.pending = append(t.pending, keyChange{key, value})
	}
	t.lastSeq = r.Seq
	return !t.failed(t.events.Put(value[:8], r.Raw)) && !t.failed(t.index.Put(idKey(&r.ID), value))
}

// flush changes the index in the order of its keys: newer keys come first, and each put before all
// others would move all others.
func (t *boltTx) flush() {
	slices.SortStableFunc(t.pending, func(a, b keyChange) int { return bytes.Compare(a.key, b.key) })
	for _, c := range t.pending {
		switch {
		case t.err != nil:
			return
		case c.value != nil:
			t.failed(t.index.Put(c.key, c.value))
		default:
			t.failed(t.index.Delete(c.key))
		}
	}
	t.pending = t.pending[:0]
}

func (t *boltTx) Remove(r *Record) {
	seq := binary.BigEndian.AppendUint64(nil, r.Seq)
	have, ok := t.load(seq)
	if !ok || have.ID != r.ID {
		return
	}
	for _, key := range indexKeys(&have) {
		t.pending = append(t.pending, keyChange{key, nil})
	}
	t.failed(errors.Join(t.index.Delete(idKey(&have.ID)), t.events.Delete(seq)))
}

func (t *boltTx) Note(key []byte) []byte { return t.notes.Get(key) }

func (t *boltTx) SetNote(key, value []byte) { t.failed(t.notes.Put(key, value)) }
