package negentropy

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/relays/wire"
)

// testRelay is a small relay with NIP-77.
type testRelay struct {
	set        Storage
	frameLimit int
	max        int    // records; 0 for any number
	widest     uint64 // range of time that is not refused, in seconds; 0 for any
	tellMax    string // what follows the reason in a refusal of too many
	greeting   []string
	before     []string // frames before each answer; %s is the subscription
	closing    func(round int, send func(format string, args ...any)) bool

	opened, closed atomic.Int64 // NEG-OPEN and NEG-CLOSE
}

func (r *testRelay) serve(ws *websocket.Conn) {
	ctx := context.Background()
	send := func(format string, args ...any) {
		ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, format, args...))
	}
	for _, frame := range r.greeting {
		send("%s", frame)
	}
	responders, rounds := map[string]*Responder{}, map[string]int{}
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return
		}
		var frame []json.RawMessage
		var label, sub, text string
		if json.Unmarshal(data, &frame) != nil || len(frame) < 2 || json.Unmarshal(frame[0], &label) != nil || json.Unmarshal(frame[1], &sub) != nil {
			send(`["NOTICE","not a message: %q"]`, data)
			continue
		}
		switch label {
		case "NEG-OPEN":
			r.opened.Add(1)
			var filter struct {
				Since int64
				Until *int64
			}
			if err := json.Unmarshal(frame[2], &filter); err != nil {
				send(`["NEG-ERR",%q,"invalid: %s"]`, sub, err)
				continue
			}
			until := Infinity
			if filter.Until != nil {
				until = uint64(*filter.Until)
			}
			set := Between(r.set, uint64(filter.Since), until)
			if r.max > 0 && set.Len() > r.max || r.widest > 0 && until-uint64(filter.Since) >= r.widest {
				send(`["NEG-ERR",%q,"blocked: too many query results"%s]`, sub, r.tellMax)
				continue
			}
			responders[sub] = NewResponder(set, r.frameLimit)
		case "NEG-CLOSE":
			r.closed.Add(1)
			delete(responders, sub)
			continue
		}
		json.Unmarshal(frame[len(frame)-1], &text)
		message, err := DecodeHex(nil, []byte(text))
		if err != nil {
			send(`["NEG-ERR",%q,"invalid: %s"]`, sub, err)
			continue
		}
		for _, frame := range r.before {
			send("%s", strings.ReplaceAll(frame, "%s", sub))
		}
		if rounds[sub]++; r.closing != nil && r.closing(rounds[sub], func(format string, args ...any) { send(format, append([]any{sub}, args...)...) }) {
			continue
		}
		reply, err := responders[sub].Next(nil, message)
		if err != nil {
			send(`["NEG-ERR",%q,"invalid: %s"]`, sub, err)
			continue
		}
		send(`["NEG-MSG",%q,"%s"]`, sub, AppendHex(nil, reply))
	}
}

// startRelay serves connections and returns the URL.
func startRelay(t testing.TB, serve func(ws *websocket.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(4 << 20)
		serve(ws)
	})}
	go server.Serve(wire.BufferedListener(l))
	t.Cleanup(func() { server.Close() })
	return "ws://" + l.Addr().String()
}

func dial(t testing.TB, url string) *wire.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := wire.Dial(ctx, url, wire.Options{ReadLimit: MinReadLimit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Abort)
	return conn
}

// scripted answers each frame of the client with what script makes of its subscription and count.
func scripted(script func(ws *websocket.Conn, sub string, n int)) func(ws *websocket.Conn) {
	return func(ws *websocket.Conn) {
		for n := 0; ; n++ {
			_, data, err := ws.Read(context.Background())
			if err != nil {
				return
			}
			var frame []json.RawMessage
			var sub string
			json.Unmarshal(data, &frame)
			json.Unmarshal(frame[1], &sub)
			script(ws, sub, n)
		}
	}
}

func say(ws *websocket.Conn, format string, args ...any) {
	ws.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, format, args...))
}
