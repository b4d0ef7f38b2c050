package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestPublishAndReceiveThroughARealServer(t *testing.T) {
	c := connect(t, startNullServer(t))
	if err := publish(c, []byte(benchEvent), 1000); err != nil {
		t.Fatal(err)
	}
	if err := receive(c, 3); err != nil {
		t.Fatal(err)
	}
	if c.Negotiated() != "" {
		t.Errorf("negotiated %q without asking", c.Negotiated())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Read(); !errors.Is(err, ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if err := c.Send([]byte("[]")); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after Close: %v", err)
	}
}

func TestFramesArriveWholeWhateverTheirSize(t *testing.T) {
	url := rawRelay(t, func(conn net.Conn) {
		for {
			_, payload, err := readFrame(conn)
			if err != nil {
				return
			}
			conn.Write(serverFrame(opText, string(payload)))
		}
	})
	c := connect(t, url)
	for _, n := range []int{0, 1, 125, 126, 4095, 4096, 4097, 65535, 65536, 1 << 20, 3_999_999} {
		frame := bytes.Repeat([]byte{'x'}, n)
		if err := c.SendEvent(frame); err != nil {
			t.Fatal(err)
		}
		got, _, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		if want := eventHead + string(frame) + eventTail; string(got) != want {
			t.Fatalf("%d bytes came back as %d", len(want), len(got))
		}
	}
}

func TestBytesAreCountedFromTheHandshakeOn(t *testing.T) {
	greeting := serverFrame(opText, `["AUTH","challenge"]`)
	url := rawRelay(t, func(conn net.Conn) {
		conn.Write(greeting)
		_, payload, _ := readFrame(conn)
		conn.Write(serverFrame(opText, string(payload)))
		io.Copy(io.Discard, conn)
	})
	c := connect(t, url)
	c.Send([]byte("12345"))
	for range 2 {
		if _, _, err := c.Read(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := c.BytesRead(), int64(len(greeting)+2+5); got != want {
		t.Errorf("%d bytes read, want %d", got, want)
	}
	if got, want := c.BytesWritten(), int64(2+4+5); got != want {
		t.Errorf("%d bytes written, want %d", got, want)
	}
}

func TestFragmentsPingsAndBinaryFramesBetweenTextFrames(t *testing.T) {
	pongs := make(chan string, 1)
	url := rawRelay(t, func(conn net.Conn) {
		conn.Write(serverFrame(0x01, `["NOTICE",`)) // not final
		conn.Write(serverFrame(opPing, "in between"))
		conn.Write(serverFrame(0x80, `"two parts"]`))
		conn.Write(serverFrame(opBinary, `["NOTICE","binary"]`))
		conn.Write(serverFrame(opText, `["NOTICE","last"]`))
		_, payload, _ := readFrame(conn)
		pongs <- string(payload)
		io.Copy(io.Discard, conn)
	})
	c := connect(t, url)
	for _, want := range []string{"two parts", "last"} {
		frame, _, err := c.Read()
		var m Message
		if Parse(frame, &m); err != nil || m.Type != Notice || string(m.Reason) != want {
			t.Fatalf("%q, %v; want %s", frame, err, want)
		}
	}
	if c.Garbage().Binary() != 1 {
		t.Errorf("%d binary frames counted", c.Garbage().Binary())
	}
	if got := <-pongs; got != "in between" { // nobody reads any more: the pong went out by itself
		t.Errorf("pong %q", got)
	}
}

func TestTimeStampsAreThoseOfArrivalAndSharedByOneRead(t *testing.T) {
	proceed := make(chan struct{})
	url := rawRelay(t, func(conn net.Conn) {
		two := append(serverFrame(opText, "1"), serverFrame(opText, "2")...)
		conn.Write(two)
		<-proceed
		conn.Write(serverFrame(opText, "3"))
		io.Copy(io.Discard, conn)
	})
	c := connect(t, url)
	_, first, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	_, second, _ := c.Read()
	between := Now()
	close(proceed)
	_, third, err := c.Read()
	if err != nil || first != second || third <= between || third > Now() {
		t.Errorf("stamps %v, %v, then after %v %v (%v)", first, second, between, third, err)
	}
}

func TestEveryEndHasItsOwnError(t *testing.T) {
	hang := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	write := func(b ...[]byte) func(net.Conn) {
		return func(conn net.Conn) {
			conn.Write(bytes.Join(b, nil))
			hang(conn)
		}
	}
	flood := func(frame []byte) func(net.Conn) {
		return func(conn net.Conn) {
			go hang(conn)
			for many := bytes.Repeat(frame, 1000); ; {
				if _, err := conn.Write(many); err != nil {
					return
				}
			}
		}
	}
	deaf := func(conn net.Conn) { // floods with pings and reads no pong
		for many := bytes.Repeat(serverFrame(opPing, strings.Repeat("x", 125)), 1000); ; {
			if _, err := conn.Write(many); err != nil {
				return
			}
		}
	}
	isClose := func(code int, reason string) func(error) bool {
		return func(err error) bool {
			var closed *CloseError
			return errors.As(err, &closed) && closed.Code == code && closed.Reason == reason
		}
	}
	is := func(target error) func(error) bool {
		return func(err error) bool { return errors.Is(err, target) }
	}
	for _, c := range []struct {
		name   string
		script func(net.Conn)
		want   func(error) bool
	}{
		{"closes between frames", func(net.Conn) {}, is(ErrLost)},
		{"closes inside a header", func(conn net.Conn) { conn.Write([]byte{opText}) }, is(ErrLost)},
		{"closes inside a frame", func(conn net.Conn) { conn.Write(serverFrame(opText, "whole")[:4]) }, is(ErrLost)},
		{"resets", func(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0) }, is(ErrLost)},
		{"close frame with code and reason", write(serverFrame(opClose, "\x03\xf0bye\x1b[2J")), isClose(1008, "bye\x1b[2J")},
		{"close frame without a code", write(serverFrame(opClose, "")), isClose(1005, "")},
		{"close frame with a forbidden code", write(serverFrame(opClose, "\x03\xee")), is(ErrProtocol)},
		{"frame over the limit", write(serverFrame(opText, strings.Repeat("x", 2001))), is(ErrTooLarge)},
		{"frame that claims exabytes", write([]byte{opText, 127, 0x7f, 255, 255, 255, 255, 255, 255, 255}, make([]byte, 5000)), is(ErrTooLarge)},
		{"frame that claims a negative length", write([]byte{opText, 127, 255, 255, 255, 255, 255, 255, 255, 255}), is(ErrProtocol)},
		{"fragments over the limit", flood(serverFrame(0x00, "xx")), is(ErrProtocol)},
		{"fragments without end", func(conn net.Conn) {
			conn.Write(serverFrame(0x01, "x"))
			flood(serverFrame(0x00, "x"))(conn)
		}, is(ErrTooLarge)},
		{"garbage", write([]byte("HTTP/1.1 500 Internal Server Error\r\n\r\n")), is(ErrProtocol)},
		{"compressed though not negotiated", write(serverFrame(0xc1, "xx")), is(ErrProtocol)},
		{"unknown opcode", write(serverFrame(0x83, "")), is(ErrProtocol)},
		{"ping that is too long", write(serverFrame(opPing, strings.Repeat("x", 126))), is(ErrProtocol)},
		{"says nothing", hang, is(ErrStalled)},
		{"stops inside a frame", write(serverFrame(opText, "whole")[:4]), is(ErrStalled)},
		{"ping flood", flood(serverFrame(opPing, "x")), is(ErrStalled)},
		{"ping flood without reading", deaf, is(ErrStalled)},
		{"binary flood", flood(serverFrame(opBinary, "x")), is(ErrStalled)},
		{"empty fragments without end", func(conn net.Conn) {
			conn.Write(serverFrame(0x01, "x"))
			flood(serverFrame(0x00, ""))(conn)
		}, is(ErrStalled)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := connectWith(t, rawRelay(t, c.script), Options{ReadLimit: 2000})
			conn.WatchUseful(200 * time.Millisecond)
			frame, _, err := conn.Read()
			if !c.want(err) {
				t.Fatalf("frame %.40q, error %v", frame, err)
			}
			if _, _, again := conn.Read(); again == nil || again.Error() != err.Error() {
				t.Errorf("a second Read says %v", again)
			}
			if again := conn.Send([]byte("[]")); again == nil || again.Error() != err.Error() {
				t.Errorf("Send says %v", again)
			}
		})
	}
}

func TestTheRelayIsToldThatItsFrameWasTooLarge(t *testing.T) {
	closing := make(chan []byte, 1)
	url := rawRelay(t, func(conn net.Conn) {
		conn.Write(serverFrame(opText, strings.Repeat("x", 2001)))
		first, payload, _ := readFrame(conn)
		closing <- append([]byte{first}, payload...)
	})
	c := connectWith(t, url, Options{ReadLimit: 2000})
	if _, _, err := c.Read(); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
	if got := <-closing; !bytes.HasPrefix(got, []byte{opClose, 0x03, 0xf1}) { // 1009
		t.Errorf("the relay got %q", got)
	}
}

// A relay that stops reading must not keep its own frames from being read, nor time-stamped when
// they come.
func TestReadingGoesOnWhileTheRelayDoesNotRead(t *testing.T) {
	const frames = 50
	proceed := make(chan struct{})
	read := make(chan int)
	url := rawRelay(t, func(conn net.Conn) {
		for range frames {
			<-proceed
			conn.Write(serverFrame(opText, `["NOTICE","still here"]`))
		}
		<-proceed
		n := 0
		for { // now read it all
			_, payload, err := readFrame(conn)
			if err != nil || string(payload) == "end" {
				break
			}
			n++
		}
		read <- n
	})
	c := connect(t, url)
	raw := bytes.Repeat([]byte("x"), 1<<20)
	sent := 0
	for range frames / 2 { // 25 MiB, more than the sockets hold
		if err := c.SendEvent(raw); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	for range frames {
		before := Now()
		proceed <- struct{}{}
		frame, at, err := c.Read()
		if err != nil || at < before || !bytes.Contains(frame, []byte("still here")) {
			t.Fatalf("%q at %v, asked for at %v: %v", frame, at, before, err)
		}
	}
	if c.conn.Pending() == 0 {
		t.Fatal("the relay's socket took everything: nothing was tested")
	}
	c.Send([]byte("end"))
	proceed <- struct{}{}
	if got := <-read; got != sent {
		t.Errorf("the relay read %d of %d frames", got, sent)
	}
}

func TestSendBlocksWhenTheRelayIsTooFarBehindAndTheWatchdogEndsIt(t *testing.T) {
	stop := make(chan struct{})
	url := rawRelay(t, func(net.Conn) { <-stop })
	defer close(stop)
	c := connect(t, url)
	c.conn.limit = 1 << 20
	c.WatchUseful(200 * time.Millisecond)
	raw := bytes.Repeat([]byte("x"), 1<<20)
	for i := range 1000 {
		if err := c.SendEvent(raw); err != nil {
			if !errors.Is(err, ErrStalled) {
				t.Fatal(err)
			}
			if _, _, err := c.Read(); !errors.Is(err, ErrStalled) {
				t.Errorf("Read says %v", err)
			}
			return
		}
		if i > 100 {
			break
		}
	}
	t.Fatal("Send never blocked")
}

func TestAfterAFailedSendReadStillTellsTheReason(t *testing.T) {
	url := rawRelay(t, func(conn net.Conn) {
		conn.Write(serverFrame(opText, `["NOTICE","go away"]`))
		conn.Write(serverFrame(opClose, "\x03\xf0rate-limited"))
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, conn)
	})
	c := connect(t, url)
	c.conn.mu.Lock()
	c.conn.stopWriting(syscall.EPIPE)
	c.conn.mu.Unlock()
	if err := c.Send([]byte("[]")); !errors.Is(err, ErrLost) || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("Send: %v", err)
	}
	if frame, _, err := c.Read(); err != nil {
		t.Errorf("%q %v", frame, err)
	}
	var closed *CloseError
	if _, _, err := c.Read(); !errors.As(err, &closed) || closed.Reason != "rate-limited" {
		t.Errorf("Read: %v", err)
	}
}

func TestCloseIsBoundedAndAbortWakesReaders(t *testing.T) {
	stop := make(chan struct{})
	url := rawRelay(t, func(net.Conn) { <-stop })
	defer close(stop)
	deaf := connect(t, url)
	if err := deaf.Close(); err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("Close to a deaf relay: %v", err)
	}
	c := connect(t, url)
	ended := make(chan error)
	go func() {
		_, _, err := c.Read()
		ended <- err
	}()
	c.Abort()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("Read ended with %v", err)
	}
}

func TestSendsFromSeveralGoroutinesWhileAnotherReads(t *testing.T) {
	c := connect(t, startNullServer(t))
	const senders, each = 4, 500
	for range senders {
		go func() {
			for range each {
				c.SendEvent([]byte(benchEvent)) // nobody flushes: the waiting Read makes them leave
			}
		}()
	}
	for range senders * each {
		if _, _, err := c.Read(); err != nil {
			t.Fatal(err)
		}
	}
}

// echo sends every message back, compressed if the client offers it. Nagle's algorithm would add
// the 40 ms of a delayed acknowledgement to figures. The kernel itself is asked; BenchmarkRoundTrip
// shows the effect.
func TestSendingAndReadingAllocateNothing(t *testing.T) {
	c := connect(t, startNullServer(t))
	raw := []byte(benchEvent)
	if err := errors.Join(publish(c, raw, 2*window), receive(c, 2)); err != nil { // buffers grow
		t.Fatal(err)
	}
	// The server runs elsewhere, so every allocation counted is this side's. A goroutine of the
	// background writer may allocate now and then, which is not once in a frame.
	published := testing.AllocsPerRun(5, func() {
		if err := publish(c, raw, 2000); err != nil {
			t.Error(err)
		}
	})
	received := testing.AllocsPerRun(5, func() {
		if err := receive(c, 4); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%v allocations for 2,000 events published, %v for 2,000 received", published, received)
	if published > 20 || received > 20 {
		t.Errorf("%v allocations for 2,000 events published, %v for 2,000 received", published, received)
	}
}

func TestNothingRunsOnAfterConnectionsEnd(t *testing.T) {
	url := startNullServer(t)
	before := runtime.NumGoroutine()
	for i := range 20 {
		c := connect(t, url)
		if err := publish(c, []byte(benchEvent), 10); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			c.Close()
		} else {
			c.Abort()
		}
	}
	for range 200 { // goroutines need a moment to end
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}
