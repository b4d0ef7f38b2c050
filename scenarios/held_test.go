package scenarios

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness/load"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/relays/scripted"
)

// TestASampleIsDrawnFromEachPart of the corpus, and the rest is all else.
func TestASampleIsDrawnFromEachPart(t *testing.T) {
	t.Parallel()
	const n, size = 253, 100
	q := holding{sample: size, draw: rand.New(rand.NewPCG(1, 2)).IntN}
	drawn, rest := q.parts(n)
	first := true
	for k, i := range drawn {
		if i < k*n/size || i >= (k+1)*n/size {
			t.Errorf("%d in part %d", i, k)
		}
		first = first && i == k*n/size
	}
	both := slices.Concat(drawn, rest)
	slices.Sort(both)
	if len(drawn) != size || len(slices.Compact(both)) != n || len(rest) != n-size || first {
		t.Errorf("drawn %v, rest %v", drawn, rest)
	}
}

// noted is a scripted relay that was given all notes.
func noted(t *testing.T, notes *corpus.Corpus, s scripted.Script) (*scripted.Relay, *load.Ledger) {
	t.Helper()
	r, l := scripted.Serve(t, s), load.NewLedger(notes.Len())
	p := load.Publisher{URL: r.URL, Corpus: notes, Conns: 1, Window: 20, Stall: time.Minute, Ledger: l}
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

func question(notes *corpus.Corpus, url string, against []int) *holding {
	return &holding{url: url, stall: time.Minute, corpus: notes, against: against, draw: func(int) int { return 0 }}
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
		{name: "one that ends answers half-way", script: scripted.Script{Faults: []string{"closed-midway"}}, holds: n, reconciled: true},
		{name: "one that closes every third REQ", script: scripted.Script{CloseEvery: 3}, holds: n, reconciled: true},
		{name: "one that hangs up", script: scripted.Script{HangUpAfter: 25}, holds: n, reconciled: true},
		{name: "one that sends some twice", script: scripted.Script{RepeatEvery: 20}, holds: n, reconciled: true, duplicates: 3},
		{name: "one that sends others", script: scripted.Script{AlterEvery: 20, Alter: map[string]string{"id": `"` + fmt.Sprintf("%064x", 9) + `"`}}, holds: n, reconciled: true, strays: 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, _ := noted(t, notes, test.script)
			h, err := question(notes, r.URL, all(notes)).find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(h.events) != test.holds || !slices.IsSorted(h.events) || len(h.unexpected) != test.unknown || len(h.unreturned) != test.unreturned || len(h.unnamed) != test.unnamed ||
				h.reconciled != test.reconciled || h.asked != n || h.Stats.Unexpected != test.strays || h.Stats.Elsewhere != test.elsewhere {
				t.Errorf("%+v, %+v", h, h.Stats)
			}
			if h.disagrees() != (test.unknown+test.unreturned+test.unnamed > 0) || h.Stats.Duplicates != test.duplicates {
				t.Errorf("%+v", h.Stats)
			}
			var broken *negentropy.ProtocolError
			if errors.As(h.trouble, &broken) != (test.breach != "") || broken != nil && broken.Code != test.breach {
				t.Errorf("trouble: %v", h.trouble)
			}
		})
	}
}

// TestAnEventOnBothSidesIsNoneOfTheRelaysAlone: it names the 21st note as its own, in a range of
// time that ends before it, and the ten that lie there not at all.
func TestAnEventOnBothSidesIsNoneOfTheRelaysAlone(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 30)
	until, bound := uint64(notes.Entry(10).CreatedAt)+1, []byte(nil) // as varint of base 128, most significant digit first
	for ; until > 0; until >>= 7 {
		digit := byte(until & 127)
		if len(bound) > 0 {
			digit |= 128
		}
		bound = append([]byte{digit}, bound...)
	}
	r, _ := noted(t, notes, scripted.Script{NegReply: fmt.Sprintf("61%x000201%s", bound, notes.Entry(20).ID)})
	h, err := question(notes, r.URL, all(notes)).find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(h.twice) != 1 || !h.twice[notes.Entry(20).ID] || len(h.unexpected) != 0 || len(h.unnamed) != 10 || len(h.events) != 30 || !h.disagrees() {
		t.Errorf("%+v, %v", h, h.trouble)
	}
}

// TestWhatComesLaterIsLate, and by how much is known; only what has to be there is asked for again.
func TestWhatComesLaterIsLate(t *testing.T) {
	t.Parallel()
	const n, must = 40, 30
	notes := scripted.Notes(t, n)
	ids := make([]corpus.ID, n)
	for i := range ids {
		ids[i] = notes.Entry(i).ID
	}
	for _, times := range []int{0, 1, 1000} {
		r, _ := noted(t, notes, scripted.Script{HideTimes: times})
		seen, began := 0, time.Now()
		a := client.Lookup{URL: r.URL, Stall: time.Minute, OnEvent: func(*client.Event) { seen++ }, Must: func(k int) bool { return k < must }}
		got, err := a.Run(t.Context(), ids)
		if err != nil {
			t.Fatal(err)
		}
		came := 0
		for k, there := range got.Came {
			if there && k >= must && times > 0 {
				t.Errorf("event %d is asked for again", k)
			}
			if there {
				came++
			}
		}
		want, late := must, must
		switch times {
		case 0:
			want, late = n, 0
		case 1000:
			want, late = 0, 0
		}
		if came != want || seen != want || got.Late != late || (got.LateBy > 0) != (late > 0) || got.LateBy > time.Since(began) {
			t.Errorf("left out %d times: %d came, %d seen, %d late by %v", times, came, seen, got.Late, got.LateBy)
		}
	}
}

// TestWhatIsStoredLateIsNoLie: a relay that acknowledges before it stores is reconciled with too
// early, and names what it has then.
func TestWhatIsStoredLateIsNoLie(t *testing.T) {
	t.Parallel()
	const n = 40
	notes := scripted.Notes(t, n)
	r, _ := noted(t, notes, scripted.Script{StoreAfter: 300 * time.Millisecond, Honest: n / 2})
	q := question(notes, r.URL, all(notes)[:n/2])
	q.must = func(int) bool { return true }
	h, err := q.find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(h.events) != n || h.disagrees() || h.Stats.Unexpected != 0 || !h.reconciled {
		t.Errorf("%+v, %+v", h, h.Stats)
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
			r, _ := noted(t, notes, test.script)
			q := question(notes, r.URL, all(notes))
			q.sample = sample
			h, err := q.find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if h.asked != test.asked || len(h.events) != test.holds {
				t.Errorf("asked for %d, holds %d", h.asked, len(h.events))
			}
		})
	}
}

// TestARelayThatDoesNotAnswerHoldsNothingKnown: an error, and no verdict on what it holds.
func TestARelayThatDoesNotAnswerHoldsNothingKnown(t *testing.T) {
	t.Parallel()
	notes := scripted.Notes(t, 20)
	for _, s := range []scripted.Script{{CloseEvery: 1}, {IgnoreEvery: 1}, {Pings: true}, {NoticesEvery: 10 * time.Millisecond}, {Giant: 5 << 20}} {
		r, _ := noted(t, notes, s)
		q := question(notes, r.URL, all(notes))
		q.stall = time.Second
		if h, err := q.find(t.Context()); err == nil {
			t.Errorf("%+v: %+v", s, h)
		}
	}
}
