package report

import (
	"cmp"
	"slices"
	"strings"
)

// A markdown prints documents as GitHub-flavoured Markdown.
type markdown struct {
	*screen
	last any // the node before
}

func (p *markdown) nodes(all []node) {
	for _, n := range all {
		if n.only == brief {
			continue
		}
		switch x := n.is.(type) {
		case gap:
			continue
		case para:
			if before, ok := p.last.(para); !ok || x.mark.text == "" || before.mark.text == "" {
				p.apart()
			}
			p.para(x)
		default:
			p.apart()
			p.node(x)
		}
		p.last = n.is
	}
}

// apart sets a node apart from the one before.
func (p *markdown) apart() {
	if p.last != nil {
		p.write("\n")
	}
}

func (p *markdown) node(x any) {
	switch x := x.(type) {
	case heading:
		p.write(strings.Repeat("#", x.level) + " " + mdText(x.title))
		if x.key != "" && x.key != x.title {
			p.write(" (" + mdCode(x.key) + ")")
		}
		if x.state.text != "" {
			p.write(": " + mdText(x.state.text))
		}
		p.write("\n")
	case *Table:
		p.table(x)
	case verbatim:
		p.write(mdFence(x.language, x.lines))
	case fold:
		p.write("<details><summary>" + mdHTML(x.title+": "+x.more) + "</summary>\n")
		p.nodes(x.nodes)
		p.write("\n</details>\n")
	}
}

func (p *markdown) lines(lines []string) { p.write(strings.Join(lines, "\n") + "\n") }

// emoji are the marks that stand out where Markdown is read.
var emoji = map[string]string{"✗": "❌", "!": "⚠", "?": "❔", "✓": "✅"}

func (p *markdown) para(x para) {
	if x.mark.text != "" {
		p.write("- ")
		switch name := strings.TrimSpace(x.mark.text); {
		case width(name) > 1: // a name
			p.write("**" + mdText(name) + "** ")
		case name != pointMark.text:
			p.write(cmp.Or(emoji[name], mdText(name)) + " ")
		}
	}
	for _, sp := range x.text {
		p.write(mdSpan(sp))
	}
	p.write("\n")
}

// mdSpan is a piece of text in its style.
func mdSpan(sp Span) string {
	text := strings.TrimSpace(sp.text)
	if text == "" {
		return sp.text
	}
	before, after, _ := strings.Cut(sp.text, text)
	text = mdText(text)
	switch sp.style {
	case code:
		text = mdCode(strings.TrimSpace(sp.text))
	case Bold, GreenBold, RedBold:
		text = "**" + text + "**"
	}
	return before + text + after
}

func (p *markdown) table(t *Table) {
	grouped := slices.ContainsFunc(t.rows, func(r Row) bool { return r.group != "" })
	messages := slices.ContainsFunc(t.rows, func(r Row) bool { return r.message.text != "" })
	var head []string
	var left []bool
	var shown []int
	if grouped {
		head, left = append(head, mdText(t.groups)), append(left, true)
	}
	for c, col := range t.columns {
		if !t.empty(c, nothing) || messages && c == t.labels {
			head, left, shown = append(head, mdText(col.Head)), append(left, col.Left || c < t.labels), append(shown, c)
		}
	}
	var rows [][]string
	for _, r := range t.rows {
		var row []string
		if grouped {
			row = append(row, mdText(r.group))
		}
		for _, c := range shown {
			x := r.cells[c]
			text := mdSpan(Span{x.text, x.style})
			if c == t.labels && r.message.text != "" {
				text = mdText(clause(r.message.text, 60))
			}
			text = strings.TrimSpace(text + Prefixed(" ", mdText(x.mark)))
			if x.style == Red {
				text += " ❌"
			}
			if x.more != "" {
				text += " (" + mdText(x.more) + ")"
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	p.lines(markdownTable(head, rows, left))
}
