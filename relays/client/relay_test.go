package client_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
)

// fakes makes events whose ids and signatures are made up, perSecond of them in each second.
func fakes(n, perSecond int) []corpus.Event {
	events := make([]corpus.Event, n)
	for i := range events {
		e := &events[i]
		binary.BigEndian.PutUint64(e.ID[:], uint64(i+1)*0x9e3779b97f4a7c15)
		e.PubKey[0], e.PubKey[31] = byte(i%7), 1
		e.CreatedAt, e.Kind, e.Tags, e.Content = int64(1_700_000_000+i/perSecond), 1, []corpus.Tag{}, fmt.Sprintf("event %d", i)
	}
	return events
}

// serve is a reference relay that holds the events and asks nobody for genuine ones.
func serve(t *testing.T, events []corpus.Event, o reference.Options, faults ...string) (url string) {
	t.Helper()
	o.NoVerify = true
	return referencetest.Holding(t, events, o, faults...)
}

// scripted is a relay that does what the test says with each connection.
func scripted(t *testing.T, talk func(number int, ws *websocket.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	count := 0
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		mu.Lock()
		count++
		n := count
		mu.Unlock()
		talk(n, ws)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return "ws://" + l.Addr().String()
}

// gathered counts how often each id came.
type gathered struct {
	mu    sync.Mutex
	times map[corpus.ID]int
}

func (g *gathered) take() client.Take {
	g.times = make(map[corpus.ID]int)
	return client.Each(func(e *client.Event) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.times[e.ID]++
	})
}

// check demands every event, each exactly once unless twice is said to be allowed.
func (g *gathered) check(t *testing.T, events []corpus.Event, twice bool) {
	t.Helper()
	missing, repeated := 0, 0
	for i := range events {
		switch n := g.times[events[i].ID]; {
		case n == 0:
			missing++
		case n > 1:
			repeated++
		}
		delete(g.times, events[i].ID)
	}
	if missing > 0 || len(g.times) > 0 || repeated > 0 && !twice {
		t.Errorf("of %d events %d are missing, %d came more than once, %d strangers came", len(events), missing, repeated, len(g.times))
	}
}

// options give up soon what never comes.
func options(url string) client.Options {
	return client.Options{URL: url, Stall: 5 * time.Second, Attempts: 4, Backoff: time.Millisecond}
}
