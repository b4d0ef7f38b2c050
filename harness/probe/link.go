package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/harness/receive"
	"relaybench/relays/wire"
)

// Outcome is how an answer ended.
type Outcome string

const (
	Complete     Outcome = "complete"      // EOSE came
	AuthRequired Outcome = "auth-required" // CLOSED, because the relay wants to know who asks (NIP-42); this client does not tell
	Closed       Outcome = "closed"        // CLOSED for another reason
	Stalled      Outcome = "stalled"       // nothing that was asked for came for too long
	TooSlow      Outcome = "too slow"      // it came, and no end of it
	Flooded      Outcome = "flooded"       // far more came than was asked for
	Disconnected Outcome = "disconnected"  // the connection ended
	NotReached   Outcome = "not reached"   // there is no connection
	NotAsked     Outcome = "not asked"
)

// link is one relay in one pass.
type link struct {
	o   *Options
	url string

	conn      *wire.Conn
	reader    sync.WaitGroup
	dialled   time.Duration // when connecting began
	connected time.Duration // how long it took the first time, 0 where it failed
	again     int           // connections made after one was lost
	failure   error         // of the last attempt to connect
	agreed    string

	asked   *answer // the one that is being asked for, or was last
	answers []*answer

	mu      sync.Mutex // guards what follows, and the asked answer while it is asked for
	open    bool       // asked awaits its end
	ended   error      // why the connection ended, nil while it lives
	notices int
	notice  string // the first
	auth    bool   // the relay sent a challenge
	unknown int    // frames that are no message
	strays  int    // events of subscriptions that nobody made
}

// answer is what one REQ brought. Times are on wire.Now's scale.
type answer struct {
	shape   Shape
	sub     string
	filter  corpus.Filter
	feeder  *receive.Feeder
	counts  receive.Counts
	checked verdicts

	outcome           Outcome
	reason            string // a relay's words, or ours
	sent, first, done time.Duration
	sinceDial         time.Duration // from the beginning of connecting to the REQ, where it followed at once
	received          int
	nameless          int // without an event, or without its id
	bytes             int64
	sizes             []int32 // of EVENT frames
	ids               map[corpus.ID]struct{}
	alone             int
	late              int // events after EOSE or CLOSED
	finished          chan struct{}
}

func newLink(o *Options, url string) *link { return &link{o: o, url: url} }

// connect dials once.
func (l *link) connect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, min(l.o.Stall, connectTime))
	defer cancel()
	start := wire.Now()
	conn, err := wire.Dial(ctx, l.url, wire.Options{ReadLimit: readLimit, Compression: l.o.Compression})
	if l.failure = err; err != nil {
		if cause := errors.Unwrap(err); cause != nil { // without the URL, which is known
			l.failure = cause
		}
		return
	}
	if l.connected == 0 {
		l.dialled, l.connected, l.agreed = start, wire.Now()-start, conn.Negotiated()
	} else {
		l.again++
	}
	l.conn = conn
	l.ended = nil
	l.reader.Go(func() { l.read(conn) })
}

// read takes every frame as soon as it comes, until the connection ends.
func (l *link) read(conn *wire.Conn) {
	for {
		frame, at, err := conn.Read()
		if err == nil {
			err = l.frame(conn, frame, at)
		}
		if err != nil {
			l.mu.Lock()
			l.ended = err
			if l.open {
				l.finishLost(err)
			}
			l.mu.Unlock()
			conn.Abort()
			return
		}
	}
}

// finishLost ends the answer with the connection. The caller holds mu.
func (l *link) finishLost(err error) {
	if errors.Is(err, wire.ErrStalled) {
		l.finish(Stalled, fmt.Sprintf("nothing that was asked for came within %v", l.o.Stall), wire.Now())
		return
	}
	l.finish(Disconnected, err.Error(), wire.Now())
}

// finish ends the answer that is asked for. The caller holds mu.
func (l *link) finish(outcome Outcome, reason string, at time.Duration) {
	a := l.asked
	l.open = false
	a.outcome, a.reason, a.done = outcome, reason, at
	close(a.finished)
}

// frame takes one frame. An error ends the connection.
func (l *link) frame(conn *wire.Conn, frame []byte, at time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.asked
	if a == nil || !l.open {
		var m wire.Message
		wire.Parse(frame, &m)
		if m.Type == wire.Event && a != nil && string(m.Sub) == a.sub {
			a.late++
		}
		l.other(&m)
		return nil
	}
	m, fate, err := a.feeder.Frame(frame, at)
	if err != nil {
		return err
	}
	a.bytes += int64(len(frame))
	mine := string(m.Sub) == a.sub
	switch {
	case m.Type == wire.Event && mine:
		a.received++
		a.sizes = append(a.sizes, int32(len(frame)))
		if a.first == 0 {
			a.first = at
		}
		if fate == receive.Nameless {
			a.nameless++
		} else {
			a.ids[m.ID] = struct{}{}
		}
		conn.Useful()
	case m.Type == wire.EOSE && mine:
		l.finish(Complete, "", at)
		return nil
	case m.Type == wire.Closed && mine:
		outcome := Closed
		if reason := m.ReasonText(); strings.HasPrefix(reason, "auth-required:") {
			outcome = AuthRequired
		}
		l.finish(outcome, m.ReasonText(), at)
		return nil
	case m.Type == wire.Event:
		l.strays++
	default:
		l.other(m)
	}
	switch most := 2*l.o.Limit + 100; {
	case a.received > most:
		l.finish(Flooded, fmt.Sprintf("more than %d events for a limit of %d", most, *a.filter.Limit), at)
	case a.bytes > maxBytes:
		l.finish(Flooded, fmt.Sprintf("more than %d MiB for a limit of %d", maxBytes>>20, *a.filter.Limit), at)
	case at-a.sent > answerTime:
		l.finish(TooSlow, fmt.Sprintf("no EOSE within %v", answerTime), at)
	default:
		return nil
	}
	return errFlood
}

// errFlood ends a connection on which too much comes: there is no telling when it would stop.
var errFlood = errors.New("closed on this side, since the relay did not come to an end")

// other notes what a relay says beside its answers.
func (l *link) other(m *wire.Message) {
	switch m.Type {
	case wire.Notice:
		if l.notices++; l.notices == 1 {
			l.notice = m.ReasonText()
		}
	case wire.Auth:
		l.auth = true
	case wire.Unknown:
		l.unknown++
	}
}

// begin makes the next answer.
func (l *link) begin(shape Shape, filter corpus.Filter, feeder *receive.Feeder) {
	a := &answer{shape: shape, sub: fmt.Sprintf("probe-%d", len(l.answers)+1), filter: filter, feeder: feeder, ids: make(map[corpus.ID]struct{}), finished: make(chan struct{})}
	l.answers = append(l.answers, a)
	l.mu.Lock()
	l.asked = a
	l.mu.Unlock()
}

// ask sends the REQ and waits for the answer's end. Where the connection was lost meanwhile, it connects once more.
func (l *link) ask(ctx context.Context, first bool) {
	a := l.asked
	if l.connected == 0 {
		a.outcome, a.reason = NotReached, l.failure.Error()
		return
	}
	if !first && !pause(ctx, l.o.Pause) {
		a.outcome, a.reason = NotAsked, "interrupted"
		return
	}
	l.mu.Lock()
	lost := l.ended != nil
	l.mu.Unlock()
	if lost {
		l.reader.Wait()
		if l.connect(ctx); l.failure != nil {
			a.outcome, a.reason = NotReached, l.failure.Error()
			return
		}
	}
	conn := l.conn
	req := fmt.Appendf(nil, `["REQ",%q,`, a.sub)
	req = append(a.filter.AppendJSON(req), ']')
	l.mu.Lock()
	l.open = true
	a.sent = wire.Now()
	if first {
		a.sinceDial = a.sent - l.dialled
	}
	if l.ended != nil {
		l.finishLost(l.ended)
	}
	l.mu.Unlock()
	conn.WatchUseful(l.o.Stall)
	if conn.Send(req) == nil { // an error of writing is the reader's to tell, who may have the relay's reason
		conn.Flush()
	}
	select {
	case <-a.finished:
	case <-ctx.Done():
		conn.Abort()
		<-a.finished
	}
	conn.WatchUseful(0)
	if a.outcome == Complete {
		conn.Send(fmt.Appendf(nil, `["CLOSE",%q]`, a.sub))
		conn.Flush()
	}
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// settle takes over what the pipeline found out about the answer.
func (l *link) settle(v *verdicts) {
	l.asked.counts = l.asked.feeder.Counts()
	l.asked.checked = *v
}

// close says good-bye.
func (l *link) close() {
	if l.conn == nil {
		return
	}
	l.conn.Close()
	l.reader.Wait()
}
