package reference

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// FuzzClientFrames sends arbitrary text to a relay over a real connection: the next, sane message
// must be answered.
func FuzzClientFrames(f *testing.F) {
	valid := note(testKey(1), 100, "x", corpus.Tag{"t", "a"})
	event := string(valid.AppendJSON(nil))
	for _, seed := range []string{
		`["EVENT",` + event + `]`, `["REQ","a",{"kinds":[1],"#t":["a"],"limit":1}]`, `["REQ","a",{"ids":[]},{"since":1,"until":0}]`,
		`["COUNT","a",{}]`, `["CLOSE","a"]`, `[`, `["EVENT",{"id":"x"}]`, `["REQ","\u0000",{"#\"":["\\"]}]`, "\x00", `["REQ","a",{"limit":0}`, `[[[[`,
	} {
		f.Add([]byte(seed))
	}
	store := NewMemory()
	url, stop := startServing(f, Options{Store: store, NoVerify: true})
	f.Cleanup(stop)
	f.Fuzz(func(t *testing.T, frame []byte) {
		conn, err := wire.Dial(context.Background(), url, wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Abort()
		conn.WatchUseful(time.Minute)
		conn.Send(bytes.ToValidUTF8(frame, nil))
		conn.Send([]byte(`["COUNT","sane",{"ids":[]}]`))
		for {
			got, _, err := conn.Read()
			if err != nil {
				t.Fatalf("after %q: %v", frame, err)
			}
			if bytes.HasPrefix(got, []byte(`["COUNT","sane",`)) {
				return
			}
		}
	})
}

// FuzzNullFrames does the same to the null relay's scanning, without the socket.
func FuzzNullFrames(f *testing.F) {
	for _, seed := range []string{`["EVENT",{"id":"`, `["REQ","a",{"ids":["`, `["REQ","a",{"limit":3}]`, `["COUNT","\"`, `["REQ","a\`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if bytes.Contains(frame, []byte(`"limit":`)) {
			return // up to a million events: nothing is learnt from writing them
		}
		c := nullConn{Conn: discard{}}
		if err := c.answer(frame); err != nil {
			t.Fatal(err)
		}
		if frameEnd(c.buf, len(c.buf)) != len(c.buf) {
			t.Fatalf("not one frame: %q", c.buf)
		}
	})
}

type discard struct{ net.Conn }

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// FuzzRecord holds the scanning of canonical JSON against the parser.
func FuzzRecord(f *testing.F) {
	f.Add("t", "a", "content \" [\"p\",\"x\"]")
	f.Add("\"", "\\", "\n")
	f.Add("pp", "[[", "]]")
	f.Add("expiration", "12345", "67")
	f.Fuzz(func(t *testing.T, name, value, content string) {
		e := corpus.Event{Kind: 1, CreatedAt: 7, Content: content, Tags: []corpus.Tag{{}, {name}, {name, value, content}, {"x", value}, {value, name}, {"expiration", content}}}
		r := NewRecord(&e)
		again, err := parseRecord(3, r.Raw)
		if err != nil || again.CreatedAt != 7 || again.Kind != 1 || again.Expires != r.Expires {
			t.Fatalf("%+v, %v", again, err)
		}
		var got []string
		for n, v := range r.indexedTags() {
			got = append(got, string(n), string(v))
		}
		var want []string
		for _, tag := range e.Tags {
			if len(tag) > 1 && len(tag[0]) == 1 {
				want = append(want, escape(tag[0]), escape(tag[1]))
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%q: got %q, want %q", r.Raw, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%q: got %q, want %q", r.Raw, got, want)
			}
		}
	})
}
