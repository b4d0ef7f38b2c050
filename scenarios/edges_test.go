package scenarios

import (
	"strings"
	"testing"

	"relaybench/relays"
	"relaybench/results"
)

func TestAFilterAsEvidenceIsShort(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 0, 199: 199, 200: 200, 201: 200 + len("…")} {
		got := shorten([]byte(strings.Repeat("x", n)))
		same(t, "length", len(got), want)
		same(t, "cut", strings.HasSuffix(got, "…"), n > 200)
	}
}

// TestPartsStandBelowTheWhole in their own order: modes of a sync, phases of a pair, strategies.
func TestPartsStandBelowTheWhole(t *testing.T) {
	t.Parallel()
	for i, mode := range SyncModes() {
		by, both := syncMode{new(Sync), mode}.Describe(), syncMode{&Sync{Direction: relays.Both}, mode}.Describe()
		same(t, mode, by.Order, orderSync+1+i)
		same(t, mode+" by default", by.Labels[results.LabelDirection], string(relays.Down))
		same(t, mode+" both ways", both.Labels[results.LabelDirection], string(relays.Both))
	}
	for i, phase := range phases {
		same(t, phase, describePhase(phase).Order, orderNegentropy+1+i)
	}
	for i, strategy := range Fetches(FetchOptions{}) {
		d := strategy.Describe()
		same(t, d.Key, d.Order, orderFetch+i)
	}
}
