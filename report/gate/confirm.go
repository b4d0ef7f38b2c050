package gate

import (
	"math"
	"slices"

	"relaybench/report"
	"relaybench/report/compare"
	"relaybench/results"
)

// Suspects are confirmed by new trials, in a group-sequential test: the runs and how many trials
// each has are settled before the first one, all trials since the first run are looked at together
// after each, and a look costs level. Look k may spend Alpha/2^k (1 %, 0.5 %, 0.25 %, …), so
// that all looks together spend less than Alpha however many they are, by Bonferroni's
// inequality: nothing is assumed of how they depend on each other. Slud and Wei, "Two-sample
// repeated significance tests based on the modified Wilcoxon statistic", JASA 77 (1982) 862, spend
// a rank test's level so; Lan and DeMets, Biometrika 70 (1983) 659, is the general form. Holm's
// method holds within a look, over all suspects: who was acquitted counts on, and with the first
// that is confirmed the gate is red.

// lookAlpha is the level of a look at the suspects' new trials, counted from 1.
func lookAlpha(look int) float64 { return math.Ldexp(Alpha, -look) }

// noSign is the p, of a figure by itself, from which on trials that were added show no sign of a
// change.
const noSign = 0.2

// confirmingRuns is how many trials a side the runs after the first have: as many as it, and then
// so many that the trials taken together double, up to most.
func confirmingRuns(trials, most int) []int {
	runs := []int{trials}
	for total := trials; total < most; {
		next := min(total, most-total)
		runs = append(runs, next)
		total += next
	}
	return runs
}

// Suspects lists the scenarios of figures that more trials have to confirm or acquit.
func (g *Verdict) Suspects() []string {
	var out []string
	for _, f := range g.Judged(Suspect, Unclear) {
		out = append(out, f.Scenario)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// MoreTrials is how many trials a side the next run, of the suspects' scenarios alone, has to have;
// 0 where the verdict is final.
func (g *Verdict) MoreTrials() int {
	if g.Result != Suspicious {
		return 0
	}
	return g.runs[len(g.later)]
}

// Confirm takes in another run of the suspects' scenarios, of the same relays, and concludes.
func (g *Verdict) Confirm(run *results.Record) error {
	run = report.Sanitized(run)
	if d := compare.Differences(g.rec, run); len(d) > 0 {
		return &compare.IncomparableError{Differences: d}
	}
	figures, err := g.compare(append(slices.Clone(g.later), run)...)
	if err != nil {
		return err
	}
	g.later = append(g.later, run)
	var suspects []*Figure
	var ps []float64
	for i := range g.Figures {
		f := &g.Figures[i]
		p := 1.0 // of who was acquitted
		if f.open() {
			if !f.renew(figures) {
				g.Short = append(g.Short, "nothing was measured of "+f.Name()+" in a run that was to confirm it")
				continue
			}
			p = f.Test.P
		}
		if f.First != nil {
			suspects, ps = append(suspects, f), append(ps, p)
		}
	}
	look := len(g.later)
	for k, p := range results.Holm(ps) {
		if f := suspects[k]; f.open() {
			f.Adjusted = min(math.Ldexp(p, look), 1)
			f.confirm(look > 1 || look >= len(g.runs))
		}
	}
	g.conclude()
	return nil
}

// open tells whether a figure is a suspect that is neither confirmed nor acquitted.
func (f *Figure) open() bool { return f.Judgement == Suspect || f.Judgement == Unclear }

// renew gives a suspect what the runs since the first found of it together. It fails where the last
// of them found nothing.
func (f *Figure) renew(figures []compare.Figure) bool {
	k := slices.IndexFunc(figures, func(x compare.Figure) bool { return x.Same(&f.Figure) })
	if k < 0 || figures[k].Test.N1 == 0 || figures[k].Outcome == compare.Incomplete {
		return false
	}
	before, known := f.Figure, f.Test.N2
	if f.First == nil {
		f.First, known = &before, 0
	}
	f.Figure = figures[k]
	return f.Test.N2 > known
}

// confirm says what a suspect's new trials, with their adjusted p, amount to. Long enough tells
// that trials were added already, or that none can be: until then, whatever is worse again is
// looked at more closely.
func (f *Figure) confirm(longEnough bool) {
	again := f.beyond(max(f.Threshold, f.Floor))
	switch {
	case again && f.Adjusted < Alpha:
		f.Judgement = GotWorse
	case !f.doubtful() && !f.grosslyInAll() && (!again || longEnough && f.Test.P >= noSign):
		f.Judgement = NotAgain
	default:
		f.Judgement = Unclear
	}
}

// beyond tells whether a figure's median is worse by more than a share. What was nothing, and is
// something, is beyond any.
func (f *Figure) beyond(share float64) bool {
	worse := f.Worse()
	return worse > share || math.IsNaN(worse) && math.IsInf(timesWorse(f.Better, f.Old.Center, f.New.Center), 1)
}

// doubtful tells whether no p acquits a figure: the medians say that it got grossly worse, or the
// trials scatter so widely that their intervals do not rule it out.
func (f *Figure) doubtful() bool {
	if f.reaches(grossly, f.Old.Center, f.New.Center) {
		return true
	}
	best, worst := f.Old.Lo, f.New.Hi
	if f.Better == results.Higher {
		best, worst = f.Old.Hi, f.New.Lo
	}
	return f.Old.Bounded() && f.New.Bounded() && f.reaches(widely, best, worst)
}

// grosslyInAll tells whether the medians of all runs' trials, the first one's included, say that it
// got grossly worse.
func (f *Figure) grosslyInAll() bool {
	before, after := slices.Concat(f.First.Before, f.Before), slices.Concat(f.First.After, f.After)
	return f.reaches(grossly, results.Summarize(before).Center, results.Summarize(after).Center)
}

// reaches tells whether going from old to fresh is worse by a factor, and by more than was allowed.
func (f *Figure) reaches(factor, old, fresh float64) bool {
	times := timesWorse(f.Better, old, fresh)
	share := times - 1
	if f.Better == results.Higher {
		share = 1 - 1/times
	}
	return times >= factor && share > f.Threshold
}

// timesWorse is how many times as large what counts against a figure is in the new median as in the
// old one: 9 for a latency nine times as long, and for a ninth of a rate. It is 1 for what is no
// worse, or has no direction.
func timesWorse(better results.Better, old, fresh float64) float64 {
	if better == results.Higher {
		old, fresh = fresh, old
	}
	switch {
	case better != results.Higher && better != results.Lower, !(fresh > old):
		return 1
	case old <= 0:
		return math.Inf(1)
	}
	return fresh / old
}
