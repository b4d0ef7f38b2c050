package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"relaybench/results"
)

// Bounds on what a terminal report repeats; all of it is in the Markdown report and in
// results.json.
const (
	maxFacts    = 12
	maxFailed   = 12
	maxProof    = 5
	maxLogLines = 8
)

// facts writes the figures that are stated and not ranked: a line each, a column for each relay.
func (t *terminal) facts(blocks []*block) {
	if len(blocks) == 0 {
		return
	}
	head := []string{""}
	for _, r := range blocks[0].rows {
		head = append(head, r.name)
	}
	var rows [][]cell
	for _, b := range blocks[:min(len(blocks), maxFacts)] {
		title := b.title
		if b.labels[results.LabelReason] == "" {
			title = withUnit(title, b.unit)
		}
		row := []cell{{title, none}}
		for _, r := range b.rows {
			if r.best {
				t.used += "★"
			}
			c := factCell(b, r)
			if r.has {
				c.text = strings.TrimRight(c.text+" "+t.foot.sign(r.notes()), " ")
			}
			row = append(row, c)
		}
		rows = append(rows, row)
	}
	t.grid(barIndent, 1, head, rows, func(c int) bool { return c > 0 })
	if more := len(blocks) - maxFacts; more > 0 {
		t.line(span{"    … and " + several(more, "figure", "figures") + " in report.md", dim})
	}
}

func factCell(b *block, r *row) cell {
	switch {
	case r.best:
		return cell{b.scale.format(r.value) + " ★", bright}
	case r.has:
		return cell{b.scale.format(r.value), none}
	case r.why == nothing:
		return cell{r.why, dim}
	case r.failed:
		return cell{"failed", red}
	}
	return cell{"n/a", dim}
}

// resources writes CPU, memory and disk traffic: a line for each relay in each scenario, all
// queries together.
func (t *terminal) resources() {
	table := t.v.resourceTable(true)
	if len(table.rows) == 0 {
		return
	}
	t.heading("Resources")
	var rows [][]cell
	for _, r := range table.rows {
		row := make([]cell, len(r))
		for i, text := range r {
			row[i] = cell{text, none}
		}
		row[0].style = dim
		rows = append(rows, row)
	}
	t.grid(2, 2, table.head, rows, func(c int) bool { return c > 1 })
}

func (t *terminal) headToHead() {
	titles, standings, ok := t.v.headToHead()
	if !ok {
		return
	}
	t.heading("Head to head")
	head := []string{"", t.v.winsTitle()}
	for _, x := range titles {
		head = append(head, x+"   ")
	}
	var rows [][]cell
	for _, s := range standings {
		row := []cell{{s.name, none}, {s.score(), none}}
		if s.reason != "" {
			row = []cell{{s.name, red}, {"not ranked " + t.foot.sign([]string{s.reason}), red}}
		}
		for _, c := range s.cells {
			row = append(row, c.cell(&t.foot))
		}
		rows = append(rows, row)
	}
	t.grid(2, 1, head, rows, func(c int) bool { return c > 0 })
	t.footnotes()
	notes := t.v.winsNotes()
	st := dim
	if !t.v.tested() {
		st = yellow
	}
	t.paragraph(span{"  ", none}, span{notes[0], st})
	t.paragraph(span{"  ", none}, span{strings.Join(notes[1:], " "), dim})
}

// cell is a headline figure with its ratio to the best one.
func (c standingCell) cell(foot *footnotes) cell {
	var text, m string
	st := none
	switch {
	case c.row != nil && c.ratio > 0:
		text = c.scale.format(c.row.value) + "  " + ratioText(c.ratio)
	case c.row != nil:
		text, st = c.scale.format(c.row.value), dim
	case c.n > 0:
		text = ratioText(c.ratio)
		if c.n < c.of {
			text = fmt.Sprintf("(%d of %d) %s", c.n, c.of, text)
		}
	default:
		text, st = "n/a", dim
	}
	if c.row != nil && c.row.best {
		m, st = "★", bright
	}
	return cell{text + " " + padRight(m+foot.sign(c.notes), 2), st}
}

// marks are what may stand behind a figure, with their meaning.
var marks = []struct{ sign, meaning string }{
	{"★", "best"},
	{"~", "first, but no test tells it from chance"},
	{"=", "a tie"},
	{"†", "against another durability class"},
	{"≠", "answers differ: not ranked"},
	{"*", "p99 from fewer than 1,000 samples"},
}

func (t *terminal) legend() {
	var parts []string
	for _, m := range marks {
		if strings.Contains(t.used, m.sign) {
			parts = append(parts, m.sign+" "+m.meaning)
		}
	}
	if len(parts) > 0 {
		t.line()
		t.paragraph(span{"  ", none}, span{strings.Join(parts, " · "), dim})
	}
}

// signs are what stands before a check, by how it ended.
var signs = map[results.Verdict]span{
	results.Passed: {"✓", green}, results.Failed: {"✗", red}, results.Undecided: {"?", yellow}, results.Stated: {"·", dim},
}

func (t *terminal) findings() {
	if len(t.v.checks) == 0 {
		return
	}
	t.heading("Checks")
	names, n := t.v.findingRelays(), 0
	for _, name := range names {
		n = max(n, width(speaker(name)))
	}
	n = min(n, t.part(3))
	var who []string
	for _, name := range names {
		who = append(who, speaker(name))
	}
	cut := CutNames(who, n)
	for _, name := range names {
		o := t.v.outcomes(name)
		failed, who := o.count(results.Failed), padRight(cut[speaker(name)], n)
		if failed == 0 {
			t.line(span{"  ✓ ", green}, span{who, bold}, span{"  " + count(o.passed, "check") + " passed", none})
		} else {
			t.line(span{"  ✗ ", red}, span{who, bold}, span{fmt.Sprintf("  failed %s; %d passed", o.checks(results.Failed), o.passed), red})
		}
		failures := o.of(results.Failed)
		for _, f := range failures[:min(len(failures), maxFailed)] {
			t.failure(f)
		}
		if more := len(failures) - maxFailed; more > 0 {
			t.line(span{"      … and " + several(more, "failed check", "failed checks") + " in report.md", dim})
		}
		t.briefly(o, results.Undecided, "could not be asked, and held against nobody: ")
		t.briefly(o, results.Stated, "stated: ")
	}
}

// briefly names the checks that ended in one way, in one paragraph.
func (t *terminal) briefly(o *outcomes, verdict results.Verdict, what string) {
	var briefs []string
	for _, x := range o.of(verdict) {
		brief := t.v.brief(x)
		if verdict == results.Stated { // what a check is called says nothing of what it found
			brief = findingText(x.list[0])
			if len(x.list) > 1 {
				brief += " (" + t.v.places(x) + ")"
			}
		}
		briefs = append(briefs, brief)
	}
	if len(briefs) > 0 {
		sign := signs[verdict]
		t.paragraph(span{"      " + sign.text + " ", sign.style}, span{what + strings.Join(briefs, "; "), dim})
	}
}

// failure writes one failed check with what it follows from and an example or two.
func (t *terminal) failure(o *outcome) {
	alone, text := len(o.list) == 1, checkTitle(o.code)
	if !alone {
		text += ": " + t.v.places(o)
	}
	t.paragraph(span{"      ", none}, span{text, red})
	if o.follows != "" {
		t.paragraph(span{"        → ", none}, span{o.follows, none})
	}
	examples := 2
	if o.follows != "" {
		examples = 1
	}
	for _, x := range o.list[:min(examples, len(o.list))] {
		t.paragraph(span{"        ", none}, span{joinHead(t.v.where(x), findingText(x)), none})
		if t.v.elsewhere(x) { // where its examples stand
			continue
		}
		most := 2
		if alone {
			most = maxProof
		}
		t.evidence(x.Evidence, "        ", most, alone)
	}
	if rest := t.v.rest(o, examples); rest != "" {
		t.paragraph(span{"        ", none}, span{"and in " + rest, dim})
	}
}

// evidence writes the first lines of what proves a finding.
func (t *terminal) evidence(all []results.Evidence, indent string, most int, count bool) {
	lines := evidenceLines(all, true)
	for _, e := range lines[:min(len(lines), most)] {
		t.paragraph(span{indent + "· ", dim}, span{fit(e, 3*(max(t.width, narrow)-width(indent)-4)), dim})
	}
	if more := len(lines) - most; more > 0 && count {
		t.line(span{indent + "… and " + several(more, "line", "lines") + " of evidence in report.md", dim})
	}
}

func (t *terminal) relays() {
	if len(t.v.relays) == 0 {
		return
	}
	t.heading("Relays")
	head := []string{"", "outcome", "durability", "version", "sha256"}
	var rows [][]cell
	for _, r := range t.v.relays {
		outcome := cell{string(r.Outcome), green}
		if r.Outcome != results.OutcomeOK {
			outcome.style = red
		}
		rows = append(rows, []cell{{r.Name, bold}, outcome, {r.Durability, none}, {fit(cmp.Or(r.Version, "unknown"), 28), none}, {cmp.Or(shorten(r.SHA256, 12), "unknown"), dim}})
	}
	t.grid(2, 1, head, rows, func(int) bool { return false })
	var names []string
	for _, r := range t.v.relays {
		names = append(names, r.Name)
	}
	cut := CutNames(names, max(t.width, narrow)-2)
	for _, r := range t.v.relays {
		t.line()
		t.line(span{"  " + cut[r.Name], bold})
		if r.Command != "" {
			t.paragraph(span{"    $ ", dim}, span{r.Command, none})
		}
		if r.URL != "" {
			t.paragraph(span{"    at ", dim}, span{r.URL + " (it ran already: no figures of disk, CPU or restart)", none})
		}
		for _, n := range r.Notes {
			t.paragraph(span{"    · ", dim}, span{n, dim})
		}
		if r.Outcome != results.OutcomeOK {
			t.paragraph(span{"    ✗ ", red}, span{outcomeText(r), red})
			tail := r.LogTail[max(len(r.LogTail)-maxLogLines, 0):]
			for _, l := range tail {
				t.line(span{"    │ ", red}, span{l, dim})
			}
		}
	}
}

func (t *terminal) calibration() {
	if len(t.v.rec.Calibration) == 0 {
		return
	}
	t.heading("What the harness itself reaches here")
	var names []string
	n, figures := 0, 0
	for _, c := range t.v.rec.Calibration {
		names = append(names, CalibrationName(c))
		n, figures = max(n, width(CalibrationName(c))), max(figures, width(CalibrationText(c)))
	}
	n = min(n, max(t.part(2), t.width-figures-4))
	cut := CutNames(names, n)
	for i, c := range t.v.rec.Calibration {
		t.line(span{"  " + padRight(cut[names[i]], n) + "  ", none}, span{CalibrationText(c), bold})
	}
}

// CalibrationName is what a figure of the harness is called, with what its labels say.
func CalibrationName(c results.Calibration) string {
	if labels := labelText(c.Labels, inOrder(slices.Collect(maps.Keys(c.Labels)))); labels != "" {
		return c.Name + ", " + labels
	}
	return c.Name
}

// CalibrationText is a figure of the harness itself with its unit.
func CalibrationText(c results.Calibration) string {
	text := scaleFor(c.Unit, []float64{c.Value}).format(c.Value)
	if u := unitTitle(c.Unit); u != "" {
		text += " " + u
	}
	return text
}

// files names where everything is. These lines alone may be wider than the terminal: a path that is
// cut cannot be opened.
func (t *terminal) files(o TerminalOptions) {
	if len(o.Files) == 0 {
		return
	}
	t.heading("Files")
	for i, p := range o.Files {
		t.write("  " + visible(p) + "\n")
		if i == 0 && o.Earlier {
			t.paragraph(span{"    ! ", yellow}, span{earlierText, none})
		}
	}
}
