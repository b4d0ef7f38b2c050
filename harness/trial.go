package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness/load"
	"relaybench/harness/preflight"
	"relaybench/relays"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Boot is one relay's one boot, which all scenarios of it share.
type Boot struct {
	Relay      *relays.Process // Restart and Refill give it another one; nil for the harness itself
	Corpus     *corpus.Corpus
	Model      *model.Model // of the whole corpus, at Now
	Now        int64        // Unix seconds, fixed for the run: what has expired (NIP-40) is decided once
	Options    Options
	Number     int // of the trial, from 0
	Ledger     *load.Ledger
	Budget     *load.Budget         // of whatever moves the relay's events
	Negentropy preflight.Negentropy // whether it was found to speak NIP-77, where that was asked
	Unready    error                // of AtOnce, set by the scenario: the relay could not be reached

	place       int    // among the relays of its trial
	version     string // that it told of itself
	recorder    *results.Recorder
	observer    Observer
	used        relays.Usage   // at the last look
	past        relays.Usage   // of processes before the relay's present one
	ran         bool           // it was started
	stopped     bool           // and ended, by a scenario
	loaded      bool           // with what a scenario needs
	seeded      bool           // by the runner's Seeder
	peaks       []*relays.Peak // of memory in the scenario, of the relay's processes
	commandPeak uint64         // of memory in the scenario, of its own command
	attend      func()         // to be called when the relay has another process
}

// Trial is a boot as one scenario sees it: all that it measures and finds is recorded under the
// scenario's key and labels, and the relay's peer.
type Trial struct {
	*Boot
	Peer *Trial     // the other relay of a pair; of an ordered one, the source of this sink, and its sink
	All  []*Trial   // of AtOnce, the relays
	Rand *rand.Rand // the same draws for every relay; new for each scenario and trial

	scenario string
	labels   results.Labels
	mute     bool  // the second of two instances of one relay: its figures would be taken for another trial's
	began    spent // before the scenario

	readingSet bool // recorded in this scenario
	ownCPUSet  bool
	unmeasured bool // the scenario
}

// Under returns the trial under another scenario, which it describes in the record and which begins
// now.
func (t *Trial) Under(d Description) *Trial {
	describe(t.recorder, d)
	under := &Trial{Boot: t.Boot, Peer: t.Peer, Rand: t.Rand, scenario: d.Key, labels: d.Labels, mute: t.mute, began: t.began}
	under.began.own = ownNow()
	return under
}

// Alone returns the trial without the relay's peer: for what it did by itself.
func (t *Trial) Alone() *Trial {
	return &Trial{Boot: t.Boot, Rand: t.Rand, scenario: t.scenario, labels: t.labels}
}

// With returns the trial with more labels on all that it records.
func (t *Trial) With(labels results.Labels) *Trial {
	with := *t
	with.labels = t.labels.With(labels)
	return &with
}

// describe takes a scenario into the record, with what every one records beside its own figures.
func describe(r *results.Recorder, d Description) {
	r.Describe(d.Scenario, append(slices.Clone(d.Metrics), resourceMetrics...)...)
}

func (t *Trial) peer() string {
	if t.Peer == nil {
		return ""
	}
	return t.Peer.Relay.Name()
}

// Measure records a measurement of this relay in this scenario. Its labels are added to those of
// the scenario.
func (t *Trial) Measure(m results.Measurement) {
	if t.mute {
		return
	}
	m.Relay, m.Peer, m.Scenario, m.Labels = t.name(), t.peer(), t.scenario, t.labels.With(m.Labels)
	t.recorder.Add(m)
}

// Value records a single figure as this trial's value of a metric.
func (t *Trial) Value(metric, unit string, better results.Better, value float64) {
	t.Measure(results.Measurement{Metric: metric, Unit: unit, Better: better, Trials: []float64{value}})
}

// Latency records the median of a histogram, in milliseconds, as this trial's value, and the
// histogram with it. An empty histogram records nothing: there is no latency of what never
// happened.
func (t *Trial) Latency(metric string, better results.Better, h *results.Histogram, status ...results.Status) error {
	if h.Count() == 0 {
		return nil
	}
	m := results.Measurement{Metric: metric, Unit: "ms", Better: better, Trials: []float64{Milliseconds(h.Quantile(0.5))}, Status: status}
	if err := m.SetHistogram(h); err != nil {
		return err
	}
	t.Measure(m)
	return nil
}

// AddFinding records what a check found out about this relay in this scenario. A failure is this
// relay's fault unless Blames says otherwise, and bears on what results.BearsOn says unless BearsOn
// does. What the relay wrote may name folders of this machine, which go unnamed.
func (t *Trial) AddFinding(f results.Finding) {
	t.public(&f)
	f.Relay, f.Peer, f.Scenario, f.Labels = t.name(), t.peer(), t.scenario, t.labels.With(f.Labels)
	if f.Verdict != results.Failed {
		f.BearsOn = nil
	} else if f.Blames = cmp.Or(f.Blames, f.Relay); f.BearsOn == nil {
		f.BearsOn = results.BearsOn(f.Code, f.Scenario, f.Labels)
	}
	t.recorder.AddFinding(f)
}

// name is the relay's, and none of the harness itself.
func (b *Boot) name() string {
	if b.Relay == nil {
		return ""
	}
	return b.Relay.Name()
}

// public leaves the folders of this machine unnamed.
func (b *Boot) public(f *results.Finding) {
	if b.Relay == nil {
		return
	}
	for name, text := range f.Texts {
		f.Texts[name] = b.Relay.Public(text)
	}
	for i := range f.Evidence {
		f.Evidence[i].Text = b.Relay.Public(f.Evidence[i].Text)
	}
}

// NotMeasured records that a scenario is none for this relay, and why; no figures of it are kept.
func (t *Trial) NotMeasured(cause string, texts map[string]string) {
	t.unmeasured = true
	t.AddFinding(results.Finding{Code: results.CodeMeasurable, Verdict: results.Stated, Cause: cause, Texts: texts})
}

// Progress tells whoever watches how far the scenario is.
func (b *Boot) Progress(done, total int) { b.observer.Progress(done, total) }

// Within is the context of a run that moves so many events, by the Budget or Options.CellTime.
func (b *Boot) Within(ctx context.Context, events int) (context.Context, context.CancelFunc) {
	return b.Budget.Within(ctx, b.Options.CellTime, events)
}

// Publisher is one to this relay, in a closed loop, that keeps its Ledger.
func (b *Boot) Publisher(progress func(done, total int)) load.Publisher {
	return load.Publisher{URL: b.Relay.URL(), Corpus: b.Corpus, Conns: b.Options.Publishers, Window: b.Options.Window,
		Stall: b.Options.Stall, Ledger: b.Ledger, Progress: progress}
}

// Publish gives the relay those events of a share of the corpus that it was not offered yet,
// outside the clock, and forged ones among them.
func (t *Trial) Publish(ctx context.Context, share State) error {
	var rest []int
	for i, to := share.Share(t.Model); i < to; i++ {
		if t.Ledger.Get(i) == load.NotOffered {
			rest = append(rest, i)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	t.observer.Scenario(t.Relay.Name(), described(seeding, "feeding the corpus, not measured"))
	return t.Forged(ctx, func(progress func(done, total int)) error {
		p := t.Publisher(progress)
		began := wire.Now()
		_, err := p.Publish(ctx, rest)
		if err == nil {
			t.Budget.Took(len(rest), wire.Now()-began)
		}
		return err
	})
}

// Stop ends the relay by its stop signal. No scenario can talk to it before a Restart. The usage
// returned is the last that could be seen; clean is false where the relay had to be killed after
// its grace.
func (b *Boot) Stop(ctx context.Context) (used relays.Usage, clean bool, err error) {
	b.spent()
	b.stopped = true
	err = b.Relay.Stop(ctx)
	return b.used, !errors.Is(err, relays.ErrForced), b.ended(err)
}

// Kill ends the relay's processes at once, as a crash would. The scenario owes it a Restart once
// Relay.Done tells that they are gone.
func (b *Boot) Kill() {
	b.spent() // the last that can be seen of what they used
	b.Relay.Kill()
}

// Restart boots the relay again over the data that a killed or stopped process left, under another
// address, or for the first time where it was not booted. After an error no scenario can talk to it
// any more.
func (b *Boot) Restart(ctx context.Context) error {
	b.past, b.stopped = b.used, true
	process, err := b.Relay.Restart(ctx)
	if err != nil {
		return err
	}
	b.Relay, b.ran, b.stopped = process, true, false
	b.attend()
	return nil
}

// Refill gives the boot its relay anew, in a fresh folder that the relay's own import command
// fills: what it held is gone, and so is what the Ledger says of it. fill is called with the relay
// as that command wants it, not yet booted or running. When Refill returns nil the relay runs on
// what the command left, under another address; after an error no scenario can talk to it any more.
// Without a fill the folder stays empty.
func (b *Boot) Refill(ctx context.Context, fill func(*relays.Process) (*relays.CommandResult, error)) error {
	if b.Relay.External() {
		return relays.ErrExternal
	}
	if _, _, err := b.Stop(ctx); err != nil {
		return fmt.Errorf("stopping the relay: %w", err)
	}
	fresh, err := b.Relay.Fresh()
	if err != nil {
		return err
	}
	old := b.Relay
	b.past, b.Relay = b.used, fresh
	b.Ledger, b.loaded = load.NewLedger(b.Corpus.Len()), false
	if err := old.Cleanup(); err != nil {
		return err
	}
	if fill == nil {
		return b.Restart(ctx)
	}
	// Either the command fills the folder of a relay that runs, or the relay starts on what it left.
	start := func() error {
		err := b.Restart(ctx)
		if start := (*relays.StartError)(nil); errors.As(err, &start) {
			return fmt.Errorf("it did not start on what its import command left: %w", err)
		}
		return err
	}
	running := fresh.Definition().NeedsRun(relays.Import)
	if running {
		if err := start(); err != nil {
			return err
		}
	}
	carried, err := fill(b.Relay)
	if carried != nil {
		b.past, b.used = together(b.past, carried.Usage), together(b.used, carried.Usage)
		b.commandPeak = max(b.commandPeak, carried.Usage.PeakRSS)
	}
	if err != nil || running {
		return err
	}
	return start()
}

// together is what two processes that ran one after the other have used. What is open and resident
// is the second's.
func together(first, second relays.Usage) relays.Usage {
	second.CPUSeconds += first.CPUSeconds
	second.ReadBytes += first.ReadBytes
	second.WriteBytes += first.WriteBytes
	second.ContextSwitches += first.ContextSwitches
	second.PeakRSS = max(second.PeakRSS, first.PeakRSS)
	return second
}

// ended states how a relay took the signal to end, and whether anything of it ran on. Neither is an
// error of the trial: what is left of err is returned.
func (b *Boot) ended(err error) error {
	if !b.ran {
		return err
	}
	forced, left := (*relays.StopError)(nil), (*relays.LeftoverError)(nil)
	stops := results.Finding{Code: results.CodeStops, Verdict: results.Passed}
	if errors.As(err, &forced) && !forced.Interrupted {
		stops.Verdict, stops.Cause = results.Stated, results.CauseForced
		stops.Counts = map[string]float64{"s": forced.Grace.Seconds()}
	}
	processes := results.Finding{Code: results.CodeProcesses, Verdict: results.Passed}
	if errors.As(err, &left) {
		var names []string
		for _, p := range left.Processes {
			names = append(names, p.Command)
		}
		processes.Verdict, processes.Counts = results.Stated, map[string]float64{"processes": float64(len(names))}
		processes.Texts = map[string]string{"names": strings.Join(names, ", ")}
	}
	whole := &Trial{Boot: b}
	whole.AddFinding(stops)
	whole.AddFinding(processes)
	if forced != nil || left != nil {
		return nil
	}
	return err
}

// gone reports whether the relay's process has ended.
func (b *Boot) gone() bool {
	select {
	case <-b.Relay.Done():
		return true
	default:
		return false
	}
}
