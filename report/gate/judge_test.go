package gate

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"relaybench/report/compare"
	"relaybench/report/reporttest"
	"relaybench/results"
)

// TestWhatAFirstRunSaysOfAFigure goes through the limits of each judgement, from both sides.
func TestWhatAFirstRunSaysOfAFigure(t *testing.T) {
	const none, lower, higher = results.None, results.Lower, results.Higher
	type figure struct {
		better           results.Better
		exact            bool
		delta            float64
		significant      bool
		outcome          compare.Outcome
		threshold, floor float64
		adjusted         float64
		undecidable      bool
	}
	for _, c := range []struct {
		name string
		f    figure
		want Judgement
	}{
		{"exactly equal", figure{none, true, 0, false, compare.Equal, 0, 0, 1, false}, StayedEqual},
		{"exact, as much as the threshold", figure{none, true, 0.05, false, compare.Changed, 0.05, 0, 1, false}, SlightlyOff},
		{"exact, down by as much", figure{none, true, -0.05, false, compare.Changed, 0.05, 0, 1, false}, SlightlyOff},
		{"exact, more than the threshold", figure{none, true, 0.051, false, compare.Changed, 0.05, 0, 1, false}, Differs},
		{"exact, as much as the floor", figure{none, true, 0.05, false, compare.Changed, 0, 0.05, 1, false}, SlightlyOff},
		{"exact, other trials of the same median", figure{none, true, 0, false, compare.Changed, 0, 0, 1, false}, Differs},
		{"exact, without a direction", figure{none, true, 0.1, false, compare.Worsened, 0, 0, 1, false}, Differs},
		{"exact, from nothing", figure{lower, true, math.NaN(), false, compare.Worsened, 0, 0, 1, false}, Differs},
		{"exact, worse", figure{lower, true, 0.01, false, compare.Worsened, 0, 0, 1, false}, GotWorse},
		{"exact, better", figure{lower, true, -0.01, false, compare.Improved, 0, 0, 1, false}, GotBetter},
		{"not significant", figure{lower, false, 0.3, false, compare.Unsettled, 0.05, 0, 1, false}, NoEvidence},
		{"significant, of one median", figure{lower, false, 0, true, compare.Changed, 0.05, 0, 0.001, false}, NoEvidence},
		{"as much worse as the threshold", figure{lower, false, 0.05, true, compare.Worsened, 0.05, 0, 0.001, false}, SlightlyOff},
		{"more", figure{lower, false, 0.051, true, compare.Worsened, 0.05, 0, 1, false}, Suspect},
		{"a rate as much worse as the threshold", figure{higher, false, -0.05, true, compare.Worsened, 0.05, 0, 0.001, false}, SlightlyOff},
		{"more of a rate", figure{higher, false, -0.051, true, compare.Worsened, 0.05, 0, 1, false}, Suspect},
		{"as much worse as the floor", figure{lower, false, 0.1, true, compare.Worsened, 0.05, 0.1, 0.001, false}, BelowNoise},
		{"more than the floor", figure{lower, false, 0.11, true, compare.Worsened, 0.05, 0.1, 0.001, false}, Suspect},
		{"as much better as the threshold", figure{lower, false, -0.05, true, compare.Improved, 0.05, 0, 0.001, false}, SlightlyOff},
		{"as much better as the floor", figure{lower, false, -0.1, true, compare.Improved, 0.05, 0.1, 0.001, false}, BelowNoise},
		{"better", figure{lower, false, -0.11, true, compare.Improved, 0.05, 0.1, 0.019, false}, GotBetter},
		{"better by itself alone", figure{lower, false, -0.11, true, compare.Improved, 0.05, 0.1, 0.02, false}, NoEvidence},
		{"half as much again, significant or not", figure{lower, false, 0.5, false, compare.Unsettled, 0.05, 0, 1, false}, Suspect},
		{"less than that", figure{lower, false, 0.49, false, compare.Unsettled, 0.05, 0, 1, false}, NoEvidence},
		{"half as much again, which is allowed", figure{lower, false, 0.5, false, compare.Unsettled, 0.5, 0, 1, false}, NoEvidence},
		{"half as much again, of base itself too", figure{lower, false, 0.5, true, compare.Worsened, 0.05, 2, 0.001, false}, Suspect},
		{"two thirds of a rate", figure{higher, false, -0.34, false, compare.Unsettled, 0.05, 0, 1, false}, Suspect},
		{"more than two thirds", figure{higher, false, -0.33, false, compare.Unsettled, 0.05, 0, 1, false}, NoEvidence},
		{"too few trials, whatever they say", figure{lower, false, 8, true, compare.Worsened, 0.05, 0, 0.001, true}, Undecidable},
	} {
		f := Figure{Figure: compare.Figure{Better: c.f.better, Exact: c.f.exact, Outcome: c.f.outcome}, Threshold: c.f.threshold, Floor: c.f.floor, Adjusted: c.f.adjusted}
		f.Test = results.Comparison{Delta: c.f.delta, Significant: c.f.significant, N1: 6, N2: 6}
		head := 100 * (1 + c.f.delta)
		f.Old, f.New = results.Summary{Center: 100, Lo: 100, Hi: 100, N: 6}, results.Summary{Center: head, Lo: head, Hi: head, N: 6}
		if c.f.undecidable {
			f.Judgement = Undecidable
		}
		if f.judge(); f.Judgement != c.want {
			t.Errorf("%s: %q, want %q", c.name, f.Judgement, c.want)
		}
	}
}

func TestTheLevelsOfAConfirmation(t *testing.T) {
	for _, c := range []struct {
		p, adjusted float64
		longEnough  bool
		want        Judgement
	}{{noSign, 1, true, NotAgain}, {0.19, 1, true, Unclear}, {noSign, 1, false, Unclear}, {0.01, Alpha, true, Unclear}, {0.01, 0.0199, true, GotWorse}} {
		worse := compare.Figure{Better: results.Lower, Before: []float64{100}, After: []float64{110}}
		worse.Old, worse.New = results.Summary{Center: 100, N: 6}, results.Summary{Center: 110, N: 6}
		worse.Test = results.Comparison{P: c.p, Delta: 0.1}
		f := Figure{Figure: worse, First: &worse, Adjusted: c.adjusted, Threshold: 0.05}
		if f.confirm(c.longEnough); f.Judgement != c.want {
			t.Errorf("p = %v, adjusted %v, long enough %t: %q, want %q", c.p, c.adjusted, c.longEnough, f.Judgement, c.want)
		}
	}
}

func TestJudgedFiguresStandInOrderOfTheirChange(t *testing.T) {
	g := &Verdict{}
	for name, delta := range map[string]float64{"b": -0.5, "a": math.NaN(), "d": 0.1, "c": 0.2} {
		f := Figure{Judgement: GotWorse}
		f.Metric, f.Test.Delta = name, delta
		g.Figures = append(g.Figures, f, Figure{Judgement: NoEvidence})
	}
	var names []string
	for _, f := range g.Judged(GotWorse, Suspect) {
		names = append(names, f.Metric)
	}
	if !slices.Equal(names, []string{"a", "b", "c", "d"}) {
		t.Errorf("in the order %q", names)
	}
}

func TestWhatOneSideLacksIsTold(t *testing.T) {
	without := func(relay, metric string) func(*results.Record) {
		return func(r *results.Record) {
			r.Measurements = slices.DeleteFunc(r.Measurements, func(m results.Measurement) bool { return m.Relay == relay && m.Metric == metric })
		}
	}
	pair := func(change func(*results.Record)) *results.Record {
		r := gated(10, []string{"base", "head"}, flat1)
		change(r)
		return r
	}
	alone := func(change func(*results.Record)) *results.Record {
		r := gated(10, []string{"head"}, flat1)
		change(r)
		return r
	}
	stored := gated(10, []string{"mine"}, flat1)
	storage := func(r *results.Record) { without("head", "allocated")(r); without("head", "write amplification")(r) }
	against := Options{Base: "mine", Head: "head", Baseline: stored, Threshold: 0.05}
	unfitting := pairOfBuilds
	unfitting.Overrides = []Threshold{{"fetch.* *", 1}, {"query.* eose", 1}}
	for _, c := range []struct {
		name    string
		r       *results.Record
		o       Options
		figures int
		short   string // what head fell short of
		caution string // or what is told
	}{
		{"nothing is lacking", pair(func(*results.Record) {}), pairOfBuilds, 19, "", ""},
		{"head lacks one", pair(without("head", "visible")), pairOfBuilds, 18, "nothing was measured of ingest.visibility visible", ""},
		{"base lacks one", pair(without("base", "visible")), pairOfBuilds, 18, "", "one side alone has it: ingest.visibility visible (head alone)."},
		{"a baseline has a scenario that was not asked for", alone(storage), against, 17, "", "storage allocated (baseline alone); storage write amplification (baseline alone)."},
		{"of a scenario that was, head lacks one", alone(without("head", "allocated")), against, 18, "nothing was measured of storage allocated", ""},
		{"a threshold for nothing", pair(func(*results.Record) {}), unfitting, 19, "", `The threshold for "fetch.* *" fits none`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := mustGate(t, c.r, c.o)
			if len(g.Figures) != c.figures {
				t.Errorf("%d figures, want %d", len(g.Figures), c.figures)
			}
			if strings.Join(g.Short, "; ") != c.short || (g.Result == FellShort) != (c.short != "") {
				t.Errorf("%s: %q, want %q", g.Result, g.Short, c.short)
			}
			lacks := slices.DeleteFunc(slices.Clone(g.Cautions), func(s string) bool {
				return !strings.Contains(s, "one side alone") && !strings.Contains(s, "fits none")
			})
			if len(lacks) > 1 || !strings.Contains(strings.Join(lacks, ""), c.caution) || c.caution == "" && len(lacks) > 0 {
				t.Errorf("told: %q, want %q", lacks, c.caution)
			}
		})
	}
	if _, err := Judge(gated(10, []string{"base", "other"}, flat1), pairOfBuilds); err == nil || err.Error() != "the run has no relay head" {
		t.Errorf("a head that took no part: %v", err)
	}
	other := alone(func(r *results.Record) { r.Environment.Cores++ })
	var incomparable *compare.IncomparableError
	if _, err := Judge(other, against); !errors.As(err, &incomparable) {
		t.Errorf("a baseline of another machine: %v", err)
	}
}

func TestAGateSaysWhatMakesItWeak(t *testing.T) {
	record := func(change func(*results.Record)) *results.Record {
		r := gated(10, []string{"base", "head"}, flat1)
		r.Environment.LoadBefore, r.Environment.Cores = nil, 4
		if change != nil {
			change(r)
		}
		return r
	}
	load := func(x float64) func(*results.Record) {
		return func(r *results.Record) { r.Environment.LoadBefore = &x }
	}
	program := func(hash, command string) func(*results.Record) {
		return func(r *results.Record) {
			r.Relays[0].SHA256, r.Relays[1].SHA256, r.Relays[0].Command, r.Relays[1].Command = hash, hash, "relay", command
		}
	}
	promise := func(base, head string) func(*results.Record) {
		return func(r *results.Record) { r.Relays[0].Durability, r.Relays[1].Durability = base, head }
	}
	for _, c := range []struct {
		name string
		r    *results.Record
		want string // "" for no caution at all
	}{
		{"nothing", record(nil), ""},
		{"half busy", record(load(2)), ""},
		{"more", record(load(2.01)), "The machine was busy before the run: load 2.01 on 4 cores."},
		{"of processors that are not known", record(func(r *results.Record) { load(2)(r); r.Environment.Cores = 0 }), ""},
		{"the same program", record(program("a", "relay")), "Base and head are the same program"},
		{"with another setting", record(program("a", "relay --fast")), ""},
		{"programs that are not known", record(program("", "relay")), ""},
		{"another promise", record(promise("commit", "none")), "An OK promises another durability: commit before, none now."},
		{"a promise that is not known", record(promise("unknown", "none")), ""},
		{"nor after", record(promise("commit", "unknown")), ""},
	} {
		g := mustGate(t, c.r, pairOfBuilds)
		if got := strings.Join(g.Cautions, "; "); !strings.Contains(got, c.want) || c.want == "" && got != "" || len(g.Cautions) > 1 {
			t.Errorf("%s: %q, want %q", c.name, g.Cautions, c.want)
		}
	}
	// Trials from 1 to 1.05: the interval of the median, 1.025, reaches 2.4 % to either side.
	for threshold, told := range map[float64]bool{0.025: false, results.Summarize(six).Spread(): false, 0.024: true} {
		o := pairOfBuilds
		o.Threshold = threshold
		g := mustGate(t, sides(results.Lower, six, six), o)
		if got := strings.Join(g.Cautions, ""); strings.Contains(got, "not known better than ± 2.44 %") != told {
			t.Errorf("threshold %v: %q", threshold, got)
		}
	}
}

func TestHeadlines(t *testing.T) {
	for want, g := range map[string]*Verdict{
		"GREEN: none of 19 figures got worse":                mustGate(t, gated(10, []string{"base", "head"}, flat1), pairOfBuilds),
		"UNDECIDED: nothing was measured that a gate judges": mustGate(t, figure(sides(results.Lower, nil, nil), "ingest.paced", "ok latency", results.Lower, same), pairOfBuilds),
		"SUSPICIOUS: 1 of 1 figure may have got worse":       mustGate(t, sides(results.Lower, apart.base, apart.head), pairOfBuilds),
		"FELL SHORT: head is not fit to be compared: c (preflight)": mustGate(t, func() *results.Record {
			r := gated(10, []string{"base", "head"}, flat1)
			reporttest.Failed("head", "storage")(r)
			return r
		}(), pairOfBuilds),
		"UNDECIDED: While relaybench measured head, the disk of the work folder was full, which is not held against anybody. Free some space, or choose another disk with --work DIR": mustGate(t, func() *results.Record {
			r := gated(10, []string{"base", "head"}, flat1)
			r.Findings = append(r.Findings, results.Finding{Relay: "head", Scenario: "storage", Code: results.CodeCompletes, Verdict: results.Undecided, Cause: results.ShortageDisk})
			return r
		}(), pairOfBuilds),
		"UNDECIDED: too few trials to judge 1 figure; use --trials 5": mustGate(t, sides(results.Lower, six[:3], six[:3]), pairOfBuilds),
	} {
		if got := g.Headline(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
