package synthetic

import (
	"math"
	"testing"
)

func TestZipfWeightsAreTheExactPower(t *testing.T) {
	table := newZipfTable(2000)
	previous := uint64(0)
	for i, total := range table {
		got := float64(total - previous)
		want := math.Pow(2, zipfOne) * math.Pow(float64(i+1), -0.9)
		if math.Abs(got-want) > 1.01 {
			t.Fatalf("weight of rank %d is %.0f, want %.2f rounded down", i, got, want)
		}
		previous = total
	}
	// Frozen: nothing in a corpus is the same if this moves.
	if got, want := table[1999], uint64(51346816428); got != want {
		t.Errorf("total weight of 2,000 ranks is %d, want %d", got, want)
	}
}

func TestZipfDrawsFollowTheWeights(t *testing.T) {
	const ranks, draws = 50, 200_000
	table := newZipfTable(ranks)
	r := newRandStream([32]byte{1})
	var counts [ranks]int
	for range draws {
		counts[table.draw(r)]++
	}
	total := float64(table[ranks-1])
	previous := uint64(0)
	for i, n := range counts {
		want := draws * float64(table[i]-previous) / total
		previous = table[i]
		if off := math.Abs(float64(n) - want); off > 6*math.Sqrt(want) {
			t.Errorf("rank %d was drawn %d times, want about %.0f", i, n, want)
		}
	}
}

func TestZipfDrawReachesBothEnds(t *testing.T) {
	if rank := newZipfTable(1).draw(newRandStream([32]byte{})); rank != 0 {
		t.Errorf("the only rank is 0, drew %d", rank)
	}
	table := zipfTable{1, 2, 3}
	r := newRandStream([32]byte{})
	var seen [3]bool
	for range 100 {
		seen[table.draw(r)] = true
	}
	if seen != [3]bool{true, true, true} {
		t.Errorf("100 draws of three equal ranks reached %v", seen)
	}
}
