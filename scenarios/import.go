package scenarios

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/results"
)

// Import has a relay's own import command fill a fresh folder with the corpus, boots the relay on
// it, and counts what it holds by asking it. What the command says of itself counts for nothing.
type Import struct{}

// Describe implements harness.Scenario.
func (Import) Describe() harness.Description {
	d := harness.Description{Needs: harness.Empty, Scenario: results.Scenario{Key: "import",
		Title: "Filled by its own import command, and counted by asking", Section: "Import", Order: orderImport,
		Primary: "stored", Unit: "events/s", Layout: results.LayoutBars, Ceiling: results.CeilingNone},
		Metrics: figures("stored", "stored", "held afterwards", "held afterwards", "duration", "duration", "not stored", "not stored")}
	for _, key := range []string{"cpu per 1,000 stored", "cpu of the command", "peak rss of the command"} {
		d.Metrics = append(d.Metrics, results.Metric{Key: key, Title: key, Role: results.RoleResource})
	}
	return d
}

// Run implements harness.Scenario. Afterwards the Ledger has each event as accepted or, where it
// was not found, as not imported.
func (Import) Run(ctx context.Context, t *harness.Trial) error {
	if ok, why := t.Relay.Definition().Can(relays.Import); !ok {
		t.NotMeasured(results.NoCommand, map[string]string{"relay": t.Relay.Name(), "why": why})
		return nil
	}
	n := t.Corpus.Len()
	cell, cancel := t.Within(ctx, n)
	defer cancel()
	var carried *relays.CommandResult
	var account load.Account // of what was stored until the time was over
	err := t.Refill(ctx, func(relay *relays.Process) (_ *relays.CommandResult, err error) {
		carried, err = relay.Import(cell, t.Corpus.Text(), relays.CommandOptions{Stall: t.Options.Stall, Progress: func(done, total int64) {
			t.Progress(int(float64(n)*float64(done)/float64(max(1, total))), n)
		}})
		if carried != nil && cell.Err() != nil && ctx.Err() == nil {
			account.End(err)
			err = nil
		}
		return carried, err
	})
	if err != nil {
		return err
	}
	// What a compliant relay holds differs least from what this one does.
	held, err := findHeld(ctx, t, t.Model.Effective(), nil, certainly(t.Model), nil)
	if err != nil {
		return fmt.Errorf("counting what was imported: %w", err)
	}
	for _, f := range held.findings(t.Corpus, t.Model) {
		t.AddFinding(f)
	}
	recordImport(t, carried, held.events, &account)
	recordLate(t, &held.LookedUp)
	findImported(t, held, &account)
	if account.Completeness() == load.Complete {
		t.Budget.Took(len(held.events), carried.Took)
	}
	return nil
}

// recordImport keeps what the import cost. Rates count what was found.
func recordImport(t *harness.Trial, carried *relays.CommandResult, held []int, account *load.Account) {
	seconds, stored, used := carried.Took.Seconds(), float64(len(held)), carried.Usage
	t.Measure(account.Mark(results.Measurement{Metric: "stored", Unit: "events/s", Better: results.Higher,
		Trials: []float64{stored / seconds}, Samples: int64(stored)}))
	t.Value("duration", "s", results.None, seconds) // the rate says it, and is what is compared
	t.Value("held afterwards", "events", results.None, stored)
	t.Value("cpu of the command", "s", results.None, used.CPUSeconds)
	if used.PeakRSS > 0 { // it lived long enough to be seen
		t.Value("peak rss of the command", "MiB", results.None, float64(used.PeakRSS)/(1<<20))
	}
	if stored > 0 {
		sampled(t, "cpu per 1,000 stored", "s", results.Lower, used.CPUSeconds*1000/stored, len(held))
		t.Value("write amplification while importing", "bytes/byte", results.None, float64(used.WriteBytes)/float64(bytesOf(t.Corpus, held)))
	}
}

// findImported judges what was found, explains what was not by what the protocol takes away again,
// and keeps both in the Ledger. Of an import that was ended it is the account that is judged.
func findImported(t *harness.Trial, held *found, account *load.Account) {
	for i, holds := range held.holds {
		t.Ledger.Set(i, map[bool]load.Answer{true: load.Accepted, false: load.NotImported}[holds])
	}
	d := compare(t, t.Model, held.events, nil)
	gone := make(map[string]int)
	for _, i := range where(t.Corpus, func(i int) bool { return !t.Model.Holds(i) && !held.holds[i] }) {
		gone[t.Model.Why(i).String()]++
	}
	f := d.finding(results.CodeImported)
	f.Counts["file"] = float64(t.Corpus.Len())
	if f.Cause = "asked"; held.reconciled {
		f.Cause = "reconciled"
	}
	for _, reason := range slices.Sorted(maps.Keys(gone)) {
		t.With(results.Labels{results.LabelReason: reason}).Value("not stored", "events", results.None, float64(gone[reason]))
		f.Counts["rightly."+reason] = float64(gone[reason])
	}
	if account.Completeness() != load.Complete {
		f.Verdict = results.Stated
		account.Expected, account.Missing, account.Delivered = d.expected, int(f.Counts["missing."+results.MissingNotImported]), len(held.events)
		if ended, ok := account.Finding(); ok {
			t.AddFinding(ended)
		}
	}
	t.AddFinding(f)
}
