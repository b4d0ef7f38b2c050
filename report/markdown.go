package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"relaybench/results"
)

// Markdown writes the whole report: all that Terminal shows, and every metric, distribution,
// resource figure, failed check with its evidence, configuration file, and how to repeat the run.
// It is GitHub-flavoured, and safe to publish: nothing in the record can add markup, links,
// mentions or HTML. Errors are those of w.
func Markdown(w io.Writer, r *results.Record) error {
	m := &markdown{screen: newScreen(w, 0, false), v: newView(r)}
	m.head()
	m.summary()
	for _, s := range m.v.sections {
		m.section(s)
	}
	m.distributions()
	m.resources()
	m.findings()
	m.relays()
	m.calibration()
	m.repeat()
	return m.flush()
}

type markdown struct {
	*screen
	v    *view
	foot footnotes // of the table that is being written
}

// footnotes writes what the numbers of a table stand for, and begins anew.
func (m *markdown) footnotes() {
	for i, text := range m.foot {
		if i == 0 {
			m.p("\n")
		}
		m.p("%s %s  \n", superscript(i+1), mdText(sentence(text)))
	}
	m.foot = nil
}

// p writes formatted text; arguments are escaped by the caller, who knows where they stand.
func (m *markdown) p(format string, args ...any) { m.write(fmt.Sprintf(format, args...)) }

func (m *markdown) heading(level int, title string) {
	m.p("\n%s %s\n\n", strings.Repeat("#", level), title)
}

// table writes cells that are escaped already, padded so that the source reads as a table too.
// Columns for which right holds stand right.
func (m *markdown) table(head []string, rows [][]string, right func(column int) bool) {
	widths := make([]int, len(head))
	for c := range head {
		widths[c] = max(width(head[c]), 3)
		for _, r := range rows {
			widths[c] = max(widths[c], width(r[c]))
		}
		widths[c] = min(widths[c], 60) // one long cell must not pad all others
	}
	put := func(cells []string) {
		for c, text := range cells {
			if right(c) {
				text = padLeft(text, widths[c])
			} else {
				text = padRight(text, widths[c])
			}
			m.write("| " + text + " ")
		}
		m.write("|\n")
	}
	put(head)
	for c := range head {
		if right(c) {
			m.write("|" + strings.Repeat("-", widths[c]+1) + ":")
		} else {
			m.write("|:" + strings.Repeat("-", widths[c]+1))
		}
	}
	m.write("|\n")
	for _, r := range rows {
		put(r)
	}
}

func firstLeft(column int) bool { return column > 0 }
func allLeft(int) bool          { return false }

// narrower writes a table with the rows as columns where that takes less space.
func (m *markdown) narrower(head []string, rows [][]string) {
	total := func(head []string, rows [][]string) (n int) {
		for c := range head {
			w := width(head[c])
			for _, r := range rows {
				w = max(w, width(r[c]))
			}
			n += w + 3
		}
		return n
	}
	turned := []string{""}
	for _, r := range rows {
		turned = append(turned, r[0])
	}
	var turnedRows [][]string
	for c := 1; c < len(head); c++ {
		row := []string{head[c]}
		for _, r := range rows {
			row = append(row, r[c])
		}
		turnedRows = append(turnedRows, row)
	}
	if total(turned, turnedRows) < total(head, rows) {
		head, rows = turned, turnedRows
	}
	m.table(head, rows, firstLeft)
}

func (m *markdown) head() {
	var names []string
	for _, r := range m.v.relays {
		names = append(names, mdText(r.Name))
	}
	title := "relaybench"
	if len(names) > 0 {
		title += ": " + strings.Join(names, " vs ")
	}
	m.p("# %s\n", title)
	if m.v.rec.Partial {
		m.p("\n> **PARTIAL**: the run did not finish; what is missing was not measured.\n")
	}
	d := m.v.verdict()
	m.heading(2, "May I publish this?")
	m.p("**%s.**\n", d.answer)
	if len(d.grave)+len(d.caveats) > 0 {
		m.p("\n")
	}
	for _, g := range d.grave {
		m.p("- ❌ %s\n", mdText(g))
	}
	for _, c := range d.caveats {
		m.p("- ⚠️ %s\n", mdText(c))
	}
	m.heading(2, "What was run")
	var rows [][]string
	for _, f := range m.v.head() {
		rows = append(rows, []string{f.key, mdText(f.text)})
	}
	e := m.v.rec.Environment
	load := func(name string, l *float64) {
		if l != nil {
			rows = append(rows, []string{name, strconv.FormatFloat(*l, 'f', 2, 64)})
		}
	}
	load("load before", e.LoadBefore)
	load("load after", e.LoadAfter)
	rows = append(rows, []string{"platform", mdText(e.OS + "/" + e.Arch)})
	if !m.v.corpusless() {
		rows = append(rows, []string{"fingerprint", mdCode(m.v.rec.Corpus.Fingerprint)})
	}
	m.table([]string{"", ""}, rows, allLeft)
	m.corpus()
}

// kindNames are the kinds that a corpus is mostly made of, by number (NIP-01, 02, 04, 09, 18, 23,
// 25, 57, 59, 65).
var kindNames = map[int]string{0: "profile", 1: "note", 3: "contact list", 4: "encrypted message", 5: "deletion", 6: "repost", 7: "reaction",
	16: "generic repost", 1059: "gift wrap", 1984: "report", 9734: "zap request", 9735: "zap receipt", 10002: "relay list", 30023: "article"}

// maxKinds bounds the list of kinds; real dumps hold hundreds.
const maxKinds = 20

func (m *markdown) corpus() {
	c := m.v.rec.Corpus
	if len(c.Kinds) > 0 {
		m.p("\nEvents by kind:\n\n")
		total := 0
		for _, n := range c.Kinds {
			total += n
		}
		var rows [][]string
		other, others := 0, 0
		for i, k := range byCount(c.Kinds) {
			if i >= maxKinds {
				other += c.Kinds[k]
				others++
				continue
			}
			name := ""
			if n, err := strconv.Atoi(k); err == nil {
				name = kindNames[n]
			}
			rows = append(rows, []string{mdText(k), name, thousands(strconv.Itoa(c.Kinds[k])), shareText(c.Kinds[k], total)})
		}
		if others > 0 {
			rows = append(rows, []string{"others", count(others, "kind"), thousands(strconv.Itoa(other)), shareText(other, total)})
		}
		m.table([]string{"kind", "", "events", "share"}, rows, func(c int) bool { return c > 1 })
	}
}

// byCount lists keys by count, largest first, equal ones by name.
func byCount(counts map[string]int) []string {
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	return keys
}

func shareText(n, total int) string {
	if total <= 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(n)/float64(total), 'f', 1, 64) + " %"
}

func (m *markdown) summary() {
	titles, standings, ok := m.v.headToHead()
	if !ok {
		return
	}
	m.heading(2, "Head to head")
	head := []string{"", m.v.winsTitle()}
	for _, t := range titles {
		head = append(head, mdText(t))
	}
	var rows [][]string
	for _, s := range standings {
		wins := s.score()
		if s.reason != "" {
			wins = "not ranked " + m.foot.sign([]string{s.reason})
		}
		row := []string{mdText(s.name), wins}
		for _, c := range s.cells {
			row = append(row, mdText(strings.TrimSpace(c.cell(&m.foot).text)))
		}
		rows = append(rows, row)
	}
	m.narrower(head, rows)
	m.footnotes()
	for _, n := range m.v.winsNotes() {
		m.p("\n%s\n", mdText(n))
	}
	m.p("\n★ best · ~ first, but no test tells it from chance (Mann–Whitney U, p ≥ 0.05) · = a tie · " +
		"† against another durability class.\n")
}
