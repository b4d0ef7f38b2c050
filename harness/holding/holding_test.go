package holding_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/holding"
	"relaybench/harness/negentropy"
	"relaybench/harness/pull"
	"relaybench/harness/scripted"
)

// filled is a scripted relay that was given all notes.
func filled(t *testing.T, notes *corpus.Corpus, s scripted.Script) (*scripted.Relay, *harness.Ledger) {
	t.Helper()
	r, l := scripted.Serve(t, s), harness.NewLedger(notes.Len())
	p := harness.Publisher{URL: r.URL, Corpus: notes, Conns: 1, Window: 20, Stall: time.Minute, Ledger: l}
	if _, err := p.Publish(t.Context(), all(notes)); err != nil {
		t.Fatal(err)
	}
	return r, l
}

func all(notes *corpus.Corpus) []int {
	list := make([]int, notes.Len())
	for i := range list {
		list[i] = i
	}
	return list
}

func question(notes *corpus.Corpus, url string, against []int) *holding.Question {
	return &holding.Question{URL: url, Stall: time.Minute, Corpus: notes, Against: against, Draw: func(int) int { return 0 }}
}

// list is a NEG-MSG that names n ids of nothing, over the whole range.
func list(n int) string {
	payload := fmt.Sprintf("61000002%02x", n)
	for i := range n {
		payload += fmt.Sprintf("%064x", i+1)
	}
	return payload
}

// TestWhatWasReturnedIsBelieved, whatever was named.
func TestWhatWasReturnedIsBelieved(t *testing.T) {
	t.Parallel()
	const n = 60
	notes := scripted.Notes(t, n)
	for _, test := range []struct {
		name                                  string
		script                                scripted.Script
		holds, unknown, unreturned, unnamed   int
		reconciled                            bool
		breach                                negentropy.Code
		strays, elsewhere, duplicates, leftBy int64
	}{
		{name: "an honest one", holds: n, reconciled: true},
		{name: "one that loses a tenth", script: scripted.Script{LoseEvery: 10}, holds: 54, reconciled: true},
		{name: "one that names all and returns nothing", script: scripted.Script{Faults: []string{"drop-results:1"}}, holds: 0, unreturned: n, reconciled: true},
		{name: "one that names nothing and returns all", script: scripted.Script{NegReply: list(0)}, holds: n, unnamed: n, reconciled: true},
		{name: "one that names ids of nothing", script: scripted.Script{NegReply: list(7)}, holds: n, unknown: 7, unnamed: n, reconciled: true},
		{name: "one that breaks NIP-77", script: scripted.Script{NegReply: "zz"}, holds: n, breach: negentropy.NotHex},
		{name: "one without NIP-77", script: scripted.Script{NegError: "unsupported"}, holds: n},
		{name: "one that answers elsewhere", script: scripted.Script{SubID: "zzz"}, holds: 0, unreturned: n, reconciled: true, strays: n, elsewhere: n},
		{name: "one that sends some twice", script: scripted.Script{RepeatEvery: 20}, holds: n, reconciled: true, duplicates: 3},
		{name: "one that sends others", script: scripted.Script{AlterEvery: 20, Alter: map[string]string{"id": `"` + fmt.Sprintf("%064x", 9) + `"`}}, holds: n, reconciled: true, strays: 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, _ := filled(t, notes, test.script)
			h, err := question(notes, r.URL, all(notes)).Find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(h.Events) != test.holds || !slices.IsSorted(h.Events) || len(h.Unknown) != test.unknown || len(h.Unreturned) != test.unreturned || len(h.Unnamed) != test.unnamed ||
				h.Reconciled != test.reconciled || h.Asked != n || h.Stats.Strays != test.strays || h.Stats.Elsewhere != test.elsewhere {
				t.Errorf("%+v, %+v", h, h.Stats)
			}
			if h.Disagrees() != (test.unknown+test.unreturned+test.unnamed > 0) || h.Stats.Duplicates != test.duplicates {
				t.Errorf("%+v", h.Stats)
			}
			var broken *negentropy.ProtocolError
			if errors.As(h.Trouble, &broken) != (test.breach != "") || broken != nil && broken.Code != test.breach {
				t.Errorf("trouble: %v", h.Trouble)
			}
		})
	}
}

// TestWhatComesLaterIsLate, and by how much is known.
func TestWhatComesLaterIsLate(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 40)
	r := scripted.Serve(t, scripted.Script{HideFor: 500 * time.Millisecond})
	p := harness.Publisher{URL: r.URL, Corpus: notes, Conns: 1, Window: 40, Stall: time.Minute, Ledger: harness.NewLedger(40)}
	began := time.Now()
	if _, err := p.Publish(t.Context(), all(notes)); err != nil {
		t.Fatal(err)
	}
	ids := make([]corpus.ID, 40)
	for i := range ids {
		ids[i] = notes.Entry(i).ID
	}
	seen := 0
	a := holding.Asking{URL: r.URL, Stall: time.Minute, OnEvent: func(*pull.Event) { seen++ }, Must: func(k int) bool { return k < 30 }}
	got, err := a.Run(t.Context(), ids)
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	if took > 2*time.Second {
		t.Skipf("the machine took %v, and the events may have been there at once", took)
	}
	for k, came := range got.Came[:30] {
		if !came {
			t.Errorf("event %d is not there", k)
		}
	}
	if got.Late == 0 || got.LateBy <= 0 || got.LateBy > took || seen < 30 {
		t.Errorf("%d late by %v of %v, %d seen", got.Late, got.LateBy, took, seen)
	}
}

// TestANameIsProvedBySample where there are more than are asked for, and the whole is asked for
// where the sample says otherwise.
func TestANameIsProvedBySample(t *testing.T) {
	t.Parallel()
	const n, sample = 230, 100
	notes := scripted.Notes(t, n)
	for _, test := range []struct {
		name   string
		script scripted.Script
		asked  int
		holds  int
	}{
		{"an honest one", scripted.Script{}, sample, n},
		{"one that names nothing", scripted.Script{NegReply: list(0)}, n, n},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, _ := filled(t, notes, test.script)
			q := question(notes, r.URL, all(notes))
			q.Sample = sample
			h, err := q.Find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if h.Asked != test.asked || len(h.Events) != test.holds {
				t.Errorf("asked for %d, holds %d", h.Asked, len(h.Events))
			}
		})
	}
}

// TestARelayThatDoesNotAnswerHoldsNothingKnown: an error, and no verdict on what it holds.
func TestARelayThatDoesNotAnswerHoldsNothingKnown(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 20)
	for _, s := range []scripted.Script{{CloseEvery: 1}, {HangUpAfter: 5}, {IgnoreEvery: 1}, {Pings: true}, {NoticesEvery: 10 * time.Millisecond}, {Giant: 5 << 20}} {
		r, _ := filled(t, notes, s)
		q := question(notes, r.URL, all(notes))
		q.Stall = time.Second
		if h, err := q.Find(t.Context()); err == nil {
			t.Errorf("%+v: %+v", s, h)
		}
	}
}
