package reference

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

func TestEventsAreStoredAndAnsweredInOrder(t *testing.T) {
	onEveryStore(t, Options{}, func(t *testing.T, url string) {
		c := dialTalker(t, url)
		alice, bob := testKey(1), testKey(2)
		old := c.accepted(note(alice, 100, "old"))
		odd := c.accepted(note(bob, 200, "odd \"quotes\" \\ \n\t☃ \u2028 \x01", corpus.Tag{"t", "ta\"g"}))
		recent := c.accepted(note(alice, 300, "recent", corpus.Tag{"p", bob.PubKey.String()}))
		c.publish(old)
		c.want(`["OK","` + old.ID.String() + `",true,"duplicate: *"]`)

		c.wantStored(`{}`, recent, odd, old)
		c.wantStored(`{"limit":2}`, recent, odd)
		c.wantStored(`{"limit":0}`)
		c.wantStored(`{"since":200,"until":200}`, odd)
		c.wantStored(`{"until":199}`, old)
		c.wantStored(fmt.Sprintf(`{"authors":["%s"],"kinds":[1]}`, alice.PubKey), recent, old)
		c.wantStored(`{"#t":["ta\"g"]}`, odd)
		c.wantStored(`{"#T":["ta\"g"]}`)
		c.wantStored(fmt.Sprintf(`{"ids":["%s"]}`, old.ID), old)
		c.wantStored(`{"authors":[]}`)
		if got := c.stored(`{"limit":1}`, `{"until":200,"limit":1}`, `{"since":300}`); len(got) != 2 || got[0] != recent.ID.String() || got[1] != odd.ID.String() {
			t.Errorf("three filters: got %v", got)
		}
		c.send(`["REQ","raw",{"ids":["%s"]}]`, odd.ID)
		if got, want := c.read(), `["EVENT","raw",`+string(odd.AppendJSON(nil))+`]`; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		c.want(`["EOSE","raw"]`)
		c.send(`["COUNT","n",{"kinds":[1]},{"until":100}]`)
		c.want(`["COUNT","n",{"count":3}]`)
	})
}

func TestForgedAndForbiddenEventsAreRefused(t *testing.T) {
	onEveryStore(t, Options{MaxEventBytes: 5000}, func(t *testing.T, url string) {
		c := dialTalker(t, url)
		key := testKey(1)
		good := note(key, 100, "good")
		badSig, badID := good, good
		badSig.Sig[63] ^= 1
		badID.ID[0] ^= 1
		c.refused(badSig, "invalid: *signature*")
		c.refused(badID, "invalid: *hash*")
		c.refused(note(key, 100, strings.Repeat("x", 5000)), "invalid: *over the limit of 5000")
		c.refused(note(key, 100, "", corpus.Tag{"expiration", "1000"}), "invalid: *expired")
		c.refused(note(key, 100, "", corpus.Tag{"-"}), "restricted: *")
		c.send(`["EVENT",%s]`, strings.Replace(string(good.AppendJSON(nil)), `"kind":1`, `"kind":"1"`, 1))
		c.want(`["OK","` + good.ID.String() + `",false,"invalid: *kind*"]`)
		c.accepted(good)
		c.wantStored(`{}`, good)
	})
}

func TestReplaceableDeletedVanishedAndEphemeralEvents(t *testing.T) {
	onEveryStore(t, Options{URL: "ws://relay.example/"}, func(t *testing.T, url string) {
		c := dialTalker(t, url)
		alice, bob := testKey(1), testKey(2)
		d := corpus.Tag{"d", "x"}
		c.accepted(kindOf(alice, 0, 100))
		newer := c.accepted(kindOf(alice, 0, 200))
		c.refused(kindOf(alice, 0, 150), "replaced: *")
		c.accepted(kindOf(alice, 30023, 100, d))
		article := c.accepted(kindOf(alice, 30023, 200, d))
		c.wantStored(`{"kinds":[0]}`, newer)
		c.wantStored(`{"kinds":[30023]}`, article)

		gone, foreign := c.accepted(note(alice, 100, "gone")), c.accepted(note(bob, 100, "not alice's to delete"))
		early := note(alice, 100, "deleted before it comes")
		deletion := kindOf(alice, 5, 300, corpus.Tag{"e", gone.ID.String()}, corpus.Tag{"e", foreign.ID.String()}, corpus.Tag{"e", early.ID.String()},
			corpus.Tag{"a", fmt.Sprintf("30023:%s:x", alice.PubKey)})
		c.accepted(deletion)
		c.refused(gone, "blocked: *")
		c.refused(early, "blocked: *")
		c.refused(article, "blocked: *")
		c.accepted(kindOf(alice, 5, 301, corpus.Tag{"e", deletion.ID.String()}))
		c.wantStored(`{"kinds":[1,30023]}`, foreign)
		later := c.accepted(kindOf(alice, 30023, 301, d))
		c.wantStored(`{"kinds":[30023]}`, later)

		c.accepted(kindOf(alice, 20001, 100))
		c.wantStored(`{"kinds":[20001]}`)

		wrap := c.accepted(kindOf(testKey(3), 1059, 250, corpus.Tag{"p", alice.PubKey.String()}))
		c.accepted(kindOf(alice, 62, 50, corpus.Tag{"relay", "wss://another.example"}))
		c.wantStored(`{"kinds":[1059]}`, wrap)
		request := c.accepted(kindOf(alice, 62, 1000, corpus.Tag{"relay", "WS://relay.EXAMPLE"}))
		c.wantStored(fmt.Sprintf(`{"authors":["%s"]}`, alice.PubKey), request)
		c.wantStored(`{"kinds":[1059]}`)
		c.refused(later, "blocked: *")
		c.refused(wrap, "blocked: *")
		c.accepted(request)
		c.accepted(note(alice, 1001, "back again"))
	})
}

func TestExpiredEventsAreNoLongerAnswered(t *testing.T) {
	now := time.Unix(1000, 0)
	clock := make(chan time.Time, 1)
	clock <- now
	o := Options{Now: func() time.Time { v := <-clock; clock <- v; return v }}
	onEveryStore(t, o, func(t *testing.T, url string) {
		c := dialTalker(t, url)
		<-clock
		clock <- now
		c.accepted(note(testKey(1), 200, "short-lived", corpus.Tag{"expiration", "2000"}))
		lasting := c.accepted(note(testKey(1), 100, "lasting"))
		if n := len(c.stored(`{}`)); n != 2 {
			t.Errorf("%d events before the expiry", n)
		}
		<-clock
		clock <- time.Unix(2000, 0)
		c.wantStored(`{"limit":1}`, lasting)
		c.send(`["COUNT","n",{}]`)
		c.want(`["COUNT","n",{"count":1}]`)
	})
}

func TestLiveSubscriptionsGetWhatComesAfterEOSE(t *testing.T) {
	onEveryStore(t, Options{}, func(t *testing.T, url string) {
		reader, writer := dialTalker(t, url), dialTalker(t, url)
		key := testKey(1)
		writer.accepted(note(key, 100, "before"))
		reader.send(`["REQ","live",{"kinds":[1],"limit":0},{"kinds":[20001]}]`)
		reader.want(`["EOSE","live"]`)
		writer.accepted(kindOf(key, 7, 200))
		writer.accepted(note(key, 50, "live although older"))
		reader.want(`["EVENT","live",{*"live although older"*}]`)
		writer.accepted(kindOf(key, 20001, 200))
		reader.want(`["EVENT","live",{*"kind":20001*}]`)
		reader.send(`["REQ","live",{"kinds":[7],"limit":0}]`)
		reader.want(`["EOSE","live"]`)
		writer.accepted(note(key, 300, "no longer asked for"))
		writer.accepted(kindOf(key, 7, 300))
		reader.want(`["EVENT","live",{*"kind":7*}]`)
		reader.send(`["CLOSE","live"]`)
		reader.send(`["COUNT","closed",{"ids":["%s"]}]`, corpus.ID{})
		reader.want(`["COUNT","closed",*]`)
		writer.accepted(kindOf(key, 7, 400))
		reader.send(`["COUNT","nothing between",{}]`)
		reader.want(`["COUNT","nothing between",*]`)
	})
}

// While one connection publishes, another subscribes again and again: each time, stored answer and
// live events together must be every event once.
func TestNothingIsLostOrRepeatedAroundEOSE(t *testing.T) {
	onEveryStore(t, Options{NoVerify: true}, func(t *testing.T, url string) {
		const total = 1200
		done := make(chan struct{})
		go func() {
			defer close(done)
			var raws [][]byte
			for i := range total {
				e := fake(1, 1, int64(1000+i), fmt.Sprint(i))
				raws = append(raws, e.AppendJSON(nil))
			}
			publish(t, url, raws, 2, 20)
		}()
		defer func() { <-done }()
		c := dialTalker(t, url)
		const subs = 8
		seen := make([]map[[32]byte]bool, subs)
		full := 0
		for i := range subs {
			seen[i] = map[[32]byte]bool{}
			c.send(`["REQ","%d",{"kinds":[1]}]`, i)
			eose := false
			for !eose || i == subs-1 && full < subs {
				frame, _, err := c.conn.Read()
				if err != nil {
					t.Fatalf("%v, with %d subscriptions complete", err, full)
				}
				var m wire.Message
				wire.Parse(frame, &m)
				var sub int
				fmt.Sscanf(string(m.Sub), "%d", &sub)
				switch m.Type {
				case wire.EOSE:
					eose = eose || sub == i
				case wire.Event:
					if seen[sub][m.ID] {
						t.Fatalf("subscription %d got %x twice", sub, m.ID)
					}
					if seen[sub][m.ID] = true; len(seen[sub]) == total {
						full++
					}
				default:
					t.Fatalf("got %s", frame)
				}
			}
		}
	})
}

func TestBadFramesGetANoticeAndTheConnectionLives(t *testing.T) {
	store := NewMemory()
	url, stop := startServing(t, Options{Store: store, MaxSubscriptions: 2, MaxFilters: 3, MaxFilterElements: 50})
	defer stop()
	long := strings.Repeat("x", 65)
	for _, test := range []struct{ name, frame, want string }{
		{"not JSON", `hello`, `["NOTICE","*"]`},
		{"empty", ``, `["NOTICE","*"]`},
		{"an object", `{"REQ":1}`, `["NOTICE","*"]`},
		{"an empty array", `[]`, `["NOTICE","*"]`},
		{"not UTF-8", "[\"REQ\",\"\xff\",{}]", `["NOTICE","*"]`},
		{"a number for a command", `[1,2,3]`, `["NOTICE","*unknown command*"]`},
		{"an unknown command", `["AUTH",{}]`, `["NOTICE","*unknown command*"]`},
		{"lower case", `["req","a",{}]`, `["NOTICE","*unknown command*"]`},
		{"an event that is none", `["EVENT",[]]`, `["NOTICE","invalid: *"]`},
		{"two events", `["EVENT",{},{}]`, `["NOTICE","*"]`},
		{"no filter", `["REQ","a"]`, `["CLOSED","a","invalid: *filter*"]`},
		{"a broken filter", `["REQ","a",{"kinds":["1"]}]`, `["CLOSED","a","invalid: *kind*"]`},
		{"a filter field nobody knows", `["REQ","a",{"search":"x"}]`, `["CLOSED","a","unsupported: *search*"]`},
		{"one in the second filter", `["REQ","a",{"kinds":[1]},{"&t":["x"]}]`, `["CLOSED","a","unsupported: *&t*"]`},
		{"a tag name of two letters", `["REQ","a",{"#tt":["x"]}]`, `["CLOSED","a","unsupported: *#tt*"]`},
		{"a tag name of one letter that nobody uses", `["REQ","a",{"#Q":["x"]}]`, `["EOSE","a"]`},
		{"a count by a field nobody knows", `["COUNT","a",{"search":"x"}]`, `["CLOSED","a","unsupported: *search*"]`},
		{"an upper-case id", `["REQ","a",{"ids":["` + strings.Repeat("A", 64) + `"]}]`, `["CLOSED","a","invalid: *"]`},
		{"too many filters", `["REQ","a",{},{},{},{}]`, `["CLOSED","a","invalid: 4 filters*"]`},
		{"too many values", `["REQ","a",{"kinds":[1` + strings.Repeat(",1,2,3,4,5", 12) + `]},{"#t":[` + strings.Repeat(`"x",`, 3) + `"y"]},{"#t":["` + manyStrings(50) + `"]}]`, `["CLOSED","a","invalid: *values"]`},
		{"a broken count", `["COUNT","a",{"limit":-1}]`, `["CLOSED","a","invalid: *limit*"]`},
		{"a long subscription id", `["REQ","` + long + `",{}]`, `["NOTICE","*subscription id*"]`},
		{"an empty subscription id", `["REQ","",{}]`, `["NOTICE","*subscription id*"]`},
		{"a number for a subscription id", `["CLOSE",1]`, `["NOTICE","*subscription id*"]`},
		{"deep nesting", `["EVENT",` + strings.Repeat("[", 5000), `["NOTICE","*"]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dialTalker(t, url)
			c.send("%s", test.frame)
			c.want(test.want)
			c.send(`["COUNT","alive",{}]`)
			c.want(`["COUNT","alive",{"count":0}]`)
		})
	}
	t.Run("too many subscriptions", func(t *testing.T) {
		c := dialTalker(t, url)
		for _, sub := range []string{"a", "b", "b"} {
			c.send(`["REQ","%s",{}]`, sub)
			c.want(`["EOSE","` + sub + `"]`)
		}
		c.send(`["REQ","c",{}]`)
		c.want(`["CLOSED","c","error: too many subscriptions*"]`)
		c.send(`["CLOSE","a"]`)
		c.send(`["REQ","c",{}]`)
		c.want(`["EOSE","c"]`)
	})
}

func manyStrings(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprint(i))
	}
	return strings.Join(list, `","`)
}

func TestAMessageOverTheLimitClosesWithAReason(t *testing.T) {
	url, stop := startServing(t, Options{Store: NewMemory(), MaxMessageBytes: 1000})
	defer stop()
	c := dialTalker(t, url)
	c.send(`["EVENT","%s"]`, strings.Repeat("x", 2000))
	if _, _, err := c.conn.Read(); err == nil || !strings.Contains(err.Error(), "1009") {
		t.Errorf("got %v, want close code 1009", err)
	}
}

func TestInformationDocument(t *testing.T) {
	url, stop := startServing(t, Options{Store: NewMemory(), Name: "a name", MaxLimit: 77})
	defer stop()
	req, _ := http.NewRequest("GET", strings.Replace(url, "ws:", "http:", 1), nil)
	req.Header.Set("Accept", "application/nostr+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var doc struct {
		Name          string
		SupportedNIPs []int `json:"supported_nips"`
		Limitation    struct {
			MaxLimit         int `json:"max_limit"`
			MaxSubscriptions int `json:"max_subscriptions"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if doc.Name != "a name" || doc.Limitation.MaxLimit != 77 || doc.Limitation.MaxSubscriptions != 64 || !slices.Equal(doc.SupportedNIPs, []int{1, 9, 11, 40, 45, 62, 70, 77}) {
		t.Errorf("got %+v", doc)
	}
	if resp.Header.Get("Content-Type") != "application/nostr+json" || resp.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("headers %v", resp.Header)
	}
	plain, err := http.Get(req.URL.String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Body.Close()
	if text, _ := io.ReadAll(plain.Body); !strings.Contains(string(text), "Nostr relay") {
		t.Errorf("a browser gets %q", text)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestManyConnectionsLeaveNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	url, stop := startServing(t, Options{Store: NewMemory(), NoVerify: true})
	for i := range 60 {
		c := dialTalker(t, url)
		c.send(`["REQ","s",{}]`)
		c.publish(fake(1, 1, int64(i), "x"))
		if i%2 == 0 {
			c.conn.Abort()
		} else {
			c.conn.Close()
		}
	}
	stop()
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines before, %d after\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
}

func TestAGracefulStopAnswersWhatArrived(t *testing.T) {
	store := NewMemory()
	url, stop := startServing(t, Options{Store: store})
	c := dialTalker(t, url)
	for i := range 300 {
		c.publish(note(testKey(1), int64(i), "x"))
	}
	c.read() // some have arrived
	go stop()
	answered := 1
	for {
		frame, _, err := c.conn.Read()
		if err != nil {
			if !strings.Contains(err.Error(), "1001") {
				t.Errorf("the connection ended with %v", err)
			}
			break
		}
		if strings.Contains(string(frame), "true") {
			answered++
		}
	}
	if n := len(ask(t, store, corpus.Filter{})); n != answered {
		t.Errorf("%d events stored, %d answered", n, answered)
	}
}

func TestTheNullRelayAnswersUnseen(t *testing.T) {
	url, stop := startServing(t, Options{Store: Null{}})
	defer stop()
	c := dialTalker(t, url)
	e := note(testKey(1), 1, `"id":"`+strings.Repeat("0", 64)+`"`)
	c.publish(e)
	c.want(`["OK","` + e.ID.String() + `",true,""]`)
	c.send(`["REQ","q\"x",{"kinds":[1],"limit":3}]`)
	for range 3 {
		frame := c.want(`["EVENT","q\"x",{*}]`)
		if _, err := corpus.ParseEvent([]byte(frame[len(`["EVENT","q\"x",`) : len(frame)-1])); err != nil {
			t.Error(err)
		}
	}
	c.want(`["EOSE","q\"x"]`)
	c.wantStored(fmt.Sprintf(`{"ids":["%s"]}`, e.ID), e)
	if n := len(c.stored(`{"limit":1500}`)); n != 1500 {
		t.Errorf("%d events of 1500", n)
	}
	for _, odd := range []string{`["EVENT",{}]`, `x`, `["REQ",1]`, `["REQ","x`} {
		c.send("%s", odd)
		c.want(`["NOTICE","*"]`)
	}
}
