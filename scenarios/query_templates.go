package scenarios

import (
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"strings"
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

// queryTemplate is one of them.
type queryTemplate struct {
	key, title string
	conditions string // of its filters, beside the limit and its order
	varies     string // the condition that its varied form has beside those
	filter     func(c *choice) corpus.Filter
}

var threadKinds = []int{1, 6, 7, 9735}

var queryTemplates = []queryTemplate{
	{"firehose", "the newest events of all kinds", "", "until", func(c *choice) corpus.Filter {
		return corpus.Filter{Until: c.until()}
	}},
	{"global-feed", "the newest notes", "kinds", "until", func(c *choice) corpus.Filter {
		return corpus.Filter{Kinds: []int{1, 6}, Until: c.until()}
	}},
	{"profiles", "of the 50 busiest authors", "kinds authors", "", func(c *choice) corpus.Filter {
		return corpus.Filter{Kinds: []int{0}, Authors: choose(c, c.prolific, profileCount)}
	}},
	{"author-archive", "everything by the 3 quietest", "authors", "", func(c *choice) corpus.Filter {
		authors := choose(c, c.prolific, archiveCount)
		if c.rand == nil {
			authors = c.prolific[len(c.prolific)-len(authors):]
		}
		return corpus.Filter{Authors: authors}
	}},
	{"follow-feed", "notes of 150 followed authors", "kinds authors", "until", func(c *choice) corpus.Filter {
		return corpus.Filter{Kinds: []int{1, 6}, Authors: choose(c, c.prolific, followCount), Until: c.until()}
	}},
	{"thread", "under the most referenced note", "kinds #e", "", func(c *choice) corpus.Filter {
		return corpus.Filter{Kinds: threadKinds, Tags: tagged('e', hexes(choose(c, c.referenced, 1)))}
	}},
	{"notifications", "of the most mentioned key", "kinds #p", "", func(c *choice) corpus.Filter {
		return corpus.Filter{Kinds: threadKinds, Tags: tagged('p', hexes(choose(c, c.mentioned, 1)))}
	}},
	{"conversation", "between two people", "kinds authors #p", "", func(c *choice) (f corpus.Filter) {
		for _, talk := range choose(c, c.conversations, 1) {
			f = corpus.Filter{Kinds: []int{1}, Authors: []corpus.PubKey{talk.Author}, Tags: tagged('p', []string{talk.Tagged.String()})}
		}
		return f
	}},
	{"reactions-watch", "on the 150 busiest notes", "kinds #e", "", func(c *choice) corpus.Filter {
		return corpus.Filter{Kinds: []int{7}, Tags: tagged('e', hexes(choose(c, c.referenced, watchCount)))}
	}},
	{"hashtag", "notes under the top one", "kinds #t", "", func(c *choice) corpus.Filter {
		return corpus.Filter{Kinds: []int{1}, Tags: tagged('t', choose(c, c.hashtags, 1))}
	}},
	{"by-ids", "100 events by their ids", "ids", "", func(c *choice) corpus.Filter {
		indexes := choose(c, c.held, byIDsCount)
		if c.rand == nil {
			indexes = spread(c.held, byIDsCount)
		}
		return corpus.Filter{IDs: idsOf(c.corpus, indexes)}
	}},
	{"recent-window", "the last fifth of the time", "kinds since", "until", func(c *choice) corpus.Filter {
		end, until := c.newest, c.until()
		if until != nil {
			end = *until
		}
		return corpus.Filter{Kinds: []int{1}, Since: corpus.Int64(end - (c.newest-c.oldest)/5), Until: until}
	}},
	{"empty", "nothing matches, the floor", "ids", "", func(c *choice) corpus.Filter {
		id := corpus.ID(sha256.Sum256([]byte("relaybench: no event has this id")))
		for i := range id {
			if c.rand != nil {
				id[i] = byte(c.rand.Uint64())
			}
		}
		return corpus.Filter{IDs: []corpus.ID{id}}
	}},
	{"deep-page", "in the middle of the past", "until", "", func(c *choice) corpus.Filter {
		n := len(c.held)
		if c.nothing = n == 0; c.nothing {
			return corpus.Filter{}
		}
		middle := n / 2
		if c.rand != nil {
			middle = n/4 + c.rand.IntN(max(1, n/2))
		}
		return corpus.Filter{Until: corpus.Int64(c.corpus.Entry(c.held[middle]).CreatedAt)}
	}},
}

// uses are the conditions of the filters.
func (q *queryTemplate) uses(varied bool) []string {
	all := append(strings.Fields(q.conditions), results.UsesLimit, results.UsesOrder)
	if varied {
		all = append(all, strings.Fields(q.varies)...)
	}
	return all
}

// hot is the template's one fixed filter; ok is false where the corpus has nothing to ask about.
func (q *queryTemplate) hot(s *queryParameters) (f corpus.Filter, ok bool) {
	return q.varied(s, nil)
}

// varied draws another filter each time.
func (q *queryTemplate) varied(s *queryParameters, r *rand.Rand) (f corpus.Filter, ok bool) {
	c := &choice{queryParameters: s, rand: r}
	f = q.filter(c)
	return f, !c.nothing
}

// choice is what one filter asks about.
type choice struct {
	*queryParameters
	rand    *rand.Rand // nil: what stands out most, and no draw
	nothing bool       // the corpus has nothing to choose from
}

// choose takes n different elements of a list, all of them where there are no more.
func choose[T any](c *choice, list []T, n int) []T {
	c.nothing = c.nothing || len(list) == 0
	if c.rand == nil {
		return list[:min(n, len(list))]
	}
	return pick(c.rand, list, n)
}

// until is a moment up to which a varied filter asks.
func (c *choice) until() *int64 {
	if c.rand == nil {
		return nil
	}
	return c.moment(c.rand)
}

// queryParameters are what the query templates ask about: who and what stands out among the events
// that a compliant relay holds.
type queryParameters struct {
	corpus         *corpus.Corpus
	held           []int           // indexes, in corpus order
	oldest, newest int64           // created_at of them, Unix seconds
	prolific       []corpus.PubKey // authors by notes, most first
	referenced     []corpus.ID     // notes by references to them, most first
	mentioned      []corpus.PubKey // keys by mentions, most first
	hashtags       []string        // by use, most first
	conversations  []model.Pair    // an author and a key it mentions, the longest first but for the hot one
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
	if n := len(s.held); n > 0 {
		s.oldest, s.newest = c.Entry(s.held[0]).CreatedAt, c.Entry(s.held[n-1]).CreatedAt
	}
	return s
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

// moment draws a time at which the corpus was growing.
func (s *queryParameters) moment(r *rand.Rand) *int64 {
	return corpus.Int64(s.oldest + int64(r.Uint64N(uint64(s.newest-s.oldest+1))))
}

func keys[K any](ranked []model.Ranked[K]) []K {
	list := make([]K, len(ranked))
	for i, r := range ranked {
		list[i] = r.Key
	}
	return list
}

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
