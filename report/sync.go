package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"relaybench/results"
)

// metricRecords is the main figure of whatever moves events in bulk.
const metricRecords = "records/s"

const syncWhat = "A full source on the left, an empty sink above: events per second from the first byte to the last event at the " +
	"sink, found there by asking it. A figure rests on both relays, so that none is ranked. What relaybench itself used is set " +
	"against what the sink used."

// syncMeaning says how to read the tables, and once for all pairs what of the corpus need not come.
func (v *view) syncMeaning() string {
	text := syncWhat
	for _, f := range v.checks {
		if left := rightly(f); f.Code == results.CodeHoldsSource && left != "" && !strings.Contains(text, left) {
			text += " Of the corpus " + left + "."
		}
	}
	return text
}

// A syncTable is one mode over all pairs of relays.
type syncTable struct {
	*results.Scenario
	sources, sinks []string
	cells          []*syncCell
	figures        *scenario
	scale          scale
}

// A syncCell is one source and one sink.
type syncCell struct {
	source, sink string
	rate         *results.Measurement // nil where there is none
	none         string               // why there is no way
	told         []*results.Finding   // that did not simply pass
	notes        []string             // on the rate
	unwatched    string               // why there is no timeline
	all          []*results.Measurement
}

// syncsOnly tells whether relays were asked whether they speak NIP-77 for the sake of syncs.
func (v *view) syncsOnly() bool { return slices.ContainsFunc(v.checks, v.inSync) }

// syncs gathers the tables, in reading order.
func (v *view) syncs() (tables []*syncTable) {
	at := func(scenario, sink, source string) *syncCell {
		i := slices.IndexFunc(tables, func(t *syncTable) bool { return t.Key == scenario })
		if i < 0 {
			i = len(tables)
			tables = append(tables, &syncTable{Scenario: v.scenario(scenario)})
		}
		t := tables[i]
		if c := t.cell(source, sink); c != nil {
			return c
		}
		c := &syncCell{source: source, sink: sink}
		t.cells = append(t.cells, c)
		return c
	}
	for _, f := range v.checks {
		if f.Verdict == results.Passed || !v.inSync(f) {
			continue
		}
		c := at(f.Scenario, f.Relay, f.Peer)
		switch f.Code {
		case results.CodeHasWay:
			c.none = findingText(f)
		case results.CodeWatched:
			c.unwatched = findingText(f)
		default:
			// A command that failed is said once, and not of the transfer again.
			if !slices.ContainsFunc(c.told, func(o *results.Finding) bool { return c.says(o) == c.says(f) }) {
				c.told = append(c.told, f)
			}
		}
	}
	members := map[string][]*results.Measurement{}
	for i := range v.rec.Measurements {
		m := &v.rec.Measurements[i]
		if !v.in(m, results.LayoutMatrix) {
			continue
		}
		members[m.Scenario] = append(members[m.Scenario], m)
		c := at(m.Scenario, m.Relay, m.Peer)
		c.all = append(c.all, m)
		if m.Metric == metricRecords {
			c.rate, c.notes = m, v.bars(m)
		}
	}
	slices.SortStableFunc(tables, func(a, b *syncTable) int { return cmp.Compare(a.Order, b.Order) })
	for _, t := range tables {
		t.arrange(v)
		if ms := members[t.Key]; len(ms) > 0 {
			t.figures = v.fill(t.Scenario, ms)
			shareScales([]*scenario{t.figures})
		}
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
	if c.rate.Is(results.StatusIncomplete) != nil {
		return c.part(), false
	}
	return t.scale.format(x), true
}

func (c *syncCell) value(metric string) (*results.Measurement, float64) {
	for _, m := range c.all {
		if m.Metric == metric {
			x, _ := m.Value()
			return m, x
		}
	}
	return nil, 0
}

// part is how much came of what had to come. What is more at the sink than it had to get is no part
// of that.
func (c *syncCell) part() string {
	_, came := c.value("delivered")
	m, expected := c.value("expected")
	if m == nil {
		return amount(came) + " of ?"
	}
	if m, missing := c.value("missing"); m != nil {
		came = expected - missing
	}
	return amount(min(came, expected)) + " of " + amount(expected)
}

func (c *syncCell) title() string { return c.source + " → " + c.sink }

// says is a sentence on the pair, with who is at fault where that is known.
func (c *syncCell) says(f *results.Finding) string {
	text := c.title() + ": " + findingText(f)
	if f.Verdict == results.Failed && f.Blames != "" {
		text += " (at fault: " + f.Blames + ")"
	}
	return text
}

// reasons lists why cells are n/a, each reason once.
func (t *syncTable) reasons() (list []fact) {
	var said grouped
	for _, c := range t.cells {
		if c.none != "" {
			said.add(c.none, c.title())
		}
	}
	for _, g := range said {
		pairs := g.members
		if len(pairs) > 3 {
			pairs = append(pairs[:2:2], fmt.Sprintf("and %d more", len(pairs)-2))
		}
		list = append(list, fact{strings.Join(pairs, ", "), g.key})
	}
	return list
}

// syncs adds a matrix for each mode, sources down and sinks across, and what each pair cost.
func (d *composer) syncs(tables []*syncTable) {
	d.say(d.v.syncMeaning(), dim)
	for _, t := range tables {
		d.add(heading{level: 3, title: t.Title, key: t.Key})
		var rows [][]cell
		for _, source := range t.sources {
			rows = append(rows, plain(source))
		}
		d.table(cross([]string{"from ↓  to →"}, t.sinks, rows, func(row, column int) cell {
			c := t.cell(t.sources[row], t.sinks[column])
			text, good := t.text(c)
			x := cell{text: text}
			switch {
			case !good:
				x.style = red
			case c == nil || c.none != "":
				x.style = dim
			}
			if c != nil {
				x.mark = d.foot.sign(c.notes)
			}
			return x
		}))
		for _, r := range t.reasons() {
			d.item(span{"n/a", dim}, r.key+": "+r.text, dim)
		}
		var entries []entry
		for _, c := range t.cells {
			if c.rate != nil {
				entries = append(entries, entry{scenario: t.figures, key: rowKey{c.sink, c.source}, labels: plain(c.title())})
			}
		}
		if len(entries) > 0 {
			d.add(gap{})
			d.pivot(&table{labels: 1, columns: heads("from → to")}, entries)
		}
		said := evidenceOnce{}
		for _, c := range t.cells {
			for _, f := range c.told {
				most := 0 // what never came has no examples worth the room
				if f.Verdict == results.Failed {
					most = 3
				}
				d.explain(said, f, c.says(f), most)
			}
			if c.unwatched != "" && c.none == "" {
				d.to(full, func() { d.say(c.title()+": no timeline, since "+c.unwatched+".", none) })
			}
		}
	}
}
