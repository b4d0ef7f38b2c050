package gate

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"relaybench/report"
	"relaybench/report/compare"
)

type junitSuite struct {
	XMLName   xml.Name    `xml:"testsuite"`
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr,omitempty"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes the verdict as JUnit XML: a test for each judged figure, and one for head's checks.
// Times are 0 but for the whole run's. Errors are those of w.
func (g *Verdict) JUnit(w io.Writer) error {
	s := junitSuite{Name: "relaybench gate " + g.Base + " → " + g.Head, Time: "0"}
	if !g.rec.StartedAt.IsZero() {
		s.Timestamp = g.rec.StartedAt.UTC().Format(time.RFC3339)
		if g.rec.FinishedAt != nil {
			s.Time = fmt.Sprintf("%.3f", max(g.rec.FinishedAt.Sub(g.rec.StartedAt).Seconds(), 0))
		}
	}
	checks := junitCase{Class: "relaybench.checks", Name: "head passes its required checks", Time: "0"}
	if len(g.Short) > 0 {
		checks.Failure = &junitMessage{Message: report.Some(g.Short, 3), Type: "fell short", Text: strings.Join(g.Short, "\n")}
	}
	s.Cases = append(s.Cases, checks)
	for i := range g.Figures {
		f := &g.Figures[i]
		base, head := f.Summaries()
		line := fmt.Sprintf("base %s, head %s, change %s, %s: %s", base, head, compare.Percent(f.Test.Delta), f.Evidence(), f.Judgement)
		c := junitCase{Class: "relaybench." + f.Scenario, Name: f.Label(f.Metric), Time: "0"}
		switch {
		case f.Judgement.bad():
			c.Failure = &junitMessage{Message: line, Type: "regression"}
		case f.Judgement == Unclear:
			c.Error = &junitMessage{Message: "these trials cannot tell whether it got worse: " + line, Type: string(Undecided)}
		case f.Judgement == Undecidable:
			c.Skipped = &junitMessage{Message: "too few trials to judge: " + line}
		default:
			c.Output = line
		}
		s.Cases = append(s.Cases, c)
	}
	if g.Result == Undecided {
		s.Cases = append(s.Cases, junitCase{Class: "relaybench", Name: "verdict", Time: "0", Error: &junitMessage{Message: g.Headline(), Type: string(Undecided)}})
	}
	for _, c := range s.Cases {
		for count, m := range map[*int]*junitMessage{&s.Failures: c.Failure, &s.Errors: c.Error, &s.Skipped: c.Skipped} {
			if m != nil {
				*count++
			}
		}
	}
	s.Tests = len(s.Cases)
	text, err := xml.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}
