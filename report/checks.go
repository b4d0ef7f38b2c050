package report

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"relaybench/harness/measure"
)

// Checked is what the preflight found out about one relay.
type Checked struct {
	Relay  measure.Relay
	Checks []CheckLine
}

// Mark is how a check ended.
type Mark string

// The marks of a check.
const (
	MarkPassed Mark = "✓"
	MarkFailed Mark = "✗"
	MarkNone   Mark = "–" // not asked
)

// CheckLine is one check of a relay.
type CheckLine struct {
	Check    string
	Mark     Mark
	Required bool
	Detail   string
	Evidence []string
}

// Checks writes what was found out about relays for a terminal: every check with its detail, the evidence of those that failed, and what
// each relay can do. Texts in it are made visible first, and no line exceeds the width. Errors are those of w.
func Checks(w io.Writer, all []Checked, o TerminalOptions) error {
	if o.Width == 0 {
		o.Width = 80
	}
	s := newScreen(w, min(max(o.Width, 60), 200), o.Color)
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
	if c.Relay.Outcome != measure.OutcomeOK {
		s.paragraph(span{"  ✗ ", red}, span{outcomeText(&c.Relay), red})
		for _, l := range c.Relay.LogTail[max(len(c.Relay.LogTail)-maxLogLines, 0):] {
			s.line(span{"      " + l, dim})
		}
	}
	column := 0
	for _, l := range c.Checks {
		column = max(column, width(l.Check))
	}
	required, failed := 0, 0
	for _, l := range c.Checks {
		s.checkLine(l, column)
		if l.Required {
			required++
			if l.Mark != MarkPassed {
				failed++
			}
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
	switch {
	case len(c.Checks) == 0:
	case failed == 0:
		s.line(span{fmt.Sprintf("  all %d required checks passed", required), green})
	default:
		s.line(span{fmt.Sprintf("  %d of %d required checks did not pass: the relay would be measured, and not ranked", failed, required), red})
	}
}

// checkLine writes one check; where there is no room for its detail beside the name, below it.
func (s *screen) checkLine(l CheckLine, column int) {
	mark, detail := none, dim
	text := l.Detail
	switch {
	case l.Mark == MarkPassed:
		mark = green
	case l.Mark == MarkFailed && l.Required:
		mark, detail = red, none
	case l.Mark == MarkFailed:
		mark, detail = yellow, none
		text = "(informative) " + text
	}
	s.beside(span{"  " + string(l.Mark) + " ", mark}, padRight(l.Check, column)+"  ", text, detail)
	if l.Mark == MarkFailed {
		for _, e := range l.Evidence[:min(len(l.Evidence), maxProof)] {
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
