package synthetic

import (
	"math/big"
	"slices"
)

// zipfTable draws ranks 0…n-1 with probability proportional to (rank+1)^-0.9. It holds running
// totals of integer weights that are computed without floating point, so that the same stream draws
// the same ranks on every machine.
type zipfTable []uint64

// zipfOne is the weight of the first rank, 2^32: the 2,000th has over 4 million units.
const zipfOne = 32

func newZipfTable(n int) zipfTable {
	table := make(zipfTable, n)
	total := uint64(0)
	weight := uint64(1) << zipfOne
	for i := range table {
		weight = zipfWeight(i+1, weight)
		total += weight
		table[i] = total
	}
	return table
}

// zipfWeight returns ⌊2^32 · rank^-0.9⌋ exactly: the tenth root of 2^320 / rank^9, by Newton's
// method in integers. above is any value not under the result, such as the rank before's; from
// there the steps fall until they have arrived.
func zipfWeight(rank int, above uint64) uint64 {
	radicand := new(big.Int).Lsh(big.NewInt(1), 10*zipfOne)
	radicand.Div(radicand, new(big.Int).Exp(big.NewInt(int64(rank)), big.NewInt(9), nil))
	root := new(big.Int).SetUint64(above)
	nine, ten := big.NewInt(9), big.NewInt(10)
	for {
		step := new(big.Int).Exp(root, nine, nil)
		step.Div(radicand, step)
		step.Add(step, new(big.Int).Mul(root, nine))
		step.Div(step, ten)
		if step.Cmp(root) >= 0 {
			return root.Uint64()
		}
		root = step
	}
}

// draw takes one number from the stream and returns a rank from 0.
func (z zipfTable) draw(r *randStream) int {
	x := r.below64(z[len(z)-1])
	rank, _ := slices.BinarySearch(z, x+1)
	return rank
}
