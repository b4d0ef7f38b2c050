package report

import (
	"fmt"
	"maps"
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

// add folds a check into those of its code that ended as it did.
func (o *outcomes) add(f *results.Finding) {
	i := slices.IndexFunc(o.list, func(x *outcome) bool { return x.code == f.Code && x.verdict == f.Verdict })
	if i < 0 {
		i = len(o.list)
		o.list = append(o.list, &outcome{code: f.Code, verdict: f.Verdict})
	}
	o.list[i].list = append(o.list[i].list, f)
}

// outcomes folds a relay's checks.
func (v *view) outcomes(name string) *outcomes {
	o := &outcomes{}
	times := map[string]int{}
	for _, f := range v.checks {
		if subject(f) != name {
			continue
		}
		times[f.Code]++
		if f.Verdict == results.Passed {
			o.passed++
			continue
		}
		o.add(f)
	}
	for _, x := range o.list {
		x.of = times[x.code]
		if x.code == results.CodeModel && x.verdict == results.Failed {
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
	var kept, refused, silent, absent float64
	for _, x := range o.of(results.Failed) {
		for _, f := range x.list {
			if x.code == results.CodeModel {
				kept += f.Counts["missing.acknowledged"]
				refused += f.Counts["missing.refused"]
				silent += f.Counts["missing.unanswered"]
				absent += f.Counts["missing."+results.MissingNotImported]
			}
		}
	}
	known := kept+refused+silent+absent > 0
	accepts, lost, completes := one(results.CodeAccepts), one(results.CodeAcknowledgedKept), one(results.CodeCompletes)
	imported := one(results.CodeImported)
	var parts []string
	if accepts != nil && (!known || refused > 0) {
		text := "the events it refused"
		if n := accepts.Counts["refused"]; n > 0 {
			text = "the " + Count(int(n), "event") + " it refused"
		}
		parts = append(parts, text)
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
	nouns := map[string]bool{}
	for _, x := range list {
		switch {
		case x.Peer != "" && x.Scenario == list[0].Scenario:
			nouns["pairs"] = true
		case v.layout(x.Scenario) == results.LayoutQueries:
			nouns["queries"] = true
		default:
			nouns["scenarios"] = true
		}
	}
	if len(nouns) == 1 {
		return slices.Collect(maps.Keys(nouns))[0]
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
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, "; ")
}
