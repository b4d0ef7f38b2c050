package scripted

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

// client is a connection whose messages are compared as they are.
type client struct {
	*wire.Conn
	t *testing.T
}

func dial(t *testing.T, url string) *client {
	t.Helper()
	conn, err := wire.Dial(t.Context(), url, wire.Options{ReadLimit: negentropy.MinReadLimit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Abort)
	conn.WatchUseful(time.Minute) // no test hangs
	return &client{conn, t}
}

// ask sends a message and reads n answers, which it returns with the time that each took.
func (c *client) ask(message string, n int) (texts []string, took []time.Duration) {
	c.t.Helper()
	began := wire.Now()
	if err := errors.Join(c.Send([]byte(message)), c.Flush()); err != nil {
		c.t.Fatal(err)
	}
	for range n {
		frame, at, err := c.Read()
		if err != nil {
			c.t.Fatalf("after %q: %v", texts, err)
		}
		texts, took = append(texts, string(frame)), append(took, at-began)
	}
	return texts, took
}

func (c *client) publish(notes *corpus.Corpus) (oks []string, took []time.Duration) {
	c.t.Helper()
	for i := range notes.Len() {
		text, d := c.ask(`["EVENT",`+string(notes.Raw(i))+`]`, 1)
		oks, took = append(oks, text...), append(took, d...)
	}
	return oks, took
}

// stored asks how many events the relay holds, and counts them itself.
func (c *client) stored() int {
	c.t.Helper()
	n := 0
	for texts, _ := c.ask(`["REQ","all",{}]`, 1); !strings.HasPrefix(texts[0], `["EOSE"`); n++ {
		frame, _, err := c.Read()
		if err != nil {
			c.t.Fatal(err)
		}
		texts[0] = string(frame)
	}
	return n
}

// boot launches an external relay, and sees to its end.
func (r *Relay) boot(t *testing.T) *relays.Process {
	t.Helper()
	p, err := relays.Start(t.Context(), r.Definition, "", relays.Settings{WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func again(t *testing.T, p *relays.Process) *relays.Process {
	t.Helper()
	q, err := p.Restart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Kill() })
	return q
}

func stop(t *testing.T, p *relays.Process) {
	t.Helper()
	if err := p.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func atLeast[N cmp.Ordered](t *testing.T, what string, got, least N) {
	t.Helper()
	if got < least {
		t.Errorf("%s: %v, want at least %v", what, got, least)
	}
}

// TestEachEveryNthStrikesItsShare publishes 24 notes after 5 that are let through.
func TestEachEveryNthStrikesItsShare(t *testing.T) {
	t.Parallel()
	notes := Notes(t, 29)
	for _, test := range []struct {
		name                                 string
		script                               Script
		accepted, duplicates, refused, holds int
	}{
		{"honest", Script{}, 29, 0, 0, 29},
		{"refuses", Script{RefuseEvery: 5}, 25, 0, 4, 25},
		{"loses", Script{LoseEvery: 7}, 29, 0, 0, 26},
		{"duplicates", Script{DuplicateEvery: 6}, 25, 4, 0, 29},
		{"the first of several", Script{RefuseEvery: 4, LoseEvery: 2, DuplicateEvery: 3}, 19, 4, 6, 17},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.script.Honest = 5
			r := Serve(t, test.script)
			c := dial(t, r.URL)
			c.publish(notes)
			expect(t, "events", r.Events.N(), 29)
			expect(t, "OKs", r.OKs.N(), 29)
			expect(t, "accepted, duplicates, refused", []int64{r.Accepted.N(), r.Duplicates.N(), r.Refused.N()}, []int{test.accepted, test.duplicates, test.refused})
			expect(t, "stored", c.stored(), test.holds)
			expect(t, "sent", r.Sent.N(), test.holds)
		})
	}
}

func TestAnswersToEventsAreAsScripted(t *testing.T) {
	t.Parallel()
	notes := Notes(t, 6)
	id := func(i int) string { return notes.Entry(i).ID.String() }
	const d = 120 * time.Millisecond
	r := Serve(t, Script{RefuseEvery: 2, RefuseReasons: []string{"pow: more", "no"}, GarbageEvery: 6, Garbage: "{", OKAfter: d})
	c := dial(t, r.URL)
	oks, took := c.publish(notes)
	expect(t, "answers", oks, []string{
		`["OK","` + id(0) + `",true,""]`, `["OK","` + id(1) + `",false,"pow: more"]`, `["OK","` + id(2) + `",true,""]`,
		`["OK","` + id(3) + `",false,"no"]`, `["OK","` + id(4) + `",true,""]`, `{`})
	for i, took := range took[:5] {
		atLeast(t, fmt.Sprint("OK ", i), took, d)
	}
	if _, _, err := c.Read(); err != nil {
		t.Fatal(err)
	}
	expect(t, "garbage", r.Garbage.N(), 1)
	atLeast(t, "time held", time.Duration(r.HeldNanos.Load()), 6*d)
	atLeast(t, "from the first EVENT to the last OK", r.OKs.Last()-r.Events.First(), 6*d)
	atLeast(t, "to the last OK from the first", r.OKs.Last()-r.OKs.First(), 5*d)

	wrong := Serve(t, Script{WrongIDEvery: 2, SilentEvery: 3})
	c = dial(t, wrong.URL)
	for i := range 3 {
		c.SendEvent(notes.Raw(i))
	}
	var got []string
	for range 2 {
		texts, _, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(texts[7:71]))
	}
	if !slices.Contains(got, id(0)) || slices.Contains(got, id(1)) {
		t.Errorf("OKs for %q; the events are %s and %s", got, id(0), id(1))
	}
	expect(t, "stored", c.stored(), 1)
	expect(t, "OKs", wrong.OKs.N(), 2)
}

func TestAFreezeHoldsEverybody(t *testing.T) {
	t.Parallel()
	const d = 700 * time.Millisecond
	notes := Notes(t, 3)
	r := Serve(t, Script{FreezeAt: 2, Freeze: d})
	_, took := dial(t, r.URL).publish(notes)
	atLeast(t, "the event at which it froze", took[1], d)
	expect(t, "freezes", r.Freezes.N(), 1)
	atLeast(t, "between the OKs", r.OKs.Last()-r.Freezes.First(), d)

	r = Serve(t, Script{FreezeAt: 1, Freeze: d})
	other, c := dial(t, r.URL), dial(t, r.URL)
	c.SendEvent(notes.Raw(0))
	c.Flush()
	for r.Freezes.N() == 0 {
		time.Sleep(time.Millisecond)
	}
	other.ask(`["REQ","x",{"limit":0}]`, 1)
	atLeast(t, "somebody else's EOSE, from the freeze", Clock()-r.Freezes.First(), d)
}

func TestHangUpsDropTheConnection(t *testing.T) {
	t.Parallel()
	notes := Notes(t, 4)
	r := Serve(t, Script{HangUpEvery: 2})
	for range 2 {
		c := dial(t, r.URL)
		c.ask(`["EVENT",`+string(notes.Raw(0))+`]`, 1)
		c.SendEvent(notes.Raw(1))
		if frame, _, err := c.Read(); !errors.Is(err, wire.ErrLost) {
			t.Errorf("%q, %v; want a lost connection", frame, err)
		}
	}
	expect(t, "hang-ups", r.HangUps.N(), 2)
	expect(t, "connections", r.Connections.N(), 2)
}

func TestAnswersToREQAreAsScripted(t *testing.T) {
	t.Parallel()
	notes := Notes(t, 6)
	const first, last = 100 * time.Millisecond, 300 * time.Millisecond
	newest := func(n int) string { return `["EVENT","s",` + string(notes.Raw(notes.Len()-n)) + `]` }
	eose := `["EOSE","s"]`
	for _, test := range []struct {
		name   string
		script Script
		want   []string
	}{
		{"stored", Script{}, []string{newest(1), newest(2), newest(3), newest(4), newest(5), newest(6), eose}},
		{"a given list", Script{Answer: []string{"1", `{"a":2}`}}, []string{`["EVENT","s",1]`, `["EVENT","s",{"a":2}]`, eose}},
		{"nothing", Script{Answer: []string{}}, []string{eose}},
		{"capped", Script{Cap: 2}, []string{newest(1), newest(2), eose}},
		{"with holes", Script{LeaveOutEvery: 3}, []string{newest(1), newest(2), newest(4), newest(5), eose}},
		{"foreign", Script{Cap: 1, Foreign: "{}"}, []string{`["EVENT","s",{}]`, newest(1), eose}},
		{"closed", Script{CloseEvery: 1}, []string{`["CLOSED","s","error: by script"]`}},
		{"misordered", Script{Faults: []string{"wrong-order"}, Cap: 2}, []string{newest(6), newest(5), eose}},
		{"after a notice", Script{Notice: "hello", Answer: []string{}}, []string{`["NOTICE","hello"]`, eose}},
		{"altered", Script{Alter: map[string]string{"content": "7"}, Cap: 1, Answer: []string{`{"content":"a","id":"b"}`}}, []string{`["EVENT","s",{"content":7,"id":"b"}]`, eose}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.script.Honest, test.script.FirstAfter, test.script.EOSEAfter = notes.Len(), first, last
			r := Serve(t, test.script)
			c := dial(t, r.URL)
			c.publish(notes)
			got, took := c.ask(`["REQ","s",{}]`, len(test.want))
			expect(t, "answer", got, test.want)
			n := len(took)
			atLeast(t, "its end", took[n-1], last)
			if n > 2 && test.script.Foreign == "" {
				atLeast(t, "the second", took[n-2], last)
			}
			if n > 1 && !strings.Contains(got[0], "NOTICE") {
				atLeast(t, "the first", took[0], first)
			}
			expect(t, "REQs", r.Reqs.N(), 1)
			bytes := 0
			for _, text := range got {
				bytes += len(text)
			}
			expect(t, "bytes written", r.BytesOut.Load(), bytes+notes.Len()*len(`["OK","",true,""]`)+64*notes.Len())
		})
	}
	r := Serve(t, Script{IgnoreEvery: 2, CloseEvery: 3, CloseReason: "auth-required: no"})
	c := dial(t, r.URL)
	c.ask(`["REQ","1",{}]`, 1)
	c.ask(`["REQ","2",{}]`, 0)
	got, _ := c.ask(`["REQ","3",{}]`, 1)
	expect(t, "the third answer", got, []string{`["CLOSED","3","auth-required: no"]`})
	expect(t, "EOSEs", r.EOSEs.N(), 1)
}

func TestEventsThatComeLaterAreHeldBack(t *testing.T) {
	t.Parallel()
	notes := Notes(t, 1)
	const d = 150 * time.Millisecond
	r := Serve(t, Script{LiveAfter: d})
	c := dial(t, r.URL)
	c.ask(`["REQ","live",{}]`, 1)
	got, took := c.ask(`["EVENT",`+string(notes.Raw(0))+`]`, 2)
	expect(t, "the last", got[1], `["EVENT","live",`+string(notes.Raw(0))+`]`)
	atLeast(t, "the live event", took[1], d)
}

func TestAnswersToCountAndNegentropyAreAsScripted(t *testing.T) {
	t.Parallel()
	notes := Notes(t, 40)
	const d = 100 * time.Millisecond
	r := Serve(t, Script{Honest: 40, CountAfter: d, CountOff: 3, NegAfter: d})
	c := dial(t, r.URL)
	c.publish(notes)
	got, took := c.ask(`["COUNT","c",{}]`, 1)
	expect(t, "count", got, []string{`["COUNT","c",{"count":43}]`})
	atLeast(t, "the count", took[0], d)

	set := negentropy.NewSet(20)
	for i := range 20 {
		set.Add(uint64(notes.Entry(2*i).CreatedAt), (*negentropy.ID)(&notes.Entry(2*i).ID))
	}
	if err := set.Seal(); err != nil {
		t.Fatal(err)
	}
	need := 0
	began := wire.Now()
	neg := negentropy.NewInitiator(set, 0, func([]negentropy.ID) { t.Error("it lacks something") }, func(ids []negentropy.ID) { need += len(ids) })
	message := string(negentropy.AppendHex(nil, neg.Open(nil)))
	rounds := 0
	for label := `"NEG-OPEN","n",{}`; message != ""; label = `"NEG-MSG","n"` {
		rounds++
		texts, _ := c.ask(`[`+label+`,"`+message+`"]`, 1)
		var m wire.Message
		wire.Parse([]byte(texts[0]), &m)
		answer, err := negentropy.DecodeHex(nil, m.Payload)
		if m.Type != wire.NegMsg || err != nil {
			t.Fatal(texts, err)
		}
		next, err := neg.Next(nil, answer)
		if err != nil {
			t.Fatal(err)
		}
		if message = ""; !neg.Done() {
			message = string(negentropy.AppendHex(nil, next))
		}
	}
	expect(t, "differences", need, 20)
	atLeast(t, "the reconciliation", wire.Now()-began, time.Duration(rounds)*d)
	expect(t, "NEG-OPEN, NEG-MSG and answers", []int64{r.NegOpens.N(), r.NegMsgs.N(), r.NegAnswers.N()}, []int{1, rounds - 1, rounds})

	first := dial(t, Serve(t, Script{NegFirst: 1, NegReply: "zz"}).URL)
	for _, want := range []string{`["NEG-MSG","n","61"]`, `["NEG-MSG","n","zz"]`} {
		got, _ := first.ask(`["NEG-OPEN","n",{},"61"]`, 1)
		expect(t, "NEG-OPEN, of which the first is answered rightly", got, []string{want})
	}
	for want, s := range map[string]Script{`["NEG-ERR","n","blocked: no"]`: {NegError: "blocked: no"}, `["NEG-MSG","n","zz"]`: {NegReply: "zz"}} {
		got, _ := dial(t, Serve(t, s).URL).ask(`["NEG-OPEN","n",{},"61"]`, 1)
		expect(t, "NEG-OPEN", got, []string{want})
	}
}

func TestTheInformationDocumentIsScripted(t *testing.T) {
	t.Parallel()
	get := func(url string) string {
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http"+strings.TrimPrefix(url, "ws"), nil)
		q.Header.Set("Accept", "application/nostr+json")
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		return string(text)
	}
	expect(t, "document", get(Serve(t, Script{NIP11: `{"name":"x"}`}).URL), `{"name":"x"}`)
	var usual struct{ Name string }
	if err := json.Unmarshal([]byte(get(Serve(t, Script{}).URL)), &usual); err != nil || usual.Name != "scripted relay" {
		t.Errorf("%v, %+v", err, usual)
	}
}

// TestAProcessUsesWhatTheScriptSays boots it as relaybench boots any relay, and compares what is
// measured of it with the script.
func TestAProcessUsesWhatTheScriptSays(t *testing.T) {
	t.Parallel()
	const cpu, written, sparse, memory, files = 20 * time.Millisecond, 10_000, 256 << 20, 100 << 20, 40
	notes := Notes(t, 20)
	plain := External(t, "plain", Script{}).boot(t)
	r := External(t, "loaded", Script{CPUPerMessage: cpu, WritePerMessage: written, Fsync: true, Sparse: sparse, Memory: memory, Files: files})
	p := r.boot(t)
	defer plain.Kill()
	before, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	dial(t, p.URL()).publish(notes)
	after, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	usual, err := plain.Usage()
	if err != nil {
		t.Fatal(err)
	}
	// The system counts in ticks of 10 ms.
	atLeast(t, "processor time", time.Duration((after.CPUSeconds-before.CPUSeconds)*1e9), 20*cpu-20*time.Millisecond)
	atLeast(t, "memory beyond a plain relay's", after.PeakRSS, usual.RSS/2+memory)
	atLeast(t, "open files", after.OpenFiles, usual.OpenFiles+files)
	stop(t, p)
	info, err := os.Stat(filepath.Join(p.Dir(), "written"))
	if err != nil {
		t.Fatal(err)
	}
	messages := r.Events.N() + r.Reqs.N() // it has to answer a REQ to be ready
	expect(t, "bytes in the file", info.Size(), messages*written)
	var sparseFile syscall.Stat_t
	if err := syscall.Stat(filepath.Join(p.Dir(), "sparse"), &sparseFile); err != nil {
		t.Fatal(err)
	}
	expect(t, "apparent and allocated bytes of the sparse file", []int64{sparseFile.Size, 512 * int64(sparseFile.Blocks)}, []int{sparse, 0})
	if messages < 21 {
		t.Errorf("%d messages, want 20 EVENTs and a REQ at least", messages)
	}
}

// TestAProcessEndsAndBeginsAsScripted looks at what is left after it was stopped, killed and
// started anew.
func TestAProcessEndsAndBeginsAsScripted(t *testing.T) {
	t.Parallel()
	notes := Notes(t, 60)
	for _, test := range []struct {
		name   string
		script Script
		end    func(p *relays.Process)
		holds  int
		lost   int64
	}{
		{"stopped", Script{Persist: true}, nil, 60, 0},
		{"killed", Script{Persist: true}, func(p *relays.Process) { p.Kill(); <-p.Done() }, 60, 0},
		{"in memory alone", Script{}, nil, 0, 0},
		{"loses some when stopped", Script{Persist: true, LoseOnStop: 20}, nil, 57, 3 + 2},
		{"loses all when stopped", Script{Persist: true, LoseOnStop: 1}, nil, 0, 60},
		{"begins with nothing", Script{Persist: true, ForgetOnStart: true}, nil, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := External(t, "ends", test.script)
			p := r.boot(t)
			dial(t, p.URL()).publish(notes)
			if test.end != nil {
				test.end(p)
			} else {
				stop(t, p)
			}
			q := again(t, p)
			expect(t, "stored", dial(t, q.URL()).stored(), test.holds)
			stop(t, q)
			expect(t, "lost at both stops", r.Lost.N(), test.lost)
			expect(t, "boots", r.Boots.N(), 2)
			expect(t, "events", r.Events.N(), 60)
		})
	}
}

func TestAProcessTakesItsTimeAndDies(t *testing.T) {
	t.Parallel()
	const d = 600 * time.Millisecond
	r := External(t, "slow", Script{StopAfter: d})
	p := r.boot(t)
	began := time.Now()
	stop(t, p)
	atLeast(t, "stopping", time.Since(began), d)
	expect(t, "stops", r.Stops.N(), 1)

	r = External(t, "dies", Script{DieAt: 3})
	p = r.boot(t)
	c := dial(t, p.URL())
	for i := range 3 {
		c.SendEvent(Notes(t, 3).Raw(i))
	}
	c.Flush()
	<-p.Done()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended with %v", err)
	}
	expect(t, "events, and stops", []int64{r.Events.N(), r.Stops.N()}, []int{3, 0})
}

func TestItsOwnCommandsAreAsScripted(t *testing.T) {
	t.Parallel()
	const d = 700 * time.Millisecond
	notes := Notes(t, 50)
	var text []byte
	for i := range notes.Len() {
		text = append(append(text, notes.Raw(i)...), '\n')
	}
	r := External(t, "imports", Script{Import: &Command{Takes: d, LoseEvery: 10}, SyncWith: &Command{Takes: d}})
	p, err := relays.Prepare(r.Definition, "", relays.Settings{WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Cleanup() })
	done, err := p.Import(t.Context(), text, relays.CommandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	atLeast(t, "the import", done.Took, d)
	expect(t, "lost", r.Lost.N(), 5)

	other := Serve(t, Script{})
	dial(t, other.URL).publish(notes)
	if done, err = p.Sync(t.Context(), other.URL, relays.Down, relays.CommandOptions{}); err != nil {
		t.Fatal(err)
	}
	atLeast(t, "the sync", done.Took, d)
	expect(t, "imports and syncs", []int64{r.Imports.N(), r.Syncs.N()}, []int{1, 1})
	q := again(t, p)
	expect(t, "stored", dial(t, q.URL()).stored(), 50)
	stop(t, q)

	r = External(t, "fails", Script{Import: &Command{Exit: 7}})
	if p, err = relays.Prepare(r.Definition, "", relays.Settings{WorkDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	defer p.Cleanup()
	if _, err := p.Import(t.Context(), text, relays.CommandOptions{}); err == nil || !strings.Contains(err.Error(), "status 7") {
		t.Errorf("an import that fails: %v", err)
	}
}
