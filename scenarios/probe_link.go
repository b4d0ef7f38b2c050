package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/receive"
	"relaybench/relays/client"
	"relaybench/relays/wire"
	"relaybench/results"
)

const (
	connectTime    = 10 * time.Second // for TCP, TLS and the WebSocket handshake, where a stall is not shorter
	answerTime     = time.Minute      // the longest that an answer may take, however steadily it comes
	maxAnswerBytes = 16 << 20         // of one answer: with all relays at their worst, memory for a few hundred MiB
	maxProbeFrame  = 1 << 20          // bytes
)

// probeLink is one relay in one pass.
type probeLink struct {
	o       *ProbeOptions
	relay   *harness.Trial
	answers []*probeAnswer // the last is asked for

	conn       *client.Conn            // nil where there is none
	hangUp     context.CancelCauseFunc // ends its context
	dialled    time.Duration
	connected  time.Duration // how long it took the first time, 0 where it failed
	reconnects int
	failure    error // of the last attempt to connect, or why the connection ended
	extensions string

	notices int
	notice  string // the first
	auth    bool   // the relay sent a challenge
	unknown int    // frames that are no message
	strays  int    // events of subscriptions that nobody made
}

// probeAnswer is what one REQ brought. Times are on wire.Now's scale.
type probeAnswer struct {
	shape  int
	sub    string
	filter *corpus.Filter
	feeder *receive.Feeder

	outcome               string // one of the causes of CodeAnswered; "" where EOSE came
	reason                string // a relay's words, or an error
	sent, first, done     time.Duration
	sinceDial             time.Duration // from the beginning of connecting to the REQ, where it followed at once
	received, nameless    int           // the second without an event, or without its id
	fresh, unasked, alone int
	late                  int // events after EOSE or CLOSED
	bytes                 int
	sizes                 []int // of EVENT frames
	ids                   map[corpus.ID]struct{}
}

func (l *probeLink) asked() *probeAnswer { return l.answers[len(l.answers)-1] }

// connect dials once.
func (l *probeLink) connect(ctx context.Context) {
	stall := l.relay.Options.Stall
	connection, hangUp := context.WithCancelCause(ctx)
	l.hangUp = hangUp
	within := min(stall, connectTime)
	timer := time.AfterFunc(within, func() { hangUp(fmt.Errorf("no connection within %v", within)) })
	defer timer.Stop()
	start := wire.Now()
	l.conn, l.failure = client.Dial(connection, client.Options{URL: l.relay.Relay.URL(), Compression: l.o.Compression, ReadLimit: maxProbeFrame,
		Stall: stall, Answer: 2*l.o.Limit + 100})
	switch cause := errors.Unwrap(l.failure); {
	case l.failure != nil:
		l.failure = cmp.Or(cause, l.failure) // without the URL, which is known
		hangUp(nil)
	case l.connected == 0:
		l.dialled, l.connected, l.extensions = start, wire.Now()-start, l.conn.Stats.Extensions
	default:
		l.reconnects++
	}
}

// ask sends the REQ and waits for the answer's end. Where the connection was lost meanwhile, it
// connects once more. The first one follows the connecting at once.
func (l *probeLink) ask(ctx context.Context, first bool) {
	a := l.asked()
	switch {
	case first:
		l.connect(ctx)
	case a.filter == nil:
		a.outcome = results.CauseNotAsked
		return
	case l.connected > 0:
		if l.listen(ctx, time.Now().Add(l.o.Pause)); ctx.Err() == nil && l.conn == nil {
			l.connect(ctx)
		}
	}
	switch {
	case ctx.Err() != nil:
		a.outcome = results.CauseNotAsked
		return
	case l.conn == nil:
		a.outcome, a.reason = results.CauseNotReached, l.failure.Error()
		return
	}
	// An error of writing is the reader's to tell, who may have the relay's reason.
	s, _ := l.conn.Request(ctx, a.filter.AppendJSON(nil), *a.filter.Limit)
	_ = l.conn.Wire().Flush()
	a.sub, a.sent = s.ID, s.Sent
	if first {
		a.sinceDial = a.sent - l.dialled
	}
	end := time.Now().Add(answerTime)
	for a.done == 0 {
		s, err := l.conn.ReadBy(ctx, end)
		if err == nil {
			err = l.take(s, a)
		}
		if err != nil {
			a.done = wire.Now()
			l.lose(err)
			a.outcome, a.reason = outcomeOf(err)
			return
		}
	}
	if a.outcome == "" {
		_ = l.conn.End(s)
		_ = l.conn.Wire().Flush()
	}
}

// errTooMuch ends an answer, and its connection: there is no telling when it would stop.
var errTooMuch = fmt.Errorf("more than %d MiB", maxAnswerBytes>>20)

// outcomeOf is how an answer ended with an error.
func outcomeOf(err error) (cause, reason string) {
	flood := (*client.FloodError)(nil)
	switch {
	case errors.As(err, &flood), errors.Is(err, errTooMuch):
		return results.CauseFlooded, err.Error()
	case errors.Is(err, client.ErrSilent):
		return results.CauseTooSlow, fmt.Sprintf("no end of it within %v", answerTime)
	case errors.Is(err, wire.ErrStalled):
		return results.CauseStalled, err.Error()
	}
	return results.CauseDisconnected, err.Error()
}

// take deals with the message that was just read, of the REQ that s is. a is the answer that is
// waited for, nil where none is.
func (l *probeLink) take(s *client.Subscription, a *probeAnswer) error {
	m, frame := &l.conn.Message, l.conn.Frame()
	if a != nil {
		a.bytes += len(frame)
	}
	switch {
	case m.Type == wire.Event && s != nil && a != nil:
		if !m.HasID {
			a.nameless++
		} else if _, err := a.feeder.Event(m.ID, m.Event, l.conn.At); err != nil {
			return err
		} else {
			a.ids[m.ID] = struct{}{}
		}
		a.received++
		a.sizes = append(a.sizes, len(frame))
		if a.first == 0 {
			a.first = l.conn.At
		}
		l.conn.Useful()
	case s != nil && a != nil: // EOSE or CLOSED
		a.done = l.conn.At
		if m.Type == wire.Closed {
			if a.outcome, a.reason = results.CauseClosed, m.ReasonText(); strings.HasPrefix(a.reason, "auth-required:") {
				a.outcome = results.CauseAuthRequired
			}
		}
		return nil
	case m.Type == wire.Event:
		if i := slices.IndexFunc(l.answers, func(a *probeAnswer) bool { return a.sub == string(m.Sub) }); i >= 0 {
			l.answers[i].late++
		} else {
			l.strays++
		}
	case m.Type == wire.Notice:
		if l.notices++; l.notices == 1 {
			l.notice = m.ReasonText()
		}
	case m.Type == wire.Auth:
		l.auth = true
	case m.Type == wire.Unknown:
		l.unknown++
	}
	if a != nil && a.bytes > maxAnswerBytes {
		return errTooMuch
	}
	return nil
}

// listen takes what comes while nothing is asked for, up to a deadline, or what has come already,
// but no flood of it.
func (l *probeLink) listen(ctx context.Context, until time.Time) {
	for n := 0; l.conn != nil && (n < 2*l.o.Limit+100 || time.Now().Before(until)); n++ {
		s, err := l.conn.ReadBy(ctx, until)
		if err == nil {
			err = l.take(s, nil)
		}
		if errors.Is(err, client.ErrSilent) {
			return
		}
		if err != nil {
			l.lose(err)
		}
	}
	if wait := time.Until(until); wait > 0 && ctx.Err() == nil { // the pause is for the relay
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// lose gives the connection up.
func (l *probeLink) lose(err error) {
	l.failure = err
	l.conn.Abort()
	l.hangUp(nil)
	l.conn = nil
}

// close says good-bye, after what has come already.
func (l *probeLink) close() {
	l.listen(context.Background(), time.Time{})
	if l.conn != nil {
		l.conn.Close()
		l.hangUp(nil)
	}
}

// record keeps what one pass found out about the relay.
func (l *probeLink) record(checks receive.Checks) {
	labels := results.Labels{results.LabelVerifier: checks.String()}
	under := func(key, title string, order int, primary string) *harness.Trial {
		d := describeProbe(ProbeFamily+"."+key, title, order, primary, results.LabelVerifier)
		d.Labels = labels
		return l.relay.Under(d)
	}
	t := under("connection", "Connections", 0, "connect")
	if l.connected == 0 {
		l.relay.Unready = l.failure
		return
	}
	t.Value("connect", "ms", results.Lower, harness.Milliseconds(l.connected))
	if sent := l.answers[0].sinceDial; sent > 0 {
		t.Value("REQ sent", "ms", results.Lower, harness.Milliseconds(sent))
	}
	state := func(code string, counts map[string]float64, texts map[string]string) {
		t.AddFinding(results.Finding{Code: code, Verdict: results.Stated, Counts: counts, Texts: texts})
	}
	if l.o.Compression {
		state(results.CodeCompression, nil, map[string]string{"extensions": l.extensions})
	}
	if l.auth {
		state(results.CodeAsksWho, nil, nil)
	}
	if l.notices > 0 {
		state(results.CodeNotices, counts("notices", l.notices), map[string]string{"notice": l.notice})
	}
	if l.unknown > 0 {
		state(results.CodeOnlyMessage, counts("frames", l.unknown), nil)
	}
	if l.strays > 0 {
		state(results.CodeOnlyRequested, counts("elsewhere", l.strays), nil)
	}
	if l.reconnects > 0 {
		state(results.CodeConnections, counts("lost", l.reconnects), nil)
	}
	for _, a := range l.answers {
		shape := probeShapes[a.shape]
		a.record(under(shape.key, shape.title, 1+a.shape, "EOSE"))
	}
}

// record keeps an answer.
func (a *probeAnswer) record(t *harness.Trial) {
	answered := results.Finding{Code: results.CodeAnswered, Verdict: results.Holds(a.outcome == ""), Cause: a.outcome, Texts: map[string]string{"reason": a.reason}}
	if a.outcome == results.CauseNotAsked {
		answered.Verdict = results.Stated
	}
	t.AddFinding(answered)
	if a.sent == 0 {
		return
	}
	value := func(metric, unit string, better results.Better, v float64) {
		m := results.Measurement{Metric: metric, Unit: unit, Better: better, Trials: []float64{v}}
		if a.outcome != "" && better != results.None {
			m.AddStatus(results.Status{Code: results.StatusIncomplete, Cause: results.CauseEnded, Texts: map[string]string{"text": a.reason}})
		}
		t.Measure(m)
	}
	if a.first > 0 {
		value("first event", "ms", results.Lower, harness.Milliseconds(max(0, a.first-a.sent))) // it may have come before the REQ was sent
	}
	value("EOSE", "ms", results.Lower, harness.Milliseconds(max(0, a.done-a.sent)))
	checked := a.feeder.Counts()
	malformed := int(checked.Malformed) + a.nameless
	for _, m := range []struct {
		metric string
		n      int
	}{{"events", a.received}, {"new", a.fresh}, {"duplicates", int(checked.Duplicates)}, {"only here", a.alone}, {"unasked", a.unasked}, {"after the end", a.late},
		{"malformed", malformed}, {"bad id", int(checked.BadID)}, {"bad signature", int(checked.BadSignature)}} {
		value(m.metric, "events", results.None, float64(m.n))
	}
	if n := len(a.sizes); n > 0 {
		slices.Sort(a.sizes)
		for metric, at := range map[string]int{"frame p50": (n*50 + 99) / 100, "frame p99": (n*99 + 99) / 100, "frame max": n} {
			value(metric, "bytes", results.None, float64(a.sizes[at-1]))
		}
		value("received", "bytes", results.None, float64(a.bytes))
	}
	forged := malformed + int(checked.BadID+checked.BadSignature)
	t.AddFinding(results.Finding{Code: results.CodeGenuine, Verdict: results.Holds(forged == 0),
		Counts: counts("malformed", malformed, "bad id", int(checked.BadID), "bad signature", int(checked.BadSignature), "of", a.received)})
	t.AddFinding(results.Finding{Code: results.CodeOnlyRequested, Verdict: results.States(a.unasked == 0), Counts: counts("events", a.unasked)})
	if a.late > 0 {
		t.AddFinding(results.Finding{Code: results.CodeEndsOnce, Verdict: results.Stated, Counts: counts("events", a.late)})
	}
}
