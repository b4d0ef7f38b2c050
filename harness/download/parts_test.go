package download

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"relaybench/relays/client"
)

func TestNewestTellsTheOldestThatIsWanted(t *testing.T) {
	var all []int64
	n := newest{want: 20}
	for range 500 {
		at := rand.Int64N(300)
		all = append(all, at)
		n.add(at)
		oldest, full := n.oldest()
		if full != (len(all) >= 20) {
			t.Fatal(len(all), full)
		}
		if sorted := slices.Sorted(slices.Values(all)); full && oldest != sorted[len(sorted)-20] {
			t.Fatalf("%d, not %d", oldest, sorted[len(sorted)-20])
		}
	}
}

func TestPagesAreOfASizeThatMakesSense(t *testing.T) {
	for _, test := range []struct{ most, wanted, page int }{
		{300, 0, 300}, {1, 0, smallestPage}, {1_000_000_000, 0, largestPage}, {0, 0, usualPage},
		{0, 1, 51}, {0, 100, 160}, {0, 1000, 500}, {300, 100, 160}, {100, 1000, 100},
	} {
		if got := pageSize(test.most, test.wanted); got != test.page {
			t.Errorf("%d at most, %d wanted: pages of %d, not %d", test.most, test.wanted, got, test.page)
		}
	}
}

func TestWhatARelayWantsIsSaid(t *testing.T) {
	for said, want := range map[*client.Information]string{
		{}: "", {Auth: true}: "wants authentication,", {Auth: true, Payment: true}: "wants authentication and payment,",
	} {
		got := ""
		r := relay{download: &download{o: &Options{Note: func(line string) { got += line }}}, state: &RelayState{}}
		r.warn(said)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%+v: %q", said, got)
		}
	}
}
