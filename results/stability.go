package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Trials that are not of one kind, because the machine warmed up, a disk filled or something else
// ran, make a median that means little. Warnings looks for that in the per-trial values.

// What counts as drift and as an outlier. Each is both unlikely by chance and large enough to
// matter: a run has dozens of figures, and a warning that is always there is never read.
const (
	driftAlpha    = 0.01 // of the rank correlation with the order of trials; 5 trials cannot reach it
	driftSize     = 0.05 // from the first half's median to the second's, as a share of the first
	outlierScore  = 6    // distance from the median in robust standard deviations
	outlierSize   = 0.15 // and as a share of the median
	outlierTrials = 5    // under which none is told
)

// Warnings says what is wrong with a record's trials and what to do about it, a sentence or two
// each; nil where nothing is. It is a pure function of the record.
func Warnings(r *Record) []string {
	var warnings []string
	if w := fewTrials(r); w != "" {
		warnings = append(warnings, w)
	}
	return append(warnings, UnsteadyTrials(r)...)
}

func fewTrials(r *Record) string {
	most := 0
	for i := range r.Measurements {
		most = max(most, len(r.Measurements[i].Trials))
	}
	switch {
	case most == 0 || most >= EnoughTrials:
		return ""
	case most == 1:
		return fmt.Sprintf("One trial: differences are not tested. Use --trials %d.", EnoughTrials)
	}
	return fmt.Sprintf("%d trials are too few to rest a ranking on. Use --trials %d.", most, EnoughTrials)
}

// UnsteadyTrials tells of drift and of outliers among the figures that have a direction, one
// sentence for each relay and kind of trouble.
func UnsteadyTrials(r *Record) []string {
	type finding struct {
		n     int
		worst float64
		text  string
	}
	drifts, outliers := map[string]*finding{}, map[string]*finding{}
	of := map[string]int{}
	var names []string
	note := func(in map[string]*finding, relay string, size float64, text string) {
		f := in[relay]
		if f == nil {
			f = &finding{}
			in[relay] = f
		}
		if f.n++; size > f.worst {
			f.worst, f.text = size, text
		}
	}
	for i := range r.Measurements {
		m := &r.Measurements[i]
		if m.Exact || m.Better != Higher && m.Better != Lower {
			continue
		}
		if of[m.Relay]++; of[m.Relay] == 1 {
			names = append(names, m.Relay)
		}
		what := m.Metric + " in " + m.Scenario
		if change, ok := Drift(m.Trials); ok {
			note(drifts, m.Relay, math.Abs(change), fmt.Sprintf("%s, %+.0f %% from the first half to the second", what, 100*change))
		}
		if far := Outliers(m.Trials); len(far) > 0 {
			median := Summarize(m.Trials).Center
			off := slices.MaxFunc(far, func(a, b int) int {
				return cmp.Compare(math.Abs(m.Trials[a]-median), math.Abs(m.Trials[b]-median))
			})
			share := (m.Trials[off] - median) / math.Abs(median)
			note(outliers, m.Relay, math.Abs(share), fmt.Sprintf("%s, trial %d, %+.0f %% off the median", what, off+1, 100*share))
		}
	}
	var warnings []string
	for _, name := range names {
		if f := drifts[name]; f != nil {
			warnings = append(warnings, fmt.Sprintf("%s drifts over its trials in %s (%s): something warms up, fills up or wears down. Let the machine rest, look for other load, and run again.",
				name, figures(f.n, of[name]), f.text))
		}
		if f := outliers[name]; f != nil {
			warnings = append(warnings, fmt.Sprintf("%s has outliers in %s (%s): something else may have used the machine. Close what can be closed, and use more trials.",
				name, figures(f.n, of[name]), f.text))
		}
	}
	return warnings
}

func figures(n, of int) string {
	return fmt.Sprintf("%d of %d figure%s", n, of, strings.Repeat("s", min(of-1, 1)))
}

// Drift tells whether trials, in the order in which they ran, move in one direction beyond chance
// (Kendall's rank correlation with the order) and beyond a few per cent. The change is from the
// median of the first half to that of the second, as a share of the first.
func Drift(trials []float64) (change float64, ok bool) {
	n := len(trials)
	if n < EnoughTrials {
		return 0, false
	}
	score := kendallScore(trials)
	first, second := Summarize(trials[:n/2]).Center, Summarize(trials[n-n/2:]).Center
	if first == 0 {
		return 0, false
	}
	change = (second - first) / math.Abs(first)
	return change, kendallP(n, score) < driftAlpha && math.Abs(change) > driftSize
}

// kendallScore is the number of pairs of trials of which the later one is higher, less those of
// which it is lower, in n log n: a Fenwick tree counts the trials so far by their place in order.
func kendallScore(trials []float64) (score int) {
	order := slices.Sorted(slices.Values(trials))
	tree := make([]int, len(order)+1)
	before := func(place int) (n int) { // trials so far that stand before this place
		for ; place > 0; place -= place & -place {
			n += tree[place]
		}
		return n
	}
	for i, x := range trials {
		below, _ := slices.BinarySearch(order, x)
		above, _ := slices.BinarySearch(order, math.Nextafter(x, math.Inf(1)))
		score += before(below) - (i - before(above))
		for place := below + 1; place < len(tree); place += place & -place {
			tree[place]++
		}
	}
	return score
}

// kendallP is the two-sided chance that n values in random order have a score (pairs that rise less
// those that fall) so far from 0.
func kendallP(n, score int) float64 {
	pairs := n * (n - 1) / 2
	far := (pairs - max(score, -score)) / 2 // pairs against the trend
	if n > 60 {                             // the exact share takes n³ steps, and is as good as normal
		sd := math.Sqrt(float64(n) * float64(n-1) * float64(2*n+5) / 18)
		return math.Erfc(math.Abs(float64(score)) / sd / math.Sqrt2)
	}
	// The share of the n! orders with so many inversions, built up an element at a time.
	share := []float64{1}
	for k := 2; k <= n; k++ {
		next := make([]float64, len(share)+k-1)
		for i, s := range share {
			for j := range k {
				next[i+j] += s / float64(k)
			}
		}
		share = next
	}
	p := 0.0
	for i := range far + 1 {
		p += share[i]
	}
	return min(2*p, 1)
}

// Outliers returns the indexes of trials that lie far from the median both in robust standard
// deviations (1.4826 times the median absolute deviation) and as a share of it.
func Outliers(trials []float64) []int {
	if len(trials) < outlierTrials {
		return nil
	}
	median := Summarize(trials).Center
	away := make([]float64, len(trials))
	for i, v := range trials {
		away[i] = math.Abs(v - median)
	}
	sd := 1.4826 * Summarize(away).Center
	var far []int
	for i, d := range away {
		if d > outlierScore*sd && d > outlierSize*math.Abs(median) {
			far = append(far, i)
		}
	}
	return far
}
