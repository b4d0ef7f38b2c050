package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"relaybench/results"
)

// A download is all that a run says of downloading.
type download struct {
	relays []string
	forms  []string // as they were measured
	cells  []*fetchCell
	scale  scale // of all rates
}

// A fetchCell is one way to download in one form.
type fetchCell struct {
	*scenario
	strategy, form         string
	conns, inFlight, batch int // of one cell of the matrix
	adaptive               bool
	rate                   *block // records a second, with a row for each relay
	requests               *block // how long each REQ took; nil where that is not known
	all                    map[string][]*results.Measurement
}

const (
	fetchMeaning = "One client downloads everything that matches the filter: giant in one REQ, paged by until, sharded with the time " +
		"divided over connections, by-id once ids are known, negentropy finding them by a reconciliation first. raw finds ids and " +
		"counts; parsed parses and verifies every event; deflate has it compressed."
	fetchColumns = "by-id: connections × REQs in flight on each × ids in a REQ, the best of all that were tried; auto finds the " +
		"second by itself. retried, failed: ids asked for again, and ids that were never answered, where events are asked for by " +
		"id. again: events that came more than once. overfetch: bytes on the socket for each byte of a distinct event. in flight: " +
		"REQs on average by Little's law (their rate × their latency), of as many as may be. CPU: relaybench's own for each event."
)

// The values of labels that tell cells apart.
const (
	adaptive  = "adaptive" // of REQs in flight: found on the way
	formRaw   = "raw"
	stepTaken = "step" // the metric of one number of REQs in flight, on the way
)

// cellLabels are the labels that a cell goes by.
var cellLabels = []string{results.LabelStrategy, results.LabelConnections, results.LabelInFlight, results.LabelBatch,
	results.LabelForm, results.LabelEncoding}

// newCell makes the cell that labels of a download name.
func newCell(d *results.Scenario, l results.Labels) *fetchCell {
	number := func(name string) int {
		n, _ := strconv.Atoi(l[name])
		return n
	}
	c := &fetchCell{scenario: &scenario{Scenario: d, labels: results.Labels{}}, strategy: cmp.Or(l[results.LabelStrategy], d.Title),
		form: l[results.LabelForm], conns: number(results.LabelConnections), inFlight: number(results.LabelInFlight),
		batch: number(results.LabelBatch), adaptive: l[results.LabelInFlight] == adaptive, all: map[string][]*results.Measurement{}}
	if encoding := l[results.LabelEncoding]; encoding != "" {
		c.form += "-" + encoding
	}
	for _, name := range cellLabels {
		if value, ok := l[name]; ok {
			c.labels[name] = value
		}
	}
	return c
}

// inMatrix tells whether the cell is one of many settings.
func (c *fetchCell) inMatrix() bool { return c.batch > 0 && !c.adaptive }

// setting is how a cell asks by id: connections × REQs in flight on each × ids in a REQ; "" for
// other strategies.
func (c *fetchCell) setting() string {
	switch {
	case c.adaptive:
		return fmt.Sprintf("%d×auto×%d", c.conns, c.batch)
	case c.inMatrix():
		return fmt.Sprintf("%d×%d×%d", c.conns, c.inFlight, c.batch)
	}
	return ""
}

// label is the strategy with its setting.
func (c *fetchCell) label() string { return strings.TrimRight(c.strategy+" "+c.setting(), " ") }

// name is the cell in a list.
func (c *fetchCell) name() string { return c.label() + prefixed(", ", c.form) }

// download gathers the cells; nil where a run has none.
func (v *view) download() *download {
	d := &download{}
	byKey := map[string]*fetchCell{}
	members := map[*fetchCell][]*results.Measurement{}
	for i := range v.rec.Measurements {
		m := &v.rec.Measurements[i]
		if !v.in(m, results.LayoutDownloads) {
			continue
		}
		c := newCell(v.scenario(m.Scenario), m.Labels)
		k := m.Scenario + labelKey(c.labels)
		if byKey[k] == nil {
			byKey[k] = c
			d.cells = append(d.cells, c)
		}
		c = byKey[k]
		c.all[m.Relay] = append(c.all[m.Relay], m)
		if m.Metric != stepTaken {
			members[c] = append(members[c], m)
		}
		if !slices.Contains(d.relays, m.Relay) {
			d.relays = append(d.relays, m.Relay)
		}
		if !slices.Contains(d.forms, c.form) {
			d.forms = append(d.forms, c.form)
		}
	}
	if len(d.cells) == 0 {
		return nil
	}
	slices.SortStableFunc(d.cells, func(a, b *fetchCell) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(boolean(a.adaptive), boolean(b.adaptive)), cmp.Compare(a.batch, b.batch),
			cmp.Compare(a.conns, b.conns), cmp.Compare(a.inFlight, b.inFlight),
			cmp.Compare(slices.Index(d.forms, a.form), slices.Index(d.forms, b.form)))
	})
	slices.SortStableFunc(d.relays, func(a, b string) int { return cmp.Compare(v.order(a), v.order(b)) })
	var rates []float64
	for _, c := range d.cells {
		if len(members[c]) == 0 {
			continue
		}
		c.scenario = v.fill(c.Scenario, members[c])
		if i := slices.IndexFunc(c.facts, func(b *block) bool { return b.metric.Key == "request latency" }); i >= 0 {
			c.requests = c.facts[i]
		}
		if c.rate = metric(c.scenario, metricRecords); c.rate != nil {
			for _, r := range c.rate.rows {
				rates = append(rates, r.shown(c.rate.unit)...)
			}
		}
	}
	d.scale = scaleFor("events/s", rates)
	for _, c := range d.cells {
		if c.rate != nil {
			c.rate.scale = d.scale
		}
	}
	return d
}

// contests are the rates that count for the standings: verified ones say what a client can do, and
// of the many settings each counts for little.
func (d *download) contests() (list []*block) {
	for _, c := range d.cells {
		if c.rate != nil && c.form == formRaw && !c.inMatrix() && !c.adaptive {
			list = append(list, c.rate)
		}
	}
	return list
}

// row is a relay's line of a cell's rate; nil where it has none.
func (c *fetchCell) row(relay string) *row {
	if c.rate == nil {
		return nil
	}
	if i := slices.IndexFunc(c.rate.rows, func(r *row) bool { return r.m != nil && r.m.Relay == relay }); i >= 0 {
		return c.rate.rows[i]
	}
	return nil
}

// latency is how long each REQ took; nil where that is not known.
func (c *fetchCell) latency(relay string) *distribution {
	if c.requests == nil {
		return nil
	}
	for _, r := range c.requests.rows {
		if r.m != nil && r.m.Relay == relay {
			return r.dist
		}
	}
	return nil
}

// value is a figure of a relay's cell.
func (c *fetchCell) value(relay, metric string) (float64, bool) {
	if m := find(c.all[relay], metric); m != nil {
		return m.Value()
	}
	return 0, false
}

// best is the cell of the matrix in which a relay was fastest in a form, of those that are complete
// if there are any.
func (d *download) best(relay, form string) (best *fetchCell) {
	var first *row
	for _, c := range d.cells {
		r := c.row(relay)
		if !c.inMatrix() || c.form != form || r == nil || !r.has {
			continue
		}
		if first == nil || cmp.Or(boolean(r.whole())-boolean(first.whole()), cmp.Compare(r.value, first.value)) > 0 {
			best, first = c, r
		}
	}
	return best
}

// whole tells whether a download brought all.
func (r *row) whole() bool { return r.m.Is(results.StatusIncomplete) == nil }

// state is how complete a cell was, in a word.
func (c *fetchCell) state(relay string) string {
	r := c.row(relay)
	if r == nil || !r.has {
		return nothing
	}
	s := r.m.Is(results.StatusIncomplete)
	if s == nil {
		return "complete"
	}
	word := map[string]string{results.CauseCut: "cut", results.CauseUnresolved: "unresolved"}[s.Cause]
	return cmp.Or(word, "incomplete")
}

// A fetchLine is a line of the table of strategies: a cell for a relay.
type fetchLine struct {
	cell  *fetchCell
	relay string
}

// lines lists the strategies in all forms: of the matrix the best setting.
func (d *download) lines() (all []fetchLine) {
	for _, relay := range d.relays {
		for _, c := range d.cells {
			if r := c.row(relay); r != nil && r.has && (!c.inMatrix() || c == d.best(relay, c.form)) {
				all = append(all, fetchLine{c, relay})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b fetchLine) int {
		return cmp.Or(cmp.Compare(a.cell.Order, b.cell.Order),
			cmp.Compare(slices.Index(d.forms, a.cell.form), slices.Index(d.forms, b.cell.form)))
	})
	return all
}

// fetchHead are the columns behind a line's label, form, relay and rate.
var fetchHead = []string{"MB/s", "all?", "missing", "retried", "failed", "again", "overfetch", "REQs", "REQ p50", "p99", "max", "in flight", "CPU"}

// figures are a line's columns. The text of a p99 from few samples ends in a star.
func (l fetchLine) figures() []string {
	text := func(metric string, format func(float64) string) string {
		if x, ok := l.cell.value(l.relay, metric); ok {
			return format(x)
		}
		return nothing
	}
	count := func(x float64) string { return thousands(strconv.FormatFloat(x, 'f', 0, 64)) }
	out := []string{text("MB/s", number), l.cell.state(l.relay), text("missing", count), text("retried", count), text("failed", count), text("duplicates", count), text("overfetch", ratioText), text("requests", count)}
	p50, p99, top := nothing, nothing, nothing
	if d := l.cell.latency(l.relay); d != nil {
		s := scaleFor("s", []float64{d.p50, d.top})
		p50, p99, top = s.format(d.p50), s.format(d.p99), s.format(d.top)
		if l.few() {
			p99 += "*"
		}
	}
	out = append(out, p50, p99, top)
	meant, ok := l.cell.value(l.relay, "in flight by Little's law")
	configured, known := l.cell.value(l.relay, "in flight configured")
	if ok && known {
		out = append(out, ofText(math.Floor(10*meant+0.5)/10, configured, strconv.FormatFloat(meant, 'f', 1, 64), count(configured)))
	} else {
		out = append(out, nothing)
	}
	return append(out, text("tool cpu per event", func(x float64) string { return number(x) + " µs" }))
}

// few tells whether the p99 rests on few samples.
func (l fetchLine) few() bool {
	d := l.cell.latency(l.relay)
	return d != nil && d.n < fewSamples
}

// tried lists all settings of fetching by id from one relay in one form, in the order of its
// matrix, those that were not measured left out.
func (d *download) tried(relay, form string) (all []fetchLine) {
	for _, c := range d.cells {
		if r := c.row(relay); c.inMatrix() && c.form == form && r != nil && r.has {
			all = append(all, fetchLine{c, relay})
		}
	}
	return all
}

// fetchAccount are the columns of the account behind a line's label, form and relay.
var fetchAccount = []string{"wall time", "received", "REQs: answered, closed, unfinished", "delivered", "current state", "superseded", "deleted", "expired or vanished", "authors", "peak RSS of relaybench", "of the relay"}

// account is what a line's download came to.
func (l fetchLine) account() []string {
	text := func(metric, unit string) string {
		if x, ok := l.cell.value(l.relay, metric); ok {
			return scaleFor(unit, []float64{x}).format(x)
		}
		return nothing
	}
	whole := func(metric string) string { return text(metric, "events") }
	requests := nothing
	if _, ok := l.cell.value(l.relay, "requests"); ok {
		requests = whole("requests") + ": " + whole("requests answered") + ", " + whole("requests closed") + ", " + whole("requests unfinished")
	}
	return []string{text("wall time", "s"), text("response bytes", "MiB"), requests, whole("delivered"), whole("current state"), whole("superseded"), whole("deleted"),
		whole("expired or vanished"), whole("authors"), text("tool peak rss", "MiB"), text("relay peak rss", "MiB")}
}

// paces says what sets the pace, once for each answer.
func (d *download) paces() (lines []string) {
	var said grouped
	list := d.lines()
	for _, relay := range d.relays {
		for _, l := range list {
			m := find(l.cell.all[relay], "parsed of raw")
			if l.relay != relay || m == nil || m.Is(results.StatusPace) == nil {
				continue
			}
			share, _ := m.Value()
			texts := statusTexts([]*results.Measurement{m})
			key := strings.Join(texts, "; ")
			if len(texts) > 1 {
				key = "trials differ: " + key
			}
			text := l.cell.label()
			if l.cell.labels[results.LabelEncoding] != "" {
				text += " compressed"
			}
			if len(d.relays) > 1 {
				text += " on " + relay
			}
			said.add(key, fmt.Sprintf("%s %s %%", text, number(share)))
		}
	}
	for _, g := range said {
		lines = append(lines, g.key+"; verified, of the raw rate: "+strings.Join(g.members, ", "))
	}
	return lines
}

// reasons says why cells are incomplete or were not measured, once for each reason.
func (d *download) reasons(most int) (lines []string) {
	var said grouped
	for _, relay := range d.relays {
		for _, c := range d.cells {
			r := c.row(relay)
			if r == nil || r.m == nil {
				continue
			}
			for i := range r.m.Status {
				s := &r.m.Status[i]
				if s.Code == results.StatusLimited || s.Code == results.StatusPace { // which are said elsewhere
					continue
				}
				key := statusText(s)
				if !r.has {
					key = "not measured: " + key
				}
				if len(d.relays) > 1 {
					key = relay + ": " + key
				}
				said.add(key, c.name())
			}
		}
	}
	for _, g := range said {
		lines = append(lines, g.key+" ("+some(g.members, most)+")")
	}
	return lines
}

// grouped are things that have something to say in common, in the order in which it was said first.
type grouped []group

type group struct {
	key     string
	members []string
}

func (g *grouped) add(key, member string) {
	for i := range *g {
		if x := &(*g)[i]; x.key == key {
			x.members = append(x.members, member)
			return
		}
	}
	*g = append(*g, group{key, []string{member}})
}

// A fetchMatrix is fetching by id from one relay in one form: batches and connections down, REQs in
// flight across.
type fetchMatrix struct {
	relay, form string
	inFlight    []int
	rows        []fetchMatrixRow
	scale       scale
}

type fetchMatrixRow struct {
	batch, conns int
	cells        []*row
	best         int // the column of the best of all, else -1
}

// text is a cell of the matrix.
func (m *fetchMatrix) text(r *row, foot *footnotes) string {
	switch {
	case r == nil:
		return nothing
	case !r.has:
		return "n/a"
	}
	return m.scale.format(r.value) + foot.sign(r.notes())
}

// matrices are the tables of a form, or of all where it is "".
func (d *download) matrices(form string) (all []*fetchMatrix) {
	for _, relay := range d.relays {
		for _, f := range d.forms {
			if form != "" && f != form {
				continue
			}
			if m := d.matrix(relay, f); m != nil {
				all = append(all, m)
			}
		}
	}
	return all
}

func (d *download) matrix(relay, form string) *fetchMatrix {
	m := &fetchMatrix{relay: relay, form: form, scale: d.scale}
	best := d.best(relay, form)
	if best == nil {
		return nil
	}
	for _, c := range d.cells {
		if c.inMatrix() && c.form == form && !slices.Contains(m.inFlight, c.inFlight) {
			m.inFlight = append(m.inFlight, c.inFlight)
		}
	}
	slices.Sort(m.inFlight)
	for _, c := range d.cells { // sorted by batch and connections
		r := c.row(relay)
		if !c.inMatrix() || c.form != form || r == nil {
			continue
		}
		n := len(m.rows)
		if n == 0 || m.rows[n-1].batch != c.batch || m.rows[n-1].conns != c.conns {
			m.rows = append(m.rows, fetchMatrixRow{batch: c.batch, conns: c.conns, cells: make([]*row, len(m.inFlight)), best: -1})
			n++
		}
		column := slices.Index(m.inFlight, c.inFlight)
		m.rows[n-1].cells[column] = r
		if c == best {
			m.rows[n-1].best = column
		}
	}
	return m
}

// windows tells how adaptive cells found their number of REQs in flight.
func (d *download) windows() (lines []string) {
	for _, relay := range d.relays {
		for _, c := range d.cells {
			if !c.adaptive {
				continue
			}
			var steps []string
			for _, m := range c.all[relay] {
				if x, ok := m.Value(); ok && m.Metric == stepTaken {
					steps = append(steps, m.Labels[results.LabelStep]+": "+d.scale.format(x))
				}
			}
			settled, ok := c.value(relay, "in flight configured")
			if !ok || c.conns == 0 {
				continue
			}
			text := fmt.Sprintf("%s, adaptive, %s, batches of %d: ", c.form, count(c.conns, "connection"), c.batch)
			if len(d.relays) > 1 {
				text = relay + ", " + text
			}
			if len(steps) == 0 {
				text += "over before a step was measured, "
			} else {
				text += strings.Join(steps, ", ") + " events/s, "
			}
			lines = append(lines, text+fmt.Sprintf("and it ended at %.0f in flight on each", settled/float64(c.conns)))
		}
	}
	return lines
}

// boolean sorts false before true.
func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
