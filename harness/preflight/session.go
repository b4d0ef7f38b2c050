package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
	s, err := c.tryDial()
	must(err)
	return s
}

func (c *checker) tryDial() (*session, error) {
	start := time.Now()
	conn, err := client.Dial(c.ctx, client.Options{URL: c.o.URL, Stall: c.o.Wait, Patient: true, Answer: maxEvents,
		ReadLimit: int64(max(1<<20, 2*c.o.MaxEventBytes))})
	if err != nil {
		if c.ctx.Err() != nil {
			return nil, context.Cause(c.ctx)
		}
		return nil, noAnswer("connecting", err)
	}
	c.took(time.Since(start))
	s := &session{checker: c, conn: conn, passed: map[string][]corpus.ID{}}
	c.opened.Lock()
	defer c.opened.Unlock()
	c.all = append(c.all, s)
	return s, nil
}

func (s *session) close() {
	s.conn.Abort()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.garbage.Add(s.conn.Wire().Garbage())
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
		if speaksOfRate(s.notice) {
			s.sawRate(s.asks, s.notice)
		}
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

// afterNotice is the deadline once a NOTICE came where an answer was due: it may be that answer, or
// speak of something else.
func (s *session) afterNotice(deadline time.Time) time.Time {
	if sooner := time.Now().Add(s.o.Wait / 3); sooner.Before(deadline) {
		return sooner
	}
	return deadline
}

// explain adds what came instead to an error of silence or a lost connection.
func (s *session) explain(doing string, err error) error {
	if s.ctx.Err() != nil {
		err = context.Cause(s.ctx)
	}
	o := noAnswer(doing, err)
	if o.cause == results.CauseTime {
		return o
	}
	if s.notice != "" {
		o.texts["notice"] = s.notice
		o.text += " but NOTICE " + quoted(s.notice)
	}
	if n := s.conn.Wire().BinaryFrames(); n > 0 {
		o.counts = counts{"binary": float64(n)}
	}
	if s.odd != "" {
		o.evidence = []results.Evidence{{Code: results.EvidenceFrame, Text: s.odd}}
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

// publish sends an event and waits for its OK. Nothing else is in flight, so that an OK without an
// id is taken for its answer.
func (s *session) publish(e *corpus.Event) (answer, error) {
	return s.publishRaw(e.AppendJSON(nil), e.ID, s.o.Wait)
}

func (s *session) publishRaw(raw []byte, id corpus.ID, wait time.Duration) (answer, error) {
	s.begin(publishing)
	start := time.Now()
	if err := s.conn.Wire().SendEvent(raw); err != nil {
		return answer{}, s.explain(publishing, err)
	}
	deadline := start.Add(wait)
	for {
		if _, err := s.next(deadline); err != nil {
			return answer{}, s.explain(publishing, err)
		}
		switch m := &s.conn.Message; {
		case m.Type == wire.Notice:
			deadline = s.afterNotice(deadline)
		case m.Type == wire.OK && (!m.HasID || corpus.ID(m.ID) == id):
			got := answer{accepted: m.Accepted, named: m.HasID, reason: clip(m.ReasonText(), maxText)}
			if !got.accepted && speaksOfRate(got.reason) {
				s.sawRate(publishing, got.reason)
			}
			s.took(time.Since(start))
			return got, nil
		default:
			s.keep()
		}
	}
}

// store publishes valid events one after another; all must be accepted.
func (s *session) store(events ...*corpus.Event) {
	for _, e := range events {
		got, err := s.publish(e)
		must(err)
		if !got.accepted {
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
func (s *session) query(filters ...corpus.Filter) reply {
	r, err := s.tryQuery(filters...)
	must(err)
	return r
}

func (s *session) tryQuery(filters ...corpus.Filter) (reply, error) {
	sub, r, err := s.trySubscribe(filters...)
	if err == nil && !r.closed {
		err = s.conn.End(sub)
	}
	return r, err
}

// subscribe puts a REQ, reads what is stored, and leaves the subscription open.
func (s *session) subscribe(filters ...corpus.Filter) *client.Subscription {
	sub, r, err := s.trySubscribe(filters...)
	must(err)
	if r.closed {
		must(closedBy(&r))
	}
	return sub
}

func (s *session) trySubscribe(filters ...corpus.Filter) (sub *client.Subscription, r reply, err error) {
	s.begin(questions)
	start := time.Now()
	if sub, err = s.conn.Request(s.ctx, filtersText(filters, s.member), 0); err != nil {
		return sub, r, s.explain(questions, err)
	}
	deadline := start.Add(s.o.Wait)
	for {
		of, err := s.next(deadline)
		if flood := (*client.FloodError)(nil); errors.As(err, &flood) {
			return sub, r, fail(results.CauseFlood, counts{"got": maxEvents}, nil, queried(filters...))
		}
		if err != nil {
			return sub, r, s.explain(questions, err)
		}
		m := &s.conn.Message
		if m.Type == wire.Notice {
			deadline = s.afterNotice(deadline)
		}
		if of != sub {
			s.keep()
			continue
		}
		s.took(time.Since(start))
		start = time.Now()
		r.frames = append(r.frames, s.conn.At)
		switch m.Type {
		case wire.Event:
			deadline = time.Now().Add(s.o.Wait)
			switch {
			case !m.HasID:
				r.noID, r.nameless = r.noID+1, clip(string(m.Event), maxLine)
			case len(r.texts) < maxKept:
				r.texts = append(r.texts, m.Event)
				fallthrough
			default:
				r.ids = append(r.ids, corpus.ID(m.ID))
			}
		case wire.EOSE:
			return sub, r, nil
		case wire.Closed:
			r.closed, r.reason = true, clip(m.ReasonText(), maxText)
			if speaksOfRate(r.reason) {
				s.sawRate(questions, r.reason)
			}
			return sub, r, nil
		}
	}
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
func (s *session) poll(good func(*reply) bool, filters ...corpus.Filter) reply {
	start := time.Now()
	for n := 0; ; n++ {
		r := s.query(varied(filters, n, s.now)...)
		if good(&r) || time.Since(start) > s.settle() {
			return r
		}
		s.pause(min(20*time.Millisecond<<n, 250*time.Millisecond))
	}
}

func (c *checker) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.ctx.Done():
		must(context.Cause(c.ctx))
	}
}

// read is poll where the answer must be one: a CLOSED leaves the check open.
func (s *session) read(good func(*reply) bool, filters ...corpus.Filter) reply {
	r := s.poll(good, filters...)
	if r.closed {
		must(closedBy(&r))
	}
	return r
}

// need is read where the check rests on a good answer.
func (s *session) need(good func(*reply) bool, filters ...corpus.Filter) reply {
	r := s.poll(good, filters...)
	if !good(&r) {
		must(leaveOpen(results.CauseNeeds, nil, nil))
	}
	return r
}

// expect polls for exactly these events; anything else fails the check.
func (s *session) expect(want []corpus.ID, filters ...corpus.Filter) {
	if r := s.poll(exactly(want), filters...); !exactly(want)(&r) {
		must(wrongAnswer(want, &r, filters...))
	}
}

// meant finds out whether silence means anything: another question on the connection is answered,
// and no answer so far took more than a third of the time that was waited. Anything else leaves the
// matter open.
func (s *session) meant() {
	r := s.query(limited(s.mine(7), 1))
	switch {
	case r.closed:
		must(closedBy(&r))
	case s.slow() > s.o.Wait/3:
		must(leaveOpen(results.CauseSlow, counts{"ms": milliseconds(s.slow())}, nil))
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rates[what] == "" {
		p.rates[what] = text
	}
}

// rateOf returns the first text that spoke of a limit of what.
func (p *prober) rateOf(what string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rates[what]
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

// clip bounds a text to n bytes, at a character's border, and makes UTF-8 of it.
func clip(text string, n int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
