package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// serve runs a handler over a BufferedListener and returns its host:port.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go server.Serve(BufferedListener(l))
	t.Cleanup(func() { server.Close() })
	return l.Addr().String()
}

// pair returns both ends of a buffered connection.
func pair(t *testing.T) (server serverConn, client net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := BufferedListener(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); accepted.Close() })
	client.SetDeadline(time.Now().Add(10 * time.Second))
	return accepted.(serverConn), client
}

func expectBytes(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("got %q, want %q: %v", got[:n], want, err)
	}
}

func TestPlainHTTPWorksOnABufferedListener(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, `{"name":"relay"}`+string(body))
		if r.URL.Path == "/stream" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	large := strings.Repeat("x", 3<<20)
	for range 3 { // the same connection
		resp, err := client.Post("http://"+address, "text/plain", strings.NewReader(large))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != `{"name":"relay"}`+large {
			t.Fatalf("%d bytes, %v", len(body), err)
		}
	}
	resp, err := client.Get("http://" + address + "/stream") // an answer that leaves while its handler goes on
	if err != nil {
		t.Fatal(err)
	}
	expectBytes(t, resp.Body, `{"name":"relay"}`)
	resp.Body.Close()
}

func TestLiveEventsLeaveWhileTheServerWaitsInRead(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		pushes := make(chan struct{})
		go func() { // the live subscription: pushes while the loop below waits in Read
			for range pushes {
				for range 3 {
					ws.Write(context.Background(), websocket.MessageText, []byte(`["NOTICE","live"]`))
				}
			}
		}()
		defer close(pushes)
		for {
			if _, _, err := ws.Read(context.Background()); err != nil {
				return
			}
			pushes <- struct{}{}
		}
	})
	c := connect(t, "ws://"+address)
	for range 100 {
		c.Send([]byte("more"))
		for range 3 {
			if _, _, err := c.Read(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestWritesAreCollectedUntilTheServerReads(t *testing.T) {
	server, client := pair(t)
	server.late.Stop()
	server.armed = true // so that only what is tested flushes
	for range 100 {
		server.Write([]byte("x"))
	}
	if server.Pending() != 100 {
		t.Fatalf("%d bytes pending before anything asks for them to be sent", server.Pending())
	}
	go server.Read(make([]byte, 1))
	expectBytes(t, client, strings.Repeat("x", 100))
}

func TestWhatIsWrittenLeaves(t *testing.T) {
	for _, c := range []struct {
		name string
		act  func(c serverConn)
	}{
		{"on Flush", func(c serverConn) { c.Flush() }},
		{"on Close", func(c serverConn) { c.Close() }},
		{"on CloseWrite", func(c serverConn) { c.CloseWrite() }},
		{"before a write deadline", func(c serverConn) { c.SetWriteDeadline(time.Now().Add(-time.Second)) }},
		{"before a deadline", func(c serverConn) { c.SetDeadline(time.Now().Add(-time.Second)) }},
		{"by itself after a moment", func(serverConn) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, client := pair(t)
			server.Write([]byte("text"))
			c.act(server)
			expectBytes(t, client, "text")
		})
	}
	server, client := pair(t)
	server.armed = true
	server.Write(bytes.Repeat([]byte("x"), flushSize)) // by its size
	expectBytes(t, client, strings.Repeat("x", flushSize))
}

func TestASlowPeerGetsBackpressureAndKeepsNobodyFromReading(t *testing.T) {
	server, client := pair(t)
	blocked := make(chan error)
	go func() {
		chunk := bytes.Repeat([]byte("x"), 100_000)
		for {
			if _, err := server.Write(chunk); err != nil {
				blocked <- err
				return
			}
		}
	}()
	for server.Pending() < serverPending {
		time.Sleep(time.Millisecond)
	}
	if pending := server.Pending(); pending > serverPending+100_000 {
		t.Errorf("%d bytes pending", pending)
	}
	client.Write([]byte("hello"))
	expectBytes(t, server, "hello")
	server.Close()
	if err := <-blocked; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the blocked Write ended with %v", err)
	}
}

func TestCloseSendsWhatASlowPeerHasNotTakenYet(t *testing.T) {
	server, client := pair(t)
	const size = 16 << 20
	go func() {
		server.Write(bytes.Repeat([]byte("x"), size)) // one Write may exceed the limit
		server.Close()
	}()
	got, err := io.ReadAll(client)
	if err != nil || len(got) != size {
		t.Errorf("%d of %d bytes, %v", len(got), size, err)
	}
}

func TestCloseEndsAWaitingReadEvenWhileItLingers(t *testing.T) {
	server, _ := pair(t)
	ended := make(chan error)
	go func() {
		_, err := server.Read(make([]byte, 1))
		ended <- err
	}()
	server.Write(bytes.Repeat([]byte("x"), 16<<20)) // more than the peer's socket takes
	server.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read ended with %v", err)
	}
	if _, err := server.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write says %v", err)
	}
}

func TestAConnectionWithoutADescriptorIsWrittenInTheBackground(t *testing.T) {
	near, far := net.Pipe() // has no file descriptor, and blocks until the other side reads
	c := newBufferedConn(near, serverPending)
	defer c.abort()
	c.Write([]byte("text"))
	c.Flush()
	expectBytes(t, far, "text")
}
