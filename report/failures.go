package report

import (
	"fmt"
	"slices"
	"strings"

	"relaybench/results"
)

// An outcome is one check of a relay that ended in one way, in one scenario or in many.
type outcome struct {
	code    string
	verdict results.Verdict
	list    []*results.Finding // in the order of the run
	of      int                // how often the relay was checked
	follows string             // from what, where that is plain
}

// outcomes are a relay's checks that did not simply pass, and the count of those that did.
type outcomes struct {
	list   []*outcome
	passed int
}

// of picks the checks that ended in one way.
func (o *outcomes) of(verdict results.Verdict) []*outcome {
	return slices.DeleteFunc(slices.Clone(o.list), func(x *outcome) bool { return x.verdict != verdict })
}

// count is in how many scenarios checks ended in one way.
func (o *outcomes) count(verdict results.Verdict) (n int) {
	for _, x := range o.of(verdict) {
		n += len(x.list)
	}
	return n
}

// checks says how many checks ended in one way, and how often where that was in several scenarios.
func (o *outcomes) checks(verdict results.Verdict) string {
	text := Count(len(o.of(verdict)), "check")
	if n := o.count(verdict); n > len(o.of(verdict)) {
		text += fmt.Sprintf(", %d times in all", n)
	}
	return text
}

// outcomes folds a relay's checks.
func (v *view) outcomes(name string) *outcomes {
	type ending struct {
		code    string
		verdict results.Verdict
	}
	o := &outcomes{}
	times := map[string]int{}
	var ends Groups[ending, *results.Finding]
	for _, f := range v.checks {
		if subject(f) != name {
			continue
		}
		if times[f.Code]++; f.Verdict == results.Passed {
			o.passed++
		} else {
			ends.Add(ending{f.Code, f.Verdict}, f)
		}
	}
	for _, g := range ends.List {
		o.list = append(o.list, &outcome{code: g.Key.code, verdict: g.Key.verdict, list: g.Members, of: times[g.Key.code]})
	}
	for _, x := range o.of(results.Failed) {
		if x.code == results.CodeModel {
			x.follows = v.cause(o)
		}
	}
	return o
}

// blames are the failed checks that explain why events of a fate are missing in answers; of one
// fate the first that says something.
var blames = []struct{ fate, code, text string }{
	{"refused", results.CodeAccepts, "the [/refused?${refused:event}|events] it refused"},
	{"acknowledged", results.CodeAcknowledgedKept, "what it lost: ${'found'}"},
	{results.MissingNotImported, results.CodeImported, "what its import left out: ${'found'}"},
	{"unanswered", results.CodeCompletes, "${'scenario'}, which did not complete"},
	{"unanswered", results.CodeAccepts, "[unanswered?the events it never answered]"},
}

// cause says from what wrong answers follow: from events that were refused, lost or never sent. It
// says so for certain only where the missing events were looked up and all had that fate.
func (v *view) cause(o *outcomes) string {
	missing := map[string]bool{}            // by fate, where it was looked up
	failed := map[string]*results.Finding{} // the first of each check
	for _, x := range o.of(results.Failed) {
		first := x.list[0]
		if first.Peer == "" && (x.code != results.CodeCompletes || v.layout(first.Scenario) == results.LayoutBars) {
			failed[x.code] = first
		}
		for _, f := range x.list {
			for _, b := range blames {
				if x.code == results.CodeModel && f.Counts["missing."+b.fate] > 0 {
					missing[b.fate] = true
				}
			}
		}
	}
	var parts []string
	said, explained := map[string]bool{}, map[string]bool{}
	for _, b := range blames {
		f := failed[b.code]
		if f == nil {
			continue
		}
		explained[b.fate] = true
		facts := &results.Finding{Counts: f.Counts, Texts: map[string]string{"found": findingText(f), "scenario": f.Scenario}}
		if text := expand(facts, b.text); text != "" && !said[b.fate] && (len(missing) == 0 || missing[b.fate]) {
			said[b.fate] = true
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	verb, certain := "may follow from ", len(missing) > 0
	for fate := range missing {
		certain = certain && explained[fate]
	}
	if certain {
		verb = "follows from "
	}
	return verb + strings.Join(parts, ", and from ")
}

// refusal says in one line that a relay refused much of what a compliant relay keeps, and why;
// empty where it did not.
func (v *view) refusal(name string) string {
	for _, f := range v.checks {
		if subject(f) != name || f.Code != results.CodeAccepts || f.Verdict != results.Failed || f.Counts["refused"] == 0 {
			continue
		}
		text := name + expand(f, " refused ${refused} of ${of:event} that a compliant relay keeps")
		for _, e := range f.Evidence { // the most frequent reason comes first
			if e.Code == results.EvidenceRefused && e.ID == "" {
				return text + joinHead(", "+e.Cause, fit(e.Text, 240))
			}
		}
		return text
	}
	return ""
}

// places says in which scenarios a check ended so: in the one, or in how many of them.
func (v *view) places(o *outcome) string {
	if len(o.list) == 1 && o.of == 1 {
		return v.where(o.list[0])
	}
	noun := v.noun(o.list)
	if len(o.list) == 1 {
		return strings.TrimPrefix(fmt.Sprintf("%s, 1 of %d %s", v.where(o.list[0]), o.of, noun), ", ")
	}
	return fmt.Sprintf("%d of %d %s", len(o.list), o.of, noun)
}

// noun is what a list of checks was asked in.
func (v *view) noun(list []*results.Finding) string {
	all := func(is func(*results.Finding) bool) bool {
		return !slices.ContainsFunc(list, func(x *results.Finding) bool { return !is(x) })
	}
	pair := func(x *results.Finding) bool { return x.Peer != "" && x.Scenario == list[0].Scenario }
	switch {
	case all(pair):
		return "pairs"
	case all(func(x *results.Finding) bool { return !pair(x) && v.layout(x.Scenario) == results.LayoutQueries }):
		return "queries"
	}
	return "scenarios"
}

// brief is an outcome in a list of them.
func (v *view) brief(o *outcome) string {
	return At(CheckTitle(o.code), v.places(o))
}

// rest names where a check ended so beside the examples that are shown.
func (v *view) rest(o *outcome, shown int) string {
	var names []string
	for _, x := range o.list[min(shown, len(o.list)):] {
		name := v.where(x)
		if query := x.Labels[results.LabelQuery]; query != "" { // in both its forms
			name = query + with(x)
		}
		names = AddNew(names, name)
	}
	return strings.Join(names, "; ")
}
