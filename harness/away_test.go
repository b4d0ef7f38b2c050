package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"relaybench/corpus/model"
	"relaybench/relays"
	"relaybench/relays/scripted"
	"relaybench/results"
)

func TestTheClockKnowsWhenItWasStopped(t *testing.T) {
	type gap struct {
		late, slept time.Duration // beyond lookEvery; of it, with the machine suspended
		signal      time.Duration // when SIGCONT is handled, from the look on; 0: never
	}
	const s = time.Second
	for _, test := range []struct {
		name string
		gaps []gap
		want away
	}{
		{"in time", []gap{{}, {}, {}}, away{}},
		{"a busy machine", []gap{{late: 150 * time.Millisecond}, {late: 700 * time.Millisecond}, {late: 1900 * time.Millisecond}}, away{}},
		{"a busy machine for long", slices.Repeat([]gap{{late: s}}, 20), away{}},
		{"a signal without a stop", []gap{{signal: time.Nanosecond}, {late: s}}, away{}},
		{"stopped for a second", []gap{{late: 900 * time.Millisecond, signal: time.Nanosecond}}, away{1, 900 * time.Millisecond}},
		{"the signal comes after the look", []gap{{late: 900 * time.Millisecond, signal: 300 * time.Millisecond}, {}}, away{1, 900 * time.Millisecond}},
		{"stopped for 20 s", []gap{{}, {late: 20 * s, signal: time.Nanosecond}, {}}, away{1, 20 * s}},
		{"stopped twice", []gap{{late: s, signal: time.Nanosecond}, {late: 700 * time.Millisecond}, {late: 3 * s, signal: time.Nanosecond}}, away{2, 4 * s}},
		{"suspended", []gap{{late: s, slept: s}, {late: s}}, away{1, s}},
		{"suspended while it was busy", []gap{{late: s, slept: 400 * time.Millisecond}}, away{}},
		{"frozen or held up", []gap{{late: 2 * s}, {late: 5 * s}}, away{2, 7 * s}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var now, awake, due time.Duration
			continued := make(chan os.Signal, 1)
			c := &clock{now: func() time.Duration { return now }, awake: func() time.Duration { return awake }, continued: continued}
			c.sleep = func(d time.Duration) {
				now, awake = now+d, awake+d
				if due > 0 && now >= due {
					due = 0
					continued <- syscall.SIGCONT
				}
			}
			for _, g := range test.gaps {
				next := c.looked + lookEvery + g.late
				awake += next - now - g.slept
				now = next
				if g.signal > 0 {
					due = now + g.signal
				}
				if g.signal == time.Nanosecond { // it is there already
					due = 0
					continued <- syscall.SIGCONT
				}
				c.look()
			}
			expect(t, "away", c.away(), test.want)
		})
	}
}

// A scenario that ends as soon as the process runs again asks before the clock has looked.
func TestAClockThatIsOverdueIsWaitedFor(t *testing.T) {
	now, slept := 20*time.Second, 0
	c := &clock{now: func() time.Duration { return now }, awake: func() time.Duration { return now }}
	c.sleep = func(time.Duration) {
		if slept++; slept == 3 {
			c.look()
		}
	}
	got := c.away()
	expect(t, "away", got, away{1, 20*time.Second - lookEvery})
	expect(t, "waited", slept >= 3, true)
	now += 40 * time.Second
	c.ended = true
	expect(t, "one that has ended is not waited for", c.away(), got)
	expect(t, "none at all", (*clock)(nil).away(), away{})
}

func TestAClockRunsUntilItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := startClock(ctx)
	ended := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.ended
	}
	looked := func() time.Duration {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.looked
	}
	for first := looked(); looked() == first; {
		time.Sleep(time.Millisecond)
	}
	expect(t, "ended", ended(), false)
	cancel()
	for !ended() {
		time.Sleep(time.Millisecond)
	}
}

// leaves stands for a clock: who calls gone was away.
type leaves struct{ *clock }

func newLeaves() leaves {
	return leaves{&clock{now: func() time.Duration { return 0 }}}
}

func (l leaves) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone.times++
	l.gone.long += 20 * time.Second
}

// step is a scenario of a test.
type step struct {
	key string
	run func(ctx context.Context, t *Trial) error
}

func (s step) Describe() Description {
	return Description{Scenario: results.Scenario{Key: s.key}}
}
func (s step) Run(ctx context.Context, t *Trial) error { return s.run(ctx, t) }

type silent struct{}

func (silent) Trial(string, int, int, int)  {}
func (silent) Scenario(string, Description) {}
func (silent) Progress(int, int)            {}
func (silent) Failed(string, error)         {}

// runnerOf has everything but scenarios.
func runnerOf(t *testing.T, l leaves, all ...*scripted.Relay) *Runner {
	t.Helper()
	c := scripted.Notes(t, 20)
	m := must(model.New(c, nil, time.Now().Unix()))(t)
	r := &Runner{Corpus: c, Model: m, Now: time.Now().Unix(), Options: Options{Seed: 1, Publishers: 1, Window: 4, Trials: 2, Stall: 30 * time.Second},
		Settings: relays.Settings{WorkDir: t.TempDir()}, Recorder: results.NewRecorder(nil, nil), Observer: silent{}, clock: l.clock}
	for _, relay := range all {
		r.Targets = append(r.Targets, Target{Definition: relay.Definition})
	}
	return r
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// figuresOf are the values and marks of the metric "n" by scenario.
func figuresOf(r *results.Record) map[string]string {
	all := map[string]string{}
	for _, m := range r.Measurements {
		if m.Metric != "n" {
			continue
		}
		text := fmt.Sprint(m.Trials)
		for _, s := range m.Status {
			text += fmt.Sprintf(" %s %v×%v s", s.Code, s.Counts["times"], s.Counts["s"])
		}
		all[m.Scenario+m.Peer] = text
	}
	return all
}

// TestATrialIsRunAgainWhereTheHarnessWasAway has two trials of three scenarios. Each figure is how
// often the relay had been booted by then.
func TestATrialIsRunAgainWhereTheHarnessWasAway(t *testing.T) {
	t.Parallel()
	refused := errors.New("the connection was lost")
	for _, test := range []struct {
		name    string
		gone    []int // boots, from 1, in whose second scenario the harness is away
		fails   []int // boots in which it fails
		figures map[string]string
		boots   int64
		verdict results.Verdict // on whether it completes, where that is told
	}{
		{"never", nil, nil, map[string]string{"one": "[1 2]", "two": "[1 2]", "three": "[1 2]"}, 2, results.Passed},
		{"once", []int{1}, nil, map[string]string{"one": "[1 3]", "two": "[2 3] repeated 1×20 s", "three": "[1 3]"}, 3, results.Passed},
		{"once, and it failed for that", []int{1}, []int{1}, map[string]string{"one": "[1 4]", "two": "[3 4] repeated 1×20 s", "three": "[2 4]"}, 4, results.Passed},
		{"twice", []int{1, 2}, []int{2}, map[string]string{"one": "[1 3]", "two": "[2 3] harness-away 1×20 s", "three": "[1 3]"}, 3, results.Undecided},
		{"never, and it fails", nil, []int{1}, map[string]string{"one": "[1 3]", "two": "[1 3]", "three": "[2 3]"}, 3, results.Failed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			relay, l := scripted.External(t, "scripted", scripted.Script{}), newLeaves()
			r := runnerOf(t, l, relay)
			counted := func(t *Trial) { t.Value("n", "boots", results.Higher, float64(relay.Boots.N())) }
			plain := func(_ context.Context, t *Trial) error { counted(t); return nil }
			r.Scenarios = []Scenario{step{"one", plain}, step{"two", func(_ context.Context, t *Trial) error {
				counted(t)
				boot := int(relay.Boots.N())
				if slices.Contains(test.gone, boot) {
					l.leave()
				}
				fails := slices.Contains(test.fails, boot)
				t.AddFinding(results.Finding{Code: results.CodeAccepts, Verdict: results.Holds(!fails)})
				if fails {
					return refused
				}
				return nil
			}}, step{"three", plain}}
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			record := r.Recorder.Snapshot()
			if got := figuresOf(&record); !maps.Equal(got, test.figures) {
				t.Errorf("%v\nwant %v", got, test.figures)
			}
			expect(t, "boots", relay.Boots.N(), test.boots)
			for _, f := range record.Findings {
				switch {
				case f.Verdict == results.Failed && test.verdict != results.Failed, f.Code == results.CodeCompletes && f.Verdict != test.verdict,
					f.Verdict != results.Failed && (f.Blames != "" || f.BearsOn != nil):
					t.Errorf("%+v", f)
				}
			}
			expect(t, "outcome", record.Relays[0].Outcome, results.OutcomeOK)
		})
	}
}

// A relay that runs already has the corpus from the first time: nothing is done again, and the
// figures are marked.
func TestARelayThatRunsAlreadyIsNotMeasuredAgain(t *testing.T) {
	t.Parallel()
	relay, l := scripted.Serve(t, scripted.Script{}), newLeaves()
	r := runnerOf(t, l)
	d := must(relays.FromTemplate("one", relay.URL))(t)
	r.Targets, r.Options.Trials = []Target{{Definition: &d}}, 1
	ran := 0
	r.Scenarios = []Scenario{step{"one", func(_ context.Context, t *Trial) error {
		ran++
		t.Value("n", "times", results.Higher, float64(ran))
		t.Value("stated", "times", results.None, 1)
		l.leave()
		return nil
	}}}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	record := r.Recorder.Snapshot()
	expect(t, "ran", ran, 1)
	expect(t, "figure", figuresOf(&record)["one"], "[1] harness-away 1×20 s")
	for _, m := range record.Measurements {
		expect(t, m.Metric+" is marked", m.Is(results.StatusAway) != nil, m.Better != results.None)
	}
}

// TestWhatEndsATrialWhileTheHarnessIsAwayIsDoneAgain has a relay that does not start over its data
// after the harness was away, as it would after a deadline that nobody kept.
func TestWhatEndsATrialWhileTheHarnessIsAwayIsDoneAgain(t *testing.T) {
	t.Parallel()
	relay, l := scripted.External(t, "scripted", scripted.Script{}), newLeaves()
	r := runnerOf(t, l, relay)
	r.Options.Trials = 1
	var ran []string
	noted := func(key string, run func(*Trial) error) Scenario {
		return step{key, func(_ context.Context, t *Trial) error {
			ran = append(ran, key)
			t.Value("n", "boots", results.Higher, float64(relay.Boots.N()))
			return run(t)
		}}
	}
	fine := func(*Trial) error { return nil }
	r.Scenarios = []Scenario{noted("one", fine), noted("two", func(t *Trial) error {
		if len(ran) > 2 {
			return nil
		}
		l.leave()
		if err := os.RemoveAll(t.Relay.Dir()); err != nil {
			return err
		}
		return errors.Join(errors.New("lost"), os.WriteFile(t.Relay.Dir(), nil, 0o400)) // nothing starts there
	}), noted("three", fine)}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	record := r.Recorder.Snapshot()
	expect(t, "ran", fmt.Sprint(ran), "[one two one two three]")
	if got, want := figuresOf(&record), map[string]string{"one": "[1]", "two": "[2] repeated 1×20 s", "three": "[2] repeated 1×20 s"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	expect(t, "outcome", record.Relays[0].Outcome, results.OutcomeOK)
}

// pairStep is a scenario of two relays.
type pairStep struct {
	cast Cast
	run  func(a, b *Trial) error
}

func (p pairStep) Describe() Description {
	return Description{Scenario: results.Scenario{Key: "pair"}, Cast: p.cast, Bulk: p.cast == Ordered}
}
func (p pairStep) Run(ctx context.Context, t *Trial) error {
	if p.cast == Pair {
		return p.run(t, t.Peer)
	}
	if err := t.Restart(ctx); err != nil {
		return err
	}
	return p.run(t.Peer, t)
}

func TestPairsAndSyncsAreDoneAgainWhereTheHarnessWasAway(t *testing.T) {
	t.Parallel()
	for _, times := range []int{0, 1, 2} {
		for _, cast := range []Cast{Pair, Ordered} {
			t.Run(fmt.Sprint(times, " times, cast ", cast), func(t *testing.T) {
				t.Parallel()
				l := newLeaves()
				r := runnerOf(t, l, scripted.External(t, "a", scripted.Script{}), scripted.External(t, "b", scripted.Script{}))
				r.Options.Trials = 1
				ran := 0
				r.Scenarios = []Scenario{pairStep{cast, func(a, b *Trial) error {
					if cast == Ordered && (a.Relay.Name() != "a" || b.Relay.Name() != "b") {
						return nil // one of the four pairs is enough
					}
					ran++
					b.Value("n", "times", results.Higher, float64(ran))
					if ran <= times {
						l.leave()
						return errors.New("the connection was lost")
					}
					return nil
				}}}
				if err := r.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				record := r.Recorder.Snapshot()
				expect(t, "ran", ran, min(times+1, 2))
				expect(t, "figure", figuresOf(&record)["paira"], []string{"[1]", "[2] repeated 1×20 s", "[2] harness-away 1×20 s"}[times])
				undecided := 0
				for _, f := range record.Findings {
					if f.Verdict == results.Failed {
						t.Errorf("%+v", f)
					}
					if f.Code == results.CodeCompletes && f.Verdict == results.Undecided {
						undecided++
					}
				}
				expect(t, "undecided", undecided > 0, times == 2)
			})
		}
	}
}

func TestAPreflightIsAskedAgainWhereTheHarnessWasAway(t *testing.T) {
	t.Parallel()
	relay, l := scripted.External(t, "scripted", scripted.Script{}), newLeaves()
	r := runnerOf(t, l, relay)
	asked := 0
	work := func() error {
		asked++
		if asked == 1 {
			l.leave()
		}
		r.Recorder.AddFinding(results.Finding{Relay: "scripted", Scenario: "preflight", Code: results.CodeStores, Verdict: results.Holds(asked == 2), Blames: "scripted"})
		return nil
	}
	if err := r.attempt(t.Context(), "scripted", work); err != nil {
		t.Fatal(err)
	}
	expect(t, "asked", asked, 2)
	if f := r.Recorder.Snapshot().Findings; len(f) != 1 || f[0].Verdict != results.Passed {
		t.Errorf("%+v", f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := r.attempt(ctx, "scripted", func() error { l.leave(); cancel(); asked++; return context.Canceled })
	expect(t, "one that is interrupted is not asked again", errors.Is(err, context.Canceled) && asked == 3, true)
}
