package reference

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
)

// reconcile returns the ids that the relay has and mine lacks, and the reverse.
func reconcile(t *testing.T, url, filter string, mine []corpus.Event) (need, have []corpus.ID, result negentropy.Result, err error) {
	t.Helper()
	set := negentropy.NewSet(len(mine))
	for _, e := range mine {
		set.Add(uint64(e.CreatedAt), (*negentropy.ID)(&e.ID))
	}
	if err := set.Seal(); err != nil {
		t.Fatal(err)
	}
	conn, err := wire.Dial(context.Background(), url, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Abort()
	collect := func(to *[]corpus.ID) func([]negentropy.ID) {
		return func(ids []negentropy.ID) {
			for _, id := range ids {
				*to = append(*to, corpus.ID(id))
			}
		}
	}
	result, err = negentropy.ReconcileSplit(t.Context(), conn, []byte(filter), set,
		negentropy.Options{FirstAnswer: 5 * time.Second, Stall: 5 * time.Second, Need: collect(&need), Have: collect(&have)})
	return need, have, result, err
}

func sortedIDs(ids []corpus.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	slices.Sort(out)
	return out
}

// TestTheSetIsWhatTheStoreAnswers puts random colliding events in, among them deletions, versions
// and requests to vanish, and compares what a reconciliation of nothing finds with what a query
// returns, for the live set and for one built anew.
func TestTheSetIsWhatTheStoreAnswers(t *testing.T) {
	for _, rebuild := range []bool{false, true} {
		t.Run(fmt.Sprintf("rebuild=%t", rebuild), func(t *testing.T) {
			onEveryStore(t, Options{NegRebuild: rebuild, NoVerify: true}, func(t *testing.T, url string) {
				c := dialTalker(t, url)
				events := randomEvents(rand.New(rand.NewPCG(3, 4)), 400)
				for _, e := range events {
					c.publish(e)
				}
				for range events {
					if answer := c.read(); !strings.HasPrefix(answer, `["OK"`) {
						t.Fatalf("answer %s", answer)
					}
				}
				for _, filter := range []string{`{}`, `{"kinds":[1]}`, `{"kinds":[1],"limit":7}`, `{"since":20,"until":60}`, `{"#e":["x"]}`} {
					need, have, _, err := reconcile(t, url, filter, nil)
					if err != nil || len(have) > 0 {
						t.Fatalf("%s: %d to have, %v", filter, len(have), err)
					}
					want := c.stored(filter)
					slices.Sort(want)
					if got := sortedIDs(need); !slices.Equal(got, want) {
						t.Errorf("%s: the set has %d events, a query returns %d", filter, len(got), len(want))
					}
				}
			})
		})
	}
}

func TestTheSetFollowsWritesAndExpiry(t *testing.T) {
	now := time.Unix(1000, 0)
	url, stop := startServing(t, Options{Store: NewMemory(), Now: func() time.Time { return now }})
	defer stop()
	c := dialTalker(t, url)
	key := testKey(1)
	stays := c.accepted(note(key, 10, "stays"))
	expires := c.accepted(note(key, 20, "expires", corpus.Tag{"expiration", "1500"}))
	differ := func(mine ...corpus.Event) string {
		need, have, _, err := reconcile(t, url, "{}", mine)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d needed, %d to have", len(need), len(have))
	}
	if got := differ(stays, expires); got != "0 needed, 0 to have" {
		t.Errorf("before expiry: %s", got)
	}
	now = time.Unix(2000, 0)
	if got := differ(stays, expires); got != "0 needed, 1 to have" {
		t.Errorf("after expiry: %s", got)
	}
	c.accepted(kindOf(key, corpus.KindDeletion, 30, corpus.Tag{"e", stays.ID.String()}))
	if got := differ(stays); got != "1 needed, 1 to have" { // the deletion itself, and what it deleted
		t.Errorf("after a deletion: %s", got)
	}
}

func TestTooBigReconciliationsAreBlockedAndCanBeSplit(t *testing.T) {
	url, stop := startServing(t, Options{Store: NewMemory(), NegMaxEvents: 10})
	defer stop()
	c := dialTalker(t, url)
	for i := range 35 {
		c.accepted(note(testKey(1), int64(100+i), fmt.Sprint(i)))
	}
	c.send(`["NEG-OPEN","n",{},"6100000200"]`)
	if got := c.read(); got != `["NEG-ERR","n","blocked: too many query results",10]` {
		t.Errorf("answer %s", got)
	}
	need, _, result, err := reconcile(t, url, "{}", nil)
	if err != nil || len(need) != 35 || result.Refused < 3 {
		t.Errorf("%d needed after %d refusals, %v; want 35 after at least 3", len(need), result.Refused, err)
	}
}

func TestReconciliationsAreBounded(t *testing.T) {
	url, stop := startServing(t, Options{Store: NewMemory(), NegSessions: 2, NegIdle: 300 * time.Millisecond})
	defer stop()
	c := dialTalker(t, url)
	for _, step := range []struct{ send, want string }{
		{`["NEG-OPEN","a",{},"61"]`, `["NEG-MSG","a","61"]`},
		{`["NEG-OPEN","b",{},"61"]`, `["NEG-MSG","b","61"]`},
		{`["NEG-OPEN","c",{},"61"]`, `["NEG-ERR","c","blocked: too many *"]`},
		{`["NEG-OPEN","b",{},"62"]`, `["NEG-MSG","b","61"]`}, // another version is answered with ours
		{`["NEG-MSG","b","6g"]`, `["NEG-ERR","b","invalid: *"]`},
		{`["NEG-MSG","b","61"]`, `["NEG-ERR","b","closed: no such *"]`},
		{`["NEG-OPEN","d",{"kinds":"x"},"61"]`, `["NEG-ERR","d","invalid: *"]`},
		{`["NEG-OPEN","d",{"search":"x"},"61"]`, `["NEG-ERR","d","unsupported: *search*"]`},
		{`["NEG-OPEN","d",{}]`, `["NEG-ERR","d","invalid: *"]`},
		{`["NEG-OPEN","d",{},"61ff"]`, `["NEG-ERR","d","invalid: *"]`},
		{`["NEG-OPEN","",{},"61"]`, `["NOTICE","*"]`},
	} {
		c.send("%s", step.send)
		c.want(step.want)
	}
	c.want(`["NEG-ERR","a","closed: nothing was heard for too long"]`)
	c.send(`["NEG-MSG","a","61"]`)
	c.want(`["NEG-ERR","a","closed: no such *"]`)
}
