package report

import (
	"encoding/json"
	"io"
	"math"

	"relaybench/results"
)

// Markdown writes the comparison as GitHub-flavoured Markdown that is safe to publish. Errors are
// those of w.
func (c *Comparison) Markdown(w io.Writer) error {
	m := &markdown{screen: newScreen(w, 0, false)}
	m.p("# relaybench compare: %s → %s\n\n", mdText(c.Old.title()), mdText(c.New.title()))
	if len(c.Differences) > 0 {
		m.p("> **NOT COMPARABLE**, and shown because that was forced. What differs decides the figures too.\n\n")
		for _, d := range c.Differences {
			m.p("- **%s**\n", mdText(d.String()))
		}
	}
	for _, x := range c.Cautions {
		m.p("- %s\n", mdText(x))
	}
	for _, x := range c.Unmatched {
		m.p("- %s.\n", mdText(x))
	}
	for _, x := range c.alone() {
		m.p("- %s\n", mdText(x))
	}
	for i := range c.Relays {
		r := &c.Relays[i]
		m.heading(2, mdText(r.title()))
		if figures := r.shared(); len(figures) > 0 {
			m.figures(figures)
		} else {
			m.p("Nothing that compares was measured.\n")
		}
	}
	m.p("\n%s\n", mdText(compareLegend))
	return m.flush()
}

// figures writes figures as one table.
func (m *markdown) figures(figures []Figure) {
	var rows [][]string
	for i := range figures {
		f := &figures[i]
		row := []string{mdCode(f.place())}
		for _, c := range f.cells() {
			row = append(row, mdText(c.text))
		}
		row[1] = mdText(f.label(f.title))
		if f.Outcome == Worsened || f.Outcome == Improved {
			row[4] = "**" + row[4] + "**"
		}
		rows = append(rows, row)
	}
	m.table([]string{"scenario", "metric", "old", "new", "change", "evidence"}, rows, func(column int) bool { return column > 1 && column < 5 })
}

// comparisonJSON is the form in which a comparison is written for programs.
type comparisonJSON struct {
	Schema      string            `json:"schema"`
	Old         string            `json:"old"`
	New         string            `json:"new"`
	Comparable  bool              `json:"comparable"`
	Differences []differenceJSON  `json:"differences,omitempty"`
	Cautions    []string          `json:"cautions,omitempty"`
	Unmatched   []string          `json:"unmatched,omitempty"`
	Relays      []comparedRelayJS `json:"relays"`
}

type differenceJSON struct {
	Field  string   `json:"field"`
	Values []string `json:"values"`
}

type comparedRelayJS struct {
	Old     string       `json:"old"`
	New     string       `json:"new"`
	Figures []figureJSON `json:"figures"`
}

// figureJSON leaves out what is not a number: an interval of too few trials, a change from 0.
type figureJSON struct {
	Scenario string         `json:"scenario"`
	Labels   results.Labels `json:"labels,omitempty"`
	Metric   string         `json:"metric"`
	Peer     string         `json:"peer,omitempty"`
	Unit     string         `json:"unit"`
	Better   results.Better `json:"better"`
	Exact    bool           `json:"exact,omitempty"`
	Old      *summaryJSON   `json:"old,omitempty"`
	New      *summaryJSON   `json:"new,omitempty"`
	Change   *float64       `json:"change,omitempty"` // new / old − 1
	P        *float64       `json:"p,omitempty"`
	Outcome  FigureOutcome  `json:"outcome"`
}

type summaryJSON struct {
	Median float64  `json:"median"`
	Lo     *float64 `json:"lo,omitempty"`
	Hi     *float64 `json:"hi,omitempty"`
	N      int      `json:"n"`
}

// ComparisonSchema identifies the form of a comparison written as JSON.
const ComparisonSchema = "relaybench/comparison/1"

// JSON writes the comparison for programs. Errors are those of w.
func (c *Comparison) JSON(w io.Writer) error {
	out := comparisonJSON{Schema: ComparisonSchema, Old: c.Old.Label, New: c.New.Label, Comparable: len(c.Differences) == 0,
		Cautions: c.Cautions, Unmatched: c.Unmatched, Relays: []comparedRelayJS{}}
	for _, d := range c.Differences {
		out.Differences = append(out.Differences, differenceJSON(d))
	}
	for _, r := range c.Relays {
		x := comparedRelayJS{Old: r.Old, New: r.New, Figures: []figureJSON{}}
		for i := range r.Figures {
			x.Figures = append(x.Figures, r.Figures[i].json())
		}
		out.Relays = append(out.Relays, x)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(out)
}

func (f *Figure) json() figureJSON {
	x := figureJSON{Scenario: f.Scenario, Labels: f.Labels, Metric: f.Metric, Peer: f.Peer, Unit: f.Unit, Better: f.Better, Exact: f.Exact,
		Old: jsonSummary(f.Old), New: jsonSummary(f.New), Outcome: f.Outcome}
	if x.Old != nil && x.New != nil {
		x.Change = finite(f.Test.Delta)
		if !f.Exact {
			x.P = finite(f.Test.P)
		}
	}
	return x
}

func jsonSummary(s results.Summary) *summaryJSON {
	if s.N == 0 {
		return nil
	}
	return &summaryJSON{Median: s.Center, Lo: finite(s.Lo), Hi: finite(s.Hi), N: s.N}
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
