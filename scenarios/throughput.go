package scenarios

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays/client"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Throughput publishes the corpus in a closed loop over several connections, each with a window of
// unacknowledged events, and then looks again for everything that was acknowledged.
type Throughput struct{}

// Describe implements harness.Scenario.
func (Throughput) Describe() harness.Description {
	return harness.Description{Needs: harness.Empty, Scenario: results.Scenario{
		Key: "ingest.throughput", Title: "Publishing at full speed", Section: sectionIngest, Order: orderThroughput, Primary: metricAccepted, Unit: "events/s",
		Layout: results.LayoutBars, Durability: true, Ceiling: results.CeilingIngest,
		Headlines: []results.Headline{{Metric: metricAccepted, Title: "accepted/s"}, {Metric: metricOK, Title: "OK latency"}},
	}, Metrics: []results.Metric{
		figure(metricAccepted, "accepted"), figure(metricOK, "EVENT to OK"), stated("unacknowledged", "never acknowledged"),
		figure("rejected", "rejected"), figure(metricRejected, "rejected"), figure("duplicates", "duplicates"),
	}}
}

// The metrics of publishing at full speed.
const (
	metricAccepted = "accepted"
	metricOK       = "ok latency"
	metricRejected = "rejected events" // by reason
)

// Run implements harness.Scenario.
func (Throughput) Run(ctx context.Context, t *harness.Trial) error {
	var rest []int
	for i := range t.Corpus.Len() {
		if t.Ledger.Get(i) == load.NotOffered {
			rest = append(rest, i)
		}
	}
	var done *load.Published
	err := t.Forged(ctx, func(progress func(done, total int)) (err error) {
		p := t.Publisher(progress)
		if done, err = p.Publish(ctx, rest); done != nil {
			t.Ingested(done.Accepted, acceptedBytes(t, rest))
			t.Budget.Took(int(done.Accepted), done.Last-done.First)
		}
		return err
	})
	if done == nil {
		return err
	}
	if reportErr := report(t, done); reportErr != nil {
		return reportErr
	}
	findRefusals(t, done)
	if err != nil {
		return err
	}
	_, _, err = checkStored(ctx, t, true)
	return err
}

// acceptedBytes is the size of those of the events that were accepted.
func acceptedBytes(t *harness.Trial, indexes []int) (bytes int64) {
	for _, i := range indexes {
		if t.Ledger.Get(i) == load.Accepted {
			bytes += int64(t.Corpus.Entry(i).Length)
		}
	}
	return bytes
}

func report(t *harness.Trial, p *load.Published) error {
	seconds := p.Seconds()
	if seconds == 0 {
		return nil
	}
	t.Measure(results.Measurement{Metric: metricAccepted, Unit: "events/s", Better: results.Higher,
		Trials: []float64{float64(p.Accepted) / seconds}, Samples: p.Accepted, Timeline: p.Timeline})
	t.Measure(results.Measurement{Metric: "rejected", Unit: "events/s", Better: results.None,
		Trials: []float64{float64(p.Refused) / seconds}, Samples: p.Refused})
	byReason(t, metricRejected, p.Reasons)
	t.Value("duplicates", "events", results.None, float64(p.Duplicates))
	findNew(t, p.Duplicates, p.Accepted+p.Duplicates)
	t.Value("unacknowledged", "events", results.Lower, float64(p.Unanswered))
	return t.Latency(metricOK, results.Lower, p.Latency)
}

// byReason records how many events were refused for each reason.
func byReason(t *harness.Trial, metric string, reasons map[string]*load.Refusals) {
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		t.Measure(results.Measurement{Metric: metric, Unit: "events", Better: results.None, Trials: []float64{float64(reasons[reason].Count)},
			Labels: results.Labels{results.LabelReason: reason}})
	}
}

// refusalEvidence says how often a relay refused for what reason, in its words, the most frequent
// first.
func refusalEvidence(reasons map[string]*load.Refusals) (evidence []results.Evidence) {
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		r := reasons[reason]
		evidence = append(evidence, results.Evidence{Code: results.EvidenceRefused, Cause: reason, Count: r.Count, Text: r.Example})
	}
	slices.SortStableFunc(evidence, func(a, b results.Evidence) int { return cmp.Compare(b.Count, a.Count) })
	return evidence
}

// findRefusals judges the answers: a relay may refuse what a compliant relay would not keep anyway,
// and nothing else.
func findRefusals(t *harness.Trial, p *load.Published) {
	refused, unanswered := 0, 0
	var evidence []results.Evidence
	for i := range t.Corpus.Len() {
		if !t.Model.Holds(i) || t.Model.Optional(i) {
			continue
		}
		switch t.Ledger.Get(i) {
		case load.Refused:
			if refused++; refused <= examples {
				evidence = append(evidence, eventEvidence(results.EvidenceRefused, t.Corpus, i))
			}
		case load.Unanswered:
			unanswered++
		}
	}
	f := results.Finding{Code: results.CodeAccepts, Verdict: results.Holds(refused+unanswered == 0),
		Counts: counts("refused", refused, "unanswered", unanswered, "of", len(t.Model.Effective()), "rightly refused", int(p.Refused)-refused)}
	if f.Verdict == results.Failed {
		f.Evidence = append(refusalEvidence(p.Reasons), evidence...)
	}
	t.AddFinding(f)
	t.AddFinding(connections(p.Lost, 0, p.Loss))
	findGarbage(t, p.Garbage)
	if p.Unexpected > 0 {
		t.AddFinding(results.Finding{Code: results.CodeOnlySent, Verdict: results.Stated, Counts: counts("oks", int(p.Unexpected))})
	}
}

// connections states whether they were kept; loss is why the last was not that was not. A relay
// that left REQs unfinished by it fails: not every client goes on elsewhere.
func connections(lost, unfinished int, loss error) results.Finding {
	f := results.Finding{Code: results.CodeConnections, Verdict: results.States(lost == 0), Counts: counts("lost", lost)}
	if unfinished > 0 {
		f.Verdict, f.Counts["unfinished"] = results.Failed, float64(unfinished)
	}
	if loss != nil {
		f.Texts = map[string]string{"error": loss.Error()}
	}
	return f
}

// hungUp is how many REQs a relay left unfinished when it broke their connections, unless it had to
// wait for who read its answers.
func hungUp(s *client.Stats) int {
	if s.Lost == 0 || s.Waited > s.Duration/10 {
		return 0
	}
	return s.Unfinished
}

// findGarbage states whether all that came was a message. It bars nothing: where such frames came
// in place of an answer, the check of that answer fails.
func findGarbage(t *harness.Trial, g wire.Garbage) {
	f := results.Finding{Code: results.CodeOnlyMessage, Verdict: results.States(g.Count == 0), Counts: counts("frames", g.Count)}
	if len(g.Kinds) > 0 {
		f.Texts = map[string]string{"field": string(g.Kinds[0].Field)}
	}
	for _, kind := range g.Kinds {
		f.Evidence = append(f.Evidence, results.Evidence{Code: results.EvidenceFrame, Cause: string(kind.Fault), Count: int64(kind.Count), Text: kind.Example})
	}
	t.AddFinding(f)
}

// findNew judges whether the relay was given anything new. One that had the events already, as one
// that runs already may, stores nothing and answers all the faster. A few duplicates are no such
// sign: some relays call a superseded event one.
func findNew(t *harness.Trial, duplicates, taken int64) {
	t.AddFinding(results.Finding{Code: results.CodeUnseenBefore, Verdict: results.Holds(duplicates*10 <= taken), Counts: counts("duplicates", int(duplicates), "of", int(taken))})
}
