package load

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/scripted"
	"relaybench/relays/wire"
)

// ask puts one query to a relay that answers by script, and says how long it took until the first
// event was told of and in all.
func ask(t *testing.T, s scripted.Script, stall time.Duration) (r Reply, relay *scripted.Relay, told, took time.Duration, err error) {
	t.Helper()
	relay = scripted.Serve(t, s)
	a, err := NewQuerier(t.Context(), relay.URL, stall)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	began := wire.Now()
	a.OnEvent = func(corpus.ID, []byte) { told = cmp.Or(told, wire.Now()-began) }
	err = a.Query([]byte("{}"), &r)
	return r, relay, told, wire.Now() - began, err
}

// fake is an event of which a Querier reads nothing but the id.
func fake(n int) string {
	return fmt.Sprintf(`{"id":"%064x","content":%q}`, n, strings.Repeat("x", n%100))
}

func TestARepliesFieldsAreThoseOfTheScript(t *testing.T) {
	t.Parallel()
	const first, last = 150 * time.Millisecond, 400 * time.Millisecond
	answer := []string{fake(3), `{"kind":1}`, fake(1), `{"id":"AB"}`, fake(2)}
	r, relay, told, took, err := ask(t, scripted.Script{Answer: answer, FirstAfter: first, EOSEAfter: last}, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var want []corpus.ID
	for _, n := range []byte{3, 1, 2} {
		want = append(want, corpus.ID{31: n})
	}
	if !slices.Equal(r.IDs, want) {
		t.Errorf("ids %v, want %v", r.IDs, want)
	}
	expect(t, "events without an id", r.NoID, 2)
	expect(t, "bytes", r.Bytes, relay.BytesOut.Load())
	bytes := int64(len(`["EOSE","q1"]`))
	for _, text := range answer {
		bytes += int64(len(`["EVENT","q1",]`) + len(text))
	}
	expect(t, "bytes by the script", r.Bytes, bytes)
	within(t, "the first event", first, r.First, told)
	within(t, "EOSE", last, r.EOSE, took)
	expect(t, "closed", r.Closed, false)
	expect(t, "reason", r.Reason, "")
	expectGarbage(t, r.Garbage, 0, "")
}

func TestRepliesOfOneQuerierAreTold(t *testing.T) {
	t.Parallel()
	const last = 100 * time.Millisecond
	relay := scripted.Serve(t, scripted.Script{Answer: []string{fake(1)}, CloseEvery: 2, CloseReason: "error: \"no\"", Notice: "slow down", EOSEAfter: last})
	a, err := NewQuerier(t.Context(), relay.URL, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	seen := 0
	a.OnEvent = func(id corpus.ID, text []byte) {
		if seen++; id != (corpus.ID{31: 1}) || string(text) != fake(1) {
			t.Errorf("told of %v: %s", id, text)
		}
	}
	var r Reply
	for n := range 4 {
		if err := a.Query([]byte("{}"), &r); err != nil {
			t.Fatal(err)
		}
		closed := n%2 == 1
		expect(t, "closed", r.Closed, closed)
		within(t, "its end", last, r.EOSE, time.Minute)
		if closed {
			expect(t, "reason", r.Reason, `error: "no"`)
			expect(t, "events, and the first", [2]int64{int64(len(r.IDs)), int64(r.First)}, [2]int64{})
			expect(t, "bytes", r.Bytes, int64(len(`["CLOSED","q1","error: \"no\""]`)))
		} else {
			expect(t, "reason", r.Reason, "slow down")
			expect(t, "events", len(r.IDs), 1)
			expect(t, "bytes", r.Bytes, int64(len(`["EVENT","q1",]["EOSE","q1"]`)+len(fake(1)))) // the NOTICE is none of the answer
		}
	}
	expect(t, "events told of", seen, 2)
	expect(t, "REQs", relay.Reqs.N(), 4)
}

// TestAQuerierCountsWhatIsNoMessage has a frame that is none before each answer.
func TestAQuerierCountsWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	r, relay, _, _, err := ask(t, scripted.Script{Faults: []string{"garbage-frames"}}, 30*time.Second)
	if err != nil || r.Garbage.Count == 0 || r.Garbage.Example == "" {
		t.Errorf("%v, %+v", err, r)
	}
	expect(t, "garbage", int64(r.Garbage.Count), relay.Garbage.N())
	expect(t, "bytes", r.Bytes, int64(len(`["EOSE","q1"]`)))
}

func TestAQuerierGivesUpOnWhatIsNoAnswer(t *testing.T) {
	t.Parallel()
	const stall = 5 * time.Second
	r, _, _, took, err := ask(t, scripted.Script{IgnoreEvery: 1, Notice: "busy"}, stall)
	if !errors.Is(err, wire.ErrStalled) || !strings.Contains(err.Error(), `"busy"`) || r.Reason != "busy" {
		t.Errorf("no answer: %v, %+v", err, r)
	}
	within(t, "giving up", stall, took, time.Minute)

	endless := make([]string, mostEvents+1)
	for i := range endless {
		endless[i] = fake(i)
	}
	r, _, _, _, err = ask(t, scripted.Script{Answer: endless}, 30*time.Second)
	if !errors.Is(err, ErrTooMuch) || len(r.IDs) != mostEvents {
		t.Errorf("too much: %v, %d events", err, len(r.IDs))
	}
	r, _, _, _, err = ask(t, scripted.Script{Answer: endless[1:]}, 30*time.Second)
	if err != nil || len(r.IDs) != mostEvents {
		t.Errorf("as much as is taken: %v, %d events", err, len(r.IDs))
	}
}
