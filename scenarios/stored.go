package scenarios

import (
	"bytes"
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
	changed, altered := 0, []string(nil)
	asker.OnEvent = func(id corpus.ID, text []byte) {
		if i, ok := t.Corpus.Find(id); ok {
			if problem := differs(t.Corpus, i, text); problem != "" {
				if changed++; changed <= examples {
					altered = append(altered, id.String()+": "+problem)
				}
			}
		}
	}
	lost, excused := 0, 0
	var evidence []string
	if err := askByID(t, asker, acknowledged, func(i int, found bool) {
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
	t.Find(measure.Finding{Check: "events come back as they were sent", OK: changed == 0, Required: true,
		Detail: fmt.Sprintf("%d of %d events came back with other fields", changed, len(acknowledged)-lost-excused), Evidence: altered})
	t.Find(measure.Finding{Check: "nothing acknowledged is missing", OK: lost == 0, Required: true, Detail: detail, Evidence: evidence})
	return nil
}

// askByID asks for events of the corpus by id, many in one REQ, and tells of each whether it came.
func askByID(t *harness.Trial, asker *harness.Asker, indexes []int, each func(i int, found bool)) error {
	came := make(map[corpus.ID]bool, storedBatch)
	var reply harness.Reply
	for batch := range slices.Chunk(indexes, storedBatch) {
		filter := corpus.Filter{Limit: corpus.Int(len(batch))}
		for _, i := range batch {
			filter.IDs = append(filter.IDs, t.Corpus.Entry(i).ID)
		}
		if err := asker.Ask(filter.AppendJSON(nil), &reply); err != nil {
			return err
		}
		if reply.Closed {
			return fmt.Errorf("CLOSED %q", reply.Reason)
		}
		t.Ledger.Saw(len(reply.IDs))
		clear(came)
		for _, id := range reply.IDs {
			came[id] = true
		}
		for _, i := range batch {
			each(i, came[t.Corpus.Entry(i).ID])
		}
	}
	return nil
}

// differs says what is wrong with an event that a relay sent: every field must be as it was signed, whatever the JSON looks like.
func differs(c *corpus.Corpus, i int, text []byte) string {
	if bytes.Equal(text, c.Raw(i)) {
		return ""
	}
	e, err := corpus.ParseEvent(text)
	if err != nil {
		return err.Error()
	}
	if !bytes.Equal(e.AppendJSON(nil), c.Raw(i)) {
		return "a field is not as it was signed"
	}
	return ""
}
