package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"relaybench/results"
)

// Checked is what the preflight found out about one relay.
type Checked struct {
	Relay    results.Relay
	Findings []results.Finding
	Passed   bool // every check could be judged, and none failed
}

// MarshalJSON gives what relaybench check tells of a relay as JSON, the sentences among it.
func (c Checked) MarshalJSON() ([]byte, error) {
	type check struct {
		Title string `json:"title"`
		Text  string `json:"text"`
		results.Finding
	}
	checks := []check{}
	for _, f := range c.Findings {
		title, text := Words(&f)
		checks = append(checks, check{title, text, f})
	}
	return json.Marshal(struct {
		Name         string            `json:"name"`
		Version      string            `json:"version"`
		Durability   string            `json:"durability"`
		Outcome      results.Outcome   `json:"outcome"`
		Reason       string            `json:"reason,omitempty"`
		Passed       bool              `json:"passed"`
		Capabilities map[string]string `json:"capabilities"`
		Checks       []check           `json:"checks"`
	}{c.Relay.Name, c.Relay.Version, c.Relay.Durability, c.Relay.Outcome, c.Relay.Reason, c.Passed, c.Relay.Capabilities, checks})
}

// Checks writes what was found out about relays for a terminal: every check with its detail, the
// evidence of those that failed, and what each relay can do. Texts in it are made visible first,
// and no line exceeds the width. Errors are those of w.
func Checks(w io.Writer, all []Checked, o TerminalOptions) error {
	d := &Document{}
	for i, c := range all {
		if i > 0 {
			d.Gap()
		}
		clean := Sanitized(&results.Record{Relays: []results.Relay{c.Relay}, Findings: c.Findings})
		d.checked(&clean.Relays[0], clean.Findings)
	}
	return d.Terminal(w, o)
}

func (d *Document) checked(r *results.Relay, findings []results.Finding) {
	facts := joinSaid(" · ", []string{r.Version, Prefixed("durability ", r.Durability), r.URL})
	d.add(para{text: []Span{{r.Name, Bold}, {" " + facts, Dim}}})
	if r.Outcome != results.OutcomeOK {
		d.item(FailedMark, OutcomeText(r), Red)
		d.add(verbatim{lines: r.LogTail, most: maxLogLines, last: true, indent: 3})
	}
	counts := map[results.Verdict]int{}
	open := map[string][]string{} // checks by why they could not be asked
	for i := range findings {
		f := &findings[i]
		if counts[f.Verdict]++; f.Verdict == results.Undecided {
			open[findingText(f)] = append(open[findingText(f)], CheckTitle(f.Code))
		}
	}
	for i := range findings {
		f := &findings[i]
		title, text, st := CheckTitle(f.Code), findingText(f), Plain
		alike := open[text]
		switch {
		case f.Verdict == results.Undecided && title != alike[0]:
			continue
		case f.Verdict == results.Passed:
			st = Dim
		}
		spans := []Span{{title, st}}
		if text != title { // once in a line is enough
			spans = []Span{{title + ": ", Plain}, {text, st}}
		}
		d.add(para{indent: 1, mark: signs[f.Verdict], text: spans})
		if f.Verdict != results.Passed {
			d.evidence(f.Evidence, 3, maxProof, "")
		}
		if f.Verdict == results.Undecided && len(alike) > 1 {
			d.add(para{indent: 3, text: []Span{{"likewise: " + strings.Join(alike[1:], "; "), Dim}}})
		}
	}
	if len(r.Capabilities) > 0 {
		d.Say("what was found by asking", Dim)
		d.facts(Plain, Plain, capabilities(r))
	}
	if len(findings) == 0 {
		return
	}
	st, text := Green, Count(counts[results.Passed], "check")+" passed"
	for _, verdict := range []results.Verdict{results.Stated, results.Undecided, results.Failed} {
		if n := counts[verdict]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, word("verdict", string(verdict)))
		}
	}
	if counts[results.Failed] > 0 {
		st, text = Red, text+": the relay would be measured, and not ranked where that bears on a figure"
	}
	d.Say(text, st)
}

// capabilities are what a relay was found to do.
func capabilities(r *results.Relay) (all []fact) {
	for _, name := range slices.Sorted(maps.Keys(r.Capabilities)) {
		all = append(all, fact{name, r.Capabilities[name]})
	}
	return all
}
