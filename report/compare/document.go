package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"relaybench/report"
	"relaybench/results"
)

// Document is the comparison for people, a table for each relay.
func (c *Comparison) Document() *report.Document {
	d := &report.Document{}
	d.Title("relaybench compare: " + c.Old.title() + " → " + c.New.title())
	if len(c.Differences) > 0 {
		d.Lead("NOT COMPARABLE, and shown because of --force: the figures may differ for these reasons alone.", report.RedBold)
	}
	for _, x := range c.Differences {
		d.Items(report.FailedMark, []string{x.String()}, report.Red)
	}
	cautions := slices.Clone(c.Cautions)
	for _, x := range c.Unmatched {
		cautions = append(cautions, x+".")
	}
	d.Items(report.WarningMark, append(cautions, c.alone()...), report.Plain)
	for i := range c.Relays {
		r := &c.Relays[i]
		d.Section(r.title())
		t := report.NewTable("scenario", report.Column{Head: "metric"}, report.Column{Head: "old"}, report.Column{Head: "new"},
			report.Column{Head: "change"}, report.Column{Head: "evidence", Left: true})
		shared := r.shared()
		for _, f := range shared {
			before, after := f.Summaries()
			t.Add(f.place(), report.Text(f.Label(f.title), report.Plain), report.Text(before, report.Plain), report.Text(after, report.Plain),
				f.change(), report.Text(f.Evidence(), report.Dim))
		}
		if len(shared) == 0 {
			d.Say("nothing that compares was measured", report.Dim)
		}
		d.Table(t)
	}
	d.Gap()
	d.Say(legend, report.Dim)
	return d
}

const legend = "Medians ± the wider half of their 95 % confidence interval (∞ under 6 trials). ~ no significant difference " +
	"(Mann–Whitney U, p ≥ 0.05, each figure by itself: of twenty that did not move, one seems to); = exactly equal."

// alone says of each side, once for all relays alike, what was measured there and not on the other:
// a scenario of which the other has nothing by its name alone.
func (c *Comparison) alone() (all []string) {
	type lack struct{ side, figures string }
	var said report.Groups[lack, string]
	for i := range c.Relays {
		r := &c.Relays[i]
		var at [2]report.Groups[string, string]
		for i := range r.Figures {
			f := &r.Figures[i]
			if side := slices.Index([]Outcome{OldAlone, NewAlone}, f.Outcome); side >= 0 {
				at[side].Add(f.place(), f.Label(f.title))
			}
		}
		for side, label := range []string{c.Old.Label, c.New.Label} {
			var places []string
			n := 0
			for _, g := range at[side].List {
				n += len(g.Members)
				if slices.ContainsFunc(r.shared(), func(f Figure) bool { return f.place() == g.Key }) {
					g.Key += ", " + report.Some(g.Members, 4)
				}
				places = append(places, g.Key)
			}
			if n > 0 {
				said.Add(lack{label, report.At(report.Some(places, 6), report.Count(n, "figure"))}, r.title())
			}
		}
	}
	for _, g := range said.List {
		all = append(all, fmt.Sprintf("Only %s has these figures of %s: %s.", g.Key.side, report.And(g.Members...), g.Key.figures))
	}
	return all
}

// shared are the figures that both sides have.
func (r *Relay) shared() []Figure {
	return slices.DeleteFunc(slices.Clone(r.Figures), func(f Figure) bool { return f.Outcome == OldAlone || f.Outcome == NewAlone })
}

// title is what a side is called in a heading.
func (s Side) title() string {
	if len(s.Records) == 1 {
		return s.Label
	}
	return fmt.Sprintf("%s (%s)", s.Label, report.Count(len(s.Records), "file"))
}

// title is what a relay is called in a heading.
func (r *Relay) title() string {
	if r.Old == r.New {
		return report.Speaker(r.Old)
	}
	return r.Old + " → " + r.New
}

// Name is how a figure is called in prose.
func (f *Figure) Name() string {
	return f.place() + " " + f.Metric + report.Prefixed(": ", f.Labels[results.LabelReason]) + report.Prefixed(" with ", f.Peer)
}

// place is the scenario of a figure, with the labels that tell it from others there.
func (f *Figure) place() string {
	names := slices.DeleteFunc(slices.Clone(f.telling), func(name string) bool { return name == results.LabelReason })
	return f.Scenario + report.Prefixed(", ", report.LabelText(f.Labels, names))
}

// Label is a metric by its title, or by its key, with its unit where the values do not show it.
func (f *Figure) Label(metric string) string {
	return report.WithUnit(metric+report.Prefixed(": ", f.Labels[results.LabelReason]), f.Unit) + report.Prefixed(" with ", f.Peer)
}

// Scale shows both sides in one unit.
func (f *Figure) Scale() report.Scale {
	var values []float64
	for _, s := range []results.Summary{f.Old, f.New} {
		if s.N > 0 {
			values = append(values, s.Center)
		}
	}
	return report.ScaleFor(f.Unit, values)
}

// change is by how much the figure moved and whether that is good, or why that cannot be said.
func (f *Figure) change() report.Cell {
	st, moved := map[Outcome]report.Style{Improved: report.Green, Worsened: report.Red, Changed: report.Yellow}[f.Outcome]
	if !moved {
		return report.Text(string(f.Outcome), report.Plain)
	}
	return report.Text(Percent(f.Test.Delta)+" "+string(f.Outcome), st)
}

// Evidence is p and the number of trials.
func (f *Figure) Evidence() string {
	switch {
	case f.Outcome == OldAlone || f.Outcome == NewAlone || f.Outcome == Incomplete:
		return ""
	case f.Exact:
		return "exact"
	}
	return PText(f.Test.P) + " " + TrialsText(f.Test.N1, f.Test.N2)
}

// Summaries are both medians with their intervals as percentages, in one unit.
func (f *Figure) Summaries() (before, after string) {
	s := f.Scale()
	return summaryText(f.Old, s, f.Exact), summaryText(f.New, s, f.Exact)
}

func summaryText(m results.Summary, s report.Scale, exact bool) string {
	switch {
	case m.N == 0:
		return "–"
	case exact:
		return s.Format(m.Center)
	case !m.Bounded():
		return s.Format(m.Center) + " ± ∞"
	}
	spread := m.Spread()
	if math.IsInf(spread, 0) {
		return s.Format(m.Center) + " ± " + s.Format(max(m.Hi-m.Center, m.Center-m.Lo))
	}
	return fmt.Sprintf("%s ± %.0f %%", s.Format(m.Center), 100*spread)
}

// Percent writes a share as a signed percentage.
func Percent(share float64) string {
	switch a := math.Abs(100 * share); {
	case math.IsNaN(share):
		return "from 0"
	case share == 0:
		return "0 %"
	case a >= 1000:
		return report.Number(1+share) + "×"
	case a >= 99.95:
		return fmt.Sprintf("%+.0f %%", 100*share)
	case a >= 0.05:
		return fmt.Sprintf("%+.1f %%", 100*share)
	}
	return fmt.Sprintf("%+.2g %%", 100*share)
}

// PText writes a p-value.
func PText(p float64) string {
	switch {
	case p < 0.0001:
		return "p<0.0001"
	case p < 0.001:
		return fmt.Sprintf("p=%.4f", p)
	}
	return fmt.Sprintf("p=%.3f", p)
}

// TrialsText writes how many trials each side has.
func TrialsText(n1, n2 int) string {
	if n1 == n2 {
		return fmt.Sprintf("n=%d", n1)
	}
	return fmt.Sprintf("n=%d+%d", n1, n2)
}

// Schema identifies the form of a comparison written as JSON.
const Schema = "relaybench/comparison/1"

// A finite number is left out of JSON where it is none: an interval of too few trials, a change
// from 0.
type finite float64

func (v finite) IsZero() bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }

type (
	jsonRelay struct {
		Old     string       `json:"old"`
		New     string       `json:"new"`
		Figures []jsonFigure `json:"figures"`
	}
	jsonFigure struct {
		Scenario string         `json:"scenario"`
		Labels   results.Labels `json:"labels,omitempty"`
		Metric   string         `json:"metric"`
		Peer     string         `json:"peer,omitempty"`
		Unit     string         `json:"unit"`
		Better   results.Better `json:"better"`
		Exact    bool           `json:"exact,omitempty"`
		Old      jsonSummary    `json:"old,omitzero"`
		New      jsonSummary    `json:"new,omitzero"`
		Change   finite         `json:"change,omitzero"` // new / old − 1
		P        finite         `json:"p,omitzero"`
		Outcome  Outcome        `json:"outcome"`
	}
	jsonSummary struct {
		Median float64 `json:"median"`
		Lo     finite  `json:"lo,omitzero"`
		Hi     finite  `json:"hi,omitzero"`
		N      int     `json:"n"`
	}
)

func (s jsonSummary) IsZero() bool { return s.N == 0 }

// JSON writes the comparison for programs. Errors are those of w.
func (c *Comparison) JSON(w io.Writer) error {
	relays := []jsonRelay{}
	for _, r := range c.Relays {
		x := jsonRelay{Old: r.Old, New: r.New}
		for _, f := range r.Figures {
			p := finite(math.NaN())
			if !f.Exact && f.Old.N > 0 && f.New.N > 0 {
				p = finite(f.Test.P)
			}
			summary := func(s results.Summary) jsonSummary { return jsonSummary{s.Center, finite(s.Lo), finite(s.Hi), s.N} }
			x.Figures = append(x.Figures, jsonFigure{f.Scenario, f.Labels, f.Metric, f.Peer, f.Unit, f.Better, f.Exact,
				summary(f.Old), summary(f.New), finite(f.Test.Delta), p, f.Outcome})
		}
		relays = append(relays, x)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(struct {
		Schema      string       `json:"schema"`
		Old         string       `json:"old"`
		New         string       `json:"new"`
		Comparable  bool         `json:"comparable"`
		Differences []Difference `json:"differences,omitempty"`
		Cautions    []string     `json:"cautions,omitempty"`
		Unmatched   []string     `json:"unmatched,omitempty"`
		Relays      []jsonRelay  `json:"relays"`
	}{Schema, c.Old.Label, c.New.Label, len(c.Differences) == 0, c.Differences, c.Cautions, c.Unmatched, relays})
}
