package load

import (
	"errors"
	"strings"
	"testing"
	"time"

	"relaybench/relays/scripted"
	"relaybench/relays/wire"
	"relaybench/results"
)

// pace publishes n notes at a rate.
func pace(t *testing.T, s scripted.Script, n int, rate ConstantRate, p Publisher) published {
	t.Helper()
	p.Pacer = rate
	return publish(t, s, n, p)
}

// TestAPacerIsAFunctionOfTimeAndCount needs no clock.
func TestAPacerIsAFunctionOfTimeAndCount(t *testing.T) {
	for _, test := range []struct {
		pacer   Pacer
		elapsed time.Duration
		sent    int
		wait    time.Duration
		stop    bool
	}{
		{ClosedLoop{}, 0, 0, 0, false},
		{ClosedLoop{}, time.Hour, 1_000_000, 0, false},
		{ClosedLoop{For: time.Second}, time.Hour, 0, 0, false}, // one is sent however late
		{ClosedLoop{For: time.Second}, time.Second - 1, 5, 0, false},
		{ClosedLoop{For: time.Second}, time.Second, 5, 0, true},
		{ConstantRate(200), -leadTime, 0, leadTime, false},
		{ConstantRate(200), 0, 0, 0, false},
		{ConstantRate(200), 0, 1, 5 * time.Millisecond, false},
		{ConstantRate(200), time.Second, 200, 0, false},
		{ConstantRate(200), time.Second, 300, 500 * time.Millisecond, false},
		{ConstantRate(200), 2 * time.Second, 300, -500 * time.Millisecond, false}, // overdue, and counted from then
		{ConstantRate(0.5), 0, 3, 6 * time.Second, false},
	} {
		if wait, stop := test.pacer.Pace(test.elapsed, test.sent); wait != test.wait || stop != test.stop {
			t.Errorf("%T %v at %v with %d sent: %v, %v; want %v, %v", test.pacer, test.pacer, test.elapsed, test.sent, wait, stop, test.wait, test.stop)
		}
	}
}

// above counts the samples of a histogram from d on, as far as its quantiles tell.
func above(h *results.Histogram, d time.Duration) (n int) {
	for i := range int(h.Count()) {
		if h.Quantile((float64(i)+0.5)/float64(h.Count())) >= d {
			n++
		}
	}
	return n
}

// TestPacedCountsAreThoseOfTheScript has 600 notes: each tenth is refused (60), each fourth of the
// others known (150 - 30).
func TestPacedCountsAreThoseOfTheScript(t *testing.T) {
	t.Parallel()
	for _, conns := range []int{1, 3} {
		told := make(chan [2]int, 600)
		got := pace(t, scripted.Script{RefuseEvery: 10, RefuseReasons: []string{"blocked: not you"}, DuplicateEvery: 4, GarbageEvery: 20}, 600, 4000,
			Publisher{Conns: conns, Progress: func(done, total int) { told <- [2]int{done, total} }})
		if got.err != nil {
			t.Error(got.err)
		}
		got.answers(t, 420, 120, 60, 0)
		expect(t, "sendings", got.Late.Count(), 600)
		expect(t, "a refusal", got.Reasons["blocked"].Example, "blocked: not you")
		expectGarbage(t, got.Garbage, 30, "]]garbage")
		expect(t, "lost", got.Lost, 0)
		expect(t, "connections", got.relay.Connections.N(), int64(conns))
		expect(t, "told", len(told), 2)
		for range 2 {
			if told := <-told; told[0]%256 != 0 || told[1] != 600 {
				t.Errorf("progress %v", told)
			}
		}
	}
}

// TestTheScheduleIsKept compares when the relay saw the first and the last event with the rate,
// which is that of all connections together. No event is sent before its time, and none is seen
// later than its latency says.
func TestTheScheduleIsKept(t *testing.T) {
	t.Parallel()
	const rate, n, d = 200, 101, 150 * time.Millisecond
	for _, conns := range []int{1, 4} {
		began := scripted.Clock()
		got := pace(t, scripted.Script{OKAfter: d}, n, rate, Publisher{Conns: conns})
		if got.err != nil {
			t.Error(got.err)
		}
		got.answers(t, n, 0, 0, 0)
		within(t, "the first event", began+leadTime, got.relay.Events.First(), got.relay.Events.Last())
		span := (n - 1) * time.Second / rate
		slack := got.Latency.Max()
		within(t, "from the first event to the last", span-slack, got.relay.Events.Last()-got.relay.Events.First(), span+slack)
		within(t, "least latency", resolved(d), got.Latency.Min(), got.Latency.Quantile(0.5))
		// Each latency is the event's delay in sending, and the time until its OK, which the relay
		// held for so long at least.
		held := time.Duration(got.relay.HeldNanos.Load()) / n
		within(t, "mean latency", resolved(got.Late.Mean()+max(d, held)), got.Latency.Mean(), got.Latency.Max())
	}
}

// TestAStallIsFeltByEveryEventThatWasDueInIt freezes the relay for a second, in which 180 events
// are due that go on being sent. In a closed loop it would be one slow answer. The schedule alone
// decides how many latencies exceed a time, however slow this machine is.
func TestAStallIsFeltByEveryEventThatWasDueInIt(t *testing.T) {
	t.Parallel()
	const rate, d = 200, time.Second
	got := pace(t, scripted.Script{FreezeAt: 20, Freeze: d}, 200, rate, Publisher{Conns: 1})
	if got.err != nil {
		t.Error(got.err)
	}
	got.answers(t, 200, 0, 0, 0)
	for _, x := range []time.Duration{900 * time.Millisecond, 500 * time.Millisecond, 250 * time.Millisecond} {
		within(t, "latencies from "+x.String()+" on", int(rate*(d-x)/time.Second)-1, above(got.Latency, resolved(x)), 200)
	}
	within(t, "median latency", resolved(500*time.Millisecond), got.Latency.Quantile(0.5), got.Latency.Max())
	within(t, "longest latency", resolved(d), got.Latency.Max(), (got.done-got.began)*501/500)
	// The harness was late by what it was late in sending, and not by what the relay did.
	within(t, "mean delay in sending", 0, got.Late.Mean(), got.Latency.Mean()*9/10)
}

// TestLatencyCountsFromTheIntendedTime has the relay hang up at the 160th note and take no call for
// a second. What is due meanwhile is sent late and then answered at once: counted from its sending
// it would have been served well.
func TestLatencyCountsFromTheIntendedTime(t *testing.T) {
	t.Parallel()
	const rate, d, x = 200, time.Second, 500 * time.Millisecond
	got := pace(t, scripted.Script{HangUpEvery: 160, FreezeAt: 160, Freeze: d}, 300, rate, Publisher{Conns: 1})
	if got.err != nil {
		t.Error(got.err)
	}
	got.answers(t, 300-got.Unanswered, 0, 0, got.Unanswered)
	expect(t, "lost connections", [2]int{got.Lost, int(got.relay.HangUps.N())}, [2]int{1, 1})
	within(t, "unanswered", 1, got.Unanswered, 300) // all that was on its way: on a busy machine, much
	if !errors.Is(got.Loss, wire.ErrLost) {
		t.Errorf("the loss: %v", got.Loss)
	}
	late := int(rate*(d-x)/time.Second) - 1 - int(got.Unanswered)
	within(t, "late sendings", late, above(got.Late, resolved(x)), 300)
	within(t, "long latencies", late, above(got.Latency, resolved(x)), 300)
	// No event was answered before it was sent.
	sum := func(h *results.Histogram) float64 { return h.Mean().Seconds() * float64(h.Count()) }
	lost := float64(got.Unanswered) * got.Late.Max().Seconds()
	within(t, "seconds late in all", 0, sum(got.Late), 1.002*(sum(got.Latency)+lost))
}

// TestThePacerOutlivesRelaysThatStop has a relay that answers 50 notes and no more, and one that
// drops each connection.
func TestThePacerOutlivesRelaysThatStop(t *testing.T) {
	t.Parallel()
	got := pace(t, scripted.Script{Honest: 50, SilentEvery: 1}, 100, 400, Publisher{Conns: 1, Stall: 8 * time.Second})
	if !errors.Is(got.err, wire.ErrStalled) || !strings.Contains(got.err.Error(), "50 events were never answered and 0 not sent") {
		t.Errorf("silent from half of the notes on: %v", got.err)
	}
	got.answers(t, 50, 0, 0, 50)

	got = pace(t, scripted.Script{HangUpEvery: 1}, 100, 400, Publisher{Conns: 1})
	if got.err == nil {
		t.Error("a relay that always hangs up is no error")
	}
	expect(t, "unanswered or not sent", [2]int64{got.Unanswered + got.Unsent, got.Latency.Count()}, [2]int64{100, 0})
}

// TestWhatIsNotYetDueIsNotWaitedFor has two notes for one connection, three seconds apart: with a
// patience shorter than that, which begins when all are due, and with one that is longer.
func TestWhatIsNotYetDueIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, stall := range []time.Duration{2 * time.Second, 4 * time.Second} {
		t.Run(stall.String(), func(t *testing.T) {
			t.Parallel()
			got := pace(t, scripted.Script{}, 4, 1, Publisher{Conns: 3, Stall: stall})
			expect(t, "given up for", got.err, nil)
			got.answers(t, 4, 0, 0, 0)
		})
	}
}

// TestALossAtTheEndIsOneAllTheSame has the connection drop at the last note: no more is wrong
// than that it was lost, and what was on its way with it.
func TestALossAtTheEndIsOneAllTheSame(t *testing.T) {
	t.Parallel()
	got := pace(t, scripted.Script{HangUpEvery: 20}, 20, 40, Publisher{Conns: 1})
	expect(t, "after others were answered", got.err, nil)
	expect(t, "lost", got.Lost, 1)
	got.answers(t, 20-got.Unanswered, 0, 0, got.Unanswered)
	within(t, "unanswered", 1, got.Unanswered, 19)

	got = pace(t, scripted.Script{HangUpEvery: 1}, 1, 40, Publisher{Conns: 1})
	expect(t, "after none was", got.err, nil)
	expect(t, "lost", got.Lost, 1)
	got.answers(t, 0, 0, 0, 1)
}

// TestWhoClosesIsSentNoMore has a relay that closes at the first event, and reads on: what is left
// of the schedule goes over the next connection, until three brought nothing.
func TestWhoClosesIsSentNoMore(t *testing.T) {
	t.Parallel()
	p := Publisher{URL: scripted.Repeat(t, "\x88\x00"), Corpus: scripted.Notes(t, 200), Ledger: NewLedger(200), Conns: 1, Pacer: ConstantRate(100), Stall: 30 * time.Second}
	got, err := p.Publish(t.Context(), all(p.Corpus))
	if err == nil {
		t.Error("a relay that always closes is no error")
	}
	expect(t, "lost", got.Lost, maxBarren)
	within(t, "sendings", maxBarren, got.Late.Count(), 199)
	expect(t, "unanswered or not sent", got.Unanswered+got.Unsent, 200)
}
