package reference

import (
	"bytes"
	"errors"
	"iter"
	"math"
	"strconv"

	"relaybench/corpus"
)

// never is the expiry of an event that does not expire.
const never = math.MaxInt64

// Record is an event as a store keeps it: what decisions need, and the canonical JSON that is sent.
type Record struct {
	Seq       uint64 // position in the order in which the relay accepted events; never used twice while the relay runs
	ID        corpus.ID
	PubKey    corpus.PubKey
	CreatedAt int64 // Unix seconds
	Kind      int
	Expires   int64  // Unix seconds (NIP-40); math.MaxInt64 where the event does not expire
	Raw       []byte // canonical JSON as corpus.Event.AppendJSON writes it
}

// NewRecord makes the record of an event. Seq is left to the one who stores it.
func NewRecord(e *corpus.Event) Record {
	r := Record{ID: e.ID, PubKey: e.PubKey, CreatedAt: e.CreatedAt, Kind: e.Kind, Expires: never}
	if at, ok := e.Expiration(); ok {
		r.Expires = at
	}
	r.Raw = e.AppendJSON(make([]byte, 0, 320+len(e.Content)+len(e.Content)/8+96*len(e.Tags)))
	return r
}

// Before reports whether r comes first in an answer: newest first, ties by lowest id (NIP-01).
func (r *Record) Before(other *Record) bool {
	if r.CreatedAt != other.CreatedAt {
		return r.CreatedAt > other.CreatedAt
	}
	return bytes.Compare(r.ID[:], other.ID[:]) < 0
}

// Where canonical JSON keeps its first fields.
const (
	idAt        = len(`{"id":"`)
	pubKeyAt    = idAt + 64 + len(`","pubkey":"`)
	createdAtAt = pubKeyAt + 64 + len(`","created_at":`)
)

var errBrokenRecord = errors.New("stored event is not canonical JSON: the store is damaged")

// parseRecord reads a record back from its canonical JSON, which it keeps without a copy.
func parseRecord(seq uint64, raw []byte) (r Record, err error) {
	r = Record{Seq: seq, Expires: never, Raw: raw}
	if len(raw) < createdAtAt {
		return r, errBrokenRecord
	}
	var okID, okPubKey bool
	r.ID, okID = corpus.ParseID(raw[idAt : idAt+64])
	r.PubKey, okPubKey = corpus.ParsePubKey(raw[pubKeyAt : pubKeyAt+64])
	createdAt, rest := leadingInt(raw[createdAtAt:])
	rest, okKind := bytes.CutPrefix(rest, []byte(`,"kind":`))
	kind, _ := leadingInt(rest)
	r.CreatedAt, r.Kind = createdAt, int(kind)
	if !okID || !okPubKey || !okKind {
		return r, errBrokenRecord
	}
	if bytes.Contains(raw, []byte(`["expiration","`)) { // there, or in somebody's text
		r.Expires = r.expires()
	}
	return r, nil
}

// expires reads what corpus.Event.Expiration does.
func (r *Record) expires() int64 {
	for name, value := range r.valuedTags() {
		if string(name) == "expiration" {
			if at, err := strconv.ParseInt(string(value), 10, 64); err == nil {
				return at
			}
			break
		}
	}
	return never
}

func leadingInt(b []byte) (n int64, rest []byte) {
	for len(b) > 0 && '0' <= b[0] && b[0] <= '9' {
		n = n*10 + int64(b[0]-'0')
		b = b[1:]
	}
	return n, b
}

// indexedTags yields the tags that filters can ask for (NIP-01: single-letter names).
func (r *Record) indexedTags() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for name, value := range r.valuedTags() {
			if isSingle(name) && !yield(name, value) {
				return
			}
		}
	}
}

// valuedTags yields the tags that have a value, name and first value still escaped as in the
// canonical JSON. Canonical JSON makes this exact without a parser: a quote inside a string is
// always escaped.
func (r *Record) valuedTags() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		if len(r.Raw) < createdAtAt {
			return
		}
		rest := r.Raw[createdAtAt:]
		rest = rest[bytes.IndexByte(rest, '[')+1:]
		for len(rest) > 0 && rest[0] == '[' {
			rest = rest[1:]
			var first, second []byte
			for i := 0; len(rest) > 0 && rest[0] == '"'; i++ {
				var s []byte
				if s, rest = cutString(rest); i == 0 {
					first = s
				} else if i == 1 {
					second = s
					if !yield(first, second) {
						return
					}
				}
				if len(rest) > 0 && rest[0] == ',' {
					rest = rest[1:]
				}
			}
			if rest = rest[min(1, len(rest)):]; len(rest) > 0 && rest[0] == ',' { // past the tag's bracket
				rest = rest[1:]
			}
		}
	}
}

// isSingle reports whether an escaped tag name stands for one byte.
func isSingle(name []byte) bool {
	return len(name) == 1 || len(name) > 1 && name[0] == '\\' && (len(name) == 2 || len(name) == 6 && name[1] == 'u')
}

// cutString takes a string off the front of canonical JSON, and drops its quotes.
func cutString(b []byte) (s, rest []byte) {
	b = b[1:]
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			return b[:i], b[i+1:]
		case '\\':
			i++
		}
	}
	return b, nil
}
