package scenarios

import (
	"context"
	"errors"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/results"
)

// Paced publishes events on a schedule, the same for every relay (an open loop): what an OK takes
// under a load that does not wait for it. The closed loop of Throughput finds the most that a relay
// takes, at latencies that its own window makes.
type Paced struct{}

// Describe implements harness.Scenario.
func (Paced) Describe() harness.Description {
	return harness.Description{Needs: harness.Empty, Scenario: results.Scenario{
		Key: "ingest.paced", Title: "On a schedule, whatever the answers", Section: sectionIngest, Order: orderPaced, Primary: "ok from intended", Unit: "ms",
		Layout: results.LayoutBars, Durability: true, Ceiling: results.CeilingIngest, RoundTrips: []string{"ok from intended"},
	}, Metrics: []results.Metric{figure("ok from intended", "intended sending to OK"), figure("send delay", "sent late by (the harness)")}}
}

// pacedSeconds is how long the schedule is, where the corpus has events enough.
const pacedSeconds = 2

// Run implements harness.Scenario.
func (Paced) Run(ctx context.Context, t *harness.Trial) error {
	events := spread(regularEvents(t), min(pacedSeconds*t.Options.Rate, max(1, t.Corpus.Len()/5)))
	if len(events) == 0 {
		t.NotMeasured(results.NothingToPublish, nil)
		return nil
	}
	p := t.Publisher(t.Progress)
	p.Conns, p.Window, p.Pacer = min(p.Conns, len(events)), 0, load.ConstantRate(t.Options.Rate)
	done, err := p.Publish(ctx, events)
	if done == nil {
		return err
	}
	status := lateness(done.Late.Quantile(0.5), done.Latency.Quantile(0.5))
	if err := errors.Join(err, t.Latency("ok from intended", results.Lower, done.Latency, status...), t.Latency("send delay", results.None, done.Late)); err != nil {
		return err
	}
	findNew(t, done.Duplicates, done.Accepted+done.Duplicates)
	findGarbage(t, done.Garbage)
	t.AddFinding(connections(done.Lost, 0, done.Loss))
	unanswered := done.Unanswered + done.Unsent
	t.AddFinding(results.Finding{Code: results.CodeAcceptsPaced, Verdict: results.Holds(done.Refused+unanswered == 0), Evidence: refusalEvidence(done.Reasons),
		Counts: counts("accepted", int(done.Accepted+done.Duplicates), "refused", int(done.Refused), "unanswered", int(unanswered),
			"of", len(events), "rate", t.Options.Rate)})
	return nil
}

// lateness marks a latency of which the sending's own delay is most: then the harness measures
// itself.
func lateness(late, all time.Duration) []results.Status {
	if late < all*4/5 || all == 0 {
		return nil
	}
	return []results.Status{{Code: results.StatusLimited, Cause: results.CauseLateness}}
}

// regularEvents are those that a compliant relay keeps whatever else is published before or after
// them, and that it was not offered yet.
func regularEvents(t *harness.Trial) (regular []int) {
	for i := range t.Corpus.Len() {
		kind := int(t.Corpus.Entry(i).Kind)
		if t.Ledger.Get(i) == load.NotOffered && t.Model.Holds(i) && !t.Model.Optional(i) &&
			!corpus.IsReplaceable(kind) && !corpus.IsAddressable(kind) && kind != corpus.KindDeletion && kind != corpus.KindVanish {
			regular = append(regular, i)
		}
	}
	return regular
}

// spread picks n of the indexes, evenly.
func spread(indexes []int, n int) []int {
	n = min(n, len(indexes))
	picked := make([]int, n)
	for k := range picked {
		picked[k] = indexes[k*len(indexes)/n]
	}
	return picked
}
