package report

import (
	"strings"
)

// A terminal prints documents in lines that are no wider than it.
type terminal struct {
	*screen
	hidden []string // columns of the section that had no room
}

func (p *terminal) nodes(all []node) {
	for _, n := range all {
		if n.only == full {
			continue
		}
		switch x := n.is.(type) {
		case heading:
			p.heading(x)
		case para:
			p.para(x)
		case list:
			p.list(x)
		case *table:
			p.table(x)
		case verbatim:
			p.verbatim(x)
		case fold:
			p.line()
			p.line(span{"  " + x.title, bold})
			p.nodes(x.nodes)
		case gap:
			p.line()
		}
	}
}

func (p *terminal) heading(h heading) {
	switch h.level {
	case 1:
		p.line(span{h.title, bold})
	case 2:
		p.crowded()
		p.line()
		title := strings.ToUpper(h.title)
		p.line(span{title + " ", bold}, span{strings.Repeat("─", max(p.width-width(title)-1, 0)), dim})
	default:
		p.line()
		spans := []span{{h.title, bold}}
		if h.key != "" && h.key != h.title {
			spans = append(spans, span{"  " + h.key, dim})
		}
		if h.state.text != "" {
			spans = append(spans, span{"   " + h.state.text, h.state.style})
		}
		p.line(spans...)
	}
}

// crowded says of the tables of a section what had no room.
func (p *terminal) crowded() {
	if len(p.hidden) > 0 {
		p.line()
		p.hang(span{"  ", none}, 0, []span{{"No room here for " + strings.Join(p.hidden, ", ") + ": in report.md.", dim}})
	}
	p.hidden = nil
}

func (p *terminal) para(x para) {
	lead := span{strings.Repeat("  ", x.indent), none}
	if x.mark.text != "" {
		lead = span{lead.text + x.mark.text + " ", x.mark.style}
	}
	p.hang(lead, 0, x.text)
}

// list writes names in a column, and what there is to say beside it.
func (p *terminal) list(x list) {
	n, longest := 0, 0
	var names []string
	for _, r := range x.rows {
		names = append(names, r.key)
		n, longest = max(n, width(r.key)), max(longest, width(r.text))
	}
	n = min(n, max(p.part2(), p.width-longest-4))
	cut := CutNames(names, n)
	for _, r := range x.rows {
		p.hang(span{"  " + padRight(cut[r.key], n) + "  ", x.names}, 0, []span{{r.text, x.texts}})
	}
}

// part2 is half of the width, which names may take at most; on a narrow terminal, where lines go on
// below, all that there may be.
func (p *terminal) part2() int {
	if p.width < narrow {
		return mostWidth
	}
	return p.width / 2
}

func (p *terminal) verbatim(q verbatim) {
	lines := q.lines
	if q.brief != nil {
		lines = q.brief
	}
	shown := lines[:min(len(lines), q.most)]
	if q.last {
		shown = lines[len(lines)-len(shown):]
	}
	lead := span{strings.Repeat("  ", q.indent) + q.mark + " ", dim}
	for _, l := range shown {
		p.hang(lead, 0, []span{{fit(l, 3*(max(p.width, narrow)-width(lead.text)-2)), dim}})
	}
	if more := len(lines) - len(shown); more > 0 && q.more != "" {
		p.line(span{strings.Repeat("  ", q.indent) + "… and " + several(more, "line", "lines") + q.more, dim})
	}
}
