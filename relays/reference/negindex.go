package reference

import (
	"errors"
	"slices"
	"sync"

	"relaybench/corpus"
	"relaybench/relays/negentropy"
)

// indexed is a Store with the set that NIP-77 reconciles kept beside it: every committed change
// goes into the set as well, so that opening a reconciliation builds nothing.
type indexed struct {
	Store
	live negentropy.Live

	mu       sync.Mutex
	expiring []member // NIP-40: what is to leave the set without a write
}

type member struct {
	createdAt, expires int64
	id                 corpus.ID
}

func memberOf(r *Record) member { return member{r.CreatedAt, r.Expires, r.ID} }

// newIndexed reads the store once.
func newIndexed(s Store) (*indexed, error) {
	x := &indexed{Store: s}
	var members []member // newest first
	err := scanAll(s, NewQuery(&corpus.Filter{}, 0), func(r *Record) error {
		members = append(members, memberOf(r))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(members) {
		x.add(&members[i])
	}
	return x, nil
}

// Update implements Store. The set changes when the transaction has been committed.
func (x *indexed) Update(change func(Tx) error) error {
	var changes []setChange
	if err := x.Store.Update(func(tx Tx) error { return change(&indexedTx{tx, &changes}) }); err != nil {
		return err
	}
	for i := range changes {
		if c := &changes[i]; c.removed {
			x.drop(&c.member)
		} else {
			x.add(&c.member)
		}
	}
	return nil
}

func (x *indexed) add(m *member) {
	x.live.Insert(uint64(m.createdAt), (*negentropy.ID)(&m.id))
	if m.expires != never {
		x.mu.Lock()
		x.expiring = append(x.expiring, *m)
		x.mu.Unlock()
	}
}

func (x *indexed) drop(m *member) {
	x.live.Delete(uint64(m.createdAt), (*negentropy.ID)(&m.id))
}

// snapshot returns the set of what is held and has not expired.
func (x *indexed) snapshot(now int64) *negentropy.Snapshot {
	x.mu.Lock()
	x.expiring = slices.DeleteFunc(x.expiring, func(m member) bool {
		if m.expires <= now {
			x.drop(&m)
		}
		return m.expires <= now
	})
	x.mu.Unlock()
	return x.live.Snapshot()
}

// setChange is one event that came or went in a transaction.
type setChange struct {
	member
	removed bool
}

type indexedTx struct {
	Tx
	changes *[]setChange
}

func (tx *indexedTx) Insert(r *Record) bool {
	inserted := tx.Tx.Insert(r)
	if inserted {
		*tx.changes = append(*tx.changes, setChange{memberOf(r), false})
	}
	return inserted
}

func (tx *indexedTx) Remove(r *Record) {
	*tx.changes = append(*tx.changes, setChange{memberOf(r), true}) // before the store may reuse the record's memory
	tx.Tx.Remove(r)
}

// errEnough ends a scan early.
var errEnough = errors.New("enough")

// scanBatch is how many events one read transaction of a scan returns.
const scanBatch = 4096

// scanAll calls each with what matches, newest first, in short reads; it may not keep the record.
func scanAll(s Store, q *Query, each func(*Record) error) error {
	for after := (Position{}); ; {
		n := 0
		err := s.View(func(v View) error {
			for cursor := v.Scan(q, after); n < scanBatch; n++ {
				r := cursor.Next()
				if r == nil {
					return nil
				}
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
