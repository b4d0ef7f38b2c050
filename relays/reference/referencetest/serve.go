// Package referencetest serves reference relays to the tests of other packages, as
// net/http/httptest serves HTTP.
package referencetest

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/reference"
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
	rest := events
	err := reference.NewImporter(store, reference.ImportOptions{NoVerify: true}).Run(context.Background(), func(dst []byte) ([]byte, bool, error) {
		if len(rest) == 0 {
			return dst, false, io.EOF
		}
		dst = rest[0].AppendJSON(dst)
		rest = rest[1:]
		return dst, true, nil
	})
	if err != nil {
		t.Fatalf("filling a store: %v", err)
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url = "ws://" + l.Addr().String()
	if secure != nil {
		l, url = tls.NewListener(l, secure), "wss://"+l.Addr().String()
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- reference.Serve(ctx, l, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return url
}
