package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

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
	d.Items(report.WarningMark, c.Cautions, report.Plain)
	for _, x := range c.Unmatched {
		d.Items(report.WarningMark, []string{x + "."}, report.Plain)
	}
	d.Items(report.WarningMark, c.alone(), report.Plain)
	for i := range c.Relays {
		r := &c.Relays[i]
		d.Section(r.title())
		t := report.NewTable("scenario", report.Column{Head: "metric"}, report.Column{Head: "old"}, report.Column{Head: "new"},
			report.Column{Head: "change"}, report.Column{Head: "evidence", Left: true})
		shared := r.shared()
		for _, f := range shared {
			s := f.Scale()
			t.Add(f.place(), report.Text(f.Label(f.title), report.Plain), report.Text(SummaryText(f.Old, s, f.Exact), report.Plain),
				report.Text(SummaryText(f.New, s, f.Exact), report.Plain), f.change(), report.Text(f.Evidence(), report.Dim))
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
		both := map[string]bool{}
		for _, f := range r.shared() {
			both[f.place()] = true
		}
		for side, outcome := range []Outcome{OldAlone, NewAlone} {
			var at report.Groups[string, string]
			n := 0
			for i := range r.Figures {
				if f := &r.Figures[i]; f.Outcome == outcome {
					at.Add(f.place(), f.Label(f.title))
					n++
				}
			}
			var places []string
			for _, g := range at.List {
				if both[g.Key] {
					g.Key += ", " + report.Some(g.Members, 4)
				}
				places = append(places, g.Key)
			}
			if n > 0 {
				said.Add(lack{[...]string{c.Old.Label, c.New.Label}[side], fmt.Sprintf("%s (%s)", report.Some(places, 6), report.Count(n, "figure"))}, r.title())
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

// SummaryText is a median with its interval as a percentage.
func SummaryText(m results.Summary, s report.Scale, exact bool) string {
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

// JSON writes the comparison for programs. Errors are those of w.
func (c *Comparison) JSON(w io.Writer) error {
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
		Relays      []Relay      `json:"relays"`
	}{Schema, c.Old.Label, c.New.Label, len(c.Differences) == 0, c.Differences, c.Cautions, c.Unmatched, append([]Relay{}, c.Relays...)})
}

// MarshalJSON leaves out what is not a number: an interval of too few trials, a change from 0.
func (f *Figure) MarshalJSON() ([]byte, error) {
	type summary struct {
		Median float64  `json:"median"`
		Lo     *float64 `json:"lo,omitempty"`
		Hi     *float64 `json:"hi,omitempty"`
		N      int      `json:"n"`
	}
	summarize := func(s results.Summary) *summary {
		if s.N == 0 {
			return nil
		}
		return &summary{s.Center, finite(s.Lo), finite(s.Hi), s.N}
	}
	x := struct {
		Scenario string         `json:"scenario"`
		Labels   results.Labels `json:"labels,omitempty"`
		Metric   string         `json:"metric"`
		Peer     string         `json:"peer,omitempty"`
		Unit     string         `json:"unit"`
		Better   results.Better `json:"better"`
		Exact    bool           `json:"exact,omitempty"`
		Old      *summary       `json:"old,omitempty"`
		New      *summary       `json:"new,omitempty"`
		Change   *float64       `json:"change,omitempty"` // new / old − 1
		P        *float64       `json:"p,omitempty"`
		Outcome  Outcome        `json:"outcome"`
	}{f.Scenario, f.Labels, f.Metric, f.Peer, f.Unit, f.Better, f.Exact, summarize(f.Old), summarize(f.New), nil, nil, f.Outcome}
	if x.Old != nil && x.New != nil {
		x.Change = finite(f.Test.Delta)
		if !f.Exact {
			x.P = finite(f.Test.P)
		}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(x)
	return []byte(b.String()), err
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
