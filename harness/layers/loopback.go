package layers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus/scan"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
)

// loopback adds hexadecimal digits, JSON and a socket: the harness's client against a responder in this process that does nothing else.
func (o *Options) loopback(ctx context.Context, s *stock) (Row, error) {
	peer := &peer{storage: s.theirs}
	url, stop, err := peer.listen(ctx)
	if err != nil {
		return Row{}, err
	}
	defer stop()
	conn, err := wire.Dial(ctx, url, wire.Options{})
	if err != nil {
		return Row{}, err
	}
	defer conn.Abort()
	row, err := o.both(ctx, s, o.overWire(ctx, conn, func(c *Cost) {
		// Its last act before the answer that ended the reconciliation was to note these.
		c.PeerEngine, c.PeerCoding = time.Duration(peer.engine.Load()), time.Duration(peer.coding.Load())
	}))
	row.PeerSeen = true
	return row, err
}

// overWire reconciles over a connection. seen fills in what is known of the peer's side.
func (o *Options) overWire(ctx context.Context, conn *wire.Conn, seen func(*Cost)) reconcileFunc {
	return func(local negentropy.Storage, have, need func([]negentropy.ID)) (Cost, error) {
		r, err := negentropy.ReconcileSplit(ctx, conn, []byte("{}"), local, negentropy.Options{FirstAnswer: o.Stall, Stall: o.Stall,
			MaxNeed: 2 * MaxSize, Have: have, Need: need})
		c := Cost{Total: r.Duration, Engine: r.Engine, Coding: r.Coding, Rounds: r.Rounds, BytesUp: r.BytesUp, BytesDown: r.BytesDown, Have: r.Have, Need: r.Need}
		seen(&c)
		c.Rest = c.Total - c.Engine - c.Coding - c.PeerEngine - c.PeerCoding
		return c, err
	}
}

// peer answers NEG-OPEN and NEG-MSG, one reconciliation at a time, and keeps what the one going on has cost it, in ns.
type peer struct {
	storage        negentropy.Storage
	engine, coding atomic.Int64
}

// listen serves on a free port of this machine until stop is called.
func (p *peer) listen(ctx context.Context) (url string, stop func(), err error) {
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
func (p *peer) serve(ws *websocket.Conn) error {
	responder := negentropy.NewResponder(p.storage, PeerFrameLimit)
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
