package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
	"relaybench/results"
)

// reconciles: NEG-OPEN is answered, with the id of an event that the client lacks (NIP-77). Only
// who began to speak it, or says that it does, can break it. Who takes no event, or does not return
// it, is asked for nothing. An event may take a moment to be found, as in answers to REQ.
func reconciles(a *asking) (found, error) {
	var stored []negentropy.ID
	if s, err := a.dial(); err == nil {
		e := a.event(1, a.recent(0), "to be named in a reconciliation")
		if s.store(e) == nil {
			if _, err := s.returned(e); err == nil {
				stored = append(stored, negentropy.ID(e.ID))
			}
		}
	}
	if a.ctx.Err() != nil {
		return found{}, context.Cause(a.ctx)
	}
	conn, err := wire.Dial(a.ctx, a.o.URL, wire.Options{})
	if err != nil {
		return found{}, &noAnswerError{doing: "connecting", err: err}
	}
	defer conn.Abort()
	for deadline := time.Now().Add(a.settle()); ; time.Sleep(50 * time.Millisecond) {
		err = negentropy.Probe(a.ctx, conn, min(3*time.Second, a.o.Wait), stored...)
		var broken *negentropy.ProtocolError
		if !errors.As(err, &broken) || broken.Code != negentropy.Unnamed || time.Now().After(deadline) {
			break
		}
	}
	if a.ctx.Err() != nil {
		return found{}, context.Cause(a.ctx)
	}
	return a.reconciled(err)
}

// reconciled weighs how a reconciliation of nothing ended.
func (a *asking) reconciled(err error) (found, error) {
	var (
		unsupported *negentropy.UnsupportedError
		refused     *negentropy.RelayError
		breach      *negentropy.ProtocolError
		closed      *wire.CloseError
	)
	say := func(cause, capability string, t texts) {
		a.speaks(77, cause == results.CauseAnswered)
		a.capable("NIP-77", capability)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.result.Negentropy = Negentropy{Cause: cause, Texts: bounded(t)}
	}
	without := func(cause string, err error, t texts) (found, error) { // an answer
		say(cause, "no: "+err.Error(), t)
		if said, _ := client.Inform(a.ctx, a.o.URL, a.o.Wait); !said.Names(77) {
			return found{}, state(cause, nil, t)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.result.Negentropy.Unkept = true
		return found{}, fail(cause, counts{"advertised": 1}, t)
	}
	switch {
	case err == nil:
		say(results.CauseAnswered, "yes", nil)
		return found{cause: results.CauseAnswered}, nil
	case errors.As(err, &unsupported):
		if unsupported.How == negentropy.BySilence { // one that is slow at everything is asked again
			s, err := a.dial()
			if err == nil {
				err = s.meant()
			}
			if err != nil {
				return found{}, err
			}
		}
		return without(results.CauseUnsupported, unsupported, texts{"how": string(unsupported.How), "reason": unsupported.Text})
	case errors.As(err, &breach) && breach.Code != negentropy.Silent:
		t := texts{"error": err.Error(), "code": string(breach.Code)}
		say(results.CauseBreaks, "broken: "+err.Error(), t)
		return found{}, fail(results.CauseBreaks, nil, t)
	case errors.As(err, &refused):
		t := texts{"reason": refused.Reason}
		if prefix := refused.Prefix(); prefix == "auth-required" || prefix == "restricted" { // whoever may ask is answered
			say(results.CauseRefused, "no: "+refused.Error(), t)
			return found{}, state(results.CauseRefused, nil, t)
		}
		return without(results.CauseRefused, refused, t)
	case errors.As(err, &closed), errors.Is(err, wire.ErrStalled), errors.Is(err, wire.ErrLost), errors.Is(err, wire.ErrClosed):
		return found{}, &noAnswerError{doing: "reconciling", err: err}
	}
	t := texts{"error": err.Error()}
	say(results.CauseBreaks, "broken: "+err.Error(), t)
	return found{}, fail(results.CauseBreaks, nil, t)
}

// maxSubscriptions is how many subscriptions are opened at most.
const maxSubscriptions = 300

// probeSubscriptions opens subscriptions on one connection until the relay refuses, and counts those that a new event reaches: a relay may
// drop the oldest without a word.
func probeSubscriptions(a *asking) (spoken bool, text string, err error) {
	listener, err := a.dial()
	if err != nil {
		return false, "", err
	}
	opened, refusal := 0, ""
	for opened < maxSubscriptions && refusal == "" {
		var n int
		n, refusal = listener.open(opened, min(25, maxSubscriptions-opened), a.mine(1))
		opened += n
	}
	if opened == 0 {
		return false, "", errors.New(refusal)
	}
	publisher, err := a.dial()
	if err != nil {
		return false, "", err
	}
	e := a.event(1, a.now, "to all subscriptions")
	if err := publisher.store(e); err != nil {
		return false, "", err
	}
	reached := make(map[string]bool)
	for deadline := time.Now().Add(a.o.Wait); len(reached) < opened; {
		m, err := listener.next(deadline)
		if err != nil {
			break
		}
		if m.Type == wire.Event && m.HasID && corpus.ID(m.ID) == e.ID {
			reached[string(m.Sub)] = true
			deadline = time.Now().Add(a.quiet())
		}
	}
	switch {
	case len(reached) == 0:
		return false, fmt.Sprintf("unknown: %d could be opened, but a new event reached none of them", opened), nil
	case len(reached) < opened:
		return false, fmt.Sprintf("%d: of %d that were opened without a word the others no longer get events", len(reached), opened), nil
	case refusal != "":
		return false, fmt.Sprintf("%d, then %s", opened, refusal), nil
	}
	return false, fmt.Sprintf("at least %d", opened), nil
}

// open opens n subscriptions at once, numbered from first, and returns how many were before the first that was not, and what the relay said of it.
func (s *session) open(first, n int, f corpus.Filter) (opened int, refusal string) {
	s.begin(questions)
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
			deadline = time.Now().Add(s.quiet())
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
				deadline = time.Now().Add(s.quiet())
			}
		case wire.Closed:
			delete(waiting, sub)
			refusal = "CLOSED " + quoted(clip(m.ReasonText(), maxText))
			deadline = time.Now().Add(s.quiet())
		}
	}
	return opened, refusal
}

// probeMessageSize finds the largest event that is accepted: the largest that the relay was set up for, or, in doublings, the largest below.
func probeMessageSize(a *asking) (spoken bool, text string, err error) {
	accepted, why := a.takes(a.o.MaxEventBytes)
	if accepted {
		return false, fmt.Sprintf("at least %d bytes, the largest asked for", a.o.MaxEventBytes), nil
	}
	// A relay that counts the frame around the event takes somewhat less than it was set up for.
	if less := a.o.MaxEventBytes - a.o.MaxEventBytes/16; a.ctx.Err() == nil {
		if ok, _ := a.takes(less); ok {
			return false, fmt.Sprintf("%d bytes; an event of %d bytes: %s", less, a.o.MaxEventBytes, why), nil
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
		return false, "", a.ctx.Err()
	}
	return false, fmt.Sprintf("%d bytes; an event of %d bytes: %s", largest, refused, why), nil
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
func probeCount(a *asking) (spoken bool, text string, err error) {
	s, err := a.dial()
	if err != nil {
		return false, "", err
	}
	if err := s.store(a.event(1, a.recent(0), "one"), a.event(1, a.recent(1), "two")); err != nil {
		return false, "", err
	}
	if _, err := s.poll(func(r *reply) bool { return len(r.ids) == 2 }, a.mine(1)); err != nil {
		return false, "", err
	}
	f := a.mine(1)
	s.begin(questions)
	if err := s.conn.Send(append(f.AppendJSON([]byte(`["COUNT","count",`)), ']')); err != nil {
		return false, "", err
	}
	deadline := time.Now().Add(min(3*time.Second, a.o.Wait))
	for {
		m, err := s.next(deadline)
		switch {
		case errors.Is(err, errSilent) && s.notice != "":
			return false, "no: NOTICE " + quoted(s.notice), nil
		case errors.Is(err, errSilent):
			return false, "no: COUNT is not answered", s.meant()
		case a.ctx.Err() != nil:
			return false, "", err
		case err != nil:
			return false, "no: " + err.Error(), nil
		case m.Type == wire.Notice:
			if sooner := time.Now().Add(a.quiet()); sooner.Before(deadline) {
				deadline = sooner
			}
		case m.Type == wire.Closed && string(m.Sub) == "count":
			return false, "no: CLOSED " + quoted(clip(m.ReasonText(), maxText)), nil
		case m.Type == wire.Count && string(m.Sub) == "count":
			if n, _, ok := m.Counted(); !ok || n != 2 {
				return false, fmt.Sprintf("wrong: 2 events were counted as %s", clip(string(m.Payload), maxText)), nil
			}
			return true, "yes", nil
		}
	}
}

// probeVanish asks every relay to forget the author (NIP-62).
func probeVanish(a *asking) (spoken bool, text string, err error) {
	return a.removes(a.event(1, a.recent(0), "to vanish"), a.event(corpus.KindVanish, a.recent(1), "", corpus.Tag{"relay", "ALL_RELAYS"}))
}

// removes reports whether an event is no longer returned after a request.
func (a *asking) removes(gone, request *corpus.Event) (spoken bool, text string, err error) {
	s, err := a.dial()
	if err != nil {
		return false, "", err
	}
	if err := s.store(gone); err != nil {
		return false, "", err
	}
	if r, err := s.poll(exactly(ids(gone)), a.mine(1)); err != nil || !exactly(ids(gone))(&r) {
		if err == nil {
			err = leaveOpen(results.CauseNeeds, nil, nil)
		}
		return false, "", err
	}
	got, err := s.publish(request)
	switch {
	case errors.Is(err, errSilent): // what it did is what counts
	case err != nil:
		return false, "", err
	case !got.accepted:
		return false, fmt.Sprintf("no: the request of kind %d gets %v", request.Kind, got), nil
	}
	r, err := s.poll(exactly(nil), corpus.Filter{IDs: ids(gone)})
	if err != nil {
		return false, "", err
	}
	if slices.Contains(r.ids, gone.ID) {
		return false, "no: the event is still returned", nil
	}
	return true, "yes", nil
}

// probeExpiration publishes an event that has expired (NIP-40): it may be refused, or stored and never returned.
func probeExpiration(a *asking) (spoken bool, text string, err error) {
	s, err := a.dial()
	if err != nil {
		return false, "", err
	}
	e := a.event(1, a.recent(0), "past its time", corpus.Tag{"expiration", strconv.FormatInt(a.recent(60), 10)})
	got, err := s.publish(e)
	if err == nil && !got.accepted {
		return true, fmt.Sprintf("yes: an expired event gets %v", got), nil
	}
	if err != nil && !errors.Is(err, errSilent) {
		return false, "", err
	}
	marker := a.event(1, a.recent(1), "still good")
	if err := s.store(marker); err != nil {
		return false, "", err
	}
	r, err := s.poll(exactly(ids(marker)), a.mine(1))
	if err != nil {
		return false, "", err
	}
	if slices.Contains(r.ids, e.ID) {
		return false, "no: an expired event is returned", nil
	}
	return true, "yes: an expired event is not returned", nil
}

// probeProtected publishes an event that its author alone may publish, without proving to be that author (NIP-70).
func probeProtected(a *asking) (spoken bool, text string, err error) {
	s, err := a.dial()
	if err != nil {
		return false, "", err
	}
	got, err := s.publish(a.event(1, a.recent(0), "protected", corpus.Tag{"-"}))
	switch {
	case err != nil:
		return false, "", err
	case got.accepted:
		return false, "no: a protected event is taken from anybody", nil
	}
	return true, fmt.Sprintf("yes: a protected event gets %v", got), nil
}

// probeCompression offers permessage-deflate (RFC 7692).
func probeCompression(a *asking) (spoken bool, text string, err error) {
	conn, err := wire.Dial(a.ctx, a.o.URL, wire.Options{Compression: true})
	if err != nil {
		return false, "", err
	}
	defer conn.Abort()
	if negotiated := conn.Negotiated(); negotiated != "" {
		return false, clip(negotiated, maxText), nil
	}
	return false, "none", nil
}
