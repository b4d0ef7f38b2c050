package load

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"relaybench/corpus"
	"relaybench/corpus/model"
)

// State is what records add up to once replaceable and addressable events are folded to their
// newest version (NIP-01), deletions applied (NIP-09), and what has expired (NIP-40) or vanished
// (NIP-62) left out.
type State struct {
	Records    int // records folded, each counted once
	Current    int // what is left
	Superseded int
	Deleted    int
	Gone       int // expired or vanished, or of an ephemeral kind
	Authors    int // whose records came
	Unread     int // records whose text is unknown, in none of the figures above
}

// FoldCorpus folds those events of a corpus for which delivered(i) is true, at time now in Unix
// seconds. The error is an event of the corpus that cannot be read.
func FoldCorpus(c *corpus.Corpus, delivered func(i int) bool, now int64) (*State, error) {
	m, err := model.NewStatuses(c, delivered, now)
	if err != nil {
		return nil, fmt.Errorf("folding what was delivered: %w", err)
	}
	s := &State{}
	authors := make(map[corpus.PubKey]struct{})
	for i := range c.Len() {
		why := m.Why(i)
		if why == model.NotOffered {
			continue
		}
		s.Records++
		authors[c.Entry(i).PubKey] = struct{}{}
		switch why {
		case model.Stored:
			s.Current++
		case model.Superseded:
			s.Superseded++
		case model.Deleted:
			s.Deleted++
		default:
			s.Gone++
		}
	}
	s.Authors = len(authors)
	return s, nil
}

// Records remembers of events what folding needs, at some 150 bytes each: for relays whose events
// nobody knows beforehand. It is safe for concurrent use.
type Records struct {
	mu    sync.Mutex
	seed  maphash.Seed
	index map[corpus.ID]int32
	list  []record
	asks  []request
}

type record struct {
	id      corpus.ID
	author  corpus.PubKey
	at      int64
	expires int64  // Unix seconds, 0 for never
	address uint64 // hash of author, kind and d of an event that has versions, else 0
	kind    uint16
}

// request asks for deletion, or to vanish.
type request struct {
	record    int32
	ids       []corpus.ID
	addresses []uint64
	all       bool // of kind 62, for every relay
}

// NewRecords returns an empty memory.
func NewRecords() *Records {
	return &Records{seed: maphash.MakeSeed(), index: make(map[corpus.ID]int32)}
}

// Add remembers an event, and reports whether it was new.
func (r *Records) Add(e *corpus.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.index[e.ID]; known {
		return false
	}
	n := int32(len(r.list))
	r.index[e.ID] = n
	rec := record{id: e.ID, author: e.PubKey, at: e.CreatedAt, kind: uint16(e.Kind)}
	if at, ok := e.Expiration(); ok && at > 0 {
		rec.expires = at
	}
	switch {
	case corpus.IsReplaceable(e.Kind):
		rec.address = r.hash(&e.PubKey, e.Kind, "")
	case corpus.IsAddressable(e.Kind):
		rec.address = r.hash(&e.PubKey, e.Kind, e.D())
	}
	r.list = append(r.list, rec)
	switch e.Kind {
	case corpus.KindDeletion:
		r.asks = append(r.asks, r.deletion(n, e))
	case corpus.KindVanish:
		all := slices.ContainsFunc(e.Tags, func(t corpus.Tag) bool { return t.Name() == "relay" && t.Value() == "ALL_RELAYS" })
		r.asks = append(r.asks, request{record: n, all: all})
	}
	return true
}

// hash stands for an address; the chance that two of a million addresses share one is 1 in 37
// million.
func (r *Records) hash(author *corpus.PubKey, kind int, d string) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	h.Write(author[:])
	h.WriteString(strconv.Itoa(kind))
	h.WriteByte(':')
	h.WriteString(d)
	return max(1, h.Sum64())
}

// deletion reads what a request refers to. An address is "kind:pubkey:d" (NIP-09).
func (r *Records) deletion(n int32, e *corpus.Event) request {
	q := request{record: n}
	for _, t := range e.Tags {
		switch t.Name() {
		case "e":
			if id, ok := corpus.ParseID(t.Value()); ok {
				q.ids = append(q.ids, id)
			}
		case "a":
			kindText, rest, _ := strings.Cut(t.Value(), ":")
			author, d, both := strings.Cut(rest, ":")
			kind, err := strconv.Atoi(kindText)
			if err == nil && both && author == e.PubKey.String() && kind <= math.MaxUint16 && (corpus.IsAddressable(kind) || corpus.IsReplaceable(kind) && d == "") {
				q.addresses = append(q.addresses, r.hash(&e.PubKey, kind, d))
			}
		}
	}
	return q
}

// Fold folds the records with these ids, at time now in Unix seconds; an id may stand there more
// than once.
func (r *Records) Fold(ids []corpus.ID, now int64) *State {
	r.mu.Lock()
	defer r.mu.Unlock()
	came := make([]bool, len(r.list))
	strangers := make(map[corpus.ID]struct{})
	for _, id := range ids {
		if i, ok := r.index[id]; ok {
			came[i] = true
		} else {
			strangers[id] = struct{}{}
		}
	}
	// What is older than these times is gone with its author, or deleted by its address.
	vanished, reach := make(map[corpus.PubKey]int64), make(map[uint64]int64)
	gone := func(rec *record) bool {
		return corpus.IsEphemeral(int(rec.kind)) || rec.expires != 0 && rec.expires <= now ||
			rec.kind != corpus.KindVanish && rec.at < vanished[rec.author]
	}
	for _, q := range r.asks {
		if rec := &r.list[q.record]; came[q.record] && q.all && !gone(rec) {
			vanished[rec.author] = max(vanished[rec.author], rec.at+1)
		}
	}
	deleted := make([]bool, len(r.list))
	for _, q := range r.asks {
		rec := &r.list[q.record]
		if !came[q.record] || rec.kind != corpus.KindDeletion || gone(rec) {
			continue
		}
		for _, id := range q.ids {
			if i, ok := r.index[id]; ok {
				target := &r.list[i]
				deleted[i] = deleted[i] || target.author == rec.author && target.kind != corpus.KindDeletion && target.kind != corpus.KindVanish
			}
		}
		for _, a := range q.addresses {
			reach[a] = max(reach[a], rec.at+1)
		}
	}

	s := &State{Unread: len(strangers)}
	authors, versions := make(map[corpus.PubKey]bool), make(map[uint64]bool)
	for i := range r.list {
		rec := &r.list[i]
		if !came[i] {
			continue
		}
		s.Records++
		authors[rec.author] = true
		switch {
		case gone(rec):
			s.Gone++
		case deleted[i], rec.at < reach[rec.address]:
			s.Deleted++
		case versions[rec.address]: // whichever of them is the newest
			s.Superseded++
		default:
			s.Current++
			versions[rec.address] = rec.address != 0
		}
	}
	s.Authors = len(authors)
	return s
}

// Newest lists the ids of all events, newest first, the lowest id first among equals (NIP-01), with
// their created_at.
func (r *Records) Newest() ([]corpus.ID, []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	order := make([]*record, len(r.list))
	for i := range r.list {
		order[i] = &r.list[i]
	}
	slices.SortFunc(order, func(x, y *record) int {
		return cmp.Or(cmp.Compare(y.at, x.at), bytes.Compare(x.id[:], y.id[:]))
	})
	sorted, times := make([]corpus.ID, len(order)), make([]int64, len(order))
	for k, rec := range order {
		sorted[k], times[k] = rec.id, rec.at
	}
	return sorted, times
}
