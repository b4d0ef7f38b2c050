package backfill_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/harness/backfill"
	"relaybench/harness/measure"
	"relaybench/harness/pull"
)

func TestAnAccountSaysWhetherItIsAll(t *testing.T) {
	for _, c := range []struct {
		name     string
		account  backfill.Account
		want     backfill.Completeness
		required bool   // of the finding
		reason   string // a part of it
	}{
		{"all came", backfill.Account{Expected: 10, Delivered: 10}, backfill.Complete, true, ""},
		{"some are missing", backfill.Account{Expected: 10, Delivered: 8, Missing: 2}, backfill.Failed, true, "2 of 10 records never came"},
		{"some are missing by the relay's own limit", backfill.Account{Expected: 10, Missing: 2, Why: "the relay sends 8 at most", Excused: true}, backfill.Failed, false, "sends 8 at most"},
		{"it broke off", backfill.Account{Expected: 10, Missing: 2, Err: errors.New("the connection was lost")}, backfill.Failed, true, "the connection was lost"},
		{"it broke off after all had come", backfill.Account{Expected: 10, Err: errors.New("no EOSE")}, backfill.Failed, true, "no EOSE"},
		{"cut on purpose", backfill.Account{Expected: 10, Missing: 2, Cut: "--cell-time 1s"}, backfill.Capped, false, "cut by --cell-time 1s"},
		{"nobody knows", backfill.Account{Expected: -1, Delivered: 8}, backfill.Unresolved, false, "nothing says"},
		{"all ids that were asked for came", backfill.Account{Expected: -1, Delivered: 8, Assured: true}, backfill.Complete, true, ""},
	} {
		got, reason := c.account.Completeness()
		if got != c.want || !strings.Contains(reason, c.reason) || (reason == "") != (got == backfill.Complete) {
			t.Errorf("%s: %s, %q", c.name, got, reason)
		}
		f, stated := c.account.Finding()
		if stated != (c.want == backfill.Complete || c.want == backfill.Failed) || stated && (f.OK != (c.want == backfill.Complete) || f.Required != c.required || f.Detail == "") {
			t.Errorf("%s: finding %+v, %v", c.name, f, stated)
		}
		c.account.Wall = time.Second
		for _, m := range c.account.Measurements() {
			if m.IsIncomplete() != (c.want != backfill.Complete) {
				t.Errorf("%s: %s has the note %q", c.name, m.Metric, m.Note)
			}
		}
	}
}

func TestOneIncompleteTrialMarksAllOfAFigure(t *testing.T) {
	r := measure.NewRecorder(nil, nil)
	for _, missing := range []int{0, 3, 0} {
		a := backfill.Account{Wall: time.Second, Expected: 10, Delivered: 10 - missing, Missing: missing}
		for _, m := range a.Measurements() {
			m.Relay, m.Scenario = "a", "fetch.giant"
			r.Add(m)
		}
	}
	for _, m := range r.Snapshot().Measurements {
		if len(m.Trials) != 3 || !m.IsIncomplete() {
			t.Errorf("%s: %d trials, note %q", m.Metric, len(m.Trials), m.Note)
		}
	}
}

func TestAnAccountAddsUpWhatWasAsked(t *testing.T) {
	a := backfill.Account{Expected: -1, Wall: 2 * time.Second, Delivered: 10}
	a.Add(&pull.Stats{Requests: 3, EOSE: 2, Closed: 1, Bytes: 1 << 20})
	a.Add(&pull.Stats{Requests: 2, Unfinished: 2, Bytes: 1 << 20})
	if want := (backfill.Requests{Sent: 5, EOSE: 2, Closed: 1, Unfinished: 2}); a.Requests != want {
		t.Errorf("requests %+v", a.Requests)
	}
	ms := a.Measurements()
	value := func(metric string) float64 {
		i := slices.IndexFunc(ms, func(m measure.Measurement) bool { return m.Metric == metric })
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
	m := backfill.Measure()
	ballast := make([]byte, 32<<20)
	for i := 0; i < len(ballast); i += 512 {
		ballast[i] = byte(i)
	}
	u := m.Stop()
	if !u.Tool.Known || u.Tool.PeakRSS < uint64(len(ballast)) || len(u.Relays) != 0 || ballast[512] != 0 {
		t.Errorf("%+v", u)
	}
	if again := m.Stop(); again.Tool.CPU != u.Tool.CPU {
		t.Error("stopping twice counts twice")
	}
}
