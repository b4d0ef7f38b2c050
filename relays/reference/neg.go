package reference

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"relaybench/corpus"
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
func (s *session) negOpen(parts [][]byte) {
	id, name, ok := s.subscriptionID(parts)
	if !ok {
		return
	}
	if len(parts) != 4 {
		s.negErr(id, "invalid: NEG-OPEN takes a subscription id, a filter and a message")
		return
	}
	s.endNegotiation(name)
	s.mu.Lock()
	open := len(s.negs)
	s.mu.Unlock()
	if limit := s.relay.options.NegSessions; open >= limit {
		s.negErr(id, fmt.Sprintf("blocked: too many reconciliations are open on this connection: the limit is %d", limit))
		return
	}
	storage, err := s.relay.negStorage(parts[2])
	if tooMany := (*tooManyError)(nil); errors.As(err, &tooMany) {
		s.negErr(id, "blocked: too many query results", int64(tooMany.limit))
		return
	}
	if err != nil {
		s.negErr(id, refusal(err))
		return
	}
	n := &negotiation{responder: negentropy.NewResponder(storage, s.relay.options.NegFrameLimit)}
	n.idle = time.AfterFunc(s.relay.options.NegIdle, func() {
		if s.forgetNegotiation(name, n) {
			s.negErr(id, "closed: nothing was heard for too long")
		}
	})
	s.mu.Lock()
	s.negs[name] = n
	s.mu.Unlock()
	s.negAnswer(id, name, n, parts[3])
}

// negMsg goes on with a reconciliation: ["NEG-MSG", id, message].
func (s *session) negMsg(parts [][]byte) {
	id, name, ok := s.subscriptionID(parts)
	if !ok {
		return
	}
	if len(parts) != 3 {
		s.negErr(id, "invalid: NEG-MSG takes a subscription id and a message")
		return
	}
	s.mu.Lock()
	n := s.negs[name]
	s.mu.Unlock()
	if n == nil || !n.idle.Stop() {
		s.negErr(id, "closed: no such reconciliation is open")
		return
	}
	n.idle.Reset(s.relay.options.NegIdle)
	s.negAnswer(id, name, n, parts[2])
}

func (s *session) negClose(parts [][]byte) {
	if _, name, ok := s.subscriptionID(parts); ok {
		s.endNegotiation(name)
	}
}

// negAnswer deals with one message of the client's.
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
		s.endNegotiation(name)
		s.negErr(id, "invalid: "+err.Error())
		return
	}
	b := append(make([]byte, 0, 2*len(answer)+len(id)+16), `["NEG-MSG",`...)
	b = append(append(b, id...), `,"`...)
	s.out.text(append(negentropy.AppendHex(b, answer), `"]`...))
	s.out.flush()
}

// negErr ends a reconciliation, or says why there is none (NIP-77), and how many events would do.
func (s *session) negErr(id []byte, reason string, most ...int64) {
	b := append([]byte(`["NEG-ERR",`), id...)
	b = corpus.AppendString(append(b, ','), reason)
	for _, n := range most {
		b = fmt.Appendf(b, ",%d", n)
	}
	s.out.text(append(b, ']'))
	s.out.flush()
}

func (s *session) endNegotiation(name string) {
	s.mu.Lock()
	n := s.negs[name]
	delete(s.negs, name)
	s.mu.Unlock()
	if n != nil {
		n.idle.Stop()
	}
}

// forgetNegotiation takes one off the list, unless another has taken its name.
func (s *session) forgetNegotiation(name string, n *negotiation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.negs[name] != n {
		return false
	}
	delete(s.negs, name)
	return true
}

func (s *session) endNegotiations() {
	s.mu.Lock()
	names := slices.Collect(maps.Keys(s.negs))
	s.mu.Unlock()
	for _, name := range names {
		s.endNegotiation(name)
	}
}

// tooManyError says that a reconciliation would be of more events than are allowed.
type tooManyError struct{ limit int }

func (e *tooManyError) Error() string { return fmt.Sprintf("over %d events", e.limit) }

// negStorage returns what is to be reconciled. A filter of nothing but a time range is a part of
// the live set; for others, and for all with NegRebuild, a set is built.
func (r *relay) negStorage(text []byte) (negentropy.Storage, error) {
	f, err := parseFilter(text)
	if err != nil {
		return nil, err
	}
	q := NewQuery(&f, 0)
	if n := q.elements(); n > r.options.MaxFilterElements {
		return nil, fmt.Errorf("the filter lists over %d values", r.options.MaxFilterElements)
	}
	limit := r.options.NegMaxEvents
	whole := f.IDs == nil && f.Authors == nil && f.Kinds == nil && f.Tags == nil && f.Limit == nil
	if whole && !r.options.NegRebuild {
		s := negentropy.Between(r.index.snapshot(r.now()), uint64(q.Since), uint64(q.Until))
		if limit > 0 && s.Len() > limit {
			return nil, &tooManyError{limit}
		}
		return s, nil
	}
	if limit == 0 && !whole {
		limit = builtEvents
	}
	return r.buildNegSet(q, limit)
}

// buildNegSet reads a set from the store.
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
				return &tooManyError{limit}
			}
			return nil
		})
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	set := negentropy.NewSet(len(items))
	for i := len(items) - 1; i >= 0; i-- {
		set.Add(uint64(items[i].createdAt), (*negentropy.ID)(&items[i].id))
	}
	return set, set.Seal()
}
