// Package scenarios holds what relaybench measures, a scenario a file. A scenario knows the corpus,
// the wire and the record, and no other scenario.
package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays/client"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Visibility publishes events one by one on one connection while a second connection asks for the
// event's id, from the same instant, until it comes back.
type Visibility struct{}

// Describe implements harness.Scenario.
func (Visibility) Describe() harness.Description {
	return harness.Description{Needs: harness.Empty, Scenario: results.Scenario{
		Key: "ingest.visibility", Title: "From publish to readable", Section: sectionIngest, Order: orderVisibility, Primary: "visible", Unit: "ms",
		Layout: results.LayoutBars, Durability: true, Ceiling: results.CeilingIngest, RoundTrips: []string{"visible", "ok"},
		Headlines: []results.Headline{{Metric: "visible", Title: "visible"}},
	}, Metrics: []results.Metric{
		figure("visible", "EVENT to visible for another reader"), figure("ok", "EVENT to OK, one at a time"),
		stated("queryable by ok", "queryable when its OK arrives"), figure("poll round trip", "poll round trip (the resolution)"),
	}}
}

// Run implements harness.Scenario.
func (Visibility) Run(ctx context.Context, t *harness.Trial) error {
	publisher, err := client.Dial(ctx, client.Options{URL: t.Relay.URL(), Stall: t.Options.Stall})
	if err != nil {
		return err
	}
	defer publisher.Abort()
	querier, err := load.NewQuerier(ctx, t.Relay.URL(), t.Options.Stall)
	if err != nil {
		return err
	}
	defer querier.Close()

	v := visibility{ok: results.NewHistogram(), visible: results.NewHistogram(), poll: results.NewHistogram()}
	samples := visibilitySamples(t)
	begun := wire.Now()
	for n := 0; n < len(samples); n++ {
		i := samples[n]
		if err := v.sample(ctx, t, publisher, querier, i); err != nil {
			return fmt.Errorf("event %s: %w", t.Corpus.Entry(i).ID, err)
		}
		t.Progress(n+1, len(samples))
		if v.never == maxNever || wire.Now()-begun > longest {
			samples = samples[:n+1]
		}
	}
	t.OwnPart()
	if len(samples) == 0 {
		t.NotMeasured(results.NothingToPublish, nil)
		return nil
	}

	if err := errors.Join(
		t.Latency("ok", results.Lower, v.ok),
		t.Latency("visible", results.Lower, v.visible),
		t.Latency("poll round trip", results.None, v.poll),
	); err != nil {
		return err
	}
	if v.accepted > 0 {
		t.Measure(results.Measurement{Metric: "queryable by ok", Unit: "%", Better: results.Higher,
			Trials: []float64{100 * float64(v.byOK) / float64(v.accepted)}, Samples: int64(v.accepted)})
	}
	t.AddFinding(results.Finding{Code: results.CodeAcceptsSingle, Verdict: results.Holds(v.accepted == len(samples)),
		Counts: counts("accepted", v.accepted, "of", len(samples)), Evidence: v.refusals})
	findNew(t, v.duplicates, int64(v.accepted))
	f := results.Finding{Code: results.CodeQueryable, Verdict: results.Holds(v.never == 0), Counts: counts("never", v.never, "of", v.accepted), Evidence: v.missing}
	f.Counts["within s"] = deadline(t).Seconds()
	t.AddFinding(f)
	return nil
}

// maxNever is after how many events that never became visible the scenario ends: each costs a whole
// deadline.
const maxNever = 3

// longest is when the scenario ends with the samples it has: a relay that takes seconds for one
// event has been understood by then.
const longest = time.Minute

// deadline is how long an accepted event may stay invisible before it counts as never seen.
func deadline(t *harness.Trial) time.Duration { return min(10*time.Second, t.Options.Stall) }

// visibilitySamples picks regular events evenly over the corpus. At most a fifth of it is spent on
// them.
func visibilitySamples(t *harness.Trial) []int {
	return spread(regularEvents(t), min(t.Options.Samples, max(1, t.Corpus.Len()/5)))
}

type visibility struct {
	ok, visible, poll     *results.Histogram
	accepted, byOK, never int
	duplicates            int64
	refusals, missing     []results.Evidence
}

// sample publishes event i and measures when its OK comes and when the poller first gets it.
func (v *visibility) sample(ctx context.Context, t *harness.Trial, publisher *client.Conn, querier *load.Querier, i int) error {
	id := t.Corpus.Entry(i).ID
	filter := corpus.Filter{IDs: []corpus.ID{id}, Limit: corpus.Int(0)}
	var request []byte

	type answer struct {
		client.OK
		err error
	}
	answered := make(chan answer, 1)
	okCtx, gotOK := context.WithCancel(ctx)
	defer gotOK()
	start := wire.Now()
	go func() {
		defer gotOK()
		ok, err := publisher.Publish(id, t.Corpus.Raw(i), t.Options.Stall)
		answered <- answer{ok, err}
	}()

	var reply load.Reply
	var seen time.Duration // since start, 0 while unseen
	pollsAfterOK := 0
	byOK := false
	var a answer
	haveOK := false
	for seen == 0 {
		after := okCtx.Err() != nil
		if after && !haveOK {
			if a = <-answered; a.err != nil {
				return a.err
			}
			if haveOK = true; !a.Accepted {
				break
			}
		}
		// No two polls are the same filter: some relays answer a repeated one from a cache for a
		// second, and it is the store that is measured. Any limit from 1 asks for the one event.
		*filter.Limit = *filter.Limit%templateLimit + 1
		request = filter.AppendJSON(request[:0])
		asked := wire.Now()
		if err := querier.Query(request, &reply); err != nil {
			return err
		}
		v.poll.Record(wire.Now() - asked)
		if reply.Closed {
			return fmt.Errorf("the poll was closed: %q", reply.Reason)
		}
		if after {
			pollsAfterOK++
		}
		if slices.Contains(reply.IDs, id) {
			seen = asked + reply.First - start
			if reply.IDs[0] != id { // when it came among others is not known
				seen = asked + reply.EOSE - start
			}
			byOK = pollsAfterOK <= 1
		} else if haveOK && wire.Now()-a.At > deadline(t) {
			break
		}
	}
	if !haveOK {
		if a = <-answered; a.err != nil {
			return a.err
		}
	}
	v.ok.Record(a.At - start)
	if wire.ReasonPrefix([]byte(a.Reason)) == "duplicate" {
		v.duplicates++
	}
	if !a.Accepted {
		t.Ledger.Set(i, load.Refused)
		if len(v.refusals) < examples {
			e := eventEvidence(results.EvidenceRefused, t.Corpus, i)
			e.Text = a.Reason
			v.refusals = append(v.refusals, e)
		}
		return nil
	}
	t.Ledger.Set(i, load.Accepted)
	v.accepted++
	if seen == 0 {
		v.never++ // maxNever at most
		v.missing = append(v.missing, eventEvidence(results.EvidenceMissing, t.Corpus, i))
		return nil
	}
	if byOK {
		v.byOK++
	}
	v.visible.Record(seen)
	return nil
}
