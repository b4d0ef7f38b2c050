package reference

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"relaybench/corpus"
)

// Memory is a store without files: a sorted list that every query walks. It is as plain as can be,
// since the tests hold the other stores against it.
type Memory struct {
	mu     sync.RWMutex
	sorted []*Record // oldest first, ties by highest id: the reverse of an answer, so that new events mostly go to the end
	byID   map[corpus.ID]*Record
	notes  map[string][]byte

	lastSeq uint64
}

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{byID: map[corpus.ID]*Record{}, notes: map[string][]byte{}}
}

// Update runs the changes directly on the lists. They cannot fail half-way: only the store's own
// methods fail, and these do not.
func (m *Memory) Update(change func(Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return change(memoryTx{m})
}

// View reads under a lock that holds up Update; callers take a bounded batch at a time.
func (m *Memory) View(read func(View) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return read(memoryTx{m})
}

// LastSeq returns the number of the last event inserted.
func (m *Memory) LastSeq() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.lastSeq
}

// Close does nothing.
func (m *Memory) Close() error { return nil }

type memoryTx struct{ *Memory }

// oldestFirst orders as an answer does, backwards.
func oldestFirst(a, b *Record) int {
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(b.ID[:], a.ID[:]))
}

// place returns where r stands, or would stand, in the sorted list.
func (m memoryTx) place(r *Record) int {
	i, _ := slices.BinarySearchFunc(m.sorted, r, oldestFirst)
	return i
}

func (m memoryTx) Find(id corpus.ID) (Record, bool) {
	if r := m.byID[id]; r != nil {
		return *r, true
	}
	return Record{}, false
}

func (m memoryTx) Insert(r *Record) bool {
	if m.byID[r.ID] != nil {
		return false
	}
	kept := *r
	kept.Raw = slices.Clone(r.Raw) // the text is the caller's
	m.lastSeq = r.Seq
	m.byID[r.ID] = &kept
	m.sorted = slices.Insert(m.sorted, m.place(r), &kept)
	return true
}

func (m memoryTx) Remove(r *Record) {
	if m.byID[r.ID] != nil {
		delete(m.byID, r.ID)
		i := m.place(r)
		m.sorted = slices.Delete(m.sorted, i, i+1)
	}
}

func (m memoryTx) Note(key []byte) []byte { return m.notes[string(key)] }

func (m memoryTx) SetNote(key, value []byte) { m.notes[string(key)] = slices.Clone(value) }

func (m memoryTx) Scan(q *Query, after Position) Cursor {
	next := len(m.sorted)
	if after.valid {
		next = m.place(&Record{CreatedAt: after.CreatedAt, ID: after.ID})
	}
	return &memoryCursor{q, m.sorted[:next]}
}

type memoryCursor struct {
	q    *Query
	rest []*Record
}

func (c *memoryCursor) Next() *Record {
	for n := len(c.rest); n > 0; n-- {
		if r := c.rest[n-1]; c.q.Matches(r) {
			c.rest = c.rest[:n-1]
			return r
		}
	}
	c.rest = nil
	return nil
}
