package load

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays"
	"relaybench/relays/scripted"
	"relaybench/relays/wire"
)

func TestMain(m *testing.M) { os.Exit(scripted.Run(m)) }

// expect compares what has one right value.
func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// expectGarbage compares what was no message.
func expectGarbage(t *testing.T, got wire.Garbage, count int, example string) {
	t.Helper()
	expect(t, "garbage", got.Count, count)
	expect(t, "an example of it", got.Example, example)
}

// within compares with bounds that the script or the same run sets.
func within[T cmp.Ordered](t *testing.T, what string, least, got, most T) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %v, want %v to %v", what, got, least, most)
	}
}

// resolved is the least that a histogram can tell of a duration: it keeps three digits.
func resolved(d time.Duration) time.Duration { return d - d/500 }

func all(c *corpus.Corpus) []int {
	indexes := make([]int, c.Len())
	for i := range indexes {
		indexes[i] = i
	}
	return indexes
}

// published is what came of publishing n notes, and from when to when it took.
type published struct {
	*Published
	relay       *scripted.Relay
	ledger      *Ledger
	err         error
	began, done time.Duration // of wire.Now
}

func publish(t *testing.T, s scripted.Script, n int, p Publisher) published {
	t.Helper()
	got := published{relay: scripted.Serve(t, s)}
	p.URL = got.relay.URL
	got.publish(t, scripted.Notes(t, n), p)
	return got
}

func (got *published) publish(t *testing.T, notes *corpus.Corpus, p Publisher) {
	t.Helper()
	p.Corpus, p.Ledger = notes, NewLedger(notes.Len())
	p.Stall = cmp.Or(p.Stall, 30*time.Second)
	got.ledger, got.began = p.Ledger, wire.Now()
	got.Published, got.err = p.Publish(t.Context(), all(notes))
	if got.done = wire.Now(); got.Published == nil {
		t.Fatal(got.err)
	}
}

// answers compares the counts of answers in all places where they stand.
func (got *published) answers(t *testing.T, accepted, duplicates, refused, unanswered int64) {
	t.Helper()
	expect(t, "accepted", got.Accepted, accepted)
	expect(t, "duplicates", got.Duplicates, duplicates)
	expect(t, "refused", got.Refused, refused)
	expect(t, "unanswered", got.Unanswered, unanswered)
	for a, n := range map[Answer]int64{Accepted: accepted, Duplicate: duplicates, Refused: refused, Unanswered: unanswered, NotOffered: 0} {
		expect(t, fmt.Sprintf("in the ledger, answer %d", a), int64(got.ledger.Count(a)), n)
	}
	expect(t, "latencies", got.Latency.Count(), accepted+duplicates+refused)
	sum, reasons := 0.0, int64(0)
	for _, n := range got.Timeline {
		sum += n
	}
	for _, r := range got.Reasons {
		reasons += r.Count
	}
	expect(t, "sum of the timeline", sum, float64(accepted))
	expect(t, "sum of the reasons", reasons, refused)
}

// TestPublishedCountsAreThoseOfTheScript has 600 notes, of which each fifth is refused (120) and
// each seventh of the others is known (85 - 17).
func TestPublishedCountsAreThoseOfTheScript(t *testing.T) {
	t.Parallel()
	for _, conns := range []int{1, 3} {
		t.Run(fmt.Sprint(conns), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var told []string
			got := publish(t, scripted.Script{RefuseEvery: 5, RefuseReasons: []string{"blocked: one", "no word", "rate-limited: two"}, DuplicateEvery: 7, GarbageEvery: 50},
				600, Publisher{Conns: conns, Window: 8, Progress: func(done, total int) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, fmt.Sprintf("%d/%d", done, total))
				}})
			if got.err != nil {
				t.Error(got.err)
			}
			got.answers(t, 412, 68, 120, 0)
			expect(t, "kinds of refusal", len(got.Reasons), 3)
			for prefix, example := range map[string]string{"blocked": "blocked: one", "other": "no word", "rate-limited": "rate-limited: two"} {
				if r := got.Reasons[prefix]; r == nil || *r != (Refusals{40, example}) {
					t.Errorf("%s: %+v, want 40 as %q", prefix, r, example)
				}
			}
			expectGarbage(t, got.Garbage, 12, "]]garbage")
			expect(t, "unexpected OKs and lost connections", [2]int64{got.Unexpected, int64(got.Lost)}, [2]int64{})
			expect(t, "connections that the relay saw", got.relay.Connections.N(), int64(conns))
			expect(t, "events that it read", got.relay.Events.N(), 600)
			slices.Sort(told)
			expect(t, "progress", strings.Join(told, " "), "256/600 512/600")
		})
	}
}

// TestPublishedTimesAreThoseOfTheScript holds each OK back for d. With 24 events in flight at most,
// 240 of them take ten times d at least; and the time that all events were in flight together is at
// most 24 times that which passed.
func TestPublishedTimesAreThoseOfTheScript(t *testing.T) {
	t.Parallel()
	const d, accept, conns, window, n = 60 * time.Millisecond, 200 * time.Millisecond, 3, 8, 240
	got := publish(t, scripted.Script{OKAfter: d, AcceptAfter: accept}, n, Publisher{Conns: conns, Window: window})
	if got.err != nil {
		t.Error(got.err)
	}
	got.answers(t, n, 0, 0, 0)
	took := time.Duration(got.Seconds() * float64(time.Second))
	seen := got.relay.OKs.Last() - got.relay.Events.First()
	within(t, "from the first send to the last OK", max(seen, n/(conns*window)*d), took, got.done-got.began-conns*accept)
	within(t, "the first send", got.began+conns*accept, got.First, got.Last)
	within(t, "the last OK", got.First+seen, got.Last, got.done)
	held := time.Duration(got.relay.HeldNanos.Load()) / n
	within(t, "least latency", resolved(d), got.Latency.Min(), got.Latency.Quantile(0.5))
	within(t, "mean latency", resolved(max(d, held)), got.Latency.Mean(), took*conns*window/n)
	within(t, "longest latency", got.Latency.Quantile(0.99), got.Latency.Max(), took+took/500)
}

// TestTheTimelineCountsAnswersWhereTheyCame has all OKs more than a second after the events, half
// of which were refused.
func TestTheTimelineCountsAnswersWhereTheyCame(t *testing.T) {
	t.Parallel()
	got := publish(t, scripted.Script{OKAfter: 1100 * time.Millisecond, RefuseEvery: 2}, 24, Publisher{Conns: 2, Window: 12})
	got.answers(t, 12, 0, 12, 0)
	expect(t, "accepted in the first second", got.Timeline[0], 0)
	within(t, "seconds", 2, len(got.Timeline), int(got.Seconds())+1)
}

// TestWhatIsNeverAnsweredIsCounted has five notes of 200 without an answer, and seven whose OK
// names another id. The duration ends with the last OK, not with the waiting that follows.
func TestWhatIsNeverAnsweredIsCounted(t *testing.T) {
	t.Parallel()
	const stall = 8 * time.Second
	got := publish(t, scripted.Script{SilentEvery: 40, WrongIDEvery: 25}, 200, Publisher{Conns: 2, Window: 32, Stall: stall})
	if !errors.Is(got.err, wire.ErrStalled) || !strings.Contains(got.err.Error(), "12 events were never answered and 0 not sent") {
		t.Errorf("%v, want that it stalled", got.err)
	}
	got.answers(t, 188, 0, 0, 12)
	expect(t, "unexpected OKs", got.Unexpected, 7)
	expect(t, "OKs that the relay wrote", got.relay.OKs.N(), 195)
	within(t, "the last OK", got.First, got.Last, got.done-stall)
}

// TestLostConnectionsAreDialledAnew drops the connection at the 50th, 100th, 150th and 200th note
// that it reads.
func TestLostConnectionsAreDialledAnew(t *testing.T) {
	t.Parallel()
	const window = 16
	got := publish(t, scripted.Script{HangUpEvery: 50}, 220, Publisher{Conns: 1, Window: window})
	if got.err != nil {
		t.Error(got.err)
	}
	lost := got.relay.HangUps.N()
	within(t, "connections dropped", 2, lost, 4)
	expect(t, "lost", int64(got.Lost), lost)
	expect(t, "connections", got.relay.Connections.N(), lost+1)
	within(t, "unanswered", lost, got.Unanswered, lost*window)
	got.answers(t, 220-got.Unanswered, 0, 0, got.Unanswered)
	if !errors.Is(got.Loss, wire.ErrLost) {
		t.Errorf("the last loss: %v", got.Loss)
	}

	got = publish(t, scripted.Script{HangUpEvery: 1}, 20, Publisher{Conns: 1, Window: 4})
	if !errors.Is(got.err, wire.ErrLost) || !strings.Contains(got.err.Error(), fmt.Sprintf("%d events were never answered and %d not sent", got.Unanswered, 20-got.Unanswered)) {
		t.Errorf("a relay that drops each connection: %v, %d unanswered", got.err, got.Unanswered)
	}
	expect(t, "connections that broke before it gave up", got.Lost, maxBarren)
	expect(t, "latencies", got.Latency.Count(), 0)
}

// listFeed hands out what it was given.
type listFeed []outgoing

func (f *listFeed) next(bool) (e outgoing, ok bool) {
	if len(*f) == 0 {
		return e, false
	}
	e, *f = (*f)[0], (*f)[1:]
	return e, true
}

// TestAnyAnswerIsProgress has connections that end after a duplicate or a refusal each; and then a
// relay that answered in each way, and drops whatever comes later.
func TestAnyAnswerIsProgress(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]scripted.Script{"duplicates": {HangUpEvery: 3, DuplicateEvery: 1}, "refusals": {HangUpEvery: 3, RefuseEvery: 1}} {
		got := publish(t, s, 24, Publisher{Conns: 1, Window: 1})
		expect(t, name+": given up for", got.err, nil)
		expect(t, name+": lost connections", got.Lost, 8)
		expect(t, name+": unanswered", got.Unanswered, 8)
	}
	relay, notes := scripted.Serve(t, scripted.Script{Honest: 4, HangUpEvery: 1}), scripted.Notes(t, 20)
	list := listFeed{}
	for _, i := range []int{0, 1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10} {
		list = append(list, outgoing{&notes.Entry(i).ID, notes.Raw(i), i})
	}
	forged := bytes.Replace(notes.Raw(2), []byte(`"sig":"`), []byte(`"sig":"0`), 1)
	list[3].raw = append(forged[:len(forged)-3], `"}`...)
	p := Publisher{URL: relay.URL, Conns: 1, Window: 1, Stall: 30 * time.Second, Ledger: NewLedger(notes.Len())}
	got, failed, err := p.publish(t.Context(), list.next, len(list))
	if err != nil || len(failed) != 1 || !errors.Is(failed[0], wire.ErrLost) {
		t.Fatalf("%v, %v", failed, err)
	}
	expect(t, "accepted, known, refused, unanswered", [4]int64{got.Accepted, got.Duplicates, got.Refused, got.Unanswered}, [4]int64{2, 1, 1, 1 + maxBarren})
	expect(t, "lost", got.Lost, 1+maxBarren)
}

// TestNoMoreThanTheWindowIsInFlight has nothing answered: what was sent is the window.
func TestNoMoreThanTheWindowIsInFlight(t *testing.T) {
	t.Parallel()
	got := publish(t, scripted.Script{SilentEvery: 1}, 40, Publisher{Conns: 1, Window: 5, Stall: 500 * time.Millisecond})
	if !errors.Is(got.err, wire.ErrStalled) || !strings.Contains(got.err.Error(), "1 of 1 connections gave up, 5 events were never answered and 35 not sent") {
		t.Error(got.err)
	}
	expect(t, "unanswered", got.Unanswered, 5)
	expect(t, "the last OK is the first send", got.Last, got.First)
}

// TestWhileNothingIsDueNobodyStalls counts what was sent as what is to be answered.
func TestWhileNothingIsDueNobodyStalls(t *testing.T) {
	t.Parallel()
	relay, notes := scripted.Serve(t, scripted.Script{}), scripted.Notes(t, 50)
	list := listFeed{}
	for i := range notes.Len() {
		list = append(list, outgoing{&notes.Entry(i).ID, notes.Raw(i), i})
	}
	p := &Publisher{URL: relay.URL, Conns: 1, Window: 8, Stall: 10 * time.Millisecond, Ledger: NewLedger(notes.Len())}
	conn, err := p.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &shared{from: list.next, pacer: ClosedLoop{}, start: wire.Now()}
	w := &publishing{Publisher: p, Published: NewPublished(), shared: s, conn: conn, flight: newInflight(p.Window)}
	if err := w.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, "sent", s.sent.Load(), 50)
	expect(t, "done", s.done.Load(), 50)
	running, finished := context.WithCancelCause(t.Context())
	idle := time.AfterFunc(20*p.Stall, func() { finished(nil) })
	p.watch(running, s, func() { finished(wire.ErrStalled) })
	if idle.Stop() || !errors.Is(context.Cause(running), context.Canceled) {
		t.Errorf("with nothing in flight: %v", context.Cause(running))
	}
	s.sent.Add(1)
	running, finished = context.WithCancelCause(t.Context())
	p.watch(running, s, func() { finished(wire.ErrStalled) })
	if !errors.Is(context.Cause(running), wire.ErrStalled) {
		t.Errorf("with one in flight: %v", context.Cause(running))
	}
}

// waitingFeed hands out what it was given, and notes when it may block.
type waitingFeed struct {
	listFeed
	waits []bool
}

func (f *waitingFeed) next(wait bool) (outgoing, bool) {
	f.waits = append(f.waits, wait)
	return f.listFeed.next(wait)
}

// TestAFeedMayBlockWhereNothingIsInFlight, and nowhere else: an answer would wait for it.
func TestAFeedMayBlockWhereNothingIsInFlight(t *testing.T) {
	t.Parallel()
	relay, notes := scripted.Serve(t, scripted.Script{}), scripted.Notes(t, 2)
	feed := &waitingFeed{}
	for i := range notes.Len() {
		feed.listFeed = append(feed.listFeed, outgoing{&notes.Entry(i).ID, notes.Raw(i), i})
	}
	p := Publisher{URL: relay.URL, Conns: 1, Window: 2, Stall: 30 * time.Second, Ledger: NewLedger(notes.Len())}
	if _, failed, err := p.publish(t.Context(), feed.next, notes.Len()); err != nil || len(failed) > 0 {
		t.Fatal(failed, err)
	}
	// The first of two fills half of the window; then either both are answered, or one and the feed
	// is asked in vain.
	if n := len(feed.waits); n < 3 || n > 4 || !feed.waits[0] || feed.waits[1] || !feed.waits[n-1] || n == 4 && feed.waits[2] {
		t.Errorf("asked to wait: %v", feed.waits)
	}
}

// TestTheTimelineBeginsWithTheFirstSend, whenever that is.
func TestTheTimelineBeginsWithTheFirstSend(t *testing.T) {
	notes := scripted.Notes(t, 1)
	id := notes.Entry(0).ID
	w := &publishing{Publisher: &Publisher{Ledger: NewLedger(1)}, Published: NewPublished(), flight: newInflight(1), shared: &shared{start: 100 * time.Second}}
	w.flight.add(&id, 0, 101*time.Second)
	w.answer(&wire.Message{Type: wire.OK, ID: id, Accepted: true}, 102500*time.Millisecond)
	expect(t, "by second", fmt.Sprint(w.Timeline), "[0 0 1]")
	within(t, "latency", resolved(1500*time.Millisecond), w.Latency.Max(), 1503*time.Millisecond)
	expect(t, "the last OK", w.Last, 102500*time.Millisecond)
}

// TestKindsOfRefusalAreBounded has 14 kinds, twice each: a relay writes them.
func TestKindsOfRefusalAreBounded(t *testing.T) {
	t.Parallel()
	var reasons []string
	for c := 'a'; c < 'a'+maxReasons+2; c++ {
		reasons = append(reasons, string(c)+": no")
	}
	got := publish(t, scripted.Script{RefuseEvery: 1, RefuseReasons: reasons}, 2*len(reasons), Publisher{Conns: 1, Window: 4})
	got.answers(t, 0, 0, 28, 0)
	expect(t, "kinds", len(got.Reasons), maxReasons+1)
	expect(t, "others", *got.Reasons["other"], Refusals{4, "m: no"})
	expect(t, "of the first", *got.Reasons["a"], Refusals{2, "a: no"})
}

// TestARelayInAProcessOfItsOwnIsPublishedTo is launched as any relay is.
func TestARelayInAProcessOfItsOwnIsPublishedTo(t *testing.T) {
	t.Parallel()
	const d = 100 * time.Millisecond
	got := published{relay: scripted.External(t, "own", scripted.Script{OKAfter: d, RefuseEvery: 4})}
	process, err := relays.Start(t.Context(), got.relay.Definition, "", relays.Settings{WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer process.Cleanup()
	defer process.Kill()
	got.publish(t, scripted.Notes(t, 80), Publisher{URL: process.URL(), Conns: 2, Window: 20})
	got.answers(t, 60, 0, 20, 0)
	within(t, "seconds", max(2*d, got.relay.OKs.Last()-got.relay.Events.First()).Seconds(), got.Seconds(), (got.done - got.began).Seconds())
	within(t, "least latency", resolved(d), got.Latency.Min(), got.Latency.Max())
}

// lateFeed has nothing for those that ask first.
type lateFeed struct {
	feed
	first, asked atomic.Int64
}

func (f *lateFeed) next(wait bool) (outgoing, bool) {
	if f.asked.Add(1) <= f.first.Load() {
		return outgoing{}, false
	}
	return f.feed(wait)
}

// TestTheLastOKIsThatOfAnyConnection has one note for the last of 40 connections that asks for one.
func TestTheLastOKIsThatOfAnyConnection(t *testing.T) {
	t.Parallel()
	const d, conns = 50 * time.Millisecond, 40
	notes := scripted.Notes(t, 1)
	p := Publisher{URL: scripted.Serve(t, scripted.Script{OKAfter: d}).URL, Corpus: notes, Conns: conns, Window: 4, Stall: 30 * time.Second, Ledger: NewLedger(1)}
	feed := &lateFeed{feed: p.feedOf(all(notes))}
	feed.first.Store(conns - 1)
	got, failed, err := p.publish(t.Context(), feed.next, 1)
	if err != nil || len(failed) > 0 {
		t.Fatal(failed, err)
	}
	expect(t, "accepted", got.Accepted, 1)
	within(t, "seconds", d.Seconds(), got.Seconds(), 600)
}
