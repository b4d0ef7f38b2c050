package scenarios

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/client"
	"relaybench/relays/scripted"
	"relaybench/relays/wire"
	"relaybench/results"
)

// pagesOnly is what the REQs of pages by time begin with that name no ids.
const pagesOnly = `{"limit"`

// soon is a budget in which a busy machine finds out what a relay holds, and that is over long
// before a relay that creeps has come to its end.
func soon() *load.Budget { return &load.Budget{Least: 15 * time.Second} }

// creep is between one event of a relay that creeps and the next, and far less than never is what
// tests take for silence.
const creep, never = 30 * time.Second, 10 * time.Minute

// soleSync ends a run after the one sync that a test is about.
type soleSync struct {
	harness.Scenario
	modes map[string]traffic
	end   context.CancelFunc
}

func (o soleSync) Run(ctx context.Context, t *harness.Trial) error {
	err := o.Scenario.Run(ctx, t)
	if len(o.modes) > 0 {
		o.end()
	}
	return err
}

// TestASyncWithoutEndIsEnded, and whoever kept it going is blamed where that is known; the other
// relay is not.
func TestASyncWithoutEndIsEnded(t *testing.T) {
	t.Parallel()
	const n = 40
	for _, test := range []struct {
		name, mode   string
		source, sink scripted.Script
		options      harness.Options
		cause        string // of CodeComplete
		blames       string // "" for undecided
		counts       []any
	}{
		{"a source that invents events", ModeReq, scripted.Script{Honest: n, OnlyReqs: pagesOnly, InventEvery: time.Nanosecond}, scripted.Script{}, harness.Options{},
			results.WhyFlood, "source", []any{"sent", 61, "asked", 30, "expected", n, "missing", n}},
		{"a source that creeps", ModeReq, scripted.Script{Honest: n, OnlyReqs: pagesOnly, EventEvery: creep}, scripted.Script{}, harness.Options{},
			results.WhyTime, "source", []any{"expected", n}},
		{"a sink that creeps", ModeReq, scripted.Script{}, scripted.Script{OKAfter: creep}, harness.Options{Window: 4},
			results.WhyTime, "sink", []any{"expected", n}},
		{"a command that does not come to its end", ModeNative, scripted.Script{}, scripted.Script{SyncWith: &scripted.Command{Takes: time.Hour}}, harness.Options{},
			results.WhyTime, "", []any{"expected", n}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			source, sink := scripted.External(t, "source", test.source), scripted.External(t, "sink", test.sink)
			test.options.Stall = never
			b := &betweenModes{Sync: &Sync{Which: []string{test.mode}, Page: 30}, source: source.Counts, sink: sink.Counts, modes: map[string]traffic{},
				only: func(from, to string) bool { return from == "source" && to == "sink" }}
			m := meet(t, scripted.Notes(t, n), test.options, func(ctx context.Context, r *harness.Runner) error {
				r.Budget = soon()
				ctx, end := context.WithCancel(ctx)
				if err := aloneIn(soleSync{b.Scenarios()[0], b.modes, end})(ctx, r); !errors.Is(err, context.Canceled) {
					return fmt.Errorf("it went on after the sync: %w", err)
				}
				return nil
			}, source, sink)
			key := "sync." + test.mode
			verdict := results.Failed
			if test.blames == "" {
				verdict = results.Undecided
			}
			m.judged(t, "sink", key, results.CodeComplete, verdict, test.cause, test.blames, test.counts...)
			for _, name := range []string{"source", "sink"} {
				if name != test.blames {
					m.blameless(t, name)
				}
			}
			if s := m.figure(t, "sink", key, "records/s").Is(results.StatusIncomplete); s == nil || s.Cause != results.CauseEnded || s.Because != test.cause {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestWhoeverIsWaitedForIsLate, and nobody where that is not known.
func TestWhoeverIsWaitedForIsLate(t *testing.T) {
	t.Parallel()
	source, sink := &harness.Trial{}, &harness.Trial{}
	over := &load.TimeError{After: time.Second}
	moved := func(waited time.Duration) synced {
		c := newCarried()
		c.from[0].Waited = waited
		return synced{carried: c}
	}
	for _, test := range []struct {
		name      string
		done      synced
		direction relays.Direction
		why       error
		want      *harness.Trial
		by        string
	}{
		{"nothing waited", moved(0), relays.Down, over, source, results.EndedBySource},
		{"all waited for the sink", moved(time.Hour), relays.Down, over, sink, results.EndedBySink},
		{"all had come", synced{carried: newCarried(), asked: true}, relays.Down, over, sink, results.EndedBySink},
		{"events lay there", synced{carried: newCarried(), waiting: 5}, relays.Down, over, nil, results.EndedByUnknown},
		{"both ways", moved(0), relays.Both, over, nil, results.EndedByUnknown},
		{"the sink's own command", synced{}, relays.Down, over, nil, results.EndedByUnknown},
		{"reconciling with the sink", synced{carried: newCarried(), reconciling: sink}, relays.Down, over, sink, results.EndedBySink},
		{"reconciling with the source, both ways", synced{carried: newCarried(), reconciling: source}, relays.Both, over, source, results.EndedBySource},
		{"cut", moved(0), relays.Down, &load.CutError{Limit: "--cell-time 1s"}, nil, ""},
	} {
		r := &syncing{syncMode: syncMode{Sync: &Sync{Direction: test.direction}}, Source: source, Sink: sink, done: test.done, began: wire.Now() - time.Minute}
		r.overdue(test.why)
		if a := r.done.account; r.done.stoppedBy != test.want || (a.Cut != "") != (test.name == "cut") || r.done.ended.Code != test.by || a.Wall < time.Minute {
			t.Errorf("%s: %v by %q, %+v", test.name, r.done.stoppedBy, r.done.ended.Code, a)
		}
	}
}

// TestASyncThatIsCutBlamesNobody: the limit is that of whoever measures.
func TestASyncThatIsCutBlamesNobody(t *testing.T) {
	t.Parallel()
	source := scripted.Script{Honest: 40, OnlyReqs: pagesOnly, EventEvery: creep}
	m, _ := fill(t, &Sync{Which: []string{ModeReq}, Page: 30}, scripted.Notes(t, 40), harness.Options{CellTime: 3 * time.Second}, scripted.External(t, "source", source),
		scripted.External(t, "sink", scripted.Script{}))
	m.blameless(t, "source")
	m.blameless(t, "sink")
	if s := m.figure(t, "sink", "sync.req", "records/s").Is(results.StatusIncomplete); s == nil || s.Cause != results.CauseCut || s.Texts["limit"] != "--cell-time 3s" {
		t.Errorf("%+v", s)
	}
	m.judged(t, "sink", "sync.req", results.CodeHoldsSource, results.Stated, results.MissingNeverDelivered, "")
}

// TestACommandThatOnlyTalksIsEnded, and its relay is blamed where no other could be at fault.
func TestACommandThatOnlyTalksIsEnded(t *testing.T) {
	t.Parallel()
	talks := &scripted.Command{TalkEvery: 100 * time.Millisecond}
	t.Run("sync", func(t *testing.T) {
		t.Parallel()
		m, _ := fill(t, &Sync{Which: []string{ModeNative}}, scripted.Notes(t, 20), harness.Options{Stall: 3 * time.Second}, scripted.External(t, "source", scripted.Script{}),
			scripted.External(t, "sink", scripted.Script{SyncWith: talks}))
		m.blameless(t, "source")
		m.judged(t, "sink", "sync.native", results.CodeSyncCommand, results.Undecided, results.EndedByUnknown, "")
	})
	t.Run("import", func(t *testing.T) {
		t.Parallel()
		p := prove(t, scripted.Script{Import: talks}, proving{corpus: syntheticCorpus(t, 100), scenarios: []harness.Scenario{Import{}}, options: harness.Options{Stall: 3 * time.Second}})
		p.verdicts(t, "import", map[string]results.Verdict{results.CodeCompletes: results.Failed})
	})
}

// TestAnImportWithoutEndIsEnded, and what is there by then is counted; the relay is at fault unless
// whoever measures has set the limit.
func TestAnImportWithoutEndIsEnded(t *testing.T) {
	t.Parallel()
	stays := scripted.Script{Import: &scripted.Command{Takes: time.Hour, LoseEvery: 20}}
	for cause, what := range map[string]proving{
		results.CauseEnded: {budget: soon(), options: harness.Options{Stall: never}},
		results.CauseCut:   {options: harness.Options{CellTime: 3 * time.Second}},
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			what.corpus, what.scenarios = syntheticCorpus(t, 100), []harness.Scenario{Import{}}
			p := prove(t, stays, what)
			if s := p.one(t, "import", "stored").Is(results.StatusIncomplete); s == nil || s.Cause != cause {
				t.Errorf("%+v", s)
			}
			imported := p.finding(t, "import", results.CodeImported)
			if imported.Verdict != results.Stated || imported.Blames != "" {
				t.Errorf("%+v", imported)
			}
			held := p.value(t, "import", "held afterwards")
			for _, f := range p.Findings {
				if f.Verdict == results.Failed && (cause == results.CauseCut || f.Code != results.CodeComplete || f.Cause != results.WhyTime || f.Blames != "scripted" || f.Counts["delivered"] != held) {
					t.Errorf("%+v", f)
				}
			}
			if cause == results.CauseEnded && p.finding(t, "import", results.CodeComplete).Verdict != results.Failed {
				t.Error("nobody is at fault")
			}
		})
	}
}

// TestADownloadWithoutEndIsEnded, and the relay is at fault.
func TestADownloadWithoutEndIsEnded(t *testing.T) {
	t.Parallel()
	// Whoever wants to know whether the relay is ready gets its answer.
	asked := func(limit int) string { return fmt.Sprintf(`"limit":%d}`, limit) }
	creeps := func(limit int) scripted.Script { return scripted.Script{OnlyReqs: asked(limit), EventEvery: creep} }
	invents := func(limit int) scripted.Script {
		return scripted.Script{OnlyReqs: asked(limit), InventEvery: time.Nanosecond}
	}
	paged, giant := fetchCell{strategy: fetchPaged, conns: 1, inFlight: 1}, fetchCell{strategy: fetchGiant, conns: 1, inFlight: 1}
	sharded := fetchCell{strategy: fetchShardedPaged, conns: 2, inFlight: 1}
	byID := fetchCell{strategy: fetchByID, conns: 1, inFlight: 1, batch: 20}
	for _, test := range []struct {
		name   string
		script scripted.Script
		cell   fetchCell
		cause  string
		counts []any
	}{
		{"giant, invents", invents(40), giant, results.WhyFlood, []any{"sent", 81, "asked", 40, "missing", 40}},
		{"paged, invents", invents(10), paged, results.WhyFlood, []any{"sent", 21, "asked", 10, "missing", 40}},
		{"sharded, invents", invents(10), sharded, results.WhyFlood, []any{"sent", 21, "asked", 10, "missing", 40}},
		{"by id, invents", invents(20), byID, results.WhyFlood, []any{"sent", 41, "asked", 20, "missing", 40}},
		{"giant, creeps", creeps(40), giant, results.WhyTime, []any{"expected", 40}},
		{"paged, creeps", creeps(10), paged, results.WhyTime, []any{"expected", 40}},
		{"by id, creeps", creeps(20), byID, results.WhyTime, []any{"expected", 40}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, cells, _ := fetched(t, scripted.Notes(t, 40), test.script, FetchOptions{Page: 10, Shards: 2, budget: soon()}, test.cell)
			m.judged(t, "one", "trial", results.CodeComplete, results.Failed, test.cause, "one", test.counts...)
			if r := cells[0]; r.Missing == 0 || r.Expected != 40 || test.cause == results.WhyTime && r.Wall < soon().Least*9/10 { // it began a little before
				t.Errorf("%d of %d are missing after %v", r.Missing, r.Expected, r.Wall)
			}
			if s := m.figure(t, "one", "trial", "records/s").Is(results.StatusIncomplete); s == nil || s.Cause != results.CauseEnded || s.Because != test.cause {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestADownloadExpectsMoreThanARelayNames in a reconciliation: what it was given, or ever sent.
func TestADownloadExpectsMoreThanARelayNames(t *testing.T) {
	t.Parallel()
	byNames := fetchCell{strategy: fetchByName, conns: 2, inFlight: 2, batch: 20}
	notes := scripted.Notes(t, 40)
	invents := scripted.Script{NegReply: named(50)}
	m, _, _ := fetched(t, notes, invents, FetchOptions{}, byNames)
	m.judged(t, "one", "trial", results.CodeComplete, results.Failed, results.WhyUnnamed, "one", "missing", 40, "expected", 40, "unnamed", 40, "delivered", 0)
	m.judged(t, "one", "trial", results.CodeReturnsNamed, results.Failed, "", "one", "missing", 50, "of", 50)
	m.judged(t, "one", "trial", results.CodeOnlyKnown, results.Failed, "", "one", "ids", 50)

	m, _, _ = fetched(t, notes, scripted.Script{LeaveOutEvery: 1}, FetchOptions{}, byNames)
	m.judged(t, "one", "trial", results.CodeComplete, results.Failed, results.CauseMissing, "one", "missing", 40, "expected", 40)
	m.judged(t, "one", "trial", results.CodeReturnsNamed, results.Failed, "", "one", "missing", 40, "of", 40)

	invents.Honest = 40
	relay := scripted.Serve(t, invents)
	publishAll(t, notes, relay.URL)
	o := FetchOptions{stall: time.Minute, Page: 10}
	target := &fetchTarget{url: relay.URL, expected: expectAnything(time.Now().Unix())}
	giant := fetchCell{strategy: fetchGiant, form: parsed, conns: 1, inFlight: 1}
	if r := giant.run(t.Context(), target, &o); r.Delivered != 40 || r.Expected != -1 || r.Completeness() != load.Unresolved {
		t.Fatalf("%+v", r.Account)
	}
	if r := byNames.run(t.Context(), target, &o); r.Delivered != 0 || r.Expected != 90 || r.Missing != 90 || r.unreturned != 50 || r.Completeness() != load.Failed {
		t.Errorf("%+v, %d did not come", r.Account, r.unreturned)
	}
}

// TestATransferTakesNoMoreThanThereIs, however the answers are divided.
func TestATransferTakesNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 10)
	p := load.Publisher{URL: scripted.Serve(t, scripted.Script{}).URL, Corpus: notes, Conns: 1, Window: 10, Stall: time.Minute, Ledger: load.NewLedger(10)}
	asked := 0
	done, err := p.Transfer(t.Context(), 10, func(ctx context.Context, take client.Take) error {
		for ; ; asked++ {
			if _, err := take(ctx, &client.Event{ID: corpus.ID{0: byte(asked), 1: byte(asked >> 8), 31: 1}}, false); err != nil {
				return err
			}
		}
	})
	if source := (*load.SourceError)(nil); !errors.As(err, &source) {
		t.Fatal(err)
	}
	a := load.Account{Err: err}
	f, _ := a.Finding()
	if f.Cause != results.WhyFlood || f.Counts["asked"] != 10 || f.Counts["sent"] != float64(asked+1) || done.Unexpected != asked || asked > 1000 {
		t.Errorf("%+v after %d", f, asked)
	}
}
