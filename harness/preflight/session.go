package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"relaybench/corpus"
	"relaybench/harness/wire"
)

// What a relay can make of one answer at most.
const (
	maxText   = 200  // bytes of a relay's text in a sentence
	maxDetail = 600  // bytes of a sentence
	maxLines  = 10   // of evidence
	maxEvents = 5000 // in one answer
	maxKept   = 16   // event texts kept of one answer
)

// session is one connection. A goroutine of its own reads, so that every wait can end without ending the connection.
type session struct {
	*asking
	conn *wire.Conn
	in   chan wire.Message // owns its memory
	done chan struct{}
	err  error // why in was closed
	subs int

	notice string // the last NOTICE since the last question
}

// errSilent says that nothing relevant came in time.
var errSilent = errors.New("no answer")

// dial opens a connection that ends with the check.
func (a *asking) dial() (*session, error) {
	ctx, cancel := context.WithTimeout(a.ctx, a.o.Wait)
	defer cancel()
	conn, err := wire.Dial(ctx, a.o.URL, wire.Options{ReadLimit: int64(max(1<<20, 2*a.o.MaxEventBytes))})
	if err != nil {
		return nil, err
	}
	s := &session{asking: a, conn: conn, in: make(chan wire.Message, 16), done: make(chan struct{})}
	a.add(s)
	go s.read()
	return s, nil
}

func (s *session) read() {
	defer close(s.in)
	for {
		frame, _, err := s.conn.Read()
		if err != nil {
			s.err = err
			return
		}
		var m wire.Message
		wire.Parse(bytes.Clone(frame), &m)
		select {
		case s.in <- m:
		case <-s.done:
			s.err = wire.ErrClosed
			return
		}
	}
}

func (s *session) close() {
	close(s.done)
	s.conn.Abort()
}

// next returns the next message, errSilent at the deadline, or why there is none.
func (s *session) next(deadline time.Time) (wire.Message, error) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case m, ok := <-s.in:
		if !ok {
			return m, s.err
		}
		switch m.Type {
		case wire.Notice:
			s.notice = clip(m.ReasonText(), maxText)
			if speaksOfRate(s.notice) {
				s.sawThrottle("NOTICE " + quoted(s.notice))
			}
		case wire.Auth:
			s.challenged.Store(true)
		}
		return m, nil
	case <-timer.C:
		return wire.Message{}, errSilent
	case <-s.ctx.Done():
		return wire.Message{}, context.Cause(s.ctx)
	}
}

// afterNotice is the deadline once a NOTICE came where an answer was due: it may be that answer, or speak of something else.
func (s *session) afterNotice(deadline time.Time) time.Time {
	if sooner := time.Now().Add(s.o.Wait / 3); sooner.Before(deadline) {
		return sooner
	}
	return deadline
}

// explain adds what a NOTICE said to an error of silence or a lost connection.
func (s *session) explain(what string, err error) error {
	if s.notice != "" {
		return fmt.Errorf("%s: %w but NOTICE %s", what, err, quoted(s.notice))
	}
	return fmt.Errorf("%s: %w", what, err)
}

// answer is an OK.
type answer struct {
	accepted bool
	named    bool // it carries the event's id
	reason   string
}

func (a answer) String() string { return fmt.Sprintf("OK %t %s", a.accepted, quoted(a.reason)) }

// publish sends an event and waits for its OK. Nothing else is in flight, so that an OK without an id is taken for its answer.
func (s *session) publish(e *corpus.Event) (answer, error) {
	return s.publishRaw(e.AppendJSON(nil), e.ID, s.o.Wait)
}

func (s *session) publishRaw(raw []byte, id corpus.ID, wait time.Duration) (answer, error) {
	s.notice = ""
	if err := s.conn.SendEvent(raw); err != nil {
		return answer{}, s.explain("publishing", err)
	}
	deadline := time.Now().Add(wait)
	for {
		m, err := s.next(deadline)
		if err != nil {
			return answer{}, s.explain("publishing", err)
		}
		switch {
		case m.Type == wire.Notice:
			deadline = s.afterNotice(deadline)
		case m.Type == wire.OK && (!m.HasID || corpus.ID(m.ID) == id):
			got := answer{accepted: m.Accepted, named: m.HasID, reason: clip(m.ReasonText(), maxText)}
			if !got.accepted && speaksOfRate(got.reason) {
				s.sawThrottle(got.String())
			}
			return got, nil
		}
	}
}

// refusedError is a valid event that was not accepted.
type refusedError struct {
	kind   int
	answer answer
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("a valid event of kind %d was refused: %v", e.kind, e.answer)
}

// store publishes valid events one after another; all must be accepted.
func (s *session) store(events ...*corpus.Event) error {
	for _, e := range events {
		got, err := s.publish(e)
		if err != nil {
			return err
		}
		if !got.accepted {
			return &refusedError{e.Kind, got}
		}
	}
	return nil
}

// reply is the answer to a REQ.
type reply struct {
	ids    []corpus.ID
	texts  [][]byte // of the first events
	noID   int      // events without an id that can be read
	closed bool     // CLOSED came instead of EOSE
	reason string   // of CLOSED
}

// ask puts a REQ and waits for its EOSE or CLOSED; the subscription is closed again.
func (s *session) ask(filters ...corpus.Filter) (reply, error) { return s.askWith("", filters...) }

// askWith is ask with a further member in each filter, as JSON.
func (s *session) askWith(member string, filters ...corpus.Filter) (reply, error) {
	sub, r, err := s.subscribeWith(member, filters...)
	if err == nil && !r.closed {
		err = s.conn.Send([]byte(`["CLOSE","` + sub + `"]`))
	}
	return r, err
}

// subscribe puts a REQ, reads what is stored, and leaves the subscription open.
func (s *session) subscribe(filters ...corpus.Filter) (sub string, r reply, err error) {
	return s.subscribeWith("", filters...)
}

func (s *session) subscribeWith(member string, filters ...corpus.Filter) (sub string, r reply, err error) {
	s.notice = ""
	s.subs++
	sub = "pf" + strconv.Itoa(s.subs)
	if err := s.conn.Send(requestWith(sub, member, filters)); err != nil {
		return sub, r, s.explain("asking", err)
	}
	deadline := time.Now().Add(s.o.Wait)
	for {
		m, err := s.next(deadline)
		if err != nil {
			return sub, r, s.explain("asking", err)
		}
		if m.Type == wire.Notice {
			deadline = s.afterNotice(deadline)
		}
		if string(m.Sub) != sub {
			continue
		}
		switch m.Type {
		case wire.Event:
			deadline = time.Now().Add(s.o.Wait)
			if !m.HasID {
				r.noID++
			} else {
				r.ids = append(r.ids, corpus.ID(m.ID))
			}
			if len(r.texts) < maxKept {
				r.texts = append(r.texts, m.Event)
			}
			if len(r.ids)+r.noID > maxEvents {
				return sub, r, fail(nil, "one REQ was answered with more than %d events, of which at most a few were published", maxEvents)
			}
		case wire.EOSE:
			return sub, r, nil
		case wire.Closed:
			r.closed, r.reason = true, clip(m.ReasonText(), maxText)
			return sub, r, nil
		}
	}
}

func request(sub string, filters []corpus.Filter) []byte { return requestWith(sub, "", filters) }

// requestWith is a REQ with a further member in each filter, none of which is empty.
func requestWith(sub, member string, filters []corpus.Filter) []byte {
	frame := append([]byte(`["REQ","`), sub...)
	frame = append(frame, '"')
	for i := range filters {
		frame = append(frame, ',')
		frame = filters[i].AppendJSON(frame)
		if member != "" {
			frame = append(append(append(frame[:len(frame)-1], ','), member...), '}')
		}
	}
	return append(frame, ']')
}

// poll asks until the answer is good or does not become so while what was acknowledged settles. No filter is put twice: relays may
// remember answers for a while.
func (s *session) poll(good func(*reply) bool, filters ...corpus.Filter) (reply, error) {
	return s.pollWith(good, "", filters...)
}

func (s *session) pollWith(good func(*reply) bool, member string, filters ...corpus.Filter) (reply, error) {
	until := time.Now().Add(s.o.Settle)
	for n := 0; ; n++ {
		r, err := s.askWith(member, varied(filters, n, s.now)...)
		if err != nil || good(&r) || time.Now().After(until) {
			return r, err
		}
		select {
		case <-time.After(min(20*time.Millisecond<<n, 250*time.Millisecond)):
		case <-s.ctx.Done():
			return r, context.Cause(s.ctx)
		}
	}
}

// varied returns filters that match the same events and read differently for each n.
func varied(filters []corpus.Filter, n int, now int64) []corpus.Filter {
	if n == 0 {
		return filters
	}
	out := make([]corpus.Filter, len(filters))
	for i, f := range filters {
		switch {
		case f.Until == nil:
			f.Until = corpus.Int64(now + 300 + int64(n))
		case f.Since == nil:
			f.Since = corpus.Int64(int64(n))
		case f.Limit == nil:
			f.Limit = corpus.Int(90 + n)
		}
		out[i] = f
	}
	return out
}

// live returns the next stored or live event of any of the subscriptions, until the deadline.
func (s *session) live(deadline time.Time, subs ...string) (sub string, id corpus.ID, err error) {
	for {
		m, err := s.next(deadline)
		if err != nil {
			return "", id, err
		}
		for _, sub := range subs {
			if string(m.Sub) == sub && m.Type == wire.Event {
				return sub, corpus.ID(m.ID), nil
			}
			if string(m.Sub) == sub && m.Type == wire.Closed {
				return "", id, fmt.Errorf("the subscription was ended by CLOSED %s", quoted(clip(m.ReasonText(), maxText)))
			}
		}
	}
}

// speaksOfRate tells whether a refusal or NOTICE is about too many events in too short a time.
func speaksOfRate(text string) bool {
	text = strings.ToLower(text)
	for _, words := range []string{"rate-limit", "rate limit", "ratelimit", "slow down", "too fast", "throttl", "too many events", "too many messages", "too many requests"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

func quoted(text string) string { return `"` + text + `"` }

// clip bounds a text to n bytes, at a character's border.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

func bounded(lines []string) []string {
	if len(lines) > maxLines {
		lines = append(lines[:maxLines:maxLines], "…")
	}
	for i := range lines {
		lines[i] = clip(lines[i], 2*maxText)
	}
	return lines
}
