package scenarios

import (
	"context"
	"fmt"
	"slices"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/measure"
)

// storedBatch is how many ids one REQ asks for: within the filter limits of every relay in the catalog.
const storedBatch = 100

// checkStored looks again for every event that the relay acknowledged (METHOD: nothing acknowledged
// may be missing), and returns how many came and how many are lost. Excused is only what the
// protocol takes away again, given what this relay was sent and did not refuse: superseded,
// deleted, expired or vanished events. required says whether a loss is held against the relay.
func checkStored(ctx context.Context, t *harness.Trial, required bool) (came, lost int, err error) {
	held, err := corpus.NewFates(t.Corpus, t.Ledger.Acknowledged, t.Now)
	if err != nil {
		return 0, 0, err
	}
	// What was sent and never answered may be stored as well, and supersede or delete what was acknowledged.
	perhaps := held
	if t.Ledger.Count(harness.Unanswered) > 0 {
		sent := func(i int) bool { return t.Ledger.Acknowledged(i) || t.Ledger.Get(i) == harness.Unanswered }
		if perhaps, err = corpus.NewFates(t.Corpus, sent, t.Now); err != nil {
			return 0, 0, err
		}
	}
	asker, err := harness.NewAsker(ctx, t.Relay.URL(), t.Options.Stall)
	if err != nil {
		return 0, 0, fmt.Errorf("looking again for what was acknowledged: %w", err)
	}
	defer asker.Close()

	var acknowledged []int
	for i := range t.Corpus.Len() {
		if t.Ledger.Acknowledged(i) {
			acknowledged = append(acknowledged, i)
		}
	}
	var returned comparison
	asker.OnEvent = returned.with(t.Corpus)
	excused := 0
	var evidence []measure.Evidence
	others, err := askByID(t, asker, acknowledged, func(i int, found bool) {
		switch {
		case found:
			came++
		case held.Holds(i) && !held.Optional(i) && perhaps.Holds(i) && !perhaps.Optional(i):
			lost++
			if len(evidence) < examples {
				evidence = append(evidence, eventEvidence(measure.EvidenceMissing, t.Corpus, i))
			}
		default:
			excused++
		}
	})
	if err != nil {
		return 0, 0, fmt.Errorf("looking again for what was acknowledged: %w", err)
	}
	returned.find(t)
	others.find(t)
	f := measure.Finding{Code: measure.CodeKept, Verdict: measure.Holds(lost == 0), Counts: counts("lost", lost, "of", len(acknowledged), "excused", excused), Evidence: evidence}
	if lost > 0 && !required {
		f.Verdict = measure.Stated
	}
	t.Find(f)
	return came, lost, nil
}

// strays are events that came and had not been asked for.
type strays struct {
	count     int
	elsewhere int                // of them, how many came under a subscription id that was never asked under
	evidence  []measure.Evidence // ids of the first of the others
}

func (s *strays) find(t *harness.Trial) {
	t.Find(measure.Finding{Code: measure.CodeOnlyAsked, Verdict: measure.Holds(s.count == 0), Counts: counts("events", s.count, "elsewhere", s.elsewhere), Evidence: s.evidence})
}

// askByID asks for events of the corpus by id, many in one REQ, and tells of each whether it came.
func askByID(t *harness.Trial, asker *harness.Asker, indexes []int, each func(i int, found bool)) (others strays, err error) {
	came := make(map[corpus.ID]bool, storedBatch)
	var reply harness.Reply
	for batch := range slices.Chunk(indexes, storedBatch) {
		filter := corpus.Filter{Limit: corpus.Int(len(batch))}
		for _, i := range batch {
			filter.IDs = append(filter.IDs, t.Corpus.Entry(i).ID)
		}
		if err := asker.Ask(filter.AppendJSON(nil), &reply); err != nil {
			return others, err
		}
		if reply.Closed {
			return others, fmt.Errorf("CLOSED %q", reply.Reason)
		}
		t.Ledger.Saw(len(reply.IDs))
		others.count, others.elsewhere = others.count+reply.Elsewhere, others.elsewhere+reply.Elsewhere
		clear(came)
		for _, id := range reply.IDs {
			came[id] = true
			if !slices.Contains(filter.IDs, id) {
				if others.count++; others.count-others.elsewhere <= examples {
					others.evidence = append(others.evidence, measure.Evidence{Code: measure.EvidenceUnexpected, ID: id.String()})
				}
			}
		}
		for _, i := range batch {
			each(i, came[t.Corpus.Entry(i).ID])
		}
	}
	return others, nil
}

// comparison holds the events that a relay sends against those that it was given.
type comparison struct {
	compared, changed int
	evidence          []measure.Evidence
}

// with is a harness.Asker's OnEvent. Parsing what is not byte for byte the same takes time: it has no place on timed paths.
func (x *comparison) with(c *corpus.Corpus) func(corpus.ID, []byte) {
	return func(id corpus.ID, text []byte) {
		i, ok := c.Find(id)
		if !ok {
			return
		}
		x.compared++
		if problem := harness.Altered(c, i, text); problem != "" {
			if x.changed++; x.changed <= examples {
				e := eventEvidence(measure.EvidenceAltered, c, i)
				e.Text = problem
				x.evidence = append(x.evidence, e)
			}
		}
	}
}

func (x *comparison) find(t *harness.Trial) {
	t.Find(measure.Finding{Code: measure.CodeUnaltered, Verdict: measure.Holds(x.changed == 0), Counts: counts("altered", x.changed, "of", x.compared), Evidence: x.evidence})
}
