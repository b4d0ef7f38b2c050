package wire

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func TestDialSaysWhatWentWrong(t *testing.T) {
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	closed.Close()
	forbidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "members only", http.StatusForbidden) }))
	defer forbidden.Close()
	moved := httptest.NewServer(http.RedirectHandler("http://192.0.2.1/", http.StatusMovedPermanently))
	defer moved.Close()
	silent := rawServer(t, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	hangUp := rawServer(t, func(conn net.Conn) { http.ReadRequest(bufio.NewReader(conn)) })
	endless := rawServer(t, func(conn net.Conn) {
		http.ReadRequest(bufio.NewReader(conn))
		conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\n"))
		for {
			if _, err := fmt.Fprintf(conn, "X-Filler: %s\r\n", strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	})
	wrongAccept := rawServer(t, func(conn net.Conn) {
		http.ReadRequest(bufio.NewReader(conn))
		conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n"))
		io.Copy(io.Discard, conn)
	})
	unasked := rawServer(t, func(conn net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"+
			"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
		io.Copy(io.Discard, conn)
	})
	broken := func(err error) bool {
		return errors.Is(err, ErrHandshake) && strings.Contains(err.Error(), "broken WebSocket handshake")
	}
	var status *StatusError
	for _, c := range []struct {
		name, url string
		says      string
		want      func(error) bool
	}{
		{"refused", "ws://" + closed.Addr().String(), "nothing listens", func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		{"forbidden", "ws" + strings.TrimPrefix(forbidden.URL, "http"), "403", func(err error) bool {
			return errors.As(err, &status) && status.Code == 403 && strings.Contains(status.Body, "members only")
		}},
		{"redirect", "ws" + strings.TrimPrefix(moved.URL, "http"), "301", func(err error) bool { return errors.As(err, &status) && status.Code == 301 }},
		{"silent", silent, "not answered in time", func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		{"hangs up", hangUp, "EOF", nil},
		{"endless headers", endless, "did not complete the WebSocket handshake", nil},
		{"wrong accept key", wrongAccept, "Sec-WebSocket-Accept", broken},
		{"extension that was not offered", unasked, "permessage-deflate", broken},
		{"http URL", "http://127.0.0.1:7777", "not a WebSocket URL", nil},
		{"no host", "ws://", "not a WebSocket URL", nil},
		{"no URL", "::", "not a WebSocket URL", nil},
		{"no such host", "ws://relay.invalid", "relay.invalid", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			conn, err := Dial(ctx, c.url, Options{})
			if err == nil {
				conn.Abort()
				t.Fatal("connected")
			}
			if c.want != nil && !c.want(err) || !strings.Contains(err.Error(), c.says) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("error %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Dial(ctx, silent, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestTheConnectionOutlivesTheContextOfItsDial(t *testing.T) {
	url := startNullServer(t)
	ctx, cancel := context.WithCancel(context.Background())
	c, err := Dial(ctx, url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abort()
	cancel()
	if err := publish(c, []byte(benchEvent), 10); err != nil {
		t.Error(err)
	}
}

func TestCompressionIsOfferedOnlyWhenAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	for _, asked := range []bool{false, true} {
		c := connectWith(t, "ws"+strings.TrimPrefix(server.URL, "http"), Options{Compression: asked})
		if got := strings.HasPrefix(c.Negotiated(), "permessage-deflate"); got != asked {
			t.Errorf("asked %v, negotiated %q", asked, c.Negotiated())
		}
		text := strings.Repeat("compressible ", 1000)
		for range 2 {
			c.Send([]byte(text))
			if got, _, err := c.Read(); err != nil || string(got) != text {
				t.Fatalf("%d bytes came back, %v", len(got), err)
			}
		}
		if small := c.BytesRead() < int64(len(text)); small != asked {
			t.Errorf("asked %v, %d bytes on the wire", asked, c.BytesRead())
		}
	}
}

func TestTLSWorksOverTheBufferingConnection(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	url := "wss" + strings.TrimPrefix(server.URL, "https")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := Dial(ctx, url, Options{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c, err := dial(ctx, url, Options{}, &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abort()
	for _, n := range []int{1, 1000, 1 << 20} {
		text := strings.Repeat("x", n)
		c.Send([]byte(text))
		if got, _, err := c.Read(); err != nil || string(got) != text {
			t.Fatalf("%d bytes came back, %v", len(got), err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func echo(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		return
	}
	defer ws.CloseNow()
	ws.SetReadLimit(-1)
	for {
		kind, data, err := ws.Read(context.Background())
		if err != nil {
			return
		}
		ws.Write(context.Background(), kind, data)
	}
}

func TestNagleIsOffOnBothSides(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 1)
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { websocket.Accept(w, r, nil) }),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			accepted <- conn.(serverConn).Conn
			return ctx
		},
	}
	go server.Serve(BufferedListener(l))
	defer server.Close()
	c := connect(t, "ws://"+l.Addr().String())
	for side, conn := range map[string]net.Conn{"client": c.conn.Conn, "server": <-accepted} {
		raw, err := conn.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		value := 0
		raw.Control(func(fd uintptr) {
			value, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY)
		})
		if err != nil || value == 0 {
			t.Errorf("%s: TCP_NODELAY is %d, %v", side, value, err)
		}
	}
}

func TestAnUnknownNameIsSaidWithoutTheNameServer(t *testing.T) {
	_, err := Dial(context.Background(), "ws://no-such-host.invalid:7777", Options{})
	if errors.Is(err, context.DeadlineExceeded) {
		t.Skip("this machine's name server does not answer")
	}
	if err == nil || !strings.Contains(err.Error(), "its name was not found") || strings.Contains(err.Error(), ":53") {
		t.Error(err)
	}
}
