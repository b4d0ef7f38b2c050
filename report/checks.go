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
	d := &Document{}
	for i := range all {
		if i > 0 {
			d.add(gap{})
		}
		d.checked(cleanValue(reflect.ValueOf(&all[i])).Interface().(*Checked))
	}
	return d.Terminal(w, o)
}

func (d *Document) checked(c *Checked) {
	facts := slices.DeleteFunc([]string{c.Relay.Version, Prefixed("durability ", c.Relay.Durability), c.Relay.URL}, func(s string) bool { return s == "" })
	d.add(para{text: []Span{{c.Relay.Name, Bold}, {" " + strings.Join(facts, " · "), Dim}}})
	if c.Relay.Outcome != results.OutcomeOK {
		d.item(FailedMark, OutcomeText(&c.Relay), Red)
		d.add(verbatim{lines: c.Relay.LogTail, most: maxLogLines, last: true, indent: 3})
	}
	counts := map[results.Verdict]int{}
	open := map[string][]string{} // checks by why they could not be asked
	for i := range c.Findings {
		f := &c.Findings[i]
		if counts[f.Verdict]++; f.Verdict == results.Undecided {
			open[findingText(f)] = append(open[findingText(f)], CheckTitle(f.Code))
		}
	}
	for i := range c.Findings {
		f := &c.Findings[i]
		title, text, alike := CheckTitle(f.Code), findingText(f), open[findingText(f)]
		if f.Verdict == results.Undecided && title != alike[0] {
			continue
		}
		spans := []Span{{title, Plain}}
		if text != title { // once in a line is enough
			spans = append(spans, Span{": ", Plain}, Span{text, Plain})
		}
		if f.Verdict == results.Passed {
			spans[len(spans)-1].style = Dim
		}
		d.add(para{indent: 1, mark: signs[f.Verdict], text: spans})
		if f.Verdict != results.Passed {
			d.evidence(f.Evidence, 3, maxProof, "")
		}
		if f.Verdict == results.Undecided && len(alike) > 1 {
			d.add(para{indent: 3, text: []Span{{"likewise: " + strings.Join(alike[1:], "; "), Dim}}})
		}
	}
	if len(c.Relay.Capabilities) > 0 {
		d.Say("what was found by asking", Dim)
		d.add(capabilities(&c.Relay))
	}
	if len(c.Findings) == 0 {
		return
	}
	st := Green
	text := Count(counts[results.Passed], "check") + " passed"
	for _, x := range []struct {
		verdict results.Verdict
		text    string
	}{{results.Stated, "stated"}, {results.Undecided, "could not be asked"}, {results.Failed, "failed"}} {
		if n := counts[x.verdict]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, x.text)
		}
	}
	if counts[results.Failed] > 0 {
		st, text = Red, text+": the relay would be measured, and not ranked where that bears on a figure"
	}
	d.Say(text, st)
}

// capabilities are what a relay was found to do.
func capabilities(r *results.Relay) list {
	x := list{}
	for _, name := range slices.Sorted(maps.Keys(r.Capabilities)) {
		x.rows = append(x.rows, fact{name, r.Capabilities[name]})
	}
	return x
}

// evidence adds what proves a finding.
func (d *Document) evidence(all []results.Evidence, indent, most int, more string) {
	if len(all) > 0 {
		d.add(verbatim{language: "text", lines: evidenceLines(all, false), brief: evidenceLines(all, true), indent: indent, mark: "·", most: most, more: more})
	}
}
