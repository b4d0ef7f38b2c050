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
	v *view
}

// compose makes the report of a record.
func compose(r *results.Record) *Document {
	d := &composer{&Document{}, newView(r)}
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
	d.add(heading{level: 1, title: strings.TrimSuffix("relaybench: "+strings.Join(names, " vs "), ": ")})
	if d.v.rec.Partial {
		d.add(para{text: []Span{{"PARTIAL: the run did not finish; what is missing was not measured.", RedBold}}})
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
	d.add(gap{})
	facts := d.v.head()
	d.add(list{names: Dim, rows: facts})
	d.to(full, func() {
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
		d.add(list{rows: append(rest, fact{"platform", e.OS + "/" + e.Arch})})
		d.kinds()
	})
}

// kindNames are the kinds that a corpus is mostly made of, by number (NIP-01, 02, 04, 09, 18, 23,
// 25, 57, 59, 65).
var kindNames = map[int]string{0: "profile", 1: "note", 3: "contact list", 4: "encrypted message", 5: "deletion", 6: "repost", 7: "reaction",
	16: "generic repost", 1059: "gift wrap", 1984: "report", 9734: "zap request", 9735: "zap receipt", 10002: "relay list", 30023: "article"}

// maxKinds bounds the list of kinds; real dumps hold hundreds.
const maxKinds = 20

// kinds lists the corpus by kind.
func (d *composer) kinds() {
	kinds := d.v.rec.Corpus.Kinds
	total, other, others := 0, 0, 0
	for _, n := range kinds {
		total += n
	}
	t := &Table{labels: 2, columns: heads("kind", "", "events", "share")}
	add := func(kind, name string, n int) {
		t.rows = append(t.rows, Row{cells: plain(kind, name, Thousands(strconv.Itoa(n)), shareText(n, total))})
	}
	for i, k := range byCount(kinds) {
		if i >= maxKinds {
			other += kinds[k]
			others++
			continue
		}
		name := ""
		if n, err := strconv.Atoi(k); err == nil {
			name = kindNames[n]
		}
		add(k, name, kinds[k])
	}
	if others > 0 {
		add("others", Count(others, "kind"), other)
	}
	d.Table(t)
}

// byCount lists keys by count, largest first, equal ones by name.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}

func shareText(n, total int) string {
	if total <= 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(n)/float64(total), 'f', 1, 64) + " %"
}

func (d *composer) section(s *section) {
	d.add(heading{level: 2, title: s.title})
	if s.pairing != nil {
		d.pairing(s.pairing)
	}
	if s.syncs != nil {
		d.syncs(s.syncs)
	}
	if s.download != nil {
		d.download(s.download)
	}
	d.tables(s.tables)
	var queries []*scenario
	for _, sc := range s.scenarios {
		switch {
		case primary(sc) != nil:
			queries = append(queries, sc)
		case len(sc.blocks)+len(sc.facts) > 0:
			d.add(heading{level: 3, title: sc.Title, key: sc.Key})
			d.blocks(sc)
		}
	}
	if len(queries) > 0 {
		d.queries(queries)
	}
}

// distributions sets the percentiles of every histogram.
func (d *composer) distributions() {
	t := &Table{labels: 3, columns: heads("scenario", "metric", "relay", "samples", "p50", "p90", "p99", "p99.9", "max")}
	few, clamped := false, false
	for _, s := range d.v.sections {
		for _, b := range s.all() {
			var values []float64
			for _, r := range b.rows {
				if r.dist != nil {
					values = append(values, r.dist.p50, r.dist.p99)
				}
			}
			sc := ScaleFor("s", values)
			for _, r := range b.rows {
				x := r.dist
				if x == nil {
					continue
				}
				row := plain(d.v.place(b.scenario.Key, b.labels), b.title, r.name, Thousands(fmt.Sprint(x.n)), sc.Format(x.p50), sc.Format(x.p90), sc.Format(x.p99), sc.Format(x.p999), sc.Format(x.top))
				if x.n < fewSamples {
					row[6].mark, few = "*", true
				}
				if x.clamped > 0 {
					row[3].mark, clamped = "‡", true
				}
				t.rows = append(t.rows, Row{cells: row})
			}
		}
	}
	if len(t.rows) == 0 {
		return
	}
	d.add(heading{level: 2, title: "Latency distributions"})
	d.Table(t)
	if few {
		d.Say("* from fewer than 1,000 samples: a p99 of so few is a guess.", Plain)
	}
	if clamped {
		d.Say("‡ some samples lay outside 0–60 s and are counted at that bound.", Plain)
	}
}

// all are the metrics of a section in which something may be distributed.
func (s *section) all() (blocks []*block) {
	scenarios := slices.Concat(s.tables, s.scenarios)
	if s.pairing != nil {
		scenarios = slices.Concat(s.pairing.scenarios, scenarios)
	}
	if s.download != nil {
		scenarios = slices.Concat(scenarios, s.download.scenarios)
	}
	for _, sc := range scenarios {
		blocks = append(blocks, sc.all()...)
	}
	return blocks
}

// all are the metrics of a scenario but what it consumed.
func (s *scenario) all() []*block { return slices.Concat(s.blocks, s.facts) }

// resources sets CPU, memory and disk traffic: on a terminal all queries together.
func (d *composer) resources() {
	if len(d.v.resourceTable(true).rows) == 0 {
		return
	}
	d.add(heading{level: 2, title: "Resources"})
	d.to(brief, func() { d.Table(d.v.resourceTable(true)) })
	d.to(full, func() { d.Table(d.v.resourceTable(false)) })
}

func (d *composer) headToHead() {
	titles, standings, ok := d.v.headToHead()
	if !ok {
		return
	}
	d.add(heading{level: 2, title: "Head to head"})
	t := &Table{labels: 1, columns: heads(append([]string{"", d.v.winsTitle()}, titles...)...)}
	for _, s := range standings {
		row := plain(s.name, s.score())
		if s.reason != "" {
			row = []Cell{{text: s.name, style: Red}, {text: "not ranked", style: Red, mark: d.foot.sign([]string{s.reason})}}
		}
		for _, c := range s.cells {
			row = append(row, c.cell(&d.foot))
		}
		t.rows = append(t.rows, Row{cells: row})
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
	var x Cell
	switch {
	case c.row != nil && c.ratio > 0:
		x.text = c.scale.Format(c.row.value) + "  " + ratioText(c.ratio)
	case c.row != nil:
		x.text, x.style = c.scale.Format(c.row.value), Dim
	case c.n > 0:
		x.text = ratioText(c.ratio)
		if c.n < c.of {
			x.text = fmt.Sprintf("(%d of %d) %s", c.n, c.of, x.text)
		}
	default:
		x.text, x.style = "n/a", Dim
	}
	if c.row != nil && c.row.best {
		x.mark, x.style = "★", GreenBold
	}
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
		d.add(gap{})
		d.Say(strings.Join(parts, " · "), Dim)
	}
}

// signs are what stands before a check, by how it ended.
var signs = map[results.Verdict]Span{results.Passed: PassedMark, results.Failed: FailedMark, results.Undecided: DoubtMark, results.Stated: pointMark}

func (d *composer) findings() {
	if len(d.v.checks) == 0 {
		return
	}
	d.add(heading{level: 2, title: "Checks"})
	for _, name := range d.v.findingRelays() {
		o := d.v.outcomes(name)
		mark, text, st := PassedMark, Count(o.passed, "check")+" passed", Plain
		if o.passed == 0 {
			mark = pointMark
		}
		if o.count(results.Failed) > 0 {
			mark, text, st = FailedMark, fmt.Sprintf("failed %s; %d passed", o.checks(results.Failed), o.passed), Red
		}
		for _, v := range []results.Verdict{results.Undecided, results.Stated} {
			if n := o.count(v); n > 0 {
				text += fmt.Sprintf("; %d %s", n, v)
			}
		}
		d.add(para{indent: 1, mark: mark, text: []Span{{Speaker(name), Bold}, {": " + text, st}}})
		failures := o.of(results.Failed)
		for i, f := range failures {
			who := everyone
			if i >= maxFailed {
				who = full
			}
			d.to(who, func() { d.failure(f) })
		}
		if more := len(failures) - maxFailed; more > 0 {
			d.to(brief, func() {
				d.add(para{indent: 3, text: []Span{{"… and " + Count(more, "more failed check") + " in report.md", Dim}}})
			})
		}
		d.briefly(o, results.Undecided, "could not be asked, and held against nobody: ")
		d.briefly(o, results.Stated, "stated: ")
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
		d.to(brief, func() {
			d.add(para{indent: 3, mark: signs[verdict], text: []Span{{what + strings.Join(briefs, "; "), Dim}}})
		})
	}
}

// Of a check that ended so in many scenarios, this many are shown with their evidence.
const fullExamples = 3

// failure adds one check with what it follows from, and examples with their evidence; in a file
// the rest is folded away.
func (d *composer) failure(o *outcome) {
	alone, text := len(o.list) == 1, CheckTitle(o.code)
	if where := d.v.places(o); !alone {
		text += ": " + where
	}
	title := para{indent: 3, text: []Span{{text, RedBold}}}
	if o.verdict != results.Failed {
		title = para{indent: 3, mark: signs[o.verdict], text: []Span{{text, Plain}}}
	}
	d.add(title)
	if o.follows != "" {
		d.add(para{indent: 4, mark: Span{"→", Plain}, text: []Span{{o.follows, Plain}}})
	}
	examples := 2
	if o.follows != "" {
		examples = 1
	}
	rest := &Table{labels: 2, columns: heads("scenario", "found")}
	for i, x := range o.list {
		who := everyone
		switch {
		case i >= fullExamples || i >= examples && (d.v.elsewhere(x) || len(x.Evidence) == 0):
			rest.rows = append(rest.rows, Row{cells: plain(d.v.where(x), findingText(x))})
			continue
		case i >= examples:
			who = full
		}
		d.to(who, func() {
			d.add(para{indent: 4, text: []Span{{joinHead(d.v.where(x), findingText(x)), Plain}}})
			if d.v.elsewhere(x) { // where its examples stand
				return
			}
			most, more := 2, ""
			if alone {
				most, more = maxProof, " of evidence in report.md"
			}
			d.evidence(x.Evidence, 4, most, more)
		})
	}
	if text := d.v.rest(o, examples); text != "" {
		d.to(brief, func() { d.add(para{indent: 4, text: []Span{{"and in " + text, Dim}}}) })
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
	d.add(heading{level: 2, title: "Relays"})
	t := &Table{labels: 1, columns: heads("", "outcome", "durability", "version", "sha256")}
	for _, r := range d.v.relays {
		outcome := Cell{text: string(r.Outcome), style: Green}
		if r.Outcome != results.OutcomeOK {
			outcome.style = Red
		}
		t.rows = append(t.rows, Row{cells: []Cell{{text: r.Name, style: Bold}, outcome, {text: r.Durability}, {text: cmp.Or(r.Version, "unknown")}, {text: cmp.Or(Shorten(r.SHA256, 12), "unknown"), style: Dim}}})
	}
	for i := range t.columns {
		t.columns[i].Left = true
	}
	d.Table(t)
	for _, r := range d.v.relays {
		d.fold(r.Name, "command, configuration and what it can do", func() { d.relay(r) })
	}
}

// relay adds how one relay was run.
func (d *composer) relay(r *results.Relay) {
	quoted := func(title, language string, lines []string) {
		d.Say(title, Plain)
		d.add(verbatim{language: language, lines: lines})
	}
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
			d.add(para{text: []Span{{"sha256 of the program: ", Plain}, {r.SHA256, code}}})
		}
		if len(r.Capabilities) > 0 {
			d.add(capabilities(r))
		}
		for _, file := range slices.Sorted(maps.Keys(r.Config)) {
			quoted(file+":", "", strings.Split(r.Config[file], "\n"))
		}
		if len(r.LogTail) > 0 {
			quoted("The end of its log:", "text", r.LogTail)
		}
	})
}

func (d *composer) calibration() {
	if len(d.v.rec.Calibration) == 0 {
		return
	}
	d.add(heading{level: 2, title: "What the harness itself reaches here"})
	x := list{texts: Bold}
	for _, c := range d.v.rec.Calibration {
		x.rows = append(x.rows, fact{calibrationName(c), calibrationText(c)})
	}
	d.add(x)
}

// Calibration writes, for a terminal, what the harness itself reaches on a machine, and what would
// spoil a measurement there. No line exceeds the width. Errors are those of w.
func Calibration(w io.Writer, r *results.Record, o TerminalOptions) error {
	d := &composer{&Document{}, newView(r)}
	d.add(list{rows: []fact{{"machine", strings.Join(machineParts(&d.v.rec.Environment), " · ")}, {"signatures", "by " + d.v.rec.Tool.Verifier}}})
	d.calibration()
	d.apart(WarningMark, MachineWarnings(r))
	return d.Terminal(w, o)
}

// calibrationName is what a figure of the harness is called, with what its labels say.
func calibrationName(c results.Calibration) string {
	if labels := LabelText(c.Labels, inOrder(slices.Collect(maps.Keys(c.Labels)))); labels != "" {
		return c.Name + ", " + labels
	}
	return c.Name
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
	d.add(heading{level: 2, title: "How to repeat this"})
	text := []Span{{"With relaybench ", Plain}, {d.v.rec.Tool.Version, Plain}}
	if d.v.rec.Tool.Revision != "" {
		text = append(text, Span{" at revision ", Plain}, Span{d.v.rec.Tool.Revision, code})
	}
	d.add(para{text: append(text, Span{":", Plain})}, verbatim{language: "sh", lines: []string{strings.TrimSpace("./run.sh " + commandLine(d.v.rec.Options))}})
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
