package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"

	"relaybench/results"
)

// A dictionary is what words.toml holds. All sentences on findings and figures are made of it: no
// other code of a report knows what was found, and nobody reads it out of a sentence.
type dictionary struct {
	Checks map[string]texts // by code
	Status map[string]texts // by code
	Texts  map[string]texts // that several have, or that are no check's
	Parts  map[string]string
	titles map[string]string // of checks
}

// texts are templates by case; see words.toml.
type texts map[string]string

// otherwise is the case of texts that stands for all others.
const otherwise = "else"

//go:embed words.toml
var wordsFile string

var words = sync.OnceValue(func() *dictionary {
	d := &dictionary{titles: map[string]string{}}
	if _, err := toml.Decode(wordsFile, d); err != nil {
		panic(err) // a test reads them all
	}
	for code, own := range d.Checks {
		for _, name := range strings.Fields(own["also"]) {
			for k, text := range d.Texts[name] {
				if _, has := own[k]; !has {
					own[k] = text
				}
			}
		}
		d.titles[code] = own["title"]
		delete(own, "title")
		delete(own, "also")
	}
	return d
})

// word is the text of a table for a code, "" where it has none.
func word(table, code string) string { return words().Texts[table][code] }

// Words returns what a finding's check is called, and one sentence on what it
// found. Words of relays in them are as they came.
func Words(f *results.Finding) (title, text string) { return CheckTitle(f.Code), findingText(f) }

// CheckTitle is what a check is called; one that is not known, of a record of form 1, stands under
// its code.
func CheckTitle(code string) string { return cmp.Or(words().titles[code], codeText(code)) }

// codeText writes a code that no table knows as words.
func codeText(code string) string { return strings.ReplaceAll(code, "-", " ") }

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
	if text := word("shortage", f.Cause); text != "" {
		return clauses("not judged: "+text, f.Texts["error"])
	}
	return byCase(f, words().Checks[f.Code])
}

// statusText says what a reader must know of a figure, in one sentence without its full stop.
func statusText(s *results.Status) string {
	if cases := words().Status[s.Code]; cases != nil {
		return byCase(&results.Finding{Code: s.Because, Cause: s.Cause, Counts: s.Counts, Texts: s.Texts}, cases)
	}
	return cmp.Or(s.Texts["text"], codeText(s.Code))
}

// byCase is a finding's sentence of a table.
func byCase(f *results.Finding, table texts) string {
	cases := []string{f.Cause, string(f.Verdict), otherwise}
	switch {
	case f.Verdict == results.Undecided && word("left-open", f.Cause) != "":
		return "it could not be found out: " + expand(f, word("left-open", f.Cause))
	case f.Verdict == results.Undecided && f.Cause == "" && f.Texts["error"] != "":
		return "" // nothing was found
	case f.Verdict == results.Undecided:
		cases = []string{cmp.Or(f.Cause, otherwise), otherwise}
	case f.Verdict == results.Passed:
		cases = []string{string(results.Passed), f.Cause, otherwise}
	case f.Counts["elsewhere"] > 0:
		cases = append([]string{f.Cause + " elsewhere"}, cases...)
	}
	for _, k := range cases {
		if text, ok := table[k]; ok {
			return expand(f, text)
		}
	}
	return ""
}

// joints are what parts are joined by, by the sign before them; a comma where there is none.
var joints = map[byte]string{';': "; ", ':': ": ", '&': ", and ", '/': ""}

// expand puts what a finding counts and quotes into a template, which words.toml describes.
func expand(f *results.Finding, template string) string {
	var b strings.Builder
	for {
		plain, rest, list := strings.Cut(template, "[")
		b.WriteString(os.Expand(plain, func(key string) string { return expandKey(f, key) }))
		if !list {
			return b.String()
		}
		inner, after, _ := strings.Cut(rest, "]")
		template = after
		joint, first := ", ", inner[0] == '/'
		if by, ok := joints[inner[0]]; ok {
			joint, inner = by, inner[1:]
		}
		var said []string
		for part := range strings.SplitSeq(inner, "|") {
			condition, then, is := strings.Cut(part, "?")
			for ; is && holds(f, condition); condition, then, is = strings.Cut(part, "?") {
				part = then
			}
			if !is && !(first && len(said) > 0) {
				said = telling(append(said, expand(f, part)))
			}
		}
		b.WriteString(strings.Join(said, joint))
	}
}

// holds tells whether there is anything of what a condition names.
func holds(f *results.Finding, condition string) bool {
	name, not := strings.CutPrefix(condition, "!")
	some := false
	switch name[0] {
	case '\'':
		some = f.Texts[strings.Trim(name, "'")] != ""
	case '@':
		some = expandKey(f, name) != ""
	default:
		some = tally(f, name) > 0
	}
	return some != not
}

// expandKey is what stands for a key in a template.
func expandKey(f *results.Finding, key string) string {
	name, as, _ := strings.Cut(key, ":")
	value := tally(f, name)
	switch {
	case key[0] == '@':
		return Prefixed(as, referred(f, name[1:]))
	case key[0] == '"':
		return quote(f.Texts[strings.Trim(key, `"`)])
	case key[0] == '\'':
		return f.Texts[strings.Trim(key, "'")]
	case key == "cause":
		return codeText(f.Cause)
	case key == "have" || key == "need":
		return differenceText(f, key)
	case key == "fields":
		return strings.ReplaceAll(f.Texts["fields"], ", ", " and another ")
	case key == "refusals":
		return refusalsText(f)
	case key == "order":
		return seen(f, results.EvidenceOrder).Text
	case as == "number":
		return Number(value)
	case as == "bytes":
		return BytesText(value)
	case as == "date":
		return time.Unix(int64(value), 0).UTC().Format(time.DateOnly)
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
}

// referred is a part by its name, or the text of a table: by the cause of a finding, or by what
// stands behind the table's name.
func referred(f *results.Finding, name string) string {
	if part, ok := words().Parts[name]; ok {
		return expand(f, part)
	}
	table, by, _ := strings.Cut(name, " ")
	x := results.Finding{Code: f.Code, Cause: f.Cause, Counts: f.Counts, Texts: f.Texts, Evidence: f.Evidence}
	switch by {
	case "":
	case "code":
		x.Cause = f.Code
	case "verdict":
		x.Cause = string(f.Verdict)
	case "frame":
		e := seen(f, results.EvidenceFrame)
		x.Cause = cmp.Or(e.Cause, e.Code)
	default:
		x.Cause = f.Texts[strings.Trim(by, "'")]
	}
	return byCase(&x, words().Texts[table])
}

// seen is the first evidence of a kind; the zero value where there is none.
func seen(f *results.Finding, code string) (e results.Evidence) {
	if i := slices.IndexFunc(f.Evidence, func(e results.Evidence) bool { return e.Code == code }); i >= 0 {
		e = f.Evidence[i]
	}
	return e
}

// tally is what a finding counts under a name, or a difference: "of - lost", "lost - 1".
func tally(f *results.Finding, name string) float64 {
	terms := strings.Split(name, " - ")
	n := f.Counts[terms[0]]
	for _, term := range terms[1:] {
		if less, err := strconv.ParseFloat(term, 64); err == nil {
			n -= less
		} else {
			n -= f.Counts[term]
		}
	}
	return n
}

// refusalsText says how a relay answered each forged event.
func refusalsText(f *results.Finding) string {
	var parts []string
	for _, e := range f.Evidence {
		if e.Code == results.EvidenceRefused {
			texts := map[string]string{"forgery": e.Text, "reason": f.Texts[e.Text]}
			parts = append(parts, byCase(&results.Finding{Cause: e.Cause, Texts: texts}, words().Texts["refusal"]))
		}
	}
	return clauses(parts...)
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

// quote sets words of a relay in quotation marks; none are said to be none.
func quote(s string) string {
	if s == "" {
		return "without a reason"
	}
	return `"` + s + `"`
}

// clauses joins what is not empty.
func clauses(parts ...string) string { return joinSaid("; ", parts) }

func joinSaid(by string, parts []string) string { return strings.Join(telling(parts), by) }

// telling are the parts that say something.
func telling(parts []string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}

// And joins names in a sentence: "a, b and c".
func And(names ...string) string {
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}
