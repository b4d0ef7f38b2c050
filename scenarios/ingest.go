// Package scenarios holds what relaybench measures, a family of scenarios a file. A scenario knows
// the corpus, the wire and the record, and no other scenario.
package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays/client"
	"relaybench/relays/wire"
	"relaybench/results"
)

// describeIngest describes a scenario of publishing.
func describeIngest(name, title string, order int, primary, unit string, metrics ...results.Metric) harness.Description {
	return harness.Description{Needs: harness.Empty, Metrics: metrics, Scenario: results.Scenario{Key: "ingest." + name, Title: title,
		Section: "Ingest", Order: order, Primary: primary, Unit: unit, Layout: results.LayoutBars, Durability: true,
		Ceiling: results.CeilingIngest}}
}

// Throughput publishes the corpus in a closed loop over several connections, each with a window of
// unacknowledged events, and then looks again for everything that was acknowledged.
type Throughput struct{}

// The metrics of publishing at full speed.
const (
	metricAccepted = "accepted"
	metricOK       = "ok latency"
	metricRejected = "rejected events" // by reason
)

// Describe implements harness.Scenario.
func (Throughput) Describe() harness.Description {
	d := describeIngest("throughput", "Publishing at full speed", orderThroughput, metricAccepted, "events/s",
		figure(metricAccepted, "accepted"), figure(metricOK, "EVENT to OK"), stated("unacknowledged", "never acknowledged"),
		figure("rejected", "rejected"), figure(metricRejected, "rejected"), figure("duplicates", "duplicates"))
	d.Headlines = []results.Headline{{Metric: metricAccepted, Title: "accepted/s"}, {Metric: metricOK, Title: "OK latency"}}
	return d
}

// Run implements harness.Scenario.
func (Throughput) Run(ctx context.Context, t *harness.Trial) error {
	rest := where(t.Corpus, func(i int) bool { return t.Ledger.Get(i) == load.NotOffered })
	var done *load.Published
	err := t.Forged(ctx, func(progress func(done, total int)) (err error) {
		p := t.Publisher(progress)
		if done, err = p.Publish(ctx, rest); done != nil {
			accepted := slices.DeleteFunc(slices.Clone(rest), func(i int) bool { return t.Ledger.Get(i) != load.Accepted })
			t.Ingested(done.Accepted, bytesOf(t.Corpus, accepted))
			t.Budget.Took(int(done.Accepted), done.Last-done.First)
		}
		return err
	})
	if done == nil {
		return err
	}
	if seconds := done.Seconds(); seconds > 0 {
		t.Measure(results.Measurement{Metric: metricAccepted, Unit: "events/s", Better: results.Higher,
			Trials: []float64{float64(done.Accepted) / seconds}, Samples: done.Accepted, Timeline: done.Timeline})
		sampled(t, "rejected", "events/s", results.None, float64(done.Refused)/seconds, done.Refused)
		byReason(t, metricRejected, done.Reasons)
		t.Value("duplicates", "events", results.None, float64(done.Duplicates))
		findNew(t, done.Duplicates, done.Accepted+done.Duplicates)
		t.Value("unacknowledged", "events", results.Lower, float64(done.Unanswered))
		if err := t.Latency(metricOK, results.Lower, done.Latency); err != nil {
			return err
		}
	}
	findRefusals(t, done)
	if err != nil {
		return err
	}
	_, _, err = checkStored(ctx, t, true)
	return err
}

// byReason records how many events were refused for each reason.
func byReason(t *harness.Trial, metric string, reasons map[string]*load.Refusals) {
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		t.With(results.Labels{results.LabelReason: reason}).Value(metric, "events", results.None, float64(reasons[reason].Count))
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
	must := certainly(t.Model)
	answered := func(a load.Answer) []int {
		return where(t.Corpus, func(i int) bool { return t.Ledger.Get(i) == a && must(i) })
	}
	refused, unanswered := answered(load.Refused), answered(load.Unanswered)
	f := check(results.CodeAccepts, len(refused)+len(unanswered) == 0, counts("refused", len(refused), "unanswered", len(unanswered),
		"of", len(t.Model.Effective()), "rightly refused", int(p.Refused)-len(refused)))
	if f.Verdict == results.Failed {
		f.Evidence = append(refusalEvidence(p.Reasons), firstEvents(results.EvidenceRefused, t.Corpus, refused)...)
	}
	t.AddFinding(f)
	t.AddFinding(connections(p.Lost, 0, p.Loss))
	findGarbage(t, p.Garbage)
	if p.Unexpected > 0 {
		t.AddFinding(results.Finding{Code: results.CodeOnlySent, Verdict: results.Stated, Counts: counts("oks", p.Unexpected)})
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
	t.AddFinding(check(results.CodeUnseenBefore, duplicates*10 <= taken, counts("duplicates", duplicates, "of", taken)))
}

// Paced publishes events on a schedule, the same for every relay (an open loop): what an OK takes
// under a load that does not wait for it. The closed loop of Throughput finds the most that a relay
// takes, at latencies that its own window makes.
type Paced struct{}

// Describe implements harness.Scenario.
func (Paced) Describe() harness.Description {
	d := describeIngest("paced", "On a schedule, whatever the answers", orderPaced, "ok from intended", "ms",
		figures("ok from intended", "intended sending to OK", "send delay", "sent late by (the harness)")...)
	d.RoundTrips = []string{"ok from intended"}
	return d
}

// pacedSeconds is how long the schedule is, where the corpus has events enough.
const pacedSeconds = 2

// Run implements harness.Scenario.
func (Paced) Run(ctx context.Context, t *harness.Trial) error {
	events := regularEvents(t, pacedSeconds*t.Options.Rate)
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
	t.AddFinding(check(results.CodeAcceptsPaced, done.Refused+unanswered == 0, counts("accepted", done.Accepted+done.Duplicates,
		"refused", done.Refused, "unanswered", unanswered, "of", len(events), "rate", t.Options.Rate), refusalEvidence(done.Reasons)...))
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

// regularEvents are events that a compliant relay keeps whatever else is published before or after
// them, and that it was not offered yet: so many, evenly over the corpus, and at most a fifth of it.
func regularEvents(t *harness.Trial, most int) []int {
	must := certainly(t.Model)
	regular := where(t.Corpus, func(i int) bool {
		kind := int(t.Corpus.Entry(i).Kind)
		return t.Ledger.Get(i) == load.NotOffered && must(i) && !corpus.IsReplaceable(kind) && !corpus.IsAddressable(kind) &&
			kind != corpus.KindDeletion && kind != corpus.KindVanish
	})
	return spread(regular, min(most, max(1, t.Corpus.Len()/5)))
}

// Visibility publishes events one by one on one connection while a second connection asks for the
// event's id, from the same instant, until it comes back.
type Visibility struct{}

// Describe implements harness.Scenario.
func (Visibility) Describe() harness.Description {
	d := describeIngest("visibility", "From publish to readable", orderVisibility, "visible", "ms",
		figure("visible", "EVENT to visible for another reader"), figure("ok", "EVENT to OK, one at a time"),
		stated("queryable by ok", "queryable when its OK arrives"), figure("poll round trip", "poll round trip (the resolution)"))
	d.RoundTrips, d.Headlines = []string{"visible", "ok"}, []results.Headline{{Metric: "visible", Title: "visible"}}
	return d
}

// Run implements harness.Scenario.
func (Visibility) Run(ctx context.Context, t *harness.Trial) (err error) {
	v := visibility{Trial: t, ok: results.NewHistogram(), visible: results.NewHistogram(), poll: results.NewHistogram()}
	if v.publisher, err = client.Dial(ctx, client.Options{URL: t.Relay.URL(), Stall: t.Options.Stall}); err != nil {
		return err
	}
	defer v.publisher.Abort()
	if v.querier, err = load.NewQuerier(ctx, t.Relay.URL(), t.Options.Stall); err != nil {
		return err
	}
	defer v.querier.Close()
	samples := regularEvents(t, t.Options.Samples)
	begun := wire.Now()
	for n := 0; n < len(samples); n++ {
		if err := v.sample(samples[n]); err != nil {
			return fmt.Errorf("event %s: %w", t.Corpus.Entry(samples[n]).ID, err)
		}
		t.Progress(n+1, len(samples))
		if len(v.never) == maxNever || wire.Now()-begun > longest {
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
		sampled(t, "queryable by ok", "%", results.Higher, 100*float64(v.byOK)/float64(v.accepted), v.accepted)
	}
	t.AddFinding(check(results.CodeAcceptsSingle, v.accepted == len(samples),
		counts("accepted", v.accepted, "of", len(samples)), v.refusals...))
	findNew(t, v.duplicates, int64(v.accepted))
	f := check(results.CodeQueryable, len(v.never) == 0, counts("never", len(v.never), "of", v.accepted),
		firstEvents(results.EvidenceMissing, t.Corpus, v.never)...)
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

// visibility is a Visibility on its way.
type visibility struct {
	*harness.Trial
	publisher *client.Conn
	querier   *load.Querier

	ok, visible, poll *results.Histogram
	accepted, byOK    int
	duplicates        int64
	never             []int // events that were accepted and not seen
	refusals          []results.Evidence
}

// sample publishes event i and measures when its OK comes and when the poller first gets it.
func (v *visibility) sample(i int) error {
	id := v.Corpus.Entry(i).ID
	type answer struct {
		client.OK
		err error
	}
	answers := make(chan answer, 1)
	start := wire.Now()
	go func() {
		ok, err := v.publisher.Publish(id, v.Corpus.Raw(i), v.Options.Stall)
		answers <- answer{ok, err}
	}()
	var a *answer // nil until it is there
	var reply load.Reply
	filter := corpus.Filter{IDs: []corpus.ID{id}, Limit: corpus.Int(0)}
	seen, byOK := time.Duration(0), false // since start, 0 while unseen
	for pollsAfterOK, late := 0, false; seen == 0 && !late; {
		select {
		case now := <-answers:
			a = &now
		default:
		}
		if a != nil {
			if a.err != nil || !a.Accepted {
				break
			}
			pollsAfterOK++
		}
		// No two polls are the same filter: some relays answer a repeated one from a cache for a
		// second, and it is the store that is measured. Any limit from 1 asks for the one event.
		*filter.Limit = *filter.Limit%templateLimit + 1
		asked := wire.Now()
		if err := v.querier.Query(filter.AppendJSON(nil), &reply); err != nil {
			return err
		}
		v.poll.Record(wire.Now() - asked)
		switch {
		case reply.Closed:
			return fmt.Errorf("the poll was closed: %q", reply.Reason)
		case slices.Contains(reply.IDs, id):
			seen, byOK = asked+reply.First-start, pollsAfterOK <= 1
			if reply.IDs[0] != id { // when it came among others is not known
				seen = asked + reply.EOSE - start
			}
		default:
			late = a != nil && wire.Now()-a.At > deadline(v.Trial)
		}
	}
	if a == nil {
		now := <-answers
		a = &now
	}
	if a.err != nil {
		return a.err
	}
	v.ok.Record(a.At - start)
	if wire.ReasonPrefix([]byte(a.Reason)) == "duplicate" {
		v.duplicates++
	}
	if !a.Accepted {
		v.Ledger.Set(i, load.Refused)
		if len(v.refusals) < examples {
			e := eventEvidence(results.EvidenceRefused, v.Corpus, i)
			e.Text = a.Reason
			v.refusals = append(v.refusals, e)
		}
		return nil
	}
	v.Ledger.Set(i, load.Accepted)
	if v.accepted++; seen == 0 {
		v.never = append(v.never, i)
		return nil
	}
	if byOK {
		v.byOK++
	}
	v.visible.Record(seen)
	return nil
}
