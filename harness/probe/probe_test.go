package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness/receive"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
)

// people are the authors of these tests' events.
var people = sync.OnceValue(func() (keys []corpus.SecretKey) {
	for i := range 5 {
		k, err := corpus.NewSecretKey([32]byte{30: 1, 31: byte(i)})
		if err != nil {
			panic(err)
		}
		keys = append(keys, k)
	}
	return keys
})

// world is what all relays together could hold: notes, answers that mention somebody, and profiles.
var world = sync.OnceValue(func() (events []corpus.Event) {
	keys := people()
	add := func(k corpus.SecretKey, e corpus.Event) {
		e.CreatedAt = 1_700_000_000 + int64(len(events))
		if err := k.Sign(&e, [32]byte{}); err != nil {
			panic(err)
		}
		events = append(events, e)
	}
	for i := range 60 {
		add(keys[i%5], corpus.Event{Kind: 1, Tags: []corpus.Tag{}, Content: fmt.Sprintf("note %d %s", i, strings.Repeat("text ", i))})
	}
	for i := range 30 {
		add(keys[i%5], corpus.Event{Kind: 7, Tags: []corpus.Tag{{"p", keys[(i+1)%5].PubKey.String()}}, Content: "+"})
	}
	for _, k := range keys {
		add(k, corpus.Event{Kind: 0, Tags: []corpus.Tag{}, Content: `{"name":"somebody"}`})
	}
	return events
})

// serve starts a reference relay that holds the events, and misbehaves as the faults say.
func serve(t *testing.T, events []corpus.Event, faults ...string) string {
	t.Helper()
	return referencetest.Holding(t, events, reference.Options{}, faults...)
}

// asking are options that do not wait.
func asking(urls ...string) Options {
	return Options{URLs: urls, Shapes: []Shape{Global, Notifications, Metadata}, Checks: []receive.Checks{receive.Inline, receive.Parallel}, Limit: DefaultLimit, Pause: time.Millisecond, Stall: 20 * time.Second}
}

func run(t *testing.T, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Passes) != len(o.Checks) {
		t.Fatalf("%d passes, want %d", len(r.Passes), len(o.Checks))
	}
	for _, p := range r.Passes {
		if len(p.Relays) != len(o.URLs) {
			t.Fatalf("%d relays, want %d", len(p.Relays), len(o.URLs))
		}
		for _, relay := range p.Relays {
			if len(relay.Answers) != len(o.Shapes) {
				t.Fatalf("%d answers, want %d", len(relay.Answers), len(o.Shapes))
			}
		}
	}
	return r
}

func TestRelaysThatOverlapAreSeenTogether(t *testing.T) {
	t.Parallel()
	all := world()
	notes := all[:60]
	urls := []string{serve(t, all), serve(t, notes[:40]), serve(t, append(append([]corpus.Event{}, notes[20:]...), all[60:]...))}
	r := run(t, asking(urls...))
	for _, p := range r.Passes {
		for _, c := range []struct {
			shape     int
			received  []int
			delivered int64
			alone     []int
		}{{0, []int{60, 40, 40}, 60, []int{0, 0, 0}}, {1, []int{30, 0, 30}, 30, []int{0, 0, 0}}, {2, []int{5, 0, 5}, 5, []int{0, 0, 0}}} {
			unique := 0
			for i, relay := range p.Relays {
				a := relay.Answers[c.shape]
				if a.Outcome != Complete || a.Received != c.received[i] || a.Alone != c.alone[i] || a.Forged() != 0 || a.Unasked != 0 || a.AfterEnd != 0 {
					t.Errorf("%s, %s, relay %d: %+v, want %d events", p.Verified, a.Shape, i, a, c.received[i])
				}
				if a.Unique+int(a.Duplicates) != a.Received {
					t.Errorf("%s, relay %d: %d are new and %d duplicates of %d", a.Shape, i, a.Unique, a.Duplicates, a.Received)
				}
				if a.EndMs == nil || (a.FirstMs == nil) != (a.Received == 0) || a.FirstMs != nil && *a.FirstMs > *a.EndMs {
					t.Errorf("%s, relay %d: first event %v, EOSE %v", a.Shape, i, a.FirstMs, a.EndMs)
				}
				if s := a.FrameBytes; a.Received > 0 && (s == nil || s.P50 <= 0 || s.P50 > s.P99 || s.P99 > s.Max) {
					t.Errorf("%s, relay %d: frames %+v", a.Shape, i, s)
				}
				unique += a.Unique
			}
			if q := p.Consumption[c.shape]; int64(unique) != c.delivered || q.Delivered != c.delivered || q.DelayMs == nil || q.DelayMs.P50 <= 0 || q.DelayMs.P50 > q.DelayMs.Max || q.Busy <= 0 || q.CheckingMs <= 0 {
				t.Errorf("%s, %s: %d unique, %+v", p.Verified, q.Shape, unique, q)
			}
		}
		for i, relay := range p.Relays {
			if relay.ConnectMs == nil || relay.Answers[0].ReqMs == nil || *relay.Answers[0].ReqMs < *relay.ConnectMs || relay.Failure != "" || relay.Extensions != "" {
				t.Errorf("relay %d: %+v", i, relay)
			}
		}
	}
}

func TestWhatOneRelayAloneHasIsCounted(t *testing.T) {
	t.Parallel()
	notes := world()[:60]
	o := asking(serve(t, notes[:50]), serve(t, notes[40:]))
	o.Shapes = o.Shapes[:1]
	r := run(t, o)
	for i, want := range []int{40, 10} {
		if a := r.Passes[0].Relays[i].Answers[0]; a.Alone != want {
			t.Errorf("relay %d: %d alone, want %d", i, a.Alone, want)
		}
	}
}

// TestEveryFaultIsAnOutcomeOfItsOwn probes one relay with a fault beside an honest one, which must not suffer.
func TestEveryFaultIsAnOutcomeOfItsOwn(t *testing.T) {
	all := world()
	forged := append([]corpus.Event{}, all...)
	for i := range 10 {
		forged[2*i].Content = "forged"
		forged[2*i+1].Sig[9] ^= 1
	}
	for _, c := range []struct {
		name    string
		events  []corpus.Event
		fault   string
		outcome Outcome // of the global feed
		check   func(r *Relay, a *Answer) bool
	}{
		{"half-open", all, "half-open", NotReached, func(r *Relay, a *Answer) bool {
			return r.ConnectMs == nil && r.Failure != "" && a.Received == 0 && r.Answers[2].Outcome == NotReached
		}},
		{"garbage-frames", all, "garbage-frames", Complete, func(r *Relay, a *Answer) bool { return a.Received == 60 && r.Unknown+r.Notices > 0 && a.Forged() == 0 }},
		{"closed-midway", all, "closed-midway", Closed, func(r *Relay, a *Answer) bool { return a.Received == 30 && a.Reason != "" && r.Reconnects == 0 }},
		{"eose-early", all, "eose-early", Complete, func(_ *Relay, a *Answer) bool { return a.Received == 0 && a.AfterEnd == 60 }},
		{"extra-results", all, "extra-results", Complete, func(_ *Relay, a *Answer) bool { return a.Received == 61 && a.Unasked+int(a.Forged()) == 1 }},
		{"ignore-limit", all, "ignore-limit", Complete, func(_ *Relay, a *Answer) bool { return a.Received == 60 }},
		{"id-mismatch", all, "id-mismatch", Complete, func(_ *Relay, a *Answer) bool { return a.BadID+a.Duplicates == 60 && a.Unique == 0 }},
		{"no-verify with forged events", forged, "no-verify", Complete, func(_ *Relay, a *Answer) bool {
			return a.Received == 60 && a.BadID+a.BadSignature+a.Duplicates+int64(a.Unique) == 60
		}},
		{"drop-results", all, "drop-results:1", Complete, func(_ *Relay, a *Answer) bool { return a.Received == 0 && a.FirstMs == nil && a.EndMs != nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := asking(serve(t, c.events, c.fault), serve(t, all))
			if c.outcome == NotReached {
				o.Stall, o.Checks = 3*time.Second, o.Checks[:1]
			}
			r := run(t, o)
			for _, p := range r.Passes {
				bad, honest := &p.Relays[0], &p.Relays[1]
				if a := &bad.Answers[0]; a.Outcome != c.outcome || !c.check(bad, a) {
					t.Errorf("%s: %+v\n%+v", p.Verified, bad, a)
				}
				for i, want := range []int{60, 30, 5} {
					if a := honest.Answers[i]; a.Outcome != Complete || a.Received != want || a.Forged() != 0 {
						t.Errorf("%s: the honest relay: %+v", p.Verified, a)
					}
				}
			}
		})
	}
}

func TestForgedEventsAloneAreToldByReason(t *testing.T) {
	t.Parallel()
	events := append([]corpus.Event{}, world()[:20]...)
	for i := range 5 {
		events[i].Content = "forged"
	}
	for i := 5; i < 8; i++ {
		events[i].Sig[9] ^= 1
	}
	o := asking(serve(t, events, "no-verify"))
	o.Shapes = o.Shapes[:1]
	for _, p := range run(t, o).Passes {
		if a := p.Relays[0].Answers[0]; a.BadID != 5 || a.BadSignature != 3 || a.Unique != 12 || a.Alone != 12 || a.Duplicates != 0 {
			t.Errorf("%s: %+v", p.Verified, a)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	r := run(t, asking("ws://"+l.Addr().String()))
	relay := r.Passes[0].Relays[0]
	if relay.Failure == "" || relay.Answers[0].Outcome != NotReached || relay.Answers[1].Outcome != NotAsked || relay.Answers[1].Reason == "" {
		t.Errorf("%+v", relay)
	}
}

func TestAHostThatNobodyKnowsIsNotReached(t *testing.T) {
	t.Parallel()
	o := asking("ws://no-such-host.invalid:7777") // a name that never exists (RFC 2606)
	o.Shapes = o.Shapes[:1]
	relay := run(t, o).Passes[0].Relays[0]
	if relay.Answers[0].Outcome != NotReached || relay.Failure == "" || strings.Contains(relay.Failure, ":53") {
		t.Errorf("%+v", relay)
	}
}

func TestAuthorsGivenAreAskedFor(t *testing.T) {
	t.Parallel()
	o := asking(serve(t, world()))
	o.Shapes = []Shape{Notifications, Metadata}
	o.Authors = []corpus.PubKey{people()[0].PubKey}
	r := run(t, o)
	for i, want := range []int{6, 1} {
		if a := r.Passes[0].Relays[0].Answers[i]; a.Received != want || a.Unique != want {
			t.Errorf("%+v, want %d events", a, want)
		}
	}
}

func TestAProbeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	o := asking(serve(t, world()), serve(t, nil, "half-open"))
	o.Progress = func(string) { time.AfterFunc(50*time.Millisecond, func() { cancel(why) }) }
	r, err := Run(ctx, o)
	if err != why || r == nil {
		t.Errorf("%v", err)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}
