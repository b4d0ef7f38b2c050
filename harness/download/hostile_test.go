package download_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/harness/download"
	"relaybench/relays/reference"
)

// scripted is a relay with this information document that answers each REQ as the test says; sub is
// its subscription's id, and say sends a frame.
func scripted(t *testing.T, document string, answer func(sub string, say func(frame string) bool)) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			fmt.Fprint(w, document)
			return
		}
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		for {
			_, data, err := ws.Read(r.Context())
			if err != nil {
				return
			}
			text, isREQ := strings.CutPrefix(string(data), `["REQ","`)
			if !isREQ {
				continue
			}
			sub, _, _ := strings.Cut(text, `"`)
			gone := false
			answer(sub, func(frame string) bool {
				gone = gone || ws.Write(r.Context(), websocket.MessageText, []byte(frame)) != nil
				return !gone
			})
			if gone {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

func frameOf(sub string, e *corpus.Event) string {
	return `["EVENT","` + sub + `",` + string(e.AppendJSON(nil)) + `]`
}

func TestARelayThatWantsToKnowWhoAsksIsSaidAndGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	asked := make(chan bool, 100)
	url := scripted(t, `{"limitation":{"auth_required":true,"payment_required":true}}`, func(sub string, say func(string) bool) {
		asked <- true
		say(`["CLOSED","` + sub + `","auth-required: who \u001b[31mare you?"]`)
	})
	var said notes
	o := quick(url)
	o.Note = said.add
	_, err := download.Run(context.Background(), t.TempDir(), o)
	if err == nil || !strings.Contains(err.Error(), "auth-required: who") || strings.Contains(err.Error(), "\x1b") || len(asked) != 1 {
		t.Errorf("asked %d times: %v", len(asked), err)
	}
	if !strings.Contains(said.String(), url+" says that it wants authentication and payment") || !strings.Contains(said.String(), "is given up after 0 events") || strings.Contains(said.String(), "\x1b") {
		t.Errorf("%s", &said)
	}
}

func TestAnAnswerWithoutEndIsGivenUp(t *testing.T) {
	t.Parallel()
	events := genuine()[:50]
	url := scripted(t, "", func(sub string, say func(string) bool) {
		for i := 0; say(frameOf(sub, &events[i%len(events)])); i++ {
		}
	})
	o := quick(url, serve(t, events, reference.Options{}))
	o.TakeAtMost(5000)
	done, err := download.Run(context.Background(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	sameEvents(t, read(t, done.File), events)
	if failed := done.Failures(); len(failed) != 1 || failed[0].URL != url || !strings.Contains(failed[0].Failure, "sent 5001 events where") {
		t.Errorf("%+v", failed)
	}
}

func TestARelayOfForgedEventsIsGivenUpBeforeItsEnd(t *testing.T) {
	t.Parallel()
	forged := genuine()[0]
	n := 0
	url := scripted(t, "", func(sub string, say func(string) bool) {
		for ; ; n++ {
			forged.ID[0], forged.ID[1], forged.ID[2] = byte(n), byte(n>>8), byte(n>>16)
			if !say(frameOf(sub, &forged)) {
				return
			}
		}
	})
	o := quick(url)
	_, err := download.Run(context.Background(), t.TempDir(), o)
	if err == nil || !strings.Contains(err.Error(), "events that it sent are forged or malformed") {
		t.Errorf("%v", err)
	}
}

func TestARelayThatLiesAboutItsLimitIsReadAllTheSame(t *testing.T) {
	t.Parallel()
	events := newestOf(genuine(), 300)
	slices.Reverse(events)
	for _, limit := range []string{"1", "1000000000", "-7"} {
		served := serve(t, events, reference.Options{MaxLimit: 60})
		// Its information is another's; the WebSocket is passed on.
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "" {
				fmt.Fprintf(w, `{"limitation":{"max_limit":%s,"max_message_length":1,"max_subscriptions":0}}`, limit)
				return
			}
			passOn(w, r, served)
		}))
		done, err := download.Run(context.Background(), t.TempDir(), quick("ws"+strings.TrimPrefix(server.URL, "http")))
		server.Close()
		if err != nil {
			t.Fatal(err)
		}
		sameEvents(t, read(t, done.File), events)
	}
}

// passOn carries frames between a client and a relay.
func passOn(w http.ResponseWriter, r *http.Request, to string) {
	client, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer client.CloseNow()
	relay, _, err := websocket.Dial(r.Context(), to, nil)
	if err != nil {
		return
	}
	defer relay.CloseNow()
	relay.SetReadLimit(1 << 20)
	carry := func(from, to *websocket.Conn) {
		defer to.CloseNow()
		for {
			_, data, err := from.Read(r.Context())
			if err != nil || to.Write(r.Context(), websocket.MessageText, data) != nil {
				return
			}
		}
	}
	go carry(client, relay)
	carry(relay, client)
}

// A relay that ends every REQ by itself has answered it.
func TestCLOSEDBehindEOSEIsNoFailure(t *testing.T) {
	t.Parallel()
	events := genuine()[:60]
	url := scripted(t, "{}", func(sub string, say func(string) bool) {
		for i := range events {
			say(frameOf(sub, &events[len(events)-1-i]))
		}
		say(`["EOSE","` + sub + `"]`)
		say(`["CLOSED","` + sub + `",""]`)
	})
	var said notes
	o := quick(url)
	o.Attempts, o.Note = 1, said.add
	done, err := download.Run(context.Background(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	sameEvents(t, read(t, done.File), events)
	if r := done.Relays[0]; r.Outcome != download.All || r.Failure != "" || strings.Contains(said.String(), "asked again") {
		t.Errorf("%+v\n%s", r, &said)
	}
}

func TestControlCharactersAreNotDownloadedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	events := slices.Clone(genuine()[:20])
	key, err := corpus.NewSecretKey([32]byte{31: 7})
	if err != nil {
		t.Fatal(err)
	}
	odd := corpus.Event{CreatedAt: baseTime - 5, Kind: 1, Tags: []corpus.Tag{}, Content: "a \x01 b"}
	if err := key.Sign(&odd, [32]byte{}); err != nil {
		t.Fatal(err)
	}
	url, cache := serve(t, append(events, odd), reference.Options{}), t.TempDir()
	for _, keep := range []bool{false, true} {
		o := quick(url)
		o.Prepare.KeepControlCharacters = keep
		done, err := download.Run(context.Background(), cache, o)
		if err != nil {
			t.Fatal(err)
		}
		want, leftOut := events, int64(1)
		if keep {
			want, leftOut = append(want, odd), 0
		}
		sameEvents(t, read(t, done.File), want)
		if done.Reused || done.Relays[0].LeftOut != leftOut {
			t.Errorf("kept: %v, reused: %v, %+v", keep, done.Reused, done.Relays[0])
		}
	}
}
