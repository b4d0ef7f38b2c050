package gate

import (
	"bytes"
	"encoding/xml"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"relaybench/report/compare"
	"relaybench/results"
)

// TestGatesOfOneBuildAgainstItselfStayGreen simulates gates in which nothing changed. Red is
// promised less than once in a hundred of them; what cannot be told on a noisy machine is to stay
// rare, and so are the runs that it takes.
func TestGatesOfOneBuildAgainstItselfStayGreen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		noise          float64
		gates          int
		red, undecided float64 // at most this share of them
		runs           float64 // and so many runs a gate, the first one included
	}{{0.02, 100, 0, 0, 1.1}, {0.08, 1000, 0.005, 0.02, 1.5}, {0.25, 500, 0.005, 0.04, 1.7}} {
		c.gates /= fewer
		found, runs := map[Result]int{}, 0
		for seed := range uint64(c.gates) {
			m := newMachine(seed, c.noise)
			run := func(trials int) *results.Record {
				clear(m.spell)
				runs++
				return gated(trials, []string{"base", "head"}, func(relay, _ string, trial int, center float64, better results.Better) float64 {
					return m.value(relay, trial, center, better, 1)
				})
			}
			g := concluded(t, pairOfBuilds, run(10), run)
			found[g.Result]++
		}
		n := float64(c.gates)
		t.Logf("noise of %.0f %%: %v, %.2f runs a gate", 100*c.noise, found, float64(runs)/n)
		if float64(found[Red]) > math.Ceil(c.red*n) || float64(found[Undecided]) > math.Ceil(c.undecided*n) || found[Green]+found[Red]+found[Undecided] != c.gates {
			t.Errorf("noise of %.0f %%: %v of %d gates", 100*c.noise, found, c.gates)
		}
		if float64(runs) > c.runs*n {
			t.Errorf("noise of %.0f %%: %.2f runs a gate, want at most %.2f", 100*c.noise, float64(runs)/n, c.runs)
		}
	}
}

func TestASlowdownIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		noise, slower float64
		trials        int
		green, red    int // of 100: no more, and no fewer
	}{
		{"15 % under 3 % noise", 0.03, 1.15, 10, 2, 97},
		{"9 times under 3 % noise", 0.03, 9, 10, 0, 100},
		{"9 times under 50 % noise", 0.5, 9, 10, 0, 97},
		{"9 times under wild noise", 1.2, 9, 10, 0, 80},
		{"9 times under wild noise, few trials", 1.2, 9, 8, 0, 80},
	} {
		found, alone := map[Result]int{}, 0
		for seed := range uint64(100 / fewer) {
			m := newMachine(1000+seed, c.noise)
			run := func(trials int) *results.Record {
				clear(m.spell)
				return gated(trials, []string{"base", "head"}, func(relay, figure string, trial int, center float64, better results.Better) float64 {
					slower := 1.0
					if relay == "head" && figure == "ingest.visibility ok" {
						slower = c.slower
					}
					return m.value(relay, trial, center, better, slower)
				})
			}
			g := concluded(t, pairOfBuilds, run(c.trials), run)
			found[g.Result]++
			if worse := g.Judged(GotWorse); len(worse) == 1 && worse[0].Name() == "ingest.visibility ok" {
				alone++
			}
		}
		t.Logf("%s: %v, alone in %d", c.name, found, alone)
		if found[Green] > c.green/fewer || found[Red] < c.red/fewer || alone < found[Red]-3 {
			t.Errorf("%s: %v, and alone in %d", c.name, found, alone)
		}
	}
}

func TestConfirmingRunsDoubleTheTrialsUpToTheMost(t *testing.T) {
	for _, c := range []struct {
		trials, most int
		want         []int
	}{
		{10, 30, []int{10, 10, 10}},
		{6, 30, []int{6, 6, 12, 6}},
		{10, 10, []int{10}},
		{10, 11, []int{10, 1}},
		{30, 30, []int{30}},
		{40, 30, []int{40}},
		{5, 1000, []int{5, 5, 10, 20, 40, 80, 160, 320, 360}},
	} {
		if got := confirmingRuns(c.trials, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%d up to %d: %v, want %v", c.trials, c.most, got, c.want)
		}
	}
	spent := 0.0
	for look := 1; look < 50; look++ {
		spent += lookAlpha(look)
	}
	if lookAlpha(1) != 0.01 || lookAlpha(2) != 0.005 || spent > Alpha {
		t.Errorf("looks at %v, %v, …, together %v", lookAlpha(1), lookAlpha(2), spent)
	}
}

// sides is a record of one figure, ingest.visibility ok, with the given trials.
func sides(better results.Better, base, head []float64) *results.Record {
	r := gated(1, []string{"base", "head"}, flat1)
	r.Measurements = nil
	return figure(r, "ingest.visibility", "ok", better, bothSides{base, head})
}

// figure adds a figure to a record.
func figure(r *results.Record, scenario, metric string, better results.Better, s bothSides) *results.Record {
	add := func(relay string, trials []float64) {
		r.Measurements = append(r.Measurements, results.Measurement{Relay: relay, Scenario: scenario, Metric: metric, Unit: "ms", Better: better, Trials: trials})
	}
	add("base", s.base)
	add("head", s.head)
	return r
}

// timesOver multiplies each.
func timesOver(factor float64, trials []float64) []float64 {
	out := slices.Clone(trials)
	for i := range out {
		out[i] *= factor
	}
	return out
}

// A bothSides is one run's trials of one figure.
type bothSides struct{ base, head []float64 }

var six = []float64{1, 1.01, 1.02, 1.03, 1.04, 1.05}

// The trials of single runs. Each of six: 924 ways to order both sides, of which p counts those
// that are as far apart.
var (
	same      = bothSides{six, six}
	apart     = bothSides{six, timesOver(1.2, six)}                                                         // p = 2/924
	farApart  = bothSides{six, timesOver(9, six)}                                                           // p = 2/924
	slightly  = bothSides{six, timesOver(1.045, six)}                                                       // p = 4/924
	stalled   = bothSides{[]float64{1, 1.01, 1.02, 1.03, 1.04, 100}, timesOver(9, six)}                     // p = 60/924, for one trial of base
	crossed2  = bothSides{[]float64{1, 1.01, 1.02, 1.03, 1.04, 1.22}, timesOver(1.2, six)}                  // p = 8/924
	crossed3  = bothSides{[]float64{1, 1.01, 1.02, 1.03, 1.04, 1.23}, timesOver(1.2, six)}                  // p = 14/924
	mixed     = bothSides{six, []float64{0.9, 0.91, 1.2, 1.21, 1.22, 1.23}}                                 // p = 364/924
	even      = bothSides{six, []float64{0.9, 0.91, 0.92, 1.2, 1.21, 1.22}}                                 // p = 1
	torn      = bothSides{six, []float64{0.01, 0.02, 10, 11, 12, 13}}                                       // p = 364/924, ten times as slow
	scattered = bothSides{[]float64{0.5, 1, 1.1, 1.2, 1.3, 9}, []float64{0.4, 1.05, 1.15, 1.25, 1.35, 2.6}} // p > 0.6, intervals from 0.4 to 9
)

func TestSuspectsAreConfirmedAcquittedOrLeftUndecided(t *testing.T) {
	const s, u, n, w = Suspect, Unclear, NotAgain, GotWorse
	for _, c := range []struct {
		name        string
		runs        []bothSides // the first, and those that follow
		most        int         // --max-trials
		judged      []Judgement // after each
		more        []int       // trials that are asked for after each
		p, adjusted float64     // in the end, counted by hand
		want        Result
	}{
		{"no sign", []bothSides{same}, 30, []Judgement{NoEvidence}, []int{0}, 1, 1, Green},
		{"significant, but within the threshold", []bothSides{slightly}, 30, []Judgement{SlightlyOff}, []int{0}, 4. / 924, 4. / 924, Green},
		{"beyond the threshold, but not significant", []bothSides{mixed}, 30, []Judgement{NoEvidence}, []int{0}, 364. / 924, 364. / 924, Green},
		{"worse in both runs", []bothSides{apart, apart}, 30, []Judgement{s, w}, []int{6, 0}, 2. / 924, 4. / 924, Red},
		{"not again", []bothSides{apart, same}, 30, []Judgement{s, n}, []int{6, 0}, 1, 1, Green},
		{"again, but within the threshold", []bothSides{apart, slightly}, 30, []Judgement{s, n}, []int{6, 0}, 4. / 924, 8. / 924, Green},
		{"just enough for a first look", []bothSides{apart, crossed2}, 30, []Judgement{s, w}, []int{6, 0}, 8. / 924, 16. / 924, Red},
		{"not quite enough for a first look", []bothSides{apart, crossed3}, 30, []Judgement{s, u}, []int{6, 6}, 14. / 924, 28. / 924, Suspicious},
		{"and none more to be had", []bothSides{apart, crossed3}, 6, []Judgement{s, u}, []int{6, 0}, 14. / 924, 28. / 924, Undecided},
		{"nine times, p = 0.065 in the second run", []bothSides{farApart, stalled}, 30, []Judgement{s, u}, []int{6, 6}, 60. / 924, 120. / 924, Suspicious},
		{"nine times, p = 0.065 in the second run, told by a third", []bothSides{farApart, stalled, farApart}, 30, []Judgement{s, u, w}, []int{6, 6, 0}, 0.000201172, 0.000804687, Red},
		{"nine times, p = 0.065 in both", []bothSides{stalled, stalled}, 6, []Judgement{s, u}, []int{6, 0}, 60. / 924, 120. / 924, Undecided},
		{"no sign in the trials that were added", []bothSides{apart, mixed, even}, 30, []Judgement{s, u, n}, []int{6, 6, 0}, 0.513723, 1, Green},
		{"no sign, and none more to be had", []bothSides{apart, mixed}, 6, []Judgement{s, n}, []int{6, 0}, 364. / 924, 728. / 924, Green},
		{"some sign up to the last", []bothSides{apart, mixed, mixed, mixed, mixed}, 30, []Judgement{s, u, u, u, u}, []int{6, 6, 12, 6, 0}, 0.0482797, 0.772475, Undecided},
		{"ten times without any sign", []bothSides{torn, torn, mixed}, 12, []Judgement{s, u, u}, []int{6, 6, 0}, 0.178182, 0.712728, Undecided},
		{"nine times and then not at all", []bothSides{farApart, same, same}, 30, []Judgement{s, u, n}, []int{6, 6, 0}, 1, 1, Green},
		{"scattered and then not", []bothSides{scattered, same}, 30, []Judgement{s, n}, []int{6, 0}, 1, 1, Green},
		{"scattered to the last", []bothSides{scattered, scattered}, 6, []Judgement{s, u}, []int{6, 0}, -1, -1, Undecided},
		{"five trials, whose medians have no interval", []bothSides{{six[:5], timesOver(1.2, six[:5])}, {six[:5], timesOver(1.2, six[:5])}}, 30, []Judgement{s, w}, []int{5, 0}, 2. / 252, 4. / 252, Red},
		{"five trials, and no sign", []bothSides{{six[:5], six[:5]}}, 30, []Judgement{NoEvidence}, []int{0}, 1, 1, Green},
		{"four trials", []bothSides{{six[:4], timesOver(9, six[:4])}}, 30, []Judgement{Undecidable}, []int{0}, 2. / 70, 2. / 70, Undecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := pairOfBuilds
			o.MaxTrials = c.most
			for _, better := range []results.Better{results.Lower, results.Higher} {
				var g *Verdict
				for k, want := range c.judged {
					tiny := 1 + 1e-7*float64(k) // so that trials of different runs are no ties
					base, head := timesOver(tiny, c.runs[k].base), timesOver(tiny, c.runs[k].head)
					if better == results.Higher { // a rate, where as much slower is as much less
						base, head = inverse(base), inverse(head)
					}
					if r := sides(better, base, head); k == 0 {
						g = mustGate(t, r, o)
					} else if err := g.Confirm(r); err != nil {
						t.Fatal(err)
					}
					if f := g.Figures[0]; f.Judgement != want || g.MoreTrials() != c.more[k] {
						t.Fatalf("%s, run %d: %q (%s), %d more trials; want %q and %d", better, k+1, f.Judgement, f.Evidence(), g.MoreTrials(), want, c.more[k])
					}
				}
				f := g.Figures[0]
				if c.p >= 0 && (math.Abs(f.Test.P-c.p) > 1e-6 || math.Abs(f.Adjusted-c.adjusted) > 1e-5) {
					t.Errorf("%s: p = %.6f, adjusted %.6f; want %.6f, %.6f", better, f.Test.P, f.Adjusted, c.p, c.adjusted)
				}
				if g.Result != c.want || (f.First != nil) != (len(c.judged) > 1) {
					t.Errorf("%s: %s, want %s; first run %+v", better, g.Headline(), c.want, f.First)
				}
			}
		})
	}
}

func inverse(trials []float64) []float64 {
	out := slices.Clone(trials)
	for i := range out {
		out[i] = 1 / out[i]
	}
	return out
}

// two is a record of two figures of two scenarios.
func two(ok, eose bothSides) *results.Record {
	return figure(sides(results.Lower, ok.base, ok.head), "query.thread.hot", "eose", results.Lower, eose)
}

func TestSuspectsAreJudgedTogether(t *testing.T) {
	for _, c := range []struct {
		name     string
		runs     []*results.Record
		judged   [2]Judgement // ingest.visibility ok, query.thread.hot eose
		adjusted [2]float64
		want     Result
		suspects []string
		headline string
	}{
		{"p = 0.0087 of one is enough", []*results.Record{two(apart, same), two(crossed2, same)}, [2]Judgement{GotWorse, NoEvidence}, [2]float64{16. / 924, 1}, Red, nil, "RED: 1 of 2 figures got worse"},
		{"p = 0.0087 of two is not", []*results.Record{two(apart, apart), two(crossed2, crossed2)}, [2]Judgement{Unclear, Unclear}, [2]float64{32. / 924, 32. / 924}, Suspicious, []string{"ingest.visibility", "query.thread.hot"}, "SUSPICIOUS: 2 of 2 figures may have got worse"},
		{"both are worse", []*results.Record{two(apart, apart), two(apart, apart)}, [2]Judgement{GotWorse, GotWorse}, [2]float64{8. / 924, 8. / 924}, Red, nil, "RED: 2 of 2 figures got worse"},
		{"who was acquitted counts on", []*results.Record{two(apart, apart), two(same, crossed2)}, [2]Judgement{NotAgain, Unclear}, [2]float64{1, 32. / 924}, Suspicious, []string{"query.thread.hot"}, "SUSPICIOUS: 1 of 2 figures may have got worse"},
		{"and in the looks that follow", []*results.Record{two(apart, apart), two(same, crossed3), two(same, crossed3)}, [2]Judgement{NotAgain, GotWorse}, [2]float64{1, 8 * 0.000201172}, Red, nil, "RED: 1 of 2 figures got worse"},
		{"one that is worse ends it", []*results.Record{two(apart, apart), two(apart, mixed)}, [2]Judgement{GotWorse, Unclear}, [2]float64{8. / 924, 728. / 924}, Red, nil, "RED: 1 of 2 figures got worse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := mustGate(t, c.runs[0], pairOfBuilds)
			for k, r := range c.runs[1:] {
				tiny := 1 + 1e-7*float64(k)
				for i := range r.Measurements {
					r.Measurements[i].Trials = timesOver(tiny, r.Measurements[i].Trials)
				}
				if err := g.Confirm(r); err != nil {
					t.Fatal(err)
				}
			}
			for i, f := range g.Figures {
				if f.Judgement != c.judged[i] || math.Abs(f.Adjusted-c.adjusted[i]) > 1e-5 {
					t.Errorf("%s: %q, adjusted %.5f; want %q, %.5f", f.Name(), f.Judgement, f.Adjusted, c.judged[i], c.adjusted[i])
				}
			}
			if g.Result != c.want || g.Headline() != c.headline {
				t.Errorf("%s: %q, want %s: %q", g.Result, g.Headline(), c.want, c.headline)
			}
			if got := g.Suspects(); g.Result == Suspicious && !slices.Equal(got, c.suspects) {
				t.Errorf("suspects %q, want %q", got, c.suspects)
			}
			if more := g.MoreTrials(); (more > 0) != (c.want == Suspicious) {
				t.Errorf("%s asks for %d more trials", g.Result, more)
			}
		})
	}
}

func TestWhatARunThatConfirmsLacksIsToldOfHead(t *testing.T) {
	want := "nothing was measured of query.thread.hot eose in a run that was to confirm it"
	lacking := sides(results.Lower, same.base, same.head)
	g := concluded(t, pairOfBuilds, two(same, apart), func(int) *results.Record { return lacking })
	if g.Result != FellShort || !slices.Equal(g.Short, []string{want}) {
		t.Errorf("%s %q", g.Result, g.Short)
	}
	// Trials of a run before do not stand for those that the last one lacks.
	g = mustGate(t, two(same, apart), pairOfBuilds)
	for _, r := range []*results.Record{two(same, crossed3), lacking} {
		if err := g.Confirm(r); err != nil {
			t.Fatal(err)
		}
	}
	if g.Result != FellShort || !slices.Equal(g.Short, []string{want}) {
		t.Errorf("%s %q", g.Result, g.Short)
	}
	// Nor does what head has stand for what base lacks.
	g = concluded(t, pairOfBuilds, two(same, apart), func(int) *results.Record { return two(same, bothSides{nil, apart.head}) })
	if g.Result != FellShort || !slices.Equal(g.Short, []string{want}) {
		t.Errorf("%s %q", g.Result, g.Short)
	}
	// Another corpus is another matter.
	g = mustGate(t, two(same, apart), pairOfBuilds)
	other := two(same, apart)
	other.Corpus.Fingerprint = strings.Repeat("1", 64)
	var incomparable *compare.IncomparableError
	if err := g.Confirm(other); !errors.As(err, &incomparable) || g.MoreTrials() != 6 {
		t.Errorf("%v, and %d more trials", err, g.MoreTrials())
	}
}

// TestTheNoiseFloorAcquitsNobodyWhoIsGrosslyWorse has base differ from itself by as much as from
// head.
func TestTheNoiseFloorAcquitsNobodyWhoIsGrosslyWorse(t *testing.T) {
	for _, c := range []struct {
		times float64
		first Judgement
		want  Result
	}{{1.2, BelowNoise, Green}, {1.45, BelowNoise, Green}, {1.55, Suspect, Undecided}, {9, Suspect, Undecided}} {
		again := bothSides{six, timesOver(c.times, six)}
		r := sides(results.Lower, again.base, again.head)
		r.Measurements = append(r.Measurements, results.Measurement{Relay: "again", Scenario: "ingest.visibility", Metric: "ok", Unit: "ms", Better: results.Lower, Trials: again.head})
		o := pairOfBuilds
		o.Again, o.MaxTrials = "again", 6
		g := mustGate(t, r, o)
		if j := g.Figures[0].Judgement; j != c.first || math.Abs(g.Figures[0].Floor-(c.times-1)) > 1e-9 {
			t.Errorf("%v times: %q, floor %v", c.times, j, g.Figures[0].Floor)
		}
		if g = concluded(t, o, r, func(int) *results.Record { return r }); g.Result != c.want {
			t.Errorf("%v times: %s", c.times, g.Headline())
		}
	}
}

func TestFromNothingToSomethingIsWorseThanAnyThreshold(t *testing.T) {
	nothing := []float64{0, 0, 0, 0, 0, 0}
	grown := bothSides{nothing, six}
	g := concluded(t, pairOfBuilds, sides(results.Lower, grown.base, grown.head), func(int) *results.Record { return sides(results.Lower, grown.base, grown.head) })
	if g.Result != Red || !math.IsNaN(g.Figures[0].Worse()) {
		t.Errorf("a latency from nothing: %s", g.Headline())
	}
	g = concluded(t, pairOfBuilds, sides(results.Higher, six, nothing), func(int) *results.Record { return sides(results.Higher, six, nothing) })
	if g.Result != Red {
		t.Errorf("a rate to nothing: %s", g.Headline())
	}
	for name, r := range map[string]*results.Record{"a rate from nothing": sides(results.Higher, nothing, six), "a latency to nothing": sides(results.Lower, six, nothing), "nothing at all": sides(results.Lower, nothing, nothing)} {
		if g := mustGate(t, r, pairOfBuilds); g.Result != Green {
			t.Errorf("%s: %s", name, g.Headline())
		}
	}
}

func TestTimesWorse(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		better           results.Better
		old, fresh, want float64
	}{
		{results.Lower, 2, 18, 9}, {results.Higher, 18, 2, 9}, {results.Lower, 18, 2, 1}, {results.Higher, 2, 18, 1}, {results.Lower, 2, 2, 1},
		{results.Lower, 0, 2, inf}, {results.Higher, 2, 0, inf}, {results.Lower, 0, 0, 1}, {results.Higher, 0, 0, 1}, {results.Lower, -1, 2, inf},
		{results.None, 2, 18, 1}, {results.Lower, math.NaN(), 2, 1}, {results.Lower, 2, inf, inf},
	} {
		if got := timesWorse(c.better, c.old, c.fresh); got != c.want {
			t.Errorf("%s, %v to %v: %v times, want %v", c.better, c.old, c.fresh, got, c.want)
		}
	}
}

func TestHowWidelyTrialsMayScatter(t *testing.T) {
	for _, c := range []struct {
		highest float64 // of head; the lowest of base is 1
		noise   Judgement
		allowed float64 // the threshold
	}{{4.9, NoEvidence, 0.05}, {5.1, Suspect, 0.05}, {5.1, NoEvidence, 4.2}, {5.1, Suspect, 4}} {
		base, head := six, []float64{1.001, 1.011, 1.021, 1.031, 1.041, c.highest}
		o := pairOfBuilds
		o.Threshold = c.allowed
		if g := mustGate(t, sides(results.Lower, base, head), o); g.Figures[0].Judgement != c.noise {
			t.Errorf("up to %v times, threshold %v: %q, want %q", c.highest, c.allowed, g.Figures[0].Judgement, c.noise)
		}
	}
	// A fifth of a rate is 80 % less, and no rate falls by more than 100 %.
	for allowed, want := range map[float64]Judgement{0.05: Suspect, 0.79: Suspect, 0.81: NoEvidence, 100: NoEvidence} {
		o := pairOfBuilds
		o.Threshold = allowed
		g := mustGate(t, sides(results.Higher, six, []float64{0.205, 1.011, 1.021, 1.031, 1.041, 1.051}), o)
		if g.Figures[0].Judgement != want {
			t.Errorf("a rate down to 0.205, threshold %v: %q, want %q", allowed, g.Figures[0].Judgement, want)
		}
	}
}

func TestAGateCountsWhatItJudges(t *testing.T) {
	for scenario, want := range map[string]int{"ingest.throughput": 2, "ingest.visibility": 2, "query.thread.hot": 2, "storage": 2, "negentropy": 5, "ingest.paced": 0, "calibration": 0, "ingestion": 0} {
		if got := FiguresOf(scenario); got != want {
			t.Errorf("%s: %d figures, want %d", scenario, got, want)
		}
	}
	for figures, want := range map[int]int{0: 5, 1: 5, 2: 6, 4: 6, 5: 7, 17: 7, 18: 8} {
		if got := TrialsFor(figures); got != want {
			t.Errorf("%d figures: %d trials, want %d", figures, got, want)
		}
		if n := max(figures, 1); !decides(n, want, want) || decides(n, want-1, want-1) {
			t.Errorf("%d figures: %d trials decide: %t, and one fewer %t", figures, want, decides(n, want, want), decides(n, want-1, want-1))
		}
	}
	// 1 trial against 199 has a p of 1 % at its smallest, which is not below the first look's
	// level.
	if decides(1, 1, 199) || !decides(1, 1, 200) {
		t.Error("a p at the level decides, or one below it does not")
	}
}

func TestABaselineMustHaveTrialsThatDecide(t *testing.T) {
	all := []string{"ingest.throughput", "ingest.visibility", "query.thread.hot", "query.thread.varied", "query.firehose.hot", "query.firehose.varied", "query.follow-feed.hot", "query.follow-feed.varied", "storage"}
	for _, c := range []struct {
		baseline, head int
		scenarios      []string
		want           string
	}{
		{10, 10, all, ""},
		{3, 10, all, "the baseline has 3 trials, which cannot judge 18 figures together with 10 of head: store a run with at least --trials 8"},
		{3, 10, all[:1], "the baseline has 3 trials, which cannot judge 2 figures together with 10 of head: store a run with at least --trials 6"},
		{5, 10, all[:1], ""},
		{3, 10, []string{"negentropy", "ingest", "stor"}, "4 figures"}, // ingest stands for its parts, stor for nothing
		{3, 10, []string{"preflight", "stor"}, ""},
	} {
		err := BaselineDecides(gated(c.baseline, []string{"mine"}, flat1), "mine", c.scenarios, c.head)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d trials, %q: %v, want %q", c.baseline, c.scenarios, err, c.want)
		}
	}
	if err := BaselineDecides(gated(3, []string{"mine"}, flat1), "yours", all, 10); err != nil {
		t.Errorf("of a relay that is not in it: %v", err)
	}
	// Against a stored record, it is head's trials alone that become more.
	stored := gated(10, []string{"mine"}, flat1)
	stored.Measurements = nil
	figure(stored, "ingest.visibility", "ok", results.Lower, bothSides{base: six})
	stored.Measurements = slices.DeleteFunc(stored.Measurements, func(m results.Measurement) bool { return len(m.Trials) == 0 })
	stored.Measurements[0].Relay = "mine"
	o := Options{Base: "mine", Head: "head", Baseline: stored, Threshold: 0.05, MaxTrials: 18}
	run := func(s bothSides) *results.Record {
		r := gated(1, []string{"head"}, flat1)
		r.Measurements = []results.Measurement{{Relay: "head", Scenario: "ingest.visibility", Metric: "ok", Unit: "ms", Better: results.Lower, Trials: s.head}}
		return r
	}
	g := concluded(t, o, run(apart), func(int) *results.Record { return run(crossed3) })
	if f := g.Figures[0]; g.Result != Red || f.Test.N1 != 6 || f.Test.N2 != 6 {
		t.Errorf("%s over %d and %d trials", g.Headline(), f.Test.N1, f.Test.N2)
	}
	five := *stored
	five.Measurements = slices.Clone(stored.Measurements)
	five.Measurements[0].Trials = six[:5]
	if g := mustGate(t, run(same), Options{Base: "mine", Head: "head", Baseline: &five, Threshold: 0.05}); g.Result != Green {
		t.Errorf("five trials, whose median has no interval: %s", g.Headline())
	}
	g = concluded(t, o, run(apart), func(int) *results.Record { return run(mixed) })
	if f := g.Figures[0]; g.Result != Green || f.Judgement != NotAgain || f.Test.N1 != 6 || f.Test.N2 != 12 {
		t.Errorf("%s over %d and %d trials", g.Headline(), f.Test.N1, f.Test.N2)
	}
}

func TestAnUndecidedGateSaysWhatAndWhy(t *testing.T) {
	o := pairOfBuilds
	o.MaxTrials = 6
	one := concluded(t, o, two(stalled, same), func(int) *results.Record { return two(stalled, same) })
	both := concluded(t, o, two(stalled, torn), func(int) *results.Record { return two(stalled, torn) })
	const sentence = "ingest.visibility ok: +800 %, from 1.02 ms to 9.22 ms (p=0.065, n=6; threshold 5 %); in the first run +800 % (p=0.065)"
	for _, c := range []struct {
		g             *Verdict
		headline      string
		errors, tests int
	}{
		{one, "UNDECIDED: ingest.visibility ok may have got worse (+800 %, p=0.065 n=6): these trials cannot tell; use a quieter machine, or more trials (--max-trials above 6)", 2, 4},
		{both, "UNDECIDED: query.thread.hot eose may have got worse (+924 %, p=0.394 n=6), and so may 1 other figure: these trials cannot tell; use a quieter machine, or more trials (--max-trials above 6)", 3, 4},
		{mustGate(t, gated(4, []string{"base", "head"}, flat1), o), "UNDECIDED: too few trials to judge 18 figures; use --trials 8", 1, 21},
	} {
		if got := c.g.Headline(); got != c.headline {
			t.Errorf("got  %q\nwant %q", got, c.headline)
		}
		var b bytes.Buffer
		if err := c.g.JUnit(&b); err != nil {
			t.Fatal(err)
		}
		var s junitSuite
		if err := xml.Unmarshal(b.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, x := range s.Cases {
			if x.Error != nil {
				found++
				if x.Error.Type != "undecided" || x.Failure != nil || x.Skipped != nil {
					t.Errorf("%s: %+v", x.Name, x)
				}
			}
		}
		last := s.Cases[len(s.Cases)-1]
		if s.Errors != c.errors || found != c.errors || s.Failures != 0 || s.Tests != c.tests || last.Error == nil || last.Error.Message != c.headline {
			t.Errorf("%d errors (%d found), %d failures, %d tests; the last is %+v", s.Errors, found, s.Failures, s.Tests, last)
		}
	}
	if got := one.sentences(Unclear); len(got) != 1 || got[0] != sentence {
		t.Errorf("got  %q\nwant %q", got, sentence)
	}
}
