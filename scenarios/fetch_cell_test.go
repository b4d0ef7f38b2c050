package scenarios

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness/load"
	"relaybench/relays/client"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
	"relaybench/results"
)

func TestEveryStrategyBringsAllInEveryForm(t *testing.T) {
	t.Parallel()
	url := compressing(t, serve(t, reference.Options{MaxLimit: 5000}))
	recent := corpus.Int64(sampleModel(t).Corpus().Entry(200).CreatedAt)
	for i, f := range []corpus.Filter{{}, {Kinds: []int{1}, Since: recent}} {
		to := target(t, url, f)
		want := sampleModel(t).Count(&f)
		for _, s := range strategies() {
			if i > 0 && s == fetchByID {
				continue
			}
			for _, r := range measured(t, s, to, options()) {
				got, reason := r.Completeness(), reasonOf(r)
				if got != load.Complete || r.Delivered < r.Expected || r.Delivered > want || r.unexpected+r.refused+r.failed > 0 {
					t.Errorf("%s: %s (%s), %d of %d, %d strangers, %d refused, %d failed", name(r), got, reason, r.Delivered, want, r.unexpected, r.refused, r.failed)
				}
				if r.Wall <= 0 || r.rate() <= 0 || r.ResponseBytes <= 0 || r.Requests.EOSE == 0 || r.State == nil || r.State.Current == 0 || r.Usage == nil {
					t.Errorf("%s: %+v", name(r), r.Account)
				}
				if over := r.overfetch(); !r.form.deflate && over < 1 || over <= 0 {
					t.Errorf("%s: %v bytes on the socket for each of the events", name(r), over)
				}
				if s != fetchPaged && s != fetchShardedPaged && r.duplicates > 0 {
					t.Errorf("%s: %d duplicates", name(r), r.duplicates)
				}
				if r.form.deflate && !strings.Contains(r.stats.Extensions, "permessage-deflate") {
					t.Errorf("%s: compression was not agreed on: %q", name(r), r.stats.Extensions)
				}
			}
		}
	}
}

// A relay of which nobody knows what it holds is listed by paging, and then asked by id.
func TestAnUnknownRelayIsLearnt(t *testing.T) {
	t.Parallel()
	url := serve(t, reference.Options{MaxLimit: 5000})
	to := &fetchTarget{url: url, expected: expectAnything(now)}
	want := sampleModel(t).Count(&corpus.Filter{})
	for _, s := range strategies() {
		for _, r := range measured(t, s, to, options()) {
			if r.form.deflate {
				if r.notMeasured.Code != results.CauseNoCompression {
					t.Errorf("%s: n/a %v", name(r), r.notMeasured)
				}
				continue
			}
			completeness := load.Unresolved
			if s == fetchByID || s == fetchByName {
				completeness = load.Complete
			}
			got, reason := r.Completeness(), reasonOf(r)
			if got != completeness || r.Delivered != want || r.State == nil {
				t.Errorf("%s: %s (%s), %d of %d", name(r), got, reason, r.Delivered, want)
			} else if completeness == load.Complete && r.Expected != want {
				t.Errorf("%s: %d are expected, of %d", name(r), r.Expected, want)
			} else if r.State.Unread > 0 && (s != fetchPaged || r.form.parsed) {
				t.Errorf("%s: %d records were folded unread", name(r), r.State.Unread)
			}
		}
	}
}

// A relay that holds more than a cell may take teaches the ids of what came: those are asked for.
func TestACutDownloadTeachesItsIDs(t *testing.T) {
	t.Parallel()
	const most = 60
	for _, maxLimit := range []int{5000, 20} { // in one page, and in several
		to := &fetchTarget{url: serve(t, reference.Options{MaxLimit: maxLimit}), expected: expectAnything(now)}
		o := options()
		o.Events, o.Adaptive = most, false
		for _, s := range []fetchStrategy{fetchPaged, fetchByID} {
			for _, r := range measured(t, s, to, o) {
				if r.form.deflate {
					continue
				}
				if !r.notMeasured.None() || r.Err != nil || r.Delivered == 0 {
					t.Errorf("%s: %d came, n/a %v, %v", name(r), r.Delivered, r.notMeasured, r.Err)
				}
				if s == fetchByID && (r.Delivered != most || r.Expected != most || r.Missing > 0) {
					t.Errorf("%s: %d of %d came", name(r), r.Delivered, r.Expected)
				}
			}
		}
	}
}

func TestByIDNeedsIDs(t *testing.T) {
	to := &fetchTarget{url: "ws://127.0.0.1:1", expected: expectAnything(now)}
	for _, r := range measured(t, fetchByID, to, options()) {
		if !r.form.deflate && r.notMeasured.Code != results.CauseNoIDs {
			t.Errorf("%s: %v", name(r), r.notMeasured)
		}
	}
}

func TestWhatIsWrongWithARelayIsSaid(t *testing.T) {
	short := *options()
	short.stall, short.Adaptive = 300*time.Millisecond, false
	for _, c := range []struct {
		fault    string
		strategy fetchStrategy
		want     load.Completeness
		reason   string
	}{
		{"drop-results:0.2", fetchGiant, load.Failed, "records never came"},
		{"drop-results:0.2", fetchShardedGiant, load.Failed, "records never came"},
		{"drop-results:0.2", fetchPaged, load.Failed, "records never came"},
		{"drop-results:0.2", fetchShardedPaged, load.Failed, "records never came"},
		{"drop-results:0.2", fetchByID, load.Failed, "records never came"},
		{"drop-results:0.2", fetchByName, load.Failed, "records never came"},
		{"closed-midway", fetchGiant, load.Failed, "closed the REQ"},
		{"closed-midway", fetchShardedGiant, load.Failed, "closed the REQ"},
		{"eose-early", fetchGiant, load.Failed, "records never came"},
		{"ignore-limit", fetchPaged, load.Complete, ""},
		{"ignore-limit", fetchGiant, load.Complete, ""},
		{"half-open", fetchGiant, load.Failed, "in time"},
		{"half-open", fetchByID, load.Failed, "in time"},
		{"half-open", fetchByName, load.Failed, "in time"},
		{"garbage-frames", fetchGiant, load.Complete, ""},
	} {
		t.Run(c.fault+" "+string(c.strategy), func(t *testing.T) {
			t.Parallel()
			to := target(t, serve(t, reference.Options{MaxLimit: 5000}, c.fault), corpus.Filter{})
			o := short
			if c.fault != "half-open" {
				o.stall = time.Minute
			}
			for _, cell := range o.cells(c.strategy) {
				if cell.form.deflate || cell.matrix && (cell.conns != 4 || cell.batch != 50) {
					continue
				}
				r := cell.run(context.Background(), to, &o)
				got, reason := r.Completeness(), reasonOf(r)
				if got != c.want || !strings.Contains(reason, c.reason) {
					t.Errorf("%s: %s: %q", name(r), got, reason)
				}
				f, ok := r.Account.Finding()
				if !ok || f.Verdict != results.Holds(c.want == load.Complete) {
					t.Errorf("%s: %+v", name(r), f)
				}
				if r.unreachable() != (c.fault == "half-open") {
					t.Errorf("%s: unreachable is %v", name(r), r.unreachable())
				}
			}
		})
	}
}

func TestAlteredEventsAreRefusedWhereTheyAreVerified(t *testing.T) {
	t.Parallel()
	to := target(t, serve(t, reference.Options{MaxLimit: 5000}, "id-mismatch"), corpus.Filter{})
	for _, r := range measured(t, fetchGiant, to, options()) {
		if !r.notMeasured.None() {
			continue
		}
		got, reason := r.Completeness(), reasonOf(r)
		switch {
		case r.form.parsed && (got != load.Failed || r.refused == 0 || !strings.Contains(reason, "check of their id")):
			t.Errorf("%s: %s (%s), %d refused", name(r), got, reason, r.refused)
		case !r.form.parsed && got != load.Complete:
			t.Errorf("%s: %s (%s)", name(r), got, reason)
		}
	}
}

func TestStrangersAreCounted(t *testing.T) {
	t.Parallel()
	to := target(t, serve(t, reference.Options{MaxLimit: 5000}, "extra-results"), corpus.Filter{})
	for _, s := range []fetchStrategy{fetchGiant, fetchPaged, fetchByID} {
		if r := options().cells(s)[0].run(context.Background(), to, options()); r.unexpected == 0 || r.Delivered != r.Expected {
			t.Errorf("%s: %d strangers, %d of %d", name(r), r.unexpected, r.Delivered, r.Expected)
		}
	}
}

// A cap on answers is the relay's right: the giant REQ is incomplete, and no fault is found.
func TestACapOnAnswersIsNoFault(t *testing.T) {
	t.Parallel()
	to := target(t, serve(t, reference.Options{MaxLimit: 150}), corpus.Filter{})
	r := options().cells(fetchGiant)[0].run(context.Background(), to, options())
	got, reason := r.Completeness(), reasonOf(r)
	if got != load.Failed || !r.Excused || reason != "cap 150" {
		t.Errorf("%s: %q, excused %v", got, reason, r.Excused)
	}
	if f, ok := r.Account.Finding(); !ok || f.Verdict != results.Stated {
		t.Errorf("%+v", f)
	}
	sharded := options().cells(fetchShardedGiant)[0].run(context.Background(), target(t, serve(t, reference.Options{MaxLimit: 90}), corpus.Filter{}), options())
	if got, reason := sharded.Completeness(), reasonOf(sharded); got != load.Failed || !sharded.Excused || reason != "cap" {
		t.Errorf("sharded: %s: %q, excused %v", got, reason, sharded.Excused)
	}
	paged := options().cells(fetchPaged)[0].run(context.Background(), to, options())
	if got, reason := paged.Completeness(), reasonOf(paged); got != load.Complete {
		t.Errorf("paged: %s: %s", got, reason)
	}
}

// What a second holds beyond the cap cannot be asked for by until. That is no fault; what is
// missing elsewhere is.
func TestASecondBeyondTheCapIsNoFault(t *testing.T) {
	t.Parallel()
	crowded, seconds := 0, map[int64]int{}
	c := sampleModel(t).Corpus()
	for _, i := range sampleModel(t).Query(&corpus.Filter{}) {
		at := c.Entry(i).CreatedAt
		if seconds[at]++; seconds[at] > 1 && !sampleModel(t).Optional(i) {
			crowded++
		}
	}
	if crowded == 0 {
		t.Fatal("no second of the corpus holds two events")
	}
	for _, s := range []fetchStrategy{fetchPaged, fetchShardedPaged} {
		for _, faults := range [][]string{nil, {"drop-results:0.2"}} {
			to := target(t, serve(t, reference.Options{MaxLimit: 1}, faults...), corpus.Filter{})
			to.limits = fetchLimits{Limits: client.Limits{Events: 1}}
			r := options().cells(s)[0].run(context.Background(), to, options())
			got, reason := r.Completeness(), reasonOf(r)
			want := results.Stated
			if faults != nil {
				want = results.Failed
			}
			if f, ok := r.Account.Finding(); !ok || f.Verdict != want || f.Cause != results.CauseFullSeconds || got != load.Failed || r.Missing < 1 {
				t.Errorf("%s, %q: %s (%s), %d missing, %+v", s, faults, got, reason, r.Missing, f)
			}
		}
	}
}

func TestACellThatIsCutSaysSo(t *testing.T) {
	t.Parallel()
	url := serve(t, reference.Options{MaxLimit: 5000})
	o := options()
	o.Events = 120
	for _, s := range strategies() {
		for _, r := range measured(t, s, target(t, url, corpus.Filter{}), o) {
			if !r.notMeasured.None() {
				continue
			}
			got, reason := r.Completeness(), reasonOf(r)
			if got != load.Capped || !strings.Contains(reason, "--cell-events 120") || r.Delivered < 30 || r.Delivered > sampleModel(t).Corpus().Len() {
				t.Errorf("%s: %s (%s), %d came", name(r), got, reason, r.Delivered)
			}
		}
	}
}

// A time in which nobody could have sent anything blames nobody; a relay that answers nothing
// afterwards either is at fault.
func TestACutBeforeAnythingCameBlamesOnlyARelayThatIsSilent(t *testing.T) {
	t.Parallel()
	o := options()
	o.Time = time.Nanosecond
	able, cut := serve(t, reference.Options{MaxLimit: 5000}), 0
	for _, s := range strategies() {
		for _, r := range measured(t, s, target(t, able, corpus.Filter{}), o) {
			got, reason := r.Completeness(), reasonOf(r)
			if !r.notMeasured.None() || got == load.Complete { // on a busy machine all may come first
				continue
			}
			cut++
			if _, stated := r.Account.Finding(); stated || got != load.Capped || reason != "cut by --cell-time 1ns" || r.unreachable() {
				t.Errorf("%s: %s (%s), a verdict: %v, unreachable: %v", name(r), got, reason, stated, r.unreachable())
			}
		}
	}
	if cut == 0 {
		t.Error("nothing was cut")
	}
	o.Time, o.stall = 50*time.Millisecond, 300*time.Millisecond
	for _, s := range []fetchStrategy{fetchGiant, fetchByID, fetchByName} {
		r := o.cells(s)[0].run(context.Background(), target(t, serve(t, reference.Options{}, "half-open"), corpus.Filter{}), o)
		got, reason := r.Completeness(), reasonOf(r)
		if f, ok := r.Account.Finding(); !ok || f.Verdict != results.Failed || got != load.Failed || !strings.Contains(reason, "in time") || !strings.Contains(reason, "does not answer") || !r.unreachable() {
			t.Errorf("%s: %s (%s), %+v", name(r), got, reason, f)
		}
	}
}

// A relay that answers a REQ for one event, and none for many, is at fault though the time of the
// cell is over before it is given up; one whose first event comes later than that is cut.
func TestACutWaitsForTheFirstEvent(t *testing.T) {
	t.Parallel()
	for _, never := range []bool{false, true} {
		o := options()
		if o.Time = time.Millisecond; never {
			o.stall = 3 * time.Second // in which a busy machine gets through a handshake
		}
		url := referencetest.Between{Up: func(m []byte) {
			switch {
			case !strings.HasPrefix(string(m), `["REQ"`) || strings.Contains(string(m), `"limit":1}`):
			case never:
				harmless := `["CLOSE","none"]`
				copy(m, harmless+strings.Repeat(" ", len(m)-len(harmless)))
			default:
				time.Sleep(200 * time.Millisecond)
			}
		}}.Serve(t, serve(t, reference.Options{MaxLimit: 5000}))
		for _, s := range []fetchStrategy{fetchGiant, fetchPaged, fetchShardedGiant, fetchShardedPaged} {
			t.Run(fmt.Sprintf("%s, %v", s, never), func(t *testing.T) {
				t.Parallel()
				r := o.cells(s)[0].run(context.Background(), target(t, url, corpus.Filter{}), o)
				f, judged := r.Account.Finding()
				if judged != never || never != (f.Verdict == results.Failed && (f.Cause == results.CauseEnded || f.Cause == results.WhyTime)) || never != (r.Completeness() == load.Failed) || r.unreachable() {
					t.Errorf("%s (%s), %d came, %+v", r.Completeness(), reasonOf(r), r.Delivered, f)
				}
			})
		}
	}
}

// A relay may ignore NEG-OPEN, and is waited for outside the cell's time.
func TestARelayWithoutNIP77IsNotMeasuredByIt(t *testing.T) {
	t.Parallel()
	ignoring := referencetest.Between{Up: func(m []byte) {
		if strings.HasPrefix(string(m), `["NEG-OPEN"`) {
			harmless := `["CLOSE","none"]`
			copy(m, harmless+strings.Repeat(" ", len(m)-len(harmless)))
		}
	}}.Serve(t, serve(t, reference.Options{MaxLimit: 5000}))
	o := options()
	o.Time, o.stall = 200*time.Millisecond, 5*time.Second
	to := target(t, ignoring, corpus.Filter{})
	for _, c := range o.cells(fetchByName)[:2] {
		r := c.run(context.Background(), to, o)
		if r.notMeasured.Code != results.CauseNoNIP77 || !strings.Contains(r.notMeasured.Texts["text"], "does not answer NEG-OPEN") {
			t.Errorf("%s: n/a %v, error %v", name(r), r.notMeasured, r.Err)
		}
	}
	if r := o.cells(fetchGiant)[0].run(context.Background(), to, options()); !r.notMeasured.None() || r.Delivered == 0 {
		t.Errorf("giant: n/a %v, %d came", r.notMeasured, r.Delivered)
	}
}

// Each lost connection makes the page smaller, down to where it fits into what may wait.
func TestPagesShrinkForARelayThatDropsWhomItWaitsFor(t *testing.T) {
	t.Parallel()
	const events = 800
	to := &fetchTarget{url: referencetest.Holding(t, large(events, 1000), reference.Options{NoVerify: true, MaxLimit: 5000}, "kill-pending:0.2"), expected: expectAnything(now)}
	o := options()
	o.Page = 20_000
	r := o.cells(fetchPaged)[0].run(context.Background(), to, o)
	if got, reason := r.Completeness(), reasonOf(r); got != load.Unresolved || r.Delivered != events {
		t.Errorf("%s (%s), %d of %d came", got, reason, r.Delivered, events)
	}
}

// The cursor goes by seconds: one that holds more than a page is read whole where the relay sends
// as many, and else named.
func TestASecondThatFillsAPageIsReadWhole(t *testing.T) {
	t.Parallel()
	const events = 600
	busy := large(events, 100)
	for i := range busy {
		busy[i].CreatedAt = now
	}
	for most, want := range map[int]int{5000: events, 250: 250} {
		to := &fetchTarget{url: referencetest.Holding(t, busy, reference.Options{NoVerify: true, MaxLimit: most}), expected: expectAnything(now), limits: fetchLimits{Limits: client.Limits{Events: most}}}
		o := options()
		o.Page = 100
		for _, s := range []fetchStrategy{fetchPaged, fetchShardedPaged} {
			r := o.cells(s)[0].run(context.Background(), to, o)
			got, reason := r.Completeness(), reasonOf(r)
			if got != load.Unresolved || r.Delivered != want || strings.HasPrefix(reason, "seconds") != (want < events) {
				t.Errorf("%s of at most %d: %s (%s), %d of %d came", s, most, got, reason, r.Delivered, want)
			}
		}
	}
}

// A relay that drops whom it has to wait for ends a giant REQ; pages, each of which fits into what
// may wait, come through.
func TestARelayThatDropsSlowReadersIsReported(t *testing.T) {
	t.Parallel()
	const events, size = 300, 60_000
	url := slowly(t, referencetest.Holding(t, large(events, size), reference.Options{NoVerify: true, MaxLimit: 5000}, "kill-pending:1"))
	to := &fetchTarget{url: url, expected: expectAnything(now)}
	o := options()
	o.Page = 5
	giant, paged := o.cells(fetchGiant)[0].run(context.Background(), to, o), o.cells(fetchPaged)[0].run(context.Background(), to, o)
	if got, reason := giant.Completeness(), reasonOf(giant); got != load.Failed || giant.Delivered >= events || giant.Requests.Unfinished != 1 {
		t.Errorf("giant: %s (%s), %d came, %+v", got, reason, giant.Delivered, giant.Requests)
	}
	if got, reason := paged.Completeness(), reasonOf(paged); got != load.Unresolved || paged.Delivered != events {
		t.Errorf("paged: %s (%s), %d came", got, reason, paged.Delivered)
	}
}

func TestCellsBeyondTheRelaysLimitsAreNotMeasured(t *testing.T) {
	t.Parallel()
	to := target(t, serve(t, reference.Options{MaxSubscriptions: 4, MaxLimit: 100}), corpus.Filter{})
	to.limits = fetchLimits{Limits: client.Limits{Subscriptions: 4, Events: 100}, from: results.LimitsTold}
	for _, r := range measured(t, fetchByID, to, options()) {
		beyond := results.Reason{}
		limited := func(code string, most float64) results.Reason {
			return results.Reason{Code: code, Counts: map[string]float64{"most": most}, Texts: map[string]string{"source": results.LimitsTold}}
		}
		switch {
		case r.form.deflate:
			continue
		case r.adaptive: // it keeps to them by itself
		case r.inFlight > 4:
			beyond = limited(results.CauseSubscriptionLimit, 4)
		case r.batch > 100:
			beyond = limited(results.CauseEventLimit, 100)
		}
		if !reflect.DeepEqual(r.notMeasured, beyond) {
			t.Errorf("%s: n/a %v, want %v", name(r), r.notMeasured, beyond)
		}
		if got, reason := r.Completeness(), reasonOf(r); r.notMeasured.None() && got != load.Complete {
			t.Errorf("%s: %s (%s)", name(r), got, reason)
		}
	}
	for _, s := range []fetchStrategy{fetchPaged, fetchByName} {
		r := options().cells(s)[0].run(context.Background(), to, options())
		if got, reason := r.Completeness(), reasonOf(r); !r.notMeasured.None() || got != load.Complete {
			t.Errorf("%s: %v, %s (%s)", name(r), r.notMeasured, got, reason)
		}
	}
}

func TestEndingTheRunEndsACellAtOnce(t *testing.T) {
	to := target(t, serve(t, reference.Options{}, "half-open"), corpus.Filter{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, s := range strategies() {
		if r := options().cells(s)[1].run(ctx, to, options()); r.Err == nil {
			t.Errorf("%s: no error", name(r))
		}
	}
}

func TestEachCellHasLabelsOfItsOwn(t *testing.T) {
	o := options()
	o.Full = true
	seen := map[string]bool{}
	for _, s := range strategies() {
		for _, c := range o.cells(s) {
			labels := fmt.Sprint(c.labels())
			if seen[labels] {
				t.Errorf("%s twice", labels)
			}
			seen[labels] = true
		}
	}
	for _, want := range []string{
		"map[batch:125 connections:16 encoding:deflate form:parsed in-flight:20 strategy:by-id]", "map[form:raw strategy:giant]",
		"map[batch:125 connections:4 form:raw in-flight:adaptive strategy:by-id]",
	} {
		if !seen[want] {
			t.Errorf("no cell has the labels %s", want)
		}
	}
}

// name is a cell for messages.
func name(r *fetchResult) string { return fmt.Sprint(r.labels()) }

// reasonOf is why a cell is not complete, for messages and comparing.
func reasonOf(r *fetchResult) string {
	switch {
	case r.Cut != "":
		return "cut by " + r.Cut
	case r.Err != nil:
		return r.Err.Error()
	case r.Why.Code == results.CauseCapped && r.Why.Counts["events"] > 0:
		return fmt.Sprint("cap ", r.Why.Counts["events"])
	case !r.Why.None():
		return r.Why.Code
	case r.Missing > 0:
		return fmt.Sprintf("%d of %d records never came", r.Missing, r.Expected)
	}
	return ""
}
