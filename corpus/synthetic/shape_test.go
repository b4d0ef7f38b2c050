package synthetic

import (
	"math"
	"slices"
	"testing"

	"relaybench/corpus"
)

// view is a corpus as its checks need it: where each event stands.
type view struct {
	events  []corpus.Event
	at      map[corpus.ID]int
	authors map[corpus.PubKey]bool
}

func newView(events []corpus.Event) view {
	v := view{events, map[corpus.ID]int{}, map[corpus.PubKey]bool{}}
	for i := range events {
		v.at[events[i].ID] = i
		v.authors[events[i].PubKey] = true
	}
	return v
}

func tagsNamed(e *corpus.Event, name string) (found []corpus.Tag) {
	for _, t := range e.Tags {
		if t.Name() == name {
			found = append(found, t)
		}
	}
	return found
}

func TestEverySyntheticEventVerifiesAndIsUnique(t *testing.T) {
	t.Parallel()
	events := generate(t, Spec{500, 4, testBaseTime})
	seen := map[corpus.ID]bool{}
	for i := range events {
		if err := events[i].Verify(); err != nil {
			t.Fatalf("event %d, kind %d: %v", i, events[i].Kind, err)
		}
		if seen[events[i].ID] {
			t.Fatalf("event %d comes twice", i)
		}
		seen[events[i].ID] = true
	}
}

func TestSyntheticCorpusIsInOrderWithinItsWindow(t *testing.T) {
	events := shaped()
	if len(events) != shapeEvents {
		t.Fatalf("%d events", len(events))
	}
	checkOrder(t, events)
	if first, last := events[0].CreatedAt, events[len(events)-1].CreatedAt; first < testBaseTime-windowSeconds || last >= testBaseTime ||
		last-first < windowSeconds*9/10 {
		t.Errorf("events from %d to %d do not fill the 30 days before %d", first, last, testBaseTime)
	}
	ties := 0
	for i := 1; i < len(events); i++ {
		if events[i].CreatedAt == events[i-1].CreatedAt {
			ties++
		}
	}
	if ties == 0 {
		t.Error("no two events share a second: the order of ties goes untested")
	}
}

func TestKindsHaveTheirShares(t *testing.T) {
	counts := map[int]int{}
	replies := 0
	for _, e := range shaped() {
		counts[e.Kind]++
		if e.Kind == 1 && len(tagsNamed(&e, "e")) > 0 {
			replies++
		}
	}
	rest := shapeEvents - counts[0] - counts[3] - counts[10002]
	for _, c := range []struct {
		name      string
		got       int
		percent   float64
		tolerance float64
	}{
		{"root notes", counts[1] - replies, 36, 2},
		{"replies", replies, 19, 1.5},
		{"reposts", counts[6], 8, 1},
		{"reactions", counts[7], 27, 1.5},
		{"zap receipts", counts[9735], 6, 1},
		{"articles", counts[30023], 2, 0.6},
		{"direct messages", counts[4], 2, 0.6},
	} {
		tolerance := c.tolerance * math.Sqrt(10_000/float64(shapeEvents))
		if share := 100 * float64(c.got) / float64(rest); math.Abs(share-c.percent) > tolerance {
			t.Errorf("%s are %.1f %% of the rest, want about %g", c.name, share, c.percent)
		}
	}
	if len(counts) != 9 {
		t.Errorf("kinds %v, want nine", counts)
	}
}

func TestEveryAuthorHasStandingListsAndSomeAreSuperseded(t *testing.T) {
	versions := map[corpus.PubKey]map[int][]int64{}
	for _, e := range shaped() {
		if e.Kind == 0 || e.Kind == 3 || e.Kind == 10002 {
			if versions[e.PubKey] == nil {
				versions[e.PubKey] = map[int][]int64{}
			}
			versions[e.PubKey][e.Kind] = append(versions[e.PubKey][e.Kind], e.CreatedAt)
		}
	}
	if want := authorCount(shapeEvents); len(versions) != want {
		t.Errorf("%d authors, want %d", len(versions), want)
	}
	renewed := map[int]int{}
	for author, kinds := range versions {
		for _, kind := range []int{0, 3, 10002} {
			times := kinds[kind]
			if len(times) == 0 {
				t.Errorf("author %s has no kind %d", author, kind)
			}
			if len(times) > 1 {
				renewed[kind]++
			}
			if len(slices.Compact(times)) != len(times) {
				t.Errorf("author %s has two of kind %d in one second", author, kind)
			}
		}
	}
	for _, kind := range []int{0, 3, 10002} {
		if renewed[kind] < len(versions)/20 {
			t.Errorf("kind %d is renewed by %d authors only", kind, renewed[kind])
		}
	}
}

func TestAuthorCountIsATwentiethWithinBounds(t *testing.T) {
	for events, want := range map[int]int{1: 20, 399: 20, 420: 21, 10_000: 500, 40_000: 2000, 1_000_000: 2000} {
		if got := authorCount(events); got != want {
			t.Errorf("%d events have %d authors, want %d", events, got, want)
		}
	}
}

func TestAuthorsFollowZipf(t *testing.T) {
	counts := map[corpus.PubKey]int{}
	total := 0
	for _, e := range shaped() {
		if e.Kind == 1 || e.Kind == 7 {
			counts[e.PubKey]++
			total++
		}
	}
	var sizes []int
	for _, n := range counts {
		sizes = append(sizes, n)
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	popularity := newZipfTable(authorCount(shapeEvents))
	want := float64(popularity[0]) / float64(popularity[len(popularity)-1])
	if share := float64(sizes[0]) / float64(total); math.Abs(share/want-1) > 0.15 {
		t.Errorf("the most prolific author has %.3f of the events, want about %.3f", share, want)
	}
	// 13^0.9 is 10.
	if ratio := float64(sizes[0]) / float64(sizes[12]); ratio < 7 || ratio > 14 {
		t.Errorf("the first author has %.1f times the events of the thirteenth", ratio)
	}
}

func TestReferencesPointToEarlierEventsAndKnownKeys(t *testing.T) {
	v := newView(shaped())
	for i := range v.events {
		e := &v.events[i]
		for _, name := range []string{"p", "P"} {
			for _, tag := range tagsNamed(e, name) {
				pk, ok := corpus.ParsePubKey(tag.Value())
				if !ok || !v.authors[pk] {
					t.Fatalf("event %d, kind %d: %s tag %q is no author's key", i, e.Kind, name, tag.Value())
				}
			}
		}
		references := tagsNamed(e, "e")
		for _, tag := range references {
			id, _ := corpus.ParseID(tag.Value())
			at, known := v.at[id]
			if !known || at >= i || v.events[at].Kind != 1 {
				t.Fatalf("event %d, kind %d: e tag %s does not point to an earlier note", i, e.Kind, tag.Value())
			}
		}
		if (e.Kind == 6 || e.Kind == 7 || e.Kind == 9735) && len(references) != 1 {
			t.Fatalf("event %d, kind %d, has %d e tags", i, e.Kind, len(references))
		}
	}
}

func TestThreadsAreMarkedAsNIP10Says(t *testing.T) {
	v := newView(shaped())
	deep := 0
	for i := range v.events {
		e := &v.events[i]
		es := tagsNamed(e, "e")
		if e.Kind != 1 || len(es) == 0 {
			continue
		}
		if len(es) > 2 || es[0][3] != "root" || len(es) == 2 && (es[1][3] != "reply" || es[1][1] == es[0][1]) {
			t.Fatalf("event %d has e tags %q", i, es)
		}
		id, _ := corpus.ParseID(es[len(es)-1].Value())
		parent := &v.events[v.at[id]]
		if pointer := es[len(es)-1]; len(pointer) != 5 || pointer[4] != parent.PubKey.String() {
			t.Fatalf("event %d: e tag %q does not name the author %s", i, pointer, parent.PubKey)
		}
		if !slices.ContainsFunc(tagsNamed(e, "p"), func(tag corpus.Tag) bool { return tag.Value() == parent.PubKey.String() }) {
			t.Fatalf("event %d does not tag the author it replies to", i)
		}
		above := tagsNamed(parent, "e")
		switch {
		case len(es) == 1 && len(above) != 0:
			t.Fatalf("event %d marks a reply as its root", i)
		case len(es) == 2 && (len(above) == 0 || above[0].Value() != es[0].Value()):
			t.Fatalf("event %d has another root than what it replies to", i)
		}
		if len(es) == 2 {
			deep++
		}
	}
	if deep < shapeEvents/30 {
		t.Errorf("%d replies to replies only", deep)
	}
}

func TestTargetsAreMostlyRecentAndSomeArePopular(t *testing.T) {
	v := newView(shaped())
	referred := map[string]int{}
	recent, total := 0, 0
	for i := range v.events {
		e := &v.events[i]
		if e.Kind != 6 && e.Kind != 7 && e.Kind != 9735 {
			continue
		}
		id := tagsNamed(e, "e")[0].Value()
		referred[id]++
		if target, _ := corpus.ParseID(id); i-v.at[target] < i/4 {
			recent++
		}
		total++
	}
	// A quarter of the uniform choices is as recent by chance.
	if share := 100 * recent / total; share < 60 || share > 95 {
		t.Errorf("%d %% of targets lie in the last quarter of what had been written", share)
	}
	most := 0
	for _, n := range referred {
		most = max(most, n)
	}
	if most < shapeEvents/400 || most > shapeEvents/20 {
		t.Errorf("the most popular note has %d references", most)
	}
}
