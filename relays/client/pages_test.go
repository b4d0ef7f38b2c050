package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/corpus/scan"
	"relaybench/relays/client"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
	"relaybench/relays/wire"
)

func TestPagesBringEveryEventOnce(t *testing.T) {
	for _, c := range []struct {
		name              string
		events, perSecond int
		size, clamp       int
	}{
		{"an empty relay", 0, 1, 100, 0},
		{"less than a page", 7, 1, 100, 0},
		{"one second", 7, 7, 100, 0},
		{"many pages", 1000, 3, 100, 0},
		{"many pages of a relay that sends fewer", 1000, 3, 500, 64},
		{"pages that end where seconds do", 900, 9, 90, 0},
		{"a page that is one second exactly", 500, 50, 51, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := fakes(c.events, c.perSecond)
			var got gathered
			p := client.Pages{Options: options(serve(t, events, reference.Options{MaxLimit: c.clamp})), Size: c.size, Take: got.take()}
			done, err := p.Run(context.Background())
			if err != nil || !done.Complete {
				t.Fatalf("complete %v, %v", done.Complete, err)
			}
			got.check(t, events, false)
			if len(done.Stepped) > 0 || done.Events != int64(c.events) || done.Unexpected > 0 {
				t.Errorf("%+v", done)
			}
		})
	}
}

func TestASecondThatHoldsMoreThanComesAtOnceIsSteppedOverAndNamed(t *testing.T) {
	events := fakes(200, 50) // four seconds
	var got gathered
	p := client.Pages{Options: options(serve(t, events, reference.Options{MaxLimit: 20})), Size: 100, Take: got.take()}
	done, err := p.Run(context.Background())
	if err != nil || !done.Complete {
		t.Fatal(done, err)
	}
	want := []int64{1_700_000_003, 1_700_000_002, 1_700_000_001, 1_700_000_000}
	if !slices.Equal(done.Stepped, want) || len(got.times) != 4*20 {
		t.Errorf("%d events, stepped over %v", len(got.times), done.Stepped)
	}
}

func TestASecondThatFillsAPageIsReadWhole(t *testing.T) {
	for _, c := range []struct {
		name                    string
		perSecond, clamp, most  int
		widest, brought, listed int // listed: seconds that are stepped over
	}{
		{"in one step", 50, 0, 1000, 1000, 200, 0},
		{"in several steps", 200, 0, 1000, 1000, 200, 0},
		{"as many as may be asked for", 100, 0, 1000, 100, 200, 2},
		{"more than may be asked for", 200, 0, 1000, 100, 100, 1},
		{"of a relay that sends no more", 50, 10, 1000, 1000, 4 * 10, 4},
		{"of a relay that closes what asks for more", 50, 0, 10, 1000, 4 * 10, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := fakes(200, c.perSecond)
			var got gathered
			o := reference.Options{MaxLimit: c.clamp}
			url := serve(t, events, o)
			if c.most < 1000 {
				url = pickyProxy(t, url, c.most)
			}
			p := client.Pages{Options: options(url), Size: 10, Widest: c.widest, Take: got.take()}
			done, err := p.Run(context.Background())
			if err != nil || !done.Complete {
				t.Fatalf("%+v, %v", done, err)
			}
			if len(got.times) != c.brought || len(done.Stepped) != c.listed {
				t.Errorf("%d events, stepped over %v", len(got.times), done.Stepped)
			}
		})
	}
}

// pickyProxy stands before a relay and closes each REQ that asks for more events than it likes.
func pickyProxy(t *testing.T, relay string, most int) string {
	return scripted(t, func(_ int, ws *websocket.Conn) {
		ctx := t.Context()
		behind, _, err := websocket.Dial(ctx, relay, nil)
		if err != nil {
			return
		}
		defer behind.CloseNow()
		behind.SetReadLimit(1 << 20)
		go func() {
			for {
				kind, text, err := behind.Read(ctx)
				if err != nil || ws.Write(ctx, kind, text) != nil {
					return
				}
			}
		}()
		for {
			kind, text, err := ws.Read(ctx)
			if err != nil {
				return
			}
			var req []json.RawMessage
			var filter struct{ Limit int }
			if json.Unmarshal(text, &req) == nil && len(req) > 2 && json.Unmarshal(req[2], &filter) == nil && filter.Limit > most {
				err = ws.Write(ctx, kind, []byte(`["CLOSED",`+string(req[1])+`,"error: too many"]`))
			} else {
				err = behind.Write(ctx, kind, text)
			}
			if err != nil {
				return
			}
		}
	})
}

func TestPagesKeepToTheirRange(t *testing.T) {
	events := fakes(300, 3)
	var got gathered
	p := client.Pages{Options: options(serve(t, events, reference.Options{})), Size: 20, Take: got.take(),
		Filter: corpus.Filter{Since: corpus.Int64(1_700_000_010), Until: corpus.Int64(1_700_000_049)}}
	if done, err := p.Run(context.Background()); err != nil || !done.Complete {
		t.Fatal(done, err)
	}
	got.check(t, events[30:150], false)
}

func TestPagesOutliveEveryFault(t *testing.T) {
	for _, c := range []struct {
		fault  string
		twice  bool // events may come twice: the page they belong to was given up half-way
		beyond int  // strangers that may come
	}{
		{fault: "extra-results", beyond: 1},
		{fault: "wrong-order", twice: true},
		{fault: "ignore-limit", twice: true},
		{fault: "eose-early", twice: true},
		{fault: "closed-midway", twice: true},
		{fault: "garbage-frames"},
		{fault: "id-mismatch"},
		{fault: "kill-pending:1"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			events := fakes(1500, 3)
			var got gathered
			o := options(serve(t, events, reference.Options{}, c.fault))
			o.Answer = 1 << 20 // whoever wants all that a relay has takes what keeps to no limit
			p := client.Pages{Options: o, Size: 100, Confirm: 100 * time.Millisecond, Take: got.take()}
			done, err := p.Run(context.Background())
			if err != nil || !done.Complete {
				t.Fatal(done.Complete, err)
			}
			if c.beyond > 0 {
				known := map[corpus.ID]bool{}
				for i := range events {
					known[events[i].ID] = true
				}
				for id := range got.times {
					if !known[id] {
						delete(got.times, id)
						c.beyond--
					}
				}
				if c.beyond < 0 {
					t.Errorf("%d strangers too many", -c.beyond)
				}
			}
			// What shares its second with others may be out of reach; then that is said.
			events = slices.DeleteFunc(events, func(e corpus.Event) bool {
				return got.times[e.ID] == 0 && slices.Contains(done.Stepped, e.CreatedAt)
			})
			if len(events) < 1500-2 || c.fault != "closed-midway" && len(events) < 1500 {
				t.Errorf("%d events are out of reach", 1500-len(events))
			}
			got.check(t, events, c.twice)
		})
	}
}

func TestPagingGivesUpWhatNeverAnswers(t *testing.T) {
	o := options(serve(t, nil, reference.Options{}, "half-open"))
	o.Stall, o.Attempts = 200*time.Millisecond, 2
	troubles := 0
	o.Trouble = func(error) { troubles++ }
	p := client.Pages{Options: o, Size: 10, Take: client.Each(func(*client.Event) {})}
	done, err := p.Run(context.Background())
	if done.Complete || err == nil || troubles != 1 {
		t.Errorf("complete %v after %d attempts more: %v", done.Complete, troubles, err)
	}
}

// answer answers one REQ with these frames; %s is the subscription.
func answer(ws *websocket.Conn, frames ...string) bool {
	ctx := context.Background()
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return false
		}
		text := string(data)
		if !strings.HasPrefix(text, `["REQ","`) {
			continue
		}
		sub, _, _ := strings.Cut(text[len(`["REQ","`):], `"`)
		for _, f := range frames {
			if ws.Write(ctx, websocket.MessageText, []byte(strings.ReplaceAll(f, "%s", sub))) != nil {
				return false
			}
		}
		return true
	}
}

func TestClosedIsASoftFailureUntilItIsRepeated(t *testing.T) {
	for _, c := range []struct {
		name, reason string
		asks         int32
	}{
		{"an error", "error: busy", 4},
		{"throttled", "rate-limited: slow down", 4},
		{"who are you", "auth-required: sign in", 1},
		{"not you", "restricted: members only", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			asks := make(chan struct{}, 100)
			url := scripted(t, func(_ int, ws *websocket.Conn) {
				for answer(ws, `["CLOSED","%s","`+c.reason+`"]`) {
					asks <- struct{}{}
				}
			})
			o := options(url)
			p := client.Pages{Options: o, Size: 8, Take: client.Each(func(*client.Event) {})}
			done, err := p.Run(context.Background())
			var closed *client.ClosedError
			if !errors.As(err, &closed) || closed.Reason != c.reason || done.Complete {
				t.Fatalf("complete %v: %v", done.Complete, err)
			}
			if done.Closed < int(c.asks) {
				t.Errorf("asked %d times, not %d", done.Closed, c.asks)
			}
			if prefix := wire.ReasonPrefix([]byte(c.reason)); done.Reasons[prefix] != done.Closed {
				t.Errorf("counted as %v", done.Reasons)
			}
		})
	}
}

func TestPagingGoesOnWhereAConnectionBroke(t *testing.T) {
	events := fakes(400, 3)
	inner := serve(t, events, reference.Options{})
	var mu sync.Mutex
	ends := map[int]int{} // of each connection, which breaks after two answers
	url := referencetest.Between{Down: func(n int, m []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		if bytes.HasPrefix(m, []byte(`["EOSE"`)) {
			ends[n]++
		}
		return ends[n] < 2
	}}.Serve(t, inner)
	var got gathered
	p := client.Pages{Options: options(url), Size: 50, Take: got.take()}
	var cursors []int64
	p.Turned = func(next int64) error {
		cursors = append(cursors, next)
		return nil
	}
	done, err := p.Run(context.Background())
	if err != nil || !done.Complete || done.Lost < 3 {
		t.Fatalf("%d connections lost: %v", done.Lost, err)
	}
	got.check(t, events, true)
	if !slices.IsSortedFunc(cursors, func(a, b int64) int { return int(b - a) }) || len(cursors) != done.Pages {
		t.Errorf("%d pages, cursors %v", done.Pages, cursors)
	}
}

func TestOneREQAtATimeWhereARelayAllowsNoMore(t *testing.T) {
	events := fakes(300, 3)
	var got gathered
	p := client.Pages{Options: options(serve(t, events, reference.Options{MaxSubscriptions: 1})), Size: 100, Single: true, Take: got.take()}
	done, err := p.Run(context.Background())
	if err != nil || !done.Complete || done.Closed > 0 {
		t.Fatalf("complete %v, %d REQs closed: %v", done.Complete, done.Closed, err)
	}
	got.check(t, events, false)
}

func TestPagingEndsWithWhoeverTakes(t *testing.T) {
	events := fakes(300, 3)
	url := serve(t, events, reference.Options{})
	full := errors.New("the disk is full")
	taken, turned := 0, 0
	for name, p := range map[string]client.Pages{
		"taking": {Take: func(context.Context, *client.Event, bool) (bool, error) {
			taken++
			return true, full
		}},
		"turning a page": {Take: client.Each(func(*client.Event) {}), Turned: func(int64) error {
			turned++
			return full
		}},
	} {
		p.Options, p.Size = options(url), 50
		if done, err := p.Run(context.Background()); !errors.Is(err, full) || done.Complete {
			t.Errorf("%s: complete %v, %v", name, done.Complete, err)
		}
	}
	if taken != 1 || turned != 1 {
		t.Errorf("taken from %d times, turned %d pages", taken, turned)
	}
}

func TestEventsThatCannotBePagedAreNamedByTheirField(t *testing.T) {
	url := scripted(t, func(_ int, ws *websocket.Conn) {
		for answer(ws, `["EVENT","%s",{"id":"`+strings.Repeat("ab", 32)+`","created_at":1760000000.0}]`, `["EOSE","%s"]`) {
		}
	})
	p := client.Pages{Options: options(url), Size: 8, Take: client.Each(func(*client.Event) { t.Error("an event without a time was passed on") })}
	done, err := p.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	m := done.Malformed
	if m.Count == 0 || int64(m.Count) != done.Unexpected || len(m.Kinds) != 1 || m.Kinds[0].Fault != wire.WrongField || m.Kinds[0].Field != "created_at" {
		t.Errorf("%d strays, %+v", done.Unexpected, m)
	}
}

// closing is a relay that answers each REQ with the newest of its events that the filter allows,
// EOSE and CLOSED at once.
func closing(t *testing.T, events []corpus.Event, again bool) (url string) {
	t.Helper()
	return scripted(t, func(_ int, ws *websocket.Conn) {
		for {
			_, data, err := ws.Read(context.Background())
			if err != nil {
				return
			}
			parts, err := scan.Elements(data)
			if err != nil || string(parts[0]) != `"REQ"` {
				continue
			}
			f, err := corpus.ParseFilter(parts[2])
			if err != nil {
				t.Error(err)
				return
			}
			say := func(frame string) { _ = ws.Write(context.Background(), websocket.MessageText, []byte(frame)) }
			left := len(events)
			if f.Limit != nil {
				left = *f.Limit
			}
			for i := len(events) - 1; i >= 0 && left > 0; i-- {
				e := &events[i]
				if f.Until != nil && e.CreatedAt > *f.Until || f.IDs != nil && !slices.Contains(f.IDs, e.ID) {
					continue
				}
				say(`["EVENT",` + string(parts[1]) + `,` + string(e.AppendJSON(nil)) + `]`)
				left--
			}
			say(`["EOSE",` + string(parts[1]) + `]`)
			if again {
				say(`["EOSE",` + string(parts[1]) + `]`)
			}
			say(`["CLOSED",` + string(parts[1]) + `,"error: done"]`)
		}
	})
}

func TestCLOSEDBehindItsOwnEOSEIsAnEnd(t *testing.T) {
	events := fakes(60, 3)
	for _, again := range []bool{false, true} {
		for _, single := range []bool{false, true} {
			for _, size := range []int{500, 7} {
				var got gathered
				o := options(closing(t, events, again))
				o.Attempts = 1 // a failure would end it
				p := client.Pages{Options: o, Size: size, Single: single, Take: got.take()}
				done, err := p.Run(context.Background())
				if err != nil || !done.Complete || done.Closed > 0 || done.Lost > 0 || done.EOSE != done.Requests {
					t.Fatalf("EOSE twice %v, single %v, pages of %d: %+v, %v", again, single, size, done.Stats, err)
				}
				got.check(t, events, false)
			}
		}
		o := options(closing(t, events, again))
		o.Attempts = 1
		var got gathered
		if stats, err := client.Once(context.Background(), o, corpus.Filter{}, got.take()); err != nil || stats.Closed > 0 {
			t.Fatal(stats, err)
		}
		got.check(t, events, false)
		b := client.ByID{Options: o, InFlight: 3, Batch: 7, Take: got.take()}
		if done, err := b.Run(context.Background(), ids(events)); err != nil || done.Closed > 0 || done.Retried > 0 || done.InFlight != 3 {
			t.Fatal(done, err)
		}
		got.check(t, events, false)
	}
}

// TestOnlyWhatOneAnswerHoldsTwiceIsRepeated: what a lost connection has asked for again is not.
func TestOnlyWhatOneAnswerHoldsTwiceIsRepeated(t *testing.T) {
	t.Parallel()
	all := fakes(6, 1)
	for _, twice := range []bool{false, true} {
		url := scripted(t, func(number int, ws *websocket.Conn) {
			var frames []string
			for i := range all {
				e := &all[len(all)-1-i]
				frames = append(frames, `["EVENT","%s",`+string(e.AppendJSON(nil))+`]`)
			}
			if twice {
				frames = append(frames, frames[len(frames)-1])
			}
			if number > 1 { // the first is lost in mid-answer
				frames = append(frames, `["EOSE","%s"]`)
			}
			answer(ws, frames...)
			if number > 1 {
				for answer(ws, `["EOSE","%s"]`) {
				}
			}
		})
		p := client.Pages{Options: options(url), Size: 20, Take: client.Each(func(*client.Event) {})}
		paged, err := p.Run(context.Background())
		if err != nil || paged.Lost != 1 || paged.Repeated != map[bool]int64{false: 0, true: 2}[twice] {
			t.Errorf("pages, %v: %+v, %v", twice, paged.Stats, err)
		}
	}
}
