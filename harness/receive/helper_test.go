package receive

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"relaybench/corpus"
)

// key signs all events of these tests.
var key = sync.OnceValue(func() corpus.SecretKey {
	k, err := corpus.NewSecretKey([32]byte{31: 7})
	if err != nil {
		panic(err)
	}
	return k
})

// pool holds the events signed so far: signing is most of these tests' work.
var pool struct {
	sync.Mutex
	events []corpus.Event
}

// signed returns so many different events, the same ones each time.
func signed(t testing.TB, n int) []corpus.Event {
	t.Helper()
	pool.Lock()
	defer pool.Unlock()
	for i := len(pool.events); i < n; i++ {
		e := corpus.Event{CreatedAt: 1_700_000_000 + int64(i), Kind: 1, Tags: []corpus.Tag{{"t", "receive"}},
			Content: fmt.Sprintf("note %d: \"quoted\"\n%s", i, strings.Repeat("words ", 20+i%40))}
		if err := key().Sign(&e, [32]byte{}); err != nil {
			t.Fatal(err)
		}
		pool.events = append(pool.events, e)
	}
	return slices.Clone(pool.events[:n])
}

// texts are the events as canonical JSON.
func texts(events []corpus.Event) [][]byte {
	lines := make([][]byte, len(events))
	for i := range events {
		lines[i] = events[i].AppendJSON(nil)
	}
	return lines
}

// frame is an EVENT message around an event's JSON.
func frame(event []byte) []byte {
	return fmt.Appendf(nil, `["EVENT","s1",%s]`, event)
}

func frames(events []corpus.Event) [][]byte {
	all := texts(events)
	for i := range all {
		all[i] = frame(all[i])
	}
	return all
}

const idB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

// collected keeps what a consumer was handed.
type collected struct {
	events  []Event
	refused []Event
}

func (c *collected) take(b *Batch) error {
	for _, e := range b.Events {
		e.Raw = append([]byte{}, e.Raw...)
		c.events = append(c.events, e)
	}
	for _, e := range b.Refused {
		e.Raw = append([]byte{}, e.Raw...)
		c.refused = append(c.refused, e)
	}
	return nil
}

// with returns the event's JSON with one replacement, which must be possible.
func with(t testing.TB, text []byte, old, new string) []byte {
	t.Helper()
	if !strings.Contains(string(text), old) {
		t.Fatalf("%q is not in %s", old, text)
	}
	return []byte(strings.Replace(string(text), old, new, 1))
}
