package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// inEvent is an EVENT message whose event has one field replaced.
func inEvent(t *testing.T, field, value string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(event(idA, "text")), &fields); err != nil {
		t.Fatal(err)
	}
	fields[field] = json.RawMessage(value)
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(`":1760000000,`)) && strings.Contains(value, ".") {
		t.Fatal("the number was written anew: nothing is tested")
	}
	return `["EVENT","s",` + string(text) + `]`
}

func TestWhatIsNoMessageIsCountedByWhatIsWrongWithIt(t *testing.T) {
	const notUTF8 = "[\"NOTICE\",\"caf\xe9\"]"
	for _, c := range []struct {
		name   string
		opcode byte
		frame  string
		want   Malformation // without count and example; Sound for none
		typ    Type         // of the Message that is returned, where the frame is text
	}{
		{"a NOTICE", opText, `["NOTICE","x"]`, Malformation{}, Notice},
		{"an event", opText, inEvent(t, "content", `"日本語 and é"`), Malformation{}, Event},
		{"a label of its own", opText, `["HELLO",{"x":1}]`, Malformation{}, Unknown},
		{"a NOTICE in a binary frame", opBinary, `["NOTICE","x"]`, Malformation{Fault: Binary, Message: Notice}, 0},
		{"an EVENT in a binary frame", opBinary, inEvent(t, "kind", "1"), Malformation{Fault: Binary, Message: Event}, 0},
		{"random bytes in a binary frame", opBinary, "\x00\xff\x17", Malformation{Fault: Binary}, 0},
		{"a NOTICE that is not UTF-8", opText, notUTF8, Malformation{Fault: NotUTF8, Message: Notice}, Notice},
		{"an event that is not UTF-8", opText, strings.Replace(inEvent(t, "kind", `"1"`), "text", "t\xffxt", 1), Malformation{Fault: NotUTF8, Message: Event}, Event},
		{"random bytes", opText, "\x17\xff\xfe", Malformation{Fault: NotUTF8}, Unknown},
		{"nothing", opText, "", Malformation{Fault: NotJSON}, Unknown},
		{"words", opText, "hello", Malformation{Fault: NotJSON}, Unknown},
		{"an EVENT cut short", opText, inEvent(t, "kind", "1")[:60], Malformation{Fault: NotJSON, Message: Event}, Unknown},
		{"two messages", opText, `["EOSE","s"]["EOSE","s"]`, Malformation{Fault: NotJSON, Message: EOSE}, Unknown},
		{"an object", opText, `{"NOTICE":"x"}`, Malformation{Fault: NotMessage}, Unknown},
		{"an event by itself", opText, event(idA, "x"), Malformation{Fault: NotMessage}, Unknown},
		{"an array without a label", opText, `[1,"NOTICE"]`, Malformation{Fault: NotMessage}, Unknown},
		{"an array of nothing", opText, `[]`, Malformation{Fault: NotMessage}, Unknown},
		{"OK with a word for a boolean", opText, `["OK","` + idA + `","true",""]`, Malformation{Fault: WrongElement, Message: OK}, Unknown},
		{"EVENT without its event", opText, `["EVENT","s"]`, Malformation{Fault: WrongElement, Message: Event}, Unknown},
		{"NEG-MSG with a number", opText, `["NEG-MSG","s",61]`, Malformation{Fault: WrongElement, Message: NegMsg}, Unknown},
		{"a time with a point", opText, inEvent(t, "created_at", "1760000000.0"), Malformation{Fault: WrongField, Message: Event, Field: "created_at"}, Event},
		{"a time as text", opText, inEvent(t, "created_at", `"1760000000"`), Malformation{Fault: WrongField, Message: Event, Field: "created_at"}, Event},
		{"a kind with a point", opText, inEvent(t, "kind", "1.0"), Malformation{Fault: WrongField, Message: Event, Field: "kind"}, Event},
		{"a number for an id", opText, inEvent(t, "id", "7"), Malformation{Fault: WrongField, Message: Event, Field: "id"}, Event},
		{"null for a pubkey", opText, inEvent(t, "pubkey", "null"), Malformation{Fault: WrongField, Message: Event, Field: "pubkey"}, Event},
		{"an object for tags", opText, inEvent(t, "tags", `{"p":"x"}`), Malformation{Fault: WrongField, Message: Event, Field: "tags"}, Event},
		{"an object for content", opText, inEvent(t, "content", `{}`), Malformation{Fault: WrongField, Message: Event, Field: "content"}, Event},
		{"no signature but true", opText, inEvent(t, "sig", `true`), Malformation{Fault: WrongField, Message: Event, Field: "sig"}, Event},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const last = `["EOSE","the last"]`
			conn := connect(t, rawRelay(t, func(conn net.Conn) {
				conn.Write(serverFrame(c.opcode, c.frame))
				conn.Write(serverFrame(c.opcode, c.frame))
				conn.Write(serverFrame(opText, last))
				io.Copy(io.Discard, conn)
			}))
			var m Message
			for seen := 0; ; seen++ {
				frame, _, err := conn.ReadMessage(&m)
				if err != nil {
					t.Fatal(err)
				}
				if string(frame) == last {
					break
				}
				if seen == 2 || c.opcode == opBinary || m.Type != c.typ || m.Fault != c.want.Fault || m.Field != c.want.Field {
					t.Errorf("%q is taken for %v, %v %v", frame, m.Type, m.Fault, m.Field)
				}
			}
			g := conn.Garbage()
			if c.want.Fault == Sound {
				if g.Count != 0 || len(g.Kinds) != 0 || g.Example != "" || g.String() != "" {
					t.Errorf("found %+v", g)
				}
				return
			}
			c.want.Count = 2
			c.want.Example = strings.ToValidUTF8(c.frame[:min(len(c.frame), longestExample)], "\ufffd")
			if g.Count != 2 || g.Example != c.want.Example || len(g.Kinds) != 1 || g.Kinds[0] != c.want || g.Of(c.want.Message) != 2 {
				t.Errorf("found %+v\n want %+v", g, c.want)
			}
			if taken := conn.TakeGarbage(); taken.Count != 2 || conn.Garbage().Count != 0 || len(conn.Garbage().Kinds) != 0 {
				t.Errorf("took %+v and left %+v", taken, conn.Garbage())
			}
		})
	}
}

func TestGarbageIsJoinedByKindAndBounded(t *testing.T) {
	var a, b, all Garbage
	a.see(Binary, "", []byte(`["NOTICE","one"]`))
	a.see(NotJSON, "", []byte("x"))
	b.see(NotJSON, "", []byte(strings.Repeat("y\x1b", 1<<20)))
	b.see(NotJSON, "", []byte("z"))
	b.see(WrongField, "kind", []byte(`["EVENT","s",{}]`))
	all.Add(Garbage{})
	all.Add(b)
	all.Add(a)
	if all.Count != 5 || len(all.Kinds) != 3 || all.Example != strings.Repeat("y\x1b", longestExample/2) {
		t.Errorf("%+v", all)
	}
	want := `3 frames not JSON: "` + strings.Repeat(`y\x1b`, longestExample/2) + `"; 1 frame of EVENT with a kind of the wrong type: "[\"EVENT\",\"s\",{}]"; ` +
		`1 frame of NOTICE binary, not text: "[\"NOTICE\",\"one\"]"`
	if got := all.String(); got != want {
		t.Errorf("says %s\nwant %s", got, want)
	}
	for label := range typeNames { // whatever a relay thinks of, there are few kinds
		for _, field := range []Field{"", "id", "pubkey", "created_at", "kind", "tags", "content", "sig"} {
			for range 3 {
				all.see(WrongField, field, []byte(`["`+typeNames[label]+`"]`))
			}
		}
	}
	if len(all.Kinds) > 90 {
		t.Errorf("%d kinds", len(all.Kinds))
	}
	if b.Count != 3 || len(b.Kinds) != 2 || b.Kinds[0].Count != 2 {
		t.Errorf("adding changed what was added: %+v", b)
	}
}

func TestAStallTellsOfPings(t *testing.T) {
	for pings, says := range map[int]string{0: "the relay stalled: no message arrived in time", 1: "in time, but 1 ping", 3: "in time, but 3 pings"} {
		c := connect(t, rawRelay(t, func(conn net.Conn) {
			conn.Write(bytes.Repeat(serverFrame(opPing, "there"), pings))
			io.Copy(io.Discard, conn)
		}))
		ended := make(chan error)
		go func() {
			_, _, err := c.Read()
			ended <- err
		}()
		for c.Stalled().Pings < uint64(pings) {
			time.Sleep(time.Millisecond)
		}
		c.WatchUseful(50 * time.Millisecond)
		if err := <-ended; !errors.Is(err, ErrStalled) || !strings.HasSuffix(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestAStallTellsWhatCameInPlaceOfWhatWasWaitedFor(t *testing.T) {
	c := connect(t, rawRelay(t, func(conn net.Conn) {
		conn.Write(serverFrame(opBinary, `["EOSE","s"]`))
		io.Copy(io.Discard, conn)
	}))
	ended := make(chan error)
	go func() {
		_, _, err := c.Read()
		ended <- err
	}()
	for c.Garbage().Count == 0 {
		time.Sleep(time.Millisecond)
	}
	c.WatchUseful(50 * time.Millisecond)
	err := <-ended
	var stall *StallError
	if !errors.Is(err, ErrStalled) || !errors.As(err, &stall) || stall.Garbage.Of(EOSE) != 1 || stall.Garbage.Kinds[0].Fault != Binary {
		t.Fatalf("%#v", err)
	}
	if got, want := err.Error(), `the relay stalled: what was waited for did not arrive in time, but 1 frame of EOSE binary, not text: "[\"EOSE\",\"s\"]"`; got != want {
		t.Errorf("says %s", got)
	}
	quiet := connect(t, rawRelay(t, func(conn net.Conn) { io.Copy(io.Discard, conn) }))
	quiet.WatchUseful(50 * time.Millisecond)
	if _, _, err := quiet.Read(); !errors.As(err, &stall) || stall.Garbage.Count != 0 || err.Error() != ErrStalled.Error() {
		t.Errorf("%v", err)
	}
}

// Frames that came while it was waited are no silence.
func TestAStallTellsOfNoticesAndOtherFrames(t *testing.T) {
	auth, first, last := `["AUTH","x"]`, `["NOTICE","slow \u0007down"]`, `["NOTICE","busy"]`
	for name, test := range map[string]struct {
		frames []string
		says   string
	}{
		"a NOTICE":                {[]string{first}, `but a NOTICE: "slow \adown"`},
		"several":                 {[]string{first, auth, last}, `but 2 NOTICEs, the last "busy"`},
		"with what is no message": {[]string{first, "{}"}, `but a NOTICE: "slow \adown"; 1 frame JSON, but no message: "{}"`},
		"another frame":           {[]string{auth}, "but 1 other frame"},
		"other frames":            {[]string{auth, auth}, "but 2 other frames"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, rawRelay(t, func(conn net.Conn) {
				for _, f := range test.frames {
					conn.Write(serverFrame(opText, f))
				}
				io.Copy(io.Discard, conn)
			}))
			var m Message
			var err error
			for c.WatchUseful(2 * time.Second); err == nil; { // in which the frames come on any machine
				_, _, err = c.ReadMessage(&m)
			}
			var stall *StallError
			if !errors.As(err, &stall) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}
