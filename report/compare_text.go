package report

import (
	"fmt"
	"io"
	"math"

	"relaybench/results"
)

// Terminal writes the comparison for a terminal, a table for each relay. No line exceeds the width.
// Errors are those of w.
func (c *Comparison) Terminal(w io.Writer, o TerminalOptions) error { return c.document().print(w, o) }

// Markdown writes the comparison as GitHub-flavoured Markdown that is safe to publish. Errors are
// those of w.
func (c *Comparison) Markdown(w io.Writer) error { return c.document().markdown(w) }

func (c *Comparison) document() *document {
	d := &document{}
	d.add(heading{level: 1, title: "relaybench compare: " + c.Old.title() + " → " + c.New.title()})
	if len(c.Differences) > 0 {
		d.add(para{text: []span{{"NOT COMPARABLE, and shown because of --force: what differs decides the figures too.", redder}}})
	}
	for _, x := range c.Differences {
		d.item(failedMark, x.String(), red)
	}
	d.items(warningMark, c.Cautions, none)
	for _, x := range c.Unmatched {
		d.item(warningMark, x+".", none)
	}
	d.items(warningMark, c.alone(), none)
	for i := range c.Relays {
		r := &c.Relays[i]
		d.add(heading{level: 2, title: r.title()})
		t := &table{groups: "scenario", labels: 1, columns: []column{{head: "metric"}, {head: "old"}, {head: "new"}, {head: "change"}, {head: "evidence", left: true}}}
		for _, f := range r.shared() {
			t.rows = append(t.rows, tableRow{group: f.place(), cells: f.cells()})
		}
		if len(t.rows) == 0 {
			d.say("nothing that compares was measured", dim)
		}
		d.table(t)
	}
	d.add(gap{})
	d.say(compareLegend, dim)
	return d
}

const compareLegend = "Medians ± the wider half of their 95 % confidence interval (∞ under 6 trials). ~ no significant difference " +
	"(Mann–Whitney U, p ≥ 0.05, each figure by itself: of twenty that did not move, one seems to); = exactly equal."

// title is what a side is called in a heading.
func (s Side) title() string {
	if len(s.Records) == 1 {
		return s.Label
	}
	return fmt.Sprintf("%s (%s)", s.Label, count(len(s.Records), "file"))
}

// title is what a relay is called in a heading.
func (r *RelayComparison) title() string {
	if r.Old == r.New {
		return r.Old
	}
	return r.Old + " → " + r.New
}

// cells are a figure's row.
func (f *Figure) cells() []cell {
	s := f.scale()
	st := map[FigureOutcome]style{Improved: green, Worsened: red, Changed: yellow}[f.Outcome]
	return []cell{{text: f.label(f.title)}, {text: summaryText(f.Old, s, f.Exact)}, {text: summaryText(f.New, s, f.Exact)},
		{text: f.change(), style: st}, {text: f.evidence(), style: dim}}
}

// label is a metric by its title, or by its key, with its unit where the values do not show it.
func (f *Figure) label(metric string) string {
	label := withUnit(metric+prefixed(": ", f.Labels[results.LabelReason]), f.Unit)
	if f.Peer != "" {
		label += " with " + f.Peer
	}
	return label
}

func (f *Figure) scale() scale {
	var values []float64
	for _, s := range []results.Summary{f.Old, f.New} {
		if s.N > 0 {
			values = append(values, s.Center)
		}
	}
	return scaleFor(f.Unit, values)
}

// change is by how much the figure moved and whether that is good, or why that cannot be said.
func (f *Figure) change() string {
	switch f.Outcome {
	case Improved, Worsened, Changed:
		return percent(f.Test.Delta) + " " + string(f.Outcome)
	}
	return string(f.Outcome)
}

// evidence is p and the number of trials.
func (f *Figure) evidence() string {
	switch {
	case f.Outcome == OldAlone || f.Outcome == NewAlone || f.Outcome == Incomplete:
		return ""
	case f.Exact:
		return "exact"
	}
	return pText(f.Test.P) + " " + trialsText(f.Test.N1, f.Test.N2)
}

// summaryText is a median with its interval as a percentage.
func summaryText(m results.Summary, s scale, exact bool) string {
	switch {
	case m.N == 0:
		return "–"
	case exact:
		return s.format(m.Center)
	case !m.Bounded():
		return s.format(m.Center) + " ± ∞"
	}
	spread := m.Spread()
	if math.IsInf(spread, 0) {
		return s.format(m.Center) + " ± " + s.format(max(m.Hi-m.Center, m.Center-m.Lo))
	}
	return fmt.Sprintf("%s ± %.0f %%", s.format(m.Center), 100*spread)
}

// percent writes a share as a signed percentage.
func percent(share float64) string {
	switch a := math.Abs(100 * share); {
	case math.IsNaN(share):
		return "from 0"
	case share == 0:
		return "0 %"
	case a >= 1000:
		return fmt.Sprintf("%s×", number(1+share))
	case a >= 99.95:
		return fmt.Sprintf("%+.0f %%", 100*share)
	case a >= 0.05:
		return fmt.Sprintf("%+.1f %%", 100*share)
	}
	return fmt.Sprintf("%+.2g %%", 100*share)
}

func pText(p float64) string {
	switch {
	case p < 0.0001:
		return "p<0.0001"
	case p < 0.001:
		return fmt.Sprintf("p=%.4f", p)
	}
	return fmt.Sprintf("p=%.3f", p)
}

func trialsText(n1, n2 int) string {
	if n1 == n2 {
		return fmt.Sprintf("n=%d", n1)
	}
	return fmt.Sprintf("n=%d+%d", n1, n2)
}
