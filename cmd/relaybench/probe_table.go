package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"relaybench/corpus"
	"relaybench/harness/probe"
	"relaybench/report"
)

// writeProbe prints what was found in tables of at most width cells, two beside each other where there is room.
func writeProbe(w io.Writer, r *probe.Report, width int) error {
	t := probeText{r: r, width: max(width, 20)}
	if len(r.Passes) > 0 {
		t.paragraph(fmt.Sprintf("relaybench probe · relays: %d · events asked for at a time: %d · signatures by %s", len(r.Passes[0].Relays), r.Limit, corpus.Verifier))
		t.b.WriteByte('\n')
		t.connections()
		t.shapes()
		t.queue()
		t.legend()
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

type probeText struct {
	b     strings.Builder
	r     *probe.Report
	width int
}

// column is a column of a table; its head has two lines.
type column struct {
	head  [2]string
	left  bool
	cells []string
}

// table prints columns whose first is the relays' names, which are shortened where the line would be too long.
func (t *probeText) table(columns []column) {
	widths := make([]int, len(columns))
	used := 2
	for k, c := range columns {
		for _, cell := range append(c.head[:], c.cells...) {
			widths[k] = max(widths[k], displaywidth.String(cell))
		}
		if k > 0 {
			used += 2 + widths[k]
		}
	}
	if t.width-used < min(widths[0], 12) {
		t.list(columns)
		return
	}
	widths[0] = min(widths[0], t.width-used)
	names := report.CutNames(columns[0].cells, widths[0])
	lines := [][]string{{}, {}}
	for _, c := range columns {
		lines[0], lines[1] = append(lines[0], c.head[0]), append(lines[1], c.head[1])
	}
	for i := range columns[0].cells {
		var line []string
		for _, c := range columns {
			line = append(line, c.cells[i])
		}
		lines = append(lines, line)
	}
	for n, line := range lines {
		if n == 0 && strings.Join(line, "") == "" {
			continue
		}
		var out strings.Builder
		for k, cell := range line {
			if name, ok := names[cell]; ok && k == 0 {
				cell = name
			}
			pad := strings.Repeat(" ", max(0, widths[k]-displaywidth.String(cell)))
			if k == 0 || columns[k].left {
				out.WriteString("  " + cell + pad)
			} else {
				out.WriteString("  " + pad + cell)
			}
		}
		t.b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
	}
}

// list prints a table whose columns have no room beside each other, a cell a line.
func (t *probeText) list(columns []column) {
	heads := make([]string, len(columns))
	for k, c := range columns {
		heads[k] = strings.TrimSpace(strings.ReplaceAll(c.head[0]+" "+c.head[1], "- ", ""))
	}
	t.paragraph(heads[0])
	for i, name := range columns[0].cells {
		if name != "" {
			t.paragraph(name)
		}
		for k, c := range columns[1:] {
			t.paragraph("· " + heads[1+k] + ": " + c.cells[i])
		}
	}
}

// fits says whether so many columns fit into a line.
func (t *probeText) fits(columns []column) bool {
	used := 2
	for _, c := range columns {
		most := 0
		for _, cell := range append(c.head[:], c.cells...) {
			most = max(most, displaywidth.String(cell))
		}
		used += most + 2
	}
	return used <= t.width
}

// note prints a sentence about one relay, broken into lines that fit.
func (t *probeText) note(text string) {
	line := "  !"
	for word := range strings.FieldsSeq(text) {
		for displaywidth.String(word) > t.width-4 {
			head := displaywidth.TruncateString(word, t.width-4, "")
			if head == "" {
				break
			}
			t.b.WriteString(line + "\n")
			line, word = "    "+head, word[len(head):]
		}
		if displaywidth.String(line)+1+displaywidth.String(word) > t.width {
			t.b.WriteString(line + "\n")
			line = "   "
		}
		line += " " + word
	}
	t.b.WriteString(line + "\n")
}

func (t *probeText) names() (names []string) {
	for _, relay := range t.r.Passes[0].Relays {
		names = append(names, visible(shortURL(relay.URL)))
	}
	return names
}

func (t *probeText) connections() {
	pass := &t.r.Passes[0]
	columns := []column{{head: [2]string{"", "CONNECTIONS"}, cells: t.names()}, {head: [2]string{"connect", "ms"}}, {head: [2]string{"REQ sent", "ms"}}, {head: [2]string{"extensions", "negotiated"}, left: true}}
	for _, relay := range pass.Relays {
		extensions := visible(relay.Extensions)
		switch {
		case relay.ConnectMs == nil:
			extensions = "–"
		case extensions == "" && t.r.Compression:
			extensions = "none"
		case extensions == "":
			extensions = "none offered"
		}
		var req *float64
		if len(relay.Answers) > 0 {
			req = relay.Answers[0].ReqMs
		}
		for k, cell := range []string{msCell(relay.ConnectMs), msCell(req), displaywidth.TruncateString(extensions, max(t.width-48, 12), "…")} {
			columns[k+1].cells = append(columns[k+1].cells, cell)
		}
	}
	t.table(columns)
	for _, relay := range pass.Relays {
		name := visible(shortURL(relay.URL))
		if relay.Failure != "" {
			t.note(name + ": not reached: " + visible(relay.Failure))
		}
		if relay.Auth {
			t.note(name + ": wants to know who asks (AUTH, NIP-42); probe does not tell")
		}
		if relay.Notices > 0 {
			t.note(fmt.Sprintf("%s: NOTICE: %s (%s in all)", name, visible(relay.Notice), count(relay.Notices)))
		}
		if relay.Unknown > 0 {
			t.note(name + ": frames that are no message of NIP-01: " + count(relay.Unknown))
		}
		if relay.Strays > 0 {
			t.note(name + ": events of subscriptions that nobody made: " + count(relay.Strays))
		}
		if relay.Reconnects > 0 {
			t.note(name + ": connections made again after one was lost: " + count(relay.Reconnects))
		}
	}
}

// shape arranges how the relays answered one shape.
func (t *probeText) shape(i int) (timing, sizes []column) {
	shape := t.r.Shapes[i]
	names := t.names()
	timing = []column{{head: [2]string{"", strings.ToUpper(string(shape))}, cells: names}, {head: [2]string{"first", "ms"}}, {head: [2]string{"EOSE", "ms"}}}
	if len(t.r.Passes) > 1 {
		timing = append(timing, column{head: [2]string{"again", "ms"}})
	}
	counts := len(timing)
	timing = append(timing, column{head: [2]string{"", "events"}}, column{head: [2]string{"", "new"}}, column{head: [2]string{"dupli-", "cates"}}, column{head: [2]string{"only", "here"}})
	sizes = []column{{head: [2]string{"frames,", "bytes p50"}}, {head: [2]string{"", "p99"}}, {head: [2]string{"", "max"}}}
	for n := range names {
		answers := t.answers(n, i)
		if len(answers) == 0 {
			answers = []probe.Answer{{Shape: shape, Outcome: probe.NotAsked, Reason: "interrupted"}}
		}
		a := answers[0]
		cells := []string{msCell(a.FirstMs), eoseCell(&a)}
		if len(t.r.Passes) > 1 {
			again := "–"
			if len(answers) > 1 {
				again = eoseCell(&answers[1])
			}
			cells = append(cells, again)
		}
		for k, cell := range cells {
			timing[1+k].cells = append(timing[1+k].cells, cell)
		}
		cells = []string{count(a.Received), count(a.Unique), fmt.Sprintf("%.0f %%", 100*a.DuplicateShare()), count(a.Alone)}
		if a.Received == 0 {
			cells = []string{"–", "–", "–", "–"}
			if a.Outcome == probe.Complete {
				cells[0] = "0"
			}
		}
		for k, cell := range cells {
			timing[counts+k].cells = append(timing[counts+k].cells, cell)
		}
		cells = []string{"–", "–", "–"}
		if s := a.FrameBytes; s != nil {
			cells = []string{count(s.P50), count(s.P99), count(s.Max)}
		}
		for k, cell := range cells {
			sizes[k].cells = append(sizes[k].cells, cell)
		}
	}
	return timing, sizes
}

// shapes prints how the relays answered each shape: in one table where there is room for all that is known, in two elsewhere.
func (t *probeText) shapes() {
	wide := true
	var all [][2][]column
	for i := range t.r.Shapes {
		timing, sizes := t.shape(i)
		wide = wide && t.fits(append(slices.Clone(timing), sizes...))
		all = append(all, [2][]column{timing, sizes})
	}
	names := t.names()
	for i, tables := range all {
		t.b.WriteByte('\n')
		if wide {
			t.table(append(tables[0], tables[1]...))
		} else {
			t.table(tables[0])
			t.table(append([]column{{cells: names}}, tables[1]...))
		}
		t.remarks(i, names)
	}
}

// answers are one relay's to one shape, a pass each.
func (t *probeText) answers(relay, shape int) (answers []probe.Answer) {
	for _, pass := range t.r.Passes {
		if all := pass.Relays[relay].Answers; shape < len(all) {
			answers = append(answers, all[shape])
		}
	}
	return answers
}

// remarks says what the figures of a shape do not.
func (t *probeText) remarks(shape int, names []string) {
	for n, name := range names {
		said := ""
		for pass, a := range t.answers(n, shape) {
			text := remark(&a, t.r.Passes[pass].Relays[n].Failure != "")
			if text == "" || text == said {
				continue
			}
			said = text
			if pass > 0 {
				text = "in the second pass: " + text
			}
			t.note(name + ": " + text)
		}
	}
}

// remark says what is special about an answer, "" where nothing is. failed says that there was never a connection.
func remark(a *probe.Answer, failed bool) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case a.Outcome == probe.Complete:
	case a.Outcome == probe.NotReached && failed: // said once, with the connections
	case a.Reason == "":
		add("%s", a.Outcome)
	case strings.HasPrefix(a.Reason, string(a.Outcome)): // the relay's own word for it
		add("%s", visible(a.Reason))
	default:
		add("%s: %s", a.Outcome, visible(a.Reason))
	}
	for _, c := range []struct {
		n    int64
		what string
	}{{a.BadID, "whose id is not their hash"}, {a.BadSignature, "whose signature does not verify"}, {a.Malformed, "that are malformed"}, {int64(a.Unasked), "that nobody asked for"}, {int64(a.AfterEnd), "after the end of the answer"}} {
		if c.n > 0 {
			add("events %s: %s", c.what, count(int(c.n)))
		}
	}
	return strings.Join(parts, "; ")
}

// queue prints how long events waited.
func (t *probeText) queue() {
	columns := []column{{head: [2]string{"", "QUEUE DELAY"}}, {head: [2]string{"signatures", "checked"}, left: true}, {head: [2]string{"p50", "ms"}}, {head: [2]string{"p90", "ms"}}, {head: [2]string{"max", "ms"}},
		{head: [2]string{"consumer", "busy"}}, {head: [2]string{"checking", "core ms"}}, {head: [2]string{"", "verified"}}}
	for _, shape := range t.r.Shapes {
		name := string(shape)
		for _, pass := range t.r.Passes {
			for _, c := range pass.Consumption {
				if c.Shape != shape || c.DelayMs == nil {
					continue
				}
				for k, cell := range []string{name, pass.Verified, ms(c.DelayMs.P50), ms(c.DelayMs.P90), ms(c.DelayMs.Max), fmt.Sprintf("%.0f %%", 100*c.Busy), ms(c.CheckingMs), count(int(c.Delivered))} {
					columns[k].cells = append(columns[k].cells, cell)
				}
				name = ""
			}
		}
	}
	if len(columns[0].cells) > 0 {
		t.b.WriteByte('\n')
		t.table(columns)
	}
}

func (t *probeText) legend() {
	again := ""
	if len(t.r.Passes) > 1 {
		again = "again: EOSE in the second. "
	}
	t.b.WriteByte('\n')
	t.paragraph("first, EOSE: from the REQ, in the first pass. " + again + `new: verified, asked for, and not brought by another relay before. duplicates:
brought before. only here: no other relay sent it. queue delay: from the socket until the consumer had the verified event, all relays together.
consumer busy: its share of the time from the first event's arrival until it was done with the last, checks included if inline.`)
}

// paragraph prints a text in lines that fit.
func (t *probeText) paragraph(text string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && displaywidth.String(line)+1+displaywidth.String(word) > min(t.width, 100) {
			t.b.WriteString(line + "\n")
			line = ""
		}
		for displaywidth.String(word) > t.width { // line is empty
			head := displaywidth.TruncateString(word, t.width, "")
			t.b.WriteString(head + "\n")
			word = word[len(head):]
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	t.b.WriteString(line + "\n")
}

// eoseCell is the time to EOSE where it came, or how the answer ended.
func eoseCell(a *probe.Answer) string {
	switch a.Outcome {
	case probe.Complete:
		return msCell(a.EndMs)
	case probe.NotReached, probe.NotAsked:
		return "–"
	case probe.AuthRequired:
		return "auth"
	case probe.Disconnected:
		return "lost"
	}
	return string(a.Outcome)
}

func msCell(v *float64) string {
	if v == nil {
		return "–"
	}
	return ms(*v)
}

func ms(v float64) string { return millis(time.Duration(v * float64(time.Millisecond))) }

// millis shows a duration in ms, with three digits of it.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 1:
		return strconv.FormatFloat(ms, 'f', 3, 64)
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 2, 64)
	case ms < 100:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	}
	return count(int(ms + 0.5))
}
