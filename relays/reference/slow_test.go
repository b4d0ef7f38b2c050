package reference

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
)

// dialDeaf opens a WebSocket of which the test reads nothing but what it chooses to, with a small
// buffer in the kernel.
func dialDeaf(t *testing.T, url string) (net.Conn, *bufio.Reader) {
	t.Helper()
	address := strings.TrimPrefix(url, "ws://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.(*net.TCPConn).SetReadBuffer(128 << 10)
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", address)
	r := bufio.NewReaderSize(conn, 1024)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "\r\n" {
			return conn, r
		}
	}
}

// maskedFrame is a client's text frame with a mask of zeros.
func maskedFrame(text string) []byte {
	b := appendHeader(nil, 0x81, len(text))
	b[1] |= 0x80
	return append(append(b, 0, 0, 0, 0), text...)
}

// fillStore puts n events of about size bytes into a memory store.
func fillStore(t testing.TB, n, size int) *Memory {
	s := NewMemory()
	var seq uint64
	var events []corpus.Event
	for i := range n {
		events = append(events, fake(1, 1, int64(i), fmt.Sprint(i)+strings.Repeat("x", size)))
	}
	admitAll(t, s, &seq, events)
	return s
}

func TestAPeerThatReadsNothingIsClosedWithAReason(t *testing.T) {
	store := fillStore(t, 3000, 10_000) // 30 MB: more than the kernel holds
	gaveUp := make(chan struct{})
	url, stop := startServing(t, Options{Store: store, Stall: time.Second, Log: func(string, ...any) { close(gaveUp) }})
	defer stop()
	conn, r := dialDeaf(t, url)
	conn.Write(maskedFrame(`["REQ","all",{}]`))

	// Others are served meanwhile, and the store can be written.
	c := dialTalker(t, url)
	c.accepted(note(testKey(2), 1_000_000, "meanwhile"))

	<-gaveUp // from now on there is another second for last words
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	rest, err := io.ReadAll(r)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatalf("after %d bytes: %v", len(rest), err)
	}
	if len(rest) > 20<<20 {
		t.Errorf("%d bytes came from a relay that should have given up", len(rest))
	}
	if !bytes.HasSuffix(rest, []byte("too slow: nothing was read for 1s")) {
		t.Errorf("last words: %q", rest[max(0, len(rest)-60):])
	}
	if end := frameEnd(rest, len(rest)); end != len(rest) {
		t.Errorf("the stream is %d bytes long but its frames end at %d", len(rest), end)
	}
}

func TestASlowReaderThatGoesOnReadingGetsEverything(t *testing.T) {
	store := fillStore(t, 400, 20_000)
	url, stop := startServing(t, Options{Store: store, Stall: 400 * time.Millisecond})
	defer stop()
	conn, r := dialDeaf(t, url)
	conn.Write(maskedFrame(`["REQ","all",{}]`))
	conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	pauses := 0
	var got []byte
	for !bytes.HasSuffix(got, []byte(`["EOSE","all"]`)) {
		piece := make([]byte, 1<<20)
		n, err := r.Read(piece)
		if err != nil {
			t.Fatalf("after %d bytes: %v", len(got), err)
		}
		got = append(got, piece[:n]...)
		if pauses < 8 && len(got) > pauses*len(store.sorted)*2000 {
			pauses++
			time.Sleep(100 * time.Millisecond) // altogether longer than the stall time
		}
	}
	if n := bytes.Count(got, []byte(`["EVENT","all",`)); n != 400 {
		t.Errorf("%d events of 400", n)
	}
}

func TestASubscriberThatFallsTooFarBehindIsClosed(t *testing.T) {
	gaveUp := make(chan struct{})
	url, stop := startServing(t, Options{Store: NewMemory(), NoVerify: true, MaxPending: 100_000, Log: func(string, ...any) { close(gaveUp) }})
	defer stop()
	conn, r := dialDeaf(t, url)
	conn.Write(maskedFrame(`["REQ","live",{"limit":0}]`))
	c := dialTalker(t, url)
publishing:
	for i := range 3000 {
		c.accepted(fake(1, 1, int64(i), strings.Repeat("x", 20_000)))
		select {
		case <-gaveUp:
			break publishing
		default:
		}
	}
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	rest, _ := io.ReadAll(r)
	if len(rest) > 10<<20 || !bytes.Contains(rest[max(0, len(rest)-200):], []byte("too slow: live events")) {
		t.Errorf("%d bytes, last words %q", len(rest), rest[max(0, len(rest)-60):])
	}
}

func TestAPeerThatOnlyAsksIsNotReadFrom(t *testing.T) {
	url, stop := startServing(t, Options{Store: fillStore(t, 50, 10_000), Stall: 300 * time.Millisecond})
	defer stop()
	conn, _ := dialDeaf(t, url)
	var many []byte
	for i := range 1000 {
		many = append(many, maskedFrame(fmt.Sprintf(`["REQ","%d",{}]`, i%50))...) // half a megabyte each
	}
	conn.SetWriteDeadline(time.Now().Add(20 * time.Second))
	sent := 0
	for {
		n, err := conn.Write(many)
		sent += n
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Fatalf("still connected after %d bytes", sent)
		} else if err != nil {
			break
		}
	}
	if sent > 200<<20 {
		t.Errorf("%d bytes were taken from a peer that reads nothing", sent)
	}
}
