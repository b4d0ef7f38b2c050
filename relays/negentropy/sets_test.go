package negentropy

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

type item struct {
	time uint64
	id   ID
}

func compareTestItems(a, b item) int { return compareItems(a.time, &a.id, b.time, &b.id) }

// scenario is two sets of distinct items.
type scenario struct {
	name         string
	ours, theirs []item
}

func randomID(r *rand.Rand) (id ID) {
	for i := 0; i < IDSize; i += 8 {
		binary.LittleEndian.PutUint64(id[i:], r.Uint64())
	}
	return id
}

// makeItems draws n items, of which a few share each second.
func makeItems(r *rand.Rand, n int, seconds uint64) []item {
	items := make([]item, n)
	for i := range items {
		items[i] = item{1_700_000_000 + r.Uint64N(seconds), randomID(r)}
	}
	slices.SortFunc(items, compareTestItems)
	return items
}

// veryAlike is beyond the oracle, which makes wrong bounds between ids that share more than their
// first 15 bytes.
const veryAlike = "one second, ids very alike"

// scenarios covers the shapes that sets of events take, at about n items a side.
func scenarios(seed uint64, n int) []scenario {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	pick := func(items []item, share int) (picked []item) {
		for _, it := range items {
			if r.IntN(100) < share {
				picked = append(picked, it)
			}
		}
		return picked
	}
	base := makeItems(r, n, uint64(n)+1)
	close := makeItems(r, n, 1) // all in one second
	// ids that differ in their last bytes only
	alike := func(shared int) []item {
		items := slices.Clone(close)
		for i := range items {
			copy(items[i].id[:shared], "the same beginning of each one")
		}
		slices.SortFunc(items, compareTestItems)
		return slices.Compact(items)
	}
	alike12, alike28 := alike(12), alike(28)
	fifth := n / 5
	return []scenario{
		{"random", pick(base, 70), pick(base, 70)},
		{"few differences", pick(base, 99), pick(base, 99)},
		{"contiguous", base[:n-fifth], base[fifth:]},
		{"one second", pick(close, 80), pick(close, 80)},
		{"one second, ids alike", pick(alike12, 80), pick(alike12, 80)},
		{veryAlike, pick(alike28, 80), pick(alike28, 80)},
		{"equal", base, base},
		{"ours empty", nil, base},
		{"theirs empty", base, nil},
		{"both empty", nil, nil},
		{"ours in theirs", pick(base, 50), base},
		{"theirs in ours", base, pick(base, 50)},
		{"nothing shared", pick(base, 50), makeItems(r, n/2, uint64(n)+1)},
		{"one apart", base, base[:max(0, n-1)]},
	}
}

func sealed(tb testing.TB, items []item) *Set {
	tb.Helper()
	s := NewSet(len(items))
	for i := range items {
		s.Add(items[i].time, &items[i].id)
	}
	if err := s.Seal(); err != nil {
		tb.Fatal(err)
	}
	return s
}

// difference returns the ids in a that are not in b, sorted.
func difference(a, b []item) []ID {
	in := make(map[ID]bool, len(b))
	for _, it := range b {
		in[it.id] = true
	}
	ids := []ID{}
	for _, it := range a {
		if !in[it.id] {
			ids = append(ids, it.id)
		}
	}
	return sortedIDs(ids)
}

func sortedIDs(ids []ID) []ID {
	slices.SortFunc(ids, func(a, b ID) int { return slices.Compare(a[:], b[:]) })
	return ids
}
