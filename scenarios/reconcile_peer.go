package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/coder/websocket"

	"relaybench/corpus/scan"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
)

// peerFrameLimit bounds the messages of a responder in this process, in bytes before hexadecimal
// digits double them: what relays ship with.
const peerFrameLimit = 500_000

// reconcilePeer is a responder behind a socket that does nothing else: it answers NEG-OPEN and
// NEG-MSG, one reconciliation at a time, and keeps what the one going on has cost it, in ns.
type reconcilePeer struct {
	storage        negentropy.Storage
	engine, coding atomic.Int64
}

// listen serves on a free port of this machine until stop is called.
func (p *reconcilePeer) listen(ctx context.Context) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(negentropy.MinReadLimit)
		if err := p.serve(ws); err != nil {
			ws.Close(websocket.StatusPolicyViolation, err.Error()) // the client reports it
		}
	})}
	go server.Serve(wire.BufferedListener(l))
	return "ws://" + l.Addr().String(), func() { server.Close() }, nil
}

// serve answers until the connection ends. The error is a message that cannot be answered.
func (p *reconcilePeer) serve(ws *websocket.Conn) error {
	responder := negentropy.NewResponder(p.storage, peerFrameLimit)
	var frame bytes.Buffer
	var message, answer, out []byte
	for {
		_, r, err := ws.Reader(context.Background())
		if err != nil {
			return nil
		}
		frame.Reset()
		if _, err := frame.ReadFrom(r); err != nil {
			return nil
		}
		mark := wire.Now()
		parts, err := scan.Elements(frame.Bytes())
		if err != nil || len(parts) < 2 {
			return errors.New("not a message of NIP-77")
		}
		switch string(parts[0]) {
		case `"NEG-OPEN"`:
			p.engine.Store(0)
			p.coding.Store(0)
		case `"NEG-MSG"`:
		case `"NEG-CLOSE"`:
			continue
		default:
			return fmt.Errorf("unexpected %.20s", parts[0])
		}
		payload := bytes.Trim(parts[len(parts)-1], `"`) // what is no digit is found below
		if message, err = negentropy.DecodeHex(message[:0], payload); err != nil {
			return err
		}
		p.coding.Add(int64(lap(&mark)))
		if answer, err = responder.Next(answer[:0], message); err != nil {
			return err
		}
		p.engine.Add(int64(lap(&mark)))
		out = append(append(append(out[:0], `["NEG-MSG",`...), parts[1]...), `,"`...)
		out = append(negentropy.AppendHex(out, answer), `"]`...)
		p.coding.Add(int64(lap(&mark)))
		if err := ws.Write(context.Background(), websocket.MessageText, out); err != nil {
			return nil
		}
	}
}
