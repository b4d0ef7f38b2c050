// Package referencetest serves reference relays to the tests of other packages, as
// net/http/httptest serves HTTP.
package referencetest

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/reference"
	"relaybench/relays/wire"
)

// Holding serves a relay that holds these events, whether they are genuine or not, and misbehaves
// as the faults say. It returns its URL.
func Holding(t testing.TB, events []corpus.Event, o reference.Options, faults ...string) (url string) {
	t.Helper()
	var err error
	if o.Faults, err = reference.ParseFaults(faults); err != nil {
		t.Fatal(err)
	}
	o.Store = Filled(t, events)
	return Serve(t, o)
}

// Events are the events of a corpus, for Holding.
func Events(t testing.TB, c *corpus.Corpus) []corpus.Event {
	t.Helper()
	events := make([]corpus.Event, c.Len())
	for i := range events {
		var err error
		if events[i], err = c.Event(i); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

// Filled is a store that a relay which believes everything has filled with the events.
func Filled(t testing.TB, events []corpus.Event) reference.Store {
	t.Helper()
	store := reference.NewMemory()
	t.Cleanup(func() { store.Close() })
	if len(events) == 0 {
		return store
	}
	ctx, cancel := context.WithCancel(context.Background())
	url, ended := serve(t, ctx, reference.Options{Store: store, NoVerify: true, StopTime: 100 * time.Millisecond}, nil)
	defer ended()
	defer cancel()
	conn, err := wire.Dial(ctx, url, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Abort()
	conn.WatchUseful(time.Minute)
	for i := range events {
		if err := conn.SendEvent(events[i].AppendJSON(nil)); err != nil {
			t.Fatal(err)
		}
	}
	for range events {
		frame, _, err := conn.Read()
		var m wire.Message
		if wire.Parse(frame, &m); err != nil || m.Type != wire.OK {
			t.Fatalf("filling a store: %s, %v", frame, err)
		}
	}
	return store
}

// Serve serves a relay until the test ends, and returns its URL.
func Serve(t testing.TB, o reference.Options) (url string) { return ServeTLS(t, o, nil) }

// ServeTLS is Serve with TLS where secure is not nil.
func ServeTLS(t testing.TB, o reference.Options, secure *tls.Config) (url string) {
	t.Helper()
	if o.StopTime == 0 {
		o.StopTime = 100 * time.Millisecond // nobody's answer is waited for when a test is over
	}
	ctx, cancel := context.WithCancel(context.Background())
	url, ended := serve(t, ctx, o, secure)
	t.Cleanup(func() {
		cancel()
		ended()
	})
	return url
}

// serve returns what waits for the relay's end.
func serve(t testing.TB, ctx context.Context, o reference.Options, secure *tls.Config) (url string, ended func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url = "ws://" + l.Addr().String()
	if secure != nil {
		l, url = tls.NewListener(l, secure), "wss://"+l.Addr().String()
	}
	served := make(chan error, 1)
	go func() { served <- reference.Serve(ctx, l, o) }()
	return url, func() {
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	}
}
