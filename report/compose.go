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
func Terminal(w io.Writer, r *results.Record, o TerminalOptions) error { return compose(r).print(w, o) }

// Markdown writes the whole report: all that Terminal shows, and every metric, distribution,
// resource figure, failed check with its evidence, configuration file, and how to repeat the run.
// It is GitHub-flavoured, and safe to publish: nothing in the record can add markup, links,
// mentions or HTML. Errors are those of w.
func Markdown(w io.Writer, r *results.Record) error { return compose(r).markdown(w) }

// A composer makes a document of a view.
type composer struct {
	*document
	v *view
}

// compose makes the report of a record.
func compose(r *results.Record) *document {
	d := &composer{&document{}, newView(r)}
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
	return d.document
}

func (d *composer) head() {
	var names []string
	for _, r := range d.v.relays {
		names = append(names, r.Name)
	}
	d.add(heading{level: 1, title: strings.TrimSuffix("relaybench: "+strings.Join(names, " vs "), ": ")})
	if d.v.rec.Partial {
		d.add(para{text: []span{{"PARTIAL: the run did not finish; what is missing was not measured.", redder}}})
	}
	x := d.v.verdict()
	st := bright
	switch {
	case len(x.grave) > 0:
		st = redder
	case len(x.caveats) > 0:
		st = yellow
	}
	d.add(para{text: []span{{"May I publish this? ", bold}, {" " + x.answer, st}}})
	d.items(failedMark, x.grave, red)
	d.items(warningMark, x.caveats, none)
	d.add(gap{})
	facts := d.v.head()
	d.add(list{names: dim, rows: facts})
	d.to(full, func() {
		e := d.v.rec.Environment
		rest := []fact{{"platform", e.OS + "/" + e.Arch}}
		for name, load := range map[string]*float64{"load after": e.LoadAfter, "load before": e.LoadBefore} {
			if load != nil {
				rest = append(rest, fact{name, strconv.FormatFloat(*load, 'f', 2, 64)})
			}
		}
		if !d.v.corpusless() {
			rest = append(rest, fact{"fingerprint", d.v.rec.Corpus.Fingerprint})
		}
		slices.SortFunc(rest, func(a, b fact) int { return strings.Compare(a.key, b.key) })
		d.add(list{rows: rest})
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
	t := &table{labels: 2, columns: heads("kind", "", "events", "share")}
	add := func(kind, name string, n int) {
		t.rows = append(t.rows, tableRow{cells: plain(kind, name, thousands(strconv.Itoa(n)), shareText(n, total))})
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
		add("others", count(others, "kind"), other)
	}
	d.table(t)
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
	t := &table{labels: 3, columns: heads("scenario", "metric", "relay", "samples", "p50", "p90", "p99", "p99.9", "max")}
	few, clamped := false, false
	for _, s := range d.v.sections {
		for _, b := range s.all() {
			var values []float64
			for _, r := range b.rows {
				if r.dist != nil {
					values = append(values, r.dist.p50, r.dist.p99)
				}
			}
			sc := scaleFor("s", values)
			for _, r := range b.rows {
				x := r.dist
				if x == nil {
					continue
				}
				row := plain(d.v.place(b.scenario.Key, b.labels), b.title, r.name, thousands(fmt.Sprint(x.n)), sc.format(x.p50), sc.format(x.p90), sc.format(x.p99), sc.format(x.p999), sc.format(x.top))
				if x.n < fewSamples {
					row[6].mark, few = "*", true
				}
				if x.clamped > 0 {
					row[3].mark, clamped = "‡", true
				}
				t.rows = append(t.rows, tableRow{cells: row})
			}
		}
	}
	if len(t.rows) == 0 {
		return
	}
	d.add(heading{level: 2, title: "Latency distributions"})
	d.table(t)
	if few {
		d.say("* from fewer than 1,000 samples: a p99 of so few is a guess.", none)
	}
	if clamped {
		d.say("‡ some samples lay outside 0–60 s and are counted at that bound.", none)
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
		blocks = append(blocks, slices.Concat(sc.blocks, sc.facts)...)
	}
	return blocks
}

// resources sets CPU, memory and disk traffic: on a terminal all queries together.
func (d *composer) resources() {
	if len(d.v.resourceTable(true).rows) == 0 {
		return
	}
	d.add(heading{level: 2, title: "Resources"})
	d.to(brief, func() { d.table(d.v.resourceTable(true)) })
	d.to(full, func() { d.table(d.v.resourceTable(false)) })
}

func (d *composer) headToHead() {
	titles, standings, ok := d.v.headToHead()
	if !ok {
		return
	}
	d.add(heading{level: 2, title: "Head to head"})
	t := &table{labels: 1, columns: heads(append([]string{"", d.v.winsTitle()}, titles...)...)}
	for _, s := range standings {
		row := plain(s.name, s.score())
		if s.reason != "" {
			row = []cell{{text: s.name, style: red}, {text: "not ranked", style: red, mark: d.foot.sign([]string{s.reason})}}
		}
		for _, c := range s.cells {
			row = append(row, c.cell(&d.foot))
		}
		t.rows = append(t.rows, tableRow{cells: row})
	}
	d.table(t)
	st := dim
	if !d.v.tested() {
		st = yellow
	}
	for _, n := range d.v.winsNotes() {
		d.say(n, st)
		st = dim
	}
}

// cell is a headline figure with its ratio to the best one.
func (c standingCell) cell(foot *footnotes) cell {
	var x cell
	switch {
	case c.row != nil && c.ratio > 0:
		x.text = c.scale.format(c.row.value) + "  " + ratioText(c.ratio)
	case c.row != nil:
		x.text, x.style = c.scale.format(c.row.value), dim
	case c.n > 0:
		x.text = ratioText(c.ratio)
		if c.n < c.of {
			x.text = fmt.Sprintf("(%d of %d) %s", c.n, c.of, x.text)
		}
	default:
		x.text, x.style = "n/a", dim
	}
	if c.row != nil && c.row.best {
		x.mark, x.style = "★", bright
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
		d.say(strings.Join(parts, " · "), dim)
	}
}

// signs are what stands before a check, by how it ended.
var signs = map[results.Verdict]span{results.Passed: passedMark, results.Failed: failedMark, results.Undecided: doubtMark, results.Stated: pointMark}

func (d *composer) findings() {
	if len(d.v.checks) == 0 {
		return
	}
	d.add(heading{level: 2, title: "Checks"})
	for _, name := range d.v.findingRelays() {
		o := d.v.outcomes(name)
		mark, text, st := passedMark, count(o.passed, "check")+" passed", none
		if o.passed == 0 {
			mark = pointMark
		}
		if o.count(results.Failed) > 0 {
			mark, text, st = failedMark, fmt.Sprintf("failed %s; %d passed", o.checks(results.Failed), o.passed), red
		}
		for _, v := range []results.Verdict{results.Undecided, results.Stated} {
			if n := o.count(v); n > 0 {
				text += fmt.Sprintf("; %d %s", n, v)
			}
		}
		d.add(para{indent: 1, mark: mark, text: []span{{speaker(name), bold}, {": " + text, st}}})
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
				d.add(para{indent: 3, text: []span{{"… and " + several(more, "failed check", "failed checks") + " in report.md", dim}}})
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
			d.add(para{indent: 3, mark: signs[verdict], text: []span{{what + strings.Join(briefs, "; "), dim}}})
		})
	}
}

// Of a check that ended so in many scenarios, this many are shown with their evidence.
const fullExamples = 3

// failure adds one check with what it follows from, and examples with their evidence; in a file
// the rest is folded away.
func (d *composer) failure(o *outcome) {
	alone, text := len(o.list) == 1, checkTitle(o.code)
	if where := d.v.places(o); !alone {
		text += ": " + where
	}
	title := para{indent: 3, text: []span{{text, redder}}}
	if o.verdict != results.Failed {
		title = para{indent: 3, mark: signs[o.verdict], text: []span{{text, none}}}
	}
	d.add(title)
	if o.follows != "" {
		d.add(para{indent: 4, mark: span{"→", none}, text: []span{{o.follows, none}}})
	}
	examples := 2
	if o.follows != "" {
		examples = 1
	}
	rest := &table{labels: 2, columns: heads("scenario", "found")}
	for i, x := range o.list {
		who := everyone
		switch {
		case i >= fullExamples || i >= examples && (d.v.elsewhere(x) || len(x.Evidence) == 0):
			rest.rows = append(rest.rows, tableRow{cells: plain(d.v.where(x), findingText(x))})
			continue
		case i >= examples:
			who = full
		}
		d.to(who, func() {
			d.add(para{indent: 4, text: []span{{joinHead(d.v.where(x), findingText(x)), none}}})
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
		d.to(brief, func() { d.add(para{indent: 4, text: []span{{"and in " + text, dim}}}) })
	}
	if n := len(rest.rows); n > 0 {
		d.to(full, func() {
			d.fold(several(n, "scenario", "scenarios"), "their evidence is in results.json", func() { d.table(rest) })
		})
	}
}

func (d *composer) relays() {
	if len(d.v.relays) == 0 {
		return
	}
	d.add(heading{level: 2, title: "Relays"})
	t := &table{labels: 1, columns: heads("", "outcome", "durability", "version", "sha256")}
	for _, r := range d.v.relays {
		outcome := cell{text: string(r.Outcome), style: green}
		if r.Outcome != results.OutcomeOK {
			outcome.style = red
		}
		t.rows = append(t.rows, tableRow{cells: []cell{{text: r.Name, style: bold}, outcome, {text: r.Durability}, {text: cmp.Or(r.Version, "unknown")}, {text: cmp.Or(shorten(r.SHA256, 12), "unknown"), style: dim}}})
	}
	for i := range t.columns {
		t.columns[i].left = true
	}
	d.table(t)
	for _, r := range d.v.relays {
		d.fold(r.Name, "command, configuration and what it can do", func() { d.relay(r) })
	}
}

// relay adds how one relay was run.
func (d *composer) relay(r *results.Relay) {
	quoted := func(title, language string, lines []string) {
		d.say(title, none)
		d.add(verbatim{language: language, lines: lines})
	}
	if r.Command != "" {
		d.to(brief, func() { d.add(para{indent: 2, mark: span{"$", dim}, text: []span{{r.Command, none}}}) })
		d.to(full, func() { d.add(verbatim{language: "sh", lines: []string{r.Command}}) })
	}
	if r.URL != "" {
		d.add(para{indent: 2, text: []span{{"at ", dim}, {r.URL, code}, {" (it ran already: no figures of disk, CPU or restart)", none}}})
	}
	for _, n := range r.Notes {
		d.add(para{indent: 2, mark: pointMark, text: []span{{n, dim}}})
	}
	if r.Outcome != results.OutcomeOK {
		d.add(para{indent: 2, mark: failedMark, text: []span{{outcomeText(r), red}}})
		d.to(brief, func() { d.add(verbatim{lines: r.LogTail, most: maxLogLines, last: true, indent: 2, mark: "│"}) })
	}
	d.to(full, func() {
		if r.SHA256 != "" {
			d.add(para{text: []span{{"sha256 of the program: ", none}, {r.SHA256, code}}})
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
	x := list{texts: bold}
	for _, c := range d.v.rec.Calibration {
		x.rows = append(x.rows, fact{calibrationName(c), calibrationText(c)})
	}
	d.add(x)
}

// Calibration writes, for a terminal, what the harness itself reaches on a machine, and what would
// spoil a measurement there. No line exceeds the width. Errors are those of w.
func Calibration(w io.Writer, r *results.Record, o TerminalOptions) error {
	d := &composer{&document{}, newView(r)}
	d.add(list{rows: []fact{{"machine", strings.Join(machineParts(&d.v.rec.Environment), " · ")}, {"signatures", "by " + d.v.rec.Tool.Verifier}}})
	d.calibration()
	d.apart(warningMark, MachineWarnings(r))
	return d.print(w, o)
}

// calibrationName is what a figure of the harness is called, with what its labels say.
func calibrationName(c results.Calibration) string {
	if labels := labelText(c.Labels, inOrder(slices.Collect(maps.Keys(c.Labels)))); labels != "" {
		return c.Name + ", " + labels
	}
	return c.Name
}

// calibrationText is a figure of the harness itself with its unit.
func calibrationText(c results.Calibration) string {
	text := scaleFor(c.Unit, []float64{c.Value}).format(c.Value)
	if u := unitTitle(c.Unit); u != "" {
		text += " " + u
	}
	return text
}

// repeat says how to measure this again.
func (d *composer) repeat() {
	d.add(heading{level: 2, title: "How to repeat this"})
	text := []span{{"With relaybench ", none}, {d.v.rec.Tool.Version, none}}
	if d.v.rec.Tool.Revision != "" {
		text = append(text, span{" at revision ", none}, span{d.v.rec.Tool.Revision, code})
	}
	d.add(para{text: append(text, span{":", none})}, verbatim{language: "sh", lines: []string{strings.TrimSpace("./run.sh " + commandLine(d.v.rec.Options))}})
	d.say("Results compare only where the corpus fingerprint and the settings are the same.", none)
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
