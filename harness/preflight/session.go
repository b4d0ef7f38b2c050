package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/wire"
	"relaybench/results"
)

// What a relay can make of one answer at most.
const (
	maxText     = 200  // bytes of a relay's text in a sentence
	maxLine     = 600  // bytes of a text of a finding
	maxEvidence = 10   // of one finding
	maxEvents   = 5000 // in one answer
	maxKept     = 40   // event texts kept of one answer
)

// session is one connection of a check.
type session struct {
	*checker
	conn   *client.Conn
	member string // a further member of each filter, as JSON; "" for none

	asks   string // what was done last: publishing or questions
	notice string // the last NOTICE since the last question
	odd    string // the last frame since then that was no message

	passed map[string][]corpus.ID // live events that came while something else was waited for, by subscription
}

// dial opens a connection that ends with the check.
func (c *checker) dial() *session {
	start := time.Now()
	conn, err := client.Dial(c.ctx, client.Options{URL: c.o.URL, Stall: c.o.Wait, Patient: true, Answer: maxEvents,
		ReadLimit: int64(max(1<<20, 2*c.o.MaxEventBytes))})
	if err != nil {
		must(context.Cause(c.ctx))
		must(noAnswer("connecting", err))
	}
	c.took(time.Since(start))
	s := &session{checker: c, conn: conn, passed: map[string][]corpus.ID{}}
	c.opened.Lock()
	defer c.opened.Unlock()
	c.all = append(c.all, s)
	return s
}

func (s *session) close() {
	s.conn.Abort()
	s.locked(func() { s.garbage.Add(s.conn.Wire().Garbage()) })
}

// next reads the next message, which is s.conn.Message then, and returns the REQ that it belongs
// to. The error is client.ErrSilent at the deadline, or says why there is none.
func (s *session) next(deadline time.Time) (*client.Subscription, error) {
	of, err := s.conn.ReadBy(s.ctx, deadline)
	if err != nil {
		return nil, err
	}
	switch m := &s.conn.Message; m.Type {
	case wire.Notice:
		s.notice = clip(m.ReasonText(), maxText)
		s.sawRate(s.asks, s.notice)
	case wire.Auth:
		s.challenged.Store(true)
	case wire.Unknown:
		s.odd = clip(string(s.conn.Frame()), maxText)
	}
	return of, nil
}

// begin starts a question: what came before it does not answer it, a greeting say.
func (s *session) begin(asks string) {
	for {
		if _, err := s.next(time.Time{}); err != nil {
			break
		}
		s.keep()
	}
	s.asks, s.notice, s.odd = asks, "", ""
}

// parts says of a message whether it is a part of an answer, and the last one.
type parts func(of *client.Subscription, m *wire.Message) (part, last bool)

// put sends something and reads until all of its answer has come; the wait begins anew with each
// part. A NOTICE shortens it: it may be the answer, or speak of something else.
func (s *session) put(asks string, wait time.Duration, send func() error, answer parts) error {
	s.begin(asks)
	start := time.Now()
	deadline := start.Add(wait)
	for err := send(); ; {
		var of *client.Subscription
		if err == nil {
			of, err = s.next(deadline)
		}
		if err != nil {
			return s.explain(asks, err)
		}
		m := &s.conn.Message
		if sooner := time.Now().Add(s.o.Wait / 3); m.Type == wire.Notice && sooner.Before(deadline) {
			deadline = sooner
		}
		part, last := answer(of, m)
		if !part {
			s.keep()
			continue
		}
		s.took(time.Since(start))
		if last {
			return nil
		}
		start = time.Now()
		deadline = start.Add(wait)
	}
}

// keep notes a live event that came while something else was waited for.
func (s *session) keep() {
	m := &s.conn.Message
	sub := string(m.Sub)
	if m.Type == wire.Event && m.HasID && len(s.passed) < maxKept && len(s.passed[sub]) < maxKept {
		s.passed[sub] = append(s.passed[sub], corpus.ID(m.ID))
	}
}

// elsewhere says whether an event came under a subscription that the session never had.
func (s *session) elsewhere(id corpus.ID) bool {
	for sub, ids := range s.passed {
		if slices.Contains(ids, id) && !s.conn.Own([]byte(sub)) {
			return true
		}
	}
	return false
}

// explain adds what came instead to an error of silence or a lost connection.
func (s *session) explain(doing string, err error) error {
	if s.ctx.Err() != nil {
		err = context.Cause(s.ctx)
	}
	o := noAnswer(doing, err)
	if o.Cause == results.CauseTime {
		return o
	}
	if s.notice != "" {
		o.Texts["notice"] = s.notice
		o.text += " but NOTICE " + quoted(s.notice)
	}
	if n := s.conn.Wire().Garbage().Binary(); n > 0 {
		o.Counts = counts{"binary": float64(n)}
	}
	if s.odd != "" {
		o.Evidence = []results.Evidence{{Code: results.EvidenceFrame, Text: s.odd}}
	}
	return o
}

// answer is an OK.
type answer struct {
	accepted bool
	named    bool // it carries the event's id
	reason   string
}

func (a answer) String() string { return fmt.Sprintf("OK %t %s", a.accepted, quoted(a.reason)) }

// okay is the OK that was just read.
func (s *session) okay() answer {
	m := &s.conn.Message
	a := answer{accepted: m.Accepted, named: m.HasID, reason: clip(m.ReasonText(), maxText)}
	if !a.accepted {
		s.sawRate(publishing, a.reason)
	}
	return a
}

// publish sends an event and waits for its OK. Nothing else is in flight, so that an OK without an
// id is taken for its answer.
func (s *session) publish(e *corpus.Event) (answer, error) {
	return s.publishRaw(e.AppendJSON(nil), e.ID, s.o.Wait)
}

func (s *session) publishRaw(raw []byte, id corpus.ID, wait time.Duration) (got answer, err error) {
	send := func() error { return s.conn.Wire().SendEvent(raw) }
	err = s.put(publishing, wait, send, func(_ *client.Subscription, m *wire.Message) (part, last bool) {
		if part = m.Type == wire.OK && (!m.HasID || corpus.ID(m.ID) == id); part {
			got = s.okay()
		}
		return part, part
	})
	return got, err
}

// offer publishes an event of which an OK may be left out: what the relay does is what counts.
func (s *session) offer(e *corpus.Event) (got answer, silent bool) {
	got, err := s.publish(e)
	if silent = errors.Is(err, client.ErrSilent); !silent {
		must(err)
	}
	return got, silent
}

// accepted publishes a valid event that must be accepted, and fails the check where it is not.
func (s *session) accepted(e *corpus.Event) answer {
	got, err := s.publish(e)
	if must(err); !got.accepted {
		must(refusal(e, got))
	}
	return got
}

// store publishes valid events on which the check rests.
func (s *session) store(events ...*corpus.Event) {
	for _, e := range events {
		got, err := s.publish(e)
		if must(err); !got.accepted {
			must(needed(e, got))
		}
	}
}

// reply is the answer to a REQ.
type reply struct {
	ids      []corpus.ID
	texts    [][]byte        // of the first of them
	noID     int             // events without an id that can be read
	nameless string          // the text of such an event
	frames   []time.Duration // when its frames came, the EOSE last
	closed   bool            // CLOSED came instead of EOSE
	reason   string          // of CLOSED
}

// text is an event of the reply as it came, nil where it is not among the first.
func (r *reply) text(id corpus.ID) []byte {
	if i := slices.Index(r.ids, id); i >= 0 && i < len(r.texts) {
		return r.texts[i]
	}
	return nil
}

// query puts a REQ and waits for its EOSE or CLOSED; the subscription is closed again.
func (s *session) query(filters ...corpus.Filter) *reply {
	sub, r := s.request(filters...)
	if !r.closed {
		must(s.conn.End(sub))
	}
	return r
}

// subscribe puts a REQ, reads what is stored, and leaves the subscription open.
func (s *session) subscribe(filters ...corpus.Filter) *client.Subscription {
	sub, r := s.request(filters...)
	if r.closed {
		must(closedBy(r))
	}
	return sub
}

func (s *session) request(filters ...corpus.Filter) (sub *client.Subscription, r *reply) {
	r = &reply{}
	err := s.put(questions, s.o.Wait, func() (err error) {
		sub, err = s.conn.Request(s.ctx, filtersText(filters, s.member), 0)
		return err
	}, func(of *client.Subscription, m *wire.Message) (part, last bool) {
		if of != sub {
			return false, false
		}
		r.frames = append(r.frames, s.conn.At)
		switch {
		case m.Type == wire.Closed:
			r.closed, r.reason = true, clip(m.ReasonText(), maxText)
			s.sawRate(questions, r.reason)
		case m.Type == wire.EOSE:
		case !m.HasID:
			r.noID, r.nameless = r.noID+1, clip(string(m.Event), maxLine)
		default:
			if r.ids = append(r.ids, corpus.ID(m.ID)); len(r.texts) < maxKept {
				r.texts = append(r.texts, m.Event)
			}
		}
		return true, m.Type != wire.Event
	})
	if flood := (*client.FloodError)(nil); errors.As(err, &flood) {
		err = fail(results.CauseFlood, counts{"got": maxEvents}, nil, queried(filters...))
	}
	must(err)
	return sub, r
}

// filtersText is the filters of a REQ, none of which is empty, each with the further member; "" for
// none.
func filtersText(filters []corpus.Filter, member string) (text []byte) {
	for i := range filters {
		if i > 0 {
			text = append(text, ',')
		}
		text = filters[i].AppendJSON(text)
		if member != "" {
			text = append(append(append(text[:len(text)-1], ','), member...), '}')
		}
	}
	return text
}

// poll asks until the answer is good or does not become so while what was acknowledged settles. No
// filter is put twice: relays may remember answers for a while.
func (s *session) poll(good func(*reply) bool, filters ...corpus.Filter) *reply {
	start := time.Now()
	for n := 0; ; n++ {
		r := s.query(varied(filters, n, s.now)...)
		if good(r) || time.Since(start) > s.settle() {
			return r
		}
		s.pause(min(20*time.Millisecond<<n, 250*time.Millisecond))
	}
}

// read is poll where the answer must be one: a CLOSED leaves the check open.
func (s *session) read(good func(*reply) bool, filters ...corpus.Filter) *reply {
	r := s.poll(good, filters...)
	if r.closed {
		must(closedBy(r))
	}
	return r
}

// need is poll where the check rests on a good answer.
func (s *session) need(good func(*reply) bool, filters ...corpus.Filter) {
	if !good(s.poll(good, filters...)) {
		must(leaveOpen(results.CauseNeeds, nil))
	}
}

// wants is poll where the relay is at fault if the answer is not good. The error says how it
// differs from what is wanted.
func (s *session) wants(good func(*reply) bool, want []corpus.ID, filters ...corpus.Filter) (*reply, error) {
	r := s.poll(good, filters...)
	if good(r) {
		return r, nil
	}
	return r, wrongAnswer(want, r, filters...)
}

// expect polls for exactly these events; anything else fails the check.
func (s *session) expect(want []corpus.ID, filters ...corpus.Filter) *reply {
	r, err := s.wants(exactly(want), want, filters...)
	must(err)
	return r
}

// meant finds out whether silence means anything: another question on the connection is answered,
// and no answer so far took more than a third of the time that was waited. Anything else leaves the
// matter open.
func (s *session) meant() {
	if r := s.query(limited(s.mine(7), 1)); r.closed {
		must(closedBy(r))
	}
	if slow := s.took(0); slow > s.o.Wait/3 {
		must(leaveOpen(results.CauseSlow, counts{"ms": milliseconds(slow)}))
	}
}

// varied returns filters that match the same events and read differently for each n.
func varied(filters []corpus.Filter, n int, now int64) []corpus.Filter {
	if n == 0 {
		return filters
	}
	out := slices.Clone(filters)
	for i := range out {
		switch f := &out[i]; {
		case f.Until == nil:
			f.Until = corpus.Int64(now + 300 + int64(n))
		case f.Since == nil:
			f.Since = corpus.Int64(int64(n))
		case f.Limit == nil:
			f.Limit = corpus.Int(90 + n)
		}
	}
	return out
}

// live returns the next live event of any of the subscriptions, until the deadline.
func (s *session) live(deadline time.Time, subs ...*client.Subscription) (sub *client.Subscription, id corpus.ID, err error) {
	for _, sub := range subs {
		if came := s.passed[sub.ID]; len(came) > 0 {
			s.passed[sub.ID] = came[1:]
			return sub, came[0], nil
		}
	}
	for {
		if _, err := s.next(deadline); err != nil {
			return nil, id, err
		}
		m := &s.conn.Message
		i := slices.IndexFunc(subs, func(sub *client.Subscription) bool { return sub.ID == string(m.Sub) })
		switch {
		case i < 0:
		case m.Type == wire.Event:
			return subs[i], corpus.ID(m.ID), nil
		case m.Type == wire.Closed:
			return nil, id, fail(results.CauseEndedEarly, nil, texts{"reason": clip(m.ReasonText(), maxText)})
		}
	}
}

// publishing and questions are what a relay may limit.
const (
	publishing = "publishing"
	questions  = "asking"
)

// sawRate notes a text that speaks of a rate limit.
func (p *prober) sawRate(what, text string) {
	p.locked(func() {
		if p.rates[what] == "" && speaksOfRate(text) {
			p.rates[what] = text
		}
	})
}

// rateOf returns the first text that spoke of a limit of what.
func (p *prober) rateOf(what string) (text string) {
	p.locked(func() { text = p.rates[what] })
	return text
}

// speaksOfRate tells whether a refusal or NOTICE is about too many events in too short a time.
func speaksOfRate(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{"rate-limit", "rate limit", "ratelimit", "slow down", "too fast", "throttl",
		"too many events", "too many messages", "too many requests"}, func(words string) bool { return strings.Contains(text, words) })
}

func quoted(text string) string { return `"` + text + `"` }

// clip bounds a text to n bytes, at a character's border, and makes UTF-8 of it.
func clip(text string, n int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "") + "…"
	}
	return text
}
