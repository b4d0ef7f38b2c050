package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"relaybench/corpus"
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

// session is one connection. A goroutine of its own reads, so that every wait can end without ending the connection.
type session struct {
	*asking
	conn *wire.Conn
	in   chan arrival // owns its memory
	done chan struct{}
	err  error // why in was closed
	subs int

	asks   string // what was done last: "publishing" or "asking"
	notice string // the last NOTICE since the last question
	odd    string // the last frame since then that was no message

	passed map[string][]corpus.ID // live events that came while something else was waited for, by subscription
}

// arrival is a message and when it came, on wire.Now's scale.
type arrival struct {
	wire.Message
	at  time.Duration
	odd string // of what is no message: the frame
}

// subscription is what the ids of subscriptions begin with.
const subscription = "pf"

// errSilent says that nothing relevant came in time.
var errSilent = errors.New("no answer")

// dial opens a connection that ends with the check.
func (a *asking) dial() (*session, error) {
	ctx, cancel := context.WithTimeout(a.ctx, a.o.Wait)
	defer cancel()
	start := time.Now()
	conn, err := wire.Dial(ctx, a.o.URL, wire.Options{ReadLimit: int64(max(1<<20, 2*a.o.MaxEventBytes))})
	if err != nil {
		if a.ctx.Err() != nil {
			return nil, context.Cause(a.ctx)
		}
		return nil, &noAnswerError{doing: "connecting", err: err}
	}
	a.took(time.Since(start))
	s := &session{asking: a, conn: conn, in: make(chan arrival, 16), done: make(chan struct{}), passed: map[string][]corpus.ID{}}
	a.add(s)
	go s.read()
	return s, nil
}

func (s *session) read() {
	defer close(s.in)
	for {
		frame, at, err := s.conn.Read()
		if err != nil {
			s.err = err
			return
		}
		m := arrival{at: at}
		s.conn.ParseMessage(bytes.Clone(frame), &m.Message)
		if m.Type == wire.Unknown {
			m.odd = clip(string(frame), maxText)
		}
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.garbage.Add(s.conn.Garbage())
}

// next returns the next message, errSilent at the deadline, or why there is none.
func (s *session) next(deadline time.Time) (arrival, error) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case m, ok := <-s.in:
		if !ok {
			return m, s.err
		}
		s.note(&m)
		return m, nil
	case <-timer.C:
		return arrival{}, errSilent
	case <-s.ctx.Done():
		return arrival{}, context.Cause(s.ctx)
	}
}

func (s *session) note(m *arrival) {
	switch m.Type {
	case wire.Notice:
		s.notice = clip(m.ReasonText(), maxText)
		if speaksOfRate(s.notice) {
			s.sawRate(s.asks, s.notice)
		}
	case wire.Auth:
		s.challenged.Store(true)
	case wire.Unknown:
		s.odd = m.odd
	}
}

// begin starts a question: what came before it does not answer it, a greeting say.
func (s *session) begin(asks string) {
	for more := true; more; {
		select {
		case m, ok := <-s.in:
			if more = ok; ok {
				s.note(&m)
				s.keep(&m)
			}
		default:
			more = false
		}
	}
	s.asks, s.notice, s.odd = asks, "", ""
}

// keep notes a live event that came while something else was waited for.
func (s *session) keep(m *arrival) {
	sub := string(m.Sub)
	if m.Type == wire.Event && m.HasID && len(s.passed) < maxKept && len(s.passed[sub]) < maxKept {
		s.passed[sub] = append(s.passed[sub], corpus.ID(m.ID))
	}
}

// elsewhere says whether an event came under a subscription that the session never had.
func (s *session) elsewhere(id corpus.ID) bool {
	for sub, ids := range s.passed {
		number, ours := strings.CutPrefix(sub, subscription)
		n, err := strconv.Atoi(number)
		if slices.Contains(ids, id) && !(ours && err == nil && n >= 1 && n <= s.subs) {
			return true
		}
	}
	return false
}

// afterNotice is the deadline once a NOTICE came where an answer was due: it may be that answer, or speak of something else.
func (s *session) afterNotice(deadline time.Time) time.Time {
	if sooner := time.Now().Add(s.o.Wait / 3); sooner.Before(deadline) {
		return sooner
	}
	return deadline
}

// explain adds what came instead to an error of silence or a lost connection.
func (s *session) explain(doing string, err error) error {
	return &noAnswerError{doing, s.notice, s.odd, s.conn.BinaryFrames(), err}
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
	s.begin(publishing)
	start := time.Now()
	if err := s.conn.SendEvent(raw); err != nil {
		return answer{}, s.explain("publishing", err)
	}
	deadline := start.Add(wait)
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
				s.sawRate(publishing, got.reason)
			}
			s.took(time.Since(start))
			return got, nil
		default:
			s.keep(&m)
		}
	}
}

// store publishes valid events one after another; all must be accepted.
func (s *session) store(events ...*corpus.Event) error {
	for _, e := range events {
		got, err := s.publish(e)
		if err != nil {
			return err
		}
		if !got.accepted {
			return &refusedError{e, got}
		}
	}
	return nil
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
	s.begin(questions)
	s.subs++
	sub = subscription + strconv.Itoa(s.subs)
	start := time.Now()
	if err := s.conn.Send(requestWith(sub, member, filters)); err != nil {
		return sub, r, s.explain("asking", err)
	}
	deadline := start.Add(s.o.Wait)
	for {
		m, err := s.next(deadline)
		if err != nil {
			return sub, r, s.explain("asking", err)
		}
		if m.Type == wire.Notice {
			deadline = s.afterNotice(deadline)
		}
		if string(m.Sub) != sub {
			s.keep(&m)
			continue
		}
		s.took(time.Since(start))
		start = time.Now()
		r.frames = append(r.frames, m.at)
		switch m.Type {
		case wire.Event:
			deadline = time.Now().Add(s.o.Wait)
			switch {
			case m.HasID:
				r.ids = append(r.ids, corpus.ID(m.ID))
				if len(r.texts) < maxKept {
					r.texts = append(r.texts, m.Event)
				}
			default:
				r.noID, r.nameless = r.noID+1, clip(string(m.Event), maxLine)
			}
			if len(r.ids)+r.noID > maxEvents {
				return sub, r, fail(results.CauseFlood, counts{"got": maxEvents}, nil, asked(filters...))
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
	start := time.Now()
	for n := 0; ; n++ {
		r, err := s.askWith(member, varied(filters, n, s.now)...)
		if err != nil || good(&r) || time.Since(start) > s.settle() {
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

// live returns the next live event of any of the subscriptions, until the deadline.
func (s *session) live(deadline time.Time, subs ...string) (sub string, id corpus.ID, err error) {
	for _, sub := range subs {
		if came := s.passed[sub]; len(came) > 0 {
			s.passed[sub] = came[1:]
			return sub, came[0], nil
		}
	}
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
				return "", id, fail(results.CauseEndedEarly, nil, texts{"reason": clip(m.ReasonText(), maxText)})
			}
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
