package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/fetch"
	"relaybench/harness/measure"
	"relaybench/harness/scripted"
	"relaybench/relays"
)

// role is where a misbehaving relay is met.
type role struct {
	run       func(ctx context.Context, r *harness.Runner) error
	with      bool   // an honest relay takes part
	peer      bool   // its figures are those of the honest one that it is to fill
	scenarios string // in which an honest relay has figures that can be ranked
}

const (
	misbehavingNotes = 60
	misbehavingStall = 3 * time.Second
)

func aloneIn(all ...harness.Scenario) func(context.Context, *harness.Runner) error {
	return func(ctx context.Context, r *harness.Runner) error {
		r.Scenarios = all
		return r.Run(ctx)
	}
}

func filling(from, to string) func(context.Context, *harness.Runner) error {
	return func(ctx context.Context, r *harness.Runner) error {
		nothing := new(scripted.Counts)
		return r.RunSyncs(ctx, &betweenModes{Sync: &Sync{Page: 25}, source: nothing, sink: nothing, modes: map[string]traffic{},
			only: func(source, sink string) bool { return source == from && sink == to }})
	}
}

var (
	alone = role{scenarios: "ingest.throughput ingest.visibility query.by-ids.hot query.firehose.hot storage",
		run: func(ctx context.Context, r *harness.Runner) error {
			return aloneIn(slices.Concat([]harness.Scenario{Visibility{}, Throughput{}}, queriesOf("firehose.hot", "by-ids.hot"), []harness.Scenario{Storage{}})...)(ctx, r)
		}}
	crashing = role{scenarios: "crash", run: aloneIn(Crash{})}
	filled   = role{scenarios: "import", run: aloneIn(Import{})}
	server   = role{scenarios: "fetch.by-id fetch.giant fetch.negentropy fetch.paged fetch.sharded-giant fetch.sharded-paged",
		run: func(ctx context.Context, r *harness.Runner) error {
			return aloneIn(Fetches(FetchOptions{Options: fetch.Options{Stall: misbehavingStall}})...)(ctx, r)
		}}
	inPair   = role{with: true, scenarios: "negentropy.after-write negentropy.heartbeat negentropy.identical negentropy.initial negentropy.transfer", run: paired(Negentropy{})}
	asSource = role{with: true, peer: true, scenarios: "sync.negentropy sync.req", run: filling("bad", "honest")}
	asSink   = role{with: true, scenarios: "sync.negentropy sync.req", run: filling("honest", "bad")}
)

// misbehaving is a relay that does one thing wrong, where it is met, and what is to come of it.
type misbehaving struct {
	name       string
	as         role
	script     scripted.Script
	durability relays.Durability
	out        string // of the role's scenarios those in which it has no figure that competes; "all"
	told       string // what names it: "scenario code verdict", several separated by commas
}

// honest is a script until the relay holds the corpus.
func afterNotes(s scripted.Script) scripted.Script {
	s.Honest = misbehavingNotes
	return s
}

// competes returns the scenarios in which the bad relay has a figure that is ranked with others'.
func (m *meeting) competes(as role) map[string]bool {
	in := map[string]bool{}
	for i := range m.Measurements {
		f := &m.Measurements[i]
		whose := f.Relay
		if as.peer {
			whose = f.Peer
		}
		if whose == "bad" && f.Better != measure.None && len(f.Trials) > 0 && f.Is(measure.StatusIncomplete) == nil && len(m.Barring(f)) == 0 {
			in[f.Scenario] = true
		}
	}
	return in
}

// nothingIsLeft fails where the work folder holds anything, or a process that was launched in it runs.
func nothingIsLeft(t *testing.T, folder string) {
	t.Helper()
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left in the work folder: %v %v", left, err)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range commands { // none where there is no /proc
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), folder) {
			t.Errorf("a process is left: %q", text)
		}
	}
}

func (b *misbehaving) isMet(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, misbehavingNotes)
	if b.script.Import != nil {
		notes = synthetic(t, misbehavingNotes) // in a file, as a command needs it
	}
	met := []*scripted.Relay{scripted.External(t, "bad", b.script)}
	met[0].Definition.Durability = b.durability
	if b.as.with {
		met = append(met, scripted.External(t, "honest", scripted.Script{}))
		slices.Reverse(met) // the honest one is a source first
	}
	m := meet(t, notes, harness.Options{Stall: misbehavingStall, Samples: 10, QueryRounds: 3, QueryConns: 1, Window: 5}, b.as.run, met...)
	m.blameless(t, "honest")
	out := map[string]bool{}
	all := strings.Fields(b.as.scenarios)
	in := m.competes(b.as)
	for _, scenario := range all {
		if !in[scenario] {
			out[scenario] = true
		}
	}
	if os.Getenv("SHOW") != "" {
		fmt.Printf("ROW %s | out %v", b.name, slices.Sorted(maps.Keys(out)))
		for _, f := range m.Findings {
			if f.Verdict == measure.Failed || f.Verdict == measure.Stated && f.Relay == "bad" && f.Code != "has-way" && f.Scenario != "negentropy.probe" {
				fmt.Printf(" | %s %s %s->%s %v", f.Scenario, f.Code, f.Verdict, f.Blames, f.Counts)
			}
		}
		fmt.Println()
	}
	want := namesIn(strings.Fields(b.out))
	if b.out == "all" {
		want = namesIn(all)
	}
	if !maps.Equal(out, want) {
		t.Errorf("out of %q, want %q", slices.Sorted(maps.Keys(out)), slices.Sorted(maps.Keys(want)))
	}
	for _, line := range strings.Split(b.told, ", ") {
		if line != "" && !m.tells(line) {
			t.Errorf("not told: %s", line)
		}
	}
	if t.Failed() {
		t.Log(m.trouble())
	}
}

// tells says whether a finding on the bad relay is there. A failed one blames it.
func (m *meeting) tells(line string) bool {
	return slices.ContainsFunc(m.Findings, func(f measure.Finding) bool {
		return fmt.Sprintf("%s %s %s", f.Scenario, f.Code, f.Verdict) == line && (f.Verdict != measure.Failed || f.Blames == "bad")
	})
}

func namesIn(all []string) map[string]bool {
	set := map[string]bool{}
	for _, s := range all {
		set[s] = true
	}
	return set
}

var errHung = errors.New("the run did not end")

func TestWhatMisbehavingRelaysComeTo(t *testing.T) {
	_ = corpus.Filter{}
	_ = errHung
	for _, b := range misbehavings(t) {
		t.Run(b.name, b.isMet)
	}
}

func misbehavings(t *testing.T) []misbehaving {
	foreign := string(scripted.Notes(t, misbehavingNotes+1).Raw(misbehavingNotes))
	content := map[string]string{"content": `"other"`}
	return []misbehaving{
		{name: "honest", as: alone},
		{name: "honest after a crash", as: crashing, durability: relays.Batch, script: scripted.Script{Persist: true}},
		{name: "honest import", as: filled, script: scripted.Script{Import: &scripted.Command{}}},
		{name: "honest server", as: server},
		{name: "honest pair", as: inPair},
		{name: "honest source", as: asSource},
		{name: "honest sink", as: asSink},

		{name: "loses one in twenty", as: alone, script: scripted.Script{LoseEvery: 20}},
		{name: "answers one in twenty never", as: alone, script: scripted.Script{SilentEvery: 20}},
		{name: "refuses one in twenty", as: alone, script: scripted.Script{RefuseEvery: 20}},
		{name: "acknowledges other ids", as: alone, script: scripted.Script{WrongIDEvery: 20}},
		{name: "says it knew one in five", as: alone, script: scripted.Script{DuplicateEvery: 5}},
		{name: "hangs up", as: alone, script: scripted.Script{HangUpEvery: 30}},
		{name: "dies", as: alone, script: scripted.Script{DieAt: 40, Persist: true}},
		{name: "sends what is no message", as: alone, script: scripted.Script{GarbageEvery: 10}},
		{name: "freezes for a second", as: alone, script: scripted.Script{FreezeAt: 40, Freeze: time.Second}},
		{name: "freezes for good", as: alone, script: scripted.Script{FreezeAt: 40, Freeze: time.Hour}},
		{name: "alters contents", as: alone, script: scripted.Script{Alter: content}},
		{name: "adds a foreign event", as: alone, script: scripted.Script{Foreign: foreign}},
		{name: "answers elsewhere", as: alone, script: scripted.Script{SubID: "zzz"}},
		{name: "leaves out one in twenty", as: alone, script: scripted.Script{LeaveOutEvery: 20}},
		{name: "is capped at ten", as: alone, script: scripted.Script{Cap: 10}},
		{name: "closes each fifth REQ", as: alone, script: scripted.Script{CloseEvery: 5}},
		{name: "closes every REQ", as: alone, script: afterNotes(scripted.Script{CloseEvery: 1})},
		{name: "ignores each fifth REQ", as: alone, script: scripted.Script{IgnoreEvery: 5}},
		{name: "notices before answers", as: alone, script: scripted.Script{Notice: "hello"}},
		{name: "answers oldest first", as: alone, script: scripted.Script{Faults: []string{"wrong-order"}}},
		{name: "knows no limit", as: alone, script: scripted.Script{Faults: []string{"ignore-limit"}}},
		{name: "ends before it answers", as: alone, script: scripted.Script{Faults: []string{"eose-early"}}},
		{name: "verifies nothing", as: alone, script: scripted.Script{Faults: []string{"no-verify"}}},
		{name: "ends half-way", as: alone, script: scripted.Script{Faults: []string{"closed-midway"}}},
		{name: "adds what nobody asked for", as: alone, script: scripted.Script{Faults: []string{"extra-results"}}},
		{name: "never answers a handshake", as: alone, script: scripted.Script{Faults: []string{"half-open"}}},
		{name: "loses all on stop", as: alone, script: scripted.Script{Persist: true, LoseOnStop: 1}},
		{name: "loses a twentieth on stop", as: alone, script: scripted.Script{Persist: true, LoseOnStop: 20}},
		{name: "forgets on start", as: alone, script: scripted.Script{Persist: true, ForgetOnStart: true}},

		{name: "forgets when it is killed", as: crashing, durability: relays.Batch, script: scripted.Script{Persist: true, ForgetOnStart: true}},
		{name: "forgets when it is killed, and says so", as: crashing, durability: relays.NotDurable, script: scripted.Script{Persist: true, ForgetOnStart: true}},

		{name: "imports a part", as: filled, script: scripted.Script{Import: &scripted.Command{LoseEvery: 10}}},
		{name: "imports and fails", as: filled, script: scripted.Script{Import: &scripted.Command{Exit: 3}}},

		{name: "source that leaves out a twentieth", as: asSource, script: afterNotes(scripted.Script{LeaveOutEvery: 20})},
		{name: "source that leaves out all", as: asSource, script: afterNotes(scripted.Script{Faults: []string{"drop-results:1"}})},
		{name: "source that alters contents", as: asSource, script: afterNotes(scripted.Script{Alter: content})},
		{name: "source that answers elsewhere", as: asSource, script: afterNotes(scripted.Script{SubID: "zzz"})},
		{name: "source that adds a foreign event", as: asSource, script: afterNotes(scripted.Script{Foreign: foreign})},
		{name: "source that closes every REQ", as: asSource, script: afterNotes(scripted.Script{CloseEvery: 1})},
		{name: "source that ends half-way", as: asSource, script: afterNotes(scripted.Script{Faults: []string{"closed-midway"}})},
		{name: "source that ignores REQs", as: asSource, script: afterNotes(scripted.Script{IgnoreEvery: 1})},
		{name: "source that names ids of nothing", as: asSource, script: afterNotes(scripted.Script{NegReply: named(7)})},
		{name: "source that breaks NIP-77", as: asSource, script: afterNotes(scripted.Script{NegReply: "zz"})},
		{name: "source that refuses to reconcile", as: asSource, script: afterNotes(scripted.Script{NegError: "error: no"})},
		{name: "source that is silent on NIP-77", as: asSource, script: afterNotes(scripted.Script{NegAfter: time.Hour})},
		{name: "source that is capped at ten", as: asSource, script: afterNotes(scripted.Script{Cap: 10})},
		{name: "source that sends oldest first", as: asSource, script: afterNotes(scripted.Script{Faults: []string{"wrong-order"}})},
		{name: "source that ends before it answers", as: asSource, script: afterNotes(scripted.Script{Faults: []string{"eose-early"}})},
		{name: "source that lost a twentieth", as: asSource, script: scripted.Script{LoseEvery: 20}},

		{name: "sink that loses a twentieth", as: asSink, script: scripted.Script{LoseEvery: 20}},
		{name: "sink that refuses a twentieth", as: asSink, script: scripted.Script{RefuseEvery: 20}},
		{name: "sink that answers a twentieth never", as: asSink, script: scripted.Script{SilentEvery: 20}},
		{name: "sink that returns 70 of 100", as: asSink, script: afterNotes(scripted.Script{Faults: []string{"drop-results:0.3"}})},
		{name: "sink that names ids of nothing", as: asSink, script: afterNotes(scripted.Script{NegReply: named(7)})},
		{name: "sink that breaks NIP-77", as: asSink, script: afterNotes(scripted.Script{NegReply: "zz"})},
		{name: "sink that hangs up", as: asSink, script: scripted.Script{HangUpEvery: 30}},
		{name: "sink that dies", as: asSink, script: scripted.Script{DieAt: 40}},
		{name: "sink that freezes", as: asSink, script: scripted.Script{FreezeAt: 40, Freeze: time.Hour}},
		{name: "sink that alters contents", as: asSink, script: afterNotes(scripted.Script{Alter: content})},
		{name: "sink whose command fails", as: asSink, script: scripted.Script{SyncWith: &scripted.Command{Exit: 3}}},
		{name: "sink whose command loses a tenth", as: asSink, script: scripted.Script{SyncWith: &scripted.Command{LoseEvery: 10}}},

		{name: "server that leaves out a twentieth", as: server, script: afterNotes(scripted.Script{LeaveOutEvery: 20})},
		{name: "server that alters contents", as: server, script: afterNotes(scripted.Script{Alter: content})},
		{name: "server that answers elsewhere", as: server, script: afterNotes(scripted.Script{SubID: "zzz"})},
		{name: "server that adds a foreign event", as: server, script: afterNotes(scripted.Script{Foreign: foreign})},
		{name: "server that closes every REQ", as: server, script: afterNotes(scripted.Script{CloseEvery: 1})},
		{name: "server that ends half-way", as: server, script: afterNotes(scripted.Script{Faults: []string{"closed-midway"}})},
		{name: "server that ignores REQs", as: server, script: afterNotes(scripted.Script{IgnoreEvery: 1})},
		{name: "server that names ids of nothing", as: server, script: afterNotes(scripted.Script{NegReply: named(7)})},
		{name: "server that breaks NIP-77", as: server, script: afterNotes(scripted.Script{NegReply: "zz"})},
		{name: "server that is capped at ten", as: server, script: afterNotes(scripted.Script{Cap: 10})},
		{name: "server that drops all", as: server, script: afterNotes(scripted.Script{Faults: []string{"drop-results:1"}})},

		{name: "pair: loses a twentieth", as: inPair, script: scripted.Script{LoseEvery: 20}},
		{name: "pair: refuses a tenth of what is carried", as: inPair, script: scripted.Script{Honest: 48, RefuseEvery: 10}},
		{name: "pair: breaks NIP-77", as: inPair, script: scripted.Script{Honest: 48, NegReply: "zz"}},
		{name: "pair: names ids of nothing", as: inPair, script: scripted.Script{Honest: 48, NegReply: named(7)}},
		{name: "pair: refuses to reconcile", as: inPair, script: scripted.Script{Honest: 48, NegError: "error: no"}},
		{name: "pair: answers elsewhere", as: inPair, script: scripted.Script{Honest: 48, SubID: "zzz"}},
		{name: "pair: alters contents", as: inPair, script: scripted.Script{Honest: 48, Alter: content}},
		{name: "pair: leaves out a tenth", as: inPair, script: scripted.Script{Honest: 48, LeaveOutEvery: 10}},
		{name: "pair: silent on what is carried", as: inPair, script: scripted.Script{Honest: 48, SilentEvery: 5}},
	}
}
