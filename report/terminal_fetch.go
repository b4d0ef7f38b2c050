package report

import "fmt"

// download writes the section of downloads: every strategy in every form, what sets their pace, and
// the matrix of fetching by id.
func (t *terminal) download(d *download) {
	t.paragraph(span{"  ", none}, span{fetchMeaning, dim})
	t.line()
	several := len(d.relays) > 1
	head, fixed := []string{"", ""}, 2
	if several {
		head, fixed = append(head, ""), 3
	}
	lines := d.lines()
	spared := d.spared(lines)
	head = append(head, "events/s  ")
	for _, h := range fetchHead {
		if !spared[h] {
			head = append(head, h)
		}
	}
	var rows [][]cell
	last := ""
	for _, l := range lines {
		label := l.cell.label()
		if label == last {
			label = ""
		}
		last = l.cell.label()
		row := []cell{{label, none}, {l.cell.form, none}}
		if several {
			row = append(row, cell{l.relay, none})
		}
		row = append(row, t.value(l.cell.rate, l.cell.row(l.relay)))
		for i, text := range l.figures() {
			if spared[fetchHead[i]] {
				continue
			}
			st := none
			switch {
			case fetchHead[i] == "all?" && text == "complete":
				st = green
			case fetchHead[i] == "all?":
				st = yellow
			}
			if l.few() && fetchHead[i] == "p99" {
				t.used += "*"
			}
			row = append(row, cell{text, st})
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		t.grid(2, fixed, head, rows, func(c int) bool { return c >= fixed })
		t.footnotes()
		t.paragraph(span{"  ", none}, span{fetchColumns, dim})
	}
	t.list(d.paces(), "· ")
	t.list(d.reasons(4), "! ")
	for _, m := range d.matrices(formRaw) {
		t.fetchMatrix(m, several)
	}
	if len(d.matrices("")) > len(d.matrices(formRaw)) {
		t.paragraph(span{"  ", none}, span{"The same for the other forms is in report.md.", dim})
	}
	t.list(d.windows(), "· ")
}

// spared are columns that a terminal has no room for while they say nothing: report.md has them
// all.
func (d *download) spared(lines []fetchLine) map[string]bool {
	spared := map[string]bool{"retried": true, "failed": true}
	for _, l := range lines {
		for i, text := range l.figures() {
			if text != "0" && text != nothing {
				delete(spared, fetchHead[i])
			}
		}
	}
	return spared
}

// list writes sentences, one below the other.
func (t *terminal) list(lines []string, sign string) {
	if len(lines) > 0 {
		t.line()
	}
	for _, l := range lines {
		t.paragraph(span{"  " + sign, dim}, span{l, none})
	}
}

func (t *terminal) fetchMatrix(m *fetchMatrix, several bool) {
	t.line()
	title := "by id, " + m.form + ", events/s"
	if several {
		title += ": " + m.relay
	}
	t.line(span{"  " + title, bold}, span{"   REQs in flight on each connection across", dim})
	head := []string{"batch", "connections"}
	for _, n := range m.inFlight {
		head = append(head, fmt.Sprint(n))
	}
	var rows [][]cell
	batch := 0
	for _, r := range m.rows {
		first := ""
		if r.batch != batch {
			first, batch = fmt.Sprint(r.batch), r.batch
		}
		row := []cell{{first, none}, {fmt.Sprint(r.conns), none}}
		for i, x := range r.cells {
			st := none
			if i == r.best {
				st = bright
			}
			row = append(row, cell{m.text(x, &t.foot), st})
		}
		rows = append(rows, row)
	}
	t.grid(2, 2, head, rows, func(int) bool { return true })
	t.footnotes()
}
