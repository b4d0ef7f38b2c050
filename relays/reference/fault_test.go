package reference

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// misbehaving serves from memory with faults, and dials.
func misbehaving(t *testing.T, specs ...string) *talker {
	t.Helper()
	faults, err := ParseFaults(specs)
	if err != nil {
		t.Fatal(err)
	}
	url, stop := startServing(t, Options{Store: NewMemory(), Faults: faults})
	t.Cleanup(stop)
	return dialTalker(t, url)
}

// someNotes are published to every relay below, newest first.
func someNotes(n int) []corpus.Event {
	key := testKey(1)
	events := make([]corpus.Event, n)
	for i := range events {
		events[i] = note(key, int64(5000-i), fmt.Sprint("note ", i))
	}
	return events
}

func TestFaultsThatAnswerWrongly(t *testing.T) {
	notes := someNotes(6)
	for _, test := range []struct {
		name, fault string
		filter      string
		want        []string // messages up to EOSE or CLOSED, as patterns; %N stands for the Nth note's id
	}{
		{"honest", "slow-ok:1", `{"limit":2}`, []string{`["EVENT","s",*%0*]`, `["EVENT","s",*%1*]`, `["EOSE","s"]`}},
		{"wrong order", "wrong-order", `{"limit":3}`, []string{`["EVENT","s",*%2*]`, `["EVENT","s",*%1*]`, `["EVENT","s",*%0*]`, `["EOSE","s"]`}},
		{"limit ignored", "ignore-limit", `{"limit":1}`, []string{`*%0*`, `*%1*`, `*%2*`, `*%3*`, `*%4*`, `*%5*`, `["EOSE","s"]`}},
		{"EOSE first", "eose-early", `{"limit":1}`, []string{`["EOSE","s"]`, `["EVENT","s",*%0*]`}},
		{"CLOSED half-way", "closed-midway", `{"limit":4}`, []string{`["EVENT","s",*%0*]`, `["EVENT","s",*%1*]`, `["CLOSED","s","error: *"]`}},
		{"one event is not cut", "closed-midway", `{"limit":1}`, []string{`["EVENT","s",*%0*]`, `["EOSE","s"]`}},
		{"an event too many", "extra-results", `{"limit":1}`, []string{`["EVENT","s",{*}]`, `["EVENT","s",*%0*]`, `["EOSE","s"]`}},
		{"another content", "id-mismatch", `{"limit":1}`, []string{`["EVENT","s",*%0*"content":"altered: note 0"*]`, `["EOSE","s"]`}},
		{"all dropped", "drop-results:1", `{}`, []string{`["EOSE","s"]`}},
		{"none stored", "ack-without-store:1", `{}`, []string{`["EOSE","s"]`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := misbehaving(t, test.fault)
			for _, e := range notes {
				c.accepted(e)
			}
			c.send(`["REQ","s",%s]`, test.filter)
			for _, want := range test.want {
				for i, e := range notes {
					want = strings.ReplaceAll(want, fmt.Sprint("%", i), e.ID.String())
				}
				c.want(want)
			}
		})
	}
}

func TestASharedFaultStrikesTheSameEventsEveryTime(t *testing.T) {
	notes := someNotes(200)
	for _, fault := range []string{"ack-without-store:0.3", "drop-results:0.3"} {
		var first string
		for range 2 {
			c := misbehaving(t, fault)
			for _, e := range notes {
				c.accepted(e)
			}
			ids := strings.Join(c.stored(`{}`), " ")
			if first == "" {
				first = ids
			}
			if n := strings.Count(ids, " ") + 1; ids != first || n < 110 || n > 170 {
				t.Errorf("%s: %d of 200 events are left, the same %t; want about 140", fault, n, ids == first)
			}
		}
	}
}

// What is acknowledged and not stored is in no set; what is only left out of answers is in the set
// that is reconciled.
func TestFaultsAndTheReconciledSet(t *testing.T) {
	for fault, want := range map[string]int{"ack-without-store:1": 0, "drop-results:1": 3} {
		faults, err := ParseFaults([]string{fault})
		if err != nil {
			t.Fatal(err)
		}
		url, stop := startServing(t, Options{Store: NewMemory(), Faults: faults})
		c := dialTalker(t, url)
		for _, e := range someNotes(3) {
			c.accepted(e)
		}
		need, _, _, err := reconcile(t, url, `{}`, nil)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(need); n != want {
			t.Errorf("%s: %d events in the set, want %d", fault, n, want)
		}
	}
}

func TestFaultsThatTakeWrongly(t *testing.T) {
	forged := someNotes(1)[0]
	forged.Sig[0] ^= 1
	c := misbehaving(t, "no-verify")
	c.accepted(forged)

	c = misbehaving(t, "notice-throttle:1/s")
	throttled := 0
	for _, e := range someNotes(20) { // some second has two of them, however slow the machine
		c.publish(e)
		if frame := c.read(); strings.HasPrefix(frame, `["NOTICE","rate-limited`) {
			c.want(fmt.Sprintf(`["OK","%s",false,"rate-limited: *"]`, e.ID))
			throttled++
		}
	}
	if throttled == 0 {
		t.Error("none of 20 events was refused at 1 a second")
	}
}

func TestGarbageFramesStandAmongMessages(t *testing.T) {
	c := misbehaving(t, "garbage-frames")
	e := someNotes(1)[0]
	c.publish(e)
	c.send(`["REQ","s",{}]`)
	unknown, known := 0, ""
	for {
		var m wire.Message
		wire.Parse([]byte(c.read()), &m)
		if known += m.Type.String() + " "; m.Type == wire.Unknown {
			unknown++
		}
		if m.Type == wire.EOSE {
			break
		}
	}
	if unknown < len(garbage)-2 { // two of them look like messages
		t.Errorf("%d frames of garbage among %s", unknown, known)
	}
}

func TestAPeerThatIsBehindIsDropped(t *testing.T) {
	c := misbehaving(t, "kill-pending:0.001")
	for _, e := range someNotes(20) {
		c.accepted(e)
	}
	c.send(`["REQ","s",{}]`)
	for {
		_, _, err := c.conn.Read()
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), "too much waits") {
			t.Errorf("dropped with %v", err)
		}
		return
	}
}

// An OK that is held back is no obstacle: events are stored and answered to others, and all are
// acknowledged at the end.
func TestDelayHoldsBackTheOKAlone(t *testing.T) {
	url, stop := startServing(t, Options{Store: NewMemory(), Delay: time.Hour})
	c, reader := dialTalker(t, url), dialTalker(t, url)
	notes := someNotes(50)
	reader.send(`["REQ","live",{}]`)
	reader.want(`["EOSE","live"]`)
	for _, e := range notes {
		c.publish(e)
	}
	c.send(`["REQ","after",{"ids":["%064x"]}]`, 0)
	c.want(`["EOSE","after"]`) // and no OK before it
	for _, e := range notes {
		reader.want(fmt.Sprintf(`["EVENT","live",*%s*]`, e.ID))
	}
	stop()
	for _, e := range notes {
		c.want(fmt.Sprintf(`["OK","%s",true,""]`, e.ID))
	}
}

func TestDelayIsNeverShort(t *testing.T) {
	const delay = 20 * time.Millisecond
	url, stop := startServing(t, Options{Store: NewMemory(), Delay: delay})
	defer stop()
	c := dialTalker(t, url)
	for _, e := range someNotes(3) {
		begun := time.Now()
		c.accepted(e)
		if took := time.Since(begun); took < delay {
			t.Errorf("the OK came after %v", took)
		}
	}
}

func FuzzParseFaults(f *testing.F) {
	for _, k := range faultKinds {
		f.Add(k.usage())
	}
	f.Add("drop-results:0.01")
	f.Add("notice-throttle:100/s")
	f.Add("kill-pending:1e300")
	f.Fuzz(func(t *testing.T, spec string) {
		faults, err := ParseFaults([]string{spec})
		if (faults == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", spec, faults, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error has lines: %q", spec, err)
		}
	})
}
