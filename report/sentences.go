package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"relaybench/results"
)

// words are what a code is called and how a finding of it reads. All sentences are made here and in
// the tables of the sentences_*.go files: no other code of a report knows what was found, and
// nobody reads it out of a sentence.
type words struct {
	title string                          // of the check, as a clause: "nothing acknowledged is missing"
	say   func(f *results.Finding) string // one sentence without a full stop; nil: the title says it all
}

// dictionary joins the tables of words by code.
var dictionary = joinWords(scenarioWords, pairWords, preflightWords)

func joinWords(tables ...map[string]words) map[string]words {
	all := map[string]words{}
	for _, table := range tables {
		for code, w := range table {
			if _, twice := all[code]; twice {
				panic("report: two words for " + code)
			}
			all[code] = w
		}
	}
	return all
}

// Words returns what a finding's check is called, and one sentence on what it
// found. Words of relays in them are as they came.
func Words(f *results.Finding) (title, text string) { return checkTitle(f.Code), findingText(f) }

// checkTitle is what a check is called; one that is not known, of a record of form 1, stands under
// its code.
func checkTitle(code string) string {
	if w, ok := dictionary[code]; ok {
		return w.title
	}
	return codeText(code)
}

// findingText is one sentence on what a check found, without its full stop. A finding of form 1
// brings its own. One that did not pass never reads as if it had, whatever its record leaves out.
func findingText(f *results.Finding) string {
	title, text := checkTitle(f.Code), said(f)
	switch {
	case f.Verdict == results.Passed:
		return cmp.Or(text, title)
	case text != "" && text != title && (f.Verdict == results.Stated || text != said(&results.Finding{Code: f.Code, Verdict: results.Passed})):
		return text
	case f.Verdict == results.Undecided:
		return undecidedText(f)
	}
	return "this does not hold: " + title
}

// said is what a finding says for itself, "" where it has nothing to say.
func said(f *results.Finding) string {
	if f.Cause == results.StatusText {
		return f.Texts["text"]
	}
	if text := shortageText(f.Cause); text != "" {
		return clauses("not judged: "+text, f.Texts["error"])
	}
	if w := dictionary[f.Code]; w.say != nil {
		return w.say(f)
	}
	return ""
}

func undecidedText(f *results.Finding) string {
	text := "it could not be found out"
	if why := f.Texts["error"]; why != "" {
		text += ": " + why
	}
	return text
}

// n is a count of a finding as a number for prose.
func n(f *results.Finding, name string) string { return thousands(fmt.Sprintf("%.0f", f.Counts[name])) }

// quote sets words of a relay in quotation marks; none are said to be none.
func quote(s string) string {
	if s == "" {
		return "without a reason"
	}
	return `"` + s + `"`
}

// clauses joins what is not empty.
func clauses(parts ...string) string { return joinSaid("; ", parts) }

// listed joins the parts that say something.
func listed(parts ...string) string { return joinSaid(", ", parts) }

func joinSaid(by string, parts []string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), by)
}
