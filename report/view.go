// Package report renders the results record for people: on a terminal and as Markdown. Renderings
// are pure functions of the record.
package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"relaybench/results"
)

// A view is the record arranged for reading, without a word of syntax of any rendering.
type view struct {
	rec       *results.Record // sanitized
	relays    []*results.Relay
	checks    []*results.Finding // all of them
	scenarios map[string]*results.Scenario
	sections  []*section
	paired    *pairing // nil where relays were not reconciled
	trials    int      // the most that any measurement has
}

type section struct {
	title     string
	order     int // of its first scenario
	syncs     []*syncTable
	pairing   *pairing
	download  *download
	tables    []*scenario // in tables that rank nothing
	scenarios []*scenario
}

type scenario struct {
	*results.Scenario
	labels    results.Labels // that all its measurements have
	blocks    []*block       // metrics with a direction
	facts     []*block       // stated, never ranked
	resources []*block
}

// A block is one metric of one scenario with a row for every relay, or pair of relays.
type block struct {
	scenario *results.Scenario
	metric   results.Metric
	labels   results.Labels
	title    string
	own      string // labels that tell it from others of its metric
	unit     string
	better   results.Better
	rows     []*row
	scale    Scale
	ranked   bool   // at least two rows compete
	across   bool   // the competitors' durability classes differ where that decides
	unranked string // why nothing competes, where that is worth saying
	echo     bool   // its best is another block's best for the same reason: no contest of its own
}

type row struct {
	key    rowKey
	name   string
	relay  *results.Relay // nil for a name that the record's relays do not know
	m      *results.Measurement
	has    bool
	value  float64 // median of the trials
	lo, hi float64
	pooled []float64 // of a figure over several pairs: the trials of all of them
	dist   *distribution
	why    string   // where there is no value
	failed bool     // the relay did not come through: why says how
	bars   []string // why it does not compete, though it has a value
	competes,
	best, // shown with a star
	tied, // as good as another one, exactly
	close bool // first, but not significantly
	ratio float64 // how many times the best, 1 or more; 0 where it does not compete
}

// A distribution is what reports show of a histogram, in seconds.
type distribution struct {
	n, clamped               int64
	p50, p90, p99, p999, top float64
}

// rowKey names a row: a relay, or a pair.
type rowKey struct{ relay, peer string }

func (k rowKey) name() string {
	if k.peer == "" {
		return k.relay
	}
	if k.peer == k.relay {
		return k.relay + " (two instances)"
	}
	return k.relay + " with " + k.peer
}

func newView(r *results.Record) *view {
	v := &view{rec: Sanitized(r), scenarios: map[string]*results.Scenario{}}
	for i := range v.rec.Relays {
		v.relays = append(v.relays, &v.rec.Relays[i])
	}
	for i := range v.rec.Measurements {
		v.trials = max(v.trials, len(v.rec.Measurements[i].Trials))
	}
	for i := range v.rec.Findings {
		v.checks = append(v.checks, &v.rec.Findings[i])
	}
	v.arrange()
	return v
}

// RelayOf is the relay of a name in a record, nil where it has none.
func RelayOf(r *results.Record, name string) *results.Relay {
	if i := slices.IndexFunc(r.Relays, func(x results.Relay) bool { return x.Name == name }); i >= 0 {
		return &r.Relays[i]
	}
	return nil
}

func (v *view) relay(name string) *results.Relay { return RelayOf(v.rec, name) }

// OutcomeText says in words how a relay fell out of the run.
func OutcomeText(r *results.Relay) string {
	if text := word("shortage", r.Shortage); text != "" {
		return clauses("could not be measured: "+text, r.Reason)
	}
	word := string(r.Outcome)
	switch {
	case r.Outcome == results.OutcomeNoStart && r.URL != "":
		word = "did not answer"
	case r.Outcome == results.OutcomeNoStart:
		word = "did not start"
	}
	return word + Prefixed(": ", r.Reason)
}

// scenario describes a key; one that the record does not describe stands at the end, under its own
// name.
func (v *view) scenario(key string) *results.Scenario {
	if v.scenarios[key] == nil {
		v.scenarios[key] = v.rec.Scenario(key)
	}
	if v.scenarios[key] == nil {
		v.scenarios[key] = &results.Scenario{Key: key, Title: key, Section: key, Order: math.MaxInt, Layout: results.LayoutBars}
	}
	return v.scenarios[key]
}

// layout is how the figures of a finding's scenario are laid out, which may stand for several:
// "negentropy". It is "" where nothing of it is described.
func (v *view) layout(key string) results.Layout {
	i := slices.IndexFunc(v.rec.Scenarios, func(s results.Scenario) bool { return results.MatchScenario(key+".*", s.Key) })
	if i < 0 {
		return ""
	}
	return v.rec.Scenarios[i].Layout
}

// arrange builds sections, scenarios and blocks in reading order.
func (v *view) arrange() {
	var queries []*scenario
	for _, s := range v.fills(func(m *results.Measurement) bool { return !v.apart(m) }) {
		in := v.sectionFor(s.Scenario)
		in.scenarios = append(in.scenarios, s)
		if primary(s) != nil {
			queries = append(queries, s)
		}
	}
	shareScales(queries)
	if v.paired = v.pairing(); v.paired != nil {
		v.sectionOf(results.LayoutPairs, "Reconciliation").pairing = v.paired
	}
	if tables := v.syncs(); len(tables) > 0 {
		v.sectionOf(results.LayoutMatrix, "Sync").syncs = tables
	}
	if d := v.download(); d != nil {
		v.sectionOf(results.LayoutDownloads, "Fetch").download = d
	}
	v.tables()
	slices.SortStableFunc(v.sections, func(a, b *section) int { return cmp.Compare(a.order, b.order) })
}

// fills builds the scenarios of some measurements, in reading order. Those of one scenario with
// other values of the given labels are another one.
func (v *view) fills(in func(*results.Measurement) bool, labels ...string) (all []*scenario) {
	type key struct{ scenario, labels string }
	var members Groups[key, *results.Measurement]
	for i := range v.rec.Measurements {
		if m := &v.rec.Measurements[i]; in(m) {
			members.Add(key{m.Scenario, LabelText(m.Labels, labels)}, m)
		}
	}
	for _, g := range members.List {
		all = append(all, v.fill(v.scenario(g.Key.scenario), g.Members))
	}
	slices.SortStableFunc(all, func(a, b *scenario) int { return cmp.Compare(a.Order, b.Order) })
	return all
}

// apart tells whether a measurement stands in a table of another layout. What a relay consumed
// stands with the other resources.
func (v *view) apart(m *results.Measurement) bool {
	return v.in(m, results.LayoutPairs) || v.in(m, results.LayoutMatrix) || v.in(m, results.LayoutDownloads) || v.in(m, results.LayoutTable)
}

// laid fills the scenarios of a layout, whose figures of one unit are shown in one size.
func (v *view) laid(layout results.Layout, labels ...string) []*scenario {
	all := v.fills(func(m *results.Measurement) bool { return v.in(m, layout) }, labels...)
	shareScales(all)
	return all
}

// in tells whether a measurement stands in the table of a layout.
func (v *view) in(m *results.Measurement, layout results.Layout) bool {
	if v.scenario(m.Scenario).Layout != layout || v.rec.Metric(m.Metric).Role == results.RoleResource {
		return false
	}
	switch layout {
	case results.LayoutDownloads:
		return m.Labels[results.LabelForm] != ""
	case results.LayoutTable:
		return true
	}
	return m.Peer != ""
}

// shareScales shows figures of one unit in one size in all scenarios of a table.
func shareScales(all []*scenario) {
	var blocks []*block
	for _, s := range all {
		blocks = append(blocks, s.all()...)
	}
	values := shownBy(blocks)
	for _, b := range blocks {
		amount, _, _ := strings.Cut(b.unit, "/")
		if b.scale = ScaleFor(b.unit, values[b.unit]); b.metric.Key == b.unit && byteBases[amount] != 0 {
			b.scale = Scale{factor: 1} // which its name says
		}
	}
}

// shownBy lists the figures of blocks by unit.
func shownBy(blocks []*block) map[string][]float64 {
	values := map[string][]float64{}
	for _, b := range blocks {
		for _, r := range b.rows {
			values[b.unit] = append(values[b.unit], r.shown(b.unit)...)
		}
	}
	return values
}

// sectionOf returns the section of a layout's scenarios, under a name of ours where none is
// described.
func (v *view) sectionOf(layout results.Layout, title string) *section {
	i := slices.IndexFunc(v.rec.Scenarios, func(s results.Scenario) bool { return s.Layout == layout })
	if i < 0 {
		return v.sectionFor(&results.Scenario{Section: title, Order: math.MaxInt})
	}
	return v.sectionFor(&v.rec.Scenarios[i])
}

// sectionFor returns a scenario's section, which it makes where there is none.
func (v *view) sectionFor(d *results.Scenario) *section {
	i := slices.IndexFunc(v.sections, func(s *section) bool { return s.title == d.Section })
	if i < 0 {
		i = len(v.sections)
		v.sections = append(v.sections, &section{title: d.Section, order: d.Order})
	}
	v.sections[i].order = min(v.sections[i].order, d.Order)
	return v.sections[i]
}

// fill builds the blocks of measurements of one scenario.
func (v *view) fill(d *results.Scenario, ms []*results.Measurement) *scenario {
	s := &scenario{Scenario: d, labels: common(ms)}
	// Under one name but in two units, or under other labels, there are two metrics.
	type metricKey struct {
		metric, unit, labels string
		better               results.Better
	}
	var metrics Groups[metricKey, *results.Measurement]
	for _, m := range ms {
		metrics.Add(metricKey{m.Metric, m.Unit, LabelKey(m.Labels), m.Better}, m)
	}
	slices.SortStableFunc(metrics.List, func(a, b Group[metricKey, *results.Measurement]) int {
		return cmp.Compare(v.metricRank(a.Key.metric), v.metricRank(b.Key.metric))
	})
	keys := v.rowKeys(ms)
	agreeing := v.agreement(ms)
	for _, g := range metrics.List {
		b := &block{scenario: d, metric: v.rec.Metric(g.Key.metric), unit: g.Key.unit, better: g.Key.better, labels: g.Members[0].Labels}
		b.title = b.metric.Title
		own := slices.DeleteFunc(slices.Collect(maps.Keys(b.labels)), func(name string) bool {
			_, shared := s.labels[name]
			return shared
		})
		if b.own = LabelText(b.labels, inOrder(own)); b.own != "" {
			b.title += ": " + b.own
		}
		found := map[rowKey]*results.Measurement{}
		for _, m := range g.Members {
			found[rowKey{m.Relay, m.Peer}] = m
		}
		for _, k := range keys {
			b.rows = append(b.rows, v.row(b, k, found[k]))
		}
		b.scale = ScaleFor(b.unit, shownBy([]*block{b})[b.unit])
		directed := (b.better == results.Higher || b.better == results.Lower) && d.Layout != results.LayoutMatrix && d.Layout != results.LayoutTable
		switch {
		case !directed && b.metric.Role == results.RoleResource:
			s.resources = append(s.resources, b)
		case !directed:
			s.facts = append(s.facts, b)
		default:
			v.rank(b, agreeing)
			s.blocks = append(s.blocks, b)
		}
	}
	shareUnits(s.all())
	findEchoes(s)
	return s
}

// common are the labels that all measurements have alike.
func common(ms []*results.Measurement) results.Labels {
	shared := maps.Clone(ms[0].Labels)
	for _, m := range ms {
		maps.DeleteFunc(shared, func(name, value string) bool { return m.Labels[name] != value })
	}
	return shared
}

// metricRank is a metric's place in reading order; the largest for those that are not described.
func (v *view) metricRank(key string) uint {
	return uint(slices.IndexFunc(v.rec.Metrics, func(m results.Metric) bool { return m.Key == key }))
}

// shareUnits shows neighbouring times, and neighbouring sizes, in one unit.
func shareUnits(blocks []*block) {
	values := shownBy(blocks)
	for _, b := range blocks {
		amount, _, _ := strings.Cut(b.unit, "/")
		if timeBases[b.unit] != 0 || byteBases[amount] != 0 {
			whole := b.scale.whole
			b.scale = ScaleFor(b.unit, values[b.unit])
			b.scale.whole = b.scale.whole || whole && b.scale.factor == 1
		}
	}
}

// rowKeys lists the rows of a scenario: all relays of the run, or the pairs that were measured
// where it has pairs.
func (v *view) rowKeys(ms []*results.Measurement) (keys []rowKey) {
	var found Groups[rowKey, *results.Measurement]
	if !slices.ContainsFunc(ms, func(m *results.Measurement) bool { return m.Peer != "" }) {
		for _, r := range v.relays {
			found.Add(rowKey{relay: r.Name})
		}
	}
	for _, m := range ms {
		found.Add(rowKey{m.Relay, m.Peer})
	}
	for _, g := range found.List {
		keys = append(keys, g.Key)
	}
	return keys
}

// nothing stands where there was nothing to count.
const nothing = "–"

func (v *view) row(b *block, k rowKey, m *results.Measurement) *row {
	r := &row{key: k, name: k.name(), relay: v.relay(k.relay), m: m}
	if m != nil {
		r.value, r.has = m.Value()
		r.lo, r.hi = m.Range()
		r.dist = distributionOf(m)
	}
	if r.has && b.better != results.None { // what is merely stated competes with nothing
		r.bars = v.bars(m)
	}
	switch {
	case r.has:
	case m == nil && b.labels[results.LabelReason] != "" && (r.relay == nil || r.relay.Outcome == results.OutcomeOK):
		r.why = nothing // it refused nothing for that reason
	case r.relay != nil && r.relay.Outcome != results.OutcomeOK:
		r.why, r.failed = OutcomeText(r.relay), r.relay.Outcome != results.OutcomeSkipped
	default:
		r.why = v.absence(b.scenario.Key, k, m)
	}
	return r
}

// absence is why there is no figure.
func (v *view) absence(scenario string, k rowKey, m *results.Measurement) string {
	if m != nil && len(m.Status) > 0 {
		return statusText(&m.Status[0])
	}
	for _, f := range v.checks {
		if f.Code == results.CodeMeasurable && f.Relay == k.relay && f.Peer == k.peer && f.Verdict != results.Passed &&
			results.MatchScenario(f.Scenario+".*", scenario) {
			return findingText(f)
		}
	}
	why := v.bars(&results.Measurement{Relay: k.relay, Peer: k.peer, Scenario: scenario})
	return cmp.Or(strings.Join(why, "; "), "not measured")
}

// shown lists the figures of a row that a block's scale has to suit, in its unit.
func (r *row) shown(unit string) []float64 {
	if !r.has {
		return nil
	}
	if base := timeBases[unit]; base != 0 && r.dist != nil {
		return []float64{r.value, r.dist.p99 / base}
	}
	return []float64{r.value}
}

func distributionOf(m *results.Measurement) *distribution {
	if m.Histogram == "" {
		return nil
	}
	h, err := results.DecodeHistogram(m.Histogram)
	if err != nil || h.Count() == 0 {
		return nil
	}
	q := func(q float64) float64 { return h.Quantile(q).Seconds() }
	return &distribution{n: h.Count(), clamped: m.Clamped, p50: q(0.5), p90: q(0.9), p99: q(0.99), p999: q(0.999), top: h.Max().Seconds()}
}
