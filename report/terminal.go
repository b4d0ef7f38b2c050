package report

import (
	"io"
	"slices"
	"strings"

	"relaybench/results"
)

// TerminalOptions say what the terminal can do.
type TerminalOptions struct {
	Width int      // cells in a line, held to 20…200; 0 is 80
	Color bool     // SGR colours
	Files []string // where the results are, shown at the end and never shortened
	// Earlier says that the first of Files could not be written anew, and holds less than the report.
	Earlier bool
}

// Terminal writes the report for a terminal: what was run and whether it may be published, every
// metric with a bar for each relay and a star at the best, the head-to-head summary, the checks,
// the relays and the harness's own ceilings. No line but those of o.Files exceeds the width. Errors
// are those of w.
func Terminal(w io.Writer, r *results.Record, o TerminalOptions) error {
	t := &terminal{screen: o.screen(w), v: newView(r)}
	t.head()
	for _, s := range t.v.sections {
		t.section(s)
	}
	t.resources()
	t.headToHead()
	t.legend()
	t.findings()
	t.relays()
	t.calibration()
	t.files(o)
	return t.flush()
}

type terminal struct {
	*screen
	v      *view
	used   string    // every mark that was shown: the legend explains those alone
	hidden []string  // columns of the section that had no room
	foot   footnotes // of the table that is being written
}

// footnotes writes what the numbers of a table stand for, and begins anew.
func (t *terminal) footnotes() {
	n := width("    " + superscript(len(t.foot)) + " ")
	for i, text := range t.foot {
		t.paragraph(span{padRight("    "+superscript(i+1), n), dim}, span{text, dim})
	}
	t.foot = nil
}

func (t *terminal) heading(title string) {
	t.line()
	title = strings.ToUpper(title)
	t.line(span{title + " ", bold}, span{strings.Repeat("─", max(t.width-width(title)-1, 0)), dim})
}

func (t *terminal) head() {
	var names []string
	for _, r := range t.v.relays {
		names = append(names, r.Name)
	}
	title, told := "relaybench", false
	if all := title + "  " + strings.Join(names, " vs "); len(names) > 0 && width(all) <= t.width {
		title, told = all, true
	} else if len(names) > 0 {
		title += "  " + count(len(names), "relay")
	}
	t.line(span{title, bold})
	if t.v.rec.Partial {
		t.line(span{" PARTIAL ", "1;37;41"}, span{" the run did not finish; what is missing was not measured", redder})
	}
	d := t.v.verdict()
	st := bright
	switch {
	case len(d.grave) > 0:
		st = redder
	case len(d.caveats) > 0:
		st = yellow
	}
	t.line(span{"May I publish this?  ", bold}, span{d.answer, st})
	for _, g := range d.grave {
		t.paragraph(span{"  ✗ ", red}, span{g, red})
	}
	for _, c := range d.caveats {
		t.paragraph(span{"  ! ", yellow}, span{c, none})
	}
	t.line()
	for _, f := range t.v.head() {
		if f.key == "relays" && told {
			continue
		}
		t.paragraph(span{padRight("  "+f.key, 11), dim}, span{f.text, none})
	}
}

func (t *terminal) section(s *section) {
	t.heading(s.title)
	if s.pairing != nil {
		t.pairing(s.pairing)
	}
	if s.syncs != nil {
		t.syncs(s.syncs)
	}
	if s.download != nil {
		t.download(s.download)
	}
	t.hidden = nil
	if slices.ContainsFunc(s.scenarios, func(sc *scenario) bool { return primary(sc) != nil }) {
		t.paragraph(span{"  ", none}, span{"Bars: median time to EOSE, less is better. hot repeats one filter, varied draws others like it.", dim})
	}
	var queries [][]*scenario
	for _, sc := range s.scenarios {
		n, query := len(queries)-1, sc.labels[results.LabelQuery]
		switch {
		case primary(sc) == nil:
			t.scenario(sc)
		case n >= 0 && query != "" && queries[n][0].labels[results.LabelQuery] == query: // the forms of one query share a table
			queries[n] = append(queries[n], sc)
		default:
			queries = append(queries, []*scenario{sc})
		}
	}
	t.queries(queries)
	if len(t.hidden) > 0 {
		t.line()
		t.paragraph(span{"  ", none}, span{"No room here for " + strings.Join(t.hidden, ", ") + ": in report.md.", dim})
	}
}

// primary is the metric that a query's bars show; nil for every other kind of scenario.
func primary(s *scenario) *block {
	if s.Layout != results.LayoutQueries {
		return nil
	}
	i := slices.IndexFunc(s.blocks, func(b *block) bool { return b.metric.Key == s.Primary })
	if i < 0 {
		return nil
	}
	return s.blocks[i]
}

func (t *terminal) scenario(s *scenario) {
	if len(s.blocks) == 0 && len(s.facts) == 0 {
		return
	}
	t.line()
	key := "  " + s.Key
	if s.Title == s.Key {
		key = ""
	}
	t.line(span{s.Title, bold}, span{key, dim})
	var plain []*block
	for _, b := range s.blocks {
		if flat(b) || b.metric.Role == results.RoleStated {
			plain = append(plain, b)
			continue
		}
		t.block(b)
	}
	t.facts(append(plain, s.facts...))
	t.footnotes()
}

// flat tells whether bars would say nothing: all relays that have the metric are equal, or there is
// one relay and nothing but its figure.
func flat(b *block) bool {
	var have []*row
	for _, r := range b.rows {
		if r.has {
			have = append(have, r)
		}
	}
	if len(b.rows) == 1 {
		return len(have) == 0 || have[0].dist == nil && len(have[0].m.Timeline) == 0
	}
	return len(have) > 1 && !slices.ContainsFunc(have, func(r *row) bool { return r.value != have[0].value })
}

// direction is what a title says of a metric's better side.
func direction(b results.Better) string {
	switch b {
	case results.Higher:
		return "more is better"
	case results.Lower:
		return "less is better"
	}
	return ""
}

// heading is a block's title with its unit and direction; more stands behind the name.
func (b *block) heading(more string) string {
	title := withUnit(b.title+more, b.unit)
	switch {
	case b.unranked != "":
		title += " (" + b.unranked + ")"
	case direction(b.better) != "":
		title += " (" + direction(b.better) + ")"
	}
	return title
}

// duration shows seconds in the block's unit, or in milliseconds where its values are no times.
func (b *block) duration(seconds float64) string {
	if base := timeBases[b.unit]; base != 0 {
		return b.scale.format(seconds / base)
	}
	return number(seconds*1e3) + " ms"
}

func share(b *block, r *row) float64 {
	top := 0.0
	for _, o := range b.rows {
		top = max(top, o.value)
	}
	if top <= 0 {
		return 0
	}
	return r.value / top
}

func rowStyle(r *row) style {
	switch {
	case r.best:
		return green
	case r.relay != nil && r.relay.Outcome != results.OutcomeOK:
		return red
	}
	return none
}

// value is a row's figure with its mark; all are two cells wider than the figure, so that figures
// align.
func (t *terminal) value(b *block, r *row) cell {
	m, st := mark(b, r), none
	if r.best {
		st = bright
	}
	if b.unranked == answersDiffer && m == "" && len(r.bars) == 0 && !t.v.hasColumn(b.metric.Key) { // once in a line is enough
		m = "≠"
	}
	t.used += m
	return cell{b.scale.format(r.value) + " " + padRight(m+t.foot.sign(r.notes()), 2), st}
}

// mark is what stands behind a figure: ★ best, ~ first but not clearly, = a tie, and † where the
// first one's competitors are of another durability class.
func mark(b *block, r *row) string {
	m := ""
	switch {
	case r.best:
		m = "★"
	case r.close:
		m = "~"
	case r.tied:
		m = "="
	}
	if b.across && m != "" && m != "=" {
		m += "†"
	}
	return m
}

// fewSamples is the number of observations under which a p99 is a guess.
const fewSamples = 1000

func (t *terminal) p99(b *block, r *row) cell {
	text := b.duration(r.dist.p99)
	if r.dist.n < fewSamples {
		t.used += "*"
		return cell{text + "*", none}
	}
	return cell{text + " ", none}
}
