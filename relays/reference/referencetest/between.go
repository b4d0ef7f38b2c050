package referencetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/relays/wire"
)

// Between stands between clients and a relay and passes messages on, as a line does that may fail
// or be listened to.
type Between struct {
	Accept *websocket.AcceptOptions
	// Relay chooses the relay for the nth connection, counted from 1; nil is the one given to Serve
	// for each.
	Relay func(n int) (url string)
	// Up and Down see each message of a client and of the relay. Where Down returns false the
	// connection is dropped after it. They may be nil.
	Up   func(message []byte)
	Down func(n int, message []byte) bool
}

// Serve serves until the test ends, and returns the URL.
func (b Between) Serve(t testing.TB, relay string) (url string) {
	t.Helper()
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, b.Accept)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(1 << 20)
		n, to := int(count.Add(1)), relay
		if b.Relay != nil {
			to = b.Relay(n)
		}
		b.pass(n, ws, to)
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

func (b Between) pass(n int, ws *websocket.Conn, relay string) {
	ctx := context.Background()
	handshake, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := wire.Dial(handshake, relay, wire.Options{})
	if err != nil { // a relay that does not answer leaves its client waiting
		_, _, _ = ws.Read(ctx)
		return
	}
	defer conn.Abort()
	go func() {
		defer conn.Abort()
		for {
			_, data, err := ws.Read(ctx)
			if err != nil {
				return
			}
			if b.Up != nil {
				b.Up(data)
			}
			if conn.Send(data) != nil || conn.Flush() != nil {
				return
			}
		}
	}()
	for {
		frame, _, err := conn.Read()
		if err != nil || ws.Write(ctx, websocket.MessageText, frame) != nil || b.Down != nil && !b.Down(n, frame) {
			return
		}
	}
}
