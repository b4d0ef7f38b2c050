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

// checkStored looks again for every event that the relay acknowledged (METHOD: nothing acknowledged may be missing). Excused is only what the
// protocol takes away again, given what this relay was sent and did not refuse: superseded, deleted, expired or vanished events. required says whether a loss is held
// against the relay.
func checkStored(ctx context.Context, t *harness.Trial, required bool) error {
	held, err := corpus.NewFates(t.Corpus, t.Ledger.Acknowledged, t.Now)
	if err != nil {
		return err
	}
	// What was sent and never answered may be stored as well, and supersede or delete what was acknowledged.
	perhaps := held
	if t.Ledger.Count(harness.Unanswered) > 0 {
		sent := func(i int) bool { return t.Ledger.Acknowledged(i) || t.Ledger.Get(i) == harness.Unanswered }
		if perhaps, err = corpus.NewFates(t.Corpus, sent, t.Now); err != nil {
			return err
		}
	}
	asker, err := harness.NewAsker(ctx, t.Relay.URL(), t.Options.Stall)
	if err != nil {
		return fmt.Errorf("looking again for what was acknowledged: %w", err)
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
	lost, excused := 0, 0
	var evidence []string
	others, err := askByID(t, asker, acknowledged, func(i int, found bool) {
		switch {
		case found:
		case held.Holds(i) && !held.Optional(i) && perhaps.Holds(i) && !perhaps.Optional(i):
			lost++
			if len(evidence) < examples {
				e := t.Corpus.Entry(i)
				evidence = append(evidence, fmt.Sprintf("%s (kind %d)", e.ID, e.Kind))
			}
		default:
			excused++
		}
	})
	if err != nil {
		return fmt.Errorf("looking again for what was acknowledged: %w", err)
	}
	detail := fmt.Sprintf("all %d acknowledged events were found again", len(acknowledged)-excused)
	if lost > 0 {
		detail = fmt.Sprintf("%d of %d acknowledged events are missing", lost, len(acknowledged))
	}
	if excused > 0 {
		detail += fmt.Sprintf("; %d more were superseded, deleted or expired since", excused)
	}
	returned.find(t)
	others.find(t)
	t.Find(measure.Finding{Check: "nothing acknowledged is missing", OK: lost == 0, Required: required, Detail: detail, Evidence: evidence})
	return nil
}

// strays are events that came and had not been asked for.
type strays struct {
	count    int
	evidence []string // ids of the first of them
}

func (s *strays) find(t *harness.Trial) {
	t.Find(measure.Finding{Check: "returns only what was asked for", OK: s.count == 0, Required: true,
		Detail: fmt.Sprintf("%d events came that had not been asked for", s.count), Evidence: s.evidence})
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
		clear(came)
		for _, id := range reply.IDs {
			came[id] = true
			if !slices.Contains(filter.IDs, id) {
				if others.count++; others.count <= examples {
					others.evidence = append(others.evidence, id.String())
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
	evidence          []string
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
				x.evidence = append(x.evidence, id.String()+": "+problem)
			}
		}
	}
}

func (x *comparison) find(t *harness.Trial) {
	t.Find(measure.Finding{Check: "events come back as they were sent", OK: x.changed == 0, Required: true,
		Detail: fmt.Sprintf("%d of %d events came back with other fields", x.changed, x.compared), Evidence: x.evidence})
}
