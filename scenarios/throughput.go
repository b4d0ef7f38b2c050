package scenarios

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"relaybench/harness"
	"relaybench/harness/measure"
)

// Throughput publishes the corpus in a closed loop over several connections, each with a window of unacknowledged events, and then
// looks again for everything that was acknowledged.
type Throughput struct{}

// Describe implements harness.Scenario.
func (Throughput) Describe() harness.Description {
	return harness.Description{Key: "ingest.throughput", Title: "the corpus, as fast as it is taken", Needs: harness.Empty}
}

// Run implements harness.Scenario.
func (Throughput) Run(ctx context.Context, t *harness.Trial) error {
	var rest []int
	for i := range t.Corpus.Len() {
		if t.Ledger.Get(i) == harness.NotOffered {
			rest = append(rest, i)
		}
	}
	p := harness.Publisher{URL: t.Relay.URL(), Corpus: t.Corpus, Conns: t.Options.Publishers, Window: t.Options.Window,
		Stall: t.Options.Stall, Ledger: t.Ledger, Progress: t.Progress}
	done, err := p.Publish(ctx, rest)
	if done == nil {
		return err
	}
	t.Ingested(done.Accepted, acceptedBytes(t, rest))
	if reportErr := report(t, done); reportErr != nil {
		return reportErr
	}
	findRefusals(t, done)
	if err != nil {
		return err
	}
	return checkStored(ctx, t, true)
}

// acceptedBytes is the size of those of the events that were accepted.
func acceptedBytes(t *harness.Trial, indexes []int) (bytes int64) {
	for _, i := range indexes {
		if t.Ledger.Get(i) == harness.Accepted {
			bytes += int64(t.Corpus.Entry(i).Length)
		}
	}
	return bytes
}

func report(t *harness.Trial, p *harness.Published) error {
	seconds := p.Seconds()
	if seconds == 0 {
		return nil
	}
	t.Measure(measure.Measurement{Metric: "accepted", Unit: "events/s", Better: measure.Higher,
		Trials: []float64{float64(p.Accepted) / seconds}, Samples: p.Accepted, Timeline: p.Timeline})
	t.Measure(measure.Measurement{Metric: "rejected", Unit: "events/s", Better: measure.None,
		Trials: []float64{float64(p.Refused) / seconds}, Samples: p.Refused})
	for _, reason := range slices.Sorted(maps.Keys(p.Reasons)) {
		t.Value("rejected: "+reason, "events", measure.None, float64(p.Reasons[reason].Count))
	}
	t.Value("duplicates", "events", measure.None, float64(p.Duplicates))
	findNew(t, p.Duplicates, p.Accepted+p.Duplicates)
	t.Value("unacknowledged", "events", measure.Lower, float64(p.Unanswered))
	return t.Latency("ok latency", measure.Lower, p.Latency)
}

// findRefusals judges the answers: a relay may refuse what a compliant relay would not keep anyway, and nothing else.
func findRefusals(t *harness.Trial, p *harness.Published) {
	wrong, silent := 0, 0
	var evidence []string
	for i := range t.Corpus.Len() {
		if !t.Model.Holds(i) || t.Model.Optional(i) {
			continue
		}
		switch t.Ledger.Get(i) {
		case harness.Refused:
			wrong++
			if len(evidence) < 5 {
				e := t.Corpus.Entry(i)
				evidence = append(evidence, fmt.Sprintf("%s (kind %d)", e.ID, e.Kind))
			}
		case harness.Unanswered:
			silent++
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(p.Reasons)) {
		r := p.Reasons[reason]
		evidence = append(evidence, fmt.Sprintf("%s, %d times: %s", reason, r.Count, r.Example))
	}
	detail := "every event that a compliant relay keeps was accepted"
	if wrong > 0 || silent > 0 {
		var parts []string
		if wrong > 0 {
			parts = append(parts, fmt.Sprintf("%d refused", wrong))
		}
		if silent > 0 {
			parts = append(parts, fmt.Sprintf("%d never answered", silent))
		}
		detail = fmt.Sprintf("of %d events that a compliant relay keeps: %s", len(t.Model.Effective()), strings.Join(parts, ", "))
	} else {
		evidence = nil
		if p.Refused > 0 {
			detail += fmt.Sprintf("; %d refused that it does not keep: superseded, deleted or expired", p.Refused)
		}
	}
	t.Find(measure.Finding{Check: "accepts what a compliant relay keeps", OK: wrong == 0 && silent == 0, Required: true, Detail: detail, Evidence: evidence})
	findLost(t, p.Lost, p.Loss)
	findGarbage(t, p.Garbage)
	if p.Strays > 0 {
		t.Find(measure.Finding{Check: "answers only what was sent", Detail: fmt.Sprintf("%d OKs named an event that was not waiting for one", p.Strays)})
	}
}

// findLost judges whether connections were kept; why is that of the last that was not.
func findLost(t *harness.Trial, lost int, why error) {
	detail := fmt.Sprintf("%d connections broke", lost)
	if why != nil {
		detail += ", the last one so: " + why.Error()
	}
	t.Find(measure.Finding{Check: "keeps connections open", OK: lost == 0, Detail: detail})
}

// findGarbage judges whether all that came was a message.
func findGarbage(t *harness.Trial, g harness.Garbage) {
	f := measure.Finding{Check: "sends only messages", OK: g.Count == 0, Required: true, Detail: fmt.Sprintf("%d frames were no message of the protocol", g.Count)}
	if g.Count > 0 {
		f.Evidence = []string{"the first: " + strconv.Quote(g.Example)}
	}
	t.Find(f)
}

// findNew judges whether the relay was given anything new. One that had the events already, as one that runs already may, stores nothing and
// answers all the faster. A few duplicates are no such sign: some relays call a superseded event one.
func findNew(t *harness.Trial, duplicates, taken int64) {
	t.Find(measure.Finding{Check: "had not seen the events before", OK: duplicates*10 <= taken, Required: true,
		Detail: fmt.Sprintf("%d of %d events were answered as duplicates", duplicates, taken)})
}
