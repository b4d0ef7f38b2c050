package reference

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// boltEngine keeps its tables as buckets of one bbolt file. Rows mostly come in the order of their keys, so that a commit touches the last
// page of a bucket and those above it.
type boltEngine struct {
	db   *bolt.DB
	stop func()
}

var notesBucket = []byte("notes")

// syncEvery is how far the disk may be behind under DurabilityBatch.
const syncEvery = 200 * time.Millisecond

func openBolt(dir string, d Durability) (engine, error) {
	path := filepath.Join(dir, "events.bolt")
	db, err := bolt.Open(path, 0o644, &bolt.Options{
		Timeout:         time.Second, // another has the file: say so instead of waiting for ever
		NoSync:          d != DurabilityCommit,
		NoFreelistSync:  true,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: 1 << 30, // address space only: growing the map would wait for readers
	})
	if errors.Is(err, berrors.ErrTimeout) {
		err = errors.New("another process has it open")
	}
	if err != nil {
		return nil, fmt.Errorf("opening the bolt store %s: %w", path, err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range tableNames {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		_, err := tx.CreateBucketIfNotExists(notesBucket)
		return err
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("preparing the bolt store %s: %w", path, err)
	}
	b := &boltEngine{db: db, stop: func() {}}
	if d == DurabilityBatch {
		stop := make(chan struct{})
		var syncing sync.WaitGroup
		syncing.Go(func() { b.syncUntil(stop) })
		b.stop = func() { close(stop); syncing.Wait() }
	}
	return b, nil
}

func (b *boltEngine) syncUntil(stop <-chan struct{}) {
	ticker := time.NewTicker(syncEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.db.Sync() // an error here comes again with the sync of close
		case <-stop:
			return
		}
	}
}

func (b *boltEngine) close() error {
	b.stop()
	return errors.Join(b.db.Sync(), b.db.Close())
}

func (b *boltEngine) view(read func(engineView) error) error {
	return b.db.View(func(tx *bolt.Tx) error { return read(&boltRows{tx: tx}) })
}

func (b *boltEngine) update(change func(engineTx) error) error {
	return b.db.Update(func(tx *bolt.Tx) error { return change(&boltRows{tx: tx}) })
}

// boltRows is one transaction. Values point into the file's map, or into the transaction's own pages.
type boltRows struct {
	tx      *bolt.Tx
	buckets [tables]*bolt.Bucket // that were asked for
}

func (r *boltRows) bucket(t table) *bolt.Bucket {
	if r.buckets[t] == nil {
		b := r.tx.Bucket([]byte(tableNames[t]))
		b.FillPercent = 1 // appended to
		r.buckets[t] = b
	}
	return r.buckets[t]
}

func boltKey(key uint64) (b [8]byte) {
	binary.BigEndian.PutUint64(b[:], key)
	return b
}

func (r *boltRows) get(t table, key uint64) ([]byte, error) {
	k := boltKey(key)
	return r.bucket(t).Get(k[:]), nil
}

func (r *boltRows) events(seqs []uint64, each func(i int, raw []byte) error) error {
	b := r.bucket(eventsTable)
	for i, seq := range seqs {
		k := boltKey(seq)
		if raw := b.Get(k[:]); raw != nil {
			if err := each(i, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *boltRows) each(t table, from uint64, row func(key uint64, value []byte) error) error {
	start := boltKey(from)
	c := r.bucket(t).Cursor()
	for k, v := c.Seek(start[:]); k != nil; k, v = c.Next() {
		if err := row(binary.BigEndian.Uint64(k), v); err != nil {
			return err
		}
	}
	return nil
}

func (r *boltRows) note(key []byte) ([]byte, error) { return r.tx.Bucket(notesBucket).Get(key), nil }

func (r *boltRows) eachNote(note func(key []byte) error) error {
	return r.tx.Bucket(notesBucket).ForEach(func(k, _ []byte) error { return note(k) })
}

func (r *boltRows) put(t table, key uint64, value []byte) error {
	k := boltKey(key)
	return r.bucket(t).Put(k[:], value)
}

func (r *boltRows) remove(t table, first, last uint64) error {
	if first == last {
		k := boltKey(first)
		return r.bucket(t).Delete(k[:])
	}
	start := boltKey(first)
	c := r.bucket(t).Cursor()
	for k, _ := c.Seek(start[:]); k != nil && binary.BigEndian.Uint64(k) <= last; k, _ = c.Seek(start[:]) {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

func (r *boltRows) setNote(key, value []byte) error { return r.tx.Bucket(notesBucket).Put(key, value) }
