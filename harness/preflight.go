package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"relaybench/harness/preflight"
	"relaybench/relays"
	"relaybench/relays/client"
	"relaybench/results"
)

// Preflight is the key of the stage that comes before each relay's first trial, on a boot of its
// own.
const Preflight = preflight.Scenario

// Inspection is what a preflight found out about a relay, with the relay as it was run.
type Inspection struct {
	Relay  results.Relay // its outcome says whether it could be asked
	Result preflight.Result
}

// unasked says that the relay could not be asked.
func (i *Inspection) unasked() bool {
	return i.Relay.Outcome == results.OutcomeNoStart || i.Relay.Outcome == results.OutcomeUnmeasured
}

// InformWithin is how long a relay has for its information document (NIP-11).
const InformWithin = 3 * time.Second

// toldVersion asks for the software's version: for programs that do not tell it otherwise. It
// returns "" where the relay does not say.
func toldVersion(ctx context.Context, url string) string {
	said, _ := client.Inform(ctx, url, InformWithin)
	return said.Version
}

// versioned describes a relay, which told this version of itself.
func versioned(p *relays.Process, told string) results.Relay {
	described := p.Describe()
	described.Version = cmp.Or(strings.TrimPrefix(described.Version, "(devel)"), told)
	return described
}

// Inspect boots a relay, asks it all that preflight asks, and stops it. A relay that does not start
// is in the Inspection's outcome; the error is the interruption of ctx.
func Inspect(ctx context.Context, c Target, settings relays.Settings, o preflight.Options) (Inspection, error) {
	found := Inspection{Relay: c.Definition.Describe(ctx, c.Program, settings)}
	var short shortage
	short.begin(settings.WorkDir, c)
	relay := &found.Relay
	process, err := relays.Start(ctx, c.Definition, c.Program, settings)
	if err != nil {
		short.recordFailure(relay, results.OutcomeNoStart, err)
		return found, context.Cause(ctx)
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		process.Stop(stop) // how it stops is judged after a trial
		process.Cleanup()
	}()
	o.URL, o.Relay = process.URL(), relay.Name
	version := toldVersion(ctx, o.URL)
	// A relay that dies ends the questions at once.
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	attend(alive, process, cancel, func() {})
	found.Result, _ = preflight.Run(alive, o) // it ends early only with ctx or with the relay, which is looked at below
	if ctx.Err() != nil {
		return found, context.Cause(ctx)
	}
	described := versioned(process, version)
	described.Outcome = results.OutcomeOK
	described.Capabilities = found.Result.Capabilities
	wanting := !found.Result.Passed() || len(found.Result.AskAgain) > 0
	if process.Err() != nil || wanting && awaitEnd(ctx, process) != nil {
		short.recordFailure(&described, results.OutcomeFailed, fmt.Errorf("died while it was asked: %w", process.Err()))
		described.Reason, described.LogTail = process.Public(described.Reason), process.LogTail(mostLines)
		found.Result.Findings = append(found.Result.Findings, results.Finding{Relay: relay.Name, Scenario: preflight.Scenario, Code: results.CodeSurvives,
			Verdict: results.Failed, Blames: relay.Name, BearsOn: results.BearsOn(results.CodeSurvives, preflight.Scenario, nil),
			Texts: map[string]string{"error": process.Public(fmt.Sprint(process.Err()))}})
	}
	for i := range found.Result.Findings {
		if f := &found.Result.Findings[i]; f.Verdict == results.Failed && short.found() != "" {
			f.Verdict, f.Cause, f.Blames, f.BearsOn = results.Undecided, short.found(), "", nil
		}
	}
	found.Relay = described
	return found, nil
}

// ask inspects a relay with these checks, or all.
func (r *Runner) ask(ctx context.Context, c Target, checks ...string) (Inspection, error) {
	o := r.preflightOptions()
	o.Only = checks
	return Inspect(ctx, c, r.Settings, o)
}

// askAll is ask for the stage of its own, which is watched and whose findings are recorded.
func (r *Runner) askAll(ctx context.Context, c Target, checks ...string) (Inspection, error) {
	r.Observer.Scenario(c.Definition.Name, described(Preflight, "does the relay do what its figures will be taken to mean"))
	found, err := r.ask(ctx, c, checks...)
	for i := 0; i < len(found.Result.Findings) && err == nil; i++ {
		r.Recorder.AddFinding(found.Result.Findings[i])
	}
	return found, err
}

// preflight inspects a relay before its first trial. The error says that the relay does not start.
func (r *Runner) preflight(ctx context.Context, c Target) error {
	found, err := r.askAll(ctx, c)
	if err != nil {
		return err
	}
	r.inspected[c.Definition.Name] = &found
	if found.unasked() {
		r.Recorder.SetRelay(found.Relay)
		return errors.New(found.Relay.Reason)
	}
	// The outcome is that of the trials, which are to come.
	found.Relay.Outcome, found.Relay.Reason = results.OutcomeSkipped, notYet
	r.Recorder.SetRelay(found.Relay)
	return nil
}

// preflightAgain asks once more what could not be asked before: of a relay or a machine that was
// busy then.
func (r *Runner) preflightAgain(ctx context.Context) error {
	for _, c := range r.Targets {
		name := c.Definition.Name
		found := r.inspected[name]
		if found == nil || r.failed[name] || len(found.Result.AskAgain) == 0 {
			continue
		}
		var again Inspection
		err := r.attempt(ctx, name, func() (err error) {
			again, err = r.askAll(ctx, c, found.Result.AskAgain...)
			return err
		})
		if err != nil {
			return err
		}
		found.Result.Merge(&again.Result)
	}
	return nil
}

func (r *Runner) preflightOptions() preflight.Options {
	o := preflight.Options{MaxEventBytes: r.Settings.MaxEventBytes, Wait: min(r.Options.Stall, 5*time.Second)}
	if n := r.Corpus.Len(); n > 0 {
		o.Oldest, o.Newest = r.Corpus.Entry(0).CreatedAt, r.Corpus.Entry(n-1).CreatedAt
	}
	for _, c := range r.Recorder.Snapshot().Calibration {
		if c.Name == results.SyncMedian {
			o.Fsync = time.Duration(c.Value * float64(time.Millisecond))
		}
	}
	return o
}
