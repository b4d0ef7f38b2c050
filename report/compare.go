package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"relaybench/results"
)

// Side is one side of a comparison: a name for it, and records whose trials are taken together.
type Side struct {
	Label   string
	Records []*results.Record
}

// CompareOptions say what a comparison is about.
type CompareOptions struct {
	Force bool // compare what is not comparable, and say so
	All   bool // also the figures without a direction
}

// Comparison is two sides, figure by figure. It is a pure function of the records, and every string
// in it is safe to show.
type Comparison struct {
	Old, New    Side
	Differences []Difference // why the sides are not comparable; empty unless forced
	Cautions    []string     // what a reader must know besides
	Relays      []RelayComparison
	Unmatched   []string // relays that one side alone has
}

// RelayComparison is one relay on both sides.
type RelayComparison struct {
	Old, New string // its name on each side
	Figures  []Figure
}

// Figure is one metric of one scenario on both sides.
type Figure struct {
	Scenario, Metric, Unit string
	Labels                 results.Labels
	Peer                   string // of a pair; "itself" for a second instance of the same relay
	Better                 results.Better
	Exact                  bool // compared value by value, not by statistics
	Old, New               results.Summary
	Test                   results.Comparison
	Outcome                FigureOutcome

	title         string   // of the metric, with its key where another of the place is called the same
	telling       []string // the labels that tell it from others of its scenario
	before, after []float64
}

// FigureOutcome says in a word how a figure moved.
type FigureOutcome string

// The outcomes. Those of figures that are not exact rest on significance at results.Alpha, each
// figure by itself.
const (
	Improved  FigureOutcome = "better"
	Worsened  FigureOutcome = "worse"
	Changed   FigureOutcome = "changed"  // significantly, or exactly, where neither direction is better
	Unsettled FigureOutcome = "~"        // no significant difference
	Equal     FigureOutcome = "="        // exactly the same
	OldAlone  FigureOutcome = "only old" // not measured on the new side
	NewAlone  FigureOutcome = "only new" // not measured on the old side

	// Incomplete figures are not compared: on one side or both they are of a transfer that did not
	// bring all, or were taken while the harness was away.
	Incomplete FigureOutcome = "incomplete"
)

const (
	itselfPeer       = "itself"     // how a second instance of a relay is called in a comparison
	oldName, newName = "old", "new" // the sides, where there is no better label
)

// Worse is how much worse the new median is, as a share of the old one: 0.1 for 10 % worse,
// negative where it is better; NaN where that cannot be said.
func (f *Figure) Worse() float64 {
	switch f.Better {
	case results.Higher:
		return -f.Test.Delta
	case results.Lower:
		return f.Test.Delta
	}
	return math.NaN()
}

// name is how a figure is called in prose.
func (f *Figure) name() string {
	name := f.place() + " " + f.Metric + prefixed(": ", f.Labels[results.LabelReason])
	if f.Peer != "" {
		name += " with " + f.Peer
	}
	return name
}

// place is the scenario of a figure, with the labels that tell it from others there.
func (f *Figure) place() string {
	names := slices.DeleteFunc(slices.Clone(f.telling), func(name string) bool { return name == results.LabelReason })
	if text := labelText(f.Labels, names); text != "" {
		return f.Scenario + ", " + text
	}
	return f.Scenario
}

// same tells whether another figure is of the same thing.
func (f *Figure) same(o *Figure) bool {
	return f.Scenario == o.Scenario && f.Metric == o.Metric && f.Peer == o.Peer && f.Unit == o.Unit && f.Labels.Equal(o.Labels)
}

// IncomparableError says why two sides must not be compared.
type IncomparableError struct{ Differences []Difference }

func (e *IncomparableError) Error() string {
	lines := []string{"the results are not comparable, because they were not measured alike:"}
	for _, d := range e.Differences {
		lines = append(lines, "  "+d.String())
	}
	return strings.Join(lines, "\n")
}

// Compare compares two sides. It refuses with an *IncomparableError where corpus, settings or
// machine differ, unless o.Force is set. Relays are matched by name; where each side has a single
// relay, they are matched whatever they are called.
func Compare(before, after Side, o CompareOptions) (*Comparison, error) {
	if len(before.Records) == 0 || len(after.Records) == 0 {
		return nil, errors.New("a comparison needs results on both sides")
	}
	c := &Comparison{Old: cleanSide(before, oldName), New: cleanSide(after, newName)}
	c.Differences = differences(slices.Concat(c.Old.Records, c.New.Records)...)
	if len(c.Differences) > 0 && !o.Force {
		return nil, &IncomparableError{c.Differences}
	}
	c.Cautions = cautions(c.Old.Records, c.New.Records)
	olds, news := relayNames(c.Old.Records), relayNames(c.New.Records)
	match := func(name string) (string, bool) {
		if len(olds) == 1 && len(news) == 1 {
			return news[0], true
		}
		return name, slices.Contains(news, name)
	}
	matched := map[string]bool{}
	for _, name := range olds {
		other, ok := match(name)
		if !ok {
			c.Unmatched = append(c.Unmatched, fmt.Sprintf("%s is in %s alone", name, c.Old.Label))
			continue
		}
		matched[other] = true
		r := compareRelay(c.Old.Records, name, c.New.Records, other)
		if !o.All {
			r.Figures = slices.DeleteFunc(r.Figures, func(f Figure) bool {
				return !f.Exact && f.Better != results.Higher && f.Better != results.Lower
			})
		}
		c.Relays = append(c.Relays, r)
	}
	for _, name := range news {
		if !matched[name] {
			c.Unmatched = append(c.Unmatched, fmt.Sprintf("%s is in %s alone", name, c.New.Label))
		}
	}
	if c.undecidable() {
		c.Cautions = append(c.Cautions, fmt.Sprintf("So few trials can never be significant: measure with --trials %d, or give several files a side.", results.EnoughTrials))
	}
	return c, nil
}

// undecidable tells whether there are figures that only statistics can compare, and not one with
// trials enough for them.
func (c *Comparison) undecidable() bool {
	some := false
	for _, r := range c.Relays {
		for _, f := range r.Figures {
			if f.Exact || f.Test.N1 == 0 || f.Test.N2 == 0 {
				continue
			}
			if some = true; f.Test.Decidable {
				return false
			}
		}
	}
	return some
}

// cleanSide makes every string of a side's records visible.
func cleanSide(s Side, label string) Side {
	out := Side{Label: visible(cmp.Or(s.Label, label))}
	for _, r := range s.Records {
		out.Records = append(out.Records, sanitized(r))
	}
	return out
}

func relayNames(records []*results.Record) []string {
	var names []string
	for _, r := range records {
		for _, relay := range r.Relays {
			if !slices.Contains(names, relay.Name) {
				names = append(names, relay.Name)
			}
		}
		for _, m := range r.Measurements {
			if !slices.Contains(names, m.Relay) {
				names = append(names, m.Relay)
			}
		}
	}
	return names
}

// A figureKey is what a figure has in common on both sides.
type figureKey struct {
	scenario, labels, metric, unit, peer string
	better                               results.Better
}

// A sample is a figure's trials on one side: record by record, because exact ones are compared
// trial by trial.
type figureSample struct {
	labels     results.Labels
	trials     [][]float64
	exact      bool
	incomplete bool
}

func (s *figureSample) all() []float64 { return slices.Concat(s.trials...) }

// compareRelay compares all that was measured of a relay, in reading order.
func compareRelay(before []*results.Record, oldRelay string, after []*results.Record, newRelay string) RelayComparison {
	r := RelayComparison{Old: oldRelay, New: newRelay}
	old, fresh := samplesOf(before, oldRelay), samplesOf(after, newRelay)
	keys := slices.Collect(maps.Keys(old))
	for k := range fresh {
		if old[k] == nil {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, readingOrder(slices.Concat(before, after)))
	labels := map[string]map[string]results.Labels{}
	for _, k := range keys {
		f := figureOf(k, old[k], fresh[k])
		r.Figures = append(r.Figures, f)
		if labels[k.scenario] == nil {
			labels[k.scenario] = map[string]results.Labels{}
		}
		labels[k.scenario][k.labels] = f.Labels
	}
	telling := map[string][]string{}
	for scenario, all := range labels {
		telling[scenario] = varying(slices.Collect(maps.Values(all)))
	}
	called := map[string]string{} // the metric of a title at a place
	place := func(f *Figure) string { return fmt.Sprint(f.Scenario, labelKey(f.Labels), f.Peer, "\x00", f.title) }
	alike := map[string]bool{}
	for i := range r.Figures {
		f := &r.Figures[i]
		f.telling = telling[f.Scenario]
		f.title = titleOf(slices.Concat(before, after), f.Metric)
		if other := cmp.Or(called[place(f)], f.Metric); other != f.Metric {
			alike[place(f)] = true
		}
		called[place(f)] = f.Metric
	}
	for i := range r.Figures {
		if f := &r.Figures[i]; alike[place(f)] {
			f.title += " (" + f.Metric + ")"
		}
	}
	return r
}

// titleOf is what the first of the records that knows a metric calls it.
func titleOf(records []*results.Record, metric string) string {
	for _, r := range records {
		if title := r.Metric(metric).Title; title != metric && title != "" {
			return title
		}
	}
	return metric
}

// alone says of each side, once for all relays alike, what was measured there and not on the other:
// a scenario of which the other has nothing by its name alone.
func (c *Comparison) alone() (all []string) {
	var said grouped
	for i := range c.Relays {
		r := &c.Relays[i]
		both := map[string]bool{}
		for _, f := range r.shared() {
			both[f.place()] = true
		}
		for outcome, side := range []Side{c.Old, c.New} {
			var at grouped
			n := 0
			for i := range r.Figures {
				if f := &r.Figures[i]; f.Outcome == [...]FigureOutcome{OldAlone, NewAlone}[outcome] {
					at.add(f.place(), f.label(f.title))
					n++
				}
			}
			var places []string
			for _, g := range at {
				if both[g.key] {
					g.key += ", " + some(g.members, 4)
				}
				places = append(places, g.key)
			}
			if n > 0 {
				said.add(fmt.Sprintf("%s alone: %s (%s)", side.Label, some(places, 6), count(n, "figure")), r.title())
			}
		}
	}
	for _, g := range said {
		all = append(all, fmt.Sprintf("Of %s there is in %s.", strings.Join(g.members, ", "), g.key))
	}
	return all
}

// shared are the figures that both sides have.
func (r *RelayComparison) shared() []Figure {
	return slices.DeleteFunc(slices.Clone(r.Figures), func(f Figure) bool { return f.Outcome == OldAlone || f.Outcome == NewAlone })
}

func samplesOf(records []*results.Record, relay string) map[figureKey]*figureSample {
	out := map[figureKey]*figureSample{}
	for _, r := range records {
		for i := range r.Measurements {
			m := &r.Measurements[i]
			if m.Relay != relay || len(m.Trials) == 0 {
				continue
			}
			k := figureKey{m.Scenario, labelKey(m.Labels), m.Metric, m.Unit, m.Peer, m.Better}
			if m.Peer == m.Relay {
				k.peer = itselfPeer
			}
			s := out[k]
			if s == nil {
				s = &figureSample{labels: m.Labels, exact: true}
				out[k] = s
			}
			s.trials = append(s.trials, m.Trials)
			s.exact = s.exact && m.Exact
			s.incomplete = s.incomplete || m.Is(results.StatusIncomplete) != nil || m.Is(results.StatusAway) != nil
		}
	}
	return out
}

// readingOrder sorts figures as the records describe their scenarios and metrics, the others behind
// them.
func readingOrder(records []*results.Record) func(a, b figureKey) int {
	scenarios, metrics := map[string]int{}, map[string]int{}
	for _, r := range records {
		for _, s := range r.Scenarios {
			scenarios[s.Key] = s.Order
		}
		for i, m := range r.Metrics {
			if _, known := metrics[m.Key]; !known {
				metrics[m.Key] = i
			}
		}
	}
	rank := func(in map[string]int, key string) int {
		if n, ok := in[key]; ok {
			return n
		}
		return math.MaxInt
	}
	return func(a, b figureKey) int {
		return cmp.Or(cmp.Compare(rank(scenarios, a.scenario), rank(scenarios, b.scenario)), cmp.Compare(a.scenario, b.scenario),
			cmp.Compare(a.labels, b.labels), cmp.Compare(rank(metrics, a.metric), rank(metrics, b.metric)),
			cmp.Compare(a.metric, b.metric), cmp.Compare(a.peer, b.peer), cmp.Compare(a.unit, b.unit), cmp.Compare(a.better, b.better))
	}
}

func figureOf(k figureKey, old, fresh *figureSample) Figure {
	f := Figure{Scenario: k.scenario, Metric: k.metric, Unit: k.unit, Peer: k.peer, Better: k.better}
	if old != nil {
		f.before, f.Labels = old.all(), old.labels
	}
	if fresh != nil {
		f.after, f.Labels = fresh.all(), fresh.labels
	}
	f.Old, f.New, f.Test = results.Summarize(f.before), results.Summarize(f.after), results.Compare(f.before, f.after)
	switch {
	case old == nil:
		f.Exact, f.Outcome = fresh.exact, NewAlone
	case fresh == nil:
		f.Exact, f.Outcome = old.exact, OldAlone
	case old.incomplete || fresh.incomplete:
		f.Exact, f.Outcome = old.exact && fresh.exact, Incomplete
	case old.exact && fresh.exact:
		f.Exact = true
		if f.Outcome = Equal; !sameTrials(old.trials, fresh.trials) {
			f.Outcome = f.moved()
		}
	default:
		if f.Outcome = Unsettled; f.Test.Significant {
			f.Outcome = f.moved()
		}
	}
	return f
}

// sameTrials tells whether exact trials are the same. Trials of one number had the same draws, and
// so must have the same value; a side with more trials has nothing to compare the last ones with.
func sameTrials(old, fresh [][]float64) bool {
	values := map[int]float64{}
	for _, trials := range slices.Concat(old, fresh) {
		for i, v := range trials {
			if known, ok := values[i]; ok && known != v {
				return false
			}
			values[i] = v
		}
	}
	return true
}

// moved says where a figure that differs has gone. A significant difference between equal medians
// is one of spread.
func (f *Figure) moved() FigureOutcome {
	rises := f.New.Center > f.Old.Center
	switch {
	case f.New.Center == f.Old.Center, f.Better != results.Higher && f.Better != results.Lower:
		return Changed
	case rises == (f.Better == results.Higher):
		return Improved
	}
	return Worsened
}
