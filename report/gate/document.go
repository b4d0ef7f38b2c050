package gate

import (
	"fmt"
	"strings"

	"relaybench/report"
	"relaybench/report/compare"
)

// Headline is the verdict in one line.
func (g *Verdict) Headline() string {
	switch g.Result {
	case FellShort:
		return fmt.Sprintf("FELL SHORT: %s is not fit to be compared: %s", g.Head, report.Some(g.Short, 3))
	case Suspicious:
		return fmt.Sprintf("SUSPICIOUS: %d of %s may have got worse", len(g.Judged(Suspect, Unclear)), report.Count(len(g.Figures), "figure"))
	case Red:
		return fmt.Sprintf("RED: %d of %s got worse", len(g.Judged(GotWorse, Differs)), report.Count(len(g.Figures), "figure"))
	case Undecided:
		return "UNDECIDED: " + g.whyUndecided()
	}
	return fmt.Sprintf("GREEN: none of %s got worse", report.Count(len(g.Figures), "figure"))
}

// whyUndecided says what could not be told, and what to do.
func (g *Verdict) whyUndecided() string {
	if short := g.shortages(); len(short) > 0 {
		return strings.TrimSuffix(short[0], ".")
	}
	if unclear := g.Judged(Unclear); len(unclear) > 0 {
		f, more := unclear[0], ""
		if n := len(unclear) - 1; n > 0 {
			more = fmt.Sprintf(", and so may %s", report.Count(n, "other figure"))
		}
		return fmt.Sprintf("%s may have got worse (%s, %s)%s: these trials cannot tell; use a quieter machine, or more trials (--max-trials above %d)",
			f.Name(), compare.Percent(f.Test.Delta), f.Evidence(), more, g.maxTrials)
	}
	if len(g.Figures) == 0 {
		return "nothing was measured that a gate judges"
	}
	n := len(g.tested())
	return fmt.Sprintf("too few trials to judge %s; use --trials %d", report.Count(n, "figure"), TrialsFor(n))
}

// sentences are what the verdict rests on, the worst first: one for each figure that moved.
func (g *Verdict) sentences(what ...Judgement) []string {
	var out []string
	for _, f := range g.Judged(what...) {
		s := f.Scale()
		text := fmt.Sprintf("%s: %s, from %s to %s", f.Name(), compare.Percent(f.Test.Delta), s.Format(f.Old.Center), s.Format(f.New.Center))
		if f.Exact {
			text += ", compared exactly"
		} else {
			text += fmt.Sprintf(" (%s, %s; threshold %s)", compare.PText(f.Test.P), compare.TrialsText(f.Test.N1, f.Test.N2), percentText(f.Threshold))
		}
		if f.First != nil {
			text += fmt.Sprintf("; in the first run %s (%s)", compare.Percent(f.First.Test.Delta), compare.PText(f.First.Test.P))
		}
		out = append(out, text)
	}
	return out
}

// percentText writes a share as per cent, with no more digits than it has.
func percentText(share float64) string {
	if x := 100 * share; x < 100 {
		return fmt.Sprintf("%.3g %%", x)
	}
	return report.Number(100*share) + " %"
}

// Document is the verdict for people: what got worse and better, and every figure that was judged.
func (g *Verdict) Document() *report.Document {
	d := &report.Document{}
	d.Title("relaybench gate: " + g.Base + " → " + g.Head)
	d.Lead(g.Headline(), map[Result]report.Style{Green: report.GreenBold, Red: report.RedBold, FellShort: report.RedBold,
		Undecided: report.Yellow, Suspicious: report.Bold}[g.Result])
	d.Items(report.FailedMark, g.sentences(GotWorse, Differs), report.Red)
	d.Items(report.DoubtMark, g.sentences(Suspect, Unclear, NotAgain), report.Plain)
	d.Items(report.PassedMark, g.sentences(GotBetter), report.Green)
	if g.Result == FellShort {
		d.Full(func() { d.Items(report.FailedMark, g.Short, report.Plain) })
	}
	d.Items(report.WarningMark, g.Cautions, report.Plain)
	d.Gap()
	n := g.alike()
	t := report.NewTable("", report.Column{Head: n}, report.Column{Head: "base"}, report.Column{Head: "head"}, report.Column{Head: "change"},
		report.Column{Head: "verdict", Left: true}, report.Column{Head: "evidence", Left: true},
		report.Column{Head: "adjusted", Left: true, Full: true}, report.Column{Head: "threshold", Full: true})
	for i := range g.Figures {
		f := &g.Figures[i]
		base, head := f.Summaries()
		st := map[Judgement]report.Style{GotWorse: report.RedBold, Differs: report.RedBold, Unclear: report.Yellow, GotBetter: report.Green}[f.Judgement]
		evidence, adjusted := f.Evidence(), ""
		if !f.Exact {
			adjusted = compare.PText(f.Adjusted)
			if n != "" { // said once, so that the table fits into lines of 100
				evidence = compare.PText(f.Test.P)
			}
		}
		t.Add("", report.Text(f.Name(), report.Plain), report.Text(base, report.Plain), report.Text(head, report.Plain),
			report.Text(compare.Percent(f.Test.Delta), st),
			report.Text(string(f.Judgement), st), report.Text(evidence, report.Dim), report.Text(adjusted, report.Plain), report.Text(percentText(f.Threshold), report.Plain))
	}
	if d.Table(t); len(g.Figures) > 0 {
		d.Gap()
	}
	d.Say(g.legend(), report.Dim)
	if r := g.rec; r.Corpus.Fingerprint != "" {
		e := r.Environment
		d.Full(func() {
			d.LeadCode("Corpus ", report.Shorten(r.Corpus.Fingerprint, 16), fmt.Sprintf(", %s on %s with %s, relaybench %s.",
				report.Count(r.Corpus.Events, "event"), e.CPU, report.Count(e.Cores, "core"), r.Tool.Version))
		})
	}
	return d
}

// alike is the number of trials that all figures rest on, "" where they differ.
func (g *Verdict) alike() string {
	text := ""
	for _, f := range g.tested() {
		trials := compare.TrialsText(f.Test.N1, f.Test.N2)
		if text != "" && text != trials {
			return ""
		}
		text = trials
	}
	return text
}

// legend says how the verdict came about, and what the words mean that are in it.
func (g *Verdict) legend() string {
	parts := []string{fmt.Sprintf("A figure is worse when two runs find it so: the first significantly by itself (Mann–Whitney U, p < 0.05) and by more than its threshold (%s unless said otherwise), or so much (%v times) or so uncertainly (up to %d times) that no p acquits it; and a second one, of such suspects alone, again. Where that cannot tell, more trials join it, up to %d a side. By Holm's method over the suspects, at half the level with each look: under 1 false alarm in 100 gates. Exact figures may not differ at all.",
		percentText(g.threshold), grossly, widely, g.maxTrials)}
	for _, x := range []struct {
		j    Judgement
		text string
	}{{NoEvidence, "~ no significant difference."}, {Unclear, "undecided: a suspect that later trials, shown here, neither confirm nor acquit."},
		{NotAgain, "not again: a suspect that later trials, shown here, acquitted."}, {SlightlyOff, "within: significant, and no more than the threshold."},
		{BelowNoise, "like noise: no more than base differs from itself."}} {
		if len(g.Judged(x.j)) > 0 {
			parts = append(parts, x.text)
		}
	}
	return strings.Join(append(parts, "p is a figure's by itself; ± is the 95 % confidence interval of the median: where it is wider than the threshold, more trials see smaller changes."), " ")
}
