package report

import (
	"math"
	"strings"
)

// A barTable is rows of name, bar and figures under one title: the way every ranked metric is shown on a terminal.
type barTable struct {
	title   string
	columns []barColumn
	rows    []barRow
}

// A barColumn is shown if there is room for it and for all columns of a lower priority; 0 is always shown.
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

func (s *screen) barTable(t barTable) {
	labelWidth, nameWidth := 0, 0
	widths := make([]int, len(t.columns))
	for c := range t.columns {
		widths[c] = width(t.columns[c].head)
	}
	bars := 0
	for _, r := range t.rows {
		labelWidth, nameWidth = max(labelWidth, width(r.label)), max(nameWidth, width(r.name))
		if r.message == "" {
			bars++
			for c := range r.cells {
				widths[c] = max(widths[c], width(r.cells[c].text))
			}
		}
	}
	if labelWidth > 0 {
		labelWidth += 2
	}
	nameWidth = min(nameWidth, max(s.width/4, 10))

	// The bar first gets its least, then columns come in by priority, then the bar takes what is left.
	room := s.width - barIndent - labelWidth - nameWidth - 2 - barLeast
	shown := make([]bool, len(t.columns))
	for p := 0; p < 9; p++ {
		for c, col := range t.columns {
			spare := 2 + widths[c]
			if p > 2 {
				spare += barMore - barLeast
			}
			if col.priority == p && (p == 0 || room >= spare) {
				shown[c] = true
				room -= 2 + widths[c]
			}
		}
	}
	barWidth := min(barLeast+max(room, 0), barMost)
	lead := barIndent + labelWidth + nameWidth + 2
	if alone := len(t.rows) == 1; alone { // a bar says nothing alone: its room goes to the title
		barWidth = min(max(width(t.title)+2-lead, 0), barWidth)
		t.rows[0].share = 0
	}
	lead += barWidth
	title := []span{{"  ", none}, {padRight(fit(t.title, lead-2), lead-2), bold}}
	if width(t.title) > lead-2 && bars > 0 {
		// A title that is longer than the space before the figures has a line to itself.
		s.line(span{"  ", none}, span{t.title, bold})
		title = []span{{strings.Repeat(" ", lead), none}}
	}
	anyHead := false
	for c, col := range t.columns {
		if shown[c] && bars > 0 {
			title = append(title, span{"  " + padLeft(col.head, widths[c]), dim})
			anyHead = anyHead || col.head != ""
		}
	}
	if len(title) > 1 && (title[1].style == bold || anyHead) {
		s.line(title...)
	}
	for _, r := range t.rows {
		spans := []span{{strings.Repeat(" ", barIndent), none}}
		if labelWidth > 0 {
			spans = append(spans, span{padRight(r.label, labelWidth), blue})
		}
		spans = append(spans, span{padRight(fitMiddle(r.name, nameWidth), nameWidth+2), r.style})
		if r.message != "" {
			st := dim
			if r.failed {
				st = red
			}
			s.line(append(spans, span{r.message, st})...)
			continue
		}
		spans = append(spans, span{padRight(bar(r.share, barWidth), barWidth), r.style})
		for c := range r.cells {
			if shown[c] {
				spans = append(spans, span{"  " + padLeft(r.cells[c].text, widths[c]), r.cells[c].style})
			}
		}
		s.line(spans...)
	}
}
