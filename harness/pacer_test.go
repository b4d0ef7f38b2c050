package harness

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/harness/measure"
	"relaybench/harness/wire"
)

// paced publishes 100 events at 200 a second over one connection to a relay that calls answer for each, which returns false to answer it no more.
func paced(t *testing.T, stall time.Duration, answer func(n int) (frame string, ok bool)) (*Paced, *Ledger, error) {
	t.Helper()
	c, err := corpus.BuildSynthetic(t.Context(), corpus.Spec{Events: 100, Seed: 1, BaseTime: 1780272000}, corpus.PrepareOptions{}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		conn.SetReadLimit(1 << 20)
		for n := 0; ; n++ {
			_, frame, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			parts, err := corpus.Elements(frame)
			if err != nil || len(parts) != 2 {
				return
			}
			e, err := corpus.ParseEvent(parts[1])
			if err != nil {
				return
			}
			reply, ok := answer(n)
			if !ok {
				return
			}
			if reply == "" {
				continue
			}
			if conn.Write(r.Context(), websocket.MessageText, []byte(strings.ReplaceAll(reply, "ID", e.ID.String()))) != nil {
				return
			}
		}
	}))
	defer server.Close()
	indexes := make([]int, c.Len())
	for i := range indexes {
		indexes[i] = i
	}
	p := Pacer{URL: "ws" + strings.TrimPrefix(server.URL, "http"), Corpus: c, Conns: 1, Rate: 200, Stall: stall, Ledger: NewLedger(c.Len())}
	got, err := p.Publish(t.Context(), indexes)
	return got, p.Ledger, err
}

// above counts the samples of a histogram from d on, as far as its quantiles tell.
func above(h *measure.Histogram, d time.Duration) (n int) {
	for i := range int(h.Count()) {
		if h.Quantile((float64(i)+0.5)/float64(h.Count())) >= d {
			n++
		}
	}
	return n
}

// TestAStallIsFeltByEveryEventThatWasDueInIt stops the relay for 300 ms, in which 60 events are due. In a closed loop it would be one slow answer.
func TestAStallIsFeltByEveryEventThatWasDueInIt(t *testing.T) {
	got, ledger, err := paced(t, 20*time.Second, func(n int) (string, bool) {
		if n == 20 {
			time.Sleep(300 * time.Millisecond)
		}
		return `["OK","ID",true,""]`, true
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Accepted != 100 || got.Unanswered != 0 || ledger.Count(Accepted) != 100 || got.Latency.Count() != 100 || got.Late.Count() != 100 {
		t.Errorf("%+v", got)
	}
	// The relay answers none of those that are due in the first 200 ms of the stall before 100 ms have gone by. They are 40; the schedule alone
	// decides it, however slow this machine is.
	if n := above(got.Latency, 100*time.Millisecond); n < 38 {
		t.Errorf("%d events felt the stall", n)
	}
}

func TestThePacerTellsAnswersApart(t *testing.T) {
	got, ledger, err := paced(t, 20*time.Second, func(n int) (string, bool) {
		switch {
		case n%10 == 3:
			return `["OK","ID",false,"blocked: not you"]`, true
		case n%10 == 4:
			return `["OK","ID",true,"duplicate: known"]`, true
		}
		return `["OK","ID",true,""]`, true
	})
	if err != nil || got.Accepted != 80 || got.Refused != 10 || got.Duplicates != 10 || got.Example != "blocked: not you" || ledger.Count(Refused) != 10 {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestThePacerOutlivesRelaysThatStop(t *testing.T) {
	got, ledger, err := paced(t, time.Second, func(n int) (string, bool) {
		if n >= 50 {
			return "", true // reads on, and answers no more
		}
		return `["OK","ID",true,""]`, true
	})
	if !errors.Is(err, wire.ErrStalled) || got.Accepted != 50 || got.Unanswered != 50 || ledger.Count(Unanswered) != 50 || !strings.Contains(err.Error(), "50 of 100") {
		t.Errorf("silent from half of the events on: %v, %+v", err, got)
	}
	got, _, err = paced(t, 20*time.Second, func(n int) (string, bool) { return `["OK","ID",true,""]`, n < 50 })
	if err != nil || got.Accepted < 90 || got.Accepted+got.Unanswered != 100 || got.Lost != 1 || got.Loss == nil {
		t.Errorf("a relay that hangs up after 50 events, and takes the next call: %v, %+v", err, got)
	}
	got, _, err = paced(t, 20*time.Second, func(int) (string, bool) { return "", false })
	if err == nil || got.Accepted != 0 || got.Unanswered != 100 {
		t.Errorf("a relay that always hangs up: %v, %+v", err, got)
	}
}
