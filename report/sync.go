package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"relaybench/results"
)

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
	*scenario
	cells []*syncCell
}

// A syncCell is one source, the peer, and one sink.
type syncCell struct {
	entry
	none      string             // why there is no way
	told      []*results.Finding // that did not simply pass
	unwatched string             // why there is no timeline
}

// syncsOnly tells whether relays were asked whether they speak NIP-77 for the sake of syncs.
func (v *view) syncsOnly() bool { return slices.ContainsFunc(v.checks, v.inSync) }

// syncs gathers the tables, in reading order.
func (v *view) syncs() (tables []*syncTable) {
	laid := v.laid(results.LayoutMatrix)
	at := func(key, sink, source string) *syncCell {
		i := slices.IndexFunc(tables, func(t *syncTable) bool { return t.Key == key })
		if i < 0 {
			i = len(tables)
			t := &syncTable{scenario: &scenario{Scenario: v.scenario(key)}}
			for _, sc := range laid {
				if sc.Key == key {
					t.scenario = sc
				}
			}
			tables = append(tables, t)
		}
		t, k := tables[i], rowKey{sink, source}
		if i := slices.IndexFunc(t.cells, func(c *syncCell) bool { return c.key == k }); i >= 0 {
			return t.cells[i]
		}
		c := &syncCell{entry: entry{scenario: t.scenario, key: k}}
		c.labels = plain(c.title())
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
	for _, sc := range laid {
		for _, b := range sc.facts {
			for _, r := range b.rows {
				at(sc.Key, r.key.relay, r.key.peer)
			}
		}
	}
	slices.SortStableFunc(tables, func(a, b *syncTable) int { return cmp.Compare(a.Order, b.Order) })
	for _, t := range tables {
		slices.SortStableFunc(t.cells, func(a, b *syncCell) int {
			return cmp.Or(cmp.Compare(v.order(a.key.peer), v.order(b.key.peer)), cmp.Compare(v.order(a.key.relay), v.order(b.key.relay)))
		})
	}
	return tables
}

// rate is how fast a sink was filled, nil where it was not.
func (c *syncCell) rate() *row {
	if _, r := c.primary(); r != nil && r.m != nil {
		return r
	}
	return nil
}

// cell is a cell of the matrix: red where not everything came.
func (c *syncCell) cell(foot *footnotes) Cell {
	r := c.rate()
	switch {
	case c.none != "":
		return Cell{text: "n/a", style: Dim}
	case r == nil:
		return Cell{text: "failed", style: Red}
	case r.m.Is(results.StatusIncomplete) != nil:
		return Cell{text: c.part(), style: Red, mark: foot.sign(r.bars)}
	}
	b, _ := c.primary()
	return Cell{text: b.scale.Format(r.value), mark: foot.sign(r.bars)}
}

// part is how much came of what had to come. What is more at the sink than it had to get is no part
// of that.
func (c *syncCell) part() string {
	value := func(metric string) (float64, bool) {
		if _, r := c.figure(func(b *block) bool { return b.metric.Key == metric }); r != nil && r.has {
			return r.value, true
		}
		return 0, false
	}
	came, _ := value("delivered")
	expected, known := value("expected")
	if !known {
		return amount(came) + " of ?"
	}
	if missing, ok := value("missing"); ok {
		came = expected - missing
	}
	return amount(min(came, expected)) + " of " + amount(expected)
}

func (c *syncCell) title() string { return c.key.peer + " → " + c.key.relay }

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
	d.Say(d.v.syncMeaning(), Dim)
	for _, t := range tables {
		d.add(heading{level: 3, title: t.Title, key: t.Key})
		var cells []crossing
		var sinks []string
		for _, r := range d.v.relays {
			if slices.ContainsFunc(t.cells, func(c *syncCell) bool { return c.key.relay == r.Name }) {
				sinks = append(sinks, r.Name)
			}
		}
		var entries []entry
		for _, c := range t.cells {
			cells = append(cells, crossing{[]string{c.key.peer}, c.key.relay, c.cell(&d.foot)})
			if c.rate() != nil {
				entries = append(entries, c.entry)
			}
		}
		d.Table(cross([]string{"from ↓  to →"}, sinks, cells))
		for _, r := range t.reasons() {
			d.item(Span{"n/a", Dim}, r.key+": "+r.text, Dim)
		}
		if len(entries) > 0 {
			d.add(gap{})
			d.pivot(&Table{labels: 1, columns: heads("from → to")}, entries)
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
				d.to(full, func() { d.Say(c.title()+": no timeline, since "+c.unwatched+".", Plain) })
			}
		}
	}
}
