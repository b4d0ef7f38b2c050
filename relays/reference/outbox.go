package reference

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"relaybench/relays/wire"
)

// WebSocket close codes of RFC 6455 that the relay sends.
const (
	closeGoingAway = 1001
	closeViolation = 1008
	closeTryLater  = 1013
)

// flushPiece is the most bytes of one write: few enough for progress to be seen on a slow link.
const flushPiece = 64 << 10

var (
	errStalled = errors.New("the peer reads nothing")
	errClosing = errors.New("connection is closing")
)

// outbox is the server's side of one connection. Writes only queue, so that neither the group
// writer nor a query ever waits for a socket while it holds something that others need; one
// goroutine moves the queue to the socket in large pieces. Whoever produces much asks waitRoom
// first, which is the backpressure that a slow reader meets. A peer that takes no byte for `stall`
// is closed with a reason.
//
// Frames are written here rather than through the WebSocket library: a server's frames carry no
// mask, so that a frame is a short header before its parts, and an event's bytes are copied once.
type outbox struct {
	net.Conn
	stall time.Duration
	log   func(format string, a ...any)

	mu      sync.Mutex
	work    sync.Cond // the flusher waits for bytes or for the end
	room    sync.Cond // producers wait for fewer bytes
	queue   []byte    // whole frames, not yet handed to the socket
	spare   []byte    // the other buffer, while it is not being written
	sending int       // bytes of the buffer that is being written
	most    int       // bytes that may wait, over which the peer is closed; 0: producers wait for it instead
	halted  bool      // the relay is stopping: nothing is read, and Close waits for end
	closing bool      // take no more; write what is queued, then close
	err     error     // why the connection broke
	done    chan struct{}
}

func newOutbox(c net.Conn, stall time.Duration, log func(format string, a ...any)) *outbox {
	o := &outbox{Conn: c, stall: stall, log: log, done: make(chan struct{})}
	o.work.L, o.room.L = &o.mu, &o.mu
	go o.run()
	return o
}

// Write queues whole frames, or HTTP before the handshake is over. It never blocks.
func (o *outbox) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refusal(); err != nil {
		return 0, err
	}
	o.queue = append(o.queue, p...)
	o.work.Signal()
	return len(p), nil
}

// text queues one text frame. Only flush wakes the flusher: many frames cost one wake-up.
func (o *outbox) text(parts ...[]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refusal(); err != nil {
		return err
	}
	if o.most > 0 && len(o.queue)+o.sending > o.most {
		o.queue = o.queue[:0]
		o.finish(closeViolation, "too slow: too much waits to be read")
		return errClosing
	}
	o.queue = appendFrame(o.queue, parts...)
	return nil
}

// flush lets what is queued go out.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.work.Signal()
}

// waitRoom blocks until at most n bytes wait, the connection ends, or stop, asked anew, says so.
func (o *outbox) waitRoom(n int, stop func() bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if err := o.refusal(); err != nil {
			return err
		}
		if o.halted {
			return errClosing
		}
		if len(o.queue)+o.sending <= n || o.most > 0 || stop != nil && stop() {
			return nil
		}
		o.work.Signal()
		o.room.Wait()
	}
}

// stir makes every waitRoom ask its stop function again.
func (o *outbox) stir() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.room.Broadcast()
}

func (o *outbox) queued() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) + o.sending
}

// drop closes with a reason, without first writing what is queued, a peer that is at fault.
func (o *outbox) drop(code uint16, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refusal() == nil {
		o.queue = o.queue[:0]
		o.finish(code, reason)
		o.log("closing %s: %s", o.RemoteAddr(), reason)
	}
}

// end closes with a reason once what is queued has been written.
func (o *outbox) end(code uint16, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refusal() == nil {
		o.finish(code, reason)
	}
}

// Close lets the flusher write what is queued, for a bounded time, without waiting for that.
func (o *outbox) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.halted && !o.closing {
		o.finish(0, "")
	}
	return nil
}

// stopReading makes reads fail and producers stop, while answers can still be sent, until end.
func (o *outbox) stopReading() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.halted = true
	o.Conn.SetReadDeadline(time.Now())
	o.room.Broadcast()
}

// alive reports whether somebody may still want answers.
func (o *outbox) alive() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refusal() == nil && !o.halted
}

// SetDeadline moves the read deadline alone: the write deadline is the flusher's.
func (o *outbox) SetDeadline(t time.Time) error { return o.Conn.SetReadDeadline(t) }

// SetWriteDeadline does nothing: Write never blocks.
func (o *outbox) SetWriteDeadline(time.Time) error { return nil }

// finish queues a close frame, unless its code is 0, as the last that is sent. It needs o.mu.
func (o *outbox) finish(code uint16, reason string) {
	if code != 0 {
		o.queue = appendClose(o.queue, code, reason)
	}
	o.closing = true
	// Reads end with the flusher; the last bytes, the write that is under way among them, get no
	// longer than this.
	o.Conn.SetWriteDeadline(time.Now().Add(min(o.stall, time.Second)))
	o.work.Signal()
	o.room.Broadcast()
}

// refusal needs o.mu.
func (o *outbox) refusal() error {
	if o.err == nil && o.closing {
		return errClosing
	}
	return o.err
}

func (o *outbox) run() {
	defer close(o.done)
	defer o.Conn.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.queue) == 0 && !o.closing {
			o.work.Wait()
		}
		if len(o.queue) == 0 {
			return
		}
		buf := o.queue
		o.queue, o.spare, o.sending = o.spare[:0], nil, len(buf)
		o.mu.Unlock()
		written, err := o.send(buf)
		o.mu.Lock()
		o.sending = 0
		if cap(buf) <= 1<<20 {
			o.spare = buf[:0]
		}
		if err != nil {
			o.fail(buf, written, err)
			return
		}
		o.room.Broadcast()
	}
}

// send writes buf until the peer takes nothing for the stall time. It is called without o.mu.
func (o *outbox) send(buf []byte) (written int, err error) {
	taken := time.Now() // when the peer last made room
	for written < len(buf) {
		o.mu.Lock()
		if !o.closing {
			// A write that times out may have got a part away at any moment of its time, which
			// would pass for progress: short writes tell how long ago the last of it was.
			o.Conn.SetWriteDeadline(time.Now().Add(max(o.stall/20, time.Millisecond)))
		}
		closing := o.closing
		o.mu.Unlock()
		n, err := o.Conn.Write(buf[written:min(len(buf), written+flushPiece)])
		written += n
		if n > 0 {
			taken = time.Now()
		}
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return written, err
		case closing || time.Since(taken) >= o.stall:
			return written, errStalled
		}
	}
	return written, nil
}

// fail ends a connection whose socket took only part of buf. A stalled peer may wake up: it then
// finds the rest of the frame that was under way and a close frame that says why, and everything
// else is forgotten. It needs o.mu.
func (o *outbox) fail(buf []byte, written int, err error) {
	alreadyClosing := o.closing
	o.err, o.closing, o.queue, o.spare = err, true, nil, nil
	o.room.Broadcast()
	end := frameEnd(buf, written)
	if err != errStalled || alreadyClosing || end < 0 {
		return
	}
	reason := "too slow: nothing was read for " + o.stall.String()
	last := appendClose(append([]byte(nil), buf[written:end]...), closeViolation, reason)
	o.mu.Unlock()
	o.log("closing %s: %s", o.RemoteAddr(), reason)
	o.Conn.SetWriteDeadline(time.Now().Add(o.stall)) // its buffers are full: the reason arrives when it reads again
	o.Conn.Write(last)
	o.mu.Lock()
}

// appendFrame appends one unmasked text frame (RFC 6455, section 5.2).
func appendFrame(dst []byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	dst = appendHeader(dst, 0x81, n)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst
}

func appendHeader(dst []byte, first byte, n int) []byte {
	switch {
	case n < 126:
		return append(dst, first, byte(n))
	case n < 1<<16:
		return append(dst, first, 126, byte(n>>8), byte(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, first, 127), uint64(n))
	}
}

// appendClose appends a close frame; a reason over the 123 bytes that fit is cut.
func appendClose(dst []byte, code uint16, reason string) []byte {
	reason = reason[:min(len(reason), 123)]
	dst = appendHeader(dst, 0x88, 2+len(reason))
	return append(binary.BigEndian.AppendUint16(dst, code), reason...)
}

// frameEnd returns where the frame that holds byte at of buf ends, or at itself where a frame
// begins there; -1 if buf does not consist of unmasked frames.
func frameEnd(buf []byte, at int) int {
	pos := 0
	for pos < at {
		size, payload := wire.FrameHeader(buf[pos:])
		left := int64(len(buf) - pos - size)
		if buf[pos]&0xf0 != 0x80 || left < 0 || payload < 0 || payload > left {
			return -1
		}
		pos += size + int(payload)
	}
	return pos
}
