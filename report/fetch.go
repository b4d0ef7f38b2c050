package report

import (
	"cmp"
	"fmt"
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
	all                    map[string][]*results.Measurement
}

const (
	fetchMeaning = "One client downloads everything that matches the filter: giant in one REQ, paged by until, sharded with the time " +
		"divided over connections, by-id once ids are known, negentropy finding them by a reconciliation first. raw finds ids and " +
		"counts; parsed parses and verifies every event; deflate has it compressed."
	fetchColumns = "by-id: connections × REQs in flight on each × ids in a REQ, the best of all that were tried; auto finds the " +
		"second by itself. retried, failed: ids asked for again, and ids that were never answered, where events are asked for by " +
		"id. duplicates: events that came more than once. overfetch: bytes on the socket for each byte of a distinct event. in " +
		"flight: REQs on average by Little's law (their rate × their latency), and as many as may be. tool: relaybench itself."
	fetchState = "The current state is what the records that came fold to: replaceable and addressable events to their newest, deletions " +
		"applied. Requests of a reconciliation are its rounds."
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
	var scenarios []*scenario
	for _, c := range d.cells {
		if len(members[c]) == 0 {
			continue
		}
		c.scenario = v.fill(c.Scenario, members[c])
		scenarios = append(scenarios, c.scenario)
		if i := slices.IndexFunc(c.blocks, func(b *block) bool { return b.metric.Key == c.Primary }); i >= 0 {
			c.rate = c.blocks[i]
		}
	}
	if shareScales(scenarios); len(scenarios) > 0 && scenarios[0].blocks != nil {
		d.scale = scenarios[0].blocks[0].scale
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

// state is how a download that did not bring all ended, in a word.
func (r *row) state() string {
	word := map[string]string{results.CauseCut: "cut", results.CauseUnresolved: "unresolved"}[r.m.Is(results.StatusIncomplete).Cause]
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

// download adds every strategy in every form, what sets their pace, and the matrix of fetching by
// id.
func (d *composer) download(x *download) {
	d.say(fetchMeaning, dim)
	d.add(gap{})
	d.cells(x, x.lines())
	d.say(fetchColumns, dim)
	d.to(full, func() { d.say(fetchState, dim) })
	d.apart(pointMark, x.paces())
	d.apart(warningMark, x.reasons(4))
	other := false
	for _, relay := range x.relays {
		for _, form := range x.forms {
			if best := x.best(relay, form); best != nil {
				who := full // of the forms a terminal has one
				if form == formRaw {
					who = everyone
				}
				d.to(who, func() { d.settings(x, best, relay, form) })
				other = other || who == full
			}
		}
	}
	if other {
		d.to(brief, func() { d.say("The same for the other forms is in report.md.", dim) })
	}
	d.apart(pointMark, x.windows())
}

// apart adds a list of sentences behind an empty line.
func (d *composer) apart(mark span, texts []string) {
	if len(texts) > 0 {
		d.add(gap{})
		d.items(mark, texts, none)
	}
}

// cells sets ways to download as rows, with all their figures.
func (d *composer) cells(x *download, lines []fetchLine) {
	t := &table{labels: 2, columns: heads("", "form")}
	if len(x.relays) > 1 {
		t.labels, t.columns = 3, append(t.columns, column{head: "relay"})
	}
	var entries []entry
	for _, l := range lines {
		entries = append(entries, entry{scenario: l.cell.scenario, key: rowKey{relay: l.relay}, labels: plain(l.cell.label(), l.cell.form, l.relay)[:t.labels]})
	}
	d.pivot(t, entries, measure{column{head: "all?"}, func(s *entry) cell {
		_, r := s.primary()
		if r.whole() {
			return cell{text: "complete", style: green}
		}
		return cell{text: r.state(), style: yellow}
	}})
}

// settings adds the matrix of fetching by id from one relay in one form, batches and connections
// down, REQs in flight across, and in a file every figure of each setting.
func (d *composer) settings(x *download, best *fetchCell, relay, form string) {
	title := "by id, " + form + ", events/s"
	if len(x.relays) > 1 {
		title += ": " + relay
	}
	var all []fetchLine
	var inFlight []int
	var at []*fetchCell         // a setting of each row
	for _, c := range x.cells { // sorted by batch and connections
		if r := c.row(relay); !c.inMatrix() || c.form != form || r == nil {
			continue
		} else if r.has {
			all = append(all, fetchLine{c, relay})
		}
		if !slices.Contains(inFlight, c.inFlight) {
			inFlight = append(inFlight, c.inFlight)
		}
		if n := len(at); n == 0 || at[n-1].batch != c.batch || at[n-1].conns != c.conns {
			at = append(at, c)
		}
	}
	slices.Sort(inFlight)
	var across []string
	for _, n := range inFlight {
		across = append(across, fmt.Sprintf("%d in flight", n))
	}
	var rows [][]cell
	for _, c := range at {
		rows = append(rows, plain(fmt.Sprint(c.batch), fmt.Sprint(c.conns)))
	}
	d.add(heading{level: 3, title: title})
	d.table(cross([]string{"batch", "connections"}, across, rows, func(row, column int) cell {
		i := slices.IndexFunc(x.cells, func(c *fetchCell) bool {
			return c.inMatrix() && c.form == form && c.batch == at[row].batch && c.conns == at[row].conns && c.inFlight == inFlight[column]
		})
		if i < 0 || x.cells[i].row(relay) == nil {
			return cell{text: nothing}
		}
		r := x.cells[i].row(relay)
		if !r.has {
			return cell{text: "n/a"}
		}
		y := cell{text: x.scale.format(r.value), mark: d.foot.sign(r.notes())}
		if x.cells[i] == best {
			y.style = bright
		}
		return y
	}))
	d.to(full, func() {
		d.say("Each setting, as connections × REQs in flight × ids in a REQ:", none)
		d.cells(x, all)
	})
}

// boolean sorts false before true.
func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// statusTexts are what figures say of themselves and does not bar them, each once.
func statusTexts(ms []*results.Measurement) (all []string) {
	for _, m := range ms {
		for i := range m.Status {
			if text := statusText(&m.Status[i]); !barring[m.Status[i].Code] && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// find picks a metric; nil where it is missing.
func find(ms []*results.Measurement, metric string) *results.Measurement {
	for _, m := range ms {
		if _, ok := m.Value(); ok && m.Metric == metric {
			return m
		}
	}
	return nil
}
