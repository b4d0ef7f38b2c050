package report

import (
	"strings"
)

// A terminal prints documents in lines that are no wider than it.
type terminal struct{ *screen }

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
		case *Table:
			p.table(x)
		case verbatim:
			p.verbatim(x)
		case fold:
			p.line()
			p.line(Span{"  " + x.title, Bold})
			p.nodes(x.nodes)
		case gap:
			p.line()
		}
	}
}

func (p *terminal) heading(h heading) {
	switch h.level {
	case 1:
		p.line(Span{h.title, Bold})
	case 2:
		p.line()
		title := strings.ToUpper(h.title)
		p.line(Span{title + " ", Bold}, Span{strings.Repeat("─", max(p.width-width(title)-1, 0)), Dim})
	default:
		p.line()
		spans := []Span{{h.title, Bold}}
		if h.key != "" && h.key != h.title {
			spans = append(spans, Span{"  " + h.key, Dim})
		}
		if h.state.text != "" {
			spans = append(spans, Span{"   " + h.state.text, h.state.style})
		}
		p.line(spans...)
	}
}

func (p *terminal) para(x para) {
	lead := Span{strings.Repeat("  ", x.indent), Plain}
	if x.mark.text != "" {
		lead = Span{lead.text + x.mark.text + " ", x.mark.style}
	}
	p.hang(lead, 0, x.text)
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
	lead := Span{strings.Repeat("  ", q.indent) + q.mark + " ", Dim}
	for _, l := range shown {
		p.hang(lead, 0, []Span{{fit(l, 3*(max(p.width, narrow)-width(lead.text)-2)), Dim}})
	}
	if more := len(lines) - len(shown); more > 0 && q.more != "" {
		p.line(Span{strings.Repeat("  ", q.indent) + "… and " + Count(more, "more line") + q.more, Dim})
	}
}
