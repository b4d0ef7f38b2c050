package scenarios

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/corpus/prepare"
	"relaybench/corpus/synthetic"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
)

func strategies() (all []fetchStrategy) {
	for _, s := range fetchStrategies {
		all = append(all, s.fetchStrategy)
	}
	return all
}

// now is when nothing of the corpus has expired that had not at its end.
const now = 1_780_272_000

// sample is a signed corpus that all tests share, and its model.
var sample = sync.OnceValues(func() (*model.Model, error) {
	dir, err := os.MkdirTemp("", "fetch-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // what is mapped stays
	c, err := prepare.Synthetic(context.Background(), synthetic.Spec{Events: 400, Seed: 3, BaseTime: now}, prepare.Options{MaxEventBytes: 65536, MaxTags: 2000}, dir, nil)
	if err != nil {
		return nil, err
	}
	return model.New(c, nil, now)
})

func sampleModel(t *testing.T) *model.Model {
	t.Helper()
	m, err := sample()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// serve is a reference relay that holds the corpus.
func serve(t *testing.T, o reference.Options, faults ...string) (url string) {
	t.Helper()
	return referencetest.Holding(t, referencetest.Events(t, sampleModel(t).Corpus()), o, faults...)
}

// target is a relay of which it is known that it holds the corpus.
func target(t *testing.T, url string, f corpus.Filter) *fetchTarget {
	t.Helper()
	return &fetchTarget{url: url, filter: f, expected: expectCorpus(sampleModel(t), f, false, now)}
}

// options wait long for what comes late on a busy machine; tests of what never comes wait less.
func options() *FetchOptions {
	return &FetchOptions{stall: time.Minute, Page: 400, Shards: 3, Adaptive: true}
}

// measured runs all cells of a strategy.
func measured(t *testing.T, s fetchStrategy, to *fetchTarget, o *FetchOptions) (all []*fetchResult) {
	t.Helper()
	for _, c := range o.cells(s) {
		if c.adaptive && c.form != (fetchForm{}) || c.matrix && c.form != (fetchForm{}) && c.batch != 50 {
			continue
		}
		all = append(all, c.run(context.Background(), to, o))
	}
	return all
}

// compressing stands before a relay and agrees to permessage-deflate, which the reference relay
// does not.
func compressing(t *testing.T, inner string) (url string) {
	t.Helper()
	return referencetest.Between{Accept: &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover}}.Serve(t, inner)
}

// large are events of a size, whose ids and signatures are made up.
func large(n, size int) []corpus.Event {
	events := make([]corpus.Event, n)
	for i := range events {
		e := &events[i]
		binary.BigEndian.PutUint64(e.ID[:], uint64(i+1)*0x9e3779b97f4a7c15)
		e.Kind, e.Tags, e.Content, e.CreatedAt = 1, []corpus.Tag{}, strings.Repeat("x", size), now-int64(i)
	}
	return events
}

// slowly stands before a relay and takes from it no more than a slow line would carry.
func slowly(t *testing.T, inner string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			relay, err := net.Dial("tcp", strings.TrimPrefix(inner, "ws://"))
			if err != nil {
				client.Close()
				return
			}
			relay.(*net.TCPConn).SetReadBuffer(64 << 10)
			carry := func(to, from net.Conn, pause time.Duration) {
				defer to.Close()
				defer from.Close()
				part := make([]byte, 128<<10)
				for {
					n, err := from.Read(part)
					if _, failed := to.Write(part[:n]); err != nil || failed != nil {
						return
					}
					time.Sleep(pause)
				}
			}
			go carry(relay, client, 0)
			go carry(client, relay, 4*time.Millisecond)
		}
	}()
	return "ws://" + l.Addr().String()
}
