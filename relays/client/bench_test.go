package client_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/wire"
)

// answering serves a relay that answers each REQ with the same events, for next to nothing.
func answering(b *testing.B, events []corpus.Event) (url string) {
	tails := make([][]byte, len(events))
	for i := range events {
		tails[i] = append(append([]byte(`",`), events[i].AppendJSON(nil)...), ']')
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(1 << 20)
		ctx := context.Background()
		var frame []byte
		for {
			_, text, err := ws.Read(ctx)
			if err != nil {
				return
			}
			sub, isREQ := bytes.CutPrefix(text, []byte(`["REQ","`))
			if !isREQ {
				continue
			}
			sub, _, _ = bytes.Cut(sub, []byte(`"`))
			for _, tail := range tails {
				frame = append(append(append(frame[:0], `["EVENT","`...), sub...), tail...)
				if ws.Write(ctx, websocket.MessageText, frame) != nil {
					return
				}
			}
			frame = append(append(append(frame[:0], `["EOSE","`...), sub...), `"]`...)
			if ws.Write(ctx, websocket.MessageText, frame) != nil {
				return
			}
		}
	}))
	server.Listener = wire.BufferedListener(server.Listener)
	server.Start()
	b.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

// BenchmarkByID fetches events by their ids, 500 in one REQ.
func BenchmarkByID(b *testing.B) {
	events := fakes(500, 3)
	url := answering(b, events)
	asked := ids(events)
	b.ReportAllocs()
	for b.Loop() {
		by := client.ByID{Options: client.Options{URL: url}, Batch: 500, InFlight: 1, Take: client.Each(func(*client.Event) {})}
		for range 20 {
			if done, err := by.Run(b.Context(), asked); err != nil || done.Events != 500 {
				b.Fatal(done, err)
			}
		}
	}
}

// BenchmarkOnce fetches the same with one REQ for all.
func BenchmarkOnce(b *testing.B) {
	url := answering(b, fakes(20_000, 3))
	b.ReportAllocs()
	for b.Loop() {
		filter := corpus.Filter{Limit: corpus.Int(20_000)}
		if s, err := client.Once(b.Context(), client.Options{URL: url}, filter, client.Each(func(*client.Event) {})); err != nil || s.Events != 20_000 {
			b.Fatal(s, err)
		}
	}
}
