package holding

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestASampleIsDrawnFromEachPart of the corpus, and the rest is all else.
func TestASampleIsDrawnFromEachPart(t *testing.T) {
	t.Parallel()
	const n, size = 253, 100
	q := Question{Sample: size, Draw: rand.New(rand.NewPCG(1, 2)).IntN}
	drawn, rest := q.sample(n)
	first := true
	for k, i := range drawn {
		if i < k*n/size || i >= (k+1)*n/size {
			t.Errorf("%d in part %d", i, k)
		}
		first = first && i == k*n/size
	}
	all := slices.Concat(drawn, rest)
	slices.Sort(all)
	if len(drawn) != size || len(slices.Compact(all)) != n || len(rest) != n-size || first {
		t.Errorf("drawn %v, rest %v", drawn, rest)
	}
}
