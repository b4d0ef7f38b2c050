package probe

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/corpus/scan"
	"relaybench/harness/receive"
)

// scripted is a relay that answers each REQ as a test says, and keeps what it was sent.
type scripted struct {
	mu     sync.Mutex
	heard  []string
	dialed int
	at     []time.Time // of the REQs
}

// serveScript starts it. answer returns false to end the connection.
func serveScript(t *testing.T, options websocket.AcceptOptions, answer func(say func(format string, args ...any) bool, sub string) bool) (*scripted, string) {
	t.Helper()
	s := &scripted{}
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &options)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		s.mu.Lock()
		s.dialed++
		s.mu.Unlock()
		say := func(format string, args ...any) bool {
			return conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, format, args...)) == nil
		}
		for {
			_, frame, err := conn.Read(ctx)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.heard = append(s.heard, string(frame))
			s.mu.Unlock()
			parts, err := scan.Elements(frame)
			if err != nil || len(parts) < 2 || string(parts[0]) != `"REQ"` {
				continue
			}
			s.mu.Lock()
			s.at = append(s.at, time.Now())
			s.mu.Unlock()
			if !answer(say, string(parts[1])) {
				return
			}
		}
	}))
	t.Cleanup(func() { cancel(); server.Close() })
	return s, "ws" + strings.TrimPrefix(server.URL, "http")
}

// events says the first n notes and EOSE.
func events(n int) func(say func(string, ...any) bool, sub string) bool {
	return func(say func(string, ...any) bool, sub string) bool {
		for _, e := range world()[:n] {
			say(`["EVENT",%s,%s]`, sub, e.AppendJSON(nil))
		}
		return say(`["EOSE",%s]`, sub)
	}
}

func TestAGuestAsksAndClosesAndDoesNothingElse(t *testing.T) {
	t.Parallel()
	challenging, url := serveScript(t, websocket.AcceptOptions{}, func(say func(string, ...any) bool, sub string) bool {
		say(`["AUTH","who are you?"]`)
		say(`["NOTICE","\u001b[31mwelcome"]`)
		say(`["OK","%s",true,""]`, strings.Repeat("a", 64))
		return events(10)(say, sub)
	})
	o := asking(url)
	o.Pause = MinPause
	r := run(t, o)
	challenging.mu.Lock()
	defer challenging.mu.Unlock()
	reqs, closes := 0, 0
	for _, frame := range challenging.heard {
		switch {
		case strings.HasPrefix(frame, `["REQ","probe-`):
			reqs++
			if !strings.Contains(frame, `"limit":`) {
				t.Errorf("without a limit: %s", frame)
			}
		case strings.HasPrefix(frame, `["CLOSE","probe-`):
			closes++
		default:
			t.Errorf("it sent %s", frame)
		}
	}
	if reqs != 6 || closes != 6 || challenging.dialed != 2 {
		t.Errorf("%d REQs, %d CLOSEs, %d connections, want 6, 6, 2", reqs, closes, challenging.dialed)
	}
	for i := range challenging.at {
		if i%3 > 0 && challenging.at[i].Sub(challenging.at[i-1]) < MinPause {
			t.Errorf("REQ %d came %v after the one before", i, challenging.at[i].Sub(challenging.at[i-1]))
		}
	}
	relay := r.Passes[0].Relays[0]
	if !relay.Auth || relay.Notices != 3 || relay.Notice != "\x1b[31mwelcome" || relay.Answers[0].Outcome != Complete {
		t.Errorf("%+v", relay)
	}
}

func TestWhatEndsAnAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) }) // after the parallel ones below
	note := world()[0].AppendJSON(nil)
	for _, c := range []struct {
		name    string
		answer  func(say func(string, ...any) bool, sub string) bool
		outcome Outcome
		reason  string
		again   int // connections after the first
	}{
		{"auth-required", func(say func(string, ...any) bool, sub string) bool {
			return say(`["CLOSED",%s,"auth-required: who are you?"]`, sub)
		}, AuthRequired, "who are you?", 0},
		{"closed", func(say func(string, ...any) bool, sub string) bool {
			return say(`["CLOSED",%s,"rate-limited: slow down"]`, sub)
		}, Closed, "rate-limited", 0},
		{"disconnected", func(say func(string, ...any) bool, sub string) bool {
			say(`["EVENT",%s,%s]`, sub, note)
			return false
		}, Disconnected, "connection", 2},
		{"silence", func(func(string, ...any) bool, string) bool { <-release; return false }, Stalled, "came within", 2},
		{"chatter about other things", func(say func(string, ...any) bool, sub string) bool {
			for say(`["NOTICE","wait"]`) && say(`["EVENT","other",%s]`, note) {
				time.Sleep(10 * time.Millisecond)
			}
			return false
		}, Stalled, "came within", 2},
		{"a flood", func(say func(string, ...any) bool, sub string) bool {
			for say(`["EVENT",%s,%s]`, sub, note) {
			}
			return false
		}, Flooded, "more than 120 events", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, url := serveScript(t, websocket.AcceptOptions{}, c.answer)
			o := asking(url)
			o.Authors = []corpus.PubKey{people()[0].PubKey}
			o.Checks = []receive.Checks{receive.Parallel}
			o.Limit = 10
			if c.outcome == Stalled {
				o.Stall = 500 * time.Millisecond
			}
			relay := run(t, o).Passes[0].Relays[0]
			for _, a := range relay.Answers {
				if a.Outcome != c.outcome || !strings.Contains(a.Reason, c.reason) || a.EndMs == nil {
					t.Errorf("%+v", a)
				}
			}
			if relay.Reconnects != c.again {
				t.Errorf("connected again %d times, want %d", relay.Reconnects, c.again)
			}
		})
	}
}

func TestCompressionIsOfferedOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	for _, offer := range []bool{false, true} {
		_, url := serveScript(t, websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover}, events(20))
		o := asking(url)
		o.Compression = offer
		o.Shapes = o.Shapes[:1]
		relay := run(t, o).Passes[0].Relays[0]
		if strings.Contains(relay.Extensions, "permessage-deflate") != offer || relay.Answers[0].Unique != 20 {
			t.Errorf("offered: %v, %+v", offer, relay)
		}
	}
}

func TestAnAnswerIsSmallHoweverManyAuthorsTheFeedHas(t *testing.T) {
	t.Parallel()
	s, url := serveScript(t, websocket.AcceptOptions{}, func(say func(string, ...any) bool, sub string) bool {
		for i := range 80 {
			k, err := corpus.NewSecretKey([32]byte{29: 9, 31: byte(i + 1)})
			if err != nil {
				t.Error(err)
				return false
			}
			e := corpus.Event{Kind: 1, CreatedAt: 1_700_000_000, Tags: []corpus.Tag{}}
			if err := k.Sign(&e, [32]byte{}); err != nil {
				t.Error(err)
				return false
			}
			say(`["EVENT",%s,%s]`, sub, e.AppendJSON(nil))
		}
		return say(`["EOSE",%s]`, sub)
	})
	o := asking(url)
	o.Checks = o.Checks[1:]
	run(t, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.heard, func(f string) bool { return strings.Contains(f, `"authors"`) })
	if i < 0 {
		t.Fatalf("nobody's metadata was asked for: %q", s.heard)
	}
	if n := strings.Count(s.heard[i], ",") + 1; !strings.Contains(s.heard[i], fmt.Sprintf(`"limit":%d`, MaxAuthors)) || n > MaxAuthors+6 {
		t.Errorf("%s", s.heard[i])
	}
}
