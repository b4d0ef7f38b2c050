// Package gate judges whether one build of a relay got worse than another, or than a stored record,
// by tests that rarely raise a false alarm.
package gate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"relaybench/report"
	"relaybench/report/compare"
	"relaybench/results"
)

// A gate judges in two steps, because dozens of figures at the level of one would raise false
// alarms all the time, and a level that allows for dozens would miss real ones behind a single bad
// trial. The first run looks for suspects: figures that are worse at results.Alpha, each by itself,
// and beyond their thresholds, or so much worse that no p acquits them. Only what new trials, of
// those figures alone, find worse again is held against head (see Confirm).

// Alpha is the level of the second step: p, adjusted over all suspects and all looks at them,
// must be below it. Since its trials are new, a gate in which nothing changed raises a false alarm
// with a chance below 2 %, and in the worse direction, which alone counts, below 1 %.
const Alpha = 0.02

// What makes a suspect whatever p says, in times as slow or as large as base: a test that cannot
// tell nine times from noise has not shown that nothing happened.
const (
	grossly = 1.5 // the median of head
	widely  = 5   // the worst that the medians' confidence intervals leave room for
)

// judgedMetrics are the figures that a gate judges: one or two for each thing that a relay does.
// Figures that follow from another one (events/s from queries/s) would only make the others harder
// to tell from chance. Exact figures are judged besides.
var judgedMetrics = []judgedMetric{
	{"ingest.throughput", "accepted", 1},
	{"ingest.throughput", "ok latency", 1},
	{"ingest.visibility", "ok", 1},
	{"ingest.visibility", "visible", 1},
	{"query.*", "eose", 1},
	{"query.*", "queries/s", 1},
	{"storage", "allocated", 1},
	{"storage", "write amplification", 1},
	{"negentropy.*", "time", 5}, // initial, identical, heartbeat, after-write, scattered
}

type judgedMetric struct {
	scenario, metric string
	figures          int // of one scenario
}

// FiguresOf is how many figures the gate judges by statistics in a scenario.
func FiguresOf(scenario string) (n int) {
	for _, g := range judgedMetrics {
		if results.MatchScenario(g.scenario, scenario) {
			n += g.figures
		}
	}
	return n
}

// judges tells whether a gate judges a metric by statistics.
func judges(scenario, metric string) bool {
	return slices.ContainsFunc(judgedMetrics, func(m judgedMetric) bool {
		return m.metric == metric && results.MatchScenario(m.scenario, scenario)
	})
}

// judgedFigure is that for a figure; exact ones are always judged.
func judgedFigure(m *results.Measurement) bool { return m.Exact || judges(m.Scenario, m.Metric) }

// TrialsFor is how many trials a side a gate of so many figures needs to be able to find anything
// in its second run.
func TrialsFor(figures int) int {
	return results.TrialsFor(lookAlpha(1) / float64(max(figures, 1)))
}

// decides tells whether so many figures, were all of them suspects, can be told by n1 and n2
// trials.
func decides(figures, n1, n2 int) bool {
	return results.SmallestP(n1, n2)*float64(figures) < lookAlpha(1)
}

// Options say what a gate judges and how strictly.
type Options struct {
	Base, Head string          // relays of the record; with a Baseline, Base is one of the baseline
	Again      string          // base once more under another name, for the noise floor; "" without
	Baseline   *results.Record // a stored record instead of a base in the same run; nil without
	Threshold  float64         // what a figure may worsen by, as a share: 0.05
	Overrides  []Threshold     // for single figures
	MaxTrials  int             // a side, that a confirmation may rest on; no more than the first run's where that has more
}

// Result is the verdict in a word.
type Result string

// The verdicts, from the mildest.
const (
	Green      Result = "green"
	Suspicious Result = "suspicious" // there are suspects, and more trials are to be measured: see MoreTrials
	Undecided  Result = "undecided"  // no trials, or these trials, can tell
	Red        Result = "red"        // something got worse
	FellShort  Result = "fell short" // head failed, or failed a required check: its figures mean nothing
)

// Verdict is what a gate found. It is a pure function of the records, and every string in it is
// safe to show.
type Verdict struct {
	Result     Result
	Base, Head string
	Figures    []Figure
	Short      []string // in what head fell short
	Cautions   []string

	rec       *results.Record
	baseline  *results.Record // nil where base was measured in the same run
	threshold float64
	maxTrials int
	runs      []int             // the trials a side of each run that may follow the first
	later     []*results.Record // those that did
}

// Figure is one judged figure.
type Figure struct {
	compare.Figure
	First     *compare.Figure // of a suspect: what the first run found; the figure itself is all later runs' together
	Adjusted  float64         // p, adjusted over all figures, and looks, that are judged together; 1 for exact ones
	Threshold float64         // what it may worsen by, as a share
	Floor     float64         // by how much base differed from itself in the A/A run, as a share; 0 without
	Judgement Judgement
}

// Judgement is what a gate says of a figure.
type Judgement string

// The judgements.
const (
	GotWorse    Judgement = "WORSE"      // beyond the threshold, and confirmed: the gate is red
	Differs     Judgement = "DIFFERENT"  // an exact figure without a direction: the gate is red
	Suspect     Judgement = "suspect"    // beyond the threshold, to be confirmed
	Unclear     Judgement = "undecided"  // a suspect that new trials neither confirm nor acquit
	NotAgain    Judgement = "not again"  // a suspect that new trials acquitted
	GotBetter   Judgement = "better"     // significantly among all figures, and by more than the threshold
	SlightlyOff Judgement = "within"     // significantly by itself, and by no more than the threshold
	BelowNoise  Judgement = "like noise" // significantly by itself, and by no more than base differs from itself
	NoEvidence  Judgement = "~"          // not significantly
	StayedEqual Judgement = "="          // exactly equal
	Undecidable Judgement = "too few"    // so few trials cannot be significant
)

func (j Judgement) bad() bool { return j == GotWorse || j == Differs }

// BaselineError says why a base cannot be gated against.
type BaselineError struct {
	Relay string
	Short []string
}

func (e *BaselineError) Error() string {
	return fmt.Sprintf("%s cannot be the base of a gate, because it fell short itself: %s", e.Relay, report.Some(e.Short, 3))
}

// CheckBaseline tells whether a relay of a stored record can be gated against in a run with the
// settings, corpus and machine of rec, which need not have measured anything yet: an
// *compare.IncomparableError or *BaselineError if not. An empty name stands for the record's only
// relay. It returns the relay's name.
func CheckBaseline(baseline *results.Record, name string, rec *results.Record) (string, error) {
	names := compare.RelayNames([]*results.Record{baseline})
	switch {
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "":
		return "", fmt.Errorf("the baseline has %s (%s): name the one to gate against with --base", report.Count(len(names), "relay"), report.Visible(strings.Join(names, ", ")))
	case !slices.Contains(names, name):
		return "", fmt.Errorf("the baseline has no relay %s; it has %s", report.Visible(name), report.Visible(strings.Join(names, ", ")))
	}
	clean := report.Sanitized(baseline)
	if d := compare.Differences(clean, report.Sanitized(rec)); len(d) > 0 {
		return "", &compare.IncomparableError{Differences: d}
	}
	if short := compare.Shortcomings([]*results.Record{clean}, report.Visible(name), judgedFigure); len(short) > 0 || clean.Partial {
		if len(short) == 0 {
			short = []string{"the run did not finish"}
		}
		return "", &BaselineError{report.Visible(name), short}
	}
	return name, nil
}

// BaselineDecides tells whether the trials of a relay of a stored record, with so many of head, can
// judge the figures of the given scenarios together; nil if they can.
func BaselineDecides(baseline *results.Record, name string, scenarios []string, trials int) error {
	figures, fewest := 0, math.MaxInt
	for _, m := range baseline.Measurements {
		// negentropy.initial is of negentropy.
		asked := slices.ContainsFunc(scenarios, func(s string) bool { return results.MatchScenario(s+".*", m.Scenario) })
		if m.Relay == name && !m.Exact && len(m.Trials) > 0 && judges(m.Scenario, m.Metric) && asked {
			figures, fewest = figures+1, min(fewest, len(m.Trials))
		}
	}
	if figures == 0 || decides(figures, fewest, trials) {
		return nil
	}
	return fmt.Errorf("the baseline has %s, which cannot judge %s together with %d of head: store a run with at least --trials %d",
		report.Count(fewest, "trial"), report.Count(figures, "figure"), trials, TrialsFor(figures))
}

// Judge says whether head got worse than base. It refuses with an *compare.IncomparableError or a
// *BaselineError what cannot be judged.
func Judge(rec *results.Record, o Options) (*Verdict, error) {
	if o.Baseline != nil {
		if _, err := CheckBaseline(o.Baseline, o.Base, rec); err != nil {
			return nil, err
		}
	}
	rec = report.Sanitized(rec)
	g := &Verdict{Base: report.Visible(o.Base), Head: report.Visible(o.Head), rec: rec, threshold: o.Threshold}
	if o.Baseline != nil {
		g.baseline = report.Sanitized(o.Baseline)
	}
	figures, err := g.compare(rec)
	if err != nil {
		return nil, err
	}
	g.pick(figures, o)
	trials := 1
	for _, f := range g.Figures {
		trials = max(trials, f.Test.N2)
	}
	g.maxTrials = max(o.MaxTrials, trials)
	g.runs = confirmingRuns(trials, g.maxTrials)
	here := []*results.Record{rec}
	if o.Again != "" {
		here[0] = facing(rec, g.Base, report.Visible(o.Again))
		g.floor(compare.Figures(here, g.Base, here, report.Visible(o.Again)))
	}
	for i := range g.Figures {
		g.Figures[i].judge()
	}
	g.conclude()
	g.remark()
	return g, nil
}

// compare compares base and head over the trials of some runs together, and takes in what head fell
// short of.
func (g *Verdict) compare(runs ...*results.Record) ([]compare.Figure, error) {
	here := slices.Clone(runs)
	if g.baseline == nil {
		for i, rec := range here {
			here[i] = facing(rec, g.Base, g.Head)
		}
	}
	olds := here
	if g.baseline != nil {
		olds = []*results.Record{g.baseline}
	} else if short := compare.Shortcomings(here, g.Base, judgedFigure); len(short) > 0 {
		return nil, &BaselineError{g.Base, short}
	}
	if !slices.Contains(compare.RelayNames(here), g.Head) {
		return nil, fmt.Errorf("the run has no relay %s", g.Head)
	}
	g.Short = report.AddNew(g.Short, compare.Shortcomings(here, g.Head, judgedFigure)...)
	return compare.Figures(olds, g.Base, here, g.Head), nil
}

// otherBuild is how base and head are called as each other's peer.
const otherBuild = "the other build"

// facing returns the record with what two builds were measured at with each other matched: what
// reconciling with one takes depends on what the other gave it alone, and that is the same for both
// over an even number of trials. Counts that follow from who began with which share do not compare.
func facing(rec *results.Record, a, b string) *results.Record {
	out := *rec
	out.Measurements = nil
	for _, m := range rec.Measurements {
		if m.Relay == a && m.Peer == b || m.Relay == b && m.Peer == a {
			if m.Exact {
				continue
			}
			m.Peer = otherBuild
		}
		out.Measurements = append(out.Measurements, m)
	}
	return &out
}

// pick takes the figures that are judged, with their thresholds.
func (g *Verdict) pick(figures []compare.Figure, o Options) {
	measured := map[string]bool{} // scenarios in which head was measured
	for _, f := range figures {
		if f.Outcome != compare.OldAlone {
			measured[f.Scenario] = true
		}
	}
	var unmatched []string
	for _, f := range figures {
		third := f.Peer != "" && f.Peer != compare.Itself && f.Peer != otherBuild // which is another for each
		if third || !f.Exact && !judges(f.Scenario, f.Metric) {
			continue
		}
		if f.Outcome == compare.OldAlone && (measured[f.Scenario] || g.baseline == nil) {
			g.Short = append(g.Short, "nothing was measured of "+f.Name())
			continue
		}
		if why := map[compare.Outcome]string{compare.NewAlone: "head alone", compare.Incomplete: "incomplete", compare.OldAlone: "baseline alone"}[f.Outcome]; why != "" {
			unmatched = append(unmatched, f.Name()+" ("+why+")")
			continue
		}
		x := Figure{Figure: f, Adjusted: 1}
		if t, ok := thresholdFor(o.Overrides, f.Scenario+" "+f.Metric); ok {
			x.Threshold = t.Share
		} else if !f.Exact {
			x.Threshold = o.Threshold
		}
		g.Figures = append(g.Figures, x)
	}
	if len(unmatched) > 0 {
		g.caution("Not judged, because one side alone has it: %s.", report.Some(unmatched, 4))
	}
	for _, t := range o.Overrides {
		if !slices.ContainsFunc(g.Figures, func(f Figure) bool { return matchGlob(t.Pattern, f.Scenario+" "+f.Metric) }) {
			g.caution("The threshold for %q fits none of the figures that were judged.", report.Visible(t.Pattern))
		}
	}
	tested := g.tested()
	var ps []float64
	for _, f := range tested {
		ps = append(ps, f.Test.P)
	}
	for k, p := range results.Holm(ps) {
		f := tested[k]
		f.Adjusted = p
		if !decides(len(ps), f.Test.N1, f.Test.N2) {
			f.Judgement = Undecidable
		}
	}
}

// tested are the figures that are judged by statistics.
func (g *Verdict) tested() []*Figure {
	return g.which(func(f *Figure) bool { return !f.Exact })
}

func (g *Verdict) which(is func(*Figure) bool) (out []*Figure) {
	for i := range g.Figures {
		if f := &g.Figures[i]; is(f) {
			out = append(out, f)
		}
	}
	return out
}

func (g *Verdict) caution(format string, args ...any) {
	g.Cautions = append(g.Cautions, fmt.Sprintf(format, args...))
}

// floor takes in by how much base differs from itself.
func (g *Verdict) floor(figures []compare.Figure) {
	largest, of := 0.0, ""
	for i := range figures {
		a := &figures[i]
		if math.IsNaN(a.Test.Delta) { // a side has nothing, or base had
			continue
		}
		for _, f := range g.which(func(f *Figure) bool { return f.Same(a) }) {
			if f.Floor = math.Abs(a.Test.Delta); f.Floor > largest {
				largest, of = f.Floor, f.Name()
			}
		}
	}
	if of != "" {
		g.caution("Noise floor: base differs from itself by up to %s (%s). A change within a figure's own floor is not held against head.", strings.TrimPrefix(compare.Percent(largest), "+"), of)
	}
}

// shortages says what the machine was short of in any of the runs.
func (g *Verdict) shortages() (all []string) {
	for _, r := range append([]*results.Record{g.rec}, g.later...) {
		all = append(all, report.Shortages(r)...)
	}
	return all
}

// conclude makes the figures' judgements a verdict.
func (g *Verdict) conclude() {
	has := func(what ...Judgement) bool { return len(g.Judged(what...)) > 0 }
	switch {
	case len(g.shortages()) > 0: // what fell short by it is no fault of head
		g.Result = Undecided
	case len(g.Short) > 0:
		g.Result = FellShort
	case has(Suspect):
		g.Result = Suspicious
	case has(GotWorse, Differs):
		g.Result = Red
	case has(Unclear) && len(g.later) < len(g.runs):
		g.Result = Suspicious
	case has(Unclear, Undecidable) || len(g.Figures) == 0:
		g.Result = Undecided
	default:
		g.Result = Green
	}
}

// remark gathers what a reader must know beside the verdict.
func (g *Verdict) remark() {
	if g.baseline != nil {
		g.caution("The base is a stored record. It was measured at another time, and whatever else ran then or runs now counts as a change: a gate with --base and --head, interleaved in one run, does not have this weakness.")
		g.Cautions = append(g.Cautions, compare.Unlike(g.baseline, g.rec)...)
	}
	a, b := report.RelayOf(g.rec, g.Base), report.RelayOf(g.rec, g.Head)
	switch {
	case a == nil || b == nil:
	case a.SHA256 != "" && a.SHA256 == b.SHA256 && a.Command == b.Command:
		g.caution("Base and head are the same program: this gate measures noise.")
	case a.Durability != b.Durability && a.Durability != "unknown" && b.Durability != "unknown":
		g.caution("An OK promises another durability: %s before, %s now. Ingest is not like for like.", a.Durability, b.Durability)
	}
	g.Cautions = append(g.Cautions, results.UnsteadyTrials(g.rec)...)
	var spreads []float64
	for _, f := range g.tested() {
		spreads = append(spreads, max(f.Old.Spread(), f.New.Spread()))
	}
	if spread := results.Summarize(spreads).Center; spread > g.threshold { // not where there are none: NaN
		g.caution("This machine is too noisy to see changes as small as the threshold: half of the medians are not known better than ± %s. Let nothing else run, or use more trials.", percentText(spread))
	}
	if load := g.rec.Environment.LoadBefore; load != nil && g.rec.Environment.Cores > 0 && *load > 0.5*float64(g.rec.Environment.Cores) {
		g.caution("The machine was busy before the run: load %.2f on %s.", *load, report.Count(g.rec.Environment.Cores, "core"))
	}
}

// judge says what a figure's change amounts to after the first run.
func (f *Figure) judge() {
	worse := f.Worse()
	switch {
	case f.Exact && f.Outcome == compare.Equal:
		f.Judgement = StayedEqual
	case f.Exact && math.Abs(f.Test.Delta) <= max(f.Threshold, f.Floor) && f.Threshold+f.Floor > 0:
		f.Judgement = SlightlyOff
	case f.Exact && (f.Outcome == compare.Changed || math.IsNaN(worse)):
		f.Judgement = Differs
	case f.Exact && f.Outcome == compare.Worsened:
		f.Judgement = GotWorse
	case f.Exact:
		f.Judgement = GotBetter
	case f.Judgement == Undecidable:
	case f.doubtful(): // even within the noise floor: who differs from itself so much can judge nobody
		f.Judgement = Suspect
	case !f.Test.Significant || f.Outcome == compare.Changed:
		f.Judgement = NoEvidence
	case math.Abs(worse) <= f.Threshold:
		f.Judgement = SlightlyOff
	case math.Abs(worse) <= f.Floor:
		f.Judgement = BelowNoise
	case f.Outcome == compare.Worsened:
		f.Judgement = Suspect
	case f.Adjusted < Alpha:
		f.Judgement = GotBetter
	default:
		f.Judgement = NoEvidence
	}
}

// Judged lists the figures of which the gate says one of the given things, the largest changes
// first.
func (g *Verdict) Judged(what ...Judgement) []*Figure {
	out := g.which(func(f *Figure) bool { return slices.Contains(what, f.Judgement) })
	size := func(f *Figure) float64 {
		if math.IsNaN(f.Test.Delta) { // from nothing to something
			return math.Inf(1)
		}
		return math.Abs(f.Test.Delta)
	}
	slices.SortStableFunc(out, func(a, b *Figure) int { return cmp.Compare(size(b), size(a)) })
	return out
}
