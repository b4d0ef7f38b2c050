package download_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness/download"
	"relaybench/relays/reference"
)

// TestEveryFaultOfARelayEndsAsItShould reads a relay alone: what is wrong must not be mistaken for
// an end, and what is forged must not be kept.
func TestEveryFaultOfARelayEndsAsItShould(t *testing.T) {
	t.Parallel()
	type outcome struct {
		fault   string
		missing int    // events that may not come
		extra   int    // genuine ones that may come and were not stored there
		failure string // of the download; "" where it must come to its end
		note    string
	}
	cases := []outcome{
		{fault: "ack-without-store:0.5"}, // strikes what is published, as the next ones without a word on answers
		{fault: "notice-throttle:10/s"},
		{fault: "slow-ok:5"},
		{fault: "die-after:5"},
		{fault: "no-verify"},
		{fault: "drop-results:0.3", missing: 100_000}, // nobody can know
		{fault: "extra-results", extra: 1},
		{fault: "wrong-order"},
		{fault: "ignore-limit"},
		{fault: "eose-early"},
		{fault: "closed-midway", missing: 2, note: "it is asked again"},
		{fault: "half-open", failure: "connecting to "},
		{fault: "garbage-frames"},
		{fault: "id-mismatch", failure: "are forged or malformed"},
		{fault: "kill-pending:0.05"},
	}
	for kind := range strings.SplitSeq(reference.FaultNames(), ", ") {
		name, _, _ := strings.Cut(kind, ":")
		if !slices.ContainsFunc(cases, func(c outcome) bool { return strings.HasPrefix(c.fault, name) }) {
			t.Errorf("%s is not tested", name)
		}
	}
	events := genuine()
	for _, c := range cases {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			var said notes
			o := quick(serve(t, events, reference.Options{MaxLimit: 90}, c.fault))
			o.Note = said.add
			if c.fault == "half-open" {
				o.Stall, o.Attempts = 300*time.Millisecond, 2
			}
			done, err := download.Run(context.Background(), t.TempDir(), o)
			if c.failure != "" {
				if err == nil || !strings.Contains(err.Error(), c.failure) {
					t.Fatalf("%+v, %v", done, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(said.String(), c.note) {
				t.Errorf("%q is not said in:\n%s", c.note, &said)
			}
			r := done.Relays[0]
			if r.Outcome != download.All {
				t.Errorf("%+v", r)
			}
			got := read(t, done.File) // and every event in it is genuine
			stored := map[corpus.ID]bool{}
			for i := range events {
				stored[events[i].ID] = true
			}
			strangers := 0
			for i := range got {
				if !stored[got[i].ID] {
					strangers++
				}
			}
			missing := len(events) - (len(got) - strangers)
			if strangers > c.extra || missing > c.missing || missing > 0 && c.missing < 100_000 && r.Truncated == 0 {
				t.Errorf("%d strangers came and %d events are missing; %+v\n%s", strangers, missing, r, &said)
			}
		})
	}
}

// TestOneHonestRelayMakesUpForEveryFault reads a relay with a fault beside an honest one.
func TestOneHonestRelayMakesUpForEveryFault(t *testing.T) {
	t.Parallel()
	events := genuine()
	honest := serve(t, events, reference.Options{})
	for _, fault := range []string{"drop-results:0.5", "id-mismatch", "closed-midway", "wrong-order", "half-open", "eose-early", "garbage-frames"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			o := quick(serve(t, events, reference.Options{}, fault), honest)
			if fault == "half-open" {
				o.Stall, o.Attempts = 2*time.Second, 1
			}
			done, err := download.Run(context.Background(), t.TempDir(), o)
			if err != nil {
				t.Fatal(err)
			}
			sameEvents(t, read(t, done.File), events)
		})
	}
}

// TestAnswersThatNeverEndWellStillAddUp reads a relay each of whose answers ends in CLOSED: it must
// not be read beyond what is wanted.
func TestAnswersThatNeverEndWellStillAddUp(t *testing.T) {
	t.Parallel()
	events := genuine()
	o := quick(serve(t, events, reference.Options{MaxLimit: 40}, "closed-midway"))
	o.Limit = 100
	done, err := download.Run(context.Background(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r := done.Relays[0]; r.Outcome != download.Enough || done.Events >= int64(len(events))/2 {
		t.Errorf("%d events, %+v", done.Events, r)
	}
	sameEvents(t, newestOf(read(t, done.File), 100), newestOf(events, 100))
}
