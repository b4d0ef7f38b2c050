package scenarios

import (
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"sync"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/results"
)

// The query templates stay inside the limits of a relay as shipped (strfry's: limit 500, 200
// elements a filter, 3 tag names), so that no relay has to be reconfigured to answer them.
const (
	templateLimit = 500
	profileCount  = 50
	archiveCount  = 3
	followCount   = 150
	watchCount    = 150
	byIDsCount    = 100
)

// queryTemplate is one of them. hot is its one fixed filter, varied draws another each time; ok is
// false where the corpus has nothing to ask about.
type queryTemplate struct {
	key, title string
	uses       []string // conditions of its filters
	alsoVaried []string // of those of its varied form alone
	hot        func(s *queryParameters) (f corpus.Filter, ok bool)
	varied     func(s *queryParameters, r *rand.Rand) (f corpus.Filter, ok bool)
}

var threadKinds = []int{1, 6, 7, 9735}

var queryTemplates = []queryTemplate{
	{
		key: "firehose", title: "the newest events of all kinds",
		uses: []string{results.UsesLimit, results.UsesOrder}, alsoVaried: []string{results.UsesUntil},
		hot: func(s *queryParameters) (corpus.Filter, bool) { return corpus.Filter{}, true },
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			return corpus.Filter{Until: s.moment(r)}, true
		},
	},
	{
		key: "global-feed", title: "the newest notes",
		uses: []string{results.UsesKinds, results.UsesLimit, results.UsesOrder}, alsoVaried: []string{results.UsesUntil},
		hot: func(s *queryParameters) (corpus.Filter, bool) { return corpus.Filter{Kinds: []int{1, 6}}, true },
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: []int{1, 6}, Until: s.moment(r)}, true
		},
	},
	{
		key: "profiles", title: "of the 50 busiest authors",
		uses: []string{results.UsesKinds, results.UsesAuthors, results.UsesLimit, results.UsesOrder},
		hot: func(s *queryParameters) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: []int{0}, Authors: head(s.prolific, profileCount)}, len(s.prolific) > 0
		},
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: []int{0}, Authors: pick(r, s.prolific, profileCount)}, len(s.prolific) > 0
		},
	},
	{
		key: "author-archive", title: "everything by the 3 quietest",
		uses: []string{results.UsesAuthors, results.UsesLimit, results.UsesOrder},
		hot: func(s *queryParameters) (corpus.Filter, bool) {
			return corpus.Filter{Authors: tail(s.prolific, archiveCount)}, len(s.prolific) > 0
		},
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			return corpus.Filter{Authors: pick(r, s.prolific, archiveCount)}, len(s.prolific) > 0
		},
	},
	{
		key: "follow-feed", title: "notes of 150 followed authors",
		uses: []string{results.UsesKinds, results.UsesAuthors, results.UsesLimit, results.UsesOrder}, alsoVaried: []string{results.UsesUntil},
		hot: func(s *queryParameters) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: []int{1, 6}, Authors: head(s.prolific, followCount)}, len(s.prolific) > 0
		},
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: []int{1, 6}, Authors: pick(r, s.prolific, followCount), Until: s.moment(r)}, len(s.prolific) > 0
		},
	},
	{
		key: "thread", title: "under the most referenced note",
		uses: []string{results.UsesKinds, "#e", results.UsesLimit, results.UsesOrder},
		hot: func(s *queryParameters) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: threadKinds, Tags: tagged('e', hexes(head(s.referenced, 1)))}, len(s.referenced) > 0
		},
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: threadKinds, Tags: tagged('e', hexes(pick(r, s.referenced, 1)))}, len(s.referenced) > 0
		},
	},
	{
		key: "notifications", title: "of the most mentioned key",
		uses: []string{results.UsesKinds, "#p", results.UsesLimit, results.UsesOrder},
		hot: func(s *queryParameters) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: threadKinds, Tags: tagged('p', hexes(head(s.mentioned, 1)))}, len(s.mentioned) > 0
		},
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: threadKinds, Tags: tagged('p', hexes(pick(r, s.mentioned, 1)))}, len(s.mentioned) > 0
		},
	},
	{
		key: "conversation", title: "between two people",
		uses: []string{results.UsesKinds, results.UsesAuthors, "#p", results.UsesLimit, results.UsesOrder},
		hot:  func(s *queryParameters) (corpus.Filter, bool) { return s.talk(head(s.conversations, 1)) },
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			return s.talk(pick(r, s.conversations, 1))
		},
	},
	{
		key: "reactions-watch", title: "on the 150 busiest notes",
		uses: []string{results.UsesKinds, "#e", results.UsesLimit, results.UsesOrder},
		hot: func(s *queryParameters) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: []int{7}, Tags: tagged('e', hexes(head(s.referenced, watchCount)))}, len(s.referenced) > 0
		},
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: []int{7}, Tags: tagged('e', hexes(pick(r, s.referenced, watchCount)))}, len(s.referenced) > 0
		},
	},
	{
		key: "hashtag", title: "notes under the top one",
		uses: []string{results.UsesKinds, "#t", results.UsesLimit, results.UsesOrder},
		hot: func(s *queryParameters) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: []int{1}, Tags: tagged('t', head(s.hashtags, 1))}, len(s.hashtags) > 0
		},
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: []int{1}, Tags: tagged('t', pick(r, s.hashtags, 1))}, len(s.hashtags) > 0
		},
	},
	{
		key: "by-ids", title: "100 events by their ids",
		uses: []string{results.UsesIDs, results.UsesLimit, results.UsesOrder},
		hot: func(s *queryParameters) (corpus.Filter, bool) {
			return corpus.Filter{IDs: s.spread(byIDsCount)}, len(s.held) > 0
		},
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			return corpus.Filter{IDs: s.ids(pick(r, s.held, byIDsCount))}, len(s.held) > 0
		},
	},
	{
		key: "recent-window", title: "the last fifth of the time",
		uses: []string{results.UsesKinds, results.UsesSince, results.UsesLimit, results.UsesOrder}, alsoVaried: []string{results.UsesUntil},
		hot: func(s *queryParameters) (corpus.Filter, bool) {
			return corpus.Filter{Kinds: []int{1}, Since: corpus.Int64(s.newest - s.span()/5)}, true
		},
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			until := s.moment(r)
			return corpus.Filter{Kinds: []int{1}, Since: corpus.Int64(*until - s.span()/5), Until: until}, true
		},
	},
	{
		key: "empty", title: "nothing matches, the floor",
		uses: []string{results.UsesIDs, results.UsesLimit, results.UsesOrder},
		hot: func(s *queryParameters) (corpus.Filter, bool) {
			return corpus.Filter{IDs: []corpus.ID{sha256.Sum256([]byte("relaybench: no event has this id"))}}, true
		},
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			var id corpus.ID
			for i := range id {
				id[i] = byte(r.Uint64())
			}
			return corpus.Filter{IDs: []corpus.ID{id}}, true
		},
	},
	{
		key: "deep-page", title: "in the middle of the past",
		uses: []string{results.UsesUntil, results.UsesLimit, results.UsesOrder},
		hot: func(s *queryParameters) (corpus.Filter, bool) {
			return corpus.Filter{Until: corpus.Int64(s.middle)}, len(s.held) > 0
		},
		varied: func(s *queryParameters, r *rand.Rand) (corpus.Filter, bool) {
			if len(s.held) == 0 {
				return corpus.Filter{}, false
			}
			return corpus.Filter{Until: corpus.Int64(s.created(s.held[len(s.held)/4+r.IntN(max(1, len(s.held)/2))]))}, true
		},
	},
}

// queryParameters are what the query templates ask about: who and what stands out among the events
// that a compliant relay holds.
type queryParameters struct {
	corpus        *corpus.Corpus
	held          []int           // indexes, in corpus order
	prolific      []corpus.PubKey // authors by notes, most first
	referenced    []corpus.ID     // notes by references to them, most first
	mentioned     []corpus.PubKey // keys by mentions, most first
	hashtags      []string        // by use, most first
	conversations []model.Pair    // an author and a key it mentions, the longest first but for the hot one

	oldest, newest int64 // created_at, Unix seconds
	middle         int64 // of the event in the middle
}

func newQueryParameters(c *corpus.Corpus, m *model.Model) (*queryParameters, error) {
	popular, err := m.Popular()
	if err != nil {
		return nil, err
	}
	s := plainQueryParameters(c, m)
	s.prolific, s.referenced, s.mentioned = keys(popular.NoteAuthors), keys(popular.Notes), keys(popular.Mentions)
	s.hashtags, s.conversations = keys(popular.Hashtags), keys(popular.Conversations)
	// The hot conversation is with the most mentioned key, not the longest of all.
	if i := slices.IndexFunc(s.conversations, func(p model.Pair) bool { return p.Tagged == s.mentioned[0] }); i > 0 {
		s.conversations[0], s.conversations[i] = s.conversations[i], s.conversations[0]
	}
	return s, nil
}

// plainQueryParameters are those that cost nothing to find: what stands out is not known, and
// queries about it have nothing to ask.
func plainQueryParameters(c *corpus.Corpus, m *model.Model) *queryParameters {
	s := &queryParameters{corpus: c, held: m.Effective()}
	if len(s.held) > 0 {
		s.oldest, s.newest = s.created(s.held[0]), s.created(s.held[len(s.held)-1])
		s.middle = s.created(s.held[len(s.held)/2])
	}
	return s
}

func keys[K any](ranked []model.Ranked[K]) []K {
	list := make([]K, len(ranked))
	for i, r := range ranked {
		list[i] = r.Key
	}
	return list
}

// queryParametersOnce derives the parameters when they are first needed, and once for all queries,
// trials and relays.
type queryParametersOnce struct {
	once sync.Once
	s    *queryParameters
	err  error
}

func (o *queryParametersOnce) of(t *harness.Trial) (*queryParameters, error) {
	o.once.Do(func() { o.s, o.err = newQueryParameters(t.Corpus, t.Model) })
	return o.s, o.err
}

func (s *queryParameters) created(i int) int64 { return s.corpus.Entry(i).CreatedAt }

func (s *queryParameters) span() int64 { return s.newest - s.oldest }

// moment draws a time at which the corpus was growing.
func (s *queryParameters) moment(r *rand.Rand) *int64 {
	return corpus.Int64(s.oldest + int64(r.Uint64N(uint64(s.span()+1))))
}

func (s *queryParameters) ids(indexes []int) []corpus.ID { return idsOf(s.corpus, indexes) }

// spread takes n ids evenly over the held events.
func (s *queryParameters) spread(n int) []corpus.ID {
	n = min(n, len(s.held))
	indexes := make([]int, n)
	for k := range indexes {
		indexes[k] = s.held[k*len(s.held)/n]
	}
	return s.ids(indexes)
}

func (s *queryParameters) talk(pairs []model.Pair) (corpus.Filter, bool) {
	if len(pairs) == 0 {
		return corpus.Filter{}, false
	}
	return corpus.Filter{Kinds: []int{1}, Authors: []corpus.PubKey{pairs[0].Author}, Tags: tagged('p', []string{pairs[0].Tagged.String()})}, true
}

func head[T any](list []T, n int) []T { return list[:min(n, len(list))] }

func tail[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// pick draws n different elements, all of them where there are no more.
func pick[T any](r *rand.Rand, list []T, n int) []T {
	n = min(n, len(list))
	picked := make([]T, 0, n)
	taken := make(map[int]bool, n)
	for len(picked) < n {
		if i := r.IntN(len(list)); !taken[i] {
			taken[i] = true
			picked = append(picked, list[i])
		}
	}
	return picked
}

func tagged(name byte, values []string) []corpus.TagFilter {
	return []corpus.TagFilter{{Name: name, Values: values}}
}

func hexes[T interface{ String() string }](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return out
}
