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
// protocol takes away again, given what this relay acknowledged: superseded, deleted, expired or vanished events.
func checkStored(ctx context.Context, t *harness.Trial) error {
	held, err := corpus.NewModel(t.Corpus, t.Ledger.Acknowledged, t.Now)
	if err != nil {
		return err
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
	lost, excused := 0, 0
	var evidence []string
	if err := askByID(asker, t.Corpus, acknowledged, func(i int, found bool) {
		switch {
		case found:
		case held.Holds(i) && !held.Optional(i):
			lost++
			if len(evidence) < examples {
				e := t.Corpus.Entry(i)
				evidence = append(evidence, fmt.Sprintf("%s (kind %d)", e.ID, e.Kind))
			}
		default:
			excused++
		}
	}); err != nil {
		return fmt.Errorf("looking again for what was acknowledged: %w", err)
	}
	detail := fmt.Sprintf("all %d acknowledged events were found again", len(acknowledged)-excused)
	if lost > 0 {
		detail = fmt.Sprintf("%d of %d acknowledged events are missing", lost, len(acknowledged))
	}
	if excused > 0 {
		detail += fmt.Sprintf("; %d more were superseded, deleted or expired since", excused)
	}
	t.Find(measure.Finding{Check: "nothing acknowledged is missing", OK: lost == 0, Required: true, Detail: detail, Evidence: evidence})
	return nil
}

// askByID asks for events of the corpus by id, many in one REQ, and tells of each whether it came.
func askByID(asker *harness.Asker, c *corpus.Corpus, indexes []int, each func(i int, found bool)) error {
	came := make(map[corpus.ID]bool, storedBatch)
	var reply harness.Reply
	for batch := range slices.Chunk(indexes, storedBatch) {
		filter := corpus.Filter{Limit: corpus.Int(len(batch))}
		for _, i := range batch {
			filter.IDs = append(filter.IDs, c.Entry(i).ID)
		}
		if err := asker.Ask(filter.AppendJSON(nil), &reply); err != nil {
			return err
		}
		if reply.Closed {
			return fmt.Errorf("CLOSED %q", reply.Reason)
		}
		clear(came)
		for _, id := range reply.IDs {
			came[id] = true
		}
		for _, i := range batch {
			each(i, came[c.Entry(i).ID])
		}
	}
	return nil
}
