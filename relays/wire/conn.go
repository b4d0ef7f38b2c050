// Package wire is one WebSocket to a relay: frames out, frames in, each stamped with the time at
// which it arrived, and nothing between the socket and the clock. The WebSocket library stands
// behind Conn and can be exchanged there.
//
// Frames that are sent are collected and leave in one system call when the next Read has to wait
// (or on Flush, or after a millisecond). The socket's slowness never keeps Read from reading. No
// call in the path of a frame allocates.
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// closeTimeout bounds the close handshake.
const closeTimeout = time.Second

// Conn is a client's WebSocket connection. One goroutine may Read; any may use the other methods
// meanwhile.
type Conn struct {
	ws         *websocket.Conn
	conn       *bufferedConn
	stream     *stream
	negotiated string
	limit      int64

	buf   []byte        // the message last read
	reads atomic.Uint64 // text frames

	seenMu sync.Mutex
	seen   StallError // what came and is of no use

	sendMu  sync.Mutex
	scratch []byte

	life context.Context // its cause is why the connection ended
	end  context.CancelCauseFunc

	useful   atomic.Uint64
	watchMu  sync.Mutex
	watch    *time.Timer   // nil until WatchUseful
	patience time.Duration // WatchUseful's d, 0 for none
	since    time.Duration // when the wait began
	before   uint64        // reads then
	progress uint64        // useful at the last look
}

const (
	eventHead = `["EVENT",`
	eventTail = `]`
)

// SendEvent sends ["EVENT",raw], where raw is an event as JSON (NIP-01), as one text frame. See
// Send.
func (c *Conn) SendEvent(raw []byte) error { return c.send(eventHead, raw, eventTail) }

// Send sends one text frame. It returns as soon as the frame is collected; frames leave when the
// next Read has to wait, or on Flush. While the relay is 64 MiB behind, Send blocks, which
// WatchUseful bounds. An error is the one that ended the connection; after ErrLost, Read still
// returns what arrived before, among it perhaps a *CloseError that says why.
func (c *Conn) Send(frame []byte) error { return c.send("", frame, "") }

func (c *Conn) send(head string, body []byte, tail string) error {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	err := c.conn.waitRoom()
	if err == nil {
		if head != "" {
			c.scratch = append(append(append(c.scratch[:0], head...), body...), tail...)
			body = c.scratch
		}
		// A context that can end would cost a timer for each frame. What ends a wait here is the
		// socket's end.
		err = c.ws.Write(context.Background(), websocket.MessageText, body)
	}
	if err != nil {
		return c.writeFailed(err)
	}
	return nil
}

// Flush gives all frames sent so far to the socket without waiting for the relay to take them. Its
// errors are those of Send.
func (c *Conn) Flush() error {
	if err := c.conn.Flush(); err != nil {
		return c.writeFailed(err)
	}
	return nil
}

func (c *Conn) writeFailed(err error) error {
	if end := c.ended(); end != nil {
		return end
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// Read returns the next text frame, valid until the next Read, and the time on Now's scale at which
// its last bytes were taken from the socket. The clock is read once for each read of the socket (up
// to 64 KB), so frames that arrived together carry the same time. Frames that were sent leave
// before Read waits; pings are answered and binary frames, which NIP-01 does not know, passed over
// (see Garbage).
//
// Any error ends the connection and is returned from then on: *CloseError, *StallError,
// *TooLargeError, ErrLost, ErrProtocol or ErrClosed.
func (c *Conn) Read() (frame []byte, at time.Duration, err error) {
	for {
		kind, err := c.readMessage()
		if err != nil {
			return nil, 0, c.readFailed(err)
		}
		if kind == websocket.MessageText {
			break
		}
		c.note(Binary, "", c.buf)
	}
	n := c.reads.Add(1)
	// The frame's last byte came with the latest read of the socket: no layer asks for more before
	// it has used up what it has.
	at = time.Duration(c.conn.arrived.Load())
	handedOver(n, at)
	return c.buf, at, nil
}

// ReadMessage is Read and Parse, and collects what is at fault with the frame (see Garbage). A
// message at fault is returned all the same.
func (c *Conn) ReadMessage(m *Message) (frame []byte, at time.Duration, err error) {
	if frame, at, err = c.Read(); err != nil {
		return nil, 0, err
	}
	c.ParseMessage(frame, m)
	return frame, at, nil
}

// ParseMessage is ReadMessage for a frame that was just read: for who takes the time of both apart.
func (c *Conn) ParseMessage(frame []byte, m *Message) {
	if Parse(frame, m); m.Fault != Sound {
		c.note(m.Fault, m.Field, frame)
	}
	if m.Type == Notice {
		c.came(func(e *StallError) { e.Notices, e.Notice = e.Notices+1, example([]byte(m.ReasonText())) })
	}
}

func (c *Conn) came(count func(*StallError)) {
	c.seenMu.Lock()
	defer c.seenMu.Unlock()
	count(&c.seen)
}

func (c *Conn) note(fault Fault, field Field, frame []byte) {
	c.came(func(e *StallError) { e.Garbage.see(fault, field, frame) })
}

// Stalled is the error of who ends the connection because what is waited for does not come: it
// tells what came in its place. Any goroutine may call it.
func (c *Conn) Stalled() *StallError {
	c.seenMu.Lock()
	defer c.seenMu.Unlock()
	e := c.seen
	e.Garbage.Kinds = slices.Clone(e.Garbage.Kinds)
	return &e
}

// Garbage returns what came on the connection and was no valid message: binary frames, and what
// ReadMessage found at fault. Any goroutine may call it, also after the connection's end.
func (c *Conn) Garbage() Garbage { return c.Stalled().Garbage }

// TakeGarbage returns what Garbage does, which is forgotten then: for who asks more than once on a
// connection, and tells of each answer apart.
func (c *Conn) TakeGarbage() (g Garbage) {
	c.came(func(e *StallError) { g, e.Garbage = e.Garbage, Garbage{} })
	return g
}

func (c *Conn) readMessage() (websocket.MessageType, error) {
	kind, r, err := c.ws.Reader(context.Background())
	if err != nil {
		return 0, err
	}
	buf := c.buf[:0]
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, max(4<<10, len(buf)))...)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil {
			c.buf = buf
			if err == io.EOF {
				err = nil
			}
			return kind, err
		}
	}
}

func (c *Conn) readFailed(err error) error {
	if end := c.ended(); end != nil {
		return end
	}
	var closed websocket.CloseError
	var large *TooLargeError
	switch {
	case errors.As(err, &large):
		c.ws.Close(websocket.StatusMessageTooBig, "") // the answer is not waited for: nothing is read any more
		err = large
	case errors.As(err, &closed):
		err = &CloseError{Code: int(closed.Code), Reason: cut(closed.Reason, 123)}
	case errors.Is(err, websocket.ErrMessageTooBig):
		err = &TooLargeError{Limit: c.limit}
	case c.stream.readErr.Load() != nil:
		err = fmt.Errorf("%w: %w", ErrLost, *c.stream.readErr.Load())
	default:
		err = fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	err = c.finish(err)
	c.ws.CloseNow() // sends the close frame that the library wrote, if any
	return err
}

// finish records why the connection ended and returns the cause that was first.
func (c *Conn) finish(err error) error {
	c.end(err)
	return c.ended()
}

func (c *Conn) ended() error { return context.Cause(c.life) }

// Close sends what was collected and a close frame with code 1000, and waits for the relay's, both
// within a second. Frames that arrive meanwhile are dropped. The error says that the relay did not
// answer; the connection is closed in any case. Calls after the first do nothing.
func (c *Conn) Close() error {
	if c.ended() != nil || c.finish(ErrClosed) != ErrClosed {
		return nil
	}
	timer := time.AfterFunc(closeTimeout, c.conn.abort)
	err := c.ws.Close(websocket.StatusNormalClosure, "")
	if !timer.Stop() {
		return fmt.Errorf("the relay did not answer the close frame within %v", closeTimeout)
	}
	c.conn.abort()
	if err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	return nil
}

// Abort drops the connection at once, with what was not sent. A waiting Read or Send returns
// ErrClosed.
func (c *Conn) Abort() {
	c.finish(ErrClosed)
	c.conn.abort()
}

// BytesRead returns the bytes received since the handshake, frame headers and control frames
// included. It may be ahead of Read by what is buffered. Under TLS it counts what was inside.
func (c *Conn) BytesRead() int64 { return c.stream.read.Load() }

// BytesWritten returns the bytes sent since the handshake, collected ones and frame headers
// included.
func (c *Conn) BytesWritten() int64 { return c.stream.written.Load() }

// Negotiated returns the extensions the relay agreed to (its Sec-WebSocket-Extensions header), ""
// for none.
func (c *Conn) Negotiated() string { return c.negotiated }
