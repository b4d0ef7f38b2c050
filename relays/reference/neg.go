package reference

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"relaybench/corpus/scan"
	"relaybench/relays/negentropy"
)

// negotiation is one reconciliation with a client (NIP-77), of the set as it was at its opening.
type negotiation struct {
	responder *negentropy.Responder
	idle      *time.Timer
}

// builtEvents is how many events a set built for one reconciliation may hold by default.
const builtEvents = 1_000_000

// negOpen starts a reconciliation, in place of one with its id: ["NEG-OPEN", id, filter, message].
func (s *session) negOpen(id []byte, name string, rest [][]byte) {
	if len(rest) != 2 {
		s.say("NEG-ERR", id, "invalid: NEG-OPEN takes a subscription id, a filter and a message")
		return
	}
	s.endNegotiation(name, nil)
	s.mu.Lock()
	open := len(s.negs)
	s.mu.Unlock()
	if limit := s.relay.options.NegSessions; open >= limit {
		s.say("NEG-ERR", id, fmt.Sprintf("blocked: too many reconciliations are open on this connection: the limit is %d", limit))
		return
	}
	storage, limit, err := s.relay.negStorage(rest[0])
	switch {
	case errors.Is(err, errTooMany): // NIP-77 has it say how many events would do
		s.say("NEG-ERR", id, "blocked: too many query results", fmt.Append(nil, limit))
		return
	case err != nil:
		s.say("NEG-ERR", id, refusal(err))
		return
	}
	n := &negotiation{responder: negentropy.NewResponder(storage, s.relay.options.NegFrameLimit)}
	n.idle = time.AfterFunc(s.relay.options.NegIdle, func() {
		if s.endNegotiation(name, n) {
			s.say("NEG-ERR", id, "closed: nothing was heard for too long")
		}
	})
	s.mu.Lock()
	s.negs[name] = n
	s.mu.Unlock()
	s.negAnswer(id, name, n, rest[1])
}

// negMsg goes on with a reconciliation: ["NEG-MSG", id, message].
func (s *session) negMsg(id []byte, name string, rest [][]byte) {
	if len(rest) != 1 {
		s.say("NEG-ERR", id, "invalid: NEG-MSG takes a subscription id and a message")
		return
	}
	s.mu.Lock()
	n := s.negs[name]
	s.mu.Unlock()
	if n == nil || !n.idle.Stop() {
		s.say("NEG-ERR", id, "closed: no such reconciliation is open")
		return
	}
	n.idle.Reset(s.relay.options.NegIdle)
	s.negAnswer(id, name, n, rest[0])
}

func (s *session) negAnswer(id []byte, name string, n *negotiation, text []byte) {
	digits, err := scan.String(text)
	var message, answer []byte
	if err == nil {
		message, err = negentropy.DecodeHex(nil, []byte(digits))
	}
	if err == nil {
		answer, err = n.responder.Next(nil, message)
	}
	if err != nil {
		s.endNegotiation(name, nil)
		s.say("NEG-ERR", id, "invalid: "+err.Error())
		return
	}
	b := append(make([]byte, 0, 2*len(answer)+len(id)+16), `["NEG-MSG",`...)
	b = append(append(b, id...), `,"`...)
	s.out.text(append(negentropy.AppendHex(b, answer), `"]`...))
	s.out.flush()
}

// endNegotiation ends the reconciliation with a name, where there is one, and it is that given
// unless that is nil.
func (s *session) endNegotiation(name string, which *negotiation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.negs[name]
	if n == nil || which != nil && which != n {
		return false
	}
	n.idle.Stop()
	delete(s.negs, name)
	return true
}

// errTooMany says that a reconciliation would be of more events than are allowed.
var errTooMany = errors.New("too many events")

// negStorage returns what is to be reconciled, and of how many events at most. A filter of nothing
// but a time range is a part of the live set; for others, and for all with NegRebuild, a set is
// built.
func (r *relay) negStorage(text []byte) (s negentropy.Storage, limit int, err error) {
	f, err := parseFilter(text)
	if err != nil {
		return nil, 0, err
	}
	q := NewQuery(&f, 0)
	if n := q.elements(); n > r.options.MaxFilterElements {
		return nil, 0, fmt.Errorf("the filter lists over %d values", r.options.MaxFilterElements)
	}
	limit = r.options.NegMaxEvents
	whole := f.IDs == nil && f.Authors == nil && f.Kinds == nil && f.Tags == nil && f.Limit == nil
	if whole && !r.options.NegRebuild {
		s := negentropy.Between(r.index.snapshot(r.now()), uint64(q.Since), uint64(q.Until))
		if limit > 0 && s.Len() > limit {
			err = errTooMany
		}
		return s, limit, err
	}
	if limit == 0 && !whole {
		limit = builtEvents
	}
	s, err = r.buildNegSet(q, limit)
	return s, limit, err
}

func (r *relay) buildNegSet(q *Query, limit int) (negentropy.Storage, error) {
	var items []member // newest first
	now := r.now()
	err := r.reading(func(store Store) error {
		return scanAll(store, q, func(rec *Record) error {
			if rec.Expires <= now {
				return nil
			}
			if len(items) == q.Limit {
				return errEnough
			}
			if items = append(items, memberOf(rec)); limit > 0 && len(items) > limit {
				return errTooMany
			}
			return nil
		})
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	set := negentropy.NewSet(len(items))
	for _, m := range slices.Backward(items) {
		set.Add(uint64(m.createdAt), (*negentropy.ID)(&m.id))
	}
	return set, set.Seal()
}
