package scenarios

import (
	"context"
	"fmt"

	"relaybench/harness"
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
	form, order := form(c.varied)
	return harness.Description{Needs: harness.Loaded, NIP: 45, Scenario: results.Scenario{
		Key: "count." + form, Title: "how many events match the stock queries, " + form, Section: "Count", Order: orderCounts + order,
		Primary: "time", Unit: "ms", Layout: results.LayoutBars, RoundTrips: []string{"time"},
	}, Labels: results.Labels{results.LabelForm: form},
		Metrics: figures("time", "time to the count", "counts/s", "counts/s from all connections", "counted", "events in a count")}
}

// Run implements harness.Scenario. A filter's limit bounds no count, and the filters have none.
func (c *Count) Run(ctx context.Context, t *harness.Trial) error {
	s, err := c.shared.of(t)
	if err != nil {
		return err
	}
	rounds, conns := t.Options.QueryRounds, t.Options.QueryConns
	questions := drawQueries(t, s, 1+rounds+conns*rounds, c.varied, queryTemplates...)
	n := len(questions) / (1 + rounds + conns*rounds) // in one round
	if n == 0 {
		t.NotMeasured(results.NothingToAsk, nil)
		return nil
	}
	changed, err := byCOUNT.run(ctx, t, questions[:n], questions[n:n+rounds*n], questions[n+rounds*n:])
	if err != nil {
		return err
	}
	judgeCounts(t, append(questions, changed...))
	return nil
}

// judgeCounts compares the counts with the model's, save those that the relay calls approximate.
func judgeCounts(t *harness.Trial, questions []query) {
	answered, closed, words := ended(t, questions)
	var wrong []results.Evidence
	faults := counts("wrong", 0, "of", 0, "events", 0)
	malformed := 0
	known := make(map[string]int) // what the model counts, by filter: hot ones come over and over
	for _, q := range answered {
		switch {
		case !q.reply.Answered():
			if malformed++; malformed <= examples {
				words = append(words, results.Evidence{Code: results.EvidenceWords, Text: q.reply.Reason})
			}
			continue
		case q.reply.Approximate:
			continue
		}
		want, ok := known[string(q.json)]
		if !ok {
			want = t.Model.Count(&q.filter)
			known[string(q.json)] = want
		}
		faults["of"]++
		faults["events"] += float64(want)
		switch missing := want - q.reply.Held(); {
		case missing > 0:
			faults["missing"] += float64(missing)
		case missing < 0 && !t.Relay.External(): // one that runs already may have held others before
			faults["extra"] -= float64(missing)
		default:
			continue
		}
		if faults["wrong"]++; len(wrong) < examples {
			text := fmt.Sprintf("%s: said %d, model has %d", shorten(q.json), q.reply.Held(), want)
			wrong = append(wrong, results.Evidence{Code: results.EvidenceQuestion, Text: text})
		}
	}
	t.AddFinding(check(results.CodeCounted, closed+malformed == 0,
		counts("closed", closed, "malformed", malformed, "of", len(questions)), words...))
	if faults["of"] > 0 {
		t.AddFinding(check(results.CodeModel, faults["wrong"] == 0, faults, wrong...))
	}
}
