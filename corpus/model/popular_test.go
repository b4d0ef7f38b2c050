package model

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"relaybench/corpus"
)

func TestPopularCountsHeldEventsOncePerKey(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	for range 100 {
		c, m := modelOf(t, randomEvents(r, 60), nil)
		p, err := m.Popular()
		if err != nil {
			t.Fatal(err)
		}
		authors, refs, notes, mentions, words, pairs := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
		for _, i := range m.Effective() {
			e, err := c.Event(i)
			if err != nil {
				t.Fatal(err)
			}
			once := map[string]bool{}
			add := func(counts map[string]int, name, key string) {
				if !once[name+key] {
					counts[key]++
				}
				once[name+key] = true
			}
			if e.Kind == 1 {
				add(authors, "author", e.PubKey.String())
			}
			if !slices.Contains([]int{1, 6, 7, 9735}, e.Kind) {
				continue
			}
			for _, tag := range e.Tags {
				switch tag.Name() {
				case "e":
					add(refs, "ref", tag[1])
					id, _ := corpus.ParseID(tag[1])
					if i, ok := c.Find(id); ok && m.Holds(i) && c.Entry(i).Kind == 1 {
						add(notes, "note", tag[1])
					}
				case "p":
					add(mentions, "mention", tag[1])
					if e.Kind == 1 {
						add(pairs, "pair", e.PubKey.String()+tag[1])
					}
				case "t":
					if e.Kind == 1 {
						add(words, "word", tag[1])
					}
				}
			}
		}
		compareRanking(t, "authors", p.NoteAuthors, authors, corpus.PubKey.String)
		compareRanking(t, "references", p.References, refs, corpus.ID.String)
		compareRanking(t, "notes", p.Notes, notes, corpus.ID.String)
		compareRanking(t, "mentions", p.Mentions, mentions, corpus.PubKey.String)
		compareRanking(t, "hashtags", p.Hashtags, words, func(s string) string { return s })
		compareRanking(t, "conversations", p.Conversations, pairs, func(p Pair) string { return p.Author.String() + p.Tagged.String() })
	}
}

func compareRanking[K any](t *testing.T, name string, got []Ranked[K], counts map[string]int, text func(K) string) {
	t.Helper()
	var want, have []Ranked[string]
	for key, n := range counts {
		want = append(want, Ranked[string]{key, n})
	}
	slices.SortFunc(want, func(a, b Ranked[string]) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
	for _, r := range got {
		have = append(have, Ranked[string]{text(r.Key), r.Count})
	}
	if !reflect.DeepEqual(have, want) {
		t.Fatalf("%s:\n%v\nwant\n%v", name, have, want)
	}
}
