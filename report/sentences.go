package report

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

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

// say is a sentence for expand.
func say(text string) func(f *results.Finding) string {
	return func(f *results.Finding) string { return expand(f, text) }
}

// causes are what is said by cause, as expand takes it.
type causes map[string]string

// What is said by any other cause, and by any other one of a check that passed.
const (
	otherwise  = "*"
	whenPassed = "passed"
)

// byCause says what the first table says that has the cause, or why nothing is known.
func byCause(tables ...causes) func(f *results.Finding) string {
	return func(f *results.Finding) string {
		if f.Verdict == results.Undecided {
			if text := leftOpenTexts[f.Cause]; text != "" {
				return "it could not be found out: " + expand(f, text)
			}
			return ""
		}
		keys := []string{f.Cause, otherwise}
		if f.Counts["elsewhere"] > 0 {
			keys = append([]string{f.Cause + " elsewhere"}, keys...)
		}
		if f.Verdict == results.Passed {
			keys = append(keys, whenPassed)
		}
		for _, table := range tables {
			for _, k := range keys {
				if text, ok := table[k]; ok {
					return expand(f, text)
				}
			}
		}
		return ""
	}
}

// expand puts what a finding counts and quotes into a sentence: ${count}, ${count:noun} with its
// noun, ${count:ms}, ${count:s}, ${count:true} as true or false, ${"text"} in quotation marks,
// ${'text'} bare; and ${?count words}, ${?"text" words} with # for it only where there is anything
// of it.
func expand(f *results.Finding, sentence string) string {
	return os.Expand(sentence, func(key string) string {
		if optional, ok := strings.CutPrefix(key, "?"); ok {
			name, words, _ := strings.Cut(optional, " ")
			before, after, shown := strings.Cut(words, "#")
			value := ""
			switch text := f.Texts[strings.Trim(name, `"'`)]; {
			case name[0] == '"' && text != "":
				value = quote(text)
			case name[0] == '\'' && text != "":
				value = text
			case f.Counts[name] > 0:
				value = n(f, name)
			default:
				return ""
			}
			if !shown {
				return words
			}
			return before + value + after
		}
		name, as, _ := strings.Cut(key, ":")
		switch {
		case key[0] == '"':
			return quote(f.Texts[strings.Trim(key, `"`)])
		case key[0] == '\'':
			return f.Texts[strings.Trim(key, "'")]
		case special[key] != nil:
			return special[key](f)
		case as == "ms":
			return millisText(f, name)
		case as == "s":
			return number(f.Counts[name]) + " s"
		case as == "true":
			return fmt.Sprint(f.Counts[name] > 0)
		case as != "":
			return counted(f.Counts[name], as)
		}
		return n(f, name)
	})
}

// millisText is a count of milliseconds for prose.
func millisText(f *results.Finding, name string) string {
	ms := f.Counts[name]
	switch {
	case ms >= 1000:
		return fmt.Sprintf("%.1f s", ms/1000)
	case ms >= 10:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.2g ms", ms)
}

// special are parts of sentences that are more than a count or a text.
var special = map[string]func(f *results.Finding) string{
	"kind": func(f *results.Finding) string { return fmt.Sprintf("%.0f", f.Counts["kind"]) },
	"of kind": func(f *results.Finding) string {
		if f.Counts["kind"] > 1 {
			return fmt.Sprintf(" of kind %.0f", f.Counts["kind"])
		}
		return ""
	},
	"date": func(f *results.Finding) string {
		return time.Unix(int64(f.Counts["createdAt"]), 0).UTC().Format("2006-01-02")
	},
	"fields": func(f *results.Finding) string { return strings.ReplaceAll(f.Texts["fields"], ", ", " and another ") },
	"order": func(f *results.Finding) string {
		if i := slices.IndexFunc(f.Evidence, func(e results.Evidence) bool { return e.Code == results.EvidenceOrder }); i >= 0 {
			return f.Evidence[i].Text
		}
		return ""
	},
	"unread": func(f *results.Finding) string {
		switch {
		case f.Counts["binary"] > 0:
			return ", but " + counted(f.Counts["binary"], "binary frame")
		case len(f.Evidence) > 0 && f.Evidence[0].Code == results.EvidenceFrame:
			return ", but a frame that is no message"
		}
		return ""
	},
	"both rates": func(f *results.Finding) string {
		if f.Texts["publishing"] != "" && f.Texts["asking"] != "" {
			return "; "
		}
		return ""
	},
	"newest": func(f *results.Finding) string { return fmt.Sprintf("%.0f", f.Counts["newest"]) },
	"newest events": func(f *results.Finding) string {
		if f.Counts["events"] > 0 {
			return "an answer at its newest " + counted(f.Counts["events"], "event")
		}
		return "answers at their newest events"
	},
	"source": func(f *results.Finding) string {
		return map[string]string{results.LimitsDeclared: "its definition", results.LimitsTold: "its information document (NIP-11)", "": "the relay"}[f.Texts["source"]]
	},
	"why no command": func(f *results.Finding) string { return prefixed(f.Texts["relay"]+": ", f.Texts["why"]) },
}
