package reference

import (
	"bytes"
	"context"
	"encoding/hex"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"

	"github.com/coder/websocket"

	"relaybench/corpus"
)

// Null is the store that stores nothing. Serving it is another protocol as well: every event is
// answered with OK unseen, a REQ with as many stored-looking events as it asks for. What it reaches
// is the ceiling of whatever measures it.
type Null struct{}

// Update forgets the changes.
func (Null) Update(func(Tx) error) error { return nil }

// View finds nothing.
func (Null) View(func(View) error) error { return nil }

// LastSeq is 0.
func (Null) LastSeq() uint64 { return 0 }

// Close does nothing.
func (Null) Close() error { return nil }

// nullConn writes frames straight to a connection that collects them.
type nullConn struct {
	net.Conn
	buf []byte
}

// serveNull answers on the connection's one goroutine. Nothing is parsed: what is looked for is
// where a sane client puts it, and a message that is put otherwise gets a NOTICE.
func (r *relay) serveNull(ws *websocket.Conn, conn net.Conn) {
	defer ws.CloseNow()
	defer context.AfterFunc(r.ended, func() { ws.CloseNow() })()
	c := nullConn{Conn: conn}
	var in bytes.Buffer
	for {
		_, reader, err := ws.Reader(context.Background())
		if err != nil {
			return
		}
		in.Reset()
		if _, err = in.ReadFrom(reader); err != nil {
			return
		}
		if err := c.answer(in.Bytes()); err != nil {
			return
		}
	}
}

func (c *nullConn) answer(frame []byte) error {
	switch {
	case bytes.HasPrefix(frame, []byte(`["EVENT",`)):
		if id := idIn(frame); id != nil {
			return c.text([]byte(`["OK","`), id, []byte(`",true,""]`))
		}
	case bytes.HasPrefix(frame, []byte(`["REQ",`)):
		if sub, rest := stringIn(frame[len(`["REQ",`):]); sub != nil {
			return c.req(sub, rest)
		}
	case bytes.HasPrefix(frame, []byte(`["COUNT",`)):
		if sub, _ := stringIn(frame[len(`["COUNT",`):]); sub != nil {
			return c.text([]byte(`["COUNT",`), sub, []byte(`,{"count":0}]`))
		}
	case bytes.HasPrefix(frame, []byte(`["CLOSE",`)):
		return nil
	}
	return c.text([]byte(`["NOTICE","error: not understood"]`))
}

// req answers with the ids that are asked for, else with as many events as the limit says.
func (c *nullConn) req(sub, filters []byte) error {
	events := nullEvents()
	head := append(append([]byte(`["EVENT",`), sub...), ',')
	want := -1
	if at := bytes.Index(filters, []byte(`"limit":`)); at >= 0 {
		n, _ := leadingInt(filters[at+len(`"limit":`):])
		want = int(min(max(n, 0), 1_000_000)) // a hostile limit may be longer than an int64
	}
	if at := bytes.Index(filters, []byte(`"ids":[`)); at >= 0 {
		ids := filters[at+len(`"ids":[`):]
		for i := 0; i != want && len(ids) > 65 && ids[0] == '"'; i++ {
			body := events[i%len(events)]
			if err := c.text(head, body[:idAt], ids[1:65], body[idAt+64:]); err != nil {
				return err
			}
			ids = ids[min(len(ids), 67):]
		}
		want = 0
	}
	for i := range max(want, 0) {
		if err := c.text(head, events[i%len(events)]); err != nil {
			return err
		}
	}
	return c.text([]byte(`["EOSE",`), sub, closeBracket)
}

// text sends one frame; the connection below collects.
func (c *nullConn) text(parts ...[]byte) error {
	c.buf = appendFrame(c.buf[:0], parts...)
	_, err := c.Conn.Write(c.buf)
	return err
}

// idIn finds an event's id: its key cannot stand inside a JSON string, where quotes are escaped.
func idIn(frame []byte) []byte {
	const key = `"id":"`
	at := bytes.Index(frame, []byte(key))
	if at < 0 || len(frame) < at+len(key)+65 || frame[at+len(key)+64] != '"' {
		return nil
	}
	return frame[at+len(key) : at+len(key)+64]
}

// stringIn cuts a JSON string of a sane length with its quotes off the front; nil if none is there.
func stringIn(b []byte) (s, rest []byte) {
	if len(b) == 0 || b[0] != '"' {
		return nil, b
	}
	inside, rest := cutString(b)
	if rest == nil || len(inside) > 6*maxSubID {
		return nil, b
	}
	return b[:len(inside)+2], rest
}

// nullEvents are well-formed events of ordinary size, newest first, each with the bracket that
// closes its frame. Their signatures are noise.
var nullEvents = sync.OnceValue(func() [][]byte {
	random := rand.NewChaCha8([32]byte{})
	text := make([]byte, 120)
	events := make([][]byte, 1000)
	for i := range events {
		e := corpus.Event{CreatedAt: 1780272000 - int64(i), Kind: 1, Tags: []corpus.Tag{}}
		random.Read(e.ID[:])
		random.Read(e.PubKey[:])
		random.Read(e.Sig[:])
		random.Read(text)
		e.Tags = append(e.Tags, corpus.Tag{"t", "n" + strconv.Itoa(i)})
		e.Content = hex.EncodeToString(text[:100+i%20])
		events[i] = append(e.AppendJSON(nil), ']')
	}
	return events
})
