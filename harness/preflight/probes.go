package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"relaybench/corpus"
	"relaybench/harness/negentropy"
	"relaybench/harness/wire"
)

// probeNegentropy reconciles nothing (NIP-77).
func probeNegentropy(a *asking) (string, error) {
	conn, err := wire.Dial(a.ctx, a.o.URL, wire.Options{})
	if err != nil {
		return "", err
	}
	defer conn.Abort()
	err = negentropy.Probe(a.ctx, conn, min(3*time.Second, a.o.Wait))
	if a.ctx.Err() != nil {
		return "", err
	}
	detail := "NEG-OPEN is answered"
	if err != nil {
		detail = err.Error()
		if unsupported := (*negentropy.UnsupportedError)(nil); errors.As(err, &unsupported) {
			detail = unsupported.Error()
		}
	}
	a.mu.Lock()
	a.result.Negentropy, a.result.NegentropyDetail = err == nil, clip(detail, 2*maxText)
	a.mu.Unlock()
	if err != nil {
		return "no: " + detail, nil
	}
	return "yes", nil
}

// maxSubscriptions is how many subscriptions are opened at most.
const maxSubscriptions = 300

// probeSubscriptions opens subscriptions on one connection until the relay refuses, and counts those that a new event reaches: a relay may
// drop the oldest without a word.
func probeSubscriptions(a *asking) (string, error) {
	listener, err := a.dial()
	if err != nil {
		return "", err
	}
	opened, refusal := 0, ""
	for opened < maxSubscriptions && refusal == "" {
		var n int
		n, refusal = listener.open(opened, min(25, maxSubscriptions-opened), a.mine(1))
		opened += n
	}
	if opened == 0 {
		return "", errors.New(refusal)
	}
	publisher, err := a.dial()
	if err != nil {
		return "", err
	}
	e := a.event(1, a.now, "to all subscriptions")
	if err := publisher.store(e); err != nil {
		return "", err
	}
	reached := make(map[string]bool)
	for deadline := time.Now().Add(a.o.Wait); len(reached) < opened; {
		m, err := listener.next(deadline)
		if err != nil {
			break
		}
		if m.Type == wire.Event && m.HasID && corpus.ID(m.ID) == e.ID {
			reached[string(m.Sub)] = true
			deadline = time.Now().Add(a.o.Quiet)
		}
	}
	switch {
	case len(reached) == 0:
		return fmt.Sprintf("unknown: %d could be opened, but a new event reached none of them", opened), nil
	case len(reached) < opened:
		return fmt.Sprintf("%d: of %d that were opened without a word the others no longer get events", len(reached), opened), nil
	case refusal != "":
		return fmt.Sprintf("%d, then %s", opened, refusal), nil
	}
	return fmt.Sprintf("at least %d", opened), nil
}

// open opens n subscriptions at once, numbered from first, and returns how many were before the first that was not, and what the relay said of it.
func (s *session) open(first, n int, f corpus.Filter) (opened int, refusal string) {
	s.notice = ""
	waiting := make(map[string]bool)
	for i := range n {
		sub := "cap" + strconv.Itoa(first+i)
		waiting[sub] = true
		if err := s.conn.Send(request(sub, []corpus.Filter{f})); err != nil {
			return 0, err.Error()
		}
	}
	deadline := time.Now().Add(s.o.Wait)
	for len(waiting) > 0 {
		m, err := s.next(deadline)
		if err != nil {
			if s.notice != "" {
				refusal = "NOTICE " + quoted(s.notice)
			}
			if refusal == "" && errors.Is(err, errSilent) {
				refusal = "no answer"
			} else if refusal == "" {
				refusal = err.Error()
			}
			break
		}
		if m.Type == wire.Notice {
			deadline = time.Now().Add(s.o.Quiet)
		}
		sub := string(m.Sub)
		if !waiting[sub] {
			continue
		}
		switch m.Type {
		case wire.EOSE:
			delete(waiting, sub)
			opened++
			deadline = time.Now().Add(s.o.Wait)
			if refusal != "" || s.notice != "" {
				deadline = time.Now().Add(s.o.Quiet)
			}
		case wire.Closed:
			delete(waiting, sub)
			refusal = "CLOSED " + quoted(clip(m.ReasonText(), maxText))
			deadline = time.Now().Add(s.o.Quiet)
		}
	}
	return opened, refusal
}

// probeMessageSize finds the largest event that is accepted: the largest that the relay was set up for, or, in doublings, the largest below.
func probeMessageSize(a *asking) (string, error) {
	accepted, why := a.takes(a.o.MaxEventBytes)
	if accepted {
		return fmt.Sprintf("at least %d bytes, the largest asked for", a.o.MaxEventBytes), nil
	}
	// A relay that counts the frame around the event takes somewhat less than it was set up for.
	if less := a.o.MaxEventBytes - a.o.MaxEventBytes/16; a.ctx.Err() == nil {
		if ok, _ := a.takes(less); ok {
			return fmt.Sprintf("%d bytes; an event of %d bytes: %s", less, a.o.MaxEventBytes, why), nil
		}
	}
	largest, refused := 0, a.o.MaxEventBytes
	for size := 2048; size < a.o.MaxEventBytes && a.ctx.Err() == nil; size *= 2 {
		ok, reason := a.takes(size)
		if !ok {
			refused, why = size, reason
			break
		}
		largest = size
	}
	if a.ctx.Err() != nil {
		return "", a.ctx.Err()
	}
	return fmt.Sprintf("%d bytes; an event of %d bytes: %s", largest, refused, why), nil
}

// takes publishes an event of so many bytes over a connection of its own.
func (a *asking) takes(size int) (ok bool, why string) {
	s, err := a.dial()
	if err != nil {
		return false, err.Error()
	}
	at := a.recent(0)
	head := len(a.event(1, at, "").AppendJSON(nil))
	e := a.event(1, at, strings.Repeat("x", max(size-head, 0)))
	got, err := s.publish(e)
	if err != nil {
		return false, err.Error()
	}
	return got.accepted, got.String()
}

// probeCount asks for a count (NIP-45).
func probeCount(a *asking) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	if err := s.store(a.event(1, a.recent(0), "one"), a.event(1, a.recent(1), "two")); err != nil {
		return "", err
	}
	if _, err := s.poll(func(r *reply) bool { return len(r.ids) == 2 }, a.mine(1)); err != nil {
		return "", err
	}
	f := a.mine(1)
	s.notice = ""
	if err := s.conn.Send(append(f.AppendJSON([]byte(`["COUNT","count",`)), ']')); err != nil {
		return "", err
	}
	deadline := time.Now().Add(min(3*time.Second, a.o.Wait))
	for {
		m, err := s.next(deadline)
		switch {
		case errors.Is(err, errSilent) && s.notice != "":
			return "no: NOTICE " + quoted(s.notice), nil
		case errors.Is(err, errSilent):
			return "no: COUNT is not answered", nil
		case a.ctx.Err() != nil:
			return "", err
		case err != nil:
			return "no: " + err.Error(), nil
		case m.Type == wire.Notice:
			if sooner := time.Now().Add(a.o.Quiet); sooner.Before(deadline) {
				deadline = sooner
			}
		case m.Type == wire.Closed && string(m.Sub) == "count":
			return "no: CLOSED " + quoted(clip(m.ReasonText(), maxText)), nil
		case m.Type == wire.Count && string(m.Sub) == "count":
			if n, ok := m.Counted(); !ok || n != 2 {
				return fmt.Sprintf("wrong: 2 events were counted as %s", clip(string(m.Payload), maxText)), nil
			}
			return "yes", nil
		}
	}
}

// probeDeletion deletes an event by its id (NIP-09), as its author.
func probeDeletion(a *asking) (string, error) {
	gone := a.event(1, a.recent(0), "to be deleted")
	return a.removes(gone, a.event(corpus.KindDeletion, a.recent(1), "", corpus.Tag{"e", gone.ID.String()}, corpus.Tag{"k", "1"}))
}

// probeVanish asks every relay to forget the author (NIP-62).
func probeVanish(a *asking) (string, error) {
	return a.removes(a.event(1, a.recent(0), "to vanish"), a.event(corpus.KindVanish, a.recent(1), "", corpus.Tag{"relay", "ALL_RELAYS"}))
}

// removes reports whether an event is no longer returned after a request.
func (a *asking) removes(gone, request *corpus.Event) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	if err := s.store(gone); err != nil {
		return "", err
	}
	if r, err := s.poll(exactly(ids(gone)), a.mine(1)); err != nil || !exactly(ids(gone))(&r) {
		return "", cmpError(err, wrongAnswer("before the request", ids(gone), &r))
	}
	got, err := s.publish(request)
	switch {
	case errors.Is(err, errSilent): // what it did is what counts
	case err != nil:
		return "", err
	case !got.accepted:
		return fmt.Sprintf("no: the request of kind %d gets %v", request.Kind, got), nil
	}
	r, err := s.poll(exactly(nil), corpus.Filter{IDs: ids(gone)})
	if err != nil {
		return "", err
	}
	if slices.Contains(r.ids, gone.ID) {
		return "no: the event is still returned", nil
	}
	return "yes", nil
}

// probeExpiration publishes an event that has expired (NIP-40): it may be refused, or stored and never returned.
func probeExpiration(a *asking) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	e := a.event(1, a.recent(0), "past its time", corpus.Tag{"expiration", strconv.FormatInt(a.recent(60), 10)})
	got, err := s.publish(e)
	if err == nil && !got.accepted {
		return fmt.Sprintf("yes: an expired event gets %v", got), nil
	}
	if err != nil && !errors.Is(err, errSilent) {
		return "", err
	}
	marker := a.event(1, a.recent(1), "still good")
	if err := s.store(marker); err != nil {
		return "", err
	}
	r, err := s.poll(exactly(ids(marker)), a.mine(1))
	if err != nil {
		return "", err
	}
	if slices.Contains(r.ids, e.ID) {
		return "no: an expired event is returned", nil
	}
	return "yes: an expired event is not returned", nil
}

// probeProtected publishes an event that its author alone may publish, without proving to be that author (NIP-70).
func probeProtected(a *asking) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	got, err := s.publish(a.event(1, a.recent(0), "protected", corpus.Tag{"-"}))
	switch {
	case err != nil:
		return "", err
	case got.accepted:
		return "no: a protected event is taken from anybody", nil
	}
	return fmt.Sprintf("yes: a protected event gets %v", got), nil
}

// probeCompression offers permessage-deflate (RFC 7692).
func probeCompression(a *asking) (string, error) {
	conn, err := wire.Dial(a.ctx, a.o.URL, wire.Options{Compression: true})
	if err != nil {
		return "", err
	}
	defer conn.Abort()
	if negotiated := conn.Negotiated(); negotiated != "" {
		return clip(negotiated, maxText), nil
	}
	return "none", nil
}
