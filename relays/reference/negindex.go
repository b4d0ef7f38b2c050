package reference

import (
	"container/heap"
	"errors"
	"slices"
	"sync"

	"relaybench/corpus"
	"relaybench/relays/negentropy"
)

// indexed is a Store with the set that NIP-77 reconciles kept beside it: every committed change goes into the set as well, so that opening a
// reconciliation builds nothing.
type indexed struct {
	Store
	live negentropy.Live

	mu       sync.Mutex
	expiring expiries // NIP-40: what is to leave the set without a write
}

// newIndexed reads the store once.
func newIndexed(s Store) (*indexed, error) {
	x := &indexed{Store: s}
	type item struct {
		createdAt, expires int64
		id                 corpus.ID
	}
	var items []item // newest first
	err := scanAll(s, NewQuery(&corpus.Filter{}, 0), func(r *Record) error {
		items = append(items, item{r.CreatedAt, r.Expires, r.ID})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, i := range slices.Backward(items) {
		x.add(&Record{CreatedAt: i.createdAt, Expires: i.expires, ID: i.id})
	}
	return x, nil
}

// Update implements Store. The set changes when the transaction has been committed.
func (x *indexed) Update(change func(Tx) error) error {
	var changes []setChange
	if err := x.Store.Update(func(tx Tx) error {
		changes = changes[:0]
		return change(&indexedTx{tx, &changes})
	}); err != nil {
		return err
	}
	for i := range changes {
		if c := &changes[i]; c.removed {
			x.live.Delete(uint64(c.createdAt), (*negentropy.ID)(&c.id))
		} else {
			x.add(&Record{CreatedAt: c.createdAt, Expires: c.expires, ID: c.id})
		}
	}
	return nil
}

func (x *indexed) add(r *Record) {
	x.live.Insert(uint64(r.CreatedAt), (*negentropy.ID)(&r.ID))
	if r.Expires != never {
		x.mu.Lock()
		heap.Push(&x.expiring, expiry{r.Expires, r.CreatedAt, r.ID})
		x.mu.Unlock()
	}
}

// snapshot returns the set of what is held and has not expired.
func (x *indexed) snapshot(now int64) *negentropy.Snapshot {
	x.mu.Lock()
	for len(x.expiring) > 0 && x.expiring[0].at <= now {
		gone := heap.Pop(&x.expiring).(expiry)
		x.live.Delete(uint64(gone.createdAt), (*negentropy.ID)(&gone.id))
	}
	x.mu.Unlock()
	return x.live.Snapshot()
}

// setChange is one event that came or went in a transaction.
type setChange struct {
	createdAt, expires int64
	id                 corpus.ID
	removed            bool
}

// indexedTx notes what a transaction does.
type indexedTx struct {
	Tx
	changes *[]setChange
}

func (tx *indexedTx) Insert(r *Record) (bool, error) {
	inserted, err := tx.Tx.Insert(r)
	if inserted && err == nil {
		*tx.changes = append(*tx.changes, setChange{r.CreatedAt, r.Expires, r.ID, false})
	}
	return inserted, err
}

func (tx *indexedTx) Remove(r *Record) error {
	c := setChange{r.CreatedAt, r.Expires, r.ID, true} // before the store may reuse the record's memory
	err := tx.Tx.Remove(r)
	if err == nil {
		*tx.changes = append(*tx.changes, c)
	}
	return err
}

// expiries is a heap, the soonest first.
type expiries []expiry

type expiry struct {
	at, createdAt int64
	id            corpus.ID
}

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].at < e[j].at }
func (e expiries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *expiries) Push(v any)        { *e = append(*e, v.(expiry)) }
func (e *expiries) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// errEnough ends a scan early.
var errEnough = errors.New("enough")

// scanBatch is how many events one read transaction of a scan returns.
const scanBatch = 4096

// scanAll calls each with the events that match, newest first, in many short read transactions. The record is valid during the call.
func scanAll(s Store, q *Query, each func(*Record) error) error {
	for after := (Position{}); ; {
		n := 0
		err := s.View(func(v View) error {
			cursor, err := v.Scan(q, after)
			if err != nil {
				return err
			}
			defer cursor.Close()
			for n < scanBatch {
				r, err := cursor.Next()
				if err != nil || r == nil {
					return err
				}
				n++
				after = positionOf(r)
				if err := each(r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || n < scanBatch {
			return err
		}
	}
}
