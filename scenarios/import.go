package scenarios

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"relaybench/corpus/model"
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
	return harness.Description{Needs: harness.Empty, Scenario: results.Scenario{
		Key: "import", Title: "Filled by its own import command, and counted by asking", Section: sectionImport, Order: orderImport, Primary: "stored", Unit: "events/s",
		Layout: results.LayoutBars, Ceiling: results.CeilingNone,
	}, Metrics: []results.Metric{
		figure("stored", "stored"), figure("held afterwards", "held afterwards"), figure("duration", "duration"), figure("not stored", "not stored"),
		resource("cpu per 1,000 stored", "cpu per 1,000 stored"), resource("cpu of the command", "cpu of the command"),
		resource("peak rss of the command", "peak rss of the command"),
	}}
}

// Run implements harness.Scenario. Afterwards the Ledger has each event as accepted or, where it
// was not found, as not imported.
func (Import) Run(ctx context.Context, t *harness.Trial) error {
	if ok, why := t.Relay.Definition().Can(relays.Import); !ok {
		t.NotMeasured(results.NoCommand, map[string]string{"relay": t.Relay.Name(), "why": why})
		return nil
	}
	cell, cancel := t.Within(ctx, t.Corpus.Len())
	defer cancel()
	var carried *relays.CommandResult
	var account load.Account // of what was stored until the time was over
	err := t.Refill(ctx, func(relay *relays.Process) (_ *relays.CommandResult, err error) {
		carried, err = relay.Import(cell, t.Corpus.Text(), relays.CommandOptions{
			Stall: t.Options.Stall,
			Progress: func(done, total int64) {
				t.Progress(int(float64(t.Corpus.Len())*float64(done)/float64(max(1, total))), t.Corpus.Len())
			},
		})
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
	held, err := findHeld(ctx, t, t.Model.Effective(), t.Model, nil)
	if err != nil {
		return fmt.Errorf("counting what was imported: %w", err)
	}
	for _, f := range held.findings(t.Corpus, t.Model) {
		t.AddFinding(f)
	}
	recordImport(t, carried, held.events, &account)
	recordLate(t, held.Late, held.LateBy)
	findImported(t, held, &account)
	if account.Completeness() == load.Complete {
		t.Budget.Took(len(held.events), carried.Took)
	}
	return nil
}

// recordImport keeps what the import cost. Rates count what was found.
func recordImport(t *harness.Trial, carried *relays.CommandResult, held []int, account *load.Account) {
	seconds, stored := carried.Took.Seconds(), int64(len(held))
	var bytes int64
	for _, i := range held {
		bytes += int64(t.Corpus.Entry(i).Length)
	}
	t.Measure(account.Mark(results.Measurement{Metric: "stored", Unit: "events/s", Better: results.Higher, Trials: []float64{float64(stored) / seconds}, Samples: stored}))
	t.Value("duration", "s", results.None, seconds) // the rate says it, and is what is compared
	t.Value("held afterwards", "events", results.None, float64(stored))
	t.Value("cpu of the command", "s", results.None, carried.Usage.CPUSeconds)
	if carried.Usage.PeakRSS > 0 { // it lived long enough to be seen
		t.Value("peak rss of the command", "MiB", results.None, float64(carried.Usage.PeakRSS)/(1<<20))
	}
	if stored > 0 {
		t.Measure(results.Measurement{Metric: "cpu per 1,000 stored", Unit: "s", Better: results.Lower, Trials: []float64{carried.Usage.CPUSeconds * 1000 / float64(stored)}, Samples: stored})
		t.Value("write amplification while importing", "bytes/byte", results.None, float64(carried.Usage.WriteBytes)/float64(bytes))
	}
}

// findImported judges what was found, explains what was not by what the protocol takes away again,
// and keeps both in the Ledger. Of an import that was ended it is the account that is judged.
func findImported(t *harness.Trial, held *found, account *load.Account) {
	for i := range t.Corpus.Len() {
		t.Ledger.Set(i, load.NotImported)
	}
	for _, i := range held.events {
		t.Ledger.Set(i, load.Accepted)
	}
	d := compareWith(t.Corpus, t.Model, held.events, func(i int) string { return missingBecause(t.Ledger.Get(i), false) })
	gone := make(map[model.Reason]int)
	for i := range t.Corpus.Len() {
		if !t.Model.Holds(i) && t.Ledger.Get(i) == load.NotImported {
			gone[t.Model.Why(i)]++
		}
	}
	f := results.Finding{Code: results.CodeImported, Verdict: results.Holds(d.none()), Counts: d.counts(), Evidence: d.evidence()}
	f.Counts["file"] = float64(t.Corpus.Len())
	if f.Cause = "asked"; held.reconciled {
		f.Cause = "reconciled"
	}
	for _, reason := range slices.Sorted(maps.Keys(gone)) {
		t.Measure(results.Measurement{Metric: "not stored", Unit: "events", Better: results.None, Trials: []float64{float64(gone[reason])},
			Labels: results.Labels{results.LabelReason: reason.String()}})
		f.Counts["rightly."+reason.String()] = float64(gone[reason])
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
