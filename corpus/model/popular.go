package model

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"relaybench/corpus"
)

// Ranked is a key and how many events count for it.
type Ranked[K any] struct {
	Key   K
	Count int
}

// Pair is an author and a key that the author's notes tag.
type Pair struct{ Author, Tagged corpus.PubKey }

// Popular ranks what a scenario chooses its filters from: the highest count first, then the lowest
// bytes. Only events that the model holds count, each once for a key however often it tags it.
// "Social" kinds are 1, 6, 7 and 9735.
type Popular struct {
	NoteAuthors   []Ranked[corpus.PubKey] // authors, by their kind 1 notes
	Notes         []Ranked[corpus.ID]     // kind 1 notes that are held, by the social events that refer to them in an e tag
	References    []Ranked[corpus.ID]     // likewise any id, of an event of any kind or of none that is known
	Mentions      []Ranked[corpus.PubKey] // keys, by the social events that name them in a p tag
	Hashtags      []Ranked[string]        // values of t tags, as they stand, by the notes that carry them
	Conversations []Ranked[Pair]          // an author's notes that name a key in a p tag, the author's own key included
}

const (
	kindNote   = 1
	kindRepost = 6
	kindLike   = 7
	kindZap    = 9735
)

func compareIDs(a, b corpus.ID) int      { return bytes.Compare(a[:], b[:]) }
func compareKeys(a, b corpus.PubKey) int { return bytes.Compare(a[:], b[:]) }

func (m *Model) rankAll() (*Popular, error) {
	var mu sync.Mutex
	var parts []*counts // those not in use: in the end one for each core
	err := corpus.TryInParallel(context.Background(), (len(m.statuses)+chunkEvents-1)/chunkEvents, func(chunk int) error {
		mu.Lock()
		part := newCounts()
		if n := len(parts); n > 0 {
			part, parts = parts[n-1], parts[:n-1]
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			parts = append(parts, part)
		}()
		for i := chunk * chunkEvents; i < min((chunk+1)*chunkEvents, len(m.statuses)); i++ {
			if !m.Holds(i) {
				continue
			}
			if err := part.count(m.corpus.Entry(i), m.corpus.Raw(i)); err != nil {
				return fmt.Errorf("ranking event %d of the corpus: %w", i, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	whole := newCounts()
	for _, part := range parts {
		whole.take(part)
	}
	p := &Popular{
		NoteAuthors: ranked(whole.noteAuthors, compareKeys),
		References:  ranked(whole.references, compareIDs),
		Mentions:    ranked(whole.mentions, compareKeys),
		Hashtags:    ranked(whole.hashtags, strings.Compare),
		Conversations: ranked(whole.conversations, func(a, b Pair) int {
			return cmp.Or(compareKeys(a.Author, b.Author), compareKeys(a.Tagged, b.Tagged))
		}),
	}
	for _, r := range p.References {
		if i, ok := m.corpus.Find(r.Key); ok && m.Holds(i) && m.corpus.Entry(i).Kind == kindNote {
			p.Notes = append(p.Notes, r)
		}
	}
	return p, nil
}

func ranked[K comparable](counts map[K]int, compare func(a, b K) int) []Ranked[K] {
	list := make([]Ranked[K], 0, len(counts))
	for key, n := range counts {
		list = append(list, Ranked[K]{key, n})
	}
	slices.SortFunc(list, func(a, b Ranked[K]) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), compare(a.Key, b.Key))
	})
	return list
}

type counts struct {
	noteAuthors   map[corpus.PubKey]int
	references    map[corpus.ID]int
	mentions      map[corpus.PubKey]int
	hashtags      map[string]int
	conversations map[Pair]int

	ids   []corpus.ID // of the event being counted
	keys  []corpus.PubKey
	words []string
}

func newCounts() *counts {
	return &counts{
		noteAuthors: map[corpus.PubKey]int{}, references: map[corpus.ID]int{}, mentions: map[corpus.PubKey]int{},
		hashtags: map[string]int{}, conversations: map[Pair]int{},
	}
}

func (t *counts) count(entry *corpus.Entry, raw []byte) error {
	switch entry.Kind {
	case kindNote, kindRepost, kindLike, kindZap:
	default:
		return nil
	}
	t.ids, t.keys, t.words = t.ids[:0], t.keys[:0], t.words[:0]
	err := corpus.ScanTags(raw, func(name, value []byte, elements int) {
		if elements < 2 || len(name) != 1 {
			return
		}
		switch name[0] {
		case 'e':
			if id, ok := corpus.ParseID(value); ok {
				t.ids = append(t.ids, id)
			}
		case 'p':
			if key, ok := corpus.ParsePubKey(value); ok {
				t.keys = append(t.keys, key)
			}
		case 't':
			if entry.Kind == kindNote {
				t.words = append(t.words, string(value))
			}
		}
	})
	if err != nil {
		return err
	}
	for _, id := range distinct(t.ids, compareIDs) {
		t.references[id]++
	}
	keys := distinct(t.keys, compareKeys)
	for _, key := range keys {
		t.mentions[key]++
	}
	if entry.Kind != kindNote {
		return nil
	}
	t.noteAuthors[entry.PubKey]++
	for _, key := range keys {
		t.conversations[Pair{entry.PubKey, key}]++
	}
	for _, word := range distinct(t.words, strings.Compare) {
		t.hashtags[word]++
	}
	return nil
}

// distinct sorts list in place and drops repetitions.
func distinct[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

// take adds what part has counted. part is spent.
func (t *counts) take(part *counts) {
	t.noteAuthors = sum(t.noteAuthors, part.noteAuthors)
	t.references = sum(t.references, part.references)
	t.mentions = sum(t.mentions, part.mentions)
	t.hashtags = sum(t.hashtags, part.hashtags)
	t.conversations = sum(t.conversations, part.conversations)
}

// sum adds the smaller of two counts to the larger.
func sum[K comparable](a, b map[K]int) map[K]int {
	if len(a) < len(b) {
		a, b = b, a
	}
	for key, n := range b {
		a[key] += n
	}
	return a
}
