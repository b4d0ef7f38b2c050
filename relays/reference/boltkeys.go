package reference

import (
	"crypto/sha256"
	"encoding/binary"

	"relaybench/corpus"
)

// The index bucket's keys begin with a byte for what they are. Those that queries walk end in an order: the inverted time, so that
// newer comes first, then half the id, so that the lower id comes first; finding two ids with the same half is as hard as breaking a 128-bit
// hash. Authors and tags stand as the first eight bytes of a key or hash, which is enough to find candidates: every candidate is
// matched against the whole filter.
const (
	tableIDs        = 'i' // id half → Seq
	tableNotes      = 'n' // a note's key → its value
	tableTime       = 't' // order
	tableAuthor     = 'a' // author, order
	tableAuthorKind = 'b' // author, kind, order
	tableKind       = 'k' // kind, order
	tableTag        = '#' // tag, order

	idHalf    = 16
	orderSize = 8 + idHalf
)

func idKey(id corpus.ID) []byte {
	return append(append(make([]byte, 0, 1+idHalf), tableIDs), id[:idHalf]...)
}

func noteKey(key []byte) []byte {
	return append(append(make([]byte, 0, 1+len(key)), tableNotes), key...)
}

func appendOrder(key []byte, createdAt int64, id *corpus.ID) []byte {
	key = binary.BigEndian.AppendUint64(key, ^uint64(createdAt))
	return append(key, id[:idHalf]...)
}

func appendKind(key []byte, kind int) []byte { return append(key, byte(kind>>8), byte(kind)) }

// tagHash identifies a tag by its name and value, both escaped as in canonical JSON.
func tagHash[T ~string | ~[]byte](name, value T) [8]byte {
	var buf [256]byte
	b := append(append(append(buf[:0], name...), 0), value...)
	sum := sha256.Sum256(b)
	return [8]byte(sum[:8])
}

func timePrefix() []byte { return []byte{tableTime} }

func authorPrefix(pk *corpus.PubKey) []byte { return append([]byte{tableAuthor}, pk[:8]...) }

func authorKindPrefix(pk *corpus.PubKey, kind int) []byte {
	return appendKind(append([]byte{tableAuthorKind}, pk[:8]...), kind)
}

func kindPrefix(kind int) []byte { return appendKind([]byte{tableKind}, kind) }

func tagPrefix(hash [8]byte) []byte { return append([]byte{tableTag}, hash[:]...) }

// indexKeys returns the keys under which queries find an event, all cut from one piece of memory.
func indexKeys(r *Record) [][]byte {
	var hashes map[[8]byte]struct{}
	tags := 0
	for range r.indexedTags() {
		tags++
	}
	buf := make([]byte, 0, (4+tags)*(11+orderSize))
	keys := make([][]byte, 0, 4+tags)
	add := func(table byte, parts ...[]byte) {
		start := len(buf)
		buf = append(buf, table)
		for _, p := range parts {
			buf = append(buf, p...)
		}
		buf = appendOrder(buf, r.CreatedAt, &r.ID)
		keys = append(keys, buf[start:len(buf):len(buf)])
	}
	kind := appendKind(nil, r.Kind)
	add(tableTime)
	add(tableAuthor, r.PubKey[:8])
	add(tableAuthorKind, r.PubKey[:8], kind)
	add(tableKind, kind)
	for name, value := range r.indexedTags() {
		hash := tagHash(name, value)
		if _, seen := hashes[hash]; seen {
			continue
		}
		if hashes == nil {
			hashes = make(map[[8]byte]struct{}, tags)
		}
		hashes[hash] = struct{}{}
		add(tableTag, hash[:])
	}
	return keys
}
