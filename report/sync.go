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
		if left := referred(f, "rightly"); f.Code == results.CodeHoldsSource && left != "" && !strings.Contains(text, left) {
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
	found []*results.Finding // what did not simply pass
}

// syncsOnly tells whether relays were asked whether they speak NIP-77 for the sake of syncs.
func (v *view) syncsOnly() bool { return slices.ContainsFunc(v.checks, v.inSync) }

// syncs gathers the tables, in reading order.
func (v *view) syncs() (tables []*syncTable) {
	for _, sc := range v.laid(results.LayoutMatrix) {
		tables = append(tables, &syncTable{scenario: sc})
	}
	var found Groups[rowKey, *results.Finding]
	for _, f := range v.checks {
		if f.Verdict == results.Passed || !v.inSync(f) {
			continue
		}
		found.Add(rowKey{f.Relay, f.Peer}, f)
		if !slices.ContainsFunc(tables, func(t *syncTable) bool { return t.Key == f.Scenario }) { // nothing of it was measured
			tables = append(tables, &syncTable{scenario: &scenario{Scenario: v.scenario(f.Scenario)}})
		}
	}
	slices.SortStableFunc(tables, func(a, b *syncTable) int { return cmp.Compare(a.Order, b.Order) })
	for _, t := range tables {
		add := func(k rowKey, f ...*results.Finding) {
			i := slices.IndexFunc(t.cells, func(c *syncCell) bool { return c.key == k })
			if i < 0 {
				i = len(t.cells)
				c := &syncCell{entry: entry{scenario: t.scenario, key: k}}
				c.labels = plain(c.title())
				t.cells = append(t.cells, c)
			}
			t.cells[i].found = append(t.cells[i].found, f...)
		}
		for _, g := range found.List {
			for _, f := range g.Members {
				if f.Scenario == t.Key {
					add(g.Key, f)
				}
			}
		}
		for _, b := range t.facts {
			for _, r := range b.rows {
				add(r.key)
			}
		}
		slices.SortStableFunc(t.cells, func(a, b *syncCell) int {
			return cmp.Or(cmp.Compare(v.order(a.key.peer), v.order(b.key.peer)), cmp.Compare(v.order(a.key.relay), v.order(b.key.relay)))
		})
	}
	return tables
}

// is is the finding of a code, nil where there is none.
func (c *syncCell) is(code string) *results.Finding {
	if i := slices.IndexFunc(c.found, func(f *results.Finding) bool { return f.Code == code }); i >= 0 {
		return c.found[i]
	}
	return nil
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
	case c.is(results.CodeHasWay) != nil:
		return Cell{text: "n/a", style: Dim}
	case r == nil:
		return Cell{text: "failed", style: Red}
	case !r.whole():
		return Cell{text: c.part(), style: Red, mark: foot.sign(r.bars)}
	}
	b, _ := c.primary()
	return Cell{text: b.scale.Format(r.value), mark: foot.sign(r.bars)}
}

// part is how much came of what had to come. What is more at the sink than it had to get is no part
// of that.
func (c *syncCell) part() string {
	came, _ := c.value("delivered")
	expected, known := c.value("expected")
	if !known {
		return amount(came) + " of ?"
	}
	if missing, ok := c.value("missing"); ok {
		came = expected - missing
	}
	return amount(min(came, expected)) + " of " + amount(expected)
}

func (c *syncCell) title() string { return c.key.peer + " → " + c.key.relay }

// says is a sentence on the pair.
func (c *syncCell) says(f *results.Finding) string {
	return c.title() + ": " + findingText(f) + faultOf(f, "")
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
		var reasons Groups[string, string]
		for _, c := range t.cells {
			cells = append(cells, crossing{[]string{c.key.peer}, c.key.relay, c.cell(&d.foot)})
			if c.rate() != nil {
				entries = append(entries, c.entry)
			}
			if f := c.is(results.CodeHasWay); f != nil {
				reasons.Add(findingText(f), c.title())
			}
		}
		d.Table(cross([]string{"from ↓  to →"}, sinks, cells))
		for _, g := range reasons.List {
			pairs := g.Members
			if len(pairs) > 3 {
				pairs = append(pairs[:2:2], fmt.Sprintf("and %d more", len(pairs)-2))
			}
			d.item(Span{"n/a", Dim}, strings.Join(pairs, ", ")+": "+g.Key, Dim)
		}
		if len(entries) > 0 {
			d.add(gap{})
			d.pivot(&Table{labels: 1, columns: heads("from → to")}, entries)
		}
		shown := evidenceOnce{}
		for _, c := range t.cells {
			var said []string
			for _, f := range c.found {
				text := c.says(f)
				switch {
				case f.Code == results.CodeHasWay:
				case f.Code == results.CodeWatched:
					d.to(full, func() { d.Say(c.title()+": no timeline, since "+findingText(f)+".", Plain) })
				case !slices.Contains(said, text): // a command that failed is said once, and not of the transfer again
					said = append(said, text)
					most := 0 // what never came has no examples worth the room
					if f.Verdict == results.Failed {
						most = 3
					}
					d.explain(shown, f, text, most)
				}
			}
		}
	}
}
