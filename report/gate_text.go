package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Headline is the verdict in one line.
func (g *GateVerdict) Headline() string {
	switch g.Result {
	case GateShort:
		return fmt.Sprintf("FELL SHORT: %s is not fit to be compared: %s", g.Head, some(g.Short, 3))
	case GateSuspects:
		return fmt.Sprintf("SUSPICIOUS: %d of %s may have got worse", len(g.Judged(Suspect, Unclear)), count(len(g.Figures), "figure"))
	case GateRed:
		return fmt.Sprintf("RED: %d of %s got worse", len(g.Judged(GotWorse, Differs)), count(len(g.Figures), "figure"))
	case GateUndecided:
		return "UNDECIDED: " + g.whyUndecided()
	}
	return fmt.Sprintf("GREEN: none of %s got worse", count(len(g.Figures), "figure"))
}

// whyUndecided says what could not be told, and what to do.
func (g *GateVerdict) whyUndecided() string {
	if short := g.shortages(); len(short) > 0 {
		return strings.TrimSuffix(short[0], ".")
	}
	unclear := g.Judged(Unclear)
	if len(unclear) > 0 {
		f, more := unclear[0], ""
		if n := len(unclear) - 1; n > 0 {
			more = fmt.Sprintf(", and so may %s", count(n, "other figure"))
		}
		return fmt.Sprintf("%s may have got worse (%s, %s)%s: these trials cannot tell; use a quieter machine, or more trials (--max-trials above %d)",
			f.name(), percent(f.Test.Delta), f.evidence(), more, g.maxTrials)
	}
	if len(g.Figures) == 0 {
		return "nothing was measured that a gate judges"
	}
	n := 0
	for i := range g.Figures {
		if !g.Figures[i].Exact {
			n++
		}
	}
	return fmt.Sprintf("too few trials to judge %s; use --trials %d", count(n, "figure"), GateTrials(n))
}

// sentences are what the verdict rests on, the worst first: one for each figure that moved.
func (g *GateVerdict) sentences(what ...Judgement) []string {
	var out []string
	for _, f := range g.Judged(what...) {
		s := f.scale()
		text := fmt.Sprintf("%s: %s, from %s to %s", f.name(), percent(f.Test.Delta), s.format(f.Old.Center), s.format(f.New.Center))
		if f.Exact {
			text += ", compared exactly"
		} else {
			text += fmt.Sprintf(" (%s, %s; threshold %s)", pText(f.Test.P), trialsText(f.Test.N1, f.Test.N2), percentText(f.Threshold))
		}
		if f.First != nil {
			text += fmt.Sprintf("; in the first run %s (%s)", percent(f.First.Test.Delta), pText(f.First.Test.P))
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
	return number(100*share) + " %"
}

// Terminal writes the verdict on one screen: what got worse and better, and every figure that was judged. Errors are those of w.
func (g *GateVerdict) Terminal(w io.Writer, o TerminalOptions) error { return g.document().print(w, o) }

// Markdown writes the verdict as GitHub-flavoured Markdown that is safe to publish. Errors are
// those of w.
func (g *GateVerdict) Markdown(w io.Writer) error { return g.document().markdown(w) }

func (g *GateVerdict) document() *document {
	d := &document{}
	d.add(heading{level: 1, title: "relaybench gate: " + g.Base + " → " + g.Head})
	st, ok := map[GateResult]style{GateGreen: bright, GateRed: redder, GateShort: redder, GateUndecided: yellow}[g.Result]
	if !ok {
		st = bold
	}
	d.add(para{text: []span{{g.Headline(), st}}})
	d.items(failedMark, g.sentences(GotWorse, Differs), red)
	d.items(doubtMark, g.sentences(Suspect, Unclear, NotAgain), none)
	d.items(passedMark, g.sentences(GotBetter), green)
	if g.Result == GateShort {
		d.to(full, func() { d.items(failedMark, g.Short, none) })
	}
	d.items(warningMark, g.Cautions, none)
	d.add(gap{})
	n := g.alike()
	t := &table{labels: 1, columns: []column{{head: n}, {head: "base"}, {head: "head"}, {head: "change"}, {head: "verdict", left: true}, {head: "evidence", left: true},
		{head: "adjusted", left: true, full: true}, {head: "threshold", full: true}}}
	for i := range g.Figures {
		row := g.Figures[i].gateCells()
		if n != "" && !g.Figures[i].Exact { // said once, so that the table fits into lines of 100
			row[5].text = pText(g.Figures[i].Test.P)
		}
		t.rows = append(t.rows, tableRow{cells: row})
	}
	if d.table(t); len(t.rows) > 0 {
		d.add(gap{})
	}
	d.say(g.legend(), dim)
	if r := g.rec; r.Corpus.Fingerprint != "" {
		e := r.Environment
		d.to(full, func() {
			d.add(para{text: []span{{"Corpus ", none}, {shorten(r.Corpus.Fingerprint, 16), code}, {fmt.Sprintf(", %s on %s with %s, relaybench %s.",
				count(r.Corpus.Events, "event"), e.CPU, count(e.Cores, "core"), r.Tool.Version), none}}})
		})
	}
	return d
}

// alike is the number of trials that all figures rest on, "" where they differ.
func (g *GateVerdict) alike() string {
	n := ""
	for i := range g.Figures {
		f := &g.Figures[i]
		if f.Exact {
			continue
		}
		text := trialsText(f.Test.N1, f.Test.N2)
		if n != "" && n != text {
			return ""
		}
		n = text
	}
	return n
}

// gateCells are a judged figure's row.
func (f *GateFigure) gateCells() []cell {
	s := f.scale()
	st := map[Judgement]style{GotWorse: redder, Differs: redder, Unclear: yellow, GotBetter: green}[f.Judgement]
	adjusted := ""
	if !f.Exact {
		adjusted = pText(f.Adjusted)
	}
	return []cell{{text: f.name()}, {text: summaryText(f.Old, s, f.Exact)}, {text: summaryText(f.New, s, f.Exact)}, {text: percent(f.Test.Delta), style: st},
		{text: string(f.Judgement), style: st}, {text: f.evidence(), style: dim}, {text: adjusted}, {text: percentText(f.Threshold)}}
}

// legend says how the verdict came about.
func (g *GateVerdict) legend() string {
	var parts []string
	has := func(j Judgement) bool {
		return slices.ContainsFunc(g.Figures, func(f GateFigure) bool { return f.Judgement == j })
	}
	parts = append(parts, fmt.Sprintf("A figure is worse when two runs find it so: the first significantly by itself (Mann–Whitney U, p < 0.05) and by more than its threshold (%s unless said otherwise), or so much (%v times) or so uncertainly (up to %d times) that no p acquits it; and a second one, of such suspects alone, again. Where that cannot tell, more trials join it, up to %d a side. By Holm's method over the suspects, at half the level with each look: under 1 false alarm in 100 gates. Exact figures may not differ at all.",
		percentText(g.threshold), grossly, widely, g.maxTrials))
	for _, x := range []struct {
		j    Judgement
		text string
	}{{NoEvidence, "~ no significant difference"}, {Unclear, "undecided: a suspect that later trials, shown here, neither confirm nor acquit"}, {NotAgain, "not again: a suspect that later trials, shown here, acquitted"}, {SlightlyOff, "within: significant, and no more than the threshold"}, {BelowNoise, "like noise: no more than base differs from itself"}} {
		if has(x.j) {
			parts = append(parts, x.text+".")
		}
	}
	parts = append(parts, "p is a figure's by itself; ± is the 95 % confidence interval of the median: where it is wider than the threshold, more trials see smaller changes.")
	return strings.Join(parts, " ")
}
