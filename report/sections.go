package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"relaybench/results"
)

// section adds the figures of a section, by how they are laid out.
func (d *composer) section(s *section) {
	d.add(heading{level: 2, title: s.title})
	d.told = map[string]bool{}
	for _, all := range s.layouts() {
		d.tell(all)
		switch all[0].layout {
		case results.LayoutPairs:
			d.pairs(s, all)
		case results.LayoutMatrix:
			d.matrices(all)
		case results.LayoutDownloads:
			d.downloads(all)
		case results.LayoutTable:
			d.tables(all)
		case results.LayoutQueries:
			d.queries(all)
		default:
			d.blocks(all[0])
		}
	}
}

// tell says what scenarios are, as far as no heading does.
func (d *composer) tell(all []*scenario) {
	var texts []string
	for _, sc := range all {
		if sc.layout == results.LayoutTable && sc.tableTitle() != sc.Title || sc.layout == results.LayoutDownloads && sc.Title != sc.labels[results.LabelStrategy] {
			texts = AddNew(texts, sentence(sc.Title))
		}
	}
	for _, sc := range all {
		if sc.Meaning != "" && (len(sc.resources) == 0 || len(sc.all()) > 0) { // what was consumed stands elsewhere
			texts = AddNew(texts, sentence(sc.Meaning))
		}
	}
	if len(texts) > 0 {
		d.Say(strings.Join(texts, " "), Dim)
	}
}

// blocks sets the metrics of a scenario one below the other, each with a bar for each relay; those
// whose bars would say nothing are lines of one table, with what is only stated.
func (d *composer) blocks(sc *scenario) {
	if len(sc.all()) == 0 {
		return
	}
	d.add(heading{level: 3, title: sc.Title, key: sc.Key})
	var bars []entry
	var lines []*block
	for _, b := range sc.blocks {
		if b.flat() || b.metric.Role == results.RoleStated {
			lines = append(lines, b)
			continue
		}
		group := b.heading(d.v.trials)
		for _, r := range b.rows {
			bars = append(bars, entry{scenario: sc, lead: b, key: r.key, group: group, labels: []string{r.name}})
		}
	}
	d.pivot(&Table{groups: "metric", bars: true, columns: heads("")}, bars)
	d.lines(append(lines, sc.facts...))
}

// heading is a block's title with its unit and direction. A latency of one trial is its p50.
func (b *block) heading(trials int) string {
	title := WithUnit(b.title, b.unit)
	if trials == 1 && timeBases[b.unit] != 0 && slices.ContainsFunc(b.rows, func(r *row) bool { return r.dist != nil }) {
		title += ", p50"
	}
	switch {
	case b.unranked != "":
		title += " (" + b.unranked + ")"
	case b.better == results.Higher:
		title += " (more is better)"
	case b.better == results.Lower:
		title += " (less is better)"
	}
	return title
}

// flat tells whether bars would say nothing: all relays that have the metric are equal, or there is
// one relay and nothing but its figure.
func (b *block) flat() bool {
	have := slices.DeleteFunc(slices.Clone(b.rows), func(r *row) bool { return !r.has })
	if len(b.rows) == 1 {
		return len(have) == 0 || have[0].dist == nil && len(have[0].m.Timeline) == 0
	}
	return len(have) > 1 && !slices.ContainsFunc(have, func(r *row) bool { return r.value != have[0].value })
}

// Bounds on what a terminal repeats; all of it is in report.md and in results.json.
const (
	maxFacts    = 12
	maxFailed   = 12
	maxProof    = 5
	maxLogLines = 8
)

// lines sets metrics as rows and relays as columns.
func (d *composer) lines(blocks []*block) {
	table := func(blocks []*block) {
		var cells []crossing
		for _, b := range blocks {
			title := b.title
			if b.labels[results.LabelReason] == "" {
				title = WithUnit(title, b.unit)
			}
			for _, r := range b.rows {
				cells = append(cells, crossing{[]string{title}, r.name, d.fact(b, r)})
			}
		}
		d.Table(cross([]string{""}, nil, cells))
	}
	most := min(len(blocks), maxFacts)
	table(blocks[:most])
	if more := blocks[most:]; len(more) > 0 {
		d.to(full, func() { table(more) })
		d.to(brief, func() { d.Say("… and "+Count(len(more), "more figure")+" in report.md", Dim) })
	}
}

// queries sets all queries in one table, each with its forms.
func (d *composer) queries(all []*scenario) {
	var rows []entry
	for _, sc := range all {
		i := slices.IndexFunc(sc.blocks, func(b *block) bool { return b.metric.Key == sc.Primary })
		if i < 0 {
			d.blocks(sc)
			continue
		}
		for _, r := range sc.blocks[i].rows {
			rows = append(rows, entry{group: sc.Title, scenario: sc, key: r.key, labels: telling([]string{sc.labels[results.LabelForm], r.name})})
		}
	}
	d.pivot(&Table{groups: "query", bars: true, spaced: true, columns: heads("form", "relay")}, rows)
}

// tableTitle heads the table in which a scenario stands.
func (s *scenario) tableTitle() string { return cmp.Or(LabelText(s.labels, s.Tables), s.Title) }

// tables sets scenarios that rank nothing as tables: relays, the harness itself first, and what
// labels say down, metrics across.
func (d *composer) tables(all []*scenario) {
	var titles Groups[string, *scenario]
	for _, sc := range all {
		titles.Add(sc.tableTitle(), sc)
	}
	for _, g := range titles.List {
		rows := entries(g.Members, func(sc *scenario, k rowKey) []string {
			texts := []string{k.relay}
			for _, name := range sc.Rows {
				texts = append(texts, LabelText(sc.labels, []string{name}))
			}
			return telling(texts)
		})
		slices.SortStableFunc(rows, func(a, b entry) int {
			return cmp.Compare(int(d.v.order(a.key.relay)), int(d.v.order(b.key.relay)))
		})
		var first Groups[string, entry] // rows of one first label stand together
		for _, e := range rows {
			first.Add(strings.Join(e.labels[:min(1, len(e.labels))], ""), e)
		}
		rows = nil
		for _, f := range first.List {
			rows = append(rows, f.Members...)
		}
		var blocks []*block
		for _, sc := range g.Members {
			blocks = append(blocks, sc.all()...)
		}
		sameSize(blocks, results.LayoutTable) // of this table
		d.add(heading{level: 3, title: g.Key})
		d.pivot(&Table{}, rows)
	}
}

// inSync tells whether a check is explained in a matrix.
func (v *view) inSync(f *results.Finding) bool {
	return f.Peer != "" && v.layout(f.Scenario) == results.LayoutMatrix
}

// inPair tells whether a check is explained in a pair's section.
func (v *view) inPair(f *results.Finding) bool {
	return f.Peer != "" && v.layout(f.Scenario) == results.LayoutPairs
}

// elsewhere tells whether a check's evidence stands in a section of its own.
func (v *view) elsewhere(f *results.Finding) bool { return v.inPair(f) || v.inSync(f) }

// matrices sets sources down and sinks across, for each way to sync, and below what each pair cost.
func (d *composer) matrices(all []*scenario) {
	said := ""
	for _, f := range d.v.checks { // once for all pairs what of the corpus need not come
		if left := referred(f, "rightly"); f.Code == results.CodeHoldsSource && left != "" && !strings.Contains(said, left) {
			said = left
			d.Say("Of the corpus "+left+".", Dim)
		}
	}
	for _, sc := range all {
		var met Groups[rowKey, *results.Finding]
		for _, e := range entries([]*scenario{sc}, nil) {
			met.Add(e.key)
		}
		for _, f := range d.v.checks {
			if f.Scenario == sc.Key && f.Verdict != results.Passed && d.v.inSync(f) {
				met.Add(rowKey{f.Relay, f.Peer}, f)
			}
		}
		slices.SortStableFunc(met.List, func(a, b Group[rowKey, *results.Finding]) int {
			return cmp.Or(d.v.inTurn(a.Key.peer, b.Key.peer), d.v.inTurn(a.Key.relay, b.Key.relay))
		})
		var cells []crossing
		var sinks []string
		var rows []entry
		var found []*results.Finding
		for _, g := range met.List {
			sinks = AddNew(sinks, g.Key.relay)
			e := entry{scenario: sc, key: g.Key, labels: []string{g.Key.peer, g.Key.relay}}
			cells = append(cells, crossing{[]string{g.Key.peer}, g.Key.relay, d.synced(&e, g.Members)})
			if _, r := e.primary(); r != nil && r.m != nil {
				rows = append(rows, e)
			}
			found = append(found, g.Members...)
		}
		d.add(heading{level: 3, title: sc.Title, key: sc.Key})
		slices.SortFunc(sinks, d.v.inTurn)
		d.Table(cross([]string{"from ↓  to →"}, sinks, cells))
		if len(rows) > 0 {
			d.add(gap{})
			d.pivot(&Table{columns: heads("from", "to")}, rows)
		}
		d.explain(slices.DeleteFunc(found, func(f *results.Finding) bool { return f.Code == results.CodeHasWay }))
	}
}

// synced is how fast a sink was filled, or, in red, how much came of what had to come.
func (d *composer) synced(e *entry, found []*results.Finding) Cell {
	b, r := e.primary()
	if r == nil || r.m == nil {
		failed := slices.ContainsFunc(found, func(f *results.Finding) bool { return f.Verdict == results.Failed })
		return d.missing(&row{why: d.v.absence(e.Key, e.key, nil), failed: failed})
	}
	if !r.has || r.whole() {
		return d.value(b, r)
	}
	return Cell{text: e.part(), style: Red, mark: d.foot.sign(r.notes())}
}

// whole tells whether a transfer brought all.
func (r *row) whole() bool { return r.m.Is(results.StatusIncomplete) == nil }

// part is how much came of what had to come. What is more at the sink than it had to get is no part
// of that.
func (e *entry) part() string {
	came, _ := e.value("delivered")
	expected, known := e.value("expected")
	if !known {
		return amount(came) + " of ?"
	}
	if missing, ok := e.value("missing"); ok {
		came = expected - missing
	}
	return amount(min(came, expected)) + " of " + amount(expected)
}

const shownAbove = "the examples are the same as above"

// explain tells of checks on two relays, and each example once: what was lost at first is still
// lost at the end.
func (d *composer) explain(all []*results.Finding) {
	shown := map[string]bool{}
	fresh := func(f *results.Finding, text any) bool {
		k := fmt.Sprint(f.Relay, "\x00", text)
		was := shown[k]
		shown[k] = true
		return !was
	}
	for _, f := range all {
		who, text, sync, to := f.Relay, findingText(f), d.v.inSync(f), everyone
		if sync {
			who = f.Peer + " → " + f.Relay
		}
		if f.Code == results.CodeWatched {
			to = full
			if f.Verdict != results.Passed {
				text = "no timeline, since " + text
			}
		}
		if !fresh(f, who+text) { // a command that failed is said once, and not of the transfer again
			continue
		}
		if f.Verdict == results.Failed && f.Blames != "" && (sync || f.Blames != f.Relay) {
			text += " (at fault: " + f.Blames + ")"
		}
		d.to(to, func() { d.item(signs[f.Verdict], who+": "+text, Plain) })
		if f.Verdict == results.Passed {
			continue
		}
		if f.Verdict == results.Undecided && sync { // what never came has no examples worth the room
			to = full
		}
		examples := slices.DeleteFunc(slices.Clone(f.Evidence), func(e results.Evidence) bool {
			return !fresh(f, evidenceLines([]results.Evidence{e}, false))
		})
		d.to(to, func() {
			if len(examples) == 0 && len(f.Evidence) > 0 {
				d.add(para{indent: 3, text: []Span{{"(" + shownAbove + ")", Dim}}})
			}
			d.evidence(examples, 3, maxProof, " of evidence in report.md")
		})
	}
}

// wayLabels are the labels that a way to download goes by.
var wayLabels = []string{results.LabelStrategy, results.LabelConnections, results.LabelInFlight, results.LabelBatch,
	results.LabelForm, results.LabelEncoding}

const (
	adaptive  = "adaptive" // of REQs in flight: found on the way
	stepTaken = "step"     // events a second at one number of REQs in flight, on the way
)

// wayOf is the strategy of a download, and how it asks by id: connections × REQs in flight on each
// × ids in a REQ.
func wayOf(d *results.Scenario, l results.Labels) string {
	way := cmp.Or(l[results.LabelStrategy], d.Title)
	if l[results.LabelBatch] == "" {
		return way
	}
	inFlight := l[results.LabelInFlight]
	if inFlight == adaptive {
		inFlight = "auto"
	}
	return way + " " + l[results.LabelConnections] + "×" + inFlight + "×" + l[results.LabelBatch]
}

// formOf is what a download does with what comes, and how it comes.
func formOf(l results.Labels) string {
	return l[results.LabelForm] + Prefixed("-", l[results.LabelEncoding])
}

// wayName is a way to download in a sentence.
func wayName(d *results.Scenario, l results.Labels) string {
	return wayOf(d, l) + Prefixed(", ", formOf(l))
}

// formRaw is the form of which a terminal shows all settings.
const formRaw = "raw"

// setting tells whether a download is one of many by id that differ in their settings alone.
func (s *scenario) setting() bool {
	return s.labels[results.LabelBatch] != "" && s.labels[results.LabelInFlight] != adaptive
}

// waysTo lists ways to download, and marks the fastest setting of each relay in each form: of those
// that are complete, if there are any.
func waysTo(all []*scenario) []entry {
	ways := entries(all, func(sc *scenario, k rowKey) []string {
		return []string{wayOf(sc.Scenario, sc.labels), formOf(sc.labels), k.relay}
	})
	var tried Groups[[2]string, *entry]
	for i := range ways {
		e := &ways[i]
		if _, r := e.primary(); r != nil && r.has && e.setting() {
			tried.Add([2]string(e.labels[1:]), e)
		}
	}
	for _, g := range tried.List {
		slices.MaxFunc(g.Members, func(a, b *entry) int {
			_, x := a.primary()
			_, y := b.primary()
			return cmp.Or(boolean(x.whole())-boolean(y.whole()), cmp.Compare(x.value, y.value))
		}).best = true
	}
	return ways
}

// downloads adds every way to download, on a terminal the best setting of each relay and form, and
// all settings as a matrix.
func (d *composer) downloads(all []*scenario) {
	ways := waysTo(all)
	raw := func(e entry) bool { return e.labels[1] == formRaw }
	table := func(rows []entry) {
		d.told = map[string]bool{}
		d.pivot(&Table{columns: heads("", "form", "relay")}, rows)
	}
	d.to(brief, func() {
		table(slices.DeleteFunc(slices.Clone(ways), func(e entry) bool { return e.setting() && !e.best }))
	})
	d.to(full, func() { table(ways) })
	d.to(brief, func() { d.settings(slices.DeleteFunc(slices.Clone(ways), func(e entry) bool { return !raw(e) })) })
	d.to(full, func() { d.settings(ways) })
	if slices.ContainsFunc(ways, func(e entry) bool { return e.setting() && !raw(e) }) {
		d.to(brief, func() { d.Say("The same for the other forms is in report.md.", Dim) })
	}
}

// settings sets those of downloads by id as a matrix, batches and connections down, REQs in flight
// across, with the steps by which a download found that number.
func (d *composer) settings(ways []entry) {
	var cells []crossing
	var across []string
	unit := ""
	for i := range ways {
		e := &ways[i]
		l := e.scenario.labels
		b, r := e.primary()
		if l[results.LabelBatch] == "" || b == nil {
			continue
		}
		unit = b.unit
		row := []string{formOf(l), e.key.relay, l[results.LabelBatch], l[results.LabelConnections]}
		add := func(inFlight string, x Cell) {
			cells = append(cells, crossing{row, inFlight + " in flight", x})
			across = AddNew(across, inFlight+" in flight")
		}
		if e.setting() {
			x := d.value(b, r)
			if e.best {
				x.style = GreenBold
			}
			add(l[results.LabelInFlight], x)
			continue
		}
		row[3] += " (auto)"
		for _, b := range e.facts {
			if r := b.row(e.key); b.metric.Key == stepTaken && r.has {
				add(b.labels[results.LabelStep], d.value(b, r))
			}
		}
	}
	if len(cells) > 0 {
		slices.SortFunc(across, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
		d.add(heading{level: 3, title: WithUnit("by id", unit)})
		d.Table(cross([]string{"form", "relay", "batch", "connections"}, across, cells))
	}
}
