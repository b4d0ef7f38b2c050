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
	rec      *results.Record // sanitized
	relays   []*results.Relay
	checks   []*results.Finding // all of them
	sections []*section
	trials   int // the most that any measurement has
}

type section struct {
	title     string
	order     int // of its first scenario
	scenarios []*scenario
	pairs     []*pair
	summary   []*block // of the pairs: a row for each relay as the server
	alone     []fact   // relays that are in no pair, with the reason
}

// A scenario is the figures of one scenario that are laid out alike, and that the labels by which
// its layout tells rows apart do not tell apart.
type scenario struct {
	*results.Scenario
	layout    results.Layout
	labels    results.Labels // that all its measurements have
	blocks    []*block       // metrics with a direction
	facts     []*block       // stated, never ranked
	resources []*block
}

// all are the metrics of a scenario but what it consumed.
func (s *scenario) all() []*block { return slices.Concat(s.blocks, s.facts) }

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
	value  float64   // median of the trials
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
	v := &view{rec: Sanitized(r)}
	for i := range v.rec.Relays {
		v.relays = append(v.relays, &v.rec.Relays[i])
	}
	for i := range v.rec.Measurements {
		v.trials = max(v.trials, len(v.rec.Measurements[i].Trials))
	}
	for i := range v.rec.Findings {
		v.checks = append(v.checks, &v.rec.Findings[i])
	}
	v.rec.Metrics = append([]results.Metric{{Key: ofInitial, Title: ofInitial, Role: results.RoleFigure}}, v.rec.Metrics...)
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
	if s := v.rec.Scenario(key); s != nil {
		return s
	}
	return &results.Scenario{Key: key, Title: key, Section: key, Order: math.MaxInt, Layout: results.LayoutBars}
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
	for _, s := range v.fills() {
		in := v.sectionFor(s.Scenario)
		in.scenarios = append(in.scenarios, s)
	}
	for _, f := range v.checks { // on ways to sync of which nothing was measured
		if f.Verdict == results.Passed || !v.inSync(f) {
			continue
		}
		in := v.sectionOf(results.LayoutMatrix, "Sync")
		if !slices.ContainsFunc(in.scenarios, func(s *scenario) bool { return s.Key == f.Scenario && s.layout == results.LayoutMatrix }) {
			in.scenarios = append(in.scenarios, &scenario{Scenario: v.scenario(f.Scenario), layout: results.LayoutMatrix})
		}
	}
	v.pair()
	for _, s := range v.sections {
		slices.SortStableFunc(s.scenarios, func(a, b *scenario) int { return cmp.Compare(a.Order, b.Order) })
		for _, g := range s.layouts() {
			var blocks []*block
			for _, sc := range g {
				blocks = append(blocks, sc.all()...)
			}
			sameSize(blocks, g[0].layout)
		}
	}
	slices.SortStableFunc(v.sections, func(a, b *section) int { return cmp.Compare(a.order, b.order) })
}

// layouts are the scenarios of a section that are laid out together: those with bars each alone.
func (s *section) layouts() (all [][]*scenario) {
	type key struct {
		layout results.Layout
		alone  *scenario
	}
	var by Groups[key, *scenario]
	for _, sc := range s.scenarios {
		k := key{layout: sc.layout}
		if sc.layout == results.LayoutBars {
			k.alone = sc
		}
		by.Add(k, sc)
	}
	for _, g := range by.List {
		all = append(all, g.Members)
	}
	return all
}

// fills builds the scenarios of all measurements, in reading order.
func (v *view) fills() (all []*scenario) {
	type key struct {
		scenario string
		layout   results.Layout
		labels   string
	}
	var members Groups[key, *results.Measurement]
	for _, m := range v.figures() {
		d, layout := v.scenario(m.Scenario), v.layoutOf(m)
		apart := map[results.Layout][]string{results.LayoutTable: slices.Concat(d.Tables, d.Rows), results.LayoutDownloads: wayLabels}[layout]
		members.Add(key{m.Scenario, layout, LabelText(m.Labels, apart)}, m)
	}
	for _, g := range members.List {
		all = append(all, v.fill(v.scenario(g.Key.scenario), g.Key.layout, g.Members))
	}
	return all
}

// layoutOf is how a measurement is laid out. What a relay consumed, and what lacks the labels of
// its scenario's layout, stands by itself.
func (v *view) layoutOf(m *results.Measurement) results.Layout {
	layout := v.scenario(m.Scenario).Layout
	paired := layout == results.LayoutPairs || layout == results.LayoutMatrix
	consumed := layout != results.LayoutQueries && v.rec.Metric(m.Metric).Role == results.RoleResource
	if layout == "" || consumed || paired && m.Peer == "" || layout == results.LayoutDownloads && m.Labels[results.LabelForm] == "" {
		return results.LayoutBars
	}
	return layout
}

// sameSize shows figures of one unit in one size; of bars times and sizes alone. In tables that rank
// nothing those of one metric are, and times stay as they were recorded, since they differ by orders
// of magnitude.
func sameSize(blocks []*block, layout results.Layout) {
	type key struct{ unit, metric, own string }
	keyOf := func(b *block) key {
		if layout == results.LayoutTable {
			return key{b.unit, b.metric.Key, b.own}
		}
		return key{unit: b.unit}
	}
	values := map[key][]float64{}
	for _, b := range blocks {
		values[keyOf(b)] = append(values[keyOf(b)], b.shown()...)
	}
	for _, b := range blocks {
		amount, _, _ := strings.Cut(b.unit, "/")
		bars, time, size := layout == results.LayoutBars, timeBases[b.unit] != 0, byteBases[amount] != 0
		own := ScaleFor(b.unit, b.shown())
		switch {
		case bars && !time && !size:
			b.scale = own
		case layout == results.LayoutTable && time:
			b.scale = Scale{factor: 1, suffix: " " + b.unit}
		case !bars && size && b.metric.Key == b.unit:
			b.scale = Scale{factor: 1} // which its name says
		default:
			b.scale = ScaleFor(b.unit, values[keyOf(b)])
			b.scale.whole = b.scale.whole || bars && own.whole && b.scale.factor == 1
		}
	}
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
func (v *view) fill(d *results.Scenario, layout results.Layout, ms []*results.Measurement) *scenario {
	s := &scenario{Scenario: d, layout: layout, labels: maps.Clone(ms[0].Labels)}
	// Under one name but in two units, or under other labels, there are two metrics.
	type metricKey struct {
		metric, unit, labels string
		better               results.Better
	}
	var metrics Groups[metricKey, *results.Measurement]
	for _, m := range ms {
		metrics.Add(metricKey{m.Metric, m.Unit, LabelKey(m.Labels), m.Better}, m)
		maps.DeleteFunc(s.labels, func(name, value string) bool { return m.Labels[name] != value })
	}
	slices.SortStableFunc(metrics.List, func(a, b Group[metricKey, *results.Measurement]) int {
		return cmp.Compare(v.metricRank(a.Key.metric), v.metricRank(b.Key.metric))
	})
	keys := v.rowKeys(ms)
	agreeing := v.agreement(ms)
	for _, g := range metrics.List {
		b := &block{scenario: d, metric: v.rec.Metric(g.Key.metric), unit: g.Key.unit, better: g.Key.better, labels: g.Members[0].Labels}
		own := maps.Clone(b.labels)
		maps.DeleteFunc(own, func(name, _ string) bool { _, shared := s.labels[name]; return shared })
		b.own = allLabels(own)
		b.title = b.metric.Title + Prefixed(": ", b.own)
		found := map[rowKey]*results.Measurement{}
		for _, m := range g.Members {
			found[rowKey{m.Relay, m.Peer}] = m
		}
		for _, k := range keys {
			b.rows = append(b.rows, v.row(b, k, found[k]))
		}
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
	findEchoes(s)
	return s
}

// allLabels says all labels in words.
func allLabels(l results.Labels) string { return LabelText(l, inOrder(slices.Collect(maps.Keys(l)))) }

// unknown is the place of what the record does not describe: behind all else.
const unknown = math.MaxUint

// metricRank is a metric's place in reading order.
func (v *view) metricRank(key string) uint {
	return uint(slices.IndexFunc(v.rec.Metrics, func(m results.Metric) bool { return m.Key == key }))
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

const (
	nothing     = "–" // stands where there was nothing to count
	notMeasured = "not measured"
)

func (v *view) row(b *block, k rowKey, m *results.Measurement) *row {
	r := &row{key: k, name: k.name(), relay: v.relay(k.relay), m: m}
	if m != nil {
		r.value, r.has = m.Value()
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
		if (f.Code == results.CodeMeasurable || f.Code == results.CodeHasWay) && f.Relay == k.relay && f.Peer == k.peer &&
			f.Verdict != results.Passed && results.MatchScenario(f.Scenario+".*", scenario) {
			return findingText(f)
		}
	}
	why := v.bars(&results.Measurement{Relay: k.relay, Peer: k.peer, Scenario: scenario})
	return cmp.Or(strings.Join(why, "; "), notMeasured)
}

// shown lists the figures that a block's scale has to suit, in its unit.
func (b *block) shown() (values []float64) {
	base := timeBases[b.unit]
	for _, r := range b.rows {
		if r.has {
			values = append(values, r.value)
		}
		if r.has && base != 0 && r.dist != nil {
			values = append(values, r.dist.p99/base)
		}
	}
	return values
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
