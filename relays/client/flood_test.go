package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/relays/client"
)

// TestAnAnswerWithoutEndIsEnded once it has twice as many events as were asked for, whatever they
// are, and is not asked for again.
func TestAnAnswerWithoutEndIsEnded(t *testing.T) {
	t.Parallel()
	const asked = 20
	events := fakes(asked, 1)
	pages := func(o client.Options) error {
		p := client.Pages{Options: o, Size: asked, Take: client.Each(func(*client.Event) {})}
		_, err := p.Run(context.Background())
		return err
	}
	byID := func(o client.Options) error {
		b := client.ByID{Options: o, Batch: asked, Retries: 3, Take: client.Each(func(*client.Event) {})}
		_, err := b.Run(context.Background(), ids(events))
		return err
	}
	once := func(o client.Options) error {
		_, err := client.Once(context.Background(), o, corpus.Filter{Limit: corpus.Int(asked)}, client.Each(func(*client.Event) {}))
		return err
	}
	for way, run := range map[string]func(client.Options) error{"pages": pages, "by id": byID, "once": once} {
		for kind, event := range map[string]func(n int) string{
			"invented":      func(n int) string { return fmt.Sprintf(`{"id":"%064x","created_at":%d}`, n, 1_600_000_000-n) },
			"the same":      func(int) string { return `{"id":"` + events[0].ID.String() + `","created_at":1700000000}` },
			"from tomorrow": func(n int) string { return fmt.Sprintf(`{"id":"%064x","created_at":9999999999}`, n) },
		} {
			t.Run(way+", "+kind, func(t *testing.T) {
				t.Parallel()
				var reqs atomic.Int64
				url := scripted(t, func(_ int, ws *websocket.Conn) {
					reqs.Add(1)
					answer(ws) // waits for the REQ
					for n := range 100_000 {
						if ws.Write(context.Background(), websocket.MessageText, []byte(`["EVENT","p1",`+event(n)+`]`)) != nil {
							return
						}
					}
				})
				var flood *client.FloodError
				if err := run(options(url)); !errors.As(err, &flood) || *flood != (client.FloodError{Sent: 2*asked + 1, Asked: asked}) {
					t.Errorf("%v", err)
				}
				if reqs.Load() != 1 {
					t.Errorf("asked %d times", reqs.Load())
				}
			})
		}
	}
}

// TestAnHonestAnswerIsNoFlood, though its last event stands in another one as well.
func TestAnHonestAnswerIsNoFlood(t *testing.T) {
	t.Parallel()
	url := scripted(t, func(_ int, ws *websocket.Conn) {
		event := func(n int) string { return fmt.Sprintf(`["EVENT","%%s",{"id":"%064x","created_at":1}]`, n) }
		answer(ws, event(1), event(2), event(1), event(2), `["EOSE","%s"]`)
	})
	stats, err := client.Once(context.Background(), options(url), corpus.Filter{Limit: corpus.Int(2)}, client.Each(func(*client.Event) {}))
	if err != nil || stats.Events != 4 {
		t.Errorf("%+v, %v", stats, err)
	}
}
