package negentropy

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nbd-wtf/go-nostr"
	oracle "github.com/nbd-wtf/go-nostr/nip77/negentropy"
	"github.com/nbd-wtf/go-nostr/nip77/negentropy/storage/vector"
)

func oracleSet(items []item) *vector.Vector {
	v := vector.New()
	for i := range items {
		v.Insert(nostr.Timestamp(items[i].time), hex.EncodeToString(items[i].id[:]))
	}
	v.Seal()
	return v
}

// oracleLimit keeps it from its panic.
func oracleLimit(limit int) int {
	if limit == 0 {
		return 0
	}
	return max(limit, MinFrameLimit)
}

// asking lets the oracle be the initiator. Its channels hold 64 ids and must be drained meanwhile,
// and it names ids more than once under limits.
func asking(tb testing.TB, items []item, limit int, answer func([]byte) []byte) exchange {
	tb.Helper()
	n := oracle.New(oracleSet(items), oracleLimit(limit))
	x := exchange{have: []ID{}, need: []ID{}}
	drain := func(from chan string, to *[]ID) chan bool {
		done := make(chan bool)
		go func() {
			for text := range from {
				var id ID
				hex.Decode(id[:], []byte(text))
				*to = append(*to, id)
			}
			close(done)
		}()
		return done
	}
	have, need := drain(n.Haves, &x.have), drain(n.HaveNots, &x.need)
	for text := n.Start(); text != ""; {
		if x.rounds++; x.rounds > 10_000 {
			tb.Fatal("no end")
		}
		message, err := DecodeHex(nil, []byte(text))
		if err != nil {
			tb.Fatal(err)
		}
		reply := answer(message)
		x.up, x.down = x.up+len(message), x.down+len(reply)
		if text, err = n.Reconcile(hex.EncodeToString(reply)); err != nil {
			tb.Fatal(err)
		}
	}
	<-have
	<-need
	x.have, x.need = slices.Compact(sortedIDs(x.have)), slices.Compact(sortedIDs(x.need))
	return x
}

// oracleAnswering lets the oracle be the responder.
func oracleAnswering(tb testing.TB, v *vector.Vector, limit int) func([]byte) []byte {
	n := oracle.New(v, oracleLimit(limit))
	return func(message []byte) []byte {
		text, err := n.Reconcile(hex.EncodeToString(message))
		if err != nil {
			tb.Fatal(err)
		}
		reply, err := DecodeHex(nil, []byte(text))
		if err != nil {
			tb.Fatal(err)
		}
		return reply
	}
}

func TestFingerprintsAreThoseOfTheOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, n := range []int{0, 1, 16, 127, 128, 129, 1000} {
		items := makeItems(r, n, 100)
		s, v := sealed(t, items), oracleSet(items)
		for range 100 {
			lo := r.IntN(n + 1)
			hi := lo + r.IntN(n-lo+1)
			if got, want := fmt.Sprintf("%x", FingerprintOf(s, lo, hi)), v.Fingerprint(lo, hi); got != want {
				t.Fatalf("[%d, %d): %s, the oracle has %s", lo, hi, got, want)
			}
		}
	}
}

func TestExchangesWithTheOracleInBothRoles(t *testing.T) {
	for _, n := range []int{0, 1, 40, 1500} {
		for k, s := range scenarios(11, n) {
			if s.name == veryAlike {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", s.name, n), func(t *testing.T) {
				ours, theirs, theirVector := sealed(t, s.ours), sealed(t, s.theirs), oracleSet(s.theirs)
				for i, limits := range [][2]int{{0, 0}, {4096, 0}, {0, 4096}, {4096, 4096}, {5000, 30_000}} {
					if i > 2 && k%2 == i%2 { // a part of it will do
						continue
					}
					checkExchange(t, run(t, ours, limits[0], oracleAnswering(t, theirVector, limits[1])), s)
					checkExchange(t, asking(t, s.ours, limits[0], responding(t, theirs, limits[1])), s)
				}
			})
		}
	}
}

// Without limits nothing is left to taste: every byte of either side is that of the oracle.
func TestMessagesWithoutLimitsAreThoseOfTheOracle(t *testing.T) {
	for _, s := range scenarios(12, 2000) {
		if s.name == veryAlike {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			ours, theirs, theirVector := sealed(t, s.ours), sealed(t, s.theirs), oracleSet(s.theirs)
			respond, oracleRespond := responding(t, theirs, 0), oracleAnswering(t, theirVector, 0)
			both := func(message []byte) []byte {
				reply, want := respond(message), oracleRespond(message)
				if string(reply) != string(want) {
					t.Errorf("the responder says other %d bytes than the oracle with %d", len(reply), len(want))
				}
				return reply
			}
			x, y := run(t, ours, 0, both), asking(t, s.ours, 0, both)
			if x.rounds != y.rounds || x.up != y.up || x.down != y.down {
				t.Errorf("%d rounds, %d up, %d down; the oracle %d, %d, %d", x.rounds, x.up, x.down, y.rounds, y.up, y.down)
			}
		})
	}
}
