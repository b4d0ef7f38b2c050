package results

import (
	"cmp"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Statistics assume nothing about how trials are distributed: the median with its order-statistic
// confidence interval, and the Mann–Whitney U test between two samples. They are those of
// benchstat.

// The levels. Alpha is the chance of calling a difference significant where there is none; it
// applies to each comparison alone, so that who makes many of them must correct for it (see Holm).
const (
	Alpha      = 0.05
	Confidence = 0.95
)

// EnoughTrials is how many trials a figure should rest on: from here on the median has a confidence
// interval at the level Confidence.
const EnoughTrials = 6

// Summary is a median with the interval that holds the true one at the level Confidence.
type Summary struct {
	Center float64 // median, NaN where there is no trial
	Lo, Hi float64 // the interval; infinite under EnoughTrials trials
	N      int
}

// Summarize summarizes trials, which it leaves as they are.
func Summarize(trials []float64) Summary {
	if len(trials) == 0 {
		return Summary{Center: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1)}
	}
	s := benchmath.AssumeNothing.Summary(sample(trials), Confidence)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) { // 5 trials are given one bound alone, which nobody would expect
		s.Lo, s.Hi = math.Inf(-1), math.Inf(1)
	}
	return Summary{Center: s.Center, Lo: s.Lo, Hi: s.Hi, N: len(trials)}
}

// Bounded tells whether there are enough trials for an interval.
func (s Summary) Bounded() bool { return !math.IsInf(s.Lo, 0) && !math.IsInf(s.Hi, 0) }

// Spread is how far the interval reaches from the centre, as a share of it: 0.03 for ± 3 %. It is
// infinite without an interval or where the centre is 0 and the interval is not.
func (s Summary) Spread() float64 {
	d := max(s.Hi-s.Center, s.Center-s.Lo)
	if d == 0 {
		return 0
	}
	if s.Center == 0 {
		return math.Inf(1)
	}
	return d / math.Abs(s.Center)
}

// Comparison says whether two samples differ.
type Comparison struct {
	P           float64 // two-sided, of the Mann–Whitney U test: the chance of so large a difference between samples of the same distribution
	Delta       float64 // new median / old median − 1; NaN where the old one is 0 and the new one is not, or a side is empty
	N1, N2      int     // trials of the old and the new sample
	Significant bool    // P < Alpha
	Decidable   bool    // so many trials can be significant at all
}

// Compare compares two samples, which it leaves as they are.
func Compare(before, after []float64) Comparison {
	c := Comparison{P: 1, Delta: math.NaN(), N1: len(before), N2: len(after)}
	if c.N1 == 0 || c.N2 == 0 {
		return c
	}
	x, y := sample(before), sample(after)
	// A test of samples without any variation is an error to the library, and no difference to us.
	if t := benchmath.AssumeNothing.Compare(x, y); !math.IsNaN(t.P) {
		c.P = t.P
	}
	a, b := benchmath.AssumeNothing.Summary(x, Confidence).Center, benchmath.AssumeNothing.Summary(y, Confidence).Center
	switch {
	case a == b:
		c.Delta = 0
	case a != 0:
		c.Delta = (b - a) / math.Abs(a)
	}
	c.Decidable = SmallestP(c.N1, c.N2) < Alpha
	c.Significant = c.P < Alpha
	return c
}

// SmallestP is the smallest p that the U test can give for samples of n1 and n2 trials: that of two
// which do not overlap. 3 against 3 reach 0.1 and can never be significant, 4 against 4 reach
// 0.029.
func SmallestP(n1, n2 int) float64 {
	if n1 < 1 || n2 < 1 {
		return 1
	}
	// 2 / C(n1+n2, n1), as a product that neither overflows nor loses more than rounding.
	p := 2.0
	for i := 1; i <= n1; i++ {
		p *= float64(i) / float64(n2+i)
	}
	return min(p, 1)
}

// TrialsFor is how many trials a side two samples need for a p below alpha to be possible.
func TrialsFor(alpha float64) int {
	n := 1
	for SmallestP(n, n) >= alpha && n < 1000 {
		n++
	}
	return n
}

// Holm adjusts the p of comparisons that are judged together, by Holm's step-down method: where an
// adjusted p is below alpha, the chance of even one false alarm among all of them is below alpha,
// however they depend on each other.
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(ps[i], ps[j]) })
	adjusted, highest := make([]float64, len(ps)), 0.0
	for k, i := range order {
		highest = max(highest, min(ps[i]*float64(len(ps)-k), 1))
		adjusted[i] = highest
	}
	return adjusted
}

// sample copies values, because the library sorts what it is given.
func sample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.Thresholds{CompareAlpha: Alpha})
}
