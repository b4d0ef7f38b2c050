package scripted

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/corpus/scan"
	"relaybench/relays/wire"
)

// line is one client's connection, passed on to the relay behind and back.
type line struct {
	*relay
	live context.Context // of the connection
	ws   *websocket.Conn
	back *wire.Conn
	wake chan struct{}

	mu    sync.Mutex
	queue []queued                 // by when they are due, else in the order in which they came
	asked map[string]time.Duration // when a subscription id's last question was read
	sent  map[corpus.ID]event
	subs  map[string]*subscription
}

// queued is a message on its way to the client.
type queued struct {
	due   time.Duration
	since time.Duration // of an OK: when the EVENT was read
	frame []byte
	ends  bool // the connection is dropped in its place
}

// event is an EVENT that the relay behind has not answered yet.
type event struct {
	at, due   time.Duration // when it was read, and when its OK is due
	duplicate bool
}

// subscription is a REQ.
type subscription struct {
	*Script // as it held when the REQ was read
	at      time.Duration
	sent    int
	ended   bool // EOSE has come
}

// run returns when the connection has ended and nothing of it goes on.
func (l *line) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.ws.CloseNow() })()
	l.live = ctx
	var all sync.WaitGroup
	for _, part := range []func(context.Context){l.read, l.write, l.listen} {
		all.Go(func() {
			defer l.back.Abort()
			defer cancel() // where one ends, all do
			part(ctx)
		})
	}
	all.Wait()
}

// say has a message written when it is due.
func (l *line) say(due time.Duration, frame []byte) { l.enqueue(queued{due: due, frame: frame}) }

func (l *line) enqueue(q queued) {
	l.mu.Lock()
	q.due = max(q.due, wire.Now()) // what is late already stays behind what came before it
	i := len(l.queue)
	for i > 0 && l.queue[i-1].due > q.due {
		i--
	}
	l.queue = slices.Insert(l.queue, i, q)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write writes what is due.
func (l *line) write(ctx context.Context) {
	for ctx.Err() == nil {
		l.mu.Lock()
		wait, q := time.Hour, queued{}
		if len(l.queue) > 0 {
			if wait = l.queue[0].due - wire.Now(); wait <= 0 {
				q, l.queue = l.queue[0], l.queue[1:]
			}
		}
		l.mu.Unlock()
		switch {
		case q.ends:
			return
		case q.frame == nil:
			select {
			case <-time.After(wait):
			case <-l.wake:
			case <-ctx.Done():
			}
			continue
		}
		if l.thawed(ctx); ctx.Err() != nil {
			return
		}
		if q.since > 0 {
			l.counts.HeldNanos.Add(int64(wire.Now() - q.since))
		}
		l.counts.wrote(q.frame)
		if l.ws.Write(context.Background(), websocket.MessageText, q.frame) != nil {
			return
		}
	}
}

// read takes the client's messages.
func (l *line) read(ctx context.Context) {
	for {
		_, frame, err := l.ws.Read(context.Background())
		if err != nil {
			return
		}
		l.thawed(ctx)
		at := wire.Now()
		l.counts.BytesIn.Add(int64(len(frame)))
		parts, err := scan.Elements(frame)
		if err != nil || len(parts) < 2 {
			l.pass(frame)
			continue
		}
		sub, _ := scan.String(parts[1])
		label := string(parts[0])
		if read := map[string]*Tally{`"EVENT"`: &l.counts.Events, `"REQ"`: &l.counts.Reqs, `"COUNT"`: &l.counts.CountReqs,
			`"NEG-OPEN"`: &l.counts.NegOpens, `"NEG-MSG"`: &l.counts.NegMsgs}[label]; read != nil {
			if read.add(); label != `"NEG-MSG"` {
				l.use()
			}
		}
		switch label {
		case `"EVENT"`:
			if !l.event(at, frame, parts[1]) {
				l.counts.HangUps.add()
				return
			}
		case `"REQ"`:
			l.request(at, frame, sub)
		case `"COUNT"`:
			l.ask(sub, at, frame)
		case `"NEG-OPEN"`, `"NEG-MSG"`:
			l.reconcile(at, frame, sub, label == `"NEG-OPEN"`)
		default:
			l.pass(frame)
		}
	}
}

func (l *line) pass(frame []byte) {
	if l.back.Send(frame) == nil {
		_ = l.back.Flush() // a broken connection ends listen
	}
}

// ask passes a question on, and remembers since when it waits.
func (l *line) ask(sub string, at time.Duration, frame []byte) {
	l.mu.Lock()
	l.asked[sub] = at
	l.mu.Unlock()
	l.pass(frame)
}

// store publishes an event to the relay behind over a connection of its own: that of who sent it
// may have ended by then.
func (r *relay) store(frame []byte) {
	conn, err := wire.Dial(context.Background(), "ws://"+r.behind, wire.Options{})
	if err != nil {
		return // the relay has ended
	}
	defer conn.Close()
	if conn.Send(frame) == nil {
		_, _, _ = conn.Read() // its OK
	}
}

// event returns false where the connection is to be dropped.
func (l *line) event(at time.Duration, frame, text []byte) bool {
	e, err := corpus.ParseEvent(text)
	s, n := l.now(), int64(0)
	if l.taken.Add(1) > int64(l.script.Honest) {
		s, n = l.script, l.events.Add(1)
	}
	if err != nil { // no event of which anything could be known
		l.pass(frame)
		return true
	}
	if s.FreezeAt > 0 && n == int64(s.FreezeAt) {
		l.counts.Freezes.add()
		l.thaw.Store(int64(wire.Now() + s.Freeze))
	}
	if s.DieAt > 0 && n == int64(s.DieAt) {
		l.kill()
	}
	if nth(n, s.GarbageEvery) {
		l.say(at, []byte(cmp.Or(s.Garbage, "]]garbage")))
	}
	ok := func(id corpus.ID, accepted bool, reason string) {
		l.enqueue(queued{due: at + s.OKAfter, since: at, frame: okMessage(id, accepted, reason)})
	}
	switch {
	case nth(n, s.HangUpEvery):
		return false
	case nth(n, s.SilentEvery):
	case nth(n, s.RefuseEvery):
		ok(e.ID, false, s.reason(n/int64(s.RefuseEvery)))
	case nth(n, s.WrongIDEvery):
		e.ID[0] ^= 1
		ok(e.ID, true, "")
	case nth(n, s.LoseEvery):
		ok(e.ID, true, "")
	case s.StoreAfter > 0 && n > 0 && e.Verify() == nil:
		ok(e.ID, true, "")
		later := slices.Clone(frame)
		time.AfterFunc(s.StoreAfter, func() { l.store(later) })
	default:
		l.mu.Lock()
		l.sent[e.ID] = event{at, at + s.OKAfter, nth(n, s.DuplicateEvery)}
		l.mu.Unlock()
		l.pass(frame)
	}
	return true
}

func (l *line) request(at time.Duration, frame []byte, sub string) {
	s, n := l.now(), int64(0)
	if !bytes.Contains(frame, []byte(s.OnlyReqs)) {
		s = &honest
	}
	if s != &honest {
		n = l.reqs.Add(1)
	}
	q := &subscription{Script: s, at: at}
	l.mu.Lock()
	l.subs[sub] = q
	l.mu.Unlock()
	if s.Notice != "" {
		l.say(at, message("NOTICE", quoted(s.Notice)))
	}
	switch {
	case nth(n, s.IgnoreEvery):
		return
	case s.Giant > 0:
		l.say(at, message("NOTICE", quoted(strings.Repeat("x", s.Giant))))
		return
	case s.Pings || s.NoticesEvery > 0 || s.InventEvery > 0:
		go l.talk(s, sub)
		return
	case nth(n, s.CloseEvery):
		l.say(at+s.EOSEAfter, message("CLOSED", quoted(sub), quoted(cmp.Or(s.CloseReason, "error: by script"))))
		return
	}
	if s.Foreign != "" {
		l.say(at+s.FirstAfter, message("EVENT", quoted(sub), []byte(s.Foreign)))
	}
	if s.Answer == nil {
		l.ask(sub, at, frame)
		return
	}
	for _, text := range s.Answer {
		l.found(q, sub, []byte(text))
	}
	l.found(q, sub, nil)
}

// talk goes on without an answer until the connection ends.
func (l *line) talk(s *Script, sub string) {
	for n := 0; l.live.Err() == nil; n++ {
		switch {
		case s.Pings:
			_ = l.ws.Ping(l.live)
		case s.InventEvery > 0:
			l.say(wire.Now(), message("EVENT", quoted(sub), fmt.Appendf(nil, `{"id":"%064x","pubkey":"%064x","created_at":%d,"kind":1,"tags":[],"content":"","sig":"%0128x"}`,
				n, n, 1_700_000_000-n, n)))
			pause(l.live, s.InventEvery)
		default:
			l.say(wire.Now(), message("NOTICE", quoted("in a moment")))
			pause(l.live, s.NoticesEvery)
		}
	}
}

// found has one event of an answer sent, or its EOSE where there is no event.
func (l *line) found(q *subscription, sub string, text []byte) {
	due := q.at + max(q.FirstAfter, q.EOSEAfter, time.Duration(q.sent)*q.EventEvery)
	switch {
	case text == nil:
		q.ended = true
		l.say(due, message("EOSE", quoted(sub)))
		return
	case q.ended:
		due = wire.Now() + q.LiveAfter
	case q.Cap > 0 && q.sent >= q.Cap || q.HideTimes > 0 && l.hides(text, q.HideTimes):
		return
	case q.sent == 0:
		due = q.at + q.FirstAfter
	}
	n := int64(0)
	if !q.ended {
		n = l.relay.sent.Add(1)
	}
	switch {
	case nth(n, q.LeaveOutEvery):
		return
	case q.HangUpAfter > 0 && q.sent >= q.HangUpAfter:
		l.counts.HangUps.add()
		l.enqueue(queued{due: due, ends: true})
		return
	}
	q.sent++
	frame := message("EVENT", quoted(sub), text)
	if q.AlterEvery == 0 || nth(n, q.AlterEvery) {
		frame = message("EVENT", quoted(cmp.Or(q.SubID, sub)), q.altered(text))
	}
	l.say(due, frame)
	if nth(n, q.RepeatEvery) {
		l.say(due, frame)
	}
}

// hides counts the answers that would hold an event, and reports whether this one is of the first.
func (l *line) hides(text []byte, times int) bool {
	n, _ := l.hidden.LoadOrStore(string(text), new(atomic.Int64))
	return n.(*atomic.Int64).Add(1) <= int64(times)
}

func (l *line) reconcile(at time.Duration, frame []byte, sub string, opens bool) {
	s := l.now()
	opened := l.opened.Load()
	if opens && s == l.script {
		opened = l.opened.Add(1)
	}
	switch {
	case opened <= int64(s.NegFirst) && s.NegFirst > 0:
		l.ask(sub, at, frame)
	case s.NegReply != "":
		l.say(at+s.NegAfter, message("NEG-MSG", quoted(sub), quoted(s.NegReply)))
	case s.NegError != "" && opens:
		l.say(at+s.NegAfter, message("NEG-ERR", quoted(sub), quoted(s.NegError)))
	default:
		l.ask(sub, at, frame)
	}
}

// listen takes the messages of the relay behind.
func (l *line) listen(ctx context.Context) {
	var m wire.Message
	for {
		frame, now, err := l.back.Read()
		if closed := (*wire.CloseError)(nil); errors.As(err, &closed) && ctx.Err() == nil {
			l.ws.Close(websocket.StatusCode(closed.Code), closed.Reason)
		}
		if err != nil {
			return
		}
		frame = bytes.Clone(frame)
		wire.Parse(frame, &m)
		s := l.now()
		l.mu.Lock()
		since, q := cmp.Or(l.asked[string(m.Sub)], now), l.subs[string(m.Sub)]
		l.mu.Unlock()
		switch m.Type {
		case wire.OK:
			l.mu.Lock()
			e, known := l.sent[m.ID]
			delete(l.sent, m.ID)
			l.mu.Unlock()
			if e.duplicate {
				frame = okMessage(m.ID, true, "duplicate: by script")
			}
			if !known { // no event that could be read
				e.at, e.due = now, now+s.OKAfter
			}
			l.enqueue(queued{due: e.due, since: e.at, frame: frame})
		case wire.Event, wire.EOSE:
			if q != nil {
				l.found(q, string(m.Sub), m.Event)
			}
		case wire.Closed:
			l.say(since+s.EOSEAfter, frame)
		case wire.Count:
			if n, _, ok := m.Counted(); ok && s.CountOff != 0 {
				frame = message("COUNT", quoted(string(m.Sub)), fmt.Appendf(nil, `{"count":%d}`, n+s.CountOff))
			}
			if s.CountReply != "" {
				frame = []byte(strings.ReplaceAll(s.CountReply, "SUB", string(m.Sub)))
			}
			l.say(since+s.CountAfter, frame)
		case wire.NegMsg, wire.NegErr:
			l.say(since+s.NegAfter, frame)
		default:
			l.say(now, frame)
		}
	}
}
