package reference

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// maxWalks bounds how many places of the index one filter is read from at once.
const maxWalks = 4096

// Scan merges the places of the index where matching events stand, newest first, and stops reading where the caller does.
func (t *boltTx) Scan(q *Query, after Position) (Cursor, error) {
	if len(t.pending) > 0 {
		if err := t.flush(); err != nil {
			return nil, err
		}
	}
	if len(q.IDs) > 0 {
		return t.scanIDs(q, after)
	}
	var start [orderSize]byte
	if after.valid {
		copy(start[:], appendOrder(nil, after.CreatedAt, &after.ID))
	} else {
		binary.BigEndian.PutUint64(start[:], ^uint64(q.Until))
	}
	c := &boltCursor{tx: t, query: q, oldest: binary.BigEndian.AppendUint64(nil, ^uint64(q.Since))}
	for _, prefix := range prefixes(q) {
		w := &walk{prefix: prefix, cursor: t.index.Cursor()}
		w.show(w.cursor.Seek(append(slices.Clip(prefix), start[:]...)))
		if after.valid && bytes.Equal(w.order, start[:]) {
			w.show(w.cursor.Next())
		}
		if w.order != nil {
			c.walks = append(c.walks, w)
		}
	}
	heap.Init(&c.walks)
	return c, nil
}

// prefixes picks the index that leaves the fewest candidates: the tag condition with the fewest values, since a tag value is mostly
// rarer than an author or a kind; then author and kind; then either; then time.
func prefixes(q *Query) (list [][]byte) {
	switch {
	case len(q.Tags) > 0:
		t := fewestValues(q.Tags)
		for _, v := range t.Values {
			list = append(list, tagPrefix(tagHash(t.Name, v)))
		}
	case len(q.Authors) > 0 && len(q.Kinds) > 0 && len(q.Authors)*len(q.Kinds) <= maxWalks:
		for i := range q.Authors {
			for _, kind := range q.Kinds {
				list = append(list, authorKindPrefix(&q.Authors[i], kind))
			}
		}
	case len(q.Authors) > 0 && len(q.Authors) <= maxWalks:
		for i := range q.Authors {
			list = append(list, authorPrefix(&q.Authors[i]))
		}
	case len(q.Kinds) > 0 && len(q.Kinds) <= maxWalks:
		for _, kind := range q.Kinds {
			list = append(list, kindPrefix(kind))
		}
	default:
		list = append(list, timePrefix())
	}
	return list
}

func fewestValues(tags []TagQuery) *TagQuery {
	best := &tags[0]
	for i := range tags {
		if len(tags[i].Values) < len(best.Values) {
			best = &tags[i]
		}
	}
	return best
}

// walk is one place of the index being read. order is the end of the key it shows, nil when it is over.
type walk struct {
	prefix []byte
	cursor *bolt.Cursor
	order  []byte
	seq    []byte
}

func (w *walk) show(key, value []byte) {
	if bytes.HasPrefix(key, w.prefix) && len(key) == len(w.prefix)+orderSize {
		w.order, w.seq = key[len(w.prefix):], value
	} else {
		w.order, w.seq = nil, nil
	}
}

// walks is a heap: the newest event first.
type walks []*walk

func (w walks) Len() int           { return len(w) }
func (w walks) Less(i, j int) bool { return bytes.Compare(w[i].order, w[j].order) < 0 }
func (w walks) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *walks) Push(x any)        { *w = append(*w, x.(*walk)) }
func (w *walks) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	*w = (*w)[:last]
	return x
}

type boltCursor struct {
	tx     *boltTx
	query  *Query
	oldest []byte // the inverted since
	walks  walks
	last   []byte // order of the event that was looked at last: one with two of the tags asked for stands in two places
	record Record
}

func (c *boltCursor) Next() (*Record, error) {
	for len(c.walks) > 0 {
		w := c.walks[0]
		if bytes.Compare(w.order[:8], c.oldest) > 0 {
			c.walks = nil
			break
		}
		seq := w.seq
		again := bytes.Equal(w.order, c.last)
		c.last = append(c.last[:0], w.order...)
		if w.show(w.cursor.Next()); w.order == nil {
			heap.Pop(&c.walks)
		} else {
			heap.Fix(&c.walks, 0)
		}
		if again {
			continue
		}
		var err error
		if c.record, err = c.tx.load(seq); err != nil {
			return nil, err
		}
		if c.query.Matches(&c.record) {
			return &c.record, nil
		}
	}
	return nil, nil
}

func (c *boltCursor) Close() {}

// scanIDs looks every id up; there are few, since a message lists them.
func (t *boltTx) scanIDs(q *Query, after Position) (Cursor, error) {
	var found []*Record
	last := Record{CreatedAt: after.CreatedAt, ID: after.ID}
	for _, id := range q.IDs {
		r, ok, err := t.Find(id)
		if err != nil {
			return nil, err
		}
		if ok && q.Matches(&r) && (!after.valid || last.Before(&r)) {
			found = append(found, &r)
		}
	}
	return newListCursor(found), nil
}

// listCursor goes through a list.
type listCursor struct{ rest []*Record }

func newListCursor(list []*Record) *listCursor {
	slices.SortFunc(list, func(a, b *Record) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	return &listCursor{list}
}

func (c *listCursor) Next() (*Record, error) {
	if len(c.rest) == 0 {
		return nil, nil
	}
	r := c.rest[0]
	c.rest = c.rest[1:]
	return r, nil
}

func (c *listCursor) Close() {}
