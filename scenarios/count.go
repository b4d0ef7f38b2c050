package scenarios

import (
	"context"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Count asks how many events match each of the query templates' filters (NIP-45): on one connection
// for the latency, then on several at once for the rate. Each number is compared with the model's.
type Count struct {
	varied bool // parameters drawn anew for each question
	shared *queryParametersOnce
}

// Counts returns the scenario in its hot and its varied form.
func Counts() []harness.Scenario {
	shared := new(queryParametersOnce)
	return []harness.Scenario{&Count{false, shared}, &Count{true, shared}}
}

// Describe implements harness.Scenario.
func (c *Count) Describe() harness.Description {
	form, order := "hot", 150
	if c.varied {
		form, order = "varied", order+1
	}
	return harness.Description{Needs: harness.Loaded, NIP: 45, Scenario: results.Scenario{
		Key: "count." + form, Title: "how many events match the stock queries, " + form, Section: "Count", Order: order,
		Primary: "time", Unit: "ms", Layout: results.LayoutBars, RoundTrips: []string{"time"},
	}, Labels: results.Labels{results.LabelForm: form}, Metrics: figures("time", "time to the count", "counts/s", "counts/s from all connections", "counted", "events in a count")}
}

// countAsked is one COUNT with its answer.
type countAsked struct {
	filter corpus.Filter
	json   []byte
	answer load.Counted
}

// Run implements harness.Scenario.
func (c *Count) Run(ctx context.Context, t *harness.Trial) error {
	s, err := c.shared.of(t)
	if err != nil {
		return err
	}
	rounds, conns := t.Options.QueryRounds, t.Options.QueryConns
	warm, timed := c.questions(s, t, 1), c.questions(s, t, rounds)
	rate := c.questions(s, t, conns*rounds)
	if len(warm) == 0 {
		t.NotMeasured(results.NothingToAsk, nil)
		return nil
	}
	if err := c.alone(ctx, t, warm, timed); err != nil {
		return err
	}
	t.OwnReading()
	err = c.together(ctx, t, rate)
	t.OwnPart()
	if err != nil {
		return err
	}
	judgeCounts(t, warm, timed, rate)
	return nil
}

// questions draws so many rounds of all query templates that the corpus has something for.
func (c *Count) questions(s *queryParameters, t *harness.Trial, rounds int) (all []countAsked) {
	for range rounds {
		for i := range queryTemplates {
			filter, ok := queryTemplates[i].hot(s)
			if c.varied && ok {
				filter, ok = queryTemplates[i].varied(s, t.Rand)
			}
			if ok && len(s.held) > 0 {
				all = append(all, countAsked{filter: filter, json: filter.AppendJSON(nil)})
			}
		}
	}
	return all
}

// alone measures the latency on one connection.
func (c *Count) alone(ctx context.Context, t *harness.Trial, warm, timed []countAsked) error {
	querier, err := load.NewQuerier(ctx, t.Relay.URL(), t.Options.Stall)
	if err != nil {
		return err
	}
	defer querier.Close()
	took, events := results.NewHistogram(), int64(0)
	for i := range warm {
		if warm[i].answer, err = querier.Count(warm[i].json); err != nil {
			return err
		}
	}
	for i := range timed {
		answer, err := querier.Count(timed[i].json)
		if err != nil {
			return err
		}
		timed[i].answer = answer
		t.Progress(i+1, len(timed))
		if !answer.Closed {
			took.Record(answer.Took)
			events += answer.Count
		}
	}
	if took.Count() > 0 {
		t.Measure(results.Measurement{Metric: "counted", Unit: "events/count", Better: results.None, Exact: true,
			Trials: []float64{float64(events) / float64(took.Count())}, Samples: took.Count()})
	}
	return t.Latency("time", results.Lower, took)
}

// together measures the rate over several connections. Of a question that is asked over again the
// first answer is kept.
func (c *Count) together(ctx context.Context, t *harness.Trial, questions []countAsked) error {
	_, err := askTogether(ctx, t, "counts/s", len(questions), func(querier *load.Querier, _, i int, first bool) (bool, error) {
		answer, err := querier.Count(questions[i].json)
		if first {
			questions[i].answer = answer
		}
		return err == nil && !answer.Closed, err
	})
	return err
}

// judgeCounts compares the counts with the model's, save those that the relay calls approximate. A
// filter's limit bounds no count, and the query templates' filters have none here.
func judgeCounts(t *harness.Trial, asked ...[]countAsked) {
	var garbage wire.Garbage
	var reasons []results.Evidence
	model := results.Finding{Code: results.CodeModel, Counts: map[string]float64{}}
	all, closed, judged, wrong, events := 0, 0, 0, 0, 0
	known := make(map[string]int) // what the model counts, by filter: hot ones come over and over
	for _, questions := range asked {
		for i := range questions {
			q := &questions[i]
			all++
			garbage.Add(q.answer.Garbage)
			if q.answer.Closed {
				closed++
				if len(reasons) < examples {
					reasons = append(reasons, results.Evidence{Code: results.EvidenceWords, Text: q.answer.Reason})
				}
				continue
			}
			if q.answer.Approximate && !q.answer.NoCount {
				continue
			}
			want, ok := known[string(q.json)]
			if !ok {
				want = t.Model.Count(&q.filter)
				known[string(q.json)] = want
			}
			judged++
			events += want
			missing := int64(want) - q.answer.Count
			if t.Relay.External() {
				missing = max(0, missing) // it may have held others before
			}
			if missing == 0 && !q.answer.NoCount {
				continue
			}
			if wrong++; wrong <= examples {
				model.Evidence = append(model.Evidence, results.Evidence{Code: results.EvidenceQuestion, Text: shorten(q.json)})
			}
			if missing > 0 {
				model.Counts["missing"] += float64(missing)
			} else {
				model.Counts["extra"] -= float64(missing)
			}
		}
	}
	findGarbage(t, garbage)
	if closed > 0 {
		t.AddFinding(results.Finding{Code: results.CodeEOSE, Verdict: results.Failed, Counts: counts("closed", closed, "of", all), Evidence: reasons})
	}
	if judged == 0 {
		return
	}
	model.Verdict = results.Holds(wrong == 0)
	model.Counts["wrong"], model.Counts["of"], model.Counts["events"] = float64(wrong), float64(judged), float64(events)
	t.AddFinding(model)
}
