package scenarios

import (
	"context"
	"errors"
	"fmt"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Storage stops the relay cleanly, looks at what it left on disk, and starts it again over that:
// what is not returned then is lost, and counts for nothing.
type Storage struct{}

// Describe implements harness.Scenario.
func (Storage) Describe() harness.Description {
	return harness.Description{Needs: harness.Loaded, Scenario: results.Scenario{
		Key: "storage", Title: "On disk after a clean stop", Section: "Storage", Order: orderStorage, Primary: "allocated", Unit: "bytes/event",
		Layout:    results.LayoutBars,
		Headlines: []results.Headline{{Metric: "allocated", Title: "disk/event"}, {Metric: "write amplification", Title: "written"}},
	}, External: results.Finding{Cause: results.ExternalDisk}, Metrics: figures("allocated", "disk blocks", "apparent", "file lengths",
		"write amplification", "bytes written for each corpus byte", "restart", "from start to ready, over what it left",
		"answer after restart", "first answer after that", "allocated in all", "disk blocks in all")}
}

// leastStored is how many bytes an event takes at least, however it is stored: its signature, which
// nothing compresses.
const leastStored = 64

// Run implements harness.Scenario.
func (Storage) Run(ctx context.Context, t *harness.Trial) error {
	acknowledged := where(t.Corpus, t.Ledger.Acknowledged)
	if len(acknowledged) == 0 {
		return errors.New("nothing was accepted, so that there is nothing to divide by")
	}
	before, err := askPlain(ctx, t)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		before = nil // it is for the queries to say so
	}
	running, err := t.Relay.Disk()
	if err != nil {
		return err
	}
	used, clean, err := t.Stop(ctx)
	if err != nil {
		return fmt.Errorf("stopping the relay: %w", err)
	}
	disk, err := t.Relay.Disk()
	if err != nil {
		return err
	}
	start := wire.Now()
	if err := t.Restart(ctx); err != nil {
		if start := (*relays.StartError)(nil); clean && errors.As(err, &start) && start.Cause != relays.PortTaken && start.Cause != relays.LaunchFailed {
			t.AddFinding(results.Finding{Code: results.CodeRemembers, Verdict: results.Failed, Cause: results.CauseNoStart,
				Texts: map[string]string{"error": start.Detail}})
		}
		return fmt.Errorf("does not start over what it left when it was stopped: %w", err)
	}
	ready := wire.Now() - start
	after, err := askPlain(ctx, t)
	if err != nil {
		return fmt.Errorf("asking it after it was started again: %w", err)
	}
	// A clean stop takes nothing from a relay that has its events on disk, synced or not. One that
	// never had them there has promised nothing, unless its definition does.
	declared := durable(t)
	onDisk := max(running.Allocated, disk.Allocated) >= leastStored*int64(len(acknowledged))
	required := declared || clean && onDisk
	stored, lost, err := checkStored(ctx, t, required)
	if err != nil {
		return err
	}
	if required {
		findForgotten(t, before, after)
	}
	switch {
	case lost > 0 && !declared && !onDisk:
		t.NotMeasured(results.KeepsNothing, nil)
		return nil
	case stored > 0 && disk.Allocated < leastStored*int64(stored):
		t.NotMeasured(results.KeptElsewhere, nil)
		return nil
	case stored > 0:
		t.Value("allocated", "bytes/event", results.Lower, float64(disk.Allocated)/float64(stored))
		t.Value("apparent", "bytes/event", results.Lower, float64(disk.Apparent)/float64(stored))
	}
	t.Value("allocated in all", "MiB", results.None, float64(disk.Allocated)/(1<<20))
	t.Value("write amplification", "bytes/byte", results.Lower, float64(used.WriteBytes)/float64(bytesOf(t.Corpus, acknowledged)))
	t.Value("restart", "ms", results.Lower, harness.Milliseconds(ready))
	if len(after) > 0 && !after[0].reply.Closed {
		t.Value("answer after restart", "ms", results.Lower, harness.Milliseconds(after[0].reply.EOSE))
	}
	return nil
}

// durable says whether the relay's definition has an OK mean that the event is stored.
func durable(t *harness.Trial) bool {
	d := t.Relay.Definition().Durability
	return d == relays.Commit || d == relays.Batch
}

// askPlain asks once each of the query templates for which nothing has to be known of the corpus.
func askPlain(ctx context.Context, t *harness.Trial) (asked []query, err error) {
	querier, err := load.NewQuerier(ctx, t.Relay.URL(), t.Options.Stall)
	if err != nil {
		return nil, err
	}
	defer querier.Close()
	parameters := plainQueryParameters(t.Corpus, t.Model)
	for i := range queryTemplates {
		filter, ok := queryTemplates[i].hot(parameters)
		if !ok {
			continue
		}
		filter.Limit = corpus.Int(templateLimit)
		q := newQuery(filter)
		if err := querier.Query(q.json, &q.reply); err != nil {
			return nil, err
		}
		asked = append(asked, q)
	}
	return asked, nil
}

// findForgotten judges whether a relay answers after a stop as well as it did before. What it
// answered wrong already is for its queries to tell; a cap at the same number is none of a stop's
// doing.
func findForgotten(t *harness.Trial, before, after []query) {
	var wrong []judged
	of := 0
	for i := range before {
		if before[i].reply.Closed || after[i].reply.Closed || before[i].reply.NoID > 0 {
			continue
		}
		was, now := before[i].judge(t.Model), after[i].judge(t.Model)
		if !was.verdict.OK() && !was.verdict.Capped {
			continue
		}
		of++
		capped := was.verdict.Capped && now.verdict.Capped && now.verdict.Got == was.verdict.Got
		if !now.right() && !(capped && now.reply.NoID == 0) {
			wrong = append(wrong, now)
		}
	}
	if of > 0 {
		t.AddFinding(checkAnswers(t, results.CodeRemembers, wrong, counts("of", of)))
	}
}
