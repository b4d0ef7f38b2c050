package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"

	"relaybench/results"
)

// TerminalOptions say what the terminal can do.
type TerminalOptions struct {
	Width int      // cells in a line, held to 20…200; 0 is 80
	Color bool     // SGR colours
	Files []string // where the results are, shown at the end and never shortened
	// Earlier says that the first of Files could not be written anew, and holds less than the
	// report.
	Earlier bool
}

// Terminal writes the report for a terminal: what was run and whether it may be published, every
// metric with a bar for each relay and a star at the best, the head-to-head summary, the checks,
// the relays and the harness's own ceilings. No line but those of o.Files exceeds the width. Errors
// are those of w.
func Terminal(w io.Writer, r *results.Record, o TerminalOptions) error {
	return compose(r).Terminal(w, o)
}

// Markdown writes the whole report: all that Terminal shows, and every metric, distribution,
// resource figure, failed check with its evidence, configuration file, and how to repeat the run.
// It is GitHub-flavoured, and safe to publish: nothing in the record can add markup, links,
// mentions or HTML. Errors are those of w.
func Markdown(w io.Writer, r *results.Record) error { return compose(r).Markdown(w) }

// A composer makes a document of a view.
type composer struct {
	*Document
	v    *view
	told map[string]bool // metrics of the section whose meanings were said
}

// compose makes the report of a record.
func compose(r *results.Record) *Document {
	d := &composer{Document: &Document{}, v: newView(r)}
	d.head()
	for _, s := range d.v.sections {
		d.section(s)
	}
	d.to(full, d.distributions)
	d.resources()
	d.headToHead()
	d.legend()
	d.findings()
	d.relays()
	d.calibration()
	d.to(full, d.repeat)
	return d.Document
}

func (d *composer) head() {
	var names []string
	for _, r := range d.v.relays {
		names = append(names, r.Name)
	}
	d.Title(strings.TrimSuffix("relaybench: "+strings.Join(names, " vs "), ": "))
	if d.v.rec.Partial {
		d.Lead("PARTIAL: the run did not finish; what is missing was not measured.", RedBold)
	}
	x := d.v.verdict()
	st := GreenBold
	switch {
	case len(x.grave) > 0:
		st = RedBold
	case len(x.caveats) > 0:
		st = Yellow
	}
	d.add(para{text: []Span{{"May I publish this? ", Bold}, {" " + x.answer, st}}})
	d.Items(FailedMark, x.grave, Red)
	d.Items(WarningMark, x.caveats, Plain)
	d.Gap()
	d.facts(Dim, Plain, d.v.head())
	d.Full(func() {
		e := d.v.rec.Environment
		var rest []fact
		if !d.v.corpusless() {
			rest = append(rest, fact{"fingerprint", d.v.rec.Corpus.Fingerprint})
		}
		if e.LoadAfter != nil {
			rest = append(rest, fact{"load after", fmt.Sprintf("%.2f", *e.LoadAfter)})
		}
		if e.LoadBefore != nil {
			rest = append(rest, fact{"load before", fmt.Sprintf("%.2f", *e.LoadBefore)})
		}
		d.facts(Dim, Plain, append(rest, fact{"platform", e.OS + "/" + e.Arch}))
		d.kinds()
	})
}

// kindNames are the kinds that a corpus is mostly made of, by number (NIP-01, 02, 04, 09, 18, 23,
// 25, 57, 59, 65).
var kindNames = map[string]string{"0": "profile", "1": "note", "3": "contact list", "4": "encrypted message", "5": "deletion", "6": "repost",
	"7": "reaction", "16": "generic repost", "1059": "gift wrap", "1984": "report", "9734": "zap request", "9735": "zap receipt",
	"10002": "relay list", "30023": "article"}

// maxKinds bounds the list of kinds; real dumps hold hundreds.
const maxKinds = 20

// kinds lists the corpus by kind.
func (d *composer) kinds() {
	kinds, total, rest := d.v.rec.Corpus.Kinds, 0, 0
	for _, n := range kinds {
		total += n
	}
	t := &Table{labels: 2, columns: heads("kind", "", "events", "share")}
	add := func(kind, name string, n int) {
		share := ""
		if total > 0 {
			share = strconv.FormatFloat(100*float64(n)/float64(total), 'f', 1, 64) + " %"
		}
		t.Add("", plain(kind, name, Thousands(strconv.Itoa(n)), share)...)
	}
	all := byCount(kinds)
	for i, k := range all {
		if i >= maxKinds {
			rest += kinds[k]
			continue
		}
		add(k, kindNames[k], kinds[k])
	}
	if len(all) > maxKinds {
		add("others", Count(len(all)-maxKinds, "kind"), rest)
	}
	d.Table(t)
}

// byCount lists keys by count, largest first, equal ones by name.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}

// distributions sets the percentiles of every histogram.
func (d *composer) distributions() {
	t := &Table{labels: 3, columns: heads("scenario", "metric", "relay", "samples", "p50", "p90", "p99", "p99.9", "max")}
	for _, s := range d.v.sections {
		for _, sc := range s.scenarios {
			for _, b := range sc.all() {
				for _, r := range b.rows {
					x := r.dist
					if x == nil {
						continue
					}
					row := plain(d.v.place(sc.Key, b.labels), b.title, r.name, Thousands(fmt.Sprint(x.n)))
					if x.clamped > 0 {
						row[3].mark = d.foot.sign([]string{clampedText})
					}
					t.Add("", append(row, Cell{text: b.duration(x.p50)}, Cell{text: b.duration(x.p90)}, d.p99(b, r),
						Cell{text: b.duration(x.p999)}, Cell{text: b.duration(x.top)})...)
				}
			}
		}
	}
	if len(t.rows) > 0 {
		d.Section("Latency distributions")
		d.Table(t)
	}
}

// resources sets CPU, memory and disk traffic: on a terminal all queries together.
func (d *composer) resources() {
	merged := d.v.resourceTable(true)
	if len(merged.rows) == 0 {
		return
	}
	d.Section("Resources")
	d.to(brief, func() { d.Table(merged) })
	d.to(full, func() { d.Table(d.v.resourceTable(false)) })
}

func (d *composer) headToHead() {
	titles, standings, ok := d.v.headToHead()
	if !ok {
		return
	}
	d.Section("Head to head")
	t := NewTable("", heads(append([]string{"", d.v.winsTitle()}, titles...)...)...)
	for _, s := range standings {
		row := plain(s.name, s.score())
		if s.reason != "" {
			row = []Cell{{text: s.name, style: Red}, {text: "not ranked", style: Red, mark: d.foot.sign([]string{s.reason})}}
		}
		for _, c := range s.cells {
			row = append(row, c.cell(&d.foot))
		}
		t.Add("", row...)
	}
	d.Table(t)
	st := Dim
	if !d.v.tested() {
		st = Yellow
	}
	for _, n := range d.v.winsNotes() {
		d.Say(n, st)
		st = Dim
	}
}

// cell is a headline figure with its ratio to the best one.
func (c standingCell) cell(foot *footnotes) Cell {
	var parts []string
	x := Cell{style: Dim}
	if c.row != nil {
		parts = append(parts, c.scale.Format(c.row.value))
	}
	if c.ratio > 0 {
		if x.style = Plain; c.row == nil && c.n < c.of {
			parts = append(parts, fmt.Sprintf("(%d of %d) %s", c.n, c.of, ratioText(c.ratio)))
		} else {
			parts = append(parts, ratioText(c.ratio))
		}
	}
	if c.row != nil && c.row.best {
		x.mark, x.style = "★", GreenBold
	}
	x.text = cmp.Or(strings.Join(parts, "  "), "n/a")
	x.mark += foot.sign(c.notes)
	return x
}

// marks are what may stand behind a figure, with their meaning.
var marks = []struct{ sign, meaning string }{
	{"★", "best"},
	{"~", "first, but no test tells it from chance (Mann–Whitney U, p ≥ 0.05)"},
	{"=", "a tie"},
	{"†", "against another durability class"},
	{"≠", "answers differ: not ranked"},
	{"*", "p99 from fewer than 1,000 samples"},
}

func (d *composer) legend() {
	var parts []string
	for _, m := range marks {
		if strings.Contains(d.used, m.sign) {
			parts = append(parts, m.sign+" "+m.meaning)
		}
	}
	if len(parts) > 0 {
		d.Gap()
		d.Say(strings.Join(parts, " · "), Dim)
	}
}

// signs are what stands before a check, by how it ended.
var signs = map[results.Verdict]Span{results.Passed: PassedMark, results.Failed: FailedMark, results.Undecided: DoubtMark, results.Stated: pointMark}

func (d *composer) findings() {
	if len(d.v.checks) == 0 {
		return
	}
	d.Section("Checks")
	for _, name := range d.v.findingRelays() {
		o := d.v.outcomes(name)
		mark, text, st := PassedMark, Count(o.passed, "check")+" passed", Plain
		switch {
		case o.count(results.Failed) > 0:
			mark, text, st = FailedMark, fmt.Sprintf("failed %s; %d passed", o.checks(results.Failed), o.passed), Red
		case o.passed == 0:
			mark = pointMark
		}
		for _, v := range []results.Verdict{results.Undecided, results.Stated} {
			if n := o.count(v); n > 0 {
				text += fmt.Sprintf("; %d %s", n, v)
			}
		}
		d.add(para{indent: 1, mark: mark, text: []Span{{Speaker(name), Bold}, {": " + text, st}}})
		failures := o.of(results.Failed)
		for i, f := range failures {
			d.to(map[bool]audience{true: full}[i >= maxFailed], func() { d.failure(f) })
		}
		d.to(brief, func() {
			if more := len(failures) - maxFailed; more > 0 {
				d.say(3, "… and "+Count(more, "more failed check")+" in report.md", Dim)
			}
			d.briefly(o, results.Undecided, "could not be asked, and held against nobody: ")
			d.briefly(o, results.Stated, "stated: ")
		})
		d.to(full, func() {
			for _, x := range slices.Concat(o.of(results.Undecided), o.of(results.Stated)) {
				d.failure(x)
			}
		})
	}
}

// briefly names the checks that ended in one way, in one paragraph.
func (d *composer) briefly(o *outcomes, verdict results.Verdict, what string) {
	var briefs []string
	for _, x := range o.of(verdict) {
		text := d.v.brief(x)
		if verdict == results.Stated { // what a check is called says nothing of what it found
			text = findingText(x.list[0])
			if len(x.list) > 1 {
				text += " (" + d.v.places(x) + ")"
			}
		}
		briefs = append(briefs, text)
	}
	if len(briefs) > 0 {
		d.add(para{indent: 3, mark: signs[verdict], text: []Span{{what + strings.Join(briefs, "; "), Dim}}})
	}
}

// Of a check that ended so in many scenarios, this many are shown with their evidence.
const fullExamples = 3

// failure adds one check with what it follows from, and examples with their evidence; in a file
// the rest is folded away.
func (d *composer) failure(o *outcome) {
	alone, text := len(o.list) == 1, CheckTitle(o.code)
	if !alone {
		text += ": " + d.v.places(o)
	}
	if o.verdict == results.Failed {
		d.say(3, text, RedBold)
	} else {
		d.add(para{indent: 3, mark: signs[o.verdict], text: []Span{{text, Plain}}})
	}
	examples, most, more := 2, 2, ""
	if o.follows != "" {
		d.add(para{indent: 4, mark: Span{"→", Plain}, text: []Span{{o.follows, Plain}}})
		examples = 1
	}
	if alone {
		most, more = maxProof, " of evidence in report.md"
	}
	rest := &Table{labels: 2, columns: heads("scenario", "found")}
	for i, x := range o.list {
		if i >= fullExamples || i >= examples && (d.v.elsewhere(x) || len(x.Evidence) == 0) {
			rest.Add("", plain(d.v.where(x), findingText(x))...)
			continue
		}
		d.to(map[bool]audience{true: full}[i >= examples], func() {
			if d.say(4, joinHead(d.v.where(x), findingText(x)), Plain); !d.v.elsewhere(x) { // where its examples stand
				d.evidence(x.Evidence, 4, most, more)
			}
		})
	}
	if text := d.v.rest(o, examples); text != "" {
		d.to(brief, func() { d.say(4, "and in "+text, Dim) })
	}
	if n := len(rest.rows); n > 0 {
		d.to(full, func() {
			d.fold(Count(n, "more scenario"), "their evidence is in results.json", func() { d.Table(rest) })
		})
	}
}

func (d *composer) relays() {
	if len(d.v.relays) == 0 {
		return
	}
	d.Section("Relays")
	t := NewTable("", Column{}, Column{Head: "outcome", Left: true}, Column{Head: "durability", Left: true}, Column{Head: "version", Left: true},
		Column{Head: "sha256", Left: true})
	for _, r := range d.v.relays {
		st := Green
		if r.Outcome != results.OutcomeOK {
			st = Red
		}
		t.Add("", Text(r.Name, Bold), Text(string(r.Outcome), st), Text(r.Durability, Plain), Text(cmp.Or(r.Version, "unknown"), Plain),
			Text(cmp.Or(Shorten(r.SHA256, 12), "unknown"), Dim))
	}
	d.Table(t)
	for _, r := range d.v.relays {
		d.fold(r.Name, "command, configuration and what it can do", func() { d.relay(r) })
	}
}

// relay adds how one relay was run.
func (d *composer) relay(r *results.Relay) {
	if r.Command != "" {
		d.to(brief, func() { d.add(para{indent: 2, mark: Span{"$", Dim}, text: []Span{{r.Command, Plain}}}) })
		d.to(full, func() { d.add(verbatim{language: "sh", lines: []string{r.Command}}) })
	}
	if r.URL != "" {
		d.add(para{indent: 2, text: []Span{{"at ", Dim}, {r.URL, code}, {" (it ran already: no figures of disk, CPU or restart)", Plain}}})
	}
	for _, n := range r.Notes {
		d.add(para{indent: 2, mark: pointMark, text: []Span{{n, Dim}}})
	}
	if r.Outcome != results.OutcomeOK {
		d.add(para{indent: 2, mark: FailedMark, text: []Span{{OutcomeText(r), Red}}})
		d.to(brief, func() { d.add(verbatim{lines: r.LogTail, most: maxLogLines, last: true, indent: 2, mark: "│"}) })
	}
	d.to(full, func() {
		if r.SHA256 != "" {
			d.LeadCode("sha256 of the program: ", r.SHA256, "")
		}
		d.facts(Plain, Plain, capabilities(r))
		for _, file := range slices.Sorted(maps.Keys(r.Config)) {
			d.Say(file+":", Plain)
			d.add(verbatim{lines: strings.Split(r.Config[file], "\n")})
		}
		if len(r.LogTail) > 0 {
			d.Say("The end of its log:", Plain)
			d.add(verbatim{language: "text", lines: r.LogTail})
		}
	})
}

func (d *composer) calibration() {
	if len(d.v.rec.Calibration) == 0 {
		return
	}
	d.Section("What the harness itself reaches here")
	var rows []fact
	for _, c := range d.v.rec.Calibration {
		rows = append(rows, fact{calibrationName(c), calibrationText(c)})
	}
	d.facts(Plain, Bold, rows)
}

// Calibration writes, for a terminal, what the harness itself reaches on a machine, and what would
// spoil a measurement there. No line exceeds the width. Errors are those of w.
func Calibration(w io.Writer, r *results.Record, o TerminalOptions) error {
	d := &composer{Document: &Document{}, v: newView(r)}
	d.facts(Plain, Plain, []fact{{"machine", strings.Join(machineParts(&d.v.rec.Environment), " · ")}, {"signatures", "by " + d.v.rec.Tool.Verifier}})
	d.calibration()
	if warnings := MachineWarnings(r); len(warnings) > 0 {
		d.Gap()
		d.Items(WarningMark, warnings, Plain)
	}
	return d.Terminal(w, o)
}

// calibrationName is what a figure of the harness is called, with what its labels say.
func calibrationName(c results.Calibration) string {
	return c.Name + Prefixed(", ", allLabels(c.Labels))
}

// calibrationText is a figure of the harness itself with its unit.
func calibrationText(c results.Calibration) string {
	text := ScaleFor(c.Unit, []float64{c.Value}).Format(c.Value)
	if u := unitTitle(c.Unit); u != "" {
		text += " " + u
	}
	return text
}

// repeat says how to measure this again.
func (d *composer) repeat() {
	d.Section("How to repeat this")
	if t := d.v.rec.Tool; t.Revision != "" {
		d.LeadCode("With relaybench "+t.Version+" at revision ", t.Revision, ":")
	} else {
		d.Lead("With relaybench "+t.Version+":", Plain)
	}
	d.add(verbatim{language: "sh", lines: []string{strings.TrimSpace("./run.sh " + commandLine(d.v.rec.Options))}})
	d.Say("Results compare only where the corpus fingerprint and the settings are the same.", Plain)
}

// commandLine is the words the run was started with, quoted for a shell.
func commandLine(options map[string]any) string {
	var words []string
	switch args := options["args"].(type) {
	case []string:
		words = args
	case []any:
		for _, a := range args {
			words = append(words, fmt.Sprint(a))
		}
	}
	return shellquote.Join(words...)
}
