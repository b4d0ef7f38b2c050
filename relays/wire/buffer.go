package wire

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	minReadBuffer = 4 << 10  // what an idle connection holds
	maxReadBuffer = 64 << 10 // what one that fills its buffer grows to
	flushSize     = 64 << 10 // collected bytes that are worth a system call by themselves
	drainChunk    = 256 << 10
	keepBuffer    = 1 << 20 // a write buffer that grew beyond this is given back once it is empty
	// lateFlush bounds how long written bytes wait when nobody reads, flushes or fills the buffer.
	lateFlush = time.Millisecond
	// lingerTime is how long Close goes on sending, in the background, what the peer has not yet
	// taken.
	lingerTime = time.Second
)

// bufferedConn collects writes and sends them in one system call when waiting would help nobody:
//
//   - just before a Read that has to wait for the peer: mostly one goroutine writes some, then reads;
//   - at once, from a goroutine of its own, if a Read is waiting already: a push to a listener;
//   - when flushSize bytes have come together, on Flush, on Close, and lateFlush after a write that
//     nothing else sent.
//
// No flush ever blocks its caller. What the socket does not take at once goes to a background
// writer, so that a peer which reads slowly cannot keep this side from reading. At most one
// goroutine writes to the socket: the holder of mu while busy is false, the background writer while
// it is true.
type bufferedConn struct {
	net.Conn
	raw syscall.RawConn // nil where the connection has no file descriptor: everything goes to the background writer

	// The reader's own.
	in      []byte
	r, w    int
	readErr error // came with the last bytes; returned once they are consumed

	arrived atomic.Int64 // Now() in ns when the kernel handed over the bytes in the buffer

	mu       sync.Mutex
	room     sync.Cond // pending fell, or writing ended
	out      []byte    // written, not yet given to the socket
	spare    []byte    // the background writer's half of the double buffer
	inFlight int       // bytes of spare not yet given to the socket
	limit    int       // waitRoom waits while as many bytes are pending
	writeErr error     // sticky
	reading  bool      // a Read waits for the peer
	busy     bool      // the background writer runs
	armed    bool      // late is set
	closed   bool
	late     *time.Timer

	// Made once, so that flushing allocates nothing.
	attempt    func(fd uintptr) bool
	attempted  int
	attemptErr error
	drainFunc  func()
}

func newBufferedConn(inner net.Conn, limit int) *bufferedConn {
	c := &bufferedConn{Conn: inner, limit: limit, in: make([]byte, minReadBuffer)}
	c.room.L = &c.mu
	if sc, ok := inner.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn()
	}
	c.attempt = func(fd uintptr) bool {
		c.attempted, c.attemptErr = writeOnce(fd, c.out)
		return true // whatever happened: never wait here
	}
	c.drainFunc = c.drain
	c.late = time.AfterFunc(time.Hour, c.flushLate)
	c.late.Stop()
	return c
}

// Read returns buffered bytes, or flushes and waits for more.
func (c *bufferedConn) Read(p []byte) (int, error) {
	if c.r == c.w && len(p) > 0 {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.in[c.r:c.w])
	c.r += n
	return n, nil
}

func (c *bufferedConn) fill() error {
	if c.readErr != nil {
		return c.readErr
	}
	if c.w == len(c.in) && c.w < maxReadBuffer {
		c.in = make([]byte, 4*c.w)
	}
	c.r, c.w = 0, 0

	c.mu.Lock()
	c.reading = true
	c.flushLocked()
	c.mu.Unlock()

	n, err := c.Conn.Read(c.in)
	c.arrived.Store(int64(Now()))

	c.mu.Lock()
	c.reading = false
	closed := c.closed
	c.mu.Unlock()

	c.w = n
	if err != nil && closed && errors.Is(err, os.ErrDeadlineExceeded) {
		err = net.ErrClosed // see Close
	}
	if n > 0 {
		c.readErr, err = err, nil
	}
	return err
}

// Write collects p. It never blocks; see waitRoom.
func (c *bufferedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.failed(); err != nil {
		return 0, err
	}
	c.out = append(c.out, p...)
	switch {
	case c.busy: // the background writer will find it
	case len(c.out) >= flushSize:
		c.flushLocked()
	case c.reading:
		c.startDrain()
	case !c.armed:
		c.armed = true
		c.late.Reset(lateFlush)
	}
	return len(p), nil
}

// waitRoom blocks while the peer is limit bytes behind, and returns the error that ends all
// writing.
func (c *bufferedConn) waitRoom() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending() >= c.limit {
		c.flushLocked()
		for c.pending() >= c.limit && c.failed() == nil {
			c.room.Wait()
		}
	}
	return c.failed()
}

// Flush gives collected bytes to the socket, what it does not take to the background writer, and
// does not wait for either. It returns the error that ended an earlier write.
func (c *bufferedConn) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushLocked()
	return c.failed()
}

// Pending returns how many written bytes the socket has not taken yet.
func (c *bufferedConn) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending()
}

func (c *bufferedConn) pending() int { return len(c.out) + c.inFlight }

func (c *bufferedConn) failed() error {
	if c.writeErr == nil && c.closed {
		return net.ErrClosed
	}
	return c.writeErr
}

func (c *bufferedConn) flushLate() {
	c.mu.Lock()
	c.armed = false
	c.flushLocked()
	c.mu.Unlock()
}

// flushLocked tries one write that cannot block and leaves the rest to the background writer.
func (c *bufferedConn) flushLocked() {
	if c.busy || len(c.out) == 0 || c.failed() != nil {
		return
	}
	if c.raw == nil {
		c.startDrain()
		return
	}
	c.attempted, c.attemptErr = 0, nil
	err := c.raw.Write(c.attempt)
	if err == nil {
		err = c.attemptErr
	}
	switch {
	case err != nil:
		c.stopWriting(os.NewSyscallError("write", err))
	case c.attempted == len(c.out):
		c.out = recycle(c.out)
	default:
		c.out = c.out[:copy(c.out, c.out[c.attempted:])]
		c.startDrain()
	}
}

// writeOnce gives the socket what it takes without waiting, which may be nothing.
func writeOnce(fd uintptr, p []byte) (n int, err error) {
	for n, err = syscall.Write(int(fd), p); err == syscall.EINTR; n, err = syscall.Write(int(fd), p) {
	}
	if err == syscall.EAGAIN {
		err = nil
	}
	return max(0, n), err
}

func (c *bufferedConn) startDrain() {
	c.busy = true
	go c.drainFunc()
}

// drain is the background writer: it sends until nothing is left.
func (c *bufferedConn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) > 0 && c.writeErr == nil {
		c.out, c.spare = c.spare, c.out
		rest := c.spare
		c.inFlight = len(rest)
		for len(rest) > 0 && c.writeErr == nil {
			c.mu.Unlock()
			n, err := c.Conn.Write(rest[:min(len(rest), drainChunk)])
			c.mu.Lock()
			rest = rest[n:]
			c.inFlight = len(rest)
			if err != nil {
				c.stopWriting(err)
			}
			c.room.Broadcast()
		}
		c.spare = recycle(c.spare)
	}
	c.busy = false
	if c.closed {
		c.Conn.Close()
	}
}

// stopWriting makes every later write fail. Reading goes on: the peer's close frame with its reason
// may still be there.
func (c *bufferedConn) stopWriting(err error) {
	c.writeErr = err
	c.out, c.inFlight = nil, 0
	c.room.Broadcast()
}

func recycle(b []byte) []byte {
	if cap(b) > keepBuffer {
		return nil
	}
	return b[:0]
}

// Close flushes and closes. It does not wait for a slow peer: what the socket does not take at once
// is sent in the background for up to a second.
func (c *bufferedConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.flushLocked()
	c.closed = true
	c.late.Stop()
	c.room.Broadcast()
	if !c.busy {
		return c.Conn.Close()
	}
	now := time.Now()
	c.Conn.SetReadDeadline(now) // a waiting Read ends now, as it would if the socket were closed
	return c.Conn.SetWriteDeadline(now.Add(lingerTime))
}

// abort closes at once and forgets what was not sent.
func (c *bufferedConn) abort() {
	c.mu.Lock()
	c.closed = true
	c.late.Stop()
	c.room.Broadcast()
	c.mu.Unlock()
	c.Conn.Close()
}

// CloseWrite ends the sending direction after all that was written, where the socket took it.
// Servers end a plain HTTP connection so, to keep a reset from overtaking the answer.
func (c *bufferedConn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushLocked()
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || c.busy {
		return nil
	}
	return half.CloseWrite()
}

// SetDeadline flushes, because bytes written before a deadline was set do not fall under it.
func (c *bufferedConn) SetDeadline(t time.Time) error {
	c.Flush()
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline flushes, because bytes written before a deadline was set do not fall under it.
func (c *bufferedConn) SetWriteDeadline(t time.Time) error {
	c.Flush()
	return c.Conn.SetWriteDeadline(t)
}

// serverPending is how many bytes a peer of a buffered listener may be behind before writes to it
// block.
const serverPending = 1 << 20

// BufferedListener makes the connections that l accepts collect writes, so that a server which
// answers many messages between two reads pays for one system call. Bytes are sent before a Read
// that has to wait; at once while a Read waits already; when 64 KB have come together; on Flush and
// Close; and a millisecond after a write in any case. A Write blocks while the peer is 1 MiB
// behind, and fails when the connection is closed or its write deadline passes.
func BufferedListener(l net.Listener) net.Listener { return bufferedListener{l} }

type bufferedListener struct{ net.Listener }

func (l bufferedListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return serverConn{newBufferedConn(inner, serverPending)}, nil
}

type serverConn struct{ *bufferedConn }

func (c serverConn) Write(p []byte) (int, error) {
	if err := c.waitRoom(); err != nil {
		return 0, err
	}
	return c.bufferedConn.Write(p)
}
