package results

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestSummaryIsTheMedianWithItsInterval(t *testing.T) {
	for _, c := range []struct {
		trialCount     []float64
		center, lo, hi float64
		withinLimits   bool
	}{
		{[]float64{3}, 3, math.Inf(-1), math.Inf(1), false},
		{[]float64{4, 1}, 2.5, math.Inf(-1), math.Inf(1), false},
		{[]float64{5, 1, 2, 4, 3}, 3, math.Inf(-1), math.Inf(1), false},
		{[]float64{6, 5, 1, 2, 4, 3}, 3.5, 1, 6, true},
		{[]float64{7, 7, 7, 7, 7, 7}, 7, 7, 7, true},
	} {
		before := slices.Clone(c.trialCount)
		s := Summarize(c.trialCount)
		if s.Center != c.center || s.Lo != c.lo || s.Hi != c.hi || s.N != len(c.trialCount) || s.Bounded() != c.withinLimits {
			t.Errorf("%v: %+v", c.trialCount, s)
		}
		if !slices.Equal(before, c.trialCount) {
			t.Errorf("the trials were put in order: %v became %v", before, c.trialCount)
		}
	}
	if s := Summarize(nil); !math.IsNaN(s.Center) || s.N != 0 || s.Bounded() || !math.IsInf(s.Lo, -1) || !math.IsInf(s.Hi, 1) {
		t.Errorf("of nothing: %+v", s)
	}
}

func TestSpreadIsTheFartherEndAsAShareOfTheCentre(t *testing.T) {
	for _, c := range []struct {
		s    Summary
		want float64
	}{
		{Summary{Center: 8, Lo: 6, Hi: 9}, 0.25},
		{Summary{Center: 8, Lo: 7, Hi: 10}, 0.25},
		{Summary{Center: -8, Lo: -10, Hi: -7}, 0.25},
		{Summary{Center: 8, Lo: 8, Hi: 8}, 0},
		{Summary{}, 0},
		{Summary{Lo: -1, Hi: 1}, math.Inf(1)},
		{Summary{Center: 8, Lo: math.Inf(-1), Hi: math.Inf(1)}, math.Inf(1)},
	} {
		if got := c.s.Spread(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.s, got, c.want)
		}
	}
}

func TestComparisonSaysWhatTheTestCanDecide(t *testing.T) {
	for _, c := range []struct {
		name                   string
		before, after          []float64
		p, delta               float64
		significant, decidable bool
	}{
		{"one trial each", []float64{1}, []float64{9}, 1, 8, false, false},
		{"three are never enough", []float64{1, 2, 3}, []float64{7, 8, 9}, 0.1, 3, false, false},
		{"four that do not overlap", []float64{1, 2, 3, 4}, []float64{6, 7, 8, 9}, 2.0 / 70, 2, true, true},
		{"four that do", []float64{1, 2, 3, 8}, []float64{6, 7, 4, 9}, 0.2, 1.6, false, true},
		{"all equal", []float64{5, 5, 5, 5}, []float64{5, 5, 5, 5}, 1, 0, false, true},
		{"no variation, another value", []float64{4, 4, 4, 4}, []float64{5, 5, 5, 5}, 2.0 / 70, 0.25, true, true},
		{"from nothing", []float64{0, 0, 0, 0}, []float64{5, 5, 5, 5}, 2.0 / 70, math.NaN(), true, true},
		{"below nothing", []float64{-4, -4, -4, -4}, []float64{-5, -5, -5, -5}, 2.0 / 70, -0.25, true, true},
		{"a p of Alpha is not below it", []float64{50}, rising(39), 0.05, 1.38, false, false},
		{"an empty side", nil, []float64{5}, 1, math.NaN(), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Compare(c.before, c.after)
			sameDelta := math.Abs(got.Delta-c.delta) < 1e-9 || math.IsNaN(got.Delta) && math.IsNaN(c.delta)
			if math.Abs(got.P-c.p) > 1e-9 || !sameDelta || got.Significant != c.significant || got.Decidable != c.decidable || got.N1 != len(c.before) || got.N2 != len(c.after) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestSmallestPIsWhatTheTestGivesForSamplesApart(t *testing.T) {
	for n1 := 1; n1 <= 10; n1++ {
		for n2 := 1; n2 <= 10; n2++ {
			var a, b []float64
			for i := range n1 {
				a = append(a, float64(i))
			}
			for i := range n2 {
				b = append(b, float64(100+i))
			}
			if got, want := SmallestP(n1, n2), Compare(a, b).P; math.Abs(got-want) > 1e-12 {
				t.Errorf("%d against %d: %v, by the test %v", n1, n2, got, want)
			}
		}
	}
	for alpha, want := range map[float64]int{Alpha: 4, SmallestP(3, 3): 4, 1: 2, 0: 1000} { // below alpha, not at it; and it ends
		if n := TrialsFor(alpha); n != want {
			t.Errorf("%d trials a side for a p below %v, want %d", n, alpha, want)
		}
	}
}

func TestHolmAdjusts(t *testing.T) {
	got := Holm([]float64{0.04, 0.01, 0.03, 0.9})
	for i, want := range []float64{0.09, 0.04, 0.09, 0.9} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("%v, want 0.09 0.04 0.09 0.9", got)
			break
		}
	}
	if len(Holm(nil)) != 0 {
		t.Error("nothing became something")
	}
}

// TestTheChanceOfATrendIsCounted holds kendallP against the orders of n values, counted by their
// inversions.
func TestTheChanceOfATrendIsCounted(t *testing.T) {
	orders := []*big.Int{big.NewInt(1)} // of n values, by inversions
	all := big.NewInt(1)
	for n := 2; n <= 60; n++ {
		next := make([]*big.Int, len(orders)+n-1)
		running := new(big.Int)
		for i := range next {
			if i < len(orders) {
				running.Add(running, orders[i])
			}
			if i >= n {
				running.Sub(running, orders[i-n])
			}
			next[i] = new(big.Int).Set(running)
		}
		orders = next
		all.Mul(all, big.NewInt(int64(n)))
		if n > 12 && n < 60 {
			continue
		}
		against := new(big.Int)
		for i := range orders[:len(orders)/2] {
			against.Add(against, orders[i])
			if n == 60 && i%29 > 0 { // each of them takes its time
				continue
			}
			want, _ := new(big.Rat).SetFrac(new(big.Int).Lsh(against, 1), all).Float64()
			score := len(orders) - 1 - 2*i
			for _, s := range []int{score, -score} {
				if got := kendallP(n, s); math.Abs(got-want) > 1e-9*want {
					t.Fatalf("%d trials, score %d: %v, want %v", n, s, got, want)
				}
			}
		}
	}
	// From there on it is that of a normal distribution with the variance n (n − 1) (2n + 5) / 18.
	for score, want := range map[int]float64{0: 1, 315: 0.049970299502536474, -315: 0.049970299502536474, 500: 0.0018616635772923927} {
		if got := kendallP(61, score); math.Abs(got-want) > 1e-9*want {
			t.Errorf("61 trials, score %d: %v, want %v", score, got, want)
		}
	}
}

// noisy is a relay's figure over trials as they come off a shared machine: log-normal noise, now
// and then a trial that something else slowed down, and a drift that both sides of an interleaved
// run see.
func noisy(rnd *rand.Rand, center, noise float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		v := center * math.Exp(noise*rnd.NormFloat64()) * (1 + 0.03*float64(i)/float64(n))
		if rnd.Float64() < 0.05 {
			v *= 1 + 0.5*rnd.Float64()
		}
		out[i] = v
	}
	return out
}

func TestTheTestKeepsItsLevelOnNoise(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const rounds = 4000
	alarms := 0
	for range rounds {
		if Compare(noisy(rnd, 100, 0.08, 10), noisy(rnd, 100, 0.08, 10)).Significant {
			alarms++
		}
	}
	// 5 % is promised; four standard errors above it would be 6.4 %.
	if share := float64(alarms) / rounds; share > 0.064 {
		t.Errorf("%.1f %% of comparisons of equal samples are significant", 100*share)
	}
	found := 0
	for range rounds {
		if Compare(noisy(rnd, 100, 0.05, 10), noisy(rnd, 115, 0.05, 10)).Significant {
			found++
		}
	}
	if share := float64(found) / rounds; share < 0.95 {
		t.Errorf("15 %% more is found in %.0f %% of comparisons", 100*share)
	}
}

func TestHolmKeepsTheFamilysLevel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	const families = 1000
	alarms := 0
	for range families {
		var ps []float64
		for range 18 {
			ps = append(ps, Compare(noisy(rnd, 100, 0.08, 10), noisy(rnd, 100, 0.08, 10)).P)
		}
		if slices.Min(Holm(ps)) < Alpha {
			alarms++
		}
	}
	if share := float64(alarms) / families; share > 0.078 { // four standard errors above 5 %
		t.Errorf("%.1f %% of families of 18 equal figures raise an alarm", 100*share)
	}
}

func TestDriftIsToldFromNoise(t *testing.T) {
	for _, c := range []struct {
		name       string
		trialCount []float64
		want       bool
	}{
		{"steady rise", []float64{100, 104, 108, 112, 116, 120}, true},
		{"steady fall", []float64{100, 96, 92, 88, 84, 80}, true},
		{"a rise too small to matter", []float64{100, 100.1, 100.2, 100.3, 100.4, 100.5}, false},
		{"a rise of as much as need not matter", []float64{99, 100, 101, 104, 105, 106}, false},
		{"too few to tell", []float64{100, 110, 120, 130, 140}, false},
		{"up and down", []float64{100, 120, 100, 120, 100, 120}, false},
		{"one slow start", []float64{150, 101, 100, 102, 101, 100}, false},
		{"equal", []float64{5, 5, 5, 5, 5, 5}, false},
		{"zeros", []float64{0, 0, 0, 0, 0, 0}, false},
		{"eighty that rise", rising(80), true},
	} {
		if change, got := Drift(c.trialCount); got != c.want {
			t.Errorf("%s: drift %t (%+.2f), want %t", c.name, got, change, c.want)
		}
	}
	rnd, alarms := rand.New(rand.NewPCG(5, 6)), 0
	for range 4000 {
		trials := make([]float64, 8)
		for i := range trials {
			trials[i] = 100 * math.Exp(0.1*rnd.NormFloat64())
		}
		if _, ok := Drift(trials); ok {
			alarms++
		}
	}
	if alarms > 60 { // 1 % of 4,000, and three standard errors
		t.Errorf("%d of 4,000 series without a trend drift", alarms)
	}
}

// TestTheScoreCountsEveryPair holds merging against counting the pairs one by one, equal values
// among them.
func TestTheScoreCountsEveryPair(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		trials := make([]float64, n)
		for i := range trials {
			trials[i] = float64(rnd.IntN(1 + n/2)) // many are equal
		}
		want := 0
		for i := range n {
			for j := i + 1; j < n; j++ {
				want += cmp.Compare(trials[j], trials[i])
			}
		}
		before := slices.Clone(trials)
		if got := kendallScore(trials); got != want || !slices.Equal(trials, before) {
			t.Fatalf("%v: score %d, want %d; left as %v", before, got, want, trials)
		}
	}
}

// TestDriftOfVeryManyTrials could not end if it compared each trial with each: that is 4.5·10¹⁰
// pairs.
func TestDriftOfVeryManyTrials(t *testing.T) {
	trials := rising(300_000)
	if change, ok := Drift(trials); !ok || change < 1 {
		t.Errorf("all that rise: %t, %+.2f", ok, change)
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	if change, ok := Drift(trials); ok {
		t.Errorf("the same in random order drift by %+.2f", change)
	}
	n := 2_000_000
	if p := kendallP(n, n*(n-1)/2); p != 0 {
		t.Errorf("p of the strongest trend: %v", p)
	}
	if p := kendallP(n, 0); p != 1 {
		t.Errorf("p of none: %v", p)
	}
}

func rising(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 100 + float64(i)
	}
	return out
}

func TestOutliersStandApart(t *testing.T) {
	sd := 1.4826 * Summarize([]float64{1, 1, 0, 1, 9}).Center // robust, of the trials below
	for _, c := range []struct {
		name       string
		trialCount []float64
		want       []int
	}{
		{"one of six", []float64{100, 101, 99, 160, 100, 102}, []int{3}},
		{"none in ordinary noise", []float64{100, 105, 95, 110, 92, 103}, nil},
		{"a small one does not matter", []float64{100, 100, 100, 100, 100, 105}, nil},
		{"beside equal ones", []float64{100, 100, 100, 100, 100, 130}, []int{5}},
		{"too few to tell", []float64{100, 100, 100, 900}, nil},
		{"enough", []float64{100, 100, 100, 100, 900}, []int{4}},
		{"as far as ordinary ones", []float64{-1, -1, 0, 1, outlierScore * sd}, nil},
		{"just beyond", []float64{-1, -1, 0, 1, outlierScore*sd + 1e-9}, []int{4}},
		{"as much as need not matter", []float64{100, 100, 100, 100, 115}, nil},
	} {
		if got := Outliers(c.trialCount); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWarningsSayWhatIsWrongAndWhatToDo(t *testing.T) {
	record := func(trials ...float64) *Record {
		return &Record{Measurements: []Measurement{{Relay: "a", Scenario: "ingest.throughput", Metric: "accepted", Better: Higher, Trials: trials}}}
	}
	for _, c := range []struct {
		name string
		r    *Record
		want []string // a part of each
	}{
		{"nothing measured", &Record{}, nil},
		{"one trial", record(1), []string{"One trial: differences are not tested. Use --trials 6."}},
		{"few", record(1, 1, 1), []string{"3 trials are too few to rest a ranking on. Use --trials 6."}},
		{"enough", record(100, 101, 99, 100, 102, 100), nil},
		{"drift", record(100, 95, 90, 85, 80, 75), []string{"a drifts over its trials in 1 of 1 figure (accepted in ingest.throughput, -16 % from the first half to the second)"}},
		{"outlier", record(100, 101, 99, 40, 100, 102), []string{"a has outliers in 1 of 1 figure (accepted in ingest.throughput, trial 4, -60 % off the median)"}},
	} {
		got := Warnings(c.r)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", c.name, got)
			continue
		}
		for i, w := range c.want {
			if !strings.Contains(got[i], w) {
				t.Errorf("%s: %q lacks %q", c.name, got[i], w)
			}
		}
	}
	// What has no direction, and what is exact, is no sign of an unsteady machine.
	r := record(100, 95, 90, 85, 80, 75)
	for better, want := range map[Better]int{Higher: 1, Lower: 1, None: 0} {
		r.Measurements[0].Better = better
		if got := UnsteadyTrials(r); len(got) != want {
			t.Errorf("better %q: %q", better, got)
		}
	}
	r = record(100, 95, 90, 85, 80, 75)
	r.Measurements[0].Exact = true
	if got := UnsteadyTrials(r); len(got) > 0 {
		t.Errorf("an exact figure drifts: %q", got)
	}
}

// Of what is found in several figures and trials, the worst is told; of what is as bad, the first.
func TestWarningsTellOfTheWorst(t *testing.T) {
	for _, c := range []struct {
		name       string
		trialCount [][]float64 // of a figure each
		want       string
	}{
		{"a low outlier behind a high one", [][]float64{{100, 101, 99, 100, 160, 100, 30, 100}}, "1 of 1 figure (m0 in s, trial 7, -70 % off the median)"},
		{"a low outlier before a high one", [][]float64{{30, 101, 99, 100, 160, 100, 100, 100}}, "1 of 1 figure (m0 in s, trial 1, -70 % off the median)"},
		{"a high outlier behind a low one", [][]float64{{100, 40, 99, 100, 100, 100, 180, 101}}, "1 of 1 figure (m0 in s, trial 7, +80 % off the median)"},
		{"two figures", [][]float64{{100, 101, 99, 40, 100, 102}, {100, 101, 99, 30, 100, 102}}, "2 of 2 figures (m1 in s, trial 4, -70 % off the median)"},
		{"two that are as bad", [][]float64{{100, 101, 99, 40, 100, 102}, {100, 101, 99, 100, 40, 102}}, "2 of 2 figures (m0 in s, trial 4, -60 % off the median)"},
		{"one of two that drift", [][]float64{{100, 101, 99, 100, 98, 102}, {100, 95, 90, 85, 80, 75}}, "1 of 2 figures (m1 in s, -16 % from the first half to the second)"},
	} {
		r := &Record{}
		for i, trials := range c.trialCount {
			r.Measurements = append(r.Measurements, Measurement{Relay: "a", Scenario: "s", Metric: fmt.Sprint("m", i), Better: Higher, Trials: trials})
		}
		if got := UnsteadyTrials(r); len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %q lacks %q", c.name, got, c.want)
		}
	}
}
