package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"
)

const (
	defaultReadLimit = 4 << 20
	dialTimeout      = 10 * time.Second // however long ctx lasts
	clientPending    = 64 << 20         // how far the relay may be behind before Send blocks
	maxHeaderBytes   = 64 << 10
)

// Options say how to connect. The zero value is what a measurement wants.
type Options struct {
	// ReadLimit is the largest message accepted, in bytes; 0 means 4 MiB.
	ReadLimit int64
	// Compression offers permessage-deflate (RFC 7692). It costs allocations and time per message;
	// Conn.Negotiated says what the relay made of it.
	Compression bool
}

// Dial connects to a relay at a ws:// or wss:// URL. ctx bounds the handshake, which takes 10 s at
// most; it does not bound the connection. Environment proxies and redirects are not followed: what
// is measured is what was named.
//
// The error says in one sentence what happened. An HTTP answer other than 101 is a *StatusError, a
// 101 that breaks RFC 6455 wraps ErrHandshake; a refused connection wraps syscall.ECONNREFUSED, a
// handshake that took too long context.DeadlineExceeded.
func Dial(ctx context.Context, address string, o Options) (*Conn, error) {
	c, err := dial(ctx, address, o, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", cut(address, 200), err)
	}
	return c, nil
}

// dial takes the TLS settings for wss, nil for the system's.
func dial(ctx context.Context, address string, o Options, secure *tls.Config) (*Conn, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" {
		return nil, errors.New("not a WebSocket URL: it must look like ws://host:port or wss://host")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()

	h := &handshake{}
	h.transport = http.Transport{
		DialContext:            h.dial,
		TLSClientConfig:        secure,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	c := &Conn{}
	c.life, c.end = context.WithCancelCause(context.Background())
	options := &websocket.DialOptions{
		HTTPClient: &http.Client{
			Transport:     h,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		// A relay that pings without reading the answers gets no more of them.
		OnPingReceived: func(context.Context, []byte) bool {
			c.came(func(e *StallError) { e.Pings++ })
			return h.conn.Load().Pending() < clientPending
		},
	}
	if o.Compression {
		options.CompressionMode = websocket.CompressionContextTakeover
	}
	// The library may go on reading a refused handshake's body after ctx has ended.
	stop := context.AfterFunc(ctx, h.abort)
	ws, resp, err := websocket.Dial(ctx, address, options)
	if !stop() && err == nil {
		ws.CloseNow()
		err = ctx.Err()
	}
	if err != nil {
		h.abort()
		return nil, dialError(ctx, err, resp, h.conn.Load() != nil)
	}

	c.ws, c.conn, c.stream = ws, h.conn.Load(), h.stream
	c.negotiated = cut(resp.Header.Get("Sec-WebSocket-Extensions"), 200)
	if c.limit = o.ReadLimit; c.limit <= 0 {
		c.limit = defaultReadLimit
	}
	ws.SetReadLimit(c.limit)
	h.stream.headers.limit, h.stream.agreed = c.limit, true
	return c, nil
}

func dialError(ctx context.Context, err error, resp *http.Response, connected bool) error {
	var timeout net.Error
	var request *url.Error
	var lookup *net.DNSError
	if errors.As(err, &request) {
		err = request.Err // without the layers' repetitions of what was tried
	}
	switch {
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return &StatusError{Code: resp.StatusCode, Body: string(body)}
	case resp != nil: // an answer, but a wrong one, even if ctx ended meanwhile
		return fmt.Errorf("%w: %s", ErrHandshake, handshakeFault(err, resp))
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout():
		what := "no TCP connection in time"
		if connected {
			what = "connected, but the WebSocket handshake was not answered in time"
		}
		return fmt.Errorf("%s: %w", what, context.DeadlineExceeded)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens there: %w", syscall.ECONNREFUSED)
	case errors.As(err, &lookup): // without the address of this machine's name server
		return fmt.Errorf("its name was not found: %s", lookup.Err)
	case connected:
		return fmt.Errorf("the server did not complete the WebSocket handshake: %w", err)
	}
	return err
}

// handshakeFault says what is wrong with a server's 101.
func handshakeFault(err error, resp *http.Response) string {
	if accept := resp.Header.Values("Sec-WebSocket-Accept"); len(accept) == 0 {
		return "the answer has no Sec-WebSocket-Accept"
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "invalid Sec-WebSocket-Accept"):
		return fmt.Sprintf("the Sec-WebSocket-Accept %q is not that of the request's key", cut(resp.Header.Get("Sec-WebSocket-Accept"), 60))
	case strings.Contains(text, "unsupported extensions"):
		return fmt.Sprintf("the answer switches on %q, which was not offered", cut(resp.Header.Get("Sec-WebSocket-Extensions"), 60))
	}
	if _, rest, found := strings.Cut(text, "WebSocket protocol violation: "); found {
		text = rest
	}
	return cut(strings.TrimPrefix(text, "failed to WebSocket dial: "), 200)
}

// handshake is the http.RoundTripper of one Dial. It puts the buffering connection below HTTP and
// TLS, and takes hold of the byte stream above them that becomes the WebSocket.
type handshake struct {
	transport http.Transport
	conn      atomic.Pointer[bufferedConn]
	stream    *stream
}

func (h *handshake) dial(ctx context.Context, network, address string) (net.Conn, error) {
	inner, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := inner.(*net.TCPConn); ok {
		// Go's default, said aloud: with Nagle's algorithm on, each small write after a first waits
		// for the relay's delayed acknowledgement, and 40 ms would be counted as the relay's.
		if err := tcp.SetNoDelay(true); err != nil {
			inner.Close()
			return nil, fmt.Errorf("setting TCP_NODELAY: %w", err)
		}
	}
	c := newBufferedConn(inner, clientPending)
	h.conn.Store(c)
	return c, nil
}

func (h *handshake) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := h.transport.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return resp, err
	}
	body, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		resp.Body.Close()
		return nil, errors.New("the HTTP client does not hand over upgraded connections")
	}
	h.stream = &stream{ReadWriteCloser: body}
	resp.Body = h.stream
	return resp, nil
}

func (h *handshake) abort() {
	if c := h.conn.Load(); c != nil {
		c.abort()
	}
}

// stream is what follows the handshake, counted; under TLS it is the plain text.
type stream struct {
	io.ReadWriteCloser
	agreed        bool // the handshake is done; before, the library reads only for the body of a broken one, which has no end
	read, written atomic.Int64
	readErr       atomic.Pointer[error] // tells a broken connection from broken frames
	headers       headers               // the reader's own, as is refused
	refused       *TooLargeError        // what is read next
}

func (s *stream) Read(p []byte) (int, error) {
	if !s.agreed {
		return 0, io.EOF
	}
	if s.refused != nil {
		return 0, s.refused
	}
	n, err := s.ReadWriteCloser.Read(p)
	s.read.Add(int64(n))
	if n, s.refused = s.headers.pass(p[:n]); s.refused != nil {
		if n == 0 {
			return 0, s.refused
		}
		return n, nil // the frames before are good
	}
	if err != nil {
		failure := err // so that err itself stays off the heap
		s.readErr.Store(&failure)
	}
	return n, err
}

func (s *stream) Write(p []byte) (int, error) {
	n, err := s.ReadWriteCloser.Write(p)
	s.written.Add(int64(n))
	return n, err
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
