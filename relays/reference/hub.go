package reference

import (
	"slices"
	"sync"
	"sync/atomic"
)

// hub passes accepted events on to live subscriptions.
//
// Nothing is lost or repeated between a subscription's stored answer and what comes live: a
// subscription joins under the hub's lock, with the number of the last event accepted by then; its
// stored answer holds events up to that number, and the hub sends it those above.
type hub struct {
	mu       sync.RWMutex
	subs     []*subscription
	accepted atomic.Uint64 // Seq of the last event accepted; set after its commit and before its OK
}

func (h *hub) join(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.since = h.accepted.Load()
	s.place = len(h.subs)
	h.subs = append(h.subs, s)
}

func (h *hub) leave(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.place < 0 {
		return
	}
	last := len(h.subs) - 1
	h.subs[s.place] = h.subs[last]
	h.subs[s.place].place = s.place
	h.subs[last] = nil
	h.subs = h.subs[:last]
	s.place = -1
}

// publish offers a group to every subscription, in the order of acceptance. It waits for no peer.
func (h *hub) publish(group []*Record) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, s := range h.subs {
		sent := false
		for _, r := range group {
			if r.Seq > s.since && slices.ContainsFunc(s.queries, func(q *Query) bool { return q.Matches(r) }) {
				s.offer(r)
				sent = true
			}
		}
		if sent {
			s.session.out.flush()
		}
	}
}
