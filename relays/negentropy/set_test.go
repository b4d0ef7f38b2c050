package negentropy

import (
	"crypto/sha256"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// naive is a Storage that does everything the long way.
type naive []item

func (s naive) sum(lo, hi int) *big.Int {
	total := new(big.Int)
	for _, it := range s[lo:hi] {
		bigEndian := slices.Clone(it.id[:])
		slices.Reverse(bigEndian)
		total.Add(total, new(big.Int).SetBytes(bigEndian))
	}
	return total.Mod(total, new(big.Int).Lsh(big.NewInt(1), 256))
}

func (s naive) fingerprint(lo, hi int) Fingerprint {
	text := make([]byte, IDSize)
	s.sum(lo, hi).FillBytes(text)
	slices.Reverse(text)
	n := hi - lo
	digits := []byte{byte(n % 128)}
	for n /= 128; n > 0; n /= 128 {
		digits = append(digits, byte(n%128)|0x80)
	}
	slices.Reverse(digits)
	hash := sha256.Sum256(append(text, digits...))
	return Fingerprint(hash[:])
}

func (s naive) search(lo, hi int, b Bound) int {
	for i := lo; i < hi; i++ {
		if compareItems(s[i].time, &s[i].id, b.Timestamp, &b.Prefix) >= 0 {
			return i
		}
	}
	return hi
}

// checkStorage compares a storage with the items that it should hold.
func checkStorage(t *testing.T, r *rand.Rand, s Storage, items []item) {
	t.Helper()
	want := naive(items)
	if s.Len() != len(items) {
		t.Fatalf("%d items, %d wanted", s.Len(), len(items))
	}
	for i := range items {
		if time, id := itemAt(s, i); time != items[i].time || *id != items[i].id {
			t.Fatalf("item %d is another one", i)
		}
	}
	for range 60 {
		lo := r.IntN(len(items) + 1)
		hi := lo + r.IntN(len(items)-lo+1)
		if got := FingerprintOf(s, lo, hi); got != want.fingerprint(lo, hi) {
			t.Fatalf("fingerprint of [%d, %d) of %d: %x", lo, hi, len(items), got)
		}
		var ids []ID
		for at := lo; at < hi; {
			_, run := s.Run(at, hi)
			ids = append(ids, run...)
			at += len(run)
		}
		for i := range ids {
			if ids[i] != items[lo+i].id {
				t.Fatalf("runs of [%d, %d): id %d is another one", lo, hi, i)
			}
		}
		if len(ids) != hi-lo {
			t.Fatalf("runs of [%d, %d) have %d ids", lo, hi, len(ids))
		}
		bound := Bound{Timestamp: 1_700_000_000 + r.Uint64N(30)}
		if len(items) > 0 {
			near := items[r.IntN(len(items))]
			bound = Bound{near.time + r.Uint64N(2), near.id, IDSize}
			bound.Length = r.IntN(IDSize + 1)
			clear(bound.Prefix[bound.Length:])
		}
		if r.IntN(20) == 0 {
			bound = infinite
		}
		if got, want := s.Search(lo, hi, bound), want.search(lo, hi, bound); got != want {
			t.Fatalf("search of %v in [%d, %d): %d, want %d", bound, lo, hi, got, want)
		}
	}
	for i := 1; i < len(items); i++ {
		b := between(s, i)
		if !b.above(items[i-1].time, &items[i-1].id) || b.above(items[i].time, &items[i].id) {
			t.Fatalf("the bound between %d and %d is not: %v", i-1, i, b)
		}
		if b.Length > 0 { // one byte less would not do
			b.Length--
			b.Prefix[b.Length] = 0
			if b.above(items[i-1].time, &items[i-1].id) {
				t.Fatalf("the bound between %d and %d could be shorter", i-1, i)
			}
		}
	}
}

func TestSetAgainstTheLongWay(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{0, 1, 2, 15, 16, 17, 31, 32, 33, 200} {
		for _, seconds := range []uint64{1, 5, 10_000} {
			items := makeItems(r, n, seconds)
			checkStorage(t, r, sealed(t, items), items)

			shuffled := slices.Clone(items)
			r.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			checkStorage(t, r, sealed(t, shuffled), items)

			since, until := 1_700_000_000+r.Uint64N(seconds), 1_700_000_000+r.Uint64N(seconds)
			part := slices.Clone(items)
			part = slices.DeleteFunc(part, func(it item) bool { return it.time < since || it.time > until })
			checkStorage(t, r, Between(sealed(t, items), since, until), part)
			checkStorage(t, r, Between(sealed(t, items), 0, Infinity), items)
		}
	}
}

func TestIDsThatSumOverTheTopAreTakenModulo(t *testing.T) {
	items := make([]item, 40)
	for i := range items {
		for k := range items[i].id {
			items[i].id[k] = 0xff
		}
		items[i].time = uint64(i)
	}
	checkStorage(t, rand.New(rand.NewPCG(1, 1)), sealed(t, items), items)
	var s Sum
	s.Add(&items[0].id)
	s.Add(&items[1].id)
	if s = s.Minus(sumOf([]ID{items[0].id})); s != sumOf([]ID{items[1].id}) {
		t.Errorf("%x", s)
	}
}

func TestSealRefusesWhatTheProtocolCannotSay(t *testing.T) {
	tests := []struct {
		name  string
		items []item
		want  string
	}{
		{"the same item twice", []item{{5, ID{1}}, {6, ID{1}}, {5, ID{1}}}, "twice"},
		{"infinity", []item{{Infinity, ID{1}}, {6, ID{1}}}, "infinity"},
	}
	for _, test := range tests {
		s := NewSet(0)
		for i := range test.items {
			s.Add(test.items[i].time, &test.items[i].id)
		}
		if err := s.Seal(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	s := sealed(t, nil)
	if s.Seal() == nil {
		t.Error("sealed twice")
	}
}
