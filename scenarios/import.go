package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/measure"
	"relaybench/harness/negentropy"
	"relaybench/relays"
)

// Import has a relay's own import command fill a fresh folder with the corpus, boots the relay on it, and counts what it holds by asking it. What the
// command says of itself counts for nothing.
type Import struct{}

// Describe implements harness.Scenario.
func (Import) Describe() harness.Description {
	return harness.Description{Needs: harness.Empty, Scenario: measure.Scenario{
		Key: "import", Title: "Filled by its own import command, and counted by asking", Section: sectionImport, Order: orderImport, Primary: "stored", Unit: "events/s",
		Layout: measure.LayoutBars, Ceiling: measure.CeilingNone,
	}, Metrics: []measure.Metric{
		figure("stored", "stored"), figure("held afterwards", "held afterwards"), figure("duration", "duration"), figure("not stored", "not stored"),
		resource("cpu per 1,000 stored", "cpu per 1,000 stored"), resource("cpu of the command", "cpu of the command"),
		resource("peak rss of the command", "peak rss of the command"),
	}}
}

// Run implements harness.Scenario. Afterwards the Ledger says of each event whether it was found, as an answer to publishing would have said it.
func (Import) Run(ctx context.Context, t *harness.Trial) error {
	if ok, why := t.Relay.Definition().Can(relays.Import); !ok {
		t.NotMeasured(measure.NoCommand, map[string]string{"relay": t.Relay.Name(), "why": why})
		return nil
	}
	var carried *relays.Carried
	err := t.Refill(ctx, func(relay *relays.Process) (_ *relays.Carried, err error) {
		carried, err = relay.Import(ctx, t.Corpus.Text(), relays.Carry{
			Stall: t.Options.Stall,
			Progress: func(done, total int64) {
				t.Progress(int(float64(t.Corpus.Len())*float64(done)/float64(max(1, total))), t.Corpus.Len())
			},
		})
		return carried, err
	})
	if err != nil {
		return err
	}
	held, asked, err := heldAfter(ctx, t)
	if err != nil {
		return fmt.Errorf("counting what was imported: %w", err)
	}
	recordImport(t, carried, held)
	findImported(t, held, asked)
	return nil
}

// holding is what a relay was found to hold.
type holding struct {
	events  []int              // of the corpus
	unknown map[corpus.ID]bool // ids of no event of the corpus
	twice   map[corpus.ID]bool // named as the relay's alone though the harness has them: kept under another created_at, or a lie
}

// sound reports whether what was named fits what was asked.
func (h *holding) sound() bool { return len(h.unknown)+len(h.twice) == 0 }

// reconciledHolding works out what a relay holds from how it differs from a set of events of the corpus, in corpus order. Each event counts once,
// whatever the relay says.
func reconciledHolding(c *corpus.Corpus, set []int, have, need map[corpus.ID]bool) holding {
	h := holding{unknown: make(map[corpus.ID]bool), twice: make(map[corpus.ID]bool)}
	for _, i := range set {
		id := c.Entry(i).ID
		if need[id] {
			h.twice[id] = true
		}
		if need[id] || !have[id] {
			h.events = append(h.events, i)
		}
	}
	for id := range need {
		if i, ok := c.Find(id); !ok {
			h.unknown[id] = true
		} else if !h.twice[id] {
			h.events = append(h.events, i)
		}
	}
	slices.Sort(h.events)
	return h
}

// heldAfter finds out what the relay holds: by reconciling with it, where it speaks NIP-77, and else by asking for every id. Of what was only named, a
// sample is asked for as well.
func heldAfter(ctx context.Context, t *harness.Trial) (h holding, asked bool, err error) {
	asker, err := harness.NewAsker(ctx, t.Relay.URL(), t.Options.Stall)
	if err != nil {
		return h, false, err
	}
	defer asker.Close()
	var returned comparison
	asker.OnEvent = returned.with(t.Corpus)

	h, err = heldByReconciling(ctx, t)
	unsupported, refused := (*negentropy.UnsupportedError)(nil), (*negentropy.RelayError)(nil)
	switch {
	case errors.As(err, &unsupported) || errors.As(err, &refused):
		h = holding{}
		all := make([]int, t.Corpus.Len())
		for i := range all {
			all[i] = i
		}
		others, err := askByID(t, asker, all, func(i int, found bool) {
			if found {
				h.events = append(h.events, i)
			}
			if (i+1)%storedBatch == 0 {
				t.Progress(i+1, len(all))
			}
		})
		if err != nil {
			return h, false, err
		}
		others.find(t)
		returned.find(t)
		return h, true, nil
	case err != nil:
		return h, false, err
	}
	named := 0
	var evidence []measure.Evidence
	drawn := sample(t, h.events)
	others, err := askByID(t, asker, drawn, func(i int, found bool) {
		if found {
			return
		}
		if named++; named <= examples {
			evidence = append(evidence, eventEvidence(measure.EvidenceMissing, t.Corpus, i))
		}
	})
	if err != nil {
		return h, false, err
	}
	others.find(t)
	returned.find(t)
	t.Find(measure.Finding{Code: measure.CodeReturnsNamed, Verdict: measure.Holds(named == 0), Counts: counts("missing", named, "of", len(drawn)), Evidence: evidence})
	return h, false, nil
}

// sampled is how many of the events that a relay has only named are asked for.
const sampled = 1000

func sample(t *harness.Trial, events []int) []int {
	if len(events) <= sampled {
		return events
	}
	chosen := make([]int, sampled)
	for k := range chosen { // one of each part of the whole, so that none is drawn twice
		low, high := k*len(events)/sampled, (k+1)*len(events)/sampled
		chosen[k] = events[low+t.Rand.IntN(high-low)]
	}
	return chosen
}

// heldByReconciling compares with what a compliant relay holds: the difference is small.
func heldByReconciling(ctx context.Context, t *harness.Trial) (h holding, err error) {
	effective := t.Model.Effective()
	s := &side{Trial: t}
	_, have, need, err := s.against(ctx, effective)
	if err != nil {
		return h, err
	}
	return reconciledHolding(t.Corpus, effective, have, need), nil
}

// recordImport keeps what the import cost. Rates count what was found.
func recordImport(t *harness.Trial, carried *relays.Carried, held holding) {
	seconds, stored := carried.Took.Seconds(), int64(len(held.events))
	var bytes int64
	for _, i := range held.events {
		bytes += int64(t.Corpus.Entry(i).Length)
	}
	if seconds > 0 {
		t.Measure(measure.Measurement{Metric: "stored", Unit: "events/s", Better: measure.Higher, Trials: []float64{float64(stored) / seconds}, Samples: stored})
	}
	t.Value("duration", "s", measure.None, seconds) // the rate says it, and is what is compared
	t.Value("held afterwards", "events", measure.None, float64(stored))
	t.Value("cpu of the command", "s", measure.None, carried.Usage.CPUSeconds)
	if carried.Usage.PeakRSS > 0 { // it lived long enough to be seen
		t.Value("peak rss of the command", "MiB", measure.None, float64(carried.Usage.PeakRSS)/(1<<20))
	}
	if stored > 0 {
		t.Measure(measure.Measurement{Metric: "cpu per 1,000 stored", Unit: "s", Better: measure.Lower, Trials: []float64{carried.Usage.CPUSeconds * 1000 / float64(stored)}, Samples: stored})
		t.Value("write amplification while importing", "bytes/byte", measure.None, float64(carried.Usage.WriteBytes)/float64(bytes))
	}
}

// findImported judges what was found, explains what was not by what the protocol takes away again, and keeps both in the Ledger.
func findImported(t *harness.Trial, held holding, asked bool) {
	for i := range t.Corpus.Len() {
		t.Ledger.Set(i, harness.Refused)
	}
	for _, i := range held.events {
		t.Ledger.Set(i, harness.Accepted)
	}
	d := compareWith(t.Corpus, t.Model, held.events, func(int) string { return measure.MissingNotImported })
	gone := make(map[corpus.Reason]int)
	for i := range t.Corpus.Len() {
		if !t.Model.Holds(i) && t.Ledger.Get(i) == harness.Refused {
			gone[t.Model.Why(i)]++
		}
	}
	f := measure.Finding{Code: measure.CodeImported, Verdict: measure.Holds(d.none()), Counts: d.counts(), Evidence: d.evidence()}
	f.Counts["file"] = float64(t.Corpus.Len())
	if f.Cause = "reconciled"; asked {
		f.Cause = "asked"
	}
	for _, reason := range slices.Sorted(maps.Keys(gone)) {
		t.Measure(measure.Measurement{Metric: "not stored", Unit: "events", Better: measure.None, Trials: []float64{float64(gone[reason])},
			Labels: measure.Labels{measure.LabelReason: reason.String()}})
		f.Counts["rightly."+reason.String()] = float64(gone[reason])
	}
	t.Find(f)
	findNamed(t, t.Corpus, held.unknown, held.twice)
}
