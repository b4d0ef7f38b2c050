package report

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"relaybench/results"
)

// Checked is what the preflight found out about one relay.
type Checked struct {
	Relay    results.Relay
	Findings []results.Finding
}

// Checks writes what was found out about relays for a terminal: every check with its detail, the
// evidence of those that failed, and what each relay can do. Texts in it are made visible first,
// and no line exceeds the width. Errors are those of w.
func Checks(w io.Writer, all []Checked, o TerminalOptions) error {
	s := o.screen(w)
	for i := range all {
		if i > 0 {
			s.line()
		}
		s.checked(cleanValue(reflect.ValueOf(&all[i])).Interface().(*Checked))
	}
	return s.flush()
}

func (s *screen) checked(c *Checked) {
	facts := []string{}
	for _, f := range []string{c.Relay.Version, prefixed("durability ", c.Relay.Durability), c.Relay.URL} {
		if f != "" {
			facts = append(facts, f)
		}
	}
	s.paragraph(span{c.Relay.Name + "  ", bold}, span{strings.Join(facts, " · "), dim})
	if c.Relay.Outcome != results.OutcomeOK {
		s.paragraph(span{"  ✗ ", red}, span{outcomeText(&c.Relay), red})
		for _, l := range c.Relay.LogTail[max(len(c.Relay.LogTail)-maxLogLines, 0):] {
			s.line(span{"      " + l, dim})
		}
	}
	column := 0
	counts := map[results.Verdict]int{}
	for i := range c.Findings {
		column = max(column, width(checkTitle(c.Findings[i].Code)))
		counts[c.Findings[i].Verdict]++
	}
	open := map[string][]string{} // checks by why they could not be asked
	for i := range c.Findings {
		if f := &c.Findings[i]; f.Verdict == results.Undecided {
			open[findingText(f)] = append(open[findingText(f)], checkTitle(f.Code))
		}
	}
	for i := range c.Findings {
		f := &c.Findings[i]
		alike := open[findingText(f)]
		if f.Verdict == results.Undecided && checkTitle(f.Code) != alike[0] {
			continue
		}
		s.checkLine(f, column)
		if f.Verdict == results.Undecided && len(alike) > 1 {
			s.paragraph(span{"      ", none}, span{"likewise: " + strings.Join(alike[1:], "; "), dim})
		}
	}
	if len(c.Relay.Capabilities) > 0 {
		s.line(span{"  what was found by asking", dim})
		column = 0
		names := slices.Sorted(maps.Keys(c.Relay.Capabilities))
		for _, name := range names {
			column = max(column, width(name))
		}
		for _, name := range names {
			s.paragraph(span{"    " + padRight(fit(name, 30), min(column, 30)) + "  ", none}, span{c.Relay.Capabilities[name], none})
		}
	}
	if len(c.Findings) == 0 {
		return
	}
	st := green
	text := count(counts[results.Passed], "check") + " passed"
	for _, x := range []struct {
		verdict results.Verdict
		text    string
	}{{results.Stated, "stated"}, {results.Undecided, "could not be asked"}, {results.Failed, "failed"}} {
		if n := counts[x.verdict]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, x.text)
		}
	}
	if counts[results.Failed] > 0 {
		st, text = red, text+": the relay would be measured, and not ranked where that bears on a figure"
	}
	s.paragraph(span{"  ", none}, span{text, st})
}

// checkLine writes one check; where there is no room for its detail beside the name, below it.
func (s *screen) checkLine(f *results.Finding, column int) {
	sign, detail := signs[f.Verdict], none
	if f.Verdict == results.Passed {
		detail = dim
	}
	title, text := checkTitle(f.Code), findingText(f)
	if text == title {
		text = "" // once in a line is enough
	}
	s.beside(span{"  " + sign.text + " ", sign.style}, padRight(title, column)+"  ", text, detail)
	if f.Verdict != results.Passed {
		lines := evidenceLines(f.Evidence, true)
		for _, e := range lines[:min(len(lines), maxProof)] {
			s.line(span{"      " + e, dim})
		}
	}
}

// minBeside is how many cells a detail needs to stand beside a name.
const minBeside = 30

// beside writes text behind a mark and a name, wrapped and hanging.
func (s *screen) beside(mark span, name, text string, ts style) {
	indent := width(mark.text) + width(name)
	if s.width-indent < minBeside {
		s.line(mark, span{name, none})
		s.paragraph(span{"      ", none}, span{text, ts})
		return
	}
	lines := wrap(text, s.width-indent)
	if len(lines) == 0 {
		lines = []string{""}
	}
	s.line(mark, span{name, none}, span{lines[0], ts})
	for _, l := range lines[1:] {
		s.line(span{strings.Repeat(" ", indent), none}, span{l, ts})
	}
}
