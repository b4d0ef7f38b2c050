package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
)

func ids(events []corpus.Event) (list []corpus.ID) {
	for i := range events {
		list = append(list, events[i].ID)
	}
	return list
}

func TestByIDBringsEveryEventOnce(t *testing.T) {
	events := fakes(3000, 3)
	url := serve(t, events, reference.Options{MaxSubscriptions: 20})
	for _, c := range []struct {
		conns, inFlight, batch int
		adaptive, compress     bool
	}{{1, 1, 50, false, false}, {4, 8, 125, false, false}, {16, 20, 250, false, false}, {2, 16, 10, true, false}, {2, 4, 100, false, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			var got gathered
			o := options(url)
			o.Compression = c.compress
			b := client.ByID{Options: o, Conns: c.conns, InFlight: c.inFlight, Batch: c.batch, Adaptive: c.adaptive, Take: got.take()}
			done, err := b.Run(context.Background(), ids(events))
			if err != nil {
				t.Fatal(err)
			}
			got.check(t, events, false)
			if want := (len(events) + c.batch - 1) / c.batch; done.Requests != want || done.EOSE != want || done.Latency.Count() != int64(want) ||
				done.Dials != c.conns || done.Retried > 0 || len(done.Missing)+len(done.Failed) > 0 {
				t.Errorf("%+v", done)
			}
		})
	}
}

// TestWhatIsStoredWhileItIsAskedForIsNoStray: an event may be sent under a REQ that has had its
// EOSE, until the relay has read the CLOSE. What comes so twice, or was not asked for, is one.
func TestWhatIsStoredWhileItIsAskedForIsNoStray(t *testing.T) {
	all := fakes(5, 1)
	event := func(sub string, i int) string {
		return `["EVENT","` + sub + `",` + string(all[i].AppendJSON(nil)) + `]`
	}
	url := scripted(t, func(_ int, ws *websocket.Conn) {
		answer(ws, event("%s", 0), `["EOSE","%s"]`)
		answer(ws, event("p1", 1), event("p1", 1), event("p1", 0), event("p1", 4), event("%s", 2), event("%s", 3), `["EOSE","%s"]`)
		answer(ws)
	})
	b := client.ByID{Options: options(url), InFlight: 1, Batch: 2, Take: client.Each(func(*client.Event) {})}
	done, err := b.Run(t.Context(), ids(all[:4]))
	if err != nil || done.Unexpected != 3 || done.Elsewhere != 0 || len(done.Missing) != 1 || done.Missing[0] != all[1].ID {
		t.Errorf("%+v, %+v, %v", done, done.Stats, err)
	}
}

func TestByIDAsksAgainWhatACapLeftOut(t *testing.T) {
	events := fakes(300, 3)
	var got gathered
	b := client.ByID{Options: options(serve(t, events, reference.Options{MaxLimit: 10})), InFlight: 3, Batch: 100, Retries: 1, Take: got.take()}
	done, err := b.Run(context.Background(), ids(events))
	if err != nil || done.Retried == 0 || done.LeftOut != 0 || done.Longest != 10 {
		t.Fatalf("%+v, %v", done, err)
	}
	got.check(t, events, false)
}

func TestByIDNamesWhatIsNotThere(t *testing.T) {
	events := fakes(100, 3)
	var got gathered
	b := client.ByID{Options: options(serve(t, events[:90], reference.Options{})), InFlight: 2, Batch: 20, Retries: 1, Take: got.take()}
	done, err := b.Run(context.Background(), ids(events))
	if err != nil || len(done.Missing) != 10 || done.Retried != 20 || len(done.Failed) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, id := range done.Missing {
		if !slices.Contains(ids(events[90:]), id) {
			t.Errorf("%v is not missing", id)
		}
	}
	got.check(t, events[:90], false)
}

func TestByIDKeepsWithinTheSubscriptionsOfARelay(t *testing.T) {
	events := fakes(2000, 3)
	var got gathered
	b := client.ByID{Options: options(serve(t, events, reference.Options{MaxSubscriptions: 3})), InFlight: 20, Batch: 20, Retries: 8, Take: got.take()}
	done, err := b.Run(context.Background(), ids(events))
	if err != nil {
		t.Fatal(done, err)
	}
	got.check(t, events, false)
}

func TestByIDOutlivesEveryFault(t *testing.T) {
	for _, fault := range []string{"extra-results", "wrong-order", "ignore-limit", "garbage-frames", "id-mismatch", "kill-pending:1"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			events := fakes(600, 3)
			var got gathered
			b := client.ByID{Options: options(serve(t, events, reference.Options{}, fault)), Conns: 2, InFlight: 4, Batch: 50, Retries: 2, Take: got.take()}
			if done, err := b.Run(context.Background(), ids(events)); err != nil {
				t.Fatal(done, err)
			}
			got.check(t, events, false)
		})
	}
	t.Run("closed-midway", func(t *testing.T) {
		events := fakes(200, 3)
		var got gathered
		b := client.ByID{Options: options(serve(t, events, reference.Options{}, "closed-midway")), InFlight: 2, Batch: 50, Retries: 12, Take: got.take()}
		if done, err := b.Run(context.Background(), ids(events)); err != nil || done.Closed == 0 {
			t.Fatal(done, err)
		}
		got.check(t, events, false)
	})
}

func TestByIDEndsWithWhoeverTakes(t *testing.T) {
	events := fakes(500, 3)
	full := errors.New("the disk is full")
	b := client.ByID{Options: options(serve(t, events, reference.Options{})), Conns: 3, InFlight: 4, Batch: 10,
		Take: func(context.Context, *client.Event, bool) (bool, error) { return true, full }}
	done, err := b.Run(context.Background(), ids(events))
	if !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	if len(done.Failed) == 0 {
		t.Error("nothing failed")
	}
}

func TestASlowTakerIsNoFaultOfTheRelay(t *testing.T) {
	events := fakes(40, 3)
	o := options(serve(t, events, reference.Options{}))
	o.Stall, o.Attempts = 300*time.Millisecond, 1
	waited := 0
	b := client.ByID{Options: o, InFlight: 2, Batch: 10, Take: func(_ context.Context, _ *client.Event, wait bool) (bool, error) {
		if wait && waited == 0 {
			time.Sleep(900 * time.Millisecond)
		}
		if wait {
			waited++
		}
		return wait, nil
	}}
	done, err := b.Run(context.Background(), ids(events))
	if err != nil || waited != 40 || done.Waited == 0 {
		t.Errorf("%d waits: %v", waited, err)
	}
}

func TestByIDGoesOnOverOtherConnections(t *testing.T) {
	events := fakes(300, 3)
	honest := serve(t, events, reference.Options{})
	silent := serve(t, nil, reference.Options{}, "half-open")
	// The second connection gets nowhere.
	url := referencetest.Between{Relay: func(n int) string {
		if n == 2 {
			return silent
		}
		return honest
	}}.Serve(t, honest)
	o := options(url)
	o.Stall, o.Attempts = 500*time.Millisecond, 1
	var got gathered
	b := client.ByID{Options: o, Conns: 2, InFlight: 1, Batch: 10, Take: got.take()}
	if done, err := b.Run(context.Background(), ids(events)); err != nil {
		t.Fatal(done, err)
	}
	got.check(t, events, false)
}

func TestOnceBringsAllOrSaysWhyNot(t *testing.T) {
	events := fakes(700, 3)
	var got gathered
	stats, err := client.Once(context.Background(), options(serve(t, events, reference.Options{})), corpus.Filter{}, got.take())
	if err != nil || stats.Events != 700 || stats.FirstEvent == 0 || stats.Duration < stats.FirstEvent || stats.Bytes < stats.FrameBytes || stats.FrameBytes < stats.EventBytes {
		t.Fatalf("%+v, %v", stats, err)
	}
	got.check(t, events, false)
	var closed *client.ClosedError
	if _, err := client.Once(context.Background(), options(serve(t, events, reference.Options{}, "closed-midway")), corpus.Filter{}, got.take()); !errors.As(err, &closed) {
		t.Errorf("%v", err)
	}
}

func TestByIDGoesOnWhereEveryConnectionBreaks(t *testing.T) {
	events := fakes(400, 3)
	inner := serve(t, events, reference.Options{})
	url := referencetest.Between{Down: func(_ int, m []byte) bool { return !bytes.HasPrefix(m, []byte(`["EOSE"`)) }}.Serve(t, inner)
	var got gathered
	o := options(url)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // far more than it takes
	defer cancel()
	b := client.ByID{Options: o, Conns: 2, InFlight: 1, Batch: 20, Take: got.take()}
	done, err := b.Run(ctx, ids(events))
	if err != nil || done.Lost < 2 {
		t.Fatalf("%d connections lost: %v", done.Lost, err)
	}
	got.check(t, events, false)
}
