package report

import (
	"fmt"
	"slices"
)

// download writes all that Terminal shows of downloads, and the matrix of each form.
func (m *markdown) download(d *download) {
	m.p("%s\n\n", mdText(fetchMeaning))
	several := len(d.relays) > 1
	head := []string{"", "form"}
	if several {
		head = append(head, "relay")
	}
	head = append(head, "events/s")
	for _, h := range fetchHead {
		head = append(head, mdText(h))
	}
	left := 2
	if several {
		left = 3
	}
	var rows, accounts [][]string
	for _, l := range d.lines() {
		row := []string{mdText(l.cell.label()), mdText(l.cell.form)}
		if several {
			row = append(row, mdText(l.relay))
		}
		account := slices.Clone(row[:left])
		row = append(row, m.value(l.cell.rate, l.cell.row(l.relay)))
		for _, text := range l.figures() {
			row = append(row, mdText(text))
		}
		for _, text := range l.account() {
			account = append(account, mdText(text))
		}
		rows, accounts = append(rows, row), append(accounts, account)
	}
	if len(rows) > 0 {
		m.table(head, rows, func(c int) bool { return c >= left })
		m.footnotes()
		m.p("\n%s\n", mdText(fetchColumns))
		m.p("\n### What each download came to\n\n")
		m.table(append(slices.Clone(head[:left]), fetchAccount...), accounts, func(c int) bool { return c >= left })
		m.p("\nThe state is what the records that came fold to: replaceable and addressable events to their newest, deletions applied. REQs of a reconciliation are its rounds.\n")
	}
	for _, list := range [][]string{d.paces(), d.reasons(12)} {
		if len(list) > 0 {
			m.p("\n")
		}
		for _, l := range list {
			m.p("- %s\n", mdText(l))
		}
	}
	for _, x := range d.matrices("") {
		title := "By id, " + x.form + ", events/s"
		if several {
			title += ": " + x.relay
		}
		m.p("\n### %s\n\n", mdText(title))
		head := []string{"batch", "connections"}
		for _, n := range x.inFlight {
			head = append(head, fmt.Sprintf("%d in flight", n))
		}
		var rows [][]string
		for _, r := range x.rows {
			row := []string{fmt.Sprint(r.batch), fmt.Sprint(r.conns)}
			for i, c := range r.cells {
				text := mdText(x.text(c, &m.foot))
				if i == r.best {
					text = "**" + text + "**"
				}
				row = append(row, text)
			}
			rows = append(rows, row)
		}
		m.table(head, rows, func(int) bool { return true })
		m.footnotes()
		m.p("\nEach setting, as connections × REQs in flight × ids in a REQ:\n\n")
		var each [][]string
		for _, l := range d.tried(x.relay, x.form) {
			row := []string{mdText(l.cell.setting()), m.value(l.cell.rate, l.cell.row(l.relay))}
			for _, text := range l.figures() {
				row = append(row, mdText(text))
			}
			each = append(each, row)
		}
		titles := []string{"", "events/s"}
		for _, h := range fetchHead {
			titles = append(titles, mdText(h))
		}
		m.table(titles, each, func(c int) bool { return c > 0 })
		m.footnotes()
	}
	if lines := d.windows(); len(lines) > 0 {
		m.p("\n")
		for _, l := range lines {
			m.p("- %s\n", mdText(l))
		}
	}
}
