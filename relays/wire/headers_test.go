package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// announcing is a header of a frame that does not come.
func announcing(first byte, length uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{first, 127}, length)
}

// The relay holds the connection open after the header and the watchdog has an hour: what comes
// back was decided at the header.
func TestAMessageOverTheLimitIsRefusedAtItsHeader(t *testing.T) {
	const limit, huge = 2000, 1 << 62
	masked := announcing(opText, huge)
	masked[1] |= 0x80
	for _, c := range []struct {
		name      string
		writes    [][]byte
		before    int // good frames
		announced int64
	}{
		{"text", [][]byte{announcing(opText, huge)}, 0, huge},
		{"binary", [][]byte{announcing(opBinary, huge)}, 0, huge},
		{"the most that a header can say", [][]byte{announcing(opText, 1<<63-1)}, 0, 1<<63 - 1},
		{"one byte over the limit", [][]byte{{opText, 126, 0x07, 0xd1}}, 0, 2001},
		{"with a mask, of which nothing came", [][]byte{masked}, 0, huge},
		{"after good frames, in one write", [][]byte{bytes.Join([][]byte{serverFrame(opText, "[1]"), serverFrame(opPing, "x"), serverFrame(opText, "[2]"), announcing(opText, huge)}, nil)}, 2, huge},
		{"a byte at a time", bytes.SplitAfter(announcing(opText, huge), nil), 0, huge},
		{"a fragment", [][]byte{serverFrame(0x01, "12345"), serverFrame(opPing, "x"), announcing(0x00, huge)}, 0, huge + 5},
		{"fragments that are each within the limit", [][]byte{serverFrame(0x01, string(make([]byte, 1500))), {0x80, 126, 0x01, 0xf5}}, 0, 2001},
		{"fragments beyond what can be counted", [][]byte{serverFrame(0x01, "12345"), announcing(0x80, 1<<63-1)}, 0, 1<<63 - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			closing := make(chan byte, 16)
			conn := connectWith(t, rawRelay(t, func(conn net.Conn) {
				for _, part := range c.writes {
					conn.Write(part)
				}
				for { // until this side has gone
					first, _, err := readFrame(conn)
					if err != nil {
						close(closing)
						return
					}
					closing <- first
				}
			}), Options{ReadLimit: limit})
			conn.WatchUseful(time.Hour)
			for range c.before {
				if _, _, err := conn.Read(); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := conn.Read()
			var large *TooLargeError
			if !errors.As(err, &large) || !errors.Is(err, ErrTooLarge) || *large != (TooLargeError{c.announced, limit}) {
				t.Fatalf("%#v", err)
			}
			last := byte(0)
			for last = range closing {
			}
			if last != opClose {
				t.Errorf("the relay was told nothing: its last frame was %#x", last)
			}
		})
	}
}

func TestHeadersAreFollowedHoweverTheStreamIsCut(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var stream []byte
	frames := 0
	for open := false; len(stream) < 1<<20; frames++ {
		payload := string(make([]byte, []int{0, 1, 125, 126, 4000, 65535, 65536, r.IntN(300)}[r.IntN(8)]))
		first := byte(0x80 * r.IntN(2)) // a fragment, the last one or not
		switch {
		case r.IntN(4) == 0:
			first, payload = opPing, payload[:min(len(payload), 125)]
		case !open:
			first |= 1
		}
		if first != opPing {
			open = first&0x80 == 0
		}
		frame := serverFrame(first, payload)
		if r.IntN(3) == 0 { // a server that masks, which the library puts up with
			head := len(frame) - len(payload)
			frame[1] |= 0x80
			frame = append(append(append([]byte{}, frame[:head]...), 1, 2, 3, 4), frame[head:]...)
		}
		stream = append(stream, frame...)
	}
	whole := len(stream)
	stream = append(stream, announcing(opText, 1<<62)...)
	stream = append(stream, "rest"...)
	for range 50 {
		h := headers{limit: 1 << 30}
		passed := 0
		for rest := stream; ; {
			cut := min(len(rest), 1+r.IntN([]int{2, 100, 100_000}[r.IntN(3)]))
			n, large := h.pass(rest[:cut])
			passed += n
			if large != nil {
				if large.Announced != 1<<62 {
					t.Fatalf("%+v", large)
				}
				break
			}
			if n != cut {
				t.Fatalf("%d of %d bytes passed without an error", n, cut)
			}
			rest = rest[cut:]
			if len(rest) == 0 {
				t.Fatal("the last header was not seen")
			}
		}
		if passed < whole || passed > whole+9 { // what came of the header earlier was passed
			t.Fatalf("%d bytes passed, %d are good", passed, whole)
		}
	}
	t.Logf("%d frames", frames)
}

func TestACompressedMessageThatInflatesOverTheLimitIsTooLarge(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	url := "ws" + strings.TrimPrefix(server.URL, "http")
	conn := connectWith(t, url, Options{ReadLimit: 10_000, Compression: true})
	conn.WatchUseful(time.Hour)
	if err := conn.Send(bytes.Repeat([]byte("x"), 9_999)); err != nil {
		t.Fatal(err)
	}
	if frame, _, err := conn.Read(); err != nil || len(frame) != 9_999 {
		t.Fatalf("%d bytes, %v", len(frame), err)
	}
	conn.Send(bytes.Repeat([]byte("x"), 1<<20))
	var large *TooLargeError
	if _, _, err := conn.Read(); !errors.As(err, &large) || *large != (TooLargeError{0, 10_000}) {
		t.Errorf("%v", err)
	}
	// What cannot be compressed grows a little, and is still within the limit.
	conn = connectWith(t, url, Options{ReadLimit: 200_000, Compression: true})
	noise := make([]byte, 200_000)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	if err := conn.Send(noise); err != nil {
		t.Fatal(err)
	}
	if frame, _, err := conn.Read(); err != nil || !bytes.Equal(frame, noise) {
		t.Errorf("%d bytes, %v", len(frame), err)
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add(serverFrame(opText, "x"), 1)
	f.Add(announcing(opText, 1<<62), 3)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		h := headers{limit: 1000}
		for r := bytes.NewReader(stream); ; {
			buf := make([]byte, 1+max(0, cut)%4096)
			n, err := r.Read(buf)
			if err == io.EOF {
				return
			}
			kept, large := h.pass(buf[:n])
			if kept < 0 || kept > n || large == nil && kept != n || large != nil && large.Announced <= 1000 {
				t.Fatalf("%d of %d kept, %v", kept, n, large)
			}
			if large != nil {
				return
			}
		}
	})
}
