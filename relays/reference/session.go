package reference

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/corpus/scan"
)

const (
	// roomBytes is how far a peer may be behind before no more of its messages are read.
	roomBytes = 256 << 10
	// queriesAtOnce is how many stored answers one connection has under way.
	queriesAtOnce = 4
	countedAtOnce = 64 * batchEvents // in one read transaction
	maxSubID      = 64               // characters (NIP-01)
	maxTagNames   = 52               // NIP-01: a-z and A-Z
)

var closeBracket = []byte{']'}

// session is one client. Its frames are handled one after another; stored answers run beside that.
type session struct {
	relay *relay
	ws    *websocket.Conn
	out   *outbox
	buf   bytes.Buffer

	mu      sync.Mutex
	subs    map[string]*subscription
	negs    map[string]*negotiation
	slots   chan struct{}
	queries sync.WaitGroup

	touched bool // the committer's own mark
}

func newSession(r *relay, ws *websocket.Conn, out *outbox) *session {
	return &session{relay: r, ws: ws, out: out, subs: map[string]*subscription{}, negs: map[string]*negotiation{}, slots: make(chan struct{}, queriesAtOnce)}
}

// serve handles frames until the connection ends, and waits for all that the session runs.
func (s *session) serve() {
	defer s.ws.CloseNow() // queues behind what is still to be answered if the relay is stopping
	defer s.queries.Wait()
	defer s.cancelAll()
	for {
		// A context that ends would cost a timer a message. The socket's end ends the read.
		kind, r, err := s.ws.Reader(context.Background())
		if err != nil {
			return
		}
		s.buf.Reset()
		if _, err = s.buf.ReadFrom(r); err != nil {
			return
		}
		if kind != websocket.MessageText {
			s.notice("error: only text frames are understood")
		} else {
			s.handle(s.buf.Bytes())
		}
		if s.buf.Cap() > 256<<10 {
			s.buf = bytes.Buffer{}
		}
		if s.out.waitRoom(roomBytes, nil) != nil {
			return
		}
	}
}

// handle answers one client message (NIP-01). Whatever is in it, a NOTICE is the worst to come.
func (s *session) handle(frame []byte) {
	// What clients publish goes on unread: whether it is one event is found out when it is parsed.
	if rest, ok := bytes.CutPrefix(frame, []byte(`["EVENT",{`)); ok && bytes.HasSuffix(rest, []byte(`}]`)) {
		s.relay.ingest.add(s, frame[len(`["EVENT",`):len(frame)-1])
		return
	}
	parts, err := scan.Elements(frame)
	if err != nil {
		s.notice("error: message is not a JSON array: " + err.Error())
		return
	}
	if len(parts) < 2 {
		s.notice("error: message needs a command and something to apply it to")
		return
	}
	var answer func(id []byte, name string, rest [][]byte)
	switch string(parts[0]) {
	case `"EVENT"`:
		if len(parts) != 2 {
			s.notice("error: EVENT takes one event")
			return
		}
		s.relay.ingest.add(s, parts[1])
		return
	case `"REQ"`:
		answer = s.req
	case `"COUNT"`:
		answer = s.count
	case `"CLOSE"`:
		answer = func(_ []byte, name string, _ [][]byte) { s.end(name) }
	case `"NEG-OPEN"`:
		answer = s.negOpen
	case `"NEG-MSG"`:
		answer = s.negMsg
	case `"NEG-CLOSE"`:
		answer = func(_ []byte, name string, _ [][]byte) { s.endNegotiation(name, nil) }
	default:
		s.notice("error: unknown command " + shorten(parts[0]))
		return
	}
	name, err := scan.String(parts[1])
	if err != nil || name == "" || utf8.RuneCountInString(name) > maxSubID {
		s.notice(fmt.Sprintf("error: a subscription id is a string of 1 to %d characters, not %s", maxSubID, shorten(parts[1])))
		return
	}
	answer(corpus.AppendString(nil, name), name, parts[2:])
}

// appendOK writes the answer to an event.
func appendOK(b []byte, j *job) []byte {
	b = append(b, `["OK","`...)
	b = append(hex.AppendEncode(b, j.event.ID[:]), `",`...)
	b = append(strconv.AppendBool(b, j.decision.accepted), ',')
	return append(corpus.AppendString(b, j.decision.reason), ']')
}

// refuseBroken answers what is no event: with OK if it has an id to name, else with a NOTICE.
func (s *session) refuseBroken(j *job) {
	reason := "invalid: event " + j.problem.Error()
	var partial struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(j.raw, &partial) != nil || len(partial.ID) > 256 || partial.ID == "" {
		s.say("NOTICE", reason)
		return
	}
	s.say("OK", partial.ID, []byte("false"), reason)
}

// req opens a subscription, in place of one with the same id.
func (s *session) req(id []byte, name string, filters [][]byte) {
	s.end(name) // its frames must not follow the new one's
	queries, err := s.parseFilters(filters)
	if err != nil {
		s.say("CLOSED", id, refusal(err))
		return
	}
	sub := &subscription{session: s, id: id, queries: queries, place: -1, stopped: make(chan struct{}), answered: make(chan struct{})}
	sub.head = append(append([]byte(`["EVENT",`), id...), ',')
	s.mu.Lock()
	tooMany := len(s.subs) >= s.relay.options.MaxSubscriptions
	if !tooMany {
		s.subs[name] = sub
	}
	s.mu.Unlock()
	if tooMany {
		s.say("CLOSED", id, fmt.Sprintf("error: too many subscriptions: the limit is %d", s.relay.options.MaxSubscriptions))
		return
	}
	s.relay.hub.join(sub)
	s.queries.Go(sub.run)
}

// count answers how many events match (NIP-45).
func (s *session) count(id []byte, _ string, filters [][]byte) {
	queries, err := s.parseFilters(filters)
	if err != nil {
		s.say("CLOSED", id, refusal(err))
		return
	}
	s.slots <- struct{}{} // counts send nothing, so that a slow peer cannot hold a slot; waiting here bounds their number
	s.queries.Go(func() {
		defer func() { <-s.slots }()
		n := 0
		a := newResultStream(queries, s.relay.hub.accepted.Load(), s.relay.now())
		a.faults = s.relay.options.Faults
		for !a.done && s.out.alive() {
			left := countedAtOnce
			err := s.relay.reading(func(store Store) error {
				return a.step(store, func(*Record) bool {
					n, left = n+1, left-1
					return left > 0
				})
			})
			if err != nil {
				s.say("CLOSED", id, "error: "+err.Error())
				return
			}
		}
		s.say("COUNT", id, fmt.Appendf(nil, `{"count":%d}`, n))
	})
}

// end cancels a subscription, if there is one, and returns when nothing more of it will be sent.
func (s *session) end(name string) {
	s.mu.Lock()
	sub := s.subs[name]
	delete(s.subs, name)
	s.mu.Unlock()
	if sub != nil {
		sub.cancel()
		<-sub.answered
	}
}

// forget takes a subscription off the list, unless another has taken its name.
func (s *session) forget(sub *subscription) {
	s.mu.Lock()
	maps.DeleteFunc(s.subs, func(_ string, have *subscription) bool { return have == sub })
	s.mu.Unlock()
	s.relay.hub.leave(sub)
}

// cancelAll ends all subscriptions and reconciliations.
func (s *session) cancelAll() {
	s.mu.Lock()
	subs := s.subs
	s.subs = map[string]*subscription{}
	for _, n := range s.negs {
		n.idle.Stop()
	}
	clear(s.negs)
	s.mu.Unlock()
	for _, sub := range subs {
		sub.cancel()
	}
}

func (s *session) parseFilters(texts [][]byte) ([]*Query, error) {
	o := &s.relay.options
	if len(texts) == 0 {
		return nil, errors.New("a filter is missing")
	}
	if len(texts) > o.MaxFilters {
		return nil, fmt.Errorf("%d filters, over the limit of %d", len(texts), o.MaxFilters)
	}
	var queries []*Query
	elements := 0
	for _, text := range texts {
		f, err := parseFilter(text)
		if err != nil {
			return nil, err
		}
		q := NewQuery(&f, o.MaxLimit)
		if o.Faults.has("ignore-limit") {
			q.Limit = math.MaxInt
		}
		if elements += q.elements(); elements > o.MaxFilterElements {
			return nil, fmt.Errorf("filters list over %d values", o.MaxFilterElements)
		}
		queries = append(queries, q)
	}
	return queries, nil
}

func parseFilter(text []byte) (f corpus.Filter, err error) {
	if f, err = corpus.ParseFilter(text); err != nil {
		return f, fmt.Errorf("filter: %w", err)
	}
	if len(f.Tags) > maxTagNames {
		return f, fmt.Errorf("%d tag conditions, over the limit of %d", len(f.Tags), maxTagNames)
	}
	return f, nil
}

// refusal is why a filter is not answered, with the prefix of NIP-01 for it.
func refusal(err error) string {
	if unknown := (*corpus.UnknownFieldError)(nil); errors.As(err, &unknown) {
		return "unsupported: " + err.Error()
	}
	return "invalid: " + err.Error()
}

func (s *session) notice(text string) { s.say("NOTICE", text) }

// say sends a message of a label and elements, which are text or, as bytes, JSON already.
func (s *session) say(label string, elements ...any) {
	b := corpus.AppendString([]byte{'['}, label)
	for _, e := range elements {
		b = append(b, ',')
		switch e := e.(type) {
		case string:
			b = corpus.AppendString(b, e)
		case []byte:
			b = append(b, e...)
		}
	}
	s.out.text(append(b, ']'))
	s.out.flush()
}

// shorten makes a client's bytes fit to be quoted in an answer.
func shorten(b []byte) string {
	return string(bytes.ToValidUTF8(b[:min(len(b), 40)], []byte("?")))
}
