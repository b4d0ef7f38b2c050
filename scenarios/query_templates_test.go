package scenarios

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/corpus/synthetic"
)

// testQueryParameters derives the query templates' parameters from a small synthetic corpus.
func testQueryParameters(t *testing.T, spec synthetic.Spec) (*queryParameters, *model.Model) {
	t.Helper()
	var events []corpus.Event
	err := spec.Generate(context.Background(), nil, func(e *corpus.Event) error {
		events = append(events, *e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := corpus.FromEvents(events)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(c, nil, spec.BaseTime)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newQueryParameters(c, m)
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

// TestStockQueriesStayInsideStockLimits holds every query to strfry's limits as shipped: 500
// events, 200 elements in all, 3 tag names. Each but the floor finds something, and the varied
// forms do not ask the same all the time.
func TestStockQueriesStayInsideStockLimits(t *testing.T) {
	s, m := testQueryParameters(t, synthetic.Spec{Events: 1500, Seed: 1, BaseTime: 1780272000})
	for i := range queryTemplates {
		q := &queryTemplates[i]
		t.Run(q.key, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			check := func(form string, f corpus.Filter, ok bool) string {
				if !ok {
					t.Fatalf("%s: nothing to ask about in a corpus that has everything", form)
				}
				f.Limit = corpus.Int(templateLimit)
				elements := len(f.IDs) + len(f.Authors) + len(f.Kinds)
				for _, tag := range f.Tags {
					elements += len(tag.Values)
				}
				if elements > 200 || len(f.Tags) > 3 {
					t.Errorf("%s: %d elements, %d tag names", form, elements, len(f.Tags))
				}
				text := string(f.AppendJSON(nil))
				if again, err := corpus.ParseFilter([]byte(text)); err != nil || string(again.AppendJSON(nil)) != text {
					t.Errorf("%s: %s does not read back: %v", form, text, err)
				}
				if found := len(m.Query(&f)); (found == 0) != (q.key == "empty") && form == "hot" {
					t.Errorf("%s: finds %d events", form, found)
				}
				return text
			}
			f, ok := q.hot(s)
			check("hot", f, ok)
			different := make(map[string]bool)
			for range 20 {
				f, ok := q.varied(s, r)
				different[check("varied", f, ok)] = true
			}
			if len(different) < 5 {
				t.Errorf("20 draws of the varied form gave %d different filters", len(different))
			}
		})
	}
}

// TestStockQueriesSurvivePoorCorpora asks every query of corpora that have nearly nothing: each
// either makes a filter or says that there is nothing to ask about.
func TestStockQueriesSurvivePoorCorpora(t *testing.T) {
	for events := 1; events <= 40; events += 3 {
		s, m := testQueryParameters(t, synthetic.Spec{Events: events, Seed: 7, BaseTime: 1780272000})
		r := rand.New(rand.NewPCG(1, 2))
		for i := range queryTemplates {
			if f, ok := queryTemplates[i].hot(s); ok {
				m.Query(&f)
			}
			if f, ok := queryTemplates[i].varied(s, r); ok {
				m.Query(&f)
			}
		}
	}
}

// TestACorpusOfWhichNothingIsHeldLeavesNothingToAskAbout has one event, of a kind that is not kept.
func TestACorpusOfWhichNothingIsHeldLeavesNothingToAskAbout(t *testing.T) {
	c, err := corpus.FromEvents([]corpus.Event{{ID: corpus.ID{1}, Kind: 20_000, CreatedAt: 1}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(c, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newQueryParameters(c, m)
	if err != nil || len(s.held) > 0 || s.oldest != 0 || s.newest != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	var asked []string
	for i := range queryTemplates {
		if _, ok := queryTemplates[i].hot(s); ok {
			asked = append(asked, queryTemplates[i].key)
		}
		if _, ok := queryTemplates[i].varied(s, rand.New(rand.NewPCG(1, 2))); ok {
			asked = append(asked, queryTemplates[i].key+" varied")
		}
	}
	if want := []string{"firehose", "firehose varied", "global-feed", "global-feed varied", "recent-window", "recent-window varied", "empty", "empty varied"}; !slices.Equal(asked, want) {
		t.Errorf("asked all the same: %q, want %q", asked, want)
	}
}

func TestPickDrawsWithoutRepetition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	list := []int{1, 2, 3, 4, 5}
	for n := range 8 {
		seen := make(map[int]bool)
		for _, v := range pick(r, list, n) {
			if seen[v] {
				t.Errorf("%d drawn twice of %d", v, n)
			}
			seen[v] = true
		}
		if len(seen) != min(n, len(list)) {
			t.Errorf("%d drawn, want %d", len(seen), min(n, len(list)))
		}
	}
}
