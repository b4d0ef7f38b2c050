package negentropy

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// exchange is what a full reconciliation came to.
type exchange struct {
	have, need []ID
	rounds     int
	up, down   int // bytes
}

// run lets the two sides talk until the initiator is done.
func run(tb testing.TB, ours Storage, ourLimit int, answer func(message []byte) []byte) exchange {
	tb.Helper()
	x := exchange{have: []ID{}, need: []ID{}}
	n := NewInitiator(ours, ourLimit,
		func(ids []ID) { x.have = append(x.have, ids...) },
		func(ids []ID) { x.need = append(x.need, ids...) })
	message := n.Open(nil)
	named, idle := 0, 0
	for !n.Done() {
		if ourLimit > 0 && len(message) > max(ourLimit, MinFrameLimit) {
			tb.Fatalf("the initiator's message has %d bytes, the limit is %d", len(message), ourLimit)
		}
		if x.rounds++; x.rounds > 100_000 {
			tb.Fatal("no end")
		}
		x.up += len(message)
		reply := answer(message)
		x.down += len(reply)
		var err error
		if message, err = n.Next(message[:0], reply); err != nil {
			tb.Fatalf("round %d: %v", x.rounds, err)
		}
		if idle++; len(x.have)+len(x.need) > named {
			named, idle = len(x.have)+len(x.need), 0
		}
		if idle > maxIdle/5 { // what the client takes for no progress is far from what happens between honest peers
			tb.Fatalf("round %d: no id was named for %d rounds", x.rounds, idle)
		}
	}
	sortedIDs(x.have)
	sortedIDs(x.need)
	return x
}

// responding makes an answer function of our responder.
func responding(tb testing.TB, s Storage, limit int) func([]byte) []byte {
	r := NewResponder(s, limit)
	var reply []byte
	return func(message []byte) []byte {
		var err error
		if reply, err = r.Next(reply[:0], message); err != nil {
			tb.Fatal(err)
		}
		if limit > 0 && len(reply) > max(limit, MinFrameLimit) {
			tb.Fatalf("the responder's message has %d bytes, the limit is %d", len(reply), limit)
		}
		return reply
	}
}

func checkExchange(t *testing.T, x exchange, s scenario) {
	t.Helper()
	if want := difference(s.ours, s.theirs); !slices.Equal(x.have, want) {
		t.Errorf("have: %d ids, %d wanted", len(x.have), len(want))
	}
	if want := difference(s.theirs, s.ours); !slices.Equal(x.need, want) {
		t.Errorf("need: %d ids, %d wanted", len(x.need), len(want))
	}
}

func TestBothRolesFindTheExactDifferenceAtAnyLimit(t *testing.T) {
	limits := []int{0, 1, 200, 4095, 4096, 4097, 5000, 8191, 20_000, 60_000, 100_000}
	for _, n := range []int{0, 1, 31, 32, 33, 1500} {
		for _, s := range scenarios(1, n) {
			ours, theirs := sealed(t, s.ours), sealed(t, s.theirs)
			live := new(Live)
			for i := range s.theirs {
				live.Insert(s.theirs[i].time, &s.theirs[i].id)
			}
			t.Run(fmt.Sprintf("%s/%d", s.name, n), func(t *testing.T) {
				for i, up := range limits {
					checkExchange(t, run(t, ours, up, responding(t, theirs, 0)), s)
					checkExchange(t, run(t, ours, 0, responding(t, theirs, up)), s)
					down := limits[(i*7+n)%len(limits)]
					checkExchange(t, run(t, ours, up, responding(t, live.Snapshot(), down)), s)
				}
			})
		}
	}
}

func TestLargeScatteredDifferencesWithTheLowestLimit(t *testing.T) {
	for _, s := range scenarios(2, 30_000)[:4] {
		t.Run(s.name, func(t *testing.T) {
			x := run(t, sealed(t, s.ours), 1, responding(t, sealed(t, s.theirs), 1))
			checkExchange(t, x, s)
			t.Logf("%d rounds, %d bytes up, %d down", x.rounds, x.up, x.down)
		})
	}
}

// A responder that forgets what is settled and always takes everything from the end of its last
// range in again, as others do.
func TestIDsAreNamedOnceThoughThePeerComesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, s := range scenarios(3, 2000) {
		ours, theirs := sealed(t, s.ours), sealed(t, s.theirs)
		x := run(t, ours, 0, func(message []byte) []byte {
			reply, err := NewResponder(theirs, 0).Next(nil, message)
			if err != nil {
				t.Fatal(err)
			}
			if r.IntN(3) > 0 {
				return reply
			}
			// Cut after some range and put everything that follows into a fingerprint or a list,
			// settled or not.
			w := newWriter(theirs, 0)
			d, lo := decode(reply), 0
			end := 1
			for d.next() && r.IntN(6) > 0 {
				end = d.pos
				lo = theirs.Search(lo, theirs.Len(), d.upper)
				w.last, w.end = d.upper.Timestamp, d.upper
			}
			w.out = reply[:end]
			if w.end.compare(&infinite) == 0 {
				return reply
			}
			if r.IntN(2) == 0 {
				w.list(lo, theirs.Len(), &infinite)
			} else {
				w.rest(lo)
			}
			return w.out
		})
		t.Run(s.name, func(t *testing.T) { checkExchange(t, x, s) })
	}
}

func TestIdenticalSetsTakeOneRound(t *testing.T) {
	s := sealed(t, makeItems(rand.New(rand.NewPCG(1, 1)), 5000, 1000))
	if x := run(t, s, 0, responding(t, s, 0)); x.rounds != 1 || x.down != 1 {
		t.Errorf("%d rounds, %d bytes down", x.rounds, x.down)
	}
}

func TestWarmExchangesDoNotAllocate(t *testing.T) {
	for _, s := range scenarios(4, 5000)[:4] {
		ours, theirs := sealed(t, s.ours), sealed(t, s.theirs)
		live := new(Live)
		for i := range s.theirs {
			live.Insert(s.theirs[i].time, &s.theirs[i].id)
		}
		have, need := 0, 0
		n := NewInitiator(ours, 8192, func(ids []ID) { have += len(ids) }, func(ids []ID) { need += len(ids) })
		for _, storage := range []Storage{theirs, live.Snapshot()} {
			r := NewResponder(storage, 8192)
			var message, reply []byte
			exchange := func() {
				n.Reset(ours)
				r.Reset(storage)
				message = n.Open(message[:0])
				for !n.Done() {
					reply, _ = r.Next(reply[:0], message)
					message, _ = n.Next(message[:0], reply)
				}
			}
			// What other goroutines allocate counts as well, connections of tests that have ended
			// among them, but not each time.
			allocations := testing.AllocsPerRun(5, exchange)
			for range 5 {
				allocations = min(allocations, testing.AllocsPerRun(5, exchange))
			}
			if allocations > 0 {
				t.Errorf("%s, %T: %v allocations", s.name, storage, allocations)
			}
		}
	}
}

func TestMalformedMessagesNameTheOffset(t *testing.T) {
	id := bytes.Repeat([]byte{1}, IDSize)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	tests := []struct {
		name    string
		message []byte
		offset  int
	}{
		{"empty", nil, 0},
		{"not a version", []byte{0x30}, 0},
		{"timestamp cut short", []byte{0x61, 0x80}, 1},
		{"timestamp over 64 bits", join([]byte{0x61}, bytes.Repeat([]byte{0xff}, 10), []byte{0}), 1},
		{"timestamp of eleven digits", join([]byte{0x61}, bytes.Repeat([]byte{0x80}, 10), []byte{1, 0, 0}), 1},
		{"sum of timestamps over 64 bits", join([]byte{0x61, 0x81}, bytes.Repeat([]byte{0xff}, 8), []byte{0x7f, 0, 0, 0x81}, bytes.Repeat([]byte{0xff}, 8), []byte{0x7f, 0, 0}), 13},
		{"no prefix length", []byte{0x61, 5}, 2},
		{"prefix too long", join([]byte{0x61, 5, 33}, id, id), 2},
		{"prefix length huge", join([]byte{0x61, 5, 0x8f}, bytes.Repeat([]byte{0xff}, 7), []byte{0x7f}), 2},
		{"prefix cut short", []byte{0x61, 5, 4, 1, 2}, 3},
		{"bound below the one before", []byte{0x61, 5, 1, 9, 0, 1, 1, 8, 0}, 5},
		{"no mode", []byte{0x61, 0, 0}, 3},
		{"unknown mode", []byte{0x61, 0, 0, 3}, 3},
		{"fingerprint cut short", []byte{0x61, 0, 0, 1, 1, 2, 3}, 4},
		{"no count", []byte{0x61, 0, 0, 2}, 4},
		{"more ids announced than sent", join([]byte{0x61, 0, 0, 2, 2}, id, id[:31]), 4},
		{"2^34 ids announced", []byte{0x61, 0, 0, 2, 0xc0, 0x80, 0x80, 0x80, 0x00}, 4},
		{"2^63 ids announced", join([]byte{0x61, 0, 0, 2, 0x81}, bytes.Repeat([]byte{0x80}, 8), []byte{0}), 4},
	}
	set := sealed(t, makeItems(rand.New(rand.NewPCG(1, 1)), 50, 10))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dst := []byte("kept")
			check := func(role string, got []byte, err error) {
				t.Helper()
				var place *FormatError
				if !errors.As(err, &place) || place.Offset != test.offset || string(got) != "kept" {
					t.Errorf("%s: %v, %q", role, err, got)
				}
			}
			got, err := NewResponder(set, 0).Next(dst, test.message)
			check("responder", got, err)
			n := NewInitiator(set, 0, nil, nil)
			n.Open(nil)
			got, err = n.Next(dst, test.message)
			check("initiator", got, err)
			if _, again := n.Next(nil, []byte{0x61}); again != err {
				t.Errorf("after the error: %v", again)
			}
		})
	}
}

func TestVersionsAreNegotiated(t *testing.T) {
	set := sealed(t, nil)
	if got, err := NewResponder(set, 0).Next(nil, []byte{0x62, 1, 2, 3}); err != nil || !bytes.Equal(got, []byte{0x61}) {
		t.Errorf("the responder answers %x, %v", got, err)
	}
	n := NewInitiator(set, 0, nil, nil)
	n.Open(nil)
	if _, err := n.Next(nil, []byte{0x60}); err == nil {
		t.Error("the initiator accepts another version")
	}
}

func TestMessagesWhileNothingIsAskedAreErrors(t *testing.T) {
	n := NewInitiator(sealed(t, nil), 0, nil, nil)
	if _, err := n.Next(nil, []byte{0x61}); err == nil {
		t.Error("a message before Open is accepted")
	}
	n.Open(nil)
	if _, err := n.Next(nil, []byte{0x61}); err != nil || !n.Done() {
		t.Fatal(err)
	}
	if _, err := n.Next(nil, []byte{0x61}); err == nil {
		t.Error("a message after the end is accepted")
	}
}

func TestOneIDManyTimesInAListIsNamedOnce(t *testing.T) {
	ours := makeItems(rand.New(rand.NewPCG(1, 1)), 20, 10)
	need := 0
	n := NewInitiator(sealed(t, ours), 0, nil, func(ids []ID) { need += len(ids) })
	n.Open(nil)
	message := []byte{0x61, 0, 0, 2, 40}
	for i := range 40 {
		message = append(message, bytes.Repeat([]byte{byte(i % 2)}, IDSize)...)
	}
	if _, err := n.Next(nil, message); err != nil || need != 2 {
		t.Errorf("%d ids, %v", need, err)
	}
}

func TestAFullMessageEndsWithAListWhereNothingIsLeft(t *testing.T) {
	items := makeItems(rand.New(rand.NewPCG(1, 1)), 3000, 2000)
	ours, theirs := sealed(t, nil), sealed(t, items)
	n := NewInitiator(ours, 1, nil, nil)
	n.Open(nil)
	w := newWriter(theirs, 0)
	w.begin(nil)
	for lo := 0; lo < len(items); lo += 2 { // so many differences that the answer cannot take them all
		bound := infinite
		if lo+2 < len(items) {
			bound = between(theirs, lo+2)
		}
		w.fingerprint(lo, lo+2, &bound)
	}
	reply, err := n.Next(nil, w.out)
	if err != nil || len(reply) > MinFrameLimit || !bytes.HasSuffix(reply, []byte{0, 0, modeIDList, 0}) {
		t.Errorf("%x, %v", reply, err)
	}
}

func TestHostilePeersAreNotRememberedBeyondMeasure(t *testing.T) {
	n := NewInitiator(sealed(t, nil), 0, nil, nil)
	n.Open(nil)
	w := newWriter(sealed(t, nil), 0)
	w.begin(nil)
	for i := range uint64(2 * maxSpans) { // every other second differs
		w.bound(&Bound{Timestamp: 2*i + 1})
		w.out = append(append(w.out, modeFingerprint), make([]byte, FingerprintSize)...)
		w.bound(&Bound{Timestamp: 2*i + 2})
		w.out = append(w.out, modeSkip)
	}
	if _, err := n.Next(nil, w.out); err != nil || len(n.open) != maxSpans {
		t.Errorf("%d spans, %v", len(n.open), err)
	}
}
