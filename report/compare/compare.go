// Package compare sets two sides of results against each other, figure by figure: it tells whether
// they may be compared at all, and which differences are more than chance.
package compare

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"relaybench/report"
	"relaybench/results"
)

// Side is one side of a comparison: a name for it, and records whose trials are taken together.
type Side struct {
	Label   string
	Records []*results.Record
}

// Options say what a comparison is about.
type Options struct {
	Force bool // compare what is not comparable, and say so
	All   bool // also the figures without a direction
}

// Comparison is two sides, figure by figure. It is a pure function of the records, and every string
// in it is safe to show.
type Comparison struct {
	Old, New    Side
	Differences []Difference // why the sides are not comparable; empty unless forced
	Cautions    []string     // what a reader must know besides
	Relays      []Relay
	Unmatched   []string // relays that one side alone has
}

// Relay is one relay on both sides.
type Relay struct {
	Old, New string // its name on each side
	Figures  []Figure
}

// Figure is one metric of one scenario on both sides.
type Figure struct {
	Scenario, Metric, Unit string
	Labels                 results.Labels
	Peer                   string // of a pair; Itself for a second instance of the same relay
	Better                 results.Better
	Exact                  bool // compared value by value, not by statistics
	Old, New               results.Summary
	Test                   results.Comparison
	Outcome                Outcome
	Before, After          []float64 // the trials of each side

	title   string   // of the metric, with its key where another of the place is called the same
	telling []string // the labels that tell it from others of its scenario
}

// Outcome says in a word how a figure moved.
type Outcome string

// The outcomes. Those of figures that are not exact rest on significance at results.Alpha, each
// figure by itself.
const (
	Improved  Outcome = "better"
	Worsened  Outcome = "worse"
	Changed   Outcome = "changed"  // significantly, or exactly, where neither direction is better
	Unsettled Outcome = "~"        // no significant difference
	Equal     Outcome = "="        // exactly the same
	OldAlone  Outcome = "only old" // not measured on the new side
	NewAlone  Outcome = "only new" // not measured on the old side

	// Incomplete figures are not compared: on one side or both they are of a transfer that did not
	// bring all, or were taken while the harness was away.
	Incomplete Outcome = "incomplete"
)

// Itself is how a second instance of a relay is called in a comparison.
const Itself = "itself"

const oldName, newName = "old", "new" // the sides, where there is no better label

// directed tells whether more is better or worse.
func directed(better results.Better) bool { return better == results.Higher || better == results.Lower }

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

// Same tells whether another figure is of the same thing.
func (f *Figure) Same(o *Figure) bool {
	return f.Scenario == o.Scenario && f.Metric == o.Metric && f.Peer == o.Peer && f.Unit == o.Unit && f.Labels.Equal(o.Labels)
}

// IncomparableError says why two sides must not be compared.
type IncomparableError struct{ Differences []Difference }

func (e *IncomparableError) Error() string {
	text := "the results are not comparable, because they were not measured alike:"
	for _, d := range e.Differences {
		text += "\n  " + d.String()
	}
	return text
}

// Compare compares two sides. It refuses with an *IncomparableError where corpus, settings or
// machine differ, unless o.Force is set. Relays are matched by name; where each side has a single
// relay, they are matched whatever they are called.
func Compare(before, after Side, o Options) (*Comparison, error) {
	if len(before.Records) == 0 || len(after.Records) == 0 {
		return nil, errors.New("a comparison needs results on both sides")
	}
	c := &Comparison{Old: clean(before, oldName), New: clean(after, newName)}
	c.Differences = Differences(slices.Concat(c.Old.Records, c.New.Records)...)
	if len(c.Differences) > 0 && !o.Force {
		return nil, &IncomparableError{c.Differences}
	}
	c.Cautions = cautions(c.Old.Records, c.New.Records)
	olds, news := RelayNames(c.Old.Records), RelayNames(c.New.Records)
	all := report.AddNew(slices.Clone(olds), news...)
	if len(olds) == 1 && len(news) == 1 {
		c.Relays, all = []Relay{{olds[0], news[0], nil}}, nil
	}
	for _, name := range all {
		switch {
		case !slices.Contains(news, name):
			c.Unmatched = append(c.Unmatched, fmt.Sprintf("%s is in %s alone", name, c.Old.Label))
		case !slices.Contains(olds, name):
			c.Unmatched = append(c.Unmatched, fmt.Sprintf("%s is in %s alone", name, c.New.Label))
		default:
			c.Relays = append(c.Relays, Relay{name, name, nil})
		}
	}
	tested, decidable := false, false
	for i := range c.Relays {
		r := &c.Relays[i]
		for _, f := range Figures(c.Old.Records, r.Old, c.New.Records, r.New) {
			if o.All || f.Exact || directed(f.Better) {
				r.Figures = append(r.Figures, f)
				tested = tested || !f.Exact && f.Test.N1 > 0 && f.Test.N2 > 0
				decidable = decidable || !f.Exact && f.Test.Decidable
			}
		}
	}
	if tested && !decidable {
		c.Cautions = append(c.Cautions, fmt.Sprintf("So few trials can never be significant: measure with --trials %d, or give several files a side.", results.EnoughTrials))
	}
	return c, nil
}

// clean makes every string of a side visible.
func clean(s Side, label string) Side {
	out := Side{Label: report.Visible(cmp.Or(s.Label, label))}
	for _, r := range s.Records {
		out.Records = append(out.Records, report.Sanitized(r))
	}
	return out
}

// RelayNames are the relays of records, in the order in which they come.
func RelayNames(records []*results.Record) (names []string) {
	for _, r := range records {
		for i := range r.Relays {
			names = report.AddNew(names, r.Relays[i].Name)
		}
		for i := range r.Measurements {
			names = report.AddNew(names, r.Measurements[i].Relay)
		}
	}
	return names
}

// A key is what a figure has in common on both sides.
type key struct {
	scenario, labels, metric, unit, peer string
	better                               results.Better
}

// A sample is what both sides have of a figure: the trials of each, record by record, because exact
// ones are compared trial by trial.
type sample struct {
	old, new   [][]float64
	labels     results.Labels
	inexact    bool // in one of the records
	incomplete bool
}

// Figures compares all that was measured of a relay, in reading order.
func Figures(before []*results.Record, oldRelay string, after []*results.Record, newRelay string) (all []Figure) {
	samples := map[key]*sample{}
	both := slices.Concat(before, after)
	for i, r := range both {
		relay := newRelay
		if i < len(before) {
			relay = oldRelay
		}
		for k := range r.Measurements {
			if m := &r.Measurements[k]; m.Relay == relay && len(m.Trials) > 0 {
				take(samples, m, i < len(before))
			}
		}
	}
	labels := map[string][]results.Labels{}
	type place struct{ scenario, labels, peer, title string }
	titles := map[place][]string{} // the metrics that are called so at a place
	at := func(f *Figure) place { return place{f.Scenario, report.LabelKey(f.Labels), f.Peer, f.title} }
	for _, k := range slices.SortedFunc(maps.Keys(samples), readingOrder(both)) {
		f := figureOf(k, samples[k])
		f.title = titleOf(both, f.Metric)
		labels[k.scenario] = append(labels[k.scenario], f.Labels)
		titles[at(&f)] = report.AddNew(titles[at(&f)], f.Metric)
		all = append(all, f)
	}
	for i := range all {
		f := &all[i]
		f.telling = report.Varying(labels[f.Scenario])
		if len(titles[at(f)]) > 1 {
			f.title += " (" + f.Metric + ")"
		}
	}
	return all
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

// take adds a measurement of one of the sides.
func take(samples map[key]*sample, m *results.Measurement, old bool) {
	k := key{m.Scenario, report.LabelKey(m.Labels), m.Metric, m.Unit, m.Peer, m.Better}
	if m.Peer != "" && m.Peer == m.Relay {
		k.peer = Itself
	}
	s := samples[k]
	if s == nil {
		s = &sample{}
		samples[k] = s
	}
	if old {
		s.old = append(s.old, m.Trials)
	} else {
		s.new = append(s.new, m.Trials)
	}
	s.labels = m.Labels
	s.inexact = s.inexact || !m.Exact
	s.incomplete = s.incomplete || m.Is(results.StatusIncomplete) != nil || m.Is(results.StatusAway) != nil
}

// readingOrder sorts figures as the records describe their scenarios and metrics, the others behind
// them.
func readingOrder(records []*results.Record) func(a, b key) int {
	scenarios, metrics := map[string]int{}, map[string]int{} // below 0 for those that are described
	for _, r := range records {
		for _, s := range r.Scenarios {
			scenarios[s.Key] = s.Order - math.MaxInt
		}
		for i, m := range r.Metrics {
			metrics[m.Key] = cmp.Or(metrics[m.Key], i-math.MaxInt)
		}
	}
	return func(a, b key) int {
		return cmp.Or(cmp.Compare(scenarios[a.scenario], scenarios[b.scenario]), cmp.Compare(a.scenario, b.scenario),
			cmp.Compare(a.labels, b.labels), cmp.Compare(metrics[a.metric], metrics[b.metric]),
			cmp.Compare(a.metric, b.metric), cmp.Compare(a.peer, b.peer), cmp.Compare(a.unit, b.unit), cmp.Compare(a.better, b.better))
	}
}

// figureOf compares what both sides have of a figure.
func figureOf(k key, s *sample) Figure {
	f := Figure{Scenario: k.scenario, Metric: k.metric, Unit: k.unit, Peer: k.peer, Better: k.better, Labels: s.labels, Exact: !s.inexact,
		Before: slices.Concat(s.old...), After: slices.Concat(s.new...)}
	f.Old, f.New, f.Test = results.Summarize(f.Before), results.Summarize(f.After), results.Compare(f.Before, f.After)
	switch {
	case len(s.old) == 0:
		f.Outcome = NewAlone
	case len(s.new) == 0:
		f.Outcome = OldAlone
	case s.incomplete:
		f.Outcome = Incomplete
	case f.Exact && sameTrials(s.old, s.new):
		f.Outcome = Equal
	case !f.Exact && !f.Test.Significant:
		f.Outcome = Unsettled
	// A significant difference between equal medians is one of spread.
	case f.New.Center == f.Old.Center, !directed(f.Better):
		f.Outcome = Changed
	case (f.New.Center > f.Old.Center) == (f.Better == results.Higher):
		f.Outcome = Improved
	default:
		f.Outcome = Worsened
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
