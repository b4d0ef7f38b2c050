package scenarios

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Query asks one of the query templates: on one connection for the latency, then on several at once
// for the rate.
type Query struct {
	template *queryTemplate
	place    int  // among the query templates
	varied   bool // parameters drawn anew for each question, instead of the same question over and over
	shared   *queryParametersOnce
}

// Queries returns the query templates, each in its hot and its varied form.
func Queries() []harness.Scenario {
	shared := new(queryParametersOnce)
	var all []harness.Scenario
	for i := range queryTemplates {
		all = append(all, &Query{&queryTemplates[i], i, false, shared}, &Query{&queryTemplates[i], i, true, shared})
	}
	return all
}

// Describe implements harness.Scenario.
func (q *Query) Describe() harness.Description {
	form, order, uses := "hot", orderQueries+2*q.place, q.template.uses
	if q.varied {
		form, order, uses = "varied", order+1, slices.Concat(uses, q.template.alsoVaried)
	}
	return harness.Description{Needs: harness.Loaded, Scenario: results.Scenario{
		Key: "query." + q.template.key + "." + form, Title: q.template.key + ": " + q.template.title, Section: sectionQueries, Order: order,
		Meaning: "Median time to EOSE, less is better. hot repeats one filter, varied draws others like it",
		Primary: "eose", Unit: "ms", Layout: results.LayoutQueries, Ceiling: results.CeilingQuery, RoundTrips: []string{"eose", "first event"}, Uses: uses,
		Headlines: []results.Headline{{Metric: "eose", Title: form + " queries"}, {Metric: "events/s", Title: "query events/s"}},
	}, Labels: results.Labels{results.LabelQuery: q.template.key, results.LabelForm: form}, Metrics: []results.Metric{
		figure("eose", "time to EOSE"), figure("first event", "time to first event"), figure("events/s", "events/s from all connections"),
		figure("queries/s", "answers/s from all connections"), figure("events", "events in the answer"),
	}}
}

// warmUps is how many questions are asked before the clock counts.
const warmUps = 3

// rateTime is how long a rate is measured at least.
const rateTime = 200 * time.Millisecond

// query is one filter with its answer.
type query struct {
	filter corpus.Filter
	json   []byte
	reply  load.Reply
}

// Run implements harness.Scenario.
func (q *Query) Run(ctx context.Context, t *harness.Trial) error {
	s, err := q.shared.of(t)
	if err != nil {
		return err
	}
	draw := func() (f corpus.Filter, ok bool) {
		switch {
		case len(s.held) == 0:
			return f, false
		case q.varied:
			f, ok = q.template.varied(s, t.Rand)
		default:
			f, ok = q.template.hot(s)
		}
		f.Limit = corpus.Int(templateLimit)
		return f, ok
	}
	rounds, conns := t.Options.QueryRounds, t.Options.QueryConns
	questions := make([]query, warmUps+rounds+conns*rounds)
	for i := range questions {
		filter, ok := draw()
		if !ok {
			t.NotMeasured(results.NothingToAsk, nil)
			return nil
		}
		questions[i] = query{filter: filter, json: filter.AppendJSON(nil), reply: load.Reply{IDs: make([]corpus.ID, 0, min(templateLimit, t.Corpus.Len()))}}
	}
	if err := q.alone(ctx, t, questions[:warmUps], questions[warmUps:warmUps+rounds]); err != nil {
		return err
	}
	t.OwnReading()
	changed, err := q.together(ctx, t, questions[warmUps+rounds:])
	t.OwnPart()
	if err != nil {
		return err
	}
	return judge(ctx, t, append(questions, changed...))
}

// alone measures latency on one connection.
func (q *Query) alone(ctx context.Context, t *harness.Trial, warm, timed []query) error {
	querier, err := load.NewQuerier(ctx, t.Relay.URL(), t.Options.Stall)
	if err != nil {
		return err
	}
	defer querier.Close()
	returned := &comparison{corpus: t.Corpus}
	querier.OnEvent = returned.see
	for i := range warm {
		if err := querier.Query(warm[i].json, &warm[i].reply); err != nil {
			return err
		}
	}
	t.AddFinding(returned.finding())
	querier.OnEvent = nil
	first, eose := results.NewHistogram(), results.NewHistogram()
	events := 0
	for i := range timed {
		r := &timed[i].reply
		if err := querier.Query(timed[i].json, r); err != nil {
			return err
		}
		t.Progress(i+1, len(timed))
		if r.Closed {
			continue
		}
		if r.First > 0 {
			first.Record(r.First)
		}
		eose.Record(r.EOSE)
		events += len(r.IDs)
	}
	if eose.Count() == 0 {
		return nil
	}
	t.Measure(results.Measurement{Metric: "events", Unit: "events/query", Better: results.None, Exact: true,
		Trials: []float64{float64(events) / float64(eose.Count())}, Samples: eose.Count()})
	if err := t.Latency("first event", results.Lower, first); err != nil {
		return err
	}
	return t.Latency("eose", results.Lower, eose)
}

// together measures the rate over several connections. It returns answers that were not what the
// same question had been answered with before, to be judged as well.
func (q *Query) together(ctx context.Context, t *harness.Trial, questions []query) (changed []query, err error) {
	others, events := make([][]query, t.Options.QueryConns), make([]int, t.Options.QueryConns)
	sums := make([]uint64, len(questions))
	took, err := askTogether(ctx, t, "queries/s", len(questions), func(querier *load.Querier, k, i int, first bool) (bool, error) {
		r := &questions[i].reply
		if err := querier.Query(questions[i].json, r); err != nil || r.Closed {
			return false, err
		}
		events[k] += len(r.IDs)
		switch sum := digest(r.IDs); {
		case first:
			sums[i] = sum
		case sum != sums[i] && len(others[k]) < keptChanges:
			other := questions[i]
			other.reply.IDs = slices.Clone(r.IDs)
			others[k] = append(others[k], other)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	sum := 0
	for _, n := range events {
		sum += n
	}
	if sum > 0 {
		t.Measure(results.Measurement{Metric: "events/s", Unit: "events/s", Better: results.Higher,
			Trials: []float64{float64(sum) / took.Seconds()}, Samples: int64(sum)})
	}
	return slices.Concat(others...), nil
}

// askTogether has several connections, whose handshakes are outside the clock, ask their shares of
// n questions: each question once, and all over again until enough time has passed for a rate. ask
// puts question i on connection k, and tells whether it was answered. The answers a second are
// recorded; took is the time in which they came.
func askTogether(ctx context.Context, t *harness.Trial, metric string, n int,
	ask func(querier *load.Querier, k, i int, first bool) (answered bool, err error)) (took time.Duration, err error) {
	conns := t.Options.QueryConns
	answers := make([]int, conns)
	took, err = load.Together(ctx, t.Relay.URL(), conns, t.Options.Stall, func(k int, querier *load.Querier, start time.Duration) error {
		for round := 0; round == 0 || wire.Now()-start < rateTime; round++ {
			for i := k * n / conns; i < (k+1)*n/conns; i++ {
				answered, err := ask(querier, k, i, round == 0)
				if err != nil {
					return err
				}
				if answered {
					answers[k]++
				}
			}
			if answers[k] == 0 {
				return nil // nothing but CLOSED
			}
		}
		return nil
	})
	if err != nil {
		return took, err
	}
	sum := 0
	for _, n := range answers {
		sum += n
	}
	if sum > 0 {
		t.Measure(results.Measurement{Metric: metric, Unit: metric, Better: results.Higher,
			Trials: []float64{float64(sum) / took.Seconds()}, Samples: int64(sum)})
	}
	return took, nil
}

// keptChanges bounds how many answers of one connection are kept that differ from the first to the
// same question.
const keptChanges = 10

// digest tells two answers apart, order included. It costs a nanosecond an event: ids are hashes.
func digest(ids []corpus.ID) (sum uint64) {
	for i := range ids {
		sum = sum*31 + binary.LittleEndian.Uint64(ids[i][:])
	}
	return sum
}

// judge checks every answer against the model.
func judge(ctx context.Context, t *harness.Trial, questions []query) error {
	var wrong, capped []judged
	var closedWhy []results.Evidence
	var garbage wire.Garbage
	closed, events, longest, elsewhere := 0, 0, 0, 0
	for i := range questions {
		a := &questions[i]
		garbage.Add(a.reply.Garbage)
		elsewhere += a.reply.Elsewhere
		if a.reply.Closed {
			closed++
			if len(closedWhy) < examples {
				closedWhy = append(closedWhy, results.Evidence{Code: results.EvidenceWords, Text: a.reply.Reason})
			}
			continue
		}
		events += len(a.reply.IDs)
		longest = t.Ledger.Saw(len(a.reply.IDs))
		switch v := t.Model.Check(&a.filter, a.reply.IDs); {
		case v.Capped:
			capped = append(capped, judged{a, v})
		case !v.OK() || a.reply.NoID > 0:
			wrong = append(wrong, judged{a, v})
		}
	}
	if len(capped) > 0 {
		believed, err := believe(ctx, t, capped, longest)
		if err != nil {
			return err
		}
		if !believed {
			wrong, capped = append(wrong, capped...), nil
		}
	}
	answered := len(questions) - closed
	findGarbage(t, garbage)
	t.AddFinding(results.Finding{Code: results.CodeEOSE, Verdict: results.Holds(closed == 0), Counts: counts("closed", closed, "of", len(questions)), Evidence: closedWhy})
	if answered == 0 {
		return nil
	}
	f := results.Finding{Code: results.CodeModel, Verdict: results.Holds(len(wrong) == 0),
		Counts: counts("wrong", len(wrong), "of", answered, "events", events, "elsewhere", elsewhere)}
	for _, j := range wrong[:min(len(wrong), examples)] {
		f.Evidence = append(f.Evidence, j.evidence(t)...)
	}
	for _, j := range wrong {
		j.count(t, f.Counts)
	}
	t.AddFinding(f)
	if len(capped) > 0 {
		t.AddFinding(results.Finding{Code: results.CodeUncapped, Verdict: results.Stated, Counts: counts("capped", len(capped), "of", answered, "events", longest)})
	}
	return nil
}

// judged is a question whose answer is not what the model gives in full.
type judged struct {
	*query
	verdict model.CheckResult
}

// believe decides whether answers that hold just the newest of what was asked for are a cap of the
// relay's, which is its right to have, or lost their end. A cap is one number, no answer is longer,
// and asking for just so many gets them: one who drops the last drops it then as well.
func believe(ctx context.Context, t *harness.Trial, capped []judged, longest int) (bool, error) {
	cap := capped[0].verdict.Got
	for _, j := range capped {
		if j.verdict.Got != cap || cap < longest || cap == 0 {
			return false, nil
		}
	}
	querier, err := load.NewQuerier(ctx, t.Relay.URL(), t.Options.Stall)
	if err != nil {
		return false, err
	}
	defer querier.Close()
	filter := capped[0].filter
	filter.Limit = corpus.Int(cap)
	var reply load.Reply
	if err := querier.Query(filter.AppendJSON(nil), &reply); err != nil {
		return false, err
	}
	return t.Model.Check(&filter, reply.IDs).OK(), nil
}

// count adds up how the answer departs from the model's, and what the relay had said of the missing
// events when they were published.
func (j *judged) count(t *harness.Trial, to map[string]float64) {
	v := &j.verdict
	for name, n := range map[string]int{"missing": len(v.Missing), "extra": len(v.Extra), "misordered": len(v.Misordered), "duplicate": len(v.Duplicate), "no id": j.reply.NoID} {
		if n > 0 {
			to[name] += float64(n)
		}
	}
	for _, m := range v.Missing {
		if i, ok := t.Corpus.Find(m.ID); ok {
			to["missing."+answered(t.Ledger.Get(i))]++
		}
	}
}

// answered is what a relay had said of an event, for a finding's counts.
func answered(a load.Answer) string {
	switch a {
	case load.Refused:
		return "refused"
	case load.Unanswered:
		return "unanswered"
	case load.NotImported:
		return results.MissingNotImported
	}
	return "acknowledged"
}

// evidence is the question, and a few events of each fault of its answer.
func (j *judged) evidence(t *harness.Trial) []results.Evidence {
	v := &j.verdict
	all := []results.Evidence{{Code: results.EvidenceQuestion, Text: shorten(j.json)}}
	add := func(code, cause string, id corpus.ID) {
		e := results.Evidence{Code: code, ID: id.String()}
		if i, ok := t.Corpus.Find(id); ok {
			e = eventEvidence(code, t.Corpus, i)
		}
		e.Cause = cause
		all = append(all, e)
	}
	for _, d := range v.Missing[:min(len(v.Missing), few)] {
		add(results.EvidenceMissing, "", d.ID)
	}
	all = andOthers(all, results.EvidenceMissing, "", len(v.Missing)-few)
	for _, d := range v.Extra[:min(len(v.Extra), few)] {
		add(results.EvidenceExtra, d.Reason.String(), d.ID)
	}
	all = andOthers(all, results.EvidenceExtra, "", len(v.Extra)-few)
	for _, id := range v.Misordered[:min(len(v.Misordered), few)] {
		add(results.EvidenceOrder, "misordered", id)
	}
	all = andOthers(all, results.EvidenceOrder, "misordered", len(v.Misordered)-few)
	for _, id := range v.Duplicate[:min(len(v.Duplicate), few)] {
		add(results.EvidenceOrder, "duplicate", id)
	}
	return andOthers(all, results.EvidenceOrder, "duplicate", len(v.Duplicate)-few)
}

// few is how many events of one fault of one answer stand as evidence.
const few = 3

// shorten keeps a filter's text readable as evidence.
func shorten(text []byte) string {
	const most = 200
	if len(text) <= most {
		return string(text)
	}
	return string(text[:most]) + "…"
}
