package reference

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"relaybench/corpus"
)

// Query is a NIP-01 filter made ready for matching many events.
type Query struct {
	IDs     []corpus.ID
	Authors []corpus.PubKey
	Kinds   []int
	Tags    []TagQuery
	Since   int64 // Unix seconds, inclusive
	Until   int64 // Unix seconds, inclusive
	Limit   int   // most events wanted; math.MaxInt where the filter sets none

	nothing bool // some list is empty: no event can match
	ids     map[corpus.ID]struct{}
	authors map[corpus.PubKey]struct{}
	kinds   map[int]struct{}
}

// TagQuery is one "#x" condition. Name and values are escaped as in canonical JSON.
type TagQuery struct {
	Name   string
	Values []string
	set    map[string]struct{}
}

// NewQuery prepares a filter. A limit over maxLimit, or none, becomes maxLimit unless that is 0.
func NewQuery(f *corpus.Filter, maxLimit int) *Query {
	q := &Query{Until: math.MaxInt64, Limit: math.MaxInt}
	if f.Since != nil {
		q.Since = *f.Since
	}
	if f.Until != nil {
		q.Until = *f.Until
	}
	if f.Limit != nil {
		q.Limit = *f.Limit
	}
	if maxLimit > 0 {
		q.Limit = min(q.Limit, maxLimit)
	}
	q.IDs, q.ids = distinct(f.IDs)
	q.Authors, q.authors = distinct(f.Authors)
	q.Kinds, q.kinds = distinct(f.Kinds)
	q.nothing = f.IDs != nil && len(f.IDs) == 0 || f.Authors != nil && len(f.Authors) == 0 || f.Kinds != nil && len(f.Kinds) == 0
	for _, t := range f.Tags {
		tq := TagQuery{Name: escape(string([]byte{t.Name}))}
		escaped := make([]string, len(t.Values))
		for i, v := range t.Values {
			escaped[i] = escape(v)
		}
		tq.Values, tq.set = distinct(escaped)
		q.nothing = q.nothing || len(t.Values) == 0
		q.Tags = append(q.Tags, tq)
	}
	return q
}

// distinct drops repetitions, and makes the set that matching looks into.
func distinct[T comparable](list []T) ([]T, map[T]struct{}) {
	if len(list) == 0 {
		return nil, nil
	}
	set := make(map[T]struct{}, len(list))
	kept := make([]T, 0, len(list))
	for _, v := range list {
		if _, seen := set[v]; !seen {
			set[v] = struct{}{}
			kept = append(kept, v)
		}
	}
	return kept, set
}

// escape returns s as it stands between quotes in canonical JSON.
func escape(s string) string {
	b := corpus.AppendString(make([]byte, 0, len(s)+2), s)
	return string(b[1 : len(b)-1])
}

// Matches reports whether the event meets every condition but the limit.
func (q *Query) Matches(r *Record) bool {
	if q.nothing || r.CreatedAt < q.Since || r.CreatedAt > q.Until {
		return false
	}
	if !in(q.kinds, r.Kind) || !in(q.ids, r.ID) || !in(q.authors, r.PubKey) {
		return false
	}
	return len(q.Tags) == 0 || q.matchesTags(r)
}

func in[T comparable](set map[T]struct{}, v T) bool {
	_, ok := set[v]
	return ok || set == nil
}

func (q *Query) matchesTags(r *Record) bool {
	met := uint64(0) // one bit a condition; NIP-01 allows 52 letters, and filters with more names are refused
	all := uint64(1)<<len(q.Tags) - 1
	for name, value := range r.indexedTags() {
		for i := range q.Tags {
			if t := &q.Tags[i]; met&(1<<i) == 0 && string(name) == t.Name {
				if _, ok := t.set[string(value)]; ok {
					if met |= 1 << i; met == all {
						return true
					}
				}
			}
		}
	}
	return false
}

// tagHash stands for a tag in indexes: the name and value are escaped as in canonical JSON.
func tagHash[T ~string | ~[]byte](name, value T) uint64 {
	var room [256]byte
	sum := sha256.Sum256(append(append(append(room[:0], name...), 0), value...))
	return binary.BigEndian.Uint64(sum[:])
}

// fewestValues returns the tag condition that lists the fewest values.
func fewestValues(tags []TagQuery) *TagQuery {
	best := &tags[0]
	for i := range tags {
		if len(tags[i].Values) < len(best.Values) {
			best = &tags[i]
		}
	}
	return best
}

// elements returns how many values the filter lists, the measure of what it costs to answer.
func (q *Query) elements() int {
	n := len(q.IDs) + len(q.Authors) + len(q.Kinds)
	for _, t := range q.Tags {
		n += len(t.Values)
	}
	return n
}
