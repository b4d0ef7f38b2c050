package reference

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"relaybench/corpus"
)

// Store keeps events. The relay's rules (what replaces, deletes or blocks what) are not the
// store's: they are applied by the one caller of Update, through Tx.
type Store interface {
	// Update runs a group of changes as one transaction. When it returns nil the group is as
	// durable as the store was opened for; when it returns an error, the function's or the first
	// that befell the store meanwhile, nothing of it is kept. There is one Update at a time.
	Update(func(Tx) error) error
	// View lets any number of callers read committed events at the same time as one Update runs.
	// Its errors are those of Update.
	View(func(View) error) error
	// LastSeq returns the highest Seq that is stored or, where the store remembers it, ever was; 0
	// for a new store.
	LastSeq() uint64
	// Close makes everything durable and frees the files.
	Close() error
}

// View reads events. An error is told once by the View or Update that it befalls: from then on
// nothing more is found or changed.
type View interface {
	// Scan returns a cursor over the events that match q, newest first, ties by lowest id, strictly
	// after the given position. Limit is a hint of how many will be taken: enforcing it is the
	// caller's part. Expired events are not left out.
	Scan(q *Query, after Position) Cursor
}

// Tx changes events, and sees its own changes.
type Tx interface {
	View
	// Find returns the stored event with that id.
	Find(id corpus.ID) (r Record, ok bool)
	// Insert stores an event under r.Seq, which is higher than any before. inserted is false, and
	// nothing changed, if the id is stored already. The record's text is not written to until the
	// transaction has ended, and may be written to then.
	Insert(r *Record) (inserted bool)
	// Remove forgets an event, of which it needs Seq, CreatedAt and ID. It may be gone already.
	Remove(r *Record)
	// Note returns what SetNote stored under a key, nil for nothing. Notes are the relay's memory
	// of addresses, deletions and vanished keys.
	Note(key []byte) []byte
	SetNote(key, value []byte)
}

// Cursor steps through an answer.
type Cursor interface {
	// Next returns the next event, nil at the end, valid until the next; Raw until the View ends.
	Next() *Record
}

// trouble is the first error that befell a View or a transaction.
type trouble struct{ err error }

// failed keeps an error, and says whether there is one.
func (t *trouble) failed(err error) bool {
	t.err = cmp.Or(t.err, err)
	return t.err != nil
}

// onDisk is what the stores with files have in common.
type onDisk struct {
	lastSeq atomic.Uint64
	close   func() error // does its work once
}

// LastSeq returns the highest number that is stored; bbolt remembers it when the event is gone.
func (d *onDisk) LastSeq() uint64 { return d.lastSeq.Load() }

// Close makes everything durable and closes the files. Closing again does nothing.
func (d *onDisk) Close() error { return d.close() }

// nextRecords returns the next events of an answer, n at most, with memory of their own.
func nextRecords(v View, q *Query, after Position, n int) (list []Record) {
	for cursor := v.Scan(q, after); len(list) < n; {
		r := cursor.Next()
		if r == nil {
			break
		}
		kept := *r
		kept.Raw = slices.Clone(r.Raw)
		list = append(list, kept)
	}
	return list
}

// byIDBatch is how many events are read by id at once.
const byIDBatch = 256

// recordsByID returns the events with those ids that the store has, newest first.
func recordsByID(s Store, ids []corpus.ID) (list []Record, err error) {
	err = s.View(func(v View) error {
		list = nextRecords(v, NewQuery(&corpus.Filter{IDs: ids}, 0), Position{}, len(ids))
		return nil
	})
	return list, err
}

// Position is a place in an answer: after this event. The zero Position is before the first.
type Position struct {
	CreatedAt int64
	ID        corpus.ID
	valid     bool
}

func positionOf(r *Record) Position { return Position{r.CreatedAt, r.ID, true} }

// Durability says what an OK promises: the class that reports compare by.
type Durability string

const (
	DurabilityCommit Durability = "commit" // the group is synced to the disk before its OKs: survives a power cut
	DurabilityBatch  Durability = "batch"  // synced a little later: survives the end of the process, may lose the last moments in a power cut
	DurabilityNone   Durability = "none"   // never synced by the relay while it runs
)

// StoreKinds and Durabilities list the values that OpenStore takes.
var (
	StoreKinds   = []string{"memory", "bolt", "sqlite", "null"}
	Durabilities = []Durability{DurabilityCommit, DurabilityBatch, DurabilityNone}
)

var (
	errOpenElsewhere = errors.New("another process has it open")
	errOldFormat     = errors.New("it is in the format of an earlier version: export it with that, and import it anew")
)

// OpenStore opens or creates a store of one of the StoreKinds. bolt and sqlite need a directory,
// which is created; memory and null ignore it and the durability.
func OpenStore(kind, dir string, d Durability) (Store, error) {
	switch kind {
	case "memory":
		return NewMemory(), nil
	case "null":
		return Null{}, nil
	case "bolt", "sqlite":
	default:
		return nil, fmt.Errorf("unknown store %q: use one of %v", kind, StoreKinds)
	}
	if dir == "" {
		return nil, fmt.Errorf("the %s store needs a directory", kind)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the %s store's directory: %w", kind, err)
	}
	if kind == "sqlite" {
		return openSQLite(dir, d)
	}
	return openBolt(dir, d)
}
