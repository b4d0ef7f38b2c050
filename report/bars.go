package report

import (
	"math"
	"slices"
	"strings"
)

// A barTable is rows of name, bar and figures under one title: the way every ranked metric is shown
// on a terminal.
type barTable struct {
	title   string
	columns []barColumn
	rows    []barRow
}

// A barColumn is shown if there is room for it and for all columns of a lower priority; 0 is always
// shown.
type barColumn struct {
	head     string
	priority int
}

type barRow struct {
	label   string // before the name, for a row that opens a group
	name    string
	share   float64 // of the longest bar
	style   style   // of name and bar
	cells   []cell
	message string // instead of bar and figures
	failed  bool
}

const (
	barIndent = 4
	barLeast  = 8
	barMore   = 16 // before columns of a priority above 2 come in
	barMost   = 48
)

// bar draws a share of n cells in eighths; anything above nothing shows at least one eighth.
func bar(share float64, n int) string {
	if math.IsNaN(share) || share <= 0 {
		return ""
	}
	eighths := max(int(math.Round(min(share, 1)*float64(n*8))), 1)
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return s
}

// spark draws values as a line of at most n characters, each the mean of its share of them.
func spark(values []float64, n int) string {
	n = min(n, len(values))
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	if n < 1 || top <= 0 {
		return ""
	}
	var b strings.Builder
	for i := range n {
		from, to := i*len(values)/n, (i+1)*len(values)/n
		sum := 0.0
		for _, v := range values[from:to] {
			sum += v
		}
		level := math.Round(sum / float64(to-from) / top * 7)
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[int(min(max(level, 0), 7))])
	}
	return b.String()
}

// A barLayout places the columns of one table, or of several with the same columns.
type barLayout struct {
	label, name, bar int
	widths           []int
	shown            []bool
	hidden           []string          // headings of the columns that have no room
	alone            bool              // one row: a bar would say nothing
	stacked          bool              // no room for a table
	names            map[string]string // as they are cut, by what they are
}

// layout gives the bar its least, then lets columns in by priority, then gives the bar what is
// left.
func (s *screen) layout(tables []barTable) barLayout {
	columns := tables[0].columns
	l := barLayout{widths: make([]int, len(columns)), shown: make([]bool, len(columns)), alone: true}
	title := 0
	var names []string
	for c := range columns {
		l.widths[c] = width(columns[c].head)
	}
	for _, t := range tables {
		l.alone = l.alone && len(t.rows) == 1
		title = max(title, width(t.title))
		for _, r := range t.rows {
			l.label, l.name = max(l.label, width(r.label)), max(l.name, width(r.name))
			names = append(names, r.name)
			for c := range r.cells {
				l.widths[c] = max(l.widths[c], width(r.cells[c].text))
			}
		}
	}
	if l.label > 0 {
		l.label += 2
	}
	l.name = min(l.name, max(s.width/4, 10))
	l.names = CutNames(names, l.name)
	lead := barIndent + l.label + l.name + 2
	room := s.width - lead - barLeast
	least := 0
	for c, col := range columns {
		if col.priority == 0 {
			least += 2 + l.widths[c]
		}
	}
	if s.width < narrow && room < least {
		l.stacked = true
		return l
	}
	for p := range 9 {
		for c, col := range columns {
			spare := 2 + l.widths[c]
			if p > 2 {
				spare += barMore - barLeast
			}
			if col.priority == p && (p == 0 || room >= spare) {
				l.shown[c] = true
				room -= 2 + l.widths[c]
			}
		}
	}
	for c, col := range columns {
		if head := strings.TrimSpace(col.head); !l.shown[c] && head != "" {
			l.hidden = append(l.hidden, head)
		}
	}
	l.bar = min(barLeast+max(room, 0), barMost)
	if l.alone { // its room goes to the title
		l.bar = min(max(title+2-lead, 0), l.bar)
	}
	return l
}

func (s *screen) barTable(t barTable, l barLayout) {
	if l.stacked {
		s.barList(t)
		return
	}
	bars := slices.ContainsFunc(t.rows, func(r barRow) bool { return r.message == "" })
	lead := barIndent + l.label + l.name + 2 + l.bar
	title := []span{{"  ", none}, {padRight(fit(t.title, lead-2), lead-2), bold}}
	if width(t.title) > lead-2 && bars {
		// A title that is longer than the space before the figures has a line to itself.
		s.line(span{"  ", none}, span{t.title, bold})
		title = []span{{strings.Repeat(" ", lead), none}}
	}
	anyHead := false
	for c, col := range t.columns {
		if l.shown[c] && bars {
			title = append(title, span{"  " + padLeft(col.head, l.widths[c]), dim})
			anyHead = anyHead || col.head != ""
		}
	}
	if len(title) > 1 && (title[1].style == bold || anyHead) {
		s.line(title...)
	}
	for _, r := range t.rows {
		spans := []span{{strings.Repeat(" ", barIndent), none}}
		if l.label > 0 {
			spans = append(spans, span{padRight(r.label, l.label), blue})
		}
		spans = append(spans, span{padRight(l.names[r.name], l.name+2), r.style})
		if r.message != "" {
			st := dim
			if r.failed {
				st = red
			}
			s.line(append(spans, span{clause(r.message, s.width-barIndent-l.label-l.name-2), st})...)
			continue
		}
		drawn := ""
		if !l.alone {
			drawn = bar(r.share, l.bar)
		}
		spans = append(spans, span{padRight(drawn, l.bar), r.style})
		for c := range r.cells {
			if l.shown[c] {
				spans = append(spans, span{"  " + padLeft(r.cells[c].text, l.widths[c]), r.cells[c].style})
			}
		}
		s.line(spans...)
	}
}

// barList writes a table of bars as a list, for a terminal that has no room for it.
func (s *screen) barList(t barTable) {
	s.line(span{"  ", none}, span{t.title, bold})
	for _, r := range t.rows {
		if r.label != "" {
			s.line(span{"  " + r.label, blue})
		}
		s.line(span{"  " + r.name, r.style})
		if r.message != "" {
			s.paragraph(span{"    ", none}, span{r.message, dim})
			continue
		}
		for c, x := range r.cells {
			if text := strings.TrimSpace(x.text); text != "" {
				s.line(span{"    " + strings.TrimSpace(t.columns[c].head) + "  ", dim}, span{text, x.style})
			}
		}
	}
}
