package receive

import (
	"bytes"
	"math/rand/v2"
	"sync"

	"relaybench/corpus"
)

// shardCount spreads the ids over locks: readers hardly ever wait for one another.
const shardCount = 64

// Seen remembers ids in bounded memory: two generations, of which the young one is filled and the
// old one, once it is full, dropped. An id that is asked for again becomes young again. Known are
// at least the last room ids that came or became young, up to how evenly they spread over the
// shards, and never more than twice as many. All methods may be called by several goroutines.
type Seen struct {
	shards [shardCount]shard
	room   int // of a shard's generation
	digit  int // the byte of an id that chooses its shard, drawn at random: nobody can aim at one shard
}

type shard struct {
	mu         sync.Mutex
	young, old map[corpus.ID]struct{}
	inFlight   map[corpus.ID][]byte // events that are being verified, by the id they claim
	_          [96]byte             // so that no two locks share a cache line
}

// NewSeen returns an empty memory for room ids in each of the two generations. It grows to about
// 100 bytes for each id that it holds.
func NewSeen(room int) *Seen {
	s := &Seen{room: max(1, (room+shardCount-1)/shardCount), digit: rand.IntN(len(corpus.ID{}))}
	for i := range s.shards {
		s.shards[i].young = make(map[corpus.ID]struct{})
		s.shards[i].old = make(map[corpus.ID]struct{})
		s.shards[i].inFlight = make(map[corpus.ID][]byte)
	}
	return s
}

func (s *Seen) shard(id *corpus.ID) *shard { return &s.shards[id[s.digit]%shardCount] }

// Has reports whether the id is remembered.
func (s *Seen) Has(id corpus.ID) bool {
	h := s.shard(&id)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.has(&id, s.room)
}

// Add remembers the id and reports whether it was new.
func (s *Seen) Add(id corpus.ID) bool {
	h := s.shard(&id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.has(&id, s.room) {
		return false
	}
	h.add(&id, s.room)
	return true
}

// claim is the outcome of announcing an event that is still to be verified.
type claim uint8

const (
	claimed   claim = iota // the first with this id
	contested              // another with this id is in flight, with other bytes: either may be the forgery
	repeated               // the very same bytes are in flight, or the id is remembered
)

// claim announces an event in flight. raw must keep its bytes until settle.
func (s *Seen) claim(id corpus.ID, raw []byte) claim {
	h := s.shard(&id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.has(&id, s.room) {
		return repeated
	}
	first, found := h.inFlight[id]
	switch {
	case !found:
		h.inFlight[id] = raw
		return claimed
	case bytes.Equal(first, raw):
		return repeated
	}
	return contested
}

// settle ends what claim began: the id is remembered where the event is good. It reports whether it
// is the first good one with this id.
func (s *Seen) settle(id corpus.ID, owner, good bool) bool {
	h := s.shard(&id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if owner {
		delete(h.inFlight, id)
	}
	if !good || h.has(&id, s.room) {
		return false
	}
	h.add(&id, s.room)
	return true
}

func (h *shard) has(id *corpus.ID, room int) bool {
	if _, found := h.young[*id]; found {
		return true
	}
	if _, found := h.old[*id]; !found {
		return false
	}
	delete(h.old, *id)
	h.add(id, room)
	return true
}

func (h *shard) add(id *corpus.ID, room int) {
	if len(h.young) >= room {
		h.young, h.old = h.old, h.young
		clear(h.young)
	}
	h.young[*id] = struct{}{}
}
