package load

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus/prepare"
	"relaybench/corpus/synthetic"
	"relaybench/relays/scripted"
	"relaybench/relays/wire"
)

// answering serves a relay that answers its n-th message with what script makes of its second
// element.
func answering(t testing.TB, script func(ws *websocket.Conn, second json.RawMessage, n int)) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		for n := 0; ; n++ {
			_, data, err := ws.Read(context.Background())
			var message []json.RawMessage
			if err != nil || json.Unmarshal(data, &message) != nil || len(message) < 2 {
				return
			}
			script(ws, message[1], n)
		}
	}))
	server.Listener = wire.BufferedListener(server.Listener)
	server.Start()
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

func TestAnAnswerSaysWhatCameThatWasNoMessage(t *testing.T) {
	const event = `{"id":"` + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + `","created_at":1760000000.0,"kind":1}`
	url := answering(t, func(ws *websocket.Conn, sub json.RawMessage, n int) {
		text := func(frame string) { ws.Write(context.Background(), websocket.MessageText, []byte(frame)) }
		switch n {
		case 0:
			text("[\"NOTICE\",\"caf\xe9\"]")
			text(`["EVENT",` + string(sub) + `,` + event + `]`)
			text(`["EOSE",` + string(sub) + `]`)
		case 2: // 1 is the CLOSE
			text(`["EOSE",` + string(sub) + `]`)
		case 4:
			ws.Write(context.Background(), websocket.MessageBinary, []byte(`["EOSE",`+string(sub)+`]`))
		}
	})
	querier, err := NewQuerier(t.Context(), url, 5*time.Second) // in which each frame has been read on any machine
	if err != nil {
		t.Fatal(err)
	}
	defer querier.Close()
	var r Reply
	if err := querier.Query([]byte("{}"), &r); err != nil || len(r.IDs) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if g := r.Garbage; g.Count != 2 || len(g.Kinds) != 2 || g.Kinds[0].Fault != wire.NotUTF8 || g.Kinds[0].Message != wire.Notice ||
		g.Kinds[1].Fault != wire.WrongField || g.Kinds[1].Field != "created_at" {
		t.Errorf("%+v", g)
	}
	if err := querier.Query([]byte("{}"), &r); err != nil || r.Garbage.Count != 0 {
		t.Errorf("the second answer is told of with the first's garbage: %+v, %v", r.Garbage, err)
	}
	var stall *wire.StallError
	if err := querier.Query([]byte("{}"), &r); !errors.As(err, &stall) || stall.Garbage.Of(wire.EOSE) != 1 || r.Garbage.Of(wire.EOSE) != 1 || r.Garbage.Kinds[0].Fault != wire.Binary {
		t.Errorf("%v, %+v", err, r.Garbage)
	}
}

// A relay that says why it does not answer is quoted, and not called silent.
func TestAPublisherThatStallsTellsOfNotices(t *testing.T) {
	t.Parallel()
	url := answering(t, func(ws *websocket.Conn, event json.RawMessage, n int) {
		ws.Write(context.Background(), websocket.MessageText, []byte(`["NOTICE","busy `+strconv.Itoa(n)+`"]`))
	})
	notes := scripted.Notes(t, 2)
	p := Publisher{URL: url, Corpus: notes, Conns: 1, Window: 2, Stall: 3 * time.Second, Ledger: NewLedger(notes.Len())} // in which both have come on any machine
	_, err := p.Publish(t.Context(), []int{0, 1})
	if !errors.Is(err, wire.ErrStalled) || !strings.Contains(err.Error(), `did not arrive in time, but 2 NOTICEs, the last "busy `) {
		t.Error(err)
	}
}

func TestAPublisherCountsWhatIsNoMessage(t *testing.T) {
	c, err := prepare.Synthetic(t.Context(), synthetic.Spec{Events: 50, Seed: 1, BaseTime: 1_780_272_000}, prepare.Options{}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	url := answering(t, func(ws *websocket.Conn, event json.RawMessage, n int) {
		var e struct{ ID string }
		json.Unmarshal(event, &e)
		ws.Write(context.Background(), websocket.MessageBinary, []byte(`["NOTICE","in binary"]`))
		ws.Write(context.Background(), websocket.MessageText, []byte(`["OK","`+e.ID+`","true",""]`))
		ws.Write(context.Background(), websocket.MessageText, []byte(`["OK","`+e.ID+`",true,""]`))
	})
	indexes := make([]int, c.Len())
	for i := range indexes {
		indexes[i] = i
	}
	p := Publisher{URL: url, Corpus: c, Conns: 2, Window: 3, Stall: time.Minute, Ledger: NewLedger(c.Len())}
	done, err := p.Publish(t.Context(), indexes)
	if err != nil {
		t.Fatal(err)
	}
	g := done.Garbage
	if n := len(indexes); int(done.Accepted) != n || g.Count != 2*n || len(g.Kinds) != 2 || g.Of(wire.Notice) != n || g.Of(wire.OK) != n {
		t.Errorf("%d accepted, %+v", done.Accepted, g)
	}
}
