package wire

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// The test program is its own server when this is set, so that a server's CPU time and allocations
// are not the client's.
const nullServerVariable = "RELAYBENCH_WIRE_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(nullServerVariable) == "" {
		os.Exit(m.Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ws://" + l.Addr().String())
	go serveNull(l)
	io.Copy(io.Discard, os.Stdin) // ends with the parent
}

// startNullServer runs serveNull in a process of its own and returns its URL.
func startNullServer(tb testing.TB) string {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), nullServerVariable+"=1")
	cmd.Stderr = os.Stderr
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		tb.Fatal("the server process said nothing: ", err)
	}
	return strings.TrimSpace(line)
}

const answerSize = 500 // EVENT frames in a null server's answer

// serveNull answers EVENT with OK and anything else with answerSize EVENT frames and EOSE, over a
// BufferedListener.
func serveNull(l net.Listener) error {
	stored := []byte(`["EVENT","s",` + benchEvent + `]`)
	return http.Serve(BufferedListener(l), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ctx := context.Background()
		var frame, answer []byte
		buf := bytes.NewBuffer(nil)
		for {
			_, reader, err := ws.Reader(ctx)
			if err != nil {
				return
			}
			buf.Reset()
			buf.ReadFrom(reader)
			frame = buf.Bytes()
			if at := bytes.Index(frame, []byte(`"id":"`)); at >= 0 && bytes.HasPrefix(frame, []byte(`["EVENT"`)) {
				answer = append(answer[:0], `["OK","`...)
				answer = append(answer, frame[at+6:at+6+64]...)
				answer = append(answer, `",true,""]`...)
				ws.Write(ctx, websocket.MessageText, answer)
				continue
			}
			for range answerSize {
				ws.Write(ctx, websocket.MessageText, stored)
			}
			ws.Write(ctx, websocket.MessageText, []byte(`["EOSE","s"]`))
		}
	}))
}

// benchEvent is a note of about 600 bytes.
var benchEvent = event(idA, strings.Repeat("words of a note ", 10))

// rawRelay accepts one connection after another, upgrades each by hand and gives it to script,
// which writes bytes as it likes.
func rawRelay(t *testing.T, script func(conn net.Conn)) string {
	t.Helper()
	return rawServer(t, func(conn net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			base64.StdEncoding.EncodeToString(sum[:]))
		script(conn)
	})
}

// rawServer gives each TCP connection to script and closes it afterwards.
func rawServer(t *testing.T, script func(conn net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				script(conn)
			}()
		}
	}()
	return "ws://" + l.Addr().String()
}

const (
	opText   = 0x81
	opBinary = 0x82
	opClose  = 0x88
	opPing   = 0x89
	opPong   = 0x8a
)

// serverFrame is an unmasked frame.
func serverFrame(first byte, payload string) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, payload...)
}

// readFrame reads one masked frame of a client.
func readFrame(r io.Reader) (first byte, payload []byte, err error) {
	var head [14]byte
	if _, err = io.ReadFull(r, head[:2]); err != nil {
		return 0, nil, err
	}
	n := uint64(head[1] & 0x7f)
	switch n {
	case 126:
		_, err = io.ReadFull(r, head[2:4])
		n = uint64(binary.BigEndian.Uint16(head[2:]))
	case 127:
		_, err = io.ReadFull(r, head[2:10])
		n = binary.BigEndian.Uint64(head[2:])
	}
	if err != nil {
		return 0, nil, err
	}
	if head[1]&0x80 == 0 {
		return 0, nil, fmt.Errorf("a client's frame without a mask")
	}
	var mask [4]byte
	if _, err = io.ReadFull(r, mask[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(r, payload)
	for i := range payload {
		payload[i] ^= mask[i%4]
	}
	return head[0], payload, err
}

func connect(tb testing.TB, url string) *Conn {
	tb.Helper()
	return connectWith(tb, url, Options{})
}

func connectWith(tb testing.TB, url string, o Options) *Conn {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := Dial(ctx, url, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Abort)
	c.WatchUseful(20 * time.Second) // no test hangs
	return c
}
