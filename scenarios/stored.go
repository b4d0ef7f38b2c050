package scenarios

import (
	"context"
	"fmt"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/results"
)

// checkStored looks again for every event that the relay acknowledged (METHOD: nothing acknowledged
// may be missing), and returns how many came and how many are lost. Excused is only what the
// protocol takes away again, given what this relay was sent and did not refuse: superseded,
// deleted, expired or vanished events. required says whether a loss is held against the relay.
func checkStored(ctx context.Context, t *harness.Trial, required bool) (came, lost int, err error) {
	held, err := model.NewStatuses(t.Corpus, t.Ledger.Acknowledged, t.Now)
	if err != nil {
		return 0, 0, err
	}
	// What was sent and never answered may be stored as well, and supersede or delete what was
	// acknowledged.
	perhaps := held
	if t.Ledger.Count(load.Unanswered) > 0 {
		sent := func(i int) bool { return t.Ledger.Acknowledged(i) || t.Ledger.Get(i) == load.Unanswered }
		if perhaps, err = model.NewStatuses(t.Corpus, sent, t.Now); err != nil {
			return 0, 0, err
		}
	}
	var acknowledged []int
	for i := range t.Corpus.Len() {
		if t.Ledger.Acknowledged(i) {
			acknowledged = append(acknowledged, i)
		}
	}
	must := func(i int) bool {
		return held.Holds(i) && !held.Optional(i) && perhaps.Holds(i) && !perhaps.Optional(i)
	}
	answered, returned, err := askByID(ctx, t, acknowledged, must)
	if err != nil {
		return 0, 0, fmt.Errorf("looking again for what was acknowledged: %w", err)
	}
	excused := 0
	var evidence []results.Evidence
	for k, i := range acknowledged {
		switch {
		case answered.Came[k]:
			came++
		case must(i):
			lost++
			if len(evidence) < examples {
				evidence = append(evidence, eventEvidence(results.EvidenceMissing, t.Corpus, i))
			}
		default:
			excused++
		}
	}
	t.AddFinding(returned.finding())
	t.AddFinding(unexpected(answered.Stats))
	f := results.Finding{Code: results.CodeAcknowledgedKept, Verdict: results.Holds(lost == 0), Counts: counts("lost", lost, "of", len(acknowledged), "excused", excused), Evidence: evidence}
	if lost > 0 && !required {
		f.Verdict = results.Stated
	}
	late(&f, answered)
	t.AddFinding(f)
	return came, lost, nil
}

// late tells of events that came only when they were asked for again, which bars nothing.
func late(f *results.Finding, a *client.LookedUp) {
	if a.Late == 0 {
		return
	}
	f.Counts["late"], f.Counts["late ms"] = float64(a.Late), harness.Milliseconds(a.LateBy)
	if f.Verdict == results.Passed {
		f.Verdict = results.Stated
	}
}

// recordLate keeps how many events a relay returned only when it was asked for them again, and by
// how much the last of them was late.
func recordLate(t *harness.Trial, n int, by time.Duration) {
	t.Value("late", "events", results.None, float64(n))
	t.Value("late by", "ms", results.None, harness.Milliseconds(by))
}

// unexpected is the finding on events that came and had not been asked for.
func unexpected(s *client.Stats) results.Finding {
	f := results.Finding{Code: results.CodeOnlyAsked, Verdict: results.Holds(s.Unexpected == 0), Counts: counts("events", int(s.Unexpected), "elsewhere", int(s.Elsewhere))}
	for _, id := range s.UnexpectedIDs {
		f.Evidence = append(f.Evidence, results.Evidence{Code: results.EvidenceUnexpected, ID: id.String()})
	}
	return f
}

// idsOf are the ids of events of the corpus.
func idsOf(c *corpus.Corpus, indexes []int) []corpus.ID {
	ids := make([]corpus.ID, len(indexes))
	for k, i := range indexes {
		ids[k] = c.Entry(i).ID
	}
	return ids
}

// askByID asks for events of the corpus; must says which of them have to be there.
func askByID(ctx context.Context, t *harness.Trial, indexes []int, must func(i int) bool) (*client.LookedUp, *comparison, error) {
	ids := idsOf(t.Corpus, indexes)
	ctx, cancel := t.Budget.Within(ctx, 0, len(ids))
	defer cancel()
	returned := &comparison{corpus: t.Corpus}
	a := client.Lookup{URL: t.Relay.URL(), Stall: t.Options.Stall, Must: func(k int) bool { return must(indexes[k]) }, OnEvent: returned.pulled, Progress: func(came int) { t.Progress(came, len(ids)) }}
	came, err := a.Run(ctx, ids)
	t.Ledger.Saw(came.Longest)
	return came, returned, err
}

// findHeld finds out what a relay holds of the corpus: it is reconciled with what stands in
// against, where that is not nil, and asked by id. What the model holds has to be there.
func findHeld(ctx context.Context, t *harness.Trial, against []int, m *model.Model, reconciled func(negentropy.Result)) (*found, error) {
	ctx, cancel := t.Budget.Within(ctx, 0, t.Corpus.Len())
	defer cancel()
	returned := &comparison{corpus: t.Corpus}
	q := holding{url: t.Relay.URL(), stall: t.Options.Stall, corpus: t.Corpus, against: against, reconciled: reconciled, draw: t.Rand.IntN,
		must: func(i int) bool { return m.Holds(i) && !m.Optional(i) }, onEvent: returned.pulled, progress: t.Progress}
	h, err := q.find(ctx)
	if err != nil {
		return nil, err
	}
	t.Ledger.Saw(h.Longest)
	h.returned = returned
	return h, nil
}

// findings are what was seen on the way. What the protocol leaves open may be named and not
// returned.
func (h *found) findings(c *corpus.Corpus, m *model.Model) []results.Finding {
	all := []results.Finding{unexpected(h.Stats), h.returned.finding()}
	if broken := harness.Breach(h.trouble); broken != nil {
		all = append(all, *broken)
	}
	if !h.reconciled {
		return all
	}
	f := results.Finding{Code: results.CodeReturnsNamed, Counts: counts("missing", 0, "unnamed", 0, "of", h.asked)}
	for name, list := range map[string][]int{"missing": h.unreturned, "unnamed": h.unnamed} {
		list = slices.DeleteFunc(slices.Clone(list), m.Optional)
		f.Counts[name] = float64(len(list))
		for _, i := range list[:min(len(list), examples)] {
			e := eventEvidence(results.EvidenceMissing, c, i)
			if name == "unnamed" {
				e.Code = results.EvidenceUnexpected
			}
			f.Evidence = append(f.Evidence, e)
		}
	}
	f.Verdict = results.Holds(len(f.Evidence) == 0)
	late(&f, &h.LookedUp)
	return append(all, f, onlyKnown(c, h.unexpected, h.twice))
}

// comparison holds the events that a relay sends against those that it was given.
type comparison struct {
	corpus            *corpus.Corpus
	compared, changed int
	evidence          []results.Evidence
}

func (x *comparison) pulled(e *client.Event) { x.see(e.ID, e.Raw) }

// see is a load.Querier's OnEvent. Parsing what is not byte for byte the same takes time: it has
// no place on timed paths.
func (x *comparison) see(id corpus.ID, text []byte) {
	i, ok := x.corpus.Find(id)
	if !ok {
		return
	}
	x.compared++
	if problem := load.Altered(x.corpus, i, text); problem != "" {
		if x.changed++; x.changed <= examples {
			e := eventEvidence(results.EvidenceAltered, x.corpus, i)
			e.Text = problem
			x.evidence = append(x.evidence, e)
		}
	}
}

func (x *comparison) finding() results.Finding {
	return results.Finding{Code: results.CodeUnaltered, Verdict: results.Holds(x.changed == 0), Counts: counts("altered", x.changed, "of", x.compared), Evidence: x.evidence}
}
