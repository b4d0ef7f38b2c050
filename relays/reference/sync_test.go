package reference

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
)

// epoch is a time at which nothing has expired.
func epoch() time.Time { return time.Unix(0, 0) }

// serveEvents serves a store that holds these events, taken on trust.
func serveEvents(t *testing.T, events []corpus.Event, o Options) (url string, s Store) {
	t.Helper()
	s, seq := Store(NewMemory()), uint64(0)
	admitAll(t, s, &seq, events)
	o.Store, o.NoVerify, o.Now = s, true, epoch
	url, stop := startServing(t, o)
	t.Cleanup(stop)
	return url, s
}

func syncOptions(o SyncOptions) SyncOptions {
	o.NoVerify, o.Now, o.Stall = true, epoch, 20*time.Second
	o.Batch, o.InFlight, o.Window = 20, 3, 7 // so that there are many
	return o
}

func TestASyncBothWaysMakesBothHoldTheSame(t *testing.T) {
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 77))
		// What a relay remembers of events that are gone, as a deleted version that outdates older
		// ones, is in no event that could be exchanged.
		events := slices.DeleteFunc(randomEvents(random, 640), func(e corpus.Event) bool { return e.Kind == corpus.KindVanish || e.Kind == corpus.KindDeletion })
		theirs, ours := events[:len(events)*2/3], events[len(events)/3:]
		whole, seq := NewMemory(), uint64(0)
		admitAll(t, whole, &seq, events)
		want := ask(t, whole, corpus.Filter{})
		for name, s := range stores(t) {
			url, served := serveEvents(t, theirs, Options{})
			seq := s.LastSeq()
			admitAll(t, s, &seq, ours)
			done, err := Sync(t.Context(), s, url, syncOptions(SyncOptions{Down: true, Up: true}))
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			if got := ask(t, s, corpus.Filter{}); !slices.Equal(got, want) {
				t.Errorf("seed %d, %s: the store holds %d events, want %d: %+v", seed, name, len(got), len(want), done)
			}
			if got := ask(t, served, corpus.Filter{}); !slices.Equal(got, want) {
				t.Errorf("seed %d, %s: the relay holds %d events, want %d: %+v", seed, name, len(got), len(want), done)
			}
			if done.LeftDown+done.LeftUp > 0 || done.Rounds < 2 || done.Stored == 0 || done.Accepted == 0 || done.Unanswered > 0 || done.Missing > 0 {
				t.Errorf("seed %d, %s: %+v", seed, name, done)
			}
			again, err := Sync(t.Context(), s, url, syncOptions(SyncOptions{Down: true, Up: true}))
			if err != nil || again.Rounds != 1 || again.Asked+again.Sent > 0 {
				t.Errorf("a second time: %+v, %v", again, err)
			}
		}
	}
}

func TestASyncCarriesDeletionsOver(t *testing.T) {
	gone, kept := fake(1, 1, 100, "gone"), fake(1, 1, 150, "kept")
	deletion := fake(1, corpus.KindDeletion, 200, "", corpus.Tag{"e", gone.ID.String()})
	for _, test := range []struct{ theirs, ours []corpus.Event }{
		{[]corpus.Event{gone, kept}, []corpus.Event{deletion}},
		{[]corpus.Event{deletion}, []corpus.Event{gone, kept}},
	} {
		url, served := serveEvents(t, test.theirs, Options{})
		s, seq := NewMemory(), uint64(0)
		admitAll(t, s, &seq, test.ours)
		done, err := Sync(t.Context(), s, url, syncOptions(SyncOptions{Down: true, Up: true}))
		for _, side := range []Store{s, served} {
			if got := ask(t, side, corpus.Filter{}); err != nil || !slices.Equal(got, []corpus.ID{deletion.ID, kept.ID}) {
				t.Errorf("held: %v: %+v, %v", got, done, err)
			}
		}
	}
}

func TestASyncGoesOnlyTheWayItIsTold(t *testing.T) {
	theirs, ours := fake(1, 1, 100, "theirs"), fake(2, 1, 200, "ours")
	for _, test := range []struct {
		o            SyncOptions
		store, relay int
	}{{SyncOptions{Down: true}, 2, 1}, {SyncOptions{Up: true}, 1, 2}} {
		url, served := serveEvents(t, []corpus.Event{theirs}, Options{})
		s, seq := NewMemory(), uint64(0)
		admitAll(t, s, &seq, []corpus.Event{ours})
		done, err := Sync(t.Context(), s, url, syncOptions(test.o))
		if got := []int{len(ask(t, s, corpus.Filter{})), len(ask(t, served, corpus.Filter{}))}; err != nil || !slices.Equal(got, []int{test.store, test.relay}) {
			t.Errorf("%+v: store and relay hold %v: %+v, %v", test.o, got, done, err)
		}
	}
}

func TestASyncEndsWhereTheRelayKeepsEventsBack(t *testing.T) {
	events := randomEvents(rand.New(rand.NewPCG(5, 5)), 400)
	faults, err := ParseFaults([]string{"drop-results:0.2"})
	if err != nil {
		t.Fatal(err)
	}
	url, served := serveEvents(t, events, Options{Faults: faults})
	s := NewMemory()
	done, err := Sync(t.Context(), s, url, syncOptions(SyncOptions{Down: true}))
	held := len(ask(t, s, corpus.Filter{}))
	if err != nil || done.Missing == 0 || done.LeftDown == 0 || held+done.LeftDown != len(ask(t, served, corpus.Filter{})) {
		t.Errorf("%d held: %+v, %v", held, done, err)
	}
}

func TestASyncTakesNoForgeries(t *testing.T) {
	good := note(testKey(1), 100, "good")
	forged := note(testKey(1), 200, "forged")
	forged.Sig[0] ^= 1
	url, _ := serveEvents(t, []corpus.Event{good, forged}, Options{})
	s := NewMemory()
	o := syncOptions(SyncOptions{Down: true})
	o.NoVerify = false
	done, err := Sync(t.Context(), s, url, o)
	if got := ask(t, s, corpus.Filter{}); err != nil || len(got) != 1 || got[0] != good.ID || done.Invalid == 0 || done.LeftDown != 1 {
		t.Errorf("%v held: %+v, %v", got, done, err)
	}
}

func TestASyncWithWhatCannotReconcileSaysSo(t *testing.T) {
	answers := func(text string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer c.CloseNow()
			for {
				if _, _, err := c.Read(r.Context()); err != nil {
					return
				}
				if text != "" {
					_ = c.Write(r.Context(), websocket.MessageText, []byte(text))
				}
			}
		}))
		t.Cleanup(server.Close)
		return strings.Replace(server.URL, "http", "ws", 1)
	}
	o := syncOptions(SyncOptions{Down: true})
	o.Stall = 300 * time.Millisecond
	for _, text := range []string{"", `["NOTICE","unknown command NEG-OPEN"]`} {
		if done, err := Sync(t.Context(), NewMemory(), answers(text), o); !errors.Is(err, ErrNoNegentropy) {
			t.Errorf("%q: %+v, %v", text, done, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := Sync(t.Context(), NewMemory(), "ws://"+l.Addr().String(), o); err == nil {
		t.Error("nobody was there, and it went well")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := Sync(ctx, NewMemory(), answers(""), o); err == nil || err.Error() != "enough" {
		t.Errorf("interrupted: %v", err)
	}
}
