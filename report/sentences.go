package report

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"relaybench/results"
)

// words are what a check is called and how a finding of it reads. All sentences on findings are
// made of the table of them: no other code of a report knows what was found, and nobody reads it
// out of a sentence.
type words struct {
	title string  // as a clause: "nothing acknowledged is missing"
	cases []texts // the first that has the case; none where the title says it all
}

func check(title string, cases ...texts) words { return words{title, cases} }

// texts are templates by case: by the cause of a finding, else by its verdict, else otherwise. They
// are sentences without a full stop; see expand.
type texts map[string]string

// The cases beside the causes.
const (
	otherwise  = "*"
	whenPassed = string(results.Passed)
	whenFailed = string(results.Failed)
	whenStated = string(results.Stated)
)

// Words returns what a finding's check is called, and one sentence on what it
// found. Words of relays in them are as they came.
func Words(f *results.Finding) (title, text string) { return CheckTitle(f.Code), findingText(f) }

// CheckTitle is what a check is called; one that is not known, of a record of form 1, stands under
// its code.
func CheckTitle(code string) string { return cmp.Or(dictionary[code].title, codeText(code)) }

// findingText is one sentence on what a check found, without its full stop. A finding of form 1
// brings its own. One that did not pass never reads as if it had, whatever its record leaves out.
func findingText(f *results.Finding) string {
	title, text := CheckTitle(f.Code), said(f)
	switch {
	case f.Verdict == results.Passed:
		return cmp.Or(text, title)
	case text != "" && text != title && (f.Verdict == results.Stated || text != said(&results.Finding{Code: f.Code, Verdict: results.Passed})):
		return text
	case f.Verdict == results.Undecided:
		return "it could not be found out" + Prefixed(": ", f.Texts["error"])
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
	return byCase(f, dictionary[f.Code].cases...)
}

// byCase is a finding's sentence in the first of the tables that has one for it.
func byCase(f *results.Finding, tables ...texts) string {
	cases := []string{f.Cause, string(f.Verdict), otherwise}
	switch {
	case f.Verdict == results.Undecided && leftOpenTexts[f.Cause] != "":
		return "it could not be found out: " + expand(f, leftOpenTexts[f.Cause])
	case f.Verdict == results.Undecided && f.Cause == "" && f.Texts["error"] != "":
		return "" // nothing was found
	case f.Verdict == results.Undecided:
		cases = []string{cmp.Or(f.Cause, otherwise), otherwise}
	case f.Verdict == results.Passed:
		cases = []string{whenPassed, f.Cause, otherwise}
	case f.Counts["elsewhere"] > 0:
		cases = append([]string{f.Cause + " elsewhere"}, cases...)
	}
	for _, table := range tables {
		for _, k := range cases {
			if text, ok := table[k]; ok {
				return expand(f, text)
			}
		}
	}
	return ""
}

// joints are what parts are joined by, by the sign before them; a comma where there is none.
var joints = map[byte]string{';': "; ", ':': ": ", '&': ", and "}

// expand puts what a finding counts and quotes into a template. ${count} is a number, ${of - lost}
// a difference, ${count:noun} one with its noun, ${count:number} one with decimals, ${count:%.1f}
// one in that format, ${count:ms} a time, ${count:true} true or false; ${"text"} is a text in
// quotation marks, ${'text'} one as it is; specialParts are more than that.
//
// [a|b] are parts of which those are joined that say something: by ", ", [;a|b] by "; ", [:a|b] by
// ": ", [&a|b] by ", and "; of [/a|b] the first one stands. A part that begins with count?, 'text'?
// or !count? says something only where there is, or is not, anything of that.
func expand(f *results.Finding, template string) string {
	var b strings.Builder
	for {
		plain, rest, list := strings.Cut(template, "[")
		b.WriteString(expandPlain(f, plain))
		if !list {
			return b.String()
		}
		inner, after, _ := strings.Cut(rest, "]")
		template = after
		joint, first := ", ", inner[0] == '/'
		if by, ok := joints[inner[0]]; ok || first {
			joint, inner = by, inner[1:]
		}
		var said []string
		for part := range strings.SplitSeq(inner, "|") {
			if condition, words, is := strings.Cut(part, "?"); is {
				name, not := strings.CutPrefix(condition, "!")
				part = words
				text, quoted := strings.CutPrefix(name, "'")
				if some := quoted && f.Texts[strings.Trim(text, "'")] != "" || !quoted && tally(f, name) > 0; some == not {
					continue
				}
			}
			if text := expandPlain(f, part); text != "" && !(first && len(said) > 0) {
				said = append(said, text)
			}
		}
		b.WriteString(strings.Join(said, joint))
	}
}

// expandPlain fills a template without parts.
func expandPlain(f *results.Finding, template string) string {
	return os.Expand(template, func(key string) string {
		name, as, _ := strings.Cut(key, ":")
		value := tally(f, name)
		switch {
		case key[0] == '"':
			return quote(f.Texts[strings.Trim(key, `"`)])
		case key[0] == '\'':
			return f.Texts[strings.Trim(key, "'")]
		case specialParts[key] != nil:
			return specialParts[key](f)
		case as == "number":
			return Number(value)
		case as == "true":
			return fmt.Sprint(value > 0)
		case as == "ms" && value >= 1000:
			return fmt.Sprintf("%.1f s", value/1000)
		case as == "ms" && value >= 10:
			return fmt.Sprintf("%.0f ms", value)
		case as == "ms":
			return fmt.Sprintf("%.2g ms", value)
		case strings.HasPrefix(as, "%"):
			return fmt.Sprintf(as, value)
		case as != "":
			return counted(value, as)
		}
		return Thousands(fmt.Sprintf("%.0f", value))
	})
}

// tally is what a finding counts under a name, or a difference of that: "of - lost", "lost - 1".
func tally(f *results.Finding, name string) float64 {
	name, less, minus := strings.Cut(name, " - ")
	if !minus {
		return f.Counts[name]
	}
	if n, err := strconv.ParseFloat(less, 64); err == nil {
		return f.Counts[name] - n
	}
	return f.Counts[name] - f.Counts[less]
}

// specialParts are parts of sentences that are more than a count or a text.
var specialParts map[string]func(f *results.Finding) string

func init() { // they are made of sentences themselves
	specialParts = map[string]func(f *results.Finding) string{
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
		"frame": func(f *results.Finding) string {
			if len(f.Evidence) > 0 && f.Evidence[0].Code == results.EvidenceFrame {
				return ", but a frame that is no message"
			}
			return ""
		},
		"fault":   faultText,
		"forgery": func(f *results.Finding) string { return cmp.Or(forgeries[f.Texts["forgery"]], "a forged event") },
		"refusals": func(f *results.Finding) string {
			var parts []string
			for _, e := range f.Evidence {
				how := expand(f, map[string]string{results.CauseRefused: "OK false ", results.CauseNotice: "NOTICE ",
					results.CauseSilent: "no answer", results.CauseLost: "the end of the connection"}[e.Cause])
				if e.Code != results.EvidenceRefused || how == "" {
					continue
				}
				if e.Cause == results.CauseRefused || e.Cause == results.CauseNotice {
					how += quote(f.Texts[e.Text])
				}
				parts = append(parts, forgeries[e.Text]+" gets "+how)
			}
			return clauses(parts...)
		},
		"were": func(f *results.Finding) string {
			return map[bool]string{true: "was", false: "were"}[f.Counts["frames"] == 1]
		},
		"source": func(f *results.Finding) string {
			return map[string]string{results.LimitsDeclared: "its definition", results.LimitsTold: "its information document (NIP-11)", "": "the relay"}[f.Texts["source"]]
		},
		"how": func(f *results.Finding) string {
			if f.Texts["how"] == "silence" { // as negentropy.BySilence names it
				return "not answered"
			}
			return expand(f, `answered with ${'how'} ${"reason"}`)
		},
		"refusal": func(f *results.Finding) string {
			if f.Texts["reason"] == "" {
				return ""
			}
			return " (" + quote(f.Texts["reason"]) + ")"
		},
		"what is lost": func(f *results.Finding) string {
			if lost := f.Counts["lost"]; lost > 1 && lost+f.Counts["excused"] == f.Counts["of"] {
				return expand(f, "all ${of} acknowledged events are missing[excused?; ${excused} of them were superseded, deleted or expired since]")
			}
			return expand(f, "[lost?${lost} of ${of} acknowledged events are missing]"+excusedText)
		},
		// Of a status, which has the code that it is because of in place of the check's.
		"explanation": func(f *results.Finding) string {
			return cmp.Or(f.Texts["text"], f.Texts["error"], whyText(f.Code, f.Counts))
		},
		"shortage": func(f *results.Finding) string { return shortageText(f.Code) },
		"limiting": func(f *results.Finding) string { return limits[f.Cause] },
		"cause":    func(f *results.Finding) string { return cmp.Or(f.Texts["text"], codeText(f.Cause)) },
		"have":     func(f *results.Finding) string { return differenceText(f, "have") },
		"need":     func(f *results.Finding) string { return differenceText(f, "need") },
		"holding":  holdingText,
		"rightly":  rightly,
		"answer":   func(f *results.Finding) string { return Prefixed(": ", byCase(f, answeredTexts)) },
		"why":      func(f *results.Finding) string { return reasonText(f.Cause, f.Counts, f.Texts) },
		"faults":   func(f *results.Finding) string { return expand(f, faultsText) },
		"fates":    func(f *results.Finding) string { return Prefixed("; of the missing: ", expand(f, fatesText)) },
		"ended by": func(f *results.Finding) string {
			return byCase(&results.Finding{Cause: f.Texts["by"], Texts: f.Texts}, endedByTexts)
		},
		"because": func(f *results.Finding) string {
			text := Prefixed(": ", whyText(f.Cause, f.Counts))
			if f.Cause == results.WhyTime {
				text += Prefixed("; ", waitedForTexts[f.Texts["by"]])
			}
			return text
		},
	}
}

// faultText says what was wrong with the first of frames that were no message.
func faultText(f *results.Finding) string {
	if len(f.Evidence) == 0 {
		return ""
	}
	return Prefixed(": the first was ", map[string]string{
		"binary-frame": "a binary frame and not text", "not-utf8": "not UTF-8", "not-json": "not JSON", "not-a-message": "JSON, but no message",
		"wrong-element": "a message with an element missing or of the wrong type", "wrong-field": "an event whose " + f.Texts["field"] + " is of the wrong type",
	}[f.Evidence[0].Cause])
}

// differenceText says how many of the ids that one side lacks were named, and how many others.
func differenceText(f *results.Finding, side string) string {
	named, must := f.Counts[side], f.Counts["must "+side]
	extra := max(f.Counts["extra "+side], named-must) // an old record says no more
	text := fmt.Sprintf("%s of %s ids to %s", amount(named-extra), Thousands(fmt.Sprintf("%.0f", must)), side)
	if extra > 0 {
		text += " with " + amount(extra) + " others"
	}
	return text
}

// holdingText compares what a relay holds with what it must hold.
func holdingText(f *results.Finding) string {
	var parts []string
	for _, w := range missingWords {
		parts = append(parts, expand(f, "[missing."+w.cause+"?${missing."+w.cause+"} missing: "+w.text+"]"))
	}
	for _, reason := range goneReasons {
		parts = append(parts, expand(f, "[extra."+reason+"?${extra."+reason+"} kept though "+reason+"]"))
	}
	text := listed(parts...)
	switch {
	case text == "" && (f.Verdict == results.Failed || f.Verdict == results.Undecided):
		return ""
	case text == "":
		return expand(f, "holds the ${must} events that it must")
	}
	return expand(f, "holds ${held} where it must hold ${must}: ") + text
}

// rightly says what a compliant relay does not hold either.
func rightly(f *results.Finding) string {
	var parts []string
	all := 0.0
	for _, reason := range goneReasons {
		parts = append(parts, expand(f, "[rightly."+reason+"?${rightly."+reason+"} "+reason+"]"))
		all += f.Counts["rightly."+reason]
	}
	if all == 0 {
		return ""
	}
	return "a compliant relay does not hold " + And(telling(parts)...) + map[bool]string{true: " event", false: " events"}[all == 1]
}

// reasonText is a clause on why something was not measured, or cannot be.
func reasonText(code string, numbers map[string]float64, texts map[string]string) string {
	if code == results.WithoutNIP77 {
		return texts["relay"] + ": " + byCase(&results.Finding{Cause: texts["cause"], Texts: texts}, reconciledTexts)
	}
	return byCase(&results.Finding{Cause: code, Counts: numbers, Texts: texts}, reasonTexts)
}

// whyText says why a transfer brought less than it set out to bring; empty where no more is known.
func whyText(code string, numbers map[string]float64) string {
	return byCase(&results.Finding{Cause: code, Counts: numbers}, whyTexts)
}

// quote sets words of a relay in quotation marks; none are said to be none.
func quote(s string) string {
	if s == "" {
		return "without a reason"
	}
	return `"` + s + `"`
}

// clauses joins what is not empty, listed does so with commas.
func clauses(parts ...string) string { return joinSaid("; ", parts) }
func listed(parts ...string) string  { return joinSaid(", ", parts) }

func joinSaid(by string, parts []string) string { return strings.Join(telling(parts), by) }

// telling are the parts that say something.
func telling(parts []string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}

// firstOf names the first few of many.
func firstOf(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", more))
	}
	return And(names...)
}

// And joins names in a sentence: "a, b and c".
func And(names ...string) string {
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}
