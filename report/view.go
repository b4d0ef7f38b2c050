// Package report renders the results record for people: on a terminal and as Markdown. Renderings are pure functions of the record.
package report

import (
	"cmp"
	"slices"
	"strings"

	"relaybench/harness/measure"
)

// A view is the record arranged for reading, without a word of syntax of any rendering.
type view struct {
	rec      *measure.Record // sanitized
	relays   []*measure.Relay
	barred   map[string]string  // by relay: why none of its rows may win
	checks   []*measure.Finding // without those that state what a relay can do
	paired   *pairing           // nil where relays were not reconciled
	sections []*section
	trials   int // the most that any measurement has
}

type section struct {
	title     string
	syncs     []*syncTable
	pairing   *pairing
	download  *download
	scenarios []*scenario
}

type scenario struct {
	key       string
	title     string
	blocks    []*block // metrics with a direction
	facts     []*block // stated, never ranked
	resources []*block
}

// A block is one metric of one scenario with a row for every relay, or pair of relays.
type block struct {
	scenario, metric, title string
	unit                    string
	better                  measure.Better
	rows                    []*row
	scale                   scale
	ranked                  bool   // at least two rows compete
	across                  bool   // the competitors' durability classes differ where that decides
	unranked                string // why nothing competes, where that is worth saying
	echo                    bool   // the best in it is the best in another block for the same reason: no contest of its own
}

type row struct {
	name   string
	relay  *measure.Relay // nil for a name that the record's relays do not know
	m      *measure.Measurement
	has    bool
	value  float64 // median of the trials
	lo, hi float64
	pooled []float64 // of a figure over several pairs: the trials of all of them
	dist   *distribution
	why    string // where there is no value
	failed bool   // the relay did not come through: why says how
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

func newView(r *measure.Record) *view {
	v := &view{rec: sanitized(r), barred: map[string]string{}}
	for i := range v.rec.Relays {
		v.relays = append(v.relays, &v.rec.Relays[i])
	}
	for i := range v.rec.Measurements {
		v.trials = max(v.trials, len(v.rec.Measurements[i].Trials))
	}
	for _, r := range v.relays {
		switch {
		case r.Outcome != measure.OutcomeOK:
			v.barred[r.Name] = outcomeText(r)
		case r.NeverRanked != "":
			v.barred[r.Name] = r.NeverRanked
		}
	}
	for i := range v.rec.Findings {
		f := &v.rec.Findings[i]
		if isStatement(f) {
			continue
		}
		v.checks = append(v.checks, f)
		switch {
		case f.OK || !f.Required || v.barred[f.Relay] != "" || !v.global(f):
		case showsLoss(f):
			v.barred[f.Relay] = "lost events that it had acknowledged (" + f.Scenario + with(f) + ")"
		default:
			v.barred[f.Relay] = "failed a required check: " + f.Check
		}
	}
	v.paired = v.pairing()
	v.arrange()
	return v
}

func (v *view) relay(name string) *measure.Relay {
	i := slices.IndexFunc(v.relays, func(r *measure.Relay) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return v.relays[i]
}

// outcomeText says in words how a relay fell out of the run.
func outcomeText(r *measure.Relay) string {
	reason := strings.TrimPrefix(r.Reason, r.Name+" ") // who failed is said beside it
	if strings.HasPrefix(reason, "failed ") && r.Outcome == measure.OutcomeFailed {
		return reason
	}
	word := map[measure.Outcome]string{measure.OutcomeFailed: "failed", measure.OutcomeNoStart: "did not start", measure.OutcomeSkipped: "skipped"}[r.Outcome]
	if word == "" {
		word = string(r.Outcome)
	}
	if reason == "" {
		return word
	}
	return word + ": " + reason
}

// global tells whether a finding speaks of the relay as a whole: of the preflight, or of no scenario that was measured.
// One of a pair may be the other's fault, and does so only where it proves a loss.
func (v *view) global(f *measure.Finding) bool {
	if f.Peer != "" {
		return showsLoss(f)
	}
	// What was lost need not be found, kept or returned any more: it makes a relay fast in everything.
	if f.Check == checkKept {
		return true
	}
	if f.Scenario == "" || f.Scenario == "preflight" {
		return true
	}
	return !slices.ContainsFunc(v.rec.Measurements, func(m measure.Measurement) bool { return within(m.Scenario, f.Scenario) })
}

// within tells whether a scenario is the one named, or one below it.
func within(scenario, name string) bool {
	return scenario == name || strings.HasPrefix(scenario, name+".")
}

// arrange builds sections, scenarios and blocks in reading order: what titles.go knows first, then as recorded.
func (v *view) arrange() {
	byKey := map[string]*scenario{}
	var order []*scenario
	members := map[string][]*measure.Measurement{}
	for i := range v.rec.Measurements {
		m := &v.rec.Measurements[i]
		if paired(m) || isSync(m.Scenario, m.Peer) || fetched(m) {
			continue
		}
		if byKey[m.Scenario] == nil {
			_, title := scenarioTitle(m.Scenario)
			if _, f := form(m.Scenario); f != "" {
				title += ", " + f
			}
			byKey[m.Scenario] = &scenario{key: m.Scenario, title: title}
			order = append(order, byKey[m.Scenario])
		}
		members[m.Scenario] = append(members[m.Scenario], m)
	}
	slices.SortStableFunc(order, func(a, b *scenario) int {
		ra, ta := sectionOf(a.key)
		rb, tb := sectionOf(b.key)
		sa, _ := scenarioTitle(a.key)
		sb, _ := scenarioTitle(b.key)
		ka, fa := form(a.key)
		kb, fb := form(b.key)
		return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(ta, tb), cmp.Compare(sa, sb), cmp.Compare(ka, kb), cmp.Compare(fa, fb))
	})
	for _, s := range order {
		v.fill(s, members[s.key])
		_, title := sectionOf(s.key)
		if n := len(v.sections); n == 0 || v.sections[n-1].title != title {
			v.sections = append(v.sections, &section{title: title})
		}
		last := v.sections[len(v.sections)-1]
		last.scenarios = append(last.scenarios, s)
	}
	var queries []*scenario
	for _, s := range order {
		if primary(s) != nil {
			queries = append(queries, s)
		}
	}
	for _, metrics := range [][]string{{"eose", "first event"}, {"events/s"}, {"queries/s"}} {
		shareScale(queries, metrics...)
	}
	if v.paired != nil {
		v.sectionFor(reconciliation).pairing = v.paired
	}
	if tables := v.syncs(); len(tables) > 0 {
		v.sectionFor(syncing).syncs = tables
	}
	if d := v.download(); d != nil {
		v.sectionFor(downloading).download = d
	}
}

// shareScale shows metrics in the same unit in all of some scenarios.
func shareScale(list []*scenario, names ...string) {
	var values []float64
	var members []*block
	for _, s := range list {
		for _, name := range names {
			if b := metric(s, name); b != nil && (len(members) == 0 || b.unit == members[0].unit) {
				members = append(members, b)
				for _, r := range b.rows {
					values = append(values, r.shown(b.unit)...)
				}
			}
		}
	}
	for _, b := range members {
		b.scale = scaleFor(b.unit, values)
	}
}

// sectionFor returns the section of a family of scenarios, which it makes where there is none.
func (v *view) sectionFor(family string) *section {
	rank, title := sectionOf(family)
	i := slices.IndexFunc(v.sections, func(s *section) bool {
		r, _ := sectionOf(s.family())
		return r >= rank
	})
	if i < 0 {
		i = len(v.sections)
	}
	if i == len(v.sections) || v.sections[i].title != title {
		v.sections = slices.Insert(v.sections, i, &section{title: title})
	}
	return v.sections[i]
}

// family is a scenario that belongs to the section.
func (s *section) family() string {
	switch {
	case s.pairing != nil:
		return reconciliation
	case s.syncs != nil:
		return syncing
	case s.download != nil:
		return downloading
	case len(s.scenarios) > 0:
		return s.scenarios[0].key
	}
	return ""
}

func (v *view) fill(s *scenario, ms []*measure.Measurement) {
	keys := v.rowKeys(ms)
	// Under one name but in two units there are two metrics.
	type metricKey struct {
		metric, unit string
		better       measure.Better
	}
	found := map[metricKey]map[rowKey]*measure.Measurement{}
	var metrics []metricKey
	for _, m := range ms {
		k := metricKey{m.Metric, m.Unit, m.Better}
		if found[k] == nil {
			found[k] = map[rowKey]*measure.Measurement{}
			metrics = append(metrics, k)
		}
		found[k][rowKey{m.Relay, m.Peer}] = m
	}
	slices.SortStableFunc(metrics, func(a, b metricKey) int {
		ra, _ := metricTitle(a.metric)
		rb, _ := metricTitle(b.metric)
		return cmp.Compare(ra, rb)
	})
	agreeing := v.agreement(ms)
	for _, k := range metrics {
		_, title := metricTitle(k.metric)
		b := &block{scenario: s.key, metric: k.metric, title: title, unit: k.unit, better: k.better}
		var values []float64
		for _, rk := range keys {
			r := v.row(s.key, k.metric, rk, found[k][rk])
			b.rows = append(b.rows, r)
			values = append(values, r.shown(b.unit)...)
		}
		b.scale = scaleFor(b.unit, values)
		switch {
		case b.better != measure.Higher && b.better != measure.Lower && isResource(b.metric):
			s.resources = append(s.resources, b)
		case b.better != measure.Higher && b.better != measure.Lower:
			s.facts = append(s.facts, b)
		default:
			v.rank(b, agreeing)
			s.blocks = append(s.blocks, b)
		}
	}
	shareUnits(slices.Concat(s.blocks, s.facts))
	findEchoes(s)
}

// shareUnits shows neighbouring times, and neighbouring sizes, in one unit.
func shareUnits(blocks []*block) {
	values := map[string][]float64{}
	for _, b := range blocks {
		for _, r := range b.rows {
			values[b.unit] = append(values[b.unit], r.shown(b.unit)...)
		}
	}
	for _, b := range blocks {
		amount, _, _ := strings.Cut(b.unit, "/")
		if timeBases[b.unit] != 0 || byteBases[amount] != 0 {
			whole := b.scale.whole
			b.scale = scaleFor(b.unit, values[b.unit])
			b.scale.whole = b.scale.whole || whole && b.scale.factor == 1
		}
	}
}

// rowKeys lists the rows of a scenario: all relays of the run, or the pairs that were measured where it has pairs.
func (v *view) rowKeys(ms []*measure.Measurement) []rowKey {
	var keys []rowKey
	pairs := slices.ContainsFunc(ms, func(m *measure.Measurement) bool { return m.Peer != "" })
	if !pairs {
		for _, r := range v.relays {
			keys = append(keys, rowKey{relay: r.Name})
		}
	}
	seen := map[rowKey]bool{}
	for _, k := range keys {
		seen[k] = true
	}
	for _, m := range ms {
		if k := (rowKey{m.Relay, m.Peer}); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// refusedFor is how a metric's name begins that counts the events refused for one reason.
const refusedFor = "rejected: "

// has tells whether a row has a metric.
func (v *view) has(scenario string, k rowKey, metric string) bool {
	return slices.ContainsFunc(v.rec.Measurements, func(m measure.Measurement) bool {
		return m.Scenario == scenario && m.Metric == metric && m.Relay == k.relay && m.Peer == k.peer
	})
}

// nothing stands where there was nothing to count.
const nothing = "–"

func (v *view) row(scenario, metric string, k rowKey, m *measure.Measurement) *row {
	r := &row{name: k.name(), relay: v.relay(k.relay), m: m}
	if m != nil {
		r.value, r.has = m.Value()
		r.lo, r.hi = m.Range()
		r.dist = distributionOf(m)
	}
	if r.has {
		return r
	}
	switch {
	case m == nil && strings.HasPrefix(metric, refusedFor) && v.has(scenario, k, "rejected"):
		r.why = nothing // it refused nothing for that reason
	case r.relay != nil && r.relay.Outcome != measure.OutcomeOK:
		r.why, r.failed = outcomeText(r.relay), true
	case m != nil && m.Note != "":
		r.why = "n/a: " + m.Note
	case m == nil && r.relay != nil && r.relay.URL != "" && scenario == "storage":
		r.why = "n/a: it ran already, and its disk is out of sight"
	default:
		r.why = "n/a: not measured"
	}
	return r
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

func distributionOf(m *measure.Measurement) *distribution {
	if m.Histogram == "" {
		return nil
	}
	h, err := measure.DecodeHistogram(m.Histogram)
	if err != nil || h.Count() == 0 {
		return nil
	}
	q := func(q float64) float64 { return h.Quantile(q).Seconds() }
	return &distribution{n: h.Count(), clamped: m.Clamped, p50: q(0.5), p90: q(0.9), p99: q(0.99), p999: q(0.999), top: h.Max().Seconds()}
}
