package report

import (
	"cmp"
	"fmt"
	"slices"
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
		if u := unitTitle(b.unit); u != "" && !strings.Contains(title, u) {
			title += ", " + u
		}
		row := []cell{{title, none}}
		for _, r := range b.rows {
			row = append(row, factCell(b, r))
		}
		rows = append(rows, row)
	}
	t.grid(barIndent, 1, head, rows, func(c int) bool { return c > 0 })
	if more := len(blocks) - maxFacts; more > 0 {
		t.line(span{fmt.Sprintf("    … and %d more in report.md", more), dim})
	}
}

func factCell(b *block, r *row) cell {
	switch {
	case r.has:
		return cell{b.scale.format(r.value), none}
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
	head := []string{"", "wins"}
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
		if s.wins == most && leaders == 1 {
			st = bright
		}
		row := []cell{{s.name, st}}
		if s.reason != "" {
			row[0].style = red
			row = append(row, cell{"not ranked", red})
		} else {
			row = append(row, cell{fmt.Sprintf("%d of %d", s.wins, s.of), st})
		}
		for _, c := range s.cells {
			row = append(row, c.cell())
		}
		rows = append(rows, row)
	}
	t.grid(2, 1, head, rows, func(c int) bool { return c > 0 })
	for _, s := range standings {
		if s.reason != "" {
			t.paragraph(span{"  " + s.name + ": ", red}, span{s.reason, none})
		}
	}
	t.paragraph(span{"  ", none}, span{"1.00× is the best; several scenarios together are a geometric mean of such ratios.", dim})
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
	{"~", "first, but its trials overlap with the next one's"},
	{"=", "a tie"},
	{"†", "against another durability class"},
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
		var failed []*measure.Finding
		passed := 0
		for _, f := range t.v.checks {
			switch {
			case subject(f) != name:
			case f.OK:
				passed++
			default:
				failed = append(failed, f)
			}
		}
		who := padRight(fitMiddle(speaker(name), n), n)
		if len(failed) == 0 {
			t.line(span{"  ✓ ", green}, span{who, bold}, span{"  " + count(passed, "check") + " passed", none})
			continue
		}
		t.line(span{"  ✗ ", red}, span{who, bold}, span{fmt.Sprintf("  %d of %s failed", len(failed), count(passed+len(failed), "check")), red})
		slices.SortStableFunc(failed, func(a, b *measure.Finding) int {
			switch {
			case a.Required && !b.Required:
				return -1
			case b.Required && !a.Required:
				return 1
			}
			return 0
		})
		for _, f := range failed[:min(len(failed), maxFailed)] {
			t.finding(f)
		}
		if more := len(failed) - maxFailed; more > 0 {
			t.line(span{fmt.Sprintf("      … and %d more failed checks in report.md", more), dim})
		}
	}
}

func (t *terminal) finding(f *measure.Finding) {
	text, st := f.Check, yellow
	if f.Required {
		text, st = text+" (required)", red
	}
	if subject(f) == f.Relay {
		text += with(f)
	}
	t.paragraph(span{"      ", none}, span{text, st})
	t.paragraph(span{"        ", none}, span{f.Scenario + ": " + f.Detail, none})
	if inPair(f) {
		if len(f.Evidence) > 0 {
			t.paragraph(span{"        ", none}, span{"examples stand with the pair, above", dim})
		}
		return
	}
	for _, e := range f.Evidence[:min(len(f.Evidence), maxProof)] {
		t.line(span{"        · ", dim}, span{e, dim})
	}
	if more := len(f.Evidence) - maxProof; more > 0 {
		t.line(span{fmt.Sprintf("        … and %d more lines of evidence", more), dim})
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
