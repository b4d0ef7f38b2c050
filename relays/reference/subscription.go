package reference

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// subscription is one REQ: first a stored answer, then live events.
type subscription struct {
	session *session
	head    []byte // ["EVENT","id", : what comes before an event in its frames
	id      []byte // as a JSON string
	queries []*Query

	since uint64 // events up to this Seq are in the stored answer, later ones come live
	place int    // in the hub's list; guarded by the hub

	cancelled atomic.Bool
	stopped   chan struct{} // closed when cancelled is set
	answered  chan struct{} // closed when the stored answer is over

	mu        sync.Mutex
	live      bool     // EOSE was sent
	held      [][]byte // live events that came before EOSE
	heldBytes int
	overrun   bool // more came than may be held
}

// offer sends a live event, or keeps it until EOSE. A peer that is too far behind is closed.
func (s *subscription) offer(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.session.relay.options.MaxPending
	switch {
	case s.cancelled.Load() || s.overrun:
	case s.live:
		if s.session.out.queued() > limit {
			s.session.out.drop(closeViolation, "too slow: live events are not read as fast as they come")
			return
		}
		s.session.out.text(s.head, r.Raw, closeBracket)
	case s.heldBytes+len(r.Raw) > limit:
		s.overrun, s.held = true, nil
	default:
		s.held = append(s.held, r.Raw)
		s.heldBytes += len(r.Raw)
	}
}

// run sends the stored answer and EOSE while the peer keeps up, then lets live events through.
func (s *subscription) run() {
	defer close(s.answered)
	select {
	case s.session.slots <- struct{}{}:
		defer func() { <-s.session.slots }()
	case <-s.stopped:
		return
	}
	a := newResultStream(s.queries, s.since, s.session.relay.now())
	a.faults = s.session.relay.options.Faults
	early := a.faults.begin(s)
	for !a.done && !s.cancelled.Load() {
		if err := s.sendBatch(a); err != nil {
			s.fail("error: " + err.Error())
			return
		}
	}
	if !early && !s.goLive() {
		s.fail("error: more live events came than the relay holds back while it answers")
	}
}

func (s *subscription) sendBatch(a *resultStream) error {
	out := s.session.out
	if out.waitRoom(roomBytes, s.cancelled.Load) != nil {
		s.stop()
		return nil
	}
	b := batches.Get().(*batch)
	defer batches.Put(b)
	err := s.session.relay.reading(func(store Store) error { return a.read(store, b) })
	if err != nil || s.cancelled.Load() {
		return err
	}
	events := b.each
	if a.faults != nil {
		spoilt, cut := a.faults.spoil(b)
		if events = slices.Values(spoilt); cut {
			err = errors.New("that is enough")
		}
	}
	for raw := range events {
		out.text(s.head, raw, closeBracket)
	}
	if !a.done {
		out.flush()
	}
	return err
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// goLive sends EOSE and what came in the meantime; ok is false if too much came.
func (s *subscription) goLive() (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overrun || s.cancelled.Load() {
		return !s.overrun
	}
	s.session.out.text([]byte(`["EOSE",`), s.id, closeBracket)
	for _, raw := range s.held {
		s.session.out.text(s.head, raw, closeBracket)
	}
	s.session.out.flush()
	s.live, s.held = true, nil
	return true
}

// fail ends the subscription from the relay's side.
func (s *subscription) fail(reason string) {
	if s.stop() {
		s.session.forget(s)
		s.session.say("CLOSED", s.id, reason)
	}
}

// stop marks the subscription as ended; first is false if it was already.
func (s *subscription) stop() (first bool) {
	if first = !s.cancelled.Swap(true); first {
		close(s.stopped)
	}
	return first
}

// cancel ends the subscription from the client's side. The stored answer stops soon.
func (s *subscription) cancel() {
	s.stop()
	s.session.relay.hub.leave(s)
	s.session.out.stir()
	// An event that is being offered this moment goes out before whatever answers the client's
	// message.
	s.mu.Lock()
	//lint:ignore SA2001 waiting for the lock is the purpose
	s.mu.Unlock()
}
