package scenarios

import (
	"strings"
	"testing"
)

func TestAFilterAsEvidenceIsShort(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 0, 199: 199, 200: 200, 201: 200 + len("…")} {
		got := shorten([]byte(strings.Repeat("x", n)))
		same(t, "length", len(got), want)
		same(t, "cut", strings.HasSuffix(got, "…"), n > 200)
	}
}

// TestTheModesOfASyncStandBelowIt, in their own order.
func TestTheModesOfASyncStandBelowIt(t *testing.T) {
	t.Parallel()
	for i, mode := range SyncModes() {
		same(t, mode, new(Sync).DescribeMode(mode).Order, orderSync+1+i)
	}
}
