package reference

import (
	"math/rand/v2"
	"testing"

	"relaybench/corpus"
	"relaybench/corpus/model"
)

// The relay must hold and answer what the model says that any compliant relay does, in whatever
// order events come.
func TestAnswersAgreeWithTheModel(t *testing.T) {
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 4))
		var events []corpus.Event
		seen := map[corpus.ID]bool{}
		for _, e := range randomEvents(random, 250) {
			if !seen[e.ID] {
				seen[e.ID] = true
				events = append(events, e)
			}
		}
		c, err := corpus.FromEvents(events)
		if err != nil {
			t.Fatal(err)
		}
		model, err := model.New(c, nil, 2000)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
			s := NewMemory()
			var seq uint64
			admitAll(t, s, &seq, events)
			for range 60 {
				f := randomFilter(random, events)
				if v := model.Check(&f, ask(t, s, f)); !v.OK() || v.Capped || len(v.TieOrder) > 0 {
					t.Fatalf("seed %d: %s: %+v", seed, f.AppendJSON(nil), v)
				}
			}
		}
	}
}
