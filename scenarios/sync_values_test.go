package scenarios

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// between is a Sync that looks at what the relays did in each mode.
type betweenModes struct {
	*Sync
	only         func(source, sink string) bool // nil: all
	source, sink *scripted.Counts
	modes        map[string]traffic
}

// traffic is what a source and a sink did in one mode.
type traffic struct {
	reqs, eoses, sent, out, negAnswers         int64 // of the source; out in bytes of messages
	sinkEvents, sinkNegAnswers, sinkNegOut, in int64
}

func (b *betweenModes) look() traffic {
	return traffic{b.source.Reqs.N(), b.source.EOSEs.N(), b.source.Sent.N(), b.source.BytesOut.Load(), b.source.NegAnswers.N(),
		b.sink.Events.N(), b.sink.NegAnswers.N(), b.sink.BytesOut.Load(), b.sink.BytesIn.Load()}
}

// lookedAt is one of its modes.
type lookedAt struct {
	syncMode
	*betweenModes
}

func (b *betweenModes) Scenarios() (all []harness.Scenario) {
	for _, s := range b.Sync.Scenarios() {
		all = append(all, lookedAt{s.(syncMode), b})
	}
	return all
}

func (b lookedAt) Run(ctx context.Context, t *harness.Trial) error {
	if b.only != nil && !b.only(t.Peer.Relay.Name(), t.Relay.Name()) {
		return nil
	}
	was := b.look()
	err := b.syncMode.Run(ctx, t)
	now := b.look()
	b.modes[b.mode] = traffic{now.reqs - was.reqs, now.eoses - was.eoses, now.sent - was.sent, now.out - was.out, now.negAnswers - was.negAnswers,
		now.sinkEvents - was.sinkEvents, now.sinkNegAnswers - was.sinkNegAnswers, now.sinkNegOut - was.sinkNegOut, now.in - was.in}
	return err
}

// fill has one relay fill another in these modes.
func fill(t *testing.T, y *Sync, c *corpus.Corpus, o harness.Options, source, sink *scripted.Relay) (*meeting, map[string]traffic) {
	t.Helper()
	b := &betweenModes{Sync: y, source: source.Counts, sink: sink.Counts, modes: map[string]traffic{},
		only: func(from, to string) bool { return from == source.Definition.Name && to == sink.Definition.Name }}
	m := meet(t, c, o, aloneIn(b.Scenarios()...), source, sink)
	return m, b.modes
}

// accountUnits are the figures of any sync of two relays that were launched.
var accountUnits = map[string]string{"records/s": "events/s higher", "wall time": "s none", "delivered": "events none", "expected": "events none", "missing": "events none",
	"current state": "events none", "superseded": "events none", "deleted": "events none", "expired or vanished": "events none", "authors": "authors none",
	"late": "events none", "late by": "ms none", "tool peak rss": "MiB none", "tool cpu": "s none", "source peak rss": "MiB none", "source cpu": "s none", "sink peak rss": "MiB none", "sink cpu": "s none"}

// agentUnits are those of a sync that relaybench carried.
var agentUnits = joined(accountUnits, map[string]string{"response bytes": "MiB none", "requests": "requests none", "requests answered": "requests none",
	"requests closed": "requests none", "requests unfinished": "requests none", "transfer events/s": "events/s none", "waiting for the sink": "% none",
	"not sent by the source": "events none", "never answered by the sink": "events none", "of no corpus event": "events none", "unasked": "events none",
	"duplicates": "events none", "retried": "ids none", "connections lost": "connections none", "REQ to EOSE": "ms none", "EVENT to OK": "ms none",
	"tool's share of the sink's cpu": "% none"})

func joined(all ...map[string]string) map[string]string {
	sum := map[string]string{}
	for _, m := range all {
		for k, v := range m {
			sum[k] = v
		}
	}
	return sum
}

// account holds what any sync records of notes that all came.
func (m *meeting) account(t *testing.T, key string, n int) {
	t.Helper()
	wall := m.value(t, "sink", key, "wall time")
	for metric, want := range map[string]float64{"delivered": float64(n), "expected": float64(n), "missing": 0, "current state": float64(n), "superseded": 0, "deleted": 0,
		"expired or vanished": 0, "authors": 1} {
		equals(t, key+": "+metric, m.value(t, "sink", key, metric), want)
	}
	rate := m.figure(t, "sink", key, "records/s")
	equals(t, key+": records/s × wall time", rate.Trials[0]*wall, float64(n))
	if rate.Samples != int64(n) || rate.Peer != "source" || len(rate.Status) > 0 {
		t.Errorf("%s: %+v", key, rate)
	}
	within(t, key+": wall time", 0, wall, m.took.Seconds())
	m.judged(t, "sink", key, results.CodeComplete, results.Passed, "", "", "delivered", n, "expected", n, "missing", 0)
	m.judged(t, "sink", key, results.CodeHoldsSource, results.Passed, "", "", "held", n, "must", n)
}

// TestASyncsFiguresAreThoseOfTheScript fills a relay with 600 notes, by reconciliation and in pages
// of 100.
func TestASyncsFiguresAreThoseOfTheScript(t *testing.T) {
	t.Parallel()
	const (
		n, page, window                = 600, 100, 20
		okHeld, eoseHeld, held         = 15 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond
		sourceCPU, sinkCPU             = 10 * time.Millisecond, 500 * time.Microsecond
		sourceMemory, sinkMemory int64 = 96 << 20, 160 << 20
	)
	notes := scripted.Notes(t, n)
	var eventBytes int64 // of EVENT messages that bring them all
	for i := range n {
		eventBytes += int64(notes.Entry(i).Length) + int64(len(`["EVENT","p1",]`))
	}
	source := scripted.External(t, "source", scripted.Script{EOSEAfter: eoseHeld, NegAfter: held, Honest: n, CPUPerMessage: 0, Memory: sourceMemory})
	sink := scripted.External(t, "sink", scripted.Script{OKAfter: okHeld, NegAfter: held, CPUPerMessage: sinkCPU, Memory: sinkMemory})
	m, did := fill(t, &Sync{Which: []string{ModeNegentropy, ModeReq}, Page: page}, notes, harness.Options{Window: window}, source, sink)
	m.blameless(t, "source")
	m.blameless(t, "sink")
	took := m.took
	for _, mode := range []string{ModeNegentropy, ModeReq} {
		key := "sync." + mode
		was := did[mode]
		m.account(t, key, n)
		units := joined(agentUnits, map[string]string{"pages": "pages none"})
		if mode == ModeNegentropy {
			units = joined(agentUnits, map[string]string{"reconcile time": "ms none", "reconcile rounds": "rounds none", "reconcile bytes": "MiB none", "check time": "ms none",
				"transfers": "transfers none", "stragglers": "events none", "ids of no corpus event": "ids none"})
		}
		m.units(t, "sink", key, units)
		if mode == ModeNegentropy { // before the first mode it was asked for all by id
			was.reqs, was.eoses, was.sent = was.reqs-n/100, was.eoses-n/100, was.sent-n
		}
		value := func(metric string) float64 { t.Helper(); return m.value(t, "sink", key, metric) }
		for _, metric := range []string{"late", "late by", "unasked", "duplicates", "retried"} {
			equals(t, key+": "+metric, value(metric), 0)
		}
		bytes := value("response bytes") * (1 << 20)
		equals(t, key+": requests", value("requests"), float64(was.reqs))
		equals(t, key+": answered", value("requests answered"), float64(was.eoses))
		equals(t, key+": closed", value("requests closed"), 0)
		equals(t, key+": unfinished", value("requests unfinished"), 0)
		latencies(t, key+": REQ to EOSE", m.figure(t, "sink", key, "REQ to EOSE"), was.eoses, eoseHeld, took)
		latencies(t, key+": EVENT to OK", m.figure(t, "sink", key, "EVENT to OK"), was.sinkEvents, okHeld, took)
		equals(t, key+": events at the sink", float64(was.sinkEvents), n)

		// Each window of 20 events waits for its OKs.
		wall := value("wall time")
		within(t, key+": wall time", (n / window * okHeld).Seconds(), wall, took.Seconds())
		rate := value("transfer events/s")
		within(t, key+": seconds of the transfers", (n / window * okHeld).Seconds(), n/rate, took.Seconds())
		within(t, key+": waiting for the sink", 0, value("waiting for the sink"), 100)
		equals(t, key+": not sent", value("not sent by the source"), 0)
		equals(t, key+": never answered", value("never answered by the sink"), 0)
		equals(t, key+": of no corpus event", value("of no corpus event"), 0)
		sum := 0.0
		timeline := m.figure(t, "sink", key, "records/s").Timeline
		for _, second := range timeline {
			sum += second
		}
		equals(t, key+": sum of the timeline", sum, n)
		within(t, key+": seconds of the timeline", wall-1, float64(len(timeline)), wall+1)

		within(t, key+": cpu of the sink", (n*sinkCPU - 20*time.Millisecond).Seconds(), value("sink cpu"), took.Seconds()*float64(8))
		equals(t, key+": the tool's share", value("tool's share of the sink's cpu"), 100*value("tool cpu")/value("sink cpu"))
		within(t, key+": memory of the source", float64(sourceMemory>>20), value("source peak rss"), 4096)
		within(t, key+": memory of the sink", float64(sinkMemory>>20), value("sink peak rss"), 4096)
		if peak := value("sink peak rss"); peak == value("tool peak rss") || value("source peak rss") >= peak {
			t.Errorf("%s: memory of the sink is %v MiB, of the source %v, of the tool %v", key, peak, value("source peak rss"), value("tool peak rss"))
		}

		if mode == ModeReq {
			// What it sent are the messages, and a header of 2 to 4 bytes for each.
			messages := float64(was.sent + was.eoses)
			within(t, key+": response bytes", float64(was.out)+2*messages, bytes, float64(was.out)+4*messages)
			// The first page has 100, each further one begins with the last of the page before; an
			// answer without events is asked for twice.
			equals(t, key+": pages", value("pages"), float64(was.reqs)-1)
			within(t, key+": pages", n/page+1, value("pages"), n/page+3)
			continue
		}
		rounds := value("reconcile rounds")
		within(t, key+": bytes", float64(eventBytes), bytes, float64(was.out+was.sinkNegOut)+4*float64(was.sent+was.eoses)+100)
		equals(t, key+": requests", value("requests"), n/syncBatch)
		within(t, key+": reconcile time", rounds*ms(held), value("reconcile time"), ms(took))
		within(t, key+": check time", ms(held), value("check time"), ms(took))
		nothing := play(t, setIn(t, notes, nil), setIn(t, notes, places(0, n)))
		equals(t, key+": reconcile rounds", rounds, float64(nothing.rounds))
		equals(t, key+": reconcile bytes", value("reconcile bytes")*(1<<20), float64(nothing.up+nothing.down))
		equals(t, key+": transfers", value("transfers"), 1)
		equals(t, key+": stragglers", value("stragglers"), 0)
		equals(t, key+": ids of no corpus event", value("ids of no corpus event"), 0)
	}
	m.judged(t, "source", "sync.req", results.CodeSendsHeld, results.Passed, "", "", "withheld", 0)
}

// TestTheSinksOwnCommandIsMeasured by its own clock, and believed in nothing.
func TestTheSinksOwnCommandIsMeasured(t *testing.T) {
	t.Parallel()
	const takes = 900 * time.Millisecond
	for _, test := range []struct {
		name    string
		command scripted.Command
		missing int
	}{{"all", scripted.Command{Takes: takes}, 0}, {"with a loss", scripted.Command{Takes: takes, LoseEvery: 20}, 10},
		{"that says that it failed", scripted.Command{Takes: takes, Exit: 3}, 0}, {"failing", scripted.Command{Takes: takes, Exit: 3, LoseEvery: 20}, 10}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			const n = 200
			notes := scripted.Notes(t, n)
			sink := scripted.External(t, "sink", scripted.Script{SyncWith: &test.command})
			sink.Definition.SyncRule.Directions = []relays.Direction{relays.Down}
			m, _ := fill(t, &Sync{Which: []string{ModeNative}}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{}), sink)
			const key = "sync.native"
			m.blameless(t, "source")
			wall, rate := m.value(t, "sink", key, "wall time"), m.figure(t, "sink", key, "records/s")
			within(t, "wall time", takes.Seconds(), wall, m.took.Seconds())
			equals(t, "rate × time", rate.Trials[0]*wall, float64(n-test.missing))
			equals(t, "commands", float64(sink.Syncs.N()), 1)
			equals(t, "missing", m.value(t, "sink", key, "missing"), float64(test.missing))
			equals(t, "delivered", m.value(t, "sink", key, "delivered"), float64(n-test.missing))
			equals(t, "expected", m.value(t, "sink", key, "expected"), n)
			m.judged(t, "sink", key, results.CodeWatched, results.Stated, results.StoppedUnseen, "")
			switch {
			case test.command.Exit > 0 && test.missing == 0: // all came, whatever it says
				m.judged(t, "sink", key, results.CodeSyncCommand, results.Stated, "", "")
				m.account(t, key, n)
			case test.command.Exit > 0: // and nobody has seen whose fault it is
				m.judged(t, "sink", key, results.CodeSyncCommand, results.Undecided, results.EndedByUnknown, "")
				m.judged(t, "sink", key, results.CodeComplete, results.Undecided, results.CauseEnded, "", "missing", 10)
				m.judged(t, "sink", key, results.CodeHoldsSource, results.Undecided, results.MissingNeverDelivered, "")
				m.blameless(t, "sink")
				if s := rate.Is(results.StatusIncomplete); s == nil || s.Cause != results.CauseEnded {
					t.Errorf("%+v", rate.Status)
				}
			case test.missing > 0:
				m.judged(t, "sink", key, results.CodeComplete, results.Failed, results.CauseMissing, "sink", "missing", 10)
				m.judged(t, "sink", key, results.CodeHoldsSource, results.Failed, "", "sink", "held", 190, "must", 200, "missing.never delivered", 10)
				if s := rate.Is(results.StatusIncomplete); s == nil || s.Cause != results.CauseMissing {
					t.Errorf("%+v", rate.Status)
				}
			default:
				m.account(t, key, n)
				m.units(t, "sink", key, joined(accountUnits))
				for _, who := range []string{"source", "sink"} {
					within(t, who+" cpu", 0, m.value(t, "sink", key, who+" cpu"), 8*m.took.Seconds())
				}
				within(t, "memory of the sink", 1, m.value(t, "sink", key, "sink peak rss"), 2048)
			}
		})
	}
}

// TestWhatASinkRefusesIsCounted by reason, also what is refused again.
func TestWhatASinkRefusesIsCounted(t *testing.T) {
	t.Parallel()
	const n = 100
	notes := scripted.Notes(t, n)
	sink := scripted.External(t, "sink", scripted.Script{RefuseEvery: 10, RefuseReasons: []string{"pow: more", "no"}})
	m, did := fill(t, &Sync{Which: []string{ModeNegentropy}}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{}), sink)
	const key = "sync.negentropy"
	m.blameless(t, "source")
	equals(t, "pow", m.value(t, "sink", key, "refused", results.LabelReason, "pow"), 5)
	equals(t, "others", m.value(t, "sink", key, "refused", results.LabelReason, "other"), 5)
	equals(t, "missing", m.value(t, "sink", key, "missing"), 10)
	equals(t, "delivered", m.value(t, "sink", key, "delivered"), 90)
	equals(t, "records/s × s", m.value(t, "sink", key, "records/s")*m.value(t, "sink", key, "wall time"), 90)
	equals(t, "events", float64(did[ModeNegentropy].sinkEvents), n)
	m.judged(t, "sink", key, results.CodeHoldsSource, results.Failed, "", "sink", "missing.refused", 10)
	m.judged(t, "sink", key, results.CodeComplete, results.Failed, results.CauseMissing, "sink", "missing", 10)
	if m.blamed("sink")[results.CodeAcknowledgedKept] {
		t.Errorf("what it refused is told as lost:\n%s", m.trouble())
	}
}

// TestWhatASinkTakesForTooMuchIsCarriedAgain as long as that gets any further, with a pause before
// each time: of four notes each second one is rate-limited, then one of two, then none; or all of
// them, twice.
func TestWhatASinkTakesForTooMuchIsCarriedAgain(t *testing.T) {
	t.Parallel()
	for every, want := range map[int]struct{ transfers, stragglers, refused, missing int }{2: {3, 3, 3, 0}, 1: {2, 4, 8, 4}} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			t.Parallel()
			m, _ := fill(t, &Sync{Which: []string{ModeNegentropy}}, scripted.Notes(t, 4), harness.Options{}, scripted.External(t, "source", scripted.Script{}),
				scripted.External(t, "sink", scripted.Script{RefuseEvery: every, RefuseReasons: []string{"rate-limited: slow down"}}))
			const key = "sync.negentropy"
			m.blameless(t, "source")
			for metric, n := range map[string]int{"transfers": want.transfers, "stragglers": want.stragglers, "missing": want.missing, "delivered": 4 - want.missing} {
				equals(t, metric, m.value(t, "sink", key, metric), float64(n))
			}
			equals(t, "refused", m.value(t, "sink", key, "refused", results.LabelReason, "rate-limited"), float64(want.refused))
			within(t, "pauses and all", (throttlePause * time.Duration(want.transfers-1)).Seconds(), m.value(t, "sink", key, "wall time"), m.took.Seconds())
		})
	}
}

// TestWhatASinkNeedNotHoldIsCounted of a corpus in which events supersede and delete others, from a
// source that lost some.
func TestWhatASinkNeedNotHoldIsCounted(t *testing.T) {
	t.Parallel()
	c := syntheticCorpus(t, 250)
	m, _ := fill(t, &Sync{Which: []string{ModeNegentropy}}, c, harness.Options{}, scripted.External(t, "source", scripted.Script{LoseEvery: 20}),
		scripted.External(t, "sink", scripted.Script{}))
	model, err := model.New(c, nil, time.Now().Unix())
	if err != nil {
		t.Fatal(err)
	}
	f := m.finding(t, "sink", "sync.negentropy", results.CodeHoldsSource)
	same(t, "verdict", f.Verdict, results.Stated) // it was never given what the source lost
	reasons, must := gone(model)
	same(t, "some of them", len(reasons) > 0, true)
	for reason, n := range reasons {
		equals(t, reason, f.Counts["rightly."+reason], float64(n))
	}
	lost := f.Counts["missing."+results.MissingNeverDelivered]
	within(t, "lost by the source", 1, lost, 12)
	equals(t, "must", f.Counts["must"], float64(must))
	equals(t, "held", f.Counts["held"], float64(must)-lost)
}

// TestASecondThatHoldsMoreThanOnePageIsNobodysFault where the source sends ten at most: of 30 notes
// of one second 20 cannot be asked for. Ten may be all that there are.
func TestASecondThatHoldsMoreThanOnePageIsNobodysFault(t *testing.T) {
	t.Parallel()
	key, err := corpus.NewSecretKey([32]byte{31: 1})
	if err != nil {
		t.Fatal(err)
	}
	const second, page = 1_780_000_000, 10
	for _, test := range []struct {
		name       string
		same, lose int // notes of one second, beside ten others; each how many-th the sink loses
		verdict    results.Verdict
	}{{"more", 30, 0, results.Stated}, {"more, and a loss", 30, 10, results.Failed}, {"as many", page, 0, results.Passed}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			notes := make([]corpus.Event, test.same+10)
			for i := range notes {
				notes[i] = corpus.Event{Kind: 1, CreatedAt: second + int64(max(0, i-test.same+1)), Tags: []corpus.Tag{}, Content: fmt.Sprint(i)}
				if err := key.Sign(&notes[i], [32]byte{}); err != nil {
					t.Fatal(err)
				}
			}
			c, err := corpus.FromEvents(notes)
			if err != nil {
				t.Fatal(err)
			}
			m, _ := fill(t, &Sync{Which: []string{ModeReq}, Page: page}, c, harness.Options{}, scripted.External(t, "source", scripted.Script{Cap: page}),
				scripted.External(t, "sink", scripted.Script{LoseEvery: test.lose}))
			m.blameless(t, "source")
			unasked, lost := float64(test.same-page), 0.0
			if unasked > 0 {
				m.judged(t, "sink", "sync.req", results.CodeSecondsPaged, results.Stated, "", "", "seconds", 1, "newest", second)
			} else {
				m.judged(t, "source", "sync.req", results.CodeSendsHeld, results.Passed, "", "", "withheld", 0)
			}
			if test.lose > 0 {
				lost = 2 * page / float64(test.lose)
			}
			f := m.finding(t, "sink", "sync.req", results.CodeHoldsSource)
			same(t, "verdict", f.Verdict, test.verdict)
			equals(t, "could not be asked for", f.Counts["missing.never delivered"], unasked)
			equals(t, "lost", f.Counts["missing.lost"], lost)
			equals(t, "missing", m.value(t, "sink", "sync.req", "missing"), unasked+lost)
		})
	}
}

// TestASinkIsAskedHowMuchItHolds while its command runs: what it gained is the timeline.
func TestASinkIsAskedHowMuchItHolds(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 40)
	watched := func(s scripted.Script, first, then int) *counting {
		relay := scripted.Serve(t, s)
		p := load.Publisher{URL: relay.URL, Corpus: notes, Conns: 1, Window: 50, Stall: time.Minute, Ledger: load.NewLedger(notes.Len())}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		watch, ended := new(counting), make(chan struct{})
		go func() {
			defer close(ended)
			watch.run(ctx, relay.URL)
		}()
		at := 0
		for _, n := range []int{first, then} {
			if _, err := p.Publish(ctx, places(at, at+n)); err != nil {
				t.Error(err)
				return watch
			}
			at += n
			for watch.now.Load() < int64(at) && ctx.Err() == nil {
				select {
				case <-ended:
					return watch
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
		cancel()
		<-ended
		return watch
	}
	watch := watched(scripted.Script{}, 30, 10)
	sum := 0.0
	for _, n := range watch.timeline {
		sum += n
	}
	same(t, "sum of the timeline", sum, 40)
	same(t, "the second half of it", watch.timeline[len(watch.timeline)-1], 10)
	same(t, "trouble", watch.trouble.Code, "")

	notices := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for err == nil {
			if _, _, err = conn.Read(r.Context()); err == nil {
				err = conn.Write(r.Context(), websocket.MessageText, []byte(`["NOTICE","what?"]`))
			}
		}
	}))
	defer notices.Close()
	for _, url := range []string{"ws" + strings.TrimPrefix(notices.URL, "http"), "ws://127.0.0.1:1"} {
		watch = new(counting)
		watch.run(t.Context(), url)
		same(t, "of a relay that does not count, "+url, fmt.Sprintf("%v %s", watch.timeline, watch.trouble.Code), "[] "+results.NotWatched)
	}
}

// TestStragglersAreCarriedAgain from a source that leaves out events, each of which comes when it
// is asked for again.
func TestStragglersAreCarriedAgain(t *testing.T) {
	t.Parallel()
	const n = 100
	notes := scripted.Notes(t, n)
	m, _ := fill(t, &Sync{Which: []string{ModeNegentropy}}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{}),
		scripted.External(t, "sink", scripted.Script{LoseEvery: 10}))
	const key = "sync.negentropy"
	m.blameless(t, "source")
	// 10 of 100 are lost and carried again, of which the tenth is lost.
	equals(t, "transfers", m.value(t, "sink", key, "transfers"), 2)
	equals(t, "stragglers", m.value(t, "sink", key, "stragglers"), 10)
	equals(t, "missing", m.value(t, "sink", key, "missing"), 1)
	equals(t, "carried × s", m.value(t, "sink", key, "delivered"), 99)
	m.judged(t, "sink", key, results.CodeAcknowledgedKept, results.Failed, "", "sink", "lost", 1)
}

// TestCarriedAndReconciledAreRecordedInTheirUnits computes each figure from known sums.
func TestCarriedAndReconciledAreRecordedInTheirUnits(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 1)
	latency := results.NewHistogram()
	latency.Record(3 * time.Millisecond)
	first := &load.Transferred{Published: load.Published{Accepted: 200, Duplicates: 50, Unanswered: 3, Lost: 3, Latency: latency,
		Reasons: map[string]*load.Refusals{"pow": {Count: 4}}}, Altered: []corpus.ID{{1}}, Unexpected: 2, Duration: 4 * time.Second}
	second := &load.Transferred{Published: load.Published{Accepted: 50, Reasons: map[string]*load.Refusals{"pow": {Count: 1}, "blocked": {Count: 6}}}, Unexpected: 1, Duration: time.Second}
	asked := results.NewHistogram()
	asked.Record(7 * time.Millisecond)
	m := try(t, notes, scripted.Serve(t, scripted.Script{}), func(ctx context.Context, trial *harness.Trial) error {
		c := newCarried()
		c.add(first, &client.Stats{Waited: 2 * time.Second, Latency: asked, Unexpected: 7, Elsewhere: 5, Duplicates: 9, Repeated: 8, Lost: 2}, &c.from[0], &c.from[1])
		c.add(second, client.NewStats(), &c.from[1], &c.from[0])
		c.missing, c.from[0].retried, c.from[1].retried = 9, 2, 4
		c.measure(trial.Under(harness.Description{Scenario: results.Scenario{Key: "carried"}}))
		if a, b := c.from[0], c.from[1]; a.Elsewhere != 5 || len(a.altered) != 1 || a.notOfCorpus != 2 || b.notOfCorpus != 1 || a.Repeated != 8 || b.Repeated != 0 {
			t.Errorf("%+v", c)
		}
		r := &reconciled{first: negentropy.Result{Duration: 1500 * time.Millisecond, Rounds: 5, BytesUp: 1 << 20, BytesDown: 2 << 20},
			checks: negentropy.Result{Duration: 250 * time.Millisecond}, transfers: 3, stragglers: 12, unexpected: 4}
		r.measure(trial.Under(harness.Description{Scenario: results.Scenario{Key: "reconciled"}}))
		return nil
	})
	for metric, want := range map[string]float64{"transfer events/s": 60, "waiting for the sink": 40, "not sent by the source": 9, "never answered by the sink": 3,
		"of no corpus event": 3, "unasked": 7, "duplicates": 8, "retried": 6, "connections lost": 5, "REQ to EOSE": 7, "EVENT to OK": 3} {
		within(t, metric, want, m.value(t, "one", "carried", metric), want)
	}
	equals(t, "pow", m.value(t, "one", "carried", "refused", results.LabelReason, "pow"), 5)
	equals(t, "blocked", m.value(t, "one", "carried", "refused", results.LabelReason, "blocked"), 6)
	for metric, want := range map[string]float64{"reconcile time": 1500, "reconcile rounds": 5, "reconcile bytes": 3, "check time": 250, "transfers": 3, "stragglers": 12,
		"ids of no corpus event": 4} {
		equals(t, metric, m.value(t, "one", "reconciled", metric), want)
	}
}

// TestTheCommandsUseIsTheSinks adds what the sink's own command used, whether the relay itself was
// seen or not.
func TestTheCommandsUseIsTheSinks(t *testing.T) {
	t.Parallel()
	used := &relays.CommandResult{Usage: relays.Usage{CPUSeconds: 1.5, PeakRSS: 30}}
	r := &syncing{}
	r.done.account.Usage = &load.Usage{Relays: []load.Spent{{Known: true, CPU: time.Second, PeakRSS: 10}}}
	r.countCommand(used)
	r.countCommand(used)
	want := []load.Spent{{Known: true, CPU: time.Second, PeakRSS: 10}, {Known: true, CPU: 3 * time.Second, PeakRSS: 30}}
	if got := r.done.account.Usage.Relays; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v", got)
	}
}

// TestEventsGoBothWays between a source that lacks the newest fifth and a sink that lacks the
// oldest: each is brought what the other has alone, and nothing else.
func TestEventsGoBothWays(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 100)
	source, sink := scripted.External(t, "source", scripted.Script{}), scripted.External(t, "sink", scripted.Script{})
	m, _ := fill(t, &Sync{Which: []string{ModeNegentropy}, Direction: relays.Both}, notes, harness.Options{}, source, sink)
	const key = "sync.negentropy"
	for _, relay := range []string{"source", "sink"} {
		m.blameless(t, relay)
		m.judged(t, relay, key, results.CodeHoldsSource, results.Passed, "", "", "held", 100, "must", 100)
	}
	for metric, n := range map[string]float64{"expected": 20, "delivered": 20, "missing": 0, "transfers": 2, "stragglers": 0} {
		equals(t, metric, m.value(t, "sink", key, metric), n)
	}
	same(t, "carried either way", m.figure(t, "sink", key, "EVENT to OK").Samples, 40)
}

// TestWhatARelayLacksIsCarriedNewestFirst and each event once, whatever a relay names.
func TestWhatARelayLacksIsCarriedNewestFirst(t *testing.T) {
	notes := scripted.Notes(t, 9)
	l := located{corpus: notes}
	for _, i := range []int{4, 1, 7, 0, 4, 8, 1} {
		l.add([]negentropy.ID{negentropy.ID(notes.Entry(i).ID), {9}})
	}
	same(t, "places", fmt.Sprint(l.newestFirst()), "[8 7 4 1 0]")
	same(t, "ids of nothing", l.unexpected, 7)
}

// TestModesThatAreNoneSayWhy.
func TestModesThatAreNoneSayWhy(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 10)
	m, _ := fill(t, &Sync{}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{}),
		scripted.External(t, "sink", scripted.Script{NegError: "unsupported", NIP11: "{}"}))
	m.blameless(t, "source")
	m.blameless(t, "sink")
	m.judged(t, "sink", "sync.native", results.CodeHasWay, results.Stated, results.NoCommand, "")
	same(t, "who has none", m.finding(t, "sink", "sync.native", results.CodeHasWay).Texts["relay"], "sink")
	m.judged(t, "sink", "sync.negentropy", results.CodeHasWay, results.Stated, results.WithoutNIP77, "")
	m.account(t, "sync.req", 10)
}

// TestWaysThatDoNotGoBothWaysSayWhy: pages bring events one way, a stopped relay sends nothing, and
// a command goes the ways that its definition names.
func TestWaysThatDoNotGoBothWaysSayWhy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode       string
		asked      relays.Direction
		directions []relays.Direction // of the sink's command
		cause      string
	}{{ModeReq, relays.Both, nil, results.OneWay}, {ModeNative, relays.Both, nil, results.StoppedBoth}, {ModeNative, relays.Both, []relays.Direction{relays.Down}, results.NoDirection},
		{ModeNative, relays.Down, []relays.Direction{relays.Both}, results.NoDirection}} {
		t.Run(fmt.Sprint(test.mode, " ", test.cause, " ", test.asked), func(t *testing.T) {
			t.Parallel()
			sink := scripted.External(t, "sink", scripted.Script{SyncWith: &scripted.Command{}})
			sink.Definition.SyncRule.Directions = test.directions
			m, _ := fill(t, &Sync{Which: []string{test.mode}, Direction: test.asked}, scripted.Notes(t, 10), harness.Options{}, scripted.External(t, "source", scripted.Script{}), sink)
			m.blameless(t, "source")
			m.blameless(t, "sink")
			m.judged(t, "sink", "sync."+test.mode, results.CodeHasWay, results.Stated, test.cause, "")
			if test.cause == results.NoDirection {
				same(t, "direction", m.finding(t, "sink", "sync."+test.mode, results.CodeHasWay).Texts["direction"], string(test.asked))
			}
		})
	}
}

// TestASinkThatBreaksNIP77IsBlamed, and not the source: events are to go both ways.
func TestASinkThatBreaksNIP77IsBlamed(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 50)
	m, _ := fill(t, &Sync{Which: []string{ModeNegentropy}, Direction: relays.Both}, notes, harness.Options{}, scripted.External(t, "source", scripted.Script{}),
		scripted.External(t, "sink", scripted.Script{Honest: 40, NegReply: "zz"}))
	m.blameless(t, "source")
	m.judged(t, "sink", "sync.negentropy", results.CodeNIP77, results.Failed, results.CauseBreaks, "sink")
	m.judged(t, "sink", "sync.negentropy", results.CodeCompletes, results.Failed, "", "sink")
}

// TestDeparturesOfACauseAreAddedUp over kinds.
func TestDeparturesOfACauseAreAddedUp(t *testing.T) {
	d := difference{held: 7, expected: 9, groups: map[departure][]int{
		{true, results.MissingLost, 1}: {0, 1}, {true, results.MissingLost, 7}: {2}, {true, results.MissingRefused, 1}: {3}, {true, results.MissingNeverDelivered, 1}: {4, 5},
		{false, "superseded", 0}: {6}}}
	got := fmt.Sprint(d.counts(), d.lost(), d.own(), d.none())
	if want := "map[extra.superseded:1 held:7 missing.lost:3 missing.never delivered:2 missing.refused:1 must:9] 3 5 false"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
