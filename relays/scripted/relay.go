package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/relays/reference"
	"relaybench/relays/wire"
)

// relay is one boot of a scripted relay.
type relay struct {
	counts *Counts
	behind string // address of the reference relay
	kill   func() // does not return where there is a process to kill

	events, reqs, sent atomic.Int64 // after the honest ones: what every n-th counts
	taken              atomic.Int64 // all EVENTs of this boot
	opened             atomic.Int64 // NEG-OPENs after the honest ones
	thaw               atomic.Int64 // wire.Now until which nothing moves
	hidden             sync.Map     // by an event's text: how many answers would have held it

	*load
}

var honest Script

// now is the script as it holds at the moment.
func (r *relay) now() *Script {
	if r.taken.Load() < int64(r.script.Honest) {
		return &honest
	}
	return r.script
}

// must is for what cannot fail unless the script is wrong or the machine is full: the test has no
// use for the error.
func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(fmt.Errorf("scripted relay: %w", err))
	}
}

// openStore opens what the relay keeps its events in.
func openStore(s *Script, dir string) reference.Store {
	kind := "memory"
	if s.persists() {
		kind = "bolt"
	}
	return must(reference.OpenStore(kind, filepath.Join(dir, "events"), reference.DurabilityBatch))
}

// serve serves until ctx ends.
func serve(ctx context.Context, l net.Listener, s Script, dir string, counts *Counts, kill func()) {
	if s.ForgetOnStart {
		check(os.RemoveAll(filepath.Join(dir, "events")))
	}
	stopped := filepath.Join(dir, "stopped")
	if _, err := os.Stat(stopped); err == nil {
		if s.StartOnce {
			os.Exit(1)
		}
		s.Faults = append(s.Faults, "wrong-order")
	}
	inner := must(net.Listen("tcp", "127.0.0.1:0"))
	r := &relay{counts: counts, kill: kill, behind: inner.Addr().String(), load: newLoad(&s, dir)}
	o := reference.Options{Store: openStore(&s, dir), URL: "ws://" + l.Addr().String(), Name: "scripted relay",
		StopTime: 100 * time.Millisecond, Faults: must(reference.ParseFaults(s.Faults))}
	talking, hangUp := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { check(reference.Serve(talking, inner, o)) })
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.handle(talking, w, q) })}
	go server.Serve(wire.BufferedListener(l))
	counts.Boots.add()
	<-ctx.Done()
	pause(context.Background(), s.StopAfter)
	server.Close()
	hangUp()
	serving.Wait()
	lose(o.Store, s.LoseOnStop, counts)
	check(o.Store.Close())
	if s.ReverseOnStop || s.StartOnce {
		check(os.WriteFile(stopped, nil, 0o600))
	}
	r.load.end()
	counts.Stops.add()
}

// lose makes a store forget every n-th of its events, in the order of answers.
func lose(store reference.Store, every int, counts *Counts) {
	check(store.Update(func(tx reference.Tx) error {
		cursor := tx.Scan(reference.NewQuery(&corpus.Filter{}, 0), reference.Position{})
		var gone []reference.Record
		n := int64(1)
		for rec := cursor.Next(); rec != nil; rec = cursor.Next() {
			if nth(n, every) {
				gone = append(gone, reference.Record{Seq: rec.Seq, CreatedAt: rec.CreatedAt, ID: rec.ID})
			}
			n++
		}
		for i := range gone {
			tx.Remove(&gone[i])
			counts.Lost.add()
		}
		return nil
	}))
}

// pause waits for d, or for ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(max(d, 0)):
	case <-ctx.Done():
	}
}

// thawed waits while everything is frozen.
func (r *relay) thawed(ctx context.Context) {
	for left := r.thaw.Load() - int64(wire.Now()); left > 0 && ctx.Err() == nil; left = r.thaw.Load() - int64(wire.Now()) {
		pause(ctx, time.Duration(left))
	}
}

func (r *relay) handle(ctx context.Context, w http.ResponseWriter, q *http.Request) {
	r.thawed(ctx)
	switch upgrade := strings.EqualFold(q.Header.Get("Upgrade"), "websocket"); {
	case !upgrade && r.script.NIP11 != "":
		w.Header().Set("Content-Type", "application/nostr+json")
		fmt.Fprint(w, r.script.NIP11)
		return
	case !upgrade:
		httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: r.behind}).ServeHTTP(w, q)
		return
	}
	pause(ctx, r.now().AcceptAfter)
	ws, err := websocket.Accept(w, q, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return
	}
	defer ws.CloseNow()
	ws.SetReadLimit(1 << 20) // that of the relay behind
	back, err := wire.Dial(ctx, "ws://"+r.behind, wire.Options{ReadLimit: 64 << 20})
	if err != nil {
		return
	}
	r.counts.Connections.add()
	l := &line{relay: r, ws: ws, back: back, wake: make(chan struct{}, 1), asked: map[string]time.Duration{}, sent: map[corpus.ID]event{}, subs: map[string]*subscription{}}
	l.run(ctx)
}

// reason is that of the n-th refusal.
func (s *Script) reason(n int64) string {
	if len(s.RefuseReasons) == 0 {
		return "blocked: by script"
	}
	return s.RefuseReasons[int(n-1)%len(s.RefuseReasons)]
}

// altered returns an event with the script's values in place of its own; what is no object stays as
// it is.
func (s *Script) altered(text []byte) []byte {
	fields := map[string]json.RawMessage{}
	if len(s.Alter) == 0 || json.Unmarshal(text, &fields) != nil {
		return text
	}
	for name, value := range s.Alter {
		fields[name] = json.RawMessage(value)
	}
	return must(json.Marshal(fields))
}

// message makes a message of a label and elements that are JSON already.
func message(label string, elements ...[]byte) []byte {
	return fmt.Appendf(nil, `["%s",%s]`, label, bytes.Join(elements, []byte{','}))
}

func quoted(text string) []byte { return corpus.AppendString(nil, text) }

func okMessage(id corpus.ID, accepted bool, reason string) []byte {
	return message("OK", quoted(id.String()), fmt.Append(nil, accepted), quoted(reason))
}
