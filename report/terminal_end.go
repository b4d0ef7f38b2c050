package report

import (
	"cmp"
	"fmt"
	"strings"

	"relaybench/harness/measure"
)

// Bounds on what a terminal report repeats; all of it is in the Markdown report and in results.json.
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
		if u := unitTitle(b.unit); u != "" && !strings.Contains(title, u) && !strings.HasPrefix(title, refusedFor) {
			title += ", " + u
		}
		row := []cell{{title, none}}
		for _, r := range b.rows {
			if r.best {
				t.used += "★"
			}
			row = append(row, factCell(b, r))
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

// resources writes CPU, memory and disk traffic: a line for each relay in each scenario, all queries together.
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
		head = append(head, x+"  ")
	}
	most := 0
	for _, s := range standings {
		most = max(most, s.wins)
	}
	leaders := 0
	for _, s := range standings {
		if s.wins == most && most > 0 {
			leaders++
		}
	}
	var rows [][]cell
	for _, s := range standings {
		st := none
		if s.wins == most && leaders == 1 && t.v.trials > 1 { // one trial shouts no winner
			st = bright
		}
		row := []cell{{s.name, st}}
		if s.reason != "" {
			row[0].style = red
			row = append(row, cell{"not ranked", red})
		} else {
			row = append(row, cell{s.score(), st})
		}
		for _, c := range s.cells {
			row = append(row, c.cell())
		}
		rows = append(rows, row)
	}
	t.grid(2, 1, head, rows, func(c int) bool { return c > 0 })
	for _, s := range standings {
		if s.reason != "" {
			t.line(span{"  " + s.name + ": ", red}, span{clause(s.reason, t.width-width(s.name)-4), none})
		}
	}
	notes := t.v.winsNotes()
	st := dim
	if t.v.trials == 1 {
		st = yellow
	}
	t.paragraph(span{"  ", none}, span{notes[0], st})
	t.paragraph(span{"  ", none}, span{strings.Join(notes[1:], " "), dim})
}

// cell is a headline figure with its ratio to the best one.
func (c standingCell) cell() cell {
	var text string
	st := none
	switch {
	case c.row != nil && c.ratio > 0:
		text = c.scale.format(c.row.value) + "  " + ratioText(c.ratio)
	case c.row != nil:
		return cell{c.scale.format(c.row.value) + "       ", dim}
	case c.n > 0:
		text = ratioText(c.ratio)
		if c.n < c.of {
			text = fmt.Sprintf("(%d of %d) %s", c.n, c.of, text)
		}
	default:
		return cell{"n/a  ", dim}
	}
	switch {
	case c.row != nil && c.row.best:
		text += " ★"
		st = bright
	default:
		text += "  "
	}
	return cell{text, st}
}

// marks are what may stand behind a figure, with their meaning.
var marks = []struct{ sign, meaning string }{
	{"★", "best"},
	{"~", "first, but not significantly"},
	{"=", "a tie"},
	{"†", "against another durability class"},
	{"≠", "answers differ: not ranked"},
	{"!", "limited by the harness, never ranked"},
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

func (t *terminal) findings() {
	if len(t.v.checks) == 0 {
		return
	}
	t.heading("Checks")
	names, n := t.v.findingRelays(), 0
	for _, name := range names {
		n = max(n, width(speaker(name)))
	}
	n = min(n, t.width/3)
	for _, name := range names {
		failures, passed := t.v.failures(name)
		failed := 0
		for _, f := range failures {
			failed += len(f.list)
		}
		who := padRight(fitMiddle(speaker(name), n), n)
		if failed == 0 {
			t.line(span{"  ✓ ", green}, span{who, bold}, span{"  " + count(passed, "check") + " passed", none})
			continue
		}
		t.line(span{"  ✗ ", red}, span{who, bold}, span{fmt.Sprintf("  %d of %s failed", failed, count(passed+failed, "check")), red})
		for _, f := range failures[:min(len(failures), maxFailed)] {
			t.failure(f)
		}
		if more := len(failures) - maxFailed; more > 0 {
			t.line(span{"      … and " + several(more, "failed check", "failed checks") + " in report.md", dim})
		}
	}
}

// failure writes one failed check with what it follows from and an example or two.
func (t *terminal) failure(f *failure) {
	text, st := f.check, yellow
	if f.required {
		text, st = text+" (required)", red
	}
	first := f.list[0]
	alone := len(f.list) == 1
	if w := f.where(); !alone {
		text += ": " + w
	} else if f.of == 1 && subject(first) == first.Relay {
		text += with(first)
	}
	t.paragraph(span{"      ", none}, span{text, st})
	if f.follows != "" {
		t.paragraph(span{"        → ", none}, span{f.follows, none})
	}
	examples := 2
	if f.follows != "" {
		examples = 1
	}
	for _, x := range f.list[:min(examples, len(f.list))] {
		where := x.Scenario
		if !alone && subject(x) == x.Relay {
			where += with(x)
		}
		t.paragraph(span{"        ", none}, span{where + ": " + found(x), none})
		if elsewhere(x) {
			if len(x.Evidence) > 0 && (x.Required || !isSync(x.Scenario, x.Peer)) {
				t.paragraph(span{"        ", none}, span{"examples stand with the pair, above", dim})
			}
			continue
		}
		t.evidence(x, alone)
	}
	if rest := f.rest(examples); rest != "" {
		t.paragraph(span{"        ", none}, span{"and in " + rest, dim})
	}
}

// evidence writes what proves a finding: all that there is room for of one that stands alone, the first lines of an example.
func (t *terminal) evidence(f *measure.Finding, alone bool) {
	most := 2
	if alone {
		most = maxProof
	}
	lines := digest(f.Evidence)
	for _, e := range lines[:min(len(lines), most)] {
		t.paragraph(span{"        · ", dim}, span{fit(e, 3*(t.width-12)), dim})
	}
	if more := len(lines) - most; more > 0 && alone {
		t.line(span{"        … and " + several(more, "line", "lines") + " of evidence in report.md", dim})
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
		if r.Outcome != measure.OutcomeOK {
			outcome.style = red
		}
		rows = append(rows, []cell{{r.Name, bold}, outcome, {r.Durability, none}, {fit(cmp.Or(r.Version, "unknown"), 28), none}, {cmp.Or(shorten(r.SHA256, 12), "unknown"), dim}})
	}
	t.grid(2, 1, head, rows, func(int) bool { return false })
	for _, r := range t.v.relays {
		t.line()
		t.line(span{"  " + fitMiddle(r.Name, t.width/3), bold})
		if r.Command != "" {
			t.paragraph(span{"    $ ", dim}, span{r.Command, none})
		}
		if r.URL != "" {
			t.paragraph(span{"    at ", dim}, span{r.URL + " (it ran already: no figures of disk, CPU or restart)", none})
		}
		for _, n := range r.Notes {
			t.paragraph(span{"    · ", dim}, span{n, dim})
		}
		if r.Outcome != measure.OutcomeOK {
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
	n := 0
	for _, c := range t.v.rec.Calibration {
		n = max(n, width(c.Name))
	}
	n = min(n, t.width/2)
	for _, c := range t.v.rec.Calibration {
		t.line(span{"  " + padRight(fit(c.Name, n), n) + "  ", none}, span{calibrationText(c), bold})
	}
}

func calibrationText(c measure.Calibration) string {
	text := scaleFor(c.Unit, []float64{c.Value}).format(c.Value)
	if u := unitTitle(c.Unit); u != "" {
		text += " " + u
	}
	return text
}

// files names where everything is. These lines alone may be wider than the terminal: a path that is cut cannot be opened.
func (t *terminal) files(paths []string) {
	if len(paths) == 0 {
		return
	}
	t.heading("Files")
	for _, p := range paths {
		t.write("  " + visible(p) + "\n")
	}
}
