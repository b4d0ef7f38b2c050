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
func (g *GateVerdict) Terminal(w io.Writer, o TerminalOptions) error {
	t := &terminal{screen: o.screen(w)}
	t.line(span{"relaybench gate  ", bold}, span{g.Base + " → " + g.Head, bold})
	t.paragraph(span{}, span{g.Headline(), map[GateResult]style{GateGreen: bright, GateRed: redder, GateShort: redder, GateUndecided: yellow}[g.Result]})
	for _, s := range g.sentences(GotWorse, Differs) {
		t.paragraph(span{"  ✗ ", red}, span{s, red})
	}
	for _, s := range g.sentences(Suspect, Unclear, NotAgain) {
		t.paragraph(span{"  ? ", yellow}, span{s, none})
	}
	for _, s := range g.sentences(GotBetter) {
		t.paragraph(span{"  ✓ ", green}, span{s, green})
	}
	for _, c := range g.Cautions {
		t.paragraph(span{"  ! ", yellow}, span{c, none})
	}
	if len(g.Figures) > 0 {
		t.line()
		var rows [][]cell
		n := g.alike()
		for i := range g.Figures {
			f := &g.Figures[i]
			row := f.gateCells()
			if n != "" && !f.Exact { // said once, so that the table fits into lines of 100
				row[5].text = pText(f.Test.P)
			}
			rows = append(rows, row)
		}
		t.grid(2, 1, []string{n, "base", "head", "change", "", ""}, rows, firstLeftLastToo)
	}
	t.line()
	t.paragraph(span{"  ", none}, span{g.legend(), dim})
	t.files(o)
	return t.flush()
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
	return []cell{{f.name(), none}, {summaryText(f.Old, s, f.Exact), none}, {summaryText(f.New, s, f.Exact), none},
		{percent(f.Test.Delta), st}, {string(f.Judgement), st}, {f.evidence(), dim}}
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

// Markdown writes the verdict as GitHub-flavoured Markdown that is safe to publish. Errors are those of w.
func (g *GateVerdict) Markdown(w io.Writer) error {
	m := &markdown{screen: newScreen(w, 0, false)}
	m.p("## relaybench gate: %s → %s\n\n**%s**\n\n", mdText(g.Base), mdText(g.Head), mdText(g.Headline()))
	for _, s := range g.sentences(GotWorse, Differs) {
		m.p("- ✗ %s\n", mdText(s))
	}
	for _, s := range g.sentences(Suspect, Unclear, NotAgain) {
		m.p("- ? %s\n", mdText(s))
	}
	for _, s := range g.sentences(GotBetter) {
		m.p("- ✓ %s\n", mdText(s))
	}
	if g.Result == GateShort {
		for _, s := range g.Short {
			m.p("- ✗ %s\n", mdText(s))
		}
	}
	for _, c := range g.Cautions {
		m.p("- %s\n", mdText(c))
	}
	if len(g.Figures) > 0 {
		var rows [][]string
		for i := range g.Figures {
			f := &g.Figures[i]
			row := []string{mdCode(f.name())}
			for _, c := range f.gateCells()[1:] {
				row = append(row, mdText(c.text))
			}
			if f.Judgement.bad() {
				row[4] = "**" + row[4] + "**"
			}
			adjusted := ""
			if !f.Exact {
				adjusted = mdText(pText(f.Adjusted))
			}
			rows = append(rows, append(row, adjusted, mdText(percentText(f.Threshold))))
		}
		m.p("\n")
		m.table([]string{"figure", "base", "head", "change", "verdict", "evidence", "adjusted", "threshold"}, rows,
			func(column int) bool { return column > 0 && column < 4 || column == 7 })
	}
	m.p("\n%s\n", mdText(g.legend()))
	if r := g.rec; r.Corpus.Fingerprint != "" {
		e := r.Environment
		m.p("\nCorpus %s, %s on %s with %s, relaybench %s.\n", mdCode(shorten(r.Corpus.Fingerprint, 16)), mdText(count(r.Corpus.Events, "event")),
			mdText(e.CPU), mdText(count(e.Cores, "core")), mdText(r.Tool.Version))
	}
	return m.flush()
}
