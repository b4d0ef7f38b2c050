package scenarios

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"relaybench/harness"
	"relaybench/relays"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// role is where a misbehaving relay is met.
type role struct {
	run       func(ctx context.Context, r *harness.Runner) error
	with      bool   // an honest relay takes part
	peer      bool   // its figures are those of the honest one that it is to fill
	scenarios string // in which an honest relay has figures that can be ranked
}

const misbehavingNotes = 60

func aloneIn(all ...harness.Scenario) func(context.Context, *harness.Runner) error {
	return func(ctx context.Context, r *harness.Runner) error {
		r.Scenarios = all
		return r.Run(ctx)
	}
}

// serving downloads by some strategies, by all where none is named.
func serving(by ...fetchStrategy) func(context.Context, *harness.Runner) error {
	return func(ctx context.Context, r *harness.Runner) error {
		var some []harness.Scenario
		for _, f := range Fetches(FetchOptions{Time: r.Options.CellTime, Page: 20}) {
			if len(by) == 0 || slices.Contains(by, fetchStrategies[f.(*Fetch).place].fetchStrategy) {
				some = append(some, f)
			}
		}
		return aloneIn(some...)(ctx, r)
	}
}

// filling has one of two relays fill the other, in every mode.
func filling(from, to string) func(context.Context, *harness.Runner) error {
	return func(ctx context.Context, r *harness.Runner) error {
		nothing := new(scripted.Counts)
		b := &betweenModes{Sync: &Sync{Page: 25}, source: nothing, sink: nothing, modes: map[string]traffic{},
			only: func(source, sink string) bool { return source == from && sink == to }}
		return aloneIn(b.Scenarios()...)(ctx, r)
	}
}

var (
	alone = role{scenarios: "ingest.throughput ingest.visibility query.by-ids.hot query.firehose.hot storage",
		run: func(ctx context.Context, r *harness.Runner) error {
			return aloneIn(slices.Concat([]harness.Scenario{Visibility{}, Throughput{}}, queriesOf("firehose.hot", "by-ids.hot"), []harness.Scenario{Storage{}})...)(ctx, r)
		}}
	crashing = role{scenarios: "crash", run: aloneIn(Crash{})}
	filled   = role{scenarios: "import", run: aloneIn(Import{})}
	server   = role{scenarios: "fetch.by-id fetch.giant fetch.negentropy fetch.paged fetch.sharded-giant fetch.sharded-paged", run: serving()}
	paged    = role{scenarios: "fetch.giant fetch.paged", run: serving(fetchGiant, fetchPaged)} // where each cell is waited for
	inPair   = role{with: true, scenarios: "negentropy.after-write negentropy.heartbeat negentropy.identical negentropy.initial negentropy.transfer", run: paired(Negentropy{})}
	asSource = role{with: true, peer: true, scenarios: "sync.negentropy sync.req", run: filling("bad", "honest")}
	asSink   = role{with: true, scenarios: "sync.negentropy sync.req", run: filling("honest", "bad")}
	ownSync  = role{with: true, scenarios: "sync.native sync.negentropy sync.req", run: filling("honest", "bad")}
)

// misbehaving is a relay that does one thing wrong, where it is met, and what is to come of it.
type misbehaving struct {
	name       string
	as         role
	script     scripted.Script
	waits      bool // until the harness gives up: after a short time
	cut        bool // each way to fetch is cut after less than that
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
		if whose == "bad" && f.Better != results.None && len(f.Trials) > 0 && f.Is(results.StatusIncomplete) == nil && len(m.Barring(f)) == 0 {
			in[f.Scenario] = true
		}
	}
	return in
}

// nothingIsLeft fails where the work folder holds anything, or a process that was launched in it
// runs.
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
	notes := scripted.Notes(t, misbehavingNotes)
	if b.script.Import != nil {
		notes = syntheticCorpus(t, misbehavingNotes) // in a file, as a command needs it
	}
	if b.as.scenarios == alone.scenarios {
		b.script.Persist = true // or there is nothing on disk
	}
	met := []*scripted.Relay{scripted.External(t, "bad", b.script)}
	met[0].Definition.Durability = b.durability
	if b.as.with {
		met = append(met, scripted.External(t, "honest", scripted.Script{}))
		slices.Reverse(met) // the honest one is a source first
	}
	stall, most := time.Minute, 4*time.Minute // of a whole run, on a busy machine
	if b.waits {
		stall, most = 3*time.Second, 100*3*time.Second // stalls that are waited for one after another
	}
	run := func(ctx context.Context, r *harness.Runner) error {
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		return b.as.run(ctx, r)
	}
	cut := time.Duration(0)
	if b.cut {
		cut = stall / 2
	}
	m := meet(t, notes, harness.Options{Stall: stall, CellTime: cut, Samples: 10, QueryRounds: 3, QueryConns: 1, Window: 5}, run, met...)
	m.blameless(t, "honest")
	all, in := strings.Fields(b.as.scenarios), m.competes(b.as)
	want := strings.Fields(b.out)
	if b.out == "all" {
		want = slices.Clone(all)
	}
	if out := slices.DeleteFunc(all, func(scenario string) bool { return in[scenario] }); !slices.Equal(out, want) {
		t.Errorf("out of %q, want %q", out, want)
	}
	for line := range strings.SplitSeq(b.told, ", ") {
		if line != "" && !m.tells(line) {
			t.Errorf("not told: %s", line)
		}
	}
	if t.Failed() {
		t.Log(m.trouble())
	}
}

// tells says whether a finding is there. One that failed blames the bad relay.
func (m *meeting) tells(line string) bool {
	return slices.ContainsFunc(m.Findings, func(f results.Finding) bool {
		return fmt.Sprintf("%s %s %s", f.Scenario, f.Code, f.Verdict) == line && (f.Verdict != results.Failed || f.Blames == "bad")
	})
}

// TestWhatMisbehavingRelaysComeTo has each relay of the table in a run of its own: in which
// scenarios it still competes, and by which findings it is named. The honest relay that it meets is
// blamed for nothing, neither a process nor a file is left behind, and the run comes to its end in
// a bounded time. Most of the time they wait, so that more are met at a time than there are
// processors.
func TestWhatMisbehavingRelaysComeTo(t *testing.T) {
	t.Parallel()
	table := misbehavings(t)
	if n := len(table); n < 60 {
		t.Errorf("%d relays", n)
	}
	slices.SortStableFunc(table, func(a, b misbehaving) int { // the longest first, so that none is alone at the end
		switch {
		case a.waits == b.waits:
			return 0
		case a.waits:
			return -1
		}
		return 1
	})
	var all sync.WaitGroup
	places := make(chan struct{}, 6)
	for _, b := range table {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			t.Run(b.name, b.isMet)
		})
	}
	all.Wait()
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

		{name: "loses one in twenty", as: alone, script: scripted.Script{LoseEvery: 20}, out: "all",
			told: "ingest.throughput acknowledged-kept failed, query.firehose.hot model failed"},
		{name: "answers one in twenty never", waits: true, as: alone, script: scripted.Script{SilentEvery: 20}, out: "ingest.throughput query.by-ids.hot query.firehose.hot storage",
			told: "ingest.throughput accepts failed, ingest.throughput completes failed"},
		{name: "refuses one in twenty", as: alone, script: scripted.Script{RefuseEvery: 20}, out: "ingest.throughput query.by-ids.hot query.firehose.hot storage",
			told: "ingest.throughput accepts failed, query.firehose.hot model failed"},
		{name: "acknowledges other ids", waits: true, as: alone, script: scripted.Script{WrongIDEvery: 20}, out: "ingest.throughput query.by-ids.hot query.firehose.hot storage",
			told: "ingest.throughput accepts failed, ingest.throughput completes failed"},
		{name: "hangs up", as: alone, script: scripted.Script{HangUpEvery: 30}, out: "ingest.throughput query.by-ids.hot query.firehose.hot storage",
			told: "ingest.throughput accepts failed, query.firehose.hot model failed"},
		{name: "dies", as: alone, script: scripted.Script{DieAt: 40, Persist: true}, out: "ingest.throughput query.by-ids.hot query.firehose.hot storage",
			told: "ingest.throughput accepts failed, ingest.throughput completes failed"},
		{name: "freezes for a second", as: alone, script: scripted.Script{FreezeAt: 40, Freeze: time.Second}},
		{name: "alters contents", as: alone, script: scripted.Script{Alter: content}, out: "all",
			told: "ingest.throughput unaltered failed"},
		{name: "adds a foreign event", as: alone, script: scripted.Script{Foreign: foreign}, out: "ingest.throughput query.by-ids.hot query.firehose.hot storage",
			told: "ingest.throughput only-asked failed, query.firehose.hot model failed"},
		{name: "answers elsewhere", waits: true, as: alone, script: scripted.Script{SubID: "zzz"}, out: "all",
			told: "ingest.visibility queryable failed, ingest.throughput only-asked failed"},
		{name: "leaves out one in twenty", as: alone, script: scripted.Script{LeaveOutEvery: 20}, out: "query.by-ids.hot query.firehose.hot",
			told: "query.firehose.hot model failed"},
		{name: "is capped at ten", as: alone, script: scripted.Script{Cap: 10},
			told: "query.firehose.hot uncapped stated"},
		{name: "answers oldest first", as: alone, script: scripted.Script{Faults: []string{"wrong-order"}}, out: "query.by-ids.hot query.firehose.hot",
			told: "query.firehose.hot model failed"},
		{name: "ends half-way", as: alone, script: scripted.Script{Faults: []string{"closed-midway"}}, out: "query.by-ids.hot query.firehose.hot",
			told: "query.firehose.hot eose failed"},
		{name: "loses all on stop", as: alone, script: scripted.Script{Persist: true, LoseOnStop: 1}, out: "all",
			told: "storage acknowledged-kept failed, storage remembers failed"},
		{name: "loses a twentieth on stop", as: alone, script: scripted.Script{Persist: true, LoseOnStop: 20}, out: "all",
			told: "storage acknowledged-kept failed, storage remembers failed"},
		{name: "forgets on start", as: alone, script: scripted.Script{Persist: true, ForgetOnStart: true}, out: "all",
			told: "storage acknowledged-kept failed, storage remembers failed"},

		{name: "forgets when it is killed", as: crashing, durability: relays.Batch, script: scripted.Script{Persist: true, ForgetOnStart: true}, out: "all",
			told: "crash acknowledged-kept failed"},
		{name: "forgets when it is killed, and says so", as: crashing, durability: relays.NotDurable, script: scripted.Script{Persist: true, ForgetOnStart: true},
			told: "crash acknowledged-kept stated"},

		{name: "imports a part", as: filled, script: scripted.Script{Import: &scripted.Command{LoseEvery: 10}}, out: "all",
			told: "import imported failed"},

		{name: "source that leaves out a twentieth", as: asSource, script: afterNotes(scripted.Script{LeaveOutEvery: 20}), out: "sync.req",
			told: "sync.req sends-held failed"},
		{name: "source that alters contents", as: asSource, script: afterNotes(scripted.Script{Alter: content}), out: "all",
			told: "sync.negentropy unaltered failed, sync.negentropy sends-held failed"},
		{name: "source that answers elsewhere", waits: true, as: asSource, script: afterNotes(scripted.Script{SubID: "zzz"}), out: "all",
			told: "sync.negentropy only-asked failed, sync.negentropy returns-named failed"},
		{name: "source that adds a foreign event", as: asSource, script: afterNotes(scripted.Script{Foreign: foreign}), out: "all",
			told: "sync.negentropy only-asked failed, sync.negentropy only-requested failed"},
		{name: "source that closes every REQ", waits: true, as: asSource, script: afterNotes(scripted.Script{CloseEvery: 1}), out: "all",
			told: "sync.negentropy complete failed"},
		{name: "source that ends half-way", as: asSource, script: afterNotes(scripted.Script{Faults: []string{"closed-midway"}}), out: "sync.req",
			told: "sync.req complete failed"},
		{name: "source that ignores REQs", waits: true, as: asSource, script: afterNotes(scripted.Script{IgnoreEvery: 1}), out: "all",
			told: "sync.negentropy complete failed"},
		{name: "source that names ids of nothing", as: asSource, script: afterNotes(scripted.Script{NegReply: named(7)}), out: "sync.negentropy",
			told: "sync.negentropy returns-named failed, sync.negentropy only-known failed"},
		{name: "source that breaks NIP-77", as: asSource, script: afterNotes(scripted.Script{NegReply: "zz"}), out: "sync.negentropy",
			told: "sync.negentropy nip77 failed, sync.negentropy completes failed"},
		{name: "source that is capped at ten", as: asSource, script: afterNotes(scripted.Script{Cap: 10})},
		{name: "source that ends before it answers", as: asSource, script: afterNotes(scripted.Script{Faults: []string{"eose-early"}}), out: "all",
			told: "sync.negentropy returns-named failed, sync.negentropy acknowledged-kept failed"},
		{name: "source that lost a twentieth", as: asSource, script: scripted.Script{LoseEvery: 20}, out: "all",
			told: "sync.negentropy acknowledged-kept failed, sync.negentropy sends-held failed"},

		{name: "sink that loses a twentieth", as: asSink, script: scripted.Script{LoseEvery: 20}, out: "all",
			told: "sync.req complete failed, sync.req holds-source failed"},
		{name: "sink that refuses a twentieth", as: asSink, script: scripted.Script{RefuseEvery: 20}, out: "all",
			told: "sync.negentropy complete failed, sync.negentropy holds-source failed"},
		{name: "sink that answers a twentieth never", waits: true, as: asSink, script: scripted.Script{SilentEvery: 20}, out: "all",
			told: "sync.negentropy complete failed, sync.negentropy holds-source failed"},
		{name: "sink that returns 70 of 100", as: asSink, script: afterNotes(scripted.Script{Faults: []string{"drop-results:0.3"}}), out: "all",
			told: "sync.negentropy returns-named failed, sync.negentropy complete failed"},
		{name: "sink that names ids of nothing", as: asSink, script: afterNotes(scripted.Script{NegReply: named(7)}), out: "sync.negentropy",
			told: "sync.negentropy returns-named failed, sync.negentropy only-known failed"},
		{name: "sink that breaks NIP-77", as: asSink, script: afterNotes(scripted.Script{NegReply: "zz"}), out: "sync.negentropy",
			told: "sync.negentropy nip77 failed, sync.negentropy completes failed"},
		{name: "sink that dies", as: asSink, script: scripted.Script{DieAt: 40}, out: "all",
			told: "sync.negentropy completes failed, sync.native serves-source failed"},
		{name: "sink that freezes", waits: true, as: asSink, script: scripted.Script{FreezeAt: 40, Freeze: time.Hour}, out: "all",
			told: "sync.negentropy completes failed, sync.native serves-source failed"},
		{name: "sink that alters contents", as: asSink, script: afterNotes(scripted.Script{Alter: content}), out: "all",
			told: "sync.negentropy unaltered failed"},
		{name: "sink whose command fails", as: ownSync, script: scripted.Script{SyncWith: &scripted.Command{Exit: 3}},
			told: "sync.native sync-command stated"},
		{name: "sink whose command loses a tenth", as: ownSync, script: scripted.Script{SyncWith: &scripted.Command{LoseEvery: 10}}, out: "sync.native",
			told: "sync.native complete failed, sync.native holds-source failed"},

		{name: "server that leaves out a twentieth", as: server, script: afterNotes(scripted.Script{LeaveOutEvery: 20}), out: "fetch.giant fetch.paged fetch.sharded-giant fetch.sharded-paged",
			told: "fetch.giant complete failed"},
		{name: "server that alters contents", as: server, script: afterNotes(scripted.Script{Alter: content}), out: "all",
			told: "fetch.paged unaltered failed, fetch.paged complete failed"},
		{name: "server that answers elsewhere", as: server, script: afterNotes(scripted.Script{SubID: "zzz"}), out: "all",
			told: "fetch.paged only-asked failed, fetch.paged acknowledged-kept failed"},
		{name: "server that adds a foreign event", as: server, script: afterNotes(scripted.Script{Foreign: foreign}), out: "all",
			told: "fetch.paged only-asked failed, fetch.paged only-requested failed"},
		{name: "server that ignores REQs", waits: true, as: paged, script: afterNotes(scripted.Script{IgnoreEvery: 1}), out: "all",
			told: "fetch.paged complete failed"},
		{name: "server that ignores REQs for many, cut before it is given up", waits: true, cut: true, as: paged, script: afterNotes(scripted.Script{OnlyReqs: `0}`, IgnoreEvery: 1}), out: "all",
			told: "fetch.paged complete failed, fetch.giant complete failed"},
		{name: "server that names ids of nothing", as: server, script: afterNotes(scripted.Script{NegReply: named(7)}), out: "fetch.negentropy",
			told: "fetch.negentropy complete failed, fetch.negentropy returns-named failed"},
		{name: "server that breaks NIP-77", as: server, script: afterNotes(scripted.Script{NegReply: "zz"}), out: "fetch.negentropy",
			told: "fetch.negentropy complete failed"},
		{name: "server that is capped at ten", as: server, script: afterNotes(scripted.Script{Cap: 10}), out: "fetch.giant fetch.sharded-giant",
			told: "fetch.giant complete stated"},

		{name: "pair: loses a twentieth", as: inPair, script: scripted.Script{LoseEvery: 20}, out: "all",
			told: "negentropy holds-seeded failed, negentropy acknowledged-kept failed"},
		{name: "pair: refuses a tenth of what is carried", as: inPair, script: scripted.Script{Honest: 48, RefuseEvery: 10}, out: "negentropy.after-write negentropy.heartbeat negentropy.identical",
			told: "negentropy.identical holds-union failed"},
		{name: "pair: breaks NIP-77", as: inPair, script: scripted.Script{Honest: 48, NegReply: "zz"}, out: "all",
			told: "negentropy nip77 failed, negentropy completes failed"},
		{name: "pair: names ids of nothing", as: inPair, script: scripted.Script{Honest: 48, NegReply: named(7)}, out: "all",
			told: "negentropy.initial difference failed, negentropy.initial only-known failed"},
		{name: "pair: calls all sets identical", as: inPair, script: scripted.Script{Honest: 48, NegReply: "61"},
			out:  "negentropy.after-write negentropy.heartbeat negentropy.identical negentropy.initial",
			told: "negentropy.initial difference failed, negentropy.identical names-left failed, negentropy.heartbeat names-left failed, negentropy.after-write at-once failed"},
		{name: "pair: calls all sets but the first identical", as: inPair, script: scripted.Script{Honest: 48, NegFirst: 1, NegReply: "61"},
			out:  "negentropy.after-write negentropy.heartbeat negentropy.identical",
			told: "negentropy.identical names-left failed, negentropy.heartbeat names-left failed, negentropy.after-write at-once failed"},
		{name: "pair: calls all sets identical, also of the probe", as: inPair, script: scripted.Script{NegReply: "61"}, out: "all",
			told: "negentropy.probe nip77 failed"},
		{name: "pair: refuses to reconcile", as: inPair, script: scripted.Script{Honest: 48, NegError: "error: no"}, out: "all",
			told: "negentropy completes failed"},
		{name: "pair: answers elsewhere", as: inPair, script: scripted.Script{Honest: 48, SubID: "zzz"}, out: "all",
			told: "negentropy only-asked failed, negentropy holds-seeded failed"},
		{name: "pair: alters contents", as: inPair, script: scripted.Script{Honest: 48, Alter: content}, out: "all",
			told: "negentropy.transfer unaltered failed"},
		{name: "pair: leaves out a tenth", as: inPair, script: scripted.Script{Honest: 48, LeaveOutEvery: 10}, out: "negentropy.transfer",
			told: "negentropy.transfer carried failed"},

		{name: "loses the order on stop", as: alone, script: scripted.Script{ReverseOnStop: true}, out: "all",
			told: "storage remembers failed"},
		{name: "starts once", as: alone, script: scripted.Script{StartOnce: true}, out: "all",
			told: "storage remembers failed, storage completes failed"},
		{name: "sends each tenth twice", as: alone, script: scripted.Script{RepeatEvery: 10}, out: "query.by-ids.hot query.firehose.hot",
			told: "query.firehose.hot model failed"},
		{name: "invents events without end", waits: true, as: alone, script: afterNotes(scripted.Script{InventEvery: time.Millisecond}), out: "ingest.throughput",
			told: "ingest.throughput completes failed"},
		{name: "hangs up in each answer", waits: true, as: alone, script: afterNotes(scripted.Script{HangUpAfter: 10}), out: "query.firehose.hot",
			told: "query.firehose.hot completes failed"},
		{name: "returns events at the second asking", as: alone, script: afterNotes(scripted.Script{HideTimes: 1}),
			told: "ingest.throughput acknowledged-kept stated"},
		{name: "imports and talks", waits: true, as: filled, script: scripted.Script{Import: &scripted.Command{TalkEvery: 200 * time.Millisecond}}, out: "all",
			told: "import completes failed"},
		{name: "source that sends a giant frame", waits: true, as: asSource, script: afterNotes(scripted.Script{Giant: 64 << 20}), out: "all",
			told: "sync.negentropy complete failed, sync.negentropy connections stated"},
		{name: "source that pings without end", waits: true, as: asSource, script: afterNotes(scripted.Script{Pings: true}), out: "all",
			told: "sync.negentropy complete failed"},
		{name: "source that notices without end", waits: true, as: asSource, script: afterNotes(scripted.Script{NoticesEvery: 20 * time.Millisecond}), out: "all",
			told: "sync.negentropy complete failed"},
		{name: "source that invents without end", waits: true, as: asSource, script: afterNotes(scripted.Script{InventEvery: time.Millisecond}), out: "all",
			told: "sync.negentropy only-requested failed, sync.negentropy complete failed"},
		{name: "source that hangs up in each answer", waits: true, as: asSource, script: afterNotes(scripted.Script{HangUpAfter: 10}), out: "all",
			told: "sync.req complete failed, sync.negentropy connections failed"},
		{name: "source that sends each tenth twice", as: asSource, script: afterNotes(scripted.Script{RepeatEvery: 10}), out: "all",
			told: "sync.negentropy only-requested failed"},
		{name: "source that creeps", waits: true, as: asSource, script: afterNotes(scripted.Script{EventEvery: 300 * time.Millisecond}), out: "all",
			told: "sync.negentropy complete failed"},
		{name: "server that sends a giant frame", waits: true, as: paged, script: afterNotes(scripted.Script{Giant: 64 << 20}), out: "all",
			told: "fetch.paged complete failed, fetch.paged connections stated"},
		{name: "server that notices without end", waits: true, as: paged, script: afterNotes(scripted.Script{NoticesEvery: 20 * time.Millisecond}), out: "all",
			told: "fetch.paged complete failed"},
		{name: "server that invents without end", waits: true, as: paged, script: afterNotes(scripted.Script{InventEvery: time.Millisecond}), out: "all",
			told: "fetch.paged complete failed, fetch.paged only-requested failed"},
		{name: "server that hangs up in each answer", waits: true, as: paged, script: afterNotes(scripted.Script{HangUpAfter: 10}), out: "all",
			told: "fetch.giant complete failed, fetch.paged connections failed"},
		{name: "server that sends each tenth twice", as: server, script: afterNotes(scripted.Script{RepeatEvery: 10}), out: "all",
			told: "fetch.paged only-requested failed"},
		{name: "server that hangs up and sends each seventh twice", as: paged, script: afterNotes(scripted.Script{RepeatEvery: 7, HangUpAfter: 10}), out: "all",
			told: "fetch.paged only-requested failed, fetch.paged connections failed"},
		{name: "source that stores late", as: asSource, script: scripted.Script{StoreAfter: 50 * time.Millisecond}},
		{name: "sink that stores late", as: asSink, script: scripted.Script{StoreAfter: 50 * time.Millisecond}},
		{name: "pair: stores late", as: inPair, script: scripted.Script{StoreAfter: 10 * time.Millisecond}, out: "negentropy.after-write", told: "negentropy.after-write at-once failed"},
		{name: "stores late", as: alone, script: scripted.Script{StoreAfter: 10 * time.Millisecond}},
	}
}
