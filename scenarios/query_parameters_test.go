package scenarios

import (
	"math/rand/v2"
	"slices"
	"testing"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/corpus/synthetic"
	"relaybench/harness"
	"relaybench/results"
)

// TestHotQueriesAskAboutWhatStandsOut compares each fixed filter with the ranking of who and what
// stands out, which the corpus has tests for.
func TestHotQueriesAskAboutWhatStandsOut(t *testing.T) {
	t.Parallel()
	s, m := testQueryParameters(t, synthetic.Spec{Events: 3200, Seed: 1, BaseTime: 1780272000})
	p, err := m.Popular()
	if err != nil {
		t.Fatal(err)
	}
	held := m.Effective()
	at := func(k int) int64 { return m.Corpus().Entry(held[k]).CreatedAt }
	oldest, newest := at(0), at(len(held)-1)
	authors := func(from, to int) (list []corpus.PubKey) {
		for _, r := range p.NoteAuthors[from:to] {
			list = append(list, r.Key)
		}
		return list
	}
	notes := func(n int) (list []string) {
		for _, r := range p.Notes[:min(n, len(p.Notes))] {
			list = append(list, r.Key.String())
		}
		return list
	}
	tags := func(name byte, values ...string) []corpus.TagFilter {
		return []corpus.TagFilter{{Name: name, Values: values}}
	}
	most := p.Mentions[0].Key
	talk := p.Conversations[slices.IndexFunc(p.Conversations, func(r model.Ranked[model.Pair]) bool { return r.Key.Tagged == most })].Key
	byIDs := make([]corpus.ID, 100)
	for k := range byIDs {
		byIDs[k] = m.Corpus().Entry(held[k*len(held)/100]).ID
	}
	n := len(p.NoteAuthors)
	if n < 151 || len(p.Notes) < 151 {
		t.Fatalf("%d authors and %d notes are too few for this test", n, len(p.Notes))
	}
	want := map[string]corpus.Filter{
		"firehose":        {},
		"global-feed":     {Kinds: []int{1, 6}},
		"profiles":        {Kinds: []int{0}, Authors: authors(0, 50)},
		"author-archive":  {Authors: authors(n-3, n)},
		"follow-feed":     {Kinds: []int{1, 6}, Authors: authors(0, 150)},
		"thread":          {Kinds: []int{1, 6, 7, 9735}, Tags: tags('e', notes(1)...)},
		"notifications":   {Kinds: []int{1, 6, 7, 9735}, Tags: tags('p', most.String())},
		"conversation":    {Kinds: []int{1}, Authors: []corpus.PubKey{talk.Author}, Tags: tags('p', most.String())},
		"reactions-watch": {Kinds: []int{7}, Tags: tags('e', notes(150)...)},
		"hashtag":         {Kinds: []int{1}, Tags: tags('t', p.Hashtags[0].Key)},
		"by-ids":          {IDs: byIDs},
		"recent-window":   {Kinds: []int{1}, Since: corpus.Int64(newest - (newest-oldest)/5)},
		"deep-page":       {Until: corpus.Int64(at(len(held) / 2))},
	}
	for i := range queryTemplates {
		q := &queryTemplates[i]
		f, ok := q.hot(s)
		if expected, fixed := want[q.key]; fixed && (!ok || string(f.AppendJSON(nil)) != string(expected.AppendJSON(nil))) {
			t.Errorf("%s: %s\nwant %s", q.key, f.AppendJSON(nil), expected.AppendJSON(nil))
		}
		if q.key == "empty" && (len(f.IDs) != 1 || len(m.Query(&f)) != 0) {
			t.Errorf("empty: %s", f.AppendJSON(nil))
		}
		// The varied form asks the same kind of question, of the same size, inside the corpus'
		// time.
		r := rand.New(rand.NewPCG(3, 4))
		for range 30 {
			v, ok := q.varied(s, r)
			if !ok || len(v.Authors) != len(f.Authors) || len(v.IDs) != len(f.IDs) || !slices.Equal(v.Kinds, f.Kinds) || len(v.Tags) != len(f.Tags) {
				t.Fatalf("%s, varied: %s\nhot: %s", q.key, v.AppendJSON(nil), f.AppendJSON(nil))
			}
			if v.Until != nil {
				between(t, q.key+": until", oldest, *v.Until, newest)
			}
			if v.Since != nil {
				same(t, q.key+": window", *v.Until-*v.Since, (newest-oldest)/5)
			}
			for k := range v.Tags {
				same(t, q.key+": values", len(v.Tags[k].Values), len(f.Tags[k].Values))
			}
			if q.key == "deep-page" {
				between(t, "deep-page: until", at(len(held)/4), *v.Until, at(3*len(held)/4+1))
			}
		}
	}
}

// TestAMomentIsAnySecondOfACorpus from the oldest event's to the newest's.
func TestAMomentIsAnySecondOfACorpus(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for span := range int64(3) {
		s := &queryParameters{oldest: 1_780_000_000, newest: 1_780_000_000 + span}
		drawn := map[int64]bool{}
		for range 200 {
			at := *s.moment(r)
			between(t, "moment", s.oldest, at, s.newest)
			drawn[at] = true
		}
		same(t, "different ones", int64(len(drawn)), span+1)
	}
}

// TestQueriesNameTheConditionsThatTheyUse compares what a description says with the filters: a
// failed check bars by it.
func TestQueriesNameTheConditionsThatTheyUse(t *testing.T) {
	t.Parallel()
	s, _ := testQueryParameters(t, synthetic.Spec{Events: 400, Seed: 1, BaseTime: 1780272000})
	r := rand.New(rand.NewPCG(3, 4))
	for k, scenario := range Queries() {
		q := &queryTemplates[k/2]
		f, ok := q.hot(s)
		if k%2 == 1 {
			f, ok = q.varied(s, r)
		}
		if !ok {
			t.Fatalf("%s: nothing to ask about", q.key)
		}
		want := []string{"limit", "order"}
		for name, used := range map[string]bool{"ids": len(f.IDs) > 0, "authors": len(f.Authors) > 0, "kinds": len(f.Kinds) > 0,
			"since": f.Since != nil, "until": f.Until != nil} {
			if used {
				want = append(want, name)
			}
		}
		for _, tag := range f.Tags {
			want = append(want, "#"+string(tag.Name))
		}
		d := scenario.Describe()
		if got := slices.Sorted(slices.Values(d.Uses)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: %q, want %q", d.Key, got, want)
		}
		same(t, d.Key+": order", d.Order, orderQueries+k)
	}
}

// Every scenario says what of the harness bounds its rates, and which of its latencies are round
// trips.
func TestScenariosSayWhatBoundsThem(t *testing.T) {
	type bound struct {
		ceiling results.Ceiling
		trips   []string
	}
	want := map[string]bound{"ingest.throughput": {results.CeilingIngest, nil}, "ingest.paced": {results.CeilingIngest, []string{"ok from intended"}},
		"ingest.visibility": {results.CeilingIngest, []string{"visible", "ok"}}, "import": {results.CeilingNone, nil}, "sync.native": {results.CeilingNone, nil},
		"sync.negentropy": {results.CeilingPair, nil}, "sync.req": {results.CeilingPair, nil}, "storage": {}, "crash": {}}
	all := []harness.Description{Throughput{}.Describe(), Paced{}.Describe(), Visibility{}.Describe(), Storage{}.Describe(), Crash{}.Describe(), Import{}.Describe()}
	for _, s := range Queries() {
		all = append(all, s.Describe())
		want[s.Describe().Key] = bound{results.CeilingQuery, []string{"eose", "first event"}}
	}
	for _, s := range Fetches(FetchOptions{}) {
		all = append(all, s.Describe())
		want[s.Describe().Key] = bound{results.CeilingDownload, nil}
	}
	for _, mode := range new(Sync).Scenarios() {
		all = append(all, mode.Describe())
	}
	for _, phase := range phases {
		all = append(all, describePhase(phase))
		want["negentropy."+phase] = bound{results.CeilingPair, nil}
	}
	for _, d := range all {
		w, known := want[d.Key]
		if !known || d.Ceiling != w.ceiling || !slices.Equal(d.RoundTrips, w.trips) {
			t.Errorf("%s: %q, %q; want %q, %q", d.Key, d.Ceiling, d.RoundTrips, w.ceiling, w.trips)
		}
		for _, trip := range d.RoundTrips {
			if !slices.ContainsFunc(d.Metrics, func(m results.Metric) bool { return m.Key == trip }) {
				t.Errorf("%s has no metric %q", d.Key, trip)
			}
		}
	}
}
