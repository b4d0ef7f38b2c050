package scenarios

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
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
	place  int  // among the query templates
	varied bool // parameters drawn anew for each question, instead of the same question over and over
	shared *queryParametersOnce
}

// Queries returns the query templates, each in its hot and its varied form.
func Queries() (all []harness.Scenario) {
	shared := new(queryParametersOnce)
	for i := range queryTemplates {
		all = append(all, &Query{i, false, shared}, &Query{i, true, shared})
	}
	return all
}

// form names a form of the stock queries, and its place among the two.
func form(varied bool) (name string, place int) {
	if varied {
		return "varied", 1
	}
	return "hot", 0
}

// Describe implements harness.Scenario.
func (q *Query) Describe() harness.Description {
	template := &queryTemplates[q.place]
	form, order := form(q.varied)
	return harness.Description{Needs: harness.Loaded, Scenario: results.Scenario{
		Key: "query." + template.key + "." + form, Title: template.key + ": " + template.title, Section: "Queries",
		Order: orderQueries + 2*q.place + order, Primary: "eose", Unit: "ms", Layout: results.LayoutQueries, Ceiling: results.CeilingQuery,
		RoundTrips: []string{"eose", "first event"}, Uses: template.uses(q.varied),
		Meaning:   "Median time to EOSE, less is better. hot repeats one filter, varied draws others like it",
		Headlines: []results.Headline{{Metric: "eose", Title: form + " queries"}, {Metric: "events/s", Title: "query events/s"}},
	}, Labels: results.Labels{results.LabelQuery: template.key, results.LabelForm: form}, Metrics: figures("eose", "time to EOSE",
		"first event", "time to first event", "events/s", "events/s from all connections", "queries/s", "answers/s from all connections",
		"events", "events in the answer")}
}

// query is one filter with its answer.
type query struct {
	filter corpus.Filter
	json   []byte
	reply  load.Reply
}

func newQuery(filter corpus.Filter) query { return query{filter: filter, json: filter.AppendJSON(nil)} }

// warmUps is how many questions are asked before the clock counts.
const warmUps = 3

// Run implements harness.Scenario.
func (q *Query) Run(ctx context.Context, t *harness.Trial) error {
	s, err := q.shared.of(t)
	if err != nil {
		return err
	}
	rounds, conns := t.Options.QueryRounds, t.Options.QueryConns
	questions := drawQueries(t, s, warmUps+rounds+conns*rounds, q.varied, queryTemplates[q.place])
	if len(questions) == 0 {
		t.NotMeasured(results.NothingToAsk, nil)
		return nil
	}
	for i := range questions {
		a := &questions[i]
		a.filter.Limit = corpus.Int(templateLimit)
		*a = newQuery(a.filter)
		a.reply.IDs = make([]corpus.ID, 0, min(templateLimit, t.Corpus.Len()))
	}
	changed, err := byREQ.run(ctx, t, questions[:warmUps], questions[warmUps:warmUps+rounds], questions[warmUps+rounds:])
	if err != nil {
		return err
	}
	return judge(ctx, t, append(questions, changed...))
}

// drawQueries draws so many rounds of those query templates that the corpus has something for.
func drawQueries(t *harness.Trial, s *queryParameters, rounds int, varied bool, templates ...queryTemplate) (all []query) {
	r := t.Rand
	if !varied {
		r = nil
	}
	for range rounds {
		for i := range templates {
			if filter, ok := templates[i].varied(s, r); ok && len(s.held) > 0 {
				all = append(all, newQuery(filter))
			}
		}
	}
	return all
}

// rateTime is how long a rate is measured at least.
const rateTime = 200 * time.Millisecond

// keptChanges bounds how many answers of one connection are kept that differ from the first to the
// same question.
const keptChanges = 10

// verb is a way to put questions, and under which metrics it is recorded.
type verb struct {
	ask         func(*load.Querier, []byte, *load.Reply) error
	time, first string // latencies on one connection: to the end of an answer, and to its first event
	held, unit  string // what an answer held on average
	rate, each  string // answers a second from several connections, and what they held
}

// The two ways. A count (NIP-45) has no events of its own.
var (
	byREQ   = verb{(*load.Querier).Query, "eose", "first event", "events", "events/query", "queries/s", "events/s"}
	byCOUNT = verb{(*load.Querier).Count, "time", "", "counted", "events/count", "counts/s", ""}
)

// run asks on one connection, whose latency is measured after a warm-up, and then on several. It
// returns answers that were not what the same question had been answered with before, to be judged
// as well.
func (a *verb) run(ctx context.Context, t *harness.Trial, warm, timed, rate []query) (changed []query, err error) {
	if err := a.alone(ctx, t, warm, timed); err != nil {
		return nil, err
	}
	t.OwnReading()
	defer t.OwnPart()
	return a.together(ctx, t, rate)
}

func (a *verb) alone(ctx context.Context, t *harness.Trial, warm, timed []query) error {
	querier, err := load.NewQuerier(ctx, t.Relay.URL(), t.Options.Stall)
	if err != nil {
		return err
	}
	defer querier.Close()
	returned := &comparison{corpus: t.Corpus}
	querier.OnEvent = returned.see
	for i := range warm {
		if err := a.ask(querier, warm[i].json, &warm[i].reply); err != nil {
			return err
		}
	}
	if querier.OnEvent = nil; a.first != "" {
		t.AddFinding(returned.finding())
	}
	took, first, held := results.NewHistogram(), results.NewHistogram(), 0
	for i := range timed {
		r := &timed[i].reply
		if err := a.ask(querier, timed[i].json, r); err != nil {
			return err
		}
		t.Progress(i+1, len(timed))
		if !r.Answered() {
			continue
		}
		took.Record(r.EOSE)
		held += r.Held()
		if r.First > 0 {
			first.Record(r.First)
		}
	}
	if n := took.Count(); n > 0 {
		t.Measure(results.Measurement{Metric: a.held, Unit: a.unit, Better: results.None, Exact: true,
			Trials: []float64{float64(held) / float64(n)}, Samples: n})
	}
	return errors.Join(t.Latency(a.first, results.Lower, first), t.Latency(a.time, results.Lower, took))
}

// together has several connections, whose handshakes are outside the clock, ask their shares of the
// questions: each question once, and all over again until enough time has passed for a rate.
func (a *verb) together(ctx context.Context, t *harness.Trial, questions []query) ([]query, error) {
	n, conns := len(questions), t.Options.QueryConns
	changed, answers, held := make([][]query, conns), make([]int, conns), make([]int, conns)
	sums := make([]uint64, n)
	took, err := load.Together(ctx, t.Relay.URL(), conns, t.Options.Stall, func(k int, querier *load.Querier, start time.Duration) error {
		for round := 0; round == 0 || wire.Now()-start < rateTime; round++ {
			for i := k * n / conns; i < (k+1)*n/conns; i++ {
				r := &questions[i].reply
				if err := a.ask(querier, questions[i].json, r); err != nil {
					return err
				}
				if !r.Answered() {
					continue
				}
				answers[k]++
				held[k] += r.Held()
				switch sum := digest(r); {
				case round == 0:
					sums[i] = sum
				case sum != sums[i] && len(changed[k]) < keptChanges:
					other := questions[i]
					other.reply.IDs = slices.Clone(r.IDs)
					changed[k] = append(changed[k], other)
				}
			}
			if answers[k] == 0 {
				return nil // nothing but CLOSED
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for k, metric := range []string{a.rate, a.each} {
		sum := 0
		for _, n := range [][]int{answers, held}[k] {
			sum += n
		}
		if sum > 0 && metric != "" {
			sampled(t, metric, metric, results.Higher, float64(sum)/took.Seconds(), sum)
		}
	}
	return slices.Concat(changed...), nil
}

// digest tells two answers apart, order included. It costs a nanosecond an event: ids are hashes.
func digest(r *load.Reply) (sum uint64) {
	sum = uint64(r.Held())
	for i := range r.IDs {
		sum = sum*31 + binary.LittleEndian.Uint64(r.IDs[i][:])
	}
	return sum
}

// ended takes the answers of some questions from those that were none, of which it keeps the
// relay's words, and records whether all that came was a message.
func ended(t *harness.Trial, questions []query) (answered []*query, closed int, words []results.Evidence) {
	var garbage wire.Garbage
	for i := range questions {
		r := &questions[i].reply
		garbage.Add(r.Garbage)
		if !r.Closed {
			answered = append(answered, &questions[i])
			continue
		}
		if closed++; closed <= examples {
			words = append(words, results.Evidence{Code: results.EvidenceWords, Text: r.Reason})
		}
	}
	findGarbage(t, garbage)
	return answered, closed, words
}

// judge checks every answer against the model.
func judge(ctx context.Context, t *harness.Trial, questions []query) error {
	answered, closed, words := ended(t, questions)
	t.AddFinding(check(results.CodeEOSE, closed == 0, counts("closed", closed, "of", len(questions)), words...))
	if len(answered) == 0 {
		return nil
	}
	var wrong, capped []judged
	events, longest, elsewhere := 0, 0, 0
	for _, q := range answered {
		elsewhere += q.reply.Elsewhere
		events += len(q.reply.IDs)
		longest = t.Ledger.Saw(len(q.reply.IDs))
		switch j := q.judge(t.Model); {
		case j.verdict.Capped:
			capped = append(capped, j)
		case !j.right():
			wrong = append(wrong, j)
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
	t.AddFinding(checkAnswers(t, results.CodeModel, wrong, counts("wrong", 0, "of", len(answered), "events", events, "elsewhere", elsewhere)))
	if len(capped) > 0 {
		t.AddFinding(results.Finding{Code: results.CodeUncapped, Verdict: results.Stated,
			Counts: counts("capped", len(capped), "of", len(answered), "events", longest)})
	}
	return nil
}

// judged is an answer beside what the model gives.
type judged struct {
	*query
	verdict model.CheckResult
}

func (q *query) judge(m *model.Model) judged { return judged{q, m.Check(&q.filter, q.reply.IDs)} }

// right says whether the answer is right and whole.
func (j *judged) right() bool { return j.verdict.OK() && j.reply.NoID == 0 }

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

// checkAnswers is the finding on answers of which some are wrong. To the counts it adds how they
// depart from the model's, and what the relay had said of the missing events when they were
// published.
func checkAnswers(t *harness.Trial, code string, wrong []judged, counts map[string]float64) results.Finding {
	f := check(code, len(wrong) == 0, counts)
	for k, j := range wrong {
		counts["wrong"]++
		v := &j.verdict
		for name, n := range map[string]int{"missing": len(v.Missing), "extra": len(v.Extra), "misordered": len(v.Misordered),
			"duplicate": len(v.Duplicate), "no id": j.reply.NoID} {
			if n > 0 {
				counts[name] += float64(n)
			}
		}
		for _, m := range v.Missing {
			if i, ok := t.Corpus.Find(m.ID); ok {
				counts["missing."+cmp.Or(fates[t.Ledger.Get(i)], "acknowledged")]++
			}
		}
		if k < examples {
			f.Evidence = append(f.Evidence, j.evidence(t)...)
		}
	}
	return f
}

// fates name what a relay had said of an event, for a finding's counts. Others were acknowledged.
var fates = map[load.Answer]string{load.Refused: "refused", load.Unanswered: "unanswered", load.NotImported: results.MissingNotImported}

// few is how many events of one fault of one answer stand as evidence.
const few = 3

// evidence is the question, and a few events of each fault of its answer.
func (j *judged) evidence(t *harness.Trial) []results.Evidence {
	ids := func(list []model.Discrepancy) (ids []corpus.ID) {
		for _, d := range list {
			ids = append(ids, d.ID)
		}
		return ids
	}
	v := &j.verdict
	extra := firstIDs(t.Corpus, results.EvidenceExtra, "", few, ids(v.Extra))
	for k, d := range v.Extra[:min(len(v.Extra), few)] {
		extra[k].Cause = d.Reason.String()
	}
	return slices.Concat([]results.Evidence{{Code: results.EvidenceQuestion, Text: shorten(j.json)}},
		firstIDs(t.Corpus, results.EvidenceMissing, "", few, ids(v.Missing)), extra,
		firstIDs(t.Corpus, results.EvidenceOrder, "misordered", few, v.Misordered),
		firstIDs(t.Corpus, results.EvidenceOrder, "duplicate", few, v.Duplicate))
}

// shorten keeps a filter's text readable as evidence.
func shorten(text []byte) string {
	const most = 200
	if len(text) <= most {
		return string(text)
	}
	return string(text[:most]) + "…"
}
