package load

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// BenchmarkQuery puts one query after another, each of which brings 100 events.
func BenchmarkQuery(b *testing.B) {
	events := make([]string, 100)
	for i := range events {
		events[i] = fake(i + 1)
	}
	var frame []byte
	url := answering(b, func(ws *websocket.Conn, sub json.RawMessage, n int) {
		if n%2 == 1 { // the CLOSE
			return
		}
		ctx := context.Background()
		for _, e := range events {
			frame = append(append(append(append(append(frame[:0], `["EVENT",`...), sub...), ','), e...), ']')
			ws.Write(ctx, websocket.MessageText, frame)
		}
		frame = append(append(append(frame[:0], `["EOSE",`...), sub...), ']')
		ws.Write(ctx, websocket.MessageText, frame)
	})
	a, err := NewQuerier(b.Context(), url, time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	var r Reply
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Query([]byte("{}"), &r); err != nil || len(r.IDs) != 100 {
			b.Fatal(err)
		}
	}
}
