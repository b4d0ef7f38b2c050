package reference

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// startServing serves on a free port of the loopback. stop ends it gracefully and reports what
// Serve returned.
func startServing(tb testing.TB, o Options) (url string, stop func()) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, o) }()
	return "ws://" + l.Addr().String(), func() {
		cancel()
		if err := <-served; err != nil {
			tb.Errorf("serving: %v", err)
		}
	}
}

// talker talks to a relay in whole messages.
type talker struct {
	t    testing.TB
	conn *wire.Conn
}

func dialTalker(t testing.TB, url string) *talker {
	t.Helper()
	conn, err := wire.Dial(context.Background(), url, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Abort)
	conn.WatchUseful(time.Minute)
	return &talker{t, conn}
}

func (c *talker) send(format string, args ...any) {
	c.t.Helper()
	if err := c.conn.Send(fmt.Appendf(nil, format, args...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *talker) read() string {
	c.t.Helper()
	frame, _, err := c.conn.Read()
	if err != nil {
		c.t.Fatalf("reading: %v", err)
	}
	return string(frame)
}

// want reads one message and compares it with a pattern in which * stands for anything.
func (c *talker) want(pattern string) string {
	c.t.Helper()
	got := c.read()
	if ok, _ := regexp.MatchString("(?s)^"+strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")+"$", got); !ok {
		c.t.Fatalf("got %s\nwant %s", got, pattern)
	}
	return got
}

func (c *talker) publish(e corpus.Event) {
	c.t.Helper()
	if err := c.conn.SendEvent(e.AppendJSON(nil)); err != nil {
		c.t.Fatal(err)
	}
}

// accepted publishes an event that the relay must take.
func (c *talker) accepted(e corpus.Event) corpus.Event {
	c.t.Helper()
	c.publish(e)
	c.want(fmt.Sprintf(`["OK","%s",true,"*"]`, e.ID))
	return e
}

func (c *talker) refused(e corpus.Event, reason string) {
	c.t.Helper()
	c.publish(e)
	c.want(fmt.Sprintf(`["OK","%s",false,"%s"]`, e.ID, reason))
}

// stored asks a filter and returns the ids of the stored answer.
func (c *talker) stored(filters ...string) (ids []string) {
	c.t.Helper()
	c.send(`["REQ","stored",%s]`, strings.Join(filters, ","))
	for {
		frame, _, err := c.conn.Read()
		if err != nil {
			c.t.Fatal(err)
		}
		var m wire.Message
		switch wire.Parse(frame, &m); m.Type {
		case wire.Event:
			ids = append(ids, corpus.ID(m.ID).String())
		case wire.EOSE:
			c.send(`["CLOSE","stored"]`)
			return ids
		default:
			c.t.Fatalf("got %s", frame)
		}
	}
}

func (c *talker) wantStored(filter string, want ...corpus.Event) {
	c.t.Helper()
	var ids []string
	for _, e := range want {
		ids = append(ids, e.ID.String())
	}
	if got := c.stored(filter); strings.Join(got, " ") != strings.Join(ids, " ") {
		c.t.Errorf("%s: got %v, want %v", filter, got, ids)
	}
}

// onEveryStore runs a test against a relay on each store.
func onEveryStore(t *testing.T, o Options, test func(t *testing.T, url string)) {
	for _, kind := range []string{"memory", "bolt", "sqlite"} {
		t.Run(kind, func(t *testing.T) {
			o := o
			o.Store = openTestStore(t, kind, t.TempDir(), DurabilityCommit)
			url, stop := startServing(t, o)
			defer stop()
			test(t, url)
		})
	}
}

func note(key corpus.SecretKey, at int64, content string, tags ...corpus.Tag) corpus.Event {
	return sign(key, corpus.Event{Kind: 1, CreatedAt: at, Content: content, Tags: tags})
}

func kindOf(key corpus.SecretKey, kind int, at int64, tags ...corpus.Tag) corpus.Event {
	return sign(key, corpus.Event{Kind: kind, CreatedAt: at, Tags: tags})
}
