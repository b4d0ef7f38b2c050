package reference

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"slices"

	bolt "go.etcd.io/bbolt"

	"relaybench/corpus"
)

// An index key is a byte for its table, the subject, and the place in an answer: the inverted time,
// so that newer comes first, then half the id, so that the lower id does. Two ids with the same
// half are as hard to find as any collision of 128 bits. Authors and tags stand as eight bytes of a
// key or a hash: what is found is a candidate, and matched against the whole filter. The value
// tells of many without loading them that they do not match.
const (
	tableID         = 'i' // without a place
	tableTime       = 't'
	tableAuthor     = 'a'
	tableAuthorKind = 'b'
	tableKind       = 'k'
	tableTag        = '#'

	idHalf    = 16
	placeSize = 8 + idHalf
)

func idKey(id *corpus.ID) []byte { return append([]byte{tableID}, id[:idHalf]...) }

func appendKind(b []byte, kind int) []byte { return binary.BigEndian.AppendUint16(b, uint16(kind)) }

func appendPlace(b []byte, createdAt int64, id *corpus.ID) []byte {
	return append(binary.BigEndian.AppendUint64(b, ^uint64(createdAt)), id[:idHalf]...)
}

func kindPrefix(kind int) []byte { return appendKind([]byte{tableKind}, kind) }

// Of public keys the last bytes are taken: people search for keys that begin as they like.
func authorPrefix(pk *corpus.PubKey) []byte { return append([]byte{tableAuthor}, pk[24:]...) }

func authorKindPrefix(pk *corpus.PubKey, kind int) []byte {
	return appendKind(append([]byte{tableAuthorKind}, pk[24:]...), kind)
}

func tagPrefix(hash uint64) []byte { return binary.BigEndian.AppendUint64([]byte{tableTag}, hash) }

// indexValue is the Seq, the kind and the author's last byte.
func indexValue(r *Record) []byte {
	return append(appendKind(binary.BigEndian.AppendUint64(nil, r.Seq), r.Kind), r.PubKey[31])
}

func indexKeys(r *Record) [][]byte {
	keys := [][]byte{{tableTime}, kindPrefix(r.Kind), authorPrefix(&r.PubKey), authorKindPrefix(&r.PubKey, r.Kind)}
	for name, value := range r.indexedTags() {
		keys = append(keys, tagPrefix(tagHash(name, value)))
	}
	for i := range keys {
		keys[i] = appendPlace(keys[i], r.CreatedAt, &r.ID)
	}
	return keys
}

// maxWalks bounds how many places of the index one filter is read from at once.
const maxWalks = 4096

// prefixes picks the table that leaves the fewest candidates: the tag condition with the fewest
// values, since a tag value is mostly rarer than an author or a kind; then author and kind; then
// either; then time.
func prefixes(q *Query) (list [][]byte) {
	authors, kinds := len(q.Authors), len(q.Kinds)
	switch {
	case len(q.Tags) > 0:
		t := fewestValues(q.Tags)
		for _, v := range t.Values {
			list = append(list, tagPrefix(tagHash(t.Name, v)))
		}
	case authors > 0 && kinds > 0 && authors*kinds <= maxWalks:
		for i := range q.Authors {
			for _, kind := range q.Kinds {
				list = append(list, authorKindPrefix(&q.Authors[i], kind))
			}
		}
	case authors > 0 && authors <= maxWalks:
		for i := range q.Authors {
			list = append(list, authorPrefix(&q.Authors[i]))
		}
	case kinds > 0 && kinds <= maxWalks:
		for _, kind := range q.Kinds {
			list = append(list, kindPrefix(kind))
		}
	default:
		list = [][]byte{{tableTime}}
	}
	return list
}

// Scan merges the places of the index where matching events stand, and stops where the caller does.
func (t *boltTx) Scan(q *Query, after Position) Cursor {
	t.flush()
	if len(q.IDs) > 0 {
		return t.scanIDs(q, after)
	}
	start := appendPlace(nil, q.Until, &corpus.ID{})
	if after.valid {
		start = append(appendPlace(nil, after.CreatedAt, &after.ID), 0) // past it
	}
	c := &boltCursor{tx: t, query: q}
	for i := range q.Authors {
		c.authors[q.Authors[i][31]] = true
	}
	for _, prefix := range prefixes(q) {
		w := walk{prefix: prefix, cursor: t.index.Cursor()}
		if w.show(w.cursor.Seek(append(bytes.Clone(prefix), start...))) {
			c.walks = append(c.walks, w)
		}
	}
	heap.Init(&c.walks)
	return c
}

// scanIDs looks every id up; there are few, since a message lists them.
func (t *boltTx) scanIDs(q *Query, after Position) Cursor {
	var found []*Record
	last := Record{CreatedAt: after.CreatedAt, ID: after.ID}
	for _, id := range q.IDs {
		if r, ok := t.Find(id); ok && (!after.valid || last.Before(&r)) {
			found = append(found, &r)
		}
	}
	slices.SortFunc(found, oldestFirst)
	return &memoryCursor{q, found}
}

// walk is one place of the index being read.
type walk struct {
	prefix []byte
	cursor *bolt.Cursor
	place  []byte // the end of the key that it shows
	value  []byte
}

// show takes what the cursor returned, and reports whether the walk goes on.
func (w *walk) show(key, value []byte) bool {
	if !bytes.HasPrefix(key, w.prefix) {
		return false
	}
	w.place, w.value = key[len(w.prefix):], value
	return true
}

// walks is a heap: the newest event first.
type walks []walk

func (w walks) Len() int           { return len(w) }
func (w walks) Less(i, j int) bool { return bytes.Compare(w[i].place, w[j].place) < 0 }
func (w walks) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *walks) Push(x any)        { *w = append(*w, x.(walk)) }
func (w *walks) Pop() any {
	*w = (*w)[:len(*w)-1]
	return nil
}

type boltCursor struct {
	tx      *boltTx
	query   *Query
	authors [256]bool // last bytes of those asked for
	walks   walks
	last    []byte // place looked at last: an event with two of the tags asked for stands in two tables
	record  Record
}

func (c *boltCursor) Next() *Record {
	for len(c.walks) > 0 {
		w := &c.walks[0]
		place, value := w.place, w.value
		if createdAt := int64(^binary.BigEndian.Uint64(place)); createdAt < c.query.Since {
			break
		}
		if w.show(w.cursor.Next()) {
			heap.Fix(&c.walks, 0)
		} else {
			heap.Pop(&c.walks)
		}
		again := bytes.Equal(place, c.last)
		c.last = place
		if again || !in(c.query.kinds, int(binary.BigEndian.Uint16(value[8:]))) || len(c.query.Authors) > 0 && !c.authors[value[10]] {
			continue
		}
		r, ok := c.tx.load(value[:8])
		if ok && c.query.Matches(&r) {
			c.record = r
			return &c.record
		}
		if c.tx.err != nil {
			break
		}
	}
	c.walks = nil
	return nil
}
