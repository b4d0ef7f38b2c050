package load_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"relaybench/harness/load"
	"relaybench/relays/client"
	"relaybench/results"
)

func TestAnAccountSaysWhetherItIsAll(t *testing.T) {
	for _, c := range []struct {
		name    string
		account load.Account
		want    load.Completeness
		verdict results.Verdict // of the finding, "" where there is none
		cause   string          // of the finding, or of the figures' status
	}{
		{"all came", load.Account{Expected: 10, Delivered: 10}, load.Complete, results.Passed, ""},
		{"some are missing", load.Account{Expected: 10, Delivered: 8, Missing: 2}, load.Failed, results.Failed, results.CauseMissing},
		{"some are missing by the relay's own limit", load.Account{Expected: 10, Missing: 2, Why: results.Reason{Code: results.CauseCapped}, Excused: true}, load.Failed, results.Stated, results.CauseCapped},
		{"it broke off", load.Account{Expected: 10, Missing: 2, Err: errors.New("the connection was lost")}, load.Failed, results.Failed, results.CauseEnded},
		{"it broke off after all had come", load.Account{Expected: 10, Err: errors.New("no EOSE")}, load.Failed, results.Failed, results.CauseEnded},
		{"it went on and on", load.Account{Expected: 10, Missing: 2, Err: fmt.Errorf("paging: %w", &client.FloodError{Sent: 21, Asked: 10})}, load.Failed, results.Failed, results.WhyFlood},
		{"it crept", load.Account{Expected: 10, Missing: 2, Err: &load.TimeError{After: time.Minute}}, load.Failed, results.Failed, results.WhyTime},
		{"it crept, by nobody's fault", load.Account{Expected: 10, Missing: 2, Err: &load.TimeError{After: time.Minute}, Excused: true}, load.Failed, results.Stated, results.WhyTime},
		{"cut on purpose", load.Account{Expected: 10, Missing: 2, Cut: "--cell-time 1s"}, load.Capped, "", results.CauseCut},
		{"nobody knows", load.Account{Expected: -1, Delivered: 8}, load.Unresolved, "", results.CauseUnresolved},
		{"all ids that were asked for came", load.Account{Expected: -1, Delivered: 8, Assured: true}, load.Complete, results.Passed, ""},
	} {
		if got := c.account.Completeness(); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
		f, judged := c.account.Finding()
		if judged != (c.verdict != "") || judged && (f.Code != results.CodeComplete || f.Verdict != c.verdict || f.Cause != c.cause) {
			t.Errorf("%s: finding %+v, %v", c.name, f, judged)
		}
		if err := c.account.Err; err != nil && f.Texts["error"] != err.Error() {
			t.Errorf("%s: the finding tells of %q", c.name, f.Texts["error"])
		}
		c.account.Wall = time.Second
		for _, m := range c.account.Measurements() {
			status := m.Is(results.StatusIncomplete)
			if (status != nil) != (c.want != load.Complete) {
				t.Errorf("%s: %s has the status %+v", c.name, m.Metric, m.Status)
			} else if status != nil && status.Cause != c.cause && status.Because != c.cause {
				t.Errorf("%s: %s is incomplete by %+v", c.name, m.Metric, status)
			}
		}
	}
}

func TestWhatEndsARunIsToldWithItsCounts(t *testing.T) {
	for _, c := range []struct {
		err  error
		want map[string]float64
	}{
		{&client.FloodError{Sent: 21, Asked: 10}, map[string]float64{"sent": 21, "asked": 10}},
		{&load.TimeError{After: 90 * time.Second}, map[string]float64{"s": 90}},
	} {
		a := load.Account{Expected: 10, Missing: 7, Delivered: 4}
		a.End(c.err)
		f, ok := a.Finding()
		if !ok || a.Cut != "" || f.Counts["delivered"] != 4 || f.Counts["missing"] != 7 {
			t.Errorf("%v: %+v", c.err, f)
		}
		for name, n := range c.want {
			if f.Counts[name] != n {
				t.Errorf("%v: %v %s", c.err, f.Counts[name], name)
			}
		}
	}
	var a load.Account
	a.End(fmt.Errorf("paging: %w", &load.CutError{Limit: "--cell-time 1s"}))
	if a.Err != nil || a.Cut != "--cell-time 1s" {
		t.Errorf("%+v", a)
	}
}

// TestABudgetIsFarMoreThanTheSlowestTook, and never less than what it is at least.
func TestABudgetIsFarMoreThanTheSlowestTook(t *testing.T) {
	var none *load.Budget
	none.Took(10, time.Hour)
	b := &load.Budget{Least: time.Minute}
	for _, step := range []struct {
		events int // of a run that came to its end
		took   time.Duration
		of     int
		want   time.Duration
	}{
		{0, time.Hour, 100, time.Minute},                          // a run of nothing says nothing
		{1000, 100 * time.Millisecond, 100, time.Minute},          // fast
		{1000, 100 * time.Millisecond, 10_000, 100 * time.Second}, // as slow as may be expected
		{1000, 20 * time.Second, 10_000, 2000 * time.Second},
		{1000, time.Second, 10_000, 2000 * time.Second}, // the slowest counts
	} {
		b.Took(step.events, step.took)
		if got := b.For(step.of); got != step.want {
			t.Errorf("after %+v: %v", step, got)
		}
	}
	if got := none.For(1); got != 2*time.Minute {
		t.Errorf("without any run: %v", got)
	}
}

func TestABudgetEndsItsContextByName(t *testing.T) {
	b := &load.Budget{Least: time.Nanosecond}
	for set, want := range map[time.Duration]string{0: "it was ended after 1ns", time.Microsecond: "cut by --cell-time 1µs"} {
		ctx, cancel := b.Within(t.Context(), set, 0)
		<-ctx.Done()
		if got := context.Cause(ctx); got.Error() != want {
			t.Errorf("%v, want %q", got, want)
		}
		cancel()
	}
}

func TestOneIncompleteTrialMarksAllOfAFigure(t *testing.T) {
	r := results.NewRecorder(nil, nil)
	for _, missing := range []int{0, 3, 0} {
		a := load.Account{Wall: time.Second, Expected: 10, Delivered: 10 - missing, Missing: missing}
		for _, m := range a.Measurements() {
			m.Relay, m.Scenario = "a", "fetch.giant"
			r.Add(m)
		}
	}
	for _, m := range r.Snapshot().Measurements {
		if len(m.Trials) != 3 || m.Is(results.StatusIncomplete) == nil || len(m.Status) != 1 {
			t.Errorf("%s: %d trials, status %+v", m.Metric, len(m.Trials), m.Status)
		}
	}
}

func TestAnAccountAddsUpWhatWasAsked(t *testing.T) {
	a := load.Account{Expected: -1, Wall: 2 * time.Second, Delivered: 10}
	a.Add(&client.Stats{Requests: 3, EOSE: 2, Closed: 1, Bytes: 1 << 20})
	a.Add(&client.Stats{Requests: 2, Unfinished: 2, Bytes: 1 << 20})
	if want := (load.Requests{Sent: 5, EOSE: 2, Closed: 1, Unfinished: 2}); a.Requests != want {
		t.Errorf("requests %+v", a.Requests)
	}
	ms := a.Measurements()
	value := func(metric string) float64 {
		i := slices.IndexFunc(ms, func(m results.Measurement) bool { return m.Metric == metric })
		if i < 0 {
			return -1
		}
		return ms[i].Trials[0]
	}
	if value("records/s") != 5 || value("response bytes") != 2 || value("requests closed") != 1 || value("missing") != -1 {
		t.Errorf("%+v", ms)
	}
}

func TestAMeterSeesThisProcess(t *testing.T) {
	m := load.Measure()
	ballast := make([]byte, 32<<20)
	for i := 0; i < len(ballast); i += 512 {
		ballast[i] = byte(i)
	}
	u := m()
	if !u.Tool.Known || u.Tool.PeakRSS < uint64(len(ballast)) || len(u.Relays) != 0 || ballast[512] != 0 {
		t.Errorf("%+v", u)
	}
	if again := m(); again.Tool.CPU != u.Tool.CPU {
		t.Error("stopping twice counts twice")
	}
}
