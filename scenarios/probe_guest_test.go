package scenarios

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
	"relaybench/results"
)

// heardScript is a relay that answers each REQ as a test says, and keeps what it was sent.
type heardScript struct {
	mu     sync.Mutex
	heard  []string
	dialed int
	at     []time.Time // of the REQs
}

// serveScript starts it. answer returns false to end the connection.
func serveScript(t *testing.T, options websocket.AcceptOptions, answer func(say func(format string, args ...any) bool, sub string) bool) (*heardScript, string) {
	t.Helper()
	s := &heardScript{}
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

// notes says the first n notes and EOSE.
func notes(n int) func(say func(string, ...any) bool, sub string) bool {
	return func(say func(string, ...any) bool, sub string) bool {
		for _, e := range probeWorld()[:n] {
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
		return notes(10)(say, sub)
	})
	o := asking(url)
	o.Pause = MinProbePause
	r := probe(t, o)
	challenging.mu.Lock()
	defer challenging.mu.Unlock()
	reqs, closes := 0, 0
	for _, frame := range challenging.heard {
		switch {
		case strings.HasPrefix(frame, `["REQ","p`):
			reqs++
			if !strings.Contains(frame, `"limit":`) {
				t.Errorf("without a limit: %s", frame)
			}
		case strings.HasPrefix(frame, `["CLOSE","p`):
			closes++
		default:
			t.Errorf("it sent %s", frame)
		}
	}
	if reqs != 6 || closes != 6 || challenging.dialed != 2 {
		t.Errorf("%d REQs, %d CLOSEs, %d connections, want 6, 6, 2", reqs, closes, challenging.dialed)
	}
	for i := range challenging.at {
		if i%3 > 0 && challenging.at[i].Sub(challenging.at[i-1]) < MinProbePause {
			t.Errorf("REQ %d came %v after the one before", i, challenging.at[i].Sub(challenging.at[i-1]))
		}
	}
	relay := r[0].relays[0]
	if !relay.auth || relay.notices != 3 || relay.notice != "\x1b[31mwelcome" || relay.answers[0].outcome != "" {
		t.Errorf("%+v", relay)
	}
}

func TestWhatEndsAnAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) }) // after the parallel ones below
	note := probeWorld()[0].AppendJSON(nil)
	for _, c := range []struct {
		name    string
		answer  func(say func(string, ...any) bool, sub string) bool
		outcome string
		reason  string
		again   int // connections after the first
	}{
		{"auth-required", func(say func(string, ...any) bool, sub string) bool {
			return say(`["CLOSED",%s,"auth-required: who are you?"]`, sub)
		}, results.CauseAuthRequired, "who are you?", 0},
		{"closed", func(say func(string, ...any) bool, sub string) bool {
			return say(`["CLOSED",%s,"rate-limited: slow down"]`, sub)
		}, results.CauseClosed, "rate-limited", 0},
		{"disconnected", func(say func(string, ...any) bool, sub string) bool {
			say(`["EVENT",%s,%s]`, sub, note)
			return false
		}, results.CauseDisconnected, "connection", 2},
		{"silence", func(func(string, ...any) bool, string) bool { <-release; return false }, results.CauseStalled, "stalled", 2},
		{"chatter about other things", func(say func(string, ...any) bool, sub string) bool {
			for say(`["NOTICE","wait"]`) && say(`["EVENT","other",%s]`, note) {
				time.Sleep(10 * time.Millisecond)
			}
			return false
		}, results.CauseStalled, "stalled", 2},
		{"a flood", func(say func(string, ...any) bool, sub string) bool {
			for say(`["EVENT",%s,%s]`, sub, note) {
			}
			return false
		}, results.CauseFlooded, "121 events where", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, url := serveScript(t, websocket.AcceptOptions{}, c.answer)
			o := asking(url)
			o.Authors = []corpus.PubKey{probePeople()[0].PubKey}
			o.Checks = []receive.Checks{receive.Parallel}
			o.Limit = 10
			if c.outcome == results.CauseStalled {
				o.stall = 500 * time.Millisecond
			}
			relay := probe(t, o)[0].relays[0]
			for _, a := range relay.answers {
				if a.outcome != c.outcome || !strings.Contains(a.reason, c.reason) || a.eose == nil {
					t.Errorf("%+v", a)
				}
			}
			if relay.reconnects != c.again {
				t.Errorf("connected again %d times, want %d", relay.reconnects, c.again)
			}
		})
	}
}

func TestCompressionIsOfferedOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	for _, offer := range []bool{false, true} {
		_, url := serveScript(t, websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover}, notes(20))
		o := asking(url)
		o.Compression = offer
		o.Shapes = o.Shapes[:1]
		relay := probe(t, o)[0].relays[0]
		if strings.Contains(relay.extensions, "permessage-deflate") != offer || relay.answers[0].fresh != 20 {
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
	probe(t, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.heard, func(f string) bool { return strings.Contains(f, `"authors"`) })
	if i < 0 {
		t.Fatalf("nobody's metadata was asked for: %q", s.heard)
	}
	if n := strings.Count(s.heard[i], ",") + 1; !strings.Contains(s.heard[i], fmt.Sprintf(`"limit":%d`, MaxProbeAuthors)) || n > MaxProbeAuthors+6 {
		t.Errorf("%s", s.heard[i])
	}
}
