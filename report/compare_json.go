package report

import (
	"encoding/json"
	"io"
	"math"

	"relaybench/results"
)

// comparisonJSON is the form in which a comparison is written for programs.
type comparisonJSON struct {
	Schema      string            `json:"schema"`
	Old         string            `json:"old"`
	New         string            `json:"new"`
	Comparable  bool              `json:"comparable"`
	Differences []Difference      `json:"differences,omitempty"`
	Cautions    []string          `json:"cautions,omitempty"`
	Unmatched   []string          `json:"unmatched,omitempty"`
	Relays      []comparedRelayJS `json:"relays"`
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
		Differences: c.Differences, Cautions: c.Cautions, Unmatched: c.Unmatched, Relays: []comparedRelayJS{}}
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
