package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"relaybench/harness/measure"
)

// What relays that fill each other are recorded under, with the sink as the relay and the source as its peer.
const (
	syncing       = "sync"
	checkCanSync  = "has a way"                   // a statement: whether a pair can be synced in a mode
	checkWatched  = "is watched second by second" // another
	metricRecords = "records/s"                   // the main figure of whatever moves events in bulk
	syncMeaning   = "A full source on the left, an empty sink above: events per second from the first byte to the last event at the sink, found there by asking it. A figure rests on both relays, so that none is ranked. What relaybench itself used is set against what the sink used."
)

// A syncTable is one mode over all pairs of relays.
type syncTable struct {
	key, title     string
	sources, sinks []string
	cells          []*syncCell
	scale          scale
}

// A syncCell is one source and one sink.
type syncCell struct {
	source, sink string
	rate         *measure.Measurement // nil where there is none
	partial      bool
	none         string // why there is no way
	failed       []*measure.Finding
	timeline     []float64
	unwatched    string // why there is no timeline
	all          []*measure.Measurement
}

var syncTitles = map[string]string{
	"sync.native":     "by the sink's own sync command",
	"sync.negentropy": "by reconciliation (NIP-77), relaybench between the two",
	"sync.req":        "by REQs in pages, newest first",
}

func isSync(scenario, peer string) bool { return peer != "" && within(scenario, syncing) }

// syncsOnly tells whether relays were asked whether they speak NIP-77 for the sake of syncs.
func (v *view) syncsOnly() bool {
	return slices.ContainsFunc(v.rec.Findings, func(f measure.Finding) bool { return isSync(f.Scenario, f.Peer) })
}

// syncs gathers the tables, in the order in which they were measured.
func (v *view) syncs() (tables []*syncTable) {
	at := func(scenario, sink, source string) *syncCell {
		i := slices.IndexFunc(tables, func(t *syncTable) bool { return t.key == scenario })
		if i < 0 {
			i = len(tables)
			tables = append(tables, &syncTable{key: scenario, title: cmp.Or(syncTitles[scenario], "")})
		}
		t := tables[i]
		if c := t.cell(source, sink); c != nil {
			return c
		}
		c := &syncCell{source: source, sink: sink}
		t.cells = append(t.cells, c)
		return c
	}
	for i := range v.rec.Findings {
		f := &v.rec.Findings[i]
		if !isSync(f.Scenario, f.Peer) {
			continue
		}
		c := at(f.Scenario, f.Relay, f.Peer)
		switch {
		case f.OK:
		case f.Check == checkCanSync:
			c.none = f.Detail
		case f.Check == checkWatched:
			c.unwatched = f.Detail
		default:
			c.failed = append(c.failed, f)
		}
	}
	for i := range v.rec.Measurements {
		m := &v.rec.Measurements[i]
		if !isSync(m.Scenario, m.Peer) || isResource(m.Metric) {
			continue
		}
		c := at(m.Scenario, m.Relay, m.Peer)
		c.all = append(c.all, m)
		if m.Metric == metricRecords {
			c.rate, c.partial, c.timeline = m, m.IsIncomplete(), m.Timeline
		}
	}
	for _, t := range tables {
		t.arrange(v)
	}
	return tables
}

func (t *syncTable) cell(source, sink string) *syncCell {
	if i := slices.IndexFunc(t.cells, func(c *syncCell) bool { return c.source == source && c.sink == sink }); i >= 0 {
		return t.cells[i]
	}
	return nil
}

// arrange puts sources and sinks in the order of the run.
func (t *syncTable) arrange(v *view) {
	var rates []float64
	for _, c := range t.cells {
		if !slices.Contains(t.sources, c.source) {
			t.sources = append(t.sources, c.source)
		}
		if !slices.Contains(t.sinks, c.sink) {
			t.sinks = append(t.sinks, c.sink)
		}
		if c.rate != nil {
			if x, ok := c.rate.Value(); ok {
				rates = append(rates, x)
			}
		}
	}
	byOrder := func(a, b string) int { return cmp.Compare(v.order(a), v.order(b)) }
	slices.SortStableFunc(t.sources, byOrder)
	slices.SortStableFunc(t.sinks, byOrder)
	slices.SortStableFunc(t.cells, func(a, b *syncCell) int {
		return cmp.Or(byOrder(a.source, b.source), byOrder(a.sink, b.sink))
	})
	t.scale = scaleFor("events/s", rates)
}

// text is a cell of the matrix; good is false where not everything came.
func (t *syncTable) text(c *syncCell) (text string, good bool) {
	switch {
	case c == nil || c.none != "":
		return "n/a", true
	case c.rate == nil:
		return "failed", false
	}
	x, _ := c.rate.Value()
	if c.partial {
		return fmt.Sprintf("%s of %s", c.amount("delivered"), c.amount("expected")), false
	}
	return t.scale.format(x), true
}

func (c *syncCell) value(metric string) (*measure.Measurement, float64) {
	for _, m := range c.all {
		if m.Metric == metric {
			x, _ := m.Value()
			return m, x
		}
	}
	return nil, 0
}

func (c *syncCell) amount(metric string) string {
	m, x := c.value(metric)
	if m == nil {
		return "?"
	}
	return amount(x)
}

func (c *syncCell) title() string { return c.source + " → " + c.sink }

// short is a figure in its own unit: the median of its trials.
func (c *syncCell) short(metric string) string {
	m, x := c.value(metric)
	if m == nil {
		return ""
	}
	return scaleFor(m.Unit, []float64{x}).format(x)
}

// trials is the range over several trials.
func (c *syncCell) trials() string {
	m, _ := c.value("wall time")
	if m == nil {
		return ""
	}
	lo, hi := m.Range()
	if len(m.Trials) < 2 || lo == hi {
		return ""
	}
	s := scaleFor(m.Unit, []float64{lo, hi})
	return number(lo*s.factor) + "–" + s.format(hi)
}

// syncColumns are what a table of the pairs shows of each beside its rate.
var syncColumns = []struct {
	head, metric string
	more         func(c *syncCell) string // that belongs to it
}{
	{"took", "wall time", (*syncCell).trials},
	{"reconciled in", "reconcile time", func(c *syncCell) string {
		_, n := c.value("reconcile rounds")
		return counted(n, "round")
	}},
	{"transfers", "transfers", nil},
	{"stragglers", "stragglers", nil},
	{"transfer/s", "transfer events/s", nil},
	{"pages", "pages", nil},
	{"received", "response bytes", nil},
	{"REQ to EOSE", "REQ to EOSE", nil},
	{"source cpu", "source cpu", nil},
	{"sink cpu", "sink cpu", nil},
	{"relaybench cpu", "tool cpu", func(c *syncCell) string {
		return c.short("tool's share of the sink's cpu")
	}},
	{"relaybench rss", "tool peak rss", nil},
	{"refused", "refused", nil},
}

// details is the table of what the pairs cost, without columns that none of them has.
func (t *syncTable) details() (table textTable) {
	table.head = []string{"from → to"}
	var cells []*syncCell
	for _, c := range t.cells {
		if c.rate != nil {
			cells = append(cells, c)
			table.rows = append(table.rows, []string{c.title()})
		}
	}
	for _, column := range syncColumns {
		texts := make([]string, len(cells))
		some := false
		for i, c := range cells {
			if column.metric == "refused" {
				texts[i] = c.refusals()
			} else if texts[i] = c.short(column.metric); texts[i] != "" && column.more != nil {
				if more := column.more(c); more != "" {
					texts[i] += ", " + more
				}
			}
			some = some || texts[i] != ""
		}
		if !some {
			continue
		}
		table.head = append(table.head, column.head)
		for i := range cells {
			table.rows[i] = append(table.rows[i], texts[i])
		}
	}
	if len(cells) == 0 {
		return textTable{}
	}
	return table
}

// refusals are how many events the sink refused, by reason.
func (c *syncCell) refusals() string {
	var list []string
	for _, m := range c.all {
		if reason, ok := strings.CutPrefix(m.Metric, "refused: "); ok {
			x, _ := m.Value()
			list = append(list, amount(x)+" "+reason)
		}
	}
	return strings.Join(list, ", ")
}

// reasons lists why cells are n/a, each reason once.
func (t *syncTable) reasons() (list []fact) {
	byReason := map[string][]string{}
	var order []string
	for _, c := range t.cells {
		if c.none == "" {
			continue
		}
		if byReason[c.none] == nil {
			order = append(order, c.none)
		}
		byReason[c.none] = append(byReason[c.none], c.title())
	}
	for _, reason := range order {
		pairs := byReason[reason]
		if len(pairs) > 3 {
			pairs = append(pairs[:2:2], fmt.Sprintf("and %d more", len(byReason[reason])-2))
		}
		list = append(list, fact{strings.Join(pairs, ", "), reason})
	}
	return list
}
