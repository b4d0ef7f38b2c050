package report

import (
	"fmt"
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
func (o *outcomes) of(verdict results.Verdict) (list []*outcome) {
	for _, x := range o.list {
		if x.verdict == verdict {
			list = append(list, x)
		}
	}
	return list
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

// cause says from what wrong answers follow: from events that were refused, lost or never sent. It
// says so for certain only where the missing events were looked up and all had that fate.
func (v *view) cause(o *outcomes) string {
	one := func(code string) *results.Finding {
		for _, x := range o.of(results.Failed) {
			if x.code == code && x.list[0].Peer == "" {
				return x.list[0]
			}
		}
		return nil
	}
	fates := map[string]float64{}
	all := 0.0
	for _, x := range o.of(results.Failed) {
		for _, f := range x.list {
			for _, fate := range []string{"acknowledged", "refused", "unanswered", results.MissingNotImported} {
				if n := f.Counts["missing."+fate]; x.code == results.CodeModel {
					fates[fate], all = fates[fate]+n, all+n
				}
			}
		}
	}
	known, kept, refused, silent, absent := all > 0, fates["acknowledged"], fates["refused"], fates["unanswered"], fates[results.MissingNotImported]
	accepts, lost, completes := one(results.CodeAccepts), one(results.CodeAcknowledgedKept), one(results.CodeCompletes)
	imported := one(results.CodeImported)
	var parts []string
	if accepts != nil && (!known || refused > 0) {
		parts = append(parts, expand(accepts, "the [/refused?${refused:event}|events] it refused"))
	}
	if lost != nil && (!known || kept > 0) {
		parts = append(parts, "what it lost: "+findingText(lost))
	}
	if imported != nil && absent > 0 {
		parts = append(parts, "what its import left out: "+findingText(imported))
	}
	switch {
	case completes != nil && (!known || silent > 0) && v.layout(completes.Scenario) == results.LayoutBars:
		parts = append(parts, completes.Scenario+", which did not complete")
	case silent > 0 && accepts != nil:
		parts = append(parts, "the events it never answered")
	}
	if len(parts) == 0 {
		return ""
	}
	unexplained := 0.0
	if lost == nil {
		unexplained += kept
	}
	if accepts == nil {
		unexplained += refused
		if completes == nil {
			unexplained += silent
		}
	}
	if imported == nil {
		unexplained += absent
	}
	verb := "may follow from "
	if known && unexplained == 0 {
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
	var nouns []string
	for _, x := range list {
		switch {
		case x.Peer != "" && x.Scenario == list[0].Scenario:
			nouns = AddNew(nouns, "pairs")
		case v.layout(x.Scenario) == results.LayoutQueries:
			nouns = AddNew(nouns, "queries")
		default:
			nouns = AddNew(nouns, "scenarios")
		}
	}
	if len(nouns) == 1 {
		return nouns[0]
	}
	return "scenarios"
}

// brief is an outcome in a list of them.
func (v *view) brief(o *outcome) string {
	text := CheckTitle(o.code)
	if where := v.places(o); where != "" {
		text += " (" + where + ")"
	}
	return text
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
