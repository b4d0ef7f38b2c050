package preflight

import (
	"context"
	"errors"
	"fmt"
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
func reconciles(c *checker) {
	var stored []negentropy.ID
	_ = try(func() {
		s, e := c.dial(), c.event(1, c.recent(0), "to be named in a reconciliation")
		s.store(e)
		s.returned(e)
		stored = append(stored, negentropy.ID(e.ID))
	})
	must(context.Cause(c.ctx))
	conn, err := wire.Dial(c.ctx, c.o.URL, wire.Options{})
	if err != nil {
		must(noAnswer("connecting", err))
	}
	defer conn.Abort()
	for deadline := time.Now().Add(c.settle()); ; time.Sleep(50 * time.Millisecond) {
		err = negentropy.Probe(c.ctx, conn, min(3*time.Second, c.o.Wait), stored...)
		var broken *negentropy.ProtocolError
		if !errors.As(err, &broken) || broken.Code != negentropy.Unnamed || time.Now().After(deadline) {
			break
		}
	}
	must(context.Cause(c.ctx))
	c.reconciled(err)
}

// reconciled weighs how a reconciliation of nothing ended.
func (c *checker) reconciled(err error) {
	var (
		unsupported *negentropy.UnsupportedError
		refused     *negentropy.RelayError
		breach      *negentropy.ProtocolError
		closed      *wire.CloseError
	)
	cause, excused, capability, t := results.CauseBreaks, false, fmt.Sprintf("broken: %v", err), texts{"error": fmt.Sprint(err)}
	switch {
	case err == nil:
		cause, capability, t = results.CauseAnswered, "yes", nil
	case errors.As(err, &unsupported):
		if unsupported.How == negentropy.BySilence { // one that is slow at everything is asked again
			c.dial().meant()
		}
		cause, capability = results.CauseUnsupported, "no: "+unsupported.Error()
		t = texts{"how": string(unsupported.How), "reason": unsupported.Text}
	case errors.As(err, &breach) && breach.Code != negentropy.Silent:
		t["code"] = string(breach.Code)
	case errors.As(err, &refused):
		cause, capability, t = results.CauseRefused, "no: "+refused.Error(), texts{"reason": refused.Reason}
		prefix := refused.Prefix()
		excused = prefix == "auth-required" || prefix == "restricted" // whoever may ask is answered
	case errors.As(err, &closed), errors.Is(err, wire.ErrStalled), errors.Is(err, wire.ErrLost), errors.Is(err, wire.ErrClosed):
		must(noAnswer("reconciling", err))
	}
	c.speaks(77, err == nil)
	c.capable("NIP-77", capability)
	n := Negentropy{Cause: cause, Texts: bounded(t)}
	if cause == results.CauseUnsupported || cause == results.CauseRefused && !excused {
		said, _ := client.Inform(c.ctx, c.o.URL, c.o.Wait)
		n.Unkept = said.Names(77)
	}
	c.locked(func() { c.result.Negentropy = n })
	switch c.seen.Cause = cause; {
	case n.Unkept:
		must(fail(cause, counts{"advertised": 1}, t))
	case cause == results.CauseBreaks:
		must(fail(cause, nil, t))
	case err != nil:
		must(state(cause, nil, t))
	}
}

// maxSubscriptions is how many subscriptions are opened at most.
const maxSubscriptions = 300

// probeSubscriptions opens subscriptions on one connection until the relay refuses, and counts
// those that a new event reaches: a relay may drop the oldest without a word.
func probeSubscriptions(c *checker) (spoken bool, text string) {
	listener := c.dial()
	opened, refusal := 0, ""
	for opened < maxSubscriptions && refusal == "" {
		var n int
		n, refusal = listener.open(min(25, maxSubscriptions-opened), c.mine(1))
		opened += n
	}
	if opened == 0 {
		must(errors.New(refusal))
	}
	e := c.event(1, c.now, "to all subscriptions")
	c.dial().store(e)
	reached := make(map[string]bool)
	for deadline := time.Now().Add(c.o.Wait); len(reached) < opened; {
		if _, err := listener.next(deadline); err != nil {
			break
		}
		if m := &listener.conn.Message; m.Type == wire.Event && m.HasID && corpus.ID(m.ID) == e.ID {
			reached[string(m.Sub)] = true
			deadline = time.Now().Add(c.quiet())
		}
	}
	switch {
	case len(reached) == 0:
		return false, fmt.Sprintf("unknown: %d could be opened, but a new event reached none of them", opened)
	case len(reached) < opened:
		return false, fmt.Sprintf("%d: of %d that were opened without a word the others no longer get events", len(reached), opened)
	case refusal != "":
		return false, fmt.Sprintf("%d, then %s", opened, refusal)
	}
	return false, fmt.Sprintf("at least %d", opened)
}

// open opens n subscriptions at once, and returns how many were before the first that was not, and
// what the relay said of it.
func (s *session) open(n int, f corpus.Filter) (opened int, refusal string) {
	waiting := make(map[*client.Subscription]bool)
	err := s.put(questions, s.o.Wait, func() error {
		for range n {
			sub, err := s.conn.Request(s.ctx, filtersText([]corpus.Filter{f}, ""), 0)
			if err != nil {
				return err
			}
			waiting[sub] = true
		}
		return nil
	}, func(of *client.Subscription, m *wire.Message) (part, last bool) {
		if !waiting[of] || m.Type == wire.Event {
			return false, false
		}
		if delete(waiting, of); m.Type == wire.Closed {
			refusal = "CLOSED " + quoted(clip(m.ReasonText(), maxText))
		} else {
			opened++
		}
		return true, len(waiting) == 0
	})
	switch {
	case err == nil:
	case s.notice != "":
		refusal = "NOTICE " + quoted(s.notice)
	case refusal == "":
		refusal = errors.Unwrap(err).Error()
	}
	return opened, refusal
}

// probeMessageSize finds the largest event that is accepted: the largest that the relay was set up
// for, or, in doublings, the largest below.
func probeMessageSize(c *checker) (spoken bool, text string) {
	accepted, why := c.takes(c.o.MaxEventBytes)
	if accepted {
		return false, fmt.Sprintf("at least %d bytes, the largest asked for", c.o.MaxEventBytes)
	}
	// A relay that counts the frame around the event takes somewhat less than it was set up for.
	if less := c.o.MaxEventBytes - c.o.MaxEventBytes/16; c.ctx.Err() == nil {
		if ok, _ := c.takes(less); ok {
			return false, fmt.Sprintf("%d bytes; an event of %d bytes: %s", less, c.o.MaxEventBytes, why)
		}
	}
	largest, refused := 0, 2048
	for ; refused < c.o.MaxEventBytes && c.ctx.Err() == nil; largest, refused = refused, 2*refused {
		ok, reason := c.takes(refused)
		if !ok {
			why = reason
			break
		}
	}
	must(c.ctx.Err())
	return false, fmt.Sprintf("%d bytes; an event of %d bytes: %s", largest, min(refused, c.o.MaxEventBytes), why)
}

// takes publishes an event of so many bytes over a connection of its own.
func (c *checker) takes(size int) (ok bool, why string) {
	at := c.recent(0)
	head := len(c.event(1, at, "").AppendJSON(nil))
	err := try(func() {
		got, err := c.dial().publish(c.event(1, at, strings.Repeat("x", max(size-head, 0))))
		must(err)
		ok, why = got.accepted, got.String()
	})
	if err != nil {
		why = err.Error()
	}
	return ok, why
}

// probeCount asks for a count (NIP-45).
func probeCount(c *checker) (spoken bool, text string) {
	s := c.dial()
	s.store(c.event(1, c.recent(0), "one"), c.event(1, c.recent(1), "two"))
	s.poll(func(r *reply) bool { return len(r.ids) == 2 }, c.mine(1))
	var sub *client.Subscription
	err := s.put(questions, min(3*time.Second, c.o.Wait), func() (err error) {
		sub, err = s.conn.Count(filtersText([]corpus.Filter{c.mine(1)}, ""))
		return err
	}, func(of *client.Subscription, m *wire.Message) (part, last bool) {
		switch n, approximate, ok := m.Counted(); {
		case of != sub:
			return false, false
		case m.Type == wire.Closed:
			text = "no: CLOSED " + quoted(clip(m.ReasonText(), maxText))
		case !ok || n != 2 && !approximate:
			text = "wrong: 2 events were counted as " + clip(string(m.Payload), maxText)
		default:
			spoken, text = true, "yes"
		}
		return true, true
	})
	switch {
	case err == nil:
		return spoken, text
	case errors.Is(err, client.ErrSilent) && s.notice != "":
		return false, "no: NOTICE " + quoted(s.notice)
	case errors.Is(err, client.ErrSilent):
		s.meant()
		return false, "no: COUNT is not answered"
	case c.ctx.Err() != nil:
		must(context.Cause(c.ctx))
	}
	return false, "no: " + errors.Unwrap(err).Error()
}
